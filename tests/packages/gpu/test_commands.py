"""The commands, and the simulator as a method with bounds, on a small made-up fleet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import read_profiles, write_profiles
from jostle.errors import BadData
from jostle.gpu import applications_of
from jostle.learn.learners.simulation import way_to_share
from tests.command_line import jostle as command
from tests.packages.gpu.made_profiles import NAMES, profile_of
from tests.packages.learn.simulation.learned_samples import simulated_seconds

RAW = ("--model", "none")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Profiles, and runs whose times are 1.1 times what the simulator says, with 2% noise."""
    folder = tmp_path_factory.mktemp("fleet")
    write_profiles(folder, [profile_of(name) for name in NAMES])
    random = np.random.default_rng(0)
    sets = [[]] * 8 + [[name] for name in NAMES] * 8 + [["md", "md"], ["pf", "bp"]] * 8
    rows = [(name, beside) for name in NAMES for beside in sets]
    asked = jostle.Colocations.from_columns(
        workload=[name for name, _ in rows],
        platform=["v100"] * len(rows),
        corunners=[beside for _, beside in rows],
    )
    known, device = applications_of(read_profiles(folder))
    simulated = simulated_seconds(known, device, "concurrent", asked)
    runs = jostle.Runs.from_columns(
        **asked.to_columns(),
        runtime_seconds=1.1 * simulated * np.exp(random.normal(0, 0.02, len(rows))),
    )
    jostle.Dataset(folder).write(runs)
    return folder


