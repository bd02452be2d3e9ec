"""Sets of workloads that share an accelerator, simulated from solo profiles, in the best way to share it.

A simulation is a prediction: where there is no model of measured co-runs, no bound is valid, and answers rest
on it only where the caller accepts predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from jostle._base.documents import unknown_sentences
from jostle.conformal import CALIBRATED
from jostle.data import Colocations, gpu_named
from jostle.errors import UnknownName, UsageError
from jostle.gpu import (
    HOPELESS,
    SIMULATED,
    WITHIN,
    Application,
    Device,
    DeviceTenant,
    LearnedRest,
    Objective,
    TenantSet,
    Wish,
    check_mode,
    within_limits,
)
from jostle.models import Model
from jostle.placement._promise import Standard
from jostle.placement.queries._fleet import Fleet, Node
from jostle.placement.queries._requests import Request
from jostle.placement.sets._set_bounds import SetBounds

DEFAULT_MODES = ("concurrent",)
MOST_WORKLOADS = 512  # different ones in one question, so that sets of six have keys


@dataclass(frozen=True)
class Hardware:
    """Simulator, profiles and rests that questions about accelerators use.

    applications: of solo profiles.
    device: theirs.
    modes: how nodes that do not say may be shared.
    seed: of arrivals at a rate.
    model: of measured co-runs on `device`.
    rest: what they say beyond a simulation.
    """

    applications: Mapping[str, Application]
    device: Device
    modes: tuple[str, ...] = DEFAULT_MODES
    seed: int = 0
    model: Model | None = None
    rest: LearnedRest | None = None
    known: dict[Any, TenantSet] = field(default_factory=dict, compare=False)

    def with_memory(self, node: Node) -> Node:
        """Return the node with the memory of its device, where it does not say."""
        device = None if node.memory_bytes is not None else self.device_of(node)
        return node if device is None else replace(node, memory_bytes=device.memory_bytes)

    def sized(self, one: Request) -> Request:
        """Return the request with the memory of its profile, where it does not say."""
        known = None if one.memory_bytes else self.applications.get(one.workload)
        return one if known is None else replace(one, memory_bytes=known.memory_bytes)

    def device_of(self, node: Node) -> Device | None:
        """Return the device that a platform's name stands for; the profiles' device if a node has no platform
        of its own; None for an unknown name."""
        if node.platform == node.name:
            return self.device
        try:
            return Device.of(
                gpu_named(node.platform), bus=self.device.bus, placement=self.device.placement
            )
        except UnknownName:
            return None


# What makes the latency of a request, and the limit that it has.
CONFIG = attrgetter(
    *("workload", "rate_per_second", "statistic", "pes_ratio", "memory_bytes"),
    *("deadline_seconds", "slowdown", "solo_seconds"),
)


def config_text(one: Request) -> str:
    """Write CONFIG in words, so that different ones are different workloads."""
    workload, rate, statistic, share, memory, deadline, slowdown, solo = CONFIG(one)
    text = workload
    text += f" at {rate:g}/s" if rate is not None else ""
    text += f", {statistic}" if statistic not in (None, "mean") else ""
    text += f", {100 * share:g}% of the PEs" if share is not None else ""
    text += f", {memory:g} bytes" if memory else ""
    text += f", {deadline:g} s" if deadline is not None else ""
    text += f", {slowdown:g}x" if slowdown is not None else ""
    return text + (f" of {solo:g} s" if solo is not None else "")


def wish_of(one: Request, application: Application) -> Wish:
    """Turn a request into what `within_limits` decides about. application: of its workload."""
    objective = None
    if one.has_objective:
        ratio, latency = one.slowdown, one.deadline_seconds
        if ratio is not None and one.solo_seconds is not None:
            allowed = ratio * one.solo_seconds
            ratio, latency = None, allowed if latency is None else min(latency, allowed)
        objective = Objective(ratio, latency, one.statistic or "mean")
    tenant = DeviceTenant(application, one.rate_per_second, one.pes_ratio, one.memory_bytes)
    return Wish(one.name, tenant, objective)


class SimulatedSets(SetBounds):
    """Bounds of sets by simulation, as SetBounds gives them by a model."""

    knows_services = True

    def __init__(
        self,
        hardware: Hardware,
        configs: Mapping[str, Request],
        nodes: Sequence[tuple[str, Node]],
        standard: Standard,
    ) -> None:
        """nodes: (platform's name here, such a node). Raises UsageError."""
        if len(configs) > MOST_WORKLOADS:
            raise UsageError(
                f"{len(configs)} different workloads in one question are too many",
                fix=f"Ask about {MOST_WORKLOADS} at once, or give alike ones the same limit.",
            )
        self.hardware, self.nodes = hardware, nodes
        self.configs = tuple(configs.values())
        self.model = hardware.model
        self.workload_names = tuple(configs)
        self.platform_names = tuple(name for name, _ in nodes)
        known = hardware.applications
        self.workload_code = {
            text: code for code, text in enumerate(configs) if configs[text].workload in known
        }
        self.devices = [hardware.device_of(node) for _, node in nodes]
        self.platform_code = {
            name: code
            for code, name in enumerate(self.platform_names)
            if self.devices[code] is not None
        }
        for code in self.platform_code.values():
            for mode in self._modes(code):
                device = self.devices[code]
                assert device is not None
                check_mode(device, mode)
        self._forget(standard)

    def unknown_names(self, requests: Sequence[Request], fleet: Fleet) -> tuple[str, ...]:
        """List workloads without a profile, by their own names, which are spelled out elsewhere here."""
        names = (one.workload for one in self.configs)
        return unknown_sentences("workload", names, self.hardware.applications)

    @property
    def most_members(self) -> float:
        return float("inf")

    def predicted(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray:
        seconds = np.full(members.shape, np.nan)
        for row, p, codes in _each(platform, members):
            seconds[row, members[row] >= 0] = self._simulated(p, codes)
        return seconds

    def solo(self, platforms: np.ndarray) -> np.ndarray:
        known, names = self.hardware.applications, [one.workload for one in self.configs]
        alone = [self._alone(name) if name in known else np.nan for name in names]
        return np.tile(alone, (len(platforms), 1))

    def _alone(self, name: str) -> float:
        rest = self.hardware.rest
        if rest is None:
            return self.hardware.applications[name].solo_seconds
        return rest.seconds(name)

    def arrangement(self, platform: int, members: Sequence[int], names: Sequence[str]) -> str:
        """Say how the members share the device. members: codes; names: what they are called."""
        order = sorted(range(len(members)), key=lambda n: members[n])
        way = self._best(platform, tuple(members[n] for n in order)).arrangement
        return "" if way is None else way.text([names[n] for n in order])

    def _own(
        self, platform: np.ndarray, members: np.ndarray, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        seconds, valid = np.full(members.shape, np.nan), np.zeros(members.shape, bool)
        for row, p, codes in _each(platform, members):
            here, bounds = members[row] >= 0, self._bounds(p, codes, confidence)[0]
            valid[row, here] = np.isfinite(bounds)
            rest = self._simulated(p, codes) if self.standard.takes_predictions else np.nan
            seconds[row, here] = np.where(valid[row, here], bounds, rest)
        return seconds, valid

    def _explained(
        self, platform: np.ndarray, members: np.ndarray, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        outcome = np.full(members.shape, "", object)
        for row, p, codes in _each(platform, members):
            outcome[row, members[row] >= 0] = self._bounds(p, codes, confidence)[1]
        return self.predicted(platform, members), outcome

    def _bounds(
        self, platform: int, codes: tuple[int, ...], level: float
    ) -> tuple[np.ndarray, list[str]]:
        """Return (k,) bounds from measured co-runs, infinite where none was like this, and their outcomes."""
        rest, way = self.hardware.rest, self._best(platform, codes).arrangement
        configs = [self.configs[code] for code in codes]
        if rest is None or way is None or not way.beside:
            return np.full(len(codes), np.inf), [SIMULATED] * len(codes)
        members = [
            (one.workload, beside, one.statistic or "mean")
            for one, beside in zip(configs, way.beside, strict=True)
        ]
        bounds = replace(rest, bound=partial(self._model_bound, level), confidence=level).bounds(
            members, is_like_runs=way.is_like_runs
        )
        good = [(s, o) if o in CALIBRATED else (np.inf, SIMULATED) for s, o in bounds]
        return np.array([s for s, _ in good]), [o for _, o in good]

    def _model_bound(self, level: float, asked: Colocations) -> Any:
        assert self.model is not None
        return self.model.bound(asked, level)

    def _simulated(self, platform: int, codes: tuple[int, ...]) -> np.ndarray:
        """Return (k,) seconds of each one's statistic, as it is held to the limit: infinite where there is no
        room for all, or where somebody without a limit is served slower than queries come."""
        found = self._best(platform, codes)
        held = np.array([one.held_seconds for one in found.times])
        late = any(one.held_seconds > one.limit_seconds for one in found.times)
        if found.arrangement is None or (found.verdict != WITHIN and not late):
            return np.full(len(codes), np.inf)
        solo = [self._alone(self.configs[code].workload) for code in codes]
        return np.where(np.isfinite(held), held, HOPELESS * np.array(solo))

    def _best(self, platform: int, codes: tuple[int, ...]) -> TenantSet:
        """Decide about a set, once."""
        device, node = self.devices[platform], self.nodes[platform][1]
        configs = [self.configs[code] for code in codes]
        key = repr(device), node.memory_bytes, self._modes(platform), tuple(map(CONFIG, configs))
        known = self.hardware.known
        if key not in known:
            assert device is not None
            known[key] = within_limits(
                [wish_of(one, self.hardware.applications[one.workload]) for one in configs],
                device,
                self._modes(platform),
                memory_bytes=node.memory_bytes,
                seed=self.hardware.seed,
                rest=self.hardware.rest,
            )
        return known[key]

    def _modes(self, platform: int) -> tuple[str, ...]:
        return self.nodes[platform][1].sharing or self.hardware.modes


def _each(platform: np.ndarray, members: np.ndarray) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Return (row, platform, codes of its members) of every set."""
    for row, (p, codes) in enumerate(zip(platform.tolist(), members.tolist(), strict=True)):
        yield row, p, tuple(code for code in codes if code >= 0)
