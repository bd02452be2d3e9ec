"""Forecasts on disk: snapshots, clock and settings (see `jostle._tensors`).

    <folder>/forecast.json          schema, settings, components, cores
    <folder>/forecast-<hash>.safetensors

Couplings are not kept: they follow from the snapshots, to the last bit.
History: forecast_model/v2, without graphs, noise and a selector; v1, the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jostle._tensors import read_document, write_document
from jostle.bridge.forecasting._settings import Bridge
from jostle.bridge.problem._clock import Clock
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._snapshots import Snapshot, Snapshots
from jostle.bridge.problem._thin import thinned
from jostle.bridge.solvers._coupling import Stopping
from jostle.errors import JostleError, UnreadableFile, UsageError

STEM, SCHEMA = "forecast", "forecast_model/v2"
AGAIN = "Forecast and save it again."


@dataclass(frozen=True, eq=False)
class Saved:
    """All that a forecast is made of."""

    snapshots: Snapshots
    method: Bridge
    scale: np.ndarray


def save(saved: Saved, path: str | os.PathLike[str], atoms: int | None) -> None:
    """See Forecast.save."""
    snapshots, method = saved.snapshots, saved.method
    if atoms is not None:
        if method.clock is not None or method.method == "phase":
            raise UsageError(
                "a forecast by a clock needs every run's states",
                fix="Save it whole, or without a clock.",
            )
        snapshots = _smaller(snapshots, saved.scale, atoms)
    arrays = {"times_seconds": snapshots.times_seconds, "scale": saved.scale}
    for core in sorted(snapshots.cores):
        shots = snapshots.of(core)
        arrays |= _ragged(f"atoms.{core}", [shot.cloud.atoms for shot in shots])
        arrays |= _ragged(f"weights.{core}", [shot.cloud.weights for shot in shots])
        arrays |= _ragged(f"runs.{core}", [shot.runs.astype(np.int64) for shot in shots])
        if any(shot.filled is not None for shot in shots):
            none = np.zeros(len(snapshots.components))
            shares = [none if shot.filled is None else shot.filled for shot in shots]
            arrays[f"filled.{core}"] = np.array(shares)
        arrays[f"idle.{core}"] = np.array([shot.idle_ratio for shot in shots])
        if snapshots.end_seconds is not None:
            arrays[f"ends.{core}"] = snapshots.end_seconds[core]
        if snapshots.clock is not None:
            arrays |= _ragged(f"clock_times.{core}", snapshots.clock.times[core])
            arrays |= _ragged(f"clock_counts.{core}", snapshots.clock.counts[core])
    document = {
        "settings": asdict(method) | {"eps": repr(method.eps)},
        "components": snapshots.components,
        "cores": sorted(snapshots.cores),
    }
    # A view may have gaps or be read-only: the writer takes whole arrays in their own order only.
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_document(path, STEM, SCHEMA, document, whole)


def load(path: str | os.PathLike[str]) -> Saved:
    """See Forecast.load."""
    document, arrays = read_document(path, STEM, SCHEMA, fix=AGAIN)
    try:
        method = _settings(document["settings"])
        cores = [int(core) for core in document["cores"]]
        shots = {}
        for core in cores:
            parts = [_parts(arrays, f"{what}.{core}") for what in ("atoms", "weights", "runs")]
            idles = arrays[f"idle.{core}"]
            shares = arrays.get(f"filled.{core}", np.zeros((len(idles), 1)))
            shots[core] = [
                Snapshot(Cloud(atoms, weights), runs, float(idle), share if share.any() else None)
                for atoms, weights, runs, idle, share in zip(*parts, idles, shares, strict=True)
            ]
        ends = {core: arrays[f"ends.{core}"] for core in cores if f"ends.{core}" in arrays}
        clock = None
        if any(name.startswith("clock_times.") for name in arrays):
            times, counts = (
                {core: _parts(arrays, f"{what}.{core}") for core in cores}
                for what in ("clock_times", "clock_counts")
            )
            clock = Clock(method.clock_kind, times, counts, method.clock_period)
        components = tuple(document["components"])
        snapshots = Snapshots(arrays["times_seconds"], shots, components, ends or None, clock)
        return Saved(snapshots, method, arrays["scale"])
    except (KeyError, TypeError, ValueError, IndexError, JostleError) as error:
        raise UnreadableFile(
            f"not a readable forecast: {error}", where=str(path), fix=AGAIN
        ) from None


def _settings(document: Mapping[str, Any]) -> Bridge:
    stopping, eps = Stopping(**document["stopping"]), float(document["eps"])
    lists = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
    return Bridge(**{**document, **lists, "stopping": stopping, "eps": eps})


def _smaller(snapshots: Snapshots, scale: np.ndarray, atoms: int) -> Snapshots:
    """Snapshots of at most so many atoms, clustered in scaled units."""
    if atoms < 1:
        raise UsageError(f"a snapshot cannot have {atoms} atoms")
    unit = np.where(scale > 0, scale, 1.0)
    cores = {}
    for core, shots in snapshots.cores.items():
        small = [thinned(shot.cloud.scaled(unit), atoms).scaled(1 / unit) for shot in shots]
        cores[core] = [
            Snapshot(cloud, np.full(len(cloud), -1), shot.idle_ratio, shot.filled)
            for cloud, shot in zip(small, shots, strict=True)
        ]
    return replace(snapshots, cores=cores)


def _ragged(name: str, parts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    lengths = np.array([len(part) for part in parts], np.int64)
    return {name: np.concatenate(list(parts)), f"{name}.lengths": lengths}


def _parts(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    return np.split(arrays[name], np.cumsum(arrays[f"{name}.lengths"])[:-1])