@pytest.fixture(scope="module")
def model_folder(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the command fits it to the fleet."""
    folder = tmp_path_factory.mktemp("fitted") / "model"
    assert exit_code(["fit", "--method", "accelerator", str(fleet), "-o", str(folder)]) == 0
    return folder


def test_fit_learns_the_offset_and_bounds_hold(fleet: Path, tmp_path: Path) -> None:
    runs = jostle.read_runs(fleet)
    model = jostle.fit(fleet, jostle.Accelerator(), seed=1, calibrate_by="window")
    off = model.predict(runs.colocations) / runs.runtime_seconds
    assert np.abs(off - 1).mean() < 0.03
    bound = model.bound(runs.colocations, 0.9)
    assert bound.is_valid.all()
    assert 0.8 < np.mean(runs.runtime_seconds <= bound.seconds) <= 1
    model.save(tmp_path / "model")
    again = jostle.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(runs.colocations), model.predict(runs.colocations))
    new = jostle.Colocations.from_columns(workload=["x"], platform=["v100"], corunners=[[]])
    assert model.predictor.evidence(new).workload.tolist() == [0]
    assert np.isfinite(model.predict(new)).all()


def test_safe(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["safe", str(fleet), *RAW, "--service", "asr", "--batch"]
    assert exit_code([*ask, "pf", "--objective", "1.0x", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "safe/v1"
    assert document["instances"] == 15
    assert document["safe"] is True
    assert exit_code([*ask, "md", "--objective", "2.0x", "--json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    assert document["instances"] < 15
    assert document["lost_to_kernels_seconds"] > document["lost_to_transfers_seconds"]
    assert exit_code([*ask, "md", "--latency", "1ms"]) == 1
    assert "No md fits" in capsys.readouterr().out
    assert exit_code([*ask, "md", "--instances", "9", "--objective", "2x"]) == 1
    capsys.readouterr()
    assert exit_code([*ask, "nobody"]) == 4
    assert exit_code([*ask, "md", "--latency", "soon"]) == 2
    assert exit_code([*ask, "md", "--gpu", "Voodoo"]) == 4


def test_safe_with_queries_from_a_file(fleet: Path, tmp_path: Path, capsys) -> None:
    times = tmp_path / "times.txt"
    times.write_text("# seconds\n0.0\n0.1\n\n0.1\n")
    ask = ["safe", str(fleet), *RAW, "--service", "asr", "--batch", "pf", "--json", "--most", "0"]
    exit_code([*ask, "--arrivals", str(times), "--statistic", "max"])
    document = json.loads(capsys.readouterr().out)
    # Two queries at once: one of them waits for the other.
    alone = document["solo_seconds"]
    assert document["mixes"][0]["latency_seconds"] == pytest.approx(2 * alone)
    for text, code in {"": 4, "soon": 4, "1\n0": 4, "nan": 4, "-1": 4}.items():
        times.write_text(text)
        assert exit_code([*ask, "--arrivals", str(times)]) == code
    assert exit_code([*ask, "--arrivals", str(tmp_path / "none")]) == 4
    times.write_text("1")
    assert exit_code([*ask, "--arrivals", str(times), "--rate", "3"]) == 2


def test_safe_answers_in_measured_seconds_as_the_model_predicts(
    fleet: Path, model_folder: Path, capsys
) -> None:
    """Measured runs take 1.1 times the trace: prediction, bound and limit are all of them."""
    ask = ["safe", str(fleet), "--service", "bp", "--batch", "md", "--json", "--most", "2"]
    ask += ["--model", str(model_folder), "--objective", "9x"]
    assert exit_code(ask) == 0
    document = json.loads(capsys.readouterr().out)
    model = jostle.load(model_folder)
    asked = jostle.Colocations.from_columns(
        workload=["bp"] * 3, platform=["v100"] * 3, corunners=[["md"] * n for n in range(3)]
    )
    expected = model.predict(asked)
    assert document["solo_seconds"] == pytest.approx(expected[0])
    assert document["limit_seconds"] == pytest.approx(9 * expected[0])
    means = [mix["mean_seconds"] for mix in document["mixes"]]
    np.testing.assert_allclose(means, expected)
    bounds = [row["bound_seconds"] or np.inf for row in document["bounds"]]
    np.testing.assert_allclose(bounds, model.bound(asked, 0.9).seconds)
    # Safe is what bounds keep, in the sentence and in the table.
    between = np.sqrt(expected[2] * bounds[2])
    assert expected[2] < between < bounds[2]
    assert bounds[1] < between
    ask[-1] = f"{between / expected[0]}x"
    exit_code(ask)
    document = json.loads(capsys.readouterr().out)
    assert (document["instances"], document["guaranteed_instances"]) == (2, 1)
    assert [mix["safe"] for mix in document["mixes"]] == [True, True, False]
    exit_code([one for one in ask if one != "--json"])
    assert capsys.readouterr().out.startswith("1 of md fit beside bp: the bound of 2 is")
    ask[-1] = "9x"
    # At a low rate queries hardly meet: the latency is that of a run that begins at once.
    exit_code([*ask, "--rate", "0.5"])
    rated = json.loads(capsys.readouterr().out)["mixes"]
    assert rated[0]["mean_seconds"] == pytest.approx(expected[0], rel=0.05)
    # At half load theory knows the queue (M/D/1): half as much again.
    exit_code([*ask, "--rate", str(0.5 / expected[0]), "--most", "0"])
    queued = json.loads(capsys.readouterr().out)["mixes"][0]["mean_seconds"]
    assert queued == pytest.approx(1.5 * expected[0], rel=0.1)


def test_safe_learns_from_the_runs_of_its_folder(fleet: Path, tmp_path: Path, capsys) -> None:
    """It is what jostle fit learns from the folder by default."""
    model_folder = tmp_path / "model"
    assert exit_code(["fit", str(fleet), "-o", str(model_folder)]) == 0
    capsys.readouterr()
    ask = ["safe", str(fleet), "--service", "asr", "--batch", "pf", "--most", "2", "--json"]
    documents = []
    for more in ([], ["--model", str(model_folder)], RAW):
        exit_code([*ask, *more])
        documents.append(json.loads(capsys.readouterr().out))
    learned, saved, raw = documents
    assert "learned from 560 runs of the folder" in learned["notes"][0]
    assert learned["mixes"] == saved["mixes"]
    assert learned["bounds"] == saved["bounds"]
    assert raw["guaranteed_instances"] is None
    assert raw["notes"][0].startswith("the raw simulation, nothing learned")
    assert exit_code([*ask, "--platform", "moon"]) == 4
    assert "moon" in capsys.readouterr().out
    # Without runs side by side nothing is learned, and the answer says so.
    alone = tmp_path / "alone"
    write_profiles(alone, [profile_of(name) for name in NAMES])
    runs = jostle.read_runs(fleet)
    jostle.Dataset(alone).write(
        runs.take(np.flatnonzero(runs.colocations.number_of_corunners == 0))
    )
    ask[1] = str(alone)
    exit_code(ask)
    again = json.loads(capsys.readouterr().out)
    assert "no runs of these workloads side by side" in again["notes"][0]
    assert again["mixes"] == raw["mixes"]


def test_of_runs_on_two_platforms_safe_asks_which(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A simulation alone would be an answer to another question."""
    write_profiles(tmp_path, [profile_of(name) for name in NAMES])
    runs = jostle.read_runs(fleet)
    columns = runs.colocations.to_columns()
    columns["platform"] = ["v100|mps" if n % 2 else "v100" for n in range(len(runs))]
    both = jostle.Runs.from_columns(**columns, runtime_seconds=runs.runtime_seconds)
    jostle.Dataset(tmp_path).write(both)
    ask = ["safe", str(tmp_path), "--service", "asr", "--batch", "pf", "--most", "1"]
    assert exit_code(ask) == 2
    assert "--platform" in capsys.readouterr().err
    assert exit_code([*ask, "--platform", "v100|mps"]) in (0, 1)
    assert exit_code([*ask, *RAW]) in (0, 1)


def test_safe_is_asked_about_a_campaign(fleet: Path, tmp_path: Path, capsys) -> None:
    """Every run of one took 1.3 times as long as of the other."""
    write_profiles(tmp_path, [profile_of(name) for name in NAMES])
    runs = jostle.read_runs(fleet)
    is_slow = np.arange(len(runs)) % 3 == 0
    both = jostle.Runs.from_columns(
        **runs.colocations.to_columns(),
        runtime_seconds=runs.runtime_seconds * np.where(is_slow, 1.3, 1.0),
        campaign=["slow" if slow else "fast" for slow in is_slow],
    )
    jostle.Dataset(tmp_path).write(both)
    ask = ["safe", str(tmp_path), "--service", "asr", "--batch", "pf", "--most", "1", "--json"]
    bounds = []
    for name in ("slow", "fast"):
        assert exit_code([*ask, "--campaign", name]) in (0, 1)
        bounds.append(json.loads(capsys.readouterr().out)["bounds"][1]["bound_seconds"])
    assert bounds[0] / bounds[1] == pytest.approx(1.3, rel=0.1)
    assert exit_code([*ask, "--campaign", "moon"]) == 4
    assert exit_code([*ask, "--campaign", "slow", *RAW]) == 2
    assert "no campaign can be named" in capsys.readouterr().out


def test_safe_of_runs_without_profiles_says_what_answers_them(fleet: Path, tmp_path: Path) -> None:
    jostle.Dataset(tmp_path).write(jostle.read_runs(fleet))
    done = command("safe", tmp_path, "--service", "asr", "--batch", "pf")
    assert done.exit_code == 4
    assert "jostle place safe" in done.stderr


def test_safe_in_a_folder_with_profiles_of_two_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_profiles(tmp_path, [profile_of("asr"), profile_of("pf"), profile_of("md", "T4")])
    ask = ["safe", str(tmp_path), "--service", "asr", "--batch"]
    assert exit_code([*ask, "pf", "--json"]) in (0, 1)
    assert "left out, profiled on others only: md" in capsys.readouterr().err
    assert exit_code([*ask, "md"]) == 4
    assert "md was profiled on" in capsys.readouterr().err
    assert exit_code([*ask, "md", "--gpu", "V100"]) in (0, 1)
    capsys.readouterr()
    assert exit_code(["safe", str(tmp_path), "--json"]) in (0, 1)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["batch"] for row in rows} == {"asr", "pf"}
    assert applications_of(read_profiles(tmp_path), "T4")[1].pes == 40
    two = [profile_of("asr"), profile_of("pf", "T4")]
    with pytest.raises(BadData, match="one device"):
        applications_of({one.run_id: one for one in two})


