"""Pictures of what a factorization has learned: maps of names, and interference learned and measured.

Source: Pitot (MLSys 2025), figures 7 and 12: t-SNE of workload embeddings by suite, of platform embeddings
by runtime and by microarchitecture, and a platform's learned interference (the spectral norm of its
matrix) against the mean interference measured on it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.figure_files import save
from jostle._base.figure_style import look_of, plotting
from jostle.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models import Model

FEWEST_TO_MAP = 10
MOST_LEGEND = 24
PAIRS = 500  # random pairs of workloads that a platform's learned interference is averaged over
# What a dataset may call the columns that the paper colours by, the likeliest first.
LABELS = {
    "suite": ("suite", "benchmark_suite"),
    "runtime": ("runtime", "engine"),
    "microarchitecture": ("microarchitecture", "uarch", "architecture"),
}


def draw_embeddings(
    model: Model, runs: Runs, folder: str | os.PathLike[str], *, seed: int = 0
) -> list[Path]:
    """Draw what the features and runs allow; returns the PNG and SVG files, in folder/figures.

    Raises UsageError for a model that is no factorization, MissingExtra without scikit-learn or
    matplotlib.
    """
    from jostle.learn.learners.network import FittedFactorization

    fitted = model.predictor
    if not isinstance(fitted, FittedFactorization):
        raise UsageError("only a factorization has embeddings to draw")
    e = fitted.embeddings
    drawn = []
    sides = (
        ("suite", "workload", fitted.workload_names, e.workload_main, "figure-7-12a-suite"),
        ("runtime", "platform", fitted.platform_names, e.platform_main, "figure-12b-runtime"),
        (
            "microarchitecture",
            "platform",
            fitted.platform_names,
            e.platform_main,
            "figure-12c-microarchitecture",
        ),
    )
    maps: dict[str, np.ndarray] = {}
    for kind, side, names, embedding, file_name in sides:
        labels = labels_of(runs, side, names, kind)
        if labels is None or len(names) < FEWEST_TO_MAP:
            continue
        if side not in maps:
            maps[side] = flat_map(embedding, seed)
        figure = _map_figure(maps[side], labels, f"{side}s by {kind}")
        drawn += save(figure, Path(folder), file_name)
    figure = _interference_figure(fitted, runs, seed)
    if figure is not None:
        drawn += save(figure, Path(folder), "figure-12d-interference")
    return drawn


def flat_map(embedding: np.ndarray, seed: int) -> np.ndarray:
    """(names, 2) t-SNE of (names, r) embeddings, their principal components first, scaled to unit
    length as only the directions of factors can be compared."""
    try:
        from sklearn.decomposition import PCA
        from sklearn.manifold import TSNE
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "evaluate") from None
    count = len(embedding)
    centred = embedding - embedding.mean(0)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    points = centred / np.maximum(length, 1e-12)
    points = PCA(min(32, count - 1, points.shape[1]), random_state=seed).fit_transform(points)
    perplexity = min(30.0, (count - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=seed).fit_transform(points)


def labels_of(runs: Runs, side: str, names: tuple[str, ...], kind: str) -> list[str] | None:
    """One label a name from a text column of the features, or from one-hot columns `uarch=…`;
    None where there are neither."""
    rows, table = runs.features_of(side)
    if table is None:
        return None
    for column in LABELS[kind]:
        results: list[Any] | None = None
        if column in table.column_names:
            results = table.column(column).to_pylist()
        else:
            hot = [name for name in table.column_names if name.startswith(f"{column}=")]
            if hot:
                matrix = np.column_stack([table.column(name).to_numpy() for name in hot])
                # Encoders write off as 0 or -1; either way the largest is the one that is on.
                results = [
                    hot[place].split("=", 1)[1] if line[place] > 0 else None
                    for line, place in zip(matrix, matrix.argmax(1), strict=True)
                ]
        if results is not None:
            by_name = dict(zip(rows, results, strict=True))
            return [str(by_name.get(name) or "other") for name in names]
    return None


def log_slowdowns(runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """(log slowdown (m,), number of co-runners (m,)) of the runs beside others whose workload also ran alone
    on the same platform, against its mean log runtime there."""
    _, slowdown, degree = _slowdowns(runs.ok())
    return slowdown, degree


def measured_interference(runs: Runs) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """(platform names, mean log slowdown (p,), runs with co-runners behind each (p,)), as of log_slowdowns;
    NaN for a platform without any."""
    runs = runs.ok()
    c = runs.colocations
    used, slowdown, _ = _slowdowns(runs)
    n = np.bincount(c.platform[used], minlength=len(c.platform_names))
    summed = np.bincount(c.platform[used], slowdown, len(c.platform_names))
    with np.errstate(invalid="ignore", divide="ignore"):
        return c.platform_names, summed / n, n


def _slowdowns(runs: Runs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(which runs (n,) bool, their log slowdowns, their numbers of co-runners)."""
    c = runs.colocations
    key = c.workload.astype(np.int64) * len(c.platform_names) + c.platform
    log_runtime = np.log(runs.runtime_seconds)
    degree = c.number_of_corunners
    alone = degree == 0
    size = len(c.workload_names) * len(c.platform_names)
    count = np.bincount(key[alone], minlength=size)
    total = np.bincount(key[alone], log_runtime[alone], size)
    used = ~alone & (count[key] > 0)
    return used, log_runtime[used] - total[key[used]] / count[key[used]], degree[used]


