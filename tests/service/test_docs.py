"""Every call shown in docs/service.md is one that the service takes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.service.conftest import Start

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text("utf-8")


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


def test_every_operation_is_told(start: Start) -> None:
    document = start().http.get("/openapi.json").json()
    for path in document["paths"]:
        last = path.split("/{")[0].rsplit("/", 1)[-1]
        assert last in TEXT, path
