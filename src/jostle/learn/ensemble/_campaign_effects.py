"""Effects of campaigns, in which all runs took longer or shorter: removed before all else is learned.

    log(runtime) = usual + campaign + campaign on the platform,   for runs alone and beside others apart

Campaigns count only where runs that were left out are closer by them. A question that names none is answered
by what errs least over the campaigns that it may be of: names, platforms and whether others run beside tell
of these as they do in a naive Bayes classifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.mixed_effects import Block, fit_mixed_effects
from jostle._base.tensors import Serializable
from jostle.learn.training._relative_error import gain_is_insignificant, relative_error

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.learn.training._training_data import TrainingRuns

MAX_ROWS = 20_000  # that campaigns are told by
LEAST_EFFECT = 0.003  # mean relative error of who takes all campaigns for one, under which they are
FARTHEST = 30.0  # log factor of a campaign that was never met
FOLDS = 5  # by which it is tested whether campaigns differ
EVIDENCE = 1.5  # standard errors by which answers must be closer with campaigns
# Of the whole mix of campaigns beside a name's own, tried.
PRIOR_RUNS = (0.1, 0.5, 2.0, 8.0, 32.0, 1e6)
SHIFTS = 81  # tried between the least and the greatest effect
NODES = np.array([-1.28, -0.52, 0.0, 0.52, 1.28])  # of the noise, in standard deviations


@dataclass(frozen=True)
class CampaignEffects(Serializable):
    """What each of c campaigns adds to log runtimes, and how likely a question is of each.

    Parameters
    ----------
    names : tuple of str
        Sorted.
    effect : (2, platforms, c) ndarray
        Log factors of runs alone and of runs beside others; 0 where campaigns tell nothing.
    cost : () ndarray
        Mean relative error of a question that names no campaign, because it does not.
    noise : () ndarray
        Standard deviation of what is left of a log runtime.
    spread : (2,) ndarray
        Scale of Student's law of the effect of a campaign never met, alone and beside others.
    freedom : () ndarray
        Its degrees of freedom.
    prior_runs : (4,) ndarray
        Runs that the whole mix counts as beside those of a kind, platform, workload or co-runner.
    mix : (c,) ndarray
        Log share of each campaign in all runs.
    of_kind, of_platform, of_workload, of_corunner : (2, c), (platforms, c), (workloads, c) ndarray
        What runs alone or beside others, on a platform, of a workload and beside one add to that.
    """

    names: tuple[str, ...]
    effect: np.ndarray
    cost: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    freedom: np.ndarray
    prior_runs: np.ndarray
    mix: np.ndarray = field(default_factory=lambda: np.zeros(0))
    of_kind: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    of_platform: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    of_workload: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    of_corunner: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def tell(self) -> bool:
        """Whether campaigns differ."""
        return bool(self.effect.any())

    def of(self, platform: np.ndarray, campaign: Any, is_corun: np.ndarray) -> np.ndarray:
        """Look up (n,) log factors in a campaign, one code for all rows or (n,)."""
        return self.effect[is_corun.astype(int), platform, campaign]

    def of_unnamed(
        self, workload: np.ndarray, platform: np.ndarray, corunner: np.ndarray, row: np.ndarray
    ) -> np.ndarray:
        """Return the (n,) log factors of least expected error over the campaigns that each row may be of."""
        is_corun = np.bincount(row, minlength=len(workload)) > 0
        share = self._shares(workload, platform, corunner, row)
        out = np.zeros(len(workload))
        for kind in (0, 1):
            for p in np.unique(platform[is_corun == kind]):
                mine = (is_corun == kind) & (platform == p)
                shift, cost = self._costs[kind][p]
                out[mine] = shift[np.argmin(share[mine] @ cost.T, axis=1)]
        return out

    def _shares(
        self, workload: np.ndarray, platform: np.ndarray, corunner: np.ndarray, row: np.ndarray
    ) -> np.ndarray:
        """Estimate how likely each row is of each campaign, (n, c)."""
        log = np.tile(self.mix, (len(workload), 1))
        for name, (code, of_row) in _clues(workload, platform, corunner, row).items():
            np.add.at(log, of_row, getattr(self, name)[code])
        share = np.exp(log - log.max(1, keepdims=True))
        return share / share.sum(1, keepdims=True)

    @cached_property
    def _costs(self) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """Of both kinds and each platform the shifts tried and what each costs in each campaign."""
        return [[_cost_of_shifts(own, float(self.noise)) for own in kind] for kind in self.effect]

    def learned_from(self, part: TrainingRuns) -> CampaignEffects:
        """Learn from these runs how likely campaigns are; the effects stay."""
        if not self.tell:
            return self
        code = _codes(part.runs, self.names)
        return replace(self, **_told(part, code, self.prior_runs, len(self.names)))

    def removed(self, runs: Runs, platform: np.ndarray) -> Runs:
        """Scale runs to what they would have taken in the usual campaign. platform: (n,) codes."""
        campaign = _codes(runs, self.names)
        log = self.of(platform, campaign, runs.colocations.number_of_corunners > 0)
        # Of a campaign never met nothing is known.
        log = np.where(campaign < 0, 0.0, log)
        return runs.with_one_company(runs.runtime_seconds / np.exp(log))

    def in_unknown(self, runs: Runs, seed: Sequence[int]) -> Runs:
        """Scale each run as if it had been measured in a campaign of its own that was never met.

        Factors are exp(spread * t), t at evenly spaced quantiles of Student's law in the order that the seed
        draws.
        """
        from scipy.special import stdtrit

        n = len(runs)
        level = (np.random.default_rng(seed).permutation(n) + 0.5) / n
        spread = self.spread[(runs.colocations.number_of_corunners > 0).astype(int)]
        log = np.clip(spread * stdtrit(float(self.freedom), level), -FARTHEST, FARTHEST)
        return runs.with_one_company(runs.runtime_seconds * np.exp(log))


def fit_campaign_effects(training: TrainingRuns, seed: int) -> CampaignEffects | None:
    """Learn the effects; None where all runs are of one campaign."""
    names = tuple(sorted(set(_labels(training.runs))))
    if len(names) < 2:
        return None
    platforms, c = training.size[0], len(names)
    known = np.flatnonzero(np.isfinite(training.log_solo.ravel()[training.cell]))
    random = np.random.default_rng([seed, 47])
    known = np.sort(random.permutation(known)[:MAX_ROWS])
    part = training.take(np.isin(np.arange(len(training)), known))
    code = _codes(training.runs, names)[known]
    zero = np.array(0.0)
    none = CampaignEffects(
        names, np.zeros((2, platforms, c)), zero, zero, np.zeros(2), np.array(1.0), np.zeros(4)
    )
    if len(np.unique(code)) < 2:
        return none
    design, corun = _design(part, code, c), part.degree > 0
    value = part.log_runtime - part.log_solo.ravel()[part.cell]
    # Sets of workloads are left out, and single runs alone.
    unit = np.where(part.degree > 0, part.sets(everywhere=True), np.arange(len(part)))
    _, unit = np.unique(unit, return_inverse=True)
    fold = random.permutation(int(unit.max()) + 1)[unit] % FOLDS
    error = np.zeros((2, len(part)))
    for which, blocks in enumerate((_usual(design), design)):
        for number in range(FOLDS):
            rows, asked = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            inside, query = (
                {name: block.take(some, len(part)) for name, block in blocks.items()}
                for some in (rows, asked)
            )
            fitted = fit_mixed_effects(inside, value[rows], fixed=("cell",))
            error[which, asked] = fitted.predict(query, len(asked)) - value[asked]
    off = relative_error(error)
    tells = corun if corun.any() else ~corun
    if gain_is_insignificant((off[0] - off[1])[tells], unit[tells], EVIDENCE):
        return none
    fit = fit_mixed_effects(design, value, fixed=("cell",))
    found = fit.effect
    by_platform = found["campaign"] + found["campaign on platform"].reshape(platforms, c)
    more = found["campaign beside"] + found["campaign on platform beside"].reshape(platforms, c)
    count = np.zeros((2, platforms, c))
    np.add.at(count, (corun.astype(int), part.codes[1], code), 1)
    alone = _centred(by_platform, count.sum(0))
    effect = np.stack([alone, alone + _centred(more, count[1])])
    spread = np.array([_spread(effect[kind], count[kind]) for kind in (0, 1)])
    noise = np.sqrt(fit.noise_variance[0])
    prior_runs = _prior_runs(part, code, c, fold)
    shares = _told(part, code, prior_runs, c)
    fitted = CampaignEffects(
        *(names, effect, np.array(1.0), noise, spread, np.array(c - 1.0), prior_runs),
        **shares,
    )
    workload, platform, corunner = part.codes
    row = part.corunner_row
    shift = fitted.of_unnamed(workload, platform, corunner, row)
    own = fitted.of(platform, code, corun)
    cost = np.array(relative_error(shift - own).mean())
    return none if relative_error(own).mean() < LEAST_EFFECT else replace(fitted, cost=cost)


def _labels(runs: Runs) -> list[str]:
    """Name the campaign of each run, the one without a name as ""."""
    return [name or "" for name in runs.table.column("campaign").to_pylist()]


def _codes(runs: Runs, names: Sequence[str]) -> np.ndarray:
    """Find each run's campaign (n,) among names, -1 for one that is not there."""
    place = {name: code for code, name in enumerate(names)}
    return np.array([place.get(label, -1) for label in _labels(runs)], np.int64)


