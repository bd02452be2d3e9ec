"""Queries that arrive by a process (open loop), and what their latency is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle._base.untrusted import require_regular
from jostle.errors import BadData, UnreadableFile, UsageError


def poisson_arrivals(
    rate_per_second: float, queries: int, seed: int | tuple[int, ...]
) -> np.ndarray:
    """Return (queries,) arrival times in seconds of a Poisson process. Raises UsageError."""
    if not (0 < rate_per_second < np.inf) or queries < 1:
        raise UsageError(f"{queries} queries at {rate_per_second} per second cannot arrive")
    gaps = np.random.default_rng(seed).exponential(1 / rate_per_second, queries)
    return np.cumsum(gaps)


def read_arrivals(path: str | os.PathLike[str]) -> np.ndarray:
    """Return (queries,) arrival times in seconds, one on a line; empty lines and lines that begin with #
    are left out. Raises UnreadableFile, and BadData with the line that is not a time or is before the
    one above."""
    try:
        require_regular(path)
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"cannot be read: {error}", where=str(path)) from None
    times: list[float] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            time = float(text)
        except ValueError:
            time = float("nan")
        if not 0 <= time < np.inf:
            raise BadData(
                f"line {number} is not a valid time in seconds: {text[:40]!r}", where=str(path)
            )
        if times and time < times[-1]:
            raise BadData(f"line {number} is before the one above it", where=str(path))
        times.append(time)
    if not times:
        raise BadData("no arrival times", where=str(path), fix="One time in seconds on a line.")
    return np.array(times)


STATISTICS = ("mean", "p95", "p99", "max")
# Queries by which a percentile is not the longest of them.
FEWEST_FOR = {"p95": 21, "p99": 101}
BATCHES = 10
# Student's t at 97.5%: BATCHES - 1 degrees of freedom, and BATCHES - 2.
_T, _T_HALVES = 2.262, 2.306


@dataclass(frozen=True)
class Latency:
    """Of the queries of one application, in seconds. p95, p99: the order statistic ceil(n * share), so
    that at most 5% and 1% of the queries took longer."""

    queries: int
    mean_seconds: float
    p95_seconds: float
    p99_seconds: float
    max_seconds: float

    @classmethod
    def of(cls, seconds: np.ndarray) -> Latency:
        """Raises UsageError where no query ended."""
        n = len(seconds)
        if not n:
            raise UsageError("no query ended, so there is no latency")
        ordered = np.sort(seconds)
        return cls(
            n,
            float(ordered.mean()),
            float(ordered[-(-n * 95 // 100) - 1]),
            float(ordered[-(-n * 99 // 100) - 1]),
            float(ordered[-1]),
        )

    def of_statistic(self, statistic: str) -> float:
        """Return one of STATISTICS."""
        return float(getattr(self, f"{statistic}_seconds"))


def queries_for(statistic: str) -> int:
    """Return how many queries an interval of the statistic takes."""
    return BATCHES * FEWEST_FOR.get(statistic, 5)


def interval_of(seconds: np.ndarray, statistic: str) -> tuple[float, float]:
    """Return (low, high) between which the statistic lies with 95%, from queries in the order in which they
    came; NaN for too few of them, and for their maximum, of which no number of them says anything.

    Sectioning (Asmussen and Glynn, Stochastic Simulation, 2007, Sec. III.5): BATCHES batches in a row, so
    that queries that wait for each other are mostly in the same; their spread about the statistic of all.
    """
    if statistic == "max" or len(seconds) < queries_for(statistic):
        return float("nan"), float("nan")
    whole = Latency.of(seconds).of_statistic(statistic)
    if not np.isfinite(seconds).all():
        few = np.isfinite(whole)
        return (whole if few else np.inf), np.inf
    parts = [Latency.of(part).of_statistic(statistic) for part in np.array_split(seconds, BATCHES)]
    spread = np.sqrt(np.sum((np.array(parts) - whole) ** 2) / (BATCHES - 1) / BATCHES)
    return max(0.0, whole - _T * float(spread)), whole + _T * float(spread)


def grows(seconds: np.ndarray) -> bool:
    """Tell whether queries take longer in the second half than in the first, as in a queue that grows.

    seconds: of the queries, in the order in which they came. Compares the means of the halves by the spread
    of BATCHES sections of them (Student's t, 97.5%); too few queries, or starved ones, count as growth.
    """
    if len(seconds) < 2 * BATCHES or not np.isfinite(seconds).all():
        return True
    means = np.array([part.mean() for part in np.array_split(seconds, BATCHES)])
    first, second = means[: BATCHES // 2], means[BATCHES // 2 :]
    spread = np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / (BATCHES // 2))
    more = second.mean() - first.mean()
    return bool(more > _T_HALVES * spread and more > 1e-9 * first.mean())
