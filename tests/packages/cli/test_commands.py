"""fit, predict and evaluate as commands: results, JSON, errors and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import jostle
from jostle.cli import exit_code as run
from jostle.cli.ask._colocation_options import AboutOne, one_question
from jostle.errors import UsageError
from tests.small_world import make_world


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("world") / "dataset"
    jostle.Dataset(path).write(make_world(900, 0))
    return path


@pytest.fixture(scope="session")
def model(dataset: Path) -> Path:
    path = dataset.parent / "model"
    assert (
        run(["fit", str(dataset), "-o", str(path), "--method=factorization", "--set=steps=100"])
        == 0
    )
    return path


def answer(model: Path, *more: str) -> list[str]:
    return ["predict", str(model), "-w", "w01", "-p", "p2", *more]


@dataclass
class Names:
    workload_names: tuple[str, ...] = ("a", "b", "b,c")
    platform_names: tuple[str, ...] = ("p",)
    acts: None = None

    @property
    def predictor(self) -> Names:
        return self


def test_options_over_time_are_read() -> None:
    about = AboutOne(
        model=Path("m"), beside=("b",), then=("10s=a,b", "1min=b,c", "2min="), elapsed="0"
    )
    asked = one_question(about, Names(), "a")
    assert isinstance(asked, jostle.Timelines)
    assert asked.start_seconds.tolist() == [0, 10, 60, 120]
    beside = asked.colocations.to_columns()["corunners"]
    assert [list(names) for names in beside] == [["b"], ["a", "b"], ["b,c"], []]
    assert asked.elapsed_seconds.tolist() == [0]
    wrongs: dict[str, dict[str, Any]] = {
        "--then": {"then": ("10=a",)},
        "--elapsed 90s": {"elapsed": "90"},
    }
    for says, wrong in wrongs.items():
        with pytest.raises(UsageError, match=says):
            one_question(AboutOne(model=Path("m"), **wrong), Names(), "a")


def test_predict_says_how_long_and_at_most(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(answer(model, "-b", "w02", "-c", "0.9")) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("w01 on p2 beside w02: ")
    assert "with confidence 0.9" in printed
    assert "guaranteed" in printed


def test_no_valid_bound_is_null_and_ends_with_3(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(answer(model, "-c", "0.9999", "--json")) == 3
    one = json.loads(capsys.readouterr().out)["items"][0]
    assert one["bound_seconds"] is None
    assert one["outcome"] == "too_few_runs"
    assert run(answer(model, *["-b", "w02"] * 5)) == 3
    assert "none: no run had this number of co-runners" in capsys.readouterr().out


def test_without_a_bound_the_confidence_that_has_one_is_named(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["predict", str(model), "-w", "w00", "-p", "p0"]
    assert run([*asked, "-c", "0.99999"]) == 3
    printed = capsys.readouterr().out
    (level,) = re.findall(r"with -c (\S+) there is a bound now", printed)
    assert run([*asked, "-c", level]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["predict", "{model}", "-w", "w0l", "-p", "p2"], 4, "Did you mean"),
        (["predict", "{model}", "-w", "w01"], 2, "say --platform"),
        (["predict", "{model}"], 2, "either --workload or --input"),
        (["predict", "{model}", "-w", "w01", "-p", "p2", "-c", "1.5"], 2, "not between 0 and 1"),
        (["predict", "{model}/none", "-w", "w01"], 4, "no model here"),
        (["fit", "{model}", "-o", "x"], 4, "holds no runs"),
        (["fit", "nowhere", "-o", "x"], 4, "no such dataset"),
        (
            ["fit", "{dataset}", "-o", "x", "--method=factorization", "--set", "form=odd"],
            2,
            "'odd', which is not known",
        ),
        (["evaluate", "{dataset}", "--share", "2"], 2, "between 0 and 1"),
        (["evaluate", "{dataset}", "--method", "odd"], 2, "odd"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_errors_are_sentences_with_exit_codes(
    arguments: list[str],
    code: int,
    message: str,
    model: Path,
    dataset: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled = [a.format(model=model, dataset=dataset) for a in arguments]
    assert run(filled) == code
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""
    assert run([*filled, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "error/v1"
    assert document["exit_code"] == code


def test_many_at_once_from_a_file(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.csv"
    file.write_text("workload,platform,corunners\nw01,p2,\nw03,p1,w02;w02\n")
    assert run(["predict", str(model), "-i", str(file), "-c", "0.8", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["items"]
    assert [a["corunners"] for a in answers] == [[], ["w02", "w02"]]
    file.write_text("job,host,with\nw01,,\nw03,p1,w02|w02\n")
    asked = ["predict", str(model), "-i", str(file), "--column", "workload=job"]
    asked += ["--column", "platform=host", "--column", "corunners=with", "--separator", "|"]
    written = tmp_path / "answers.parquet"
    assert run([*asked, "-c", "0.8", "-o", str(written)]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        "1 of 2 rows cannot be read as a question; the first, row 2: the row has no platform" in err
    )
    assert pq.read_table(written).column("outcome").to_pylist()[0] == "bad_row"
    assert run(["predict", str(model), "-i", str(file)]) == 4
    assert "the row has no workload" in capsys.readouterr().out
    assert run([*asked[:-6], "--column", "platform"]) == 2


def test_a_model_of_another_schema_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"schema": "model/v0"}')
    with pytest.raises(jostle.JostleError, match="model/v0"):
        jostle.load(tmp_path)


def test_predict_needs_neither_jax_nor_pyarrow(model: Path) -> None:
    code = (
        "import sys; from jostle.cli import exit_code as run\n"
        f"assert run({answer(model)!r}) in (0, 3)\n"
        "bad = {'jax', 'pyarrow', 'scipy', 'sklearn', 'rich'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    run_ = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run_.returncode == 0, run_.stderr


def test_a_reader_that_goes_away_is_no_error(model: Path) -> None:
    command = f"'{Path(sys.executable).with_name('jostle')}' predict {model} -w w01 -p p2 | true"
    shell = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert "Traceback" not in done.stderr


def test_fit_prints_four_rows_and_all_with_full(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["fit", str(dataset), "-o", str(tmp_path / "model"), "--method", "slowdown"]
    heads = ("solo", "1 co-runner", "2 co-runners", "3 or more co-runners")
    assert run(command) == 0
    printed = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(printed) if line.startswith("question"))
    rows = printed[at + 1 : at + 5]
    assert all(row.startswith(head) for row, head in zip(rows, heads, strict=True))
    assert printed[at + 5].startswith("--full shows")
    assert run([*command, "--full"]) == 0
    assert "--full shows" not in capsys.readouterr().out
