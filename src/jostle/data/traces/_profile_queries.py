"""One query out of a profile of many: by steps that were marked while recording, or by gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from jostle._base.report import duration
from jostle.data.tables.arrow_compute import with_column
from jostle.data.traces._profile_tasks import Profile
from jostle.errors import BadData, require_choice

WAYS = ("auto", "whole", "steps", "gaps")
LEAST_JUMP = 3.0  # of gaps between queries over those inside them


def one_query(profile: Profile, way: str = "auto") -> Profile:
    """Return the query of median length, of those that the profile holds; notes say how many there are and
    how far apart they lie.

    way: `steps`, as marked (a query's tasks begin from its mark's start to the next one's); `gaps`, where the
    device idles three times as long as anywhere inside; `auto`, by steps where at least two have tasks, else
    whole; `whole`. Raises BadData where there are none, UsageError for another way.
    """
    require_choice("way to tell queries", way, WAYS)
    start = profile.column("start_seconds")
    stop = start + profile.column("duration_seconds")
    if way == "whole":
        return profile
    if way == "gaps":
        code = _by_gaps(start, stop, profile.run_id)
    else:
        # A task belongs to the last mark that had begun; -1 before the first.
        code = np.searchsorted(np.sort(profile.marks), start, side="right") - 1
    queries = np.unique(code[code >= 0])
    if way == "auto" and len(queries) < 2:
        return profile
    if not len(queries):
        raise BadData(
            "no task lies in a marked step",
            where=profile.run_id,
            fix="Record with torch.profiler's schedule and step(), say --mark, or --queries gaps.",
        )
    span = np.array([stop[code == q].max() - start[code == q].min() for q in queries])
    order = np.argsort(span, kind="stable")
    median_query = queries[order[(len(order) - 1) // 2]]
    tasks = profile.tasks.filter(pa.array(code == median_query))
    tasks = with_column(tasks, "sequence", pa.array(np.arange(len(tasks))))
    how = "gaps" if way == "gaps" else "marked steps"
    notes = [
        f"one of {len(queries)} queries, told apart by {how}: the one of median length, "
        f"{duration(float(np.median(span)))}, of {duration(span.min())} to {duration(span.max())}"
    ]
    if (before := int((code < 0).sum())) > 0:
        notes.append(f"{before} tasks before the first marked step were left out")
    return replace(profile, tasks=tasks, notes=(*profile.notes, *notes), marks=())


def _by_gaps(start: np.ndarray, stop: np.ndarray, where: str) -> np.ndarray:
    """Return (n,) the number of the query of each task."""
    idle = np.maximum(start[1:] - np.maximum.accumulate(stop)[:-1], 0.0)
    longest = -np.sort(-idle)
    least = np.maximum(longest[1:], 1e-9)
    jump = longest[:-1] / least if len(longest) > 1 else np.zeros(0)
    if not len(jump) or jump.max() < LEAST_JUMP:
        raise BadData(
            "no gaps stand out between queries",
            where=where,
            fix="Record with marked steps, or take the profile whole (--queries whole).",
        )
    bound = longest[int(np.argmax(jump))]
    return np.concatenate([[0], np.cumsum(idle >= bound)])
