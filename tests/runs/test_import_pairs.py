"""Tables of pairs: units, zeros, windows, bad rows; and the published files where they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.errors import BadData, BadRows, UnknownName, UnreadableFile, UsageError
from jostle.runs import (
    Dataset,
    GavelImport,
    MagusImport,
    Origin,
    PairsImport,
    Runs,
    read_runs,
)
from tests.command_line import assert_fails
from tests.command_line import jostle as command

DATA = Path(os.environ.get("JOSTLE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
HEAD = "dataset,platform,target,target_cfg,corunner,corunner_cfg,metric,unit,solo,corun,slowdown\n"
PAIRS = HEAD + (
    "one,gpu,a,,b,,throughput,steps/s,4,2,2\n"
    "one,gpu,b,,a,,throughput,steps/s,8,2,4\n"
    "one,gpu,a,,a,,throughput,steps/s,4,0,\n"
    "two,gpu,a,small,b;a,x,time,ms,500,1500,3\n"
)


def table(folder: Path, text: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text(text)
    return path


def test_units_names_and_zeros(tmp_path: Path) -> None:
    found = PairsImport(table(tmp_path, PAIRS), published="lab", licence="MIT").read()
    assert found.skipped == 1
    rows = {
        (*found.runs.colocations.row(i), str(found.runs.table.column("campaign")[i])): s
        for i, s in enumerate(found.runs.runtime_seconds)
    }
    assert rows == {
        ("a", "gpu", (), "one"): 0.25,
        ("b", "gpu", (), "one"): 0.125,
        ("a:small", "gpu", (), "two"): 0.5,
        ("a", "gpu", ("b",), "one"): 0.5,
        ("b", "gpu", ("a",), "one"): 0.5,
        ("a:small", "gpu", ("a", "b:x"), "two"): 1.5,
    }
    assert found.runs.origins == (Origin("one", "lab", "MIT"), Origin("two", "lab", "MIT"))


def test_both_sides_of_a_pair_share_a_window(tmp_path: Path) -> None:
    runs = PairsImport(table(tmp_path, PAIRS), dataset="one").read().runs
    assert set(runs.table.column("campaign").to_pylist()) == {"one"}
    beside = np.flatnonzero(runs.colocations.number_of_corunners == 1)
    assert len(set(runs.window[beside])) == 1
    assert len(set(runs.window)) == 3


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("one,gpu,a,,b,,t,parsecs,4,2,2", "line 6: unknown unit 'parsecs'"),
        ("one,gpu,a,,b,,t,ms,4,2,2", "line 6: slowdown is 2, but solo and corun make it 0.5"),
        ("one,,a,,b,,t,ms,4,8,2", "line 6: platform is empty"),
        ("one,gpu,a,,b,,t,ms,4", "line 6: 9 cells where there are 11 columns"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: str, reason: str) -> None:
    path = table(tmp_path, PAIRS + row + "\n")
    with pytest.raises(BadRows, match=r"pairs\.csv") as caught:
        PairsImport(path).read()
    assert reason in str(caught.value)
    kept = PairsImport(path, drop_bad=True).read()
    assert kept.bad[0][0] == 6
    assert kept.rejected is not None
    assert kept.rejected.column("row").to_pylist() == [6]
    assert len(kept.runs) == 6


def test_what_is_no_table_of_pairs(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="corun"):
        PairsImport(table(tmp_path, "platform,target,corunner,unit,solo\ngpu,a,b,s,1\n")).read()
    with pytest.raises(UnknownName, match="dataset"):
        PairsImport(table(tmp_path, PAIRS), dataset="three").read()


def test_origins_survive_a_dataset(tmp_path: Path) -> None:
    found = PairsImport(table(tmp_path, PAIRS), published="lab", licence="MIT").read()
    found.write(tmp_path / "dataset")
    other = Runs.from_columns(workload=["a"], platform=["gpu"], runtime_seconds=[1.0])
    Dataset(tmp_path / "dataset").write(other)
    assert read_runs(tmp_path / "dataset").origins == found.runs.origins
    assert read_runs(tmp_path / "dataset").take([0]).origins == found.runs.origins


GAVEL: dict[str, Any] = {
    "k80": {
        "LM (batch size 5)": {"null": 4.0, "LM (batch size 5)": [2.0, 2.0], "A3C": [1.0, 8.0]},
        "A3C": {"null": 10.0, "LM (batch size 5)": [8.0, 1.0], "A3C": [0.0, 0.0]},
    }
}


def gavel(folder: Path, content: Any, name: str = "oracle_throughputs.json") -> Path:
    (folder / name).write_text(json.dumps(content, indent=4) if content is not str else "{")
    return folder


def test_gavel(tmp_path: Path) -> None:
    found = GavelImport(gavel(tmp_path, GAVEL)).read()
    assert found.skipped == 1
    got = {
        found.runs.colocations.row(i): s for i, s in enumerate(found.runs.runtime_seconds.tolist())
    }
    lm = "LM (batch size 5)"
    assert got == {
        (lm, "k80", ()): 0.25,
        (lm, "k80", (lm,)): 0.5,
        (lm, "k80", ("A3C",)): 1.0,
        ("A3C", "k80", ()): 0.1,
        ("A3C", "k80", (lm,)): 0.125,
    }
    names, features = found.runs.features_of("workload")
    assert features is not None
    assert names == ("A3C", lm)
    assert features.to_pydict() == {"family": ["A3C", "LM"], "batch_size": [None, 5]}
    assert found.runs.origins[0].licence == "MIT"


def test_gavel_simulation_keeps_one_gpu(tmp_path: Path) -> None:
    content = {
        "k80": {
            "('A3C', 1)": {"null": 10.0, "('A3C', 1)": [4.0, 4.0]},
            "('A3C', 2)": {"null": 19.0, "('A3C', 2)": [0.0, 0.0]},
        },
        "k80_unconsolidated": {"('A3C', 1)": {"null": 10.0}},
    }
    found = GavelImport(gavel(tmp_path, content, "simulation_throughputs.json")).read()
    assert found.runs.runtime_seconds.tolist() == [0.1, 0.25]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1.0], "is not two throughputs"),
        ([1.0, "x"], "is not a throughput"),
        ([-1.0, 2.0], "negative"),
        (3.0, "is not two throughputs"),
    ],
)
def test_gavel_names_the_entry(tmp_path: Path, value: Any, reason: str) -> None:
    content = json.loads(json.dumps(GAVEL))
    content["k80"]["LM (batch size 5)"]["A3C"] = value
    with pytest.raises(
        BadData, match=rf"1 entries .*'k80' / 'LM \(batch size 5\)' / 'A3C': .*{reason}"
    ):
        GavelImport(gavel(tmp_path, content)).read()


def test_gavel_files(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="has no"):
        GavelImport(tmp_path).read()
    gavel(tmp_path, GAVEL)
    gavel(tmp_path, GAVEL, "simulation_throughputs.json")
    with pytest.raises(UsageError, match="say `campaign`"):
        GavelImport(tmp_path).read()
    with pytest.raises(UnknownName):
        GavelImport(tmp_path, campaign="other").read()


def run(*arguments: Any) -> Any:
    return command(*arguments)


def test_gavel_campaigns_are_kept_apart(tmp_path: Path) -> None:
    gavel(tmp_path, GAVEL)
    gavel(tmp_path, GAVEL, "simulation_throughputs.json")
    out = tmp_path / "dataset"
    done = run("import", "gavel", tmp_path, "--campaign", "oracle", "-o", out, "--json")
    document = json.loads(done.stdout)
    assert (document["runs"], document["not_measured"]) == (5, 1)
    assert document["origins"][0]["campaign"] == "gavel-oracle"
    assert_fails(
        BadData,
        "holds gavel-oracle",
        "import",
        "gavel",
        tmp_path,
        "--campaign",
        "simulation",
        "-o",
        out,
    )


TRACE = """==1== NVPROF is profiling
"Start","Duration","Grid X","Size","Name"
ms,us,,MB,
1.0,500,,2,"[CUDA memcpy HtoD]"
2.0,1500,20,,"kernel [1]"
"""


def metrics() -> dict[str, str]:
    mix = ["inst_fp_16", "inst_fp_64", "inst_bit_convert", "inst_control", "inst_misc"]
    values = dict.fromkeys([*mix, "inst_inter_thread_communication"], "0")
    values |= {"inst_fp_32": "60", "inst_integer": "20", "inst_compute_ld_st": "20"}
    values |= {"achieved_occupancy": "0.5", "executed_ipc": "1.5", "sm_activity": "80%"}
    values |= {"inst_issued": "10", "dram_read_transactions": "3"}
    return values | {"dram_write_transactions": "1"}


def magus(folder: Path) -> Path:
    (folder / "traces").mkdir(exist_ok=True)
    (folder / "metrics").mkdir(exist_ok=True)
    table(folder, HEAD + "r1,gpu,a,,b,,t,ms,100,200,2\nr1,gpu,b,,a,,t,ms,100,300,3\n")
    (folder / "traces" / "a_trace.csv").write_text(TRACE)
    lines = [f'"k",2,"{name}",{value}' for name, value in metrics().items()]
    (folder / "metrics" / "a_metrics.csv").write_text(
        '==1==\n"Kernel","Invocations","Metric Name","Avg"\n' + "\n".join(lines) + "\n"
    )
    return folder


def test_magus_features(tmp_path: Path) -> None:
    names, features = MagusImport(magus(tmp_path)).read().runs.features_of("workload")
    assert features is not None
    assert names == ("a", "b")
    first, second = features.to_pylist()
    assert first["gpu_seconds"] == pytest.approx(0.002)
    assert first["kernel_seconds"] == pytest.approx(0.0015)
    assert first["transfer_bytes"] == 2 * 1024**2
    assert first["mix_fp32_ratio"] == pytest.approx(0.6)
    assert first["dram_bytes"] == 2 * 4 * 32
    assert first["multiprocessors_active_ratio"] == pytest.approx(0.8)
    assert set(second.values()) == {None}  # not profiled


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "gavel").is_dir(), reason="the Gavel files are not at hand")
@pytest.mark.parametrize(("campaign", "name"), [("oracle", "oracle"), ("simulation", "sim")])
def test_gavel_agrees_with_the_derived_table(campaign: str, name: str) -> None:
    """pairs.csv was derived from the same files by another program, rounded to six digits."""
    own = GavelImport(DATA / "gavel", campaign=campaign).read().runs
    other = PairsImport(DATA / "gavel" / "pairs.csv", dataset=f"gavel_{name}").read().runs

    def pairs(runs: Runs) -> dict[Any, float]:
        c = runs.colocations
        return {
            c.row(i): s
            for i, s in enumerate(runs.runtime_seconds.tolist())
            if c.number_of_corunners[i]
        }

    mine, theirs = pairs(own), pairs(other)
    assert mine.keys() == theirs.keys()
    assert len(mine) == {"oracle": 1858, "sim": 1881}[name]
    assert all(mine[key] == pytest.approx(theirs[key], rel=2e-5) for key in mine)


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "magus13").is_dir(), reason="the Magus files are not at hand")
def test_published_magus() -> None:
    runs = MagusImport(DATA / "magus13").read().runs
    assert len(runs) == 650
    assert len(np.unique(runs.units("together"))) == 13 + 78
    _, features = runs.features_of("workload")
    assert features is not None
    rows = features.to_pylist()
    mix = [sum(v for k, v in row.items() if k.startswith("mix_")) for row in rows]
    assert mix == pytest.approx([1.0] * 13)
    assert all(row["gpu_seconds"] > 0 for row in rows)


def test_relative_values_are_enough(tmp_path: Path) -> None:
    def seconds(*lines: str) -> dict[tuple[str, ...], float]:
        file = tmp_path / "relative.csv"
        file.write_text("\n".join(lines) + "\n")
        runs = PairsImport(file).read().runs
        rows = runs.table.select(["workload", "corunners", "runtime_seconds"]).to_pylist()
        return {(r["workload"], *r["corunners"]): r["runtime_seconds"] for r in rows}

    head = "platform,target,corunner"
    assert seconds(f"{head},slowdown", "p,a,b,1.5") == {("a",): 1.0, ("a", "b"): 1.5}
    full = f"{head},metric,unit,solo,corun,slowdown"
    assert seconds(full, "p,a,b,,steps/s,,4,") == {("a", "b"): 0.25}  # never alone
    assert seconds(full, "p,a,b,,ratio,1,1.2,") == {("a",): 1.0, ("a", "b"): 1.2}
    assert seconds(full, "p,a,b,throughput,,1,0.5,") == {("a",): 1.0, ("a", "b"): 2.0}
    assert seconds(full, "p,a,b,,s,2,,1.5") == {("a",): 2.0, ("a", "b"): 3.0}
    assert seconds(full, "p,a,b,,s,,3,1.5") == {("a",): 2.0, ("a", "b"): 3.0}
