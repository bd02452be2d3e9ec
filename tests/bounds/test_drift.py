"""Bets against a calm stream: they win nothing where nothing changes, and soon where something does."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.bounds import TOLD, DriftLevels, Quantiles, usual_levels
from jostle.bounds._drift import EDGES, FAMILY, LATE, MEAN, MORE, RATIOS, SPREAD, WEIGHTS

ONE = np.zeros(1, np.int64)


def level(unsure: float = 0.05, noise: float = 1.0, freedom: float = 200.0) -> DriftLevels:
    """One, over whose bound are usually a tenth of its runs."""
    return DriftLevels(*(np.array([one]) for one in (0.0, unsure, noise, freedom)), late=0.1)


def told(levels: DriftLevels, scores: np.ndarray) -> int | None:
    """After how many runs it is told."""
    for place, score in enumerate(scores.tolist()):
        levels.add(ONE, score, is_late=score > 1.2816)
        if levels.evidence[0] >= TOLD:
            return place + 1
    return None


def test_every_bet_is_fair() -> None:
    """Its mean is 1 while nothing changes, by the law of normal numbers or of late runs."""
    from scipy import stats

    cells = np.diff(stats.norm.cdf(EDGES), prepend=0.0, append=1.0)
    assert cells @ RATIOS == pytest.approx(np.ones(RATIOS.shape[1]))
    assert WEIGHTS.sum() == pytest.approx(1)
    assert len(FAMILY) == RATIOS.shape[1] + len(MORE)
    for late in (0.02, 0.1, 0.4):
        one, other = level(), level()
        one.late[:], other.late[:] = late, late
        one.add(ONE, 0.3, is_late=True)
        other.add(ONE, 0.3, is_late=False)
        mean = late * one._sum[0] + (1 - late) * other._sum[0]
        of_late = [place for place, family in enumerate(FAMILY) if family == LATE]
        assert mean[of_late] == pytest.approx(np.ones(len(MORE)))


@pytest.mark.parametrize("unsure", [0.05, 0.5])
def test_the_evidence_of_a_calm_stream_is_that_of_its_length(unsure: float) -> None:
    """By Ville's inequality it is over n times a million once in a million streams of n runs."""
    random = np.random.default_rng(0)
    for _ in range(5):
        scores = random.normal(size=2000) + unsure * random.normal()
        assert told(level(unsure), scores) is None


@pytest.mark.parametrize(
    ("family", "make", "at_most"),
    [
        (MEAN, lambda r, n: r.normal(size=n) + 3.0, 12),
        (MEAN, lambda r, n: r.normal(size=n) - 0.65, 200),
        (SPREAD, lambda r, n: r.normal(size=n) * 2.0, 150),
        (LATE, lambda r, n: np.where(r.random(n) < 0.4, 1.3, -r.random(n)), 200),
    ],
)
def test_what_changes_is_told_with_its_kind_and_beginning(family, make, at_most) -> None:
    random, levels = np.random.default_rng(1), level(freedom=1000.0)
    assert told(levels, random.normal(size=300)) is None
    after = told(levels, make(random, 1000))
    assert after is not None
    assert after <= at_most
    kind, runs = levels.told_by(0)
    assert kind == family
    # It may have begun by chance a little before, or be seen from its first large run on.
    assert after - 30 <= runs <= after + 60


def test_a_level_that_is_hardly_known_is_no_drift() -> None:
    scores = np.random.default_rng(4).normal(size=2000) + 0.7
    assert told(level(0.03), scores) is not None
    assert told(level(1.0), scores) is None
    wide = 2.5 * np.random.default_rng(5).normal(size=2000)
    assert told(level(), wide) is not None
    assert told(level(noise=2.5), wide) is None


def test_what_was_told_is_the_usual_from_then_on() -> None:
    random, levels = np.random.default_rng(2), level()
    assert told(levels, random.normal(size=50) * 4) is not None
    levels.move(0, 0.0, random.normal(size=40) * 4)
    assert (levels.is_moved[0], levels.evidence[0]) == (True, 0.0)
    assert levels.wider[0] > 2
    assert told(levels, random.normal(size=1500) * 3) is None


def test_wider_levels_take_what_is_theirs() -> None:
    """Where the fleet is wider, its names are not."""
    both = DriftLevels(np.zeros(2), np.full(2, 0.05), np.ones(2), np.full(2, 200.0), 0.1)
    random = np.random.default_rng(3)
    both.move(0, 0.1, random.normal(size=200) * 3)
    for score in random.normal(size=1000) * 2.5:
        both.add(np.arange(2), float(score), is_late=bool(random.random() < 0.1))
    assert both.evidence[1] < TOLD


@pytest.mark.parametrize("c", [0.8, 0.9, 0.99])
def test_the_share_of_late_runs_is_kept_whatever_comes(c: float) -> None:
    """Calm, ten times as wide, a step, a period: far over any score that was calibrated on."""
    random, n = np.random.default_rng(0), 4000
    at = np.arange(n)
    streams = [3 * random.normal(size=n), 30 * random.standard_t(3, size=n)]
    streams += [
        random.normal(size=n) + 40 * (at > 500),
        10 * np.sin(at / 90) + random.normal(size=n),
    ]
    quantiles = Quantiles(np.array([c]), random.normal(size=(20, 1)))
    late = []
    for excess in np.concatenate(streams):
        late.append(excess > quantiles.extra[0])
        quantiles.add(np.array([excess]), quantiles.extra)
    assert np.mean(late) <= 1 - c + 0.02
    assert np.mean(late) >= (1 - c) / 4


def test_what_came_since_a_change_is_where_bounds_begin() -> None:
    excess = np.arange(19.0)[:, None] * np.ones(2)
    extra = Quantiles(np.array([0.5, 0.9]), excess).extra
    assert (extra >= [9.0, 17.0]).all()
    assert Quantiles(np.array([0.9]), -excess[:, :1]).extra == [0.0]


def test_usual_levels_are_shrunken_by_how_much_names_differ() -> None:
    random = np.random.default_rng(5)
    code = np.repeat(np.arange(40), 6)
    true = 1.2 * random.normal(size=41)
    errors = np.clip(true[code] + 0.5 * random.normal(size=240), -3, 3)
    errors[0] = np.inf
    wide, narrow = usual_levels(errors, [np.zeros(240, int), code], [1, 41])
    errors[0] = 0.0
    # Names differ by far more than their runs: hardly shrunken, and known to what six runs let them.
    means = np.bincount(code, errors - wide.level[0]) / 6
    assert narrow.level[:40] == pytest.approx(means, abs=0.2)
    assert narrow.unsure[:40] == pytest.approx(0.5 / 6**0.5, rel=0.2)
    # Nothing is known of one without runs but how far names lie apart.
    assert narrow.level[40] == 0.0
    assert narrow.unsure[40] == pytest.approx(1.2, rel=0.3)
    # Where names do not differ at all, levels are nearly 0.
    (same,) = usual_levels(random.normal(size=240), [code], [40])
    assert np.abs(same.level).max() < 0.5
    assert same.noise.max() < 1.5
    loud = np.where(code == 3, 4.0, 1.0) * random.normal(size=240) / 2
    (of_each,) = usual_levels(loud, [code], [40])
    assert of_each.noise.argmax() == 3
    assert of_each.noise[3] > 1.5 * np.median(of_each.noise)
    # None is trusted to be narrower than all are.
    assert (of_each.noise == of_each.noise.min()).sum() > 20
