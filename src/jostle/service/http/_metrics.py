"""What a monitor reads at /metrics: Prometheus text, base units, few labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
    """One registry of its own for each application."""

    def __init__(self) -> None:
        self.registry = r = CollectorRegistry()
        ProcessCollector(registry=r)
        self.duration = Histogram(
            "jostle_request_duration_seconds",
            "From the request's first byte that was read to its answer.",
            ["operation"],
            buckets=_BUCKETS,
            registry=r,
        )
        self.requests = Counter(
            "jostle_requests_total", "Requests answered.", ["operation", "status"], registry=r
        )
        self.items = Counter(
            "jostle_items_total",
            "Items answered, by what stands behind them.",
            ["operation", "outcome"],
            registry=r,
        )
        self.runs = Counter(
            "jostle_observed_runs_total", "Observed runs that were stored.", registry=r
        )
        self.coverage = Gauge(
            "jostle_observed_coverage_ratio",
            "Share of observed runs with a bound that ended at or under it.",
            registry=r,
        )
        self.bounded = Gauge(
            "jostle_observed_runs_with_bound", "Observed runs that had a bound.", registry=r
        )
        self.placements = Gauge("jostle_placements", "Placements alive.", registry=r)
        self.nodes = Gauge("jostle_fleet_nodes", "Nodes of the fleet.", registry=r)
        self.drifts = Gauge(
            "jostle_drifts", "Drifts that were found since the model answers.", registry=r
        )
        self.model = Gauge(
            "jostle_model_info", "The model that answers.", ["version", "data_version"], registry=r
        )
        swaps = "Times that a new model was taken while serving."
        failures = "Times that a new model could not be read."
        self._events = {
            "swaps": Counter("jostle_model_swaps_total", swaps, registry=r),
            "failures": Counter("jostle_model_load_failures_total", failures, registry=r),
        }
        self._counted = dict.fromkeys(self._events, 0)

    def raise_to(self, event: str, count: int) -> None:
        """So often it has happened by now."""
        self._events[event].inc(count - self._counted[event])
        self._counted[event] = count

    def count(self, operation: str, outcomes: Iterable[str]) -> None:
        """Items that were answered."""
        counts: dict[str, int] = {}
        for outcome in outcomes:
            counts[outcome] = counts.get(outcome, 0) + 1
        for outcome, n in counts.items():
            self.items.labels(operation, outcome).inc(n)

    def text(self, refresh: Callable[[], None]) -> bytes:
        """All of them, after `refresh` has set what is looked up only when asked."""
        refresh()
        return generate_latest(self.registry)
