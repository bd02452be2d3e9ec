"""Company that changes: what is told of jobs as they are placed, and whose promises are broken.

    python -m studies.live.over_time [--slurm|--constant|--log FILE] [--laws saturating,power,worst,threshold]

Without --slurm made clusters: six nodes of three slots, ten workloads, by laws that no expert of the ensemble
has. The log of jobs placed at random is learned from; of as many new ones it is told at placement how long
they take, by the default method and by an oracle that knows the law, and then policies place jobs with a
limit of 1.5 or 2.5 times their time alone. `future`: whatever may come; `start`: the set at the start
throughout; `largest`: the largest set that ever was, known afterwards only; `on the act`: what is told times
the conformal quantile of actual over told of the first half of the new jobs. All rows are of the second
half. With --constant the error on sets held constant, by what a log is read as and by a campaign
of as many runs of one company each. With --log the log of so many jobs of the first law is written as
`sacct -P` prints one. With --slurm the last 100 jobs of the shipped log from those before, by
the default method.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import jostle
from jostle.conformal import Candidates, conformal_rank
from jostle.data import Colocations, Runs, SacctImport
from jostle.learn import Data, FromCounts, Prepared, Restores, RunCounts
from jostle.models import Ages, past_and_future
from jostle.placement import Node, Request, SetBounds, Standard, ends_at
from studies.data import one_core

NAMES, NODES, SLOTS, NOISE, RATIOS = [f"w{k}" for k in range(10)], 6, 3, 0.05, (1.5, 2.5)
LAWS: dict[str, Callable[[float, float, np.ndarray], float]] = {
    "saturating": lambda own, need, beside: 1 + 1.8 * need * beside.sum() / (0.6 + beside.sum()),
    "power": lambda own, need, beside: (1 + need * beside.sum()) ** 1.4,
    "worst": lambda own, need, beside: 1 + 2 * need * beside.max(initial=0.0),
    "threshold": lambda own, need, beside: max(1.0, own + beside.sum()) ** (1 + need),
}


@dataclass
class MadeJob:
    """One that was placed. left: of its work, noise included. beside: (seconds since its start, names).
    bound: that was told of the set at the start, infinite for none."""

    code: int
    arrival: float
    ratio: float
    left: float
    node: int = -1
    start: float = 0.0
    end: float = 0.0
    bound: float = np.inf
    beside: list[tuple[float, list[str]]] = field(default_factory=list)


class MadeCluster:
    """Workloads with a time alone, what they take of a node, and how much they need it."""

    def __init__(self, law: str, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.law = LAWS[law]
        self.solo = np.exp(draw.uniform(3, 5, len(NAMES)))
        self.takes, self.needs = draw.uniform(0.05, 0.7, (2, len(NAMES)))

    def seconds(self, code: int, beside: Sequence[int]) -> float:
        """What it takes beside these throughout."""
        others = self.takes[list(beside)]
        slow = self.law(float(self.takes[code]), float(self.needs[code]), others)
        return float(self.solo[code]) * slow

    def jobs(self, n: int, load: float, seed: int) -> list[MadeJob]:
        """n jobs as they arrive."""
        draw = np.random.default_rng((seed, 1))
        gap = 1.4 * self.solo.mean() / (load * NODES * SLOTS)
        arrivals = np.cumsum(draw.exponential(gap, n)).tolist()
        codes = draw.integers(len(NAMES), size=n).tolist()
        noise = np.exp(NOISE * draw.normal(size=n)).tolist()
        ratios = draw.choice(RATIOS, n).tolist()
        rows = zip(codes, arrivals, ratios, noise, strict=True)
        return [MadeJob(*row) for row in rows]

    def play(self, jobs: list[MadeJob], choose: Callable[..., int | None]) -> float:
        """Every job placed, beside whom it comes to be, and until it ends. choose: (job, nodes, now) -> the
        node it goes to, None to wait. Returns the hours of nodes that were not empty."""
        nodes: list[list[MadeJob]] = [[] for _ in range(NODES)]
        clock = busy = 0.0
        waiting: list[MadeJob] = []
        coming = list(jobs)
        while coming or waiting or any(nodes):
            for job in list(waiting):
                at = choose(job, nodes, clock)
                if at is None:
                    break  # first come, first served
                waiting.remove(job)
                nodes[at].append(job)
                job.start, job.node = clock, at
                self._note(nodes[at], clock)
            rates = [
                [self.seconds(a.code, [b.code for b in here if b is not a]) for a in here]
                for here in nodes
            ]
            working = [job for here in nodes for job in here]
            each = [seconds for row in rates for seconds in row]
            ends = [job.left * seconds for job, seconds in zip(working, each, strict=True)]
            dt = min([*ends, *(one.arrival - clock for one in coming[:1])])
            clock += dt
            busy += dt * sum(bool(here) for here in nodes)
            for here, row in zip(nodes, rates, strict=True):
                for job, s in zip(here, row, strict=True):
                    job.left -= dt / s
                over = [job for job in here if job.left <= 1e-9]
                for job in over:
                    job.end = clock
                    here.remove(job)
                if over:
                    self._note(here, clock)
            while coming and coming[0].arrival <= clock:
                waiting.append(coming.pop(0))
        return busy / 3600

    def _note(self, here: list[MadeJob], clock: float) -> None:
        for job in here:
            beside = sorted(NAMES[other.code] for other in here if other is not job)
            if job.beside and job.beside[-1][0] == clock - job.start:
                job.beside.pop()
            if not job.beside or job.beside[-1][1] != beside:
                job.beside.append((clock - job.start, beside))


def runs_of(jobs: Sequence[MadeJob]) -> Runs:
    """A log of them."""
    return Runs.from_columns(
        workload=[NAMES[job.code] for job in jobs],
        platform=["p"] * len(jobs),
        runtime_seconds=[job.end - job.start for job in jobs],
        stretches=[job.beside for job in jobs],
        measured_at=pa.array([int(1e6 * job.start) for job in jobs], pa.timestamp("us", tz="UTC")),
        node=[f"n{job.node}" for job in jobs],
    )


def write_log(options: argparse.Namespace) -> None:
    """Whole seconds since a day."""
    made = MadeCluster(options.laws.split(",")[0], options.seed)
    day = np.datetime64("2026-01-01", "s")
    jobs = made.jobs(options.jobs, options.load, options.seed)
    made.play(jobs, policies_random(options.seed))
    with options.log.open("x", encoding="utf-8") as file:
        file.write("JobID|JobName|NodeList|Start|End|State\n")
        for number, job in enumerate(sorted(jobs, key=lambda job: job.start), 1):
            start, end = day + round(job.start), day + round(job.end)
            file.write(f"{number}|{NAMES[job.code]}|n{job.node}|{start}|{end}|COMPLETED\n")


def told(model: jostle.Model, log: Runs, rows: np.ndarray, c: float) -> dict[str, Any]:
    """{what: (told, bound)} of jobs as they began."""
    zero = np.zeros(len(rows))
    ages = Ages.of(log, model)
    future = ages.with_residents(past_and_future(log, rows, zero, is_open=True), rows)
    known = past_and_future(log, rows, zero, is_open=False)
    start, sizes = future.colocations, known.colocations.number_of_corunners
    largest = np.array(
        [m[np.argmax(sizes[m])] for m in np.split(np.arange(len(sizes)), known.last[:-1] + 1)]
    )
    sets = {"start": start, "largest": known.colocations.take(largest)}
    return {
        "future": _pair(model, future, c),
        "timeline": _pair(model, known, c),
        **{name: _pair(model, one, c) for name, one in sets.items()},
    }


def _pair(model: jostle.Model, asked: Any, c: float) -> tuple[np.ndarray, np.ndarray]:
    seconds, bounds = model.predict_and_bound(asked, c)
    return seconds, bounds.seconds


@dataclass(frozen=True, eq=False)
class FittedLaw(FromCounts):
    """The law of a made cluster, whatever it is given."""

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    counts: RunCounts
    made: Any
    notes: tuple[str, ...] = ()

    def predict(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds."""
        rows = asked.to_columns()
        every = zip(rows["workload"], rows["corunners"], strict=True)
        return np.array([self.made.seconds(*_codes([name, *beside])) for name, beside in every])

    def candidates(self, asked: Colocations) -> Candidates:
        return Candidates.one_way(self.predict(asked))


