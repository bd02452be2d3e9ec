"""Jobs that come to a cluster, and the traces that their times may be from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.errors import BadData, UnreadableFile
from studies.placement.arrivals import Arrivals, drawn_arrivals, read_arrivals
from studies.placement.cluster import (
    Cluster,
    ClusterJob,
    Truth,
    drawn_jobs,
    summed_outcomes,
)
from studies.placement.policies import NamedPolicy
from studies.placement.sets import MeasuredSets

ALWAYS = NamedPolicy("always", lambda part: np.zeros(part.members.shape))
NEVER = NamedPolicy("never", lambda part: np.full(part.members.shape, np.inf))
CLAIRVOYANT = NamedPolicy("clairvoyant", lambda part: part.seconds)


def truth() -> Truth:
    """Workloads 0 and 1 take twice as long beside each other, 0 and 2 half as long again."""
    return Truth(
        [
            MeasuredSets(
                np.zeros(2, int),
                np.array([[0, 1], [0, 2]]),
                np.array([[2.0, 2.0], [1.5, 1.5]]),
                np.ones((2, 2)),
            )
        ]
    )


def test_jobs_slow_each_other_down_as_was_measured() -> None:
    jobs = [
        ClusterJob(0, 0, 0.0, 10.0, 1.2),
        ClusterJob(0, 1, 0.0, 10.0, 4.0),
        ClusterJob(0, 2, 1.0, 3.0, 1.6),
    ]
    found = Cluster(truth(), jobs[:2], 1).play(ALWAYS)
    assert found.node_seconds == pytest.approx(20.0)  # both at half the speed
    assert (found.violated, found.shared) == (1, 2)
    apart = Cluster(truth(), jobs[:2], 1).play(NEVER)
    assert apart.node_seconds == pytest.approx(20.0)
    assert apart.waits.tolist() == [0.0, 10.0]
    assert (apart.violated, apart.shared) == (0, 0)
    # Of work 10 one is done when the other comes; the 3 of that take 4.5, in which 3 are done; then 6 alone.
    some = Cluster(truth(), [jobs[0], jobs[2]], 1).play(ALWAYS)
    assert some.node_seconds == pytest.approx(1 + 4.5 + 6.0)
    assert some.violated == 0
    assert Cluster(truth(), [jobs[0], jobs[2]], 1).play(CLAIRVOYANT).shared == 0


def test_policies_are_played_on_the_same_jobs() -> None:
    arrivals = drawn_arrivals(300, 0).at_load(4.0)
    jobs = drawn_jobs(truth(), arrivals, np.array([1.6]), np.random.default_rng(0))
    assert len(jobs) == 300
    cluster = Cluster(truth(), jobs, 4)
    rows = {
        row["policy"]: row
        for row in summed_outcomes([cluster.play(p) for p in (NEVER, ALWAYS, CLAIRVOYANT)])
    }
    assert rows["never"]["saved_ratio"] == pytest.approx(0.0, abs=1e-9)
    assert rows["clairvoyant"]["violated_ratio"] == 0 < rows["always"]["violated_ratio"]
    assert rows["clairvoyant"]["saved_of_clairvoyant_ratio"] == 1
    assert rows["clairvoyant"]["wait_mean_seconds"] < rows["never"]["wait_mean_seconds"]
    assert rows["always"]["decisions"] > 0


def test_drawn_arrivals_keep_so_many_nodes_busy() -> None:
    found = drawn_arrivals(2000, 3).at_load(10.0)
    assert found.stay_seconds.sum() / found.seconds[-1] == pytest.approx(10.0)
    assert np.array_equal(found.seconds, drawn_arrivals(2000, 3).at_load(10.0).seconds)
    assert (np.diff(found.seconds) >= 0).all()


def test_a_trace_gives_times(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("arrival_seconds,stay_seconds\n100,50\n90,20\nsoon,3\n")
    found = read_arrivals(tmp_path / "trace.csv")
    assert found.seconds.tolist() == [0.0, 10.0]
    assert found.stay_seconds.tolist() == [20.0, 50.0]
    assert found.dropped == 1


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadData, match="arrival_seconds"):
        read_arrivals(path)
    path.write_text("arrival_seconds,stay_seconds\nsoon,3\n")
    with pytest.raises(BadData, match="no row"):
        read_arrivals(path)
    with pytest.raises(UnreadableFile):
        read_arrivals(tmp_path / "nowhere")
    assert len(Arrivals.of([(0.0, 1.0), None, (-1.0, 1.0), (1.0, float("nan"))], "here")) == 1
