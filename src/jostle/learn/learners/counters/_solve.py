"""How far everyone gets, when what each does depends on what the others do meanwhile.

The paper goes period by period. Here each workload keeps its own axis, the samples of its run alone, on
which its own rates are known for good; what is not known is when each sample begins and ends beside the
others, and so what they do during it. A stretch of times is guessed, every sample's slowdown is computed
at once from what the others do between its guessed times, and the slowdowns give new times. As the others
matter less than the workload itself, few rounds make a stretch final, to a hundred-thousandth of a period.
That is the fixed point of a sample, found for many samples together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jostle.learn.learners.counters.solo._solo_counters import SoloCounters

# (slot's place, own rates (s, d), sum of the others' rates (s, d)) -> (s,) slowdown
Slowdown = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
TOLERANCE = 1e-5  # of a period
MOST_ROUNDS = 30  # of the fixed point
PLAIN_ROUNDS = 4  # before steps are shortened
# Where a slowdown jumps, a sample's end may swing for ever: in the end a small part of a period will do.
STRICT_ROUNDS, LARGEST_TOLERANCE = 5, 0.03
UNCHANGED = 1e-7  # of a rate


class Lane:
    """One workload's own axis: its samples one after the other, and again from the start where it loops."""

    def __init__(self, solo: SoloCounters, loop: bool) -> None:
        self.solo, self.table, self.loop = solo, solo.cumulative, loop
        self.duration, self.samples = solo.duration_seconds, solo.periods
        self.rates = np.diff(self.table, axis=0) / solo.period_seconds
        self.idle = solo.idle if solo.idle.any() else None

    def ahead(self, place: float, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (edges (s + 1,) from place on, samples (s,) between them); s: `most`, less at the end."""
        tau = self.solo.period_seconds
        rounds = np.floor(place / self.duration * (1 + 1e-15)) if self.loop else 0.0
        inside = place - rounds * self.duration
        first = min(int(inside / tau * (1 + 1e-12)), self.samples - 1)
        number = first + int(rounds) * self.samples + np.arange(most + 1)
        if not self.loop:
            number = number[number <= self.samples]
        lap, sample = np.divmod(number, self.samples)
        edges = lap * self.duration + sample * tau
        if not self.loop and number[-1] == self.samples:
            edges[-1] = self.duration
        edges[0] = place
        if len(edges) > 1 and edges[1] - edges[0] <= 1e-12 * tau:
            edges, sample = edges[1:], sample[1:]
        return edges, sample[:-1]


def solve(
    lanes: Sequence[Lane],
    numbers: Sequence[int],
    slowdown: Slowdown,
    now: float,
    place: np.ndarray,
    speed: np.ndarray,
    length: int,
) -> tuple[float, list[np.ndarray], list[np.ndarray], int]:
    """Return (time up to which all is final, edges of each on its own axis, their times, rounds)."""
    tau = lanes[0].solo.period_seconds
    edges, samples, own, times = [], [], [], []
    for lane, at, v in zip(lanes, place, speed, strict=True):
        edge, sample = lane.ahead(float(at), max(2, int(np.ceil(length * v)) + 1))
        edges.append(edge)
        samples.append(sample)
        own.append(lane.rates[sample])
        times.append(now + np.concatenate([[0.0], np.cumsum(np.diff(edge) / v)]))
    latest: list[tuple[np.ndarray, np.ndarray] | None] = [None] * len(lanes)
    final = [0] * len(lanes)  # samples of each that are, so that only what comes after is computed
    until, rounds = now, 0
    for rounds in range(1, MOST_ROUNDS + 1):
        settled = np.inf
        tolerance = min(LARGEST_TOLERANCE, TOLERANCE * 4.0 ** max(0, rounds - STRICT_ROUNDS))
        for n in range(len(lanes)):
            # Each sees at once what this round found out about those before it.
            begin = final[n]
            others = _others(lanes, edges, times, n, begin)
            slow = _again(latest[n], own[n][begin:], others, slowdown, numbers[n])
            latest[n] = (others, slow)
            idle = lanes[n].idle
            if idle is not None:
                slow = np.where(idle[samples[n][begin:]], 1.0, slow)
            steps = np.empty(len(slow) + 1)
            steps[0] = times[n][begin]
            np.multiply(slow, np.diff(edges[n][begin:]), out=steps[1:])
            new = np.cumsum(steps)
            moved = np.abs(new - times[n][begin:]) > tolerance * tau
            # Final are the samples before the first that still moves.
            last = int(np.argmax(moved)) - 1 if moved.any() else len(new) - 1
            settled = min(settled, float(new[last]))
            if rounds > PLAIN_ROUNDS:  # what swings around its place comes to rest half way
                new = 0.5 * (new + times[n][begin:])
            times[n] = np.concatenate([times[n][:begin], new])
        until = max(until, settled)
        ends = min(float(one[-1]) for one in times)
        if until >= ends:
            break
        if rounds >= 4 and until > now + 0.5 * (ends - now):
            break  # what is left is begun anew, with a better guess
        for n in range(len(lanes)):
            done = max(final[n], int(np.searchsorted(times[n], until, "right")) - 2)
            others, slow = latest[n]  # type: ignore[misc]
            latest[n] = (others[done - final[n] :], slow[done - final[n] :])
            final[n] = done
    if (
        until <= now
    ):  # nothing settled to the tolerance: the first sample to end has all rounds behind it
        until = min(float(one[1]) for one in times)
    return until, edges, times, rounds


def _again(
    latest: tuple[np.ndarray, np.ndarray] | None,
    own: np.ndarray,
    others: np.ndarray,
    slowdown: Slowdown,
    number: int,
) -> np.ndarray:
    """Predict (s,) slowdowns again, except for samples beside which nothing changed since the last round."""
    if latest is None:
        return slowdown(number, own, others)
    changed = (np.abs(others - latest[0]) > UNCHANGED * np.abs(others)).any(axis=1)
    if np.count_nonzero(changed) > 0.8 * len(own):
        return slowdown(number, own, others)
    slow = latest[1].copy()
    if changed.any():
        slow[changed] = slowdown(number, own[changed], others[changed])
    return slow


def _others(
    lanes: Sequence[Lane],
    edges: Sequence[np.ndarray],
    times: Sequence[np.ndarray],
    n: int,
    begin: int,
) -> np.ndarray:
    """Add up the others' rates (s, d) between the times of each sample of lane n from `begin` on."""
    total: np.ndarray | None = None
    for k, lane in enumerate(lanes):
        if k == n:
            continue
        place = np.interp(times[n][begin:], times[k], edges[k])
        length = np.diff(place)
        counted = lane.solo.at(lane.table, place)
        rates = counted[1:] - counted[:-1]
        rates /= np.maximum(length, 1e-12)[:, None]
        # Past what was guessed of it, it stands still: nothing there is final, any rates will do.
        rates[length <= 0] = lane.rates[-1]
        total = rates if total is None else total + rates
    assert total is not None
    return total
