"""Windows of services that are watched, from histograms whose laws are known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.data import WindowsImport
from jostle.errors import BadData, UsageError
from tests.packages.data.runs.windows_samples import STEP, histogram


def written(path: Path, *series: dict) -> Path:
    answer = {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}
    path.write_text(json.dumps(answer))
    return path


def read(path: Path, **options: Any) -> Any:
    return WindowsImport((path,), "a100", **options).read()


def test_windows_are_runs_at_a_load_beside_who_was_there(tmp_path: Path) -> None:
    chat = histogram("chat", "0", [4, 8, 4, 0], [0.1, 0.2, 0.12, 0.1])
    code = histogram("code", "0", [0, 2, 2, 2], [0.3, 0.3, 0.3, 0.3])
    away = histogram("away", "1", [4, 4, 4, 4], [0.1] * 4)
    imported = read(written(tmp_path / "a.json", *chat, *code, *away))
    columns = imported.runs.colocations.to_columns()
    found = sorted(
        (workload, tuple(beside), round(seconds, 9))
        for workload, beside, seconds in zip(
            columns["workload"], columns["corunners"], imported.runs.runtime_seconds, strict=True
        )
    )
    assert found == sorted(
        [
            ("chat at 4/s", (), 0.1),
            ("chat at 8/s", ("code at 2/s",), 0.2),
            ("chat at 4/s", ("code at 2/s",), 0.12),
            ("code at 2/s", ("chat at 8/s",), 0.3),
            ("code at 2/s", ("chat at 4/s",), 0.3),
            ("code at 2/s", (), 0.3),
            *[("away at 4/s", (), 0.1)] * 4,
        ]
    )
    features = imported.runs.workload_features.to_pylist()
    loads = {
        row["workload"]: row["load_per_second"] for row in features if row["service"] == "chat"
    }
    assert loads == {
        "chat at 4/s": pytest.approx(4),
        "chat at 5.66/s": pytest.approx(4 * math.sqrt(2)),
        "chat at 8/s": pytest.approx(8),
    }
    # Windows of one device belong together, whoever is held out.
    windows = imported.runs.table.column("window_id").to_pylist()
    assert len(set(windows)) == 4 + 4


def test_a_quantile_is_that_of_the_buckets(tmp_path: Path) -> None:
    """Even over 0 to 0.2 s: the 90th percentile is 0.18, inside the bucket from 0.1 to 0.2."""
    path = written(tmp_path / "a.json", *histogram("chat", "0", [4, 8], [0.1, 0.1]))
    for quantile in (0.2, 0.5, 0.9):
        found = read(path, quantile=quantile).runs.runtime_seconds
        np.testing.assert_allclose(found, 0.2 * quantile)
    over = written(tmp_path / "b.json", *histogram("chat", "0", [4, 4], [0.1, 2.0]))
    imported = read(over, quantile=0.9)  # of the second window it is over the last bound
    assert (len(imported.runs), imported.skipped) == (1, 1)


def test_restarts_gaps_and_few_requests(tmp_path: Path) -> None:
    series = histogram("chat", "0", [4, 4, 4, 4], [0.1] * 4)
    for one in series:  # the server begins anew after 2 minutes, and a reading is missing
        pairs = one["values"]
        before = float(pairs[8][1])
        for pair in pairs[9:]:
            pair[1] = str(float(pair[1]) - before)
        pairs[3][1] = "NaN"
    imported = read(written(tmp_path / "a.json", *series))
    np.testing.assert_allclose(imported.runs.runtime_seconds, 0.1)
    assert set(imported.runs.colocations.workload_names) == {"chat at 4/s"}
    few = read(written(tmp_path / "b.json", *histogram("chat", "0", [4, 0.1], [0.1, 0.1])))
    assert (len(few.runs), few.skipped) == (1, 1)


def test_two_instances_add_up_and_other_servers_have_other_names(tmp_path: Path) -> None:
    one, two = (histogram("chat", "0", [4, 4], [mean, mean]) for mean in (0.1, 0.3))
    for n, series in enumerate((one, two)):
        for part in series:
            part["metric"]["pod"] = f"p{n}"
    both = read(written(tmp_path / "a.json", *one, *two)).runs
    assert set(both.colocations.workload_names) == {"chat at 8/s"}
    np.testing.assert_allclose(both.runtime_seconds, 0.2)
    triton = histogram("bert", "GPU-1", [4, 4], [0.1, 0.1])[:2]
    for part, name, unit in zip(triton, ("success", "duration_us"), (1, 1e6), strict=True):
        part["metric"] = {
            "__name__": f"nv_inference_request_{name}",
            "model": "bert",
            "gpu_uuid": "GPU-1",
        }
        part["values"] = [[at, str(float(value) * unit)] for at, value in part["values"]]
    found = read(written(tmp_path / "b.json", *triton)).runs
    np.testing.assert_allclose(found.runtime_seconds, 0.1)


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    good = written(tmp_path / "a.json", *histogram("chat", "0", [4], [0.1]))
    bad = tmp_path / "bad.json"
    for pairs in ('[[1, "x"]]', "[5]", "7"):
        one = f'{{"metric": {{}}, "values": {pairs}}}'
        bad.write_text(f'{{"resultType": "matrix", "result": [{one}]}}')
        with pytest.raises(BadData, match=r"value 0 is not|has no metric or no values"):
            read(bad)
    with pytest.raises(BadData, match="label"):
        read(good, service="nobody")
    with pytest.raises(BadData, match="no window"):
        read(good, fewest=10_000)
    with pytest.raises(UsageError, match="window"):
        read(good, window="soon")
    other = histogram("chat", "0", [4], [0.1])
    for part in other:
        part["metric"]["__name__"] = part["metric"]["__name__"].replace("vllm:", "mine_")
    path = written(tmp_path / "c.json", *other)
    with pytest.raises(BadData, match="no latency that is known"):
        read(path)
    assert len(read(path, latency="mine_time_to_first_token_seconds").runs) == 1


def gauge(name: str, values: list[float], **labels: str) -> dict:
    """A reading every 15 s, from a minute's beginning on."""
    pairs = [[6000 + STEP * n, str(value)] for n, value in enumerate(values)]
    return {"metric": {"__name__": name, **labels}, "values": pairs}


