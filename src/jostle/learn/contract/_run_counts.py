"""How many runs stand behind an answer, counted once when a method learns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle._base.tensors import Serializable
from jostle.conformal import name_codes

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs

# Different sets of workloads, or pairs of workload and platform, past which they are not counted one by one.
MOST_SETS = 2_000_000
UNCOUNTED = -1


@dataclass(frozen=True)
class Evidence:
    """Counts of the runs behind n co-locations, each (n,) int64.

    workload: of the workload anywhere. beside: of the workload beside others. platform: on the platform.
    platform_beside: on the platform, of anything beside others. corunner: in which a co-runner took part
    beside others, as target or co-runner, the fewest of any; -1 alone. there, alone_there: of the workload
    on the platform, and of it alone there. same_set: of the same workloads on the same platform, whichever
    was measured. -1 where pairs of these, or sets, were too many to count.
    """

    workload: np.ndarray
    beside: np.ndarray
    platform: np.ndarray
    platform_beside: np.ndarray
    corunner: np.ndarray
    there: np.ndarray
    alone_there: np.ndarray
    same_set: np.ndarray

    def __len__(self) -> int:
        return len(self.workload)


@dataclass(frozen=True)
class RunCounts(Serializable):
    """Counts over the runs that were learned from, of w workloads and p platforms with at least one run.

    workload_runs, beside_runs, together_runs: (w,) as target, as target beside others, in any part beside
    others. platform_runs, platform_beside_runs: (p,) all, and those beside others. pair_keys: (c,) ascending
    keys of a workload and a platform. pair_runs: (c, 2) of it there, and of it alone there. set_keys,
    set_runs: (s,) ascending keys of platform and workloads.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workload_runs: np.ndarray
    beside_runs: np.ndarray
    together_runs: np.ndarray
    platform_runs: np.ndarray
    platform_beside_runs: np.ndarray
    pair_keys: np.ndarray
    pair_runs: np.ndarray
    set_keys: np.ndarray
    set_runs: np.ndarray

    @classmethod
    def of(cls, runs: Runs) -> RunCounts:
        """Count the runs with status ok."""
        return cls.of_coded(runs.ok().colocations)

    @classmethod
    def of_coded(cls, c: Colocations) -> RunCounts:
        """Count one run of each co-location."""
        beside = c.number_of_corunners > 0
        width, places = len(c.workload_names), len(c.platform_names)
        own = np.bincount(c.workload[beside], minlength=width)
        return cls(
            c.workload_names,
            c.platform_names,
            np.bincount(c.workload, minlength=width),
            own,
            own + np.bincount(c.corunner, minlength=width),
            np.bincount(c.platform, minlength=places),
            np.bincount(c.platform[beside], minlength=places),
            *_summed(_pair_keys(c), np.column_stack([np.ones(len(c), np.int64), ~beside])),
            *_summed(_set_keys(c), np.ones(len(c), np.int64)),
        )

    def without(self, workloads: Collection[str]) -> RunCounts:
        """Count as if none of these had run; what ran beside them stays counted."""
        gone = np.array([name in workloads for name in self.workload_names], bool)
        own = ("workload_runs", "beside_runs", "together_runs")
        return replace(self, **{name: np.where(gone, 0, getattr(self, name)) for name in own})

    def joined(self, other: RunCounts) -> RunCounts:
        """Add up the counts of both. Sets stay uncounted where either did not count them."""
        both = self, other
        workloads = tuple(sorted({*self.workload_names, *other.workload_names}))
        platforms = tuple(sorted({*self.platform_names, *other.platform_names}))
        counts = []
        for field in fields(self)[2:7]:
            kind, names = "workload", workloads
            if field.name.startswith("platform"):
                kind, names = "platform", platforms
            places = [_looked_up(getattr(part, f"{kind}_names"), names) for part in both]
            own = zip(both, places, strict=True)
            counts.append(sum(_at(getattr(part, field.name), place) for part, place in own))
        keyed: list[np.ndarray] = []
        for kind in ("pair", "set"):
            keys, runs = ([getattr(one, f"{kind}_{of}") for one in both] for of in ("keys", "runs"))
            known = zip(both, keys, strict=True)
            if any(one.workload_runs.any() and not len(key) for one, key in known):
                keyed += _none_counted(runs[0].shape[1:])
            else:
                keyed += _summed(np.concatenate(keys), np.concatenate(runs))
        return RunCounts(workloads, platforms, *counts, *keyed)

    def evidence(self, asked: Colocations) -> Evidence:
        """Count runs behind each co-location; for names without a run every count is 0."""
        counts = asked.number_of_corunners
        workload = _looked_up(self.workload_names, asked.workload_names)
        platform = _looked_up(self.platform_names, asked.platform_names)
        fewest = np.where(counts > 0, np.iinfo(np.int64).max, UNCOUNTED)
        together = _at(self.together_runs, workload)[asked.corunner]
        np.minimum.at(fewest, np.repeat(np.arange(len(asked)), counts), together)
        there = _found(self.pair_keys, self.pair_runs, _pair_keys(asked))
        return Evidence(
            _at(self.workload_runs, workload)[asked.workload],
            _at(self.beside_runs, workload)[asked.workload],
            _at(self.platform_runs, platform)[asked.platform],
            _at(self.platform_beside_runs, platform)[asked.platform],
            fewest,
            there[:, 0],
            there[:, 1],
            _found(self.set_keys, self.set_runs, _set_keys(asked)),
        )

    def runs_of_workloads(self, names: tuple[str, ...]) -> np.ndarray:
        """Return (names,) runs of each as target, 0 for a name without a run."""
        return _at(self.workload_runs, _looked_up(self.workload_names, names))


