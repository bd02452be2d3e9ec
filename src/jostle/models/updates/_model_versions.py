"""A model in its folder, and those that it took the place of: `previous`, in it the one before, and so on."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from jostle._base.files import errors_explained
from jostle._base.tensors import checksum_of
from jostle.errors import JostleError, NotPermitted, UsageError
from jostle.models._model import Model, load

PREVIOUS = "previous"
MOST_KEPT = 10  # models of before


def save_over(model: Model, path: str | os.PathLike[str], *, only_over: str | None = None) -> None:
    """Save a model in a folder and keep the one that is there in its folder `previous`, with those before it.

    only_over: as of Model.save. Raises NotPermitted or UnreadableFile where the disk does not take it, or
    another model is there.
    """
    folder = Path(path)
    if only_over is not None and checksum_of(folder / "model.json") != only_over:
        raise NotPermitted("another model came meanwhile: it stays", where=str(folder))
    try:
        before = load(folder)
    except JostleError:
        before = None
    if before is not None:
        fresh, previous = folder / ".previous-new", folder / PREVIOUS
        with errors_explained(folder):
            _finish(folder)
        before.save(fresh)
        with errors_explained(folder):
            if previous.exists():
                previous.rename(fresh / PREVIOUS)
            fresh.rename(previous)
            shutil.rmtree(folder.joinpath(*[PREVIOUS] * (MOST_KEPT + 1)), ignore_errors=True)
    model.save(folder, only_over=only_over)


def step_back(path: str | os.PathLike[str]) -> Model:
    """Put the model that was there before in its place again, and return it; once more the one before that.

    Raises UsageError where none was kept, and what load raises.
    """
    folder = Path(path)
    with errors_explained(folder):
        _finish(folder)
    previous = folder / PREVIOUS
    if not previous.exists():
        fix = f"The last {MOST_KEPT} updates can be taken back, each once."
        raise UsageError(f"{folder} keeps no model of before", fix=fix)
    before = load(previous)
    with suppress(JostleError):  # runs that a service taught it are not to be learned once more
        if observed := load(folder).metadata.get("observed"):
            before.metadata["observed"] = observed
    before.save(folder)
    with errors_explained(folder):
        previous.rename(folder / ".previous-old")
        _finish(folder)
    return before


def _finish(folder: Path) -> None:
    """Finish what a killed writer left: models of before are in one of three places."""
    fresh, previous, old = (folder / n for n in (".previous-new", PREVIOUS, ".previous-old"))
    for rest in (fresh, old / PREVIOUS):
        if rest.exists() and not previous.exists():
            rest.rename(previous)
    for done in (fresh, old):
        shutil.rmtree(done, ignore_errors=True)
