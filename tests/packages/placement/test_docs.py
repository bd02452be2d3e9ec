"""Every command line and every line of Python in docs/placement.md, run on data named as the tour's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Dataset, Runs, sample, write_profiles
from tests.packages.gpu.made_profiles import profile_of

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "placement.md").read_text("utf-8")
TOUR = ("matmul-m", "fft-m", "sort-m", "bfs-m", "chase-m", "stream-l", "copy-l", "sha256-m")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the tour leaves it, with the tables of the page."""
    home = tmp_path_factory.mktemp("tour")
    for name, content in re.findall(r'^```csv title="(\S+)"\n(.*?)^```', TEXT, re.M | re.S):
        (home / name).write_text(content)
    runs = sample().ok()
    columns = runs.colocations.to_columns()
    known = [
        (w in TOUR and set(beside) <= set(TOUR)) or not beside
        for w, beside in zip(columns["workload"], columns["corunners"], strict=True)
    ]
    runs = runs.take(np.array(known))
    places = [
        str(name).replace(":sample", ":my-box") for name in runs.table["platform"].to_pylist()
    ]
    at = runs.table.column_names.index("platform")
    table = runs.table.set_column(at, "platform", pa.array(places))
    Dataset(home / "jostle-tour" / "dataset").write(Runs(table))
    method = jostle.Bag("tree")
    jostle.fit(home / "jostle-tour" / "dataset", method).save(home / "jostle-tour" / "model")
    write_profiles(home / "profiles", [profile_of(name) for name in ("asr", "md", "bp", "kms")])
    asked = {"workload": TOUR[:3], "platform": ["wasmtime-speed:my-box"] * 3, "slowdown": [2.0] * 3}
    pq.write_table(pa.table(asked), home / "colocations.parquet")
    return home


COMMANDS = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("line", [line for block in COMMANDS for line in block.splitlines()])
def test_every_command_line_works(
    line: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    words = shlex.split(line)
    assert words.pop(0) == "jostle"
    code = exit_code(words)
    printed = capsys.readouterr()
    assert code in (0, 1), printed.err
    assert printed.out
    assert exit_code([*words, "--json"] if "--json" not in words else words) == code
    document = json.loads(capsys.readouterr().out)
    verb = "score" if "--table" in words else words[1]
    assert document["schema"].startswith(f"place_{verb}/v")


def test_the_lines_of_python_work(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert len(names["after"]) == 3  # pyright: ignore[reportArgumentType]
