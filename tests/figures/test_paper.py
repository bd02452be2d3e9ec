"""The whole paper in one command, and Pitot as it was published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import studies
from jostle.data import Colocations, Runs
from jostle.errors import UsageError
from jostle.learn.learners.network import Factorization
from studies.factorization.embedding import log_slowdowns
from studies.factorization.study import FactorizationStudy
from studies.rivals.published import PublishedPitot


def test_the_published_equation_by_hand() -> None:
    """Eq. 9 with three heads, looped over in plain Python."""
    import jax

    method = PublishedPitot(rank=3, types=2, hidden=4, own=1, quantiles=(0.5, 0.9, 0.99))
    random = np.random.default_rng(0)
    features = (random.normal(size=(4, 2)), random.normal(size=(3, 5)))
    p = jax.jit(method.start)(jax.random.key(0), features)
    rows = (np.array([0, 1, 3]), np.array([2, 0, 1]), np.array([[-1, -1], [2, -1], [1, 1]]))
    found = np.asarray(jax.jit(method.answer)(p, features, rows))

    def tower(side: str, table: np.ndarray) -> np.ndarray:
        x = np.hstack([table, p[side]["own"]])
        for w, b in p[side]["layers"][:-1]:
            x = np.asarray(jax.nn.gelu(x @ np.asarray(w) + np.asarray(b)))
        w, b = p[side]["layers"][-1]
        return x @ np.asarray(w) + np.asarray(b)

    workloads = tower("workload", features[0]).reshape(4, 3, 3)
    platforms = tower("platform", features[1]).reshape(3, 5, 3)
    for n, (i, j) in enumerate(zip(rows[0], rows[1], strict=True)):
        main, suffers, presses = platforms[j][0], platforms[j][1:3], platforms[j][3:]
        for head in range(3):
            w = workloads[i, head]
            expected = w @ main
            others = [k for k in rows[2][n] if k >= 0]
            for t in range(2):
                pressure = sum(workloads[k].mean(0) @ presses[t] for k in others)
                expected += (w @ suffers[t]) * (pressure if pressure > 0 else 0.1 * pressure)
            assert found[head, n] == pytest.approx(expected, abs=1e-4)


def test_the_pinball_loss_is_least_at_the_quantile() -> None:
    method = PublishedPitot(quantiles=(0.8,))
    target = np.random.default_rng(1).normal(size=2000)
    asked = np.linspace(-2, 2, 401)
    losses = [float(method.loss(np.full((1, 2000), a), target)) for a in asked]
    assert asked[int(np.argmin(losses))] == pytest.approx(np.quantile(target, 0.8), abs=0.03)


def test_heads_are_ways_to_bound(world: Runs, published: tuple[PublishedPitot, Any]) -> None:
    _, answers = published
    found = answers.candidates(world.colocations)
    assert found.names == ("same everywhere", "quantile 0.5", "quantile 0.95")
    assert np.allclose(np.exp(found.centre[0]), answers.predict(world.colocations))
    under = (np.log(world.runtime_seconds) <= found.centre).mean(1)
    assert under[2] > under[1]
    strange = Colocations.from_columns(workload=["nobody"], platform=["nowhere"])
    assert np.isnan(answers.predict(strange)).all()


def test_slowdowns_are_against_the_mean_alone() -> None:
    runs = Runs.from_columns(
        workload=["a", "a", "a", "b"],
        platform=["p"] * 4,
        corunners=[[], [], ["b", "b"], ["a"]],
        runtime_seconds=[1.0, 4.0, 6.0, 1.0],
    )
    slowdown, degree = log_slowdowns(runs)
    assert np.exp(slowdown) == pytest.approx([3.0])
    assert degree.tolist() == [2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("sketches")
def test_the_paper_in_one_command(dataset: Path, tmp_path: Path) -> None:
    words = ["factorization", str(dataset), "--paper", str(tmp_path / "paper")]
    words += ["--observed", ".5", "--replicates", "1", "--steps", "20", "--workers", "1"]
    done = CliRunner().invoke(studies.application(), [*words, "--studies", "activation"])
    assert done.exit_code == 0, done.output
    assert "2 fits to do, roughly" in done.stderr
    page = (tmp_path / "paper" / "index.html").read_text()
    assert "<td>identity" in page
    for name in ("figure-1-interference", "figure-4d-activation", "figure-12d-interference"):
        assert f"figures/{name}.svg" in page
        assert (tmp_path / "paper" / "figures" / f"{name}.svg").exists()
    again = CliRunner().invoke(studies.application(), [*words, "--studies", "activation"])
    assert "all fits are in" in again.stderr
    wrong = CliRunner().invoke(studies.application(), [*words, "--studies", "figures"])
    assert isinstance(wrong.exception, UsageError)


def test_a_study_without_learned_features_is_one_of_the_sweep() -> None:
    assert Factorization(table_width=0).table_width == 0
    with pytest.raises(UsageError, match="table_width"):
        Factorization(table_width=-1)


def test_splits_and_paper_do_not_go_together(tmp_path: Path) -> None:
    study = FactorizationStudy(tmp_path, paper=tmp_path, splits=tmp_path)
    with pytest.raises(UsageError, match="together"):
        study.run()
