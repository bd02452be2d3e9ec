"""Jobs that come to a cluster, and the traces that their times may be from."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from jostle.errors import BadData, UnreadableFile, UsageError
from jostle.evaluate.placement._arrivals import Arrivals, drawn_arrivals, read_cluster_trace
from jostle.evaluate.placement._cluster import (
    Cluster,
    ClusterJob,
    Truth,
    drawn_jobs,
    summed_outcomes,
)
from jostle.evaluate.placement._policies import NamedPolicy
from jostle.placement import MeasuredSets

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


ALIBABA = "t1,1,j1,1,Terminated,{},{},100,0.5\n"
HELIOS = "job_id,user,submit_time,start_time,end_time,duration\n"
EVENTS = "time,collection_id,instance_index,type\n"


@pytest.mark.parametrize(
    ("layout", "content"),
    [
        ("plain", "arrival_seconds,stay_seconds\n100,50\n90,20\nsoon,3\n"),
        (
            "alibaba-2018",
            ALIBABA.format(100, 150) + ALIBABA.format(90, 110) + ALIBABA.format(95, 0),
        ),
        (
            "alibaba-gpu-2020",
            "j,t,1,Terminated,100,150,,\nj,t,1,Terminated,90,110,,\nj,t,1,Running,95,,,\n",
        ),
        (
            "alibaba-gpu-2023",
            "name,creation_time,deletion_time,scheduled_time\na,100,152,102\nb,90,110,\nc,91,,\n",
        ),
        ("azure-vm", "v,s,d,100,150,1\nv,s,d,90,110,1\nv,s,d,90,,1\n"),
        (
            "helios",
            HELIOS
            + "1,u,2020-04-01 00:00:10,2020-04-01 00:01:00,2020-04-01 00:01:50,50\n"
            + "2,u,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:00:25,20\n3,u,,,,\n",
        ),
        (
            "google-2011",
            "100000000,,1,0,m,0,u\n90000000,,2,0,m,0,u\n91000000,,2,0,m,1,u\n111000000,,2,0,m,4,u\n"
            "120000000,,1,0,m,1,u\n170000000,,1,0,m,5,u\n",
        ),
        (
            "google-2019",
            EVENTS + "100000000,1,0,SUBMIT\n90000000,2,0,0\n91000000,2,0,SCHEDULE\n"
            "111000000,2,0,FINISH\n120000000,1,0,3\n170000000,1,0,KILL\n",
        ),
        (
            "philly",
            json.dumps(
                [
                    {
                        "submitted_time": f"2017-10-09 07:00:{second}",
                        "attempts": [
                            {
                                "start_time": "2017-10-09 07:01:00",
                                "end_time": f"2017-10-09 07:01:{stay}",
                            }
                        ],
                    }
                    for second, stay in (("10", "50"), ("00", "20"))
                ]
                + [{"attempts": []}]
            ),
        ),
    ],
)
def test_public_layouts_say_the_same(layout: str, content: str, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(gzip.compress(content.encode()))
    found = read_cluster_trace(tmp_path / "trace", layout)
    assert found.seconds.tolist() == [0.0, 10.0]
    assert found.stay_seconds.tolist() == [20.0, 50.0]


def test_the_packing_trace_is_sqlite(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("CREATE TABLE vm (vmId, starttime REAL, endtime REAL)")
        rows = [(1, 1.0, 1.5), (2, -3.0, 9.0), (3, 2.0, None)]
        connection.executemany("INSERT INTO vm VALUES (?, ?, ?)", rows)
    connection.close()
    found = read_cluster_trace(tmp_path / "a.sqlite", "azure-packing-2020")
    assert found.stay_seconds.tolist() == [43_200.0]
    assert found.dropped == 2


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadData, match="arrival_seconds"):
        read_cluster_trace(path, "plain")
    with pytest.raises(BadData, match="no row"):
        read_cluster_trace(path, "azure-vm")
    with pytest.raises(UsageError, match="layout"):
        read_cluster_trace(path, "borg")
    with pytest.raises(UnreadableFile):
        read_cluster_trace(path, "philly")
    with pytest.raises(UnreadableFile):
        read_cluster_trace(tmp_path / "nowhere", "plain")
    assert len(Arrivals.of([(0.0, 1.0), None, (-1.0, 1.0), (1.0, float("nan"))], "here")) == 1
