"""The contract suite: what every method must hold, tried on data of the caller's.

    jostle.learn.check(Mine(), jostle.read("fleet/"))     # raises ContractBroken, or returns what it tried

It fits the method some four times, so give it quick settings and small data.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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
MOST_ASKED = 60
SINGLES = 5
FITTED_PARTS = ("workload_names", "platform_names", "notes", "predict", "evidence", "to_arrays")
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
    trial = _Trial(method, Data.of(data), seed)
    broken = []
    for name, part in PARTS.items():
        try:
            part(trial)
        except Exception as error:  # whatever goes wrong inside a method is a finding about it
            broken.append(f"{name}: {type(error).__name__}: {error}")
    if broken:
        raise ContractBroken("\n".join(broken))
    return tuple(PARTS)


@dataclass(frozen=True)
class _Trial:
    """A method on its data, fitted when first needed."""

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


def _is_a_frozen_record_with_a_name_and_needs(trial: _Trial) -> None:
    method = trial.method
    _require(dataclasses.is_dataclass(method), "the settings are no dataclass")
    _require(vars(type(method))["__dataclass_params__"].frozen, "the settings are not frozen")
    _require(isinstance(method.name, str) and method.name != "", "the method has no name")
    odd = set(method.needs) - {"runs", "traces", "profiles"}
    _require(not odd, f"it needs {', '.join(sorted(odd))}, which no data holds")
    _require_parts(method, METHOD_PARTS)


def _what_is_fitted_has_all_parts(trial: _Trial) -> None:
    _require_parts(trial.fitted, FITTED_PARTS)
    for names in (trial.fitted.workload_names, trial.fitted.platform_names):
        _require(list(names) == sorted(set(names)), "names are not sorted, or one is there twice")


def _inputs_are_never_calibrated_on(trial: _Trial) -> None:
    prepared, held = trial.prepared, trial.held
    ids = np.array(prepared.runs.table.column("run_id").to_pylist(), object)
    inputs = set(ids[prepared.inputs].tolist())
    for part in (held.validation, held.calibration):
        out = set(part.table.column("run_id").to_pylist())
        _require(not out & inputs, f"{len(out & inputs)} inputs were held out")


def _answers_are_seconds(trial: _Trial) -> None:
    seconds = trial.fitted.predict(trial.asked)
    _require(seconds.shape == (len(trial.asked),), f"predict gave the shape {seconds.shape}")
    known = seconds[~np.isnan(seconds)]
    _require(len(known) > 0, "nothing that was learned from is answered")
    _require(bool(((known > 0) & np.isfinite(known)).all()), "a runtime is not above 0 and finite")


def _order_of_rows_does_not_matter(trial: _Trial) -> None:
    order = np.random.default_rng(trial.seed).permutation(len(trial.asked))
    _same(trial.fitted.predict(trial.asked.take(order)), trial.fitted.predict(trial.asked)[order])


def _order_of_corunners_does_not_matter(trial: _Trial) -> None:
    columns = trial.asked.to_columns()
    turned = [list(reversed(names)) for names in columns["corunners"]]
    query = Colocations.from_columns(
        workload=columns["workload"], platform=columns["platform"], corunners=turned
    )
    _same(trial.fitted.predict(query), trial.fitted.predict(trial.asked))


def _many_at_once_equal_one_by_one(trial: _Trial) -> None:
    every = trial.fitted.predict(trial.asked)
    for at in np.linspace(0, len(trial.asked) - 1, min(SINGLES, len(trial.asked))).astype(int):
        _same(trial.fitted.predict(trial.asked.take([at])), every[[at]])


def _the_same_seed_gives_the_same_answers(trial: _Trial) -> None:
    _same(trial.fit().predict(trial.asked), trial.fitted.predict(trial.asked), 0.0)


def _a_fresh_process_answers_from_what_was_saved(trial: _Trial) -> None:
    arrays, document = trial.fitted.to_arrays()
    kind = type(trial.method)
    with tempfile.TemporaryDirectory() as folder:
        whole = {"fitted": document, "asked": trial.asked.to_columns()}
        write_document(folder, "fitted", SCHEMA, whole, arrays)
        done = subprocess.run(
            [sys.executable, "-c", FRESH, folder, kind.__module__, kind.__qualname__],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        _require(done.returncode == 0, done.stderr.strip()[-500:])
        _same(np.load(Path(folder) / "answers.npy"), trial.fitted.predict(trial.asked), 0.0)


def _one_run_is_learned_from_or_refused(trial: _Trial) -> None:
    one = trial.data.with_runs(trial.prepared.runs.take([0]))
    try:
        prepared = trial.method.prepare(one)
        trial.method.fit(prepared, seed=trial.seed).predict(prepared.runs.colocations)
    except JostleError:
        return


def _names_never_met_are_refused_or_counted_as_such(trial: _Trial) -> None:
    workload, platform, _ = trial.asked.row(0)
    odd = "a name that nobody gave"
    questions: list[tuple[str, str, list[str]]] = [
        (odd, platform, []),
        (workload, odd, []),
        (workload, platform, [odd]),
    ]
    for one, place, beside in questions:
        query = Colocations.from_columns(workload=[one], platform=[place], corunners=[beside])
        try:
            trial.fitted.predict(query)
        except UnknownName:
            continue
        runs = trial.fitted.evidence(query)
        never = 0 in (runs.workload[0], runs.platform[0], runs.corunner[0])
        _require(never, f"{one} on {place} beside {beside} is answered as if it had been met")


def _uncertainty_is_of_the_prediction(trial: _Trial) -> None:
    told = uncertainty_of(trial.fitted, trial.asked)
    again = uncertainty_of(trial.fitted, trial.asked.take([0]))
    shape = (len(told.slopes), len(trial.asked))
    _require(told.log_widths.shape == shape, f"widths have the shape {told.log_widths.shape}")
    _require(len(again.slopes) == len(told.slopes), "the widths differ from call to call")
    _require(bool(np.isfinite(told.log_widths).all()), "a width is not finite")
    with np.errstate(divide="ignore", invalid="ignore"):
        predicted = np.log(trial.fitted.predict(trial.asked))
    same = np.allclose(told.log_runtime, predicted, rtol=0.0, atol=1e-6, equal_nan=True)
    _require(same, "what is unsure is not the prediction")


def _bounds_grow_with_confidence(trial: _Trial) -> None:
    parts, prepared = (trial.held.validation, trial.held.calibration), trial.prepared
    calibration = Calibration.fit(trial.fitted, *parts, unit=prepared.calibrate_by)
    before = np.zeros(len(trial.asked))
    for confidence in CONFIDENCES:
        seconds = calibration.bound(trial.fitted, trial.asked, confidence).seconds
        _require(bool((seconds >= before).all()), f"a bound falls on the way to {confidence}")
        before = seconds


def _evidence_counts_what_was_learned_from(trial: _Trial) -> None:
    learned = trial.held.learn.runs.colocations
    evidence = trial.fitted.evidence(learned)
    _require(len(evidence) == len(learned), "evidence is not aligned with what is asked")
    counted = (evidence.workload > 0) & (evidence.platform > 0)
    _require(bool(counted.all()), "a run that was learned from is not counted")


def _rows_held_out_change_no_answer(trial: _Trial) -> None:
    runs = trial.prepared.runs
    ids = runs.table.column("run_id").to_pylist()
    learned = set(trial.held.learn.runs.table.column("run_id").to_pylist())
    test = np.array([run_id not in learned for run_id in ids])
    columns = {name: runs.table.column(name) for name in runs.table.column_names}
    columns["runtime_seconds"] = runs.runtime_seconds * np.where(test, 7.0, 1.0)
    changed = Runs.from_columns(
        **columns,
        workload_features=runs.workload_features,
        platform_features=runs.platform_features,
    )
    prepared = trial.method.prepare(trial.data.with_runs(changed)).take(np.flatnonzero(~test))
    fitted = trial.method.fit(prepared.with_validation(trial.held.validation), seed=trial.seed)
    _same(fitted.predict(trial.asked), trial.fitted.predict(trial.asked), 0.0)


PARTS: dict[str, Callable[[_Trial], None]] = {
    part.__name__.strip("_").replace("_", " "): part
    for part in (
        _is_a_frozen_record_with_a_name_and_needs,
        _what_is_fitted_has_all_parts,
        _inputs_are_never_calibrated_on,
        _answers_are_seconds,
        _order_of_rows_does_not_matter,
        _order_of_corunners_does_not_matter,
        _many_at_once_equal_one_by_one,
        _the_same_seed_gives_the_same_answers,
        _a_fresh_process_answers_from_what_was_saved,
        _one_run_is_learned_from_or_refused,
        _names_never_met_are_refused_or_counted_as_such,
        _uncertainty_is_of_the_prediction,
        _bounds_grow_with_confidence,
        _evidence_counts_what_was_learned_from,
        _rows_held_out_change_no_answer,
    )
}


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ContractBroken(otherwise)


def _require_parts(value: Any, parts: tuple[str, ...]) -> None:
    missing = [part for part in parts if not hasattr(value, part)]
    _require(not missing, f"{', '.join(missing)} is missing")


def _same(answers: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(answers, expected, rtol=tolerance, atol=0.0, equal_nan=True)
