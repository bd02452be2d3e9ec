"""The published throughputs of Gavel (OSDI 2020): training jobs alone and in pairs on three kinds of GPU.

Its two files, `oracle_throughputs.json` and `simulation_throughputs.json`, come from two campaigns that
measured under different conditions, so that they must not meet in one dataset. Each holds steps per
second, `{GPU: {job: {"null": alone, other job: [job's, other job's]}}}`. Zeros are pairs that were not
measured or did not fit into memory. Kept are jobs on one GPU; in the simulation file jobs on several GPUs
have no measured pair, and the `_unconsolidated` sections repeat the others.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from jostle._options import Positional
from jostle._tables import read_text
from jostle._untrusted import understands
from jostle.errors import BadData, UnreadableFile, UsageError, require_known
from jostle.runs._schema import Origin
from jostle.runs.importers._imported import Imported
from jostle.runs.importers._pairs import Measurement, runs_of

CAMPAIGNS = {"oracle": "oracle_throughputs.json", "simulation": "simulation_throughputs.json"}
SOURCE = "Gavel (OSDI 2020), github.com/stanford-futuredata/gavel"
LICENCE = "MIT"
_BATCH = re.compile(r" \(batch size (\d+)\)$")
_ELSEWHERE = "_unconsolidated"


@dataclass(frozen=True)
class GavelImport:
    """Import the published throughputs of Gavel: training jobs in pairs on three GPUs.

    A run is the time of one step. Its two campaigns go into two datasets.
    """

    name: ClassVar[str] = "gavel"
    path: Annotated[
        Path,
        "oracle_throughputs.json, simulation_throughputs.json, or their folder.",
        Positional(),
    ]
    campaign: Annotated[str | None, "Which of the two: oracle or simulation."] = None

    @understands("path")
    def read(self) -> Imported:
        """The runs of one campaign, as seconds per step; the campaign's name is `gavel-oracle` or
        `gavel-simulation`.

        Workload features: `family` and `batch_size` (null where the name gives none).
        Raises UnreadableFile, UsageError, UnknownName, and BadData naming the first bad entry.
        """
        file, campaign = _file(Path(self.path), self.campaign)
        walk = _Walk(f"gavel-{campaign}")
        walk.through(_read(file))
        if walk.bad:
            raise BadData(
                f"{len(walk.bad)} entries cannot be used, the first is {walk.bad[0]}",
                where=str(file),
                fix="Nothing was written. Fetch the file again.",
            )
        if not walk.measured:
            text = "the file holds no measurement"
            raise UnreadableFile(text, where=str(file), fix="Fetch the file again.")
        names = sorted({n for m in walk.measured for n in (m.workload, *m.corunners)})
        sizes = [_BATCH.search(name) for name in names]
        features = pa.table(
            {
                "workload": names,
                "family": [_BATCH.sub("", name) for name in names],
                "batch_size": pa.array([int(s[1]) if s else None for s in sizes], pa.int64()),
            }
        )
        origin = Origin(walk.campaign, SOURCE, LICENCE)
        runs = runs_of(walk.measured, [origin], features, where=str(file))
        return Imported(runs, str(file), skipped=walk.skipped, apart="gavel-")


def _file(path: Path, campaign: str | None) -> tuple[Path, str]:
    require_known("campaign", campaign, CAMPAIGNS)
    if path.is_dir():
        there = [name for name, file in CAMPAIGNS.items() if (path / file).is_file()]
        if campaign is None and len(there) == 2:
            raise UsageError(
                f"{path} holds the campaigns oracle and simulation",
                fix="They measured under different conditions: say `campaign`, and import each "
                "into a dataset of its own.",
            )
        if not there or (campaign is not None and campaign not in there):
            expected = [CAMPAIGNS[campaign]] if campaign else list(CAMPAIGNS.values())
            text = f"the folder has no {' or '.join(expected)}"
            raise UnreadableFile(text, where=str(path), fix="Check the name.")
        campaign = campaign or there[0]
        return path / CAMPAIGNS[campaign], campaign
    known = {file: name for name, file in CAMPAIGNS.items()}
    campaign = campaign or known.get(path.name)
    if campaign is None:
        raise UsageError(
            f"the name {path.name!r} does not say which campaign it is",
            fix=f"Say `campaign`: {' or '.join(CAMPAIGNS)}.",
        )
    return path, campaign


def _read(file: Path) -> Any:
    """What it holds. Raises UnreadableFile."""
    try:
        return json.loads(read_text(file), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}: not readable as JSON: {error.msg}"
    except RecursionError:
        reason = "objects inside objects without end"
    except ValueError as error:  # two equal keys, or a number of thousands of digits
        reason = str(error)
    raise UnreadableFile(reason, where=str(file), fix="Fetch the file again.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; JSON's readers would keep the last of two equal keys and say nothing."""
    counts = Counter(key for key, _ in pairs)
    if len(counts) < len(pairs):
        raise ValueError(f"{counts.most_common(1)[0][0]!r} stands twice in one object")
    return dict(pairs)


