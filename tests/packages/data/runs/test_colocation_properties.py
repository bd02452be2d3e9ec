"""Co-locations: names to codes and back, whatever the names and the order of co-runners."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.data import Colocations
from jostle.errors import BadRows

from .strategies import columns_of, names, rows


@given(rows)
def test_columns_survive_the_codes(drawn):
    found = Colocations.from_columns(**columns_of(drawn)).to_columns()
    assert found == columns_of([(w, p, sorted(beside)) for w, p, beside in drawn])


@given(rows, st.randoms())
def test_order_of_corunners_does_not_matter(drawn, random):
    shuffled = [(w, p, random.sample(beside, len(beside))) for w, p, beside in drawn]
    one = Colocations.from_columns(**columns_of(drawn))
    assert one == Colocations.from_columns(**columns_of(shuffled))


@given(rows)
def test_codes_follow_sorted_vocabularies(drawn):
    found = Colocations.from_columns(**columns_of(drawn))
    assert list(found.workload_names) == sorted(
        {w for w, _, _ in drawn} | {name for _, _, beside in drawn for name in beside}
    )
    assert list(found.platform_names) == sorted({p for _, p, _ in drawn})
    assert found.workload.dtype == found.platform.dtype == found.corunner.dtype == np.int32
    assert found.corunner_offsets.dtype == np.int64
    assert found.number_of_corunners.tolist() == [len(beside) for _, _, beside in drawn]
    for index in range(len(found)):
        w, p, beside = drawn[index]
        assert found.row(index) == (w, p, tuple(sorted(beside)))


@given(rows, st.data())
def test_take_is_python_indexing(drawn, data):
    found = Colocations.from_columns(**columns_of(drawn))
    n = len(drawn)
    index = data.draw(st.lists(st.integers(-n, n - 1), max_size=30) if n else st.just([]))
    taken = found.take(np.array(index, int))
    assert taken == Colocations.from_columns(**columns_of([drawn[i] for i in index]))
    assert taken.workload_names == found.workload_names
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    kept = [row for row, keep in zip(drawn, mask, strict=True) if keep]
    assert found.take(mask) == Colocations.from_columns(**columns_of(kept))


@given(st.lists(rows, max_size=4))
def test_concatenate_is_list_addition(parts):
    whole = Colocations.concatenate([Colocations.from_columns(**columns_of(p)) for p in parts])
    assert whole == Colocations.from_columns(**columns_of([row for p in parts for row in p]))
    assert list(whole.workload_names) == sorted(whole.workload_names)


@given(rows)
def test_group_is_equal_exactly_where_rows_are(drawn):
    found = Colocations.from_columns(**columns_of(drawn))
    kept = [(w, p, tuple(sorted(beside))) for w, p, beside in drawn]
    for i in range(len(kept)):
        for j in range(i):
            assert (found.group[i] == found.group[j]) == (kept[i] == kept[j])


@given(rows, st.sets(names), st.sets(names))
def test_recode_gives_codes_of_the_other_or_minus_one(drawn, workloads, platforms):
    found = Colocations.from_columns(**columns_of(drawn))
    workload_names, platform_names = sorted(workloads), sorted(platforms)
    workload, platform, corunner = found.recode(workload_names, platform_names)

    def code(known, name):
        return known.index(name) if name in known else -1

    assert workload.tolist() == [code(workload_names, w) for w, _, _ in drawn]
    assert platform.tolist() == [code(platform_names, p) for _, p, _ in drawn]
    flat = [name for _, _, beside in drawn for name in sorted(beside)]
    assert corunner.tolist() == [code(workload_names, name) for name in flat]


def test_numpy_columns_and_no_corunners():
    found = Colocations.from_columns(workload=np.array(["a", "b"]), platform=("p", "q"))
    assert found.to_columns()["corunners"] == [[], []]
    assert found.row(-1) == ("b", "q", ())
    with pytest.raises(IndexError):
        found.row(2)


@pytest.mark.parametrize(
    ("workload", "platform", "corunners", "row"),
    [
        (["a", ""], ["p", "p"], None, 1),
        (["a", "b"], [None, "p"], None, 0),
        (["a", float("nan")], ["p", "p"], None, 1),
        (["a", ["b"]], ["p", "p"], None, 1),
        (["a", "b"], ["p", "p"], [["c"], ["c", ""]], 1),
        (["a", "b"], ["p", "p"], [["c"], [3]], 1),
        (["a", "b"], ["p", "p"], [["c"], None], 1),
        (["a", "b"], ["p", "p"], [["c"], "dd"], 1),
    ],
)
def test_what_is_no_name_is_refused_with_its_row(workload, platform, corunners, row):
    with pytest.raises(BadRows) as caught:
        Colocations.from_columns(workload=workload, platform=platform, corunners=corunners)
    assert [number for number, _ in caught.value.rows] == [row]
    assert f"row {row}" in str(caught.value)


def test_columns_of_different_length_are_refused():
    with pytest.raises(BadRows, match="workload has 2, platform has 1"):
        Colocations.from_columns(workload=["a", "b"], platform=["p"])
    with pytest.raises(BadRows, match="one text"):
        Colocations.from_columns(workload="ab", platform=["p", "q"])


def test_arrays_that_do_not_fit_are_refused():
    good = Colocations.from_columns(workload=["a"], platform=["p"], corunners=[["b"]])
    parts = dict(vars(good))
    for name, wrong in [
        ("workload", [5]),
        ("platform", [-1]),
        ("corunner", [2]),
        ("corunner_offsets", [0, 2]),
        ("corunner_offsets", [1, 1]),
        ("platform", [0, 0]),
    ]:
        with pytest.raises(BadRows):
            Colocations(**{**parts, name: np.array(wrong)})


def test_it_cannot_be_changed():
    found = Colocations.from_columns(workload=["a"], platform=["p"], corunners=[["b"]])
    with pytest.raises(AttributeError):
        found.workload = np.zeros(1)  # pyright: ignore[reportAttributeAccessIssue]
    for array in (found.workload, found.corunner, found.number_of_corunners, found.group):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert pickle.loads(pickle.dumps(found)) == found


def test_colocations_need_numpy_only():
    code = (
        "import sys, jostle.data; assert 'numpy' not in sys.modules; "
        "from jostle.data import Colocations; "
        "Colocations.from_columns(workload=['a'], platform=['p']); "
        "assert not {'pyarrow', 'pandas', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
