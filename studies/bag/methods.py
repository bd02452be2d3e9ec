"""The methods that are compared on bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.learn import Ensemble, learn

if TYPE_CHECKING:
    from jostle.data import Runs


def bag_methods(runs: Runs, target: str, cpu_platform: str | None) -> dict[str, Any]:
    """Every method of the tables by name: baselines, the paper's tree, trees on `target`, each feature group
    alone and left out, slowdown, and the default."""
    from jostle.learn.learners.bags import GROUPS, Bag
    from jostle.learn.learners.latent_factors import Slowdown
    from studies.rivals.solo_time import SoloTime

    def bag(*groups: str, **options: Any) -> Bag:
        chosen = {"groups": groups, "rules": False} if groups else {}
        return Bag(**{"target": target, "cpu_platform": cpu_platform, **chosen, **options})

    paper = {"learner": "tree", "target": "runtime"}
    methods: dict[str, Any] = {
        "solo": SoloTime("solo"),
        "twice_solo": SoloTime("twice"),
        "solo_constant": SoloTime("plus" if target == "extra" else "times"),
        "tree_runtime": bag(**paper),
        "tree": bag(learner="tree"),
        "boosting": bag(rules=False),
        "bag": bag(),
        "slowdown": Slowdown(rank=4),
        "default": Ensemble(),
    }
    fitted = learn(Bag(learner="tree", cpu_platform=cpu_platform), runs)
    there = [group for group in GROUPS if group in set(fitted.feature_groups)]
    if "mix" in there:
        methods["mix_only_tree_runtime"] = bag("mix", **paper)
    methods |= {f"only_{group}": bag(group) for group in there}
    if len(there) > 1:
        methods |= {
            f"without_{group}": bag(*(other for other in there if other != group))
            for group in there
        }
    # The paper's Fig. 5: the mix, then CPU time, then fairness beside it; once with its tree on its target.
    steps = {"mix_and_cpu": ("mix", "cpu"), "mix_cpu_fairness": ("mix", "cpu", "fairness")}
    for name, groups in steps.items():
        if set(groups) <= set(there):
            methods[name] = bag(*groups)
            methods[f"{name}_tree_runtime"] = bag(*groups, **paper)
    return methods
