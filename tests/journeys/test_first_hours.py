"""The first two hours of a new user, with three messy tables and a log: what each step prints."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jostle as library
from jostle.conformal import OUTCOMES
from jostle.placement import GOALS
from tests.command_line import jostle

COLUMNS = ["--workload", "job", "--platform", "host", "--corunners", "beside", "--separator", "+"]
CODES = ["ensemble", "corun", *(code for code in OUTCOMES if "_" in code), *GOALS]
QUESTION = ["-w", "job3", "-p", "south", "-b", "job5"]


def rows(seed: int, count: int) -> Iterator[tuple[str, str, list[str], float]]:
    """Runs of eight jobs on three hosts, alone and beside one other: (job, host, others, seconds)."""
    draw = random.Random(seed)
    for _ in range(count):
        job, host = draw.randrange(8), draw.randrange(3)
        others = draw.sample(range(8), draw.randrange(2))
        slower = 1 + sum(0.05 * (other + 1) for other in others)
        seconds = (job + 1) * (1 + 0.3 * host) * slower * draw.uniform(0.97, 1.03)
        yield f"job{job}", ("north", "south", "west")[host], [f"job{k}" for k in others], seconds


def printed(*words: object, code: int = 0) -> str:
    """Ask the command line. Returns what a person reads, with single blanks and no word of the code."""
    done = jostle(*words)
    assert done.exit_code == code, done.output
    assert not [one for one in CODES if re.search(rf"\b{one}\b", done.output)], done.output
    return " ".join(done.output.split())


def excel(path: Path) -> None:
    """Write semicolons, decimal commas, a unit in the header and names in two spellings."""
    lines = ["job;host;beside;wall (ms)"]
    for number, (job, host, others, seconds) in enumerate(rows(1, 260)):
        time = f"{1000 * seconds:.1f}".replace(".", ",")
        name = job.upper() if number % 40 == 7 else job
        lines.append(f"{name};{host};{'+'.join(others)};{time}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")


def tabs(path: Path) -> None:
    """Write tabs, and words for nobody."""
    lines = ["job\thost\tbeside\ttook"]
    for job, host, others, seconds in rows(2, 200):
        lines.append(f"{job}\t{host}\t{'+'.join(others) or 'none'}\t{seconds:.4f}")
    path.write_text("\n".join(lines) + "\n")


def crashed(path: Path) -> None:
    """Write a time that is none."""
    lines = ["job,host,beside,seconds"]
    for number, (job, host, others, seconds) in enumerate(rows(3, 60)):
        time = "crashed" if number == 5 else seconds
        lines.append(f"{job},{host},{'+'.join(others)},{time}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold the three tables, the dataset made of them as printed sentences say, and its model."""
    folder = tmp_path_factory.mktemp("hours")
    excel(folder / "a.csv")
    tabs(folder / "b.tsv")
    crashed(folder / "c.csv")
    into = ["-o", folder / "fleet"]

    plain = printed("import", folder / "a.csv", *into, code=2)
    assert "nothing says which column holds what" in plain
    assert "--workload job --runtime 'wall (ms)' --unit ms --platform host" in plain
    first = ["import", folder / "a.csv", *into, "--kind", "csv", "--delimiter", ";", *COLUMNS]
    first += ["--runtime", "wall (ms)", "--unit", "ms"]
    doubt = printed(*first, code=4)
    assert "workload names that differ from another in case or blanks only" in doubt
    assert "Nothing was written. Say which: --fix all, --fix names, or --fix none." in doubt
    assert "8 workloads, 3 platforms" in printed(*first, "--fix", "names")

    second = ["import", folder / "b.tsv", *into, "--kind", "csv", "--delimiter", "\t", *COLUMNS]
    done = printed(*second, "--runtime", "took", "--unit", "s")
    assert "200 runs" in done
    assert "8 workloads, 3 platforms" in done

    third = ["import", folder / "c.csv", *into, "--kind", "csv", *COLUMNS]
    third += ["--runtime", "seconds", "--unit", "s"]
    refused = printed(*third, code=4)
    assert "1 of 60 rows cannot be used: line 7: runtime 'crashed' is not a number." in refused
    assert "set them aside with --drop-bad" in refused
    assert "set aside: row 7" in printed(*third, "--drop-bad")
    seen = printed("runs", folder / "fleet")
    assert "runs 519 (519 ok)" in seen
    assert "workloads, platforms 8, 3" in seen

    learned = printed("fit", folder / "fleet", "-o", folder / "model")
    assert "fitted on 519 runs" in learned
    asked = [learned.index(kind) for kind in ("solo", "1 co-runner", "2 co-runners", "3 or more")]
    assert asked == sorted(asked)
    assert "2 co-runners 0 0 no bound" in learned
    return folder