@dataclass(frozen=True)
class TrueLaw(Restores):
    """A method that knows it: its errors are those of noise and of who comes."""

    made: Any
    name: ClassVar[str] = "oracle"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fitted: ClassVar[str] = "studies.live.over_time:FittedLaw"

    def prepare(self, data: Data) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: object = None) -> FittedLaw:
        counts = RunCounts.of(prepared.together())
        return FittedLaw(tuple(NAMES), ("p",), counts, self.made)


def told_lines(model: jostle.Model, log: Runs, rows: np.ndarray, c: float) -> Iterator[str]:
    """A line for each way to tell, of the second half of the rows."""
    actual, half = log.runtime_seconds[rows], len(rows) // 2
    pairs = told(model, log, rows, c)
    for name in ("start", "largest"):
        seconds = pairs[name][0]
        ratio = np.sort(actual[:half] / seconds[:half])[conformal_rank(half, c) - 1]
        pairs[f"{name}, on the act"] = seconds, ratio * seconds
    for name, (seconds, bound) in pairs.items():
        yield line(name, seconds[half:], bound[half:], actual[half:])


def line(name: str, seconds: np.ndarray, bound: np.ndarray, actual: np.ndarray) -> str:
    """Median error, share covered, mean margin of those with a bound, share with one."""
    error = 100 * np.median(np.abs(seconds / actual - 1))
    good = np.isfinite(bound)
    margin = np.mean(np.maximum(bound - actual, 0)[good] / actual[good])
    covers = (actual <= bound)[good].mean()
    return f"{name} | {error:.1f}% | {covers:.3f} | {margin:.3f} | {good.mean():.2f}"