def test_safe_for_all_in_the_folder(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["safe", str(fleet), *RAW, "--json", "--service", "asr"]
    assert exit_code(ask) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "safe_fleet/v1"
    table = {row["batch"]: row for row in document["rows"]}
    assert sorted(table) == sorted(set(NAMES) - {"asr"})
    for batch in ("md", "pf"):  # the same answer as one by one
        code = exit_code([*ask, "--batch", batch])
        one = json.loads(capsys.readouterr().out)
        row = table[batch]
        assert (row["instances"], row["safe"]) == (one["instances"], code == 0)
        assert row["reason"] == one["reason"]
    assert exit_code(["safe", str(fleet), *RAW, "--most", "2"]) == 0
    shown = capsys.readouterr().out
    assert "why no more" in shown
    assert shown.count("\n") == 1 + 7 * 6
    assert exit_code(["safe", str(fleet), *RAW, "--batch", "md", "--latency", "1ms"]) == 1


def test_safe_in_slices_and_shares(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["safe", str(fleet), *RAW, "--service", "asr", "--batch", "md", "--json"]
    ask += ["--objective", "2.2x"]

    def mixes(*more: str) -> list[dict]:
        exit_code([*ask, *more])
        return json.loads(capsys.readouterr().out)["mixes"]

    whole, sliced = mixes(), mixes("--sharing", "0.25:0.5,0.25:0.5")
    # A quarter of the PEs: slower alone, and untouched by kernels in the other slice.
    slow = [mix["slowdown_ratio"] for mix in sliced]
    assert slow == pytest.approx([slow[0]] * 16)
    assert slow[0] > whole[0]["slowdown_ratio"]
    assert mixes("--sm-share", "0.05")[2]["slowdown_ratio"] < 0.9 * whole[2]["slowdown_ratio"]
    # Of several ways the best counts.
    assert mixes("--sharing", "concurrent", "--sharing", "0.25:0.5,0.25:0.5")[15]["safe"]
    for bad in ("3g", "2.0", "a,b", "0.5:0"):
        assert exit_code([*ask, "--sharing", bad]) == 2, bad
    assert exit_code([*ask, "--sm-share", "1.5"]) == 2


def test_safe_with_measured_bounds(fleet: Path, model_folder: Path, capsys) -> None:
    ask = ["safe", str(fleet), "--service", "asr", "--platform", "v100"]
    ask += ["--model", str(model_folder)]
    one = [*ask, "--batch", "pf", "--objective", "1.5x", "--json"]
    assert exit_code([*one, "--confidence", "0.9"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bounds"][1]["outcome"] == "cross_validated"
    # Three and four co-runners are bounded by how far off two were without them, five by nothing.
    assert document["bounds"][3]["outcome"] == "larger_sets"
    assert 1 <= document["guaranteed_instances"] <= 4 < document["instances"]
    assert document["bounds"][5]["bound_seconds"] is None
    assert document["bound_over"].startswith("sets of workloads never measured together")
    assert (
        exit_code([*ask, "--objective", "1.5x", "--confidence", "0.999"]) == 3
    )  # far too few sets
    assert "guaranteed" in capsys.readouterr().out
    # What the measured runs say nothing of is simulated, in their seconds, and has no bound.
    shared = way_to_share(jostle.load(model_folder).predictor, "v100")
    assert shared is not None
    way, one = shared[0], [*one, "--most", "2"]
    one[one.index("1.5x")] = "9x"
    for odd in (
        ["--sm-share", "0.5"],
        ["--statistic", "p99"],
        ["--sharing", "sequential" if way != "sequential" else "time-sliced"],
    ):
        assert exit_code([*one, *odd]) == 3, odd
        other = json.loads(capsys.readouterr().out)
        assert {row["outcome"] for row in other["bounds"][1:]} == {"simulated"}
        assert {row["bound_seconds"] for row in other["bounds"][1:]} == {None}
        assert other["guaranteed_instances"] == 0
    # At a rate queries are simulated as if each took as long as its bound, which is no guarantee.
    assert exit_code([*one, "--rate", "0.1"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert {row["outcome"] for row in other["bounds"]} == {"simulated"}
    assert other["guaranteed_instances"] == 0
    for at in (1, 2):
        row, run = other["bounds"][at], document["bounds"][at]
        mean = other["mixes"][at]["latency_seconds"]
        assert mean < row["bound_seconds"] <= row["limit_seconds"]
        assert row["bound_seconds"] >= run["bound_seconds"] * (1 - 1e-9)  # a queue shortens nothing


def test_sets_are_bounded_where_runs_were_measured(
    fleet: Path, model_folder: Path, tmp_path: Path, capsys
) -> None:
    table = tmp_path / "tenants.csv"
    table.write_text("name,workload,slowdown\na,asr,4\nb,pf,3\nc,md,9\nd,hw,9\n")
    ask = ["safe", str(fleet), "--tenants", str(table), "--model", str(model_folder)]
    assert exit_code([*ask, "--json"]) == 0
    (four,) = json.loads(capsys.readouterr().out)["fitting"]
    assert {one["outcome"] for one in four["times"]} == {"larger_sets"}
    names = dict(zip("abcd", ("asr", "pf", "md", "hw"), strict=True))
    every = [names[member] for member in four["members"]]
    asked = jostle.Colocations.from_columns(
        workload=every,
        platform=["v100"] * 4,
        corunners=[[*every[:n], *every[n + 1 :]] for n in range(4)],
    )
    model = jostle.load(model_folder)
    bounds = [one["bound_seconds"] for one in four["times"]]
    np.testing.assert_allclose(bounds, model.bound(asked, 0.9).seconds)
    times = [one["seconds"] for one in four["times"]]
    np.testing.assert_allclose(times, model.predict(asked))
    table.write_text("name,workload,slowdown,rate_per_second\na,asr,5,2\nb,pf,5,\n")
    assert exit_code([*ask, "--json"]) == 0
    (two,) = json.loads(capsys.readouterr().out)["fitting"]
    assert two["guaranteed"] is False
    for one in two["times"]:
        assert one["outcome"] == "simulated"
        assert one["seconds"] < one["bound_seconds"] <= one["limit_seconds"]
