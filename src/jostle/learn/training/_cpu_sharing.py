"""Turns on shared cores: what follows from how many cores there are and how much of them each workload wants.

A workload wants cores for a share u of its time alone; above 1, each of ceil(u) threads wants one for its
part. The N that want one at a moment share the cores evenly, so that each gets min(1, cores / N), and wanting
one takes s times as long. A member then wants one for u s / (1 - u + u s) of its time, independently of the
others (a closed queue with a shared processor: Lazowska et al., Quantitative System Performance, 1984):

    s = E[N] / E[min(N, cores)]
    slowdown = 1 - u + u / E[min(1, cores / (1 + N of the others))]

Nothing in it is learned from runs beside others but, where no platform feature `cores` says it, the number of
cores; and where those runs are closer to no turns at all, no turns are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.learn.training._relative_error import gain_is_insignificant, relative_error
from jostle.learn.training._set_keys import members_key
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.data import Runs

CORES = "cores"  # the platform feature
ROUNDS = 12  # in which s is found
MOST_THREADS = 32  # wanted at once, past which their number counts as its mean
MOST_CORES = 16  # that are told from runs, where no feature says how many there are
MOST_ROWS = 2_000  # from which they are
FEWEST = 4  # rows that took turns, under which they tell nothing
PLAINLY = 3.0  # standard errors by which turns must be closer than none, where no feature says so
ROUNDED = 0.1  # of a core, past which one more thread is taken to want one
NO_TURNS = np.inf  # cores of a platform where nobody waits for one


def cpu_sharing_log_slowdown(rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
    """Predict (n,) log slowdowns; 0 if there are cores for all, or demand is unknown."""
    out = np.zeros(len(rows))
    if cell_table.cores is None or cell_table.core_share is None or not len(rows):
        return out
    cores = cell_table.cores[rows.target // cell_table.workloads]
    own, beside = cell_table.core_share[rows.target], cell_table.core_share[rows.corunner]
    threads = _threads(own) + np.bincount(rows.row, _threads(beside), len(rows))
    is_many = threads > MOST_THREADS
    for many in (False, True):
        at = (threads > cores) & (own > 0) & (is_many == many)
        if at.any():
            mine = own[at], beside[at[rows.row]], rows.take(at).row
            out[at] = _log_slowdown(*mine, cores[at], many)
    if cell_table.waited is None:
        return out
    return _part_of(out, cell_table.waited[rows.target // cell_table.workloads])


def _part_of(turns: np.ndarray, waited: np.ndarray | float) -> np.ndarray:
    """Reduce log slowdowns by turns (n,) to those if only the share `waited` of the turns is waited for."""
    return np.log1p(waited * np.expm1(turns))


def _threads(share: np.ndarray) -> np.ndarray:
    """Count the threads that want a core each, where so much of cores is wanted in all."""
    return np.maximum(np.ceil(share - ROUNDED), 1).astype(int)


def _log_slowdown(
    own: np.ndarray, beside: np.ndarray, row: np.ndarray, cores: np.ndarray, is_many: bool
) -> np.ndarray:
    """Predict (n,) log slowdowns. own: (n,), beside: (m,) shares of cores; row: (m,) whose the latter are."""
    n = len(own)
    # All threads but the first of the target are beside that one.
    of_row = np.concatenate([np.arange(n), row])
    threads = _threads(np.concatenate([own, beside]))
    share = np.minimum(np.concatenate([own, beside]) / threads, 1.0)
    of_row, share = np.repeat(of_row, threads), np.repeat(share, threads)
    order = np.argsort(of_row, kind="stable")
    of_row, share = of_row[order], share[order]
    every = np.zeros((n, int(np.bincount(of_row).max())))
    every[of_row, np.arange(len(of_row)) - np.searchsorted(of_row, of_row)] = share
    longer = np.ones(n)
    for _ in range(ROUNDS):
        asks = _wanted(every, longer)
        longer = np.maximum(asks.sum(1) / np.maximum(_served(asks, cores, is_many), 1e-12), 1.0)
    rate = 1 / longer
    if not is_many:
        chance = _chances(_wanted(every[:, 1:], longer))
        rate = (chance * np.minimum(1.0, cores[:, None] / (1 + np.arange(chance.shape[1])))).sum(1)
    return np.log(1 - every[:, 0] + every[:, 0] / rate)


def _wanted(share: np.ndarray, longer: np.ndarray) -> np.ndarray:
    """Compute the share of time beside others (n, k) in which a core is wanted, each want `longer` (n,)."""
    busy = share * longer[:, None]
    return busy / (1 - share + busy)


def _served(asks: np.ndarray, cores: np.ndarray, is_many: bool) -> np.ndarray:
    """Compute the mean number of cores in use, (n,)."""
    if is_many:
        return np.minimum(asks.sum(1), cores)
    chance = _chances(asks)
    return (chance * np.minimum(np.arange(chance.shape[1]), cores[:, None])).sum(1)


def _chances(asks: np.ndarray) -> np.ndarray:
    """Compute the chances (n, k + 1) that so many of k want a core, independently, by each one's (n, k)."""
    chance = np.zeros((len(asks), asks.shape[1] + 1))
    chance[:, 0] = 1.0
    for one in asks.T[:, :, None]:
        chance[:, 1:] = chance[:, 1:] * (1 - one) + chance[:, :-1] * one
        chance[:, :1] *= 1 - one
    return chance


