"""A fitted factorization, answered by NumPy alone.

Holds the embeddings that training ended with. Members of an ensemble are averaged in log runtime; as
both the inner products and the interference types are sums, the average is this same model with the
members' embeddings side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.conformal import Uncertainty
from jostle.learn.contract._run_counts import FromCounts, RunCounts
from jostle.learn.learners.network._codes import Codes
from jostle.learn.learners.network._embeddings import Embeddings, Form
from jostle.learn.learners.network._network_equation import (
    CORUN_SCALE,
    SHIFT,
    log_slowdown,
    pressure_of,
)
from jostle.learn.learners.network._spread import Spread
from jostle.learn.learners.network._spread_effects import SpreadRows
from jostle.learn.learners.network.online._prior import Groundwork
from jostle.learn.training._slowdown_rows import SlowdownRows

if TYPE_CHECKING:
    from jostle._base.report import Report
    from jostle.data import Colocations
    from jostle.learn.learners.network._explain_network import Explanation

NARROWEST = 1e-3  # width of a quantile head, in log seconds
GRID_CELLS = 200_000  # up to which all products are made at the first question
CHUNK = 65_536  # rows that are answered in one step
FAR_AT_ONCE = 1024  # points whose distances to all others are held at once


@dataclass(frozen=True, eq=False)
class FittedFactorization(FromCounts):
    """Predicts log runtime by the equations in `_equation`. Immutable.

    workload_names, platform_names: the names it knows, sorted. reading: how the embeddings are read.
    groundwork: what it learns online by; None before it has.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    embeddings: Embeddings
    counts: RunCounts
    spread: Spread
    notes: tuple[str, ...]
    reading: Form
    groundwork: Groundwork | None = None

    @property
    def form(self) -> str:
        """The name of the equation."""
        return self.reading.name

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantile that each output head predicts."""
        return self.reading.quantiles

    def predict(self, colocations: Colocations) -> np.ndarray:
        """Predict (n,) seconds; NaN if no chain of runs connects the workload with the platform.

        Raises UnknownName for a workload, platform or co-runner that the model has never met.
        """
        return np.exp(self._answer(self.codes(colocations))[0])

    def uncertainty(self, colocations: Colocations) -> Uncertainty:
        """Return the modelled spread of errors at low, high and very high confidences, the distance of a
        workload without a run from known ones, and how far quantile heads lie above the prediction."""
        codes = self.codes(colocations)
        rows = self.spread_rows(codes)
        spread = self.spread.log_scales(rows)
        far = np.log(self._distance[codes.workload])[None]
        heads = [
            np.log(np.maximum(self.log_quantile(codes, k) - rows.log_runtime, NARROWEST))
            for k in range(len(self.quantiles))
        ]
        widths = np.concatenate([spread, far, *(head[None] for head in heads)])
        slopes = [*[1 / len(spread)] * len(spread), 1.0, *[0.0] * len(heads)]
        return Uncertainty(rows.log_runtime, widths, np.array(slopes), np.exp(rows.log_runtime))

    def log_quantile(self, codes: Codes, head: int) -> np.ndarray:
        """Predict (n,) log seconds by a quantile head."""
        return self._log_runtime(codes, head)

    @cached_property
    def _distance(self) -> np.ndarray:
        """Square root of how far the embedding of a workload without a run lies from the three nearest with
        runs, in units of how far those lie from each other; 1 for a workload with runs. (workloads,)."""
        met = self.counts.runs_of_workloads(self.workload_names) > 0
        return np.sqrt(far_of(self.embeddings.workload_main, met))

    def spread_rows(self, codes: Codes) -> SpreadRows:
        """Make the rows that the spread of the errors depends on."""
        log_runtime, slowdown = self._answer(codes)
        return SpreadRows(
            codes.workload, codes.platform, codes.corunner, codes.row, log_runtime, slowdown
        )

    def predict_log(self, codes: Codes) -> np.ndarray:
        """Predict (n,) log seconds."""
        return self._answer(codes)[0]

    def _answer(self, codes: Codes) -> tuple[np.ndarray, np.ndarray]:
        """Predict ((n,) log seconds, (n,) log slowdown)."""
        slowdown = self._slowdown(codes)
        return self._log_runtime(codes, slowdown=slowdown), slowdown

    def log_solo(self, workload: np.ndarray, platform: np.ndarray) -> np.ndarray:
        """Predict (n,) log seconds alone, of codes; NaN if runs connect nothing."""
        none = np.zeros(0, np.int64)
        return self._log_runtime(Codes(workload, platform, none, none))

    def log_slowdown(self, rows: SlowdownRows) -> np.ndarray:
        """Predict (n,) log slowdowns."""
        w = len(self.workload_names)
        codes = Codes(rows.target % w, rows.target // w, rows.corunner % w, rows.row)
        return self._slowdown(codes)

    def silenced(self) -> FittedFactorization:
        """Remove interference: every slowdown is 1."""
        e = self.embeddings
        e = replace(
            e,
            platform_corun=np.zeros_like(e.platform_corun),
            platform_corun_base=np.zeros_like(e.platform_corun_base),
            type_weight=np.zeros_like(e.type_weight),
        )
        return replace(self, embeddings=e)

    def explain(self, asked: Colocations) -> Report:
        """Explain the terms that multiply to the prediction, and what is near."""
        from jostle.learn.learners.network._explain_network import report_of

        return report_of(self.explained(asked))

    def explained(self, asked: Colocations, *, neighbours: int = 3) -> Explanation:
        """Return what `explain` reports, as numbers. Raises UsageError unless one co-location is asked."""
        from jostle.learn.learners.network._explain_network import explained

        names = (self.workload_names, self.platform_names)
        return explained(self.predict, names, self.embeddings, self.reading, asked, neighbours)

    def interference_norm(self) -> np.ndarray:
        """Compute (platforms,) spectral norms of F_j = sum_t v_s(j,t) v_g(j,t)^T (Pitot, Sec. 3.3), from the
        factors: ||A B^T|| is the norm of the product of the two small triangular factors."""
        e = self.embeddings
        norms = np.zeros(len(self.platform_names))
        for j in range(len(norms)):
            a = e.susceptibility[j].T * e.type_weight
            b = e.intensity[j].T
            ra, rb = (np.asarray(np.linalg.qr(x, mode="r")) for x in (a, b))
            norms[j] = np.linalg.norm(ra @ rb.T, 2)
        return norms

    def codes(self, colocations: Colocations) -> Codes:
        workload, platform, corunner = colocations.codes_in(
            self.workload_names, self.platform_names
        )
        row = colocations.corunner_row
        return Codes(workload, platform, corunner, row)

    def _log_runtime(
        self, codes: Codes, head: int | None = None, slowdown: np.ndarray | None = None
    ) -> np.ndarray:
        """Predict (n,) log seconds, or a quantile head's; slowdown: given where it is known."""
        e = self.embeddings
        base = e.workload_base if head is None else e.head_base[head]
        out = (base[codes.workload] + e.platform_base[codes.platform]).astype(np.float64)
        out += self._product("main", head, codes.workload, codes.platform)[:, 0]
        if len(codes.corunner):
            out += self._slowdown(codes, head) if slowdown is None else slowdown
        lost = e.workload_component[codes.workload] != e.platform_component[codes.platform]
        if lost.any():
            out[lost] = np.nan
        return out

    def _slowdown(self, codes: Codes, head: int | None = None) -> np.ndarray:
        shift = SHIFT[self.form]
        there = codes.platform[codes.row]
        each = self._product("pressure", None, codes.corunner, there) - shift
        each = pressure_of(self.form, each, np)
        n = len(codes.workload)
        if not len(each):
            return np.zeros(n)
        if n == 1:  # a single question is asked so often that it may take its own way
            pressure, beside = each.sum(0, keepdims=True), np.zeros(1, np.int64)
        else:
            pressure = np.stack([np.bincount(codes.row, one, n) for one in each.T], axis=1)
            beside = np.flatnonzero(np.bincount(codes.row, minlength=n))
        target = self._product(
            "susceptibility", head, codes.workload[beside], codes.platform[beside]
        )
        out = np.zeros(n)
        if CORUN_SCALE[self.form]:
            w, p = codes.workload[beside], codes.platform[beside]
            out[beside] = self._product("corun", head, w, p)[:, 0]
            out[beside] += self.embeddings.platform_corun_base[p]
        out[beside] += log_slowdown(
            self.form,
            target - shift,
            pressure[beside],
            self.embeddings.type_weight,
            np,
            self.reading.leak,
        )
        return out

    def _product(
        self, which: str, head: int | None, workload: np.ndarray, platform: np.ndarray
    ) -> np.ndarray:
        """Compute (n, types) inner products: from the whole grid if it is small, so that the last digits of
        an answer do not depend on what was asked before."""
        if len(self.workload_names) * len(self.platform_names) <= GRID_CELLS:
            if (which, head) not in self._grids:
                w, p = self._factors(which, head, slice(None), slice(None))
                self._grids[which, head] = np.einsum("wtk,ptk->wpt", w, p, optimize=True)
            return self._grids[which, head][workload, platform]
        parts = []
        for start in range(0, max(len(workload), 1), CHUNK):
            part = slice(start, start + CHUNK)
            w, p = self._factors(which, head, workload[part], platform[part])
            parts.append(np.einsum("ntk,ntk->nt", w, p))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _factors(
        self, which: str, head: int | None, workload: Any, platform: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (these workloads, types, k) and (these platforms, types, k)."""
        e = self.embeddings
        if which in ("main", "corun"):
            main = e.workload_main if head is None else e.head_main[head]
            side = e.platform_main if which == "main" else e.platform_corun
            return main[workload][:, None, :], side[platform][:, None, :]
        if which == "pressure":
            return e.corunner[workload][:, e.type_slot], e.intensity[platform]
        target = e.target if head is None or not len(e.head_target) else e.head_target[head]
        return target[workload][:, e.type_slot], e.susceptibility[platform]

    @cached_property
    def _grids(self) -> dict[tuple[str, int | None], np.ndarray]:
        return {}


def far_of(place: np.ndarray, met: np.ndarray, nearest: int = 3) -> np.ndarray:
    """Compute the mean distance (n,) of each unmet point to the nearest met ones, over the median of that
    among the met; 1 for met points, and if fewer than twice as many are met."""
    far = np.ones(len(place))
    if met.sum() < 2 * nearest or met.all():
        return far
    known = place[met].astype(np.float64)
    squares = (known**2).sum(1)

    def mean_distance(points: np.ndarray, skipped: int) -> np.ndarray:
        distance = np.empty(len(points))
        for begin in range(0, len(points), FAR_AT_ONCE):
            some = points[begin : begin + FAR_AT_ONCE]
            gap = (some**2).sum(1)[:, None] + squares - 2 * some @ known.T
            gap = np.partition(gap, nearest + skipped - 1, axis=1)[:, : nearest + skipped]
            gap = np.sort(gap, axis=1)[:, skipped:]
            distance[begin : begin + FAR_AT_ONCE] = np.sqrt(np.maximum(gap, 0.0)).mean(1)
        return distance

    usual = float(np.median(mean_distance(known, 1)))
    distance = mean_distance(place[~met].astype(np.float64), 0)
    far[~met] = np.maximum(distance / usual, 0.1) if usual > 0 else 1.0
    return far
