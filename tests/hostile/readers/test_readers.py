"""Every reader on files that are nearly good.

`JOSTLE_FUZZ_EXAMPLES=5000 pytest tests/hostile/readers` takes longer than the suite does. What was found
once is kept in `seeds/READER`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.readers.targets import TARGETS

SEEDS = Path(__file__).with_name("seeds")
EXAMPLES = int(os.environ.get("JOSTLE_FUZZ_EXAMPLES", "12"))
KEPT = sorted(path for path in SEEDS.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", TARGETS)
def test_no_foreign_exception(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize="JOSTLE_FUZZ_EXAMPLES" not in os.environ,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(st.integers(0, 2**63))
    def once(number: int) -> None:
        target.tried(target.make(random.Random(number), tmp_path), tmp_path / "in")

    once()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once(path: Path, tmp_path: Path) -> None:
    error = TARGETS[path.parent.name].tried(path.read_bytes(), tmp_path / "in")
    assert error is None or str(error)
