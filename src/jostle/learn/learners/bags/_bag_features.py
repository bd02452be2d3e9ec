"""Features of a co-location: the workload's own, and its co-runners' pooled in no order.

Moolchandani et al. replicate the vector for two applications and leave more open.

Of every number a workload has, a row holds its own value, and the sum and the largest of the
co-runners' values. Of a bag it holds the number of co-runners and the fairness (Eq. 2). Groups:

- ``solo``: seconds alone on the platform of the row (the paper's GPU_time), and how many cores it is on
  meanwhile, where runs alone tell their CPU time;
- ``cpu``: seconds alone on the CPU platform (CPU_time);
- ``fairness``: least over greatest slowdown in the bag on the CPU platform, where the bag ran there;
- ``mix``: workload features whose name begins with `mix_`: the instruction mix; where there is none, it is
  made from the counts of executed instructions (see `_mix`), which are then left out themselves;
- ``other``: all other workload features; texts become one column per value. Where there is no feature at
  all, the workloads' names, one column each.

Times are divided by the range (largest minus smallest) of CPU time in the training data, or of the solo
time where there is no CPU side. A number that is not known lies under the smallest known one, so that a
tree can set it apart; a sum or maximum with an unknown part is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.data import solo_core_shares
from jostle.learn.learners.bags._bag_settings import GROUPS
from jostle.learn.learners.bags._instruction_mix import OPCODE, instruction_mix

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs

MIX = "mix_"
NAME = "name="  # a column for each workload, where nothing else describes any
MOST_LEVELS, MOST_NAMES = (
    20,
    200,
)  # texts of a feature, and workloads, that have columns of their own


@dataclass(frozen=True)
class BagFeatures:
    """What the features are made from, for w workloads on p platforms.

    columns: k names, groups: their groups. numbers: (w, k), NaN where unknown. log_solo: (p, w). time_scale:
    () seconds that count as 1. fairness: (b,) of the bags in fairness_offsets (b + 1,), fairness_codes (m,),
    sorted codes of all members. has_fairness: whether rows have it.
    pooled_twice: whether sums and maxima can differ, and both are taken. core_share: (p, w) cores that a
    workload is on while it runs alone, NaN where unknown. cpu: number of the CPU platform, on which nothing
    beside others is learned or answered; -1 for none.
    """

    columns: tuple[str, ...]
    groups: tuple[str, ...]
    numbers: np.ndarray
    log_solo: np.ndarray
    time_scale: np.ndarray
    fairness: np.ndarray
    fairness_offsets: np.ndarray
    fairness_codes: np.ndarray
    core_share: np.ndarray
    has_fairness: bool
    pooled_twice: bool
    cpu: int = -1

    @property
    def has_core_share(self) -> bool:
        """True if it is known of any workload where questions are answered."""
        place = np.arange(len(self.core_share)) != self.cpu
        return bool(np.isfinite(self.core_share[place]).any())

    def feature_names(self, platform_names: tuple[str, ...]) -> tuple[str, ...]:
        """List the names of the columns of `rows`."""
        own = ("solo_time", *(["core_share"] if self.has_core_share else []), *self.columns)
        pools = ("sum", "max") if self.pooled_twice else ("sum",)
        names = [*own, *(f"corunners_{pool}_{name}" for pool in pools for name in own)]
        names.append("number_of_corunners")
        if self.has_fairness:
            names.append("fairness")
        if len(self.log_solo) > 1:
            names += [f"platform={name}" for name in platform_names]
        return tuple(names)

    def feature_groups(self) -> tuple[str, ...]:
        """List the group of each column; `always` for one that no choice of groups leaves out."""
        own = ("solo", *(["solo"] if self.has_core_share else []), *self.groups)
        times = 3 if self.pooled_twice else 2
        rest = len(self.log_solo) if len(self.log_solo) > 1 else 0
        fairness = ("fairness",) if self.has_fairness else ()
        return (*own * times, "always", *fairness, *("always",) * rest)

    def rows(self, colocations: Colocations, codes: tuple[np.ndarray, ...]) -> np.ndarray:
        """Make (n, features) float64, NaN where unknown. codes: (workload, platform, corunner) in the names
        that `numbers` and `log_solo` are aligned with."""
        workload, platform, corunner = codes
        counts = colocations.number_of_corunners
        row = np.repeat(np.arange(len(workload)), counts)
        scale = float(self.time_scale)

        def of(which: np.ndarray, place: np.ndarray) -> np.ndarray:
            alone = [np.exp(self.log_solo[place, which]) / scale]
            if self.has_core_share:
                alone.append(self.core_share[place, which])
            return np.concatenate([np.stack(alone, axis=1), self.numbers[which]], axis=1)

        mine, theirs = of(workload, platform), of(corunner, platform[row])
        total = np.zeros_like(mine)
        np.add.at(total, row, theirs)
        parts = [mine, total]
        if self.pooled_twice:
            most = np.full_like(mine, -np.inf)
            np.maximum.at(most, row, theirs)
            most[counts == 0] = 0.0
            parts.append(np.where(np.isnan(total), np.nan, most))
        parts.append(counts[:, None].astype(float))
        if self.has_fairness:
            parts.append(self._fairness_of(colocations, codes)[:, None])
        if len(self.log_solo) > 1:
            parts.append(np.eye(len(self.log_solo))[platform])
        return np.concatenate(parts, axis=1)

    def _fairness_of(self, colocations: Colocations, codes: tuple[np.ndarray, ...]) -> np.ndarray:
        """Look up the fairness of each bag on the CPU platform, (n,): 1 alone, NaN if it never ran there."""
        members = self.fairness_codes.tolist()
        known = {
            tuple(members[a:b]): value
            for (a, b), value in zip(
                pairwise(self.fairness_offsets.tolist()), self.fairness.tolist(), strict=True
            )
        }
        bags = bags_of(colocations, codes)
        return np.array([1.0 if len(b) == 1 else known.get(b, np.nan) for b in bags])


def bags_of(colocations: Colocations, codes: tuple[np.ndarray, ...]) -> list[tuple[int, ...]]:
    """List the sorted codes of all members of every row's bag."""
    workload, _, corunner = codes
    offsets = colocations.corunner_offsets.tolist()
    beside = corunner.tolist()
    return [
        tuple(sorted([own, *beside[offsets[i] : offsets[i + 1]]]))
        for i, own in enumerate(workload.tolist())
    ]


