"""How much co-runners slow a workload down, from pairs alone: the equation and the method.

    log slowdown_i = w_i log(1 + g_p sum_t softplus(S_ipt) sum_{j in K} softplus(G_jpt))

S says how susceptible the target is to interference of type t, G how hard a co-runner presses there. Both
are sums of what a workload has everywhere, what it has on one platform, what its solo runtime says and,
where there are feature tables, what these say; a ridge penalty on each part decides how much the platforms
share. The order of co-runners does not matter, and any number of them can be asked about, because pressures
add up inside the logarithm. A form of seconds says what a finite job pays that waits for a time which does
not grow with its own length,

    runtime_i = solo_i + tau (c_p + sum_t softplus(S_ipt) sum_{j in K} softplus(G_jpt)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jostle._base.option_fields import Limits, check_settings
from jostle.learn.ensemble._base_learner import BaseLearner
from jostle.learn.ensemble._ensemble_method import StackedMethod


@dataclass(frozen=True)
class Slowdown(StackedMethod):
    """Slowdown, or extra time, beside others by susceptibility and pressure, from pairs alone; simple rules
    stand beside it."""

    rank: Annotated[int, "Interference types.", Limits(1)] = 6
    members: Annotated[
        int, "Fits from different starts whose log runtimes are averaged.", Limits(1)
    ] = 8
    steps: Annotated[int, "Most iterations of a fit of the form.", Limits(1)] = 300
    name: ClassVar[str] = "slowdown"
    fits_again: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)

    def chosen_learners(self) -> list[BaseLearner]:
        from jostle.learn.learners.latent_factors._product_learner import ProductLearner
        from jostle.learn.learners.simple_rules._rules_learner import SimpleRules

        return [SimpleRules(), ProductLearner(self.rank, self.members, self.steps)]
