"""`jostle evaluate accelerator --on magus13`: wall times of whole processes, every pair from the others.

Which form the model takes (one bus or a link per direction, how far starts are held to the profiles) is
chosen anew for every pair left out, on pairs left out of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from jostle.accelerator import Application, Device
from jostle.evaluate.accelerator._bubble import fit_bubble
from jostle.evaluate.accelerator._pair_process import PairProcess, fit_pair_process
from jostle.evaluate.accelerator._processes import (
    Pairs,
    ProcessModel,
    baselines,
    fit_processes,
    simulate_delays,
    usual_range,
)
from jostle.evaluate.accelerator._tables import (
    AcceleratorEvaluation,
    error_table,
    errors_of,
    read_measurements,
)
from jostle.traces import gpu_named, read_profile

CAMPAIGNS = ("magus13_r1", "magus13_iter100")
# Names in the table of pairs and of the files differ for two.
_FILES = {"binopt": "binomialOptions", "convfft2d": "convolutionFFT2D"}
BUSES = ("shared", "per_direction")
# How much later a context is created where the device is first used a second later, and how strongly that
# holds.
HELD = ((0.0, 0.0), (0.3, 0.3), (0.5, 1.0))
_INNER = 4  # parts of the pairs, left out in turn to choose a form


@dataclass(frozen=True, eq=False)
class Magus:
    """names: of the n processes. campaigns: {name: pairs, repeats averaged}. first: (n,) s at which each
    first uses the device. features: (n, f) of the traces. delays: {bus: (n, n) s simulated}."""

    names: tuple[str, ...]
    campaigns: dict[str, Pairs]
    first: np.ndarray
    features: np.ndarray
    delays: dict[str, np.ndarray]


def read_pairs(folder: Path) -> dict[str, Pairs]:
    """{campaign: its pairs, repeats averaged}. Raises UnreadableFile."""
    columns = ("dataset", "target", "corunner", "solo", "corun")
    table = read_measurements(folder / "pairs.csv", columns, "magus13 pairs")
    names = tuple(sorted({row["target"] for row in table}))
    place = {name: number for number, name in enumerate(names)}
    campaigns = {}
    for campaign in CAMPAIGNS:
        found: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for row in table:
            if row["dataset"] == campaign:
                key = place[row["target"]], place[row["corunner"]]
                times = float(row["solo"]) * 1e-3, float(row["corun"]) * 1e-3
                found.setdefault(key, []).append(times)
        keys = sorted(found)
        means = np.array([np.mean(found[key], axis=0) for key in keys])
        ends = np.array(keys)
        campaigns[campaign] = Pairs(names, ends[:, 0], ends[:, 1], means[:, 0], means[:, 1])
    return campaigns


def read_magus(folder: Path) -> Magus:
    """Measurements and profiles, with the delays simulated. Raises UnreadableFile."""
    campaigns = read_pairs(folder)
    names = next(iter(campaigns.values())).names
    profiles = [
        read_profile(folder / "traces" / f"{_FILES.get(name, name)}_trace.csv", workload=name)
        for name in names
    ]
    first = np.array([profile.column("start_seconds")[0] for profile in profiles])
    applications = [Application.from_profile(profile) for profile in profiles]
    pairs = next(iter(campaigns.values()))
    solo = np.array([pairs.solo[pairs.target == n].mean() for n in range(len(names))])
    gpu = gpu_named("GTX 1080 Ti")
    delays = {
        bus: simulate_delays(applications, first, Device.of(gpu, bus=bus), "time-sliced")
        for bus in BUSES
    }
    delays["sequential"] = simulate_delays(
        applications, first, Device.of(gpu, bus="shared"), "sequential"
    )
    return Magus(names, campaigns, first, _features(applications, first, solo), delays)


def _features(apps: list[Application], first: np.ndarray, solo: np.ndarray) -> np.ndarray:
    """(n, 6): log solo time, first use of the device, and logs of the trace's length, of what kernels and
    transfers take, and of the number of tasks. 10 ms count as nothing."""

    def spent(app: Application, *kinds: str) -> float:
        return sum(task.seconds for task in app.tasks if task.kind in kinds)

    columns = [
        np.log(solo),
        usual_range(first),
        np.log([0.01 + app.solo_seconds for app in apps]),
        np.log([0.01 + spent(app, "kernel") for app in apps]),
        np.log([0.01 + spent(app, "htod", "dtoh") for app in apps]),
        np.log([len(app) for app in apps]),
    ]
    return np.column_stack(columns)


def fit_form(data: Magus, pairs: Pairs) -> ProcessModel:
    """The simulator and context creation, in the form that does best on parts of the pairs left out."""
    first = usual_range(data.first) - np.median(data.first)
    forms = list(product(BUSES, HELD))
    part = np.unique(pairs.pair, return_inverse=True)[1] % _INNER
    off = np.zeros(len(forms))
    for number, (bus, (slope, pull)) in enumerate(forms):
        for out in range(_INNER):
            train, test = pairs.take(part != out), pairs.take(part == out)
            model = fit_processes(train, data.delays[bus], slope * first, pull)
            off[number] += np.sum(np.abs(model.predict(test) / test.corun - 1))
    bus, (slope, pull) = forms[int(np.argmin(off))]
    return fit_processes(pairs, data.delays[bus], slope * first, pull)


def _with_residual(
    data: Magus, train: Pairs, test: Pairs, buses: tuple[str, ...] = BUSES
) -> np.ndarray:
    """The simulated delays and what a Gaussian process adds to them, with the bus that does best on pairs
    left out of the process."""
    tried: list[tuple[float, np.ndarray, PairProcess]] = []
    for delays in (data.delays[bus] for bus in buses):
        left = train.corun - train.solo - delays[train.target, train.other]
        process = fit_pair_process(
            train.target, train.other, left, train.corun, data.features, train.pair
        )
        tried.append((float(np.mean(np.abs(process.missed) / train.corun)), delays, process))
    _, delays, process = min(tried, key=lambda one: one[0])
    simulated = test.solo + delays[test.target, test.other]
    return simulated + process.predict(test.target, test.other)


def _bubble(train: Pairs, test: Pairs) -> np.ndarray:
    n = len(train.names)
    model = fit_bubble(train.target, np.eye(n)[train.other], train.corun / train.solo)
    return test.solo * model.slowdown(test.target, np.eye(n)[test.other])


LABELS = {
    "": "simulator and context creation",
    "residual": "simulator and Gaussian process",
    "given_bus": "the same, told that one bus is shared",
    "sequential": "simulator and context creation, sequential kernels",
    "bubble": "bubble: sensitivity times pressure",
    "additive": "additive in target and partner",
    "constant": "solo time and a constant",
    "solo": "solo time",
}
_OURS = ("", "residual", "given_bus")  # of LABELS, those that every test is made of


def _answer(data: Magus, name: str, train: Pairs, test: Pairs) -> np.ndarray:
    """(m,) s by one of LABELS."""
    if name == "":
        return fit_form(data, train).predict(test)
    if name == "residual":
        return _with_residual(data, train, test)
    if name == "given_bus":
        return _with_residual(data, train, test, ("shared",))
    if name == "bubble":
        return _bubble(train, test)
    if name == "sequential":
        slope, pull = HELD[-1]
        expected = slope * (usual_range(data.first) - np.median(data.first))
        return fit_processes(train, data.delays[name], expected, pull).predict(test)
    return baselines(train, test)[name]


def _errors(
    data: Magus, names: Iterable[str], parts: Sequence[tuple[Pairs, Pairs]]
) -> dict[str, dict[str, float]]:
    """{name: errors of all parts together}. parts: (learned from, tested)."""
    measured = np.concatenate([test.corun for _, test in parts])
    found = {}
    for name in names:
        answers = [_answer(data, name, train, test) for train, test in parts]
        found[name] = errors_of(np.concatenate(answers), measured)
    return found


def _left_out(pairs: Pairs, parts: Iterable[np.ndarray]) -> list[tuple[Pairs, Pairs]]:
    """Each part, (m,) bool, to be tested on the rest."""
    return [(pairs.take(~test), pairs.take(test)) for test in parts]


def evaluate_accelerator_magus(folder: Path) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from the other pairs (both sides of a pair are left out together)."""
    data = read_magus(folder)
    one, other = (data.campaigns[name] for name in CAMPAIGNS)
    by_pair = [_left_out(c, [c.pair == p for p in np.unique(c.pair)]) for c in (one, other)]
    each = range(len(data.names))
    unseen = _left_out(one, [(one.target == a) | (one.other == a) for a in each])
    main = _errors(data, LABELS, by_pair[0])
    metrics = {**main[""]}
    metrics |= {f"residual_{name}": value for name, value in main["residual"].items()}
    for name in list(LABELS)[2:]:
        metrics[f"{name}_error_mean_ratio"] = main[name]["error_mean_ratio"]
    rows = [(LABELS[name], errors) for name, errors in main.items()]
    for tag, label, parts in (
        ("second_campaign", "in the second campaign", by_pair[1]),
        ("unseen_application", "an application never seen", unseen),
        (
            "other_campaign",
            "learned on one campaign, tested on the other",
            [(one, other), (other, one)],
        ),
    ):
        for name, errors in _errors(data, _OURS, parts).items():
            prefix = f"{name}_{tag}" if name else tag
            metrics[f"{prefix}_error_mean_ratio"] = errors["error_mean_ratio"]
            rows.append((f"{label}: {LABELS[name]}", errors))
    metrics["campaigns_differ_mean_ratio"] = float(np.mean(np.abs(one.corun / other.corun - 1)))
    metrics["targets"] = float(len(one.corun))
    return AcceleratorEvaluation(metrics, error_table(rows, "leaving out one pair"))
