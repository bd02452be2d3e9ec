"""The published Pitot measurements: small files made here, and the real ones where they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.errors import BadData, BadRows
from jostle.runs import PitotImport, add_runs, split_rows

MAIN: dict[str, Any] = {
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
PAIRS = [
    (0, 0, 1, 10.0),
    (0, 1, 0, 20.0),
    (1, 2, 0, 30.0),
    (0, 2, 2, 40.0),
    (0, 2, 2, 41.0),
    (0, 1, 0, 21.0),
    (0, 0, 1, 11.0),
    (0, 1, 0, 20.0),
]


def pairs(rows: list[tuple[int, int, int, float]]) -> dict[str, Any]:
    platform, workload, beside, t = zip(*rows, strict=True)
    return {
        "i_platform": np.array(platform),
        "i_workload": np.array(workload),
        "i_interference0": np.array(beside),
        "t": np.array(t),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    def make(main: dict[str, Any] | None = None, two: dict[str, Any] | None = None) -> Path:
        np.savez(tmp_path / "data.npz", **(MAIN if main is None else main))
        np.savez(tmp_path / "if2.npz", **(pairs(PAIRS) if two is None else two))
        return tmp_path

    return make


def test_rows_names_and_units(folder: Callable[..., Path]) -> None:
    runs = PitotImport(folder()).read().runs
    assert len(runs) == 10
    assert runs.colocations.row(0) == ("suite/mini/z", "iwasm-a:hc-1", ())
    assert runs.colocations.row(4) == ("python:sum.py", "iwasm-a:hc-1", ("suite/mini/z",))
    assert runs.runtime_seconds[:3].tolist() == [1.0, 0.0025, 1e-5]
    table = runs.table
    assert table.column("run_id")[2].as_py() == "if2.npz:0"
    assert table.column("source_row").to_pylist() == [0, 1, *range(8)]
    assert table.column("source_file").to_pylist() == ["data.npz"] * 2 + ["if2.npz"] * 8
    assert set(table.column("campaign").to_pylist()) == {"pitot-2024"}


def test_windows_are_runs_that_were_measured_together(folder: Callable[..., Path]) -> None:
    windows = PitotImport(folder()).read().runs.table.column("window_id").to_pylist()[2:]
    numbers = [int(window.split(":")[1]) for window in windows]
    assert numbers == [0, 0, 2, 3, 3, 5, 5, 0]


def test_features(folder: Callable[..., Path]) -> None:
    runs = PitotImport(folder()).read().runs
    assert runs.workload_features is not None
    assert runs.platform_features is not None
    assert sorted(runs.workload_features.to_pylist(), key=lambda row: row["workload"]) == [
        {
            "workload": name,
            "suite": suite,
            "program": program,
            "opcode_x04": few,
            "opcode_xFC": many,
        }
        for name, suite, program, few, many in [
            ("mi/toast_s", "mi", "mi/toast", 1, 2),
            ("python:sum.py", "python", "python:sum.py", 3, 0),
            # Published in single precision: to 7 digits.
            ("suite/mini/z", "suite", "suite/z", 0, pytest.approx(4e9, rel=2e-6)),
        ]
    ]
    first = sorted(runs.platform_features.to_pylist(), key=lambda row: row["platform"])[0]
    assert first == {
        "platform": "iwasm-a:hc-1",
        "runtime": "iwasm-a",
        "device": "hc-1",
        "cpufreq": -1.0,
    }


def test_bad_values_are_named(folder: Callable[..., Path]) -> None:
    with pytest.raises(BadRows, match=r"data\.npz.*(?s:.)*row 1: .*NaN"):
        PitotImport(folder({**MAIN, "t": np.array([1.0, np.nan])})).read()
    with pytest.raises(BadRows, match=r"if2\.npz.*(?s:.)*row 0: .*not above 0"):
        PitotImport(folder(two=pairs([(0, 0, 1, -1.0)]))).read()
    with pytest.raises(BadRows, match=r"if2\.npz"):
        PitotImport(folder(two=pairs([(0, 0, 3, 1.0)]))).read()
    with pytest.raises(BadData, match=r"data\.npz.*'i_platform'"):
        PitotImport(folder({k: v for k, v in MAIN.items() if k != "i_platform"})).read()


def test_the_years_are_not_mixed(folder: Callable[..., Path]) -> None:
    path = folder()
    np.savez(path / "two_way.npz", data=np.zeros(1))
    with pytest.raises(BadData, match="both"):
        PitotImport(path).read()


def test_2023_cells_that_were_not_measured(tmp_path: Path) -> None:
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
    runs = PitotImport(tmp_path).read().runs
    assert runs.runtime_seconds.tolist() == [1.0, 2.0, 3.0, 0.5, 0.6]
    assert runs.table.column("source_row").to_pylist() == [0, 4, 5, 0, 1]
    assert runs.window[3] == runs.window[4]
    assert runs.workload_features is not None
    assert runs.platform_features is not None
    assert "opcode_x0C" in runs.workload_features.column_names
    assert runs.platform_features.column_names == [
        "platform",
        "device",
        "uarch=haswell",
        "cpufreq",
        "unnamed_2",
    ]


@pytest.mark.data
def test_real_2024(pitot_folder: Path, tmp_path: Path) -> None:
    runs = PitotImport(pitot_folder).read().runs
    asked = runs.colocations
    assert np.bincount(asked.number_of_corunners).tolist() == [53_637, 98_957]
    assert (len(asked.workload_names), len(asked.platform_names)) == (249, 231)
    assert asked.row(0) == ("libsodium/auth3", "wasmer-a-cl:hc-11", ())
    assert runs.runtime_seconds[0] == pytest.approx(0.34671216)
    # Rows 0 and 1 of if2 are two halves of one run.
    first, second = asked.row(53_637), asked.row(53_638)
    assert (first[0], first[1]) == (second[2][0], second[1])
    assert runs.window[53_637] == runs.window[53_638]
    assert runs.runtime_seconds[53_637] == pytest.approx(4.637031333333333)
    assert runs.runtime_seconds.max() == pytest.approx(29.993416)
    assert runs.table.column("source_row")[53_637 + 98_956].as_py() == 98_956
    # The 899 copies stay in the windows of what they copy: if2 98 058 is row 96 again.
    assert runs.window[53_637 + 98_058] == runs.window[53_637 + 96]
    sizes = np.bincount(np.bincount(runs.window[53_637:]))
    assert sizes.tolist()[2] == 45_630
    assert runs.workload_features is not None
    assert runs.platform_features is not None
    opcodes = [n for n in runs.workload_features.column_names if n.startswith("opcode_")]
    assert len(opcodes) == 141
    counts = np.array([runs.workload_features.column(name).to_numpy() for name in opcodes])
    assert counts.min() == 0
    assert counts.max() == 4_265_927_234
    assert runs.platform_features.num_columns == 39 + 3

    add_runs(tmp_path, runs, "pitot")
    parts = split_rows(runs, [0.5, 0.5], seed=0)
    assert not set(runs.window[parts[0]].tolist()) & set(runs.window[parts[1]].tolist())


@pytest.mark.data
def test_real_2023(pitot_folder: Path) -> None:
    runs = PitotImport(pitot_folder / "2023").read().runs
    assert np.bincount(runs.colocations.number_of_corunners).tolist() == [2_800, 9_439, 7_189]
    assert runs.runtime_seconds[0] == pytest.approx(0.05269327590039)
    assert set(runs.table.column("campaign").to_pylist()) == {"pitot-2023"}


def test_sets_of_three(folder: Callable[..., Path]) -> None:
    path = folder()
    # Two runs of the set {0, 1, 1}: the target that is beside itself has two rows in each.
    rows = [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0)]
    workload, first, second = map(np.array, zip(*rows, strict=True))
    arrays: dict[str, Any] = {
        "i_platform": np.zeros(6, int),
        "i_workload": workload,
        "i_interference0": first,
        "i_interference1": second,
        "t": np.arange(1.0, 7.0),
    }
    np.savez(path / "if3.npz", **arrays)
    runs = PitotImport(path).read().runs
    assert len(runs) == 16
    assert runs.colocations.row(10)[2] == ("mi/toast_s", "mi/toast_s")
    windows = runs.table.column("window_id").to_pylist()[10:]
    assert [int(w.removeprefix("if3.npz:")) for w in windows] == [0, 0, 0, 3, 3, 3]
