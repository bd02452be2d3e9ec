"""Learning from runs whose company changed: each counts as one beside its longest stretch's co-runners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jostle.data import PlainLaw, Runs, stands_for_longest
from jostle.data.tables.arrow_compute import pc
from jostle.learn import Data, HeldOut
from jostle.models.timelines._arrival_simulation import Rates
from jostle.models.timelines._timeline_calibration import MOST, TimelineCalibration


class OverTime:
    """Runs of a fit, of which some changed company. data: what to learn from, each run in one company."""

    def __init__(self, before: Runs, law: PlainLaw, data: Data, changing: int) -> None:
        self._before, self._law, self.data, self.changing = before, law, data, changing

    @classmethod
    def of(cls, source: Data, needs: frozenset[str], seed: int) -> OverTime | None:
        """Return None where every run has one company, or none is learned from."""
        if "runs" not in needs or not source.has_runs:
            return None
        before = source.runs.ok()
        changing = int((~before.is_steady).sum())
        if not changing:
            return None
        law = PlainLaw.of(before, seed)
        data = source.with_runs(law.of_longest(before))
        data.has_given_runs = source.has_given_runs
        return cls(before, law, data, changing)

    def of_longest(self, runs: Runs) -> Runs:
        """Take each run to the company of its longest stretch, by the plain law."""
        return self._law.of_longest(runs)

    def calibrated(self, held: HeldOut, fitted: Any) -> HeldOut:
        """Take calibration runs to one company by what was learned, which has not seen them: their errors are
        then those of its answers for their whole timelines."""
        return replace(held, calibration=self.taken_by(fitted, held.calibration))

    def taken_by(self, fitted: Any, runs: Runs) -> Runs:
        """Take runs of the data that were not learned from to one company, by what was learned."""
        own, at = self._own(runs)
        before = self._before.take(at)
        if not len(own) or bool(before.is_steady.all()):
            return runs
        seconds = runs.runtime_seconds.copy()
        seconds[own] = np.where(
            before.is_steady, seconds[own], taken_by(fitted, before).runtime_seconds
        )
        return runs.with_one_company(seconds)

    def acts(
        self, runs: Runs, without: Sequence[tuple[Any, np.ndarray]], seed: int
    ) -> TimelineCalibration:
        """Calibrate answers over time. without: (what was learned without some of the runs, these runs)."""
        parts, whole = [], sum(len(rows) for _, rows in without)
        for fitted, rows in without:
            at = self._own(runs.take(rows))[1]
            most = -(-MOST * len(rows) // max(whole, 1))  # as many of each, in proportion
            parts.append(TimelineCalibration.of(fitted, self._before, at, seed, most))
        names = Rates(without[0][0]).names
        return TimelineCalibration.joined(parts).learned(names)

    def _own(self, runs: Runs) -> tuple[np.ndarray, np.ndarray]:
        """Return (which of the runs are of the data, where they are there)."""
        ids = self._before.table.column("run_id").combine_chunks()
        at = pc.index_in(runs.table.column("run_id"), value_set=ids)
        return np.flatnonzero(np.asarray(pc.is_valid(at))), pc.drop_null(at).to_numpy()


def taken_by(fitted: Any, runs: Runs) -> Runs:
    """Take each run to the company of its longest stretch, by what a method has learned (or a model); one
    with an unknown name keeps its time."""
    if not runs.is_stretched:
        return runs
    seconds = Rates(fitted).seconds(runs.stretches.colocations, np.nan)
    return stands_for_longest(runs, np.log(seconds))
