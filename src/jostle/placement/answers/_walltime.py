"""The time to ask a batch system for: the bound, wherever the job may land."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.errors import UsageError
from jostle.placement._promise import Standard
from jostle.placement.asked._requests import Request
from jostle.placement.sets._fleet_bounds import REASONS, FleetBounds

WORDS = tuple(REASONS)


@dataclass(frozen=True)
class Walltime:
    """What to ask for. seconds: whole seconds that hold on every node that could be bounded, None where none
    could. covered, considered: nodes with a valid bound, of those that the request may go to. ruled_out:
    {reason: nodes} of the others."""

    request: str
    workload: str
    seconds: float | None
    bound_seconds: float | None
    widest_node: str | None
    covered: int
    considered: int
    ruled_out: dict[str, int]
    used_predictions: bool = False

    @property
    def text(self) -> str | None:
        """HH:MM:SS, or D-HH:MM:SS past a day, as batch systems take it."""
        if self.seconds is None:
            return None
        whole = int(self.seconds)
        days, rest = divmod(whole, 86_400)
        clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
        return f"{days}-{clock}" if days else clock

    def to_document(self) -> dict[str, Any]:
        return {**vars(self), "walltime": self.text}


@dataclass(frozen=True)
class Walltimes:
    """rows: one per request that could be read. unread: (row number, why) of the others."""

    rows: tuple[Walltime, ...]
    standard: Standard
    unread: tuple[tuple[int, str], ...] = ()

    @property
    def is_answered(self) -> bool:
        return bool(self.rows) and not self.unread and all(r.seconds is not None for r in self.rows)

    @property
    def promise(self) -> str:
        return self.standard.promise(used_predictions=any(r.used_predictions for r in self.rows))

    def to_document(self) -> dict[str, Any]:
        return {
            "schema": "place_walltime/v1",
            "answered": self.is_answered,
            "confidence": self.standard.confidence,
            "accept": self.standard.accept,
            "promise": self.promise,
            "requests": [row.to_document() for row in self.rows],
            "unread": [{"row": row, "status": why} for row, why in self.unread],
        }


def walltimes(
    requests: Iterable[Request], fleet: FleetBounds, step_seconds: float
) -> tuple[Walltime, ...]:
    """step_seconds: what the time is rounded up to. Raises UsageError."""
    if not 1 <= step_seconds < math.inf or step_seconds != int(step_seconds):
        raise UsageError(f"a step of {step_seconds} s is not a whole number of seconds")
    found = []
    for request in requests:
        # Its own limit does not matter here: the batch system gets one that holds.
        assessed = fleet.assess(replace(request, deadline_seconds=None, slowdown=None))
        words = [WORDS[int(code)] for code in assessed.reason]
        elsewhere = ("pinned_elsewhere", "not_allowed", "labels")
        considered = np.array([word not in elsewhere for word in words], bool)
        good = considered & np.isfinite(assessed.bound_seconds)
        counts = {w: words.count(w) for w in set(words) if w not in ("ok", *elsewhere)}
        covered = {w: n for w, n in sorted(counts.items()) if w != "tenant_late"}
        if not good.any():
            found.append(
                Walltime(
                    request.name,
                    request.workload,
                    None,
                    None,
                    None,
                    0,
                    int(considered.sum()),
                    covered,
                )
            )
            continue
        widest = int(np.argmax(np.where(good, assessed.bound_seconds, -np.inf)))
        bound = float(assessed.bound_seconds[widest])
        found.append(
            Walltime(
                request.name,
                request.workload,
                float(math.ceil(bound / step_seconds) * step_seconds),
                bound,
                fleet.fleet.nodes[widest].name,
                int(good.sum()),
                int(considered.sum()),
                covered,
                bool(assessed.predicted[good].any()),
            )
        )
    return tuple(found)
