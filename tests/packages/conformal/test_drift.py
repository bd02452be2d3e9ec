"""Bets against a calm stream: they win nothing where nothing changes, and soon where something does."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.conformal import MEAN, SPREAD, TOLD, DriftLevels, Quantiles, usual_levels
from jostle.conformal._change_detection import EDGES, FAMILY, LATE, MORE, RATIOS, WEIGHTS

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


def test_a_bet_on_a_wider_spread_is_on_neither_side() -> None:
    wide = [place for place, family in enumerate(FAMILY) if family == SPREAD]
    assert RATIOS[:, wide] == pytest.approx(RATIOS[::-1, wide], rel=1e-3)
    means = [place for place, family in enumerate(FAMILY) if family == MEAN]
    up, down = np.split(RATIOS[:, means], 2, axis=1)
    assert up == pytest.approx(down[::-1], rel=1e-3)


def test_evidence_is_the_sum_over_all_beginnings_of_what_bets_won_since() -> None:
    """By all beginnings; the one told of is that from which the best bet won most."""
    scores = np.random.default_rng(6).normal(size=30) + np.repeat([0.0, 0.5], 15)
    levels = level(1e-9, freedom=1e9)
    for score in scores.tolist():
        levels.add(ONE, score, is_late=False)
    levels_of_mean = RATIOS[np.searchsorted(EDGES, scores)]
    won = np.array([np.prod(levels_of_mean[first:], axis=0) for first in range(len(scores))])
    assert levels._sum[0, : RATIOS.shape[1]] == pytest.approx(won.sum(0), rel=1e-6)
    assert levels.evidence[0] == pytest.approx(levels._sum[0] @ WEIGHTS)
    family, runs = levels.told_by(0)
    best = int(np.argmax(levels._sum[0] * WEIGHTS))
    assert (family, runs) == (FAMILY[best], len(scores) - int(won[:, best].argmax()))


@pytest.mark.parametrize(("known", "freedom"), [(4.0, 12.0), (400.0, 30.0)])
def test_a_calm_level_is_learned_as_if_what_was_usual_were_so_many_runs(
    known: float, freedom: float
) -> None:
    """Mean and spread of a normal law with its conjugate prior."""
    n, noise = 40, 1.2
    one = (np.array([x]) for x in (0.3, noise / known**0.5, noise, freedom))
    usual = DriftLevels(*one, late=0.1)
    scores = np.random.default_rng(7).uniform(-1, 1, size=n)
    late = scores > 0.9
    for score, is_late in zip(scores.tolist(), late.tolist(), strict=True):
        usual.add(ONE, score, is_late=is_late)
    assert usual.mean[0] == pytest.approx((known * 0.3 + scores.sum()) / (known + n))
    about = ((scores - scores.mean()) ** 2).sum()
    about += known * n / (known + n) * (scores.mean() - 0.3) ** 2
    assert usual.noise[0] ** 2 == pytest.approx((freedom * noise**2 + about) / (freedom + n))
    assert usual.known[0] == pytest.approx(known + n)
    assert usual.freedom[0] == pytest.approx(freedom + n)
    assert usual.late[0] == pytest.approx((30 * 0.1 + late.sum()) / (30 + n), rel=0.01)
    assert usual.usual[0] == 0.3


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


def test_usual_levels_of_no_runs_and_of_runs_that_are_all_the_same() -> None:
    none, same = np.zeros(0), np.zeros(12)
    code = np.repeat(np.arange(3), 4)
    for errors, key in ((none, np.zeros(0, int)), (same, code)):
        (found,) = usual_levels(errors, [key], [3])
        assert np.isfinite([found.level, found.unsure, found.noise, found.freedom]).all()
        assert (found.level == 0).all()
    # Where spreads do not differ each is known nearly as that of all.
    alike = np.tile([1.0, -1.0], 600)
    (found,) = usual_levels(alike, [np.repeat(np.arange(20), 60)], [20])
    assert (found.freedom > 60 + 90).all()


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
