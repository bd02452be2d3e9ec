"""`jostle evaluate accelerator --on magus13`: wall times of whole processes, every pair from the others."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from jostle.accelerator import Application, Device
from jostle.errors import UnreadableFile
from jostle.evaluate._accelerator import AcceleratorEvaluation, errors_of
from jostle.evaluate._processes import Pairs, baselines, fit_processes, simulate_delays
from jostle.traces import gpu_named, read_profile

CAMPAIGNS = ("magus13_r1", "magus13_iter100")
# Names in the table of pairs and of the files differ for two.
_FILES = {"binopt": "binomialOptions", "convfft2d": "convolutionFFT2D"}


def read_magus(folder: Path) -> tuple[dict[str, Pairs], list[Application], np.ndarray]:
    """({campaign: its pairs, repeats averaged}, applications in the order of the pairs' names, (n,) seconds
    at which each first uses the device). Raises UnreadableFile."""
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
    profiles = [
        read_profile(folder / "traces" / f"{_FILES.get(name, name)}_trace.csv", workload=name)
        for name in names
    ]
    first = np.array([profile.column("start_seconds")[0] for profile in profiles])
    return campaigns, [Application.from_profile(profile) for profile in profiles], first


def evaluate_accelerator_magus(folder: Path) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from the other pairs (both sides of a pair are left out together)."""
    campaigns, applications, first = read_magus(folder)
    device = Device.of(gpu_named("GTX 1080 Ti"), bus="shared")
    delays = simulate_delays(applications, first, device, "time-sliced")
    ends = simulate_delays(applications, first, device, "sequential")
    one, other = (campaigns[name] for name in CAMPAIGNS)
    said: dict[str, np.ndarray] = {}
    for pair in np.unique(one.pair):
        test = one.pair == pair
        train, asked = one.take(~test), one.take(test)
        answers = {
            "": fit_processes(train, delays).predict(asked),
            "residual": fit_processes(train, delays, residual=True).predict(asked),
            "sequential": fit_processes(train, ends).predict(asked),
            **baselines(train, asked),
        }
        for name, seconds in answers.items():
            said.setdefault(name, np.zeros(len(one.corun)))[test] = seconds
    unseen_said, unseen_measured = [], []
    for process in range(len(one.names)):
        test = (one.target == process) | (one.other == process)
        model = fit_processes(one.take(~test), delays)
        unseen_said.append(model.predict(one.take(test)))
        unseen_measured.append(one.corun[test])
    unseen = errors_of(np.concatenate(unseen_said), np.concatenate(unseen_measured))
    across = [
        errors_of(fit_processes(a, delays, residual=r).predict(b), b.corun)["error_mean_ratio"]
        for r in (False, True)
        for a, b in ((one, other), (other, one))
    ]
    metrics = {
        **errors_of(said[""], one.corun),
        **errors_of(said["residual"], one.corun, "residual_"),
        **{
            f"{name}_error_mean_ratio": errors_of(said[name], one.corun)["error_mean_ratio"]
            for name in ("sequential", "solo", "constant", "additive")
        },
        "unseen_application_error_mean_ratio": unseen["error_mean_ratio"],
        "other_campaign_error_mean_ratio": float(np.mean(across[:2])),
        "residual_other_campaign_error_mean_ratio": float(np.mean(across[2:])),
        "campaigns_differ_mean_ratio": float(np.mean(np.abs(one.corun / other.corun - 1))),
        "targets": float(len(one.corun)),
    }
    labels = {
        "": "simulator and context creation",
        "residual": "the same with a ridge on what is left",
        "sequential": "the same with the sequential kernel model",
        "additive": "additive in target and partner",
        "constant": "solo time and a constant",
        "solo": "solo time",
    }
    rows = []
    for name, label in labels.items():
        e = errors_of(said[name], one.corun)
        rows.append((label, *(f"{100 * value:.2f}%" for value in e.values())))
    rows.append(("an application never seen", *(f"{100 * v:.2f}%" for v in unseen.values())))
    rows.append(
        (
            "learned on one campaign, tested on the other",
            f"{100 * np.mean(across[:2]):.2f}%",
            "",
            "",
        )
    )
    return AcceleratorEvaluation(metrics, ("leaving out one pair", "mean", "p95", "max"), rows)
