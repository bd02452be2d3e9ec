"""Pictures in one line: what they show, that axes have units, and that they can be read on dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle._base.figure_files import save
from jostle._base.figure_style import COLOURS, plotting
from jostle.errors import UnknownName, UsageError
from jostle.usage import Snapshots
from tests.packages.models.levels import Levels, campaign

pyplot: Any = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed() -> Any:
    plotting()
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def runs() -> jostle.Runs:
    return campaign(12, 6)


@pytest.fixture(scope="module")
def model(runs: jostle.Runs) -> jostle.Model:
    return jostle.fit(runs, Levels(), seed=0)


def texts(axes: Any) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_slowdowns_show_measured_predicted_bound_and_both_rules(
    model: jostle.Model, runs: jostle.Runs
) -> None:
    axes = model.plot.slowdowns(runs, 0.7)
    together = int((runs.colocations.number_of_corunners > 0).sum())
    measured = axes.lines[[line.get_label() for line in axes.lines].index("measured")]
    assert len(measured.get_xdata()) == together
    assert any(text.startswith("rule: as long as alone (mean error") for text in texts(axes))
    assert any("number of workloads" in text for text in texts(axes))
    assert f"{together} runs: mean error" in axes.get_title()
    asked = runs.take(runs.colocations.number_of_corunners > 0)
    share = np.mean(asked.runtime_seconds <= model.bound(asked.colocations, 0.7).seconds)
    assert f"{100 * share:.1f}% under their 70% bound" in axes.get_title()
    predicted = axes.lines[[line.get_label() for line in axes.lines].index("predicted")]
    assert np.all(np.diff(predicted.get_ydata()) >= 0)


def test_accuracy_rings_what_lies_over_its_bound(model: jostle.Model, runs: jostle.Runs) -> None:
    axes = model.plot.accuracy(runs, 0.5)
    over = runs.runtime_seconds > model.bound(runs.colocations, 0.5).seconds
    assert len(axes.collections[-1].get_offsets()) == over.sum()
    axes.figure.canvas.draw()
    assert any(tick.get_text().endswith("s") for tick in axes.get_xticklabels())


def test_platforms_are_in_order_and_a_missing_bound_is_shown(model: jostle.Model) -> None:
    workload, *others = model.predictor.workload_names[:2]
    axes = model.plot.platforms(workload, others, 0.99999)
    assert "no valid bound" in texts(axes)
    (predicted,) = [line for line in axes.lines if line.get_label() == "predicted"]
    assert np.all(np.diff(predicted.get_xdata()) >= 0)
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert sorted(names) == sorted(model.predictor.platform_names)


def test_confidences_stop_where_no_bound_is_valid(model: jostle.Model) -> None:
    workload, platform = model.predictor.workload_names[0], model.predictor.platform_names[0]
    axes = model.plot.confidences(workload, platform)
    (bound,) = [line for line in axes.lines if line.get_label() == "bound"]
    assert np.all(np.isfinite(bound.get_ydata()))
    assert np.all(np.diff(bound.get_ydata()) >= 0)
    assert "no valid bound" in texts(axes)
    with pytest.raises(UsageError, match="the model knows"):
        model.plot.confidences(workload)


def test_pairs_are_times_over_times_alone(model: jostle.Model) -> None:
    names, platform = model.predictor.workload_names[:3], model.predictor.platform_names[0]
    axes = model.plot.pairs(platform, names)
    asked = jostle.Colocations.from_columns(
        workload=[names[0]] * 2, platform=[platform] * 2, corunners=[[names[1]], []]
    )
    beside, alone = model.predict(asked)
    np.testing.assert_allclose(axes.images[0].get_array()[0, 1], beside / alone)
    with pytest.raises(UnknownName):
        model.plot.pairs("moon")


def test_axes_given_are_drawn_on(model: jostle.Model, runs: jostle.Runs) -> None:
    _, mine = pyplot.subplots()
    assert model.plot.accuracy(runs, axes=mine) is mine
    assert runs.plot.slowdowns(axes=mine) is mine


def test_nothing_to_draw_says_so(model: jostle.Model, runs: jostle.Runs) -> None:
    with pytest.raises(UsageError, match="nothing to draw"):
        model.plot.slowdowns(runs.take(runs.colocations.number_of_corunners == 0))
    other = jostle.Runs.from_columns(workload=["x"], platform=["y"], runtime_seconds=[1.0])
    with pytest.raises(UsageError, match="nothing to draw"):
        model.plot.accuracy(other)
    with pytest.raises(UsageError, match="no slowdown is known"):
        other.plot.slowdowns()
    with pytest.raises(UsageError, match="no run with a runtime"):
        other.take([]).plot.runtimes()


def test_runs_show_their_slowdowns_and_runtimes() -> None:
    runs = jostle.Runs.from_columns(
        workload=["a"] * 5,
        platform=["p"] * 5,
        corunners=[[], [], ["b"], ["b"], ["b", "b"]],
        runtime_seconds=[1.0, 1.0, 2.0, 4.0, 5.0],
    )
    axes = runs.plot.slowdowns()
    drawn = [line.get_ydata() for line in axes.lines if line.get_marker() == "."]
    assert [values.tolist() for values in drawn] == [[2.0, 4.0], [5.0]]
    assert [text.get_text() for text in axes.texts] == ["3.00", "5.00"]
    axes = runs.plot.runtimes()
    assert texts(axes) == ["alone (2)", "with 1 beside (2)", "with 2 beside (1)"]
    assert all(line.get_ydata()[-1] == 100 for line in axes.lines)


def test_a_forecast_over_time_and_at_a_time() -> None:
    random = np.random.default_rng(0)
    clouds = [random.normal(20 + k, 1.0, (50, 2)) for k in range(4)]
    shots = Snapshots.from_arrays(np.arange(4.0), clouds, ["a", "b"])
    forecast = jostle.forecast(shots, jostle.Bridge(method="ot"))
    axes = forecast.plot.over_time(times=8)
    assert {"median", "measured", "5% to 95%"} <= set(texts(axes))
    (median,) = [line for line in axes.lines if line.get_label() == "median"]
    first, last = forecast.span_seconds
    assert median.get_ydata()[0] == forecast.at(first).quantile(0.5)[0]
    assert "(s)" in axes.get_xlabel()
    axes = forecast.plot.at((first + last) / 2)
    assert np.all(np.diff(axes.lines[0].get_ydata()) <= 0)
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(0, abs=1e-9)
    with pytest.raises(UnknownName):
        forecast.plot.over_time("nonsense")
    assert "components" in repr(forecast)
    assert "<table" in forecast._repr_html_()


def test_pictures_are_kept_for_light_and_for_dark_pages(tmp_path: Path) -> None:
    figure, axes = plotting().subplots()
    axes.plot([0, 1], [0, 1], color=COLOURS[0], label="reference")
    axes.text(0.5, 0.5, "words", bbox={"facecolor": "white"})
    axes.legend()
    paths = save(figure, tmp_path, "line")
    assert [path.name for path in paths] == ["line.png", "line.svg", "line-dark.svg"]
    light, dark = (path.read_text() for path in paths[1:])
    assert "#ffffff" in light
    assert "#ffffff" not in dark
    assert "#000000" not in dark
