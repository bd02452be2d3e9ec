"""What holds for every command: its help, its options, its JSON, and one place that prints."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

import jostle
from jostle.cli import exit_code as run
from jostle.cli.console import command_of
from jostle.errors import UsageError
from jostle.extend import Flag, Limits, NoOption, Positional, Report, Short
from tests.command_line import commands
from tests.small_world import make_world

SOURCES = Path(jostle.__file__).parent


COMMANDS = list(commands())


def test_help_shows_five_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    panels = re.findall(r"─ (\w+) ─+╮\n(.*?)╰", text, re.DOTALL)
    shown = {
        name: re.findall(r"^│ ([a-z]+(?: [a-z]+)?)  ", lines, re.MULTILINE)
        for name, lines in panels
    }
    assert shown.pop("Options") == []
    assert shown == {
        "start": ["tour", "doctor"],
        "data": ["import", "measure", "trace", "runs"],
        "model": ["fit", "update", "suggest", "evaluate", "evaluate limits"],
        "ask": ["predict", "forecast", "limit", "place", "safe"],
        "run": ["serve"],
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_refuses_what_it_does_not_know(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "Usage:" in out
    assert "--json" in out or command == "serve"  # it answers over HTTP
    assert run([*command.split(), "--no-such-option", "1"]) == 2
    assert "--no-such-option" in capsys.readouterr().err


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console") / "dataset"
    jostle.Dataset(folder).write(make_world(300, 0))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "runs {dataset}",
        "measure --plan -w matmul-s -w sort-s -e speed --sets 2 -o {dataset}",
        "doctor",
        "fit {dataset} -o {model} --method factorization --set steps=20",
        "predict {model} -w w01 -p p2 -c 0.5",
        "predict {model} --why -w w01 -p p2 -b w02 -c 0.5",
        "runs {dataset}/nowhere",
        "runs {dataset} --no-such-option",
    ],
)
def test_json_is_one_document(
    command: str, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.format(dataset=dataset, model=dataset.parent / "model").split()
    run([*words, "--json"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "/v" in json.loads(lines[0], parse_constant=pytest.fail)["schema"]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Does nothing, in two
    lines."""

    place: Annotated[Path, "Where.", Positional("FOLDER")]
    names: Annotated[tuple[str, ...], "Names.", Flag("--name"), Short("-n")] = ()
    most: Annotated[int, "At most.", Limits(1, 3)] = 2
    is_quick: Annotated[bool, "Quick.", Flag("--quick")] = False
    json_: Annotated[bool, "JSON."] = False


@dataclass(frozen=True)
class Other:
    """Another record of the same command."""

    seed: Annotated[int, "Seed."] = 0
    most: Annotated[int, "The same option as in Sample."] = 2


def asked(*arguments: str) -> tuple[Sample, Other]:
    got: list[tuple[Sample, Other]] = []
    app = typer.Typer()
    app.command()(command_of((Sample, Other), lambda *records: got.append(records)))
    app(list(arguments), standalone_mode=False)
    return got[0]


def test_settings_become_options() -> None:
    assert asked("here") == (Sample(place=Path("here")), Other())
    given = asked("x", "-n", "a", "--name", "b", "--most", "3", "--quick", "--json", "--seed", "7")
    sample = Sample(place=Path("x"), names=("a", "b"), most=3, is_quick=True, json_=True)
    assert given == (sample, Other(7, 3))


@dataclass(frozen=True)
class Inner:
    """Settings within settings."""

    limit_ratio: Annotated[float, "Limit.", Flag("--limit")] = 0.5
    unnamed: int = 1


@dataclass(frozen=True)
class Outer:
    """Settings as the library has them."""

    inner: Inner = field(default_factory=Inner)
    rates: Annotated[Mapping[str, float], "Rates.", Flag("--rate")] = field(default_factory=dict)
    cores: Annotated[Sequence[int] | None, "Cores.", Flag("--core")] = None
    depth: Annotated[int, "For Python.", NoOption()] = 3
    runs: Annotated[int, "Runs."] = 1


def reported(settings: Any, *arguments: str) -> tuple[int, list[Any]]:
    """(exit code, what the command was given) of a command that ends with as many runs as it is asked for."""
    got: list[Any] = []

    def act(settings: Any, as_json: bool) -> Iterator[Report]:
        got.extend([settings, as_json])
        yield Report({"schema": "first/v1"}, ["first"])
        yield Report({"schema": "second/v1"}, ["second"], exit_code=4)

    act.__annotations__ = {"settings": settings, "as_json": bool, "return": Report}
    app = typer.Typer()
    app.command()(command_of(None, act))
    code = app(list(arguments), standalone_mode=False)
    return code, got


def test_settings_of_the_library_become_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(Outer) == (4, [Outer(), False])
    assert capsys.readouterr().out == "first\nsecond\n"
    words = ["--limit", "0.7", "--rate", "a=2", "--rate", "b=3e1", "--core", "1", "--json"]
    expected = Outer(Inner(0.7), {"a": 2.0, "b": 30.0}, (1,))
    assert reported(Outer, *words) == (4, [expected, True])
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["schema"] for line in lines] == ["first/v1", "second/v1"]
    usual = Outer(Inner(0.9, 5), runs=7, depth=9)
    _, (made, _) = reported(Annotated[dict, usual])
    assert made == {**vars(usual)}
    _, (made, _) = reported(Annotated[dict, Outer], "--runs", "2")
    assert made == {"inner": Inner(), "rates": {}, "cores": None, "depth": 3, "runs": 2}
    for wrong in (["--depth", "1"], ["--unnamed", "1"]):
        with pytest.raises(Exception, match="No such option"):
            reported(Outer, *wrong)
    with pytest.raises(UsageError, match="Say NAME=NUMBER"):
        reported(Outer, "--rate", "a")


def test_errors_of_the_library_are_told_with_options() -> None:
    def act(sample: Sample) -> None:
        raise UsageError("no `names`, and no `nonsense`", fix="Say `place` or `is_quick`.")

    app = typer.Typer()
    app.command()(command_of(Sample, act))
    with pytest.raises(UsageError) as caught:
        app(["here"], standalone_mode=False)
    assert str(caught.value) == "no --name, and no `nonsense`. Say FOLDER or --quick."


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_only_the_console_prints() -> None:
    for path in SOURCES.glob("cli/**/*.py"):
        if path.parent.name != "console":
            found = {name for name, _ in calls(ast.parse(path.read_text("utf-8")))}
            printed = found & {"print", "typer.echo", "json.dumps", "sys.stdout.write"}
            assert not printed, f"{path} prints by itself"


def test_errors_of_the_library_name_no_option() -> None:
    kinds = [name for name in vars(jostle.errors) if isinstance(vars(jostle.errors)[name], type)]
    for path in SOURCES.glob("**/*.py"):
        if path.is_relative_to(SOURCES / "cli"):
            continue
        for name, call in calls(ast.parse(path.read_text("utf-8"))):
            if name not in kinds:
                continue
            texts = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant)]
            for text in texts:
                words = str(text).split()
                # Options of other programs come with the program's name.
                if {"nsys", "nvprof", "callgrind", "Record", "record"} & {
                    w.strip("(") for w in words
                }:
                    continue
                assert not any(w.startswith("--") for w in words), f"{path}: {text}"
