"""Tables of questions: every row gets its answer, or the reason why it has none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import jostle
from jostle.cli import exit_code
from jostle.errors import BadData, NotPermitted, UnknownName, UnreadableFile, UsageError
from jostle.models import Model
from tests.packages.models.levels import Levels, campaign

JOBS: dict[str, list[Any]] = {
    "job": ["w01", "w99", "w02", None, "w03", "w04"],
    "host": ["p01", "p01", "p99", "p01", "p02", "p02"],
    "with": ["w02", "", "", "", "w98", "w05,w06"],
    "owner": ["ann", "bob", "cy", "dee", "eve", "flo"],
    "runtime_seconds": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}
COLUMNS = {"workload": "job", "platform": "host", "corunners": "with"}


@pytest.fixture(scope="module")
def model() -> Model:
    return jostle.fit(campaign(), Levels(), seed=0)


def codes(found: Any) -> list[str]:
    """`ok` where a bound is valid, else the code of the reason."""
    rows = zip(found.status, found.outcome, strict=True)
    return ["ok" if status != "none" else code for status, code in rows]


def test_what_is_no_question_is_refused(model: Model) -> None:
    for asked in ("w01", [("w01", "p01", [])], campaign()):
        for ask in (model.predict, model.bound, model.predict_and_bound):
            with pytest.raises(UsageError, match="is no co-locations"):
                ask(asked)


def test_one_bad_row_spoils_no_other(model: Model) -> None:
    found = model.answer(JOBS, 0.8, columns=COLUMNS)
    assert codes(found) == ["ok", *["unknown_name"] * 2, "bad_row", *["unknown_name"] * 2]
    assert "unknown workload 'w99'" in found.reason[1]
    assert "unknown platform 'p99'" in found.reason[2]
    assert "has no workload (columns: workload, platform, corunners" in found.reason[3]
    assert "unknown co-runner 'w98'" in found.reason[4]
    assert "unknown co-runner 'w05,w06'" in found.reason[5]  # parted by commas, not semicolons
    asked = jostle.Colocations.from_columns(workload=["w01"], platform=["p01"], corunners=[["w02"]])
    bounds = model.bound(asked, 0.8)
    assert found.seconds[0] == model.predict(asked)[0]
    assert found.bound_seconds[0] == bounds.seconds[0]
    assert found.outcome[0] == bounds.outcome[0]
    assert np.isnan(found.seconds[1:]).all()
    table = found.to_table()
    assert table.column("owner").to_pylist() == JOBS["owner"]
    assert table.column("runtime_seconds_asked").to_pylist() == JOBS["runtime_seconds"]
    assert table.column("runtime_seconds").to_pylist()[1] is None


def test_bounds_over_the_mix_of_the_table_or_of_shares(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = {"workload": ["w01", "w02", "w03", "w99"], "platform": ["p01", "p01", "p02", "p03"]}
    jobs["corunners"] = ["w04"] * 4
    over = model.for_mix({"p01": 2, "p02": 1})
    found = model.answer(jobs, 0.5, mix_by="platform")
    asked = jostle.Colocations.from_columns(
        workload=jobs["workload"][:3], platform=jobs["platform"][:3], corunners=[["w04"]] * 3
    )
    # The same mix, told by the table and by shares.
    bounds = model.for_mix(asked).bound(asked, 0.5).seconds.tolist()
    assert found.bound_seconds[:3].tolist() == bounds == over.bound(asked, 0.5).seconds.tolist()
    assert found.bound_seconds[:3].tolist() != model.bound(asked, 0.5).seconds.tolist()
    outside = jostle.Colocations.from_columns(
        workload=["w01"], platform=["p03"], corunners=[["w04"]]
    )
    assert over.bound(outside, 0.5).outcome.tolist() == ["outside_mix"]
    with pytest.raises(UnknownName, match="platform 'w01'"):
        model.for_mix({"w01": 1})
    with pytest.raises(UsageError, match="no platform has a share"):
        model.for_mix(asked.take([]))

    saved = jostle.fit(campaign(), jostle.Bag(learner="tree"), seed=0)
    saved.save(tmp_path / "model")
    pd.DataFrame(jobs).head(3).to_csv(tmp_path / "jobs.csv", index=False)
    expected = saved.for_mix(asked).bound(asked, 0.5).seconds.tolist()
    base = ["predict", str(tmp_path / "model"), "--json", "-c", "0.5"]
    for words in (["--mix-by", "platform"], ["--share", "p01=2", "--share", "p02=1"]):
        assert exit_code([*base, "--input", str(tmp_path / "jobs.csv"), *words]) == 0
        answers = json.loads(capsys.readouterr().out)["items"]
        assert [one["bound_seconds"] for one in answers] == expected
    assert exit_code([*base, "-w", "w01", "-p", "p03", "--beside", "w04", "--share", "p01=2"]) == 3
    assert json.loads(capsys.readouterr().out)["items"][0]["outcome"] == "outside_mix"
    for words, said in (
        (["--mix-by", "platform"], "--mix-by goes with --input"),
        (["--share", "p01"], "is not NAME=NUMBER"),
        (["--share", "p01=much"], "is not NAME=NUMBER"),
        (["--share", "p01=-1"], "share of 'p01' is -1.0"),
        (["--share", "p1=1"], "unknown platform 'p1'"),
    ):
        assert exit_code([*base, "-w", "w01", "-p", "p01", *words]) in (2, 4)
        assert said in capsys.readouterr().out


def test_a_line_with_too_many_cells_is_a_bad_row(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "asked.csv"
    path.write_text("workload,platform\nw01,p01\nw02,p02,w03\nw04,p04\n")
    found = model.answer(path, 0.5)
    assert codes(found) == ["ok", "bad_row", "ok"]
    assert found.reason[1] == "3 cells under 2 headings"
    assert found.numbers == [2, 3, 4]  # the first line has the headings


def test_what_the_method_refuses_stops_no_other_row(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some methods know all names and still refuse a co-location, such as one on an input platform."""
    predict = model.predictor.predict

    def refusing(asked: jostle.Colocations) -> np.ndarray:
        if any("p03" in asked.row(i) for i in range(len(asked))):
            raise BadData("nothing is answered on p03")
        return predict(asked)

    monkeypatch.setattr(model.predictor, "predict", refusing)
    places = ["p01", "p03", "p02", "p03", "p04"]
    found = model.answer({"workload": ["w01"] * 5, "platform": places}, 0.5)
    assert codes(found) == ["ok", "bad_row", "ok", "bad_row", "ok"]
    assert found.reason[3] == "nothing is answered on p03"
    asked = jostle.Colocations.from_columns(workload=["w01"], platform=["p04"])
    assert found.seconds[4] == predict(asked)[0]


