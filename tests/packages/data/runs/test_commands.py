"""`jostle import` and `jostle runs`: results on standard output, errors raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jostle.data import read_runs
from jostle.errors import BadRows, UnreadableFile, UsageError
from tests.command_line import assert_fails
from tests.command_line import jostle as command

CSV = "name,host,with,us\nfft,pi,,1500\nfft,pi,lu;sort,2000\nlu,pi,,-1\n"
NAMED = [
    *["--workload", "name", "--platform", "host", "--corunners", "with"],
    *["--runtime", "us", "--unit", "us"],
]


def jostle(*arguments: Any, stdin: str | None = None) -> Any:
    done = command(*arguments, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done


def test_csv_to_summary(tmp_path: Path) -> None:
    file = tmp_path / "bench.csv"
    file.write_text(CSV)
    folder = tmp_path / "dataset"
    words = ["import", "--kind=csv", file, "-o", folder, *NAMED]
    assert_fails(BadRows, r"bench\.csv: 1 of 3 rows[\s\S]*line 4", *words)
    assert not folder.exists()
    document = json.loads(jostle(*words, "--drop-bad", "--json").stdout)
    assert document["schema"] == "import/v1"
    assert (document["runs"], document["alone"], document["rejected"]) == (2, 1, 1)
    assert [one["row"] for one in document["rejected_rows"]] == [4]
    assert document["rejected_rows"][0]["reason"]
    assert all(Path(name).exists() for name in document["files"])
    assert read_runs(folder).runtime_seconds.tolist() == [0.0015, 0.002]

    document = json.loads(jostle("runs", folder, "--json").stdout)
    assert document["schema"] == "runs-summary/v1"
    assert document["runs"] == 2
    assert len(document["version"]) == 16
    text = jostle("runs", folder).stdout
    assert "1 alone, 1 with 2" in text
    assert_fails(BadRows, "already", *words, "--drop-bad")


def test_people_are_told_what_was_set_aside(tmp_path: Path) -> None:
    result = jostle("import", "--kind=csv", "-", "-o", tmp_path, *NAMED, "--drop-bad", stdin=CSV)
    assert "2 runs from <stdin>" in result.stdout
    assert "row 4" in result.stderr
    assert "row 4" not in result.stdout
    assert list((tmp_path / "rejected").glob("stdin-*.csv"))


def test_errors_are_raised_for_the_application_to_say(tmp_path: Path) -> None:
    assert_fails(UnreadableFile, "", "runs", tmp_path / "nowhere", "--json")
    words = ["import", "--kind=csv", "-", "-o", tmp_path, *NAMED, "--unit", "hours"]
    assert_fails(UsageError, "hours", *words, stdin=CSV)


def test_a_remark_names_the_option_to_use(tmp_path: Path) -> None:
    rows = [
        f"{job},pi,{other},5" for job in ("fft", "lu", "sort") for other in ("", "fft", "lu;sort")
    ]
    file = tmp_path / "bench.csv"
    file.write_text("\n".join(["name,host,with,us", *rows, ""]))
    without = [word for word in NAMED if word not in ("--corunners", "with")]
    told = jostle("import", "--kind=csv", file, "-o", tmp_path / "a", *without).stderr
    assert "with 'with' as --corunners." in told
    assert "`" not in told
    told = jostle(
        "import", "--kind=csv", file, "-o", tmp_path / "b", *NAMED, "--separator", ",", "--fix=none"
    ).stderr
    assert "with that --separator." in told
    assert "?." not in told
