"""What observed runs tell of the model that answers, and what it learns of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.errors import JostleError, NotPermitted
from jostle.models import DriftWatch
from jostle.server.asking import _search_process
from jostle.server.asking._search_process import GIVES_WAY, Apart, Worker
from jostle.server.http._running_service import Queue
from jostle.server.state import as_runs, learn_apart, read_served
from tests.packages.server.conftest import Running, Start
from tests.waiting import HANGS_SECONDS, wait_for


@pytest.fixture
def service(start: Start, model_folders: tuple[Path, Path], tmp_path: Path) -> Running:
    """Its model is in a folder of its own; it has no learner: what it learns, it is told to."""
    shutil.copytree(model_folders[0], tmp_path / "served")
    return start(model=tmp_path / "served")


def observed(service: Running, n: int, *, ratio: float = 1.0, first: int = 0) -> jostle.Runs:
    """Runs alone whose times are as the fitted model says, but for noise and `ratio` on p0."""
    random = np.random.default_rng(first)
    names = [f"w{i:02}" for i in range(6)], ["p0", "p1", "p2"]
    workload = [names[0][i] for i in random.integers(0, 6, n)]
    platform = [names[1][i] for i in random.integers(0, 3, n)]
    model = service.app.state.service.served.model.as_fitted
    asked = jostle.Colocations.from_columns(workload=workload, platform=platform)
    seconds = model.predict(asked) * np.exp(random.normal(0, 0.03, n))
    seconds[np.array(platform) == "p0"] *= ratio
    return jostle.Runs.from_columns(
        workload=workload,
        platform=platform,
        runtime_seconds=seconds,
        run_id=[f"r{first + i}" for i in range(n)],
        window_id=[f"r{first + i}" for i in range(n)],
    )


def test_what_drifts_is_said_of_the_model_that_answers(
    service: Running, model_folders: tuple[Path, Path]
) -> None:
    folder = service.settings.model
    assert service.client.drifts() == []
    service.client.add_runs(observed(service, 150))
    assert service.client.drifts() == []
    service.client.add_runs(observed(service, 300, ratio=1.5, first=1_000))
    found = service.client.drifts()
    assert any("p0" in one.name for one in found)
    document = service.http.get("/v1/drift").json()
    assert (document["schema"], document["checked"]) == ("drift/v1", 450)
    # By the library: the same runs in the same order.
    watch = DriftWatch(jostle.load(folder), service.settings.confidence)
    for part in (observed(service, 150), observed(service, 300, ratio=1.5, first=1_000)):
        watch.update(part)
    assert [one.to_row() for one in watch.drifts] == document["drifts"]
    # Of another model nothing is known yet.
    jostle.load(model_folders[1]).save(folder)
    service.app.state.service.folder.look()  # or the service itself has looked by now
    assert service.http.get("/v1/drift").json()["checked"] == 0


def parts_of(runs: jostle.Runs, size: int) -> Iterator[jostle.Runs]:
    for first in range(0, len(runs), size):
        yield runs.take(np.arange(first, min(first + size, len(runs))))


def test_answers_follow_the_device_that_drifts_and_no_others_change(
    service: Running, start: Start
) -> None:
    folder = service.settings.model
    client, model = service.client, jostle.load(folder)
    names = [(f"w{i:02}", f"p{p}") for i in range(6) for p in range(3)]
    asked = jostle.Colocations.from_columns(
        workload=[w for w, _ in names], platform=[p for _, p in names]
    )
    there = np.array([p == "p0" for _, p in names])
    before = {c: client.bound(asked, confidence=c) for c in (0.8, 0.9)}
    assert "drifts" not in service.http.get("/v1/drift").json()["model"]
    late, told = [], False
    for part in parts_of(observed(service, 600, ratio=1.2, first=8_000), 25):
        drifted = np.array([p == "p0" for p in part.table.column("platform").to_pylist()])
        bounds = client.bound(part.colocations)
        if told:  # asked before the runs came
            late.append((part.runtime_seconds > bounds.seconds)[drifted])
            assert set(bounds.outcome[drifted]) == {"adapting"}
        client.add_runs(part)
        told = bool(client.drifts())
    assert [one.name for one in client.drifts()] == ["p0"]
    assert 0.82 < 1 - np.concatenate(late).mean() < 0.98
    # Only what drifts has moved, by what it drifts.
    ratio = client.predict(asked) / model.predict(asked)
    assert ratio[there] == pytest.approx(1.2, rel=0.03)
    assert (ratio[~there] == 1.0).all()
    for confidence, was in before.items():
        now = client.bound(asked, confidence=confidence)
        assert set(now.outcome[there]) == {"adapting"}
        assert (now.seconds[~there] == was.seconds[~there]).all()
        # One name more may seem to drift, once in 3 000 runs: bounds stay, without the guarantee.
        changed = now.outcome[~there] != was.outcome[~there]
        assert set(now.outcome[~there][changed]) <= {"adapting"}
        assert changed.sum() <= 6  # of one platform
        assert (now.seconds[there] > was.seconds[there]).all()
    # No theorem stands behind such a bound, so nothing is placed by it unless predictions are accepted.
    placed = {"items": [{"workload": "w05", "deadline_seconds": 1e6}], "on": ["east"]}
    (refused,) = service.post("/v1/safe", placed)["items"]
    (taken,) = service.post("/v1/safe", {**placed, "promise": "predicted"})["items"]
    assert not refused["safe"]
    assert taken["safe"]
    assert taken["used_predictions"]
    # Another process over the same runs says the same.
    again = start(model=folder)
    assert again.client.drifts() == client.drifts()
    assert (again.client.bound(asked).seconds == client.bound(asked).seconds).all()
    assert again.http.get("/v1/drift").json()["model"]["drifts"] == 1
    assert "jostle_drifts 1.0" in again.http.get("/metrics").text


def test_odd_times_are_refused_and_hinder_nobody(service: Running) -> None:
    run = {"workload": "w01", "platform": "p0", "runtime_seconds": 1.0}
    odd = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00"]
    items = [{**run, "id": f"r{at}", "measured_at": when} for at, when in enumerate(odd)]
    found = service.post("/v1/runs", {"items": [*items, {**run, "id": "good"}]})["items"]
    assert [one["status"] for one in found] == ["error"] * 3 + ["stored"]
    assert all("measured_at" in one["error"] for one in found[:3])
    assert service.http.get("/v1/drift").json()["checked"] == 1
    old = {"id": "old", "run": {**run, "corunners": [], "measured_at": odd[0]}}
    assert len(as_runs([old])) == 1


def test_a_drift_is_not_forgotten_by_learning(service: Running) -> None:
    folder = service.settings.model
    inner: Any = service.app.state.service
    service.client.add_runs(observed(service, 300, ratio=1.5, first=3_000))
    assert [one.name for one in service.client.drifts()] == ["p0"]
    inner.learning.every = 300
    assert inner.learning.learn(service.clock())
    asked = jostle.Colocations.from_columns(workload=["w01", "w01"], platform=["p0", "p1"])
    assert service.client.bound(asked).outcome[1] != "adapting"
    # The step is learned, or what is left of it told of the new model before another run has come.
    first = jostle.load(folder / "previous").predict(asked)
    assert service.client.predict(asked) / first == pytest.approx([1.5, 1.0], rel=0.1)


def test_observed_runs_are_learned_once_and_in_batches(service: Running, start: Start) -> None:
    folder = service.settings.model
    inner: Any = service.app.state.service
    inner.learning.every = 40
    before = inner.served.version
    fresh = jostle.Runs.from_columns(
        workload=["newcomer"] * 12,
        platform=["p0", "p1", "p2"] * 4,
        runtime_seconds=[7.0, 14.0, 3.5] * 4,
        run_id=[f"n{i}" for i in range(12)],
    )
    service.client.add_runs(observed(service, 27))
    service.client.add_runs(fresh)
    assert not inner.learning.learn(service.clock())  # 39: one is missing
    assert inner.served.version == before
    service.client.add_runs(observed(service, 1, first=500))
    assert inner.learning.learn(service.clock())
    assert inner.served.version != before
    (listed,) = service.http.get("/v1/models").json()["models"]
    (record,) = listed["updates"]
    assert (record["runs"], record["new_workloads"]) == (40, 1)
    assert jostle.load(folder).metadata["observed"] == [40, before]
    assert record["updated_at"].startswith("2027-01-15")
    asked = jostle.Colocations.from_columns(workload=["newcomer"], platform=["p1"])
    assert service.client.predict(asked)[0] == pytest.approx(14, rel=0.3)
    # Each run is learned once, whatever answered when it came.
    assert not inner.learning.learn(service.clock())
    service.client.add_runs(observed(service, 40, first=2_000))
    assert inner.learning.learn(service.clock())
    updates = jostle.load(folder).metadata["updates"]
    assert [one["runs"] for one in updates] == [40, 40]
    # Another process goes on where this one stood, and the model of before is one step back.
    again = start(model=folder)
    again.app.state.service.learning.every = 40
    assert not again.app.state.service.learning.learn(service.clock())
    assert len(jostle.load(folder / "previous").metadata["updates"]) == 1


def test_a_run_that_came_by_a_dataset_is_not_learned_from_the_service_again(
    service: Running,
) -> None:
    folder = service.settings.model
    inner: Any = service.app.state.service
    inner.learning.every = 30
    service.client.add_runs(observed(service, 30))
    known = as_runs(inner.store.runs_after(0, 12))
    learned = jostle.load(folder).update(known)
    learned.metadata["observed"] = [0, inner.served.version]
    learned.save(folder)
    inner.folder.look()
    assert inner.learning.learn(service.clock())
    record = jostle.load(folder).metadata["updates"][-1]
    assert (record["runs"], record["known"]) == (18, 12)


def test_a_model_that_comes_while_another_learns_stays(
    service: Running, model_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = service.settings.model
    inner: Any = service.app.state.service
    inner.learning.every = 5
    service.client.add_runs(observed(service, 5))
    fresh, update = jostle.load(model_folders[1]), jostle.Model.update

    def interrupted(model: jostle.Model, *args: Any, **how: Any) -> jostle.Model:
        learned = update(model, *args, **how)
        fresh.save(folder)  # as jostle fit does
        return learned

    monkeypatch.setattr(jostle.Model, "update", interrupted)
    assert not inner.learning.learn(service.clock())
    asked = jostle.Colocations.from_columns(workload=["w00"], platform=["p1"])
    assert jostle.load(folder).predict(asked) == fresh.predict(asked)
    assert "updates" not in jostle.load(folder).metadata
    assert service.client.predict(asked) == pytest.approx(fresh.predict(asked))


def test_what_cannot_learn_says_so_and_goes_on_serving(
    start: Start, model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "served"
    model = jostle.load(model_folders[0])
    jostle.Model(model.predictor, model.calibration, model.metadata, model.usual).save(folder)
    service = start(model=folder)
    inner: Any = service.app.state.service
    assert not inner.learning.learn(service.clock())  # it was not asked to
    inner.learning.every = 5
    service.client.add_runs(observed(service, 5))
    with pytest.raises(JostleError, match="keeps none of its runs"):
        inner.learning.learn(service.clock())
    asked = jostle.Colocations.from_columns(workload=["w00"], platform=["p1"])
    assert np.isfinite(service.client.predict(asked)).all()


def test_the_first_model_comes_of_observed_runs_alone(start: Start, tmp_path: Path) -> None:
    """By a process of its own, which an empty folder is enough for."""
    service = start(model=tmp_path / "new" / "model", fleet=None)
    inner: Any = service.app.state.service
    random = np.random.default_rng(0)
    names = [f"w{i}" for i in range(4)]
    alone = {name: 1.0 + at for at, name in enumerate(names)}
    pairs = [(a, b) for a in names for b in [None, *names] for _ in range(2)]
    runs = jostle.Runs.from_columns(
        workload=[a for a, _ in pairs],
        platform=["p"] * len(pairs),
        corunners=[[b] if b else [] for _, b in pairs],
        runtime_seconds=[
            alone[a] * (1.3 if b else 1.0) * np.exp(random.normal(0, 0.02)) for a, b in pairs
        ],
    )
    service.client.add_runs(runs)
    assert service.http.get("/readyz").status_code == 503
    inner.learning.every = len(pairs) + 1
    assert not inner.learning.is_due()
    inner.learning.every = len(pairs)
    assert inner.learning.is_due()
    assert service.http.portal.call(learn_once, service)
    inner.folder.look()
    asked = jostle.Colocations.from_columns(
        workload=["w3", "w3"], platform=["p", "p"], corunners=[[], ["w1"]]
    )
    assert service.client.predict(asked) == pytest.approx([4.0, 5.2], rel=0.1)
    assert jostle.load(service.settings.model).metadata["observed"] == [len(pairs), ""]
    assert not inner.learning.is_due()


async def learn_once(service: Running) -> bool:
    settings, inner = service.settings, service.app.state.service
    assert settings.state is not None
    every = inner.learning.every
    return await asyncio.to_thread(learn_apart, settings.model, settings.state, every, 1.8e9)


def test_the_model_of_before_is_one_question_away(
    service: Running, model_folders: tuple[Path, Path]
) -> None:
    folder = service.settings.model
    inner: Any = service.app.state.service
    inner.learning.every = 30
    service.client.add_runs(observed(service, 30))
    first = inner.served.version
    assert inner.learning.learn(service.clock())
    asked = jostle.Colocations.from_columns(workload=["w01"], platform=["p1"])
    with pytest.raises(JostleError, match="does not answer"):
        service.client.step_back(first)
    back = service.client.step_back(inner.served.version)
    assert back == inner.served.version
    assert service.client.predict(asked) == jostle.load(model_folders[0]).predict(asked)
    # What was taken back is not learned again; what comes from then on is.
    assert not inner.learning.is_due()
    service.client.add_runs(observed(service, 30, first=900))
    assert inner.learning.learn(service.clock())
    assert jostle.load(folder).metadata["updates"][-1]["runs"] == 30
    service.client.step_back(inner.served.version)
    with pytest.raises(JostleError, match="keeps no model of before"):
        service.client.step_back(inner.served.version)


def test_who_is_cancelled_as_the_answer_comes_is_cancelled() -> None:
    """Else a service that is told to end would wait for its own watch for ever."""

    async def asked() -> None:
        queue, go = Queue("watch"), threading.Event()
        task = asyncio.create_task(queue.ask(go.wait, 60.0))
        while not queue.open:
            await asyncio.sleep(0)
        (running,) = queue.open
        go.set()
        assert running.result(60.0)  # the loop does not turn meanwhile
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        queue.close()

    asyncio.run(asked())


def niceness() -> set[int]:
    """Of every thread."""
    threads = (int(thread) for thread in os.listdir("/proc/self/task"))
    return {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are not files here")
@pytest.mark.parametrize("gives_way", [True, False])
def test_who_learns_gives_way_with_every_thread(gives_way: bool) -> None:
    worker = Worker(gives_way=gives_way)
    try:
        found = asyncio.run(worker.do(60.0, niceness))
    finally:
        worker.close()
    assert found == {GIVES_WAY if gives_way else os.getpriority(os.PRIO_PROCESS, 0)}


@dataclass(frozen=True)
class Search:
    seconds: float

    def answer(self) -> int:
        time.sleep(self.seconds)
        return os.getpid()


def test_a_search_that_takes_too_long_is_ended(
    model_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search_process, "_START_SECONDS", HANGS_SECONDS)
    served, apart = read_served(model_folders[0]), Apart()

    async def asked() -> list[Any]:
        first = await apart.ask(Search(0), served, HANGS_SECONDS)  # type: ignore[arg-type]
        with pytest.raises(NotPermitted, match=r"no answer within 0\.1 s"):
            await apart.ask(Search(600), served, 0.1)  # type: ignore[arg-type]
        wait_for(lambda: not os.path.isdir(f"/proc/{first}/task"))
        return [first, await apart.ask(Search(0), served, HANGS_SECONDS)]  # type: ignore[arg-type]

    try:
        assert len({*asyncio.run(asked())}) == 2
    finally:
        apart.close()


def test_who_is_cancelled_as_a_long_search_ends_is_cancelled() -> None:
    async def asked() -> None:
        worker, go, begun = Worker(), threading.Event(), threading.Event()
        worker._pool = pool = ThreadPoolExecutor(1)  # type: ignore[assignment]
        task = asyncio.create_task(worker.do(60.0, lambda: (begun.set(), go.wait())))
        while not begun.is_set():
            await asyncio.sleep(0)
        go.set()
        pool.submit(int).result(60.0)  # the loop does not turn meanwhile
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        pool.shutdown()

    asyncio.run(asked())
