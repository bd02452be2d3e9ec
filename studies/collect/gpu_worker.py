"""What gpu_pairs.py runs on the device, and the processes that run it.

A worker is a process that is told, by a pipe, what to prepare and from when to run it; it says what it did.
Nobody waits for anybody else: the parent gives every order a time limit, and replaces a worker that is late
or gone.
"""

from __future__ import annotations

import gzip
import statistics
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from studies.collect.gpu_jobs import JOBS, job_step

KERNELS = (
    *("gemm", "stream", "convolution", "attention", "lookup"),
    *("fourier", "sort", "upload", "download"),
)
SIZES = (1, 2, 4, 8, 16)  # batch sizes
NAMES = tuple(f"{kernel}-{size}" for kernel in KERNELS for size in SIZES)
WINDOW, ALIKE, MOST_WARM_UP = 0.2, 0.02, 3.0  # s, share, s
MARKED_STEPS = 5

Step = Callable[[], Any]


def bytes_of(name: str, scale: float) -> float | None:
    """What one step moves of the device's memory, by the sizes of its tensors, each read or written once;
    None of a job."""
    if name in JOBS:
        return None
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
        if name in JOBS:
            return job_step(torch, self.device, name, self.scale)
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

    def stream(self) -> AbstractContextManager[Any]:
        """A stream of its own for the thread that enters it."""
        return self.torch.cuda.stream(self.torch.cuda.Stream()) if self.on_gpu else nullcontext()

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


class NumpyDevice:
    """Stands in on a CPU where PyTorch is not installed, so that the command can be tried at all."""

    on_gpu = False

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def step(self, name: str) -> Step:
        kernel, size = split(name)
        n, side = max(8, round(1e6 * self.scale * size)), max(8, round(1024 * self.scale**0.5))
        random = np.random.default_rng(0)
        a = random.normal(size=n).astype(np.float32)
        if kernel in ("gemm", "convolution", "attention"):
            x = random.normal(size=(side * size, side)).astype(np.float32)
            y = x[:side].copy()
            return lambda: x @ y
        if kernel == "lookup":
            rows = random.integers(n, size=max(1, n // 50))
            return lambda: a[rows].sum()
        if kernel == "fourier":
            return lambda: np.fft.rfft(a)
        if kernel == "sort":
            return lambda: np.sort(a)
        b = np.empty_like(a)
        return (lambda: np.add(a, 1.0, out=b)) if kernel == "stream" else (lambda: np.copyto(b, a))

    def stream(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def timed(self, step: Step) -> float:
        began = time.perf_counter()
        step()
        return time.perf_counter() - began

    def trace(self, step: Step, path: Path) -> None:
        raise RuntimeError("no profiler without PyTorch")


def device_of(kind: str, scale: float) -> TorchDevice | NumpyDevice:
    """kind: cuda, cpu, or numpy."""
    return NumpyDevice(scale) if kind == "numpy" else TorchDevice(kind, scale)


def settle(device: Any, step: Step, most: float = MOST_WARM_UP) -> float:
    """Warm up until two windows in a row have nearly the same median; the seconds that took."""
    began, before = time.perf_counter(), float("inf")
    while time.perf_counter() - began < most:
        until, times = time.perf_counter() + min(WINDOW, most / 4), []
        while time.perf_counter() < until or not times:
            times.append(device.timed(step))
        median = statistics.median(times)
        if abs(median - before) <= ALIKE * median:
            break
        before = median
    return time.perf_counter() - began


def run_member(
    device: Any, step: Step, begin: float, seconds: float, rate: float | None, seed: int
) -> list[float]:
    """Seconds of every step from `begin` (time.time) on for so long; with a rate those of queries that come
    at random times, from their arrival on."""
    time.sleep(max(0.0, begin - time.time()))
    began, times = time.perf_counter(), []
    if rate is None:
        while time.perf_counter() - began < seconds or not times:
            times.append(device.timed(step))
        return times
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, int(4 + seconds * rate)))
    for arrival in arrivals[arrivals < seconds].tolist():
        time.sleep(max(0.0, began + arrival - time.perf_counter()))
        device.timed(step)
        times.append(time.perf_counter() - began - arrival)
    return times


def worker(pipe: Any, kind: str, scale: float) -> None:
    """Obeys orders until the pipe closes: (prepare, names, most), (run, begin, seconds, rates, seed),
    (trace, path). Answers (True, what it found) or (False, why not)."""
    try:
        device: Any = device_of(kind, scale)
    except Exception:
        pipe.send((False, traceback.format_exc(limit=3)))
        return
    pipe.send((True, "ready"))
    steps: list[Step] = []
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        try:
            if order[0] == "prepare":
                steps = [device.step(name) for name in order[1]]
                results: Any = [settle(device, step, order[2]) for step in steps]
            elif order[0] == "run":
                results = _together(device, steps, *order[1:])
            elif order[0] == "trace":
                device.trace(steps[0], Path(order[1]))
                results = order[1]
            else:
                raise ValueError(order[0])
            pipe.send((True, results))
        except Exception:
            pipe.send((False, traceback.format_exc(limit=3)))


def _together(
    device: Any,
    steps: list[Step],
    begin: float,
    seconds: float,
    rates: list[float | None],
    seed: int,
) -> list[list[float]]:
    """Every step on a stream and a thread of its own."""

    def one(number: int) -> list[float]:
        with device.stream():
            return run_member(device, steps[number], begin, seconds, rates[number], seed + number)

    with ThreadPoolExecutor(len(steps)) as threads:  # what one of them raises is raised here
        return list(threads.map(one, range(len(steps))))
