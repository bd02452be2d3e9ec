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
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

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
        "src/jostle/rules": (["tests/rules"], ["tests/ensemble", "tests/slowdown", "tests/bag"]),
        "src/jostle/ensemble": (["tests/ensemble"], ["tests/rules", "tests/methods"]),
    },
    "watch": {
        "src/jostle/models/_watch.py": (["tests/models/test_watch.py"], ["tests/bounds"]),
        "src/jostle/models/_following.py": (["tests/models/test_watch.py"], ["tests/bounds"]),
        "src/jostle/bounds/_drift.py": (
            ["tests/bounds/test_drift.py", "tests/models/test_watch.py"],
            [],
        ),
    },
    "assign": {
        "src/jostle/placement/assign": (
            ["tests/placement/test_assign.py"],
            ["tests/placement/test_whatif.py", "tests/placement/test_devices.py"],
        ),
        "src/jostle/placement/chosen": (
            ["tests/placement/test_chosen.py"],
            ["tests/placement/test_answers.py"],
        ),
    },
    "state": {
        "src/jostle/service/state": (
            ["tests/service/test_state.py", "tests/service/test_living.py"],
            ["tests/service/test_http.py", "tests/service/test_slurm.py"],
        ),
    },
}
# Slow, and a repetition of the others.
SLOW = (
    "tests/storage/test_damage.py::test_the_script_of_kills_and_pairs",
    "tests/models/test_new_names.py::test_factorization_bounds_new_names",
)
LEFT_OUT = [word for test in SLOW for word in ("--deselect", test)]
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
    """(passed, failed or timed out; the test that failed) of the tests at these paths."""
    # Each once, the first first.
    there = [path for path in dict.fromkeys(paths) if (place / path).exists()]
    if not there:
        return "passed", ""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *LEFT_OUT]
    environment = os.environ | {
        "PYTHONPATH": str(place / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        [*command, "--basetemp", str(place / "made"), *there],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "timed out", ""
    if process.returncode == 0:
        return "passed", ""
    words = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "failed", words[0].split(" - ")[0] if words else output.strip()[-200:]


def tried(
    place: Path, name: str, one: Mutant, tests: tuple[list[str], list[str]], limit: float
) -> Result:
    """One mutant in a tree, which is as before afterwards."""
    file = place / name
    source = file.read_bytes()
    try:
        file.write_bytes(one.applied(source))
        for paths in tests:
            how, by = tests_in(place, paths, limit)
            if how != "passed":
                return Result(name, one, how, by)
        return Result(name, one, "survived")
    finally:
        file.write_bytes(source)


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
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--near", action="store_true", help="not the tests of neighbours")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds for the tests of a mutant"
    )
    given = parser.parse_args()
    chosen = {n: t for n, t in modules(given.modules).items() if (given.only or "") in n}
    if given.near:
        chosen = {name: (tests[0], []) for name, tests in chosen.items()}
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.workers):
            trees.put(tree(Path(folder) / str(number)))
        place = trees.get()
        for tests in {repr(tests): tests for tests in chosen.values()}.values():
            for paths in tests:
                how, by = tests_in(place, paths, 10 * given.limit)
                if how != "passed":
                    sys.exit(f"without any change: {how} {by}")
        trees.put(place)
        began = time.monotonic()

        def attempt(pair: tuple[str, Mutant]) -> Result:
            place = trees.get()
            try:
                found = tried(place, *pair, chosen[pair[0]], given.limit)
            finally:
                trees.put(place)
            where = f"{found.module}:{found.mutant.line}"
            print(f"{found.how:<10} {found.mutant.kind:<11} {where} {found.by}", flush=True)
            return found

        with ThreadPoolExecutor(given.workers) as pool:
            results = list(pool.map(attempt, drawn(list(chosen), given.number, given.seed)))
    show(results, time.monotonic() - began)


def show(results: list[Result], seconds: float) -> None:
    """Caught and survived by module and by kind, and every survivor."""
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
    for one in results:
        if one.how == "survived":
            print(f"\n{one.module}:{one.mutant.line} ({one.mutant.kind})")
            print(difference(one.module, one.mutant))


if __name__ == "__main__":
    main()
