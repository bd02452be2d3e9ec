"""Studies are found by their table."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import studies


@pytest.mark.parametrize("name", studies.STUDIES)
def test_a_study_is_options_and_a_run(name: str) -> None:
    study: Any = studies.study_of(name)
    assert study.name == name
    assert callable(study.run)
    assert study.__doc__
    assert dataclasses.is_dataclass(study)
