"""The summary against values counted by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from jostle.data import Runs, summarise


def test_counts_and_coverage() -> None:
    runs = Runs.from_columns(
        workload=["a", "b", "a", "a", "c"],
        platform=["p", "p", "q", "p", "q"],
        corunners=[[], [], [], ["c", "b"], []],
        runtime_seconds=[1.0, 2.0, 3.0, 4.0, None],
        status=["ok"] * 4 + ["failed"],
        reason=[None] * 4 + ["crashed"],
        campaign=["x", "x", "y", "y", "y"],
    )
    summary = summarise(runs)
    assert summary.runs == 5
    assert summary.status == {"ok": 4, "failed": 1}
    assert summary.campaigns == {"x": 2, "y": 2}
    assert summary.corunners == {0: 3, 2: 1}
    assert (summary.workloads, summary.platforms, summary.solo_cells) == (3, 2, 3)
    assert summary.coverage_ratio == 0.5
    assert summary.connected_parts == 1
    assert (summary.colocations, summary.windows) == (4, 4)
    assert (summary.repeats, summary.repeatability_median_ratio) == (0, None)


def test_parts_that_cannot_be_compared() -> None:
    def parts(cells: list[tuple[str, str]]) -> int:
        workload, platform = zip(*cells, strict=True)
        seconds = [1.0 + i for i in range(len(cells))]
        return summarise(
            Runs.from_columns(workload=workload, platform=platform, runtime_seconds=seconds)
        ).connected_parts

    assert parts([("a", "p"), ("b", "q")]) == 2
    assert parts([("a", "p"), ("b", "q"), ("b", "p")]) == 1
    chain = [(f"{i:02}", f"{i + d:02}") for i in range(30) for d in (0, 1)]
    assert parts(chain) == 1
    assert parts([cell for cell in chain if cell != ("15", "15")]) == 2


def test_repeats_are_windows_and_not_rows() -> None:
    runs = Runs.from_columns(
        workload=["a", "a", "a", "b", "b"],
        platform=["p"] * 5,
        corunners=[["a"], ["a"], ["a"], [], []],
        runtime_seconds=[2.0, 8.0, 5.0, 1.0, 1.5],
        window_id=["1", "1", "2", "3", "4"],
    )
    summary = summarise(runs)
    assert summary.repeats == 2
    # The first window's mean in logarithms is 4.
    expected = sorted([math.log(5 / 4), math.log(1.5)])
    assert summary.repeatability_median_ratio == pytest.approx(np.mean(expected))
    assert summary.repeatability_p90_ratio == pytest.approx(np.quantile(expected, 0.9))


def test_suspicious_values() -> None:
    random = np.random.default_rng(0)
    cells = [(f"w{i}", f"p{j}") for i in range(6) for j in range(6)]
    seconds = [(1 + int(w[1:])) * (1 + int(p[1:])) * random.uniform(0.9, 1.1) for w, p in cells]
    seconds[8] *= 1000  # as if in milliseconds
    workload, platform = map(list, zip(*cells, strict=True))
    extra = [
        ("w0", "p0", ["w1"], 0.3 * seconds[0], "fast"),
        ("w0", "p0", ["w1"], 0.3 * seconds[0], "copy"),
        ("w5", "p5", ["w1"], seconds[0], "equal"),
        ("w5", "p5", ["w2"], 1.2 * seconds[35], "fine"),
    ]
    runs = Runs.from_columns(
        workload=workload + [row[0] for row in extra],
        platform=platform + [row[1] for row in extra],
        corunners=[[] for _ in cells] + [row[2] for row in extra],
        runtime_seconds=seconds + [row[3] for row in extra],
        run_id=[f"solo{i}" for i in range(len(cells))] + [row[4] for row in extra],
    )
    found = summarise(runs).suspicious
    assert found.pop("impossible_windows").count == 0
    assert {kind: suspicion.run_ids for kind, suspicion in found.items()} == {
        "copies": ("copy",),
        "equal_runtimes": ("equal",),
        "faster_than_alone": ("fast", "copy", "equal"),
        "far_from_fit": ("solo8",),
    }
    assert found["faster_than_alone"].count == 3


def test_no_runs_and_one() -> None:
    one = Runs.from_columns(workload=["a"], platform=["p"], runtime_seconds=[1.0])
    for runs in (one, one.take([])):
        document = summarise(runs).to_json()
        assert document["schema"] == "runs-summary/v1"
        assert document["runs"] == len(runs)
        json.dumps(document, allow_nan=False)


def campaign_rows(**changed: list) -> Runs:
    columns: dict[str, list] = {
        "workload": ["a", "b", "c"],
        "platform": ["p"] * 3,
        "corunners": [["b"], ["a"], []],
        "runtime_seconds": [0.0024, 0.0024, 1.0],
        "window_id": ["w", "w", "v"],
        "window_seconds": [0.25, 0.25, 0.25],
        "repetitions": [100.0, 100.0, 9.0],
        "estimator": ["quiet", "quiet", "executions"],
    }
    return Runs.from_columns(**{**columns, **changed})


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, 0),
        ({"window_id": ["w", "x", "v"]}, 2),
        ({"corunners": [["c"], ["a"], []]}, 1),
        ({"platform": ["p", "q", "p"]}, 1),
        ({"repetitions": [200.0, 100.0, 9.0]}, 1),
        (
            {
                "status": ["contaminated", "ok", "ok"],
                "reason": ["late", None, None],
                "runtime_seconds": [None, 0.0024, 1.0],
                "repetitions": [200.0, 100.0, 9.0],
            },
            0,
        ),
        ({"window_seconds": [None] * 3, "corunners": [["c"], ["a"], []]}, 0),  # of no campaign
    ],
)
def test_windows_that_cannot_have_been(changed: dict[str, list], wrong: int) -> None:
    assert summarise(campaign_rows(**changed)).suspicious["impossible_windows"].count == wrong
