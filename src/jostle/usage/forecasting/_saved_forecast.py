"""Forecasts on disk: snapshots and settings (see `jostle._base.tensors`).

    <folder>/forecast.json          schema, settings, snapshots
    <folder>/forecast-<hash>.safetensors

Couplings are not kept: they follow from the snapshots, to the last bit.
History: forecast_model/v3, without clocks; v2, without graphs, noise and a selector; v1, the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np

from jostle._base.tensors import Codec, from_arrays, read_document, to_arrays, write_document
from jostle.errors import JostleError, UnreadableFile, UsageError
from jostle.usage.forecasting._bridge_settings import Bridge
from jostle.usage.snapshots._snapshots import Snapshot, Snapshots
from jostle.usage.snapshots._thin import thinned
from jostle.usage.solvers._coupling import Stopping

STEM, SCHEMA = "forecast", "forecast_model/v3"
AGAIN = "Forecast and save it again."


def _settings(document: Mapping[str, Any]) -> Bridge:
    stopping, eps = Stopping(**document["stopping"]), float(document["eps"])
    lists = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
    return Bridge(**{**document, **lists, "stopping": stopping, "eps": eps})


def _document(method: Bridge) -> dict[str, Any]:
    return asdict(method) | {"eps": repr(method.eps)}  # which may be infinite


@dataclass(frozen=True, eq=False)
class Saved:
    """All that a forecast is made of."""

    snapshots: Snapshots
    method: Annotated[Any, Codec(_document, _settings)]
    scale: np.ndarray


def save(saved: Saved, path: str | os.PathLike[str], atoms: int | None) -> None:
    """See Forecast.save."""
    if atoms is not None:
        saved = replace(saved, snapshots=_smaller(saved.snapshots, saved.scale, atoms))
    arrays, document = to_arrays(saved)
    write_document(path, STEM, SCHEMA, document, arrays)


def load(path: str | os.PathLike[str]) -> Saved:
    """See Forecast.load."""
    document, arrays = read_document(path, STEM, SCHEMA, fix=AGAIN)
    try:
        return from_arrays(Saved, arrays, document)
    except (KeyError, TypeError, ValueError, JostleError) as error:
        raise UnreadableFile(
            f"not a readable forecast: {error}", where=str(path), fix=AGAIN
        ) from None


def _smaller(snapshots: Snapshots, scale: np.ndarray, atoms: int) -> Snapshots:
    """Snapshots of at most so many atoms, clustered in scaled units."""
    if atoms < 1:
        raise UsageError(f"a snapshot cannot have {atoms} atoms")
    unit = np.where(scale > 0, scale, 1.0)
    cores: dict[int, tuple[Snapshot, ...]] = {}
    for core, shots in snapshots.cores.items():
        small = [thinned(shot.cloud.scaled(unit), atoms).scaled(1 / unit) for shot in shots]
        cores[core] = tuple(
            replace(shot, cloud=cloud, runs=np.full(len(cloud), -1))
            for cloud, shot in zip(small, shots, strict=True)
        )
    return replace(snapshots, cores=cores, windows=None)
