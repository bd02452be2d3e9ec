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

FREEDOM = 4.0  # degrees of freedom of Student's t
STEPS = 4  # of Gauss and Newton
LONGEST = 4.0  # usual differences between names that one step goes at most, in any direction


def weights_of(error: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Compute Student's t weights over the squared scale; 0 for a run without an error."""
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
    """Move the names that have rows by one regularised least-squares step. Returns the next z (names, q).

    slopes: (k, q). error, weight, name: (k,). runs: (names,) known before, each worth `information` (q, q).
    Names without rows stay.
    """
    position, error = z.copy(), np.nan_to_num(error)
    order = np.argsort(name, kind="stable")
    touched, start, count = np.unique(name[order], return_index=True, return_counts=True)
    # In the directions in which all names know more the more runs they have, N is diagonal.
    worth, turn = np.linalg.eigh(information)
    heavy = (slopes @ turn) * np.sqrt(weight)[:, None]
    short = np.sqrt(weight) * error
    known = 1.0 + runs[touched, None] * np.maximum(worth, 0.0)
    at = z[touched] @ turn
    moved = np.empty_like(at)
    for some in _alike(count):
        many = int(count[some].max(initial=0))
        place = np.minimum(start[some, None] + np.arange(many), len(order) - 1)
        there = np.arange(many) < count[some, None]
        rows = order[place]
        j = np.where(there[..., None], heavy[rows], 0.0)
        right = np.einsum("nkq,nk->nq", j, np.where(there, short[rows], 0.0))
        moved[some] = _solved(known[some], j, right - known[some] * at[some])
    position[touched] += np.clip(moved @ turn.T, -LONGEST, LONGEST)
    return position


def _alike(count: np.ndarray) -> list[np.ndarray]:
    """Places of names whose numbers of rows differ by at most a factor of two."""
    size = np.ceil(np.log2(np.maximum(count, 1))).astype(int)
    return [np.flatnonzero(size == one) for one in np.unique(size)]


def _solved(known: np.ndarray, j: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve (diag(known) + j^T j) x = right for each of n. known, right: (n, q). j: (n, k, q)."""
    over = np.swapaxes(j, 1, 2)
    if j.shape[1] >= j.shape[2]:
        whole = over @ j
        whole[:, np.arange(j.shape[2]), np.arange(j.shape[2])] += known
        return np.linalg.solve(whole, right[..., None])[..., 0]
    # Fewer rows than directions: the smaller equations (Woodbury 1950).
    first = right / known
    small = np.eye(j.shape[1]) + (j / known[:, None, :]) @ over
    back = np.linalg.solve(small, j @ first[..., None])
    return first - (over @ back)[..., 0] / known
