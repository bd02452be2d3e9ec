"""Command lines as they run where nothing is installed but the core."""

from __future__ import annotations

import importlib.metadata as metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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
