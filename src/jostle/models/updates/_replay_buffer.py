"""The runs that a model keeps to learn more later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn import KeptRuns

if TYPE_CHECKING:
    from jostle.data import Runs

MOST_IDS = 2_000_000  # of runs, the last ones, by which a model knows them again


@dataclass(frozen=True, eq=False)
class ReplayBuffer(Serializable):
    """Runs that a model keeps for updates. learned: a sample of the runs that a model has learned from, or
    all of them where `is_whole`, for a method that is fitted to them again. calibration: those that its
    bounds were calibrated on, in the order of its scores. ids: (n,) int64 hashes of the run_id of every run
    that it was fitted to or was taught, None of a model whose fit kept none."""

    learned: KeptRuns
    calibration: KeptRuns
    is_whole: bool = False
    ids: np.ndarray | None = None

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], document: Any) -> ReplayBuffer:
        return super().from_arrays(arrays, {"ids": None, **document})

    @classmethod
    def of(cls, learned: Runs, calibration: Runs, unit: str, seed: int) -> ReplayBuffer:
        ids = _ids_of(learned, calibration)
        return cls(KeptRuns.of(learned, unit).sampled(seed), _plain(calibration, unit), ids=ids)

    @classmethod
    def all_of(cls, learned: Runs, calibration: Runs, unit: str) -> ReplayBuffer:
        ids = _ids_of(learned, calibration)
        return cls(KeptRuns.of(learned, unit), _plain(calibration, unit), is_whole=True, ids=ids)

    def unknown(self, runs: Runs) -> Runs:
        """Keep the runs that have taught the model nothing yet."""
        if self.ids is None:
            return runs
        return runs.take(np.flatnonzero(~np.isin(_hashed(runs), self.ids)))

    def knowing(self, runs: Runs) -> ReplayBuffer:
        """Add these runs to the known ones."""
        before = np.zeros(0, np.int64) if self.ids is None else self.ids
        return replace(self, ids=np.append(before, _ids_of(runs))[-MOST_IDS:])

    def with_more(
        self, learned: KeptRuns, calibration: KeptRuns, seed: int, most: int
    ) -> ReplayBuffer:
        """Return the buffer after an update that learned some runs and calibrated on others, of which the
        last `most` of each number of co-runners stay."""
        more = self.learned.joined(learned)
        more = more if self.is_whole else more.sampled(seed)
        every = self.calibration.joined(calibration.without_features())
        return replace(self, learned=more, calibration=_last(every, most))


def _hashed(runs: Runs) -> np.ndarray:
    """Hash each run_id to (n,) int64."""
    ids = runs.table.column("run_id").to_pylist()
    digests = [hashlib.blake2b(one.encode(), digest_size=8).digest() for one in ids]
    return np.frombuffer(b"".join(digests), "<i8")


def _ids_of(*parts: Runs) -> np.ndarray:
    """Hash the ids of runs that teach something: failed ones may come again with a time."""
    return np.concatenate([_hashed(runs.ok()) for runs in parts])[-MOST_IDS:]


def _plain(runs: Runs, unit: str) -> KeptRuns:
    """Drop the features, which are those of the runs learned from."""
    return KeptRuns.of(runs, unit).without_features()


def _last(runs: KeptRuns, most: int) -> KeptRuns:
    """Keep at most so many of each number of co-runners, the last ones, and units only as a whole."""
    degree, unit = runs.colocations.number_of_corunners, runs.unit
    late = np.zeros(len(runs), bool)
    for d in np.unique(degree).tolist():
        at = np.flatnonzero(degree == d)
        late[at[:-most]] = True
    if not late.any():
        return runs
    return runs.take(np.flatnonzero(~np.isin(unit, unit[late])))
