"""Which of many sets to choose so that few of the chosen are late.

Source: Jin and Candès, Selection by prediction with conformal p-values (JMLR 2023), with the procedure of
Benjamini and Hochberg; after an optimiser: Angelopoulos et al., Learn then test (2021), with the limits of
Clopper and Pearson.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.errors import MissingExtra, NotEnoughRuns, UsageError

SURE = 0.95  # of the limit of Clopper and Pearson


@dataclass(frozen=True)
class Scored:
    """n calibration sets: score (n,), the higher the safer; late (n,), whether anybody was."""

    score: np.ndarray
    late: np.ndarray

    def p_values(self, score: np.ndarray) -> np.ndarray:
        """(m,) of being late: the share of calibration sets that score at least so and are late."""
        late = np.sort(self.score[self.late])
        above = len(late) - np.searchsorted(late, score, side="left")
        return (1.0 + above) / (len(self.score) + 1.0)


def select(p: np.ndarray, share: float) -> np.ndarray:
    """(m,) bool, the procedure of Benjamini and Hochberg at level `share`."""
    order = np.argsort(p, kind="stable")
    under = p[order] <= share * np.arange(1, len(p) + 1) / max(len(p), 1)
    last = int(np.flatnonzero(under).max()) + 1 if under.any() else 0
    chosen = np.zeros(len(p), bool)
    chosen[order[:last]] = True
    return chosen


def check_share(share: float) -> None:
    """Raises UsageError outside (0, 1)."""
    if not 0 < share < 1:
        raise UsageError(f"a share of {share} among the chosen", fix="Say 0.05 for one in twenty.")


def require_enough(scored: Scored, share: float) -> None:
    """Raises NotEnoughRuns where no set could ever be chosen."""
    needed = int(np.ceil(1 / share - 1 - 1e-9))
    if len(scored.score) < needed:
        raise NotEnoughRuns(
            f"{len(scored.score)} calibration sets are too few to promise {share:g} among the chosen",
            fix=f"It takes at least {needed}, of which most keep their limits.",
        )


def upper_limit(late: int, placed: int, sure: float = SURE) -> float:
    """The share late is under this with confidence `sure` (Clopper and Pearson 1934); 1 with none placed."""
    if late >= placed:
        return 1.0
    try:
        from scipy.special import betaincinv
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "fit") from None
    return float(betaincinv(late + 1, placed - late, sure))
