"""Measuring as reports: the machine, the plan, and what was measured here or by workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jostle._base.report import Report, Table, duration, percent
from jostle.errors import UsageError
from jostle.operations.reports._failure_advice import failures_of

if TYPE_CHECKING:
    from jostle.collect import Campaign, FleetSummary, Summary
    from jostle.data import Runs


def opcodes_report(names: Sequence[str], timeout_seconds: float | None) -> Report:
    """Count exactly what one WebAssembly workload executes in a repetition."""
    from jostle.collect import count_opcodes, find_workloads

    workloads = find_workloads(list(names))
    if len(workloads) != 1:
        raise UsageError(f"{len(workloads)} workloads are named", fix="Name one in `workload`.")
    counts = count_opcodes(workloads[0], timeout_seconds=timeout_seconds or 120.0)
    total = counts.instructions
    document = {
        "schema": "opcodes/v1",
        "workload": workloads[0].name,
        "instructions": total,
        "opcodes": counts.opcodes,
        "bulk_bytes": counts.bulk_bytes,
        "memory_bytes": counts.memory_bytes,
    }
    rows = sorted(counts.opcodes.items(), key=lambda pair: -pair[1])
    cells = [[str(count), percent(count / max(1, total), 2), name] for name, count in rows]
    return Report(document, [f"{total} instructions", Table(["count", "share", "opcode"], cells)])


def check_report() -> Report:
    """Check whether this machine is quiet; ends with exit code 1 if it is not."""
    from jostle.collect import check_machine

    check = check_machine()
    low, high = check.foreign_load_ratio
    lines = [
        "quiet: little would be taken off a run"
        if check.quiet
        else "not quiet: what runs lose to others is measured and taken off, which makes them less sure",
        *(f"- {text}" for text in check.disturbances),
        f"others held {low:.1%} of {len(check.cores)} cores (median; {high:.1%} nine times of ten), "
        f"sleepers woke up to {1000 * check.lateness_p99_seconds:.1f} ms late",
        *(f"  {name}: {load:.1%} of a core" for name, load in check.other_processes),
    ]
    return Report(check.to_json(), lines, exit_code=0 if check.quiet else 1)


def plan_report(campaign: Campaign, lines: Sequence[str]) -> Report:
    """Report a campaign as the lines of its file, with how much it measures; the document lists windows."""
    plan = campaign.plan()
    windows = [
        {
            "platform": campaign.platform(planned.engine),
            "members": [member.name for member in planned.members],
        }
        for planned in plan
    ]
    document = {
        "schema": "measure-plan/v1",
        "campaign": campaign.identity,
        "windows": windows,
    }
    alone = sum(len(planned.members) == 1 for planned in plan)
    seconds = duration(len(plan) * campaign.window_seconds)
    text = f"# {alone} windows alone and {len(plan) - alone} of sets, {seconds} or more in all, on "
    return Report(
        document, [*lines, "", text + ", ".join(sorted({w["platform"] for w in windows}))]
    )


def fleet_report(summary: FleetSummary) -> Report:
    """Report what the workers of a scheduler measured, campaign by campaign."""
    reports = [summary_report(one) for one in summary.campaigns]
    lines: list[Table | str] = []
    for one, report in zip(summary.campaigns, reports, strict=True):
        lines += [", ".join(one.platforms), *report.tables]
    workers = ", ".join(summary.workers) or "nobody"
    lines.append(f"measured by {workers}; {summary.lost} windows were given to another worker")
    notes = [f"warning: {text}" for text in summary.refused]
    return Report(summary.to_json(), lines, notes=notes + [n for one in reports for n in one.notes])


def summary_report(summary: Summary) -> Report:
    """Report what was measured, with warnings as notes; ends with 1 if nothing usable came out."""
    from jostle.data import summarise

    runs = _runs_of(summary)
    median = high = None
    if runs is not None:
        repeats = summarise(runs)
        median, high = repeats.repeatability_median_ratio, repeats.repeatability_p90_ratio
    document = {
        **summary.to_json(),
        "repeatability_median_ratio": median,
        "repeatability_p90_ratio": high,
    }
    done = summary.already + summary.ok + summary.failed + summary.timeout
    lines: list[Table | str] = [
        f"{summary.dataset}: {done} of {summary.planned} windows, campaign {summary.campaign}",
        f"this time {summary.ok} ok, {summary.failed} failed, {summary.timeout} timed out, "
        f"{summary.contaminated} rejected in {summary.elapsed_seconds:.0f} s",
    ]
    if median is not None and high is not None:
        lines.append(f"repeats agree within {median:.2%} (median), {high:.2%} (nine of ten)")
    if summary.disturbance:
        lines.append(summary.disturbance)
    if summary.given_up:
        lines.append(
            f"{summary.given_up} were rejected every time; more attempts (in its file) try them again"
        )
    if summary.remaining:
        lines.append(f"{summary.remaining} remain; the same command goes on with them")
    if runs is not None:
        document["failures"], tables = failures_of(runs)
        lines += tables
    notes = [f"warning: {warning}" for warning in summary.warnings]
    is_useless = bool(summary.planned) and (runs is None or not len(runs.ok()))
    if is_useless:
        notes.append("nothing usable came out")
    return Report(document, lines, notes=notes, exit_code=int(is_useless))


def _runs_of(summary: Summary) -> Runs | None:
    """Read the campaign's runs; None before its first file."""
    from jostle.data import Dataset

    dataset = Dataset(summary.dataset)
    if not dataset.exists:
        return None
    import pyarrow.dataset

    runs = dataset.read()
    ours = runs.table.filter(pyarrow.dataset.field("campaign") == summary.campaign)
    return type(runs)(ours, runs.workload_features, runs.platform_features)
