"""How much co-runners slow a workload down, from pairs alone: the method as a value.

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
from typing import TYPE_CHECKING

from jostle.errors import UsageError
from jostle.factorization._settings import Progress

if TYPE_CHECKING:
    from jostle.factorization._slowdown_fitted import FittedSlowdown
    from jostle.runs import Runs

TARGETS = ("slowdown", "extra")


@dataclass(frozen=True)
class Slowdown:
    """Slowdown, or extra time, by susceptibility and pressure.

    target: `slowdown` for steady work (a rate, a loop), `extra` for finite jobs started together. rank:
    interference types. members: fits from different starts whose log runtimes are averaged. penalty, here:
    strength of the ridge, and weight of what a workload has on one platform only; None chooses them by
    cross-validation over sets of workloads among the runs to fit. alike: how far S and G are the same
    numbers, 0 to under 1; jobs that take turns wait about as long for each other, so None means 0.9 for
    extra time and 0 for the slowdown. floor: whether a co-runner can never speed a workload up; without
    it every workload has an offset of its own beside others.
    use_workload_features: whether features say something about S and G. steps: most iterations of a fit.
    process: whether a Gaussian process on the log slowdown is averaged with the form, with the share that
    cross-validation among the runs to fit finds best; closer where it was tried, but adding a co-runner may
    then lower an answer. With target `slowdown` only.
    """

    target: str = "slowdown"
    rank: int = 6
    members: int = 8
    penalty: float | None = None
    here: float | None = None
    alike: float | None = None
    floor: bool = True
    use_workload_features: bool = True
    steps: int = 300
    process: bool = False

    name = "slowdown"
    needs_alone = True  # answers are relative to the runtime alone

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise UsageError(f"unknown target {self.target!r}", fix=f"One of {', '.join(TARGETS)}.")
        for name in ("rank", "members", "steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.process and self.target != "slowdown":
            raise UsageError("a process is averaged with target slowdown only")
        if self.alike is not None and not 0 <= self.alike < 1:
            raise UsageError(f"alike must be at least 0 and under 1, not {self.alike}")
        for name in ("penalty", "here"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name} must be above 0, not {value}")

    def fit(
        self, runs: Runs, validation: Runs, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedSlowdown:
        """Learn from `runs` and `validation` together, of which some must be alone.

        Raises NotEnoughRuns without runs alone, and MissingExtra where SciPy is not installed.
        """
        from jostle.factorization._slowdown_fit import fit

        return fit(self, runs, validation, seed, progress)
