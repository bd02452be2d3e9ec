"""Samples and helpers for tests of learned, and for others that need them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jostle.data import GPUS, Colocations, Profile, Runs, tasks_from_rows
from jostle.gpu import Application, Device
from jostle.learn.learners.simulation._delays import Delays, Sharing

NAMES = tuple(f"w{number}" for number in range(8))


WAY = Sharing("time-sliced", "shared", "since start")


def profiles() -> dict[str, Profile]:
    """Copies and kernels of different lengths, the first after a while of its own."""
    random = np.random.default_rng(0)
    shape = {"blocks": 160, "threads_per_block": 256, "registers_per_thread": 32}
    found = {}
    for name in NAMES:
        rows, at = [], float(random.uniform(0.05, 0.4))
        for kind in random.permutation(["htod", "kernel", "kernel", "dtoh"]):
            seconds = float(random.uniform(0.05, 0.4))
            row = {"kind": kind, "start_seconds": at, "duration_seconds": seconds}
            rows.append({**row, **(shape if kind == "kernel" else {"pinned": False})})
            at += seconds + 0.02
        found[name] = tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"])
    return found


def applications() -> tuple[Application, ...]:
    return tuple(Application.from_profile(profile) for profile in profiles().values())


def world(way: Sharing, platforms: tuple[str, ...] = ("v100",), noise: float = 0.005) -> Runs:
    """Every pair both ways and every workload alone, 0.4 s of host work before the trace, plus the delay as
    simulated in one way."""
    random = np.random.default_rng(1)
    delays = Delays(applications(), Device.of(GPUS["V100"]))
    w = len(NAMES)
    target, other = np.nonzero(~np.eye(w, dtype=bool))
    delay = delays.of(way, target, np.eye(w)[other])
    solo = np.array([0.4 + a.solo_seconds for a in delays.applications])
    seconds = np.concatenate([solo, solo[target] + 0.1 + delay])
    names = [*NAMES, *(NAMES[t] for t in target)]
    beside = [*([] for _ in NAMES), *([NAMES[o]] for o in other)]
    return Runs.from_columns(
        workload=names * len(platforms),
        platform=[place for place in platforms for _ in names],
        corunners=beside * len(platforms),
        runtime_seconds=np.tile(seconds, len(platforms))
        * np.exp(random.normal(0, noise, len(names) * len(platforms))),
    )


def simulated_seconds(
    applications: Mapping[str, Application], device: Device, sharing: str, asked: Colocations
) -> np.ndarray:
    """(n,) seconds by the simulator, nothing learned: one run of the workload, as long as its trace, its
    co-runners repeating. Raises UnknownName for a workload without an application."""
    names = tuple(applications)
    target, _, corunner = asked.codes_in(names, asked.platform_names)
    beside = np.zeros((len(asked), len(names)))
    np.add.at(beside, (np.repeat(np.arange(len(asked)), asked.number_of_corunners), corunner), 1)
    delays = Delays(tuple(applications.values()), device)
    way = Sharing(sharing, device.bus, "repeating")
    return delays.alone(way)[target] + delays.of(way, target, beside)
