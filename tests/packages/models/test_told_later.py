"""What is told of a run that goes on is not wider than what was told before, unless it is behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jostle
from jostle.conformal import BEHIND
from jostle.models import Timelines
from tests.packages.models.over_time_samples import NAMES, Lookup
from tests.packages.models.timelines_samples import node_log

GAPS = st.floats(0.05, 4.0)
BESIDE = st.lists(st.sampled_from(NAMES), max_size=2)


@pytest.fixture(scope="module")
def model() -> jostle.Model:
    return jostle.fit(node_log(400, seed=6, noise=0.2), Lookup(), seed=1)


@st.composite
def runs_that_go_on(draw: Any) -> dict[str, Any]:
    """A run whose co-runners change, asked about twice, the second time by its own count or both."""
    changes = draw(st.lists(st.tuples(GAPS, BESIDE), min_size=1, max_size=4))
    starts = np.cumsum([0.0, *(gap for gap, _ in changes[:-1])]).tolist()
    first = draw(st.floats(0.0, 12.0))
    counts = sorted(draw(st.lists(st.floats(0.05, 0.95), max_size=2)))
    return {
        "workload": draw(st.sampled_from(NAMES)),
        "parts": list(zip(starts, (beside for _, beside in changes), strict=True)),
        "when": (first, first + draw(st.floats(0.01, 6.0))),
        "done": [None] * (2 - len(counts)) + counts if first else [None, None],
        "future": draw(st.booleans()),
    }


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(some=st.lists(runs_that_go_on(), min_size=8, max_size=8))
def test_a_later_bound_is_wider_only_of_a_run_that_is_behind(
    model: jostle.Model, some: list[dict[str, Any]]
) -> None:
    told, bounds = zip(
        *(model.predict_and_bound(asked(some, at), 0.8) for at in (0, 1)), strict=True
    )
    wider = np.flatnonzero(bounds[1].seconds > bounds[0].seconds * (1 + 1e-6))
    for row in wider.tolist():
        if some[row]["done"][0] is None:
            assert bounds[1].outcome[row] in (BEHIND, "too_few_runs")
            if np.isfinite(bounds[1].seconds[row]):
                assert bounds[1].evidence[row].endswith(("later than before", "ended by now"))
        else:
            assert told[1][row] > told[0][row]
    for told_now, now in zip(told, bounds, strict=True):
        assert (now.seconds >= told_now).all()


def asked(some: list[dict[str, Any]], at: int) -> Timelines:
    """The runs as of the first or the second time, by what is known then."""
    return Timelines.from_columns(
        workload=[one["workload"] for one in some],
        platform=["p"] * len(some),
        stretches=[
            [part for part in one["parts"] if part[0] <= one["when"][at] or not one["future"]]
            for one in some
        ],
        elapsed_seconds=[one["when"][at] for one in some],
        done_ratio=[one["done"][at] for one in some],
        future=[one["future"] for one in some],
    )
