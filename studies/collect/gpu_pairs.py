"""Record kernels of PyTorch on a GPU, alone and in bags, for the accelerator and the bag alike.

    python -m studies.collect.gpu_pairs -o FOLDER [--budget 540]
        [--device cuda] [--modes mps,time-sliced,streams]
    python -m studies accelerator --on pairs --data FOLDER/dataset --sharing concurrent
    jostle fit accelerator FOLDER/dataset -o model;  python -m studies bag --data FOLDER/dataset

Nine kernels (copies in both directions among them) in five batch sizes: 45 alone, each with a trace of
several marked steps; 45 bags of two copies, 55 of two that differ, 10 of three or four, and 12 of a service,
whose queries come at random times, beside batch work. Solos are repeated between them. Every measurement is
a line in FOLDER/measurements.jsonl as soon as it is made: the same command goes on where the last one was
left, and ends by itself before --budget seconds. What is here (MPS, PyTorch) is found out first and stands
in FOLDER/machine.json; how processes share the device is started, verified, and part of the platform's name
(`h200|mps`). A member that dies or hangs costs its own measurement only, which is tried once more by a later
call. The dataset is written anew at the end of every call; kernels' need of memory bandwidth is from the
sizes of their tensors. PyTorch is needed, and a GPU unless --device cpu is given, which tries the command
out; without PyTorch it does so with NumPy, and without traces.

`--scale 4` suits a large GPU, on which the smallest of these kernels are otherwise too short to be seen.
`--workloads jobs` records twenty whole jobs instead (gpu_jobs.py): 20 bags of two copies, 30 of two that
differ, 35 of three, 25 of four.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from studies.collect.gpu_jobs import JOBS
from studies.collect.gpu_worker import KERNELS, NAMES, SIZES, bytes_of, worker

MODES = ("mps", "time-sliced", "streams")
RESERVE = 20.0  # s of the budget kept to write the dataset
EVERY = 8  # bags between repeated solos
REPEATS = 5  # rows of a dataset from one measurement, medians of parts of it
ORDER_LIMIT = 60.0  # s for one order to a worker, beside what it is told to run for
NO_TORCH = (
    "PyTorch is not installed, and kernels on a GPU are PyTorch's here. Install it with: pip install torch, "
    "or try the command out with --device cpu, where NumPy stands in."
)


@dataclass(frozen=True)
class KernelJob:
    """One measurement. kind: solo, bag, service or trace. rates: of each member's queries, None to run on and
    on. again: a number for repeated ones."""

    kind: str
    members: tuple[str, ...]
    again: int = 0
    loads: tuple[float | None, ...] = ()

    def key(self, mode: str) -> str:
        return json.dumps([mode, self.kind, self.members, self.again, self.loads])


def plan(seed: int = 0, workloads: str = "kernels") -> list[KernelJob]:
    """All jobs of one mode, in an order in which the first hour's tenth is a smaller campaign of the same."""
    draw = random.Random(seed)
    names, pairs, larger = list(NAMES), 55, [3 + n % 2 for n in range(10)]
    if workloads == "jobs":
        names, pairs, larger = list(JOBS), 30, [3] * 35 + [4] * 25
    sets: list[tuple[str, ...]] = [(name, name) for name in names]
    for size in [2] * pairs + larger:
        members = tuple(sorted(draw.sample(names, size)))
        while members in sets:
            members = tuple(sorted(draw.sample(names, size)))
        sets.append(members)
    bags = [KernelJob("bag", members) for members in sets]
    for number in range(12 if workloads == "kernels" else 0):
        service = f"{KERNELS[number % 5]}-{SIZES[0]}"
        beside = draw.sample(names, 1 + number % 2)
        loads = (0.3 if number % 3 else 0.6, *(None for _ in beside))
        bags.append(KernelJob("service", (service, *beside), loads=loads))
    draw.shuffle(bags)
    solos = [KernelJob("solo", (name,)) for name in names]
    draw.shuffle(solos)
    results: list[KernelJob] = []
    for solo in solos:
        results += [solo, KernelJob("trace", solo.members)]
    for number, bag in enumerate(bags):
        results.append(bag)
        if number % EVERY == EVERY - 1:
            results += [
                KernelJob("solo", (name,), 1 + number) for name in dict.fromkeys(bag.members)
            ]
    return results


class Gone(Exception):
    """A worker died, or took too long."""


