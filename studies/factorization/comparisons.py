"""The paper's studies: which methods stand side by side in each, and which one is the reference.

Source: Pitot (MLSys 2025), Sec. 5.2 and 5.3, App. B.4 and D.2, but for `form`. Every variant is a value
object, so that a study is data and a result can say exactly what made it. The interference study has no
switch of its own in the method: `discard` and `ignore` change what the method gets to see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.factorization import Factorization


# The paper's heads, denser where a little more quantile widens a bound a lot (App. B.2).
QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True)
class NamedMethod:
    """A method under the name that tables and figures show."""

    name: str
    method: Any


@dataclass(frozen=True)
class Comparison:
    """variants: in the order of the legend. reference: the name that is drawn boldest."""

    name: str
    title: str
    variants: tuple[NamedMethod, ...]
    reference: str


def comparison_named(
    name: str, method: Factorization | None = None, *, baseline_steps: int | None = None
) -> Comparison:
    """A study by its name in COMPARISON_NAMES.

    method: what the ablations start from, Factorization() by default. baseline_steps: training steps of
    the neural baselines, the paper's 20 000 by default. Raises UsageError for an unknown name.
    """
    from jostle.factorization import Factorization

    if name not in _STUDIES:
        raise UsageError(f"unknown study {name!r}", fix=f"One of {', '.join(COMPARISON_NAMES)}.")
    return _STUDIES[name](method or Factorization(), baseline_steps)


def _baselines(method: Factorization, steps: int | None) -> Comparison:
    from studies.rivals.boosting import GradientBoosting
    from studies.rivals.linear import LinearScaling
    from studies.rivals.neural import Attention, MatrixFactorization, NeuralNetwork
    from studies.rivals.published import PublishedPitot

    set_steps: dict[str, Any] = {} if steps is None else {"steps": steps}
    variants = (
        NamedMethod("factorization", method),
        NamedMethod("Pitot as published", PublishedPitot(**set_steps)),
        NamedMethod("gradient boosting", GradientBoosting()),
        NamedMethod("attention", Attention(**set_steps)),
        NamedMethod("neural network", NeuralNetwork(**set_steps)),
        NamedMethod("matrix factorization", MatrixFactorization(**set_steps)),
        NamedMethod("linear scaling", LinearScaling()),
    )
    return Comparison("baselines", "Against baselines", variants, "factorization")


def _plain(method: Factorization) -> Factorization:
    """The method without quantile heads: ablations of the error need none, and train faster."""
    return replace(method, quantiles=())


def _objective(method: Factorization, _: int | None) -> Comparison:
    plain = _plain(method)
    variants = (
        NamedMethod(
            "relative error, residual", replace(plain, objective="relative", baseline=True)
        ),
        NamedMethod("log-residual", replace(plain, objective="squared_log", baseline=True)),
        NamedMethod("log", replace(plain, objective="squared_log", baseline=False)),
        NamedMethod("proportional", replace(plain, objective="squared_relative", baseline=False)),
    )
    return Comparison("objective", "Training objective", variants, "relative error, residual")


def _features(method: Factorization, _: int | None) -> Comparison:
    plain = _plain(method)

    def sees(workload: bool, platform: bool) -> Factorization:
        return replace(plain, use_workload_features=workload, use_platform_features=platform)

    variants = (
        NamedMethod("both", sees(True, True)),
        NamedMethod("platform", sees(False, True)),
        NamedMethod("workload", sees(True, False)),
        NamedMethod("none", sees(False, False)),
    )
    return Comparison("features", "Side information", variants, "both")


def _interference(method: Factorization, _: int | None) -> Comparison:
    from studies.rivals.blind import Blind

    plain = _plain(method)
    variants = (
        NamedMethod("aware", plain),
        NamedMethod("discard", Blind(plain, "discard")),
        NamedMethod("ignore", Blind(plain, "ignore")),
    )
    return Comparison("interference", "Runs with co-runners", variants, "aware")


def _activation(method: Factorization, _: int | None) -> Comparison:
    plain = replace(_plain(method), form="paper")
    variants = (
        NamedMethod("leaky ReLU", replace(plain, leak=0.1)),
        NamedMethod("identity", replace(plain, leak=1.0)),
    )
    return Comparison("activation", "Interference activation", variants, "leaky ReLU")


def _form(method: Factorization, _: int | None) -> Comparison:
    """Not in the paper, which knows its own form only."""
    plain = _plain(method)
    variants = tuple(
        NamedMethod(form, replace(plain, form=form)) for form in ("saturating", "product", "paper")
    )
    return Comparison("form", "Form of the slowdown", variants, plain.form)


def _quantiles(method: Factorization, _: int | None) -> Comparison:
    """One model with heads serves every rule of choosing among them: each is calibrated on its own."""
    heads = replace(method, quantiles=method.quantiles or QUANTILES)
    return Comparison(
        "quantiles", "Quantile choice", (NamedMethod("factorization", heads),), "factorization"
    )


def _sweep(
    symbol: str, field: str, title: str, values: tuple[float, ...]
) -> Callable[..., Comparison]:
    def build(method: Factorization, _: int | None) -> Comparison:
        plain = _plain(method)
        own = getattr(plain, field)
        every = sorted({*values, own})
        variants = tuple(
            NamedMethod(f"{symbol} = {value:g}", replace(plain, **{field: value}))
            for value in every
        )
        return Comparison(symbol, title, variants, f"{symbol} = {own:g}")

    return build


_STUDIES: dict[str, Callable[[Any, int | None], Comparison]] = {
    "baselines": _baselines,
    "objective": _objective,
    "features": _features,
    "interference": _interference,
    "form": _form,
    "activation": _activation,
    "quantiles": _quantiles,
    "q": _sweep("q", "table_width", "Learned features", (0, 1, 2, 4, 8)),
    "r": _sweep("r", "rank", "Embedding dimension", (8, 16, 32, 64, 128)),
    "s": _sweep("s", "types", "Interference types", (1, 2, 4, 8)),
    "beta": _sweep("beta", "corun_weight", "Weight of runs with co-runners", (0.1, 0.2, 0.5, 1.0)),
}
COMPARISON_NAMES = tuple(_STUDIES)
