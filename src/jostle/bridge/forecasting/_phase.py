"""The phase-aware forecast: where are the runs at that time, and what do runs use there.

For each run that still runs at time tau its clock gives its progress p; what it uses is drawn from the
states that were seen at that progress, whatever the time at which they were seen. So the forecast is a
mixture of measured states with exact weights.

*Beats*: donors are the states seen in the same phase, in the (at most two) snapshots next to tau that have
some; a phase that no snapshot caught gets those of the phases before and after it, by nearness. A run whose
sample has parts of two phases is the mean of a state of either, by the time that it spent there. *Work*:
donors are the states of the snapshots left and right of p, weighted by nearness in progress and by how
alike the clock's rate was: a program that retires instructions at the same rate at nearly the same place
is in the same phase. Where none of these is alike, states at other places count: programs come back.
"""

from __future__ import annotations

import numpy as np

from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._snapshots import Snapshots
from jostle.errors import NotEnoughRuns, UsageError

DRAWS = 4  # pairs of states for a run whose sample has parts of two phases
ELSEWHERE = 0.01  # what a state counts that was seen at another progress, beside one seen near
WIDE = 1.0  # of the spread of log rates within a snapshot: how unlike the rate of a donor may be


def phase(
    snapshots: Snapshots, core: int, time_seconds: float, seed: int | list[int] = 0
) -> tuple[Cloud, float]:
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
    usable = [k for k, shot in enumerate(shots) if shot.idle_ratio < 1 and (shot.runs >= 0).any()]
    going = np.ones(len(clock.times[core]), bool)
    if snapshots.end_seconds is not None:
        going &= ~(snapshots.end_seconds[core] < time_seconds)
    places, rates = [], []
    for k in usable:
        p, v = clock.at(core, float(snapshots.times_seconds[k]))
        places.append(p[shots[k].runs])
        rates.append(v[shots[k].runs])
    atoms = [shots[k].cloud.atoms for k in usable]
    if clock.kind == "beats":
        first, last, share = clock.phases(core, time_seconds)
        known = going & np.isfinite(first)
        _require(known, usable, time_seconds)
        near = np.argsort(np.abs(snapshots.times_seconds[usable] - time_seconds), kind="stable")
        donors = _Donors(atoms, places, near)
        first, last = (clock.kind_of_phase(numbers[known]) for numbers in (first, last))
        return donors.law(first, last, share[known], np.random.default_rng(seed))
    progress, rate = clock.at(core, time_seconds)
    known = going & np.isfinite(progress)
    _require(known, usable, time_seconds)
    weights = _by_work(progress[known], rate[known], places, rates)
    return Cloud.of(np.concatenate(atoms), np.concatenate(weights)), 0.0


def _require(known: np.ndarray, usable: list[int], time_seconds: float) -> None:
    if not known.any() or not usable:
        raise NotEnoughRuns(f"no run's progress is known at {time_seconds:g} s")


