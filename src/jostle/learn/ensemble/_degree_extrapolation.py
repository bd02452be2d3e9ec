"""More co-runners than any run has: what pairs, or the largest sets known, say of larger ones.

Where it is known how many cores there are and how much of them each workload wants, turns on these (see
`_cpu_sharing`) are taken off before, and put on after, all of the following.

Three kinds of rules, on what is answered about sets no larger than those seen, or about larger ones:

    part:  one of the weighed answers, such as effects or pressures that add up, of the larger set itself
    pool:  log1p((sum_j s_j_+^q)^(1/q)), s_j the excess beside co-runner j alone: the sum, or nearly the worst
    grow:  (d / b)^power times the mean over sets of b of the d co-runners

With several numbers of co-runners known, all rules are weighed by how close they are on the highest, learned
from the others. Pairs alone cannot tell: the sum of them and the worst count alike. But they tell whether
members take turns at something: then two of them get no more done side by side than one alone, whoever they
are. `gain`, what the second of a pair adds at most, over what one does alone, says how far that is believed,
and then what co-runners cost adds up. Parts that simulate how members share what they run on answer
themselves.

Where sets of more than one co-runner ran, no answer is below the mean of what is answered about sets as
large as the largest of these, unless larger sets that were left out are closer without that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from jostle.learn.ensemble._shrunk_weights import greedy_weights
from jostle.learn.training._cpu_sharing import cpu_sharing_log_slowdown
from jostle.learn.training._relative_error import gain_is_insignificant, relative_error
from jostle.learn.training._set_keys import members_key
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows, looked_up

MOST_HELD = 10_000  # rows that larger sets are tried on
FEWEST = 10  # rows with the highest number of co-runners, under which the usual rule stands
POWERS = (0.0, 1.0)  # of a rule that grows, tried
DOUBT = 4  # power of 1 - gain to which turns are believed
QUANTILE = 0.1  # of the pairs from above, which get most done
UNTRIED = 0.5  # factor of the weights of parts that could not be tested on larger sets
SUM, WORST = 1.0, 8.0  # the powers q
PART, POOL, GROW = 0, 1, 2  # kinds of rules

Answer = Callable[[SlowdownRows], np.ndarray]  # (n,) log slowdown of rows no larger than seen
Parts = Callable[[SlowdownRows], np.ndarray]  # (k, n) what is weighed, of rows of any size


class Rule(NamedTuple):
    """kind: PART, POOL or GROW. strength: q or power. base: size of the sets that grow, or which part."""

    kind: int
    strength: float
    base: int


OF_PAIRS = (Rule(POOL, SUM, 0), Rule(POOL, WORST, 0))


@dataclass(frozen=True)
class DegreeExtrapolation:
    """most: () co-runners in any run. rule: (k, 3), see Rule; weight: (k,). gain: (platforms,). stays: ()
    whether more company never costs less than the mean answer of `most` of it."""

    most: np.ndarray
    rule: np.ndarray
    weight: np.ndarray
    gain: np.ndarray
    stays: np.ndarray = field(default_factory=lambda: np.array(False))

    @classmethod
    def of_turns(cls, most: int, cell_table: CellTable) -> DegreeExtrapolation:
        """Make the rule for when only turns on cores slow anything down."""
        return cls(np.array(most), np.zeros((0, 3)), np.zeros(0), np.ones(cell_table.platforms))

    @classmethod
    def of_sums(cls, most: int, cell_table: CellTable) -> DegreeExtrapolation:
        """Make the rule for when nothing was tried: what each co-runner adds alone, added up."""
        rule = np.array([OF_PAIRS[0]], float)
        return cls(np.array(most), rule, np.ones(1), np.ones(cell_table.platforms), np.array(True))

    def log_slowdown(
        self, rows: SlowdownRows, cell_table: CellTable, answer: Answer, parts: Parts | None = None
    ) -> np.ndarray:
        """Predict (n,) log slowdowns of rows with more co-runners than seen."""
        turns = cpu_sharing_log_slowdown(rows, cell_table)
        if not len(self.rule):
            return turns
        answer = _without_turns(answer, cell_table)
        whole = None
        if parts is not None and (self.rule[:, 0] == PART).any():
            whole = parts(rows) - turns
        alone = answer(_pairs(rows))
        answers, least = self.by_rule(rows, cell_table, answer, alone, whole)
        if self.most == 1:
            gain = self.gain[rows.target // cell_table.workloads]
            added = np.log1p(np.maximum(np.bincount(rows.row, np.expm1(alone), len(rows)), -0.9))
            by_pairs = self.rule[:, 0] != PART
            answers[by_pairs] += (1 - gain) ** DOUBT * (added - answers[by_pairs])
        total = self.weight @ answers
        return np.maximum(turns + total, least) if self.stays else turns + total

    def by_rule(
        self,
        rows: SlowdownRows,
        cell_table: CellTable,
        answer: Answer,
        alone: np.ndarray,
        whole: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ((k, n) log slowdowns by each rule, (n,) the mean about sets of `most`, with turns).

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
        turns = cpu_sharing_log_slowdown(sets, cell_table)
        least = mean[most] + np.bincount(of_row, turns, len(rows)) / rows.degree
        answers = np.empty((len(self.rule), len(rows)))
        for at, (kind, strength, base) in enumerate(self.rule):
            if kind == PART and whole is not None:
                answers[at] = whole[int(base)]
            elif kind == GROW:
                answers[at] = (rows.degree / base) ** strength * mean[int(base)]
            else:
                answers[at] = _pooled(rows, alone, strength)
        return answers, least


def _pooled(rows: SlowdownRows, alone: np.ndarray, power: float) -> np.ndarray:
    """Pool what each co-runner costs, (n,); if co-runners help in the mean, take the mean. alone: (m,) log
    slowdown beside each of the co-runners."""
    mean, more = rows.mean(alone), np.maximum(np.expm1(alone), 0.0)
    # Over the largest, so that a high power neither over- nor underflows.
    top = np.zeros(len(rows))
    np.maximum.at(top, rows.row, more)
    share = (more / np.maximum(top, 1e-300)[rows.row]) ** power
    pooled = np.log1p(top * np.bincount(rows.row, share, len(rows)) ** (1 / power))
    return np.where(mean > 0, np.maximum(pooled, mean), mean)


def fit_extrapolation(
    rows: SlowdownRows,
    cell_table: CellTable,
    answer: Answer,
    fewer: Callable[[np.ndarray], tuple[Answer, Parts | None]],
    untried: np.ndarray | None = None,
    half: np.ndarray | None = None,
) -> tuple[DegreeExtrapolation, list[DegreeExtrapolation]]:
    """Fit the rules for larger sets. Returns (rules for all, rules per half of the largest sets: learned from
    smaller sets and weighed on the other half; none if the largest are few).  answer: predicts rows as large
    as seen. fewer: refits on some of the rows, (n,) bool; gives the answer, and its parts if these answer
    larger sets. untried: (k,) weights of learners that may answer larger sets directly although nothing could
    test them: simulators if only pairs ran, else additive effects; None if there is one answer. half: (n,)
    bool, which half of the sets each row is of."""
    most = int(rows.degree.max())
    turns = cpu_sharing_log_slowdown(rows, cell_table)
    rows = replace(rows, log_slowdown=rows.log_slowdown - turns)
    gain = _gain(rows, cell_table) if most == 1 else np.ones(cell_table.platforms)
    highest, stays = rows.degree == most, np.array(most > 1)
    rules, weight = list(OF_PAIRS), np.full(len(OF_PAIRS), 1 / len(OF_PAIRS))
    tried: list[DegreeExtrapolation] = []
    if most == 1 and untried is not None:
        places = np.flatnonzero(untried)
        rules += [Rule(PART, 0.0, at) for at in places.tolist()]
        weight = np.append(weight * (1 - untried.sum()), untried[places])
    if most > 1 and min(highest.sum(), (~highest).sum()) >= FEWEST:
        is_held = highest.copy()
        order = np.random.default_rng([MOST_HELD]).permutation(np.flatnonzero(highest))
        is_held[order[MOST_HELD:]] = False
        held, before = rows.take(is_held), int(rows.degree[~highest].max())
        smaller, parts = fewer(~highest)
        smaller = _without_turns(smaller, cell_table)
        waited = cpu_sharing_log_slowdown(held, cell_table)
        whole = None if parts is None else parts(held) - waited
        rules = _rules(before, 0 if whole is None else len(whole))
        trial = DegreeExtrapolation(np.array(before), np.array(rules, float), weight, gain, stays)
        answers, least = trial.by_rule(held, cell_table, smaller, smaller(_pairs(held)), whole)
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
    return DegreeExtrapolation(np.array(most), np.array(rules, float), weight, gain, stays), tried


def _weighed(
    answers: np.ndarray, least: np.ndarray, held: SlowdownRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return ((k,) weights of the rules' answers (k, n), () whether the least (n,) is to hold)."""
    sets = members_key(held.target, held.corunner, held.row)
    weight = greedy_weights(answers, held.log_slowdown, sets, seed=0)
    away, least = weight @ answers - held.log_slowdown, least - held.log_slowdown
    lost = relative_error(np.maximum(away, least)) - relative_error(away)
    return weight, np.array(gain_is_insignificant(lost, sets))


