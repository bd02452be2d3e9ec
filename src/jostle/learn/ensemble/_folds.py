"""Folds for cross-validation: sets left out everywhere, sets left out on one platform, and names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.learn.training._slowdown_rows import SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.training._training_data import TrainingRuns

# Kinds of questions. ELSEWHERE: about a set measured on other platforms only. NEW_SET: never measured.
# FEW_SETS: with a name in at most MOST_OF_FEW sets (set by kinds_of, never by a fold). NEW_NAME: in none.
# ALONE: a repeated run alone. NEW_CELL: a workload on a platform where it never ran (alone, if any did).
# HARDLY_ALONE: a run alone of a name of which one other run alone is kept.
ELSEWHERE, NEW_SET, FEW_SETS, NEW_NAME, ALONE, NEW_CELL, HARDLY_ALONE = range(7)
KINDS = (ELSEWHERE, NEW_SET, FEW_SETS, NEW_NAME)
MOST_OF_FEW = 2  # sets
NOT_ASKED = -1  # the kind of a run that no question is made of
SET_FOLDS, NAME_FOLDS = 4, 4  # parts of the sets and of the names, each left out once
ELSEWHERE_SHARE = 0.125  # of sets on a platform, drawn once and spread over the SET_FOLDS folds
# Of the cells that a fold of names leaves out, two thirds wholly, of the others what ran alone.
CELL_SHARE, WHOLLY = 0.15, 2 / 3
FEWEST_NAMES = 6  # that ran beside others, of which some are left out
FEWEST_LEFT = 8  # rows that a fold leaves to learn from
AFTER_SETS = 2**32  # what is added to the numbers of names, so that none is that of a set
MANY_ROWS = 8_000  # beside others, past which one fold of sets is enough, and one of names
MOST_OF_NAMES = 20_000  # runs, among which names are left out then
# Of each kind, and of all runs, that the fold of sets leaves out then.
MOST_LEFT, LEFT_SHARE = 10_000, 0.125


@dataclass(frozen=True)
class TrialFold:
    """kind: (n,) the kind of question that each run of the campaign is asked as, or NOT_ASKED. left_out:
    (n,) bool, runs that are not learned from. unit: (n,) codes, equal for runs left out together, of a set or
    of a name."""

    kind: np.ndarray
    left_out: np.ndarray
    unit: np.ndarray
    is_of_names: bool = False


def folds_of(campaign: TrainingRuns, seed: int) -> list[TrialFold]:
    """Make folds of sets, then folds of names; those that would leave too little to learn from beside others
    leave out runs alone only."""
    random = np.random.default_rng([seed, 41])
    beside, folds = campaign.beside, []
    if is_large(campaign):
        every = [_with_fewer_left(fold, random) for fold in _of_sets(campaign, random)]
        every.append(_of_names_in_some(campaign, random))
    else:
        every = [*_of_sets(campaign, random), *_of_names(campaign, random)]
    for fold in every:
        if (beside & ~fold.left_out).sum() < FEWEST_LEFT:
            kind = np.where(beside, NOT_ASKED, fold.kind)
            never_alone = np.isin(campaign.cell, campaign.cell[kind == NEW_CELL])
            fold = replace(fold, kind=kind, left_out=fold.left_out & (~beside | never_alone))
        if (fold.kind != NOT_ASKED).any():
            folds.append(fold)
    return folds


def is_large(campaign: TrainingRuns) -> bool:
    """Tell whether there are so many runs that every fit learns from most of them."""
    return bool(campaign.beside.sum() > MANY_ROWS)


def _with_fewer_left(fold: TrialFold, random: np.random.Generator) -> TrialFold:
    """Leave out fewer runs of a fold of very many: whole units, drawn until there are enough."""
    kind, most = fold.kind.copy(), min(MOST_LEFT, int(LEFT_SHARE * len(fold.kind)))
    for one in np.unique(kind[kind != NOT_ASKED]):
        rows = np.flatnonzero(kind == one)
        _, unit = np.unique(fold.unit[rows], return_inverse=True)
        rank = random.permutation(int(unit.max()) + 1)
        before = np.cumsum(np.bincount(rank[unit]))
        kind[rows[before[rank[unit]] > most]] = NOT_ASKED
    return replace(fold, kind=kind, left_out=kind != NOT_ASKED)


def _of_names_in_some(campaign: TrainingRuns, random: np.random.Generator) -> TrialFold:
    """Make one fold of names from a sample of very many runs: half of it beside others, half alone, first of
    workloads and platforms in the former."""
    order = random.permutation(len(campaign))
    beside = campaign.beside[order]
    drawn = order[beside][: MOST_OF_NAMES // 2]
    alone = order[campaign.degree[order] == 0]
    is_of_drawn = np.isin(campaign.cell[alone], campaign.cell[drawn])
    alone = alone[np.argsort(~is_of_drawn, kind="stable")][: MOST_OF_NAMES - len(drawn)]
    keep = campaign.is_input.copy()
    keep[np.concatenate([drawn, alone])] = True
    some = np.flatnonzero(keep)
    (fold,) = _of_names(campaign.take(keep), random, folds=1)
    kind, unit = np.full(len(campaign), NOT_ASKED), np.zeros(len(campaign), fold.unit.dtype)
    left_out = ~keep
    kind[some], unit[some], left_out[some] = fold.kind, fold.unit, fold.left_out
    return TrialFold(kind, left_out, unit, is_of_names=True)


def _of_sets(campaign: TrainingRuns, random: np.random.Generator) -> list[TrialFold]:
    everywhere = np.unique(campaign.sets(everywhere=True), return_inverse=True)[1].reshape(-1)
    here = np.unique(campaign.sets(everywhere=False), return_inverse=True)[1].reshape(-1)
    beside = campaign.beside
    # Folds share the sets of runs beside others alike, whatever ran alone.
    part = np.full(len(campaign), -1)
    own = np.unique(everywhere[beside], return_inverse=True)[1].reshape(-1)
    part[beside] = random.permutation(int(own.max(initial=-1)) + 1)[own] % SET_FOLDS
    if campaign.time_block is not None:
        part[beside] = campaign.time_block[beside] % SET_FOLDS
    again = _turn_of_repeats(campaign, random)
    on_several = _is_on_several(everywhere, campaign.codes[1])
    drawn = random.random(int(here.max(initial=-1)) + 1)[here] < ELSEWHERE_SHARE
    which = random.integers(0, SET_FOLDS, int(here.max(initial=-1)) + 1)[here]
    folds = []
    for number in range(1 if is_large(campaign) else SET_FOLDS):
        kind = np.full(len(campaign), NOT_ASKED)
        kind[beside & on_several & drawn & (which == number) & (part != number)] = ELSEWHERE
        # What would have no other platform left stays.
        left = beside & (part != number) & (kind != ELSEWHERE)
        kind[(kind == ELSEWHERE) & ~np.isin(everywhere, everywhere[left])] = NOT_ASKED
        kind[beside & (part == number)] = NEW_SET
        kind[again == number] = ALONE
        unit = np.where(kind == NEW_SET, everywhere, here + int(everywhere.max(initial=0)) + 1)
        folds.append(TrialFold(kind, kind != NOT_ASKED, unit))
    return folds


def _turn_of_repeats(campaign: TrainingRuns, random: np.random.Generator) -> np.ndarray:
    """Choose the fold that leaves out each run alone, (n,); -1 for one of each cell, which stays."""
    turn = np.full(len(campaign), -1)
    alone = np.flatnonzero(campaign.degree == 0)
    alone = alone[random.permutation(len(alone))]
    _, first, inverse = np.unique(campaign.cell[alone], return_index=True, return_inverse=True)
    turn[alone] = (inverse.reshape(-1) + np.arange(len(alone))) % SET_FOLDS
    turn[alone[first]] = -1
    return turn


def _is_on_several(sets: np.ndarray, platform: np.ndarray) -> np.ndarray:
    """Tell whether the row's set ran on several platforms. Returns (n,) bool."""
    pairs = np.unique(np.stack([sets, platform]), axis=1)[0]
    return np.bincount(pairs, minlength=int(sets.max(initial=-1)) + 1)[sets] > 1


