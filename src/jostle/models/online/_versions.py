"""A model in its folder, and the one that it took the place of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import JostleError, UsageError
from jostle.models._model import load

if TYPE_CHECKING:
    from jostle.models._model import Model

PREVIOUS = "previous"


def save_over(model: Model, path: str | os.PathLike[str]) -> None:
    """Save a model in a folder and keep the one that is there in its folder `previous`, in the place of any
    that was kept before. Raises NotPermitted or UnreadableFile where the disk does not take it."""
    from jostle._files import errors_explained

    folder = Path(path)
    try:
        before = load(folder)
    except JostleError:
        before = None
    if before is not None:
        fresh, previous, old = (
            folder / name for name in (".previous-new", PREVIOUS, ".previous-old")
        )
        with errors_explained(folder):
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
        before.save(fresh)
        with errors_explained(folder):
            if previous.exists():
                previous.rename(old)
            fresh.rename(previous)
            shutil.rmtree(old, ignore_errors=True)
    model.save(folder)


def step_back(path: str | os.PathLike[str]) -> Model:
    """Put the model that was there before in its place again, and return it.

    Raises UsageError where none was kept, and what load raises.
    """
    from jostle._files import errors_explained

    folder = Path(path)
    previous = folder / PREVIOUS
    if not previous.exists():
        raise UsageError(
            f"{folder} keeps no model of before",
            fix="Only the last update can be taken back, once.",
        )
    before = load(previous)
    before.save(folder)
    with errors_explained(folder):
        shutil.rmtree(previous)
    return before
