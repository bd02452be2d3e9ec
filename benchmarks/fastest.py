"""The ten fastest platforms of a million: by one product with the platforms' matrix, and by asking about all.

    python benchmarks/fastest.py [--platforms 1000000] [--workloads 20]

A factorization of made runs, its platforms repeated with noise until there are so many. Prints milliseconds
per question of `Model.fastest`, of `Model.predict` about all platforms, and how many of the ten are the same.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from _data import one_core


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", type=int, default=1_000_000)
    parser.add_argument("--workloads", type=int, default=20)
    given = parser.parse_args()
    one_core()
    import jostle
    from jostle.factorization.beside._measured import MeasuredAlone
    from jostle.factorization.online._names import _spread_with
    from jostle.runs import Colocations, Runs

    random = np.random.default_rng(0)
    w, p = np.divmod(np.arange(40 * 30), 30)
    level = random.normal(size=40)[w] + random.normal(size=30)[p] + random.normal(0, 0.2, len(w))
    runs = Runs.from_columns(
        workload=[f"w{i:02}" for i in w],
        platform=[f"p{i:02}" for i in p],
        runtime_seconds=np.exp(level),
    )
    model = jostle.fit(runs, jostle.Factorization(steps=200))
    fitted, n = model.predictor, given.platforms
    place = random.integers(0, 30, n)

    def many(values: np.ndarray) -> np.ndarray:
        drawn = values[place]
        noise = random.normal(0, 0.05, drawn.shape) if drawn.dtype.kind == "f" else 0
        return (drawn + noise).astype(drawn.dtype)

    e = fitted.embeddings
    sides = [name for name in vars(e) if name.startswith("platform_")]
    sides += ["susceptibility", "intensity"]
    wide = replace(
        fitted,
        platform_names=tuple(f"node-{i:07}" for i in range(n)),
        embeddings=replace(e, **{name: many(getattr(e, name)) for name in sides}),
        measured=MeasuredAlone.none(),
        more=None,
        spread=_spread_with(fitted.spread, np.arange(40), place),
    )
    model = jostle.Model(wide, model.calibration, model.metadata)
    model.fastest("w00")  # what names stand where is found out once
    same, by_product, by_all = 0, [], []
    for name in wide.workload_names[: given.workloads]:
        began = time.process_time()
        found = model.fastest(name)
        by_product.append(time.process_time() - began)
        every = Colocations(
            wide.workload_names,
            wide.platform_names,
            np.full(n, wide.workload_names.index(name), np.int32),
            np.arange(n, dtype=np.int32),
            np.zeros(n + 1, np.int64),
            np.zeros(0, np.int32),
        )
        began = time.process_time()
        seconds = model.predict(every)
        best = np.argsort(seconds, kind="stable")[:10]
        by_all.append(time.process_time() - began)
        same += len({wide.platform_names[i] for i in best} & set(found.platforms))
    print(
        f"{n} platforms, median of {len(by_all)} questions: {1e3 * np.median(by_product):.0f} ms with bounds "
        f"of the ten, {1e3 * np.median(by_all):.0f} ms by predicting all; "
        f"{same / len(by_all) / 10:.3f} the same"
    )


if __name__ == "__main__":
    main()
