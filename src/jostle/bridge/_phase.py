"""The phase-aware forecast: where are the runs at that time, and what do runs use there.

For each run that still runs at time tau its clock gives its progress p; what it uses is drawn from the
states that were seen at that progress, whatever the time at which they were seen. So the forecast is a
mixture of measured states with exact weights; nothing is sampled.

*Beats*: donors are the states seen in the same phase, in the (at most two) snapshots next to tau that have
some; a phase that no snapshot caught gets those of the phases before and after it, by nearness. *Work*:
donors are the states of the snapshots left and right of p, weighted by nearness in progress and by how
alike the clock's rate was: a program that retires instructions at the same rate at nearly the same place
is in the same phase.
"""

from __future__ import annotations

import numpy as np

from jostle.bridge._clouds import Cloud
from jostle.bridge._snapshots import Snapshots
from jostle.errors import NotEnoughRuns, UsageError

ENOUGH = 0.05  # of the runs: fewer more in a phase are not worth a snapshot
WIDE = 1.0  # of the spread of log rates within a snapshot: how unlike the rate of a donor may be


def phase(snapshots: Snapshots, core: int, time_seconds: float) -> tuple[Cloud, float]:
    """The law at a time in the snapshots' units, and the share of runs whose phase no snapshot caught.

    Raises UsageError without a clock, NotEnoughRuns where no run is known at the time.
    """
    clock = snapshots.clock
    if clock is None:
        raise UsageError(
            "the phase-aware forecast needs a clock",
            fix="Say which counter tells progress: Bridge(method='phase', clock='instructions').",
        )
    shots = snapshots.of(core)
    progress, rate = clock.at(core, time_seconds)
    known = np.isfinite(progress)
    if snapshots.end_seconds is not None:
        known &= ~(snapshots.end_seconds < time_seconds)
    seen = [k for k, shot in enumerate(shots) if shot.idle_ratio < 1 and (shot.runs >= 0).any()]
    if not known.any() or not seen:
        raise NotEnoughRuns(f"no run's progress is known at {time_seconds:g} s")
    places, rates = [], []
    for k in seen:
        p, v = clock.at(core, float(snapshots.times_seconds[k]))
        if clock.kind == "beats":
            p = _whole(p, v)
        places.append(p[shots[k].runs])
        rates.append(v[shots[k].runs])
    if clock.kind == "beats":
        near = np.argsort(np.abs(snapshots.times_seconds[seen] - time_seconds), kind="stable")
        weights, missed = _by_beats(progress[known], places, near)
    else:
        weights, missed = _by_work(progress[known], rate[known], places, rates), 0.0
    atoms = np.concatenate([shots[k].cloud.atoms for k in seen])
    return Cloud.of(atoms, np.concatenate(weights)), missed


