"""How many instances fit beside a service: one co-location in detail, or a table of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle._base.report import Report, Table, duration, finite
from jostle.operations.gpu_sharing._gpu_simulation import MeasuredRest, no_bounds, time_text

if TYPE_CHECKING:
    from jostle.gpu import Cause, Fit, TenantSet


def one_answer(
    fit: Fit,
    cause: tuple[int, Cause],
    wanted: int,
    measured: MeasuredRest | None,
    notes: list[str],
) -> Report:
    """Report how many instances fit and why.

    cause: number of co-runners, and what they cost.
    wanted: number of instances that have to fit.
    """
    kept, rows, (beside, costs) = kept_of(fit), _bounds(fit), cause
    is_safe = kept >= wanted
    kernels, transfers = costs.kernels_seconds, costs.transfers_seconds
    document = {
        "schema": "safe/v1",
        **_facts(fit, is_safe),
        "statistic": fit.sets[0].times[0].statistic if fit.sets[0].times else None,
        "lost_to_kernels_seconds": kernels,
        "lost_to_transfers_seconds": transfers,
        "confidence": measured.confidence if measured else None,
        "bound_over": measured.over if measured else None,
        "bounds": rows,
        "mixes": [_mix(fit, n, one, kept) for n, one in enumerate(fit.sets) if one.times],
        "notes": notes,
    }
    parts: list[Table | str] = [
        f"{kept} of {fit.batch} fit beside {fit.service}: {_why_no_more(fit)}."
        if kept > 0
        else f"No {fit.batch} fits beside {fit.service}: {_why_no_more(fit)}.",
        f"Of that, {beside} of its co-runners' kernels alone cost {duration(kernels)}, their transfers "
        f"alone {duration(transfers)}{_in_all(fit, beside)}.",
        _mixes(fit, f"bound {measured.confidence:g}" if measured else ""),
    ]
    if measured:
        parts.append(
            f"{fit.bounded} keep {duration(fit.limit_seconds)} at confidence {measured.confidence:g}, over "
            f"{measured.over}. Times are those of measured runs."
        )
    if fit.bounded != fit.guaranteed:
        parts.append(
            "No run was measured at that rate: bounds are simulated as if each query took its own."
        )
    parts += no_bounds(time for one in fit.sets for time in one.times[:1])
    remarks = [f"Note: {note}." for note in notes]
    return Report(document, parts, notes=remarks, exit_code=_code(is_safe, rows))


def _mix(fit: Fit, instances: int, one: TenantSet, kept: int) -> dict[str, Any]:
    way, mine = one.arrangement, one.times[0]
    assert way is not None
    of_service = way.latencies[0]
    return {
        "instances": instances,
        "latency_seconds": finite(mine.seconds),
        "mean_seconds": finite(of_service.mean_seconds),
        "p95_seconds": finite(of_service.p95_seconds),
        "p99_seconds": finite(of_service.p99_seconds),
        "slowdown_ratio": finite(mine.seconds / fit.solo_seconds),
        "load_ratio": finite(mine.load_ratio),
        "verdict": one.verdict,
        "shared": way.text(one.members),
        "safe": one.verdict == "within" and instances <= kept,
    }


def _why_no_more(fit: Fit) -> str:
    """Say why no more instances fit: by the prediction, or by the bound of one more."""
    kept = kept_of(fit)
    if kept == fit.instances:
        return fit.reason
    bound = _bound(fit.sets[kept + 1])
    limit = f"over the {fit.limit} limit of {fit.limit_seconds:.4g} s"
    return f"the bound of {kept + 1} is {bound}, {limit}; as predicted {fit.instances} would"


def _in_all(fit: Fit, beside: int) -> str:
    """Say what so many instances cost as learned, of which no simulation of a part tells; nothing where
    nothing was measured, or they do not fit into memory."""
    if beside >= len(fit.sets) or fit.sets[beside].is_bounded is None:
        return ""
    cost = fit.sets[beside].times[0].seconds - fit.solo_seconds
    return f" in the simulation; measured runs say {time_text(cost)} in all"


def _bounds(fit: Fit) -> list[dict[str, Any]]:
    """List the bound of each number of instances, where runs were measured."""
    return [
        {
            "instances": n,
            "bound_seconds": finite(one.times[0].bound_seconds),
            "outcome": one.times[0].outcome,
            "limit_seconds": fit.limit_seconds,
        }
        for n, one in enumerate(fit.sets)
        if one.times and one.times[0].outcome
    ]


def _mixes(fit: Fit, bound: str) -> Table:
    """bound: what its column is called, empty for none."""
    lines = []
    for n, one in enumerate(fit.sets):
        if one.arrangement is None:
            continue
        mine, latency = one.times[0], one.arrangement.latencies[0]
        grows = mine.load_ratio >= 1
        line = [str(n), "grows" if grows else time_text(latency.mean_seconds)]
        line += ["grows" if grows else time_text(latency.p95_seconds)]
        line += [f"{mine.seconds / fit.solo_seconds:.2f}x", *([_bound(one)] if bound else [])]
        is_safe = one.verdict == "within" and n <= kept_of(fit)
        lines.append([*line, "yes" if is_safe else "no"])
    heads = ["instances", "mean", "p95", "slowdown"]
    heads += [bound] if bound else []
    return Table([*heads, "safe"], lines)


def table_answer(
    fits: Sequence[Fit],
    statistic: str,
    wanted: int,
    measured: MeasuredRest | None,
    notes: list[str],
) -> Report:
    """Report a row for every service and batch workload; ends with 0 where anything fits."""
    rows, every, is_safe = [], [], False
    for fit in fits:
        bound, safe = _bounds(fit), kept_of(fit) >= wanted
        is_safe, every = is_safe or safe, [*every, *bound]
        chosen = fit.sets[max(fit.instances, 0)]
        seconds = chosen.times[0].seconds if chosen.times else float("nan")
        rows.append(
            {
                **_facts(fit, safe),
                "latency_seconds": finite(seconds),
                "slowdown_ratio": finite(seconds / fit.solo_seconds),
                "bounds": bound,
            }
        )
    document = {
        "schema": "safe_fleet/v1",
        "safe": is_safe,
        "statistic": statistic,
        "confidence": measured.confidence if measured else None,
        "bound_over": measured.over if measured else None,
        "rows": rows,
        "notes": notes,
    }
    heads = ["service", "batch", "instances", *(["guaranteed"] if measured else [])]
    lines = []
    for row in rows:
        line = [row["target"], row["batch"], str(row["instances"])]
        line += [str(row["guaranteed_instances"])] if measured else []
        known = row["latency_seconds"] is not None
        line += (
            [time_text(row["latency_seconds"]), f"{row['slowdown_ratio']:.2f}x"]
            if known
            else ["–", "–"]
        )
        lines.append([*line, row["reason"]])
    columns = [*heads, statistic, "slowdown", "why no more"]
    parts: list[Table | str] = [Table(columns, lines)]
    if measured:
        parts.append(f"guaranteed: at confidence {measured.confidence:g}, over {measured.over}.")
    remarks = [f"Note: {note}." for note in notes]
    return Report(document, parts, notes=remarks, exit_code=_code(is_safe, every))


def kept_of(fit: Fit) -> int:
    """Count the instances that fit as predicted and as bounded."""
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


def _bound(one: TenantSet) -> str:
    mine = one.times[0]
    return "none" if mine.bound_seconds == float("inf") else duration(mine.bound_seconds)
