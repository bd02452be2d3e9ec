"""Where can it go so that nobody misses a deadline: one model, one fleet, and the questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jostle._base.confidence import DEFAULT_CONFIDENCE
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Glance
from jostle.placement._placement_verbs import PlacementVerbs
from jostle.placement._promise import CHOSEN, OF_CHOSEN, Promise, Standard
from jostle.placement.chosen._replay_choice import level_of_chosen
from jostle.placement.queries._fleet import Fleet, Node
from jostle.placement.queries._requests import Requests
from jostle.placement.sets._fleet_bounds import FleetBounds
from jostle.placement.sets._set_bounds import SetBounds

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models import Model


def place(
    model: Model,
    fleet: Any,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    promise: Promise = CHOSEN,
    runs: Runs | None = None,
    campaign: str | None = None,
) -> Placement:
    """Make a placement, which answers where workloads can go.

    Parameters
    ----------
    model :
        What :func:`fit` or :func:`load` gives.
    fleet :
        A Fleet, nodes, or a table of them (:meth:`Fleet.read`).
    confidence :
        Of every bound, under 1.
    promise :
        `chosen`, `each`, `joint` or `predicted`, see :class:`Standard`. Without a valid bound the answer
        is no;
        only `predicted` lets the prediction stand in.
    runs :
        Measured runs, whose solo medians are used for limits given as a slowdown. None: predicted solo times.
    campaign :
        One of the campaigns of the model's runs, which the answers are about.

    Returns
    -------
    Placement

    Raises
    ------
    UsageError, UnknownName
        And what reading the fleet raises.
    """
    standard = Standard(confidence, promise, campaign=campaign)
    return Placement(Fleet.of(fleet), SetBounds(model, standard, runs))


class Placement(PlacementVerbs, Glance):
    """Answer the questions about a fleet as a model sees it, by one standard, such as
    `rank(requests, least="cost")`. `place` makes it."""

    def __init__(self, fleet: Fleet, sets: SetBounds) -> None:
        self.fleet, self.sets = fleet, sets
        self.bounds = FleetBounds(fleet, sets)

    @property
    def standard(self) -> Standard:
        """Confidence and promise of all answers."""
        return self.sets.standard

    def bounds_on(self, on: str | Sequence[str] | None) -> FleetBounds:
        """Bound the tenants on these nodes alone; on all by default. Raises UnknownName."""
        return self.bounds if on is None else FleetBounds(self._nodes(on), self.sets)

    def chosen(
        self, requests: Requests, which: str, otherwise: str, *, is_least: bool = False
    ) -> tuple[FleetBounds, str]:
        """Return (the fleet by bounds as sure as it takes that the confidence holds of what is chosen, the
        promise of `which` those are). otherwise: the promise where nothing is promised of them.
        is_least: see level_of_chosen."""
        if self.standard.promise != CHOSEN:
            return self.bounds, otherwise.format(why="")
        level = level_of_chosen(self.sets, requests.good, self.fleet.nodes, is_least=is_least)
        if level is None:
            return self.bounds, otherwise.format(why=" (calibration runs are too few to replay it)")
        promise = OF_CHOSEN.format(which=which, miss=self.standard.miss, level=level)
        return FleetBounds(self.fleet, self.sets.by(level)), promise

    @property
    def label(self) -> dict[str, Any] | None:
        """The version of the model and of its data; None where there is no model."""
        return None if self.sets.model is None else self.sets.model.label

    def _facts(self) -> list[tuple[str, str]]:
        """Count the nodes, and name the confidence and the promise."""
        return [("nodes", f"{len(self.fleet)}"), *self.standard.facts]

    def ask(self, verb: Any, requests: Any, question: Any, progress: Progress = no_progress) -> Any:
        """Return what a verb (see jostle.operations) says of these requests here."""
        requests = Requests.of(requests)
        answer = verb(self, requests, question, progress)
        if not hasattr(answer, "unknown_names"):
            return answer
        return replace(answer, unknown_names=self.sets.unknown_names(requests.good, self.fleet))

    def _nodes(self, on: str | Sequence[str] | None) -> list[Node]:
        if on is None:
            return list(self.fleet.nodes)
        return [self.fleet.node(name) for name in ([on] if isinstance(on, str) else on)]
