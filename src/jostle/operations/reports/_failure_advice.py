"""Why runs did not come out, and what to do: at the end of a campaign, and of a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jostle._base.report import Table, percent

if TYPE_CHECKING:
    from jostle.data import Runs

_MOST = 20
# What follows from another failure, which is told itself.
_CONSEQUENCES = ("a co-runner failed", "not started: ")
_ORDER = ("failed", "timeout", "contaminated", "ok")
# The first that fits: (status, a pattern of the reason, what to do).
_ADVICE = (
    ("failed", "cannot be started", "Check the program's path, and that it may be executed."),
    (
        "failed",
        "No such file|not found|FileNotFound|cannot open",
        "Programs run where you stand, or in the `directory` of a campaign's file: start there, or name "
        "files by whole paths. In a `fresh_folder` they see only what --input copies.",
    ),
    ("failed", "standard output is not", "Compare what it prints with the file of `expect`."),
    ("failed", "the server|requests failed", "Start the server by hand and ask it at this rate."),
    ("failed", "repetitions are too short", "Give it more to do in one repetition."),
    (
        "failed",
        "exit code|signal",
        "Run the command by hand in the same folder: it fails there too.",
    ),
    (
        "failed",
        "^(CANCELLED|REQUEUED|NODE_FAIL|PREEMPTED|BOOT_FAIL|REVOKED)",
        "Nothing: it was ended from outside.",
    ),
    ("failed", "^OUT_OF_ME", "Ask the scheduler for more memory."),
    ("failed", "", "Run it by itself to see why."),
    ("timeout", "^TIMEOUT", "Ask the scheduler for longer: jostle predict --future says how long."),
    ("timeout", "", "Give it longer with --timeout SECONDS, or see by hand why it does not end."),
    (
        "contaminated",
        "repetitions in the window",
        "The same command tries again with longer windows; --window SECONDS sets their length.",
    ),
    (
        "contaminated",
        "",
        "The same command tries again; more attempts (in a campaign's file) try longer.",
    ),
)


@dataclass(frozen=True)
class Failure:
    """A kind of failed runs, with their number. count: runs of the workload on the platform that ended so; of
    runs that are ok, executions that failed. reason: of the last of them. ratio: of all executions, where the
    others counted."""

    workload: str
    platform: str
    status: str
    count: int
    reason: str
    fix: str
    ratio: float | None = None


def failures_of(runs: Runs) -> tuple[list[dict[str, Any]], list[Table | str]]:
    """Describe each kind of failure, (as JSON objects, as tables and sentences); both empty if all runs ended
    well."""
    found = sorted(_failures(runs), key=lambda one: (_ORDER.index(one.status), one.workload))
    if not found:
        return [], []
    cells = {
        "workload": "workload",
        "on": lambda one: one.platform.partition(":")[0],
        "how often": lambda one: (
            f"{one.status}, {one.count}"
            if one.ratio is None
            else f"{percent(one.ratio)} of executions failed, {one.count}; the others count"
        ),
        "why": "reason",
        "what to do": "fix",
    }
    parts: list[Table | str] = ["", Table.of(found[:_MOST], cells, "What did not come out")]
    if len(found) > _MOST:
        parts.append(f"and {len(found) - _MOST} more kinds of failures; --json has all of them")
    return [asdict(one) for one in found], parts


def _failures(runs: Runs) -> Iterable[Failure]:
    import pyarrow.dataset

    field = pyarrow.dataset.field
    names = ["workload", "platform", "status", "reason"]
    groups: dict[tuple[str, ...], Failure] = {}
    for row in runs.table.filter(field("status") != "ok").select(names).to_pylist():
        workload, platform, status, reason = (str(row[name] or "") for name in names)
        if reason.startswith(_CONSEQUENCES):
            continue
        # Reasons that differ in their numbers only are one.
        key = (workload, platform, status, re.sub(r"[0-9][0-9.,:]*", "#", reason))
        count = groups[key].count + 1 if key in groups else 1
        fix = next(
            fix for kind, pattern, fix in _ADVICE if kind == status and re.search(pattern, reason)
        )
        groups[key] = Failure(workload, platform, status, count, reason or "not told", fix)
    yield from groups.values()
    yield from _now_and_then(runs)


def _now_and_then(runs: Runs) -> Iterable[Failure]:
    """Return programs of which some executions failed."""
    names = ["workload", "platform", "failed_executions", "repetitions", "failure"]
    if not set(names) <= set(runs.table.column_names):
        return
    rows = runs.ok().table.select(names).to_pylist()
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["workload"], row["platform"]), []).append(row)
    for (workload, platform), own in groups.items():
        failed = sum(int(row["failed_executions"] or 0) for row in own)
        if failed:
            ended = sum(int(row["repetitions"] or 0) for row in own)
            reason = next(row["failure"] for row in reversed(own) if row["failure"])
            fix = "Nothing, if it is known to fail now and then."
            ratio = failed / (failed + ended)
            yield Failure(workload, platform, "ok", failed, reason, fix, ratio)
