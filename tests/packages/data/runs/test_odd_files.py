"""Files as people have them: packed, in other encodings, with too little in them, cells in other shapes."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.data import (
    CsvImport,
    JobsImport,
    KubernetesImport,
    PairsImport,
    group_names,
    kind_of,
    read_runs,
)
from jostle.errors import BadData, UnreadableFile, UsageError
from tests.command_line import assert_fails
from tests.command_line import jostle as run
from tests.packages.data.runs.import_kubernetes_samples import pod

EDGES: dict[str, Any] = {"since": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"}
START = int(datetime(2026, 1, 27, 8, tzinfo=UTC).timestamp())
SACCT = (
    "JobID|User|JobName|NodeList|Start|End|State|ElapsedRaw\n"
    "1|ada|align|n1|2026-01-27T08:00:00|2026-01-27T08:10:00|COMPLETED|600\n"
    "2|bo|sort|n1|2026-01-27T08:05:00|2026-01-27T08:20:00|COMPLETED|900\n"
)
POD = pod("align", "08:00:00", "08:10:00")
MARCH = {"since": "2026-03-01", "until": "2026-03-02"}


def runs_of(
    path: Path, content: str | bytes, kind: type[JobsImport] = JobsImport, **more: Any
) -> list[Any]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return kind(path, **EDGES | more).read().runs().table.to_pylist()


def jobs(start: Any, end: Any, more: str = "", cells: str = "") -> str:
    return f"job,node,start,end,workload{more}\n1,n1,{start},{end}, a{cells}\n"


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("20260127080000", "20260127081000"),
        (f"{START}.5e0", f"{START + 600}.5e0"),
        (f'"{START},5"', f'"{START + 600},5"'),
        ("Jan 27 08:00 2026", "Jan 27 08:10 2026"),
    ],
)
def test_times_in_digits_and_other_spellings(start: str, end: str, tmp_path: Path) -> None:
    (one,) = runs_of(tmp_path / "a.csv", jobs(start, end))
    assert abs(one["measured_at"].timestamp() - START) < 1
    assert (one["runtime_seconds"], one["workload"]) == (600.0, "a")


def test_a_time_of_another_unit_than_its_column_is_named(tmp_path: Path) -> None:
    text = (
        jobs(START, START + 600)
        + f"2,n1,{START}000,{START + 600}000,b\n3,n1,{START},{START + 9},c\n"
    )
    (tmp_path / "a.csv").write_text(text)
    log = JobsImport(tmp_path / "a.csv", **EDGES).read()
    assert sorted(log.runs().table.column("workload").to_pylist()) == ["a", "c"]
    assert log.left_aside["a time of theirs cannot be read"] == 1


def test_packed_files_and_files_in_utf_16_are_read(tmp_path: Path) -> None:
    expected = runs_of(tmp_path / "sacct.txt", SACCT, workload="{JobName}")
    for content in (SACCT.encode("utf-16"), gzip.compress(SACCT.encode())):
        assert runs_of(tmp_path / "b.txt", content, workload="{JobName}") == expected
        assert kind_of(str(tmp_path / "b.txt")) == "sacct"
    named = jobs(1767225600, 1767225660).replace(" a", "g\u00e9mm")
    for content in (named, named.encode("latin-1")):
        assert runs_of(tmp_path / "d.csv", content)[0]["workload"] == "g\u00e9mm"
    packed = gzip.compress(json.dumps(POD).encode())
    assert runs_of(tmp_path / "c.gz", packed, KubernetesImport, **MARCH)
    assert runs_of(tmp_path / "c.json", json.dumps([POD]), KubernetesImport, **MARCH)
    table = "workload,host,t\na,h,1\n"
    for content in (table.encode("utf-16"), gzip.compress(table.encode())):
        (tmp_path / "t.csv").write_bytes(content)
        read = CsvImport(tmp_path / "t.csv", "workload", "t", "s", "host").read()
        assert read.runs.runtime_seconds.tolist() == [1.0]


def test_packed_tables_do_not_unpack_without_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("jostle._base.untrusted._ALWAYS_ALLOWED_BYTES", 1 << 20)
    (tmp_path / "a.csv").write_bytes(gzip.compress(b" " * (1 << 24)))
    with pytest.raises(UnreadableFile, match="unpacks to more than"):
        CsvImport(tmp_path / "a.csv", "w", "t", "s", "h").read()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        (SACCT.split("\n", 1)[1], r"sacct without a header.*sacct -aDP"),
        ("apiVersion: v1\nitems: []\n", r"YAML.*kubectl get pods"),
        ("NAME   READY   STATUS\na   0/1   Completed\n", r"for people.*kubectl get pods"),
        ("# HELP a b\n# TYPE a counter\na 1\n", r"metrics of one moment.*query_range"),
        ("# started on Thu\n\n104,,instructions,20,100.00,1.25,insn\n", r"perf stat -I"),
        ("NSYSREP\0\0", r"nsys export"),
        ("  JOBID PARTITION NAME USER ST TIME NODES\n 1 p a b R 1 1\n", r"Print it so: sacct -aDP"),
        ("Job ID: 12\nCluster: c\nUser/Group: a/g\n", r"sacct -aDP"),
        ("Job id            Name\n----  ----\n1.s   a\n", r"qstat -x -f -F json"),
        ("job-ID  prior   name\n---\n1 0.5 a\n", r"qacct -j"),
        ("JOBID   USER    STAT  QUEUE\n1  a  DONE  q\n", r"bjobs -a -u all -o"),
        ("\nAccounting information about jobs that are: \n", r"bjobs -a -u all -o"),
        (" ID     OWNER          SUBMITTED   RUN_TIME\n 1.0 a 1/2 0 C\n", r"condor_history -json"),
        ("LAST SEEN   TYPE      REASON\n5m   Normal    Scheduled\n", r"kubectl get pods,events"),
        ('{"Name": "a", "CPUPerc": "1%"}\n', r"docker stats"),
        ("#Date       Time   gpu\n#YYYYMMDD   HH:MM:SS    Idx\n", r"nvidia-smi --query-gpu"),
        ("2026/01/27 08:00:00.1, 0, 60 %\n", r"without the names.*nvidia-smi --query-gpu"),
        ("BZh91AY", r"packed by bzip2.*bunzip2"),
        ("PK\3\4ab", r"saved as CSV"),
        ('Time (%),Total Time (ns),Instances,Name\n9,3,2,"a"\n', r"cuda_gpu_trace"),
        ("NAME   CPU(cores)   MEMORY(bytes)\na   1m   9Mi\n", r"docker stats"),
    ],
)
def test_what_holds_too_little_is_answered_with_the_command_that_prints_more(
    text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    with pytest.raises(UnreadableFile, match=says):
        kind_of(str(path))


def test_a_missing_file_and_a_table_of_which_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        kind_of(str(tmp_path / "none.csv"))
    text = "program;host;seconds\na;h;1,5\n"
    says = "--workload program --runtime seconds --unit s --platform host"
    for content in (text.encode(), text.encode("utf-16"), gzip.compress(text.encode())):
        (tmp_path / "t.csv").write_bytes(content)
        assert_fails(UsageError, says, "import", tmp_path / "t.csv", "-o", tmp_path / "d")


def test_the_kind_is_the_one_that_has_the_options(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("# exported\nid,host,began,ms\n1,h,2026-01-27T08:00:00,5\n")
    assert kind_of(str(path)) == "csv"
    assert kind_of(str(path), ["column"]) == "jobs"
    assert kind_of(str(path), ["time", "workload"]) == "series"


def test_exit_codes_say_that_a_job_failed(tmp_path: Path) -> None:
    row = {
        "ClusterId": 1, "ProcId": 0, "Owner": "ada", "Cmd": "/x/a", "LastRemoteHost": "s1@n1", "JobStatus": 4,
        "JobCurrentStartDate": START, "CompletionDate": START + 600, "ExitCode": 0,
    }  # fmt: skip
    rows = [row, row | {"ClusterId": 2, "ExitCode": 3}, row | {"ClusterId": 3, "ExitSignal": 9}]
    found = runs_of(tmp_path / "a.json", json.dumps(rows))
    assert [one["status"] for one in found] == ["ok", "failed", "failed"]


def test_a_state_that_is_cut_off_is_known(tmp_path: Path) -> None:
    text = SACCT.replace("|COMPLETED|600", "|OUT_OF_ME+|600").replace(
        "|COMPLETED|900", "|CANCELLED+|900"
    )
    found = runs_of(tmp_path / "a.txt", text)
    assert [one["status"] for one in found] == ["out_of_memory", "failed"]


def test_what_bjobs_prints_and_what_ran_again_under_pbs(tmp_path: Path) -> None:
    bjobs = (
        "JOBID,USER,JOB_NAME,EXEC_HOST,START_TIME,FINISH_TIME,STAT,MAX_MEM\n"
        "1,ada,align,4*n1,Jan 27 08:00:00 2026,Jan 27 08:10:00 2026,DONE,812 Mbytes\n"
    )
    (one,) = runs_of(tmp_path / "a.csv", bjobs)
    assert (one["workload"], one["platform"]) == ("ada/align", "n1")
    assert one["peak_memory_bytes"] == 812 * 2**20
    about = f"user=ada jobname=a exec_host=n1/0 start={START}"
    pbs = (
        f"01/27/2026 08:00:00;S;1.s;{about}\n01/27/2026 08:05:00;R;1.s;{about} end={START + 300}\n"
        f"01/27/2026 08:06:00;S;1.s;{about.replace(str(START), str(START + 360))}\n"
        f"01/27/2026 08:10:00;E;1.s;{about.replace(str(START), str(START + 360))} end={START + 600} "
        "Exit_status=0\n"
    )
    found = runs_of(tmp_path / "b", pbs)
    assert [(one["status"], one["runtime_seconds"]) for one in found] == [
        ("failed", None),
        ("ok", 240.0),
    ]


EVENTS = """000 (7.000.000) 2026-01-27 07:59:00 Job submitted from host: <10.0.0.1:9618?alias=login>
    DAG Node: align_s1
