"""The data: what is shipped, what is public ($JOSTLE_DATA) and what is made, each by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from jostle import data as datasets
from jostle.data import Profile, Runs, Traces, read_profiles, read_runs, read_traces
from jostle.errors import UnknownName
from jostle.learn import Data
from studies.data import data_folder
from studies.data.gavel import read_gavel
from studies.data.magus import read_magus, read_magus_profiles
from studies.data.pitot import read_pitot
from studies.worlds.campaigns import WORLDS

STUDIES = Path(__file__).resolve().parents[1]
RECORDED = STUDIES / "alignment" / "recorded"
ON_GPUS = STUDIES / "accelerator" / "recorded"
PLATFORMS = {"pitot": 6, "pitot-2023": 3}  # of the published ones, drawn once
PROBES = "probe-"
DEVICES = ("side-by-side", "time-slices", "caches", "one-by-one", "a-capacity")
DEVICE_TRIPLES = 40


@dataclass(frozen=True, eq=False)
class KnownData:
    """Runs that ended well, and what else was measured: solo profiles by workload; traces, of further windows
    beside probes, too."""

    runs: Runs
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    traces: Traces | None = None

    @property
    def always(self) -> np.ndarray:
        """(n,) bool: runs that are never left out: alone, or with a probe."""
        c = self.runs.colocations
        probe = np.array([name.startswith(PROBES) for name in c.workload_names])
        row = np.repeat(np.arange(len(c)), c.number_of_corunners)
        beside = np.bincount(row, probe[c.corunner], len(c)) > 0
        return (c.number_of_corunners == 0) | probe[c.workload] | beside

    def data(self, rows: np.ndarray) -> Data:
        """What a user has who measured these rows: no trace of a window of the others."""
        runs = self.runs.take(rows)
        if self.traces is None:
            return Data(runs, profiles=dict(self.profiles) or None)
        traced = self.traces.traced
        windows = traced.column("window_id").to_pylist()
        own, every = (set(each.table.column("window_id").to_pylist()) for each in (runs, self.runs))
        names = traced.column("run_id").to_pylist()
        mine = {
            name
            for name, window in zip(names, windows, strict=True)
            if (window or name) not in every - own
        }
        tables = (
            table.filter([name in mine for name in table.column("run_id").to_pylist()])
            for table in (self.traces.samples, traced)
        )
        return Data(runs, traces=Traces(*tables))


def read_campaign(name: str, seed: int) -> KnownData:
    """seed: of what is made; measured data are the same with every seed. Raises UnknownName; ends the program
    with a sentence where published data are absent."""
    if name in WORLDS:
        return KnownData(WORLDS[name].runs(seed))
    with_profiles = MEASURED | MADE_DEVICES
    if name not in with_profiles:
        raise UnknownName("data set", name, campaign_names())
    return with_profiles[name]()


def campaign_names() -> list[str]:
    return [*MEASURED, *WORLDS, *MADE_DEVICES]


def _gavel(campaign: str) -> KnownData:
    folder = data_folder("gavel/oracle_throughputs.json").parent
    return KnownData(read_gavel(folder, campaign).ok())


def _magus() -> KnownData:
    folder = data_folder("magus13/pairs.csv").parent
    return KnownData(read_magus(folder).ok(), read_magus_profiles(folder))


def _on_a_gpu(folder: str) -> KnownData:
    """Recorded by studies.collect.gpu_pairs: 45 kernels of PyTorch on one H200, under MPS and in time slices,
    or twenty whole jobs on an H100 under MPS; alone and two to four at once."""
    runs = read_runs(ON_GPUS / folder).ok()
    profiles = {p.workload: p for p in read_profiles(ON_GPUS / folder).values()}
    return KnownData(runs, profiles)


def _gavel_features() -> KnownData:
    """The product form's table is made with features of the jobs; here they are taken away."""
    runs = _gavel("oracle").runs
    return KnownData(Runs(runs.table, checked=True))


def _magus_runs() -> KnownData:
    """Without profiles and features."""
    runs = read_magus(data_folder("magus13/pairs.csv").parent).ok()
    return KnownData(Runs(runs.table, checked=True))


def _device(number: int) -> KnownData:
    """A made device, with profiles that do not show all that contention costs: its workloads alone, in pairs
    and by three."""
    from studies.worlds.made_devices import MADE

    made = MADE[number]
    names, random = list(made.profiles), np.random.default_rng([made.seed, 4])
    triples = list(combinations(names, 3))
    chosen = [triples[at] for at in random.permutation(len(triples))[:DEVICE_TRIPLES]]
    sets = [*[(name,) for name in names] * 3, *combinations(names, 2), *chosen]
    runs = made.runs(sets, random)
    return KnownData(runs, made.profiles)


def _pitot(name: str, folder: str) -> KnownData:
    runs = read_pitot(data_folder(folder).parent).ok()
    platforms = len(runs.colocations.platform_names)
    drawn = np.random.default_rng(0).permutation(platforms)[: PLATFORMS[name]]
    return KnownData(runs.take(np.isin(runs.colocations.platform, drawn)))


def _recorded() -> KnownData:
    """Counter traces of twenty programs alone, in pairs and, as traces only, beside probes."""
    traces = read_traces(RECORDED)
    rows = [
        row
        for row in traces.traced.to_pylist()
        if row["runtime_seconds"]
        and not any(
            name.startswith(PROBES) for name in (row["workload"], *(row["corunners"] or []))
        )
    ]
    runs = Runs.from_columns(
        workload=[row["workload"] for row in rows],
        platform=[row["platform"] for row in rows],
        corunners=[row["corunners"] or [] for row in rows],
        runtime_seconds=[row["runtime_seconds"] for row in rows],
        run_id=[row["run_id"] for row in rows],
        window_id=[row["window_id"] or row["run_id"] for row in rows],
    )
    return KnownData(runs, traces=traces)


MEASURED: dict[str, Callable[[], KnownData]] = {
    "sample": lambda: KnownData(datasets.sample().ok()),
    "vision": lambda: KnownData(datasets.vision_bags().ok()),
    "shared-core": lambda: KnownData(datasets.shared_core_bags().ok()),
    "counters": _recorded,
    "kernels": partial(_on_a_gpu, "h200"),
    "jobs": partial(_on_a_gpu, "h100-jobs"),
    "gavel-oracle": partial(_gavel, "oracle"),
    "gavel-simulation": partial(_gavel, "simulation"),
    "gavel-without-features": _gavel_features,
    "magus13": _magus,
    "magus13-runs": _magus_runs,
    "pitot": partial(_pitot, "pitot", "pitot/data.npz"),
    "pitot-2023": partial(_pitot, "pitot-2023", "pitot/2023/two_way.npz"),
}
MADE_DEVICES = {f"device-{name}": partial(_device, number) for number, name in enumerate(DEVICES)}
SHIPPED = ["sample", "vision", "shared-core", "counters", "kernels", "jobs"]
KINDS = {
    "shipped": SHIPPED,
    "public": [name for name in MEASURED if name not in SHIPPED],
    "made": list(WORLDS),
    "devices": list(MADE_DEVICES),
}
