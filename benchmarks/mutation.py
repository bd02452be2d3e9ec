"""How many small changes to the code the tests notice.

    python benchmarks/mutation.py [--modules storage|bounds|...|all] [--number 100] [--seed 0] [--near]

Comparisons, arithmetic, constants, conditions, branches, statements, arguments and orders are changed, one
at a time, in a copy of the tree in a temporary folder; mutants are drawn at random, equally many for each
module. First the tests that matter for the module run, then those of its neighbours; a mutant that all of
them pass has survived and is shown. mutmut passes over decorated functions and properties, of which
there are many here, and Cosmic Ray never drops or reorders statements; hence this script.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# What the tests need beside the package, imported once for all mutants.
import numpy as np  # noqa: F401
import pandas as pd  # noqa: F401
import pyarrow as pa  # noqa: F401
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
import scipy.stats  # noqa: F401
from _mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
STORAGE = [
    *("tests/storage/test_settling.py", "tests/storage/test_obstacles.py", "tests/storage"),
    *("tests/runs/test_dataset_files.py", "tests/runs/test_dataset.py"),
]
# {module or folder: (tests that matter, tests of neighbours for what survives them)}; what is missing is left
# out.
TESTS: dict[str, dict[str, tuple[list[str], list[str]]]] = {
    "storage": {
        "src/jostle/_files.py": (
            STORAGE,
            ["tests/test_documents.py", "tests/runs", "tests/traces/test_traces.py"],
        ),
        "src/jostle/_tensors.py": (
            ["tests/test_documents.py", "tests/storage/test_obstacles.py", "tests/storage"],
            ["tests/bridge/test_saved.py", "tests/methods"],
        ),
        "src/jostle/runs/store/_dataset.py": (
            STORAGE,
            ["tests/runs", "tests/methods/test_data.py"],
        ),
        "src/jostle/runs/store/_settle.py": (STORAGE, ["tests/runs"]),
    },
    "bounds": {
        "src/jostle/bounds": (
            ["tests/bounds"],
            ["tests/models", "tests/methods", "tests/slowdown"],
        ),
        "src/jostle/models": (
            ["tests/models", "tests/bounds"],
            ["tests/methods", "tests/slowdown"],
        ),
    },
    "rules": {
        "src/jostle/rules": (
            ["tests/rules/test_by_hand.py", "tests/rules"],
            ["tests/slowdown/test_members.py", "tests/ensemble/test_sessions.py"],
        ),
        "src/jostle/ensemble": (
            ["tests/ensemble/test_by_hand.py", "tests/ensemble/test_folds.py"],
            ["tests/ensemble"],
        ),
    },
    "watch": {
        "src/jostle/models/_watch.py": (["tests/models/test_watch.py"], []),
        "src/jostle/models/_following.py": (
            ["tests/models/test_following.py", "tests/models/test_watch.py"],
            [],
        ),
        "src/jostle/bounds/_drift.py": (
            ["tests/bounds/test_drift.py", "tests/models/test_watch.py"],
            [],
        ),
    },
    "assign": {
        "src/jostle/placement/assign": (
            ["tests/placement/test_packing.py", "tests/placement/test_packed_laws.py"],
            ["tests/placement/test_assign.py"],
        ),
        "src/jostle/placement/chosen": (["tests/placement/test_chosen.py"], []),
    },
    "state": {
        "src/jostle/service/state": (
            [f"tests/service/test_{one}.py" for one in ("fleet", "state", "living")],
            ["tests/service/test_slurm.py"],
        ),
    },
}
# Slow, and a repetition of the others.
SLOW = (
    "tests/storage/test_damage.py::test_the_script_of_kills_and_pairs",
    "tests/models/test_new_names.py::test_factorization_bounds_new_names",
    "tests/ensemble/test_ensemble.py::test_many_names_on_several_platforms_are_saved",
    "tests/service/test_living.py::test_the_first_model_comes_of_observed_runs_alone",
)
COMMAND = ["-x", "-q", "-p", "no:cacheprovider"]
LEFT_OUT = [word for test in SLOW for word in ("--deselect", test)]
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
COMPILED_ONCE = {
    "JAX_COMPILATION_CACHE_DIR": "{}/compiled",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
COPIED = (
    "src",
    "tests",
    "benchmarks",
    "docs",
    "studies",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
)


@dataclass(frozen=True)
class Result:
    """How: killed by a test, timed out, or survived; by: the test that noticed."""

    module: str
    mutant: Mutant
    how: str
    by: str = ""


def modules(name: str) -> dict[str, tuple[list[str], list[str]]]:
    """{module: its tests} of one part, or of all."""
    found = {}
    for part in TESTS if name == "all" else [name]:
        for place, tests in TESTS[part].items():
            files = (
                [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
            )
            for file in files:
                if file.name != "__init__.py":
                    found[str(file.relative_to(ROOT))] = tests
    return found


def drawn(names: list[str], number: int, seed: int) -> Iterator[tuple[str, Mutant]]:
    """So many mutants, equally many of each module as far as it has them, of all kinds alike."""
    chance = random.Random(seed)
    waiting = {}
    for name in names:
        every = mutants((ROOT / name).read_bytes())
        chance.shuffle(every)
        # The kinds in turn, so that constants, of which there are most, do not crowd out the rest.
        place: Counter[str] = Counter()
        turns = []
        for one in every:
            turns.append((place[one.kind], chance.random(), one))
            place[one.kind] += 1
        waiting[name] = [one for *_, one in sorted(turns, key=lambda turn: turn[:2])]
    while number and any(waiting.values()):
        for name in names:
            if number and waiting[name]:
                yield name, waiting[name].pop(0)
                number -= 1


def tree(place: Path) -> Path:
    """A copy of what the tests need."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, place / name, ignore=ignored)
        else:
            shutil.copy(source, place / name)
    return place


