"""How far measured runtimes stray from the prediction, per workload, platform and co-runner.

A bound that is as far off everywhere is too wide where runs repeat well and too narrow where they do
not. log |error| is modelled as additive effects, shrunken towards the overall level, from runs that the
model was not trained on (residuals of training runs are too small to tell). Calibration corrects the
level, so only the ratios between co-locations matter here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FLOOR = 0.003  # log units: below this, differences between errors are chance
SHRINKAGE = 12.0


@dataclass(frozen=True)
class Spread:
    """Effects on log |log error|: (workloads,), (platforms,), (workloads,) of co-runners."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray

    def log_scale(
        self, workload: np.ndarray, platform: np.ndarray, corunner: np.ndarray, row: np.ndarray
    ) -> np.ndarray:
        """(n,) log of the relative spread; corunner, row: (m,) co-runner codes and their rows."""
        out = self.workload[workload] + self.platform[platform]
        if len(corunner):
            count = np.maximum(np.bincount(row, minlength=len(out)), 1)
            out = out + np.bincount(row, self.corunner[corunner], len(out)) / count
        return out


def fit_spread(
    workload: np.ndarray,
    platform: np.ndarray,
    corunner: np.ndarray,
    row: np.ndarray,
    error: np.ndarray,
    number_of_workloads: int,
    number_of_platforms: int,
    iterations: int = 20,
) -> Spread:
    """error: (n,) log runtime minus predicted log runtime, of runs not trained on."""
    size = np.log(np.abs(error) + FLOOR)
    degree = np.bincount(row, minlength=len(error))
    for d in np.unique(degree):  # pools calibrate their own level
        size[degree == d] -= size[degree == d].mean()
    share = 1.0 / np.maximum(degree, 1)
    effect_w, effect_p = np.zeros(number_of_workloads), np.zeros(number_of_platforms)
    effect_c = np.zeros(number_of_workloads)
    count_w = np.bincount(workload, minlength=number_of_workloads) + SHRINKAGE
    count_p = np.bincount(platform, minlength=number_of_platforms) + SHRINKAGE
    count_c = np.bincount(corunner, share[row], number_of_workloads) + SHRINKAGE

    def beside() -> np.ndarray:
        return np.bincount(row, effect_c[corunner] * share[row], len(error))

    for _ in range(iterations):
        rest = size - effect_p[platform] - beside()
        effect_w = np.bincount(workload, rest, number_of_workloads) / count_w
        rest = size - effect_w[workload] - beside()
        effect_p = np.bincount(platform, rest, number_of_platforms) / count_p
        rest = size - effect_w[workload] - effect_p[platform]
        effect_c = np.bincount(corunner, (rest * share)[row], number_of_workloads) / count_c
    return Spread(effect_w, effect_p, effect_c)
