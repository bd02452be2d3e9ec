"""Models on disk: numbers in safetensors, everything else in JSON, never a pickle.

    <folder>/model.json          schema, method, names, calibration, the tensors' file and hash
    <folder>/model-<hash>.safetensors

The JSON is renamed into place last and names its tensors by hash, so that a reader meets the old model
or the new one, never half of each. History: model/v2 (a bound may
be a ladder), model/v1, the first.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.bounds import Calibration
from jostle.errors import BadData, NotPermitted, UnreadableFile

if TYPE_CHECKING:
    from jostle.models._model import Model

SCHEMA = "model/v2"
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
    from safetensors.numpy import save as to_bytes

    folder = Path(path)
    arrays, said = model.predictor.to_arrays()
    bounds_arrays, bounds_said = model.calibration.to_arrays()
    tensors = {f"predictor.{name}": value for name, value in arrays.items()}
    tensors |= {f"bounds.{name}": value for name, value in bounds_arrays.items()}
    content = to_bytes(tensors)
    digest = hashlib.sha256(content).hexdigest()
    name = f"model-{digest[:16]}.safetensors"
    document = {
        "schema": SCHEMA,
        "tensors": name,
        "sha256": digest,
        **model.said,
        "predictor": said,
        "bounds": bounds_said,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / name, content)
        _write(folder / "model.json", json.dumps(document, indent=1).encode())
        for old in folder.glob("model-*.safetensors"):
            if old.name != name:
                old.unlink(missing_ok=True)
    except PermissionError as error:
        raise NotPermitted(str(error.strerror), where=str(folder)) from None
    except OSError as error:
        raise UnreadableFile(
            f"could not write the model: {error.strerror}",
            where=str(folder),
            fix="A model that was there before is untouched; make room and do it again.",
        ) from None


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model. Raises UnreadableFile for a missing, truncated or changed one."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    from jostle.models._model import Model

    folder = Path(path)
    head = folder / "model.json"
    again = "Fit it again with jostle fit."
    try:
        document = json.loads(head.read_text("utf-8"))
        if not isinstance(document, dict):
            raise ValueError("not a JSON object")
        if document.get("schema") != SCHEMA:
            raise BadData(f"schema {document.get('schema')!r} is not {SCHEMA}", where=str(head))
        content = (folder / document["tensors"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != document["sha256"]:
            raise UnreadableFile(
                "the file is not the one that was saved (truncated or changed)",
                where=str(folder / document["tensors"]),
                fix=again,
            )
        tensors = from_bytes(content)
        home, kind = _PREDICTORS[document["method"]]
        predictor = getattr(import_module(home), kind).from_arrays(
            _under("predictor.", tensors), document["predictor"]
        )
        calibration = Calibration.from_arrays(_under("bounds.", tensors), document["bounds"])
    except FileNotFoundError as error:
        raise UnreadableFile("no model here", where=str(error.filename), fix=again) from None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UnreadableFile(
            f"not a readable model: {error}", where=str(folder), fix=again
        ) from None
    kept = ("method", "settings", "seed", "calibrated_by", "runs")
    said = {k: document[k] for k in kept if k in document}
    return Model(predictor, calibration, said)


def _under(prefix: str, tensors: dict[str, Any]) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing: a temporary name, fsync, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
