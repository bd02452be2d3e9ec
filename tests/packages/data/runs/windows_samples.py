"""Samples and helpers for tests of windows, and for others that need them."""

from __future__ import annotations

import math

BOUNDS = (0.05, 0.1, 0.2, 0.4, math.inf)


METRIC = "vllm:time_to_first_token_seconds"


STEP = 15.0


def histogram(service: str, gpu: str, rates: list[float], latency: list[float]) -> list[dict]:
    """A minute for each rate: readings every 15 s of latencies even over 0 to twice the mean."""
    count, total, within = [0.0], [0.0], [[0.0] * len(BOUNDS)]
    for rate, mean in zip(rates, latency, strict=True):
        for _ in range(4):
            more = rate * STEP
            count.append(count[-1] + more)
            total.append(total[-1] + more * mean)
            spread = [more * min(1.0, bound / (2 * mean)) for bound in BOUNDS]
            within.append([a + b for a, b in zip(within[-1], spread, strict=True)])
    times = [6000 + STEP * n for n in range(len(count))]
    labels = {"model_name": service, "gpu": gpu}

    def one(ending: str, values: list[float], **more: str) -> dict:
        pairs = [[at, str(value)] for at, value in zip(times, values, strict=True)]
        return {"metric": {**labels, **more, "__name__": f"{METRIC}_{ending}"}, "values": pairs}

    buckets = zip(BOUNDS, zip(*within, strict=True), strict=True)
    return [
        one("count", count),
        one("sum", total),
        *(one("bucket", list(v), le="+Inf" if b == math.inf else f"{b:g}") for b, v in buckets),
    ]
