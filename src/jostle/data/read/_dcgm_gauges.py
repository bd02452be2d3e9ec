"""NVIDIA's DCGM exporter: which pods are on which GPU, and how busy it is, window by window."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from jostle.data.read._pod_owners import owner_by_name

Pairs = list[tuple[float, float]]
Series = tuple[dict[str, str], Pairs]

# What is told of a device, and the factor that makes it that.
_KNOWN = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("busy_ratio", 1.0),
    "DCGM_FI_DEV_GPU_UTIL": ("busy_ratio", 0.01),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active_ratio", 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active_ratio", 1.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("memory_active_ratio", 1.0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("memory_active_ratio", 0.01),
    "DCGM_FI_DEV_FB_USED": ("memory_used_mib", 1.0),
}
FEATURES = tuple(dict.fromkeys(feature for feature, _ in _KNOWN.values()))
_UNTOLD = 1e12  # DCGM writes numbers near 2^63 for what a device does not tell


@dataclass
class Gauges:
    """Readings of GPUs by window, from DCGM. there: {window: {pod: its GPUs}}, a pod as (namespace, name).
    level: {(window, GPU): {feature: [sum, number of readings]}}."""

    there: dict[int, dict[tuple[str, str], set[str]]] = field(default_factory=dict)
    level: dict[tuple[int, str], dict[str, list[float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, series: Iterable[Series], length: float) -> Gauges:
        """Collect DCGM's series from all series. A GPU is its UUID, with the number of its MIG instance."""
        found = cls()
        for labels, pairs in series:
            name = labels.get("__name__", "")
            uuid = labels.get("UUID") or labels.get("uuid")
            if not name.startswith("DCGM_FI_") or not uuid:
                continue
            gpu = f"{uuid}/{labels['GPU_I_ID']}" if labels.get("GPU_I_ID") else uuid
            feature, factor = _KNOWN.get(name, ("", 0.0))
            pod = pod_of(labels, of_exporter=True)
            for at, value in pairs:
                number = math.floor(at / length)
                if pod is not None:
                    found.there.setdefault(number, {}).setdefault(pod, set()).add(gpu)
                if feature and 0 <= value < _UNTOLD:
                    told = found.level.setdefault((number, gpu), defaultdict(lambda: [0.0, 0.0]))
                    told[feature][0] += value * factor
                    told[feature][1] += 1
        return found

    def gpus(self, number: int, pod: tuple[str, str] | None) -> frozenset[str]:
        """Return the GPUs of a pod in a window; none if the series do not say."""
        return frozenset(self.there.get(number, {}).get(pod or ("", ""), ()))

    def beside(
        self, number: int, place: frozenset[str], known: set[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Return pods on these GPUs in a window, but for those that are known otherwise."""
        pods = self.there.get(number, {}).items()
        return [pod for pod, gpus in sorted(pods) if gpus & place and pod not in known]

    def alone(self, pod: tuple[str, str]) -> list[dict[str, float]]:
        """Return the pod's use of its GPUs, for each window in which no other pod is on them."""
        return [
            self.levels(number, frozenset(pods[pod]))
            for number, pods in self.there.items()
            if pod in pods and not any(pods[pod] & gpus for o, gpus in pods.items() if o != pod)
        ]

    def levels(self, number: int, place: frozenset[str]) -> dict[str, float]:
        """Return {feature: mean over the readings of these GPUs in a window}."""
        total: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for gpu in place:
            for feature, (value, n) in self.level.get((number, gpu), {}).items():
                total[feature][0] += value
                total[feature][1] += n
        return {feature: value / n for feature, (value, n) in total.items()}


def pod_of(labels: dict[str, str], *, of_exporter: bool = False) -> tuple[str, str] | None:
    """Return (namespace, name) of the pod that labels name. Prometheus calls labels that its target has too
    `exported_…`: `pod` is then the exporter's own, as it is where an exporter tells of no pod."""
    if labels.get("exported_pod"):
        return labels.get("exported_namespace", ""), labels["exported_pod"]
    pod = labels.get("pod") or labels.get("pod_name") or ""
    is_own = of_exporter and "dcgm-exporter" in pod
    return (labels.get("namespace", ""), pod) if pod and not is_own else None


def owner_of(pod: tuple[str, str]) -> str:
    """Return namespace/owner, the owner by what generated names add."""
    return "/".join(part for part in (pod[0], owner_by_name(pod[1])) if part)
