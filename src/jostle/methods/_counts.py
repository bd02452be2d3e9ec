"""How many runs stand behind an answer, counted once when a method learns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle._tensors import Serializable
from jostle.bounds import name_codes

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs, StoredRuns

MOST_SETS = 2_000_000  # different sets of workloads past which they are not counted one by one
UNCOUNTED = -1


@dataclass(frozen=True)
class Evidence:
    """Of n co-locations, how many runs were learned from, each (n,) int64.

    workload: of the workload anywhere. beside: of the workload beside others. platform: on the platform.
    platform_beside: on the platform, of anything beside others. corunner: in which a co-runner took part
    beside others, as target or co-runner, the fewest of any; -1 alone. same_set: of the same workloads on
    the same platform, whichever was measured; -1 where sets were too many to count.
    """

    workload: np.ndarray
    beside: np.ndarray
    platform: np.ndarray
    platform_beside: np.ndarray
    corunner: np.ndarray
    same_set: np.ndarray

    def __len__(self) -> int:
        return len(self.workload)


@dataclass(frozen=True)
class RunCounts(Serializable):
    """Counts over the runs that were learned from, of w workloads and p platforms with at least one run.

    workload_runs, beside_runs, together_runs: (w,) as target, as target beside others, in any part beside
    others. platform_runs, platform_beside_runs: (p,) all, and those beside others. set_keys, set_runs:
    (s,) ascending keys of platform and workloads.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workload_runs: np.ndarray
    beside_runs: np.ndarray
    together_runs: np.ndarray
    platform_runs: np.ndarray
    platform_beside_runs: np.ndarray
    set_keys: np.ndarray
    set_runs: np.ndarray

    @classmethod
    def of(cls, runs: Runs | StoredRuns) -> RunCounts:
        """Of the runs with status ok, or of runs on disk, whose sets are not counted."""
        from jostle.runs import StoredRuns

        if isinstance(runs, StoredRuns):
            return cls._of_stored(runs)
        return cls.of_coded(runs.ok().colocations)

    @classmethod
    def of_coded(cls, c: Colocations) -> RunCounts:
        """Of one run of each co-location."""
        keys, times = np.unique(_set_keys(c), return_counts=True)
        if len(keys) > MOST_SETS:
            keys, times = _no_sets()
        return cls(
            c.workload_names,
            c.platform_names,
            *_counted(len(c.workload_names), [(c.workload, c.corunner, c.number_of_corunners > 0)]),
            np.bincount(c.platform, minlength=len(c.platform_names)),
            np.bincount(c.platform[c.number_of_corunners > 0], minlength=len(c.platform_names)),
            keys,
            times.astype(np.int64),
        )

    @classmethod
    def _of_stored(cls, runs: StoredRuns) -> RunCounts:
        w, p = len(runs.workload_names), len(runs.platform_names)
        parts, platforms = [], []
        for part, beside in ((runs.alone, False), (runs.beside, True)):
            parts.append((part.workload, part.corunner, np.full(len(part), beside)))
            platforms.append(np.bincount(part.platform, minlength=p))
        alone, beside = platforms
        return cls(
            runs.workload_names,
            runs.platform_names,
            *_counted(w, parts),
            alone + beside,
            beside,
            *_no_sets(),
        )

    def joined(self, other: RunCounts) -> RunCounts:
        """Of the runs of both. Sets stay uncounted where either did not count them."""
        names = {
            "workload": tuple(sorted({*self.workload_names, *other.workload_names})),
            "platform": tuple(sorted({*self.platform_names, *other.platform_names})),
        }
        places = [
            {
                "workload": _looked_up(part.workload_names, names["workload"]),
                "platform": _looked_up(part.platform_names, names["platform"]),
            }
            for part in (self, other)
        ]

        def total(name: str, kind: str) -> np.ndarray:
            parts = zip((self, other), places, strict=True)
            return sum(
                (_at(getattr(part, name), place[kind]) for part, place in parts),
                np.zeros(len(names[kind]), np.int64),
            )

        uncounted = any(not len(one.set_keys) and one.workload_runs.any() for one in (self, other))
        keys, inverse = np.unique(
            np.concatenate([self.set_keys, other.set_keys]), return_inverse=True
        )
        runs = np.bincount(
            inverse.reshape(-1), np.concatenate([self.set_runs, other.set_runs]), len(keys)
        )
        if uncounted or len(keys) > MOST_SETS:
            keys, runs = _no_sets()
        return RunCounts(
            names["workload"],
            names["platform"],
            total("workload_runs", "workload"),
            total("beside_runs", "workload"),
            total("together_runs", "workload"),
            total("platform_runs", "platform"),
            total("platform_beside_runs", "platform"),
            keys,
            runs.astype(np.int64),
        )

    def evidence(self, asked: Colocations) -> Evidence:
        """For names without a run every count is 0."""
        counts = np.diff(asked.corunner_offsets)
        workload = _looked_up(self.workload_names, asked.workload_names)
        platform = _looked_up(self.platform_names, asked.platform_names)
        together = _at(self.together_runs, workload)
        fewest = np.full(len(asked), np.iinfo(np.int64).max)
        np.minimum.at(fewest, np.repeat(np.arange(len(asked)), counts), together[asked.corunner])
        if len(self.set_keys):
            keys = _set_keys(asked)
            place = np.minimum(np.searchsorted(self.set_keys, keys), len(self.set_keys) - 1)
            same = np.where(self.set_keys[place] == keys, self.set_runs[place], 0)
        else:
            same = np.full(len(asked), UNCOUNTED)
        return Evidence(
            _at(self.workload_runs, workload)[asked.workload],
            _at(self.beside_runs, workload)[asked.workload],
            _at(self.platform_runs, platform)[asked.platform],
            _at(self.platform_beside_runs, platform)[asked.platform],
            np.where(counts > 0, fewest, UNCOUNTED),
            same.astype(np.int64),
        )

    def runs_of_workloads(self, names: tuple[str, ...]) -> np.ndarray:
        """(names,) runs of each as target, 0 for a name without a run."""
        return _at(self.workload_runs, _looked_up(self.workload_names, names))


