"""What the sample that comes with Jostle is worth as prior knowledge on this machine.

    jostle tour FOLDER; python -m studies.live.tour_prior FOLDER/dataset [--draws 6]

Holds a quarter of the sets out, learns from all and from some of the rest, with the sample and without, and
prints the mean error on what was held out, for each draw and on average.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from studies.data import one_core

SHARES = (0.25, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--draws", type=int, default=6)
    options = parser.parse_args()
    one_core()
    import jostle
    from jostle.tour import HELD_OUT, hold_out_sets, mape, prior_for, tour_method

    runs = jostle.read_runs(options.dataset).ok()
    known = prior_for(runs)
    if known is None:
        sys.exit("the sample has other workloads of the same names")
    print("draw | runs to learn from | without | with the sample")
    found: dict[float, list[tuple[int, float, float]]] = {share: [] for share in SHARES}
    for draw in range(options.draws):
        held, rest = hold_out_sets(runs, HELD_OUT, draw)
        test = runs.take(held)
        for share in SHARES:
            learned = runs.take(rest)
            if share < 1:
                learned = learned.take(hold_out_sets(learned, 1 - share, draw + 100)[1])
            errors = []
            for prior in (None, known):
                method = tour_method(prior is not None)
                model = jostle.fit(learned, method, seed=draw, prior=prior)
                errors.append(mape(model.predict(test.colocations), test.runtime_seconds))
            found[share].append((len(learned), errors[0], errors[1]))
            print(f"{draw} | {len(learned)} | {errors[0]:.3f} | {errors[1]:.3f}", flush=True)
    for share, rows in found.items():
        size, without, with_prior = np.mean(rows, axis=0)
        better = sum(b < a for _, a, b in rows)
        print(
            f"{share:.0%} of the sets: {size:.0f} runs, {without:.3f} -> {with_prior:.3f}, "
            f"better in {better} of {len(rows)}"
        )


if __name__ == "__main__":
    main()
