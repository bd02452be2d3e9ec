"""What forecasts say: a document for programs, tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.report import Report, Table

if TYPE_CHECKING:
    from jostle.usage import Distribution, Forecast, LiveForecast

QUANTILES = (0.05, 0.5, 0.95, 0.99)
MOST_SHOWN = 8  # counters of a table; of more those that people mostly ask for
USUAL = ("resident_bytes", "cpu_seconds", "instructions", "read_bytes", "written_bytes")


@dataclass(frozen=True)
class TotalUse:
    """Resource use of several workloads together at one time. over: how likely each capacity is exceeded;
    any_ratio: how likely any is, None for fewer than two."""

    time_seconds: float
    law: Distribution
    over: Mapping[str, float]
    any_ratio: float | None


@dataclass(frozen=True)
class ForecastAnswer:
    """Forecast resource use. fitted: (name, forecast) of each workload. answers: a distribution for each
    time, for each workload. totals: for each time. limits, capacities: per second, by counter. live: (run_id,
    forecast) of a run that goes on, asked about until `within_seconds` from its last sample. core: of the
    run."""

    fitted: Sequence[tuple[str, Forecast]]
    core: int = 0
    answers: Sequence[Sequence[Distribution]] = ()
    totals: Sequence[TotalUse] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    capacities: Mapping[str, float] = field(default_factory=dict)
    live: tuple[str, LiveForecast] | None = None
    within_seconds: float | None = None

    def report(self, datasets: Sequence[Path], dependence: str, figures: Sequence[Path]) -> Report:
        """Report the forecast. dependence: how workloads go together, in words."""
        laws = self.answers or [()] * len(self.fitted)
        each = [self._workload(*one, row) for one, row in zip(self.fitted, laws, strict=True)]
        document: dict[str, Any] = {
            "schema": "forecast/v2",
            "data": {"datasets": [str(folder) for folder in datasets]},
            **(each[0] if len(each) == 1 else {"forecasts": each}),
            "pictures": [str(path) for path in figures],
        }
        parts: list[Table | str] = []
        for (name, _), row in zip(self.fitted, self.answers, strict=False):
            parts += [f"\n{name}"] if len(self.fitted) > 1 else []
            parts.append(_table([line for law in row for line in self._lines(law)]))
        if self.live is not None:
            run_id, live = self.live
            document["given"] = {
                "run_id": run_id,
                "until_seconds": live.now_seconds,
                "within_seconds": self.within_seconds,
                "exceedance_within_ratio": None,
            }
            document["given"] |= _likeness(live, list(self.limits))
            parts.append(f"given {run_id} until {live.now_seconds:g} s")
            if self.within_seconds is not None:
                soon = live.exceedance_ratio(self.limits, self.within_seconds)
                document["given"]["exceedance_within_ratio"] = soon
                parts.append(f"P(over limit within {self.within_seconds:g} s): {soon:.4f}")
        if self.totals:
            document["total"] = [self._total(one) for one in self.totals]
            parts.append(f"\nall {len(self.fitted)} together, {dependence}")
            parts.append(_table([line for one in self.totals for line in self._total_lines(one)]))
        every = [law for row in self.answers for law in row] + [one.law for one in self.totals]
        warnings = dict.fromkeys(text for law in every for text in law.warnings)
        warnings |= dict.fromkeys(filter(None, [document.get("given", {}).get("unlike")]))
        if hidden := len(self.fitted[0][1].components) - len(self._shown):
            parts.append(f"and {hidden} further counters: --json has them, --component chooses")
        return Report(document, parts, figures, [f"warning: {text}" for text in warnings])

    @property
    def _shown(self) -> list[str]:
        """The components that are shown: those of limits and capacities, else the usual ones of many."""
        every = self.fitted[0][1].components
        usual = every if len(every) <= MOST_SHOWN else [name for name in USUAL if name in every]
        return [n for n in every if n in self.limits or n in self.capacities] or list(
            usual or every[:MOST_SHOWN]
        )

    def _workload(self, name: str, one: Forecast, laws: Sequence[Distribution]) -> dict[str, Any]:
        return {
            "workload": name,
            "snapshots": len(one.snapshots),
            "span_seconds": list(one.span_seconds),
            "settings": {
                "method": one.method.method,
                "core": self.core,
                "seed": one.method.seed,
                "eps": one.method.eps,
            },
            "answers": [self._answer(law) for law in laws],
        }

    def _answer(self, law: Distribution) -> dict[str, Any]:
        return {
            "time_seconds": law.time_seconds,
            "method": law.method,
            "atoms": len(law),
            "effective_atoms": law.effective_atoms,
            "idle_ratio": law.idle_ratio,
            "components": _components(law),
            "covariance": law.covariance.tolist(),
            "limits_per_second": dict(self.limits) or None,
            "exceedance_ratio": law.exceedance_ratio(self.limits) if self.limits else None,
            "details": dict(law.details),
            "warnings": list(law.warnings),
        }

    def _lines(self, law: Distribution) -> list[list[str]]:
        lines = _use_lines(law, law.time_seconds, self._shown)
        if law.idle_ratio:
            lines.append(["", "ended by then", f"{law.idle_ratio:.1%}", *[""] * 5])
        if self.limits:
            ratio = law.exceedance_ratio(self.limits)
            lines.append(["", "P(over limit)", f"{ratio:.4f}", *[""] * 5])
        return lines

    def _total(self, one: TotalUse) -> dict[str, Any]:
        return {
            "time_seconds": one.time_seconds,
            "components": _components(one.law),
            "capacities_per_second": dict(self.capacities),
            "exceedance_ratio": dict(one.over),
            "exceedance_of_any_ratio": one.any_ratio,
        }

    def _total_lines(self, one: TotalUse) -> list[list[str]]:
        lines = _use_lines(one.law, one.time_seconds, self._shown)
        for name, p in one.over.items():
            what = f"P({name} > {self.capacities[name]:g})"
            lines.append(["", what, f"{p:.4f}", *[""] * 5])
        if one.any_ratio is not None:
            lines.append(["", "P(any of them)", f"{one.any_ratio:.4f}", *[""] * 5])
        return lines


def step_report(
    live: LiveForecast,
    now_seconds: float,
    ahead_seconds: float,
    limits: Mapping[str, float],
    within_seconds: float | None,
) -> Report:
    """Report in a line what a run that goes on will use so many seconds ahead."""
    law = live.at(now_seconds + ahead_seconds)
    low, middle, high = law.quantile((0.05, 0.5, 0.95))
    over = law.exceedance_ratio(limits) if limits else None
    soon = None
    if limits and within_seconds is not None:
        soon = live.exceedance_ratio(limits, within_seconds)
    document: dict[str, Any] = {
        "schema": "forecast_step/v1",
        "now_seconds": now_seconds,
        "time_seconds": now_seconds + ahead_seconds,
        "components_per_second": {
            name: {"median": float(middle[c]), "low": float(low[c]), "high": float(high[c])}
            for c, name in enumerate(law.components)
        },
        "idle_ratio": law.idle_ratio,
        "exceedance_ratio": over,
        "exceedance_within_ratio": soon,
        **_likeness(live, list(limits)),
    }
    shown = [c for c, name in enumerate(law.components) if name in limits or not limits]
    text = ", ".join(
        f"{law.components[c]} {middle[c]:.4g} ({low[c]:.4g} to {high[c]:.4g})"
        for c in shown[:MOST_SHOWN]
    )
    text += "" if over is None else f"; P(over limit) {over:.4f}"
    text += "" if soon is None else f", within {within_seconds:g} s {soon:.4f}"
    notes = [f"warning: {document['unlike']}"] if document["unlike"] else []
    line = f"{now_seconds:.3f} s, at {now_seconds + ahead_seconds:.3f} s: {text}"
    return Report(document, [line], notes=notes)


def _components(law: Distribution) -> dict[str, Any]:
    table = law.quantile(QUANTILES)
    return {
        name: {
            "mean_per_second": float(law.mean[column]),
            "quantiles_per_second": {
                f"{level:g}": float(value)
                for level, value in zip(QUANTILES, table[:, column], strict=True)
            },
        }
        for column, name in enumerate(law.components)
    }


def _likeness(live: LiveForecast, components: Sequence[str]) -> dict[str, Any]:
    """Say how unusual the run is so far, and in a sentence if it is unlike the recorded ones."""
    told = live.unlikeness(components)
    return {"unlike_ratio": told.p_ratio, "unlike": told.text if told.is_unlike else None}


def _use_lines(law: Distribution, time_seconds: float, shown: Sequence[str]) -> list[list[str]]:
    """List the mean, the deviation and the quantiles of each of these components."""
    from jostle.data import is_level

    table = law.quantile(QUANTILES)
    return [
        [
            f"{time_seconds:g} s" if place == 0 else "",
            f"{name} (level)" if is_level(name) else name,
            f"{law.mean[column]:.4g}",
            f"{max(law.covariance[column, column], 0.0) ** 0.5:.3g}",
            *(f"{value:.4g}" for value in table[:, column]),
        ]
        for place, name in enumerate(shown)
        for column in [law.components.index(name)]
    ]


def _table(lines: Sequence[Sequence[str]]) -> Table:
    levels = [f"{level:.0%}" for level in QUANTILES]
    return Table(["time", "per second", "mean", "std", *levels], lines)