class Workers:
    """Up to four processes on the device, started when they are first needed and replaced when they are
    gone."""

    def __init__(self, kind: str, scale: float, environment: dict[str, str]) -> None:
        self.kind, self.scale, self.environment = kind, scale, environment
        self.context = multiprocessing.get_context("spawn")
        self.running: list[tuple[Any, Any]] = []

    def get(self, count: int) -> list[Any]:
        """The pipes of so many. Raises Gone."""
        old = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            while len(self.running) < count:
                ours, theirs = self.context.Pipe()
                process = self.context.Process(
                    target=worker, args=(theirs, self.kind, self.scale), daemon=True
                )
                process.start()
                theirs.close()  # so that one that dies ends what waits for it
                self.running.append((process, ours))
                self.answer(ours, ORDER_LIMIT)
        finally:
            for name, value in old.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        return [pipe for _, pipe in self.running[:count]]

    def answer(self, pipe: Any, limit: float) -> Any:
        """Raises Gone with the reason."""
        try:
            if not pipe.poll(limit):
                raise Gone(f"no answer in {limit:.0f} s")
            good, results = pipe.recv()
        except (EOFError, OSError):
            raise Gone("the process ended") from None
        if not good:
            raise Gone(str(results).strip().splitlines()[-1])
        return results

    def all(self, pipes: Sequence[Any], orders: Sequence[tuple], limit: float) -> list[Any]:
        """Each one's answer to its order. Raises Gone."""
        for pipe, order in zip(pipes, orders, strict=True):
            try:
                pipe.send(order)
            except OSError:
                raise Gone("the process ended") from None
        return [self.answer(pipe, limit) for pipe in pipes]

    def stop(self) -> None:
        for process, pipe in self.running:
            pipe.close()
            process.join(0.5)
            if process.is_alive():
                process.kill()
                process.join(5)
        self.running.clear()


def measured(
    job: KernelJob, workers: Workers, mode: str, options: Any, solo: dict[str, float]
) -> dict:
    """What one job found, for its line. Raises Gone."""
    one_process = mode == "streams"
    groups = [list(job.members)] if one_process else [[name] for name in job.members]
    pipes = workers.get(len(groups))
    prepare = [("prepare", group, options.warm_up) for group in groups]
    warm = workers.all(pipes, prepare, ORDER_LIMIT + len(job.members) * options.warm_up)
    if job.kind == "trace":
        traces = options.output / "traces"
        traces.mkdir(exist_ok=True)
        path = traces / f"{mode}-{job.members[0]}.json.gz"
        workers.all(pipes, [("trace", str(path))], ORDER_LIMIT)
        return {"trace": str(path.relative_to(options.output))}
    rates = [
        None if load is None else load / solo[name]
        for load, name in zip(job.loads or [None] * len(job.members), job.members, strict=True)
    ]
    seconds = options.seconds
    if any(rates):  # as many queries as p99 takes, where there is time
        seconds = min(8 * seconds, max([seconds, *(110 / rate for rate in rates if rate)]))
    begin = time.time() + 0.05
    split_rates = [rates] if one_process else [[rate] for rate in rates]
    orders = [("run", begin, seconds, part, 17) for part in split_rates]
    results = workers.all(pipes, orders, ORDER_LIMIT + 2 * seconds)
    times = [times for part in results for times in part]
    shares = np.linspace(0, 1, REPEATS + 1)
    return {
        "warm_up_seconds": [float(s) for part in warm for s in part],
        "rates_per_second": rates,
        "steps": [len(t) for t in times],
        "medians": [
            [
                float(np.median(t[int(a * len(t)) : max(int(a * len(t)) + 1, int(b * len(t)))]))
                for a, b in pairwise(shares)
            ]
            for t in times
        ],
        "p95_seconds": [float(np.quantile(t, 0.95, method="higher")) for t in times],
        "p99_seconds": [float(np.quantile(t, 0.99, method="higher")) for t in times],
        "bytes_per_step": [bytes_of(name, options.scale) for name in job.members],
        "clock_mhz": clock(),
    }


