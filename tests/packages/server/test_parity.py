"""Python, shell and HTTP have each other's verbs: docs/verbs.csv against all three."""

from __future__ import annotations

import csv
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.placement import Placement
from jostle.server import ServeSettings
from tests.command_line import application

TABLE = Path(__file__).resolve().parents[3] / "docs" / "verbs.csv"
ROWS = list(csv.reader(TABLE.read_text("utf-8").splitlines()))[1:]
PYTHON, SHELL, HTTP = 1, 2, 3
# Of the service itself, not of workloads.
ABOUT_ITSELF = {"GET /healthz", "GET /metrics", "GET /openapi.json"}
OF_THEMSELVES = {
    "predict_and_bound",
    "notes",
    "kept",
    "standard",
    "close",
    "answering",
    "as_fitted",
    "ask",
    "bounds_on",
    "bounds_at",
    "chosen",
    "ratios",
    "label",
    "only_without_choice",
    "answers",
    "campaign_names",
    "campaign_error_ratio",
}


def named(column: int, place: int = 0) -> set[str]:
    """Names in backticks in a column, where it is not said to be missing: the first or a further one."""
    names = [re.findall("`([^`]+)`", row[column]) for row in ROWS if row[column][0] != "–"]
    return {name for cell in names for name in cell[place : place + 1]}


def test_a_verb_is_there_or_it_says_why_not() -> None:
    assert len(ROWS) > 30
    for row in ROWS:
        assert len(row) == 4, row
        for number, cell in enumerate(row[1:], start=1):
            client = "( `[^`]+`)?" if number == HTTP else ""
            assert re.fullmatch(rf"`[^`]+`{client}|– .{{5,}}", cell), row


def found(name: str) -> Any:
    """What a dotted name means; rooms are modules."""
    thing, parts = jostle, name.split(".")[1:]
    for number, part in enumerate(parts):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(".".join(["jostle", *parts[: number + 1]]))
    return thing


def verbs_of(kind: type) -> set[str]:
    """Names of its own and of what it stands on."""
    every = {name for one in kind.__mro__[:-1] for name in vars(one)}
    return {name for name in every if not name.startswith("_")} - OF_THEMSELVES


def test_python() -> None:
    for name in named(PYTHON):
        assert found(name) is not None
    for kind, prefix in (
        (jostle.Model, "jostle.Model."),
        (Placement, "jostle.placement.Placement."),
    ):
        assert {prefix + verb for verb in verbs_of(kind)} - named(PYTHON) == set()


def commands(command: Any, name: str) -> set[str]:
    if not hasattr(command, "list_commands"):
        return {name}
    subs = command.list_commands(None)
    return {
        one for sub in subs for one in commands(command.get_command(None, sub), f"{name} {sub}")
    }


def test_shell() -> None:
    there = commands(application(), "jostle")
    assert there - named(SHELL) == set()
    assert named(SHELL) - there == set()


def test_http(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="extra: service")
    from jostle.server import make_app

    app = make_app(ServeSettings(model=tmp_path / "model", state=str(tmp_path / "state.sqlite")))
    there = {
        f"{method} {str(getattr(route, 'path', '')).replace('{id:path}', '{id}')}"
        for route in app.routes
        for method in getattr(route, "methods", None) or ()
        if getattr(route, "include_in_schema", False) and method != "HEAD"
    }
    assert len(there) > 15
    assert there - ABOUT_ITSELF - named(HTTP) == set()
    assert named(HTTP) - there == set()


def test_client() -> None:
    assert verbs_of(jostle.Client) == named(HTTP, 1)
