"""Further laws of contention: alone nobody is slowed down, beside others who needs more loses more."""

from __future__ import annotations

import json

import numpy as np
import pytest

import studies
from studies.alignment.laws import LAWS, stressors
from studies.alignment.machine import COUNTERS, SimulatedPhase
from studies.alignment.simulated import draw_programs, simulate_campaign

NAMES = sorted(set(LAWS) - {"simulator"})
LIGHT = SimulatedPhase(1e6, 0.5, 1e-3, 2.0**16, branch_ratio=0.05, load_ratio=0.1)
HEAVY = SimulatedPhase(1e6, 0.5, 5e-2, 2.0**24, load_ratio=0.4, write_ratio=0.5)


def slowdown(law: str, phase: SimulatedPhase, other: SimulatedPhase) -> float:
    alone = LAWS[law].speeds([(0, phase)])[0, 0]
    return float(alone / LAWS[law].speeds([(0, phase), (1, other)])[0, 0])


@pytest.mark.parametrize("law", NAMES)
def test_who_needs_more_of_what_is_shared_loses_more(law: str) -> None:
    assert slowdown(law, HEAVY, HEAVY) > slowdown(law, HEAVY, LIGHT) >= 1.0
    assert slowdown(law, HEAVY, HEAVY) > 1.02
    idle = SimulatedPhase(0.0, idle_seconds=1.0)
    assert slowdown(law, HEAVY, idle) == pytest.approx(1.0)
    assert not LAWS[law].speeds([(0, idle)]).any()


@pytest.mark.parametrize("law", NAMES)
def test_counts_are_of_what_runs_and_the_order_of_cores_does_not_matter(law: str) -> None:
    found = LAWS[law].speeds([(0, HEAVY), (1, LIGHT)])
    np.testing.assert_allclose(found[::-1], LAWS[law].speeds([(0, LIGHT), (1, HEAVY)]), rtol=1e-8)
    loads = COUNTERS.index("loads")
    np.testing.assert_allclose(found[:, loads] / found[:, 0], [0.4, 0.1])
    assert (found >= 0).all()


def test_every_program_is_traced_beside_every_stressor() -> None:
    law = LAWS["lru"]
    programs = draw_programs(2, 1, seconds=0.01, longest_seconds=4e-3, machine=law)
    found = list(simulate_campaign(programs, law, sets=[(0, 1)], probes=stressors(law, 0.01)))
    probes = [p.name for p in stressors(law, 0.01)]
    beside = {
        (t.workload, t.corunners[0]) for t in found if t.corunners and "probe" in t.corunners[0]
    }
    assert beside == {(f"program-0{i}", probe) for i in range(2) for probe in probes}
    assert {t.workload for t in found if t.solo} == {"program-00", "program-01", *probes}


def test_a_law_with_probes_is_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "alignment",
        "--on",
        "smt",
        "--probes",
        "--programs",
        "6",
        "--windows",
        "12",
    ]
    words += [
        "--seconds",
        "0.02",
        "--longest-ms",
        "6",
        "--held",
        "2",
        "--folds",
        "1",
        "--no-compare",
    ]
    assert studies.run([*words, "--no-factorization", "--learner", "mixture", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    rivals = [metrics[f"{name}_slowdown_error_mean_ratio"] for name in ("mean", "median")]
    assert metrics["run_time_error_mean_ratio"] < min(rivals)
