"""What lies in deploy/ says the same in all its places."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from jostle.service.kubernetes._pods import PREFIX

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def documents(name: str) -> list[dict]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text("utf-8")))


def test_the_manifests_fit_together() -> None:
    (whole,) = documents("kustomization.yaml")
    there = {path.name for path in (DEPLOY / "kubernetes").iterdir()}
    assert set(whole["resources"]) | {"scheduler.yaml", "kustomization.yaml"} == there
    deployment, *claims = documents("deployment.yaml")
    (scheduler,) = documents("second-scheduler.yaml")
    for one in (deployment, scheduler):
        spec = one["spec"]["template"]["spec"]
        mounted = {v["name"] for box in spec["containers"] for v in box["volumeMounts"]}
        assert mounted == {v["name"] for v in spec["volumes"]}
        assert "schedulerName" not in spec  # it never waits for itself
        for box in spec["containers"]:
            assert box["securityContext"]["readOnlyRootFilesystem"]
    spec = deployment["spec"]["template"]["spec"]
    named = {
        v["persistentVolumeClaim"]["claimName"]
        for v in spec["volumes"]
        if "persistentVolumeClaim" in v
    }
    assert named == {one["metadata"]["name"] for one in claims}
    (service,), (policy,) = documents("service.yaml"), documents("network-policy.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels == policy["spec"]["podSelector"]["matchLabels"]
    (extender,) = documents("scheduler.yaml")[0]["extenders"]
    name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
    assert extender["urlPrefix"] == f"https://{name}.{whole['namespace']}.svc:{port}/v1/kubernetes"
    assert "--scheduler-name=jostle" in spec["containers"][0]["args"]
    assert documents("scheduler.yaml")[0]["profiles"] == [{"schedulerName": "jostle"}]
    assert PREFIX == "jostle/"


# Of the published type Extender of kubescheduler.config.k8s.io/v1, the same from Kubernetes 1.29 to 1.34.
EXTENDER = {
    "urlPrefix": str, "filterVerb": str, "preemptVerb": str, "prioritizeVerb": str, "weight": int,
    "bindVerb": str, "enableHTTPS": bool, "tlsConfig": dict, "httpTimeout": str, "nodeCacheCapable": bool,
    "managedResources": list, "ignorable": bool,
}  # fmt: skip
TLS = {"insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"}


def test_the_scheduler_can_read_its_configuration() -> None:
    (config,) = documents("scheduler.yaml")
    assert config["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert set(config) == {"apiVersion", "kind", "leaderElection", "profiles", "extenders"}
    (extender,) = config["extenders"]
    for name, value in extender.items():
        assert type(value) is EXTENDER[name], name
    assert set(extender["tlsConfig"]) <= TLS
    # Away, it holds nothing up; and it cannot bind.
    assert extender["ignorable"]
    assert "bindVerb" not in extender


def test_nothing_may_be_changed_in_the_cluster() -> None:
    roles = [one for one in documents("account.yaml") if one["kind"] == "ClusterRole"]
    assert [one["rules"] for one in roles] == [
        [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]}]
    ]


def test_nothing_listens_to_others_without_a_certificate_and_a_key() -> None:
    for name in ("kubernetes/deployment.yaml", "Containerfile"):
        text = (DEPLOY / name).read_text()
        assert {"--tls-cert", "--tls-key", "--keys"} <= set(re.findall(r"--[a-z-]+", text)), name


def test_every_option_that_is_used_exists() -> None:
    from dataclasses import fields

    from jostle.service import ServeSettings

    known = {"--" + one.name.replace("_", "-") for one in fields(ServeSettings)}
    text = (DEPLOY / "kubernetes" / "deployment.yaml").read_text() + (
        DEPLOY / "Containerfile"
    ).read_text()
    used = set(re.findall(r"(?<![\w-])--[a-z-]+(?=[=\",])", text)) - {
        "--no-cache-dir",
        "--constraint",
    }
    assert (
        {"--host", "--state", "--dataset", "--kubernetes", "--tls-cert", "--keys", "--client-ca"}
        <= used
        <= known
    )
