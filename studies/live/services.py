"""Latency of services that share devices, from windows as Prometheus has them.

    python -m studies.live.services

Made services whose laws are known (LAWS): prefills that queue for the device, decoding in batches, and
preemption once the KV caches outgrow the memory. Their histograms go through `jostle import windows`;
`jostle.fit` learns from the first seven tenths of the windows and answers about the rest. Rivals know the
same windows: the last one of the service, a queueing formula (base / (1 - sum of cost times load)), and
boosting on services and loads, whose bound is split conformal, on the last third of what it learns from.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import jostle
from jostle.runs import Runs, WindowsImport

SERVICES = ("chat", "code", "sum", "rank")
COST = np.array([0.03, 0.06, 0.09, 0.015])  # s of the device for a request
BASE = np.array([0.08, 0.15, 0.3, 0.02])  # s alone
NOISE, LEARNED, CONFIDENCE, DEVICES = 0.04, 0.7, 0.9, 3
METRIC = "vllm:time_to_first_token_seconds"


def prefill(load: np.ndarray) -> np.ndarray:
    return BASE / (1 - min(0.93, float(load @ COST)))


def batching(load: np.ndarray) -> np.ndarray:
    return BASE * (1 + 0.08 * math.ceil(6 * float(load @ COST))) + 0.01 * load


def kv_cache(load: np.ndarray) -> np.ndarray:
    taken = 1.3 * float(load @ COST)
    return BASE * (1 + 0.2 * taken) * (1 + 2.5 * max(0.0, taken - 0.6))


LAWS = {"prefill": prefill, "batching": batching, "KV cache": kv_cache}


def watched(law: str, windows: int, seed: int) -> Runs:
    """Loads wander, services come and go; what a range query with a step of a minute answers, imported."""
    random = np.random.default_rng([seed, *law.encode()])
    series = []
    for device in range(DEVICES):
        load, here = np.full(len(SERVICES), 2.0), np.ones(len(SERVICES), bool)
        count, total = np.zeros((2, windows + 1, len(SERVICES)))
        for window in range(windows):
            load = np.clip(load * np.exp(random.normal(0, 0.3, len(load))), 0.5, 8)
            here ^= random.random(len(here)) < 0.1
            off = np.exp(random.normal(0, NOISE, len(here)))
            count[window + 1] = count[window] + 60 * load * here
            total[window + 1] = total[window] + 60 * load * here * LAWS[law](load * here) * off
        for number, service in enumerate(SERVICES):
            for ending, values in (("count", count), ("sum", total)):
                labels = {"model_name": service, "gpu": str(device)}
                pairs = [[60 * n, str(v)] for n, v in enumerate(values[:, number].tolist())]
                name = {"__name__": f"{METRIC}_{ending}", **labels}
                series.append({"metric": name, "values": pairs})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ttft.json"
        path.write_text(json.dumps({"data": {"resultType": "matrix", "result": series}}))
        return WindowsImport((path,), "device").read().runs


def columns_of(runs: Runs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(number of the window, (n, 4) which service, (n, 4) requests per second of each) of n runs."""
    columns = runs.colocations.to_columns()
    window = np.array([int(w.split()[1]) for w in runs.table.column("window_id").to_pylist()])
    which, load = np.zeros((2, len(window), len(SERVICES)))
    for row, (target, others) in enumerate(
        zip(columns["workload"], columns["corunners"], strict=True)
    ):
        for name in (target, *others):
            service, _, rate = name.removesuffix("/s").partition(" at ")
            load[row, SERVICES.index(service)] += float(rate)
        which[row, SERVICES.index(target.partition(" at ")[0])] = 1
    return window, which, load


def evaluate(law: str, windows: int, seed: int) -> dict[str, float]:
    """Mean relative errors; of ours and of boosting the share of windows that 90% bounds keep, and how far
    above the time the median bound is."""
    from scipy.optimize import least_squares
    from sklearn.ensemble import HistGradientBoostingRegressor

    runs = watched(law, windows, seed)
    window, which, load = columns_of(runs)
    early = window < LEARNED * windows
    known, later = np.flatnonzero(early), np.flatnonzero(~early)
    known = known[np.argsort(window[known], kind="stable")]
    y, x = np.log(runs.runtime_seconds), np.hstack([which, load])
    last = {int(which[row].argmax()): y[row] for row in known}
    answers = {"last window": np.array([last[int(which[row].argmax())] for row in later])}

    def queue(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        busy = load[rows] @ np.exp(values[4:])
        return which[rows] @ values[:4] - np.log(1 - np.minimum(0.99, busy))

    start = np.concatenate([[y[known].min()] * 4, [math.log(0.02)] * 4])
    fitted = least_squares(lambda v: queue(v, known) - y[known], start, loss="soft_l1")
    answers["queueing"] = queue(fitted.x, later)
    method = HistGradientBoostingRegressor(loss="absolute_error", random_state=seed)
    answers["boosting"] = method.fit(x[known], y[known]).predict(x[later])
    some, rest = known[: 2 * len(known) // 3], known[2 * len(known) // 3 :]
    score = np.sort(y[rest] - method.fit(x[some], y[some]).predict(x[rest]))
    rank = min(len(score), math.ceil((len(score) + 1) * CONFIDENCE))
    bounds = {"boosting": np.exp(method.predict(x[later]) + score[rank - 1])}
    model = jostle.fit(runs.take(known), seed=seed)
    rows_left = runs.take(later)
    answers["jostle.fit"] = np.log(model.predict(rows_left.colocations))
    bounds["jostle.fit"] = model.bound(rows_left.colocations, CONFIDENCE).seconds
    true = rows_left.runtime_seconds
    errors = {n: float(np.abs(np.exp(v) / true - 1).mean()) for n, v in answers.items()}
    for name, bound in bounds.items():
        errors[f"{name} kept"] = float((true <= bound).mean())
        errors[f"{name} above"] = float(np.median(bound / true - 1))
    return errors


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--windows", type=int, default=120, help="minutes watched")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args(arguments)
    for law in LAWS:
        every = [evaluate(law, options.windows, seed) for seed in range(options.seeds)]
        means = {name: np.mean([one[name] for one in every]) for name in every[0]}
        print(f"{law}: " + ", ".join(f"{n} {100 * v:.1f}%" for n, v in means.items()), flush=True)


if __name__ == "__main__":
    main()
