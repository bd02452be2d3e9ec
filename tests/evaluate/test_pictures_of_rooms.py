"""Pictures of copies, combinations of features and measured pairs: what they show is what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.accelerator import Application, Task
from studies.accelerator.pair_figures import DrawnPairs, draw_pairs
from studies.bag.evaluation import BagsEvaluation
from studies.bag.more_figures import draw_combinations, draw_copies

pytest.importorskip("matplotlib")


def names_of(paths: list[Path]) -> set[str]:
    return {path.name for path in paths if path.suffix == ".png"}


def test_copies_and_combinations(tmp_path: Path) -> None:
    errors = {"groups_solo": 0.4, "groups_cpu": 0.6, "groups_solo+cpu": 0.3, "tree": 0.2}
    metrics = {f"relative_error_mean_application_{name}_ratio": v for name, v in errors.items()}
    copies = {"gpu": {"fft": {1: 1.0, 2: 1.9}}, "host": {"fft": {1: 1.0, 2: 1.1}}}
    found = BagsEvaluation(
        metrics, tuple(errors), (), np.zeros((0, 0)), (), {}, copies=copies, cpu="host"
    )
    drawn = draw_copies(found, tmp_path)
    assert names_of(drawn) == {
        "bag-figure-1-copies-cpu.png",
        "bag-figure-2-copies.png",
        "bag-figure-3-copies-ratio.png",
    }
    drawn = draw_combinations(found, tmp_path)
    assert names_of(drawn) == {"bag-figure-6-cpu.png", "bag-figure-7-solo.png"}
    assert all(path.stat().st_size > 1000 for path in drawn)
    nothing = BagsEvaluation({}, (), (), np.zeros((0, 0)), (), {})
    assert draw_copies(nothing, tmp_path) == draw_combinations(nothing, tmp_path) == []


def test_pairs_by_what_they_mostly_do(tmp_path: Path) -> None:
    applications = {
        "md": Application.of("md", Task("kernel", 3.0), Task("htod", 1.0)),
        "hw": Application.of("hw", Task("kernel", 1.0)),
        "pf": Application.of("pf", Task("htod", 1.0)),
    }
    picked = [("md", "gpu", ["hw"])] * 20 + [("md", "gpu", ["pf"]), ("pf", "gpu", ["md"])]
    measured = np.array([*np.linspace(1.0, 1.95, 20), 1.2, 1.5])
    found = DrawnPairs.of(picked, applications, measured, np.full(22, 1.4))
    assert found.names == ("md + hw", "md + pf", "pf + md")
    assert found.kinds.tolist() == ["compute", "mixed", "mixed"]
    assert found.measured[0] == pytest.approx(measured[:20].mean())
    assert found.tail[0] == pytest.approx(1.95)
    assert found.shares["md"] == (0.75, 0.25)
    names = names_of(draw_pairs(found, tmp_path))
    assert names == {
        "figure-11-kernels-and-transfers.png",
        "figure-2-slowdown-compute.png",
        "figure-12-predicted-compute.png",
        "figure-14-predicted-mixed.png",
        "figure-15-tail.png",
    }
