"""The contract suite: what every method must hold, tried on data of the caller's.

    jostle.learn.check(Mine(), jostle.read("fleet/"))     # raises ContractBroken, or returns what it tried

It fits the method some four times, so give it quick settings and small data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from jostle._base.tensors import write_document
from jostle.conformal import Calibration, uncertainty_of
from jostle.data import Colocations, Runs
from jostle.errors import JostleError, UnknownName
from jostle.learn.contract._data import Data
from jostle.learn.contract._method_contract import Method
from jostle.learn.contract._method_registry import METHOD_PARTS
from jostle.learn.contract._prepared import HeldOut, Prepared, hold_out

SCHEMA = "contract-check/v1"
PART = "part_"
MOST_ASKED = 60  # co-locations
SINGLES = 5  # that are asked about one by one, too
FITTED_PARTS = ("workload_names", "platform_names", "notes", "predict", "evidence", "to_arrays")
# At which bounds are compared.
CONFIDENCES = (0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.99, 0.999)
# What a fresh process runs: the class by its place, the saved arrays, the questions, the answers out.
FRESH = """
import sys
from importlib import import_module
import numpy as np
from jostle._base.tensors import read_document
from jostle.data import Colocations

folder, module, name = sys.argv[1:]
document, arrays = read_document(folder, "fitted", "contract-check/v1", fix="")
fitted = getattr(import_module(module), name).restore(arrays, document["fitted"])
asked = document["asked"]
np.save(folder + "/answers.npy", fitted.predict(Colocations.from_columns(**asked)))
"""


class ContractBroken(AssertionError):
    """A method breaks the contract; the text has a line for each part that it breaks."""


def check(method: Method[Any], data: Any, *, seed: int = 0) -> tuple[str, ...]:
    """Try every part of the contract on a method and data (as Data.of takes it).

    The data should hold some dozens of runs, alone and with co-runners. Returns the names of the parts
    tried. Raises ContractBroken with every part that does not hold.
    """
    trial, tried, broken = _Trial(method, Data.of(data), seed), [], []
    for name in vars(_Trial):
        if not name.startswith(PART):
            continue
        tried.append(name.removeprefix(PART).replace("_", " "))
        try:
            getattr(trial, name)()
        except Exception as error:  # whatever goes wrong inside a method is a finding about it
            broken.append(f"{tried[-1]}: {type(error).__name__}: {error}")
    if broken:
        raise ContractBroken("\n".join(broken))
    return tuple(tried)


@dataclass(frozen=True)
class _Trial:
    """A method on its data, fitted when first needed, and the parts of the contract that it must hold."""

    method: Method[Any]
    data: Data
    seed: int

    @cached_property
    def prepared(self) -> Prepared:
        return self.method.prepare(self.data)

    @cached_property
    def held(self) -> HeldOut:
        return hold_out(self.prepared, self.seed, self.prepared.calibrate_by)

    @cached_property
    def fitted(self) -> Any:
        return self.fit()

    def fit(self) -> Any:
        learn = self.held.learn.with_validation(self.held.validation)
        return self.method.fit(learn, seed=self.seed)

    @cached_property
    def asked(self) -> Colocations:
        """Co-locations spread over those prepared, with and without co-runners."""
        every = self.prepared.runs.colocations
        order = np.argsort(every.number_of_corunners, kind="stable")
        size = min(MOST_ASKED, len(order))
        return every.take(order[np.linspace(0, len(order) - 1, size).astype(int)])

    @cached_property
    def answers(self) -> np.ndarray:
        """Predictions of what is asked."""
        return self.fitted.predict(self.asked)

    def part_is_a_frozen_record_with_a_name_and_needs(self) -> None:
        method: Any = self.method
        _require(is_dataclass(method), "the settings are no dataclass")
        _require(vars(type(method))["__dataclass_params__"].frozen, "the settings are not frozen")
        _require(isinstance(method.name, str) and method.name != "", "the method has no name")
        odd = set(method.needs) - {"runs", "traces", "profiles"}
        _require(not odd, f"it needs {', '.join(sorted(odd))}, which no data holds")
        _require_parts(method, METHOD_PARTS)

    def part_what_is_fitted_has_all_parts(self) -> None:
        _require_parts(self.fitted, FITTED_PARTS)
        for names in (self.fitted.workload_names, self.fitted.platform_names):
            same = list(names) == sorted(set(names))
            _require(same, "names are not sorted, or one is there twice")

    def part_inputs_are_never_calibrated_on(self) -> None:
        inputs = set(_ids(self.prepared.runs)[self.prepared.inputs])
        for part in (self.held.validation, self.held.calibration):
            out = inputs & set(_ids(part))
            _require(not out, f"{len(out)} inputs were held out")

    def part_answers_are_seconds(self) -> None:
        seconds = self.answers
        _require(seconds.shape == (len(self.asked),), f"predict gave the shape {seconds.shape}")
        known = seconds[~np.isnan(seconds)]
        _require(len(known) > 0, "nothing that was learned from is answered")
        _require(
            bool(((known > 0) & np.isfinite(known)).all()), "a runtime is not above 0 and finite"
        )

    def part_order_of_rows_does_not_matter(self) -> None:
        order = np.random.default_rng(self.seed).permutation(len(self.asked))
        _same(self.fitted.predict(self.asked.take(order)), self.answers[order])

    def part_order_of_corunners_does_not_matter(self) -> None:
        columns = self.asked.to_columns()
        turned = [list(reversed(names)) for names in columns["corunners"]]
        query = Colocations.from_columns(
            workload=columns["workload"], platform=columns["platform"], corunners=turned
        )
        _same(self.fitted.predict(query), self.answers)

    def part_many_at_once_equal_one_by_one(self) -> None:
        last = len(self.asked) - 1
        for at in np.linspace(0, last, min(SINGLES, last + 1)).astype(int):
            _same(self.fitted.predict(self.asked.take([at])), self.answers[[at]])

    def part_the_same_seed_gives_the_same_answers(self) -> None:
        _same(self.fit().predict(self.asked), self.answers, 0.0)

    def part_a_fresh_process_answers_from_what_was_saved(self) -> None:
        arrays, document = self.fitted.to_arrays()
        kind = type(self.method)
        with tempfile.TemporaryDirectory() as folder:
            whole = {"fitted": document, "asked": self.asked.to_columns()}
            write_document(folder, "fitted", SCHEMA, whole, arrays)
            done = subprocess.run(
                [sys.executable, "-c", FRESH, folder, kind.__module__, kind.__qualname__],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                check=False,
            )
            _require(done.returncode == 0, done.stderr.strip()[-500:])
            _same(np.load(Path(folder) / "answers.npy"), self.answers, 0.0)

    def part_one_run_is_learned_from_or_refused(self) -> None:
        one = self.data.with_runs(self.prepared.runs.take([0]))
        with suppress(JostleError):
            prepared = self.method.prepare(one)
            self.method.fit(prepared, seed=self.seed).predict(prepared.runs.colocations)

    def part_names_never_met_are_refused_or_counted_as_such(self) -> None:
        workload, platform, _ = self.asked.row(0)
        odd = "a name that nobody gave"
        none: list[str] = []
        for one, place, beside in (
            (odd, platform, none),
            (workload, odd, none),
            (workload, platform, [odd]),
        ):
            query = Colocations.from_columns(workload=[one], platform=[place], corunners=[beside])
            with suppress(UnknownName):
                self.fitted.predict(query)
                runs = self.fitted.evidence(query)
                never = 0 in (runs.workload[0], runs.platform[0], runs.corunner[0])
                _require(
                    never, f"{one} on {place} beside {beside} is answered as if it had been met"
                )

    def part_uncertainty_is_of_the_prediction(self) -> None:
        told = uncertainty_of(self.fitted, self.asked)
        again = uncertainty_of(self.fitted, self.asked.take([0]))
        shape = (len(told.slopes), len(self.asked))
        _require(told.log_widths.shape == shape, f"widths have the shape {told.log_widths.shape}")
        _require(len(again.slopes) == len(told.slopes), "the widths differ from call to call")
        _require(bool(np.isfinite(told.log_widths).all()), "a width is not finite")
        same = np.allclose(
            np.exp(told.log_runtime), self.answers, rtol=1e-6, atol=0, equal_nan=True
        )
        _require(same, "what is unsure is not the prediction")

    def part_bounds_grow_with_confidence(self) -> None:
        parts = self.held.validation, self.held.calibration
        calibration = Calibration.fit(self.fitted, *parts, unit=self.prepared.calibrate_by)
        before = np.zeros(len(self.asked))
        for confidence in CONFIDENCES:
            seconds = calibration.bound(self.fitted, self.asked, confidence).seconds
            _require(bool((seconds >= before).all()), f"a bound falls on the way to {confidence}")
            before = seconds

    def part_evidence_counts_what_was_learned_from(self) -> None:
        learned = self.held.learn.runs.colocations
        evidence = self.fitted.evidence(learned)
        _require(len(evidence) == len(learned), "evidence is not aligned with what is asked")
        counted = (evidence.workload > 0) & (evidence.platform > 0)
        _require(bool(counted.all()), "a run that was learned from is not counted")

    def part_rows_held_out_change_no_answer(self) -> None:
        runs = self.prepared.runs
        test = ~np.isin(_ids(runs), _ids(self.held.learn.runs))
        columns = {name: runs.table.column(name) for name in runs.table.column_names}
        columns["runtime_seconds"] = runs.runtime_seconds * np.where(test, 7.0, 1.0)
        changed = Runs.from_columns(
            **columns,
            workload_features=runs.workload_features,
            platform_features=runs.platform_features,
        )
        prepared = self.method.prepare(self.data.with_runs(changed)).take(np.flatnonzero(~test))
        learn = prepared.with_validation(self.held.validation)
        fitted = self.method.fit(learn, seed=self.seed)
        _same(fitted.predict(self.asked), self.answers, 0.0)


def _ids(runs: Runs) -> np.ndarray:
    return np.array(runs.table.column("run_id").to_pylist(), str)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ContractBroken(otherwise)


def _require_parts(value: Any, parts: tuple[str, ...]) -> None:
    missing = [part for part in parts if not hasattr(value, part)]
    _require(not missing, f"{', '.join(missing)} is missing")


def _same(answers: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(answers, expected, rtol=tolerance, atol=0.0, equal_nan=True)