def policies(made: MadeCluster, model: jostle.Model, seed: int, c: float) -> dict[str, Any]:
    """{name: choose}. All but `never share` fill up to the slots; Jostle where every promise is kept, else an
    empty node: `at` the first such node, by its bounds over those who are there, as later ones are let in
    only where they are kept; `rank` that of the least bound beside them throughout, which with `bounds kept`
    is a limit from then on."""
    sets = SetBounds(model, Standard(c))
    draw = np.random.default_rng(seed)

    def request(job: MadeJob, now: float, *, is_kept: bool = False) -> Request:
        limit = job.ratio * float(made.solo[job.code])
        return Request(
            NAMES[job.code],
            deadline_seconds=min(limit, job.bound) if is_kept else limit,
            elapsed_seconds=max(0.0, now - job.start) if job.beside else None,
        )

    def kept(job: MadeJob, nodes: list[list[MadeJob]], now: float) -> int | None:
        open_ = [k for k in range(NODES) if 0 < len(nodes[k]) < SLOTS]
        people = [
            (Node(f"n{k}", "p", SLOTS), request(one, now))
            for k in open_
            for one in (*nodes[k], job)
        ]
        ends = ends_at(sets, people)
        late = {
            node.name
            for (node, _), (*_, bound, _, _, limit) in zip(people, ends, strict=True)
            if limit is not None and (bound is None or bound > limit)
        }
        good = [k for k in open_ if f"n{k}" not in late]
        return good[0] if good else next((k for k in range(NODES) if not nodes[k]), None)

    def ranked(is_kept: bool) -> Callable[..., int | None]:
        def choose(job: MadeJob, nodes: list[list[MadeJob]], now: float) -> int | None:
            fleet = []
            for k, here in enumerate(nodes):
                if len(here) < SLOTS:
                    tenants = tuple(request(one, now, is_kept=is_kept) for one in here)
                    fleet.append(Node(f"n{k}", "p", SLOTS, tenants=tenants))
            ranking = jostle.place(model, fleet, confidence=c).rank([request(job, now)])[0]
            if ranking.best is None:
                return next((k for k in range(NODES) if not nodes[k]), None)
            job.bound = ranking.best.bound_seconds
            return int(ranking.best.node[1:])

        return choose

    def free(nodes: list[list[MadeJob]], most: int) -> list[int]:
        return [k for k in range(NODES) if len(nodes[k]) < most]

    return {
        "random": lambda j, nodes, t: int(draw.choice(f)) if (f := free(nodes, SLOTS)) else None,
        "first fit": lambda j, nodes, t: next(iter(free(nodes, SLOTS)), None),
        "least loaded": lambda j, nodes, t: min(
            free(nodes, SLOTS), key=lambda k: len(nodes[k]), default=None
        ),
        "never share": lambda j, nodes, t: next(iter(free(nodes, 1)), None),
        "at most two": lambda j, nodes, t: next(iter(free(nodes, 2)), None),
        "jostle at": kept,
        "jostle rank": ranked(False),
        "jostle rank, bounds kept": ranked(True),
    }