def _map_figure(points: np.ndarray, labels: list[str], title: str) -> Any:
    figure, axis = plotting().subplots(figsize=(5.2, 4.2))
    _scatter(axis, points[:, 0], points[:, 1], labels)
    axis.set_title(title)
    axis.set_xlabel("first direction of the map (no unit)")
    axis.set_ylabel("second direction of the map (no unit)")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    return figure


def learned_interference(fitted: Any, seed: int) -> tuple[np.ndarray, str]:
    """(platforms,) how much a model lets each platform interfere, and what that number is.

    In the paper's form the spectral norm of the interference matrix. The other forms bend both its
    factors, so a large factor may as well switch interference off, and the norm says nothing; there it is
    the mean slowdown in percent that the model predicts for random pairs of workloads, the same pairs on
    every platform.
    """
    if fitted.form == "paper":
        return fitted.interference_norm(), "norm of the learned interference matrix"
    from jostle.data import Colocations

    random = np.random.default_rng(seed)
    w, p = len(fitted.workload_names), len(fitted.platform_names)
    target, beside = random.integers(0, w, (2, PAIRS))
    n = PAIRS * p
    asked = Colocations(
        fitted.workload_names,
        fitted.platform_names,
        np.tile(target, p),
        np.repeat(np.arange(p), PAIRS),
        np.arange(n + 1),
        np.tile(beside, p),
    )
    slowdown = np.log(fitted.predict(asked) / fitted.predict(asked.alone()))
    mean = np.nanmean(slowdown.reshape(p, PAIRS), axis=1)
    return 100 * np.expm1(mean), "predicted slowdown, geometric mean (%)"


def _interference_figure(fitted: Any, runs: Runs, seed: int) -> Any | None:
    """Learned against measured mean interference; None without runs to measure it."""
    names, slowdown, n = measured_interference(runs)
    place = {name: number for number, name in enumerate(fitted.platform_names)}
    shown = [k for k, name in enumerate(names) if n[k] > 0 and name in place]
    if not shown:
        return None
    learned, what = learned_interference(fitted, seed)
    learned = learned[[place[names[k]] for k in shown]]
    measured = slowdown[shown]
    kept = tuple(names[k] for k in shown)
    labels = labels_of(runs, "platform", kept, "microarchitecture") or ["platforms"] * len(kept)
    figure, axis = plotting().subplots(figsize=(5.2, 4.2))
    _scatter(axis, 100 * np.expm1(measured), learned, labels)
    axis.set_xlabel("measured slowdown, geometric mean (%)")
    axis.set_ylabel(what)
    if len(kept) > 2:
        axis.set_title(f"rank correlation {rank_correlation(measured, learned):.2f}")
    return figure


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; ties in order of appearance."""
    first, second = (np.argsort(np.argsort(x, kind="stable"), kind="stable") for x in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def _scatter(axis: Any, x: np.ndarray, y: np.ndarray, labels: list[str]) -> None:
    """A colour and marker per label, the commonest first; the legend stands beside the picture."""
    results, counts = np.unique(labels, return_counts=True)
    order = [str(label) for label in results[np.argsort(-counts, kind="stable")]]
    array = np.array(labels)
    for number, label in enumerate(order):
        inside = array == label
        colour, marker = look_of(number)
        axis.scatter(
            x[inside],
            y[inside],
            s=18,
            color=colour,
            marker=marker,
            label=label if number < MOST_LEGEND else None,
            linewidths=0,
            alpha=0.85,
        )
    if len(order) > 1:
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, markerscale=1.2)
