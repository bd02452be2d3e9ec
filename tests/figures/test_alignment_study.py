"""`python -m studies alignment`: the protocol, the paper's tables, and the laws that programs run under."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import studies
from jostle.data import write_traces
from studies.alignment.evaluation import folds_of_pairs, folds_of_programs
from studies.papers.printed import printed
from studies.worlds.memory_laws import LAWS, stressors
from studies.worlds.traced_programs import Job, draw_programs, simulate, simulate_campaign
from tests.packages.learn.counters.traced_samples import a_solo


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    assert studies.run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_campaign_as_it_was_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    law = LAWS["lru"]
    programs = draw_programs(5, 2, seconds=0.02, longest_seconds=4e-3, machine=law)
    probes = stressors(law, 0.02)
    traces = simulate_campaign(programs, law, loop=True, probes=probes)
    write_traces(tmp_path, traces)
    (tmp_path / "campaign.json").write_text('{"corunners": "loop"}')
    words = ["alignment", "--on", "campaign", "--data", str(tmp_path), "--learner", "mixture"]
    found = run([*words, "--held", "2", "--folds", "1"], capsys)
    errors = {row[""]: float(row["run time, mean"].rstrip("%")) for row in found["errors"]}
    assert set(errors) == {
        "alignment",
        "no interference",
        "mean slowdown",
        "median slowdown",
        "additive effects",
        "probes",
    }
    (held_out,) = found["folds"]
    assert {one["workload"] for one in found["tested"]} == set(held_out)
    mine = [one["errors"]["no interference"] for one in found["tested"]]
    assert errors["no interference"] == pytest.approx(100 * np.mean(np.abs(mine)), abs=0.006)
    for one in found["tested"]:
        assert one["solo_seconds"] / one["measured_seconds"] - 1 == pytest.approx(
            one["errors"]["no interference"]
        )
    for fold in (*folds_of_programs(traces, 2, 0), *folds_of_pairs(traces, 0)):
        tested = {run.run_id for runs in fold.test.values() for run in runs}
        assert tested
        assert not tested & fold.train
    assert studies.run([*words, "--held", "5"]) == 2


def by_hand(buffer: np.ndarray, a: float) -> np.ndarray:
    """Algorithm 2. buffer: (T, d) counts per sample; a: the target count."""
    beta = 0
    while beta < len(buffer) - 1 and buffer[: beta + 1, 0].sum() <= a:
        beta += 1
    gamma = (buffer[beta, 0] - a) / buffer[beta, 0]
    this, following = buffer[max(beta - 1, 0)], buffer[beta]
    return this if gamma == 1 else this * (1 - gamma) + following * gamma


@given(
    st.lists(st.tuples(st.floats(0.5, 9), st.floats(0, 9)), min_size=2, max_size=12),
    st.floats(0.001, 1.5),
)
@settings(deadline=None)
def test_printed_is_line_for_line(rows: list[tuple[float, float]], part: float) -> None:
    buffer = np.array(rows)
    count = np.array([part * buffer[0, 0]])
    found = printed(a_solo(buffer), np.zeros(1), np.ones(1), count)[0]
    np.testing.assert_allclose(found, by_hand(buffer, float(count[0])), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_under_every_law_all_is_executed_once_and_nobody_is_quicker(name: str) -> None:
    programs = draw_programs(4, 1, seconds=0.03, machine=LAWS[name])
    alone = [simulate(LAWS[name], [Job(one)])[0].runtime_seconds for one in programs]
    slower = 0
    for a, b in ((0, 1), (2, 3)):
        jobs = [Job(programs[a]), Job(programs[b], 1)]
        for number, history in zip((a, b), simulate(LAWS[name], jobs), strict=True):
            assert history.counters[-1, 0] == pytest.approx(programs[number].instructions)
            assert history.runtime_seconds > alone[number] * (1 - 1e-6)
            slower += history.runtime_seconds > 1.001 * alone[number]
    assert slower