@dataclass
class _Walk:
    """What the walk through a file gathers. bad: entries that cannot be used, and why."""

    campaign: str
    measured: list[Measurement] = field(default_factory=list[Measurement])
    bad: list[str] = field(default_factory=list[str])
    skipped: int = 0

    def through(self, content: Any) -> None:
        """Every entry of jobs on one GPU."""
        for platform, jobs in self._entries(content):
            if platform.endswith(_ELSEWHERE):
                continue
            for job, others in self._entries(jobs, platform):
                workload, gpus = _job(job)
                for other, value in self._entries(others, platform, job) if gpus == 1 else ():
                    beside, width = (None, 1) if other == "null" else _job(other)
                    if width == 1:
                        why = self._take(platform, workload, beside, value)
                        self.bad += [f"{_path(platform, job, other)}: {why}"] if why else []

    def _entries(self, content: Any, *keys: str) -> Iterable[tuple[str, Any]]:
        if isinstance(content, dict):
            return content.items()
        self.bad.append(f"{_path(*keys) if keys else 'the file'}: {_short(content)} is no object")
        return ()

    def _take(self, platform: str, workload: str, beside: str | None, value: Any) -> str | None:
        """A throughput alone, or a pair of which the first is the workload's; why it cannot be used."""
        numbers = [value] if beside is None else value
        if not all(_is_name(name) for name in (platform, workload, beside) if name is not None):
            return "a name cannot be stored"
        if not isinstance(numbers, list) or len(numbers) != (1 if beside is None else 2):
            return f"{_short(value)} is not two throughputs"
        if any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in numbers):
            return f"{_short(value)} is not a throughput in steps per second"
        if not all(0 <= x <= sys.float_info.max for x in numbers):
            return f"throughput {_short(value)} is negative or not finite"
        if numbers[0] == 0:
            self.skipped += 1
            return None
        if not math.isfinite(1 / numbers[0]):
            return f"a step at throughput {_short(value)} would never end"
        others = () if beside is None else (beside,)
        run_id = f"{self.campaign}:{platform}:{workload}|{beside or 'alone'}"
        run = platform, workload, others, 1 / numbers[0], "throughput", run_id
        self.measured.append(Measurement(self.campaign, *run))
        return None


def _path(*keys: str) -> str:
    return " / ".join(_short(key) for key in keys)


def _job(key: str) -> tuple[str, int]:
    """(name, number of GPUs); keys are names or, in the simulation file, the text of a pair. The name is
    empty where such a pair cannot be read."""
    if not key.startswith("("):
        return key, 1
    try:
        name, gpus = ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return "", 1
    return (name, gpus) if isinstance(name, str) and type(gpus) is int and gpus > 0 else ("", 1)


def _is_name(name: str) -> bool:
    """Whether it can be stored: not empty, and no half of a character."""
    return bool(name.strip()) and not any("\ud800" <= letter <= "\udfff" for letter in name)


def _short(value: Any) -> str:
    """A value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:60] + "…"
