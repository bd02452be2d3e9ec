"""The study of the default: what is left out is known nowhere, laws are what they say, figures add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jostle.data import Runs
from jostle.errors import UnknownName, UnreadableFile, UsageError
from studies.one_model.campaigns import KnownData, campaign_names
from studies.one_model.measure import Examined, FitCell
from studies.one_model.rules import RULES, fit_rule
from studies.one_model.splits import LARGER, NEW, NEW_PLATFORM, WAYS, SetsLeftOut
from studies.one_model.study import OneModelStudy, add_raw, read_raw
from studies.one_model.tables import by_cell, ratios, summary
from studies.worlds import slowdown_laws as laws
from studies.worlds.campaigns import WORLDS, MadeWorld
from studies.worlds.slowdown_laws import TRAITS, MadeNames

SMALL = MadeWorld("adding", 9, 2, features="informative", noise=0.0)


def sets_of(runs: Runs, rows: np.ndarray, platforms: bool) -> set[tuple[str, ...]]:
    rows_of = [runs.colocations.row(int(row)) for row in rows]
    return {(p if platforms else "", *sorted((w, *others))) for w, p, others in rows_of}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_asked_is_known_nowhere(way: str) -> None:
    runs = SMALL.runs(0)
    degree = runs.colocations.number_of_corunners
    known, asked = SetsLeftOut(way, 0.5).rows(KnownData(runs), 3)
    assert len(asked)
    per_platform = way in ("per-platform", NEW_PLATFORM)
    assert not sets_of(runs, known, per_platform) & sets_of(runs, asked, per_platform)
    assert set(np.flatnonzero(degree == 0)) <= set(known)
    if way in LARGER:
        smaller, fewest, most = LARGER[way]
        assert (degree[known].max(), degree[asked].min(), degree[asked].max()) == (
            smaller,
            fewest,
            most,
        )
    if way == NEW:
        beside = known[degree[known] > 0]
        names = {name for _, *names in sets_of(runs, beside, False) for name in names}
        assert len(names) == 4  # of 9, half
        assert all(set(names_) - names for _, *names_ in sets_of(runs, asked, False))
    if per_platform:
        assert sets_of(runs, known, False) & sets_of(runs, asked, False)


def test_there_is_no_per_platform_on_one_platform() -> None:
    known, asked = SetsLeftOut("per-platform", 0.5).rows(
        KnownData(replace(SMALL, platforms=1).runs(0)), 0
    )
    assert not len(known)
    assert not len(asked)


def test_runs_that_are_always_known_are_never_asked_about() -> None:
    runs = replace(SMALL, probes=2).runs(0)
    rows = [runs.colocations.row(row) for row in range(len(runs))]
    always = [not others or "probe" in " ".join((w, *others)) for w, _, others in rows]
    known, asked = SetsLeftOut("everywhere", 0.2).rows(KnownData(runs), 0)
    small = runs.colocations.number_of_corunners <= 3
    assert set(np.flatnonzero(always & small)) < set(known)
    assert not np.array(always)[asked].any()


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_drawn_with_its_seed(name: str) -> None:
    world = replace(WORLDS[name], programs=6, platforms=1, repeats=1)
    one, same, other = world.runs(0), world.runs(0), world.runs(1)
    assert one == same
    assert not np.array_equal(one.runtime_seconds, other.runtime_seconds[: len(one)])
    assert set(one.colocations.number_of_corunners) > {0, 1, 2, 3}


def test_laws_are_what_they_say() -> None:
    def made(seed: int = 0) -> MadeNames:
        random = np.random.default_rng(seed)
        return MadeNames(random, random.normal(size=(8, TRAITS)), random.normal(size=2))

    few, more = np.array([1, 2]), np.array([1, 2, 3, 4])
    once, strongest = laws.once(made()), laws.strongest(made())
    assert once(0, 5, few) == once(0, 5, more) > 1
    assert strongest(1, 5, few) == max(strongest(1, 5, few[:1]), strongest(1, 5, few[1:]))
    adding, none = laws.adding(made()), np.zeros(0, int)
    each = [adding(0, 5, np.array([j])) - adding(0, 5, none) for j in more]
    assert adding(0, 5, more) == pytest.approx(adding(0, 5, none) + sum(each))
    for seed in range(
        20
    ):  # of what there is, all is given away, and nobody gets more than it asks for
        drawn = made(seed)
        slices, cores = laws.fair_slices(drawn), np.where(drawn.machines > 0, 1.5, 1.0)
        slow = [slices(0, i, np.delete(np.arange(8), i)) for i in range(8)]
        assert min(slow) >= 1
        asks = 1 / (1 + np.exp(-drawn.traits[:, 0] - 0.5 * _again(seed)))
        assert (asks / slow).sum() == pytest.approx(min(cores[0], asks.sum()))


def _again(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    random.normal(size=8 * TRAITS + 2)
    return random.normal(size=8)


def test_rules_find_their_own_law() -> None:
    """Costs that add up exactly are what ridge answers; the solo time is right where nobody notices."""
    runs = SMALL.runs(0)
    known, asked = SetsLeftOut("everywhere", 0.8).rows(KnownData(runs), 0)
    test = runs.take(asked)
    errors = {}
    for name in RULES:
        answer = fit_rule(name, runs.take(known), 0)(test.colocations)
        errors[name] = np.abs(answer / test.runtime_seconds - 1).mean()
    assert min(errors, key=lambda name: errors[name]) == "ridge"
    assert errors["ridge"] < 0.01
    still = MadeWorld("nothing", 6, 1, noise=0.0).runs(0)
    assert fit_rule("solo", still, 0)(still.colocations) == pytest.approx(still.runtime_seconds)


def test_rows_without_an_answer_count_as_all_wrong() -> None:
    cell = FitCell("adding", SetsLeftOut("everywhere", 0.5), 0)
    draw = Examined.of(cell, KnownData(SMALL.runs(0)))
    assert draw is not None
    half = np.where(np.arange(len(draw.seconds)) % 2, np.nan, draw.seconds)
    measures = draw._errors(half)
    assert measures["error"] == measures["unanswered"] == pytest.approx(0.5, abs=0.01)


def test_a_study_goes_on_where_it_was_left(tmp_path: Path) -> None:
    raw = tmp_path / "raw.jsonl"
    study = OneModelStudy(
        data="shared-bus", shares="0.5", ways="everywhere", methods="solo,constant", raw=raw
    )
    first = study.run().document["cells"]
    assert [record["method"] for record in first] == ["solo", "constant"]
    whole = raw.read_text("utf-8").splitlines(keepends=True)
    raw.write_text(whole[0] + whole[1][:20], "utf-8")
    again = study.run().document["cells"]
    assert again[0] == first[0]
    assert again[1]["error"] == first[1]["error"]
    assert len(read_raw(raw)) == 2
    shown = replace(study, show=True, methods=None).run().document
    assert [record["method"] for record in shown["cells"]] == ["solo", "constant"]
    raw.write_text("[]\n" + whole[0], "utf-8")
    with pytest.raises(UnreadableFile, match="line 1"):
        study.run()
    add_raw(None, {})


def test_errors_of_users_are_sentences() -> None:
    for wrong, error in (
        ({"data": "elsewhere"}, UnknownName),
        ({"methods": "guess"}, UnknownName),
        ({"ways": "sideways"}, UsageError),
        ({"shares": "half"}, UsageError),
        ({"shares": "1.5"}, UsageError),
    ):
        study = replace(OneModelStudy(data="shared-bus", methods="solo"), **wrong)
        with pytest.raises(error):
            study.run()
    assert len(set(campaign_names())) == len(campaign_names()) >= 21


def test_ratios_are_over_the_best_of_the_others() -> None:
    errors = {
        "default": (0.04, 0.02),
        "slowdown": (0.02, 0.05),
        "bag": (0.03, 0.04),
        "solo": (0.1, 0.01),
    }
    records = [
        {"data": data, "way": "everywhere", "share": 0.1, "seed": 0, "method": name, "error": e}
        for name, both in errors.items()
        for data, e in zip("ab", both, strict=True)
    ]
    cells = by_cell(records)
    found = ratios(cells, "default", ("slowdown", "bag"))
    assert list(found.values()) == pytest.approx([2.0, 0.5])
    assert summary(found)["geometric_mean_ratio"] == pytest.approx(1.0)
    assert summary(found)["worst_cell"] == ["a", "everywhere", 0.1]
    assert list(ratios(cells, "default", ("solo",)).values()) == pytest.approx([0.4, 2.0])
