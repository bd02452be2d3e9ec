"""Record kernels of PyTorch on a GPU, alone and in bags, for the accelerator and the bag alike.

    python -m studies.collect.gpu_pairs -o FOLDER [--budget 540] [--device cuda] [--modes mps,time-sliced]
    jostle evaluate FOLDER/dataset --method accelerator --leave-out set
    jostle fit FOLDER/dataset --method accelerator -o model;  jostle evaluate FOLDER/dataset

Nine kernels (copies in both directions among them) in five batch sizes: 45 alone, each with a trace of
several marked steps; 45 bags of two copies, 55 of two that differ, 10 of three or four. Solos are repeated
between them. Every measurement is a line in FOLDER/measurements.jsonl as soon as it is made: the same command
goes on where the last one was left, and ends by itself before --budget seconds. How processes share the
device is part of the platform's name (`h200|mps`). A member that dies or hangs costs its own measurement
only, which is tried once more by a later call. The dataset is written anew at the end of every call; kernels'
need of memory bandwidth is from the sizes of their tensors. PyTorch is needed, and a GPU unless --device cpu
is given, which tries the command out. `--scale 4` suits a large GPU, on which the smallest are too short.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

MODES = ("mps", "time-sliced")
RESERVE = 20.0  # s of the budget kept to write the dataset
EVERY = 8  # bags between repeated solos
REPEATS = 5  # rows of a dataset from one measurement, medians of parts of it
ORDER_LIMIT = 60.0  # s for one order to a worker, beside what it is told to run for
KERNELS = (
    *("gemm", "stream", "convolution", "attention", "lookup"),
    *("fourier", "sort", "upload", "download"),
)
SIZES = (1, 2, 4, 8, 16)  # batch sizes
NAMES = tuple(f"{kernel}-{size}" for kernel in KERNELS for size in SIZES)
MARKED_STEPS = 5

Step = Callable[[], Any]


def bytes_of(name: str, scale: float) -> float:
    """Compute the bytes that one step moves of the device's memory: each tensor read or written once."""
    kernel, size = split(name)
    n = scale * size
    side = 1024 * scale**0.5
    return {
        "gemm": 4 * (2 * side**2 * size**0.5 + side**2 * size),
        "stream": 8 * 4e6 * n,
        "convolution": 4 * 2 * 6 * 64 * 56 * 56 * n,
        "attention": 4 * 4 * 8 * 256 * 64 * n,
        "lookup": 4 * 64 * 2 * 20_000 * n,
        "fourier": 12 * 1e6 * n,
        "sort": 8 * 1e6 * n,
        "upload": 4e6 * n,
        "download": 4e6 * n,
    }[kernel]


def split(name: str) -> tuple[str, int]:
    """(kernel, batch size)"""
    kernel, _, size = name.rpartition("-")
    return kernel, int(size)


