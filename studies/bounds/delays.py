"""How soon a small change of one device can be told at all, by whatever test.

    python -m studies.bounds.delays [--fitted 900] [--seed 10]

Made campaigns (studies.live.drift_made), by the quick method. No test that raises a false alarm once in A
runs of a level tells before log(A) / I of its runs in the mean (Lorden 1971), where I is what one run says of
the change: for x1.05 half the squared shift, in standard deviations, of normal scores by the rank of errors,
as the watch sees them; for noise of .10 that comes on top (r^2 - 1) / 2 - log r, r being the ratio of the
spreads of errors. A is 60 000, or 4 million, with which fleet, devices, platforms and workloads together
raise one in 60 000 runs with chance .06. That is where the usual level is known exactly; known from m runs, n
become n m / (m - n), and never where m is less.
"""

from __future__ import annotations

import argparse
from statistics import NormalDist

import numpy as np

import jostle
from studies.bounds.made import Additive
from studies.data import one_core
from studies.live.drift import devices_of
from studies.live.drift_made import LAWS, campaign

STEP, NOISE, RUNS, ALARMS = np.log(1.05), 0.10, 6000, (6e4, 4e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fitted", type=int, default=900)
    parser.add_argument("--seed", type=int, default=10)
    options = parser.parse_args()
    one_core()
    heads = [f"{what}, one in {a:.0f}" for what in ("x1.05", "spread .10") for a in ALARMS]
    print("law | spread of errors | shift of scores", *heads, sep=" | ")
    for law in LAWS:
        make = campaign(law, options.seed)
        model = jostle.fit(make(options.fitted), Additive(), seed=options.seed)
        runs = make(RUNS)
        off = np.log(runs.runtime_seconds / model.predict(runs.colocations))
        scores = [_normal(off, one, runs.colocations.number_of_corunners) for one in (0, STEP)]
        device = devices_of(runs)
        names = np.unique(device)
        spread = np.array([off[device == name].std() for name in names])
        shift = [
            (scores[1] - scores[0])[device == d].mean() / scores[0][device == d].std()
            for d in names
        ]
        ratio = np.hypot(spread, NOISE) / spread
        tells = (np.square(shift) / 2, (ratio**2 - 1) / 2 - np.log(ratio))
        least = [f"{np.median(np.log(a) / one):.0f}" for one in tells for a in ALARMS]
        print(law, f"{np.median(spread):.3f}", f"{np.median(shift):.2f}", *least, sep=" | ")


def _normal(off: np.ndarray, step: float, degree: np.ndarray) -> np.ndarray:
    """(n,) normal scores of errors a step later, by their rank among those of as many co-runners."""
    scores = np.zeros(len(off))
    for d in np.unique(degree):
        at = degree == d
        rank = np.searchsorted(np.sort(off[at]), off[at] + step) + 0.5
        share = np.minimum(rank, at.sum() - 0.5) / at.sum()
        scores[at] = [NormalDist().inv_cdf(float(one)) for one in share]
    return scores


if __name__ == "__main__":
    main()
