"""Devices whose law is known: eight workloads with profiles that do not show all that contention costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jostle.data import GPUS, Profile, Runs, tasks_from_rows
from jostle.gpu import Application, Device, Tenant, applications_of, simulate

WORKLOADS, NOISE, QUERIES = 8, 0.02, 50


@dataclass(frozen=True)
class MadeDevice:
    """sharing, bus: of kernels and transfers. host_ratio: of a run alone, before its trace. law: what
    contention adds that no trace shows, none, sum, cliff or number."""

    name: str
    sharing: str
    bus: str
    host_ratio: float
    law: str
    seed: int

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        random = np.random.default_rng([self.seed, 1])
        made = {}
        for number in range(WORKLOADS):
            rows, at = [], 0.01
            for kind in ("htod", *["kernel"] * int(random.integers(2, 6)), "dtoh"):
                seconds = float(random.lognormal(-4.0 if kind == "kernel" else -5.5, 0.7))
                shape = {"threads_per_block": 256, "registers_per_thread": 32}
                shape |= {"blocks": int(random.integers(40, 640))}
                row = {"kind": kind, "start_seconds": at, "duration_seconds": seconds}
                rows.append({**row, **(shape if kind == "kernel" else {"pinned": False})})
                at += seconds + float(random.uniform(0, 0.01))
            name = f"w{number}"
            made[name] = tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"])
        return made

    @cached_property
    def applications(self) -> dict[str, Application]:
        return applications_of(self.profiles)[0]

    def really(self, name: str, beside: Sequence[str]) -> Application:
        """The application as this company slows it down, with its work on the host."""
        random = np.random.default_rng([self.seed, 2])
        pull, push = random.uniform(0.05, 0.3, (2, WORKLOADS))
        weight = [push[int(other[1:])] for other in beside]
        mine = pull[int(name[1:])]
        extra = {
            "none": 0.0,
            "sum": 4 * mine * sum(weight),
            "cliff": 0.4 * (sum(weight) + mine > 0.45),
            "number": 0.05 * len(beside) ** 1.5,
        }[self.law]
        app = self.applications[name]
        gaps = app.columns.gap_seconds.copy()
        gaps[0] += self.host_ratio * app.solo_seconds
        seconds = (1 + extra) * app.columns.seconds
        return Application(name, replace(app.columns, seconds=seconds, gap_seconds=gaps))

    def latency(self, members: Sequence[str]) -> np.ndarray:
        """(k,) s of each member's mean over QUERIES, one after the other, while the others go on."""
        others = [[*members[:n], *members[n + 1 :]] for n in range(len(members))]
        apps = [self.really(*one) for one in zip(members, others, strict=True)]
        device = replace(Device.of(GPUS["V100"]), bus=self.bus)
        values = []
        for n, app in enumerate(apps):
            tenants = [Tenant(app, QUERIES)]
            for k, other in enumerate(apps):
                if k != n:
                    start = other.solo_seconds * ((0.618 * k) % 1)
                    tenants.append(Tenant(other, None, start_seconds=start))
            values.append(simulate(tenants, device, self.sharing).latencies[0].mean())
        return np.array(values)

    def runs(self, sets: Sequence[Sequence[str]], random: np.random.Generator) -> Runs:
        """A run of each member of each set, noise on top."""
        rows = [
            (name, [*members[:n], *members[n + 1 :]], seconds, f"set{number}")
            for number, members in enumerate(sets)
            for n, (name, seconds) in enumerate(zip(members, self.latency(members), strict=True))
        ]
        noise = np.exp(random.normal(0, NOISE, len(rows)))
        return Runs.from_columns(
            workload=[row[0] for row in rows],
            platform=["made"] * len(rows),
            corunners=[row[1] for row in rows],
            runtime_seconds=np.array([row[2] for row in rows]) * noise,
            window_id=[row[3] for row in rows],
        )


MADE = (
    MadeDevice("side by side", "concurrent", "per_direction", 0.3, "none", 1),
    MadeDevice("time slices", "time-sliced", "shared", 0.1, "none", 2),
    MadeDevice("caches", "concurrent", "shared", 0.2, "sum", 3),
    MadeDevice("one by one", "sequential", "per_direction", 0.0, "number", 4),
    MadeDevice("a capacity", "concurrent", "per_direction", 0.5, "cliff", 5),
)
