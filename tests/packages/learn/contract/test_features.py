"""Feature tables as the towers see them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from jostle.learn import encode_features

NAMES = tuple(f"w{i:03d}" for i in range(150))


def opcodes(columns: int, rank: int, seed: int = 0) -> pa.Table:
    """Counts whose logarithms have this rank, nearly."""
    random = np.random.default_rng(seed)
    log = 9 + random.normal(size=(len(NAMES), rank)) @ random.normal(size=(rank, columns)) / rank
    counts = np.exp(log).astype(np.int64)
    return pa.table({"workload": NAMES} | {f"opcode_{i}": counts[:, i] for i in range(columns)})


def distances(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x[:, None] - x[None], axis=2)


def test_a_narrow_table_stays_as_it_is() -> None:
    found = encode_features(NAMES, "workload", opcodes(20, 5)).numeric
    assert found.shape == (len(NAMES), 41)
    assert np.allclose(found.mean(0), 0, atol=1e-6)


def test_a_wide_table_keeps_how_far_apart_names_are(monkeypatch: pytest.MonkeyPatch) -> None:
    table = opcodes(120, 10)
    narrow = encode_features(NAMES, "workload", table).numeric
    monkeypatch.setattr("jostle.learn.training._encoded_features.WIDEST", 10_000)
    wide = encode_features(NAMES, "workload", table).numeric
    assert wide.shape[1] == 241 > narrow.shape[1]
    assert len(narrow) == len(wide) == len(NAMES)
    far = distances(wide)
    assert np.abs(distances(narrow) - far).max() < 0.02 * far.max()
    kept = (narrow**2).sum() / ((wide - wide.mean(0)) ** 2).sum()
    assert kept > 0.98


def test_the_same_whatever_the_order_of_rows() -> None:
    table = opcodes(120, 10)
    turned = table.take(pa.array(np.random.default_rng(1).permutation(len(NAMES))))
    found = [encode_features(NAMES, "workload", one).numeric for one in (table, turned)]
    assert np.allclose(*found, atol=1e-4)
