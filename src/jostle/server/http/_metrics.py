"""What a monitor reads at /metrics: Prometheus text, base units, few labels."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """Registry of the metrics of one application."""

    def __init__(self) -> None:
        self.registry = r = CollectorRegistry()
        ProcessCollector(registry=r)

        def made(kind: Any, name: str, help: str, labels: Sequence[str] = (), **rest: Any) -> Any:
            return kind(f"jostle_{name}", help, labels, registry=r, **rest)

        first_to_last = "From the request's first byte that was read to its answer."
        self.duration = made(Histogram, "request_duration_seconds", first_to_last, ["operation"],
                             buckets=_BUCKETS)  # fmt: skip
        by = ["operation", "status"]
        self.requests = made(Counter, "requests_total", "Requests answered.", by)
        behind, by = "Items answered, by what stands behind them.", ["operation", "outcome"]
        self.items = made(Counter, "items_total", behind, by)
        self.runs = made(Counter, "observed_runs_total", "Observed runs that were stored.")
        within = "Share of observed runs with a bound that ended at or under it."
        self.coverage = made(Gauge, "observed_coverage_ratio", within)
        self.bounded = made(Gauge, "observed_runs_with_bound", "Observed runs that had a bound.")
        self.placements = made(Gauge, "placements", "Placements alive.")
        self.nodes = made(Gauge, "fleet_nodes", "Nodes of the fleet.")
        self.drifts = made(Gauge, "drifts", "Drifts that were found since the model answers.")
        again = "Times that what goes on beside the answers failed and began again."
        self.failed = made(Counter, "loop_failures_total", again, ["loop"])
        by = ["version", "data_version"]
        self.model = made(Gauge, "model_info", "The model that answers.", by)
        swaps = "Times that a new model was taken while serving."
        failures = "Times that a new model could not be read."
        self._events = {
            "swaps": made(Counter, "model_swaps_total", swaps),
            "failures": made(Counter, "model_load_failures_total", failures),
        }
        self._counted = dict.fromkeys(self._events, 0)

    def raise_to(self, event: str, count: int) -> None:
        """Set a counter to how often something has happened by now."""
        self._events[event].inc(count - self._counted[event])
        self._counted[event] = count

    def count(self, operation: str, outcomes: Iterable[str]) -> None:
        """Count items that were answered."""
        for outcome, n in Counted(outcomes).items():
            self.items.labels(operation, outcome).inc(n)

    def text(self, refresh: Callable[[], None]) -> bytes:
        """Write all metrics, after `refresh` has set those that are looked up only on request."""
        refresh()
        return generate_latest(self.registry)
