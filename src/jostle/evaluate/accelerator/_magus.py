"""`jostle evaluate accelerator --on magus13`: wall times of whole processes, every pair from the others.

Which form the model takes (one bus or a link per direction, how far starts are held to the profiles) is
chosen anew for every pair left out, on pairs left out of the others.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from jostle.accelerator import Application, Device
from jostle.errors import UnreadableFile
from jostle.evaluate.accelerator._bubble import fit_bubble
from jostle.evaluate.accelerator._evaluation import AcceleratorEvaluation, errors_of
from jostle.evaluate.accelerator._pair_process import PairProcess, fit_pair_process
from jostle.evaluate.accelerator._processes import (
    Pairs,
    ProcessModel,
    baselines,
    fit_processes,
    simulate_delays,
    usual_range,
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
    path = folder / "pairs.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not table or {"target", "corunner", "solo", "corun"} - set(table[0]):
        raise UnreadableFile("not the table of magus13 pairs", where=str(path))
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
            test = part == out
            model = fit_processes(pairs.take(~test), data.delays[bus], slope * first, pull)
            asked = pairs.take(test)
            off[number] += np.sum(np.abs(model.predict(asked) / asked.corun - 1))
    bus, (slope, pull) = forms[int(np.argmin(off))]
    return fit_processes(pairs, data.delays[bus], slope * first, pull)


def fit_residual(
    data: Magus, pairs: Pairs, buses: tuple[str, ...] = BUSES
) -> tuple[np.ndarray, PairProcess]:
    """(the simulated delays, what a Gaussian process adds to them), with the bus that does best on pairs
    left out of the process."""
    best: tuple[float, np.ndarray, PairProcess] | None = None
    for bus in buses:
        delays = data.delays[bus]
        left = pairs.corun - pairs.solo - delays[pairs.target, pairs.other]
        found = fit_pair_process(
            pairs.target, pairs.other, left, pairs.corun, data.features, pairs.pair
        )
        off = float(np.mean(np.abs(found.missed) / pairs.corun))
        if best is None or off < best[0]:
            best = off, delays, found
    assert best is not None
    return best[1:]


def _with_residual(
    data: Magus, pairs: Pairs, asked: Pairs, buses: tuple[str, ...] = BUSES
) -> np.ndarray:
    delays, process = fit_residual(data, pairs, buses)
    simulated = asked.solo + delays[asked.target, asked.other]
    return simulated + process.predict(asked.target, asked.other)


def _bubble(pairs: Pairs, asked: Pairs) -> np.ndarray:
    n = len(pairs.names)
    model = fit_bubble(pairs.target, np.eye(n)[pairs.other], pairs.corun / pairs.solo)
    return asked.solo * model.slowdown(asked.target, np.eye(n)[asked.other])


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


def _answer(data: Magus, name: str, pairs: Pairs, asked: Pairs) -> np.ndarray:
    """(m,) s by one of LABELS, learned from `pairs`."""
    if name == "":
        return fit_form(data, pairs).predict(asked)
    if name == "residual":
        return _with_residual(data, pairs, asked)
    if name == "given_bus":
        return _with_residual(data, pairs, asked, ("shared",))
    if name == "bubble":
        return _bubble(pairs, asked)
    if name == "sequential":
        slope, pull = HELD[-1]
        expected = slope * (usual_range(data.first) - np.median(data.first))
        return fit_processes(pairs, data.delays[name], expected, pull).predict(asked)
    return baselines(pairs, asked)[name]


def _left_out(
    data: Magus, pairs: Pairs, parts: list[np.ndarray], names: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """{name: errors of all parts, each learned from the rest}. parts: (m,) bool each."""
    said: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for test in parts:
        for name in names:
            said[name].append(_answer(data, name, pairs.take(~test), pairs.take(test)))
    measured = np.concatenate([pairs.corun[test] for test in parts])
    return {name: errors_of(np.concatenate(part), measured) for name, part in said.items()}


def evaluate_accelerator_magus(folder: Path) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from the other pairs (both sides of a pair are left out together)."""
    data = read_magus(folder)
    one, other = (data.campaigns[name] for name in CAMPAIGNS)
    by_pair = _left_out(data, one, [one.pair == p for p in np.unique(one.pair)], tuple(LABELS))
    again = _left_out(data, other, [other.pair == p for p in np.unique(other.pair)], _OURS)
    each = range(len(data.names))
    unseen = _left_out(data, one, [(one.target == a) | (one.other == a) for a in each], _OURS)
    across = {
        name: errors_of(
            np.concatenate([_answer(data, name, one, other), _answer(data, name, other, one)]),
            np.concatenate([other.corun, one.corun]),
        )
        for name in _OURS
    }
    metrics = {**by_pair[""]}
    metrics |= {f"residual_{name}": value for name, value in by_pair["residual"].items()}
    for name in list(LABELS)[2:]:
        metrics[f"{name}_error_mean_ratio"] = by_pair[name]["error_mean_ratio"]
    rows = [(LABELS[name], *_percents(errors)) for name, errors in by_pair.items()]
    for what, label, found in (
        ("second_campaign", "in the second campaign", again),
        ("unseen_application", "an application never seen", unseen),
        ("other_campaign", "learned on one campaign, tested on the other", across),
    ):
        for name, errors in found.items():
            prefix = f"{name}_{what}" if name else what
            metrics[f"{prefix}_error_mean_ratio"] = errors["error_mean_ratio"]
            rows.append((f"{label}: {LABELS[name]}", *_percents(errors)))
    metrics["campaigns_differ_mean_ratio"] = float(np.mean(np.abs(one.corun / other.corun - 1)))
    metrics["targets"] = float(len(one.corun))
    return AcceleratorEvaluation(metrics, ("leaving out one pair", "mean", "p95", "max"), rows)


def _percents(errors: dict[str, float]) -> tuple[str, ...]:
    return tuple(f"{100 * value:.2f}%" for value in errors.values())
