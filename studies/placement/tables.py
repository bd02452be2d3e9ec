"""Policies side by side as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle._report import Table, duration, percent


def policy_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Sets placed at once."""
    lines = [
        [
            row["policy"],
            f"{row['placed_sets']:.1f}",
            percent(row["violated_ratio"]),
            percent(row["saved_of_clairvoyant_ratio"], 0),
            percent(row["accepted_late_ratio"], 2),
            percent(row["accepted_late_error_ratio"], 2),
            f"{row['decisions_per_second']:.3g}",
        ]
        for row in rows
    ]
    heads = [
        "policy",
        "sets placed",
        "violated of them",
        "saved of clairvoyant's",
        "accepted and late of asked",
        "error",
        "decisions/s",
    ]
    return Table(heads, lines, range(1, len(heads)))


def cluster_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Jobs that come and go."""
    lines = [
        [
            row["policy"],
            percent(row["violated_ratio"], 2),
            percent(row["violated_error_ratio"], 2),
            percent(row["shared_ratio"], 0),
            f"{row['node_hours']:.4g}",
            percent(row["saved_ratio"]),
            percent(row["saved_of_clairvoyant_ratio"], 0),
            duration(row["wait_mean_seconds"]),
            duration(row["wait_p95_seconds"]),
            f"{row['decisions_per_second']:.3g}",
        ]
        for row in rows
    ]
    heads = [
        "policy",
        "jobs violated",
        "error",
        "shared a node",
        "node hours",
        "saved",
        "of clairvoyant's",
        "mean wait",
        "p95 wait",
        "decisions/s",
    ]
    title = f"{rows[0]['jobs']} jobs that come to a cluster and go"
    return Table(heads, lines, range(1, len(heads)), title)