def _of_names(
    campaign: TrainingRuns, random: np.random.Generator, folds: int = NAME_FOLDS
) -> list[TrialFold]:
    workload, _, corunner = campaign.codes
    beside, is_alone = campaign.beside, campaign.degree == 0
    row = campaign.corunner_row
    met = np.unique(np.concatenate([workload[beside], corunner[beside[row]]]))
    if len(met) < FEWEST_NAMES:
        met = met[:0]
    part, is_whole = np.full(campaign.size[1], -1), np.zeros(campaign.size[1], bool)
    place = random.permutation(len(met))
    part[met], is_whole[met] = place % NAME_FOLDS, place // NAME_FOLDS % 2 == 0
    sets = campaign.sets(everywhere=True)
    cell_fold = _fold_of_cells(campaign, random)
    stays_beside = beside & (random.random(len(cell_fold)) >= WHOLLY)[campaign.cell]
    found = []
    for number in range(folds):
        of_target, of_corunner = part[workload] == number, part[corunner] == number
        has_new = of_target.copy()
        has_new[row[of_corunner]] = True
        has_new &= beside
        # Of every other name one set stays.
        gone_names = is_whole & (campaign.size[0] > 1)
        gone = (is_whole[workload] & of_target) & beside
        gone[row[is_whole[corunner] & of_corunner]] = True
        stays = np.zeros(len(campaign), bool)
        for name in np.flatnonzero((part == number) & ~is_whole):
            mine = workload == name
            mine[row[corunner == name]] = True
            own = np.unique(sets[mine & beside & ~gone])
            if len(own):
                stays |= sets == own[random.integers(len(own))]
        has_new &= ~stays
        kind = np.full(len(campaign), NOT_ASKED)
        cell_is_out = (cell_fold[campaign.cell] == number) & ~stays_beside
        kind[has_new & ~cell_is_out] = NEW_NAME
        kind[cell_is_out & ~has_new] = NEW_CELL
        # Of every name that is gone one run alone stays, by which there is an answer at all.
        alone = np.flatnonzero(
            gone_names[workload] & (part[workload] == number) & is_alone & ~cell_is_out
        )
        first = alone[np.unique(workload[alone], return_index=True)[1]]
        kind[np.setdiff1d(alone, first)] = HARDLY_ALONE
        # A row stands for the new name that it is of: the target's, or else a co-runner's.
        unit = workload.copy()
        unit[row[of_corunner]] = corunner[of_corunner]
        unit = np.where(of_target, workload, unit)
        unit = np.where(kind == NEW_CELL, campaign.cell + campaign.size[1], unit) + AFTER_SETS
        found.append(TrialFold(kind, (kind != NOT_ASKED) | cell_is_out | has_new, unit, True))
    return found


