"""Every way on which what was measured or learned gets into a folder, and how it is found there.

A new one needs one more entry in CARRIERS: a test fails while a module writes runs and has none."""

from __future__ import annotations

import builtins
import io
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from jostle import _files
from jostle._tensors import read_document, write_document
from jostle.errors import UnreadableFile
from jostle.measure import MeasureOptions, command_workload, measure_fleet, recover
from jostle.measure.campaign._journal import Journal
from jostle.measure.window._assess import MemberResult, WindowResult
from jostle.runs import Dataset, Imported, JobsImport, Runs, add_runs, read_runs
from jostle.service import Client, ServeSettings, make_app
from jostle.traces import Trace, Traces, read_traces, write_traces

AT = datetime(2024, 1, 2, tzinfo=UTC)


class Ending:
    """Every call that changes the disk, counted; the call number `at` and all later ones raise."""

    def __init__(
        self, patch: pytest.MonkeyPatch, at: int, error: Callable[[], BaseException]
    ) -> None:
        self.calls, self.at, self.error = 0, at, error
        for name in ("fsync", "link", "replace", "mkdir", "write", "ftruncate"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        if isinstance(error(), OSError):  # who is killed leaves a file in part, whatever part it is
            patch.setattr(_files, "open", self._opened, raising=False)

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls > self.at:
                raise self.error()
            return real(*arguments, **named)

        return call

    def _opened(self, path: Any, mode: str = "r", *more: Any) -> Any:
        if "x" not in mode:
            return builtins.open(path, mode, *more)
        # Opening needs room for a name, and so does what is written.
        file = self._counted(builtins.open)(path, mode, *more)
        disk = self

        class Counted:
            def write(self, data: Any) -> int:
                return disk._counted(file.write)(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __iter__(self) -> Any:
                return iter(file)

        return Counted()


@dataclass(frozen=True)
class Carrier:
    """send: of one thing by its name; when it returns, that is kept. found: names as a reader finds them,
    once what was left on the way is brought in. twice: how the same sent again ends, `once` or words of its
    refusal. modules: of the package, whose writes of runs these are. calls: whether it writes through
    Python's `os`, so that a test can stop it at any call. is_last: whether a later one stands for those
    before it."""

    send: Callable[[Path, str], Any]
    found: Callable[[Path], set[str]]
    twice: str = "once"
    modules: tuple[str, ...] = ()
    calls: bool = True
    is_last: bool = False


def runs_of(name: str, **more: Any) -> Runs:
    columns: dict[str, Any] = {
        "workload": [name],
        "platform": ["p"],
        "runtime_seconds": [float(len(name))],
        "run_id": [name],
    }
    return Runs.from_columns(**columns | more)


def with_features(name: str) -> Runs:
    return runs_of(
        name,
        workload_features={"workload": [name], "size": [1]},
        platform_features={"platform": ["p"], "cores": [4]},
    )


def a_trace(run_id: str, value: float, n: int = 3) -> Trace:
    return Trace(
        run_id=run_id,
        core=0,
        workload="w",
        platform="p",
        corunners=(),
        window_id=None,
        runtime_seconds=float(n),
        time_seconds=1.0 + np.arange(n),
        interval_seconds=np.ones(n),
        counters={"x": np.full(n, value)},
    )


def ids(folder: Path) -> set[str]:
    found = read_runs(folder)
    # Features are there before the runs that need them.
    assert all("set aside" in note for note in found.notes)
    names = found.table.column("run_id").to_pylist()
    assert len(names) == len(set(names))
    return set(names)


def add(folder: Path, name: str) -> None:
    add_runs(folder, with_features(name), "times.csv", pa.table({"row": [1], "reason": [name]}))


def added(folder: Path) -> set[str]:
    """Rejected rows are there before the others."""
    found = ids(folder)
    kept = [file.read_text() for file in (folder / "rejected").glob("times-*.csv")]
    assert all(any(f'1,"{name}"' in text for text in kept) for name in found)
    return found


def imported(folder: Path, name: str) -> None:
    """A co-runner that is no workload stands in the table; nobody is to see its run."""
    names = [name, f"beside {name}"]
    columns: dict[str, Any] = {"workload": names, "run_id": names, "platform": ["p"] * 2}
    runs = Runs.from_columns(**columns, runtime_seconds=[1.0, 2.0])
    Imported(runs, "times.csv", aside=(names[1],)).write(folder)


def logged(folder: Path, name: str) -> None:
    times = "2026-01-01T01:00:00,2026-01-01T02:00:00"
    log = f"job,node,start,end,workload,state\n{name},n-{name},{times},{name},COMPLETED\n"
    edges: dict[str, Any] = {"since": "2025-12-31T00:00:00", "until": "2026-02-01T00:00:00"}
    JobsImport(io.BytesIO(log.encode()), **edges).read().write(folder)


def save(folder: Path, name: str) -> None:
    write_document(folder, "thing", "thing/v1", {"name": name}, {"x": np.arange(5.0)})


def saved(folder: Path) -> set[str]:
    return {read_document(folder, "thing", "thing/v1", fix="Save it again.")[0]["name"]}


def trace(folder: Path, name: str) -> None:
    write_traces(folder, Traces.from_traces([a_trace(name, 1.0)]))


def traced(folder: Path) -> set[str]:
    return {*read_traces(folder).run_ids}


def journal(folder: Path) -> Journal:
    """Of a campaign; its rows are runs without features."""

    def write(rows: list[dict[str, Any]]) -> None:
        names = [row["window_id"] for row in rows]
        columns: dict[str, Any] = {"workload": names, "run_id": names, "window_id": names}
        columns |= {"platform": ["p"] * len(rows), "runtime_seconds": [1.0] * len(rows)}
        Dataset(folder).write(Runs.from_columns(**columns))

    def known() -> set[str]:
        return ids(folder) if Dataset(folder).exists else set()

    return Journal(folder, "c", write=write, known=known, clock=lambda: 0.0)


def keep(folder: Path, name: str) -> None:
    """A line in the journal, whose process ends there: the lock goes, and nothing is brought in."""
    one = journal(folder)
    try:
        if not Dataset(folder).exists or name not in ids(folder):
            one.append([{"window_id": name, "measured_at": AT}])
    finally:
        one.pending.clear()
        os.close(one._file)


def kept(folder: Path) -> set[str]:
    journal(folder).close()
    return ids(folder)


class Answer:
    """What a worker owes, as Dask's client shows it. error: raised where it is fetched, or by the worker
    where `status` is error."""

    def __init__(self, status: str, value: Any = None, error: Exception | None = None) -> None:
        self.status, self.value, self.error, self.is_cancelled = status, value, error, False

    def result(self, timeout: float) -> Any:
        assert timeout < 120  # whoever waits for ever for a dead worker never ends
        if self.error is not None:
            raise self.error
        return self.value

    def exception(self) -> Exception | None:
        return self.error

    def cancel(self) -> None:
        self.is_cancelled = True


class Cluster:
    """A scheduler with workers in this process, as Dask's client shows them, that measure nothing: each
    window takes a second. Time passes by `step` whenever it is asked who is there. trouble: called with (the
    number of the question to a worker of that name, what it would answer), gives what is answered instead."""

    def __init__(
        self, *names: str, step: float = 0.0, **trouble: Callable[[int, Any], Answer]
    ) -> None:
        self.workers = {f"tcp://{name}": {"name": name} for name in names}
        self.trouble, self.asked, self.step, self.now = trouble, dict.fromkeys(names, 0), step, 0.0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        self.now += self.step
        return {"workers": dict(self.workers)}

    def submit(
        self, act: Callable[..., Any], packed: Any, name: str, *order: Any, **_: Any
    ) -> Answer:
        if order:
            members = order[0].key.split("/")[1].split("+")
            value: Any = WindowResult(
                tuple(MemberResult("ok", runtime_seconds=1.0) for _ in members), AT, 1.0
            )
        else:
            value = act(packed, name)
        self.asked[name] += 1
        if name in self.trouble:
            return self.trouble[name](self.asked[name], value)
        return Answer("finished", value)


def measured(folder: Path, name: str, cluster: Any = None) -> Any:
    """A campaign of one window over machines."""
    settings = {"workloads": [command_workload(["true"], name)], "engines": ["native"]}
    settings |= {"solo_repeats": 1, "sets": 0, "device": "d"}
    cluster = cluster or Cluster("one")
    return measure_fleet(
        cluster, folder, settings, MeasureOptions(timeout_seconds=1.0), clock=lambda: cluster.now
    )


def workloads(folder: Path) -> set[str]:
    names = read_runs(folder).table.column("workload").to_pylist()
    assert len(names) == len(set(names))
    return set(names)


def windows(folder: Path) -> set[str]:
    recover(folder)
    return workloads(folder)


class Service:
    """One in this process, over a state and a dataset; its client reaches it by `transport`, of the service's
    own."""

    def __init__(self, folder: Path, transport: Callable[[Any], Any] = lambda own: own) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks for another HTTP library
            from starlette.testclient import TestClient

            settings = ServeSettings(
                model=folder / "no model",
                allow_host=("testserver",),
                state=str(folder / "state.sqlite"),
                dataset=folder / "observed",
            )
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
        self._http = TestClient(make_app(settings, lambda: 1.8e9))
        self._transport = transport

    def __enter__(self) -> Client:
        http = self._http.__enter__()
        return Client("http://testserver", transport=self._transport(http._transport))

    def __exit__(self, *_: object) -> None:
        self._http.__exit__(None, None, None)


def tell(folder: Path, name: str) -> None:
    with Service(folder) as client:
        assert client.add_runs(runs_of(name))[0] in ("stored", "already_stored")


def told(folder: Path) -> set[str]:
    if not (folder / "state.sqlite").exists():
        raise UnreadableFile("holds no runs")
    with Service(folder):
        pass
    return ids(folder / "observed")


CARRIERS = {
    "runs": Carrier(add, added, "imported already", ("runs.store._adding",)),
    "import": Carrier(imported, ids, "imported already", ("runs.importers._imported",)),
    "log": Carrier(logged, workloads, modules=("runs.logs._log",)),
    "traces": Carrier(trace, traced, "already"),
    "document": Carrier(save, saved, is_last=True),
    "journal": Carrier(keep, kept),
    # What it writes is the journal's.
    "fleet": Carrier(measured, windows, modules=("measure.campaign._storage",), calls=False),
    "service": Carrier(tell, told, modules=("service.state._archive",), calls=False),
}
