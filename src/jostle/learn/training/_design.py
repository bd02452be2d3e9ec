"""What tells workloads on platforms apart: names, times alone and features as columns of one matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.learn.training._encoded_features import encode_features

SOLO, CATEGORY, NUMBER = 0.3, 1.0, 0.5  # weights of the parts that are not names
MANY_CELLS = 1_500  # pairs of workload and platform past which features are left out
MOST_COLUMNS = 2_000  # of the design as it is made


def design_of(
    names: tuple[tuple[str, ...], tuple[str, ...]],
    log_solo: np.ndarray,
    table: Any,
    everywhere: float,
    here: float,
) -> np.ndarray:
    """Make the design (cells, d) that S and G are linear in. Columns are scaled by how freely each part may
    vary: the workload on all platforms (everywhere), the workload on one platform (here), its solo runtime,
    the platform, its categories and numbers, and the categories and numbers on one platform."""
    w, p = len(names[0]), len(names[1])
    if w * p > MANY_CELLS:
        return design_of_names(w, p, log_solo, everywhere, here)
    place = np.eye(p)
    level = level_here(log_solo)
    blocks = [everywhere * np.tile(np.eye(w), (p, 1)), here * np.eye(p * w), SOLO * level]
    if p > 1:  # what is the same for all on one platform, such as taking turns
        blocks += [np.ones((p * w, 1)), np.kron(place, np.ones((w, 1)))]
    features = encode_features(names[0], "workload", table)
    classes = [
        np.eye(size)[column][:, 1:]
        for column, size in zip(features.category.T, features.category_sizes, strict=True)
        if size - 1 < w  # a text that is different everywhere says no more than the name
    ]
    for one in classes:
        blocks += [CATEGORY * np.tile(one, (p, 1)), CATEGORY * np.kron(place, one)]
        # How long a workload runs among those of its class says how large it is.
        blocks.append(NUMBER * _inside(np.kron(place, one), level))
    numbers = features.numeric.astype(np.float64)
    if numbers.shape[1]:
        share = NUMBER / np.sqrt(numbers.shape[1])
        blocks.append(share * np.tile(numbers, (p, 1)))
        for one in classes:
            for column in numbers.T:
                mine = _inside(one, column[:, None]) * one
                blocks += [share * np.tile(mine, (p, 1)), share * np.kron(place, mine)]
    return _thin(np.concatenate(blocks, axis=1))


def _thin(design: np.ndarray) -> np.ndarray:
    """Reduce a design of very many columns to as many as cells. It says the same, because the ridge and the
    random start know only products of its rows. Fewer columns are left alone: the search ends sooner in the
    wide form, and gave answers that are a little closer."""
    if design.shape[1] <= max(MOST_COLUMNS, design.shape[0]):
        return design
    return np.asarray(np.linalg.qr(design.T, mode="r")).T


def _inside(one: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Subtract from a column (n, 1) the mean of its class, in standard deviations."""
    mean = one @ ((one.T @ column) / np.maximum(one.sum(0)[:, None], 1.0))
    left = column - mean
    return left / max(float(left.std()), 1e-9)


def level_here(log_solo: np.ndarray) -> np.ndarray:
    """Standardise log times alone (platforms, workloads) to (cells, 1): beyond the platform's mean, over
    their spread; 0 where unknown."""
    is_known = np.isfinite(log_solo)
    mean = log_solo.sum(axis=1, keepdims=True, where=is_known)
    mean /= np.maximum(is_known.sum(axis=1, keepdims=True), 1)  # nothing may be known of a platform
    level = np.where(is_known, log_solo - mean, 0.0)
    return (level / max(float(level.std()), 1e-9)).reshape(-1, 1)


def design_of_names(
    workloads: int, platforms: int, log_solo: np.ndarray, everywhere: float, here: float
) -> Any:
    """Make a sparse design (cells, d) that tells cells apart by names and times alone. log_solo: (platforms,
    workloads), NaN if unknown. everywhere, here: weights of a workload on all platforms, and on one only."""
    from scipy.sparse import csr_matrix, hstack, identity, kron

    w, p = workloads, platforms
    level = level_here(log_solo)
    blocks = [
        everywhere * kron(np.ones((p, 1)), identity(w)),
        here * identity(p * w),
        csr_matrix(SOLO * level),
        csr_matrix(np.ones((p * w, 1))),
        kron(identity(p), np.ones((w, 1))),
    ]
    return hstack(blocks, format="csr")
