"""The house in order: no circles, no crowded folders, rooms known by their faces, files that fit a head."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC, STUDIES = ROOT / "src", ROOT / "studies"
MOST_MODULES = 14  # in a folder
MOST_LINES = 100  # of a function
MOST_PARAMETERS = 8
# Studies that record with parts of the collector, or measure a part that no user calls.
TAKE_ROOMS_APART = (
    "studies.collect",
    "studies.worlds.drift_laws",
)
HOLDS_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
# Compiled by numba, which cannot take it apart without losing speed, or called with columns by name.
LONG_BY_NATURE = {"jostle.accelerator.simulator._engine.run"}
MANY_BY_NATURE = {
    "jostle.answers.evaluation._evaluate.evaluate",  # what is left out, and of what
    "jostle.models._fit.fit",  # one keyword per way to hold out, and per promise
    "jostle.placement.devices._place.place_devices",  # one per way to share, and per promise
    "jostle.accelerator.simulator._engine.run",  # arrays of a compiled function
    "jostle.runs._runs.from_columns",  # one keyword per column
    "jostle.runs._runs.Runs.from_columns",
}


@cache
def modules() -> dict[str, Path]:
    """{dotted name: file}; a package by the name of its folder."""
    found = {}
    for path in [*SRC.rglob("*.py"), *STUDIES.rglob("*.py")]:
        home = SRC if path.is_relative_to(SRC) else ROOT
        parts = path.relative_to(home).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text("utf-8"))


@cache
def nodes_of(name: str) -> tuple[ast.AST, ...]:
    """All imports and functions of a module: statements, so that nothing is looked for inside expressions."""
    wanted = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes: list[ast.AST] = [tree_of(name)]
    for node in nodes:
        nodes += [n for n in ast.iter_child_nodes(node) if isinstance(n, HOLDS_STATEMENTS)]
    return tuple(node for node in nodes if isinstance(node, wanted))


def imports_of(name: str) -> Iterator[str]:
    """Modules of Jostle that a module names in any import, at its top, in a function or for types."""
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for full in names:
            while full and full not in modules():
                full = full.rpartition(".")[0]
            if full and full != name:
                yield full


def test_no_import_goes_round_in_a_circle() -> None:
    arrows = {name: set(imports_of(name)) for name in modules()}
    # Taking away what imports nothing any more, again and again, leaves the circles.
    while leaves := {name for name, targets in arrows.items() if not targets & set(arrows)}:
        arrows = {name: targets for name, targets in arrows.items() if name not in leaves}
    assert not arrows


def test_a_room_is_known_by_its_face_alone() -> None:
    def room(name: str) -> str:
        parts = name.split(".")
        return parts[0] if parts[0] == "studies" else parts[1] if len(parts) > 1 else ""

    broken = [
        f"{name} imports {target}"
        for name in modules()
        if not name.startswith(TAKE_ROOMS_APART)
        for target in imports_of(name)
        if room(target) != room(name)
        and len(target.split(".")) > 2
        and any(part.startswith("_") for part in target.split(".")[2:])
    ]
    assert not broken


def test_no_module_imports_the_face_of_its_own_room() -> None:
    broken = []
    for name in modules():
        own = ".".join(name.split(".")[:2])
        if (
            name.startswith("jostle.")
            and name != own
            and name.count(".") > 1
            and own in set(imports_of(name))
        ):
            broken.append(name)
    assert not broken


def test_imports_are_absolute() -> None:
    broken = [
        name
        for name in modules()
        for node in nodes_of(name)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not broken


def test_folders_are_not_crowded_and_say_what_is_in_them() -> None:
    folders = Counter(path.parent for path in modules().values())
    assert not {str(f.relative_to(ROOT)): n for f, n in folders.items() if n > MOST_MODULES}
    silent = [
        name
        for name, path in modules().items()
        if path.name == "__init__.py" and not ast.get_docstring(tree_of(name))
    ]
    assert not silent


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name in modules():
        for node in nodes_of(name):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{name}.{node.name}", node


def test_functions_fit_a_screen() -> None:
    long = {
        name: lines
        for name, node in functions()
        if name not in LONG_BY_NATURE
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES
    }
    assert not long


def test_parameters_are_named_records_where_they_are_many() -> None:
    def count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        return len([name for name in names if name not in ("self", "cls")])

    many = {
        name: count(node)
        for name, node in functions()
        if name not in MANY_BY_NATURE and count(node) > MOST_PARAMETERS
    }
    # A command that is no record of settings takes its options as parameters.
    assert not {name: n for name, n in many.items() if not name.startswith("jostle.cli.")}


def test_a_class_name_means_one_thing() -> None:
    homes = defaultdict(list)
    for name in modules():
        for node in tree_of(name).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def test_files_stay_readable() -> None:
    every = [*ROOT.glob("src/**/*.py*"), *ROOT.glob("studies/**/*.py"), *ROOT.glob("tests/**/*.py")]
    long = {
        str(path.relative_to(ROOT)): lines
        for path in every
        if path.suffix in (".py", ".pyi")
        and (lines := len(path.read_text("utf-8").splitlines())) > 500
    }
    assert not long
