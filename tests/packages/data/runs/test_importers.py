"""Importers by entry points: their commands, those of another package, and what is loaded for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.data import importer_named, importer_names, read_runs
from jostle.errors import UnknownName
from tests.command_line import jostle as command
from tests.installing import install

CODE = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jostle.data import Imported, Runs


@dataclass(frozen=True)
class Ticks:
    """Import ticks."""

    name: ClassVar[str] = "ticks"
    workload: Annotated[str, "What ticked."]
    times: Annotated[int, "How often."] = 2

    def read(self):
        runs = Runs.from_columns(
            workload=[self.workload] * self.times,
            platform=["pi"] * self.times,
            runtime_seconds=[1.0] * self.times,
        )
        return Imported(runs, "ticks", skipped=1)
'''


def test_an_importer_of_another_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    points = "[jostle.importers]\nticks = jostle_ticks:Ticks\n"
    install(monkeypatch, tmp_path / "site", "jostle_ticks", CODE, points)
    assert "Import ticks." in command("import", "--kind", "ticks", "--help").stdout
    words = ["import", "--kind=ticks", "--workload", "w", "--times", "3", "--json"]
    words += ["-o", str(tmp_path / "d")]
    document = json.loads(command(*words).stdout)
    assert (document["runs"], document["not_measured"]) == (3, 1)
    assert len(read_runs(tmp_path / "d")) == 3
    assert command(*words, "--nonsense").exit_code == 2


def test_every_importer_is_named_as_its_entry_point() -> None:
    own = {"csv", "pairs-csv", "parquet", "perf", "profile"}
    assert own <= set(importer_names())
    assert {importer_named(name).name for name in own} == own
    with pytest.raises(UnknownName, match=r"importer 'cvs'.*mean csv"):
        importer_named("cvs")