def with_cores(
    cell_table: CellTable,
    runs: Runs,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    rows: SlowdownRows,
) -> CellTable:
    """Add to the cell table the shares of cores measured alone, and how many cores each platform has: by its
    feature, or by the rows. names: (workloads, platforms)."""
    from jostle.data import solo_core_shares  # answers need no Arrow

    share = solo_core_shares(runs, *names)
    here = np.isfinite(share).any(1)
    if not here.any():
        return cell_table
    share = _filled(share)
    stated = _stated_cores(runs, names[1])
    cores, waited = np.full(cell_table.platforms, NO_TURNS), np.ones(cell_table.platforms)
    rows = rows.drawn(MOST_ROWS, [MOST_ROWS])
    place, sets = (
        rows.target // cell_table.workloads,
        members_key(rows.target, rows.corunner, rows.row),
    )
    for p in np.flatnonzero(here):
        part, gains, shares = rows.take(place == p), {}, {}
        for number in (stated[p],) if stated[p] > 0 else range(1, MOST_CORES + 1):
            only = np.where(np.arange(len(cores)) == p, number, NO_TURNS)
            tried = cpu_sharing_log_slowdown(
                part, replace(cell_table, core_share=share.ravel(), cores=only)
            )
            shares[number] = _waited(tried, part.log_slowdown, sets[place == p])
            tried = _part_of(tried, shares[number])
            gain = relative_error(-part.log_slowdown) - relative_error(tried - part.log_slowdown)
            gains[number] = np.where(tried > 0, gain, np.nan)
        best = max(gains, key=lambda number: float(np.nansum(gains[number])))
        gain, is_told = gains[best], np.isfinite(gains[best]).sum() >= FEWEST
        is_so = np.nansum(gain) >= 0 or not is_told
        if stated[p] <= 0:
            is_so = is_told and not gain_is_insignificant(gain, sets[place == p], PLAINLY)
        cores[p], waited[p] = (best, shares[best]) if is_so else (NO_TURNS, 1.0)
    if not np.isfinite(cores).any():
        return cell_table
    return replace(cell_table, core_share=share.ravel(), cores=cores, waited=waited)


def _waited(turns: np.ndarray, log_slowdown: np.ndarray, sets: np.ndarray) -> float:
    """Estimate the share of the turns (n,) that is waited for: the slope of the extra time over theirs, if
    plainly closer than all of them, each beside a level of its own; else 1."""
    took_turns = turns > 0
    turns, log_slowdown, sets = turns[took_turns], log_slowdown[took_turns], sets[took_turns]
    if len(turns) < FEWEST:
        return 1.0
    extra, weight = np.expm1(turns), np.exp(-2 * turns)  # errors are relative to what it takes
    beyond = extra - np.average(extra, weights=weight)
    spread = float((weight * beyond**2).sum())
    if spread <= 0:
        return 1.0
    slope = float(np.clip((weight * beyond * np.exp(log_slowdown)).sum() / spread, 0.0, 1.0))
    left = [_part_of(turns, share) - log_slowdown for share in (1.0, slope)]
    whole, part = (relative_error(one - np.median(one)) for one in left)
    return 1.0 if gain_is_insignificant(whole - part, sets, PLAINLY) else slope


def _filled(share: np.ndarray) -> np.ndarray:
    """Fill unknown shares (platforms, workloads) as on other platforms, or as is usual."""
    known = np.isfinite(share)
    count = known.sum(0)
    total = np.where(known, share, 0.0).sum(0)
    usual = float(np.median(share[known]))
    elsewhere = np.where(count > 0, total / np.maximum(count, 1), usual)
    return np.maximum(np.where(known, share, elsewhere[None]), 0.0)


def _stated_cores(runs: Runs, platforms: tuple[str, ...]) -> np.ndarray:
    """Look up the numbers of cores (platforms,) in their features; 0 if not given."""
    out = np.zeros(len(platforms))
    known, table = runs.features_of("platform")
    if table is None or CORES not in table.column_names:
        return out
    stated = dict(zip(known, table.column(CORES).to_pylist(), strict=True))
    for at, name in enumerate(platforms):
        value = stated.get(name)
        if isinstance(value, int | float) and np.isfinite(value):
            out[at] = max(float(value), 0.0)
    return out
