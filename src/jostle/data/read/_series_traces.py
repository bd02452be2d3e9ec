"""Series become traces: one for each instance and run, all their quantities on the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

import numpy as np

from jostle._base.untrusted import printable
from jostle.data.read._series import Series, added
from jostle.data.read._series_times import Piece, pieces_between
from jostle.data.traces._traces import Trace, Traces, is_level
from jostle.errors import BadData

_MOST_SAMPLES = 20_000_000
_MOST_EMPTY = 1000  # samples for each reading, beyond which a time is wrong
_SHORTEST = 1e-3  # of the usual sample: what is shorter at a cut joins nothing


@dataclass(frozen=True)
class Cut:
    """Options that say how a service's time is cut into runs. by: None for one run, `day`, `hour`, `minute`,
    or a length such as 15m. zone: of days and hours. pieces: such as requests, instead. ended: whether a run
    ends where its piece does."""

    by: str | None = None
    zone: tzinfo = UTC
    pieces: Sequence[Piece] = ()
    ended: bool = False


def traces_of(
    series: Sequence[Series],
    *,
    workload: str,
    platform: str,
    cut: Cut | None = None,
    corunners: Sequence[str] = (),
    run_id: str | None = None,
    where: str | None = None,
    begins: dict[str, float] | None = None,
) -> Traces:
    """Make runs out of series. Levels get `_level` at the end of their names; series of one name and instance
    are added up. Runs cut at the same time share a window, whatever their workload, so that they can be
    taken together. begins: gets when each run began, by run_id. Raises BadData where nothing remains."""
    cut = cut or Cut()
    instances: dict[str, list[Series]] = {}
    for one in series:
        if len(one.times_seconds):
            instances.setdefault(one.instance, []).append(one)
    if not instances:
        raise BadData("it holds no readings", where=where, fix="Ask for a time with data.")
    runs: list[Trace] = []
    restarts = 0
    for instance, mine in sorted(instances.items()):
        restarts += sum(one.restarts(where) for one in mine)
        edges = _edges(mine, where)
        pieces = _pieces(cut, edges)
        cuts = [p.begin_seconds for p in pieces] + [p.end_seconds for p in pieces]
        inside = [moment for moment in cuts if edges[0] < moment < edges[-1]]
        edges = np.unique(np.r_[edges, inside]) if cut.by or cut.pieces else edges
        values = {
            _spelled(name, parts[0].kind): added(parts, edges)
            for name, parts in _by_name(mine).items()
        }
        base = "-".join(text for text in (run_id or workload, instance) if text)
        for piece in pieces:
            times, lengths, counters = _samples(piece, edges, values)
            if len(times):
                name = printable("-".join(t for t in (base, piece.label) if t))
                if begins is not None:
                    begins[name] = piece.begin_seconds
                runs.append(
                    Trace(
                        run_id=name,
                        core=0,
                        workload=workload,
                        platform=platform,
                        corunners=tuple(corunners),
                        window_id=printable(piece.label) if piece.label else None,
                        runtime_seconds=piece.end_seconds - piece.begin_seconds
                        if cut.ended or (cut.by and _is_whole(piece, edges))
                        else float("nan"),
                        time_seconds=times,
                        interval_seconds=lengths,
                        counters=counters,
                    )
                )
    if not runs:
        raise BadData(
            "no run has a sample: a sample is what lies between two readings",
            where=where,
            fix="Cut longer runs, or read more often.",
        )
    traces = Traces.from_traces(runs)
    notes = _notes(traces, len(instances), restarts)
    unsure = sum(mine[0].unsure for mine in instances.values())
    if unsure := unsure + sum(piece.is_unsure for piece in cut.pieces):
        notes.append(
            f"{unsure} readings and requests are of an hour that {cut.zone} has twice, and nothing tells "
            "which: they count as in the first (write times with an offset)"
        )
    return Traces(traces.samples, traces.traced, where=where, notes=notes)


def _notes(traces: Traces, instances: int, restarts: int) -> list[str]:
    levels = [name for name in traces.counters if is_level(name)]
    counts = [name for name in traces.counters if not is_level(name)]
    notes = []
    if instances > 1:
        notes.append(f"{instances} instances are runs of their own")
    if counts:
        notes.append(f"counted, so rates per second: {', '.join(counts)}")
    if levels:
        notes.append(f"levels, taken as they are: {', '.join(levels)}")
    if restarts:
        notes.append(f"running totals began anew {restarts} times: counted on from 0 there")
    return notes


def _by_name(series: Sequence[Series]) -> dict[str, list[Series]]:
    groups: dict[str, list[Series]] = {}
    for one in series:
        groups.setdefault(one.name, []).append(one)
    for name, parts in groups.items():
        if len({part.kind for part in parts}) > 1:
            raise BadData(f"{name} is a running total and a level at once")
    return groups


def _spelled(name: str, kind: str) -> str:
    return name if kind != "level" or is_level(name) else f"{name}_level"


def _edges(series: Sequence[Series], where: str | None) -> np.ndarray:
    """Return (m + 1,) ends of samples: the readings' own times where all agree, else evenly, by the
    coarsest."""
    first = series[0].times_seconds
    if all(np.array_equal(one.times_seconds, first) for one in series):
        return first
    step = max(one.step_seconds for one in series)
    begin = min(float(one.times_seconds[0]) for one in series)
    end = max(float(one.times_seconds[-1]) for one in series)
    if not step > 0:
        return np.unique(np.concatenate([one.times_seconds for one in series]))
    if (end - begin) / step > _MOST_SAMPLES:
        raise BadData(f"readings {step:g} s apart over {end - begin:g} s are too many", where=where)
    readings = sum(len(one.times_seconds) for one in series)
    if (end - begin) / step > max(_MOST_EMPTY * readings, _MOST_SAMPLES / 1000):
        raise BadData(
            f"{readings} readings {step:g} s apart lie {end - begin:g} s from first to last",
            where=where,
            fix="Look for a wrong time among them, or import times that lie far apart one by one.",
        )
    return begin + step * np.arange(int((end - begin) / step + 1e-6) + 1)


def _pieces(cut: Cut, edges: np.ndarray) -> Sequence[Piece]:
    if cut.pieces:
        return cut.pieces
    if cut.by is None:
        return [Piece("", float(edges[0]), float(edges[-1]))]
    return pieces_between(float(edges[0]), float(edges[-1]), cut.by, cut.zone)


def _is_whole(piece: Piece, edges: np.ndarray) -> bool:
    """Return whether there are readings from where a piece begins, but for one, to where it ends."""
    step = float(np.median(np.diff(edges))) if len(edges) > 1 else 0.0
    return piece.begin_seconds >= edges[0] - step and piece.end_seconds <= edges[-1] + step


def _samples(
    piece: Piece, edges: np.ndarray, values: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return (ends since the piece began, lengths, values) of its samples, of which there may be none."""
    first = int(np.searchsorted(edges, piece.begin_seconds))
    last = max(first, int(np.searchsorted(edges, piece.end_seconds, side="right")) - 1)
    lengths, own = np.diff(edges[first : last + 1]), {n: v[first:last] for n, v in values.items()}
    valid = np.any([np.isfinite(value) for value in own.values()], axis=0)
    if valid.any():
        valid &= lengths > _SHORTEST * np.median(lengths)
    ends = edges[first + 1 : last + 1] - piece.begin_seconds
    return ends[valid], lengths[valid], {name: value[valid] for name, value in own.items()}
