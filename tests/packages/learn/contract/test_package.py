"""A method of another package: fitted, saved, loaded, explained and evaluated like Jostle's own.

The package is a real distribution on the path of a new process, found by its entry points alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.data import Dataset, Runs

PACKAGE = '''
"""Seconds beside others = seconds alone times a factor."""
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from jostle import Data
from jostle.errors import UnknownName
from jostle.learn import FromCounts, Prepared, RunCounts, first_solo_runs
from jostle.extend import Report, duration
from jostle.data import all_names, solo_medians


@dataclass(frozen=True)
class Factor:
    """The median time alone times one factor for all."""

    power: Annotated[float, "How much each co-runner multiplies the factor."] = 1.0

    name: ClassVar[str] = "factor"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    def prepare(self, data):
        return Prepared.of(data, required=first_solo_runs(data.runs))

    def fit(self, prepared, *, seed=0, progress=None):
        runs = prepared.together()
        names = all_names(runs)
        solo = solo_medians(runs, *names)
        workload, platform, _ = runs.colocations.recode(*names)
        count = runs.colocations.number_of_corunners
        left = np.log(runs.runtime_seconds) - solo[platform, workload]
        slow = float(np.nanmedian(left[count > 0])) if (count > 0).any() else 0.0
        return FittedFactor(names, solo, slow, self.power, RunCounts.of(runs))

    @classmethod
    def restore(cls, arrays, document):
        names = tuple(document["workloads"]), tuple(document["platforms"])
        counts = RunCounts.from_arrays(arrays, document)
        return FittedFactor(names, arrays["solo"], document["slow"], document["power"], counts)


class FittedFactor(FromCounts):
    notes = ("one factor for all",)

    def __init__(self, names, solo, slow, power, counts):
        self.workload_names, self.platform_names = names
        self.solo, self.slow, self.power, self.counts = solo, slow, power, counts

    def predict(self, asked):
        workload, platform, _ = asked.codes_in(self.workload_names, self.platform_names)
        return np.exp(self.solo[platform, workload] + self.slow * asked.number_of_corunners**self.power)

    def explain(self, asked, *, runs=None):
        seconds = float(self.predict(asked)[0])
        return Report({"schema": "factor/v1", "seconds": seconds}, [f"one factor: {duration(seconds)}"])

    def to_arrays(self):
        arrays, document = self.counts.to_arrays()
        names = {"workloads": list(self.workload_names), "platforms": list(self.platform_names)}
        return arrays | {"solo": self.solo}, document | names | {"slow": self.slow, "power": self.power}
'''


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process where the package is installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "jostle_factor.py").write_text(PACKAGE)
    info = site / "jostle_factor-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jostle-factor\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jostle.methods]\nfactor = jostle_factor:Factor\n")
    path = os.pathsep.join([str(site), *sys.path])
    return os.environ | {"PYTHONPATH": path, "COLUMNS": "120"}  # sentences of the help stay whole


def jostle(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jostle", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_method_of_another_package(
    environment: dict[str, str], runs: Runs, tmp_path: Path
) -> None:
    dataset, model = tmp_path / "dataset", tmp_path / "model"
    Dataset(dataset).write(runs)
    helped = jostle(environment, "fit", "--method", "factor", "--list-settings")
    assert "power" in helped.stdout
    assert "multiplies the factor" in helped.stdout
    fit = ("fit", dataset, "-o", model, "--method", "factor", "--set")
    fitted = jostle(environment, *fit, "power=0.9", "--json")
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["notes"] == ["one factor for all"]
    asked = (model, "-w", "w1", "-p", "p0", "-b", "w2", "-c", "0.8", "--json")
    predicted = jostle(environment, "predict", *asked)
    assert predicted.returncode == 0, predicted.stderr
    (answer,) = json.loads(predicted.stdout)["items"]
    explained = json.loads(jostle(environment, "predict", "--why", *asked).stdout)
    assert explained["schema"] == "explain/v5"
    (explanation,) = explained["items"]
    assert explanation["method"]["seconds"] == answer["runtime_seconds"]
    assert explanation["bound"]["seconds"] == answer["bound_seconds"]
    assert jostle(environment, *fit, "rank=3").returncode == 2
    without = jostle(dict(os.environ), "predict", *asked)  # its package is not installed here
    assert without.returncode == 2
    assert "factor" in without.stdout
