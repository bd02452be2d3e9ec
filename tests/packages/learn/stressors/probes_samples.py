"""Samples and helpers for tests of probes, and for others that need them."""

from __future__ import annotations

import numpy as np

from jostle.data import Runs

STRESSORS = ("probe-bus", "probe-cache")


def law(
    programs: int, seed: int, *, pairs: bool = True, triples: int = 0, noise: float = 0.0
) -> tuple[Runs, dict[str, np.ndarray]]:
    """Programs that press on cache and bus, and suffer from both, in measures of their own: log slowdown is
    the product of one's sensitivities with the others' pressures, which stressors have one of each."""
    random = np.random.default_rng(seed)
    names = [f"w{i}" for i in range(programs)]
    press = {name: random.dirichlet([1, 1, 2])[:2] for name in names}
    press |= {"probe-bus": np.array([1.0, 0.0]), "probe-cache": np.array([0.0, 1.0])}
    suffer = {name: random.uniform(0, 0.6, 2) for name in press}
    solo = {name: float(random.uniform(1, 9)) for name in press}
    rows: list[tuple[str, list[str], str]] = [(name, [], f"s{name}") for name in press]

    def together(members: list[str]) -> None:
        window = "+".join(members)
        rows.extend((m, [*members[:i], *members[i + 1 :]], window) for i, m in enumerate(members))

    for stressor in STRESSORS:
        for name in press:
            together([name, stressor])
    if pairs:
        for i, one in enumerate(names):
            for other in names[i:]:
                together([one, other])
    for _ in range(triples):
        together(random.choice(names, 3).tolist())
    seconds = [
        solo[name]
        * float(np.exp(suffer[name] @ sum((press[o] for o in others), np.zeros(2))))
        * float(np.exp(noise * random.normal()))
        for name, others, _ in rows
    ]
    runs = Runs.from_columns(
        workload=[name for name, _, _ in rows],
        platform=["p"] * len(rows),
        corunners=[others for _, others, _ in rows],
        runtime_seconds=seconds,
        window_id=[window for _, _, window in rows],
    )
    return runs, {"solo": np.array(list(solo.values()))}
