"""One question has one answer, byte for byte, whatever door it leaves by: Python, command, HTTP, client.

The suite over transports: verbs first, then the operations of a service on itself."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Dataset, Traces, write_traces
from jostle.models import save_over
from jostle.operations import all_verbs, served_options, served_verbs
from jostle.operations.model.predict import PredictQuestion
from jostle.placement import Requests, Standard
from jostle.server.operations import OPERATIONS
from jostle.usage import Peaks
from tests.packages.server.conftest import Running, Start
from tests.packages.usage.conftest import a_trace

VERBS = {verb.name: verb for verb in all_verbs()}
COLOCATION = {"workload": "w01", "platform": "p1", "corunners": ["w02", "w03"]}
REQUESTS: list[Any] = [
    {"workload": "w00", "slowdown": 3.0},
    {"workload": "w01", "name": "big", "deadline": "soon"},
    {"workload": "w02", "name": "other", "deadline": "500s", "memory": "3GiB"},
]
# Of every verb about a placement: its question, as JSON has it, and as the command line has it.
QUESTIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "safe": ({"on": ["east", "west"]}, ["--on", "east", "--on", "west"]),
    "rank": ({"least": "cost", "top": 2}, ["--least", "cost", "--top", "2"]),
    "assign": ({"goal": "least_cost"}, ["--goal", "least_cost"]),
    "at": ({"on": ["east"]}, ["--on", "east"]),
    "walltime": ({"step_seconds": 60.0}, ["--step", "60"]),
}


def text_of(document: Any) -> str:
    """Keys in their order, numbers in all their digits."""
    return json.dumps(document, ensure_ascii=False)


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert exit_code([*words, "--json"]) in (0, 1, 3, 4), capsys.readouterr().out
    return text_of(json.loads(capsys.readouterr().out))


def test_every_verb_is_asked_here() -> None:
    asked = {
        "placement": sorted({*QUESTIONS, "score"}),
        "model": ["explain", "predict"],
        "forecasts": ["limit"],
    }
    for about, names in asked.items():
        assert [verb.name for verb in all_verbs(about)] == names
    assert [verb.name for verb in served_verbs("placement")] == sorted(QUESTIONS)
    assert len({verb.answer.schema for verb in all_verbs()}) == len(all_verbs())


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_verbs_about_a_model(
    verb: str, service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, level = str(service.settings.model), 0.8
    model, asked = jostle.load(path), {"items": [COLOCATION], "confidence": level}
    library = VERBS[verb].of(model, [COLOCATION], confidence=level)
    expected = text_of(json.loads(json.dumps(library.to_document())))
    words = [
        "predict",
        path,
        *(["--why"] if verb == "explain" else []),
        "-w",
        "w01",
        "-p",
        "p1",
        "-b",
        "w03",
        "-b",
        "w02",
        "-c",
        str(level),
    ]
    assert printed(words, capsys) == expected
    assert text_of(service.post(f"/v1/{verb}", asked)) == expected
    columns: dict[str, Any] = {k: [v] for k, v in COLOCATION.items()}
    one = jostle.Colocations.from_columns(**columns)
    if verb == "explain":
        answer = service.client.explain(one, level)
    else:
        assert text_of(service.post("/v1/bound", asked)) == expected
        (tmp_path / "asked.json").write_text(json.dumps([COLOCATION]))
        table = [verb, path, "-i", str(tmp_path / "asked.json"), "-c", str(level)]
        assert printed(table, capsys) == expected
        answer = service.client._predictions(one, PredictQuestion(level))
    assert text_of(json.loads(json.dumps(answer.to_document()))) == expected


@pytest.mark.parametrize("verb", sorted(QUESTIONS))
def test_verbs_about_a_placement(
    verb: str, service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, words = QUESTIONS[verb]
    path, fleet = str(service.settings.model), str(service.settings.fleet)
    rows, standard = Requests.read(REQUESTS), Standard(0.8, "joint")
    placed = jostle.place(jostle.load(path), fleet, confidence=0.8, promise="joint")
    library = getattr(placed, verb)(rows, **options)
    assert library.items[1].status == "error"
    expected = text_of(json.loads(json.dumps(library.to_document())))
    (tmp_path / "requests.json").write_text(json.dumps(REQUESTS))
    asked = ["--fleet", fleet, "--requests", str(tmp_path / "requests.json"), "-c", "0.8"]
    assert printed(["place", verb, path, *asked, "--promise", "joint", *words], capsys) == expected
    body = {"items": REQUESTS, "confidence": 0.8, "promise": "joint", **options}
    assert text_of(service.post(f"/v1/{verb}", body)) == expected
    answer = getattr(service.client, verb)(rows, standard=standard, **options)
    assert text_of(json.loads(json.dumps(answer.to_document()))) == expected
    assert answer.report().tables == library.report().tables
    assert answer.exit_code == library.exit_code


def test_the_verb_about_recorded_runs(
    service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [a_trace(n, {"resident_bytes": [1e9 + n, 2e9 - n, 3e9 + 7 * n]}) for n in range(12)]
    write_traces(tmp_path / "past", Traces.from_traces(made))
    now = a_trace(99, {"resident_bytes": [1e9, 1.1e9]}, runtime_seconds=float("nan"))
    write_traces(tmp_path / "now", Traces.from_traces([now]))
    words = ["limit", str(tmp_path / "past"), "-c", "0.8", "-l", "3e9", "--at-limit", "r3"]
    peaks = Peaks.of(str(tmp_path / "past"), at_limit=["r3"])
    for asked, given in ((peaks, []), (peaks.given(now), ["--given", str(tmp_path / "now")])):
        library = VERBS["limit"].of(asked, confidence=0.8, over=3e9)
        expected = text_of(json.loads(json.dumps(library.to_document())))
        assert printed([*words, *given], capsys) == expected
        body = {"items": asked.to_items(), "confidence": 0.8, "over": 3e9}
        body["component"] = "resident_bytes"
        assert text_of(service.post("/v1/limit", body)) == expected
        answer = service.client.limit(asked, 0.8, over=3e9)
        assert text_of(json.loads(json.dumps(answer.to_document()))) == expected


@pytest.mark.parametrize(
    "item",
    [
        {"values": []},
        {"values": "12"},
        {"values": [1, None]},
        {"values": [1e301]},
        {"values": [1, 2], "times_seconds": [2, 1]},
        {"values": [1, 2], "times_seconds": [1]},
        {"values": [1, 2], "length_seconds": 1},
        {"values": [1], "end": "gone"},
        {"values": [1], "more": 1},
        [1],
        None,
    ],
)
def test_a_run_that_cannot_be_read_is_named(item: Any, service: Running) -> None:
    answer = service.http.post("/v1/limit", json={"items": [{"values": [1]}, item]})
    assert answer.status_code == 422, answer.text
    assert "item 1" in answer.json()["detail"]


def test_what_names_files_is_asked_where_they_are(
    service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, table, output = (
        str(service.settings.model),
        tmp_path / "a.parquet",
        tmp_path / "b.parquet",
    )
    pq.write_table(pa.table({"workload": ["w00", "w01"], "platform": ["p0", "p9"]}), table)
    library = jostle.place(jostle.load(path), ()).score(table, output)
    words = ["place", "safe", path, "--table", str(table), "-o", str(output)]
    assert printed(words, capsys) == text_of(library.to_document())
    assert service.http.post("/v1/score", json={"items": []}).status_code == 404
    assert "dataset" not in served_options(VERBS["explain"].question)


SENT: list[Any] = [
    {"id": "r1", "workload": "w00", "platform": "p0", "runtime_seconds": 2.5},
    {"id": "r2", "workload": "w01", "platform": "p1", "corunners": ["w03", "w02"],
     "runtime_seconds": 9, "measured_at": "2026-01-31T13:00:00+01:00", "window_id": "one"},
    {"id": "r1", "workload": "w00", "platform": "p0", "runtime_seconds": 3.5},
    {"id": "r3", "workload": "w00", "platform": "p0", "runtime_seconds": -1},
    {"id": "r4", "workload": "never-met", "platform": "p0", "runtime_seconds": 1.5},
]  # fmt: skip
# Of every operation: what it is asked, as HTTP has it (the path's names among the values).
ASKED: dict[str, dict[str, Any]] = {
    "add_runs": {"items": SENT},
    "observed_runs": {"after": 1, "limit": 10},
    "put_placement": {"id": "job/2", "node": "west", "workload": "w05", "deadline": "9x",
                      "ttl_seconds": 60, "require": "safe"},
    "delete_placement": {"id": "job/1"},
    "placements": {}, "fleet": {}, "coverage": {}, "drifts": {}, "models": {}, "step_back": {"version": ""},
}  # fmt: skip


def test_every_operation_is_asked_here() -> None:
    assert set(ASKED) == set(OPERATIONS)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_operations_of_a_service(
    name: str, start: Start, tmp_path: Path, model_folders: tuple[Path, Path]
) -> None:
    operation, values = OPERATIONS[name], ASKED[name]
    documents = {}
    for door in ("library", "HTTP", "client"):
        folder = tmp_path / door
        shutil.copytree(model_folders[1], folder)
        save_over(jostle.load(model_folders[0]), folder)
        service = start(model=folder, state=str(tmp_path / f"{door}.sqlite"))
        if "version" in values:
            values = {"version": service.client.models()[0]["version"]}
        service.post("/v1/runs", {"items": SENT[:2]})
        service.client.put_placement("job/1", "w05@9x", "east", ttl_seconds=600)
        if door == "HTTP":
            rest = {key: value for key, value in values.items() if key != "id"}
            sent = {"params" if operation.method == "GET" else "json": rest} if rest else {}
            path = operation.path.replace("{id}", str(values.get("id")))
            found = service.http.request(operation.method, path, **sent)
            assert found.status_code == 200, found.text
            documents[door] = found.json()
            continue
        question = operation.question.read(values)
        if door == "library":
            answer = service.http.portal.call(operation, service.app.state.service, question)
        else:
            (answer,) = service.client.answers(operation, question)
        documents[door] = answer.to_document()
        assert type(answer) is operation.answer
    assert documents["HTTP"]["schema"] == operation.answer.schema
    plain = {
        door: text_of(one).replace(str(tmp_path / door), "") for door, one in documents.items()
    }
    assert plain["library"] == plain["HTTP"] == plain["client"]


def test_what_drifts_is_said_alike_by_command_and_service(
    service: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = jostle.load(service.settings.model)
    asked = jostle.Colocations.from_columns(workload=["w00"], platform=["p0"])
    usual = float(model.predict(asked)[0])
    slow = [
        {"id": f"r{n}", "workload": "w00", "platform": "p0", "runtime_seconds": 3 * usual,
         "measured_at": f"2026-01-01T00:{n:02}:00+00:00", "window_id": f"r{n}"}
        for n in range(60)
    ]  # fmt: skip
    service.post("/v1/runs", {"items": slow})
    names = ("workload", "platform", "runtime_seconds", "window_id", "measured_at")
    columns: dict[str, Any] = {name: [run[name] for run in slow] for name in names}
    columns["measured_at"] = [datetime.fromisoformat(text) for text in columns["measured_at"]]
    Dataset(tmp_path / "runs").write(jostle.Runs.from_columns(**columns))
    words = ["update", str(service.settings.model), str(tmp_path / "runs"), "--dry-run"]
    command = json.loads(printed(words, capsys))
    answer = service.http.get("/v1/drift").json()
    assert answer["drifts"]
    assert command.keys() == answer.keys()
    assert [command[key] for key in command if key != "model"] == [
        answer[key] for key in answer if key != "model"
    ]
