"""What a run so far tells of what it will use, beside boosting and simple rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

import jostle
from jostle.traces import Trace
from studies._runner import Measures, TableStudy
from studies.bridge.families import FAMILIES, made_family
from studies.worlds.usage_processes import LAWS, whole_traces

PARTS = (0.25, 0.5, 0.75)  # of the usual length: samples seen
QUANTILES = (0.5, 0.8, 0.95)
RULES = ("boosting", "without", "last", "turns")
WAYS = ("given", *RULES)
LAGS, SPANS = 9, (3, 9, 27, 10_000)
MOST_ROWS = 6000


@dataclass(frozen=True)
class Given(TableStudy):
    """What a run so far tells of what it will use: Brier scores some samples ahead, beside other ways.

    Of each made process and seed some runs are recorded and others live. At three moments of each live run:
    the probability that each counter is over its 50, 80 and 95% quantile some samples later. `given` is
    `forecast.given(trace so far).at(time)`; `boosting` scikit-learn's classifier for each limit, on the last
    samples, means, ranges and extremes of the run so far and the time, learned from as many recorded runs;
    `without` the forecast at that time, `last` says that what is over its limit now stays so, and `turns` how
    often recorded runs were over it then, of those on the same side of it now. Shown are Brier scores, and
    that of `given` over that of each, with the least and the largest of one seed; then means over all.
    """

    processes: Annotated[
        str, f"By commas; also of forecasts: {', '.join(sorted(set(FAMILIES) - set(LAWS)))}."
    ] = ",".join(LAWS)
    runs: Annotated[int, "Live ones."] = 30
    recorded: Annotated[int, "Runs."] = 100
    ahead: Annotated[int, "Samples."] = 5
    seeds: Annotated[int, "Of each process."] = 3
    seed: Annotated[int, "Of the first."] = 1

    name: ClassVar[str] = "given"
    places: ClassVar[Sequence[str]] = ("process",)
    has_total: ClassVar[bool] = True
    columns: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(WAYS, ".4f"),
        **{f"over {rule}": "{:.2f} ({:.2f} to {:.2f})" for rule in RULES},
    }

    def rows(self) -> list[tuple[Any, ...]]:
        return [(name,) for name in self.processes.split(",")]

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        shown = dict(super().of_draws(draws))
        for rule in RULES:
            ratios = [one["given"] / max(one[rule], 1e-12) for one in draws]
            shown[f"over {rule}"] = (float(np.mean(ratios)), min(ratios), max(ratios))
        return shown

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        make = whole_traces if row[0] in LAWS else made_family
        traces = make(row[0], self.recorded + self.runs, seed=seed)
        recorded = traces.select(traces.run_ids[: self.recorded])
        live = traces.select(traces.run_ids[self.recorded :])
        names = tuple(sorted(traces.counters))
        past = [_rates(trace, names) for trace in recorded]
        pool = np.concatenate(past)
        limits = np.nanquantile(pool, QUANTILES, axis=0).T  # (counters, quantiles)
        usual = int(np.median([len(one) for one in past]))
        moments = [max(int(part * usual), 2) for part in PARTS]
        boosting = _Boosting(past, limits, self.ahead)
        forecast = jostle.forecast(recorded, jostle.Bridge(components=names))
        errors: list[list[float]] = []
        for trace in live:
            own = _rates(trace, names)
            for seen in moments:
                if seen >= len(own) or not np.isfinite(own[:seen]).any(axis=0).all():
                    continue
                then = _after(own, seen, self.ahead)
                at = float(trace.time_seconds[0]) * (seen + self.ahead)
                laws = [forecast.given(_until(trace, seen)).at(at), forecast.at(at)]
                claims = boosting.of(own, seen)
                for c, counter in enumerate(names):
                    known = own[:seen, c][np.isfinite(own[:seen, c])]
                    if not np.isfinite(then[c]):
                        continue
                    others = np.array(
                        [(one[seen - 1, c], _after(one, seen, self.ahead)[c])
                         for one in past if len(one) >= seen]
                    )  # fmt: skip
                    for q, limit in enumerate(limits[c].tolist()):
                        is_over = known[-1] > limit
                        alike = others[((others[:, 0] > limit) == is_over)
                                       & np.isfinite(others).all(axis=1), 1]  # fmt: skip
                        over = [law.exceedance_ratio({counter: limit}) for law in laws]
                        turns = (1 + (alike > limit).sum()) / (2 + len(alike))
                        every = [over[0], claims[c, q], over[1], float(is_over), float(turns)]
                        errors.append([(one - (then[c] > limit)) ** 2 for one in every])
        return dict(zip(WAYS, np.mean(errors, axis=0).tolist(), strict=True))


class _Boosting:
    """P(over) of each counter (c) and limit (q), by the run so far."""

    def __init__(self, past: Sequence[np.ndarray], limits: np.ndarray, ahead: int) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        places = [(one, seen) for one in past for seen in range(2, len(one))]
        if len(places) > MOST_ROWS:
            some = np.random.default_rng(0).choice(len(places), MOST_ROWS, replace=False)
            places = [places[i] for i in some.tolist()]
        x = np.array([_columns(one, seen) for one, seen in places])
        y = np.array([_after(one, seen, ahead) for one, seen in places])
        self._models: dict[tuple[int, int], Any] = {}
        for (c, q), limit in np.ndenumerate(limits):
            known = np.isfinite(y[:, c])
            over = y[known, c] > limit
            self._models[c, q] = float(over.mean())
            if 0 < over.sum() < len(over):
                trees = HistGradientBoostingClassifier(
                    max_iter=80, learning_rate=0.08, max_leaf_nodes=15, random_state=0
                )
                self._models[c, q] = trees.fit(x[known], over)
        self._shape = limits.shape

    def of(self, own: np.ndarray, seen: int) -> np.ndarray:
        out, x = np.empty(self._shape), np.array([_columns(own, seen)])
        for place, model in self._models.items():
            out[place] = model if isinstance(model, float) else model.predict_proba(x)[0, 1]
        return out


def _columns(own: np.ndarray, seen: int) -> list[float]:
    columns = [float(seen)]
    for values in own[:seen].T:
        columns += [values[-1 - lag] if lag < seen else np.nan for lag in range(LAGS)]
        for span in SPANS:
            known = values[-span:][np.isfinite(values[-span:])]
            ways = (np.mean, np.max, np.min, np.std)
            columns += [float(way(known)) if len(known) else np.nan for way in ways]
    return columns


def _rates(trace: Trace, names: Sequence[str]) -> np.ndarray:
    """(s, counters) per second, levels as they are."""
    columns = [
        trace[name] / (1.0 if name == "resident_bytes" else trace.interval_seconds)
        for name in names
    ]
    return np.stack(columns, axis=1)


def _after(own: np.ndarray, seen: int, ahead: int) -> np.ndarray:
    """What it used so many samples after those seen; a run that has ended uses nothing."""
    return own[seen - 1 + ahead] if seen - 1 + ahead < len(own) else np.zeros(own.shape[1])


def _until(trace: Trace, seen: int) -> Trace:
    return replace(
        trace,
        time_seconds=trace.time_seconds[:seen],
        interval_seconds=trace.interval_seconds[:seen],
        counters={name: value[:seen] for name, value in trace.counters.items()},
        runtime_seconds=float("nan"),
    )
