"""Training rows as arrays, and batches drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jostle.learn.training._encoded_features import Features


@dataclass(frozen=True)
class Rows:
    """Training rows as arrays. workload, platform: (n,); corunner: (n, width) padded with -1;
    target: (n,) log runtime minus baseline."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    @property
    def width(self) -> int:
        """The most co-runners of a row."""
        return self.corunner.shape[1]

    def take(self, index: np.ndarray) -> Rows:
        return Rows(
            self.workload[index], self.platform[index], self.corunner[index], self.target[index]
        )


@dataclass(frozen=True)
class TrainingData:
    """What one member learns from. solo, corun: rows without co-runners and with. score_of: what its
    embeddings are worth, to choose the checkpoint; None takes the last one."""

    solo: Rows
    corun: Rows
    workload: Features
    platform: Features
    score_of: Callable[[dict[str, np.ndarray]], float] | None = None


def arrays_of(rows: Rows, pad: bool = True) -> tuple[np.ndarray, ...]:
    """Return the columns of all rows. pad: a few rows repeated up to a round number, because members of an
    ensemble train on nearly as many rows, and equal shapes share one compilation."""
    if pad:
        n = len(rows)
        step = 2 ** max(int(n / 32).bit_length() - 1, 0)
        rows = rows.take(np.resize(np.arange(n), -(-n // step) * step))
    return (
        rows.workload.astype(np.int32),
        rows.platform.astype(np.int32),
        rows.corunner.astype(np.int32),
        rows.target.astype(np.float32),
    )


class Feed:
    """Batches of rows: all of them at every step where they are few, else a random share without
    repetition until all had their turn. The random numbers are NumPy's, which compiles nothing.

    whole: the rows given at every step, None where they are drawn.
    """

    def __init__(self, rows: Rows, batch: int, random: np.random.Generator) -> None:
        import jax.numpy as jnp

        alone = rows.width == 0
        self.batch, self.random = batch, random
        few = len(rows) <= batch * (4 if alone else 1)
        self.rows = rows
        self.whole = tuple(jnp.asarray(x) for x in arrays_of(rows)) if few else None
        self.queue = np.zeros(0, np.int64)

    def draw(self, steps: int) -> tuple[np.ndarray, ...] | None:
        """Draw the rows of so many steps, (steps, batch, ...) each; None if all are given at every step."""
        if self.whole is not None:
            return None
        needed = steps * self.batch
        while len(self.queue) < needed:
            self.queue = np.append(self.queue, self.random.permutation(len(self.rows)))
        index, self.queue = self.queue[:needed], self.queue[needed:]
        drawn = arrays_of(self.rows.take(index), pad=False)
        return tuple(x.reshape(steps, self.batch, *x.shape[1:]) for x in drawn)
