"""Models on disk: `model.json` and its tensors (see `_tensors`).

    <folder>/model.json          schema, method, names, calibration, the tensors' file and hash
    <folder>/model-<hash>.safetensors

History: model/v3 (effects on the spread as tables), model/v2 (a bound may be a ladder), model/v1, the first.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jostle._tensors import read_document, write_document
from jostle.bounds import Calibration
from jostle.errors import UnreadableFile

if TYPE_CHECKING:
    from jostle.models._model import Model

SCHEMA = "model/v3"
# Where each method's predictor is rebuilt; the module is imported only for a model that needs it.
_PREDICTORS = {
    "accelerator": ("jostle.accelerator._method", "FittedAccelerator"),
    "alignment": ("jostle.alignment._fitted", "FittedAlignment"),
    "bag": ("jostle.bag._fitted", "FittedBag"),
    "factorization": ("jostle.factorization._fitted", "FittedFactorization"),
    "slowdown": ("jostle.factorization._slowdown_fitted", "FittedSlowdown"),
}


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """See Model.save. Raises NotPermitted or UnreadableFile where the disk does not take it."""
    arrays, said = model.predictor.to_arrays()
    bounds_arrays, bounds_said = model.calibration.to_arrays()
    tensors = {f"predictor.{name}": value for name, value in arrays.items()}
    tensors |= {f"bounds.{name}": value for name, value in bounds_arrays.items()}
    document = {**model.said, "predictor": said, "bounds": bounds_said}
    write_document(path, "model", SCHEMA, document, tensors)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model. Raises UnreadableFile for a missing, truncated or changed one."""
    from jostle.models._model import Model

    again = "Fit it again with jostle fit."
    document, tensors = read_document(path, "model", SCHEMA, fix=again)
    try:
        home, kind = _PREDICTORS[document["method"]]
        predictor = getattr(import_module(home), kind).from_arrays(
            _under("predictor.", tensors), document["predictor"]
        )
        calibration = Calibration.from_arrays(_under("bounds.", tensors), document["bounds"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"not a readable model: {error}", where=str(path), fix=again) from None
    kept = ("method", "settings", "seed", "calibrated_by", "runs")
    said = {k: document[k] for k in kept if k in document}
    return Model(predictor, calibration, said)


def _under(prefix: str, tensors: dict[str, Any]) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
