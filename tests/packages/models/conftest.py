"""For models of a method that needs no training."""

from __future__ import annotations

import pytest

from jostle.models import _model
from tests.packages.models.levels import Levels


@pytest.fixture
def levels_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved models are read as those of Levels, which no entry point names."""
    monkeypatch.setattr(_model, "method_named", lambda _: Levels())
