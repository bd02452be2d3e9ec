"""What packages offer under a group of entry points: found by name, and refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle._base.plugins import load, names_of
from jostle.errors import UnknownName, UsageError
from tests.installing import install

GROUP = "jostle.importers"
POINTS = f"[{GROUP}]\nticks = jostle_ticks\n"


def test_what_packages_offer_is_found_or_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "one", "jostle_ticks", "name = 'ticks'", POINTS)
    assert "ticks" in names_of(GROUP)
    assert load(GROUP, "ticks").name == "ticks"
    with pytest.raises(UnknownName, match="unknown importer 'nonsense'"):
        load(GROUP, "nonsense")
    two = POINTS.replace("jostle_ticks", "jostle_other") + "broken = jostle_nowhere\n"
    install(monkeypatch, tmp_path / "two", "jostle_other", "name = 'other'", two)
    with pytest.raises(UsageError, match=r"several packages offer .*'ticks'"):
        load(GROUP, "ticks")
    with pytest.raises(UsageError, match="'broken' cannot be loaded from jostle_nowhere"):
        load(GROUP, "broken")
