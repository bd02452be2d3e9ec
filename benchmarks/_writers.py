"""What writers of datasets, traces and models write over and over, and how one sees that nothing was lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

import jostle
from jostle.data import Dataset, Runs, Traces, read_runs, read_traces, write_traces
from jostle.errors import BadData

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where the tests lie
from tests.plain_traces import plain_trace

VARIANTS = 4
Meanwhile = Callable[[], object]


class Subject(Protocol):
    """Something that is kept in a folder."""

    name: ClassVar[str]

    def __init__(self, shared: Path) -> None:
        """shared: a folder for what all processes of a run of the script need."""
        ...

    def write(
        self, folder: Path, writer: str, turn: int, meanwhile: Meanwhile | None = None
    ) -> str:
        """One write; gives the name that stands for it. meanwhile: called when all is checked and nothing
        is visible yet, where the writer can be stopped there."""
        ...

    def read(self, folder: Path) -> object:
        """What a reader learns, in a form that can be compared."""
        ...

    def lost(self, folder: Path, acknowledged: list[list[str]]) -> tuple[list[str], bool]:
        """(what is not as it must be after the acknowledged writes of each writer, whether anything had to
        be settled between writers)."""
        ...

    def left(self, folder: Path) -> list[Path]:
        """Files that nobody will ever need."""
        ...


class Datasets:
    """Runs with features of both kinds, several of them disputed between writers."""

    name: ClassVar[str] = "dataset"

    def __init__(self, shared: Path) -> None:
        del shared

    def write(
        self, folder: Path, writer: str, turn: int, meanwhile: Meanwhile | None = None
    ) -> str:
        mine, shared = f"{writer}-{turn}", f"shared-{turn}"
        remark = [writer, writer] if len(writer) == 1 else [turn, turn]
        more: dict[str, Any] = {f"remark_{turn}": remark}
        runs = Runs.from_columns(
            workload=[mine, shared],
            platform=["p", "p"],
            corunners=[[shared], []],
            runtime_seconds=[1.0 + turn, 2.0],
            # The second is claimed by every writer, with another window.
            run_id=[mine, f"disputed-{turn}"],
            window_id=[mine, mine],
            **more,
            workload_features={"workload": [mine, shared], "size": [turn, len(writer)]},
            platform_features={"platform": ["p"], f"seen_by_{writer}": [turn < 0]},
        )
        try:
            with Dataset(folder).ready_to_add(runs) as publish:
                if meanwhile:
                    meanwhile()
                publish()
        except BadData:  # another was first, and this one was told
            features = {"workload": [mine, shared], "size": [turn, None]}
            plain = Runs.from_columns(
                workload=[mine],
                platform=["p"],
                runtime_seconds=[1.0 + turn],
                run_id=[mine],
                workload_features=features,
            )
            Dataset(folder).write(plain)
        return mine

    def read(self, folder: Path) -> object:
        return read_runs(folder)

    def lost(self, folder: Path, acknowledged: list[list[str]]) -> tuple[list[str], bool]:
        found = read_runs(folder)
        ids = found.table.column("run_id").to_pylist()
        told = [one for writer in acknowledged for one in writer]
        odd = [] if len(set(ids)) == len(ids) else ["a run_id stands twice"]
        odd += [] if read_runs(folder) == found else ["two readers read two things"]
        return odd + sorted({*told} - {*ids}), bool(found.notes)

    def left(self, folder: Path) -> list[Path]:
        return Dataset(folder).leftovers()


class Recordings:
    """Traces, whose samples and runs are two files that belong together."""

    name: ClassVar[str] = "traces"

    def __init__(self, shared: Path) -> None:
        del shared

    def write(
        self, folder: Path, writer: str, turn: int, meanwhile: Meanwhile | None = None
    ) -> str:
        if meanwhile:
            meanwhile()
        mine = f"{writer}-{turn}"
        traces = [
            # The second run_id comes from every writer, with other samples.
            plain_trace({"x": [value] * (3 + turn % 5)}, run_id=run_id, window_id=mine)
            for run_id, value in ((mine, float(turn)), (f"disputed-{turn}", float(os.getpid())))
        ]
        try:
            write_traces(folder, Traces.from_traces(traces))
        except BadData:
            write_traces(folder, Traces.from_traces(traces[:1]))
        return mine

    def read(self, folder: Path) -> object:
        found = read_traces(folder)
        return found.samples, found.traced

    def lost(self, folder: Path, acknowledged: list[list[str]]) -> tuple[list[str], bool]:
        found = read_traces(folder)
        told = [one for writer in acknowledged for one in writer]
        mixed = []
        for trace in found:
            turn = int(trace.run_id.rpartition("-")[2])
            values = {*trace.counters["x"].tolist()}
            if len(trace) != 3 + turn % 5 or len(values) != 1:
                mixed.append(f"{trace.run_id} has samples of two writers")
        return mixed + sorted({*told} - {*found.run_ids}), bool(found.notes)

    def left(self, folder: Path) -> list[Path]:
        return Dataset(folder).leftovers()


class Models:
    """A model saved over and over: variants are told apart by what they predict."""

    name: ClassVar[str] = "model"

    def __init__(self, shared: Path) -> None:
        self.paths = [shared / f"variant-{number}" for number in range(VARIANTS)]
        for number, path in enumerate(self.paths):
            if not path.exists():
                small_model(number).save(path)

    def write(
        self, folder: Path, writer: str, turn: int, meanwhile: Meanwhile | None = None
    ) -> str:
        if meanwhile:
            meanwhile()
        number = (turn + len(writer)) % VARIANTS
        self._variants()[number].save(folder)
        return str(number)

    def read(self, folder: Path) -> float:
        return self._answer(jostle.load(folder))

    def lost(self, folder: Path, acknowledged: list[list[str]]) -> tuple[list[str], bool]:
        found = self.read(folder)
        answers = [self._answer(model) for model in self._variants()]
        now = answers.index(found) if found in answers else None
        # The last acknowledged of a writer, or the one it was at when it was killed.
        may = {
            (int(told[-1]) + more) % VARIANTS for told in acknowledged if told for more in (0, 1)
        }
        return ([] if now in may else [f"variant {now}, not {sorted(may)}"]), False

    def left(self, folder: Path) -> list[Path]:
        return sorted(folder.iterdir())[2:]

    def _variants(self) -> list[jostle.Model]:
        if not hasattr(self, "_loaded"):
            self._loaded = [jostle.load(path) for path in self.paths]
        return self._loaded

    def _answer(self, model: jostle.Model) -> float:
        asked = jostle.Colocations.from_columns(workload=["w0"], platform=["p"], corunners=[["w1"]])
        return float(model.predict(asked)[0])


def small_model(number: int) -> jostle.Model:
    """A model of 60 runs whose answers depend on the number."""
    random = np.random.default_rng(number)
    workload = [f"w{k}" for k in random.integers(0, 4, 120)]
    corunners = [[f"w{k}" for k in random.integers(0, 4, n)] for n in random.integers(0, 2, 120)]
    seconds = random.lognormal(float(number), 0.1, 120)
    runs = Runs.from_columns(
        workload=[*workload, "w0"],
        platform=["p"] * 121,
        corunners=[*corunners, []],
        runtime_seconds=[*seconds, 1.0 + number],
    )
    return jostle.fit(runs, jostle.Slowdown(), seed=0)


KINDS: dict[str, type[Subject]] = {kind.name: kind for kind in (Datasets, Recordings, Models)}
