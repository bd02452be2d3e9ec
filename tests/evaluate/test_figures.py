"""Pictures are made from what is there; what they show is checked on the numbers behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.errors import UnreadableFile, UsageError
from jostle.models import Model, fit
from jostle.runs import Runs
from studies.factorization.embedding import (
    draw_embeddings,
    flat_map,
    labels_of,
    learned_interference,
    measured_interference,
    rank_correlation,
)
from studies.factorization.figures import draw_studies, summary_rows
from studies.rivals.linear import LinearScaling

from .conftest import scrambled


def tidy(study: str, methods: list[str], rules: list[str]) -> pa.Table:
    """Made-up results: three replicates of two shares, errors 1%, 2%, 3% apart by method."""
    rows = []
    for m, method in enumerate(methods):
        for observed in (0.1, 0.5):
            for replicate in range(3):
                own = {
                    "study": study,
                    "method": method,
                    "observed": observed,
                    "replicate": replicate,
                }
                value = (m + 1) / 100 / observed + 0.001 * (replicate - 1)
                for group in ("solo", "corun"):
                    keys = {"rule": None, "group": group, "confidence": None}
                    rows.append({**own, **keys, "metric": "mape_ratio", "value": value})
                    for r, rule in enumerate(rules):
                        for c in (0.9, 0.95, 0.99):
                            keys = {"rule": rule, "group": group, "confidence": c}
                            margin = value * (1 + r) / (1 - c) / 10
                            rows.append({**own, **keys, "metric": "margin_ratio", "value": margin})
    return pa.Table.from_pylist(rows)


@pytest.mark.usefixtures("sketches")
def test_figures_of_every_study(tmp_path: Path) -> None:
    rules = ["default", "selected", "naive", "nonquantile", "head 0.5", "head 0.9"]
    for study in (
        "baselines",
        "objective",
        "features",
        "interference",
        "form",
        "activation",
        "q",
        "beta",
    ):
        pq.write_table(tidy(study, ["ours", "theirs"], rules[:1]), tmp_path / f"{study}.parquet")
    pq.write_table(tidy("quantiles", ["ours"], rules), tmp_path / "quantiles.parquet")
    paths = draw_studies(tmp_path)
    stems = {path.stem.split("-")[1] for path in paths}
    assert stems == {"4a", "4b", "4c", "4d", "error", "5", "6a", "6b", "8", "9a", "9b", "10", "11"}
    for path in paths:
        ElementTree.parse(path)


def test_the_same_results_draw_the_same_file(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        pq.write_table(tidy("q", ["one", "two"], ["default"]), tmp_path / folder / "q.parquet")
    a, b = ([path.read_bytes() for path in draw_studies(tmp_path / folder)] for folder in "ab")
    assert a == b


def test_the_printed_table_has_means_and_errors() -> None:
    _, rows = summary_rows(tidy("q", ["ours"], ["default"]))
    assert [row[:3] for row in rows] == [["ours", "0.1", "3"], ["ours", "0.5", "3"]]
    # Values 9.9, 10 and 10.1%: a standard deviation of .1, two standard errors of .115.
    assert rows[0][3] == "10.00% ± 0.12"


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no study"):
        draw_studies(tmp_path)
    (tmp_path / "q.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnreadableFile, match=r"q\.parquet"):
        draw_studies(tmp_path)


def test_embedding_figures(model: Model, world: Runs, tmp_path: Path) -> None:
    features = world.workload_features
    assert features is not None
    renamed = features.rename_columns(["workload", "suite", "opcode_add", "opcode_load"])
    runs = Runs(world.table, renamed, world.platform_features)
    paths = draw_embeddings(model, runs, tmp_path)
    # Six platforms are too few to map.
    assert {path.stem.removesuffix("-dark") for path in paths} == {
        "figure-7-12a-suite",
        "figure-12d-interference",
    }
    with pytest.raises(UsageError, match="factorization"):
        draw_embeddings(fit(world, LinearScaling()), runs, tmp_path)


def test_the_map_keeps_clusters_together() -> None:
    random = np.random.default_rng(0)
    centres = 5 * random.normal(size=(4, 12))
    label = np.repeat(np.arange(4), 25)
    points = flat_map(centres[label] + 0.3 * random.normal(size=(100, 12)), seed=0)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert np.mean(label[distance.argmin(1)] == label) > 0.98


def test_labels_from_text_and_from_one_hot_columns() -> None:
    runs = Runs.from_columns(
        workload=["a"],
        platform=["p"],
        runtime_seconds=[1.0],
        platform_features={
            "platform": ["p", "q", "r"],
            "runtime": ["x", None, "y"],
            "uarch=one": [1.0, -1.0, -1.0],
            "uarch=two": [-1.0, 1.0, -1.0],
        },
    )
    names = ("p", "q", "r", "s")
    assert labels_of(runs, "platform", names, "runtime") == ["x", "other", "y", "other"]
    assert labels_of(runs, "platform", names, "microarchitecture") == [
        "one",
        "two",
        "other",
        "other",
    ]
    assert labels_of(runs, "workload", ("a",), "suite") is None


def test_measured_interference_by_hand() -> None:
    runs = Runs.from_columns(
        workload=["a", "a", "a", "a", "b", "b"],
        platform=["p", "p", "p", "p", "p", "q"],
        corunners=[[], [], ["b"], ["b", "b"], ["a"], ["a"]],
        runtime_seconds=[1.0, 4.0, 4.0, 8.0, 9.0, 9.0],
    )
    names, slowdown, n = measured_interference(runs)
    assert names == ("p", "q")
    assert n.tolist() == [2, 0], "b never ran alone"
    assert slowdown[0] == pytest.approx((np.log(2) + np.log(4)) / 2)
    assert np.isnan(slowdown[1])


def test_learned_interference_is_the_norm_only_where_that_means_something(model: Model) -> None:
    paper = scrambled(model.predictor, "paper")
    learned, what = learned_interference(paper, seed=0)
    assert np.array_equal(learned, paper.interference_norm())
    assert "norm" in what
    other = scrambled(model.predictor, "product")
    embeddings = other.embeddings
    numb = embeddings.susceptibility.copy()
    numb[2] = 0
    intensity = embeddings.intensity.copy()
    intensity[3] *= 4
    embeddings = replace(embeddings, susceptibility=numb, intensity=intensity)
    other = replace(other, embeddings=embeddings)
    learned, what = learned_interference(other, seed=0)
    assert "slowdown" in what
    assert learned[3] > learned[2]
    assert other.interference_norm()[2] == 0


def test_rank_correlation() -> None:
    a = np.array([1.0, 2, 3, 4])
    assert rank_correlation(a, np.exp(a)) == pytest.approx(1)
    assert rank_correlation(a, -a) == pytest.approx(-1)
