"""Runs that stay on disk: codes of a dataset in scratch files, mapped into memory, for more runs than fit.

A dataset is read once, a batch of rows at a time. What is kept of a run is three integers and its log
runtime, and one integer per co-runner. Whole windows are held out on the way, by a hash of their id, so
that it needs no second pass and no list of ids.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa

from jostle._files import distinct_files, parquet_batches, parquet_rows, parquet_schema
from jostle._tables.arrow import pc
from jostle.errors import NotEnoughRuns, NotPermitted, UnreadableFile
from jostle.progress import Progress, no_progress
from jostle.runs._check import find_bad_rows
from jostle.runs._colocations import sort_inside_rows
from jostle.runs._columns import flags
from jostle.runs._features import columns_in_conflict
from jostle.runs._law import PlainLaw
from jostle.runs._runs import Runs
from jostle.runs._schema import COLUMNS, FREE, VERSIONS, conform
from jostle.runs._stretches import has_stretches
from jostle.runs.store._dataset import Dataset
from jostle.runs.store._settle import with_rows_for

BATCH = 262_144
MOST_VALIDATION = 40_000
MOST_CALIBRATION = 40_000
# Runs, and files that they are of, that the law of rates is told by.
SAMPLE, SAMPLED_FILES = 200_000, 4
SHARES = (0.1, 0.12)  # validated and calibrated on, where that is less
_TYPES = {
    "workload": np.dtype(np.int32),
    "platform": np.dtype(np.int32),
    "log_runtime": np.dtype(np.float32),
    "count": np.dtype(np.int32),
    "corunner": np.dtype(np.int32),
}


@dataclass(frozen=True)
class StoredPart:
    """n runs as codes in mapped files. workload, platform: (n,) int32; log_runtime: (n,) float32, natural
    log of seconds; offsets: (n + 1,) int64 into corunner (m,) int32, or None where all ran alone."""

    workload: np.ndarray
    platform: np.ndarray
    log_runtime: np.ndarray
    offsets: np.ndarray | None
    corunner: np.ndarray

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def most_corunners(self) -> int:
        return 0 if self.offsets is None else int(np.diff(self.offsets).max(initial=0))

    def padded(self, index: np.ndarray, width: int) -> np.ndarray:
        """(len(index), width) co-runners of these runs, -1 where one has fewer."""
        out = np.full((len(index), width), -1, np.int32)
        if self.offsets is None:
            return out
        start = self.offsets[index]
        counts = self.offsets[index + 1] - start
        for place in range(width):
            has = np.flatnonzero(counts > place)
            out[has, place] = self.corunner[start[has] + place]
        return out


class StoredRuns:
    """A dataset's runs with status ok, in scratch files that are removed on close.

    alone, beside: what to learn from (StoredPart). validation, calibration: held out, in memory (Runs).
    workload_names, platform_names: sorted vocabularies. workload_features, platform_features: tables or
    None. notes: what was settled where files contradict each other. changing: runs whose company changed;
    each is learned from as one of its longest stretch, by `law`, which a sample of the files tells (None
    without such runs). Those held out are as they were measured. Use it as a context manager.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        seed: int = 0,
        scratch: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """path: the dataset's folder. seed: of what is held out. scratch: where the files go, the
        system's temporary folder by default. progress: called with (rows read, rows in all, NaN).

        Raises UnreadableFile, BadRows naming file and row, NotEnoughRuns, NotPermitted for a full disk.
        Files that contradict each other are settled as by read_runs, but a run_id that stands in two
        files is not noticed: both runs count.
        """
        files = distinct_files(Path(path) / "runs")
        if not files:
            raise UnreadableFile("the folder holds no runs", where=str(path))
        notes: list[str] = []
        self.workload_features, self.platform_features = Dataset(path).features(notes)
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="jostle-", dir=scratch)
        except OSError as error:
            raise NotPermitted(f"no scratch folder: {error}", where=str(scratch)) from None
        try:
            aside = Dataset(path).aside()
            self._fill(files, list(aside), seed, progress or no_progress, notes)
        except OSError as error:
            self.close()
            raise NotPermitted(
                f"the scratch files cannot be written: {error.strerror}",
                where=self._folder.name,
                fix="Name a folder with room as scratch (or in TMPDIR).",
            ) from error
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self.alone) + len(self.beside)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the scratch files."""
        self._folder.cleanup()

    def _fill(
        self,
        files: list[Path],
        aside: list[str],
        seed: int,
        progress: Progress,
        notes: list[str],
    ) -> None:
        total = sum(parquet_rows(file) for file in files)
        # What has features has an answer without runs as well.
        names = (
            _numbered(self.workload_features, "workload"),
            _numbered(self.platform_features, "platform"),
        )
        held: list[list[pa.Table]] = [[], []]
        shares = _shares(total)
        self.law, self.changing = _law(files, seed), 0
        with ExitStack() as stack:
            sinks = {
                part: {
                    name: stack.enter_context(self._file(part, name).open("wb")) for name in _TYPES
                }
                for part in ("alone", "beside")
            }
            done = 0
            passed_over = pa.array(aside, pa.string())
            for where, table in _tables(files, notes):
                find_bad_rows(table, None, None).require_none(where=where)
                there = ~flags(pc.is_in(table.column("run_id"), value_set=passed_over))
                runs = Runs(table.filter(pa.array(there)), checked=True).ok()
                part = _drawn(runs.table.column("window_id"), shares, seed)
                part[np.isin(runs.window, runs.window[runs.is_chosen])] = -1
                for number in (0, 1):
                    held[number].append(runs.take(part == number).table)
                self._write(runs.take(part < 0), names, sinks)
                done += table.num_rows
                self.changing += int((~runs.is_steady).sum())
                progress(done, total, np.nan)
            held_tables = self._give_back(held, names, sinks)
        self.workload_features, self.platform_features = (
            with_rows_for(features, key, set(known), notes)
            for features, key, known in zip(
                (self.workload_features, self.platform_features),
                ("workload", "platform"),
                names,
                strict=True,
            )
        )
        self.notes = tuple(notes)
        workload_order, platform_order = (_ranks(known) for known in names)
        self.workload_names, self.platform_names = (tuple(sorted(known)) for known in names)
        self.alone, self.beside = (
            self._mapped(part, workload_order, platform_order) for part in ("alone", "beside")
        )
        if not len(self):
            raise NotEnoughRuns(
                "there is no run with status ok to learn from", fix="Measure or import runs first."
            )
        self.validation, self.calibration = (
            Runs(table, self.workload_features, self.platform_features, checked=True)
            for table in held_tables
        )

    def _give_back(
        self, held: list[list[pa.Table]], names: tuple[dict[str, int], dict[str, int]], sinks: Any
    ) -> list[pa.Table]:
        """Windows with a name that is nowhere else are learned from: what was never met has no answer."""
        tables_held: list[pa.Table] = []
        for tables in held:
            runs = Runs(pa.concat_tables(tables, promote_options="permissive"), checked=True)
            c = runs.colocations
            new_w = np.array([name not in names[0] for name in c.workload_names], bool)
            new_p = np.array([name not in names[1] for name in c.platform_names], bool)
            row = np.repeat(np.arange(len(runs)), c.number_of_corunners)
            unknown = np.zeros(len(runs), bool)
            if len(runs):
                unknown = new_w[c.workload] | new_p[c.platform]
                unknown |= np.bincount(row, new_w[c.corunner], len(runs)) > 0
            back = np.isin(runs.window, runs.window[unknown])
            self._write(runs.take(back), names, sinks)
            tables_held.append(runs.take(~back).table)
        return tables_held

    def with_held_out(self, validation: Runs, calibration: Runs) -> Self:
        """The same, with others held out."""
        out = copy(self)
        out.validation, out.calibration = validation, calibration
        return out

    def _write(self, runs: Runs, names: Any, sinks: Any) -> None:
        _write(runs if self.law is None else self.law.of_longest(runs), names, sinks)

    def _file(self, part: str, name: str) -> Path:
        return Path(self._folder.name) / f"{part}-{name}"

    def _mapped(
        self, part: str, workload_order: np.ndarray, platform_order: np.ndarray
    ) -> StoredPart:
        """The columns of a part, their codes now by the sorted names."""
        columns = {name: self._map(part, name) for name in _TYPES}
        offsets = None
        if part == "beside":
            offsets = np.lib.format.open_memmap(
                self._file(part, "offset.npy"), "w+", np.int64, (len(columns["count"]) + 1,)
            )
            np.cumsum(columns["count"], out=offsets[1:])
        for name, order in (
            ("workload", workload_order),
            ("platform", platform_order),
            ("corunner", workload_order),
        ):
            codes = columns[name]
            for start in range(0, len(codes), BATCH):
                codes[start : start + BATCH] = order[codes[start : start + BATCH]]
        if offsets is not None:
            for start in range(0, len(columns["count"]), BATCH):
                cut = offsets[start : start + BATCH + 1]
                inside = columns["corunner"][cut[0] : cut[-1]]
                inside[:] = sort_inside_rows(inside, np.asarray(cut - cut[0]))
        return StoredPart(
            columns["workload"],
            columns["platform"],
            columns["log_runtime"],
            offsets,
            columns["corunner"],
        )

    def _map(self, part: str, name: str) -> np.ndarray:
        path, kind = self._file(part, name), _TYPES[name]
        if path.stat().st_size == 0:  # nothing cannot be mapped
            return np.zeros(0, kind)
        return np.memmap(path, kind, "r+")


def _tables(files: list[Path], notes: list[str]) -> Iterator[tuple[str, pa.Table]]:
    passed_over: dict[int, list[str]] = {}
    schemas = [(str(file), parquet_schema(file)) for file in files]
    for number, name, text in columns_in_conflict(schemas, FREE, COLUMNS):
        notes.append(f"{text}: the later one was passed over")
        passed_over.setdefault(number, []).append(name)
    for number, file in enumerate(files):
        row = 0
        for table in parquet_batches(file, VERSIONS, BATCH):
            where = f"{file} (rows from {row})"
            yield where, conform(table.drop_columns(passed_over.get(number, [])), where)
            row += table.num_rows


def _law(files: list[Path], seed: int) -> PlainLaw | None:
    """Of a sample of the runs, from a few files that lie far apart; None where no file has stretches."""
    some = [file for file in files if has_stretches(parquet_schema(file))]
    if not some:
        return None
    some = some[:: -(-len(some) // SAMPLED_FILES)]
    random, tables = np.random.default_rng([seed, 7]), list[Runs]()
    share = SAMPLE / max(1, sum(parquet_rows(file) for file in some))
    for where, table in _tables(some, []):
        rows = np.flatnonzero(random.random(table.num_rows) < share)
        if len(rows):
            find_bad_rows(table, None, None).require_none(where=where)
            tables.append(Runs(table.take(pa.array(rows)), checked=True).ok())
    tables = [one for one in tables if len(one)]
    return PlainLaw.of(Runs.concatenate(tables), seed) if tables else None


def _numbered(features: pa.Table | None, key: str) -> dict[str, int]:
    names = [] if features is None else features.column(key).to_pylist()
    return {name: number for number, name in enumerate(names)}


def _shares(total: int) -> tuple[float, float]:
    most = (MOST_VALIDATION, MOST_CALIBRATION)
    first, second = (min(share, n / max(total, 1)) for share, n in zip(SHARES, most, strict=True))
    return first, second


def _drawn(window_id: Any, shares: tuple[float, float], seed: int) -> np.ndarray:
    """(n,) 0 validation, 1 calibration, -1 to learn from: equal for equal ids, whatever else there is."""
    ids = window_id.to_pylist()
    hashed = np.fromiter((zlib.crc32(one.encode()) for one in ids), np.uint64, len(ids))
    with np.errstate(over="ignore"):  # SplitMix64: neighbouring ids fall far apart
        x = hashed + np.uint64(seed % 2**32) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = (x ^ (x >> np.uint64(31))) / 2.0**64
    return np.select([uniform < shares[0], uniform < sum(shares)], [0, 1], -1)


def _write(
    runs: Runs,
    names: tuple[dict[str, int], dict[str, int]],
    sinks: Mapping[str, Mapping[str, BinaryIO]],
) -> None:
    """Append the runs, with codes by the order in which names were first met."""
    c = runs.colocations
    map_w, map_p = (
        np.array([known.setdefault(name, len(known)) for name in mine], np.int32)
        for known, mine in zip(names, (c.workload_names, c.platform_names), strict=True)
    )
    log_runtime = np.log(runs.runtime_seconds)
    for part, rows in (
        ("alone", np.flatnonzero(c.number_of_corunners == 0)),
        ("beside", np.flatnonzero(c.number_of_corunners)),
    ):
        if not len(rows):
            continue
        one = c.take(rows)
        columns = {
            "workload": map_w[one.workload],
            "platform": map_p[one.platform],
            "log_runtime": log_runtime[rows],
            "count": one.number_of_corunners,
            "corunner": map_w[one.corunner] if len(one.corunner) else one.corunner,
        }
        for name, values in columns.items():
            values.astype(_TYPES[name]).tofile(sinks[part][name])


def _ranks(known: dict[str, int]) -> np.ndarray:
    """(names,) the place of each name among the sorted ones, by the code it was given first."""
    order = np.empty(len(known), np.int32)
    for place, name in enumerate(sorted(known)):
        order[known[name]] = place
    return order