def _without_turns(answer: Answer, cell_table: CellTable) -> Answer:
    return lambda query: answer(query) - cpu_sharing_log_slowdown(query, cell_table)


def _rules(before: int, parts: int) -> list[Rule]:
    grows = [Rule(GROW, power, base) for power in POWERS for base in sorted({1, before})]
    return [*(Rule(PART, 0.0, at) for at in range(parts)), *OF_PAIRS, *grows]


def _gain(rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
    """Estimate per platform (platforms,) the work two get done side by side beyond one alone, over one's,
    where most is done: a high quantile of pairs measured from both sides, from 0 to 1; 1 if there are hardly
    any. rows: pairs."""
    key, at = np.unique(rows.target * cell_table.cells + rows.corunner, return_inverse=True)
    rate = np.bincount(at, np.exp(-rows.log_slowdown)) / np.bincount(at)
    both = rate + looked_up(
        key, rate, key % cell_table.cells * cell_table.cells + key // cell_table.cells, np.nan
    )
    place = key // cell_table.cells // cell_table.workloads
    out = np.ones(cell_table.platforms)
    for p in range(cell_table.platforms):
        mine = both[(place == p) & np.isfinite(both)]
        if len(mine) >= FEWEST:
            out[p] = np.clip(np.quantile(mine, 1 - QUANTILE) - 1, 0.0, 1.0)
    return out


def _pairs(rows: SlowdownRows) -> SlowdownRows:
    """Make m rows: each target beside each of its co-runners alone."""
    return _beside(rows, rows.row, rows.corunner[:, None])


def _beside(rows: SlowdownRows, of_row: np.ndarray, corunners: np.ndarray) -> SlowdownRows:
    """Make g rows: the targets of these rows (g,), each beside its co-runners (g, size)."""
    g, size = corunners.shape
    own = rows.target[of_row], corunners.ravel(), np.repeat(np.arange(g), size)
    return SlowdownRows(*own, rows.log_slowdown[of_row], rows.scale[of_row], rows.timed)


def _sets_of(rows: SlowdownRows, most: int) -> np.ndarray:
    """Choose (m, most) co-runners: sets of `most` that follow each other in the order of their cells,
    cyclically, so that every co-runner is in as many."""
    order = np.lexsort((rows.corunner, rows.row))
    row, degree = rows.row[order], rows.degree
    start = np.cumsum(degree) - degree
    place = np.arange(len(row)) - start[row]
    shifts = (place[:, None] + np.arange(most)) % degree[row][:, None]
    return order[start[row][:, None] + shifts]
