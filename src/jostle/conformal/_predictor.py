"""What bounds need of something fitted: ways to score its predictions."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class Candidates(NamedTuple):
    """h ways to bound n co-locations: bound = exp(centre + scale * offset), the offset calibrated.

    names: h names. centre: (h, n) log seconds, NaN where there is no answer; the first is the prediction,
    under which no bound lies. scale: (h, n) above 0.
    A quantile head has its quantile as centre and scale 1 (conformalised quantile regression,
    Romano et al. 2019); a spread model has the prediction as centre and the spread as scale.
    until: h confidences, 1 where left out. One under 1 says that the candidate speaks up to there and the
    next one from there on: together they are the stages of one way to bound.
    seconds: (n,) the prediction where it is at hand, which then need not be computed again.
    """

    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray
    until: tuple[float, ...] = ()
    seconds: np.ndarray | None = None

    @classmethod
    def one_way(cls, seconds: np.ndarray) -> Candidates:
        """The prediction, (n,) seconds, with the same offset everywhere."""
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.log(np.asarray(seconds, np.float64))
        return cls(("prediction",), centre[None], np.ones((1, len(centre))), seconds=seconds)

    def staged(self) -> list[tuple[int, ...]]:
        """The ways to bound, each as its stages in the order of their confidences."""
        ways: list[tuple[int, ...]] = []
        stages: tuple[int, ...] = ()
        for place in range(len(self.names)):
            stages += (place,)
            if self.ends_at(place) >= 1:
                ways.append(stages)
                stages = ()
        return ways

    def ends_at(self, place: int) -> float:
        """Up to which confidence a candidate speaks."""
        return self.until[place] if self.until else 1.0


@runtime_checkable
class Boundable(Protocol):
    """Anything that offers ways to bound what it predicts."""

    def candidates(self, asked: Any, /) -> Any:
        """Candidates, the same names at every call, the plainest first."""
        ...


def candidates_of(predictor: Any, asked: Any) -> Candidates:
    """The predictor's own candidates, or its prediction with the same offset everywhere."""
    if isinstance(predictor, Boundable):
        return Candidates(*predictor.candidates(asked))
    return Candidates.one_way(predictor.predict(asked))
