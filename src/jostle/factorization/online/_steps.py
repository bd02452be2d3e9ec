"""A few Gauss-Newton steps for the embeddings of single names, all others held.

With a row of embeddings written as prior mean + z B, z standard normal, and the log runtime of a run linear
in z near where it stands, each step solves (q, q) equations of its own for every name:

    (N + sum_r w_r J_r J_r^T / s_r^2) z = sum_r w_r J_r (e_r + J_r z_0) / s_r^2,

where J_r is the slope in z, e_r the error now, s_r the usual error of such runs, and w_r the weight of
Student's t for the error (iteratively reweighted least squares: Lange, Little and Taylor 1989), so that one
run that went wrong does not carry a name away. N is what is known already: the identity for a new name, more
for one with runs.
"""

from __future__ import annotations

import numpy as np

FREEDOM = 4.0
STEPS = 4
LONGEST = 4.0  # usual differences between names that one step goes at most, in any direction


def weights_of(error: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Of Student's t over its scale squared; 0 where there is no error."""
    ratio = np.nan_to_num(error) / usual
    weight = (FREEDOM + 1) / (FREEDOM + ratio**2) / usual**2
    return np.where(np.isfinite(error), weight, 0.0)


def step(
    z: np.ndarray,
    slopes: np.ndarray,
    error: np.ndarray,
    weight: np.ndarray,
    name: np.ndarray,
    runs: np.ndarray,
    information: np.ndarray,
) -> np.ndarray:
    """(names, q) the next z. slopes: (k, q); error, weight, name: (k,); runs: (names,) known before, each of
    them worth information, (q, q). Names without rows stay."""
    found = z.copy()
    error = np.nan_to_num(error)
    order = np.argsort(name, kind="stable")
    touched, start = np.unique(name[order], return_index=True)
    for number, at in zip(touched.tolist(), np.split(order, start[1:]), strict=True):
        j = slopes[at]
        heavy = j * weight[at, None]
        before = np.eye(z.shape[1]) + runs[number] * information
        right = heavy.T @ error[at] - before @ z[number]
        moved = np.linalg.solve(before + heavy.T @ j, right)
        found[number] = z[number] + np.clip(moved, -LONGEST, LONGEST)
    return found
