"""What scores say, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from jostle._base.report import Table, percent
from jostle.usage import METHODS
from studies.bridge.scores import Scores, came_true

SURE = 0.99
LEVELS = (0.9, 0.99, 0.995)


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
