"""Runs that stay on disk hold what the dataset holds, code for code, and nothing twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostle.errors import BadRows, NotEnoughRuns, UnreadableFile
from jostle.runs import Dataset, Runs, StoredRuns, read_runs

Row = tuple[str, str, tuple[str, ...], float]


def rows_of(runs: Runs) -> list[Row]:
    runs = runs.ok()
    return [
        (*runs.colocations.row(i), float(np.float32(np.log(runs.runtime_seconds[i]))))
        for i in range(len(runs))
    ]


def stored_rows(stored: StoredRuns) -> list[Row]:
    found = rows_of(stored.validation) + rows_of(stored.calibration)
    for part in (stored.alone, stored.beside):
        beside = part.padded(np.arange(len(part)), part.most_corunners)
        for i in range(len(part)):
            others = tuple(stored.workload_names[c] for c in beside[i] if c >= 0)
            where = stored.platform_names[part.platform[i]]
            seconds = float(part.log_runtime[i])
            found.append((stored.workload_names[part.workload[i]], where, others, seconds))
    return found


def write(folder: Path, seed: int, n: int, workloads: int = 9) -> None:
    random = np.random.default_rng(seed)
    names = [f"w{i}" for i in range(workloads)]
    for part in range(3):
        index = random.permutation(workloads)[: 1 + workloads // 2]
        runs = Runs.from_columns(
            workload=[names[i] for i in random.choice(index, n)],
            platform=[f"p{i}" for i in random.integers(0, 4, n)],
            corunners=[
                [names[i] for i in random.choice(index, k)] for k in random.integers(0, 4, n)
            ],
            runtime_seconds=np.exp(random.normal(size=n)),
            window_id=[f"{part}-{i // 2}" for i in range(n)],
            campaign=f"part {part}",
        )
        Dataset(folder).write(runs)


@given(st.integers(0, 10**6), st.integers(1, 60))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_run_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n: int
) -> None:
    folder = tmp_path_factory.mktemp("stored")
    write(folder, seed, n)
    with StoredRuns(folder, seed=seed) as stored:
        assert sorted(stored_rows(stored)) == sorted(rows_of(read_runs(folder)))
        assert list(stored.workload_names) == sorted(stored.workload_names)
        beside = stored.beside.padded(np.arange(len(stored.beside)), stored.beside.most_corunners)
        for row in beside:
            kept = row[row >= 0]
            assert (np.diff(kept) >= 0).all()


def test_windows_are_held_out_whole_and_the_same_each_time(tmp_path: Path) -> None:
    write(tmp_path, 3, 400)
    parts = []
    for seed in (0, 0, 1):
        with StoredRuns(tmp_path, seed=seed) as stored:
            held = (stored.validation, stored.calibration)
            windows = [set(part.table.column("window_id").to_pylist()) for part in held]
            assert not windows[0] & windows[1]
            together = sum(len(part) for part in held)
            whole = read_runs(tmp_path).table.column("window_id").to_pylist()
            assert together == sum(one in windows[0] | windows[1] for one in whole)
            parts.append(windows)
    assert parts[0] == parts[1] != parts[2]
    assert 0.02 < len(parts[0][0]) / 600 < 0.25


def test_a_name_that_runs_nowhere_else_is_learned_from(tmp_path: Path) -> None:
    n = 300
    Dataset(tmp_path).write(
        Runs.from_columns(
            workload=[f"only{i}" for i in range(n)],
            platform=["p"] * n,
            runtime_seconds=[1.0] * n,
        )
    )
    with StoredRuns(tmp_path) as stored:
        assert len(stored.alone) == n
        assert len(stored.validation) == len(stored.calibration) == 0


def test_runs_that_failed_are_passed_over(tmp_path: Path) -> None:
    Dataset(tmp_path).write(
        Runs.from_columns(
            workload=["a", "b", "a"],
            platform=["p"] * 3,
            corunners=[[], [], ["b"]],
            runtime_seconds=[1.0, None, 2.0],
            status=["ok", "failed", "ok"],
            reason=[None, "crashed", None],
        )
    )
    with StoredRuns(tmp_path) as stored:
        assert len(stored) == 2
        assert stored.beside.padded(np.array([0]), 3).tolist() == [[1, -1, -1]]


def test_scratch_files_go_away(tmp_path: Path) -> None:
    write(tmp_path / "data", 0, 20)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with StoredRuns(tmp_path / "data", scratch=scratch):
        assert list(scratch.iterdir())
    assert not list(scratch.iterdir())


def test_what_cannot_be_read_says_which_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="holds no runs"):
        StoredRuns(tmp_path)
    write(tmp_path, 0, 20)
    file = Dataset(tmp_path).files()[1]
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(UnreadableFile) as caught:
        StoredRuns(tmp_path)
    assert file.name in str(caught.value)


def test_bad_rows_are_named(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = Runs.from_columns(workload=["a", "b"], platform=["p"] * 2, runtime_seconds=[1.0, 2.0])
    bad = good.table.set_column(
        good.table.column_names.index("runtime_seconds"), "runtime_seconds", pa.array([1.0, -2.0])
    ).replace_schema_metadata(good.table.schema.metadata)
    (tmp_path / "runs").mkdir()
    pq.write_table(bad, tmp_path / "runs" / "00000001.parquet")
    with pytest.raises(BadRows, match="row 1") as caught:
        StoredRuns(tmp_path)
    assert "00000001.parquet" in str(caught.value)


def test_no_run_that_ended_well(tmp_path: Path) -> None:
    Dataset(tmp_path).write(
        Runs.from_columns(
            workload=["a"],
            platform=["p"],
            runtime_seconds=[None],
            status=["failed"],
            reason=["crashed"],
        )
    )
    with pytest.raises(NotEnoughRuns):
        StoredRuns(tmp_path)
