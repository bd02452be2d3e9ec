"""The fleet as it is now, and which of its nodes are of one kind: without a service."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jostle.errors import BadData, NotPermitted, UsageError
from jostle.operations import KnownNames
from jostle.placement import Node, Request
from jostle.server.state import (
    FORGOTTEN_AFTER_SECONDS,
    LiveFleet,
    ModelFolder,
    NodeKinds,
    ObservedRun,
    ObservedStay,
    ObservedStays,
    PlacementRow,
    Served,
    Store,
)
from tests.packages.server.conftest import FLEET, FakeClock


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = Store(str(tmp_path / "state.sqlite"), FakeClock())
    yield made
    made.close()


def placed(store: Store, id: str, node: str, until: float) -> None:
    with store.changing() as change:
        request = {"workload": "w"}
        change.put(PlacementRow(id, node, request, False, change.now + until, change.number))


def test_old_placements_are_swept_now_and_then(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.server.state._state_store._SWEEP_EVERY", 3)
    placed(store, "old", "p0", 10.0)
    placed(store, "new", "p0", 20.0)
    store.clock.now += 15.0 + FORGOTTEN_AFTER_SECONDS  # type: ignore[attr-defined]
    assert {row.id for row in store.placements_since(0)} == {"old", "new"}
    placed(store, "newer", "p0", 20.0)
    assert {row.id for row in store.placements_since(0)} == {"new", "newer"}


def test_days_are_counted_by_what_is_stored_and_the_last_come_last(store: Store) -> None:
    day = 86_400.0
    runs = [(1.0, 2.0, 0.0), (3.0, 2.0, 1.0), (2.0, 2.0, 1.0), (1.0, None, 2.0), (1.0, 1.0, 5.0)]
    store.add_runs(
        [
            ObservedRun(f"r{n}", {"runtime_seconds": took}, day * at, 0.9, took, bound, None)
            for n, (took, bound, at) in enumerate(runs)
        ]
    )
    assert [tuple(row.values()) for row in store.coverage_by_day()] == [
        ("1970-01-01", 1, 1, 1),
        ("1970-01-02", 2, 2, 1),
        ("1970-01-03", 1, 0, 0),
        ("1970-01-06", 1, 1, 1),
    ]
    assert [row["day"] for row in store.coverage_by_day(2)] == ["1970-01-03", "1970-01-06"]


def test_a_state_of_another_version_or_that_is_none_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    Store(str(state), FakeClock()).close()
    with sqlite3.connect(state) as other:
        other.execute("UPDATE jostle_changes SET version = version + 1")
    other.close()
    with pytest.raises(UsageError, match="of version"):
        Store(str(state), FakeClock())
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(NotPermitted, match="cannot be opened: file is not a database"):
        Store(str(tmp_path / "text"), FakeClock())


def test_a_model_that_answers_no_more_is_not_followed(tmp_path: Path) -> None:
    folder, moved = ModelFolder(tmp_path), SimpleNamespace(label={})
    folder.follow("a" * 16, moved, 1, 1)  # type: ignore[arg-type]
    assert folder.served is None
    known: Any = SimpleNamespace(label={"model": "b"})
    served = Served(known, "b" * 64, "data", KnownNames((), (), {}, {}))
    assert served.version == "b" * 16
    folder.served = served
    folder.follow("a" * 16, moved, 1, 1)  # type: ignore[arg-type]
    assert folder.served is served
    folder.follow("b" * 16, moved, 2, 1)  # type: ignore[arg-type]
    assert (folder.served.model, folder.served.drifts) == (moved, 2)
    assert folder.served.label == {"model": "b", "drifts": 2}


def test_a_table_that_is_gone_or_empty_leaves_the_fleet_as_it_was(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "fleet.csv"
    path.write_text(FLEET)
    fleet = LiveFleet(path, store)
    for text in (None, "name,platform\n"):
        path.unlink() if text is None else path.write_text(text)
        fleet.sync([])
        assert set(fleet.nodes) == {"east", "west", "south"}
        assert fleet.trouble is not None
    path.write_text(FLEET + "north,p3,5,,,\n")
    fleet.sync([])
    assert (fleet.trouble, len(fleet.nodes)) == (None, 4)
    path.write_text("name,platform\n")
    with pytest.raises(BadData, match="no node"):
        LiveFleet(path, store)


def test_nodes_that_answer_alike_are_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node of each kind stands for all of it; kinds that no node is of are left out now and then."""
    monkeypatch.setattr("jostle.server.state._live_fleet._MOST_IDLE_KINDS", 3)
    kinds, plain = NodeKinds(), Node("a", "p", 4)
    beside = replace(plain, tenants=(Request("w", "t"),))
    apart = replace(plain, tenants=(Request("w", "t", apart=("g",)),))
    for name, node in (("a", plain), ("b", plain), ("c", beside), ("d", apart)):
        kinds.put(name, replace(node, name=name))
    other = replace(beside, tenants=(Request("w", "another"),))
    kinds.put("e", replace(other, name="e"))
    kinds.put("f", replace(apart, name="f", tenants=(Request("w", "another", apart=("g",)),)))
    of = kinds.of
    assert of["a"] == of["b"]
    assert of["c"] == of["e"]
    assert len({of["a"], of["c"], of["d"], of["f"]}) == 4
    first = kinds.examples
    for slots in range(5, 30):
        now = replace(plain, name="a", slots=slots)
        kinds.put("a", now)
        # One kind more than are idle at most.
        assert len(kinds.examples) <= len(kinds.of) + 3 + 1
        for name, node in (("a", now), ("b", plain), ("c", beside), ("d", apart)):
            example = kinds.examples[kinds.of[name]]
            assert replace(example, name=node.name) == node
        # Whoever keeps answers by kind knows by the list that numbers are others.
        assert (kinds.examples is first) == (slots < 11)
    kinds.drop("b")
    kinds.drop("b")
    assert "b" not in kinds.of


