"""More co-runners than any run has: what pairs, or the largest sets known, say of larger ones.

Where it is known how many cores there are and how much of them each workload wants, turns on these (see
`_cores`) are taken off before, and put on after, all of the following.

Three kinds of rules, on what is answered about sets no larger than those seen, or about larger ones:

    part:  one of the weighed answers, such as effects or pressures that add up, of the larger set itself
    pool:  log1p(F + (sum_j (s_j - F)_+^q)^(1/q)), s_j the excess beside co-runner j alone
    grow:  (d / b)^power times the mean over sets of b of the d co-runners

Pairs alone also tell whether members take turns at something: then two of them get no more done side by side
than one alone, whoever they are, and three wait for each other, too, however alike all co-runners cost.
`gain`, what the second of a pair adds at most, over what one does alone, says how far that is believed, and
then what co-runners cost adds up. Parts that simulate how members share what they run on answer themselves.

Where sets of more than one co-runner ran, no answer is below the mean of what is answered about sets as
large as the largest of these, unless larger sets that were left out are closer without that.

`pool` pays what every co-runner costs alike once: F, the tenth part of a target's co-runners from below; only
what goes beyond adds up, and nothing where company helps in the mean. Gated, it is believed as far as the
identity of the co-runner is seen to matter, rho: the cross-validated share of the variance within targets
that the co-runner explains. On pairs alone that is the rule. With several numbers of co-runners known, all
rules are weighed by how close they are on the highest, learned from the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from jostle.learn.rules._cpu_sharing import turns_on_cores
from jostle.learn.rules._set_residuals import keys_of, variance_of_repeats
from jostle.learn.rules._shrunk_weights import greedy_weights, nothing_but_noise, relative_error
from jostle.learn.rules._slowdown_rows import Ground, SlowdownRows, looked_up

QUANTILE = 0.1
ASKED = 40  # co-runners by which F is found
MOST_TARGETS = 4_000  # for which it is; the others of more have their platform's median
MOST_HELD = 10_000  # rows that larger sets are tried on
FEWEST = 10  # rows with the highest number of co-runners, under which the usual rule stands
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
DOUBT = 4  # power of 1 - gain to which turns are believed
UNTRIED = 0.5  # how far the weights of parts that pairs alone cannot try are believed
QS = (1.0, 1.5, 2.5, 8.0)
PART, POOL, GROW = 0, 1, 2

Answer = Callable[[SlowdownRows], np.ndarray]  # (n,) log slowdown of rows no larger than seen
Parts = Callable[[SlowdownRows], np.ndarray]  # (k, n) what is weighed, of rows of any size


class Rule(NamedTuple):
    """kind; q or power; how many co-runners there are in the sets that grow, whether a pool is gated, or
    which part answers."""

    kind: int
    strength: float
    base: int


USUAL = Rule(POOL, 1.0, 1)  # on pairs alone, which cannot tell q
# The sum of what pairs cost, the worst of them and their mean: pairs alone cannot tell which it is.
ANY_OF_PAIRS = (USUAL, Rule(POOL, 8.0, 1), Rule(GROW, 0.0, 1))


@dataclass(frozen=True)
class LargerSets:
    """most: () co-runners in any run. rule: (k, 3), see Rule; weight: (k,). low: (cells,) F. rho, gain:
    (platforms,). stays: () whether more company never costs less than the mean answer of `most` of it."""

    most: np.ndarray
    rule: np.ndarray
    weight: np.ndarray
    low: np.ndarray
    rho: np.ndarray
    gain: np.ndarray
    stays: np.ndarray = field(default_factory=lambda: np.array(False))

    @classmethod
    def of_turns(cls, most: int, ground: Ground) -> LargerSets:
        """Where nothing but turns on cores slows anything down."""
        none = np.zeros((0, 3)), np.zeros(0), np.zeros(ground.cells)
        return cls(np.array(most), *none, np.ones(ground.platforms), np.ones(ground.platforms))

    @classmethod
    def of_sums(cls, most: int, ground: Ground) -> LargerSets:
        """Where nothing was tried: what each co-runner adds alone, added up."""
        rule, one = np.array([[POOL, 1.0, 0.0]]), np.ones(ground.platforms)
        return cls(
            *(np.array(most), rule, np.ones(1), np.zeros(ground.cells), one, one),
            stays=np.array(True),
        )

    def log_slowdown(
        self, rows: SlowdownRows, ground: Ground, answer: Answer, parts: Parts | None = None
    ) -> np.ndarray:
        """(n,) of rows with more co-runners than seen."""
        turns = turns_on_cores(rows, ground)
        if not len(self.rule):
            return turns
        answer = _without_turns(answer, ground)
        whole = None
        if parts is not None and (self.rule[:, 0] == PART).any():
            whole = parts(rows) - turns
        alone = answer(_pairs(rows))
        answers, least = self.by_rule(rows, ground, answer, alone, whole)
        if self.most == 1:
            gain = self.gain[rows.target // ground.workloads]
            added = np.log1p(np.maximum(np.bincount(rows.row, np.expm1(alone), len(rows)), -0.9))
            by_pairs = self.rule[:, 0] != PART
            answers[by_pairs] += (1 - gain) ** DOUBT * (added - answers[by_pairs])
        total = self.weight @ answers
        return np.maximum(turns + total, least) if self.stays else turns + total

    def by_rule(
        self,
        rows: SlowdownRows,
        ground: Ground,
        answer: Answer,
        alone: np.ndarray,
        whole: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """((k, n) what each rule says, (n,) the mean of what is answered of sets of `most`, turns included).

        answer: without turns. alone: (m,) what is answered of each co-runner alone. whole: (p, n) what the
        parts say, None for none.
        """
        most = int(self.most)
        if most > 1:
            members = _sets_of(rows, most)
            of_row = rows.row[members[:, 0]]
            sets = _beside(rows, of_row, rows.corunner[members])
            smaller = answer(sets)
        else:
            of_row, sets, smaller = rows.row, _pairs(rows), alone
        mean = {1: rows.mean(alone), most: np.bincount(of_row, smaller, len(rows)) / rows.degree}
        waited = np.bincount(of_row, turns_on_cores(sets, ground), len(rows)) / rows.degree
        least = mean[most] + waited
        answers = np.empty((len(self.rule), len(rows)))
        for at, (kind, strength, base) in enumerate(self.rule):
            if kind == PART and whole is not None:
                answers[at] = whole[int(base)]
            elif kind == GROW:
                answers[at] = (rows.degree / base) ** strength * mean[int(base)]
            else:
                answers[at] = self._pooled(rows, ground, alone, strength, bool(base))
        return answers, least

    def _pooled(
        self, rows: SlowdownRows, ground: Ground, alone: np.ndarray, power: float, is_gated: bool
    ) -> np.ndarray:
        """(n,) alone: (m,) log slowdown beside each of the co-runners."""
        rho = self.rho[rows.target // ground.workloads] if is_gated else np.ones(len(rows))
        mean = rows.mean(alone)
        low = self.low[rows.target] * (1 - rho if is_gated else 1.0)
        more = np.maximum(np.expm1(alone) - low[rows.row], 0.0)
        # Over the largest, so that a high power neither over- nor underflows.
        top = np.zeros(len(rows))
        np.maximum.at(top, rows.row, more)
        share = (more / np.maximum(top, 1e-300)[rows.row]) ** power
        beyond = top * np.bincount(rows.row, share, len(rows)) ** (1 / power)
        pooled = np.log1p(np.maximum(low + beyond, -0.9))
        return mean + np.where(mean > 0, rho**2 * np.maximum(pooled - mean, 0.0), 0.0)


def fit_extrapolation(
    rows: SlowdownRows,
    ground: Ground,
    answer: Answer,
    within: np.ndarray,
    fewer: Callable[[np.ndarray], tuple[Answer, Parts | None]],
    noise: float = np.nan,
    untried: np.ndarray | None = None,
    half: np.ndarray | None = None,
) -> tuple[LargerSets, list[LargerSets]]:
    """(what answers, what answers the largest sets of either half, learned from smaller sets and weighed on
    the other half; none where the largest are few).

    answer: what is weighed. within: (n,) what that says of rows not seen, NaN where unknown. fewer: fits on
    some of the rows, (n,) bool, and gives the answer and its parts, if these answer larger sets. noise:
    variance of the log runtime of repeated runs alone, NaN where unknown. untried: (k,) weights of parts that
    say themselves how effects grow, which pairs alone cannot try; of pairs, those that simulate how members
    share: these are believed about larger sets as far as about pairs. None where there is one answer, of
    USUAL. half: (n,) bool, which half of the sets each row is of."""
    most, turns = int(rows.degree.max()), turns_on_cores(rows, ground)
    rows = replace(rows, log_slowdown=rows.log_slowdown - turns)
    answer, within = _without_turns(answer, ground), within - turns
    rho, low = explained(rows, ground, within, noise), _low(rows, ground, answer)
    gain = _gain(rows, ground) if most == 1 else np.ones(ground.platforms)
    highest, stays = rows.degree == most, np.array(most > 1)
    usual = (USUAL,) if untried is None else ANY_OF_PAIRS
    rules, weight = list(usual), np.full(len(usual), 1 / len(usual))
    tried: list[LargerSets] = []
    if most == 1 and untried is not None:
        places = np.flatnonzero(untried)
        rules += [Rule(PART, 0.0, at) for at in places.tolist()]
        weight = np.append(weight * (1 - untried.sum()), untried[places])
    if most > 1 and min(highest.sum(), (~highest).sum()) >= FEWEST:
        known = rows.take(~highest)
        is_held = highest.copy()
        order = np.random.default_rng([MOST_HELD]).permutation(np.flatnonzero(highest))
        is_held[order[MOST_HELD:]] = False
        held = rows.take(is_held)
        smaller, parts = fewer(~highest)
        smaller, waited = _without_turns(smaller, ground), turns_on_cores(held, ground)
        before = int(known.degree.max())
        whole = None if parts is None else parts(held) - waited
        rules = _rules(before, 0 if whole is None else len(whole))
        own = _low(known, ground, smaller), explained(known, ground, within[~highest], noise)
        trial = LargerSets(np.array(before), np.array(rules, float), weight, *own, gain, stays)
        answers, least = trial.by_rule(held, ground, smaller, smaller(_pairs(held)), whole)
        weight, stays = _weighed(answers, least - waited, held)
        mine = np.zeros(len(held), bool) if half is None else half[is_held]
        for other in (mine, ~mine) if mine.any() and not mine.all() else ():
            about = answers[:, other], (least - waited)[other], held.take(other)
            chosen, still = _weighed(*about)
            tried.append(replace(trial, weight=chosen, stays=still))
        if before == 1 and whole is not None and untried is not None:
            weight = weight * (1 - UNTRIED * untried.sum())
            weight[: len(untried)] += UNTRIED * untried
        rules = [rule for rule, w in zip(rules, weight, strict=True) if w > 0]
        weight = weight[weight > 0]
        # What grew from the largest sets then known grows from the largest known now.
        rules = [r._replace(base=most) if r.kind == GROW and r.base > 1 else r for r in rules]
    more = LargerSets(np.array(most), np.array(rules, float), weight, low, rho, gain, stays)
    return more, tried


def _weighed(
    answers: np.ndarray, least: np.ndarray, held: SlowdownRows
) -> tuple[np.ndarray, np.ndarray]:
    """((k,) weights of what rules answer (k, n), () whether the least (n,) is to hold)."""
    weight, _ = greedy_weights(answers, held.log_slowdown, held.sets(), seed=0)
    away, least = weight @ answers - held.log_slowdown, least - held.log_slowdown
    lost = relative_error(np.maximum(away, least)) - relative_error(away)
    return weight, np.array(nothing_but_noise(lost, held.sets()))


def _without_turns(answer: Answer, ground: Ground) -> Answer:
    return lambda query: answer(query) - turns_on_cores(query, ground)


def _rules(before: int, parts: int) -> list[Rule]:
    pools = [Rule(POOL, q, gated) for q in QS for gated in (0, 1)]
    grows = [Rule(GROW, power, base) for power in POWERS for base in sorted({1, before})]
    return [*(Rule(PART, 0.0, at) for at in range(parts)), *pools, *grows]


def explained(
    rows: SlowdownRows, ground: Ground, within: np.ndarray, noise: float = np.nan
) -> np.ndarray:
    """(platforms,) rho, drawn towards that of all platforms where rows are few; 1 where nothing was tried."""
    of_sets = variance_of_repeats(keys_of(rows), rows.log_slowdown)
    noise = noise if np.isnan(of_sets) else of_sets
    tried = np.isfinite(within)
    if not tried.any():
        return np.ones(ground.platforms)
    rows, within = rows.take(tried), within[tried]
    key = rows.target * (int(rows.degree.max()) + 1) + rows.degree
    _, at = np.unique(key, return_inverse=True)
    count = np.bincount(at)
    left, spread = (
        values - (np.bincount(at, values) / count)[at]
        for values in (rows.log_slowdown - within, rows.log_slowdown)
    )
    several = count[at] > 1
    place = (rows.target // ground.workloads)[several]
    wrong = np.bincount(place, left[several] ** 2, ground.platforms)
    whole = np.bincount(place, spread[several] ** 2, ground.platforms)
    if np.isfinite(noise):
        free = np.bincount(place, (1 - 1 / count[at])[several], ground.platforms)
        wrong = np.minimum(wrong, free * noise)
    if whole.sum() <= 0:
        return np.ones(ground.platforms)
    overall = float(np.clip(1 - wrong.sum() / whole.sum(), 0, 1))
    weight = FEWEST * whole.sum() / max(len(place), 1)
    share = np.clip(1 - wrong / np.maximum(whole, 1e-300), 0, 1)
    return (whole * share + weight * overall) / (whole + weight)


def _gain(rows: SlowdownRows, ground: Ground) -> np.ndarray:
    """(platforms,) from 0 to 1, how much more than one alone two get done side by side, over what one does,
    where they get most done: a high quantile of the pairs measured from both sides; 1 where there are hardly
    any. rows: pairs."""
    key, at = np.unique(rows.target * ground.cells + rows.corunner, return_inverse=True)
    rate = np.bincount(at, np.exp(-rows.log_slowdown)) / np.bincount(at)
    both = rate + looked_up(
        key, rate, key % ground.cells * ground.cells + key // ground.cells, np.nan
    )
    place = key // ground.cells // ground.workloads
    out = np.ones(ground.platforms)
    for p in range(ground.platforms):
        mine = both[(place == p) & np.isfinite(both)]
        if len(mine) >= FEWEST:
            out[p] = np.clip(np.quantile(mine, 1 - QUANTILE) - 1, 0.0, 1.0)
    return out


def _low(rows: SlowdownRows, ground: Ground, answer: Answer) -> np.ndarray:
    """(cells,) low quantile of the excess over the co-runners of the platform; for targets without rows, and
    of very many for most, the platform's median."""
    w = ground.workloads
    out = np.full(ground.cells, np.nan)
    each = max(1, MOST_TARGETS // len(np.unique(rows.target // w)))
    for place in np.unique(rows.target // w):
        targets = np.unique(rows.target[rows.target // w == place])
        targets = targets[np.unique(np.linspace(0, len(targets) - 1, each).astype(int))]
        beside = np.unique(rows.corunner[rows.corunner // w == place])
        beside = beside[np.unique(np.linspace(0, len(beside) - 1, ASKED).astype(int))]
        target, corunner = np.repeat(targets, len(beside)), np.tile(beside, len(targets))
        n = len(target)
        scale = np.ones(n)
        if rows.timed:
            by_cell = np.ones(ground.cells)
            by_cell[rows.target] = rows.scale  # of one cell it is the same in every row
            scale = by_cell[target]
        query = SlowdownRows(target, corunner, np.arange(n), np.zeros(n), scale, rows.timed)
        excess = np.expm1(answer(query)).reshape(len(targets), len(beside))
        out[targets] = np.quantile(excess, QUANTILE, axis=1)
        here = slice(place * w, (place + 1) * w)
        out[here] = np.where(np.isnan(out[here]), np.nanmedian(out[targets]), out[here])
    return np.where(np.isnan(out), np.nanmedian(out), out)


def _pairs(rows: SlowdownRows) -> SlowdownRows:
    """(m rows) each target beside each of its co-runners alone."""
    return _beside(rows, rows.row, rows.corunner[:, None])


def _beside(rows: SlowdownRows, of_row: np.ndarray, corunners: np.ndarray) -> SlowdownRows:
    """(g rows) the targets of these rows (g,), each beside its co-runners (g, size)."""
    g, size = corunners.shape
    own = rows.target[of_row], corunners.ravel(), np.repeat(np.arange(g), size)
    return SlowdownRows(*own, rows.log_slowdown[of_row], rows.scale[of_row], rows.timed)


def _sets_of(rows: SlowdownRows, most: int) -> np.ndarray:
    """(m, most) which co-runners are in sets of `most` that follow each other, in the order of their cells
    and round about, so that every one is in as many."""
    order = np.lexsort((rows.corunner, rows.row))
    row, degree = rows.row[order], rows.degree
    start = np.cumsum(degree) - degree
    place = np.arange(len(row)) - start[row]
    shifts = (place[:, None] + np.arange(most)) % degree[row][:, None]
    return order[start[row][:, None] + shifts]