class FromCounts(Serializable):
    """Gives something fitted, a dataclass, its `evidence`, from the counts of the runs that it learned from,
    and `to_arrays` and `from_arrays`, from its fields."""

    counts: RunCounts

    def evidence(self, asked: Colocations) -> Evidence:
        """How many runs were learned from that tell of each co-location."""
        return self.counts.evidence(asked)


def _no_sets() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(0, np.uint64), np.zeros(0, np.int64)


def _counted(
    width: int, parts: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((w,) as target, beside others, in any part beside others) of (targets, co-runners, has any)."""
    every, beside, together = (np.zeros(width, np.int64) for _ in range(3))
    for workload, corunner, accompanied in parts:
        every += np.bincount(workload, minlength=width)
        mine = np.bincount(workload[accompanied], minlength=width)
        beside += mine
        together += mine + np.bincount(corunner, minlength=width)
    return every, beside, together


def _looked_up(known: tuple[str, ...], names: tuple[str, ...]) -> np.ndarray:
    from jostle.runs import places_of

    place = places_of(known)
    return np.array([place.get(name, -1) for name in names], np.int64)


def _at(counts: np.ndarray, code: np.ndarray) -> np.ndarray:
    """The count of each code, 0 for one that is not known."""
    return np.where(code >= 0, np.append(counts, 0)[code], 0)


def _set_keys(c: Colocations) -> np.ndarray:
    """(n,) uint64, equal for the same workloads on the same platform, whichever is the target."""
    member, place = _hashes(c.workload_names), _hashes(c.platform_names)
    key = member[c.workload] + mixed_bits(place)[c.platform]
    np.add.at(key, np.repeat(np.arange(len(c)), np.diff(c.corunner_offsets)), member[c.corunner])
    return mixed_bits(key)


def _hashes(names: tuple[str, ...]) -> np.ndarray:
    """(names,) uint64, the same in every process."""
    return mixed_bits(name_codes(names).view(np.uint64))


def mixed_bits(value: np.ndarray) -> np.ndarray:
    """Bits spread over the whole number (splitmix64, Steele et al. 2014), so that sums rarely collide."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
