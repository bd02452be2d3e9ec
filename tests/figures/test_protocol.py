"""The protocol: cells are facts that survive a kill, tables are tidy, rules are calibrated apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from jostle.data import Runs, read_runs
from jostle.errors import NotEnoughRuns, NotPermitted, UnreadableFile, UsageError
from jostle.learn import Data, Prepared
from jostle.learn.learners.network import Factorization
from studies.factorization.cells import ProtocolCell
from studies.factorization.comparisons import (
    COMPARISON_NAMES,
    Comparison,
    NamedMethod,
    comparison_named,
)
from studies.factorization.figures import summary_rows
from studies.factorization.measures import measure_fit
from studies.factorization.protocol import Draws, run_protocol
from studies.rivals.linear import LinearScaling
from studies.splits import observed_split
from tests.waiting import wait_for


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}


def test_a_study_resumes_and_widens(dataset: Path, linear: Comparison, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    first = run_protocol(dataset, tmp_path, linear, Draws([0.3], 2), workers=1)
    before = stamps(tmp_path)
    wider = run_protocol(
        dataset,
        tmp_path,
        linear,
        Draws([0.3, 0.5], 2),
        workers=1,
        progress=lambda n, total, _: done.append((n, total)),
    )
    assert stamps(tmp_path).items() >= before.items(), "finished cells are never written again"
    assert (len(before), len(stamps(tmp_path))) == (2, 4)
    assert done[0] == (2, 4)
    assert done[-1] == (4, 4)
    assert wider.num_rows == 2 * first.num_rows
    kept = pq.read_table(tmp_path / "small.parquet")
    assert kept.equals(wider)
    assert kept.schema.metadata == {b"schema": b"protocol/v1", b"reference": b"linear"}


def test_a_lost_cell_comes_back_the_same(dataset: Path, linear: Comparison, tmp_path: Path) -> None:
    first = run_protocol(dataset, tmp_path, linear, Draws([0.4], 2), workers=1)
    next((tmp_path / "cells").iterdir()).unlink()
    again = run_protocol(dataset, tmp_path, linear, Draws([0.4], 2), workers=1)
    timeless = [
        [row for row in table.to_pylist() if row["metric"] != "train_seconds"]
        for table in (first, again)
    ]
    assert timeless[0] == timeless[1]


def test_a_damaged_cell_is_named(dataset: Path, linear: Comparison, tmp_path: Path) -> None:
    run_protocol(dataset, tmp_path, linear, Draws([0.4], 1), workers=1)
    path = next((tmp_path / "cells").iterdir())
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UnreadableFile, match=path.name):
        run_protocol(dataset, tmp_path, linear, Draws([0.4], 1), workers=1)


def test_workers_of_a_cluster_give_the_same(
    dataset: Path, linear: Comparison, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed", reason="needs distributed (the extra cluster)")
    here = run_protocol(dataset, tmp_path / "here", linear, Draws([0.4], 3), workers=1)
    done: list[int] = []
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as client:
        there = run_protocol(
            dataset,
            tmp_path / "there",
            linear,
            Draws([0.4], 3),
            scheduler=client,
            progress=lambda n, *_: done.append(n),
        )
    assert done == [0, 1, 2, 3, 3]
    same = [
        [row for row in table.to_pylist() if row["metric"] != "train_seconds"]
        for table in (here, there)
    ]
    assert same[0] == same[1]
    names = [
        sorted(path.name for path in (tmp_path / w / "cells").iterdir()) for w in ("here", "there")
    ]
    assert names[0] == names[1]


def test_without_a_scheduler_it_says_so(
    dataset: Path, linear: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle._base.dask_cluster.PATIENCE_SECONDS", 1.0)
    pytest.importorskip("distributed", reason="needs distributed (the extra cluster)")
    with pytest.raises(NotPermitted, match="no Dask scheduler answers"):
        run_protocol(dataset, tmp_path, linear, Draws([0.4], 1), scheduler="tcp://127.0.0.1:9")


def test_several_at_once_give_the_same(dataset: Path, linear: Comparison, tmp_path: Path) -> None:
    tables = [
        run_protocol(dataset, tmp_path / str(workers), linear, Draws([0.4], 2), workers=workers)
        for workers in (1, 2)
    ]
    same = [
        [row for row in table.to_pylist() if row["metric"] != "train_seconds"] for table in tables
    ]
    assert same[0] == same[1]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
def test_a_kill_loses_only_what_was_in_flight(dataset: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from studies import run; sys.exit(run(['protocol',"
        f"{str(dataset)!r}, '-o', {str(tmp_path)!r}, '--methods', 'linear scaling',"
        "'--observed', '.4', '--replicates', '400', '--workers', '1']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    cells = tmp_path / "cells"
    try:
        wait_for(lambda: process.poll() is not None or len(list(cells.glob("*.parquet"))) >= 2)
        assert process.poll() is None
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    finished = list(cells.glob("[!.]*.parquet"))
    assert len(finished) < 400
    for path in finished:
        assert pq.read_table(path).num_rows > 0
    before = stamps(tmp_path)
    study = replace(
        comparison_named("baselines"), variants=(NamedMethod("linear", LinearScaling()),)
    )
    run_protocol(dataset, tmp_path, study, Draws([0.4], 2), workers=1)
    assert all(stamps(tmp_path)[path.name] == before[path.name] for path in finished)


def test_a_cell_is_named_by_all_that_determines_it() -> None:
    cell = ProtocolCell(NamedMethod("a", Factorization(quantiles=())), 0.5, 0, 0, "row", "v1")
    assert (
        replace(cell, variant=NamedMethod("b", Factorization(quantiles=()))).file_name
        == cell.file_name
    )
    others = [
        replace(cell, variant=NamedMethod("a", replace(Factorization(quantiles=()), rank=9))),
        replace(cell, observed=0.51),
        replace(cell, replicate=1),
        replace(cell, seed=1),
        replace(cell, by="window"),
        replace(cell, data="v2"),
    ]
    assert len({other.file_name for other in others} | {cell.file_name}) == 7


def test_the_table_is_tidy(dataset: Path, linear: Comparison, tmp_path: Path) -> None:
    table = run_protocol(dataset, tmp_path, linear, Draws([0.5], 1), workers=1)
    rows = table.to_pylist()
    keys = ("method", "observed", "replicate", "rule", "group", "metric", "confidence")
    assert len({tuple(row[key] for key in keys) for row in rows}) == len(rows), "one row a key"
    assert {row["group"] for row in rows} == {None, "solo", "corun", "corun_1", "corun_2"}
    assert all(row["confidence"] is not None for row in rows if row["rule"])
    columns, printed = summary_rows(table)
    assert len(printed) == 1
    assert len(printed[0]) == len(columns)


@dataclass(frozen=True)
class WithHeads:
    """Linear scaling that also offers quantile heads, each a step above the last."""

    name = "with_heads"
    needs = frozenset({"runs"})

    def prepare(self, data: Data) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> Any:
        inner = LinearScaling().fit(prepared)

        class Predictor:
            quantiles = (0.5, 0.9, 0.99)
            predict = staticmethod(inner.predict)

            def codes(self, colocations: Any) -> Any:
                return colocations

            def log_quantile(self, colocations: Any, head: int) -> np.ndarray:
                centre = np.log(inner.predict(colocations))
                step = np.random.default_rng(0).random(len(centre))
                return centre + (0, 0.1, 1)[head] * step

        return Predictor()


def test_rules_choose_among_heads(world: Runs) -> None:
    split = observed_split(world, 0.8, 0, "row")
    clock = iter((1.0, 3.5)).__next__
    rows = measure_fit(world, WithHeads(), split, 0, clock)
    by = {
        (row["rule"], row["group"], row["confidence"]): row["value"]
        for row in rows
        if row["metric"] == "margin_ratio"
    }
    heads = {"head 0.5", "head 0.9", "head 0.99"}
    assert {rule for rule, _, _ in by} == {"default", "selected", "naive", "nonquantile", *heads}
    for confidence in (0.9, 0.93, 0.98):
        nearest = "head 0.9" if confidence < 0.945 else "head 0.99"
        assert by["naive", "solo", confidence] == by[nearest, "solo", confidence]
    assert (
        by["nonquantile", "solo", 0.9]
        == by["head 0.5", "solo", 0.9]
        != by["head 0.99", "solo", 0.9]
    )
    assert by["selected", "solo", 0.9] in {by[head, "solo", 0.9] for head in heads}
    assert next(row["value"] for row in rows if row["metric"] == "train_seconds") == 2.5


def test_coverage_holds_under_every_rule(dataset: Path, tmp_path: Path) -> None:
    runs = read_runs(dataset)
    found = [
        row["value"]
        for seed in range(6)
        for row in measure_fit(
            runs, LinearScaling(), observed_split(runs, 0.6, seed, "row"), seed, lambda: 0.0
        )
        if row["metric"] == "coverage_ratio" and row["confidence"] == 0.9 and row["group"] == "solo"
    ]
    assert np.mean(found) > 0.88


def test_a_name_never_observed_is_unanswered_not_an_error(world: Runs) -> None:
    lonely = Runs.from_columns(
        workload=["only here"], platform=["p0"], runtime_seconds=[1.0], campaign="x"
    )
    both = Runs.concatenate([Runs(world.table), lonely])
    split = observed_split(both.take(slice(0, len(world))), 0.5, 0, "row")
    split = replace(split, test=np.append(split.test, len(world)))
    rows = measure_fit(both, LinearScaling(), split, 0, lambda: 0.0)
    solo = {row["metric"]: row["value"] for row in rows if row["group"] == "solo"}
    assert solo["unanswered_ratio"] > 0
    assert solo["no_bound_ratio"] > 0


@pytest.mark.parametrize("name", COMPARISON_NAMES)
def test_studies_are_well_formed(name: str) -> None:
    study = comparison_named(name, Factorization(quantiles=()))
    names = [variant.name for variant in study.variants]
    assert study.name == name
    assert study.reference == names[0] or study.reference in names
    assert len(set(names)) == len(names)
    assert len({repr(variant.method) for variant in study.variants}) == len(names)


def test_ablations_change_one_thing() -> None:
    base = Factorization()
    for name, field in (
        ("q", "table_width"),
        ("r", "rank"),
        ("s", "types"),
        ("beta", "corun_weight"),
    ):
        study = comparison_named(name)
        reference = next(v for v in study.variants if v.name == study.reference)
        assert reference.method == replace(base, quantiles=())
        for variant in study.variants:
            assert replace(variant.method, **{field: getattr(base, field)}) == reference.method


def test_the_study_of_quantiles_has_heads() -> None:
    assert len(comparison_named("quantiles").variants[0].method.quantiles) == 8


def test_wrong_questions(dataset: Path, linear: Comparison, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="study"):
        comparison_named("nonsense")
    with pytest.raises(UsageError, match="observed"):
        run_protocol(dataset, tmp_path, linear, Draws([1.0]))
    with pytest.raises(UsageError, match="replicate"):
        run_protocol(dataset, tmp_path, linear, Draws([0.5], 0))
    with pytest.raises(NotEnoughRuns):
        run_protocol(dataset, tmp_path, linear, Draws([1e-6]), workers=1)
