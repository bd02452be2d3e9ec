"""The one decision about a device: against queues that theory knows, and the same whoever asks."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import GPUS, tasks_from_rows, write_profiles
from jostle.gpu import (
    Application,
    Device,
    DeviceTenant,
    Objective,
    Task,
    Wish,
    how_many_fit,
    sets_that_fit,
    within_limits,
)

DEVICE = Device(10, 8)
QUERY = Application.of("query", Task("kernel", 0.010, blocks=80))
BATCH = Application.of("batch", Task("kernel", 0.200, blocks=80))


def asked(rate: float, seconds: float, statistic: str = "mean", seed: int = 0) -> str:
    wish = Wish("query", DeviceTenant(QUERY, rate), Objective(None, seconds, statistic))
    return within_limits([wish], DEVICE, ["concurrent"], seed=seed).verdict


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8, 0.9])
def test_limits_of_an_md1_queue_are_decided_by_its_known_mean(load: float) -> None:
    """Pollaczek and Khinchine: mean = s + load * s / (2 * (1 - load))."""
    mean = 0.010 * (1 + load / (2 * (1 - load)))
    over = [asked(load / 0.010, 0.8 * mean, seed=seed) for seed in range(5)]
    within = [asked(load / 0.010, 1.25 * mean, seed=seed) for seed in range(5)]
    assert "within" not in over
    assert within.count("within") >= 4
    assert "over" not in within


@pytest.mark.parametrize("load", [1.0, 1.02, 1.3, 5.0])
@pytest.mark.parametrize("seconds", [0.1, 1e6])
def test_above_saturation_no_limit_is_kept(load: float, seconds: float) -> None:
    for statistic in ("mean", "p95", "p99", "max"):
        assert asked(load / 0.010, seconds, statistic) == "over"


def test_so_near_saturation_that_no_affordable_number_settles_it_is_undecided() -> None:
    assert asked(99.5, 1.2) == "undecided"


@pytest.mark.parametrize("sharing", ["sequential", "concurrent"])
def test_services_that_are_too_many_together_are_told(sharing: str) -> None:
    """Each has 60% of the device's time, or one 90 and the other 30."""
    for rates in ((60.0, 60.0), (90.0, 30.0)):
        wishes = [
            Wish(str(n), DeviceTenant(QUERY, rate), Objective(None, 1e3))
            for n, rate in enumerate(rates)
        ]
        found = within_limits(wishes, DEVICE, [sharing])
        assert found.verdict == "over"
        assert max(one.load_ratio for one in found.times) > 1
    wishes = [Wish(str(n), DeviceTenant(QUERY, 40.0), Objective(None, 0.1)) for n in range(2)]
    assert within_limits(wishes, DEVICE, [sharing]).verdict == "within"


def test_a_queue_behind_long_kernels_grows_though_few_queries_do_not_show_it() -> None:
    """Three commands said 55 s, 201 ms and 516 ms of 10 ms at 5 a second beside kernels of 200 ms."""
    wishes = [
        Wish("query", DeviceTenant(QUERY, 5.0), Objective(None, 1.0)),
        Wish("batch", DeviceTenant(BATCH)),
    ]
    found = within_limits(wishes, DEVICE, ["concurrent"])
    assert found.verdict == "over"
    assert found.times[0].load_ratio == pytest.approx(5.0 * 0.210, rel=0.01)
    assert "grows without end" in found.times[0].remark
    slower = [Wish("query", DeviceTenant(QUERY, 2.0), Objective(None, 1.0)), wishes[1]]
    assert within_limits(slower, DEVICE, ["concurrent"]).verdict == "within"
    assert within_limits(wishes, DEVICE, ["concurrent", "0.5,0.5"]).verdict == "within"


# 312 questions about a service beside a batch job, shared in one of two ways.
SERVICES = {"half": (40, 0.010), "full": (80, 0.010)}
BATCHES = {"short": 0.002, "middle": 0.030, "long": 0.200}
SHARING = ("concurrent", "time-sliced")
STATISTICS = ("mean", "p95")
LOADS = [
    *((None, limit) for limit in (0.015, 0.1, 0.25)),
    *((2.0, limit) for limit in (0.1, 0.4)),
    *((5.0, limit) for limit in (0.05, 0.3, 1.0)),
    *((20.0, limit) for limit in (0.04, 0.5)),
    *((60.0, limit) for limit in (0.03, 0.2, 5.0)),
]


