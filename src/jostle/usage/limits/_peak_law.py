"""The law of a workload's next peak, given its covariates: Bayesian averages over a few forms.

Of each form (constant; power or affine in one covariate) the slope and the width of the residuals have
a posterior on a grid. The prior of both, and of the forms, is the mean of the posteriors of all workloads
(empirical Bayes), so that few runs borrow from the others. A peak is drawn from the workload's own residuals
and from those of all workloads, each scaled by the width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

WIDTHS = np.exp(np.linspace(np.log(0.002), np.log(1.5), 15))
_LOG_WIDTHS = np.log(WIDTHS)
_NORMAL = np.array(
    [-2.2, -1.6, -1.2, -0.9, -0.65, -0.4, -0.2, 0, 0.2, 0.4, 0.65, 0.9, 1.2, 1.6, 2.2, 3]
)
_WORTH = 3.0  # how many workloads the first prior weighs
ORDER, _UNIT = -1, 100.0  # a covariate: how many hundred runs came before
_OWN = 5.0  # with so many runs, half of the law are a workload's own residuals
_STEPS = np.linspace(-1.5, 5, 70)  # requests that are tried, in widths from the middle


@dataclass
class PeakForm:
    """One form of log peak, and what workloads have in common. covariate: its row; None for the constant.
    slopes: its grid. The rest: priors of slope and width, and residuals in units of the width."""

    covariate: int | None
    is_affine: bool
    slopes: np.ndarray
    slope_prior: np.ndarray
    width_prior: np.ndarray
    residuals: np.ndarray
    weight: float = 1.0

    def curve(self, slope: np.ndarray | float, gap: np.ndarray) -> np.ndarray:
        """Evaluate the log peak over that at the mean covariate. gap: log covariate over that mean."""
        if not self.is_affine:
            return slope * gap
        return np.log(np.maximum(1 + slope * np.expm1(np.clip(gap, -30, 30)), 0.02))

    def gradient(self, slope: float, gap: np.ndarray) -> np.ndarray:
        """Differentiate the curve by the slope."""
        if not self.is_affine:
            return gap
        rise = np.expm1(np.clip(gap, -30, 30))
        return rise / np.maximum(1 + slope * rise, 0.02)


def forms_of(covariates: int) -> list[PeakForm]:
    """List the forms for so many covariates."""
    widths = np.exp(-0.5 * (_LOG_WIDTHS - np.log(0.05)) ** 2)
    drifts = np.linspace(-0.02, 0.02, 21) * _UNIT
    kinds: list[tuple[int | None, bool, np.ndarray]] = [
        (None, False, np.zeros(1)),
        (ORDER, False, drifts),
    ]
    for row in range(covariates):
        kinds += [
            (row, False, np.linspace(-1, 2, 31)),
            (row, True, np.linspace(0, 1, 21)),
        ]
    return [
        PeakForm(row, affine, slopes, _slope_prior(slopes), widths / widths.sum(), _NORMAL)
        for row, affine, slopes in kinds
    ]


def _slope_prior(slopes: np.ndarray) -> np.ndarray:
    prior = np.exp(-0.5 * (slopes / 0.5) ** 2)
    return prior / prior.sum()


@dataclass
class _Fit:
    """A form fitted to one workload."""

    middle: float
    slope: float
    variance: float
    width: float
    slope_posterior: np.ndarray
    width_posterior: np.ndarray
    log_evidence: float
    residuals: np.ndarray


class WorkloadLaw:
    """The law of one workload. log_values: (n,); log_hours: (n,) how long its runs took; covariates: (d, n)
    logs, NaN where unknown."""

    def __init__(
        self,
        forms: Sequence[PeakForm],
        log_values: np.ndarray,
        log_hours: np.ndarray,
        covariates: np.ndarray,
        typical_rise: float = 0.0,
    ) -> None:
        self.forms, self.size = forms, len(log_values)
        covariates = np.vstack([covariates, np.arange(self.size) / _UNIT])
        known = np.isfinite(covariates)
        count = np.maximum(known.sum(axis=1), 1)
        self.means = np.where(known, covariates, 0.0).sum(axis=1) / count
        self.gaps = np.where(known, covariates - self.means[:, None], 0.0)
        self.fits = [self._fit(form, log_values) for form in forms]
        evidence = np.array([fit.log_evidence for fit in self.fits])
        weights = np.exp(evidence - evidence.max())
        self.weights = weights / weights.sum()
        # Runs that need more also take longer, so that they weigh more in what is wasted.
        self.usual = float(log_values.mean())
        high, long = log_values - self.usual, log_hours - log_hours.mean()
        shrink = 4 * (float(long @ long) + 0.1) / self.size
        rise = (float(high @ long) + shrink * typical_rise) / (float(high @ high) + shrink)
        self.rise = min(max(rise, -0.5), 3.0)

    def _gap(self, form: PeakForm, covariates: np.ndarray) -> np.ndarray:
        if form.covariate is None:
            return np.zeros(1)
        covariates = np.append(covariates, self.size / _UNIT)
        gap = covariates[form.covariate] - self.means[form.covariate]
        return np.where(np.isfinite(gap), gap, 0.0).reshape(1)

    def _fit(self, form: PeakForm, values: np.ndarray) -> _Fit:
        n = self.size
        gaps = np.zeros(n) if form.covariate is None else self.gaps[form.covariate]
        left = values - form.curve(form.slopes[:, None], gaps)
        squares = ((left - left.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
        log = -0.5 * squares[:, None] / WIDTHS**2 - (n - 1) * _LOG_WIDTHS
        log += np.log(form.slope_prior)[:, None] + np.log(form.width_prior)
        top = log.max()
        joint = np.exp(log - top)
        total = joint.sum()
        joint /= total
        by_slope, by_width = joint.sum(axis=1), joint.sum(axis=0)
        slope = float(by_slope @ form.slopes)
        variance = float(by_slope @ (form.slopes - slope) ** 2)
        width = float(np.exp(by_width @ _LOG_WIDTHS))
        left = values - form.curve(slope, gaps)
        pull = form.gradient(slope, gaps)
        share = 1 / n + (pull - pull.mean()) ** 2 * variance / width**2
        # As if each run had been left out.
        residuals = (left - left.mean()) / np.sqrt(1 - np.minimum(share, 0.9)) / width
        return _Fit(
            float(left.mean()),
            slope,
            variance,
            width,
            by_slope,
            by_width,
            float(np.log(form.weight) + top + np.log(total)),
            residuals if n > 1 else residuals[:0],
        )

    def draws(self, covariates: np.ndarray) -> tuple[np.ndarray, ...]:
        """List peaks that the next run may have. covariates: (d,) of that run, logs. Returns (values, how
        likely each is, how many times longer than others such a run takes, requests to try)."""
        values, chances, longer, tried = [], [], [], []
        for form, fit, weight in zip(self.forms, self.fits, self.weights, strict=True):
            if weight < 0.01:
                continue
            gap = self._gap(form, covariates)
            middle = fit.middle + form.curve(fit.slope, gap)[0]
            pull = form.gradient(fit.slope, gap)[0]
            wider = np.sqrt(1 + 1 / self.size + min(pull**2 * fit.variance / fit.width**2, 100.0))
            is_likely = fit.width_posterior > 1e-3
            chance = fit.width_posterior[is_likely] / fit.width_posterior[is_likely].sum()
            pooled = (WIDTHS[is_likely][:, None] * form.residuals).ravel() * wider
            own = fit.residuals * fit.width * wider
            share = self.size / (self.size + _OWN) if len(own) else 0.0
            values.append(middle + np.clip(np.concatenate([own, pooled]), -6, 6))
            each = np.repeat(chance / len(form.residuals), len(form.residuals)) * (1 - share)
            each = np.concatenate([np.full(len(own), share / max(len(own), 1)), each])
            longer.append(np.exp(np.clip(self.rise * (values[-1] - fit.middle), -8, 8)))
            chances.append(weight * each)
            tried.append(middle + fit.width * wider * _STEPS)
        parts = (np.exp(np.concatenate(values)), np.concatenate(chances), np.concatenate(longer))
        return *parts, np.exp(np.concatenate(tried))


def learn_in_common(forms: Sequence[PeakForm], laws: Iterable[WorkloadLaw]) -> float:
    """Set what workloads have in common from the laws of all of them. Returns how many times longer, in logs,
    runs take that need more."""
    laws = list(laws)
    some = [law for law in laws if law.size >= 3]
    many = [law for law in laws if law.size >= 5]
    fresh = forms_of(sum(form.is_affine for form in forms))
    for row, (form, first) in enumerate(zip(forms, fresh, strict=True)):
        fits = [law.fits[row] for law in some]
        whole = _WORTH + len(fits)
        form.slope_prior = (
            _WORTH * first.slope_prior + sum(fit.slope_posterior for fit in fits)
        ) / whole
        form.width_prior = (
            _WORTH * first.width_prior + sum(fit.width_posterior for fit in fits)
        ) / whole
        form.weight = (1 + sum(float(law.weights[row]) for law in some)) / (len(some) + len(forms))
        own = [_evenly(law.fits[row].residuals) for law in many]
        drawn = np.clip(np.concatenate([*own, np.repeat(_NORMAL, 3)]), -6, 8)
        form.residuals = np.quantile(drawn, (np.arange(24) + 0.5) / 24)
    return sum(law.rise for law in many) / (len(many) + 3)


def _evenly(values: np.ndarray, most: int = 30) -> np.ndarray:
    """Take at most so many of the values, evenly by rank."""
    rows = np.linspace(0, len(values) - 1, min(len(values), most)).astype(int)
    return np.sort(values)[rows]