def made_clusters(options: argparse.Namespace) -> None:
    c = options.confidence
    for law in options.laws.split(","):
        made = MadeCluster(law, options.seed)
        jobs = made.jobs(2 * options.jobs, options.load, options.seed)
        made.play(jobs, policies_random(options.seed))
        log = runs_of(sorted(jobs, key=lambda job: job.start))
        before, rows = log.take(np.arange(options.jobs)), np.arange(options.jobs, len(log))
        print(f"\n{law}: what is told at placement | error | covers | margin | with a bound")
        model: Any = None
        for who, method in (("oracle", TrueLaw(made)), ("jostle", None)):
            model = jostle.fit(before, method, seed=options.seed)
            for text in told_lines(model, log, rows, c):
                print(f"{who}, {text}", flush=True)
        if not options.play:
            continue
        print(
            "policy | limits broken | bounds told broken | node hours | mean wait s | until all are done, h"
        )
        fresh = made.jobs(options.play, options.load, options.seed + 1)
        for name, choose in policies(made, model, options.seed, c).items():
            mine = [replace(job, beside=[]) for job in fresh]
            hours = made.play(mine, choose)
            late = [j.end - j.start > j.ratio * made.solo[j.code] * (1 + 1e-9) for j in mine]
            broken = [job.end - job.start > job.bound for job in mine if np.isfinite(job.bound)]
            told_broken = f"{np.mean(broken):.3f}" if broken else "-"
            wait = np.mean([job.start - job.arrival for job in mine])
            last = max(job.end for job in mine) / 3600
            print(
                f"{name} | {np.mean(late):.3f} | {told_broken} | {hours:.2f} | {wait:.0f} | {last:.2f}",
                flush=True,
            )


def constant_sets(options: argparse.Namespace) -> None:
    """Median error on 600 sets held constant, drawn, by the default method of each reading of a log."""
    for law in options.laws.split(","):
        made, draw = MadeCluster(law, options.seed), np.random.default_rng([options.seed, 2])
        jobs = made.jobs(options.jobs, options.load, options.seed)
        made.play(jobs, policies_random(options.seed))
        log = runs_of(jobs)
        names = [
            [NAMES[k] for k in draw.integers(len(NAMES), size=1 + draw.integers(SLOTS))]
            for _ in range(600)
        ]
        asked = Colocations.from_columns(
            workload=[one[0] for one in names],
            platform=["p"] * len(names),
            corunners=[one[1:] for one in names],
        )
        actual = np.array([made.seconds(*_codes(one)) for one in names])
        readings = {
            "the law of rates": log,
            "the longest stretch": log.with_one_company(log.runtime_seconds),
            "any overlap": _of_any_overlap(jobs),
            "one company alone": log.take(np.flatnonzero(log.is_steady)),
            "a campaign": _campaign(made, jobs, draw),
        }
        print(f"\n{law}: learned from | runs | sets that it answers | their median error | CPU s")
        for name, runs in readings.items():
            began = time.process_time()
            model = jostle.fit(runs, seed=options.seed)
            known = asked.known_in(model.predictor.workload_names, model.predictor.platform_names)
            seconds = model.predict(asked.take(np.flatnonzero(known)))
            off = np.abs(seconds / actual[known] - 1)
            error = f"{100 * np.median(off):.1f}%" if len(off) else "-"
            cpu = time.process_time() - began
            print(f"{name} | {len(runs)} | {known.mean():.0%} | {error} | {cpu:.0f}", flush=True)


def _codes(names: Sequence[str]) -> tuple[int, list[int]]:
    own, *beside = (NAMES.index(name) for name in names)
    return own, beside


def _of_any_overlap(jobs: Sequence[MadeJob]) -> Runs:
    """Each beside all that it ever met, each as often as at once at most."""
    companies = []
    for job in jobs:
        most = {
            name: max(names.count(name) for _, names in job.beside)
            for _, there in job.beside
            for name in there
        }
        companies.append([name for name, times in most.items() for _ in range(times)])
    return Runs.from_columns(
        workload=[NAMES[job.code] for job in jobs],
        platform=["p"] * len(jobs),
        corunners=companies,
        runtime_seconds=[job.end - job.start for job in jobs],
    )