class FromCounts(Serializable):
    """Gives something fitted, a dataclass, its `evidence`, from the counts of the runs that it learned from,
    and `to_arrays` and `from_arrays`, from its fields."""

    counts: RunCounts

    def evidence(self, asked: Colocations) -> Evidence:
        """Count the runs learned from that tell of each co-location."""
        return self.counts.evidence(asked)


def _none_counted(width: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(0, np.uint64), np.zeros((0, *width), np.int64)


def _summed(keys: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum runs by key. Returns ((k,) different keys, ascending; (k, ...) runs); nothing if too many."""
    different, place = np.unique(keys, return_inverse=True)
    if len(different) > MOST_SETS:
        return _none_counted(runs.shape[1:])
    out = np.zeros((len(different), *runs.shape[1:]), np.int64)
    np.add.at(out, place.reshape(-1), runs)
    return different, out


def _found(keys: np.ndarray, runs: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return (n, ...) the runs of each key that is asked for, 0 for one without."""
    if not len(keys):
        return np.full((len(asked), *runs.shape[1:]), UNCOUNTED)
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    same = (keys[place] == asked).reshape(-1, *[1] * (runs.ndim - 1))
    return np.where(same, runs[place], 0)


def _looked_up(known: tuple[str, ...], names: tuple[str, ...]) -> np.ndarray:
    from jostle.data import places_of

    place = places_of(known)
    return np.array([place.get(name, -1) for name in names], np.int64)


def _at(counts: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Look up the count of each code, 0 for one that is not known."""
    return np.where(code >= 0, np.append(counts, 0)[code], 0)


def _set_keys(c: Colocations) -> np.ndarray:
    """Return (n,) uint64, equal for the same workloads on the same platform, whichever is the target."""
    key, member = _pair_keys(c), _hashes(c.workload_names)
    np.add.at(key, np.repeat(np.arange(len(c)), np.diff(c.corunner_offsets)), member[c.corunner])
    return mixed_bits(key)


def _pair_keys(c: Colocations) -> np.ndarray:
    """Return (n,) uint64, equal for the same workload on the same platform."""
    return _hashes(c.workload_names)[c.workload] + mixed_bits(_hashes(c.platform_names))[c.platform]


def _hashes(names: tuple[str, ...]) -> np.ndarray:
    """Return (names,) uint64, the same in every process."""
    return mixed_bits(name_codes(names).view(np.uint64))


def mixed_bits(value: np.ndarray) -> np.ndarray:
    """Spread the bits of integers over all 64 (splitmix64, Steele et al. 2014), so that sums rarely
    collide."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
