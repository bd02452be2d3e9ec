"""Record services and batch jobs on a GPU, alone and in pairs, as a dataset that `evaluate` reads.

    python benchmarks/gpu_pairs.py -o FOLDER [--runs 20] [--platform NAME]
    jostle evaluate accelerator --on pairs --data FOLDER

Needs PyTorch and a GPU; it has not been run where this repository is tested, which has neither. Six services
and six batch jobs, every pair of them. Each runs in a process of its own: where the MPS control daemon
is up, kernels run beside each other (compare with --sharing concurrent), else they take turns
(--sharing time-sliced). A run is one query or one step; the partner repeats its own until the workload
at hand has done all. A Kineto trace of one run alone is the profile.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SERVICES = ("mlp", "convolution", "attention", "lookup", "recurrent", "ranking")
BATCHES = ("gemm", "stream", "upload", "download", "fourier", "sort")
WARM_UP = 10


def work(name: str) -> Callable[[], object]:
    """One query or step of a workload on the GPU, its tensors made; returns when the GPU is done."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)

    def on(*shape: int, kind: torch.dtype = torch.float16) -> torch.Tensor:
        return torch.randn(*shape, device="cuda").to(kind)

    if name == "mlp":
        x, layers = torch.randn(64, 2048).half(), [on(2048, 2048) for _ in range(12)]

        def step() -> object:
            y = x.cuda()
            for layer in layers:
                y = torch.relu(y @ layer)
            return y.cpu()
    elif name == "convolution":
        x, filters = on(8, 64, 112, 112), [on(64, 64, 3, 3) for _ in range(10)]

        def step() -> object:
            y = x
            for kernel in filters:
                y = torch.relu(functional.conv2d(y, kernel, padding=1) * 0.04)
            return y.mean().cpu()
    elif name == "attention":
        q, k, v = (on(4, 16, 1024, 64) for _ in range(3))

        def step() -> object:
            y = q
            for _ in range(6):
                y = functional.scaled_dot_product_attention(y, k, v)
            return y.sum().cpu()
    elif name == "lookup":
        table, rows = on(4_000_000, 64), torch.randint(4_000_000, (1024, 200))

        def step() -> object:
            return functional.embedding(rows.cuda(), table).sum(1).cpu()
    elif name == "recurrent":
        cell, x = torch.nn.LSTM(512, 512, 2).cuda().half(), on(64, 16, 512)

        def step() -> object:
            with torch.no_grad():
                return cell(x)[0][-1].cpu()
    elif name == "ranking":
        items, query = on(1_000_000, 128), torch.randn(128, 8).half()

        def step() -> object:
            return torch.topk(items @ query.cuda(), 100, dim=0).indices.cpu()
    elif name == "gemm":
        a = on(6144, 6144)

        def step() -> object:
            return a @ a
    elif name == "stream":
        a = on(200_000_000, kind=torch.float32)

        def step() -> object:
            return a.add_(1.0)
    elif name in ("upload", "download"):
        host, there = (
            torch.empty(64 << 20, dtype=torch.uint8),
            torch.empty(64 << 20, dtype=torch.uint8, device="cuda"),
        )
        if name == "download":
            host = host.pin_memory()

        def step() -> object:
            return there.copy_(host) if name == "upload" else host.copy_(there)
    elif name == "fourier":
        a = on(64, 1 << 20, kind=torch.float32)

        def step() -> object:
            return torch.fft.rfft(a)
    elif name == "sort":
        a = on(40_000_000, kind=torch.float32)

        def step() -> object:
            return a.sort().values
    else:
        raise ValueError(name)

    def whole() -> object:
        made = step()
        torch.cuda.synchronize()
        return made

    return whole


def child(name: str, runs: int | None, ready: Any, stop: Any, pipe: Any, trace: str | None) -> None:
    """Times of `runs` runs through the pipe, or runs until `stop`; both begin when both are warm."""
    import torch  # pyright: ignore[reportMissingImports]

    step = work(name)
    for _ in range(WARM_UP):
        step()
    if trace is not None:
        with torch.profiler.profile() as recorded:
            step()
        recorded.export_chrome_trace(trace)
    ready.wait()
    times = []
    while runs is None and not stop.is_set():
        step()
    for _ in range(runs or 0):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    pipe.send(times)


def measure(name: str, partner: str | None, runs: int, trace: str | None = None) -> list[float]:
    """(runs,) s of one workload, alone or while its partner repeats."""
    import torch.multiprocessing as processes  # pyright: ignore[reportMissingImports]

    context = processes.get_context("spawn")
    both = [(name, runs), *([(partner, None)] if partner else [])]
    ready, stop = context.Barrier(len(both)), context.Event()
    pipes = [context.Pipe(duplex=False) for _ in both]
    started = []
    for (who, count), (_, write) in zip(both, pipes, strict=True):
        asked = (who, count, ready, stop, write, trace if who == name else None)
        started.append(context.Process(target=child, args=asked))
        started[-1].start()
        write.close()  # so that a child that fails ends the wait below
    try:
        return pipes[0][0].recv()
    except EOFError:
        raise SystemExit(f"{name} failed beside {partner}") from None
    finally:
        stop.set()
        ready.abort()
        for process in started:
            process.join(30)
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--platform")
    given = parser.parse_args()

    import torch  # pyright: ignore[reportMissingImports]

    import jostle
    from jostle.traces import read_profile, write_profiles

    platform = given.platform or torch.cuda.get_device_name().replace(" ", "-").lower()
    profiles, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in (*SERVICES, *BATCHES):
            trace = str(Path(folder) / f"{name}.json")
            times = measure(name, None, given.runs, trace)
            profiles.append(read_profile(trace, workload=name))
            rows += [(name, [], seconds) for seconds in times]
            print(f"{name}: {statistics.median(times) * 1e3:.3f} ms alone", flush=True)
    for name in SERVICES:
        for partner in BATCHES:
            times = measure(name, partner, given.runs)
            rows += [(name, [partner], seconds) for seconds in times]
            print(f"{name} beside {partner}: {statistics.median(times) * 1e3:.3f} ms", flush=True)
    write_profiles(given.output, profiles)
    runs = jostle.Runs.from_columns(
        workload=[name for name, _, _ in rows],
        platform=[platform] * len(rows),
        corunners=[beside for _, beside, _ in rows],
        runtime_seconds=[seconds for *_, seconds in rows],
    )
    jostle.Dataset(given.output).write(runs)


if __name__ == "__main__":
    main()