def test_gauges_of_dcgm_say_whose_pods_share_a_gpu(tmp_path: Path) -> None:
    """Two services on GPU-a, and a job from the second minute on, which alone is on GPU-b as well."""
    series = []
    for service, pod, rates in (
        ("chat", "chat-0", [4.0] * 4),
        ("code", "code-0", [0.0, 0.0, 2.0, 2.0]),
    ):
        for one in histogram(service, "x", rates, [0.1] * 4):
            del one["metric"]["gpu"]
            series.append({**one, "metric": {**one["metric"], "pod": pod, "namespace": "ml"}})
    exporter = {"pod": "dcgm-exporter-7c6vs", "namespace": "gpu-operator", "UUID": "GPU-a"}
    for pod in ("chat-0", "code-0"):
        mine = {**exporter, "exported_pod": pod, "exported_namespace": "ml"}
        series.append(gauge("DCGM_FI_DEV_GPU_UTIL", [40.0] * 17, **mine))
    job = {**exporter, "exported_pod": "train-5d8f7c9b6d-x2x4z", "exported_namespace": "ml"}
    late = gauge("DCGM_FI_DEV_GPU_UTIL", [90.0] * 13, **job)
    for pair in late["values"]:
        pair[0] += 60
    unsaid = gauge("DCGM_FI_DEV_FB_USED", [9223372036854775794.0] * 17, **exporter)
    away = gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", [0.9] * 17, **{**job, "UUID": "GPU-b"})
    path = written(tmp_path / "a.json", *series, late, unsaid, away)
    columns = read(path).runs.colocations.to_columns()
    found = set(zip(columns["workload"], map(tuple, columns["corunners"]), strict=True))
    assert found == {
        ("chat at 4/s", ()),
        ("chat at 4/s", ("ml/train",)),
        ("chat at 4/s", ("code at 2/s", "ml/train")),
        ("code at 2/s", ("chat at 4/s", "ml/train")),
    }
    features = {row["workload"]: row for row in read(path).runs.workload_features.to_pylist()}
    assert features["chat at 4/s"]["busy_ratio"] == pytest.approx(0.4)
    assert features["code at 2/s"]["busy_ratio"] is None  # it was never alone
    assert features["ml/train"]["busy_ratio"] == pytest.approx(0.9)  # on GPU-b, in the first minute
    assert "memory_used_mib" not in features["chat at 4/s"]
    # Where no GPU is told of a pod it may have been beside anybody, and so may others then.
    told = [one for one in series if one["metric"].get("exported_pod") != "chat-0"]
    only = read(written(tmp_path / "b.json", *told, late)).runs
    names = only.table.column("workload").to_pylist()
    assert set(names) == {"chat at 4/s", "code at 2/s"}
    assert only.unknown_corunners.all()
    # The instances of MIG share nothing that is told.
    for one in series:
        if one["metric"].get("exported_pod") == "code-0":
            one["metric"]["GPU_I_ID"] = "3"
    apart = read(written(tmp_path / "c.json", *series)).runs.colocations
    assert not apart.number_of_corunners.any()


@pytest.mark.parametrize("kind", ["vector", "matrix"])
def test_readings_of_one_moment_are_no_windows(kind: str, tmp_path: Path) -> None:
    series = histogram("chat", "0", [4], [0.1])
    for one in series:
        first = one.pop("values")[0]
        one |= {"value": first} if kind == "vector" else {"values": [first]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": {"resultType": kind, "result": series}}))
    with pytest.raises(BadData, match=r"vector.*\n?.*query_range"):
        read(path)
