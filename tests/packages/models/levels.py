"""A quick method that answers about names with features alone: levels of workloads and platforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.data import Colocations, Runs, all_names
from jostle.learn import FromCounts, Prepared, RunCounts


@dataclass(frozen=True)
class Levels:
    """The log runtime as a sum of levels, each shrunken towards what the one numeric feature says."""

    name: ClassVar[str] = "levels"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    def prepare(self, data: Any) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> FittedLevels:
        runs = prepared.runs
        names = all_names(prepared.runs)
        workload, platform, _ = runs.colocations.recode(*names)
        beside = runs.colocations.number_of_corunners > 0
        tables = (
            (runs.workload_features, "workload", "size"),
            (runs.platform_features, "platform", "speed"),
        )
        features = [
            np.array([dict(_column(*table)).get(name, 0.0) for name in known])
            for table, known in zip(tables, names, strict=True)
        ]
        # Columns: one, the features, beside others, then a level for each name, with a penalty of its own.
        m = [len(known) for known in names]
        x = np.zeros((len(runs), 4 + sum(m)))
        x[:, 0], x[:, 3] = 1.0, beside
        x[:, 1], x[:, 2] = features[0][workload], features[1][platform]
        rows = np.arange(len(runs))
        x[rows, 4 + workload] = 1.0
        x[rows, 4 + m[0] + platform] = 1.0
        penalty = np.diag([1e-9] * 4 + [0.5] * sum(m))
        found = np.linalg.solve(x.T @ x + penalty, x.T @ np.log(runs.runtime_seconds))
        level_w = found[1] * features[0] + found[4 : 4 + m[0]]
        level_p = found[2] * features[1] + found[4 + m[0] :]
        effects = np.array([found[0], found[3]])
        return FittedLevels(names, level_w, level_p, effects, RunCounts.of(runs))

    @classmethod
    def restore(cls, arrays: Any, document: Any) -> FittedLevels:
        names = tuple(document["workloads"]), tuple(document["platforms"])
        of_w, of_p, effects = (arrays[name] for name in ("of_w", "of_p", "effects"))
        return FittedLevels(names, of_w, of_p, effects, RunCounts.from_arrays(arrays, document))


def _column(table: Any, key: str, column: str) -> Any:
    if table is None:
        return []
    return zip(table.column(key).to_pylist(), table.column(column).to_pylist(), strict=True)


class FittedLevels(FromCounts):
    notes = ()

    def __init__(
        self, names: Any, of_w: np.ndarray, of_p: np.ndarray, effects: np.ndarray, counts: RunCounts
    ) -> None:
        self.workload_names, self.platform_names = names
        self.of_w, self.of_p, self.effects, self.counts = of_w, of_p, effects, counts

    def predict(self, asked: Colocations) -> np.ndarray:
        workload, platform, _ = asked.codes_in(self.workload_names, self.platform_names)
        beside = self.effects[1] * (asked.number_of_corunners > 0)
        return np.exp(self.effects[0] + self.of_w[workload] + self.of_p[platform] + beside)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, document = self.counts.to_arrays()
        arrays |= {"of_w": self.of_w, "of_p": self.of_p, "effects": self.effects}
        names = {"workloads": list(self.workload_names), "platforms": list(self.platform_names)}
        return arrays, document | names


def campaign(workloads: int = 24, platforms: int = 12, seed: int = 0) -> Runs:
    """Every workload on every platform, alone and beside another; features tell the levels but for noise."""
    random = np.random.default_rng(seed)
    w, p = np.divmod(np.arange(workloads * platforms), platforms)
    level_w, level_p = random.normal(size=workloads), random.normal(size=platforms)
    noise = random.normal(size=(2, len(w))) * 0.05
    beside = random.integers(0, workloads, len(w))
    alone = level_w[w] + level_p[p] + noise[0]
    together = level_w[w] + level_p[p] + 0.2 + noise[1]
    return Runs.from_columns(
        workload=[f"w{i:02}" for i in np.concatenate([w, w])],
        platform=[f"p{i:02}" for i in np.concatenate([p, p])],
        corunners=[[]] * len(w) + [[f"w{i:02}"] for i in beside],
        runtime_seconds=np.exp(np.concatenate([alone, together])),
        workload_features={
            "workload": [f"w{i:02}" for i in range(workloads)],
            "size": level_w + random.normal(size=workloads) * 0.3,
        },
        platform_features={
            "platform": [f"p{i:02}" for i in range(platforms)],
            "speed": level_p + random.normal(size=platforms) * 0.3,
            "kind": ["old" if i % 2 else "new" for i in range(platforms)],
        },
    )