def _design(part: TrainingRuns, campaign: np.ndarray, campaigns: int) -> dict[str, Block]:
    """Make the design whose effects add up to the log runtime over the usual time alone."""
    (p, w), (workload, platform, corunner), degree = part.size, part.codes, part.degree
    beside = (degree > 0).astype(float)
    row = np.repeat(np.arange(len(part)), degree)
    share = 1.0 / degree[row]
    most = int(degree.max(initial=0))
    here = part.sets(everywhere=False) + part.codes[0].astype(np.uint64)
    _, here = np.unique(here, return_inverse=True)
    here, on = here.reshape(-1), platform * campaigns + campaign
    return {
        "cell": Block.of(part.cell, p * w),
        "corunners": Block.of(platform * (most + 1) + degree, p * (most + 1)),
        "workload beside": Block.of(workload, w, beside),
        "cell beside": Block.of(part.cell, p * w, beside),
        "corunner": Block.of(corunner, w, share, row),
        "corunner on platform": Block.of(platform[row] * w + corunner, p * w, share, row),
        "set": Block.of(here, int(here.max(initial=0)) + 1, beside),
        "campaign": Block.of(campaign, campaigns),
        "campaign on platform": Block.of(on, p * campaigns),
        "campaign beside": Block.of(campaign, campaigns, beside),
        "campaign on platform beside": Block.of(on, p * campaigns, beside),
    }


