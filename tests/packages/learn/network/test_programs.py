"""Compiled programs are kept between processes, where they may be."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import pytest

from jostle.learn.learners.network.training import _programs


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What JAX is told, instead of telling it."""
    found: dict[str, object] = {}
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    monkeypatch.setattr(type(jax.config), "jax_compilation_cache_dir", None, raising=False)
    return found


def test_the_folder_is_the_one_named(
    told: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_programs.VARIABLE, str(tmp_path / "here"))
    _programs.keep_programs()
    assert Path(str(told["jax_compilation_cache_dir"])).parent == tmp_path / "here"


@pytest.mark.parametrize("value", ["", "a file"])
def test_nothing_is_kept_where_nothing_may_be(
    value: str, told: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("taken")
    monkeypatch.setenv(_programs.VARIABLE, value and str(tmp_path / value))
    _programs.keep_programs()
    assert not told


def test_the_oldest_go_where_there_is_too_much(
    told: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_programs.VARIABLE, str(tmp_path))
    monkeypatch.setattr(_programs, "MOST_BYTES", 25)
    folder = _programs._folder()
    folder.mkdir()
    for age in range(4):
        (folder / f"{age}").write_bytes(b"0123456789")
        os.utime(folder / f"{age}", (1e9 - age, 1e9 - age))
    _programs.keep_programs()
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1"]
