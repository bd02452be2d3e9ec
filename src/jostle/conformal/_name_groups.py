"""Names in groups, for a guarantee within each group rather than over all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

OTHER = "names without a group"


@dataclass(frozen=True)
class Groups:
    """Groups of names, within each of which a promise holds.

    of: `workload` or `platform`. feature: the column that names were grouped by; "" for each name its own.
    labels: sorted. code: the number of each known name's label; a name that is not known has none.
    """

    of: str
    feature: str
    labels: tuple[str, ...]
    code: Mapping[str, int]

    @classmethod
    def by(cls, of: str, feature: str, label_of: Mapping[str, str]) -> Groups:
        """Group names by their labels.

        label_of: the label of each name.
        """
        labels = tuple(sorted(set(label_of.values())))
        place = {label: number for number, label in enumerate(labels)}
        return cls(of, feature, labels, {name: place[label] for name, label in label_of.items()})

    def codes(self, asked: Any) -> np.ndarray:
        """Return the group of names of each co-location, (n,) int64; -1 without one."""
        names = asked.workload_names if self.of == "workload" else asked.platform_names
        place = asked.workload if self.of == "workload" else asked.platform
        return np.array([self.code.get(name, -1) for name in names], np.int64)[place]

    def label(self, code: int) -> str:
        """Return the label of a group by its number."""
        return self.labels[code] if code >= 0 else OTHER
