"""The method as a value: what to learn from, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.alignment.learning._features import FORMS
from jostle.alignment.learning._learn import LEARNERS, TARGETS
from jostle.alignment.solo._samples import ALIGNMENTS
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.alignment._fitted import FittedAlignment
    from jostle.traces import Traces

Progress = Callable[[int, int, float], None]
AUTO = "auto"
SLOTS = ("pooled", "pair")
CORUNNERS = ("once", "loop")
REPEATS = ("quiet", "all")


@dataclass(frozen=True)
class Alignment:
    """Run time beside others from counter traces alone (Saeed et al., MLCAD 2021).

    traces: of every workload alone, and of windows to learn from. learner: ridge, lasso, elastic_net or
    linear_svr, or network. form: `linear` are the paper's features, `interacting` and `network` see
    `_features`. target: what is learned, the `instructions` of a period (the paper), the `slowdown` or
    the `speed`. alignment: see `_samples`. slots: one model for all (`pooled`, with the slot as a
    feature) or one per ordered `pair` of slots (the paper). counters: None selects them, in three steps.
    strength: of the regularisation, None chooses it by leaving out workload sets. corunners: whether they
    run `once`, or `loop` until the target ends. auto: the learner that errs least on workloads left out,
    with its usual form and target. period_seconds: None takes the traces' own. most_counters: the most
    that are selected. cut: of the tree of counters, None tries several. repeats: of programs and windows
    that were traced several times, take the `quiet` stretches (see `_quiet`), or `all` windows, and of
    the runs alone the first.
    """

    traces: Traces
    learner: str = AUTO
    form: str = AUTO
    target: str = AUTO
    alignment: str = "section"
    slots: str = "pooled"
    counters: tuple[str, ...] | None = None
    strength: float | None = None
    corunners: str = "once"
    period_seconds: float | None = None
    most_counters: int = 8
    cut: float | None = None
    repeats: str = "quiet"

    name = "alignment"

    def __post_init__(self) -> None:
        for kind, known in (
            ("learner", (AUTO, *LEARNERS)),
            ("form", (AUTO, *FORMS)),
            ("target", (AUTO, *TARGETS)),
            ("alignment", ALIGNMENTS),
            ("slots", SLOTS),
            ("corunners", CORUNNERS),
            ("repeats", REPEATS),
        ):
            if getattr(self, kind) not in known:
                raise UsageError(
                    f"unknown {kind} {getattr(self, kind)!r}", fix=f"One of {', '.join(known)}."
                )
        if (
            self.learner != AUTO
            and self.form != AUTO
            and (self.learner == "network") != (self.form == "network")
        ):
            raise UsageError("the network learner and the network form go together")
        if self.learner == "network" and self.target not in (AUTO, "slowdown"):
            raise UsageError("the network learns the slowdown")
        if self.learner == AUTO and (self.form, self.target) != (AUTO, AUTO):
            raise UsageError("a form or target without a learner", fix="Say the learner too.")
        for kind in ("strength", "period_seconds"):
            value = getattr(self, kind)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{kind} {value} is not above 0")
        if self.most_counters < 1:
            raise UsageError(f"most_counters must be at least 1, not {self.most_counters}")

    def resolved(self, learner: str = AUTO) -> tuple[str, str, str]:
        """(learner, form, target) without any `auto`; learner: what was chosen where this one is `auto`."""
        name = learner if self.learner == AUTO else self.learner
        network = name == "network"
        form = ("network" if network else "interacting") if self.form == AUTO else self.form
        usual = "speed" if form == "linear" else "slowdown"
        return name, form, usual if self.target == AUTO else self.target

    @property
    def settings(self) -> dict[str, Any]:
        """What a saved model says about how it was made: all but the traces."""
        return {name: value for name, value in vars(self).items() if name != "traces"}

    @classmethod
    def paper(cls, traces: Traces, **changes: Any) -> Alignment:
        """The method as printed: its features, target, slot pairs, and the printed alignment."""
        said: dict[str, Any] = {
            "learner": "ridge",
            "form": "linear",
            "target": "instructions",
            "slots": "pair",
            "alignment": "printed",
        }
        return cls(traces, **(said | changes))

    def fit(
        self, runs: Any, validation: Any, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedAlignment:
        """Learn from the windows of `runs` (jostle.Runs with the run_ids of the traces). `validation`
        chooses the counters. Raises NotEnoughRuns, and MissingExtra where scikit-learn is not
        installed."""
        from jostle.alignment._fit import fit

        return fit(self, runs, validation, seed, progress)
