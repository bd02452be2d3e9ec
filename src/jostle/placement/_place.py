"""Where can it go so that nobody misses a deadline: one model, one fleet, and the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle._verbs import answers_verbs
from jostle.errors import UsageError
from jostle.placement._promise import NO_BOUND, Accept, Standard
from jostle.placement.asked._fleet import Fleet, Node
from jostle.placement.asked._requests import Requests
from jostle.placement.chosen._chosen import ChosenPromise, ratios_of
from jostle.placement.sets._bounds import SetBounds
from jostle.placement.sets._fleet_bounds import FleetBounds
from jostle.progress import Progress, no_progress

if TYPE_CHECKING:
    from jostle.models import Model
    from jostle.runs import Runs


def place(
    model: Model,
    fleet: Any,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    joint: bool = False,
    accept: Accept = NO_BOUND,
    runs: Runs | None = None,
    among_chosen: float | None = None,
    data: Any = None,
) -> Placement:
    """Questions about where workloads can go.

    model: what jostle.fit or jostle.load gives. fleet: a Fleet, nodes, or a table of them (Fleet.read).
    confidence: of every bound. joint: whether it is that all on a node keep their limits at once (union
    bound), or each by itself. accept: `predicted` answers by the prediction where no bound is valid, and
    says so; by default such ground is a no. runs: measured runs, whose medians alone count for
    limits given as a slowdown; else the predicted time alone does. among_chosen: instead of every bound by
    itself, that at most this share of what is chosen is late, calibrated on the runs that the model was
    calibrated on; data: what it was fitted to.
    Raises UsageError, and what reading the fleet and the data raises.
    """
    sets = SetBounds(model, Standard(confidence, joint, accept), runs)
    if among_chosen is None:
        return Placement(Fleet.of(fleet), sets)
    if data is None:
        raise UsageError(
            "the promise among chosen ones needs calibration runs",
            fix="Say `data`, or on the command line `dataset`: what the model was fitted to.",
        )
    promise = ChosenPromise.of(sets, among_chosen, data)
    return Placement(Fleet.of(fleet), promise.sets, promise)


@answers_verbs("placement")
class Placement:
    """What `place` gives: a fleet as a model sees it, by one standard. Its verbs are those of
    jostle.answers.placement: `rank(requests, by="cost")` and so on."""

    if TYPE_CHECKING:

        def __getattr__(self, verb: str) -> Callable[..., Any]: ...

    def __init__(self, fleet: Fleet, sets: SetBounds, chosen: ChosenPromise | None = None) -> None:
        self.fleet, self.sets, self.chosen = fleet, sets, chosen
        self.bounds = FleetBounds(fleet, sets)

    @property
    def standard(self) -> Standard:
        return self.sets.standard

    def by(
        self,
        *,
        confidence: float | None = None,
        joint: bool | None = None,
        accept: Accept | None = None,
    ) -> Placement:
        """The same questions by another standard. Raises UsageError."""
        sets = self.sets.by(confidence, joint, accept)
        if sets is self.sets:
            return self
        return Placement(self.fleet, sets, self.chosen and self.chosen.like(sets))

    def bounds_on(self, on: str | Sequence[str] | None) -> FleetBounds:
        """On these nodes alone; on all by default. Raises UnknownName."""
        return self.bounds if on is None else FleetBounds(self._nodes(on), self.sets)

    def bounds_at(self, confidence: float) -> FleetBounds:
        """On all nodes, by another confidence."""
        return FleetBounds(self.fleet, self.sets.by(confidence))

    def ratios(self, requests: Requests) -> np.ndarray:
        """Limits over times alone, of the requests and the tenants."""
        return ratios_of(requests.good, self.fleet.nodes, self.sets)

    @property
    def label(self) -> dict[str, Any] | None:
        """The version of the model and of its data; None where there is no model."""
        return None if self.sets.model is None else self.sets.model.label

    def only_without_choice(self, verb: str) -> None:
        """Raises UsageError where a promise among chosen ones was asked for."""
        if self.chosen is not None:
            raise UsageError(
                f"`{verb}` promises nothing among chosen ones", fix="Ask it without that."
            )

    def ask(self, verb: Any, requests: Any, question: Any, progress: Progress = no_progress) -> Any:
        """What a verb (see jostle.answers) says of these requests here."""
        return verb(self, Requests.of(requests), question, progress)

    def _nodes(self, on: str | Sequence[str] | None) -> list[Node]:
        if on is None:
            return list(self.fleet.nodes)
        return [self.fleet.node(name) for name in ([on] if isinstance(on, str) else on)]
