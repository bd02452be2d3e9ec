"""What scores say, as metrics, as a document and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle._base.report import Table, percent
from jostle.usage import METHODS
from studies.bridge.scores import Scores, came_true

SURE = 0.99
LEVELS = (0.9, 0.99, 0.995)


def accuracy_metrics(scores: Sequence[Scores]) -> dict[str, float]:
    """`w2_over_oracle_ratio_METHOD_DATA`, `w2_oracle_DATA`, `leaks_DATA`; `came_true_of_99_percent_METHOD`:
    over all data."""
    metrics: dict[str, float] = {}
    for one in scores:
        tag = one.name.replace("-", "_")
        metrics[f"w2_oracle_{tag}"] = one.mean("oracle")
        metrics[f"leaks_{tag}"] = float(one.leaks)
        for method in one.methods:
            if method != "oracle":
                metrics[f"w2_over_oracle_ratio_{method}_{tag}"] = one.ratio(method)
            metrics[f"crps_{method}_{tag}"] = one.mean(method, "crps")
            metrics[f"brier_{method}_{tag}"] = one.mean(method, "brier")
    for method in METHODS:
        claims = [one.claims[method] for one in scores if method in one.claims]
        share, count = came_true(claims, SURE) if claims else (float("nan"), 0)
        if count:
            metrics[f"came_true_of_99_percent_{method}"] = share
    return metrics


def reliability_table(scores: Sequence[Scores]) -> Table:
    """Of what methods call so likely at least, or its opposite, how much came true, over all data."""
    rows = []
    for method in ("oracle", *METHODS):
        claims = [one.claims[method] for one in scores if method in one.claims]
        if claims:
            found = [came_true(claims, level) for level in LEVELS]
            rows.append([method, *(f"{share:.2%} ({count})" for share, count in found)])
    columns = ["of what was called", *(f"{level:.1%} likely" for level in LEVELS)]
    return Table(columns, rows, "Came true (and how often it was claimed)")


def score_table(scores: Scores) -> Table:
    """Methods by mean W2, with paired differences to exact transport; of what each called 99% likely, or its
    opposite, how much came true, and how often it was claimed."""
    columns = ["method", "W2", "over oracle", "skill", "vs ot", "q95 error", "q99 error"]
    columns += [
        "CRPS",
        "Brier 1e-3",
        "99% came true",
        *(f"W1 {name}" for name in scores.components),
    ]
    rows = []
    for method in sorted(scores.methods, key=scores.mean):
        gap, error = scores.paired(method)
        row = [method, f"{scores.mean(method):.3f}"]
        row += [f"{scores.ratio(method):.2f}", f"{scores.skill(method):.2f}"]
        row += ["" if method == "ot" else f"{gap:+.3f} ± {error:.3f}"]
        row += [f"{scores.mean(method, measure):.3f}" for measure in ("q95", "q99")]
        row += [f"{scores.mean(method, 'crps'):.4f}"]
        row += [f"{1e3 * scores.mean(method, 'brier'):.2f}"]
        share, count = scores.came_true(method, SURE)
        row += [f"{percent(share, 2)} ({count})"]
        row += [f"{value:.3g}" for value in scores.component_errors(method).values()]
        rows.append(row)
    title = f"{scores.name}: {len(scores)} questions, {scores.leaks} leaks left out"
    return Table(columns, rows, title)


def score_document(scores: Scores) -> dict[str, Any]:
    """The same as a document: every method's errors, per component in its own units."""
    return {
        "name": scores.name,
        "questions": len(scores),
        "leaks": scores.leaks,
        "methods": {
            method: {
                "w2_scaled": scores.mean(method),
                "w2_over_oracle_ratio": scores.ratio(method),
                "q95_error_scaled": scores.mean(method, "q95"),
                "q99_error_scaled": scores.mean(method, "q99"),
                "crps_scaled": scores.mean(method, "crps"),
                "brier": scores.mean(method, "brier"),
                **_reliability(scores, method),
                "w1_per_second": scores.component_errors(method),
            }
            for method in scores.methods
        },
    }


def _reliability(scores: Scores, method: str) -> dict[str, Any]:
    share, count = scores.came_true(method, SURE)
    return {"came_true_of_99_percent": share if count else None, "claims_of_99_percent": count}