def test_a_question_in_the_shell(home: Path) -> None:
    model = home / "model"
    told = printed("predict", model, *QUESTION)
    assert told.startswith("job3 on south beside job5: 6.")
    assert "with confidence 0.9 calibrated: holds in about 90 of 100 such answers (" in told
    none = printed("predict", model, *QUESTION, "-c", "0.9999", code=3)
    assert "ask for a lower one, or measure more" in none
    assert "there is a bound now" in none
    why = printed("predict", model, *QUESTION, "-d", home / "fleet", "--why")
    assert "Alone it would take 5." in why
    assert "Largest doubt: " in why
    assert "What would help: " in why
    typed = printed("predict", model, "-w", "jb3", "-p", "south")
    assert "unknown workload 'jb3'. Did you mean job3?" in typed


def test_may_they_share(home: Path) -> None:
    safe = ["place", "safe", home / "model", "-p", "south", "-b", "job5@1h"]
    yes = printed(*safe, "-w", "job3@20s")
    assert yes.startswith("Yes: job3 on south beside job5: everybody would keep the limit.")
    no = printed(*safe, "-w", "job3@6s", code=1)
    assert no.startswith("No: job3 on south beside job5: the request would not keep its own limit.")
    assert "What would help: wider limits: job3 at most " in no


def test_where_may_they_go(home: Path) -> None:
    (home / "nodes.csv").write_text("node,platform,slots\nn1,north,3\nn2,south,2\n")
    (home / "tenants.csv").write_text("node,name,workload,deadline\nn1,t1,job5,12s\n")
    (home / "requests.csv").write_text("name,workload,deadline\nr1,job3,20s\nr2,job1,6s\n")
    place = [home / "model", "--fleet", home / "nodes.csv", "--tenants", home / "tenants.csv"]
    told = {
        verb: printed("place", verb, *place, "--requests", home / "requests.csv")
        for verb in ("rank", "assign", "walltime", "safe")
    }
    assert "At most 10% of the requests that are placed are expected" in told["assign"]
    assert "the best there is for as many as can be placed" in told["assign"]
    at = printed("place", "at", *place)
    assert "t1 begins" in at
    assert "calibrated" in at
    (home / "requests.csv").write_text("name,worklaod,deadline\nr1,job3,20s\n")
    typed = printed("place", "rank", *place, "--requests", home / "requests.csv", code=4)
    assert "unknown column 'worklaod'. Did you mean workload?" in typed
    wrong = printed("predict", home / "fleet", "-w", "job3", "-p", "south", code=4)
    assert "no model here. It is a dataset: jostle fit" in wrong


def test_a_table_of_pandas(home: Path) -> None:
    pandas = pytest.importorskip("pandas")
    model = library.load(home / "model")
    asked = {"workload": "job3", "platform": ["north", "south"], "corunners": [["job5"], []]}
    frame = pandas.DataFrame(asked)
    seconds, bounds = model.predict(frame), model.bound(frame).to_pandas()
    assert (bounds["bound_seconds"] > seconds).all()
    assert set(bounds["status"]) == {"calibrated"}
    why = repr(model.explain(frame[:1]))
    assert why.startswith("job3 on north beside job5: 5.1")
    assert "Alone it would take 3.9" in why
    assert "What would help: " in why


def test_what_is_it_worth(home: Path) -> None:
    told = printed("evaluate", home / "fleet")
    assert "all runs mean error median error covers margin no bound" in told
    assert "Jostle, by default" in told
    assert "the time alone times a constant" in told
    assert " runs were asked about: 25% of the windows of runs, which no fit saw." in told


def test_a_log(tmp_path: Path) -> None:
    log = ["import", library.data.slurm_log(), "-o", tmp_path / "cluster"]
    told = printed(*log)
    assert "names were met once" in told
    assert "let the rule of workloads cut them, such as {User}/{JobName:^[a-z]+}" in told
    named = tmp_path / "named"
    told = printed(*log[:2], "-o", named, "--workload", "{User}/{JobName:^[a-z]+}")
    assert "workloads 8, 0 of them met once" in told
    assert "14 because the log begins after their start" in told
    limits = printed("limit", named)
    assert "ada/extract 68 " in limits
    assert "no run says how much memory it had at most or requested: times only" in limits
