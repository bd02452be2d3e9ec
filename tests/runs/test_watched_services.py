"""The made services of the study of services: what is imported is what their law says."""

from __future__ import annotations

import numpy as np
import pytest

from studies.live.services import BASE, COST, LAWS, NOISE, columns_of, watched


@pytest.mark.parametrize("law", sorted(LAWS))
def test_windows_of_made_services_follow_their_law(law: str) -> None:
    """Loads are rounded to levels half a doubling apart: each within a factor of 2 ** 0.25."""
    runs = watched(law, 12, seed=1)
    window, which, load = columns_of(runs)
    assert set(window) <= set(range(12))
    assert (which.sum(axis=1) == 1).all()
    off = 2**0.25
    for one, rates, seconds in zip(which, load, runs.runtime_seconds, strict=True):
        service = int(one.argmax())
        noise = np.exp(6 * NOISE)
        low, high = (LAWS[law](rates * factor)[service] for factor in (1 / off, off))
        assert low / noise <= seconds <= high * noise
    assert LAWS[law](np.zeros(4)) == pytest.approx(BASE)
    assert (LAWS[law](np.full(4, 2.0)) > BASE).all()
    assert (COST @ np.full(4, 2.0)) < 1