def solo_profile(name: str, blocks: int, seconds: float):
    """The same kernel as many times as there are in a tenth of a second, at most five."""
    shape = {"blocks": blocks, "threads_per_block": 2048, "registers_per_thread": 8}
    rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": seconds, **shape}]
    return tasks_from_rows(rows, run_id=name, workload=name, gpu=GPUS["V100"])


def test_every_interface_gives_the_same_answers_to_312_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jostle.data import read_profiles
    from jostle.gpu import applications_of

    made = [solo_profile(name, blocks, seconds) for name, (blocks, seconds) in SERVICES.items()]
    made += [solo_profile(name, 80, seconds) for name, seconds in BATCHES.items()]
    write_profiles(tmp_path, made)
    applications, device = applications_of(read_profiles(tmp_path))
    questions = list(product(BATCHES, SHARING, SERVICES, STATISTICS, LOADS))
    assert len(questions) == 312

    def wishes(batch: str, service: str, statistic: str, load: tuple) -> list[Wish]:
        rate, limit = load
        tenant = DeviceTenant(applications[service], rate)
        one = Wish(service, tenant, Objective(None, limit, statistic))
        return [one, Wish(batch, DeviceTenant(applications[batch]))]

    answers: dict[str, list[bool]] = {}
    every = [(wishes(b, s, what, load), [way]) for b, way, s, what, load in questions]
    answers["within_limits"] = [
        all(within_limits(part, device, ways).verdict == "within" for part in (both, both[:1]))
        for both, ways in every
    ]
    answers["how_many_fit"] = [
        how_many_fit(both[0], both[1].tenant.application, device, ways, most=1).instances == 1
        for both, ways in every
    ]
    answers["sets_that_fit"] = [sets_that_fit(both, device, ways).all_fit for both, ways in every]

    # A node for every batch job and way to share, a request for every service and limit.
    nodes = [f"{batch}-{way}" for batch, way in product(BATCHES, SHARING)]
    fleet, tenants = tmp_path / "fleet.csv", tmp_path / "tenants.csv"
    fleet.write_text("node,sharing\n" + "".join(f"{n},{n.partition('-')[2]}\n" for n in nodes))
    tenants.write_text("node,workload\n" + "".join(f"{n},{n.partition('-')[0]}\n" for n in nodes))
    asks = list(product(SERVICES, STATISTICS, LOADS))
    lines = [f"{s},{what},{rate or ''},{limit}s\n" for s, what, (rate, limit) in asks]
    requests = tmp_path / "requests.csv"
    requests.write_text("workload,statistic,rate_per_second,deadline\n" + "".join(lines))
    ask = ["place", "safe", str(tmp_path), "--fleet", str(fleet), "--tenants", str(tenants)]
    exit_code([*ask, "--requests", str(requests), "--promise", "predicted", "--json"])
    document = json.loads(capsys.readouterr().out)
    told = [{one["node"]: one["safe"] for one in item["answers"]} for item in document["items"]]
    answers["place safe"] = [item[node] for node in nodes for item in told]

    plain = ["safe", str(tmp_path), "--model", "none", "--json"]
    answers["safe"], answers["safe --tenants"] = [], []
    for batch, way, service, what, (rate, limit) in questions:
        of_one = ["--service", service, "--batch", batch, "--instances", "1", "--objective", "none"]
        of_one += ["--latency", f"{limit}s", "--statistic", what]
        of_one += [] if rate is None else ["--rate", str(rate)]
        answers["safe"].append(exit_code([*plain, "--sharing", way, *of_one]) == 0)
        table = tmp_path / "set.csv"
        table.write_text(
            "workload,statistic,rate_per_second,deadline\n"
            f"{service},{what},{rate or ''},{limit}s\n{batch},,,\n"
        )
        code = exit_code([*plain, "--sharing", way, "--tenants", str(table)])
        answers["safe --tenants"].append(code == 0)
        capsys.readouterr()
    truth = np.array(answers["within_limits"])
    assert 60 < truth.sum() < 252
    wrong = {who: int((np.array(said) != truth).sum()) for who, said in answers.items()}
    assert wrong == dict.fromkeys(answers, 0)