def test_who_was_there_when_is_told_once_it_has_ended() -> None:
    """In stretches where company changed, else as one set; not of what began before anybody looked."""
    stays, on = ObservedStays(100.0), {"n": "p", "m": "p"}
    early = ObservedStay("early", "n", 90.0, 140.0, True)
    long, short = ObservedStay("long", "n", 110.0), ObservedStay("short", "n", 120.0, 150.0, True)
    other, lost = ObservedStay("other", "m", 105.0, 160.0, True), ObservedStay("lost", "q", 110.0)
    there = {"e": early, "l": long, "s": short, "o": other, "q": lost}
    assert stays.see({"l": long, "e": early}, on, 115.0) == []
    told = stays.see(there, on, 170.0)
    assert [run["id"] for run in told] == ["s", "o"]
    first, second = told
    assert first["stretches"] == [
        {"start_seconds": 0.0, "corunners": ["early", "long"]},
        {"start_seconds": 20.0, "corunners": ["long"]},
    ]
    assert (first["runtime_seconds"], first["platform"], first["workload"]) == (30.0, "p", "short")
    assert first["measured_at"] == "1970-01-01T00:02:00+00:00"
    assert (second["corunners"], "stretches" in second) == ([], False)
    assert stays.see(there, on, 175.0) == []
    # `l` is taken away at 180: it was beside what ends later until then, and is never told of.
    late = ObservedStay("late", "n", 160.0, 200.0, True)
    assert stays.see({"t": ObservedStay("late", "n", 160.0)}, on, 180.0) == []
    (run,) = stays.see({"t": late}, on, 210.0)
    assert run["stretches"] == [
        {"start_seconds": 0.0, "corunners": ["long"]},
        {"start_seconds": 20.0, "corunners": []},
    ]
    # Each change of company in its turn, however many.
    many = {f"c{n}": ObservedStay(f"w{n}", "k", 200.5 + n, 201.25 + n, True) for n in range(9)}
    run = next(
        run
        for run in stays.see(
            {**many, "a": ObservedStay("a", "k", 200.0, 250.0, True)}, {"k": "p"}, 260.0
        )
        if run["id"] == "a"
    )
    starts = [part["start_seconds"] for part in run["stretches"]]
    assert starts == sorted([0.0, *(0.5 + n for n in range(9)), *(1.25 + n for n in range(9))])
    # Nothing is remembered that nobody will be told of, and an id may come once more.
    assert stays.see({}, on, 300.0) == []
    assert (stays._stays, stays._told) == ({}, set())
    (again,) = stays.see({"t": replace(late, start=310.0, end=320.0)}, on, 330.0)
    assert again["corunners"] == []


def test_what_is_no_run_is_not_told_of() -> None:
    stays, fine = ObservedStays(0.0), ObservedStay("w", "n", 10.0, 20.0, True)
    odd = {
        "failed": replace(fine, is_measured=False),
        "elsewhere": replace(fine, node="m"),
        "no time": replace(fine, end=10.0),
        "still there": replace(fine, end=31.0),
    }
    found = stays.see({**odd, "fine": fine, "at once": replace(fine, start=0.0)}, {"n": "p"}, 30.0)
    assert [run["id"] for run in found] == ["fine", "at once"]
    assert stays.see({"still there": odd["still there"]}, {"n": "p"}, 31.0)


def test_a_model_whose_files_come_one_after_the_other_is_served(
    model_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """Whichever comes first: who copies a folder has no say in it."""
    source, _ = model_folders
    folder = ModelFolder(tmp_path)
    shutil.copy(source / "model.json", tmp_path)
    assert [folder.look(), folder.look(), folder.failures] == [False, False, 1]
    (tensors,) = source.glob("*.safetensors")
    content = tensors.read_bytes()
    for part in (content[:-9], content):
        (tmp_path / tensors.name).write_bytes(part)
        assert folder.look() == (part == content)
    assert [folder.look(), folder.failures, folder.trouble] == [False, 2, None]
    assert folder.served is not None
