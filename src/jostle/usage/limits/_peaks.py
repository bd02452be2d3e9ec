"""What each recorded run used over its life, as far as limits need it; and a run that goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle.data import Trace, Traces, is_level
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError, require_known
from jostle.learn import Data
from jostle.usage.limits._likeness import Unlikeness, unlikeness
from jostle.usage.limits._limit_verbs import LimitVerbs
from jostle.usage.limits._peak_order import limit_in_order, over_in_order, turns_on_order
from jostle.usage.limits._rank_limits import (
    RankedLimit,
    limit_of_rest,
    over_of_rest,
)

MEMORY = "resident_bytes"
MISSED = 0.1  # of a run's time: where more has no sample, its peak may have been higher
ENDS = ("done", "limit", "now")
KEYS = ("values", "times_seconds", "length_seconds", "end")


@dataclass(frozen=True, eq=False)
class Use:
    """One run. times_seconds: (T,) rising, the ends of its samples; values: (T,) what it used, finite.
    is_open: whether it may have used more than that: it ended at its limit, or was not watched to its end.
    length_seconds: when it ended or was last seen. window: what it shares with those recorded beside it."""

    times_seconds: np.ndarray
    values: np.ndarray
    is_open: bool
    length_seconds: float
    window: str | None = None

    @classmethod
    def of(cls, trace: Trace, component: str, at_limit: bool = False) -> Use | None:
        """Read the use of one component over a trace; None without a sample of it."""
        values = trace.counters.get(component)
        if values is None or not np.isfinite(values).any():
            return None
        rates = values if is_level(component) else values / trace.interval_seconds
        known = np.isfinite(rates)
        length = float(np.fmax(trace.runtime_seconds, trace.time_seconds[-1]))
        watched = float(trace.interval_seconds[known].sum())
        # Up to one interval after its last sample a run may end unseen.
        unseen = min(length - trace.time_seconds[-1], np.median(trace.interval_seconds))
        watched += float(unseen)
        is_cut = not np.isfinite(trace.runtime_seconds) or watched < (1 - MISSED) * length
        times, is_open = trace.time_seconds[known], at_limit or is_cut
        return cls(times, rates[known], is_open, length, trace.window_id)

    @classmethod
    def from_item(cls, item: Any) -> tuple[Use, str]:
        """Return (run, its end) of an object of JSON: see `Peaks.from_items`. Raises UsageError."""
        odd = sorted(map(str, set(item) - set(KEYS))) if isinstance(item, Mapping) else []
        if odd or not isinstance(item, Mapping):
            what = f"unknown key {odd[0][:100]!r}" if odd else "no object"
            raise UsageError(what, fix=f"A run has {', '.join(KEYS)}.")
        end, values = item.get("end", "done"), _numbers(item, "values")
        if end not in ENDS:
            raise UsageError(f"`end` is none of {', '.join(ENDS)}")
        times = np.arange(1.0, len(values) + 1)
        if item.get("times_seconds") is not None:
            times = _numbers(item, "times_seconds")
        length = item.get("length_seconds", float(times[-1]))
        if len(times) != len(values) or (np.diff(times) <= 0).any():
            raise UsageError("`times_seconds` does not rise, or is not one for each value")
        if not _is_number(length) or length < times[-1]:
            raise UsageError("`length_seconds` is not a number from the last sample on")
        return cls(times, values, end == "limit", float(length)), end

    def to_item(self, end: str) -> dict[str, Any]:
        return {
            "values": self.values.tolist(),
            "times_seconds": self.times_seconds.tolist(),
            "length_seconds": self.length_seconds,
            "end": end,
        }

    def until(self, time_seconds: float) -> np.ndarray:
        """Return the values of samples that had ended by then."""
        return self.values[self.times_seconds <= time_seconds * (1 + 1e-9)]


@dataclass(frozen=True, eq=False)
class Peaks(LimitVerbs):
    """What recorded runs of one workload used of one resource, of which limits are made: `peaks.limit(
    confidence=0.95)`. live: the run asked about, where it goes on; None for a run to come.

    A run that restarts within its trace is one life: its peak is that of all its parts.
    """

    component: str
    runs: tuple[Use, ...]
    live: Use | None = None
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        data: Data | Traces | str,
        component: str | None = None,
        core: int = 0,
        *,
        at_limit: Sequence[str] = (),
        had: float | None = None,
    ) -> Peaks:
        """Collect the peaks of one workload from its traces.

        component: by default resident_bytes, or the only counter. at_limit: run_ids of runs that their limit
        ended, which would have used more. had: the limit that all of them ran under; a run that used as much
        was ended by it. Raises BadData for runs of different workloads, UnknownName, UsageError,
        NotEnoughRuns for none.
        """
        from jostle.usage.snapshots._snapshots import core_among, require_one_workload

        traces = data if isinstance(data, Traces) else Data.of(data).traces
        require_one_workload(traces)
        if component is None:
            component = MEMORY if MEMORY in traces.counters else None
            if component is None and len(traces.counters) != 1:
                raise UsageError(
                    "the traces have several counters, and none is resident_bytes",
                    fix=f"Name one of {', '.join(traces.counters)}.",
                )
            component = component or traces.counters[0]
        require_known("counter", component, traces.counters)
        if odd := sorted(set(at_limit) - set(traces.run_ids)):
            raise UnknownName("run", odd[0], traces.run_ids)
        runs, missing = [], 0
        core = core_among({trace.core for trace in traces}, core)
        for trace in traces:
            if trace.core != core:
                continue
            use = Use.of(trace, component, trace.run_id in at_limit)
            if use is None:
                missing += 1
                continue
            is_over = had is not None and float(use.values.max()) >= had
            runs.append(replace(use, is_open=True) if is_over else use)
        if not runs:
            raise NotEnoughRuns(f"no run has a sample of {component} on core {core}")
        notes = (f"{missing} runs have no sample of {component}",) if missing else ()
        return cls(component, tuple(runs), None, notes)

    @classmethod
    def from_items(cls, items: Iterable[Any], component: str = "value") -> Peaks:
        """Read peaks of runs as JSON has them. Each is an object with `values`; `times_seconds`, the ends of
        its samples, by default 1, 2, …; `length_seconds`, by default the last of these; and `end`: done,
        limit (its limit ended it, or it was not watched to its end) or now, for the run that goes on. Raises
        UsageError."""
        runs: list[Use] = []
        live: Use | None = None
        for number, item in enumerate(items):
            try:
                use, end = Use.from_item(item)
            except UsageError as error:
                raise UsageError(error.what, where=f"item {number}", fix=error.fix) from None
            if end != "now":
                runs.append(use)
            elif live is None:
                live = use
            else:
                raise UsageError("two runs go on", where=f"item {number}", fix="Ask of one.")
        return cls(component, tuple(runs), live)

    def to_items(self) -> list[dict[str, Any]]:
        """Return the runs as JSON has them; see `from_items`."""
        ends = [*(ENDS[one.is_open] for one in self.runs), "now"]
        every = [*self.runs, *([] if self.live is None else [self.live])]
        return [one.to_item(end) for one, end in zip(every, ends, strict=False)]

    def given(self, trace: Trace) -> Peaks:
        """Return the same about a run that goes on, of which this is the trace so far. Raises BadData."""
        live = Use.of(trace, self.component, at_limit=True)
        if live is None:
            raise BadData(f"the trace so far has no sample of {self.component}", where=trace.run_id)
        # It has come as far as its last sample, whatever counter that one has.
        return replace(self, live=replace(live, length_seconds=float(trace.time_seconds[-1])))

    def seen(self, times_seconds: np.ndarray, values: np.ndarray) -> Peaks:
        """Return the same about a run that goes on and has shown these samples, each at its end. Raises
        BadData."""
        times, own = np.asarray(times_seconds, float), np.asarray(values, float)
        if times.shape != own.shape or times.ndim != 1 or (np.diff(times) <= 0).any():
            raise BadData(f"{own.size} values at {times.size} times that rise are no samples")
        known = np.isfinite(own)
        if not known.any():
            raise BadData(f"the run has shown no {self.component} yet")
        return replace(self, live=Use(times[known], own[known], True, float(times[-1])))

    def ranked(self, confidence: float) -> RankedLimit:
        """Return the limit that a run does not exceed over its whole life, or this one in what is left of
        it."""
        if self.live is None:
            peaks, is_open = self._peaks()
            return limit_in_order(peaks, is_open, confidence)
        left, is_open, level, peak = self._left(self.live)
        plain = limit_of_rest(left, is_open, level, peak, confidence)
        if not turns_on_order(left):
            return plain
        return replace(plain, value=float("inf"), outcome="unsteady", confidence_now=0.0)

    def over(self, limit: float, confidence: float) -> tuple[float, float]:
        """Return (low, high): what runs leave open of P(it uses more than that, from now on)."""
        if self.live is None:
            return over_in_order(*self._peaks(), limit)
        return over_of_rest(*self._left(self.live), confidence, limit)

    def unlikeness(self) -> Unlikeness | None:
        """Return how unlike the recorded runs the run that goes on has been so far; None for a run to
        come."""
        if self.live is None:
            return None
        now = self.live.length_seconds
        others = [one for one in self._as_far(now) if len(one.until(now))]
        grid = self.live.times_seconds
        every = [*others, self.live]
        states = np.stack([_held(one, grid) for one in every])
        return unlikeness(states[:-1, :, None], states[-1, :, None])

    @property
    def now_seconds(self) -> float:
        """Seconds that the run that goes on has come; 0 for a run to come."""
        return 0.0 if self.live is None else self.live.length_seconds

    @property
    def going(self) -> tuple[Use, ...]:
        """The recorded runs that came as far as the one that goes on; of a run to come all."""
        return self.runs if self.live is None else tuple(self._as_far(self.now_seconds))

    @property
    def interval_seconds(self) -> float:
        """Between samples, in the middle of all."""
        gaps = [np.diff(one.times_seconds, prepend=0.0) for one in self.runs]
        return float(np.median(np.concatenate(gaps)))

    def _peaks(self) -> tuple[np.ndarray, np.ndarray]:
        peaks = np.array([one.values.max() for one in self.runs], float)
        return peaks, np.array([one.is_open for one in self.runs], bool)

    def _as_far(self, now: float) -> list[Use]:
        return [one for one in self.runs if one.length_seconds > now * (1 + 1e-9)]

    def _left(self, live: Use) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (n,) peaks of what was left of runs that have come as far, (n,) which may be higher, and
        (n + 1,) their last values and peaks until then, the live run's last."""
        now = live.length_seconds
        left, is_open, level, peak = [], [], [], []
        for one in self._as_far(now):
            before = one.until(now)
            if not len(before):
                continue
            after = one.values[len(before) :]
            # A whole run whose last sample was before this moment used no more than it did then.
            left.append(after.max() if len(after) else before[-1])
            is_open.append(one.is_open)
            level.append(before[-1])
            peak.append(before.max())
        level.append(live.values[-1])
        peak.append(live.values.max())
        return np.array(left), np.array(is_open, bool), np.array(level), np.array(peak)


def _held(one: Use, grid: np.ndarray) -> np.ndarray:
    """Return (T,) its values at these times: each until the next."""
    place = np.searchsorted(one.times_seconds, grid * (1 + 1e-9), side="right") - 1
    return one.values[np.maximum(place, 0)]


def _numbers(item: Mapping[str, Any], key: str) -> np.ndarray:
    values = item.get(key)
    if not isinstance(values, list) or not values or not all(map(_is_number, values)):
        raise UsageError(f"`{key}` is not a list of finite numbers, at least one")
    return np.array(values, np.float64)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) < 1e300
