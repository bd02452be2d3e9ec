"""What `jostle safe` prints: one co-location in detail, or a table of all that were asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jostle.cli.console import duration, print_json, print_table

if TYPE_CHECKING:
    import numpy as np

    from jostle.accelerator import (
        Application,
        Device,
        Fit,
        Objective,
        Service,
        SimulationOptions,
    )

# What a bound speaks about, by what was drawn to calibrate on.
_OVER = {
    "together": "sets of workloads never measured together",
    "window": "runs of windows not learned from",
    "row": "runs not learned from",
}


@dataclass(frozen=True)
class Question:
    """queries, arrivals: of every service. batch_pes: as for service_latency. instances: whether so many are
    safe; None: how many, up to `most`."""

    applications: Mapping[str, Application]
    device: Device
    options: SimulationOptions
    objective: Objective
    queries: int | None
    arrivals: np.ndarray | None
    batch_pes: int | None
    instances: int | None
    most: int

    @property
    def look_to(self) -> int:
        return self.most if self.instances is None else self.instances

    @property
    def wanted(self) -> int:
        return 1 if self.instances is None else self.instances

    def service(self, name: str) -> Service:
        from jostle.accelerator import Service

        return Service(self.applications[name], self.objective, self.queries, self.arrivals)

    def notes(self, names: Sequence[str]) -> list[str]:
        said = {f"{name}: {note}" for name in names for note in self.applications[name].notes}
        return sorted(said)


class Bounded:
    """Bounds from measured co-runs, at one confidence. Raises UsageError without a platform."""

    def __init__(self, model: Path, platform: str | None, confidence: float) -> None:
        import jostle
        from jostle.errors import UsageError

        self.model, self.confidence = jostle.load(model), confidence
        places = getattr(self.model.predictor, "platform_names", None)
        if platform is None and places is not None and len(places) == 1:
            platform = places[0]
        if platform is None:
            raise UsageError("say --platform: the platform of the measured co-runs")
        self.platform = platform
        self.over = _OVER.get(
            str(self.model.metadata.get("calibrated_by")), "runs not learned from"
        )

    def of(self, fit: Fit) -> tuple[list[dict[str, Any]], int]:
        """([{instances, bound_seconds, outcome}], the most instances whose bound keeps the limit)."""
        import jostle

        counts = [mix.instances for mix in fit.mixes]
        asked = jostle.Colocations.from_columns(
            workload=[fit.service] * len(counts),
            platform=[self.platform] * len(counts),
            corunners=[[fit.batch] * n for n in counts],
        )
        found = self.model.bound(asked, self.confidence)
        rows, guaranteed, going = [], 0, True
        for n, seconds, outcome in zip(counts, found.seconds, found.outcome, strict=True):
            valid = bool(seconds < float("inf"))
            known = float(seconds) if valid else None
            rows.append({"instances": n, "bound_seconds": known, "outcome": str(outcome)})
            if n > 0:
                going = going and valid and float(seconds) <= fit.limit_seconds
                guaranteed = n if going else guaranteed
        return rows, guaranteed


def _code(is_safe: bool, bounds: Bounded | None, rows: list[dict[str, Any]]) -> int:
    if is_safe:
        return 0
    beside = [row["bound_seconds"] for row in rows if row["instances"] > 0]
    return 3 if bounds is not None and not any(beside) else 1


def one_answer(
    asked: Question, target: str, batch: str, bounds: Bounded | None, as_json: bool
) -> int:
    """Prints how many instances fit and why; returns the exit code."""
    from jostle.accelerator import causes, how_many_fit

    service, other = asked.service(target), asked.applications[batch]
    given, pes = (asked.device, asked.options), asked.batch_pes
    fit = how_many_fit(service, other, *given, most=asked.look_to, batch_pes=pes)
    beside = min(fit.instances + 1, asked.most) or 1
    cause = causes(service, [other] * beside, *given, batch_pes=pes)
    rows, guaranteed = bounds.of(fit) if bounds else ([], None)
    fits = fit.instances if guaranteed is None else min(fit.instances, guaranteed)
    is_safe = fits >= asked.wanted
    code = _code(is_safe, bounds, rows)
    notes = asked.notes((target, batch))
    if as_json:
        document = {
            "schema": "safe/v1",
            **_facts(fit, guaranteed, is_safe),
            "statistic": asked.objective.statistic,
            "lost_to_kernels_seconds": cause.kernels_seconds,
            "lost_to_transfers_seconds": cause.transfers_seconds,
            "confidence": bounds.confidence if bounds else None,
            "bound_over": bounds.over if bounds else None,
            "bounds": rows,
            "mixes": [
                {
                    "instances": mix.instances,
                    "latency_seconds": asked.objective.of(mix.latency),
                    "mean_seconds": mix.latency.mean_seconds,
                    "p95_seconds": mix.latency.p95_seconds,
                    "p99_seconds": mix.latency.p99_seconds,
                    "slowdown_ratio": mix.slowdown_ratio,
                    "safe": mix.safe,
                }
                for mix in fit.mixes
            ],
            "notes": notes,
        }
        print_json(document)
        return code
    typer.echo(
        f"{fit.instances} of {batch} fit beside {target}: {fit.reason}."
        if fit.instances > 0
        else f"No {batch} fits beside {target}: {fit.reason}."
    )
    typer.echo(
        f"Of that, {beside} of its co-runners' kernels alone cost {duration(cause.kernels_seconds)}, "
        f"their transfers alone {duration(cause.transfers_seconds)}."
    )
    said = {row["instances"]: row for row in rows}
    lines = []
    for mix in fit.mixes:
        line = [str(mix.instances), _time(mix.latency.mean_seconds)]
        line += [_time(mix.latency.p95_seconds), f"{mix.slowdown_ratio:.2f}x"]
        line += [_bound(said.get(mix.instances))] if bounds else []
        lines.append([*line, "yes" if mix.safe else "no"])
    heads = ["instances", "mean", "p95", "slowdown"]
    heads += [f"bound {bounds.confidence:g}"] if bounds else []
    print_table([*heads, "safe"], lines, right=range(len(heads)))
    if bounds:
        typer.echo(
            f"{guaranteed} keep the limit at confidence {bounds.confidence:g}, over {bounds.over}."
        )
    for note in notes:
        typer.echo(f"Note: {note}.", err=True)
    return code


def table_answer(
    asked: Question, fits: Sequence[Fit], bounds: Bounded | None, as_json: bool
) -> int:
    """Prints a row for every service and batch workload; returns the exit code: 0 where anything fits."""
    rows, every, is_safe = [], [], False
    for fit in fits:
        bound, guaranteed = bounds.of(fit) if bounds else ([], None)
        kept = fit.instances if guaranteed is None else min(fit.instances, guaranteed)
        safe = kept >= asked.wanted
        is_safe, every = is_safe or safe, [*every, *bound]
        chosen = fit.mixes[max(fit.instances, 0)]
        rows.append(
            {
                **_facts(fit, guaranteed, safe),
                "latency_seconds": asked.objective.of(chosen.latency),
                "slowdown_ratio": chosen.slowdown_ratio,
                "bounds": bound,
            }
        )
    names = sorted({name for fit in fits for name in (fit.service, fit.batch)})
    notes = asked.notes(names)
    if as_json:
        document = {
            "schema": "safe_fleet/v1",
            "safe": is_safe,
            "statistic": asked.objective.statistic,
            "confidence": bounds.confidence if bounds else None,
            "bound_over": bounds.over if bounds else None,
            "rows": rows,
            "notes": notes,
        }
        print_json(document)
        return _code(is_safe, bounds, every)
    heads = ["target", "batch", "instances", *(["guaranteed"] if bounds else [])]
    lines = []
    for row in rows:
        line = [row["target"], row["batch"], str(row["instances"])]
        line += [str(row["guaranteed_instances"])] if bounds else []
        line += [_time(row["latency_seconds"]), f"{row['slowdown_ratio']:.2f}x"]
        lines.append([*line, row["reason"]])
    right = range(2, len(heads) + 2)
    print_table([*heads, asked.objective.statistic, "slowdown", "why no more"], lines, right=right)
    if bounds:
        typer.echo(f"guaranteed: at confidence {bounds.confidence:g}, over {bounds.over}.")
    for note in notes:
        typer.echo(f"Note: {note}.", err=True)
    return _code(is_safe, bounds, every)


def _facts(fit: Fit, guaranteed: int | None, is_safe: bool) -> dict[str, Any]:
    return {
        "target": fit.service,
        "batch": fit.batch,
        "safe": is_safe,
        "instances": max(fit.instances, 0),
        "guaranteed_instances": guaranteed,
        "solo_seconds": fit.solo_seconds,
        "limit_seconds": fit.limit_seconds,
        "limit": fit.limit,
        "reason": fit.reason,
    }


def _time(seconds: float) -> str:
    return "starved" if seconds == float("inf") else duration(seconds)


def _bound(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    seconds = row["bound_seconds"]
    return f"none ({row['outcome']})" if seconds is None else duration(seconds)