def test_corunners_are_names(model: Model) -> None:
    table = {"workload": ["w01"] * 3, "platform": ["p01"] * 3, "corunners": [[3], ["w02"], [" "]]}
    found = model.answer(table, 0.5)
    assert codes(found) == ["bad_row", "ok", "bad_row"]
    assert found.reason[0] == "corunners holds 3, not a name"


def test_the_separator_is_the_users(model: Model) -> None:
    table = {"workload": ["w04"], "platform": ["p02"], "corunners": ["w05, w06"]}
    found = model.answer(table, 0.5, separator=",")
    assert found.corunners == [["w05", "w06"]]


@pytest.mark.parametrize(
    "kind", ["csv", "parquet", "arrow", "json", "pandas", "polars", "table", "rows"]
)
def test_every_kind_of_table_gives_the_same(model: Model, tmp_path: Path, kind: str) -> None:
    columns = {
        "workload": ["w01", "w02", "w03"],
        "platform": ["p01", "p02", "p03"],
        "corunners": [["w04", "w05"], [], ["w01"]],
        "rank": [3, 2, 1],
    }
    arrow = pa.table(columns)
    path = tmp_path / f"asked.{kind}"
    if kind == "csv":
        path.write_text(
            "workload,platform,corunners,rank\nw01,p01,w04;w05,3\nw02,p02,,2\nw03,p03,w01,1\n"
        )
    elif kind == "parquet":
        pq.write_table(arrow, path)
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, arrow.schema) as writer:
            writer.write_table(arrow)
    elif kind == "json":
        path.write_text(json.dumps(arrow.to_pylist()))
    source = {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "table": arrow,
        "rows": arrow.to_pylist(),
    }.get(kind, path)
    found = model.answer(source, 0.8)
    asked = jostle.Colocations.from_columns(**{k: columns[k] for k in list(columns)[:3]})
    assert codes(found) == [
        "unseen_group",
        "ok",
        "ok",
    ]  # two co-runners at once were never measured
    np.testing.assert_array_equal(found.bound_seconds, model.bound(asked, 0.8).seconds)
    assert [int(row["rank"]) for row in found.asked] == columns["rank"]


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".arrow", ".json"])
def test_answers_are_written_whole(model: Model, tmp_path: Path, kind: str) -> None:
    found = model.answer(JOBS, 0.8, columns=COLUMNS)
    path = tmp_path / f"answers{kind}"
    found.write(path)
    if kind == ".json":
        rows = json.loads(path.read_text())
    elif kind == ".csv":
        rows = pyarrow.csv.read_csv(path).to_pylist()
    elif kind == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = pa.ipc.open_file(path).read_all().to_pylist()
    assert [row["status"] for row in rows] == found.status.tolist()
    assert rows[0]["bound_seconds"] == pytest.approx(found.bound_seconds[0])
    assert rows[0]["corunners"] in (["w02"], "w02")
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_no_valid_bound_is_said(model: Model) -> None:
    table = {"workload": ["w01"], "platform": ["p01"], "corunners": [["w02"] * 4]}
    found = model.answer(table, 0.9)
    assert (found.status[0], found.outcome[0]) == ("none", "unseen_group")
    assert np.isinf(found.bound_seconds[0])
    assert "number of co-runners" in found.reason[0]
    assert json.loads(json.dumps(found.rows()[0]["runtime_seconds"])) > 0


def test_what_is_wrong_with_the_whole_table_is_an_error(model: Model, tmp_path: Path) -> None:
    good = {"workload": ["w01"], "platform": ["p01"]}
    with pytest.raises(UnknownName, match="unknown column 'jobs'"):
        model.answer(JOBS, columns={"workload": "jobs"})
    with pytest.raises(UnknownName, match="unknown column 'workloads'"):
        model.answer({"workloads": ["w01"], "platform": ["p01"]})
    with pytest.raises(UsageError, match="not between 0 and 1"):
        model.answer(good, 1.5)
    with pytest.raises(UsageError, match="not between 0 and 1"):
        model.answer({"workload": ["nobody"], "platform": ["p01"]}, 1.5)
    with pytest.raises(UnreadableFile):
        model.answer(tmp_path / "none.csv")
    (deep := tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(UnreadableFile, match="without end"):
        model.answer(deep)
    with pytest.raises(BadData, match="differ in length"):
        model.answer({"workload": ["w01"], "platform": []})
    assert len(model.answer({"workload": [], "platform": []})) == 0
    found = model.answer(good)
    with pytest.raises(UsageError, match="ends in none of"):
        found.write(tmp_path / "answers.xls")
    with pytest.raises(NotPermitted):
        found.write(tmp_path / "nowhere" / "answers.csv")
