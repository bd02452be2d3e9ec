"""Samples and helpers for tests of kubernetes, and for others that need them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.journeys.schedulers.api_server import ApiServer
from tests.packages.server.chart import PLAIN

PROGRAM = os.environ.get("JOSTLE_KUBE_SCHEDULER", "")


NEEDS_SCHEDULER = [
    pytest.mark.schedulers,
    pytest.mark.skipif(not Path(PROGRAM).is_file(), reason="make test-schedulers gets it"),
]


@contextmanager
def scheduler(folder: Path, api: ApiServer, service: str, *, ignorable: bool) -> Iterator[None]:
    """kube-scheduler, run until the end."""
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": api.address}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [context],
        "current-context": "c",
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    (config,) = [one for one in yaml.safe_load_all(PLAIN.read_text()) if one["kind"] == "ConfigMap"]
    (here,) = yaml.safe_load(config["data"]["scheduler.yaml"])["extenders"]
    plain = {"enableHTTPS": False, "tlsConfig": None, "ignorable": ignorable, "httpTimeout": "30s"}
    extender = {**here, "urlPrefix": f"{service}/v1/kubernetes", **plain}
    json_ = "application/json"
    connection = {
        "kubeconfig": str(folder / "kubeconfig"),
        "contentType": json_,
        "acceptContentTypes": json_,
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {**connection, "qps": 500, "burst": 1000},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "extenders": [extender],
    }
    (folder / "config.json").write_text(json.dumps(config))
    with open(folder / "scheduler.log", "w") as log:
        running = subprocess.Popen(
            [PROGRAM, "--config", str(folder / "config.json"), "--port=0", "--secure-port=0"],
            stderr=log,
            stdout=log,
        )
        try:
            yield
        finally:
            running.kill()
            running.wait()


def node_of(api: ApiServer, name: str) -> str | None:
    return api.pods[name]["spec"].get("nodeName")
