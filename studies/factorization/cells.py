"""One cell of the protocol: a method fitted on one draw of one share, and what it is worth."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studies.cells import file_name
from studies.factorization.comparisons import NamedMethod

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.data import Runs

SCHEMA = "protocol/v1"


@dataclass(frozen=True)
class ProtocolCell:
    """One fit. data: version of the dataset. by: the split draws a `row` or a `window`."""

    variant: NamedMethod
    observed: float
    replicate: int
    seed: int
    by: str
    data: str

    @property
    def file_name(self) -> str:
        """Equal for equal cells only, whatever the comparison: a method's name is not what it is."""
        from jostle import __version__

        method = self.variant.method
        kind = re.sub(r"[^a-z0-9]+", "-", method.name.lower())
        parts = (SCHEMA, __version__, self.data, self.by, self.seed, self.observed, self.replicate)
        return file_name(f"{kind}-{self.observed:g}-{self.replicate}", (*parts, method))

    def measure(self, data: Runs, clock: Callable[[], float] = time.perf_counter) -> pa.Table:
        """Tidy rows: see docs/factorization.md."""
        import pyarrow as pa

        from studies.factorization.measures import measure_fit
        from studies.splits import observed_split

        seed = self.seed + self.replicate
        split = observed_split(data, self.observed, seed, self.by)
        rows = measure_fit(data, self.variant.method, split, seed, clock)
        same: dict[str, Any] = {
            "observed": self.observed,
            "replicate": self.replicate,
            "seed": self.seed,
            "split_by": self.by,
            "settings": repr(self.variant.method),
        }
        columns = {name: [value] * len(rows) for name, value in same.items()}
        columns |= {name: [row[name] for row in rows] for name in rows[0]}
        return pa.table(columns).replace_schema_metadata({"schema": SCHEMA})
