"""Pictures of copies of a program: what they show is what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.bag.evaluation import BagsEvaluation
from studies.bag.figures import draw_copies

pytest.importorskip("matplotlib")


def test_copies(tmp_path: Path) -> None:
    copies = {"gpu": {"fft": {1: 1.0, 2: 1.9}}, "host": {"fft": {1: 1.0, 2: 1.1}}}
    found = BagsEvaluation({}, (), (), np.zeros((0, 0)), (), {}, copies=copies, cpu="host")
    drawn = draw_copies(found, tmp_path)
    assert {path.name for path in drawn if path.suffix == ".png"} == {
        "bag-figure-1-copies-cpu.png",
        "bag-figure-2-copies.png",
        "bag-figure-3-copies-ratio.png",
    }
    assert all(path.stat().st_size > 1000 for path in drawn)
    nothing = BagsEvaluation({}, (), (), np.zeros((0, 0)), (), {})
    assert draw_copies(nothing, tmp_path) == []
