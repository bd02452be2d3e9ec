"""The paper's studies: which methods stand side by side in each, and which one is the reference.

Source: Pitot (MLSys 2025), Sec. 5.2 and 5.3, App. B.4 and D.2, but for `form`. Every variant is a value
object, so that a study is data and a result can say exactly what made it. The interference study has no
switch of its own in the method: `discard` and `ignore` change what the method gets to see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.learn.learners.network import Factorization


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


# Ablations of the error start from the method without quantile heads: they need none, and train faster.
# {name: (title, {variant: what differs}, settings of all of them)}; the first variant is the reference.
ABLATIONS: dict[str, tuple[str, dict[str, dict[str, Any]], dict[str, Any]]] = {
    "objective": (
        "Training objective",
        {
            "relative error, residual": {"objective": "relative", "baseline": True},
            "log-residual": {"objective": "squared_log", "baseline": True},
            "log": {"objective": "squared_log", "baseline": False},
            "proportional": {"objective": "squared_relative", "baseline": False},
        },
        {},
    ),
    "features": (
        "Side information",
        {
            "both": {"use_workload_features": True, "use_platform_features": True},
            "platform": {"use_workload_features": False, "use_platform_features": True},
            "workload": {"use_workload_features": True, "use_platform_features": False},
            "none": {"use_workload_features": False, "use_platform_features": False},
        },
        {},
    ),
    "activation": (
        "Interference activation",
        {"leaky ReLU": {"leak": 0.1}, "identity": {"leak": 1.0}},
        {"form": "paper"},
    ),
}
# {symbol: (field, title, values)}; the reference is the method's own value.
SWEEPS = {
    "q": ("table_width", "Learned features", (0, 1, 2, 4, 8)),
    "r": ("rank", "Embedding dimension", (8, 16, 32, 64, 128)),
    "s": ("types", "Interference types", (1, 2, 4, 8)),
    "beta": ("corun_weight", "Weight of runs with co-runners", (0.1, 0.2, 0.5, 1.0)),
}
FORMS = ("saturating", "product", "paper")  # the paper knows its own alone
COMPARISON_NAMES = (
    "baselines",
    "objective",
    "features",
    "interference",
    "form",
    "activation",
    "quantiles",
    *SWEEPS,
)


def comparison_named(name: str, method: Factorization | None = None) -> Comparison:
    """A study by its name in COMPARISON_NAMES.

    method: what the ablations start from, Factorization() by default. Raises UsageError for an unknown name.
    """
    from jostle.learn.learners.network import Factorization
    from studies.rivals.blind import Blind

    if name not in COMPARISON_NAMES:
        raise UsageError(f"unknown study {name!r}", fix=f"One of {', '.join(COMPARISON_NAMES)}.")
    start = method or Factorization()
    plain = replace(start, quantiles=())
    reference = None
    if name == "baselines":
        title, variants = "Against baselines", _baselines(start)
    elif name == "quantiles":
        # One model with heads serves every rule of choosing among them: each is calibrated on its own.
        heads = replace(start, quantiles=start.quantiles or QUANTILES)
        title, variants = "Quantile choice", {"factorization": heads}
    elif name == "interference":
        title = "Runs with co-runners"
        variants = {"aware": plain} | {how: Blind(plain, how) for how in ("discard", "ignore")}
    elif name == "form":
        title, reference = "Form of the slowdown", plain.form
        variants = {form: replace(plain, form=form) for form in FORMS}
    elif name in SWEEPS:
        field, title, values = SWEEPS[name]
        own = getattr(plain, field)
        reference = f"{name} = {own:g}"
        every = sorted({*values, own})
        variants = {f"{name} = {value:g}": replace(plain, **{field: value}) for value in every}
    else:
        title, changes, shared = ABLATIONS[name]
        variants = {label: replace(plain, **shared, **more) for label, more in changes.items()}
    named = tuple(NamedMethod(label, variant) for label, variant in variants.items())
    return Comparison(name, title, named, reference or named[0].name)


def _baselines(method: Factorization) -> dict[str, Any]:
    from studies.rivals.boosting import GradientBoosting
    from studies.rivals.linear import LinearScaling

    return {
        "factorization": method,
        "gradient boosting": GradientBoosting(),
        "linear scaling": LinearScaling(),
    }
