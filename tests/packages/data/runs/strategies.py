"""Random co-locations and runs for the property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jostle.data import Runs

# Few names, so that rows repeat; awkward ones, so that nothing depends on plain ASCII.
NAMES = ["a", "b", "B", "ab", "\u00fc", "u\u0308", "名前", " ", ";", "null", "nan", "😀", "0"]
names = st.sampled_from(NAMES)
rows = st.lists(st.tuples(names, names, st.lists(names, max_size=4)), max_size=25)
seconds = st.floats(1e-9, allow_infinity=False)
outcomes = st.one_of(
    st.tuples(st.just("ok"), seconds, st.none()),
    st.tuples(
        st.sampled_from(["contaminated", "timeout", "failed"]),
        st.none(),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
    ),
)


def columns_of(drawn: list[tuple[str, str, list[str]]]) -> dict[str, Any]:
    return {
        "workload": [row[0] for row in drawn],
        "platform": [row[1] for row in drawn],
        "corunners": [row[2] for row in drawn],
    }


@st.composite
def some_runs(draw: Any, min_size: int = 0, prefix: str | None = None) -> Runs:
    """Runs with every status, windows that are shared, extra columns and features with nulls."""
    drawn = draw(
        st.lists(
            st.tuples(names, names, st.lists(names, max_size=3), outcomes, st.integers(0, 3)),
            min_size=min_size,
            max_size=15,
        )
    )
    features = {
        key: None
        if draw(st.booleans())
        else {
            key: NAMES,
            "number": draw(st.lists(st.none() | seconds, min_size=13, max_size=13)),
            "text": draw(st.lists(st.none() | names, min_size=13, max_size=13)),
        }
        for key in ("workload", "platform")
    }
    return Runs.from_columns(
        **columns_of([row[:3] for row in drawn]),
        runtime_seconds=[row[3][1] for row in drawn],
        status=[row[3][0] for row in drawn],
        reason=[row[3][2] for row in drawn],
        window_id=[f"window {row[4]}" for row in drawn],
        run_id=None if prefix is None else [f"{prefix}{number}" for number in range(len(drawn))],
        note=[row[4] for row in drawn],
        workload_features=features["workload"],
        platform_features=features["platform"],
    )
