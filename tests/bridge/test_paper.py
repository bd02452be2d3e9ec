"""The paper's experiments on made data: the laws behind them, their tables, figures and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import studies
from jostle.errors import BadData, UnknownName
from jostle.traces import Traces, write_traces
from studies.bridge import figures as _figures
from studies.bridge.data import COUNTERS
from studies.bridge.experiments import (
    ASKED,
    AcrossContexts,
    MultiCore,
    SingleCore,
    cycle_ends,
)
from studies.bridge.paper import (
    CAPTIONS,
    BridgePaper,
    context_table,
    cycle_end_table,
    table_one,
    table_three,
    table_two,
)
from studies.bridge.programs import allocated, annealer, controller, miss_ratio
from studies.bridge.rivals import wasserstein
from tests.bridge.conftest import a_trace


@pytest.fixture(scope="module")
def single() -> SingleCore:
    return SingleCore.of(None, runs=24)


@pytest.fixture(scope="module")
def multi() -> MultiCore:
    return _small()


@pytest.fixture(scope="module")
def contexts() -> tuple[AcrossContexts, ...]:
    return tuple(AcrossContexts.made(kind, 24, seed=1) for kind in ASKED)


def test_more_cache_misses_less_and_a_budget_holds() -> None:
    sizes = np.array([0.0, 2.0, 6.0, 12.0, 20.0])
    assert (np.diff(miss_ratio(sizes)) < 0).all()
    assert miss_ratio(0.0) == pytest.approx(0.6)
    free = np.array([[2e9, 5e6, 0.0]])
    unlimited = allocated(free, 6.0, 1e9)
    assert unlimited[0, 2] == pytest.approx(5e6 * miss_ratio(6.0))
    held = allocated(free, 6.0, 40.0)
    assert held[0, 2] * 64 / 1e6 == pytest.approx(40.0)
    # Who is stalled does less of everything, in the same proportion.
    np.testing.assert_allclose(held / unlimited, held[0, 0] / 2e9)


def test_cycles_end_where_the_counter_says() -> None:
    traces = [
        a_trace(0, {"phases": [0, 1, 1, 0, 2, 0], "x": [1.0] * 6}),
        a_trace(1, {"phases": [1, 1, 0, 0, 1, 3], "x": [1.0] * 6}),
    ]
    ends = cycle_ends(Traces.from_traces(traces), "phases", 2)
    # The second run came through three cycles, the first through two: two are known of both.
    np.testing.assert_allclose(ends, [[0.3, 0.5], [0.2, 0.6]])
    with pytest.raises(UnknownName):
        cycle_ends(Traces.from_traces(traces), "beats")
    with pytest.raises(BadData, match="cycle of 9"):
        cycle_ends(Traces.from_traces(traces), "phases", 9)


def test_a_made_controller_ends_five_cycles() -> None:
    made = controller(12, seed=3)
    ends = cycle_ends(made, "cycles")
    assert ends.shape == (12, 5)
    assert (np.diff(ends, axis=1) > 0).all()
    assert [t.runtime_seconds for t in made] == pytest.approx(ends[:, -1].tolist(), abs=0.011)
    again = controller(6, seed=3)
    np.testing.assert_array_equal(
        [list(t.counters["instructions"])[:50] for t in again],
        [list(t.counters["instructions"])[:50] for t in list(made)[:6]],
    )


def test_the_annealer_begins_and_ends_on_its_first_core() -> None:
    for trace in annealer(2, length_seconds=1.0):
        busy = trace.counters["instructions"] > 0
        assert busy[50]
        assert busy.all() == (trace.core == 0)
        if trace.core:
            assert not busy[0]
            assert not busy[-1]


def test_tables_of_one_core(single: SingleCore) -> None:
    (ends,), values = cycle_end_table(single)
    assert len(ends.rows) == 5
    assert values[0][0] == pytest.approx(single.ends[:, 0].mean())
    shown, found = table_two(single, (0, 1))
    assert len(shown) == 3
    assert "(made)" in shown[0].title
    assert np.array(found["default"], float).shape == (2, 5)
    # With more snapshots inside a cycle it comes nearer.
    assert np.mean(found["default"][1]) < np.mean(found["default"][0])


def test_tables_of_several_cores(single: SingleCore, multi: MultiCore) -> None:
    (sizes,), found = table_one(single, multi)
    assert [row["nodes"] for row in found] == [26, 21, 12]
    assert found[0]["potentials"] == 26 * 12
    assert len(sizes.rows) == 3
    (table,), errors = table_three(multi)
    assert len(table.rows) == 2 * len(errors)
    assert {len(row) for cores in errors.values() for row in cores} == {5}
    assert np.mean(errors["oracle"]) < np.mean(errors["barycentric"])
    # At 10 s only the first core is busy: that is forecast exactly.
    assert errors["path"][1][4] == 0.0


@pytest.mark.parametrize("number", [0, 1])
def test_contexts_between_allocations(contexts: tuple[AcrossContexts, ...], number: int) -> None:
    one = contexts[number]
    errors = one.errors()
    mean = {name: np.mean([each[name] for each in errors.values()]) for name in errors[min(errors)]}
    assert mean["bridge"] < mean["mixture"]
    assert mean["bridge"] < mean["nearest"]
    laws = one.answers[min(errors)]
    np.testing.assert_allclose(laws["bridge"].mean, laws["truth"].mean, rtol=0.15)
    assert errors[min(errors)]["oracle"] == pytest.approx(
        wasserstein(laws["oracle"].cloud.scaled(one.scale), laws["truth"].cloud.scaled(one.scale))
    )
    (table,), _ = context_table(one)
    assert len(table.rows) == len(errors) + 1
    with pytest.raises(UnknownName):
        AcrossContexts.made("frequency", 8)


def test_figures_and_page(
    single: SingleCore,
    multi: MultiCore,
    contexts: tuple[AcrossContexts, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: dict[str, str] = {}

    def quick(figure: Any, folder: Path, name: str) -> list[Path]:
        told[name] = " ".join(text.get_text() for text in figure.texts)
        path = folder / "figures" / f"{name}.svg"
        path.parent.mkdir(exist_ok=True)
        path.write_text("<svg/>")
        return [path]

    paper = BridgePaper(single, multi, contexts)
    with monkeypatch.context() as patched:
        patched.setattr(_figures, "save", quick)
        patched.setattr(_figures, "legend_above", lambda figure: None)
        paper.draw(tmp_path)
    assert set(told) == set(CAPTIONS)
    # Every figure says whose data it shows.
    assert all("ade " in text for text in told.values())
    page = paper.write(tmp_path, table_three(multi)[0]).read_text("utf-8")
    assert page.count("<img") == len(CAPTIONS)
    assert "Made controller" in page
    assert "Table III" in page
    assert all(path.stat().st_size > 5000 for path in _figures.draw_misses(tmp_path, contexts[0]))


def test_a_recording_says_when_its_cycles_end(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    write_traces(folder, controller(10, seed=1))
    words = [
        "bridge",
        "--data",
        str(folder),
        "--paper",
        str(tmp_path / "out"),
        "--json",
    ]
    assert studies.run(words) == 2  # which counter?
    recorded = SingleCore.of(None, controller(10, seed=1), counter="cycles", runs=16)
    assert recorded.ends.shape == (10, 5)
    assert recorded.ends_source == "10 recorded runs."
    assert set(COUNTERS) <= set(controller(2).counters)


def test_one_command(
    contexts: tuple[AcrossContexts, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {one.kind: one for one in contexts}
    monkeypatch.setattr(AcrossContexts, "made", lambda kind, runs, seed=0: known[kind])
    monkeypatch.setattr(BridgePaper, "draw", lambda self, folder: [])  # drawn in a test above
    monkeypatch.setattr(MultiCore, "made", lambda runs, seed=0: _small())
    monkeypatch.setattr("studies.bridge.paper.BETWEEN", (0, 1))
    words = ["bridge", "--paper", str(tmp_path / "paper"), "--runs", "16", "--json"]
    assert studies.run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"table_1", "table_2", "table_3", "cycle_ends", "contexts_cache"} <= set(found)
    assert "never published" in found["data"]["multi"]
    assert Path(found["page"]).is_file()


def _small() -> MultiCore:
    text = "Made annealer, 12 runs: the paper's recordings were never published."
    traces = annealer(12, caches_mb=(20.0, 6.0), bandwidths_mbps=(160.0, 80.0))
    return MultiCore(traces, text, barycentre_atoms=20)