def tests_in(place: Path, paths: list[str], seconds: float) -> tuple[str, str]:
    """(passed, failed or timed out; the test that failed) of the tests at these paths.

    In a fork, which finds what the tests need beside the package imported already."""
    # Each once, the first first.
    there = [path for path in dict.fromkeys(paths) if (place / path.split("::")[0]).exists()]
    if not there:
        return "passed", ""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if not child:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            os.chdir(place)
            sys.path[:0] = [str(place / "src"), str(place)]
            os.environ["PYTHONPATH"] = str(place / "src")
            folder = ["--basetemp", str(place / "made")]
            os._exit(pytest.main([*COMMAND, *LEFT_OUT, *folder, *there]))
        late, ended = time.monotonic() + 10 * seconds, (0, 0)
        try:
            while ended[0] == 0 and time.monotonic() < late:
                time.sleep(0.02)
                ended = os.waitpid(child, os.WNOHANG)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # and what it started
        if not ended[0]:
            os.waitpid(child, 0)
        if not ended[0] or os.WIFSIGNALED(ended[1]):
            return "timed out", ""
        output.seek(0)
        lines = output.read().splitlines()
    if ended[1] == 0:
        return "passed", ""
    words = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return "failed", words[0].split(" - ")[0] if words else " ".join(lines[-3:])[-200:]


def tried(
    place: Path, name: str, one: Mutant, tests: tuple[list[str], list[str]], limit: float
) -> Result:
    """One mutant in a tree, which is as before afterwards."""
    file = place / name
    source = file.read_bytes()

    def write(text: bytes) -> None:
        file.write_bytes(text)
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()  # of the same second, and perhaps as long

    try:
        write(one.applied(source))
        for paths in tests:
            how, by = tests_in(place, paths, limit)
            if how != "passed":
                return Result(name, one, how, by)
        return Result(name, one, "survived")
    finally:
        write(source)


def difference(name: str, one: Mutant) -> str:
    """What the mutant changes."""
    source = (ROOT / name).read_bytes()
    before, after = (text.decode().splitlines() for text in (source, one.applied(source)))
    lines = list(difflib.unified_diff(before, after, name, name, n=1, lineterm=""))
    return "\n".join(lines[2:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--modules", choices=[*TESTS, "all"], default="all")
    parser.add_argument("--only", help="modules whose path has this in it")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--near", action="store_true", help="not the tests of neighbours")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="CPU seconds for the tests of a mutant"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = {n: t for n, t in modules(given.modules).items() if (given.only or "") in n}
    if given.near:
        chosen = {name: (tests[0], []) for name, tests in chosen.items()}
    with tempfile.TemporaryDirectory() as folder:
        place = tree(Path(folder) / "tree")
        os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
        os.environ.update({name: value.format(folder) for name, value in COMPILED_ONCE.items()})
        for tests in {repr(tests): tests for tests in chosen.values()}.values():
            for paths in tests:
                how, by = tests_in(place, paths, 10 * given.limit)
                if how != "passed":
                    sys.exit(f"without any change: {how} {by}")
        began, results = time.monotonic(), []
        for name, one in drawn(list(chosen), given.number, given.seed):
            found = tried(place, name, one, chosen[name], given.limit)
            where = f"{name}:{one.line}"
            print(f"{found.how:<10} {one.kind:<11} {where} {found.by}", flush=True)
            if found.how == "survived":
                print(difference(name, one), flush=True)
            results.append(found)
    show(results, time.monotonic() - began)


def show(results: list[Result], seconds: float) -> None:
    """Caught and survived by module and by kind."""
    for title, key in (
        ("module", lambda r: r.module.removeprefix("src/jostle/")),
        ("kind", lambda r: r.mutant.kind),
    ):
        print(f"\n{title:<28} mutants  caught")
        for name in sorted({key(r) for r in results}):
            mine = [r for r in results if key(r) == name]
            print(f"{name:<28} {len(mine):>7}  {sum(r.how != 'survived' for r in mine):>6}")
    caught = sum(r.how != "survived" for r in results)
    late = sum(r.how == "timed out" for r in results)
    print(f"\n{caught} of {len(results)} caught ({late} by the time limit), {seconds:.0f} s")


if __name__ == "__main__":
    main()
