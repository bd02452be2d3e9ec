"""A table with a mess in it: what is asked about before the import, what is then done, and rows set aside."""

from __future__ import annotations

import csv
import json
import random
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.data import CsvImport, Dataset, Runs, TableQuestion, import_command, rows_named
from jostle.data.store._import_questions import _some
from jostle.errors import UnknownName, UsageError
from tests.command_line import jostle

TIMES = {"web server": 0.2, "sort": 3.0, "train": 40.0}
COLUMNS = [
    *("--workload", "job", "--platform", "host", "--corunners", "beside"),
    *("--runtime", "wall_ms", "--unit", "ms"),
]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def write_mess(path: Path, rows: int = 120) -> dict[int, float]:
    """A table, and of each of its lines the seconds that are true."""
    draw = random.Random(1)
    lines, true = ["job,host,beside,wall_ms"], {}
    for number in range(rows):
        job = draw.choice(list(TIMES))
        beside = draw.choices(list(TIMES), k=draw.randint(0, 2)) + ["cron"] * (number % 40 == 7)
        true[number + 2] = TIMES[job] * draw.uniform(0.9, 1.1)
        shown = true[number + 2] * (1 if number % 30 == 3 else 1000)
        spelled = {0: job.upper(), 1: job.replace(" ", "  ")}.get(number % 12, job)
        lines.append(
            f"{spelled},{'Node-1' if number % 50 == 9 else 'node-1'},{';'.join(beside)},{shown!r}"
        )
    path.write_text("\n".join(lines) + "\n")
    return true


def imported(table: Path, out: Path, *more: str) -> Any:
    return jostle("import", "--kind=csv", table, *COLUMNS, "-o", out, *more)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_mess(tmp_path / "times.csv")
    return tmp_path / "times.csv"


def test_nothing_is_imported_before_somebody_answers(table: Path, tmp_path: Path) -> None:
    done = imported(table, tmp_path / "data")
    assert done.exit_code == 4
    assert not (tmp_path / "data").exists()
    told = ("'SORT' to 'sort'", "'Node-1' to 'node-1'", "multiply 4 by 1000", "'cron' (3 runs)")
    assert all(words in done.output for words in told)
    assert "--fix names --fix units --fix corunners, or --fix none" in done.output


def test_what_is_mended_is_what_was_true(tmp_path: Path) -> None:
    true = write_mess(tmp_path / "times.csv")
    done = imported(tmp_path / "times.csv", tmp_path / "d", "--fix", "all")
    assert done.exit_code == 0
    assert "done: 4 runtimes a thousand times or more off" in done.stderr
    dataset = Dataset(tmp_path / "d")
    runs = dataset.read()
    assert runs.colocations.workload_names == tuple(sorted(TIMES))
    assert runs.colocations.platform_names == ("node-1",)
    lines = [int(name.rpartition(":")[2]) for name in runs.table.column("run_id").to_pylist()]
    np.testing.assert_allclose(runs.runtime_seconds, [true[line] for line in lines])
    assert set(true) - set(lines) == {9, 49, 89}
    assert set(dataset.aside().values()) == {"a co-runner that is never a workload"}


def test_only_what_was_named_is_mended(table: Path, tmp_path: Path) -> None:
    imported(table, tmp_path / "a", "--fix", "names")
    imported(table, tmp_path / "b", "--fix", "none")
    one, other = (Dataset(tmp_path / name).read() for name in "ab")
    assert len(one) == len(other) == 120
    assert len(one.colocations.workload_names) == 4  # cron
    assert len(other.colocations.workload_names) == 8
    np.testing.assert_array_equal(one.runtime_seconds, other.runtime_seconds)