def _usual(design: dict[str, Block]) -> dict[str, Block]:
    """Drop the campaigns from the design."""
    return {name: block for name, block in design.items() if not name.startswith("campaign")}


def _spread(effect: np.ndarray, count: np.ndarray) -> float:
    """Estimate how far a new campaign lies from the mean of a platform's runs, by platforms with several."""
    known, square, free, apart = count > 0, 0.0, 0, [0.0]
    for own, times, here in zip(effect, count, known, strict=True):
        if here.sum() > 1:
            square += float(((own[here] - own[here].mean()) ** 2).sum())
            free += int(here.sum()) - 1
            apart.append(float(((times / times.sum()) ** 2).sum()))
    usual = float(np.mean(apart[1:] or apart))
    return float(np.sqrt(square / max(free, 1) * (1 + usual)))


def _centred(effect: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Centre effects (platforms, campaigns) about the mean of each platform's runs."""
    return effect - ((effect * count).sum(1) / np.maximum(count.sum(1), 1))[:, None]


def _cost_of_shifts(effect: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return shifts (s,) between the campaigns' effects (c,), and each one's mean relative error (s, c)."""
    shift = np.linspace(effect.min(), effect.max(), SHIFTS)
    away = shift[:, None, None] - effect[None, :, None] - noise * NODES
    return shift, relative_error(away).mean(-1)


def _clues(
    workload: np.ndarray, platform: np.ndarray, corunner: np.ndarray, row: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Collect what tells a run's campaign: by kind of clue, codes (m,) and the rows (m,) that have them."""
    own = np.arange(len(workload))
    is_corun = (np.bincount(row, minlength=len(own)) > 0).astype(int)
    return {
        "of_kind": (is_corun, own),
        "of_platform": (platform, own),
        "of_workload": (workload, own),
        "of_corunner": (corunner, row),
    }


def _clues_of(part: TrainingRuns) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Collect the clues of runs, and how many codes there are of each kind."""
    row = part.corunner_row
    size = {"of_kind": 2, "of_platform": part.size[0]}
    clues = _clues(*part.codes, row)
    return {name: (*own, size.get(name, part.size[1])) for name, own in clues.items()}


def _log_ratios(
    code: np.ndarray, campaign: np.ndarray, size: int, mix: np.ndarray, prior_runs: float
) -> np.ndarray:
    """Compute the log share (size, c) of each campaign in the runs of each code over that in all."""
    count = np.zeros((size, len(mix)))
    np.add.at(count, (code, campaign), 1)
    share = (count + prior_runs * mix) / (count.sum(1, keepdims=True) + prior_runs)
    return np.log(share / mix)


def _mix(campaign: np.ndarray, campaigns: int) -> np.ndarray:
    """Compute the share (c,) of each campaign in all runs, one more counted of each."""
    count = np.bincount(campaign[campaign >= 0], minlength=campaigns) + 1.0
    return count / count.sum()


def _told(
    part: TrainingRuns, campaign: np.ndarray, prior_runs: np.ndarray, campaigns: int
) -> dict[str, np.ndarray]:
    """Learn the fields of CampaignEffects on how likely each campaign is. campaign: (n,), -1 unknown."""
    mix = _mix(campaign, campaigns)
    out = {"mix": np.log(mix)}
    for prior, (name, (code, row, size)) in zip(prior_runs, _clues_of(part).items(), strict=True):
        known = campaign[row] >= 0
        out[name] = _log_ratios(code[known], campaign[row[known]], size, mix, float(prior))
    return out


def _prior_runs(
    part: TrainingRuns, campaign: np.ndarray, campaigns: int, fold: np.ndarray
) -> np.ndarray:
    """Choose from PRIOR_RUNS, by kind of clue (4,), what tells campaigns of left-out runs best."""
    mix = _mix(campaign, campaigns)
    likely = []
    for code, row, size in _clues_of(part).values():
        own = np.zeros(len(PRIOR_RUNS))
        for number in range(FOLDS):
            out = fold[row] == number
            for at, prior in enumerate(PRIOR_RUNS):
                ratio = _log_ratios(code[~out], campaign[row[~out]], size, mix, prior)
                own[at] += (np.log(mix) + ratio)[code[out], campaign[row[out]]].sum()
        likely.append(own)
    return np.array(PRIOR_RUNS)[np.argmax(likely, axis=1)]
