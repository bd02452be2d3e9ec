"""The questions of placement about accelerators: how a device is shared is part of every answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jostle._base.confidence import DEFAULT_CONFIDENCE
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Glance
from jostle.errors import UsageError
from jostle.placement._placement import Placement
from jostle.placement._placement_verbs import PlacementVerbs
from jostle.placement._promise import CHOSEN, Promise, Standard
from jostle.placement.devices._device_sets import (
    DEFAULT_MODES,
    Hardware,
    SimulatedSets,
    config_text,
)
from jostle.placement.queries._fleet import Fleet, Node
from jostle.placement.queries._requests import Request, Requests


def place_devices(
    data: Any,
    fleet: Any,
    *,
    gpu: str | None = None,
    sharing: Sequence[str] = (),
    confidence: float = DEFAULT_CONFIDENCE,
    promise: Promise = CHOSEN,
    model: Any = None,
    campaign: str | None = None,
) -> DevicePlacement:
    """Make a placement, which answers where workloads can go on accelerators, from their solo profiles.

    A request with a rate is a service whose queries arrive at random; any other runs again and again. Each
    set
    is decided by :func:`jostle.gpu.within_limits`.

    Parameters
    ----------
    data :
        Solo profiles, or a folder of them.
    fleet :
        As for :func:`place`. The platform of a node is a device by name (A100, V100, ...); `memory` is the
        device's, `sharing` its own ways to be shared.
    gpu :
        Device that was profiled. None: the profiles tell.
    sharing :
        Ways to share a device that has none of its own, of which the best is chosen: concurrent, sequential,
        time-sliced, `shares` of the PEs (MPS), or slices such as `3g,4g` (MIG). Empty: as runs of the model
        were, or concurrent.
    confidence, promise :
        As for :func:`place`.
    model :
        Fitted to measured co-runs of one platform. Answers are then in measured seconds, and its bounds
        count. None: everything is simulated, which is a yes only with the promise `predicted`.
    campaign :
        As for :func:`place`, of that model.

    Returns
    -------
    DevicePlacement

    Raises
    ------
    UsageError, BadData, UnknownName
    """
    from jostle.gpu import LearnedRest, applications_of
    from jostle.learn import Data
    from jostle.learn.learners.simulation import way_to_share

    applications, device = applications_of(Data.of(data).profiles, gpu)
    standard = Standard(confidence, promise, campaign=campaign)
    if model is not None:
        model = standard.about(model)
    elif campaign is not None:
        raise UsageError("a campaign is one of a model of measured co-runs", fix="Give `model`.")
    rest = None
    if model is not None:
        rest = LearnedRest.of(model, device, confidence, way_to_share=way_to_share)
    if rest is not None:
        device = replace(device, bus=rest.device.bus)
    modes = tuple(sharing) or (DEFAULT_MODES if rest is None else (rest.sharing,))
    hardware = Hardware(applications, device, modes, 0, model, rest)
    return DevicePlacement(Fleet.of(fleet), hardware, standard)


class DevicePlacement(PlacementVerbs, Glance):
    """Answer the questions of Placement about accelerators, with the workloads and platforms of every answer
    spelled out, and how each device is shared. `place_devices` makes it."""

    def __init__(self, fleet: Fleet, hardware: Hardware, standard: Standard) -> None:
        self.fleet, self.hardware, self.standard = fleet, hardware, standard

    def _facts(self) -> list[tuple[str, str]]:
        """Count the nodes, and name the confidence and the promise."""
        return [("nodes", f"{len(self.fleet)}"), *self.standard.facts]

    def ask(self, verb: Any, requests: Any, question: Any, progress: Progress = no_progress) -> Any:
        """Return what a verb says, with names spelled out. Nodes that a question brings are spelled, too."""
        added = getattr(question, "nodes", ())
        placement, query = self._spelled(requests, added)
        if added:
            spelled = _Spelling(self.hardware, self.fleet, Requests.of(requests), added)
            question = replace(question, add=tuple(spelled.node(node) for node in added))
        return placement.ask(verb, query, question, progress)

    def _spelled(self, requests: Any, added: Sequence[Node] = ()) -> tuple[Placement, Requests]:
        query = Requests.of(requests)
        spelled = _Spelling(self.hardware, self.fleet, query, added)
        platforms = list(spelled.platforms.items())
        sets = SimulatedSets(self.hardware, spelled.configs, platforms, self.standard)
        fleet = replace(self.fleet, nodes=tuple(spelled.node(n) for n in self.fleet.nodes))
        rows = tuple(None if row is None else spelled.request(row) for row in query.rows)
        return Placement(fleet, sets), replace(query, rows=rows)


class _Spelling:
    """Names that say all of what makes a latency, so that different ones are different workloads and
    platforms. configs, platforms: what they stand for."""

    def __init__(
        self, hardware: Hardware, fleet: Fleet, query: Requests, added: Sequence[Node]
    ) -> None:
        self.hardware = hardware
        nodes = [*fleet.nodes, *added]
        every = [*query.good, *(tenant for node in nodes for tenant in node.tenants)]
        configs = {config_text(one): hardware.sized(one) for one in every}
        self.configs = dict(sorted(configs.items()))
        self.platforms = {_platform(node): hardware.with_memory(node) for node in nodes}
        self._of_workload: dict[str, list[str]] = {}
        for text, config in self.configs.items():
            self._of_workload.setdefault(config.workload, []).append(text)
        self._of_platform: dict[str, list[str]] = {}
        for text, node in self.platforms.items():
            self._of_platform.setdefault(node.platform, []).append(text)

    def request(self, one: Request) -> Request:
        apart = [text for name in one.apart for text in (name, *self._of_workload.get(name, ()))]
        allowed = [
            text for name in one.allowed for text in (name, *self._of_platform.get(name, ()))
        ]
        sized = self.hardware.sized(one)
        return replace(sized, workload=config_text(one), apart=tuple(apart), allowed=tuple(allowed))

    def node(self, one: Node) -> Node:
        tenants = tuple(self.request(tenant) for tenant in one.tenants)
        sized = self.hardware.with_memory(one)
        return replace(sized, platform=_platform(one), tenants=tenants)


def _platform(node: Node) -> str:
    kind = "device" if node.platform == node.name else node.platform
    text = f"{kind} of {node.memory_bytes:g} bytes" if node.memory_bytes is not None else kind
    return f"{text} ({'; '.join(node.sharing)})" if node.sharing else text