def test_names_of_the_dataset_count_as_known(tmp_path: Path) -> None:
    there = Runs.from_columns(
        workload=["CRON", "Sort"], platform=["n"] * 2, runtime_seconds=[1.0, 1.0], run_id=["a", "b"]
    )
    Dataset(tmp_path / "d").write(there)
    table = tmp_path / "more.csv"
    table.write_text("job,host,beside,wall_ms\nsort,n,cron,1000\nsort,n,,1001\nsort,n,,1002\n")
    asked: list[TableQuestion] = []
    found = CsvImport(table, "job", "wall_ms", "ms", "host", corunners=("beside",)).read()
    mended = found.mended(tmp_path / "d", lambda one: asked.append(one) is None)
    assert [one.kind for one in asked] == ["names"]
    assert mended.runs.colocations.workload_names == ("CRON", "Sort")


def test_good_tables_are_not_asked_about(tmp_path: Path) -> None:
    lines = [f"j{n % 4},p{n % 3},j{(n + 1) % 4},{1.5 + n % 4 + 0.01 * n}" for n in range(60)]
    (tmp_path / "t.csv").write_text("job,host,beside,wall_ms\n" + "\n".join(lines) + "\n")
    names = ("job", "wall_ms", "ms", "host")
    found = CsvImport(tmp_path / "t.csv", *names, corunners=("beside",)).read()

    def refuse(question: TableQuestion) -> bool:
        raise AssertionError(question)

    assert found.mended(tmp_path / "d", refuse).runs == found.runs


@pytest.mark.parametrize(("n", "end"), [(5, "e"), (6, "e and 1 more")])
def test_of_many_names_the_first_are_shown(n: int, end: str) -> None:
    assert _some(list("abcdef"[:n])) == f"a, b, c, d, {end}"


def test_features_follow_their_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("job,host,beside,wall_ms\na,p,,1\na,p,,1\nA,p,,1\n")
    (tmp_path / "f.csv").write_text("workload,size\nA,1\na,2\n")
    names = ("job", "wall_ms", "ms", "host")
    found = CsvImport(tmp_path / "t.csv", *names, workload_features=tmp_path / "f.csv").read()
    features = found.mended(tmp_path / "d", lambda _: True).runs.workload_features
    assert features is not None
    assert features.to_pylist() == [{"workload": "a", "size": 2}]


def test_rows_set_aside_come_back(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "d"
    imported(table, path, "--fix", "names")
    dataset = Dataset(path)
    before, version = dataset.read(), dataset.version()
    done = jostle("runs", path, "--set-aside", "5", "--set-aside", "7", "--reason", "a broken fan")
    assert "2 runs are set aside" in done.stderr
    assert "a broken fan" in done.stderr
    assert len(dataset.read()) == 118
    assert len(dataset.aside()) == 2
    assert dataset.version() != version
    assert jostle("runs", path, "--take-back", "5").exit_code == 0
    assert len(dataset.read()) == 119
    assert jostle("runs", path, "--take-back", "all").exit_code == 0
    assert dataset.read() == before
    assert len(list((path / "set_aside").iterdir())) == 3  # the record stays


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path)
    ids = ["a:1", "b:1", "b:2", "x"]
    columns = {"workload": ["w"] * 4, "platform": ["p"] * 4, "runtime_seconds": [1.0] * 4}
    dataset.write(Runs.from_columns(**columns, run_id=ids))
    with pytest.raises(UnknownName, match="run_id 'c'"):
        dataset.set_aside(["c"], "", at=NOW)
    assert not (tmp_path / "set_aside").exists()
    assert rows_named(ids, ["2", "a:1", "x"]) == ("b:2", "a:1", "x")
    with pytest.raises(UsageError, match="a line of several imports"):
        rows_named(ids, ["1"])
    with pytest.raises(UnknownName):
        rows_named(ids, ["3"])
    dataset.set_aside(ids, "all of them", at=NOW)
    assert len(dataset.read()) == 0


