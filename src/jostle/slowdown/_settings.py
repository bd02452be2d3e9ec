"""How much co-runners slow a workload down, from pairs alone: the equation and the fields of the method.

    log slowdown_i = w_i log(1 + g_p sum_t softplus(S_ipt) sum_{j in K} softplus(G_jpt))

S says how susceptible the target is to interference of type t, G how hard a co-runner presses there. Both
are sums of what a workload has everywhere, what it has on one platform, what its solo runtime says and,
where there are feature tables, what these say; a ridge penalty on each part decides how much the platforms
share. The slowdown never falls when a co-runner is added, the order of co-runners does not matter, and
any number of them can be asked about, because pressures add up inside the logarithm.

With `target="extra"` the sum is time and not a factor: a finite job pays a fixed price for starting beside
others and waits for a time that does not grow with its own length,

    runtime_i = solo_i + tau (c_p + sum_t softplus(S_ipt) sum_{j in K} softplus(G_jpt)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._options import Limits, OneOf, check_settings
from jostle.errors import UsageError


@dataclass(frozen=True)
class SlowdownSettings:
    """The fields of Slowdown, without what it does."""

    target: Annotated[
        str,
        OneOf(("slowdown", "extra")),
        "What is learned: slowdown for steady work (a rate, a loop), extra for finite jobs started together.",
    ] = "slowdown"
    rank: Annotated[int, "Interference types.", Limits(1)] = 6
    members: Annotated[
        int, "Fits from different starts whose log runtimes are averaged.", Limits(1)
    ] = 8
    stack: Annotated[
        bool,
        "Whether simple rules, a low-rank rest, boosting and Gaussian processes stand beside the form, each "
        "with the weight that cross-validation over sets of workloads finds. Without it the form answers "
        "alone, and a further co-runner never lowers an answer.",
    ] = True
    penalty: Annotated[
        float | None,
        "Strength of the form's ridge, in units of the variance of the log slowdown; by default chosen by "
        "cross-validation over sets of workloads among the runs to fit.",
    ] = None
    here: Annotated[
        float | None,
        "Weight of what a workload has on one platform only; by default chosen like the penalty.",
    ] = None
    alike: Annotated[
        float | None,
        "How far susceptibility and pressure are the same numbers, 0 to under 1. Jobs that take turns wait "
        "about as long for each other, so the default is 0.9 for extra time and 0 for the slowdown.",
    ] = None
    floor: Annotated[
        bool,
        "Whether a co-runner can never speed a workload up in the form; without it every workload has an "
        "offset of its own beside others.",
    ] = True
    use_workload_features: Annotated[
        bool, "Whether features say something about susceptibility and pressure."
    ] = True
    steps: Annotated[int, "Most iterations of a fit of the form.", Limits(1)] = 300
    process: Annotated[
        bool, "Whether Gaussian processes are among the members of the stack, up to 3000 rows."
    ] = True

    def __post_init__(self) -> None:
        check_settings(self)
        if self.alike is not None and not 0 <= self.alike < 1:
            raise UsageError(f"alike must be at least 0 and under 1, not {self.alike}")
        for name in ("penalty", "here"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name} must be above 0, not {value}")