...
001 (7.000.000) 2026-01-27 08:00:00 Job executing on host: <10.0.0.5:9618?addrs=x&alias=n1.site&noUDP>
\tSlotName: slot1_2@n1.site
...
006 (7.000.000) 2026-01-27 08:01:00 Image size of job updated: 900
\t12  -  MemoryUsage of job (MB)
...
005 (7.000.000) 2026-01-27 08:10:00 Job terminated.
\t(1) Normal termination (return value 0)
\tPartitionable Resources :    Usage  Request Allocated
\t   Memory (MB)          :       40       64       128
...
000 (8.000.000) 2026-01-27 08:00:00 Job submitted from host: <10.0.0.1:9618>
...
001 (8.000.000) 2026-01-27 08:00:00 Job executing on host: <10.0.0.6:9618>
...
012 (8.000.000) 2026-01-27 08:05:00 Job was held.
\tError from slot1@n2: memory usage exceeded request_memory
...
000 (9.000.000) 2026-01-27 08:00:00 Job submitted from host: <10.0.0.1:9618>
"""


def test_events_of_htcondor(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(EVENTS)
    assert kind_of(str(path)) == "jobs"
    log = JobsImport(path, **EDGES).read()
    one, two = sorted(log.runs().table.to_pylist(), key=lambda run: str(run["platform"]))[::-1]
    assert (one["platform"], one["workload"]) == ("n1.site", "align_s1")
    assert one["runtime_seconds"] == 600.0
    assert (one["peak_memory_bytes"], one["requested_memory_bytes"]) == (40 * 2**20, 64 * 2**20)
    assert (two["platform"], two["status"]) == ("10.0.0.6", "out_of_memory")
    assert log.runs().unknown_corunners.all()
    assert log.left_aside["they never started"] == 1
    path.write_text(EVENTS.replace("    DAG Node: align_s1\n", ""))
    log = JobsImport(path, **EDGES).read()
    assert set(log.runs().table.column("workload").to_pylist()) == {"7", "8"}
    assert any("no program is named" in note for note in log.notes)


def test_what_qstat_prints(tmp_path: Path) -> None:
    about = {
        "Job_Name": "align", "Job_Owner": "ada@login", "job_state": "F", "exec_host": "n1/0*4",
        "resources_used": {"mem": "2048kb", "walltime": "00:10:00"}, "Exit_status": 0,
        "Resource_List": {"mem": "4gb"}, "stime": "Tue Jan 27 08:00:00 2026",
    }  # fmt: skip
    rows = {
        "1.s": about,
        "2.s": about | {"Exit_status": 271, "Job_Owner": "bo@login"},
        "3.s": {key: value for key, value in about.items() if key != "Exit_status"}
        | {"job_state": "R"},
    }
    (tmp_path / "q.json").write_text(json.dumps({"timestamp": 1, "pbs_version": "x", "Jobs": rows}))
    lines = "".join(
        f"Job Id: {job}\n"
        + "".join(
            f"    {name} = {value}\n"
            for key, told in row.items()
            for name, value in (
                [(f"{key}.{part}", v) for part, v in told.items()]
                if isinstance(told, dict)
                else [(key, told)]
            )
        )
        + "    Variable_List = PBS_O_HOME=/home/ada,\n\tPBS_O_LANG=C\n\n"
        for job, row in rows.items()
    )
    (tmp_path / "q.txt").write_text(lines)
    for path in (tmp_path / "q.json", tmp_path / "q.txt"):
        assert kind_of(str(path)) == "jobs"
        log = JobsImport(path, **EDGES).read()
        one, two = sorted(log.runs().table.to_pylist(), key=lambda run: str(run["workload"]))
        assert (one["workload"], one["platform"]) == ("ada/align", "n1")
        assert one["runtime_seconds"] == 600.0
        assert (one["peak_memory_bytes"], one["requested_memory_bytes"]) == (2**21, 2**32)
        assert (two["workload"], two["status"]) == ("bo/align", "failed")


def test_a_rule_of_nodes_may_be_an_expression_alone(tmp_path: Path) -> None:
    text = jobs(START, START + 600).replace("1,n1", "1,slot1@n1")
    for rule in ("[^@]+$", "{node:[^@]+$}"):
        (one,) = runs_of(tmp_path / "a.csv", text, node=rule)
        assert one["platform"] == "n1"


def test_groups_of_names_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(SACCT)
    log = JobsImport(tmp_path / "a.txt", **EDGES, group="^[^/]+").read()
    assert log.runs().groups == ("^[^/]+",)
    log.write(tmp_path / "d")
    JobsImport(tmp_path / "a.txt", **EDGES, campaign="b", group="[^/]+$").read().write(
        tmp_path / "d"
    )
    assert read_runs(tmp_path / "d").groups == ("[^/]+$", "^[^/]+")
    names = ("ada/align", "none", "")
    assert group_names(names, ("^([^/]+)/", "^n")) == ["ada", "n", ""]


def test_cached_tasks_are_told_to_be_so(tmp_path: Path) -> None:
    head = "task_id\tprocess\tname\tstatus\thostname\tstart\tcomplete\trealtime\n"
    row = f"A\tA (1)\t{{}}\tn1\t{START}000\t{START + 60}000\t60000\n"
    (tmp_path / "t.txt").write_text(
        head + f"1\t{row.format('COMPLETED')}" + f"2\t{row.format('CACHED')}"
    )
    log = JobsImport(tmp_path / "t.txt", **EDGES).read()
    assert len(log.runs()) == 1
    assert {why: n for why, n in log.left_aside.items() if n} == {
        "they were not run again (cached)": 1
    }


def test_durations_in_parquet_know_their_unit(tmp_path: Path) -> None:
    day = pa.array([START * 10**6], pa.timestamp("us"))
    table = pa.table({"job": [1], "node": ["n1"], "start": day, "workload": ["a"]})
    table = table.append_column("duration", pa.array([600 * 10**9], pa.duration("ns")))
    pq.write_table(table, tmp_path / "a.parquet")
    runs = JobsImport(tmp_path / "a.parquet", **EDGES).read().runs()
    assert runs.runtime_seconds.tolist() == [600.0]


def test_benchmark_files_of_snakemake(tmp_path: Path) -> None:
    head = "s\th:m:s\tmax_rss\tmax_vms\n"
    (tmp_path / "bwa.tsv").write_text(
        head + "60.5\t0:01:00\t412.5\t1\n93784.1\t1 day, 2:03:04\t-\t1\n"
    )
    read = CsvImport(tmp_path / "bwa.tsv").read()
    assert read.runs.runtime_seconds.tolist() == [60.5, 93784.1]
    assert read.runs.table.column("workload").to_pylist() == ["bwa", "bwa"]
    np.testing.assert_array_equal(read.runs.peak_memory_bytes, [412.5 * 2**20, np.nan])
    assert read.runs.unknown_corunners.all()
    assert "who ran beside is not known" in read.understood[0]
    (tmp_path / "all.tsv").write_text(
        f"rule\t{head}map\t60.5\t0:01:00\t412.5\t1\nmap\t0.01\t0:00:00\t-\t1\n"
    )
    result = run("import", tmp_path / "all.tsv", "-o", tmp_path / "d", "--platform-name", "p8")
    assert "1 workloads" in result.stdout


def test_numbers_in_threes_and_sizes_in_a_table(tmp_path: Path) -> None:
    text = 'workload,host,t,peak_memory_bytes\na,h,"1,234,567",2 GB\nb,h,"2,345",1 GB\n'
    (tmp_path / "t.csv").write_text(text)
    read = CsvImport(tmp_path / "t.csv", "workload", "t", "ms", "host").read().runs
    assert read.runtime_seconds.tolist() == [1234.567, 2.345]
    assert read.peak_memory_bytes.tolist() == [2e9, 1e9]
    (tmp_path / "t.csv").write_text(text.replace("1,234,567", "1,234"))
    with pytest.raises(BadData, match=r"1,234 may be 1.234 or 1234"):
        CsvImport(tmp_path / "t.csv", "workload", "t", "ms", "host").read()
    with pytest.raises(UsageError, match="which column holds what"):
        CsvImport(tmp_path / "t.csv", "workload").read()


@pytest.mark.parametrize(
    "text",
    [
        "target;corunner;platform;unit;solo;corun\nx;y;p;s;10,5;12,5\n",
        "target,corunner,platform,solo,corun\nx,y,p,10.5 s,12500 ms\n",
        "platform,workload_a,workload_b,solo_a,solo_b,time_a,time_b\np,x,y,10.5,1,12.5,\n",
    ],
)
def test_pairs_in_other_spellings(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(text)
    runs = PairsImport(tmp_path / "p.csv").read().runs
    assert sorted(runs.runtime_seconds.tolist()) == [10.5, 12.5]