def describe(
    runs: Runs,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    log_solo: np.ndarray,
    groups: tuple[str, ...] = GROUPS,
    *,
    cpu: int = -1,
    fairness: dict[tuple[int, ...], float] | None = None,
) -> BagFeatures:
    """log_solo: (platforms, workloads). Only what `groups` name is kept. cpu, fairness: of the CPU side, by
    sorted codes of members."""
    columns, kinds, numbers = _numbers_of(runs, names[0])
    time_scale = _range(np.exp(log_solo if cpu < 0 else log_solo[cpu]))
    if cpu >= 0:
        columns, kinds = ("cpu_time", *columns), ("cpu", *kinds)
        numbers = np.concatenate([np.exp(log_solo[cpu])[:, None] / time_scale, numbers], axis=1)
    keep = [at for at, kind in enumerate(kinds) if kind in groups]
    share = solo_core_shares(runs, *names)
    if "solo" not in groups:
        share[:] = np.nan
    fairness = fairness or {}
    bags = sorted(fairness)
    degree = runs.colocations.number_of_corunners
    return BagFeatures(
        columns=tuple(columns[at] for at in keep),
        groups=tuple(kinds[at] for at in keep),
        numbers=numbers[:, keep],
        log_solo=log_solo,
        time_scale=np.array(time_scale),
        fairness=np.array([fairness[bag] for bag in bags], np.float64),
        fairness_offsets=np.concatenate([[0], np.cumsum([len(b) for b in bags])]).astype(np.int64),
        fairness_codes=np.array([code for bag in bags for code in bag], np.int64),
        core_share=share,
        has_fairness=bool(bags) and "fairness" in groups,
        pooled_twice=bool(degree.max(initial=0) > 1),
        cpu=cpu,
    )


def _range(seconds: np.ndarray) -> float:
    known = seconds[np.isfinite(seconds)]
    spread = float(np.ptp(known)) if len(known) else 0.0
    return spread if spread > 0 else 1.0


