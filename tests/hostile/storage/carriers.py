"""Every way on which what was measured or learned gets into a folder, and how it is found there.

A new one needs one more entry in CARRIERS: a test fails while a module writes runs and has none."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.tensors import read_document, write_document
from jostle.collect import recover
from jostle.collect.campaign._journal import Journal
from jostle.data import (
    Dataset,
    Imported,
    JobsImport,
    Runs,
    Traces,
    add_runs,
    read_runs,
    read_traces,
    write_traces,
)
from jostle.errors import UnreadableFile
from tests.hostile.storage.stand_ins import AT, Service, measured
from tests.plain_traces import plain_trace


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


def ids(folder: Path, also: str = "set aside") -> set[str]:
    """also: what a note may say, besides that features are there before the runs that need them."""
    found = read_runs(folder)
    assert all("set aside" in note or also in note for note in found.notes), found.notes
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
    write_traces(folder, Traces.from_traces([plain_trace({"x": [1.0] * 3}, run_id=name)]))


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


def workloads(folder: Path) -> set[str]:
    names = read_runs(folder).table.column("workload").to_pylist()
    assert len(names) == len(set(names))
    return set(names)


def windows(folder: Path) -> set[str]:
    recover(folder)
    return workloads(folder)


def tell(folder: Path, name: str) -> None:
    with Service(folder) as client:
        assert client.add_runs(runs_of(name))[0] in ("stored", "already_stored")


def told(folder: Path) -> set[str]:
    if not (folder / "state.sqlite").exists():
        raise UnreadableFile("holds no runs")
    with Service(folder):
        pass
    # Who was refused by the service although its run was kept sends it again.
    return ids(folder / "observed", also="passed over")


CARRIERS = {
    "runs": Carrier(add, added, "imported already", ("data.store._add_runs",)),
    "import": Carrier(imported, ids, "imported already", ("data.read._imported_runs",)),
    "log": Carrier(logged, workloads, modules=("data.read._job_log",)),
    "traces": Carrier(trace, traced, "already"),
    "document": Carrier(save, saved, is_last=True),
    "journal": Carrier(keep, kept),
    # What it writes is the journal's.
    "fleet": Carrier(
        measured, windows, modules=("collect.campaign._campaign_storage",), calls=False
    ),
    "service": Carrier(tell, told, modules=("server.state._archive",), calls=False),
}
