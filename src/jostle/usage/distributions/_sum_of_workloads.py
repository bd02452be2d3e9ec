"""The distribution of the sum of what several workloads use at one time, with what few runs leave open.

Each is drawn from its recorded runs. Where all were recorded side by side often enough, whole windows are
drawn, so that what is busy together stays so; else each by itself. Few runs leave open how far any of them go
from their mean and where that is: both are drawn anew, as Student's law has it for the mean of a normal law
(Biometrika 6, 1908), alike for all that are of the same runs; of many runs nothing of that remains.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.errors import BadData
from jostle.usage.snapshots._shared_windows import FEWEST_WINDOWS, common_rows

Opened = tuple[np.ndarray, np.ndarray]
"""(draws, n) shares of the values in a drawn mean, and (draws, 1) by how much values go further from it."""


@dataclass(frozen=True, eq=False)
class Addend:
    """One of several that are added.

    of: what it is of; those of the same share what few runs leave open, and take different runs of a window.
    values: (n, k) that it may have. weights: (n,) how likely each is, sum 1. runs: how many are behind them,
    infinite where the law is known. beyond: (n,) by how many times an open one may have gone higher, on the
    mean; none by default.
    """

    of: Hashable
    values: np.ndarray
    weights: np.ndarray
    runs: float
    beyond: np.ndarray | None = None

    def open_draws(self, draws: int, random: np.random.Generator) -> Opened | None:
        """Return what its number of runs leaves open, drawn; None where nothing is."""
        if not np.isfinite(self.runs):
            return None
        n = max(round(self.runs), 2)
        factor = np.sqrt(n / random.chisquare(n - 1, (draws, 1)))
        return random.multinomial(n, self.weights, draws) / n, factor

    def drawn(
        self, rows: np.ndarray, opened: Opened | None, random: np.random.Generator
    ) -> np.ndarray:
        """Return (draws, k) values like these rows (draws,), as what was left open has it; none below 0
        where none was."""
        values = self.values[rows]
        if self.beyond is not None and self.beyond.any():
            values *= 1 + self.beyond[rows, None] * random.standard_exponential((len(rows), 1))
        if opened is None:
            return values
        shares, factor = opened
        mean = self.weights @ self.values
        means = mean + factor * (shares @ self.values - mean)
        floor = np.minimum(self.values.min(axis=0), 0.0)
        return np.maximum(means + factor * (values - mean), floor)


def rows_side_by_side(members: Sequence[tuple[Hashable, Sequence[str | None]]]) -> np.ndarray:
    """Return (windows, members) runs in windows that all of several members share, as by `common_rows`; no
    window where there are too few to tell how they go together."""
    rows = common_rows(members)
    is_enough = len(members) > 1 and len(rows) >= FEWEST_WINDOWS
    return rows if is_enough else rows[:0]


def draws_together(
    parts: Sequence[Addend], rows: np.ndarray, draws: int, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Return (draws, k) of each part, to be added. rows: (windows, parts) of values that were measured
    together; as independent ones where there is none."""
    opened: dict[Hashable, Opened | None] = {}
    picked = random.integers(max(len(rows), 1), size=draws)
    for number, part in enumerate(parts):
        n, weights = len(part.values), part.weights
        chosen = rows[picked, number] if len(rows) else random.choice(n, draws, p=weights)
        if (part.of, n) not in opened:
            opened[part.of, n] = part.open_draws(draws, random)
        yield part.drawn(chosen, opened[part.of, n], random)


def common_components(every: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the components of all that are to be added. Raises BadData if they differ."""
    for other in every[1:]:
        if other != every[0]:
            raise BadData(
                f"components {', '.join(other)} and {', '.join(every[0])} cannot be added",
                fix="Forecast the same components of all.",
            )
    return every[0]
