"""What `jostle measure` prints: the plan, and what was measured here or by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.cli.console import note, print_json, say

if TYPE_CHECKING:
    from jostle.measure import Campaign, FleetSummary, Summary
    from jostle.runs import Runs


def print_plan(campaign: Campaign, as_json: bool) -> None:
    """The windows of a campaign, in the order they would be measured."""
    windows = [
        (campaign.platform(planned.engine), [member.name for member in planned.members])
        for planned in campaign.plan()
    ]
    if not as_json:
        for platform, members in windows:
            say(f"{platform}  {' + '.join(members)}")
        return
    print_json(
        {
            "schema": "measure-plan/v1",
            "campaign": campaign.identity,
            "windows": [{"platform": platform, "members": names} for platform, names in windows],
        }
    )


def print_fleet(summary: FleetSummary, as_json: bool) -> None:
    """What the workers of a scheduler measured, campaign by campaign."""
    for text in summary.refused:
        note(f"warning: {text}")
    if as_json:
        print_json(summary.to_json())
        return
    for one in summary.campaigns:
        say(", ".join(one.platforms))
        print_summary(one, False)
    workers = ", ".join(summary.workers) or "nobody"
    say(f"measured by {workers}; {summary.lost} windows were given to another worker")


def print_summary(summary: Summary, as_json: bool) -> None:
    """The result on standard output, warnings on standard error."""
    median, high = _repeatability(summary)
    for warning in summary.warnings:
        note(f"warning: {warning}")
    if as_json:
        repeats = {"repeatability_median_ratio": median, "repeatability_p90_ratio": high}
        print_json({**summary.to_json(), **repeats})
        return
    done = summary.already + summary.ok + summary.failed + summary.timeout
    say(f"{summary.dataset}: {done} of {summary.planned} windows, campaign {summary.campaign}")
    say(
        f"this time {summary.ok} ok, {summary.failed} failed, {summary.timeout} timed out, "
        f"{summary.contaminated} contaminated in {summary.elapsed_seconds:.0f} s"
    )
    if median is not None and high is not None:
        say(f"repeats agree within {median:.2%} (median), {high:.2%} (nine of ten)")
    if summary.given_up:
        say(f"{summary.given_up} were disturbed every time; more --attempts tries them again")
    if summary.remaining:
        say(f"{summary.remaining} remain; the same command goes on with them")


def has_usable(summary: Summary) -> bool:
    """Whether the dataset holds any run of this campaign that can be learned from."""
    found = _runs_of(summary)
    return found is not None and len(found.ok()) > 0


def _repeatability(summary: Summary) -> tuple[float | None, float | None]:
    """Median and p90 of |log ratio| between repeats of this campaign; None without repeats."""
    from jostle.runs import summarise

    runs = _runs_of(summary)
    if runs is None:
        return None, None
    found = summarise(runs)
    return found.repeatability_median_ratio, found.repeatability_p90_ratio


def _runs_of(summary: Summary) -> Runs | None:
    """The campaign's runs; None before its first file."""
    from jostle.runs import Dataset

    dataset = Dataset(summary.dataset)
    if not dataset.exists:
        return None
    import pyarrow.dataset

    runs = dataset.read()
    ours = runs.table.filter(pyarrow.dataset.field("campaign") == summary.campaign)
    return type(runs)(ours, runs.workload_features, runs.platform_features)
