"""How far measured times alone and simple rules are believed, by runs that no one had seen.

Rules are weighed among each other by cross-validation over sets of workloads, and their mixture beside the
network on runs that the network had not learned from: a member of an ensemble leaves runs out, a single one
is watched on validation runs. Weights are by number of co-runners where sets are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.factorization.beside._members import (
    NAMES,
    PLAIN,
    CodedRuns,
    LeftOutRuns,
    Member,
    NetworkAnswers,
    fit_members,
)
from jostle.factorization.beside._rules import BesideNetwork
from jostle.rules import (
    Answer,
    Ground,
    SimpleRule,
    SlowdownRows,
    chance_of_shift,
    design_of_names,
    fit_extrapolation,
    fit_memory,
    folds_of,
    greedy_weights,
    is_noise,
    plainly_another_time,
    value_of,
    variance_of_repeats,
)

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of what was measured alone
FEWEST = 12  # sets held out for weights of their own
SETS_TO_TRUST = 30  # with co-runners, from which the network needs no rule to lean on
MOST_ROWS = 4_000  # that rules are learned from
MOST_HELD = 3_000  # that they are weighed on
FOLDS, MANY_ROWS = 4, 2_000  # past which one of the folds is enough
MOST_TO_PROBE, FAR = 1_500, 0.5  # rows, and error of the network over that of plain rules
PULL = 20.0  # rows that no bias weighs
LEAST_WEIGHT = 0.02
USUAL_RULES = ("level", "effects")  # where too few sets are there to weigh any
REST_OF, MOST_CELLS_OF_REST = "effects and rest", 10_000
NETWORK, RULES = 0, 1  # what stage two weighs


@dataclass(frozen=True)
class _Weights:
    """Of the network (most + 1,) and of the rules called `names` (most + 1, names), by number of co-runners.
    within: (n,) log slowdown as the rules answered it of rows not seen, NaN where that was not tried."""

    network: np.ndarray
    names: tuple[str, ...]
    rules: np.ndarray
    within: np.ndarray


def fit_rules(
    runs: CodedRuns,
    folds: Sequence[LeftOutRuns],
    whole: NetworkAnswers,
    size: tuple[int, int],
    seed: int,
) -> tuple[BesideNetwork, list[np.ndarray], tuple[str, ...]]:
    """(rules, for each fold the log runtime (h,) of what it held out, notes). size: platforms, workloads."""
    trial = _Trial(runs, size, seed)
    share = trial.share(folds, whole)
    measured = share * trial.measured(whole, np.ones(len(runs), bool))
    solo = whole.log_alone(*trial.names_of(runs.target)) + measured[runs.target]
    weights = trial.weights(folds, share, runs.beside(solo), whole) if trial.degree.any() else None
    if weights is None:
        if trial.degree.any():
            measured = measured + trial.levels(runs.beside(solo), np.flatnonzero(trial.degree))
        note = "no evidence of interference" if trial.degree.any() else "no run with co-runners"
        held = [trial.solo(fold, share)[fold.held] for fold in folds]
        return BesideNetwork.silent(measured, size[0]), held, (f"{note}: every slowdown is 1",)
    answered = [trial.answered(fold, share, weights) for fold in folds]
    within, counted = np.zeros(len(runs)), np.zeros(len(runs))
    for fold, answer in zip(folds, answered, strict=True):
        within[fold.held] += answer
        counted[fold.held] += 1
    with np.errstate(invalid="ignore"):
        within = np.where(counted > 0, within / counted, np.nan)
    if float(weights.network.mean()) < 0.5:
        within = np.where(counted > 0, within, solo + weights.within)
    left = runs.log_runtime - within
    bias, more = trial.bias(left), trial.bias_of_others(left)
    if not trial.is_closer(left, more):
        bias, more = np.zeros_like(bias), np.zeros_like(more)
    rules = trial.finished(
        runs.beside(solo), weights, (measured, bias), within + more - solo, whole
    )
    held = [answer + more[fold.held] for fold, answer in zip(folds, answered, strict=True)]
    return rules, held, ()


class _Trial:
    """The runs, and what is drawn of them."""

    def __init__(self, runs: CodedRuns, size: tuple[int, int], seed: int) -> None:
        self.runs, self.size, self.seed = runs, size, seed
        self.degree = runs.degree
        self.cells = size[0] * size[1]
        self.random = np.random.default_rng([seed, 17])
        self.of_folds: dict[LeftOutRuns, tuple[dict[str, Member], Ground]] = {}
        self.chance = chance_of_shift(runs.target, runs.log_runtime, self.degree > 0, seed)

    def names_of(self, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(workload, platform) codes."""
        return cell % self.size[1], cell // self.size[1]

    def measured(self, network: NetworkAnswers, known: np.ndarray) -> np.ndarray:
        """(cells,) median of what was measured alone beyond the network, 0 where nothing was. known: (n,)."""
        at = np.flatnonzero(known & (self.degree == 0))
        cell = self.runs.target[at]
        beyond = self.runs.log_runtime[at] - network.log_alone(*self.names_of(cell))
        order = np.lexsort((beyond, cell))
        cell, beyond = cell[order], beyond[order]
        cells, start, count = np.unique(cell, return_index=True, return_counts=True)
        out = np.zeros(self.cells)
        middle = (beyond[start + (count - 1) // 2] + beyond[start + count // 2]) / 2
        out[cells] = np.nan_to_num(middle)
        return out

    def solo(self, fold: LeftOutRuns, share: float) -> np.ndarray:
        """(n,) log seconds alone as the fold has them."""
        beyond = self.measured(fold.network, ~fold.held)
        alone = fold.network.log_alone(*self.names_of(self.runs.target))
        return alone + share * beyond[self.runs.target]

    def share(self, folds: Sequence[LeftOutRuns], whole: NetworkAnswers) -> float:
        """How far what was measured alone stands for the network, by the error on runs held out where it was
        measured: 0 where none is."""
        cost, count = np.zeros((len(SHARES), 2)), 0
        for fold in folds:
            beyond = self.measured(fold.network, ~fold.held)[self.runs.target]
            at = np.flatnonzero(fold.held & (beyond != 0))
            if not len(at):
                continue
            count += len(at)
            keep = np.zeros(len(self.runs), bool)
            keep[at] = True
            solo = fold.network.log_alone(*self.names_of(self.runs.target[at]))
            slow = np.zeros(len(at))
            beside = self.degree[at] > 0
            rows = self.runs.beside(np.zeros(len(self.runs))).take(keep)
            if beside.any():
                slow[beside] = fold.network.log_slowdown(rows.take(beside))
            for number, share in enumerate(SHARES):
                left = self.runs.log_runtime[at] - solo - share * beyond[at]
                typical = np.zeros(len(at))
                for d in np.unique(self.degree[at][beside]):
                    here = self.degree[at] == d
                    typical[here] = np.median(left[here])
                for rule, answered in enumerate((slow, typical)):
                    error = _relative_error(answered - left)
                    cost[number, rule] += np.nansum(error)
        if count >= FEWEST:
            return SHARES[int(np.argmin(cost.min(1)))]
        return self.share_by_repeats(folds[0].network if folds else whole)

    def share_by_repeats(self, network: NetworkAnswers) -> float:
        """How far, where too few such runs were held out: what the means of repeated runs alone vary beyond
        the noise of these. Without repeats it stands as it is, as the simplest rule has it."""
        noise = self.noise()
        beyond = self.measured(network, np.ones(len(self.runs), bool))
        count = np.bincount(self.runs.target[self.degree == 0], minlength=self.cells)
        whole = float((beyond[count > 0] ** 2).mean()) if count.any() else 0.0
        if np.isnan(noise) or whole <= 0:
            return 1.0
        return float(np.clip(1 - noise * float((1 / count[count > 0]).mean()) / whole, 0.0, 1.0))

    def weights(
        self, folds: Sequence[LeftOutRuns], share: float, rows: SlowdownRows, whole: NetworkAnswers
    ) -> _Weights | None:
        """None where there is nothing but noise. rows: all, over what they take alone."""
        n, most = len(self.runs), int(self.degree.max())
        alone = _Weights(np.ones(most + 1), (), np.zeros((most + 1, 0)), np.full(n, np.nan))
        many = (self.degree > 0).sum() > MANY_ROWS
        if many and (not folds or self.network_is_far_ahead(folds, share)):
            return alone
        weights, noise = self.among_rules(rows, self.ground(whole))
        answers, index = [], []
        for fold in folds:
            held = fold.held & (self.degree > 0)
            held = self.some(held, MOST_HELD)
            if held.any():
                solo = self.solo(fold, share)
                mine = self.runs.beside(solo)
                test_rows = mine.take(held)
                by_rules = self.by_rules(fold, mine, test_rows, weights)
                answers.append(
                    np.stack([fold.network.log_slowdown(test_rows), by_rules]) + solo[held]
                )
                index.append(np.flatnonzero(held))
        answered = np.concatenate(answers, axis=1) if answers else np.zeros((2, 0))
        at = np.concatenate(index) if index else np.zeros(0, np.int64)
        good = np.isfinite(answered).all(0)
        answered, at = answered[:, good], at[good]
        y = self.runs.log_runtime[at]
        sets = self.sets_of(at)
        number = len(np.unique(sets))
        usual = min(1.0, len(np.unique(self.runs.target[self.degree > 0])) / SETS_TO_TRUST)
        network = np.full(most + 1, usual / 2)
        if number >= 4:
            pooled, unseen = greedy_weights(answered, y, sets, self.seed)
            if noise and (
                pooled[NETWORK] < 0.5 or self.no_closer_than_none(folds, share, at, unseen, sets)
            ):
                return None
            trust = min(1.0, number / FEWEST)
            network[:] = trust * pooled[NETWORK] + (1 - trust) * network
            for d in range(1, most + 1):
                here = self.degree[at] == d
                if here.any() and len(np.unique(sets[here])) >= FEWEST:
                    mine, _ = greedy_weights(answered[:, here], y[here], sets[here], self.seed)
                    network[d] = mine[NETWORK]
        elif noise:
            return None
        network[network < LEAST_WEIGHT] = 0.0
        network[network > 1 - LEAST_WEIGHT] = 1.0
        return _Weights(
            network, weights.names, weights.rules * (1 - network)[:, None], weights.within
        )

    def no_closer_than_none(
        self,
        folds: Sequence[LeftOutRuns],
        share: float,
        at: np.ndarray,
        unseen: np.ndarray,
        sets: np.ndarray,
    ) -> bool:
        """Whether what was answered of the rows `at` is no closer than no slowdown by more than chance."""
        none = np.full(len(self.runs), np.nan)
        for fold in folds:
            solo = self.solo(fold, share)
            learned = np.flatnonzero(~fold.held & (self.degree > 0))
            level = self.levels(self.runs.beside(solo), learned)
            none[fold.held] = (solo + level[self.runs.target])[fold.held]
        error = _relative_error(none[at] - self.runs.log_runtime[at])
        return is_noise(self.chance, error - unseen, sets)

    def levels(self, rows: SlowdownRows, index: np.ndarray) -> np.ndarray:
        """(cells,) what is to be added to the times alone if runs beside others, those of the index, are like
        runs alone: then what these were is no better known than from as many of the others."""
        cell, y = rows.target[index], rows.log_slowdown[index]
        good = np.isfinite(y)
        total = np.bincount(cell[good], y[good], self.cells)
        count = np.bincount(cell[good], minlength=self.cells)
        alone = np.bincount(rows.target[self.degree == 0], minlength=self.cells)
        return total / np.maximum(count + np.maximum(alone, 1), 1)

    def network_is_far_ahead(self, folds: Sequence[LeftOutRuns], share: float) -> bool:
        """Whether plain rules learned from some rows err so much more than the network that none could help
        it."""
        fold = folds[0]
        held = self.some(fold.held & (self.degree > 0), MOST_TO_PROBE)
        mine = self.runs.beside(self.solo(fold, share))
        known = np.isfinite(mine.log_slowdown) & (self.degree > 0)
        held &= known
        test_rows, learned = mine.take(held), self.drawn(mine, known & ~fold.held, MOST_TO_PROBE)
        if not len(test_rows) or not len(learned):
            return False
        ground = self.ground(fold.network)
        members = fit_members(learned, ground, PLAIN, self.seed)

        def error(answered: np.ndarray) -> float:
            return float(_relative_error(answered - test_rows.log_slowdown).mean())

        least = min(error(value_of(member, test_rows, ground)) for member in members.values())
        return error(fold.network.log_slowdown(test_rows)) < FAR * least

    def among_rules(self, rows: SlowdownRows, ground: Ground) -> tuple[_Weights, bool]:
        """(weights of the rules alone, whether they see nothing but noise)."""
        n, most = len(self.runs), int(self.degree.max())
        # A low-rank rest has a row of factors for each cell: too many to learn where cells are many.
        names = (
            NAMES if self.cells <= MOST_CELLS_OF_REST else tuple(n for n in NAMES if n != REST_OF)
        )
        plain = np.array([float(name in USUAL_RULES) for name in names]) / len(USUAL_RULES)
        weight = np.tile(plain, (most + 1, 1))
        known = self.some(np.isfinite(rows.log_slowdown) & (self.degree > 0), MOST_ROWS)
        some, within = rows.take(known), np.full(n, np.nan)
        sets, index_of = some.sets(), np.flatnonzero(known)
        number = int(sets.max(initial=-1)) + 1
        if number < 4:
            return _Weights(np.zeros(most + 1), names, weight, within), False
        fold = folds_of(sets, FOLDS, np.random.default_rng(self.seed))
        answered = np.full((len(names), len(some)), np.nan)
        for part in range(FOLDS if len(some) <= MANY_ROWS else 1):
            train, test_rows = fold != part, some.take(fold == part)
            members = fit_members(some.take(train), ground, names, self.seed)
            for at, name in enumerate(names):
                answered[at, fold == part] = value_of(members[name], test_rows, ground)
        tried = np.isfinite(answered[0])
        y, mine, answered = some.log_slowdown[tried], sets[tried], answered[:, tried]
        pooled, unseen = greedy_weights(answered, y, mine, self.seed)
        # One without interference has errors, too: of what was measured alone, alike beside anyone.
        level = np.zeros(len(some))
        for part in np.unique(fold[tried]):
            here = fold == part
            level[here] = self.levels(rows, index_of[~here])[some.target[here]]
        noise = is_noise(self.chance, _relative_error(level[tried] - y) - unseen, mine)
        if number < FEWEST and np.isnan(self.chance):  # too few for that to tell
            noise = noise and not plainly_another_time(some.log_slowdown, some.target)
        weight[:] = pooled
        degree = some.degree[tried]
        for d in range(1, most + 1):
            here = degree == d
            if here.any() and len(np.unique(mine[here])) >= FEWEST:
                weight[d], _ = greedy_weights(answered[:, here], y[here], mine[here], self.seed)
        trust = min(1.0, number / FEWEST)
        weight = trust * weight + (1 - trust) * plain
        weight[weight < LEAST_WEIGHT] = 0.0
        weight = weight / weight.sum(1, keepdims=True)
        index = index_of[tried]
        within[index] = (weight[np.minimum(degree, most)].T * answered).sum(0)
        used = weight.any(0)
        train = tuple(name for name, there in zip(names, used, strict=True) if there)
        return _Weights(np.zeros(most + 1), train, weight[:, used], within), noise

    def by_rules(
        self, fold: LeftOutRuns, rows: SlowdownRows, asked: SlowdownRows, found: _Weights
    ) -> np.ndarray:
        """(h,) the mixture of rules learned from what the fold did not hold out."""
        if not found.rules.any():
            return np.zeros(len(asked))
        if fold not in self.of_folds:
            known = np.isfinite(rows.log_slowdown) & (self.degree > 0) & ~fold.held
            learned, ground = self.drawn(rows, known, MOST_ROWS), self.ground(fold.network)
            members = fit_members(learned, ground, found.names, self.seed) if len(learned) else {}
            self.of_folds[fold] = members, ground
        members, ground = self.of_folds[fold]
        weight = found.rules[np.minimum(asked.degree, len(found.rules) - 1)]
        weight = weight / np.maximum(weight.sum(1, keepdims=True), 1e-12)
        out = np.zeros(len(asked))
        for at, name in enumerate(found.names if members else ()):
            out += weight[:, at] * value_of(members[name], asked, ground)
        return out

    def answered(self, fold: LeftOutRuns, share: float, found: _Weights) -> np.ndarray:
        """(h,) log runtime of what the fold held out."""
        solo = self.solo(fold, share)
        rows = self.runs.beside(solo)
        beside = fold.held & (self.degree > 0)
        out = solo.copy()
        if beside.any():
            rows_beside = rows.take(beside)
            network = found.network[np.minimum(rows_beside.degree, len(found.network) - 1)]
            slow = network * fold.network.log_slowdown(rows_beside)
            if found.rules.any():
                slow += (1 - network) * self.by_rules(fold, rows, rows_beside, found)
            out[beside] += slow
        return out[fold.held]

    def noise(self) -> float:
        """Variance of repeated runs alone, NaN where too few are."""
        alone = self.degree == 0
        return variance_of_repeats(self.runs.target[alone], self.runs.log_runtime[alone])

    def some(self, among: np.ndarray, most: int) -> np.ndarray:
        """(n,) bool: at most so many of the rows of a mask."""
        at = np.flatnonzero(among)
        if len(at) <= most:
            return among.copy()
        keep = np.zeros(len(among), bool)
        keep[at[self.random.permutation(len(at))[:most]]] = True
        return keep

    def sets_of(self, index: np.ndarray) -> np.ndarray:
        """(len(index),) codes of the sets of workloads of the rows."""
        sets, place = np.unique(index, return_inverse=True)
        keep = np.zeros(len(self.runs), bool)
        keep[sets] = True
        return self.runs.beside(np.zeros(len(self.runs))).take(keep).sets()[place]

    def drawn(self, rows: SlowdownRows, known: np.ndarray, most: int) -> SlowdownRows:
        return rows.take(self.some(known, most))

    def ground(self, network: NetworkAnswers) -> Ground:
        platforms, workloads = self.size
        solo = network.log_alone(*self.names_of(np.arange(self.cells)))
        overall = float(np.nanmean(solo)) if np.isfinite(solo).any() else 0.0
        solo = np.where(np.isfinite(solo), solo, overall).reshape(self.size)
        design = design_of_names(workloads, platforms, solo)
        return Ground(platforms, workloads, design, (solo - overall).ravel())

    def bias_of_others(self, left: np.ndarray) -> np.ndarray:
        """(n,) as the bias would be of a run that it was not learned from: 0 alone."""
        part, out = self.random.integers(0, FOLDS, len(left)), np.zeros(len(left))
        for number in range(FOLDS):
            mine = (part == number) & (self.degree > 0)
            bias = self.bias(np.where(part == number, np.nan, left))
            out[mine] = bias[self.runs.target[mine] // self.size[1], self.degree[mine]]
        return out

    def is_closer(self, left: np.ndarray, more: np.ndarray) -> bool:
        """Whether what is added to answers brings them closer to runs beside others."""
        here = np.isfinite(left) & (self.degree > 0)
        error, before = (_relative_error(each[here]) for each in (more - left, -left))
        return bool(len(error)) and float(error.mean()) < float(before.mean())

    def bias(self, left: np.ndarray) -> np.ndarray:
        """(platforms, most + 1) median of what is left, drawn to that of all platforms and to 0."""
        degree = self.degree
        out = np.zeros((self.size[0], int(degree.max()) + 1))
        place = self.runs.target // self.size[1]
        known = np.isfinite(left)
        for d in range(1, out.shape[1]):
            here = known & (degree == d)
            if not here.any():
                continue
            out[:, d] = np.median(left[here]) * here.sum() / (here.sum() + PULL)
            for p in np.unique(place[here]):
                mine = left[here & (place == p)] - out[p, d]
                out[p, d] += np.median(mine) * len(mine) / (len(mine) + PULL)
        return out

    def finished(
        self,
        rows: SlowdownRows,
        found: _Weights,
        beside: tuple[np.ndarray, np.ndarray],
        within: np.ndarray,
        whole: NetworkAnswers,
    ) -> BesideNetwork:
        """Learned from all runs. beside: what was measured alone, and the bias. within: (n,) log slowdown as
        it was answered of runs not seen, NaN elsewhere."""
        measured, bias = beside
        known = np.isfinite(rows.log_slowdown) & (self.degree > 0)
        ground = self.ground(whole)
        mine, unseen = rows.take(known), within[known]
        needs_level = "boosting" in found.names and found.rules.any()
        level = ground.level if needs_level else np.zeros(0)

        def made(some: SlowdownRows, within: np.ndarray) -> BesideNetwork:
            parts: list[tuple[np.ndarray, SimpleRule]] = []
            if found.rules.any():
                learned = self.drawn(some, np.ones(len(some), bool), MOST_ROWS)
                members = fit_members(learned, ground, found.names, self.seed)
                for at, name in enumerate(found.names):
                    parts += [(found.rules[:, at], part) for part in members[name]]
            rules = BesideNetwork(measured, found.network, tuple(parts), bias, level)
            left = some.log_slowdown - rules.known(some, whole.log_slowdown)
            memory = fit_memory(some, left, some.log_slowdown - within)
            return replace(rules, memory=memory)

        def answer(rules: BesideNetwork) -> Answer:
            return lambda part: rules.known(part, whole.log_slowdown)

        rules = made(mine, unseen)

        def fewer(keep: np.ndarray) -> tuple[Answer, None]:
            return answer(made(mine.take(keep), unseen[keep])), None

        more = fit_extrapolation(mine, ground, answer(rules), unseen, fewer, self.noise())
        return replace(rules, more=more)


def _relative_error(log_ratio: np.ndarray) -> np.ndarray:
    """Of an answer over what was measured, whose logarithm is given; none is without end."""
    return np.abs(np.expm1(np.clip(log_ratio, -8.0, 8.0)))
