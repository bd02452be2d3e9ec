"""The runs that a model was calibrated on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.errors import UsageError
from jostle.learn import Data, as_fitted, held_out_again, method_named

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models import Model


def calibration_runs(model: Model, data: Any) -> Runs:
    """Return the runs that a model was calibrated on, drawn again from the data that it was fitted to.

    Raises UsageError where they are not there: other data, or runs that a caller had held out.
    """
    metadata = model.metadata
    kind = method_named(metadata["method"])
    held = held_out_again(
        as_fitted(kind, metadata["settings"]).prepare(Data.of(data)),
        metadata["seed"],
        metadata["calibrated_by"],
        grouped=metadata.get("by") is not None,
    )
    if len(held.calibration) != metadata["runs"]["calibration"]:
        raise UsageError(
            f"{len(held.calibration)} calibration runs are drawn from these data, and the model was "
            f"calibrated on {metadata['runs']['calibration']}",
            fix="Give the data that the model was fitted to.",
        )
    return held.calibration
