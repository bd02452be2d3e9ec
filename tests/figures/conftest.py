"""A quick study, and quick pictures."""

from __future__ import annotations

import pytest

from studies.factorization.comparisons import Comparison, NamedMethod
from studies.rivals.linear import LinearScaling


@pytest.fixture
def linear() -> Comparison:
    """Quick: one method that needs no training."""
    return Comparison("small", "Small", (NamedMethod("linear", LinearScaling()),), "linear")


@pytest.fixture
def sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures as one SVG each: that they are kept as three files is tested with all drawing."""
    monkeypatch.setattr("jostle._base.figure_files.ENDINGS", (".svg",))
