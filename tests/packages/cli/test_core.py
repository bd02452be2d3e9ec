"""What answers needs nothing but what the core declares: no library that only an extra brings."""

from __future__ import annotations

import importlib.metadata as metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import jostle
from tests.packages.models.levels import campaign

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import contextlib, io, json, sys
hidden, packages, lines = json.loads(sys.stdin.read())

class Core:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Core(finder) for finder in sys.meta_path]

from importlib import metadata
version = metadata.version

def version_of(name):
    if name.lower() in packages:
        raise metadata.PackageNotFoundError(name)
    return version(name)

metadata.version = version_of
from jostle.cli import exit_code as run
for words in lines:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    print(json.dumps([code, err.getvalue()]))
"""


def hidden_here() -> tuple[set[str], set[str]]:
    """(top-level modules, packages) of all that is installed here, but for the core's and theirs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    waiting, known = list(project["dependencies"]), set()
    while waiting:
        requirement = waiting.pop()
        if "extra ==" in requirement:
            continue
        name = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()
        if name in known:
            continue
        known.add(name)
        try:
            waiting += metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for other systems or interpreters
            continue
    homes = metadata.packages_distributions()
    dashed = {top: {re.sub(r"[-_.]+", "-", d).lower() for d in ds} for top, ds in homes.items()}
    modules = {top for top, owners in dashed.items() if not owners & (known | {"jostle"})}
    return modules, set().union(*(dashed[top] for top in modules))


def in_core(lines: list[list[str]]) -> list[tuple[int, str]]:
    """(exit code, what it complains of) of each command line."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps([*map(sorted, hidden_here()), lines]),
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(found) == len(lines)
    return [(code, err) for code, err in found]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core") / "model"
    runs = campaign(6, 3)
    settings = jostle.Bag("tree")
    jostle.fit(runs, settings, seed=0).save(folder)
    return folder


def test_commands_that_answer_need_only_the_core(model: Path, tmp_path: Path) -> None:
    assert {"jax", "click", "wasmtime"} <= hidden_here()[0]
    table = tmp_path / "times.csv"
    table.write_text("job,host,ms\na,p,1\nb,p,2\n")
    named = ["--workload", "job", "--platform", "host", "--runtime", "ms", "--unit", "ms"]
    lines = [
        ["--help"],
        ["import", "--kind=csv", str(table), "-o", str(tmp_path / "fleet"), *named],
        ["runs", str(tmp_path / "fleet")],
        ["predict", str(model), "-w", "w00", "-p", "p00", "-b", "w01", "-c", "0.5"],
        ["predict", "--why", str(model), "-w", "w00", "-p", "p00", "-b", "w01"],
        ["doctor"],
    ]
    for words, (code, complaint) in zip(lines, in_core(lines), strict=True):
        assert code == 0, f"{words}: {complaint}"


def test_commands_that_need_more_say_what(model: Path, tmp_path: Path) -> None:
    runs = jostle.Runs.from_columns(
        workload=["a"] * 40, platform=["p"] * 40, runtime_seconds=np.linspace(1, 2, 40)
    )
    jostle.Dataset(tmp_path / "fleet").write(runs)
    lines = {
        "fit": ["fit", str(tmp_path / "fleet"), "-o", str(tmp_path / "model")],
        "measure": ["tour", "-o", str(tmp_path / "tour")],
        "serve": ["serve", str(model)],
    }
    for extra, (code, complaint) in zip(lines, in_core(list(lines.values())), strict=True):
        assert code == 2, f"{extra}: {code} {complaint}"
        assert f"[{extra}]" in complaint
        assert "Measuring" not in complaint