class TorchDevice:
    """Steps by PyTorch."""

    def __init__(self, device: str, scale: float) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        self.torch, self.device, self.scale = torch, device, scale
        self.on_gpu = device != "cpu"

    def step(self, name: str) -> Step:
        """One step of a workload, its tensors made."""
        torch = self.torch
        functional = torch.nn.functional
        torch.manual_seed(0)
        kernel, size = split(name)
        n, side = max(1, round(1e6 * self.scale * size)), max(8, round(1024 * self.scale**0.5))

        def on(*shape: int) -> Any:
            return torch.randn(*shape, device=self.device)

        if kernel == "gemm":
            a, b = on(side * size, side), on(side, side)
            return lambda: a @ b
        if kernel == "stream":
            a = on(4 * n)
            return lambda: a.add_(1.0)
        if kernel == "convolution":
            batch = max(1, round(size * self.scale))
            x, filters = on(batch, 64, 56, 56), [on(64, 64, 3, 3) * 0.04 for _ in range(6)]

            def convolve() -> Any:
                y = x
                for weights in filters:
                    y = torch.relu(functional.conv2d(y, weights, padding=1))
                return y

            return convolve
        if kernel == "attention":
            batch = max(1, round(size * self.scale))
            q, k, v = (on(batch, 8, 256, 64) for _ in range(3))
            return lambda: functional.scaled_dot_product_attention(q, k, v)
        if kernel == "lookup":
            table = on(max(1000, round(1e6 * self.scale)), 64)
            rows = torch.randint(len(table), (max(1, n // 50),), device=self.device)
            return lambda: functional.embedding(rows, table).sum(0)
        if kernel == "fourier":
            a = on(n)
            return lambda: torch.fft.rfft(a)
        if kernel == "sort":
            a = on(n)
            return lambda: a.sort().values
        host, there = torch.empty(n), torch.empty(n, device=self.device)
        if kernel == "download" and self.on_gpu:
            host = host.pin_memory()
        return (lambda: there.copy_(host)) if kernel == "upload" else (lambda: host.copy_(there))

    def timed(self, step: Step) -> float:
        """Seconds of one step until its work on the device is done, as who waits for it sees them: events of
        a GPU miss the time in which it belongs to another process."""
        began = time.perf_counter()
        step()
        if self.on_gpu:
            self.torch.cuda.current_stream().synchronize()
        return time.perf_counter() - began

    def trace(self, step: Step, path: Path) -> None:
        """A gzipped Kineto trace of several marked steps, the profiler warm."""
        profiler = self.torch.profiler
        schedule = profiler.schedule(wait=1, warmup=2, active=MARKED_STEPS)
        plain = path.with_suffix("")
        with profiler.profile(
            schedule=schedule, on_trace_ready=lambda p: p.export_chrome_trace(str(plain))
        ) as recorded:
            for _ in range(3 + MARKED_STEPS):
                self.timed(step)
                recorded.step()
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()


def repeated(device: Any, step: Step, seconds: float) -> list[float]:
    """Run a step over and over for so long, at least once. Returns the seconds of each."""
    until, times = time.perf_counter() + seconds, []
    while time.perf_counter() < until or not times:
        times.append(device.timed(step))
    return times


def worker(pipe: Any, kind: str, scale: float) -> None:
    """Obey orders until the pipe closes: (prepare, name, seconds), (run, begin, seconds), (trace, path).

    Answers (True, results) or (False, reason).
    """
    device: Any = None
    step: Any = None
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        results: Any = None
        try:
            device = device or TorchDevice(kind, scale)
            if order[0] == "prepare":
                step = device.step(order[1])
                repeated(device, step, order[2])
            elif order[0] == "run":
                time.sleep(max(0.0, order[1] - time.time()))
                results = repeated(device, step, order[2])
            else:
                device.trace(step, Path(order[1]))
            pipe.send((True, results))
        except Exception:
            pipe.send((False, traceback.format_exc(limit=3)))


@dataclass(frozen=True)
class KernelJob:
    """One measurement. kind: solo, bag or trace. again: a number for repeated ones."""

    kind: str
    members: tuple[str, ...]
    again: int = 0

    def key(self, mode: str) -> str:
        return json.dumps([mode, self.kind, self.members, self.again])


def plan(seed: int = 0) -> list[KernelJob]:
    """List all jobs of one mode; the first hour's tenth is a smaller campaign of the same."""
    draw = random.Random(seed)
    sets: list[tuple[str, ...]] = [(name, name) for name in NAMES]
    for size in [2] * 55 + [3 + n % 2 for n in range(10)]:
        members = tuple(sorted(draw.sample(NAMES, size)))
        while members in sets:
            members = tuple(sorted(draw.sample(NAMES, size)))
        sets.append(members)
    draw.shuffle(sets)
    solos = draw.sample(NAMES, len(NAMES))
    results = [KernelJob(kind, (name,)) for name in solos for kind in ("solo", "trace")]
    for number, members in enumerate(sets):
        results.append(KernelJob("bag", members))
        if number % EVERY == EVERY - 1:
            results += [KernelJob("solo", (name,), 1 + number) for name in dict.fromkeys(members)]
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


def measured(job: KernelJob, workers: Workers, mode: str, options: Any) -> dict[str, Any]:
    """Measure one job. Returns what stands in its line. Raises Gone."""
    pipes = workers.get(len(job.members))
    prepare = [("prepare", name, options.warm_up) for name in job.members]
    workers.all(pipes, prepare, ORDER_LIMIT + options.warm_up)
    if job.kind == "trace":
        (options.output / "traces").mkdir(exist_ok=True)
        path = Path("traces") / f"{mode}-{job.members[0]}.json.gz"
        workers.all(pipes, [("trace", str(options.output / path))], ORDER_LIMIT)
        return {"trace": str(path)}
    orders = [("run", time.time() + 0.05, options.seconds)] * len(job.members)
    medians = []
    for times in workers.all(pipes, orders, ORDER_LIMIT + 2 * options.seconds):
        cuts = np.linspace(0, len(times), REPEATS + 1).astype(int)
        medians.append([float(np.median(times[a : max(a + 1, b)])) for a, b in pairwise(cuts)])
    return {"medians": medians}


_ASK_TORCH = (
    "import torch, sys; p = torch.cuda.get_device_properties(0) if sys.argv[1] == 'cuda' else None; "
    "print(p.name.replace(' ', '-').lower() if p else 'cpu')"
)


def device_called(kind: str) -> str:
    """Ask PyTorch for the device's name, in a process of its own: one that has used the device before MPS
    starts stays beside it."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK_TORCH, kind], capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise SystemExit(
            f"PyTorch finds no such device here ({why}). Install it with: pip install torch, or try the "
            "command out with --device cpu."
        )
    return done.stdout.splitlines()[-1]


def start_mps(options: Any) -> dict[str, str] | None:
    """Start an MPS daemon of our own. Returns the environment of processes under it, or None."""
    tool = shutil.which("nvidia-cuda-mps-control")
    if options.device != "cuda" or tool is None:
        return None
    home = options.output.resolve() / "mps"
    home.mkdir(exist_ok=True)
    made = {"CUDA_MPS_PIPE_DIRECTORY": str(home), "CUDA_MPS_LOG_DIRECTORY": str(home)}
    try:
        subprocess.run([tool, "-d"], env={**os.environ, **made}, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return made


def mps_says(environment: dict[str, str], order: str) -> str:
    """Ask the daemon; empty if it does not answer."""
    try:
        return subprocess.run(
            ["nvidia-cuda-mps-control"],
            input=order + "\n",
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=10,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def lines(options: Any) -> list[dict[str, Any]]:
    """Read what was measured so far; a last line that was cut off is measured again."""
    path = options.output / "measurements.jsonl"
    if not path.exists():
        return []
    *whole, _ = path.read_text().split("\n")
    path.write_text("".join(line + "\n" for line in whole))
    return [json.loads(line) for line in whole]


def record(options: Any) -> None:
    """Measure what is missing, as far as the budget goes."""
    until = time.monotonic() + options.budget - RESERVE
    name, done = options.platform or device_called(options.device), lines(options)
    failed = [line["key"] for line in done if not line["ok"]]
    known = {line["key"] for line in done if line["ok"] or failed.count(line["key"]) > 1}
    for mode in options.modes.split(","):
        jobs = [
            job
            for job in plan(options.seed)[: options.most]
            if job.key(mode) not in known and (job.kind != "trace" or mode == "time-sliced")
        ]
        most = sum(2 * options.seconds + options.warm_up for job in jobs)
        print(f"{mode}: {len(jobs)} measurements left, at most {most / 60:.0f} minutes", flush=True)
        environment = start_mps(options) if mode == "mps" else {}
        if environment is None:
            print("MPS does not start here: left out", flush=True)
            continue
        workers = Workers(options.device, options.scale, environment)
        try:
            for job in jobs:
                needed = 3 * options.seconds + options.warm_up
                if time.monotonic() + needed > until:
                    print(f"the budget of {options.budget:.0f} s is used up: run it again")
                    return
                if (
                    mode == "mps"
                    and workers.running
                    and not mps_says(environment, "get_server_list")
                ):
                    print("MPS has no server although processes run: left out", flush=True)
                    break
                line = line_of(job, workers, mode, options) | {"platform": f"{name}|{mode}"}
                with (options.output / "measurements.jsonl").open("a") as file:
                    file.write(json.dumps(line) + "\n")
        finally:
            workers.stop()
            if mode == "mps":
                mps_says(environment, "quit")


def line_of(job: KernelJob, workers: Workers, mode: str, options: Any) -> dict[str, Any]:
    """Measure one job. Returns its line, whether it came through or not."""
    line: dict[str, Any] = {"key": job.key(mode), "mode": mode, "kind": job.kind}
    line |= {"members": list(job.members), "at": time.time()}
    try:
        line |= {"ok": True, **measured(job, workers, mode, options)}
    except Gone as error:
        workers.stop()
        line |= {"ok": False, "reason": str(error)[:200]}
    text = line.get("reason") or line.get("trace") or f"{line['medians'][0][0] * 1e3:.3f} ms"
    print(f"{mode} {job.kind} {' + '.join(job.members)}: {text}", flush=True)
    return line


def write(options: Any) -> None:
    """Make the dataset of all that was measured anew."""
    import jostle
    from jostle.data import read_profile, write_profiles

    rows, profiles, left_out = [], [], 0
    for number, line in enumerate(lines(options)):
        left_out += not line["ok"]
        if line["ok"] and line["kind"] == "trace":
            name = line["members"][0]
            profile = read_profile(options.output / line["trace"], workload=name)
            profiles.append(with_need(profile, bytes_of(name, options.scale)))
        elif line["ok"]:
            for place, name in enumerate(line["members"]):
                beside = line["members"][:place] + line["members"][place + 1 :]
                for part, seconds in enumerate(line["medians"][place]):
                    rows.append((name, line["platform"], beside, seconds, f"{number}-{part}"))
    if not rows:
        return
    target = options.output / "dataset"
    shutil.rmtree(target, ignore_errors=True)
    names, platforms, beside, seconds, windows = zip(*rows, strict=True)
    features: dict[str, list] = {
        "workload": list(NAMES),
        "kernel": [name.rpartition("-")[0] for name in NAMES],
        "batch": [int(name.rpartition("-")[2]) for name in NAMES],
        "bytes_per_step": [bytes_of(name, options.scale) for name in NAMES],
    }
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
        write_profiles(target, profiles)
    print(f"{len(rows)} runs, {len(profiles)} profiles in {target}; {left_out} left out")


def with_need(profile: Any, moved: float) -> Any:
    """Share out what a step's kernels move of the device's memory by their time, if the device is known."""
    kernels = [row for row in profile.tasks.to_pylist() if row["kind"] == "kernel"]
    seconds = sum(row["duration_seconds"] for row in kernels)
    pes = next((gpu.pes for gpu in profile.gpus.values() if gpu), None)
    if not seconds or pes is None:
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
    parser.add_argument("--seconds", type=float, default=0.6, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds")
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
