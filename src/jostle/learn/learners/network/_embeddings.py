"""What training ends with: the numbers that a fitted factorization answers from, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.learners.network._network_equation import LEAK


@dataclass(frozen=True)
class Embeddings:
    """w workloads, p platforms, h quantile heads, t interference types, k their rank, g slots.

    base and bias of both sides: (w,), (p,) log seconds. workload_main (w, r), platform_main (p, r).
    platform_corun (p, r), platform_corun_base (p,): what is added beside others.
    target, corunner: (w, g, k), type t reads slot type_slot[t]. susceptibility, intensity: (p, t, k).
    type_weight: (t,). head_main (h, w, r), head_bias (h, w), head_target (h, w, g, k) replace their
    counterparts per quantile head. workload_component, platform_component: see Baseline.
    """

    workload_base: np.ndarray
    platform_base: np.ndarray
    workload_main: np.ndarray
    platform_main: np.ndarray
    platform_corun: np.ndarray
    platform_corun_base: np.ndarray
    target: np.ndarray
    corunner: np.ndarray
    susceptibility: np.ndarray
    intensity: np.ndarray
    type_slot: np.ndarray
    type_weight: np.ndarray
    head_main: np.ndarray
    head_base: np.ndarray
    head_target: np.ndarray
    workload_component: np.ndarray
    platform_component: np.ndarray


@dataclass(frozen=True)
class Form:
    """How the embeddings are read: see `_equation`. quantiles: of the heads; leak: of the paper form."""

    name: str
    quantiles: tuple[float, ...] = ()
    leak: float = LEAK
