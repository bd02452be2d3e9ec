"""Adding an import to a dataset: all of it or nothing, and never so that it cannot be read again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from jostle._base.files import errors_explained, make_folder, staged, sweep, write_whole
from jostle.data.runs._feature_tables import merge_features
from jostle.data.runs._row_rules import SHOWN
from jostle.data.runs._runs import Runs, join_tables
from jostle.data.store._dataset import Dataset
from jostle.data.store._set_aside import SET_ASIDE, aside_table
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadRows


def add_runs(
    path: str | os.PathLike[str],
    runs: Runs,
    source: str,
    rejected: pa.Table | None = None,
    aside: Sequence[str] = (),
) -> list[Path]:
    """Write runs into the dataset in folder `path`; returns the files written.

    source: what the runs come from, for errors and for the name of `rejected/<name>-<hash>.csv`,
    where rows that were not taken are kept. aside: run_ids of co-runners that are no workloads, which are
    set aside. Raises BadRows where run_ids are in the dataset already, and BadData where features
    or the type of a free column disagree with what is there; then nothing is written.
    """
    dataset = Dataset(path)
    if dataset.exists:
        _require_fits(dataset.read(), runs, str(dataset.path), source)
    with dataset.ready_to_add(runs) as publish:
        # These first: were they lost in a crash, a second import could not bring them.
        before = [] if rejected is None else [_keep(dataset.path, rejected, source)]
        if aside:
            reason = "a co-runner that is never a workload"
            table = aside_table(aside, reason, datetime.now(UTC), back=False)
            with staged(table, dataset.path / SET_ASIDE) as ready:
                before += filter(None, [ready.publish()])
        return [*before, *publish()]


def _require_fits(old: Runs, new: Runs, place: str, source: str) -> None:
    twice = pc.is_in(new.table.column("run_id"), value_set=old.table.column("run_id"))
    at = np.flatnonzero(np.asarray(twice))
    if len(at):
        names = new.table.column("run_id").take(pa.array(at[:SHOWN])).to_pylist()
        raise BadRows(
            f"{len(at)} of {len(new)} run_ids are in {place} already, first {names[0]!r}",
            rows=[(int(row), f"run_id {n!r}") for row, n in zip(at, names, strict=False)],
            where=source,
            fix="The same runs seem to be imported already; nothing was written. To read a table in "
            "another way, import it into a new folder.",
        )
    join_tables([(place, old.table), (source, new.table)])
    for key in ("workload", "platform"):
        pair = [
            (where, getattr(r, f"{key}_features")) for where, r in ((place, old), (source, new))
        ]
        merge_features([(w, t) for w, t in pair if t is not None], key)


def _keep(folder: Path, rejected: pa.Table, source: str) -> Path:
    place = folder / "rejected"
    stem = "stdin" if source.startswith("<") else Path(source).stem
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(rejected, sink)
    content = sink.getvalue().to_pybytes()
    # The same name is the same content.
    final = place / f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}.csv"
    with errors_explained(place):
        make_folder(place)
        sweep(place)
        write_whole(final, content)
    return final