@pytest.mark.parametrize(
    ("header", "command"),
    [
        ("job,host,neighbours,wall_ms,date", "--workload job --runtime wall_ms --unit ms --platform host "
         "--corunners neighbours"),
        ("start_time;program;seconds", "--workload program --runtime seconds --unit s --platform-name NAME "
         "--delimiter ';'"),
        ("Job Name;Host;Neighbours;Runtime (ms);Comment", "--workload 'Job Name' --runtime 'Runtime (ms)' "
         "--unit ms --platform Host --corunners Neighbours --delimiter ';'"),
        (" Workload , Node ,Co-runners,Time [minutes]", "--workload Workload --runtime 'Time [minutes]' "
         "--unit min --platform Node --corunners Co-runners"),
        ('"Job","Co Runners","elapsed [µs]"', "--workload Job --runtime 'elapsed [µs]' --unit us "
         "--platform-name NAME --corunners 'Co Runners'"),
        ("workload,host,minutes", "--workload workload --runtime minutes --unit min --platform host"),
        ("gpu_name,model,beside,time_ms", "--workload model --runtime time_ms --unit ms "
         "--platform gpu_name --corunners beside"),
        ("a,b", "--workload COLUMN --runtime COLUMN --unit UNIT --platform-name NAME"),
    ],
)  # fmt: skip
def test_a_table_names_its_import(tmp_path: Path, header: str, command: str) -> None:
    path = tmp_path / "times.csv"
    path.write_text(header + "\n")
    assert import_command(path) == f"jostle import {path} --kind csv {command} -o times"
    done = jostle("runs", path)
    assert done.exit_code == 2
    assert command in done.output


def test_the_import_that_a_table_names_works_with_blanks_around_its_names(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(" Workload , Host ,Co-runners,Time (ms)\na,h,,1\n a ,h,b;b,2\nb,h,,3\n")
    words = shlex.split(import_command(path))[1:-1]
    done = jostle(*words, tmp_path / "made")
    assert done.exit_code == 0, done.output
    runs = Dataset(tmp_path / "made").read()
    assert runs.runtime_seconds.tolist() == [0.001, 0.002, 0.003]
    assert runs.colocations.workload_names == ("a", "b")


def test_a_log_names_its_import(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text("JobID|User|JobName|NodeList|Start|End|State\n")
    assert import_command(path) == f"jostle import {path} --kind sacct -o sacct"


@pytest.mark.parametrize("text", [json.dumps, repr])
def test_co_runners_in_lists_that_were_written_as_text_are_read(text: Any, tmp_path: Path) -> None:
    """As a data frame whose column holds lists is written to CSV: by JSON, or as Python shows them."""
    table, names = tmp_path / "times.csv", ["a", "b, c", "it's"]
    lists = [names[: n % 4] for n in range(12)]
    rows = [[names[n % 3], "p", text(beside), n + 1] for n, beside in enumerate(lists)]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["workload", "platform", "corunners", "ms"], *rows])
    found = CsvImport(table, runtime="ms").read().runs.colocations
    assert found.workload_names == ("a", "b, c", "it's")
    assert [sorted(row) for row in found.to_columns()["corunners"]] == lists


@pytest.mark.parametrize("separator", [", ", " + ", "/"])
def test_co_runners_joined_by_another_separator_are_split_and_none_is_set_aside(
    separator: str, tmp_path: Path
) -> None:
    table, names = tmp_path / "times.csv", list(TIMES)
    rows = [f"{names[n % 3]};p;{separator.join(names[: n % 4])};{n + 1}" for n in range(40)]
    table.write_text("job;host;beside;wall_ms\n" + "\n".join(rows) + "\n")
    asked = imported(table, tmp_path / "data")
    assert asked.exit_code == 4
    assert f"--separator {separator.strip()!r}" in asked.stderr
    assert imported(table, tmp_path / "data", "--fix", "separator").exit_code == 0
    runs = Dataset(tmp_path / "data").read()
    beside = [sorted(row) for row in runs.colocations.to_columns()["corunners"]]
    assert beside == [sorted(names[: n % 4]) for n in range(40)]
