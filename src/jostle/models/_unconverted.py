"""Methods that do not obey the contract yet, until each is converted."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from jostle.methods import Data, Prepared, first_solo_runs

HOMES = {
    "alignment": ("jostle.alignment", "FittedAlignment"),
}


@dataclass(frozen=True)
class Unconverted:
    """An old method behind the new verbs."""

    method: Any

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def offers_choice(self) -> bool:
        return getattr(self.method, "offers_choice", True)

    def prepare(self, data: Data) -> Prepared:
        runs = data.runs_in_memory
        inputs = self.method.inputs(runs) if hasattr(self.method, "inputs") else None
        alone = first_solo_runs(runs) if getattr(self.method, "needs_alone", False) else None
        return Prepared.of(data, runs, inputs=inputs, required=alone)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> Any:
        return self.method.fit(
            prepared.in_memory, prepared.validation, seed=seed, progress=progress
        )


def restore(name: str, arrays: Any, document: Any) -> Any:
    home, kind = HOMES[name]
    return getattr(import_module(home), kind).from_arrays(arrays, document)