def _fold_of_cells(campaign: TrainingRuns, random: np.random.Generator) -> np.ndarray:
    """Choose the fold that leaves out the runs of a workload on a platform, (cells,); -1 for none. Never the
    last cell of a workload or of a platform, and if any ran alone, only cells that did."""
    platforms, workloads = campaign.size
    fold = np.full(platforms * workloads, -1)
    is_alone = campaign.degree == 0
    cells = np.unique(campaign.cell[is_alone] if is_alone.any() else campaign.cell)
    if platforms < 2:
        return fold
    left_w = np.bincount(cells % workloads, minlength=workloads)
    left_p = np.bincount(cells // workloads, minlength=platforms)
    wanted = int(np.ceil(CELL_SHARE * len(cells))) * NAME_FOLDS
    for cell in cells[random.permutation(len(cells))][:wanted].tolist():
        w, p = cell % workloads, cell // workloads
        if left_w[w] > 1 and left_p[p] > 1:
            left_w[w] -= 1
            left_p[p] -= 1
            fold[cell] = random.integers(NAME_FOLDS)
    return fold


def kinds_of(rows: SlowdownRows, sets_of_names: np.ndarray, is_elsewhere: np.ndarray) -> np.ndarray:
    """Tell the kind of question that each row is, (n,). sets_of_names: (workloads,) in how many sets each
    ran. is_elsewhere: (n,) whether the row's own set ran."""
    workloads = len(sets_of_names)
    fewest = sets_of_names[rows.target % workloads].copy()
    np.minimum.at(fewest, rows.row, sets_of_names[rows.corunner % workloads])
    kind = np.where(fewest <= MOST_OF_FEW, FEW_SETS, NEW_SET)
    kind[is_elsewhere] = ELSEWHERE
    kind[fewest == 0] = NEW_NAME
    return kind
