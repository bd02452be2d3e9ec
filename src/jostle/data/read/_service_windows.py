"""Latencies of services, such as TTFT: windows of Prometheus's histograms as runs, and who was beside them.

A run is a service at a load on a device for one window; its time is the mean latency in it, or a quantile as
PromQL's histogram_quantile gives it. Loads are levels, half a doubling apart, so that a service at a level is
met again; it is called `chat at 4/s`, and its features (service, load_per_second) let a method answer about
levels between those that were watched. DCGM's gauges say which pods share a GPU, who among them is no such
service, and how busy each makes a GPU that it has for itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from jostle._base.option_fields import Limits, OneOf, Positional
from jostle._base.untrusted import printable
from jostle.data.read._dcgm_gauges import FEATURES, Gauges, Pairs, Series, owner_of, pod_of
from jostle.data.read._imported_runs import Imported
from jostle.data.runs._runs import Runs
from jostle.data.tables import cells
from jostle.data.tables.cells import float_of
from jostle.data.tables.distinct_series import distinct
from jostle.data.tables.prometheus_json import RECORD, Matrix, points_of, read_answers
from jostle.data.tables.quantities import SECONDS
from jostle.errors import BadData, UsageError

# Histograms that are known, and of one that is none its sum, how many, and the unit of the sum in seconds.
_USUAL = (
    *("vllm:time_to_first_token_seconds", "vllm:time_per_output_token_seconds"),
    *("vllm:inter_token_latency_seconds", "vllm:e2e_request_latency_seconds"),
    *("inference_model_request_duration_seconds", "inference_objective_request_duration_seconds"),
    *("sglang:time_to_first_token_seconds", "sglang:e2e_request_latency_seconds"),
    *("tgi_request_duration", "nv_inference_request_summary_us", "nv_inference_request_duration"),
)
_OF_TRITON = ("nv_inference_request_duration_us", "nv_inference_request_success", 1e-6)
_IN_SECONDS = ("tgi_", "te_")  # whose names say no unit
_SERVICE = ("model_name", "target_model_name", "model", "service", "job")
_GPU = ("gpu_uuid", "GPU_UUID", "UUID", "gpu")
_NODE = (*_GPU, "node", "instance", "pod")
_SHARED = (*_GPU, "node")  # of which all who are on one are known to share it
_UNITS = ("s", "ms", "us", "ns")
KINDS = ("matrix", "vector")  # of answers
Key = tuple[frozenset[str], str]  # the devices that a service is on, and its name


@dataclass
class _Window:
    """Counts of what one service did on one device in one window. covered: {instance: s}. within: {upper
    bound in s: how many took no longer}."""

    covered: dict[int, float] = field(default_factory=dict)
    count: float = 0.0
    total_seconds: float = 0.0
    within: dict[float, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return max(self.covered.values(), default=0.0)

    def latency(self, quantile: float | None) -> float:
        """Estimate the latency in s; NaN if the series do not tell it. Inside a bucket latencies are taken as
        spread evenly; over its last bound nothing is known."""
        if quantile is None:
            return self.total_seconds / self.count
        bounds = sorted(self.within)
        wanted, low, fewer = quantile * self.within.get(math.inf, self.count), 0.0, 0.0
        for bound in bounds:
            if bound == math.inf:
                break
            more = self.within[bound]
            if more >= wanted > 0:
                return low + (bound - low) * (wanted - fewer) / (more - fewer)
            low, fewer = bound, more
        return math.nan


@dataclass(frozen=True)
class WindowsImport:
    """Windows of services that are watched, of answers of Prometheus to range queries: of each service and
    window a run, whose time is its latency, at its load, beside who shared the device then. Give the
    histogram's series (_count, _sum, and _bucket for a quantile) of vLLM, llm-d, Triton or any other, and
    gauges of DCGM (DCGM_FI_…), which tell whose pods share a GPU."""

    name: ClassVar[str] = "windows"
    file: Annotated[tuple[Path, ...], "JSON files of range queries.", Positional()]
    platform: Annotated[str, "The kind of device, by name."]
    latency: Annotated[
        str | None,
        "The histogram, without its ending.  [default: the first known one in the files]",
    ] = None
    service: Annotated[
        str | None, "The label that names services.  [default: model_name, …, job]"
    ] = None
    device: Annotated[
        str | None,
        "The label that names devices.  [default: gpu_uuid, …, else by DCGM, node, instance, pod]",
    ] = None
    unit: Annotated[
        str | None, "Of the latency: s, ms, us or ns.  [default: as its name ends]", OneOf(_UNITS)
    ] = None
    window: Annotated[str, "How long one is: 30s, 5min, 1h."] = "1min"
    quantile: Annotated[
        float | None, "Of the latencies, instead of their mean.", Limits(0.0, 1.0)
    ] = None
    fewest: Annotated[int, "Requests of a window that counts.", Limits(1)] = 20

    def read(self) -> Imported:
        """Read the windows of a service's histogram.

        Raises UnreadableFile, BadData, UsageError.
        """
        length = _length(self.window)
        where = ", ".join(str(path) for path in self.file[:3])
        matrix, notes = distinct([s for path in self.file for s in read_answers(path, KINDS)])
        series = series_of(matrix, where)
        names = {labels.get("__name__", "") for labels, _ in series}
        metric = self.latency or next((one for one in _USUAL if _parts(one, "s")[1] in names), None)
        if metric is None:
            known = ", ".join(printable(one) for one in sorted(names)[:8])
            fix = f"Name a histogram with `latency`; there are: {known or 'none'}."
            raise BadData("it has no latency that is known", where=where, fix=fix)
        total, count, unit = _parts(metric, self.unit)
        used = {total, count, f"{metric}_bucket"}
        mine = [(labels, pairs) for labels, pairs in series if labels.get("__name__") in used]
        _check(mine, where)
        if mine and all(len(pairs) < 2 for _, pairs in mine):
            raise BadData(
                "its series are of one moment (a vector), and no matrix over time",
                where=where,
                fix=RECORD,
            )
        service = _label(self.service, _SERVICE, mine, where)
        device = _label(self.device, _NODE, mine, where)
        gauges = Gauges.of(series, length)
        by_pod = self.device is None and device not in _GPU and bool(gauges.there)
        is_shared = by_pod or self.device is not None or device in _SHARED
        source = "pods as DCGM names them" if by_pod else f"label {device}"
        notes.append(
            f"service from label {service}, device from {source}, {metric} in units of {unit:g} s"
        )
        if not is_shared:
            notes.append(
                f"who shares a device is not known: {device} is none (say `device`, or add DCGM's)"
            )
        windows: dict[int, dict[Key, _Window]] = {}
        unknown: set[tuple[int, Key]] = set()
        for instance, (labels, pairs) in enumerate(mine):
            pod = pod_of(labels)
            for at, passed, more in _increments(pairs, length):
                number = math.floor((at - passed / 2) / length)
                place = gauges.gpus(number, pod) if by_pod else frozenset([labels[device]])
                key = place or frozenset([str(pod)]), labels[service]
                unknown |= set() if place else {(number, key)}
                one = windows.setdefault(number, {}).setdefault(key, _Window())
                if labels["__name__"] == count:
                    one.count += more
                    one.covered[instance] = one.covered.get(instance, 0.0) + passed
                elif labels["__name__"] == total:
                    one.total_seconds += more * unit
                else:
                    bound = float_of(labels.get("le", "inf"))
                    one.within[bound] = one.within.get(bound, 0.0) + more
        pods = {pod for labels, _ in mine if (pod := pod_of(labels)) is not None}
        if not is_shared:
            unknown |= {(number, key) for number, keys in windows.items() for key in keys}
        found = self._imported(windows, length, where, gauges, pods, unknown)
        return replace(found, understood=tuple(notes))

    def _imported(
        self,
        windows: dict[int, dict[Key, _Window]],
        length: float,
        where: str,
        gauges: Gauges,
        pods: set[tuple[str, str]],
        unknown: set[tuple[int, Key]],
    ) -> Imported:
        """pods: of the services. unknown: who was on no device that is known."""
        rows: list[tuple[str, list[str], float, str, bool, float]] = []
        skipped, levels = 0, dict[str, set[int]]()
        alone: dict[str, list[dict[str, float]]] = {}  # what each makes of a device of its own
        jobs: set[tuple[str, str]] = set()
        for number, services in sorted(windows.items()):
            active = {
                key: _level(one.count / one.seconds)
                for key, one in sorted(
                    services.items(), key=lambda item: (sorted(item[0][0]), item[0][1])
                )
                if one.count > 0 and one.seconds >= length / 2
            }
            for key, level in active.items():
                place, name = key
                levels.setdefault(name, set()).add(level)
                seconds = services[key].latency(self.quantile)
                if services[key].count < self.fewest or not 0 < seconds < math.inf:
                    skipped += 1
                    continue
                # Somebody whose device is not known may be on this one.
                is_unknown = any((number, other) in unknown for other in active)
                others = [(o, rate) for o, rate in active.items() if o != key and o[0] & place]
                beside = [_called(o[1], rate) for o, rate in others]
                others_there = gauges.beside(number, place, pods)
                jobs.update(others_there)
                beside += [owner_of(pod) for pod in others_there]
                load = services[key].count / services[key].seconds
                called, window = _called(name, level), f"{min(place)} {number}"
                rows.append((called, beside, seconds, window, is_unknown, load))
                if not beside and not is_unknown:
                    alone.setdefault(called, []).append(gauges.levels(number, place))
        if not rows:
            fix = f"Give longer windows, `fewest` under {self.fewest}, or series with _sum and _bucket."
            raise BadData(f"no window of {length:g} s has a latency", where=where, fix=fix)
        about: dict[str, tuple[str, float | None]] = {}
        for name, seen in levels.items():
            for level in range(min(seen), max(seen) + 1):
                about[_called(name, level)] = name, _rate(level)
        for pod in sorted(jobs):
            owner = owner_of(pod)
            about.setdefault(owner, (owner, None))
            alone.setdefault(owner, []).extend(gauges.alone(pod))
        service, load = zip(*about.values(), strict=True)
        features: dict[str, Any] = {
            "workload": list(about), "service": list(service), "load_per_second": list(load)
        }  # fmt: skip
        for feature in FEATURES:
            told = {
                name: [one[feature] for one in windows if feature in one]
                for name, windows in alone.items()
            }
            if any(told.values()):
                features[feature] = [
                    float(np.mean(told[name])) if told.get(name) else None
                    for name in features["workload"]
                ]
        names, beside, seconds, together, unsure, loads = zip(*rows, strict=True)
        runs = Runs.from_columns(
            workload=list(names),
            platform=[self.platform] * len(rows),
            corunners=list(beside),
            runtime_seconds=list(seconds),
            window_id=list(together),
            **({"unknown_corunners": list(unsure)} if any(unsure) else {}),
            requests_per_second=list(loads),
            covariates=("requests_per_second",),
            workload_features=features,
        )
        return Imported(runs, where, skipped=skipped)


def _parts(metric: str, unit: str | None) -> tuple[str, str, float]:
    """Return (its sum, its count, seconds of its unit: as its name says where it is not told). Raises
    UsageError."""
    if metric == _USUAL[-1]:
        return _OF_TRITON
    words = [
        SECONDS[word] for word in metric.lower().split("_") if word in SECONDS and len(word) > 1
    ]
    if unit is None and not words and not metric.startswith(_IN_SECONDS):
        raise UsageError(f"the name {metric!r} says no unit", fix="Say by `unit`: s, ms, us or ns.")
    factor = SECONDS[unit] if unit else words[-1] if words else 1.0
    return f"{metric}_sum", f"{metric}_count", factor


def series_of(matrix: Matrix, where: str) -> list[Series]:
    """Return (labels with __name__, pairs of s and value, rising) of each series. Raises BadData."""
    return [
        (labels | {"__name__": name}, sorted(map(tuple, points_of(pairs, where).tolist())))
        for name, labels, pairs in matrix
    ]


def _check(series: list[Series], where: str) -> None:
    """Raises BadData for counts below 0 and for buckets without a bound."""
    for labels, pairs in series:
        wrong = "is below 0, which no count is" if any(value < 0 for _, value in pairs) else ""
        try:
            if math.isnan(float_of(labels.get("le", "0"))):
                wrong = "has a bucket up to NaN"
        except ValueError as error:
            wrong = f"has a bucket without a bound: {error}"
        if wrong:
            text = f"{printable(labels['__name__'])} {printable(wrong)[:100]}"
            raise BadData(text, where=where, fix="Record it again.")


def _increments(pairs: Pairs, length: float) -> Iterator[tuple[float, float, float]]:
    """Yield (s since 1970, s since the reading before, by how much more) of a running total; from 0 where it
    began anew. What is longer apart than a window says nothing of any."""
    last: tuple[float, float] | None = None
    for at, value in pairs:
        if not (math.isfinite(at) and math.isfinite(value)):
            continue
        if last is not None and 0 < at - last[0] <= length:
            yield at, at - last[0], value - last[1] if value >= last[1] else value
        last = at, value


def _label(given: str | None, usual: tuple[str, ...], series: list[Series], where: str) -> str:
    """Return the label that is given, or the first usual one that all series have. Raises BadData."""
    for one in usual if given is None else (given,):
        if series and all(one in labels for labels, _ in series):
            return one
    has = ", ".join(sorted({printable(name) for labels, _ in series for name in labels}))
    what = repr(given) if given else f"of {', '.join(usual)}"
    fix = f"Name one with `service` or `device`; there are: {has or 'none'}."
    raise BadData(f"not all series of the latency have the label {what}", where=where, fix=fix)


def _level(per_second: float) -> int:
    return round(2 * math.log2(per_second))


def _rate(level: int) -> float:
    return 2 ** (level / 2)


def _called(service: str, level: int) -> str:
    return f"{service} at {_rate(level):.3g}/s"


def _length(text: str) -> float:
    such = "30s, 5min or 1h"
    value = cells.asked(cells.seconds, text, "`window`", such)
    if value is None:
        raise UsageError("`window` is empty", fix=f"Such as {such}.")
    return value