def _numbers_of(
    runs: Runs, workload_names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Return (columns, groups, (w, k) numbers) of the workload features."""
    known, table = runs.features_of("workload")
    columns: dict[str, np.ndarray] = {}
    if table is not None:
        at = {name: row for row, name in enumerate(known)}
        rows = [at.get(name) for name in workload_names]
        for name in table.column_names:
            cells = table.column(name).to_pylist()
            own: list[Any] = [None if row is None else cells[row] for row in rows]
            texts = sorted({cell for cell in own if isinstance(cell, str)})
            if texts:
                if 1 < len(texts) <= MOST_LEVELS:
                    for text in texts:
                        columns[f"{name}={text}"] = np.array([float(cell == text) for cell in own])
                continue
            numbers = np.array([np.nan if cell is None else float(cell) for cell in own])
            if np.isfinite(numbers).any():
                columns[name] = numbers
    columns = _distinct(_with_mix(columns))
    if not columns and len(workload_names) <= MOST_NAMES:
        every = np.eye(len(workload_names))
        columns = {f"{NAME}{name}": every[at] for at, name in enumerate(workload_names)}
    matrix = np.stack(list(columns.values()), axis=1) if columns else None
    groups = tuple(_group(name) for name in columns)
    return tuple(columns), groups, np.zeros((len(workload_names), 0)) if matrix is None else matrix


def _group(column: str) -> str:
    return "mix" if column.startswith(MIX) else "other"


def _with_mix(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Replace the columns with counts of instructions by the mix that they make."""
    mix = {} if any(name.startswith(MIX) for name in found) else instruction_mix(found)
    if not mix:
        return found
    return {name: values for name, values in found.items() if not name.startswith(OPCODE)} | mix


def _distinct(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Drop the columns that repeat another of their group, as a module's digest does its name."""
    distinct: dict[tuple[str, bytes], str] = {}
    for name, values in found.items():
        distinct.setdefault((_group(name), values.tobytes()), name)
    return {name: found[name] for name in distinct.values()}


def fairness_of(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], cpu: int, log_solo: np.ndarray
) -> dict[tuple[int, ...], float]:
    """Compute the fairness of each bag that ran on the CPU platform with all members measured: min over
    ordered pairs (i, j) of slowdown_i / slowdown_j, by sorted codes. A program's IPC shared over IPC alone is
    its time alone over its time shared, because the instructions are the same.

    Members are told apart by window, where one holds them all. Elsewhere runs of a program are means; of
    copies, of which no run says which it was, as many means of the shortest, the next, and so on."""
    c = runs.colocations
    codes = c.recode(*names)
    here = (codes[1] == cpu) & (c.number_of_corunners > 0) & runs.is_ok
    measured: dict[tuple[int, ...], dict[int, list[tuple[int, float]]]] = {}
    bags, window = bags_of(c, codes), runs.window
    for row in np.flatnonzero(here).tolist():
        own = int(codes[0][row])
        relative = float(log_solo[own] - np.log(runs.runtime_seconds[row]))
        if np.isfinite(relative):
            runtimes = measured.setdefault(bags[row], {}).setdefault(int(window[row]), [])
            runtimes.append((own, relative))
    out = {}
    for bag, windows in measured.items():
        whole = [w for w in windows.values() if sorted(own for own, _ in w) == list(bag)]
        spread = [_spread([relative for _, relative in w]) for w in whole]
        if not spread:
            every = [one for w in windows.values() for one in w]
            spread = [_spread(means) for means in [_means(bag, every)] if means]
        if spread:
            out[bag] = float(np.exp(-np.mean(spread)))
    return out


def _spread(logs: list[float]) -> float:
    return max(logs) - min(logs)


def _means(bag: tuple[int, ...], measured: list[tuple[int, float]]) -> list[float]:
    """Mean log slowdowns of the members; empty where some were not measured, or all are copies that were
    measured too seldom to tell apart. Beside others, one mean then stands for the copies."""
    means: list[float] = []
    for own in sorted(set(bag)):
        mine = sorted(relative for name, relative in measured if name == own)
        copies = bag.count(own)
        if not mine or (len(mine) < copies == len(bag)):
            return []
        copies = min(copies, len(mine))
        means += [float(np.mean(part)) for part in np.array_split(mine, copies)]
    return means