def _campaign(made: MadeCluster, jobs: Sequence[MadeJob], draw: np.random.Generator) -> Runs:
    """As many runs, each of one company that a job of the log had, by the share of its time."""
    rows = []
    for job in jobs:
        starts = [at for at, _ in job.beside]
        lasted = np.diff([*starts, job.end - job.start])
        rows.append((job.code, job.beside[draw.choice(len(lasted), p=lasted / lasted.sum())][1]))
    noise = np.exp(NOISE * draw.normal(size=len(rows)))
    times = [made.seconds(*_codes([NAMES[code], *names])) for code, names in rows]
    return Runs.from_columns(
        workload=[NAMES[code] for code, _ in rows],
        platform=["p"] * len(rows),
        corunners=[names for _, names in rows],
        runtime_seconds=noise * times,
    )


def policies_random(seed: int) -> Callable[..., int | None]:
    """Any node with a free slot."""
    draw = np.random.default_rng(seed)

    def choose(job: MadeJob, nodes: list[list[MadeJob]], now: float) -> int | None:
        free = [k for k in range(NODES) if len(nodes[k]) < SLOTS]
        return int(draw.choice(free)) if free else None

    return choose


def slurm(options: argparse.Namespace) -> None:
    """The last 100 jobs of the shipped log from those before."""
    import csv
    import io
    import tempfile

    text = jostle.data.slurm_log().read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        nodes = Path(folder) / "nodes.csv"
        nodes.write_text("node,platform\n" + "".join(f"n{k},small\n" for k in range(1, 7)))
        edges = {"since": "2026-11-24T13:00:00", "until": "2026-11-24T13:30:00"}
        rule = "{User}/{JobName:^[a-z]+}"
        runs = SacctImport(io.BytesIO(text.encode()), rule, nodes=nodes, **edges).read().runs().ok()
    at = runs.table.column("measured_at").combine_chunks().cast("int64").to_numpy()
    runs = runs.take(np.argsort(at, kind="stable"))
    rows = np.arange(len(runs) - 100, len(runs))
    before = runs.take(np.arange(len(runs) - 100))
    model = jostle.fit(before, seed=options.seed)
    actual = runs.runtime_seconds[rows]
    print("last 100 jobs | median error | covers | margin | with a bound")
    for name, (seconds, bound) in told(model, runs, rows, options.confidence).items():
        print(line(name, seconds, bound, actual))
    asked = {
        row["JobID"]: 60.0 * float(row["TimelimitRaw"])
        for row in csv.DictReader(io.StringIO(text), delimiter="|")
        if row["TimelimitRaw"]
    }
    ids = [one.split(":")[1] for one in runs.table.column("run_id").to_pylist()]
    limit = np.array([asked.get(ids[row], np.nan) for row in rows])
    name_of = _by_name(before)
    both = np.array([name_of[runs.colocations.row(row)[0]] for row in rows.tolist()])
    high = np.array([name_of[runs.colocations.row(row)[0]][1] for row in rows.tolist()])
    print(line("median by name, its 90% quantile", both[:, 0], high, actual))
    print(line("time that the user asked for", limit, limit, actual))


def _by_name(runs: Runs) -> dict[str, tuple[float, float]]:
    names: Colocations = runs.colocations
    return {
        name: tuple(np.quantile(runs.runtime_seconds[names.workload == code], [0.5, 0.9]).tolist())
        for code, name in enumerate(names.workload_names)
        if (names.workload == code).any()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--slurm", action="store_true", help="the shipped log of a real Slurm")
    parser.add_argument("--constant", action="store_true", help="errors on sets held constant")
    parser.add_argument("--log", type=Path, help="a file that there is not yet")
    parser.add_argument("--laws", default=",".join(LAWS), help="separated by commas")
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument(
        "--jobs", type=int, default=500, help="learned from, and as many asked about"
    )
    parser.add_argument("--play", type=int, default=150, help="placed by each policy, 0: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--confidence", type=float, default=0.9)
    options = parser.parse_args()
    one_core()
    if options.log:
        write_log(options)
    else:
        (slurm if options.slurm else constant_sets if options.constant else made_clusters)(options)


if __name__ == "__main__":
    main()