class _Donors:
    """States by phase. atoms[k]: (n_k, d) of snapshot k, places[k]: (n_k,) their phases, NaN for states that
    are part one phase's and part another's; near: the snapshots by nearness in time."""

    def __init__(self, atoms: list[np.ndarray], places: list[np.ndarray], near: np.ndarray) -> None:
        self.places, self.near = places, near
        self.atoms = np.concatenate(atoms)
        self.starts = np.cumsum([0, *(len(part) for part in places)])
        caught = np.unique(np.concatenate(places))
        self.caught = caught[np.isfinite(caught)]
        if not len(self.caught):
            raise NotEnoughRuns("no snapshot has a run whose phase is known")

    def law(
        self,
        first: np.ndarray,
        last: np.ndarray,
        share: np.ndarray,
        random: np.random.Generator,
    ) -> tuple[Cloud, float]:
        """Of runs whose samples begin in one phase and end in another, or in the same."""
        weights = np.zeros(len(self.atoms))
        missed = 0
        for phase, runs in zip(*np.unique(last[first == last], return_counts=True), strict=True):
            sources = self._sources(float(phase))
            missed += int(runs) * (sources[0][0] != phase)
            for source, part in sources:
                rows = self._pool(source)
                weights[rows] += part * runs / len(rows)
        both = np.flatnonzero(first != last)
        drawn: list[np.ndarray] = []
        for run in both:
            ends = []
            for phase in (float(first[run]), float(last[run])):
                sources = self._sources(phase)
                missed += 0.5 * (sources[0][0] != phase)
                parts = [part for _, part in sources]
                source = sources[int(random.choice(len(sources), p=parts))][0]
                ends.append(self.atoms[random.choice(self._pool(source), DRAWS)])
            u = np.full((DRAWS, 1), share[run])
            if np.isnan(share[run]):  # a mark may fall anywhere in a sample
                u = ((np.arange(DRAWS) + random.random(DRAWS)) / DRAWS)[:, None]
            drawn.append(u * ends[0] + (1 - u) * ends[1])
        atoms = np.concatenate([self.atoms, *drawn])
        weights = np.concatenate([weights, np.full(DRAWS * len(drawn), 1 / DRAWS)])
        return Cloud.of(atoms, weights), missed / len(first)

    def _sources(self, phase: float) -> list[tuple[float, float]]:
        """[(caught phase, its share)]: the phase itself, or those before and after it by nearness."""
        caught = self.caught
        if phase in caught:
            return [(phase, 1.0)]
        before, after = caught[caught < phase], caught[caught > phase]
        if len(before) and len(after):
            lam = (phase - before[-1]) / (after[0] - before[-1])
            return [(float(before[-1]), float(1 - lam)), (float(after[0]), float(lam))]
        return [(float(before[-1] if len(before) else after[0]), 1.0)]

    def _pool(self, phase: float) -> np.ndarray:
        """Rows of the states seen in a phase, in the (at most two) snapshots nearest in time that have some.

        A handful of stragglers in a near snapshot is no pool: the next nearest one counts too.
        """
        having = [int(k) for k in self.near if (self.places[k] == phase).any()]
        rows = [self.starts[k] + np.flatnonzero(self.places[k] == phase) for k in having[:2]]
        return np.concatenate(rows)


def _by_work(
    progress: np.ndarray,
    rates: np.ndarray,
    places: list[np.ndarray],
    donor_rates: list[np.ndarray],
) -> list[np.ndarray]:
    """[k] (n_k,) weights of the states of the snapshots, for runs of such progress, (R,), and rates, (R,).

    places[k], donor_rates[k]: (n_k,) progress of the states of snapshot k and their clock's rates.
    """
    weights = [np.zeros(len(p)) for p in places]
    centres = np.array([np.nanmedian(p) if np.isfinite(p).any() else np.nan for p in places])
    order = np.argsort(centres)
    order = order[np.isfinite(centres[order])]
    if not len(order):
        raise NotEnoughRuns("no snapshot has a run whose progress is known")
    tiny = 1e-12 * max(float(np.nanmax(np.concatenate(donor_rates))), 1e-300)
    logs = [np.log(np.maximum(v, tiny)) for v in donor_rates]
    # Median absolute deviation, as a standard deviation: outliers do not widen it.
    wide = [1.4826 * float(np.nanmedian(np.abs(v - np.nanmedian(v)))) for v in logs]
    width = max(WIDE * float(np.nanmedian(wide)), 1e-3)
    log_rates = np.log(np.maximum(rates, tiny))
    right = np.searchsorted(centres[order], progress)
    for place in np.unique(right):
        mine = right == place
        pair = [int(order[i]) for i in (place - 1, place) if 0 <= i < len(order)]
        shares = {k: np.full(mine.sum(), ELSEWHERE / len(order)) for k in order}
        if len(pair) == 2:
            low, high = centres[pair[0]], centres[pair[1]]
            lam = np.clip((progress[mine] - low) / max(high - low, 1e-300), 0.0, 1.0)
            shares[pair[0]], shares[pair[1]] = np.maximum(1 - lam, 1e-12), np.maximum(lam, 1e-12)
        else:
            shares[pair[0]] = np.ones(mine.sum())
        likeness = []
        for k in order:
            far = (log_rates[mine][:, None] - logs[k]) / width
            log_like = -0.5 * far**2 + np.log(shares[k])[:, None] - np.log(len(logs[k]))
            likeness.append(np.where(np.isfinite(log_like), log_like, -np.inf))
        joint = np.concatenate(likeness, axis=1)
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        joint /= joint.sum(axis=1, keepdims=True)
        start = 0
        for k, part in zip(order, likeness, strict=True):
            weights[k] += joint[:, start : start + part.shape[1]].sum(axis=0)
            start += part.shape[1]
    return weights
