"""What an answer rests on: costs by prediction with and without, the nearest measured, doubt and remedy."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle.data import Colocations, Runs
from jostle.errors import NotPermitted, UsageError
from jostle.models import Model
from jostle.operations import all_verbs
from tests.packages.models.levels import Levels, campaign

RUNS = campaign(12, 6)


@pytest.fixture(scope="module")
def model() -> Model:
    return jostle.fit(RUNS, Levels(), seed=0)


def one(workload: str, platform: str, *corunners: str) -> Colocations:
    return Colocations.from_columns(
        workload=[workload], platform=[platform], corunners=[list(corunners)]
    )


def test_costs_are_differences_of_predictions(model: Model) -> None:
    asked = one("w01", "p02", "w03", "w04")
    found = model.explain(asked, 0.8)
    assert found.seconds == model.predict(asked)[0]
    assert found.alone_seconds == model.predict(one("w01", "p02"))[0]
    assert [cost.name for cost in found.corunners] == ["w03", "w04"]
    assert found.corunners[0].without_seconds == model.predict(one("w01", "p02", "w04"))[0]
    beside_all = model.predict(one("w03", "p02", "w01", "w04"))[0]
    assert found.corunners[0].itself_ratio == pytest.approx(
        beside_all / model.predict(one("w03", "p02", "w04"))[0]
    )
    assert found.evidence["workload"] == model.predictor.evidence(asked).workload[0]
    text = "\n".join(line for line in found.report().tables if isinstance(line, str))
    assert "w01 on p02 beside w03 and w04" in text
    assert f"beside them × {found.seconds / found.alone_seconds:.2f}" in text
    assert "no run to check against had 2 co-runners" in text
    assert "sets of 3 measured together" in text
    alone = model.explain(one("w01", "p02"), 0.8)
    assert alone.corunners == ()
    assert alone.alone_seconds == alone.seconds
    assert alone.bound_seconds == model.bound(one("w01", "p02"), 0.8).seconds[0]
    with pytest.raises(UsageError, match=r"one co-location .* not 2"):
        model.explain(Colocations.concatenate([asked, asked]))


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_measured_by_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 180  # of 60 co-locations, each three times
    runs = Runs.from_columns(
        workload=random.choice(["a", "b"], 60).tolist() * 3,
        platform=random.choice(["p", "q", "r"], 60, p=[0.45, 0.5, 0.05]).tolist() * 3,
        corunners=[list(random.choice(["a", "b", "c"], random.integers(4))) for _ in range(60)] * 3,
        runtime_seconds=random.uniform(1, 2, n),
    )
    more = Runs.from_columns(
        workload=["z", "c", "b"], platform=["p", "p", "s"], runtime_seconds=[1, 1, 1]
    )
    model = jostle.fit(Runs.concatenate([runs, more]), Levels(), seed=0)
    asked = ("a", "p", tuple(sorted(random.choice(["a", "b", "c"], 2))))
    found = model.explain(one(*asked[:2], *asked[2]), runs=runs).nearest
    assert found is not None

    def apart(beside: tuple[str, ...]) -> int:
        return sum(abs(beside.count(name) - asked[2].count(name)) for name in {*beside, *asked[2]})

    rows = [runs.colocations.row(i) for i in range(n)]
    there = [row for row in rows if row[:2] == ("a", "p")]
    assert apart(found.corunners) == min(apart(row[2]) for row in there)
    same = [i for i in range(n) if rows[i] == ("a", "p", found.corunners)]
    assert found.runs == len(same)
    assert found.seconds == pytest.approx(np.median(runs.runtime_seconds[same]))
    elsewhere = model.explain(one("a", "s", *asked[2]), runs=runs).nearest
    assert elsewhere is not None
    assert elsewhere.platform in ("p", "q", "r")
    assert model.explain(one("z", "p"), runs=runs).nearest is None


def test_the_doubt_is_what_was_measured_least(model: Model) -> None:
    known = jostle.fit(campaign(24, 30), Levels(), seed=0)
    assert "single runs" in known.explain(one("w01", "p02"), 0.8).doubt
    assert "never measured together" in known.explain(one("w01", "p02", "w01"), 0.8).doubt
    assert model.explain(one("w01", "p02"), 0.8).doubt == "only 8 runs tell of w01"
    alone = campaign(12, 6)
    met = np.array([name != "w03" for name in alone.table.column("workload").to_pylist()])
    near = np.array(["w03" in row for row in alone.table.column("corunners").to_pylist()])
    without = jostle.fit(alone.take(met & ~near), Levels(), seed=0)
    found = without.explain(one("w03", "p02"), 0.8)
    assert found.doubt == "no run of w03 was learned from"
    assert "20 runs of it" in found.measure
    assert np.isinf(found.bound_seconds)
    of_w03 = np.flatnonzero(~met & (alone.colocations.number_of_corunners == 0))
    some = np.concatenate([np.flatnonzero(met & ~near), of_w03[:3]])
    few = jostle.fit(alone.take(some), Levels(), seed=0)
    assert few.explain(one("w03", "p02", "w05"), 0.8).doubt == "w03 was measured alone only"
    assert few.explain(one("w03", "p02"), 0.8).doubt.startswith("only")
    assert "w03" in few.explain(one("w03", "p02"), 0.8).doubt


def test_items_that_are_reached_too_late_say_so(model: Model) -> None:
    (explain,) = (verb for verb in all_verbs("model") if verb.name == "explain")
    item = {"workload": "w01", "platform": "p02", "corunners": ["w03"]}

    def progress(done: int, total: int, _: float) -> None:
        if done == total - 1:
            raise NotPermitted("too late")

    items = explain.of(model, [item, {}, item], progress=progress).to_document()["items"]
    assert [one["status"] for one in items] == ["ok", "error", "error"]
    assert ["workload" in items[1]["error"], items[2]["error"]] == [True, "too late"]
