"""Readers of published measurements: rows, names, units and windows of small files, and of the real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.data import PairsImport, Runs, read_profiles, read_runs
from jostle.errors import BadData, BadRows, UnreadableFile
from studies.data.__main__ import main
from studies.data.gavel import read_gavel
from studies.data.magus import read_magus
from studies.data.pitot import read_pitot

DATA = Path(os.environ.get("JOSTLE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
PITOT: dict[str, Any] = {
    "t": np.array([1e6, 2.5e3], np.float32),
    "i_platform": np.array([1, 0]),
    "i_workload": np.array([0, 2]),
    "d_platform": np.array([[1.5], [-1.0]], np.float32),
    "d_workload": np.log1p([[0, 4e9], [1, 2], [3, 0]]).astype(np.float32),
    "n_platform": np.array(["wasm3-i:hc-1", "iwasm-a:hc-1"]),
    "n_workload": np.array(["suite/mini/z", "mi/toast_s", "python:sum.py"]),
    "f_platform": np.array(["cpufreq"]),
    "f_workload": np.array(["x04", "xFC"]),
}
# Two halves of one run; one without its partner; a set with itself; the first measured again;
# and an exact copy of row 1.
PAIRS = {
    "i_platform": np.zeros(8, int),
    "i_workload": np.array([0, 1, 2, 2, 2, 1, 0, 1]),
    "i_interference0": np.array([1, 0, 0, 2, 2, 0, 1, 0]),
    "t": np.array([10.0, 20.0, 30.0, 40.0, 41.0, 21.0, 11.0, 20.0]),
}
GAVEL: dict[str, Any] = {
    "k80": {
        "LM (batch size 5)": {"null": 4.0, "LM (batch size 5)": [2.0, 2.0], "A3C": [1.0, 8.0]},
        "A3C": {"null": 10.0, "LM (batch size 5)": [8.0, 1.0], "A3C": [0.0, 0.0]},
    }
}


def pitot(folder: Path, **other: Any) -> Path:
    np.savez(folder / "data.npz", **(PITOT | other))
    np.savez(folder / "if2.npz", **PAIRS)
    return folder


def gavel(folder: Path, content: Any, campaign: str = "oracle") -> Path:
    (folder / f"{campaign}_throughputs.json").write_text(json.dumps(content))
    return folder


def test_pitot_rows_units_windows_and_features(tmp_path: Path) -> None:
    runs = read_pitot(pitot(tmp_path))
    assert len(runs) == 10
    assert runs.colocations.row(0) == ("suite/mini/z", "iwasm-a:hc-1", ())
    assert runs.colocations.row(4) == ("python:sum.py", "wasm3-i:hc-1", ("suite/mini/z",))
    assert runs.runtime_seconds[:3].tolist() == [1.0, 0.0025, 1e-5]
    windows = runs.table.column("window_id").to_pylist()[2:]
    assert [int(window.split(":")[1]) for window in windows] == [0, 0, 2, 3, 3, 5, 5, 0]
    assert runs.workload_features is not None
    assert runs.platform_features is not None
    first = runs.workload_features.sort_by("workload").to_pylist()[0]
    assert first == {
        "workload": "mi/toast_s",
        "suite": "mi",
        "program": "mi/toast",
        "opcode_x04": 1,
        "opcode_xFC": 2,
    }
    assert runs.platform_features.sort_by("platform").to_pylist()[0] == {
        "platform": "iwasm-a:hc-1",
        "runtime": "iwasm-a",
        "device": "hc-1",
        "cpufreq": -1.0,
    }


def test_pitot_files_that_are_damaged_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadRows, match="row 1: runtime_seconds is missing or NaN"):
        read_pitot(pitot(tmp_path, t=np.array([1.0, np.nan])))
    with pytest.raises(BadData, match=r"data\.npz"):
        read_pitot(pitot(tmp_path, i_workload=np.array([0, 3])))
    np.savez(tmp_path / "two_way.npz", data=np.zeros(1))
    with pytest.raises(BadData, match="both"):
        read_pitot(tmp_path)


def test_pitot_2023_cells_that_were_not_measured_are_no_runs(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "two_way.npz",
        data=np.array([[1e6, np.nan, 0.0], [-1.0, 2e6, 3e6]]),
        module=np.array(["a_s", "b", "c"]),
        module_data=np.array([[1.0], [2.0], [3.0]]),
        module_features=np.array([[12]]),
        platform=np.array(["hc-1", "hc-2"]),
        platform_data=np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]]),
        platform_features=np.array(["haswell"]),
        if_module=np.array([0, 1]),
        if_platform=np.array([0, 0]),
        if_interferer=np.array([[1], [0]]),
        if_data=np.array([5e5, 6e5]),
    )
    runs = read_pitot(tmp_path)
    assert runs.runtime_seconds.tolist() == [1.0, 2.0, 3.0, 0.5, 0.6]
    assert runs.table.column("source_row").to_pylist() == [0, 4, 5, 0, 1]
    assert runs.window[3] == runs.window[4]
    assert runs.platform_features is not None
    names = ["platform", "device", "uarch=haswell", "cpufreq", "unnamed_2"]
    assert runs.platform_features.column_names == names


def test_gavel_seconds_per_step_and_zeros_that_are_no_runs(tmp_path: Path) -> None:
    runs = read_gavel(gavel(tmp_path, GAVEL), "oracle")
    seconds = dict(zip(map(runs.colocations.row, range(5)), runs.runtime_seconds, strict=True))
    lm = "LM (batch size 5)"
    assert seconds == {
        (lm, "k80", ()): 0.25,
        (lm, "k80", (lm,)): 0.5,
        (lm, "k80", ("A3C",)): 1.0,
        ("A3C", "k80", ()): 0.1,
        ("A3C", "k80", (lm,)): 0.125,
    }
    _, features = runs.features_of("workload")
    assert features is not None
    assert features.to_pydict() == {"family": ["A3C", "LM"], "batch_size": [None, 5]}
    assert runs.origins[0].licence == "MIT"


def test_gavel_keeps_one_gpu_and_names_a_bad_entry(tmp_path: Path) -> None:
    content = {
        "k80": {
            "('A3C', 1)": {"null": 10.0, "('A3C', 1)": [4.0, 4.0]},
            "('A3C', 2)": {"null": 19.0, "('A3C', 2)": [0.0, 0.0]},
        },
        "k80_unconsolidated": {"('A3C', 1)": {"null": 10.0}},
    }
    runs = read_gavel(gavel(tmp_path, content, "simulation"), "simulation")
    assert runs.runtime_seconds.tolist() == [0.1, 0.25]
    with pytest.raises(UnreadableFile, match="oracle_throughputs"):
        read_gavel(tmp_path, "oracle")
    bad = json.loads(json.dumps(GAVEL))
    bad["k80"]["A3C"]["null"] = -1.0
    with pytest.raises(BadData, match=r"'k80' / 'A3C' / 'null': -1\.0 is no throughput"):
        read_gavel(gavel(tmp_path, bad), "oracle")


def test_campaigns_that_measured_under_other_conditions_are_kept_apart(tmp_path: Path) -> None:
    gavel(gavel(tmp_path, GAVEL), GAVEL, "simulation")
    words = ["gavel", str(tmp_path), "-o", str(tmp_path / "dataset")]
    assert main(words) == 0
    assert len(read_runs(tmp_path / "dataset")) == 5
    assert main([*words, "--campaign", "simulation"]) == BadData.exit_code
    assert len(read_runs(tmp_path / "dataset")) == 5


def test_magus_brings_profiles_with_its_runs(tmp_path: Path) -> None:
    """Bags and accelerators learn from the folder; the profile is named as the runs name it."""
    source, dataset = tmp_path / "magus", tmp_path / "dataset"
    (source / "traces").mkdir(parents=True)
    heads = (
        "dataset,platform,target,target_cfg,corunner,corunner_cfg,metric,unit,solo,corun,slowdown"
    )
    rows = ("r1,gpu,binopt,,scan,,time,ms,100,150,1.5", "r1,gpu,scan,,binopt,,time,ms,50,90,1.8")
    (source / "pairs.csv").write_text("\n".join((heads, *rows)) + "\n")
    columns = (
        "Start,Duration,Grid X,Grid Y,Grid Z,Block X,Block Y,Block Z,Registers Per Thread,Static SMem,"
        "Dynamic SMem,Size,Throughput,Device,Context,Stream,Name"
    )
    kernel = '0.1,2.5,8,1,1,64,1,1,16,0,0,,,"GeForce GTX 1080 Ti (0)",1,7,"work"'
    for name in ("binomialOptions", "scan"):
        text = f"==1== Profiling result:\n{columns}\ns,ms,,,,,,,,B,KB,MB,GB/s,,,,\n{kernel}\n"
        (source / "traces" / f"{name}_trace.csv").write_text(text)
    assert main(["magus", str(source), "-o", str(dataset)]) == 0
    assert len(read_runs(dataset)) == 4
    profiles = {one.workload: one for one in read_profiles(dataset).values()}
    assert set(profiles) == set(read_runs(dataset).colocations.workload_names)
    assert {str(one.gpus[0] and one.gpus[0].name) for one in profiles.values()} == {"GTX 1080 Ti"}


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "pitot").is_dir(), reason="the Pitot files are not at hand")
def test_published_pitot() -> None:
    runs = read_pitot(DATA / "pitot")
    asked = runs.colocations
    assert np.bincount(asked.number_of_corunners).tolist() == [53_637, 98_957]
    assert (len(asked.workload_names), len(asked.platform_names)) == (249, 231)
    assert asked.row(0) == ("libsodium/auth3", "wasmer-a-cl:hc-11", ())
    assert runs.runtime_seconds[0] == pytest.approx(0.34671216)
    assert runs.window[53_637] == runs.window[53_638]  # two halves of one run
    # The 899 copies stay in the windows of what they copy: if2 98 058 is row 96 again.
    assert runs.window[53_637 + 98_058] == runs.window[53_637 + 96]
    assert np.bincount(np.bincount(runs.window[53_637:])).tolist()[2] == 45_630
    assert runs.workload_features is not None
    opcodes = [n for n in runs.workload_features.column_names if n.startswith("opcode_")]
    counts = np.array([runs.workload_features.column(name).to_numpy() for name in opcodes])
    assert (len(opcodes), counts.min(), counts.max()) == (141, 0, 4_265_927_234)
    older = read_pitot(DATA / "pitot" / "2023")
    assert np.bincount(older.colocations.number_of_corunners).tolist() == [2_800, 9_439, 7_189]
    assert older.runtime_seconds[0] == pytest.approx(0.05269327590039)


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "gavel").is_dir(), reason="the Gavel files are not at hand")
@pytest.mark.parametrize(("campaign", "name"), [("oracle", "oracle"), ("simulation", "sim")])
def test_published_gavel_agrees_with_the_derived_table(campaign: str, name: str) -> None:
    """pairs.csv was derived from the same files by another program, rounded to six digits."""
    own = read_gavel(DATA / "gavel", campaign)
    other = PairsImport(DATA / "gavel" / "pairs.csv", dataset=f"gavel_{name}").read().runs

    def pairs(runs: Runs) -> dict[Any, float]:
        c = runs.colocations
        rows = enumerate(runs.runtime_seconds.tolist())
        return {c.row(i): seconds for i, seconds in rows if c.number_of_corunners[i]}

    mine, theirs = pairs(own), pairs(other)
    assert len(mine) == {"oracle": 1858, "sim": 1881}[name]
    assert mine == {key: pytest.approx(value, rel=2e-5) for key, value in theirs.items()}


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "magus13").is_dir(), reason="the Magus files are not at hand")
def test_published_magus() -> None:
    runs = read_magus(DATA / "magus13")
    assert len(runs) == 650
    assert len(np.unique(runs.units("together"))) == 13 + 78
    _, features = runs.features_of("workload")
    assert features is not None
    rows = features.to_pylist()
    mix = [sum(v for k, v in row.items() if k.startswith("mix_")) for row in rows]
    assert mix == pytest.approx([1.0] * 13)
    assert all(row["gpu_seconds"] > 0 for row in rows)
