"""The core: whole runs beside stressors and beside each other, weighed as `jostle.Probes` weighs them.

What a program counts alone says little of how it suffers, and nothing of what no counter counts. So answers
begin with what whole runs show: beside stressors, where there are some, and beside other programs. Without
stressors that is one level, none, and effects of names, each as far as sets left out bear it out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.alignment.solo._index import SoloIndex
from jostle.alignment.solo._probed import is_stressor
from jostle.alignment.solo._tracks import INSTRUCTIONS
from jostle.ensemble import EnsembleParts, FittedEnsemble, FittedRules, OfExperts, SimpleRules
from jostle.errors import NotEnoughRuns
from jostle.methods import learn
from jostle.probes import FittedMixtures, ProbesExpert
from jostle.runs import Colocations

if TYPE_CHECKING:
    from jostle.alignment.learning._rows import AlignedRows, Member
    from jostle.ensemble import Expert
    from jostle.runs import Runs
    from jostle.traces import Traces

PLAIN = ("none", "level", "effects")  # rules that a few windows can tell of


def traced_runs(traces: Traces, leave_out: Collection[str] = ()) -> Runs:
    """The traced runs that ended, without those of the run_ids left out.

    Raises NotEnoughRuns where none is left.
    """
    rows = [
        row
        for row in traces.traced.to_pylist()
        if row["run_id"] not in leave_out and not math.isnan(row["runtime_seconds"] or math.nan)
    ]
    if not rows:
        raise NotEnoughRuns(
            "no traced run beside others has a runtime",
            fix="Trace programs that end, side by side.",
        )
    return _runs([(row, row["runtime_seconds"]) for row in rows])


def probe_runs(traces: Traces, wanted: Sequence[str]) -> Runs | None:
    """Runs beside stressors and of stressors, None where there are none: a stressor has no end, so its time
    is that of as much as it executes alone in one second. wanted: names or patterns."""
    speed: dict[str, float] = {}
    alone: dict[tuple[str, str], list[float]] = {}
    for t in traces:
        if is_stressor(t.workload, wanted):
            speed[t.run_id] = float(np.nansum(t[INSTRUCTIONS])) / float(t.time_seconds[-1])
            if t.solo:
                alone.setdefault((t.platform, t.workload), []).append(speed[t.run_id])
    rows = []
    for row in traces.traced.to_pylist():
        names = (row["workload"], *(row["corunners"] or []))
        seconds = row["runtime_seconds"] or math.nan
        if row["run_id"] in speed:
            usual = alone.get((row["platform"], row["workload"]), [math.nan])
            seconds = float(np.median(usual)) / max(speed[row["run_id"]], 1e-9)
        if any(is_stressor(name, wanted) for name in names) and 0 < seconds < math.inf:
            rows.append((row, seconds))
    return _runs(rows) if rows else None


def _runs(rows: Sequence[tuple[dict, float]]) -> Runs:
    from jostle.runs import Runs

    return Runs.from_columns(
        workload=[row["workload"] for row, _ in rows],
        platform=[row["platform"] for row, _ in rows],
        corunners=[row["corunners"] or [] for row, _ in rows],
        runtime_seconds=[seconds for _, seconds in rows],
        run_id=[row["run_id"] for row, _ in rows],
        window_id=[row["window_id"] or row["run_id"] for row, _ in rows],
    )


@dataclass(frozen=True, eq=False)
class Core:
    """What whole runs say, as experts: an ensemble that is saved as a part of a model."""

    weighed: EnsembleParts
    rules: FittedRules | None
    mixtures: FittedMixtures | None

    @cached_property
    def ensemble(self) -> FittedEnsemble:
        experts = {"rules": self.rules, "probes": self.mixtures}
        return FittedEnsemble(
            self.weighed, {n: one for n, one in experts.items() if one is not None}
        )

    def answers(self, members: Sequence[Member]) -> tuple[np.ndarray, np.ndarray]:
        """((n,) log slowdowns, NaN for names that it does not know; (n,) bool: all ran beside others in what
        it learned from, as a target or as a co-runner)."""
        w = self.weighed
        sets = dict(zip(w.workload_names, w.sets_of_names[w.workload_code].tolist(), strict=True))
        known = np.array(
            [min(sets.get(n, 0) for n in (name, *o)) > 0 for _, name, o in members], bool
        )
        at = [
            i
            for i, (platform, name, others) in enumerate(members)
            if platform in w.platform_names and sets.keys() >= {name, *others}
        ]
        logs = np.full(len(members), np.nan)
        if at:
            asked = Colocations.from_columns(
                workload=[members[i][1] for i in at],
                platform=[members[i][0] for i in at],
                corunners=[list(members[i][2]) for i in at],
            )
            logs[at] = np.log(self.ensemble.slowdown(asked))
        return logs, known


@dataclass(frozen=True)
class _WholeRuns(OfExperts):
    stressors: tuple[str, ...]
    name: ClassVar[str] = "whole runs"

    def chosen_experts(self) -> list[Expert]:
        return [SimpleRules(PLAIN), ProbesExpert(self.stressors)]


@dataclass(frozen=True, eq=False)
class CoreRuns:
    """What cores are learned from beside rows: solos, and runs beside stressors."""

    solos: SoloIndex
    probing: Runs | None
    seed: int

    def fit(self, rows: AlignedRows) -> Core:
        """From the runs that have rows, as long as these say."""
        from jostle.runs import Runs

        alone: dict[tuple[str, str], float] = {}
        for solo in self.solos.all:
            alone.setdefault((solo.platform, solo.workload), solo.duration_seconds)
        members: list[Member] = [(p, w, ()) for p, w in alone]
        seconds = list(alone.values())
        for number, log in zip(np.unique(rows.run).tolist(), rows.run_logs(), strict=True):
            platform, name, others = rows.members[number]
            members.append((platform, name, others))
            seconds.append(alone[platform, name] * math.exp(log))
        runs = Runs.from_columns(
            workload=[name for _, name, _ in members],
            platform=[platform for platform, _, _ in members],
            corunners=[list(others) for *_, others in members],
            runtime_seconds=seconds,
        )
        stressors: tuple[str, ...] = ()
        if self.probing is not None:
            runs = Runs.concatenate([runs, self.probing])
            c = self.probing.colocations
            row = {c.row(int(i))[0] for i in np.flatnonzero(c.number_of_corunners == 0)}
            stressors = tuple(sorted(row))
        fitted = learn(_WholeRuns(stressors), runs, seed=self.seed)
        experts: dict[str, Any] = dict(fitted.experts)
        return Core(fitted.weighed, experts.get("rules"), experts.get("probes"))
