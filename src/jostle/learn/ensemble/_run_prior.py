"""What is expected of a run by its names and by what is known before it starts, co-runners aside.

    log runtime = platform + group + workload + cell + co-runners + slope * log covariate + noise

Covariates (input bytes, threads, a class) act log-linearly, with a slope of each workload that is shrunk to
the common one. Names that were never measured are answered from the rest: a workload by its group, where
groups are given, its covariates and its platform, a platform by its workload. All of it is one fit of mixed
effects.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle._base.mixed_effects import Block, MixedEffects, fit_mixed_effects
from jostle._base.tensors import Serializable
from jostle.data import group_names
from jostle.learn.training._relative_error import gain_is_insignificant, relative_error

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs

MOST_ROWS = 20_000  # that effects are learned from
MOST_CELLS = 3_000  # workloads on platforms, that have effects of their own
MOST_DEGREE = 6  # numbers of co-runners with a level of their own
# Log units outside what was seen of a workload, up to which the common slope is believed.
BEYOND = 1.0
FOLDS = 5  # by which it is tested whether covariates tell
EVIDENCE = 2.0  # standard errors by which answers must be closer with covariates
FIXED = ("intercept", "slope")


@dataclass(frozen=True)
class CovariateForm(Serializable):
    """How a covariate acts: by its logarithm, or where `levels` are given, by which of these texts it is.

    Parameters
    ----------
    name : str
    levels : tuple of str
    centre, low, high : (W + 1,) ndarray
        Of the logarithms, for each workload, the last for an unknown one; empty for a text.
    """

    name: str
    levels: tuple[str, ...]
    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, name: str, values: np.ndarray, workload: np.ndarray, width: int) -> CovariateForm:
        """Learn the usual value and range of each workload from n values; workload: (n,) codes."""
        if values.dtype.kind == "U":
            levels = tuple(sorted(set(values.tolist()) - {""}))
            none = np.zeros(0)
            return cls(name, levels, none, none, none)
        x = _log(values)
        known = np.isfinite(x)
        usual = (np.median(x[known]), x[known].min(), x[known].max()) if known.any() else (0.0,) * 3
        each = np.tile(np.array(usual)[:, None], width + 1)
        order = np.argsort(workload[known], kind="stable")
        codes, start = np.unique(workload[known][order], return_index=True)
        for code, part in zip(codes.tolist(), np.split(x[known][order], start[1:]), strict=True):
            each[:, code] = np.median(part), part.min(), part.max()
        return cls(name, (), *each)

    def numbers(self, values: np.ndarray, workload: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return three (n,) columns of logs, 0 if unknown: excess over the workload's usual value, clipped to
        near its range; the same, clipped less; the workload's usual value over that of all workloads."""
        x, low, high = _log(values), self.low[workload], self.high[workload]
        centre = self.centre[workload]
        beyond = np.clip(x, low - BEYOND, high + BEYOND)
        reach = np.minimum((high - low) / 2, BEYOND)
        within = np.nan_to_num(np.clip(x, low - reach, high + reach) - centre)
        # Of a workload that was never met nothing tells which slope is its own: half of either.
        new = workload < 0
        usual = np.where(new, (beyond + centre) / 2, centre) - self.centre[-1]
        common = np.where(new, (beyond - centre) / 2, beyond - centre)
        return within, np.nan_to_num(common), np.nan_to_num(usual)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return which of the levels each value is, (n,); -1 for another."""
        place = {level: code for code, level in enumerate(self.levels)}
        return np.array([place.get(str(one), -1) for one in values], np.int64)


def _log(values: np.ndarray) -> np.ndarray:
    """Take logarithms of 1 + size, with the sign of the value."""
    values = np.asarray(values, np.float64)
    return np.sign(values) * np.log1p(np.abs(values))


@dataclass(frozen=True)
class RunPrior(Serializable):
    """What was learned of runs by their names and covariates.

    Parameters
    ----------
    workload_names, platform_names : tuple of str
    forms : tuple of CovariateForm
    effects : MixedEffects
    typical : (2,) ndarray of int
        Codes of the workload whose slowdown, and of the co-runner whose pressure, is the median; -1 for none.
    hidden : ndarray of int
        Codes of workloads that are answered as if they had never been met.
    groups, group_names : tuple of str
        Expressions that say the group of a name, and the groups of those that were met.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    forms: tuple[CovariateForm, ...]
    effects: MixedEffects
    typical: np.ndarray
    hidden: np.ndarray
    groups: tuple[str, ...] = ()
    group_names: tuple[str, ...] = ()

    def _codes(self, asked: Colocations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return codes of (workload (n,), platform (n,), co-runner (m,)); -1 for names never met."""
        w, p, k = asked.recode(self.workload_names, self.platform_names)
        if len(self.hidden):
            w, k = (np.where(np.isin(one, self.hidden), -1, one) for one in (w, k))
        return w.astype(np.int64), p.astype(np.int64), k.astype(np.int64)

    def log_seconds(self, asked: Colocations) -> np.ndarray:
        """Predict (n,) log seconds alone, without `log_covariates`, which is added by the caller."""
        w, p, _ = self._codes(asked)
        design = names_design(w, p, len(self.workload_names), len(self.platform_names))
        design |= _group_design(asked, self.groups, self.group_names)
        log = self.effects.predict(design, len(asked)) + self.effects.effect["degree"][0]
        # Of a workload that is not known its usual covariates are not, either.
        return log + np.where(w < 0, self._log_covariates(asked, w), 0.0)

    def log_company(self, asked: Colocations) -> np.ndarray:
        """Predict (n,) log slowdowns by additive effects of the workload, its co-runners and their number:
        quick, for questions about very many sets."""
        w, _, k = self._codes(asked)
        degree = np.asarray(asked.number_of_corunners)
        design = company_design(degree, w, k, len(self.workload_names))
        return self.effects.predict(design, len(asked)) - self.effects.effect["degree"][0]

    def log_covariates(self, asked: Colocations) -> np.ndarray:
        """Predict what covariates add to log runtimes, (n,), a workload's usual ones too; 0 if new."""
        w, _, _ = self._codes(asked)
        return np.where(w < 0, 0.0, self._log_covariates(asked, w))

    def _log_covariates(self, asked: Colocations, workload: np.ndarray) -> np.ndarray:
        if not self.forms:
            return np.zeros(len(asked))
        design = _covariate_design(self.forms, asked, workload, len(self.workload_names))
        known = {name: block for name, block in design.items() if name in self.effects.effect}
        return self.effects.predict(known, len(asked))

    def taken_off(self, runs: Runs) -> Runs:
        """Divide runtimes by what `log_covariates` predicts, the factor of the workload's usual level too."""
        if not self.forms:
            return runs
        log = self.log_covariates(runs.colocations)
        return runs.with_one_company(runs.runtime_seconds / np.exp(log))


def fit_prior(
    runs: Runs, seed: int = 0, like: RunPrior | None = None, hidden: Collection[str] = ()
) -> RunPrior:
    """Learn from runs with status ok; covariates count where runs left out are closer by them.

    Parameters
    ----------
    like : RunPrior, optional
        A fit to more of the same runs, whose variances and covariates are taken.
    hidden : collection of str
        Workloads that are not to stand for typical ones.

    Returns
    -------
    RunPrior
    """
    c = runs.colocations
    names = (c.workload_names, c.platform_names)
    if like is not None:
        names = like.workload_names, like.platform_names
    rows = np.random.default_rng([seed, 71]).permutation(len(runs))[:MOST_ROWS]
    runs = runs.take(np.sort(rows))
    c, y = runs.colocations, np.log(runs.runtime_seconds)
    w, p, k = (each.astype(np.int64) for each in c.recode(*names))
    # What is usual of a workload is the same in all fits of one campaign, which share what they take off.
    forms = (
        like.forms
        if like is not None
        else tuple(
            CovariateForm.of(name, values, w, len(names[0]))
            for name, values in c.covariates.items()
            if _tells(values)
        )
    )
    unknown = runs.unknown_corunners
    base = names_design(w, p, len(names[0]), len(names[1])) | company_design(
        c.number_of_corunners, w, k, len(names[0])
    )
    groups = runs.groups if like is None else like.groups
    known = like.group_names if like else sorted({*group_names(c.workload_names, groups)} - {""})
    base |= _group_design(c, groups, known)
    for name in ("degree", "beside", "corunner"):
        # Of who was there nothing is known.
        block = base[name]
        base[name] = replace(block, level=np.where(unknown[block.row], -1, block.level))
    variances = None if like is None else like.effects
    if forms:
        own = _covariate_design(forms, c, w, len(names[0]))
        if like is not None or _pays(base, own, y, seed):
            base |= own
        else:
            forms = ()
    effects = fit_mixed_effects(base, y, fixed=FIXED, like=variances)
    gone = [code for code, name in enumerate(names[0]) if name in hidden]
    # Of a log in which nobody ran beside anybody, any workload is as typical as another.
    typical = [
        _median_of(effects.effect[of], np.setdiff1d(codes if len(codes) else w, gone))
        for of, codes in (("beside", w[c.number_of_corunners > 0]), ("corunner", k))
    ]
    about = tuple(names[0]), tuple(names[1]), forms, effects, np.array(typical)
    return RunPrior(*about, np.array(gone, np.int64), groups, tuple(known))


def _group_design(
    asked: Colocations, groups: Sequence[str], known: Sequence[str]
) -> dict[str, Block]:
    """Make a block of the workload's group, by its name, if two groups are known."""
    if len(known) < 2:
        return {}
    place = {name: code for code, name in enumerate(known)}
    codes = [place.get(name, -1) for name in group_names(asked.workload_names, groups)]
    return {"group": Block.of(np.array(codes, np.int64)[asked.workload], len(known))}


def _tells(values: np.ndarray) -> bool:
    """Tell whether a covariate is known of some runs and differs between them."""
    known = values != "" if values.dtype.kind == "U" else np.isfinite(values)
    return len(np.unique(values[known])) > 1


def names_design(
    workload: np.ndarray, platform: np.ndarray, workloads: int, platforms: int
) -> dict[str, Block]:
    """Make blocks of the platform, the workload and, if these are not too many, of both; codes below 0 are
    unknown."""
    out = {
        "intercept": Block.of(np.zeros(len(workload), np.int64), 1),
        "platform": Block.of(platform, platforms),
        "workload": Block.of(workload, workloads),
    }
    if workloads * platforms > MOST_CELLS:
        return out
    known = (workload >= 0) & (platform >= 0)
    cell = np.where(known, platform.astype(np.int64) * workloads + workload, -1)
    return out | {"cell": Block.of(cell, workloads * platforms)}


def company_design(
    degree: np.ndarray,
    workload: np.ndarray,
    corunner: np.ndarray,
    workloads: int,
    row: np.ndarray | None = None,
) -> dict[str, Block]:
    """Make blocks of the number of co-runners, of the workload beside others, and of its co-runners (m,);
    row: (m,) whose each is, by default in their order."""
    row = np.repeat(np.arange(len(degree)), degree) if row is None else row
    share = 1.0 / np.maximum(degree, 1)[row]
    return {
        # None of them is what the others are told from: of numbers that were not seen the mean is expected.
        "degree": Block.of(np.minimum(degree, MOST_DEGREE), MOST_DEGREE + 1),
        "beside": Block.of(np.where(degree > 0, workload, -1), workloads),
        "corunner": Block.of(corunner, workloads, share, row),
    }


def _covariate_design(
    forms: Sequence[CovariateForm], asked: Colocations, workload: np.ndarray, workloads: int
) -> dict[str, Block]:
    out, slopes = {}, []
    for form in forms:
        values = asked.covariates.get(form.name)
        if form.levels:
            code = np.full(len(asked), -1) if values is None else form.codes(values)
            size = len(form.levels)
            both = np.where((workload < 0) | (code < 0), -1, workload * size + code)
            out[f"level of {form.name}"] = Block.of(code, size)
            out[f"level of {form.name}, by workload"] = Block.of(both, workloads * size)
            continue
        values = np.full(len(asked), np.nan) if values is None else values
        within, beyond, usual = form.numbers(values, workload)
        out[f"slope of {form.name}, by workload"] = Block.of(workload, workloads, within)
        # What a workload's usual size says of it is another slope than that within a workload.
        out[f"usual {form.name}"] = Block.columns(usual[:, None])
        slopes.append(beyond)
    if slopes:
        out["slope"] = Block.columns(np.stack(slopes, axis=1))
    return out


def _pays(base: dict[str, Block], own: dict[str, Block], y: np.ndarray, seed: int) -> bool:
    """Tell whether runs left out in turn are predicted closer with covariates."""
    n = len(y)
    fold = np.random.default_rng([seed, 73]).permutation(n) % FOLDS
    gain = np.zeros(n)
    for design, sign in ((base, 1.0), (base | own, -1.0)):
        whole = fit_mixed_effects(design, y, fixed=FIXED)
        for number in range(FOLDS):
            rest, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            part = {name: block.take(rest, n) for name, block in design.items()}
            asked = {name: block.take(held, n) for name, block in design.items()}
            fitted = fit_mixed_effects(part, y[rest], fixed=FIXED, like=whole)
            gain[held] += sign * relative_error(fitted.predict(asked, len(held)) - y[held])
    return not gain_is_insignificant(gain, np.arange(n), EVIDENCE)


def _median_of(effect: np.ndarray, codes: np.ndarray) -> int:
    """Return the code whose effect is the median among some; -1 if there is none."""
    codes = codes[codes >= 0]
    if not len(codes):
        return -1
    return int(codes[np.argsort(effect[codes], kind="stable")[(len(codes) - 1) // 2]])
