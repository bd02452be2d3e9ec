"""What `jostle forecast` says: tables, or documents for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle._report import Table

if TYPE_CHECKING:
    from jostle.bridge import Distribution, Exceedance

    Total = tuple[float, Distribution, Mapping[str, Exceedance], float | None]

QUANTILES = (0.05, 0.5, 0.95, 0.99)


def answers_table(answers: Sequence[Distribution], limits: Mapping[str, float]) -> Table:
    """A table: per time and component mean, deviation and quantiles."""
    rows: list[list[str]] = []
    for found in answers:
        rows += _lines(found, found.time_seconds)
        if found.idle_ratio:
            rows.append(["", "ended by then", f"{found.idle_ratio:.1%}", *[""] * 5])
        if limits:
            probability = found.exceedance_ratio(limits)
            rows.append(["", "P(over limit)", f"{probability:.4f}", *[""] * 5])
    return _table(rows)


def totals_table(totals: Sequence[Total], capacities: Mapping[str, float]) -> Table:
    """A table of the sums, and the probability of every capacity to be exceeded."""
    rows: list[list[str]] = []
    for time, total, over, both in totals:
        rows += _lines(total, time)
        for name, found in over.items():
            text = f"{found.ratio:.4f}"
            if found.high_ratio - found.low_ratio > 1e-4:
                text += f" ({found.low_ratio:.4f} to {found.high_ratio:.4f})"
            rows.append(["", f"P({name} > {capacities[name]:g})", text, *[""] * 5])
        if both is not None:
            rows.append(["", "P(any of them)", f"{both:.4f}", *[""] * 5])
    return _table(rows)


def answer_document(
    found: Distribution, limits: Mapping[str, float], atoms: int | None
) -> dict[str, Any]:
    """An answer as a document; atoms: also as so many of them."""
    document = {
        "time_seconds": found.time_seconds,
        "method": found.method,
        "atoms": len(found),
        "effective_atoms": found.effective_atoms,
        "idle_ratio": found.idle_ratio,
        "components": _components(found),
        "covariance": found.covariance.tolist(),
        "limits_per_second": dict(limits) or None,
        "exceedance_ratio": found.exceedance_ratio(limits) if limits else None,
        "details": dict(found.details),
        "warnings": list(found.warnings),
    }
    if atoms is not None:
        small = found.summary(atoms)
        document["summary"] = {"atoms": small.atoms.tolist(), "weights": small.weights.tolist()}
    return document


def total_document(
    time: float,
    total: Distribution,
    over: Mapping[str, Exceedance],
    both: float | None,
    capacities: Mapping[str, float],
) -> dict[str, Any]:
    """The sum as a document."""
    return {
        "time_seconds": time,
        "components": _components(total),
        "capacities_per_second": dict(capacities),
        "exceedance_ratio": {name: found.ratio for name, found in over.items()},
        "exceedance_low_ratio": {name: found.low_ratio for name, found in over.items()},
        "exceedance_high_ratio": {name: found.high_ratio for name, found in over.items()},
        "exceedance_of_any_ratio": both,
    }


def _components(found: Distribution) -> dict[str, Any]:
    table = found.quantile(QUANTILES)
    return {
        name: {
            "mean_per_second": float(found.mean[column]),
            "quantiles_per_second": {
                f"{level:g}": float(value)
                for level, value in zip(QUANTILES, table[:, column], strict=True)
            },
        }
        for column, name in enumerate(found.components)
    }


def _lines(found: Distribution, time: float) -> list[list[str]]:
    from jostle.traces import is_level

    table = found.quantile(QUANTILES)
    return [
        [
            f"{time:g} s" if column == 0 else "",
            f"{name} (level)" if is_level(name) else name,
            f"{found.mean[column]:.4g}",
            f"{max(found.covariance[column, column], 0.0) ** 0.5:.3g}",
            *(f"{value:.4g}" for value in table[:, column]),
        ]
        for column, name in enumerate(found.components)
    ]


def _table(rows: Sequence[Sequence[str]]) -> Table:
    levels = [f"{level:.0%}" for level in QUANTILES]
    return Table(["time", "per second", "mean", "std", *levels], rows, right=range(2, 8))