def _whole(progress: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The phases of runs whose sample lies in one phase, NaN for those in whose sample a beat fell: such a
    state is part one phase's and part the other's."""
    return np.where(rate > 0, np.nan, progress)


def _by_beats(
    targets: np.ndarray, places: list[np.ndarray], near: np.ndarray
) -> tuple[list[np.ndarray], float]:
    weights = [np.zeros(len(p)) for p in places]
    caught = np.unique(np.concatenate(places))
    caught = caught[np.isfinite(caught)]
    if not len(caught):
        raise NotEnoughRuns("no snapshot has a run whose phase is known")
    missed = 0
    for target, runs in zip(*np.unique(targets, return_counts=True), strict=True):
        if target in caught:
            sources = [(target, 1.0)]
        else:
            missed += int(runs)
            before, after = caught[caught < target], caught[caught > target]
            if len(before) and len(after):
                lam = (target - before[-1]) / (after[0] - before[-1])
                sources = [(before[-1], 1 - lam), (after[0], lam)]
            else:
                sources = [(before[-1] if len(before) else after[0], 1.0)]
        for source, share in sources:
            having = [k for k in near if (places[k] == source).any()]
            # A handful of stragglers in a near snapshot is no pool: the next nearest one counts too.
            pool = having[:2]
            donors = sum(int((places[k] == source).sum()) for k in pool)
            for k in pool:
                weights[k][places[k] == source] += share * runs / donors
    return weights, missed / len(targets)


def _by_work(
    targets: np.ndarray, rates: np.ndarray, places: list[np.ndarray], seen: list[np.ndarray]
) -> list[np.ndarray]:
    weights = [np.zeros(len(p)) for p in places]
    centres = np.array([np.nanmedian(p) if np.isfinite(p).any() else np.nan for p in places])
    order = np.argsort(centres)
    order = order[np.isfinite(centres[order])]
    if not len(order):
        raise NotEnoughRuns("no snapshot has a run whose progress is known")
    tiny = 1e-12 * max(float(np.nanmax(np.concatenate(seen))), 1e-300)
    logs = [np.log(np.maximum(v, tiny)) for v in seen]
    # Median absolute deviation, as a standard deviation: outliers do not widen it.
    wide = [1.4826 * float(np.nanmedian(np.abs(v - np.nanmedian(v)))) for v in logs]
    width = max(WIDE * float(np.nanmedian(wide)), 1e-3)
    log_rates = np.log(np.maximum(rates, tiny))
    right = np.searchsorted(centres[order], targets)
    for place in np.unique(right):
        mine = right == place
        pair = [order[i] for i in (place - 1, place) if 0 <= i < len(order)]
        if len(pair) == 2:
            low, high = centres[pair[0]], centres[pair[1]]
            lam = np.clip((targets[mine] - low) / max(high - low, 1e-300), 0.0, 1.0)
            shares = [1 - lam, lam]
        else:
            shares = [np.ones(mine.sum())]
        likeness = []
        for k, share in zip(pair, shares, strict=True):
            far = (log_rates[mine][:, None] - logs[k]) / width
            log_like = (
                -0.5 * far**2 + np.log(np.maximum(share, 1e-12))[:, None] - np.log(len(logs[k]))
            )
            likeness.append(np.where(np.isfinite(log_like), log_like, -np.inf))
        joint = np.concatenate(likeness, axis=1)
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        joint /= joint.sum(axis=1, keepdims=True)
        start = 0
        for k, part in zip(pair, likeness, strict=True):
            weights[k] += joint[:, start : start + part.shape[1]].sum(axis=0)
            start += part.shape[1]
    return weights


def place(snapshots: Snapshots, count: int, core: int = 0) -> list[int]:
    """The numbers of `count` of the snapshots, first and last among them, that catch the most phases.

    The clock is known all the time, so it tells beforehand at which times a snapshot would catch phases that
    the others miss: each next one is where it catches most of what runs do and is not caught yet, and when
    all is caught, in the middle of the widest gap. Raises UsageError without a clock that counts beats.
    """
    clock, s = snapshots.clock, len(snapshots)
    if clock is None or clock.kind != "beats":
        raise UsageError("snapshots can be placed by a clock that counts beats only")
    if count < 2:
        raise UsageError(f"{count} snapshots cannot be placed")
    if count >= s:
        return list(range(s))
    where = np.array([_whole(*clock.at(core, float(t))) for t in snapshots.times_seconds])  # (s, R)
    phases = np.unique(where[np.isfinite(where)])
    share = np.stack([(where == phase).mean(axis=1) for phase in phases], axis=1)  # (s, phases)
    lasting = share.sum(axis=0)
    chosen = [0, s - 1]
    while len(chosen) < count:
        caught = share[chosen].max(axis=0)
        worth = np.maximum(share - caught, 0) @ lasting
        worth[chosen] = -1.0
        if worth.max() < ENOUGH * lasting.sum() / len(phases):
            done = sorted(chosen)
            wide = int(np.argmax(np.diff(done)))
            chosen.append((done[wide] + done[wide + 1]) // 2)
        else:
            # Of equally good times the middle one: runs that are early or late are in the phase as well.
            best = np.flatnonzero(worth > worth.max() * (1 - 1e-9))
            chosen.append(int(best[len(best) // 2]))
    return sorted(set(chosen))