def clock() -> float | None:
    """Of the SMs, now; None where nvidia-smi cannot say."""
    asked = ["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        results = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True)
        return float(results.stdout.splitlines()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


_ASK_TORCH = (
    "import json, torch; p = torch.cuda.get_device_properties(0); "
    "print(json.dumps({'torch': torch.__version__, 'memory_bytes': p.total_memory, "
    "'name': p.name.replace(' ', '-').lower()}))"
)


def machine(options: Any) -> dict[str, Any]:
    """What works here, found out once and kept in machine.json."""
    path = options.output / "machine.json"
    if path.exists():
        return json.loads(path.read_text())
    has_torch = importlib.util.find_spec("torch") is not None
    if not has_torch and options.device != "cpu":
        raise SystemExit(NO_TORCH)
    results: dict[str, Any] = {
        "device": options.device if has_torch else "numpy",
        "name": "cpu",
        "tools": {t: shutil.which(t) for t in ("nvidia-cuda-mps-control", "ncu", "nvidia-smi")},
    }
    if has_torch and options.device == "cuda":
        # In a process of its own: one that has used the device before MPS starts stays beside it.
        asked = [sys.executable, "-c", _ASK_TORCH]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise SystemExit(
                f"PyTorch finds no GPU here ({why}). --device cpu tries the command out."
            )
        results |= json.loads(done.stdout.splitlines()[-1])
    path.write_text(json.dumps(results, indent=1) + "\n")
    return results


def start_mps(options: Any, results: dict[str, Any]) -> dict[str, str] | None:
    """The environment of processes under an MPS daemon of our own; None where it does not start."""
    tool = results["tools"]["nvidia-cuda-mps-control"]
    if results["device"] != "cuda" or tool is None:
        return None
    home = options.output.resolve() / "mps"
    home.mkdir(exist_ok=True)
    made = {"CUDA_MPS_PIPE_DIRECTORY": str(home), "CUDA_MPS_LOG_DIRECTORY": str(home)}
    try:
        subprocess.run([tool, "-d"], env={**os.environ, **made}, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return made


def mps_says(options: Any, environment: dict[str, str], order: str) -> str:
    """What the daemon answers; empty where it does not."""
    try:
        done = subprocess.run(
            ["nvidia-cuda-mps-control"],
            input=order + "\n",
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=10,
        )
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def lines(options: Any) -> list[dict[str, Any]]:
    """What was measured so far; a last line that was cut off is measured again."""
    path = options.output / "measurements.jsonl"
    results = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            results.append(json.loads(line))
        except ValueError:
            continue
    return results


def record(options: Any) -> None:
    """Measure what is missing, as far as the budget goes."""
    began = time.monotonic()
    results = machine(options)
    done = lines(options)
    path = options.output / "measurements.jsonl"
    if path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size:
        with path.open("a") as file:
            file.write("\n")
    failed = [line["key"] for line in done if not line["ok"]]
    known = {line["key"] for line in done if line["ok"] or failed.count(line["key"]) > 1}
    solo = {m["members"][0]: m["medians"][0][0] for m in done if m["kind"] == "solo" and m["ok"]}
    modes = options.modes.split(",")
    if results["device"] != "cuda":
        modes = [mode for mode in modes if mode != "mps"]

    plans = {
        mode: _missing(
            plan(options.seed, options.workloads), mode, known, results["device"], options.most
        )
        for mode in modes
    }
    missing = {mode: list(jobs) for mode, jobs in plans.items()}
    for mode, jobs in missing.items():
        most = sum(2 * options.seconds + len(job.members) * options.warm_up for job in jobs)
        print(f"{mode}: {len(jobs)} measurements left, at most {most / 60:.0f} minutes", flush=True)

    def left() -> float:
        return options.budget - RESERVE - (time.monotonic() - began)

    for mode in modes:
        environment = start_mps(options, results) if mode == "mps" else {}
        if environment is None:
            print("MPS does not start here: left out", flush=True)
            continue
        workers = Workers(results["device"], options.scale, environment)
        try:
            for job in missing[mode]:
                if left() < 3 * options.seconds + len(job.members) * options.warm_up:
                    print(
                        f"the budget of {options.budget:.0f} s is used up: run it again", flush=True
                    )
                    return
                if (
                    mode == "mps"
                    and workers.running
                    and not mps_says(options, environment, "get_server_list")
                ):
                    print("MPS has no server although processes run: left out", flush=True)
                    break
                line = _line(job, workers, mode, options, solo)
                line["platform"] = f"{options.platform or results['name']}|{mode}"
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        finally:
            workers.stop()
            if mode == "mps":
                mps_says(options, environment, "quit")


def _missing(
    jobs: list[KernelJob], mode: str, known: set[str], device: str, most: int | None
) -> Iterator[KernelJob]:
    """Those not measured yet; traces once, and where there is a profiler."""
    for job in jobs[:most]:
        is_traced = mode == "time-sliced" and device != "numpy"
        if job.key(mode) not in known and (job.kind != "trace" or is_traced):
            yield job


def _line(
    job: KernelJob, workers: Workers, mode: str, options: Any, solo: dict[str, float]
) -> dict:
    line: dict[str, Any] = {"key": job.key(mode), "mode": mode, "kind": job.kind}
    line |= {"members": list(job.members), "at": time.time()}
    try:
        line |= {"ok": True, **measured(job, workers, mode, options, solo)}
        if job.kind == "solo":
            solo.setdefault(job.members[0], line["medians"][0][0])
    except (Gone, KeyError) as error:
        workers.stop()
        line |= {"ok": False, "reason": str(error)[:200]}
    text = line.get("reason") or line.get("trace") or f"{line['medians'][0][0] * 1e3:.3f} ms"
    print(f"{mode} {job.kind} {' + '.join(job.members)}: {text}", flush=True)
    return line


def write(options: Any) -> Path | None:
    """The dataset of all that was measured, made anew; None where nothing was."""
    import jostle
    from jostle.errors import JostleError
    from jostle.traces import read_profile, write_profiles

    rows, profiles, notes = [], {}, []
    for number, line in enumerate(lines(options)):
        if not line["ok"]:
            notes.append(f"{' + '.join(line['members'])}: {line['reason']}")
            continue
        if line["kind"] == "trace":
            name = line["members"][0]
            try:
                results = read_profile(options.output / line["trace"], workload=name)
                profiles[name] = _with_need(results, bytes_of(name, options.scale))
            except JostleError as error:
                notes.append(f"{name}: {error}")
        if line["kind"] not in ("solo", "bag"):
            continue  # latencies of queries are no runs
        for place, name in enumerate(line["members"]):
            beside = line["members"][:place] + line["members"][place + 1 :]
            for part, seconds in enumerate(line["medians"][place]):
                rows.append((name, line["platform"], beside, seconds, f"{number}-{part}"))
    if not rows:
        return None
    target = options.output / "dataset"
    shutil.rmtree(target, ignore_errors=True)
    names, platforms, beside, seconds, windows = zip(*rows, strict=True)
    listed = NAMES if options.workloads == "kernels" else JOBS
    features: dict[str, list] = {
        "workload": list(listed),
        "kernel": [name.rpartition("-")[0] for name in listed],
        "batch": [int(name.rpartition("-")[2]) for name in listed],
    }
    if options.workloads == "kernels":
        features["bytes_per_step"] = [bytes_of(name, options.scale) for name in listed]
    runs = jostle.Runs.from_columns(
        workload=names,
        platform=platforms,
        corunners=beside,
        runtime_seconds=seconds,
        window_id=windows,
        workload_features=features,
    )
    jostle.Dataset(target).write(runs)
    if profiles:
        write_profiles(target, list(profiles.values()))
    services = [line for line in lines(options) if line["ok"] and line["kind"] == "service"]
    kept = {
        "runs": len(rows),
        "profiles": len(profiles),
        "services": len(services),
        "left_out": notes,
    }
    (options.output / "summary.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(
        f"{len(rows)} runs, {len(profiles)} profiles in {target}; {len(notes)} left out", flush=True
    )
    return target


def _with_need(profile: Any, moved: float | None) -> Any:
    """The profile of one step, with what its kernels move of the device's memory shared out by their time;
    as it is where that is not known."""
    kernels = [row for row in profile.tasks.to_pylist() if row["kind"] == "kernel"]
    seconds = sum(row["duration_seconds"] for row in kernels)
    pes = next((gpu.pes for gpu in profile.gpus.values() if gpu), None)
    if not seconds or pes is None or moved is None:
        return profile
    return profile.with_bandwidth({row["name"]: moved / seconds / pes for row in kernels})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds, all in all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--platform", help="instead of the device's name")
    parser.add_argument("--workloads", choices=("kernels", "jobs"), default="kernels")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds at most")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes")
    parser.add_argument("--most", type=int, help="jobs of each mode, to try it out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    unknown = set(options.modes.split(",")) - set(MODES)
    if unknown or options.budget <= 0 or options.seconds <= 0 or options.scale <= 0:
        parser.error(f"modes are of {', '.join(MODES)}, and numbers above 0")
    options.output.mkdir(parents=True, exist_ok=True)
    record(options)
    write(options)


if __name__ == "__main__":
    main()
