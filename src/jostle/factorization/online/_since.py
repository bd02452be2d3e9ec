"""What a factorization has beside its embeddings once it has learned online."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jostle.factorization.beside._joined import Joined
from jostle.factorization.online._prior import Groundwork


@dataclass(frozen=True)
class Online:
    """joined: names that came since, None while there are none; groundwork: what further steps rest on."""

    joined: Joined | None = None
    groundwork: Groundwork | None = None

    def to_arrays(self) -> dict[str, np.ndarray]:
        """By name; from_arrays is the inverse."""
        found: dict[str, np.ndarray] = {}
        for name in ("joined", "groundwork"):
            part = getattr(self, name)
            if part is not None:
                found |= {f"{name}_{key}": value for key, value in part.to_arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Online:
        def under(mark: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(mark): v for k, v in arrays.items() if k.startswith(mark)}

        joined, groundwork = under("joined_"), under("groundwork_")
        return cls(
            Joined.from_arrays(joined) if joined else None,
            Groundwork.from_arrays(groundwork) if groundwork else None,
        )
