"""A plan follows from its settings alone, and the journal loses and doubles nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jostle.collect import Campaign, command_workload, find_workloads, probe_workloads
from jostle.collect.campaign._journal import Journal
from jostle.errors import UnknownName, UsageError

SMALL = {"workloads": ["sort-s", "edit-s", "chase-s"], "engines": ["none", "speed"], "device": "d"}


def keys(**settings) -> list[str]:
    return [planned.key for planned in Campaign(**{**SMALL, **settings}).plan()]


def test_the_same_settings_give_the_same_plan_whatever_the_order_they_are_named_in() -> None:
    other = {"workloads": ["chase-s", "edit-s", "sort-s", "edit-*s"], "engines": ["speed", "none"]}
    assert keys() == keys(**other)
    assert Campaign(**SMALL).identity == Campaign(**{**SMALL, **other}).identity
    assert keys() != keys(seed=1)
    assert Campaign(**SMALL).identity != Campaign(**SMALL, seed=1).identity


def test_asking_for_more_only_adds() -> None:
    fewer, more = keys(solo_repeats=1, sets=10), keys(solo_repeats=3, sets=40)
    assert set(fewer) < set(more)
    assert len(set(more)) == len(more) == 3 * 2 * 3 + 40
    identities = {Campaign(**SMALL, sets=sets).identity for sets in (0, 10, 40)}
    assert len(identities) == 1


def test_probes_put_everyone_beside_every_stressor_and_nobody_else() -> None:
    stressors = [one.name for one in probe_workloads()]
    plan = Campaign(**SMALL, probes=True, solo_repeats=2, sets=30).plan()
    met = {
        tuple(m.name for m in planned.members)
        for planned in plan
        if any(m.name in stressors for m in planned.members) and len(planned.members) > 1
    }
    expected = {
        tuple(sorted((name, stressor)))
        for stressor in stressors
        for name in [*(f"{kernel}-s" for kernel in ("sort", "edit", "chase")), *stressors]
    }
    assert met == expected
    per_window = [planned.key for planned in plan]
    assert len(set(per_window)) == len(per_window) == 2 * 2 * (7 + len(expected)) + 30
    # Who is not asked for probes has the plan and the name that he had.
    assert keys(probes=False) == keys()
    assert Campaign(**SMALL, probes=True).identity != Campaign(**SMALL).identity
    assert Campaign(**SMALL, probes=False).identity == Campaign(**SMALL).identity
    # Fewer stressors are a campaign of its own, the same by either name.
    few = Campaign(**SMALL, probes=True, stressors=("stream", "probe-core"), sets=0, solo_repeats=1)
    assert sorted({m.name for p in few.plan() for m in p.members if "probe" in m.name}) == [
        "probe-core",
        "probe-stream",
    ]
    assert len(few.plan()) == 2 * (5 + 2 * 3 + 3)
    assert few.identity == replace(few, stressors=("core", "stream")).identity
    assert few.identity != replace(few, stressors=("stream",)).identity
    with pytest.raises(UsageError, match="Set `probes`"):
        Campaign(**SMALL, stressors=("stream",))
    with pytest.raises(UnknownName, match="cache"):
        Campaign(**SMALL, probes=True, stressors=("cash",))
    with pytest.raises(UsageError, match="two cores"):
        Campaign(**SMALL, probes=True, cores=[min(os.sched_getaffinity(0))])


def test_command_lines_beside_stressors_have_sets_on_the_engines_that_run_them() -> None:
    jobs = [command_workload(["sleep", seconds], None) for seconds in ("0.01", "0.02")]
    plan = Campaign(
        workloads=jobs, engines=["native", "speed"], device="d", probes=True, sets=6
    ).plan()
    sets = [
        p for p in plan if len(p.members) > 1 and not any("probe-" in m.name for m in p.members)
    ]
    assert len(sets) == 6
    assert {planned.engine for planned in sets} == {"native"}
    alone = Campaign(workloads=jobs, device="d", probes=True, stressors=("core",), sets=0)
    assert alone.engine_names == ("native",)


def test_every_workload_is_measured_alone_before_any_set() -> None:
    plan = Campaign(**SMALL, solo_repeats=2, sets=9).plan()
    assert all(len(planned.members) == 1 and planned.ordinal == 0 for planned in plan[:6])
    sets = [planned for planned in plan if len(planned.members) > 1]
    assert {len(planned.members) for planned in sets} == {2, 3, 4}
    assert {planned.engine for planned in sets} == {"none", "speed"}


def test_members_are_a_multiset_in_sorted_order() -> None:
    for planned in Campaign(**SMALL, sets=50).plan():
        names = [member.name for member in planned.members]
        assert names == sorted(names)
    assert any(
        len({member.name for member in planned.members}) < len(planned.members)
        for planned in Campaign(**SMALL, sets=50).plan()
    )


def test_window_identities_are_stable_and_distinct() -> None:
    campaign = Campaign(**SMALL)
    names = {campaign.window_id(planned, a) for planned in campaign.plan() for a in (0, 1)}
    assert len(names) == 2 * len(campaign.plan())
    again = Campaign(**SMALL)
    assert again.window_id(again.plan()[3], 0) == campaign.window_id(campaign.plan()[3], 0)


def test_another_module_is_another_campaign(tmp_path: Path) -> None:
    from dataclasses import replace

    sort = find_workloads(["sort-s"])[0]
    other = tmp_path / "sort.wasm"
    other.write_bytes(sort.module_bytes + b"\0\2\1x")  # a custom section more
    assert (
        Campaign(workloads=[sort], device="d").identity
        != Campaign(workloads=[replace(sort, module=other)], device="d").identity
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"set_sizes": (1, 2)},
        {"set_sizes": (3, 2)},
        {"sets": -1},
        {"window_seconds": 0},
        {"cores": [100_000]},
        {"cores": []},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict) -> None:
    with pytest.raises(UsageError):
        Campaign(**{**SMALL, **settings})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName):
        Campaign(workloads=["sort-huge"])
    with pytest.raises(UnknownName):
        Campaign(engines=["wasm64-nowhere"])


def row(window_id: str) -> dict:
    return {"window_id": window_id, "measured_at": datetime(2024, 1, 2, tzinfo=UTC), "x": 1.5}


class Dataset:
    """Batches of rows, and the windows in them."""

    def __init__(self) -> None:
        self.batches: list[list[dict]] = []

    def known(self) -> set[str]:
        return {row["window_id"] for batch in self.batches for row in batch}

    def journal(self, path: Path, clock=lambda: 0.0) -> Journal:
        write = self.batches.append
        return Journal(path, "c", write=lambda r: write(list(r)), known=self.known, clock=clock)


def test_rows_become_files_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    dataset, now = Dataset(), [0.0]
    with dataset.journal(tmp_path, lambda: now[0]) as journal:
        for number in range(12):
            now[0] = 6.0 * number
            journal.append([row(f"w{number}")])
    assert [len(batch) for batch in dataset.batches] == [6, 6]
    assert dataset.batches[0][0] == row("w0")


def test_chosen_sets_are_measured_first_in_their_order_and_apart_from_others() -> None:
    chosen = [
        ("speed", ("sort-s", "chase-s")),
        ("none", ("edit-s",)),
        ("speed", ("chase-s", "sort-s")),
    ]
    campaign = Campaign(**SMALL, chosen=chosen, solo_repeats=1, sets=3)
    plan = campaign.plan()
    assert [(p.engine, [m.name for m in p.members]) for p in plan[:3]] == [
        ("speed", ["chase-s", "sort-s"]),
        ("none", ["edit-s"]),
        ("speed", ["chase-s", "sort-s"]),
    ]
    names = [planned.key for planned in plan]
    assert len(set(names)) == len(names) == 3 + 6 + 3
    assert names[3:] == keys(solo_repeats=1, sets=3)
    assert campaign.identity != Campaign(**SMALL, solo_repeats=1, sets=3).identity
    only = Campaign(**SMALL, chosen=chosen, solo_repeats=0, sets=0).plan()
    assert [planned.key for planned in only] == names[:3]
    for wrong, error in (
        ([("fast", ("sort-s",))], UnknownName),
        ([("speed", ("nobody",))], UnknownName),
        ([("speed", ())], UsageError),
    ):
        with pytest.raises(error):
            Campaign(**SMALL, chosen=wrong)
