"""Policies side by side: each does what its name says, and the study reports what it placed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import studies
from jostle.data import Runs
from jostle.errors import NotEnoughRuns, UsageError
from jostle.models import Model
from studies.placement.policies import AdditiveRule
from studies.placement.sets import measured_sets
from studies.placement.simulate import held_out_sets
from studies.placement.study import PlacementStudy

QUICK = ("rank=6", "hidden=8", "steps=20", "quantiles=")


def test_sets_are_held_out_whole(world: Runs) -> None:
    rest, held = held_out_sets(world, 0.3, 0)
    assert len(rest) + len(held) == len(world)
    assert (held.colocations.number_of_corunners > 0).all()
    both = Runs.concatenate([rest, held]).colocations.together
    assert not set(both[: len(rest)]) & set(both[len(rest) :])
    with pytest.raises(NotEnoughRuns):
        held_out_sets(world.take(world.colocations.number_of_corunners == 0), 0.3, 0)


def test_the_additive_rule_finds_what_is_additive(model: Model) -> None:
    names, random = model.predictor.workload_names, np.random.default_rng(0)
    press = dict(zip(names, random.random(len(names)), strict=True))
    rows = [(a, (b, c)) for a in names for b in names for c in names if a < b < c]
    runs = Runs.from_columns(
        workload=[*names, *(a for a, _ in rows)],
        platform=["p0"] * (len(names) + len(rows)),
        corunners=[*([] for _ in names), *(beside for _, beside in rows)],
        runtime_seconds=[*(1.0 for _ in names), *(1 + sum(press[b] for b in o) for _, o in rows)],
    )
    rule = AdditiveRule.of(runs, model)
    part = measured_sets(runs, model, fewest=2)[0]
    known = np.isfinite(part.seconds)
    assert (
        np.abs(rule(part)[known] / part.seconds[known] - 1).max() < 0.1
    )  # a ridge holds back a little


def test_the_study_on_a_small_world(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = PlacementStudy(dataset, settings=QUICK, seeds=1, repeats=2)
    report = study.run()
    rows = {row["policy"]: row for row in report.document["rows"]}
    assert len(rows) == 14
    assert rows["no sharing"]["placed_sets"] == 0
    assert rows["clairvoyant"]["violated_ratio"] == 0
    assert rows["clairvoyant"]["saved_of_clairvoyant_ratio"] == 1
    assert rows["pack by slots"]["saved_platforms"] >= rows["clairvoyant"]["saved_platforms"]
    assert rows["bound 0.9"]["accepted_late_ratio"] <= 0.1
    assert rows["bound 0.99"]["placed_sets"] <= rows["bound 0.9"]["placed_sets"]
    with pytest.raises(UsageError, match="limit"):
        PlacementStudy(dataset, limits="0.5").run()
    with pytest.raises(UsageError, match="no option"):
        PlacementStudy(dataset, settings=("luck=1",)).run()
    capsys.readouterr()


def test_the_study_as_a_command(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["placement", str(dataset), "--seeds", "1", "--repeats", "1", "--json"]
    for setting in QUICK:
        asked += ["--set", setting]
    assert studies.run([*asked, "--limits", "1.2,2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evaluate/v1"
    assert document["limits"] == [1.2, 2.0]
