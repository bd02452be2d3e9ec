"""What a base learner is, and which there are: entry points of one group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from jostle._base.plugins import load, names_of

if TYPE_CHECKING:
    import numpy as np

    from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows
    from jostle.learn.training._training_data import TrainingRuns

GROUP = "jostle.learners"
# Answers that were learned from no run beside others, whoever gives them.
NO_SLOWDOWN, TURNS_ALONE = "none", "turns"


class FittedBaseLearner(Protocol):
    """What a base learner has learned: one or more answers to every question. Immutable."""

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each of its k answers, the same for the same settings."""
        ...

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns over the time alone, of rows in the campaign's codes."""
        ...

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]: ...


class BaseLearner(Protocol):
    """Frozen settings of one idea. needs: of `runs`, `traces`, `profiles` and `probes`, those that it reads.

    It may have or be, besides:

    inputs(campaign)
        (n,) bool, runs that it reads as features of workloads. Nobody is asked about these, and others do not
        learn from them; where there are some, it is asked though no other run is beside others.
    trace_seconds(data, learned)
        {workload: s alone} of traces, so that workloads are known that never ran. learned: what it may keep.
    simulates : bool
        How members share what they run on: it is believed about larger sets than any that ran, and asked
        where nothing ran beside others.
    leaves_out : bool
        In closed form: what it has learned from all has `without(part, wanted)`, the answers called so as
        learned from that part of the campaign.
    predicts_solo : bool
        What is learned has `log_solo()`, (platforms, workloads) log seconds alone, of cells that never ran
        alone, too, and `in_unit(seconds)` for rows of another unit; one such learner is asked.
    usual : dict of str to int
        Answers that apply where nothing can be tried, with a rank: those of the least rank that are there.
    adds_up(label) : bool
        Whether this answer may be believed about larger sets than any that ran, though nothing tested it.
    learns_from_all : bool
        Of very many runs, or it costs little; others learn from some first.

    What is learned may have `notes`.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        """Name the answers that the learner would give for this campaign; none if it has nothing to say."""
        ...

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedBaseLearner:
        """Learn the answers called so from the campaign's runs. best: what is kept, for which more work is
        done than for a trial."""
        ...

    @classmethod
    def restore(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedBaseLearner:
        """Restore a fitted learner from what its to_arrays gave."""
        ...


def learner_names() -> tuple[str, ...]:
    """List the names of all installed base learners, sorted."""
    return names_of(GROUP)


def learner_named(name: str) -> type[BaseLearner]:
    """Raises UnknownName for one that no installed package brings."""
    return load(GROUP, name)
