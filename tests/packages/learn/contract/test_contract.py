"""The contract suite on Jostle's own methods, and that it finds what is broken."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from jostle.data import GPUS, Colocations, Runs, tasks_from_rows
from jostle.learn import (
    ContractBroken,
    Data,
    Ensemble,
    FromCounts,
    Method,
    Prepared,
    RunCounts,
    check,
    method_named,
    method_names,
)
from jostle.learn.learners.bags import Bag
from jostle.learn.learners.counters import Alignment
from jostle.learn.learners.latent_factors import Slowdown
from jostle.learn.learners.network import Factorization
from jostle.learn.learners.simulation import Accelerator
from jostle.learn.learners.stressors import Probes
from tests.packages.learn.counters.traced_samples import COUNTERS, traced_programs
from tests.packages.learn.stressors.probes_samples import law

ON_RUNS: dict[str, Method[Any]] = {
    "bag": Bag(trees=5),
    "bag, one tree and a CPU side": Bag("tree", "slowdown", cpu_platform="p2"),
    "ensemble": Ensemble(learners=("rules",)),
    "factorization": Factorization(rank=8, hidden=16, steps=20),
    "factorization, paper form": Factorization(form="paper", rank=8, hidden=16, steps=20),
    "slowdown": Slowdown(rank=2, members=1, steps=20),
}


@pytest.mark.parametrize("method", ON_RUNS.values(), ids=ON_RUNS.keys())
def test_methods_that_learn_from_runs(method: Method[Any], runs: Runs) -> None:
    assert len(check(method, runs)) >= 15


def test_the_method_that_learns_from_profiles(runs: Runs) -> None:
    shape = {"blocks": 320, "threads_per_block": 256, "registers_per_thread": 32}
    profiles = {}
    for number, name in enumerate(runs.colocations.workload_names):
        copy = {"kind": "htod", "start_seconds": 0.0, "duration_seconds": 0.3, "pinned": False}
        kernel = {"kind": "kernel", "start_seconds": 0.4, "duration_seconds": 0.5 + 0.1 * number}
        rows = [copy, {**kernel, **shape}]
        profiles[name] = tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"])
    assert len(check(Accelerator(), Data(runs, profiles=profiles))) >= 15


def test_the_method_that_learns_from_traces() -> None:
    method = Alignment(learner="phases", counters=COUNTERS)
    assert len(check(method, Data(traces=traced_programs()))) >= 15


def test_the_method_that_learns_from_probes() -> None:
    runs, _ = law(6, 4, triples=12, noise=0.01)
    assert len(check(Probes(), Data(runs))) >= 14


def test_every_installed_method_is_found_and_tried() -> None:
    tried = {method.name for method in ON_RUNS.values()} | {"accelerator", "alignment", "probes"}
    for name in method_names():
        assert method_named(name).name == name
    assert tried == set(method_names())


class Median(FromCounts):
    """What Broken has learned: one median."""

    notes = ()

    def __init__(self, seconds: float, counts: RunCounts, is_shifting: bool) -> None:
        self.seconds, self.counts, self.is_shifting = seconds, counts, is_shifting
        self.workload_names, self.platform_names = counts.workload_names, counts.platform_names

    def predict(self, asked: Colocations) -> np.ndarray:
        asked.codes_in(self.workload_names, self.platform_names)
        place = np.arange(len(asked)) if self.is_shifting else np.zeros(len(asked))
        return self.seconds * (1 + place)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, document = self.counts.to_arrays()
        return arrays, document | {"seconds": self.seconds, "is_shifting": self.is_shifting}


@dataclass(frozen=True)
class Broken:
    """One median for all, which does not hold all that a method should, in a way that is chosen."""

    how: Annotated[str, "What is broken: nothing, order, seed, restore or inputs."] = "nothing"

    name: ClassVar[str] = "broken"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    def prepare(self, data: Data) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> Median:
        runs = prepared.together() if self.how != "leak" else prepared.data.runs
        noise = np.random.default_rng().random() if self.how == "seed" else 0.0
        seconds = float(np.mean(runs.runtime_seconds)) + noise
        return Median(seconds, RunCounts.of(runs), self.how == "order")

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> Median:
        counts = RunCounts.from_arrays(arrays, document)
        return Median(document["seconds"] * 2, counts, document["is_shifting"])


def test_the_suite_finds_what_is_broken(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ContractBroken, match="a fresh process answers from what was saved"):
        check(Broken("nothing"), runs)  # doubled by restore
    monkeypatch.delattr(subprocess, "run")  # once is enough: the others show before
    for how, part in {
        "order": "order of rows does not matter",
        "seed": "the same seed gives the same answers",
        "leak": "rows held out change no answer",
    }.items():
        with pytest.raises(ContractBroken, match=part):
            check(Broken(how), runs)
