"""The method as a value: what to fit, and how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.errors import UsageError
from jostle.factorization._equation import FORMS, LEAK

if TYPE_CHECKING:
    from jostle.factorization._fitted import FittedFactorization
    from jostle.runs import Runs, StoredRuns

OBJECTIVES = ("relative", "squared_log", "squared_relative")
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Factorization:
    """Matrix factorization of log runtime with interference (Pitot, MLSys 2025).

    form: how co-runners slow a workload down, one of `paper` (Eq. 9), `product`, `saturating`. rank:
    width of the workload and platform embeddings (the paper's r). types: interference types (s).
    type_rank: width of one type's factors where the form does not share the embeddings. hidden: width of
    the towers' two layers. Rank, type_rank and hidden are less where runs are few. table_width: learned
    features per name and per category (q). members: models trained from different seeds and averaged in
    log runtime; the average is one model again. Each of several leaves out runs of its own, which tell how
    errors spread, so that validation runs are trained on as well.
    corun_weight: weight of runs with co-runners in the loss (beta). quantiles: heads trained for these
    quantiles of the runtime, as further candidates for bounds (the paper's are .5 to .99); none by default,
    because the spread of errors gave tighter bounds on every data set tried. steps, learning_rate,
    weight_decay: None picks them by the number of runs. offset_decay: penalty on what a name's embedding has
    beside its features. use_workload_features, use_platform_features: whether the towers see
    the feature tables. objective: what training minimises, `relative` (the error that is reported,
    smoothed), `squared_log`, or `squared_relative`. baseline: whether the towers learn what the
    linear-scaling baseline leaves (the paper's log-residual objective) or everything. leak: slope of the
    paper form's activation below 0; 1 leaves the activation out.
    """

    form: str = "saturating"
    rank: int = 128
    types: int = 4
    type_rank: int = 4
    hidden: int = 256
    table_width: int = 8
    members: int = 1
    corun_weight: float = 1.0
    quantiles: tuple[float, ...] = ()
    steps: int | None = None
    weight_decay: float | None = None
    learning_rate: float | None = None
    offset_decay: float = 0.3
    batch: int = 4096
    use_workload_features: bool = True
    use_platform_features: bool = True
    objective: str = "relative"
    baseline: bool = True
    leak: float = LEAK

    name = "factorization"
    learns_from_disk = True
    tells_prior_apart = True

    @property
    def offers_choice(self) -> bool:
        """Whether there are quantile heads to choose from; the spread chooses its shape itself."""
        return bool(self.quantiles)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(
                f"unknown interference form {self.form!r}", fix=f"One of {', '.join(FORMS)}."
            )
        if self.objective not in OBJECTIVES:
            raise UsageError(
                f"unknown objective {self.objective!r}", fix=f"One of {', '.join(OBJECTIVES)}."
            )
        for name in ("rank", "types", "type_rank", "hidden", "table_width", "members", "batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps must be at least 1, not {self.steps}")
        if self.learning_rate is not None and not 0 < self.learning_rate < 1:
            raise UsageError(f"learning_rate must lie between 0 and 1, not {self.learning_rate}")
        if any(not 0 < q < 1 for q in self.quantiles):
            raise UsageError("quantiles must lie between 0 and 1")

    def fit(
        self,
        runs: Runs | StoredRuns,
        validation: Runs,
        *,
        seed: int = 0,
        progress: Progress | None = None,
        prior: Runs | None = None,
    ) -> FittedFactorization:
        """Learn from `runs`; `validation` picks the checkpoint and tells how errors spread. prior: runs
        measured elsewhere; every second member learns from `runs` alone.

        progress: called with (steps done, steps in all, loss). Raises NotEnoughRuns, and MissingExtra
        where JAX is not installed.
        """
        from jostle.errors import MissingExtra
        from jostle.runs import StoredRuns

        try:
            from jostle.factorization import _train  # noqa: F401  (JAX is an extra)
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "fit") from None
        if isinstance(runs, StoredRuns):
            from jostle.factorization._fit_stored import fit_stored

            return fit_stored(self, runs, validation, seed, progress)
        from jostle.factorization._fit import fit

        return fit(self, runs, validation, seed, progress, prior)
