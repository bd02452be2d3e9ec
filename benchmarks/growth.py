"""What one fit of the default costs as runs grow, and what it is worth beside simple rules.

    python benchmarks/growth.py [--runs 20000] [--method ensemble] [--learners network,rules]

Runs are drawn from the published ones of Pitot, without a tenth of the sets of
workloads, which are asked about. Prints CPU-seconds, memory, errors, and what the fit says of itself.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from _data import pitot_folder

MOST_ASKED = 6_000
CONFIDENCE = 0.9
RULES = ("additive", "low_rank")


def drawn(runs, count: int, seed: int):
    """(runs to learn from, runs of sets that are none of theirs on any platform)."""
    random, c = np.random.default_rng(seed), runs.colocations
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    label = np.random.default_rng(0).integers(0, 2**63, len(c.workload_names))
    key = label[c.workload].copy()
    np.add.at(key, row, label[c.corunner])
    sets, key = np.unique(key, return_inverse=True)
    left = (random.random(len(sets)) < 0.1)[key] & (c.number_of_corunners > 0)
    known, query = (random.permutation(np.flatnonzero(mask)) for mask in (~left, left))
    return runs.take(np.sort(known[:count])), runs.take(np.sort(query[:MOST_ASKED]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--method", default="ensemble")
    parser.add_argument("--learners")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    import jostle
    from jostle.learn import Ensemble, method_named
    from studies.data.pitot import read_pitot
    from studies.one_model.rules import fit_rule

    every = read_pitot(pitot_folder()).ok()
    known, asked = drawn(every, given.runs, given.seed)
    method = method_named(given.method)()
    if given.learners:
        method = Ensemble(tuple(given.learners.split(",")))
    began = time.process_time()
    model = jostle.fit(known, method, seed=given.seed)
    cpu = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    predicted, bounds = model.predict_and_bound(asked.colocations, CONFIDENCE)
    took = asked.runtime_seconds

    def error(answer: np.ndarray) -> str:
        known = np.isfinite(answer)
        off = np.abs(answer / took - 1)[known].mean()
        return f"{100 * off:.2f}%" + (
            "" if known.all() else f" of the {known.mean():.0%} it answers"
        )

    print(f"{given.method}, {len(known)} runs: {cpu:.0f} CPU-s, {memory:.0f} MB", flush=True)
    print(f"error of {len(asked)} runs of sets left out: {error(predicted)}")
    wide = np.maximum(bounds.seconds - took, 0)[bounds.is_valid] / took[bounds.is_valid]
    inside, valid = np.mean(took <= bounds.seconds), bounds.is_valid.mean()
    print(f"bounds at {CONFIDENCE}: {inside:.1%} inside, margin {wide.mean():.3f}, of {valid:.0%}")
    for name in RULES:
        began = time.process_time()
        answer = fit_rule(name, known, given.seed)(asked.colocations)
        print(f"{name}: error {error(answer)}, {time.process_time() - began:.0f} CPU-s")
    for note in getattr(model, "notes", ()):
        print(note)


if __name__ == "__main__":
    main()
