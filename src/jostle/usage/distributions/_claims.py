"""How far probabilities that few runs gave can be believed: a correction chosen on held-out runs.

Of n runs k were over a limit; (k + prior) / (n + 2 prior) is the probability that the next one is. With the
prior 0.5 it is Jeffreys' rule (Krichevsky and Trofimov, IEEE Trans. Information Theory 27, 1981), the middle
of what exchangeability leaves open: k / (n + 1) to (k + 1) / (n + 1) (Vovk et al., Conformal predictive
distributions, 2017). Which prior is right depends on how alike runs are: it is the one by which each run,
left out, was least surprising to the others at the snapshots.
"""

from __future__ import annotations

import numpy as np

from jostle.usage.distributions._distribution import corrected
from jostle.usage.snapshots._snapshots import Snapshots

PRIORS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
USUAL = 0.5
LEVELS = (0.5, 0.8, 0.95, 0.99)  # quantiles of all snapshots that serve as limits
SHOTS, ATOMS = 40, 200  # snapshots that are tried, and runs of each
FEWEST = 3


def prior_of(snapshots: Snapshots, core: int) -> float:
    """Return the prior with the least logarithmic score of runs left out, over snapshots and limits."""
    shots = [shot for shot in snapshots.of(core) if shot.idle_ratio < 1]
    shots = [shots[k] for k in np.unique(np.linspace(0, len(shots) - 1, SHOTS).astype(int))]
    clouds = [shot.cloud.atoms for shot in shots if len(shot.cloud.atoms) >= FEWEST]
    if not clouds:
        return USUAL
    limits = np.quantile(np.concatenate(clouds), LEVELS, axis=0)
    scores = np.zeros(len(PRIORS))
    for atoms in clouds:
        over = (atoms[:ATOMS, None] > limits).reshape(min(len(atoms), ATOMS), -1)
        n = len(over) - 1
        others = over.sum(axis=0) - over
        for place, prior in enumerate(PRIORS):
            claimed = corrected(others / n, n, prior)
            scores[place] -= np.log(np.where(over, claimed, 1 - claimed)).mean()
    return PRIORS[int(scores.argmin())]
