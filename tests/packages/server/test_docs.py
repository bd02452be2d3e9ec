"""Every call shown in docs/service.md is one that the service takes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.data import Dataset
from tests.packages.server.conftest import Start
from tests.small_world import make_world

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "service.md").read_text("utf-8")


def test_the_calls_shown_are_taken(start: Start, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("name,platform,slots\neast,p0,3\n")
    service = start(fleet=fleet)
    (console,) = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    serve, *calls = console.splitlines()
    assert serve.startswith("jostle serve ")
    assert len(calls) == 4
    for line in calls:
        words = shlex.split(line)
        path = next(word for word in words if word.startswith("localhost:8000"))
        body = json.loads(words[words.index("--json") + 1]) if "--json" in words else None
        method = "PUT" if "PUT" in words else "GET" if body is None else "POST"
        url = path.removeprefix("localhost:8000")
        found = service.http.request(method, url, **({} if body is None else {"json": body}))
        assert found.status_code == 200, found.text


def test_every_line_of_python_runs(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the page's order, as it stands, beside a service whose model knows the names of the page."""
    names = {"w00": "fft-m", "p0": "wasmtime-speed:my-box"}
    world = make_world(600, 0)
    columns = world.colocations.to_columns()
    runs = jostle.Runs.from_columns(
        workload=[names.get(name, name) for name in columns["workload"]],
        platform=[names.get(name, name) for name in columns["platform"]],
        corunners=[[names.get(name, name) for name in others] for others in columns["corunners"]],
        runtime_seconds=world.runtime_seconds,
    )
    Dataset(tmp_path / "dataset").write(runs)
    method = jostle.Bag("tree")
    jostle.fit(tmp_path / "dataset", method).save(tmp_path / "model")
    (tmp_path / "fleet.csv").write_text("name,platform,slots\neast,wasmtime-speed:my-box,3\n")
    service = start(model=tmp_path / "model", fleet=tmp_path / "fleet.csv")
    # What is asked of the address on the page reaches the service of this test.
    defaults: Any = jostle.Client.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "transport", service.http._transport)
    names_of_page: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/service.md", "exec"), names_of_page)
    assert names_of_page["node"] == "east"


def test_every_operation_is_told(start: Start) -> None:
    document = start().http.get("/openapi.json").json()
    for path in document["paths"]:
        last = path.split("/{")[0].rsplit("/", 1)[-1]
        assert last in TEXT, path
