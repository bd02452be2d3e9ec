"""What lies in deploy/ says the same in all its places."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from jostle.placement import Fleet
from jostle.service.kubernetes._api import PREFIX

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def documents(name: str) -> list[dict]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text("utf-8")))


def test_the_scheduler_is_told_the_extender_that_is_tested() -> None:
    (config,) = documents("scheduler.yaml")
    assert config["extenders"] == [
        json.loads((DEPLOY / "kubernetes" / "extender.json").read_text())
    ]


def test_the_manifests_fit_together() -> None:
    (whole,) = documents("kustomization.yaml")
    there = {path.name for path in (DEPLOY / "kubernetes").iterdir()}
    assert set(whole["resources"]) <= there
    deployment, *claims = documents("deployment.yaml")
    spec = deployment["spec"]["template"]["spec"]
    mounted = {one["name"] for one in spec["containers"][0]["volumeMounts"]}
    assert mounted == {one["name"] for one in spec["volumes"]}
    named = {
        v["persistentVolumeClaim"]["claimName"]
        for v in spec["volumes"]
        if len(v) > 1 and "persistentVolumeClaim" in v
    }
    assert named == {one["metadata"]["name"] for one in claims}
    (service,) = documents("service.yaml")
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    config = documents("scheduler.yaml")[0]["extenders"][0]["urlPrefix"]
    name, port = service["metadata"]["name"], service["spec"]["ports"][0]["port"]
    assert config == f"http://{name}.{whole['namespace']}.svc:{port}/v1/kubernetes"
    assert len(Fleet.read(DEPLOY / "kubernetes" / "fleet.csv")) == 2
    assert PREFIX == "jostle/"


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
    assert {"--host", "--state", "--fleet", "--kubernetes"} <= used <= known
