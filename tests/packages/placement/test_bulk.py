"""Tables of co-locations that are scored batch by batch, here and on Dask workers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.cli import exit_code
from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError
from jostle.models import Model
from jostle.placement import Node, Request, place
from tests.packages.placement.conftest import PLATFORMS, WORKLOADS


def table(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    beside = [random.choice(WORKLOADS, random.integers(0, 3)).tolist() for _ in range(rows)]
    return pa.table(
        {
            "workload": random.choice(WORKLOADS, rows),
            "platform": random.choice(PLATFORMS, rows),
            "corunners": beside,
            "slowdown": random.choice([1.1, 1.5, 3.0], rows),
            "corunner_limits_seconds": [
                random.choice([0.05, 0.5, 5.0], len(some)).tolist() for some in beside
            ],
            "id": np.arange(rows),
        }
    )


def test_rows_are_answered_as_safe_answers(model: Model, tmp_path: Path) -> None:
    asked = table(60)
    pq.write_table(asked, tmp_path / "a.parquet", row_group_size=25)
    found = place(model, []).score(tmp_path / "a.parquet", tmp_path / "out.parquet")
    scored = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert found.rows == 60
    assert [row["id"] for row in scored] == list(range(60))
    assert found.safe == sum(row["safe"] for row in scored) > 0
    for row in scored:
        tenants = tuple(
            Request(name, f"t{n}", deadline_seconds=limit)
            for n, (name, limit) in enumerate(
                zip(row["corunners"], row["corunner_limits_seconds"], strict=True)
            )
        )
        node = Node("here", row["platform"], tenants=tenants)
        answer = place(model, node).safe(Request(row["workload"], "new", slowdown=row["slowdown"]))
        assert row["reason"] == answer.answers[0].reason
        mine = next(member for member in answer.answers[0].members if member.is_newcomer)
        assert row["bound_seconds"] == pytest.approx(mine.bound_seconds)
        assert row["limit_seconds"] == pytest.approx(mine.limit_seconds)


def test_a_bad_row_spoils_no_batch(model: Model, tmp_path: Path) -> None:
    odd = pa.table(
        {
            "job": ["w00", None, "w00", "nobody", "w00", "w00", "w00", "w00"],
            "platform": ["p0", "p0", None, "p0", "mars", "p0", "p0", "p0"],
            "corunners": ["w01; w02", "", "", "", "", "w01;stranger", "", ""],
            "deadline_seconds": [1e6, 1.0, 1.0, 1.0, 1.0, 1.0, float("nan"), -1.0],
        }
    )
    pq.write_table(odd, tmp_path / "odd.parquet")
    out = tmp_path / "out.parquet"
    found = place(model, []).score(tmp_path / "odd.parquet", out, columns={"workload": "job"})
    bad = "bad_request"
    assert pq.read_table(out).column("reason").to_pylist() == [
        *("ok", bad, bad, "unknown_workload", "unknown_platform", "unknown_tenant", bad, bad)
    ]
    assert found.reasons[bad] == 4
    texts = odd.set_column(3, "deadline_seconds", pa.array([None, *["soon"] * 6, None]))
    pq.write_table(texts, tmp_path / "texts.parquet")
    place(model, []).score(tmp_path / "texts.parquet", out, columns={"workload": "job"})
    told = pq.read_table(out).column("reason").to_pylist()
    assert (told[0], told[1:7], told[7]) == ("ok", [bad] * 6, "ok")
    beside = {"job": ["w00"] * 3, "platform": ["p0"] * 3, "corunners": ["w01;w02"] * 3}
    limits = pa.table(beside | {"corunner_limits_seconds": [[1e6, 1e6], [1e6, -1.0], [1e6]]})
    pq.write_table(limits, tmp_path / "limits.parquet")
    place(model, []).score(tmp_path / "limits.parquet", out, columns={"workload": "job"})
    assert pq.read_table(out).column("reason").to_pylist() == ["ok", bad, bad]
    pq.write_table(odd.slice(0, 0), tmp_path / "none.parquet")
    empty = place(model, []).score(tmp_path / "none.parquet", out, columns={"workload": "job"})
    assert (empty.rows, empty.safe, len(pq.read_table(out))) == (0, 0, 0)


def test_what_cannot_be_scored_is_said(model: Model, tmp_path: Path) -> None:
    placed, path = place(model, []), tmp_path / "a.parquet"
    pq.write_table(table(5), path)
    with pytest.raises(UsageError, match="overwrite"):
        placed.score(path, path)
    with pytest.raises(UnknownName, match="job"):
        placed.score(path, tmp_path / "b.parquet", columns={"workload": "job"})
    with pytest.raises(UnknownName, match="node"):
        placed.score(path, tmp_path / "b.parquet", columns={"node": "id"})
    with pytest.raises(UnreadableFile):
        placed.score(tmp_path / "nowhere.parquet", tmp_path / "b.parquet")
    placed.score(path, tmp_path / "b.parquet")
    with pytest.raises(BadData, match="bound_seconds"):
        placed.score(tmp_path / "b.parquet", tmp_path / "c.parquet")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_dask_workers_give_the_same(model: Model, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    pq.write_table(table(90), tmp_path / "a.parquet", row_group_size=30)
    here = place(model, []).score(tmp_path / "a.parquet", tmp_path / "here.parquet")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = place(model, []).score(
            tmp_path / "a.parquet", tmp_path / "there.parquet", scheduler=client
        )
    assert there.reasons == here.reasons != {}
    assert pq.read_table(tmp_path / "there.parquet") == pq.read_table(tmp_path / "here.parquet")


def test_the_command(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.save(tmp_path / "model")
    pq.write_table(table(20), tmp_path / "a.parquet")
    words = ["place", "safe", str(tmp_path / "model"), "--table", str(tmp_path / "a.parquet")]
    assert exit_code(words) == 2
    assert "--table and --output go together" in capsys.readouterr().err
    words += ["-o", str(tmp_path / "out.parquet")]
    for more in (["-p", "p0"], ["-w", "w00"], ["--together"]):
        assert exit_code([*words, *more]) == 2
        assert "--table stands for" in capsys.readouterr().err
    assert exit_code([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "place_score/v3"
    assert document["rows"] == 20
    bad = table(20).set_column(0, "workload", pa.array([None, *["w00"] * 19], pa.string()))
    pq.write_table(bad, tmp_path / "a.parquet")
    assert exit_code([*words, "--json"]) == 1  # a row that could not be read
