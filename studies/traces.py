"""Traces written by hand: what a run alone of one workload on one core has, but for what is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jostle.data import Trace


def plain_trace(
    counters: Mapping[str, Sequence[float] | np.ndarray],
    interval: float | Sequence[float] | np.ndarray = 1.0,
    **changes: Any,
) -> Trace:
    """counters: {name: (T,)}. interval: seconds of each sample or of all, which follow without a gap; the run
    ends with the last. changes: of the fields of a Trace."""
    n = len(next(iter(counters.values())))
    steps = np.broadcast_to(np.asarray(interval, float), n).copy()
    times = interval * np.arange(1, n + 1) if isinstance(interval, float) else np.cumsum(steps)
    made = Trace(
        run_id="r",
        core=0,
        workload="w",
        platform="p",
        corunners=(),
        window_id=None,
        runtime_seconds=float(times[-1]) if n else 0.0,
        time_seconds=times,
        interval_seconds=steps,
        counters={name: np.asarray(values, float) for name, values in counters.items()},
    )
    return replace(made, **changes)
