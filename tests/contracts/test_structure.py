"""The tree in order: no circles, packages known by their faces, unique names, files that fit a head."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC, STUDIES = ROOT / "src", ROOT / "studies"
MOST_LINES = 95  # of a function, its docstring aside
MOST_PARAMETERS = 8
# Studies that measure a part that no user calls.
TAKE_PACKAGES_APART = (
    "studies.collect",
    "studies.worlds.drift_laws",
)
# The learner of counters takes runs beside stressors from that of stressors.
KNOW_ONE_ANOTHER = {("counters", "stressors")}
# Stand beside what each paper learns.
KNOWN_TO_ALL = "simple_rules"
HOLDS_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
# Compiled by numba, which cannot take it apart without losing speed, or called with columns by name.
LONG_BY_NATURE = {"jostle.gpu.simulator._engine.run"}
MANY_BY_NATURE = {
    "jostle.operations.evaluation._evaluate.evaluate",  # what is left out, and of what
    "jostle.models._fit_model.fit",  # one keyword per way to hold out, and per promise
    "jostle.placement.devices._device_placement.place_devices",  # one per way to share, and per promise
    "jostle.gpu.simulator._engine.run",  # arrays of a compiled function
    "jostle.data.runs._runs.from_columns",  # one keyword per column
    "jostle.data.runs._runs.Runs.from_columns",
}
# Dataclasses that something is gathered in; all others never change.
GATHERS = {
    "Gauges", "JobBatch", "MadeOfLog", "PeakForm", "Session", "Storage", "TensorSizes", "_Fit",
    "_Fleet", "_Launch", "_Level", "_MachineKind", "_Search", "_Task", "_Window", "_Worker", "_Workload",
}  # fmt: skip


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


def package_of(name: str) -> str:
    """The first level of a module: `studies`, or a package of Jostle."""
    parts = name.split(".")
    return parts[0] if parts[0] == "studies" else parts[1] if len(parts) > 1 else ""


def test_a_package_is_known_by_its_face_alone() -> None:
    broken = [
        f"{name} imports {target}"
        for name in modules()
        if not name.startswith(TAKE_PACKAGES_APART)
        for target in imports_of(name)
        if package_of(target) not in (package_of(name), "_base")
        and len(target.split(".")) > 2
        and any(part.startswith("_") for part in target.split(".")[2:])
    ]
    assert not broken


def test_learners_do_not_know_one_another() -> None:
    def learner(name: str) -> str:
        parts = name.split(".")
        return parts[3] if parts[1:3] == ["learn", "learners"] and len(parts) > 3 else ""

    broken = [
        f"{name} imports {target}"
        for name in modules()
        for target in imports_of(name)
        if learner(name)
        and learner(target) not in ("", learner(name), KNOWN_TO_ALL)
        and (learner(name), learner(target)) not in KNOW_ONE_ANOTHER
    ]
    assert not broken


def test_no_module_imports_the_face_of_a_package_that_holds_it() -> None:
    broken = [
        f"{name} imports {target}"
        for name in modules()
        for target in imports_of(name)
        if name.startswith(f"jostle.{package_of(name)}.")
        and name.startswith(f"{target}.")
        and target.startswith("jostle.")
        and modules()[target].with_suffix(".pyi").exists()
    ]
    assert not broken


def test_imports_are_absolute() -> None:
    broken = [
        name
        for name in modules()
        for node in nodes_of(name)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not broken


def test_no_two_modules_share_a_name() -> None:
    """A trace, a search or a tab of an editor names one file."""
    homes = defaultdict(list)
    for name, path in modules().items():
        if name.startswith("jostle.") and path.stem not in ("__init__", "__main__"):
            homes[path.stem.strip("_")].append(name)
    assert not {stem: names for stem, names in homes.items() if len(names) > 1}


def test_every_folder_says_in_one_line_what_it_holds() -> None:
    silent = [
        name
        for name, path in modules().items()
        if path.name == "__init__.py"
        and name.startswith("jostle.")
        and len((ast.get_docstring(tree_of(name)) or "").splitlines()) != 1
    ]
    assert not silent


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name in modules():
        for node in nodes_of(name):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{name}.{node.name}", node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    described = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    docstring = (described.end_lineno or 0) - described.lineno + 1 if described else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


def test_functions_fit_a_screen() -> None:
    long = {
        name: lines
        for name, node in functions()
        if name not in LONG_BY_NATURE and (lines := lines_of(node)) > MOST_LINES
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


def parsed_tests() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        yield path.relative_to(ROOT / "tests"), ast.parse(path.read_text("utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_tests_stand_on_their_own() -> None:
    """No test imports another test module, and no test of a package imports studies."""
    broken = []
    for path, tree in parsed_tests():
        for name in imported(tree):
            is_test = any(part.startswith("test_") for part in name.split(".")[:-1])
            is_study = path.parts[0] == "packages" and name.split(".")[0] == "studies"
            if (name.startswith("tests.") and is_test) or is_study:
                broken.append(f"{path} imports {name}")
    assert not broken


def test_studies_import_no_test() -> None:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in STUDIES.rglob("*.py")}
    found = [
        path for path, tree in trees.items() if any(n.startswith("tests") for n in imported(tree))
    ]
    assert not found


def test_a_test_of_a_package_takes_no_other_package_apart() -> None:
    """Private modules and names are tested by their own package alone."""
    broken = []
    for path, tree in parsed_tests():
        if path.parts[0] != "packages":
            continue
        own = {"base": "_base"}.get(path.parts[1], path.parts[1])
        for name in imported(tree):
            parts = name.split(".")
            private = [part for part in parts[2:] if part.startswith("_")]
            if parts[0] == "jostle" and private and parts[1] not in (own, "_base"):
                broken.append(f"{path} imports {name}")
    assert not broken


def test_what_is_told_never_changes_and_shows_what_a_person_reads() -> None:
    changing, raw = set[str](), list[str]()
    for name in modules():
        for node in tree_of(name).body if name.startswith("jostle") else ():
            if not isinstance(node, ast.ClassDef):
                continue
            calls = [ast.unparse(one) for one in node.decorator_list]
            for call in calls:
                if call.startswith("dataclass") and "frozen=True" not in call:
                    changing.add(node.name)
                if "VerbAnswer" in map(ast.unparse, node.bases) and "repr=False" not in call:
                    raw.append(node.name)
    assert changing == GATHERS
    assert raw == []
