"""MadeNames campaigns: runs alone, in pairs and in larger sets, whose slowdowns follow one of the laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jostle.data import Runs
from studies.worlds import slowdown_laws as laws
from studies.worlds.slowdown_laws import TRAITS, MadeNames, Slowdown

PAIR_ROWS = 800  # of a campaign, about, whatever its platforms and repeats
# Sets of so many programs, over the number of pairs.
LARGER_SETS = {3: 0.25, 4: 0.12, 5: 0.08, 6: 0.05, 7: 0.05, 8: 0.05}
MEASURED = 0.85  # of the sets, on each platform
CAMPAIGNS = 5


@dataclass(frozen=True)
class MadeWorld:
    """A law and what is measured of it. features: `informative` (three of four traits, blurred, and the
    platform's own), `idle` (numbers that tell nothing) or none. noise: spread of the log runtime, or heavy
    tails. campaigns: whether every fifth of the windows was measured on another day, on which all is slower
    or faster."""

    law: Literal[
        "adding",
        "strongest",
        "product",
        "saturating",
        "once",
        "helping",
        "free_signs",
        "threshold",
        "fair_slices",
        "signs_of_platforms",
        "ranks",
        "shared_bus",
        "nothing",
    ]
    programs: int
    platforms: int
    repeats: int = 1
    features: Literal["informative", "idle", "none"] = "none"
    noise: float | Literal["heavy"] = 0.02
    campaigns: bool = False
    probes: int = 0

    def runs(self, seed: int) -> Runs:
        """Drawn with the seed: law, sets and noise."""
        random = np.random.default_rng([seed, *self.law.encode(), self.programs])
        traits = random.normal(size=(self.programs, TRAITS))
        made = MadeNames(random, traits, random.normal(size=self.platforms))
        law: Slowdown = getattr(laws, self.law)(made)
        windows = self._windows(random)
        rows = [
            (number, p, members[at], members[:at] + members[at + 1 :])
            for number, (p, members) in enumerate(windows)
            for at in range(len(members))
        ]
        log_solo = random.normal(size=self.programs) + 0.3 * random.normal(size=made.shape)
        slow = [law(p, i, np.array(others)) if others else 1.0 for _, p, i, others in rows]
        window = np.array([number for number, *_ in rows])
        logs = np.log(slow) + log_solo[[p for _, p, *_ in rows], [i for *_, i, _ in rows]]
        if self.noise == "heavy":
            logs += laws.heavy_tails(made, len(rows))
        else:
            logs += self.noise * random.normal(size=len(rows))
        day = random.integers(0, CAMPAIGNS, len(windows))[window] if self.campaigns else None
        if day is not None:
            logs += 0.08 * random.normal(size=CAMPAIGNS)[day]
        names = [f"program-{i}" for i in random.permutation(self.programs)]
        names[: self.probes] = [f"probe-{i}" for i in range(self.probes)]
        places = [f"machine-{p}" for p in random.permutation(self.platforms)]
        return Runs.from_columns(
            workload=[names[i] for _, _, i, _ in rows],
            platform=[places[p] for _, p, _, _ in rows],
            corunners=[[names[j] for j in others] for *_, others in rows],
            runtime_seconds=np.exp(logs),
            window_id=[f"window-{number}" for number in window],
            campaign=None if day is None else [f"day-{number}" for number in day],
            **self._features(made, names, places),
        )

    def _windows(self, random: np.random.Generator) -> list[tuple[int, tuple[int, ...]]]:
        """(platform, programs side by side), each set as often as it is repeated. All platforms are offered
        the same sets."""
        sets: list[tuple[int, ...]] = [(i,) for i in range(self.programs)]
        every = [(i, j) for i in range(self.programs) for j in range(i, self.programs)]
        pairs = min(len(every), round(PAIR_ROWS / (2 * self.platforms * self.repeats * MEASURED)))
        sets += [every[k] for k in random.permutation(len(every))[:pairs]]
        for size, share in LARGER_SETS.items():
            drawn = np.sort(random.integers(0, self.programs, (round(share * pairs), size)), 1)
            sets += [tuple(members) for members in np.unique(drawn, axis=0).tolist()]
        return [
            (p, members)
            for p in range(self.platforms)
            for members in sets
            if len(members) == 1 or random.random() < MEASURED
            for _ in range(self.repeats)
        ]

    def _features(self, made: MadeNames, names: list[str], places: list[str]) -> dict[str, Any]:
        if self.features == "none":
            return {}
        own, there = made.traits[:, :3], made.machines[:, None]
        if self.features == "idle":
            own, there = made.random.normal(size=own.shape), made.random.normal(size=there.shape)
        own = own + 0.2 * made.random.normal(size=own.shape)
        return {
            "workload_features": {
                "workload": names,
                **{f"number_{k}": own[:, k] for k in range(own.shape[1])},
            },
            "platform_features": {"platform": places, "speed": there[:, 0]},
        }


WORLDS: dict[str, MadeWorld] = {
    "adding": MadeWorld("adding", 24, 3),
    "strongest": MadeWorld("strongest", 20, 2, repeats=2),
    "product": MadeWorld("product", 30, 2, features="informative"),
    "saturating": MadeWorld("saturating", 16, 4),
    "once": MadeWorld("once", 24, 2, repeats=2, noise=0.03),
    "helping": MadeWorld("helping", 20, 3),
    "free-signs": MadeWorld("free_signs", 24, 2, features="idle"),
    "threshold": MadeWorld("threshold", 40, 3, features="informative"),
    "fair-slices": MadeWorld("fair_slices", 18, 2, repeats=3),
    "heavy-tails": MadeWorld("product", 20, 2, repeats=3, noise="heavy"),
    "signs": MadeWorld("signs_of_platforms", 20, 4),
    "campaigns": MadeWorld("adding", 20, 2, repeats=2, campaigns=True),
    "probed": MadeWorld("shared_bus", 20, 2, repeats=2, probes=4),
    "ranks": MadeWorld("ranks", 30, 1, repeats=2, features="informative"),
    "shared-bus": MadeWorld("shared_bus", 12, 4, repeats=2, noise=0.01),
    "nothing": MadeWorld("nothing", 20, 2, repeats=2, features="idle", noise=0.03),
}
