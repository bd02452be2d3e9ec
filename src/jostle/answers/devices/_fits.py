"""How many instances fit beside a service: one co-location in detail, or a table of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle._report import Report, Table, duration, finite
from jostle.answers.devices._simulation import Simulation

if TYPE_CHECKING:
    from jostle.accelerator import Fit, Mix


def one_answer(simulation: Simulation, service: str, batch: str) -> Report:
    """How many instances fit and why."""
    from jostle.accelerator import causes, how_many_fit

    one, other = simulation.service(service), simulation.applications[batch]
    setting, bounds = (simulation.device, simulation.options), simulation.measured
    options = {"batch_pes": simulation.batch_pes, "rest": simulation.rest}
    fit = how_many_fit(one, other, *setting, most=simulation.look_to, **options)
    kept = _kept(fit)
    beside = min(kept + 1, len(fit.mixes) - 1) or 1
    cause = causes(one, [other] * beside, *setting, **options)
    rows, is_safe = _bounds(fit), kept >= simulation.wanted
    notes = simulation.notes((service, batch))
    document = {
        "schema": "safe/v1",
        **_facts(fit, is_safe),
        "statistic": simulation.objective.statistic,
        "lost_to_kernels_seconds": cause.kernels_seconds,
        "lost_to_transfers_seconds": cause.transfers_seconds,
        "confidence": bounds.confidence if bounds else None,
        "bound_over": bounds.over if bounds else None,
        "bounds": rows,
        "mixes": [
            {
                "instances": mix.instances,
                "latency_seconds": simulation.objective.of(mix.latency),
                "mean_seconds": mix.latency.mean_seconds,
                "p95_seconds": mix.latency.p95_seconds,
                "p99_seconds": mix.latency.p99_seconds,
                "slowdown_ratio": mix.slowdown_ratio,
                "safe": mix.safe and mix.instances <= kept,
            }
            for mix in fit.mixes
        ],
        "notes": notes,
    }
    parts: list[Table | str] = [
        f"{kept} of {batch} fit beside {service}: {_why_no_more(fit)}."
        if kept > 0
        else f"No {batch} fits beside {service}: {_why_no_more(fit)}.",
        f"Of that, {beside} of its co-runners' kernels alone cost {duration(cause.kernels_seconds)}, "
        f"their transfers alone {duration(cause.transfers_seconds)}{_in_all(fit, beside)}.",
        _mixes(fit, f"bound {bounds.confidence:g}" if bounds else ""),
    ]
    if bounds:
        parts.append(
            f"{fit.bounded} keep {duration(fit.limit_seconds)} at confidence {bounds.confidence:g}, over "
            f"{bounds.over}. Times are those of measured runs."
        )
    if fit.bounded != fit.guaranteed:
        parts.append(
            "No run was measured at that rate: bounds are simulated as if each query took its own."
        )
    remarks = [f"Note: {note}." for note in notes]
    return Report(document, parts, notes=remarks, exit_code=_code(is_safe, rows))


def _why_no_more(fit: Fit) -> str:
    """As it was predicted, or as one more is bounded."""
    kept = _kept(fit)
    if kept == fit.instances:
        return fit.reason
    more = fit.mixes[kept + 1]
    bound = f"{more.bound_seconds:.4g} s" if more.bound_seconds < float("inf") else _bound(more)
    limit = f"over the {fit.limit} limit of {fit.limit_seconds:.4g} s"
    return f"the bound of {kept + 1} is {bound}, {limit}; as predicted {fit.instances} would"


def _in_all(fit: Fit, beside: int) -> str:
    """What so many instances cost as learned, of which no simulation of a part tells; nothing where nothing
    was measured, or they do not fit into memory."""
    mixes = [mix for mix in fit.mixes if mix.instances == beside and mix.outcome]
    costs = [duration(mix.latency.mean_seconds - fit.solo_seconds) for mix in mixes]
    return f" in the simulation; measured runs say {costs[0]} in all" if costs else ""


def _bounds(fit: Fit) -> list[dict[str, Any]]:
    """Of each number of instances, where runs were measured."""
    return [
        {
            "instances": mix.instances,
            "bound_seconds": finite(mix.bound_seconds),
            "outcome": mix.outcome,
            "limit_seconds": fit.limit_seconds,
        }
        for mix in fit.mixes
        if mix.outcome
    ]


def _mixes(fit: Fit, bound: str) -> Table:
    """bound: what its column is called, empty for none."""
    lines = []
    for mix in fit.mixes:
        line = [str(mix.instances), _time(mix.latency.mean_seconds)]
        line += [_time(mix.latency.p95_seconds), f"{mix.slowdown_ratio:.2f}x"]
        line += [_bound(mix)] if bound else []
        lines.append([*line, "yes" if mix.safe and mix.instances <= _kept(fit) else "no"])
    heads = ["instances", "mean", "p95", "slowdown"]
    heads += [bound] if bound else []
    return Table([*heads, "safe"], lines, right=range(len(heads)))


def table_answer(simulation: Simulation, fits: Sequence[Fit]) -> Report:
    """A row for every service and batch workload; ends with 0 where anything fits."""
    rows, every, is_safe = [], [], False
    bounds = simulation.measured
    for fit in fits:
        bound, safe = _bounds(fit), _kept(fit) >= simulation.wanted
        is_safe, every = is_safe or safe, [*every, *bound]
        chosen = fit.mixes[max(fit.instances, 0)]
        rows.append(
            {
                **_facts(fit, safe),
                "latency_seconds": simulation.objective.of(chosen.latency),
                "slowdown_ratio": chosen.slowdown_ratio,
                "bounds": bound,
            }
        )
    notes = simulation.notes(sorted({name for fit in fits for name in (fit.service, fit.batch)}))
    document = {
        "schema": "safe_fleet/v1",
        "safe": is_safe,
        "statistic": simulation.objective.statistic,
        "confidence": bounds.confidence if bounds else None,
        "bound_over": bounds.over if bounds else None,
        "rows": rows,
        "notes": notes,
    }
    heads = ["service", "batch", "instances", *(["guaranteed"] if bounds else [])]
    lines = []
    for row in rows:
        line = [row["target"], row["batch"], str(row["instances"])]
        line += [str(row["guaranteed_instances"])] if bounds else []
        line += [_time(row["latency_seconds"]), f"{row['slowdown_ratio']:.2f}x"]
        lines.append([*line, row["reason"]])
    columns = [*heads, simulation.objective.statistic, "slowdown", "why no more"]
    parts: list[Table | str] = [Table(columns, lines, right=range(2, len(heads) + 2))]
    if bounds:
        parts.append(f"guaranteed: at confidence {bounds.confidence:g}, over {bounds.over}.")
    remarks = [f"Note: {note}." for note in notes]
    return Report(document, parts, notes=remarks, exit_code=_code(is_safe, every))


def _kept(fit: Fit) -> int:
    return fit.instances if fit.bounded is None else min(fit.instances, fit.bounded)


def _code(is_safe: bool, rows: list[dict[str, Any]]) -> int:
    """rows: bounds, none where nothing was measured."""
    if is_safe:
        return 0
    beside = [row["bound_seconds"] for row in rows if row["instances"] > 0]
    return 3 if beside and not any(beside) else 1


def _facts(fit: Fit, is_safe: bool) -> dict[str, Any]:
    return {
        "target": fit.service,
        "batch": fit.batch,
        "safe": is_safe,
        "instances": max(fit.instances, 0),
        "guaranteed_instances": fit.guaranteed,
        "solo_seconds": fit.solo_seconds,
        "limit_seconds": fit.limit_seconds,
        "limit": fit.limit,
        "reason": fit.reason,
    }


def _time(seconds: float) -> str:
    return "starved" if seconds == float("inf") else duration(seconds)


def _bound(mix: Mix) -> str:
    none = mix.bound_seconds == float("inf")
    return f"none ({mix.outcome})" if none else duration(mix.bound_seconds)
