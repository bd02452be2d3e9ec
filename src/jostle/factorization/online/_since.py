"""What a factorization has beside its embeddings once it has learned online."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.factorization.beside._joined import Joined
from jostle.factorization.online._prior import Groundwork


@dataclass(frozen=True)
class Online:
    """joined: names that came since, None while there are none; groundwork: what further steps rest on."""

    joined: Joined | None = None
    groundwork: Groundwork | None = None
