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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from jostle._options import Positional
from jostle._tables import read_text
from jostle._untrusted import understands
from jostle.errors import BadRows, UnknownName, UnreadableFile, UsageError
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
        Raises UnreadableFile, UsageError, UnknownName, and BadRows naming the lines.
        """
        file, campaign = _file(Path(self.path), self.campaign)
        text, content = _read(file)
        walk = _Walk(f"gavel-{campaign}", text)
        for place, what, value in _entries(content, walk):
            walk.take(place, what, value)
        if walk.bad:
            lines = "".join(f"\n  line {line}: {reason}" for line, reason in walk.bad[:20])
            raise BadRows(
                f"{len(walk.bad)} entries cannot be used:{lines}",
                rows=walk.bad,
                where=str(file),
                fix="Nothing was written. Fetch the file again.",
            )
        if not walk.measured:
            raise UnreadableFile("the file holds no measurement", where=str(file))
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
    if campaign is not None and campaign not in CAMPAIGNS:
        raise UnknownName("campaign", campaign, list(CAMPAIGNS))
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
            raise UnreadableFile(f"the folder has no {' or '.join(expected)}", where=str(path))
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


def _read(file: Path) -> tuple[str, Any]:
    """(text, what it holds). Raises UnreadableFile, naming the line where there is one."""
    text = read_text(file)
    try:
        return text, json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}: not readable as JSON: {error.msg}"
    except _Twice as error:
        reason = (
            f"line {_line_of_second(text, error.key)}: {error.key!r} stands twice in one object"
        )
    except RecursionError:
        reason = f"line {_deepest(text)}: objects inside objects without end"
    except ValueError as error:  # a number of thousands of digits
        longest = max(re.finditer(r"\d+", text), key=lambda digits: len(digits[0]))
        reason = f"line {text.count(chr(10), 0, longest.start()) + 1}: {error}"
    raise UnreadableFile(reason, where=str(file), fix="Fetch the file again.")


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; JSON's readers would keep the last of two equal keys and say nothing."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        earlier: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in earlier or earlier.add(key)))
    return entries


def _line_of_second(text: str, key: str) -> int:
    """The line on which an object has `key` for the second time."""
    earlier: list[set[str]] = []
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"(\s*:)?|[{}]', text):
        if token[0] == "{":
            earlier.append(set())
        elif token[0] == "}":
            earlier.pop()
        elif token[1]:
            name = json.loads(token[0][: -len(token[1])])
            if name == key and name in earlier[-1]:
                return text.count("\n", 0, token.start()) + 1
            earlier[-1].add(name)
    return 1


def _deepest(text: str) -> int:
    depth = deepest = place = 0
    for token in re.finditer(r"[\[{\]}]", text):
        depth += 1 if token[0] in "[{" else -1
        if depth > deepest:
            deepest, place = depth, token.start()
    return text.count("\n", 0, place) + 1


@dataclass
class _Walk:
    """What the walk through a file gathers; text is for finding lines."""

    campaign: str
    text: str

    def __post_init__(self) -> None:
        self.measured: list[Measurement] = []
        self.bad: list[tuple[int, str]] = []
        self.skipped = 0

    def reject(self, reason: str, *keys: str) -> None:
        self.bad.append((_line(self.text, keys), reason))

    def take(self, place: tuple[str, str, str], names: tuple[str, str | None], value: Any) -> None:
        """One entry: a throughput alone, or a pair of which the first is the workload's."""
        platform, (workload, beside) = place[0], names
        numbers = [value] if beside is None else value
        if not isinstance(numbers, list) or len(numbers) != (1 if beside is None else 2):
            self.reject(
                f"{workload} beside {beside} has {_short(value)}, not two throughputs", *place
            )
            return
        if any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in numbers):
            self.reject(f"{_short(value)} is not a throughput in steps per second", *place)
        elif not all(0 <= x <= sys.float_info.max for x in numbers):
            self.reject(f"throughput {_short(value)} is negative or not finite", *place)
        elif numbers[0] == 0:
            self.skipped += 1
        elif not math.isfinite(1 / numbers[0]):
            self.reject(f"a step at throughput {_short(value)} would never end", *place)
        else:
            others = () if beside is None else (beside,)
            run_id = f"{self.campaign}:{platform}:{workload}|{beside or 'alone'}"
            self.measured.append(
                Measurement(
                    self.campaign, platform, workload, others, 1 / numbers[0], "throughput", run_id
                )
            )


def _entries(
    content: Any, walk: _Walk
) -> Iterator[tuple[tuple[str, str, str], tuple[str, str | None], Any]]:
    """(keys in the file, (workload, what ran beside it or None), value) of every entry on one GPU."""
    if not isinstance(content, dict):
        walk.reject("the file is not an object of GPUs")
        return
    for platform, jobs in content.items():
        if platform.endswith(_ELSEWHERE):
            continue
        if not _is_name(platform):
            walk.reject(f"{platform!r} cannot name a GPU", platform)
            continue
        if not isinstance(jobs, dict):
            walk.reject(f"GPU {platform!r} holds no jobs", platform)
            continue
        for job, others in jobs.items():
            workload, gpus = _job(job)
            if not _is_name(workload):
                walk.reject(f"{job!r} on {platform} cannot name a job", platform, job)
                continue
            if gpus != 1:
                continue
            if not isinstance(others, dict):
                walk.reject(f"job {job!r} on {platform} holds no throughputs", platform, job)
                continue
            for other, value in others.items():
                beside, width = (None, 1) if other == "null" else _job(other)
                if beside is not None and not _is_name(beside):
                    walk.reject(f"{other!r} cannot name a job", platform, job, other)
                elif width == 1:
                    yield (platform, job, other), (workload, beside), value


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


def _line(text: str, keys: tuple[str, ...]) -> int:
    """The line where the keys, each inside the one before, stand."""
    at = 0
    for key in keys:
        place = re.compile(re.escape(json.dumps(key)) + r"\s*:").search(text, at)
        at = place.end() if place else at
    return text.count("\n", 0, at) + 1
