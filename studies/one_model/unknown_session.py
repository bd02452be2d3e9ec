"""What 90% bounds keep where sessions differ: of a session that is named, of none, and of one never met.

    python -m studies.one_model.unknown_session [--draws 4] [--sessions 2,4,12] [--experts rules]
        [--seed 0] [--workers 1] [--kept FILE]

Made campaigns of 500 runs of 14 workloads on two platforms, alone or beside one or two others, in sessions of
which each takes longer or shorter as a whole (8%, normal), all as large, or 70% of the runs in one. Asked
about are runs of the same sessions, all as large, by name and without, and runs of thirty sessions never met.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from jostle.runs import Runs
from studies.bounds.kept import add_options, drawn

WORKLOADS, PLATFORMS, FITTED, NOISE, APART, CONFIDENCE = 14, 2, 500, 0.03, 0.08, 0.9
NEW_SESSIONS, ASKED_OF_EACH = 30, 40
SIZES = ("as large", "one large")
HEADS = ("named", "unnamed", "never met", "margin named", "margin unnamed")


class SessionWorld:
    """Slowdowns are 1 + susceptibility times the sum of pressures; all of a session takes its own factor."""

    def __init__(self, sessions: int, seed: int) -> None:
        self.random = r = np.random.default_rng([seed, sessions])
        self.hit, self.press = r.uniform(0.1, 1, WORKLOADS), r.uniform(0, 0.8, WORKLOADS)
        self.log_alone = r.normal(size=(PLATFORMS, WORKLOADS))
        self.log_factor = APART * r.normal(size=sessions + NEW_SESSIONS)

    def runs(self, session: np.ndarray) -> Runs:
        """One of each session (n,)."""
        r, rows = self.random, []
        for factor in self.log_factor[session].tolist():
            platform, (own, *others) = (
                r.integers(PLATFORMS),
                r.integers(0, WORKLOADS, r.integers(1, 4)),
            )
            slow = np.log(1 + self.hit[own] * self.press[others].sum())
            log = self.log_alone[platform, own] + slow + factor + NOISE * r.normal()
            rows.append((f"w{own}", f"p{platform}", [f"w{one}" for one in others], np.exp(log)))
        workload, platforms, corunners, seconds = zip(*rows, strict=True)
        return Runs.from_columns(
            workload=workload,
            platform=platforms,
            corunners=corunners,
            runtime_seconds=np.array(seconds),
            campaign=[f"day {one}" for one in session.tolist()],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--sessions", default="2,4,12")
    parser.add_argument("--experts", default="", help="by default all")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    numbers, seeds = map(int, options.sessions.split(",")), range(options.draws)
    kinds = [(number, sizes) for number in numbers for sizes in SIZES]
    keys = [(*kind, options.seed + seed) for kind in kinds for seed in seeds]
    found = drawn(_of_draw, keys, options)
    print("sessions", "sizes", *HEADS, sep=" | ")
    for kind in kinds:
        rows = np.array([row for key, row in found.items() if key[:2] == kind])
        print(*kind, *(f"{one:.3f}" for one in rows.mean(0)), sep=" | ")


def _of_draw(options: Any, sessions: int, sizes: str, seed: int) -> list[float]:
    import jostle
    from jostle.ensemble import Ensemble

    world = SessionWorld(sessions, seed)
    share = np.full(sessions, 1 / sessions)
    if sizes == SIZES[1]:
        share = np.array([0.7, *[0.3 / (sessions - 1)] * (sessions - 1)])
    known = world.runs(world.random.choice(sessions, FITTED, p=share))
    experts = tuple(name for name in options.experts.split(",") if name)
    model = jostle.fit(known, Ensemble(experts), seed=seed)
    named = []
    for one in range(sessions):
        asked = world.runs(np.full(600 // sessions, one))
        told = bool(model.session_cost) and f"day {one}" in model.session_names
        named.append((model.in_session(f"day {one}") if told else model, asked))
    every = Runs.concatenate([asked for _, asked in named])
    new = world.runs(np.repeat(sessions + np.arange(NEW_SESSIONS), ASKED_OF_EACH))
    of_named = np.mean([_kept(about, asked) for about, asked in named], axis=0)
    of_unnamed = _kept(model, every)
    return [of_named[0], of_unnamed[0], _kept(model, new)[0], of_named[1], of_unnamed[1]]


def _kept(model: Any, runs: Runs) -> tuple[float, float]:
    """(share of runs at or under their bound, margin), of those that have one."""
    from jostle.bounds import coverage, margin

    bounds = model.bound(runs.colocations, CONFIDENCE)
    seconds, took = bounds.seconds[bounds.is_valid], runs.runtime_seconds[bounds.is_valid]
    return coverage(seconds, took), margin(seconds, took)


if __name__ == "__main__":
    main()
