"""`python -m studies alignment --paper`: every table and figure of the paper, on one page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import studies
from jostle.data import write_traces
from studies.alignment.paper.events import EVENTS, SILENT, with_events
from studies.alignment.paper.paper import CAPTIONS
from studies.alignment.simulated import draw_programs, simulate_campaign


def test_on_a_folder_of_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = draw_programs(4, 1, seconds=0.015, longest_seconds=4e-3)
    traces = with_events(simulate_campaign(programs), 24)
    write_traces(tmp_path / "traces", traces)
    words = ["alignment", "--on", "campaign", "--data", str(tmp_path / "traces")]
    words += ["--paper", str(tmp_path / "paper"), "--folds", "1", "--json"]
    assert studies.run(words) == 0
    found = json.loads(capsys.readouterr().out)
    tables = found["tables"]
    two, selection, three, four, *figure_2 = tables.values()
    assert [row["application"] for row in two] == [p.name for p in programs]
    trace = next(t for t in traces if t.solo and t.workload == programs[0].name)
    runs = [t for t in traces if t.solo and t.workload == trace.workload]
    ipc = sum(t["instructions"].sum() for t in runs) / sum(t["cycles"].sum() for t in runs)
    assert float(two[0]["avg. IPC"]) == pytest.approx(ipc, abs=0.006)
    left = [int(row["here"]) for row in selection]
    assert left[0] == 2 * 24
    assert left[1] < left[0] - 10 + 1  # the silent ones at least
    assert left == sorted(left, reverse=True)
    assert left[3] == 2 * len(three)
    assert [row["paper"] for row in selection] == ["128", "102", "71", "28"]
    (row,) = four
    assert not {row["core 1"], row["core 2"]} & set(row["training set"].split(", "))
    for core in "12":
        measured = float(row[f"beside {core} (ms)"])
        predicted, error = row[f"as printed {core} (ms)"].split(" (")
        assert float(error.rstrip("%)")) == pytest.approx(
            100 * (float(predicted) / measured - 1), abs=0.6
        )
    assert len(figure_2) == 2
    assert {r["learner"] for r in figure_2[0]} == {"ridge", "lasso", "elastic_net", "linear_svr"}
    page = (tmp_path / "paper" / "index.html").read_text("utf-8")
    for name, caption in CAPTIONS.items():
        assert (tmp_path / "paper" / "figures" / f"{name}.svg").stat().st_size > 1000
        assert caption.replace("'", "&#x27;") in page
    assert "Table IV" in page


def test_as_many_events_as_the_paper() -> None:
    traces = simulate_campaign(draw_programs(2, 1, seconds=0.01, longest_seconds=4e-3))
    wide = list(with_events(traces))
    assert {len(one.counters) for one in wide} == {EVENTS}
    silent = [n for n in wide[0].counters if all(not one[n].any() for one in wide)]
    assert len(silent) >= SILENT
    again = list(with_events(traces))
    np.testing.assert_array_equal(wide[0]["event_00"], again[0]["event_00"])
    assert list(with_events(traces, 5)) == list(traces)


def test_wrong_questions(tmp_path: Path) -> None:
    words = ["alignment", "--paper", str(tmp_path), "--programs", "4"]
    assert studies.run([*words, "--held", "4"]) == 2
