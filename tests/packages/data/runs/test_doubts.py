"""Tables imported otherwise than they were meant say so, with what to do; good ones say nothing."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest

from jostle.data import CsvImport, Dataset, Runs, doubts, from_table, sample
from jostle.errors import UnreadableFile
from tests.command_line import jostle as command

NAMES = [f"job-{number}" for number in range(20)]


def table(path: Path, separator: str = ",", rows: int = 400, units: float = 0.0) -> Path:
    draw = random.Random(0)
    lines = ["job,host,beside,wall,comment"]
    for number in range(rows):
        beside = separator.join(draw.choices(NAMES, k=draw.randint(0, 3)))
        wall = draw.uniform(1, 2) * (1000 if draw.random() < units else 1)
        lines.append(f'{draw.choice(NAMES)},h{number % 3},"{beside}",{wall},run {number}')
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path, **more: object) -> Runs:
    return CsvImport(path, "job", "wall", "s", "host", **more).read().runs  # type: ignore[arg-type]


@pytest.mark.parametrize("separator", [";", ",", "|", "+", " "])
def test_co_runners_that_were_not_named_or_not_parted(tmp_path: Path, separator: str) -> None:
    path = table(tmp_path / "t.csv", separator)
    (text,) = doubts(read(path))
    assert "'beside' holds names of workloads (20 of its 20" in text
    assert "as `corunners`" in text
    other = "," if separator == ";" else ";"
    wrong = doubts(read(path, corunners=("beside",), separator=other))
    assert f"parted by {separator!r}" in wrong[0]
    assert "stand only beside others" in wrong[1]
    assert doubts(read(path, corunners=("beside",), separator=separator)) == ()


def test_a_table_in_memory_warns_of_the_same() -> None:
    table = {"workload": ["a", "b", "c"], "platform": ["p"] * 3, "ms": [1, 2, 3]}
    table["corunners"] = ["b, c", "", "a, b"]
    with pytest.warns(UserWarning, match=r"parted by ','\?.*with that `separator`"):
        from_table(table, runtime="ms", corunners="corunners")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_table(table, runtime="ms", corunners="corunners", separator=",")


def test_units_that_are_mixed(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", units=0.1)
    (text,) = doubts(read(path, corunners=("beside",), separator=","))
    assert "about 1000 times off" in text
    one = Runs.from_columns(
        workload=["a", "b"] * 3,
        platform=["p", "p", "q", "q", "r", "r"],
        runtime_seconds=[1, 2, 1, 2, 1000, 2000],
    )
    assert "runtimes on 'r' are 1e+03 times off" in doubts(one)[0]


def test_a_workload_that_is_no_name(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv")
    text = path.read_text().replace("job,host", "kind,host").replace("comment", "job")
    path.write_text(text)
    assert "nearly every run has one of its own" in doubts(read(path))[-1]


def test_nothing_to_say() -> None:
    assert doubts(sample()) == ()
    assert doubts(Runs.from_columns(workload=[], platform=[], runtime_seconds=[])) == ()
    lonely = Runs.from_columns(workload=["a"], platform=["p"], runtime_seconds=[1.0])
    assert doubts(lonely) == ()


def test_on_the_command_line(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv")
    words = ["import", "--kind=csv", str(path), "-o", str(tmp_path / "d"), "--workload", "job"]
    words += ["--runtime", "wall", "--unit", "s", "--platform", "host"]
    for line in (words, ["runs", str(tmp_path / "d")]):
        done = command(*line)
        assert done.exit_code == 0, done.output
        assert "'beside' holds names of workloads" in done.output


def test_a_dataset_that_cannot_be_read_is_repaired(tmp_path: Path) -> None:
    for start in (0, 10):
        names = [str(number) for number in range(start, start + 10)]
        Dataset(tmp_path).write(
            Runs.from_columns(workload=names, platform=["p"] * 10, runtime_seconds=[1.0] * 10)
        )
    file = Dataset(tmp_path).files()[0]
    file.write_bytes(file.read_bytes()[:-20])
    (tmp_path / "runs" / ".1-dead.tmp").write_bytes(b"x")
    with pytest.raises(UnreadableFile):
        Dataset(tmp_path).read()
    done = command("runs", tmp_path, "--repair")
    assert done.exit_code == 0, done.output
    assert f"moved {file}" in done.output.replace("\n", "")
    assert len(Dataset(tmp_path).read()) == 10
    assert (tmp_path / "damaged" / "runs" / file.name).exists()
    assert not Dataset(tmp_path).leftovers()
    assert Dataset(tmp_path).repair() == []


@pytest.mark.parametrize(("factor", "is_told"), [(1.0, False), (1.1, False), (1.8, True)])
def test_a_column_by_which_repeats_differ_is_named(factor: float, is_told: bool) -> None:
    """How a device was shared, in a column that nothing was told of; notes at random are none."""
    draw = random.Random(1)
    rows = []
    for number in range(240):
        way, note = draw.choice(["mps", "slices"]), draw.choice(["x", "y", "z"])
        seconds = (1 + number % 6) * draw.lognormvariate(0, 0.05) * (factor if way == "mps" else 1)
        names = {"workload": f"w{number % 6}", "platform": "gpu", "corunners": [f"w{number % 3}"]}
        rows.append(names | {"s": seconds, "sharing": way, "note": note})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the same
        found = doubts(Runs.from_table(rows, runtime="s", unit="s"))
    assert len(found) == is_told
    if is_told:
        assert "times as long where 'sharing' is 'mps' as where it is 'slices'" in found[0]
        told = Runs.from_table(rows, runtime="s", unit="s", covariates=["sharing"])
        assert doubts(told) == ()
