"""What lies in deploy/ says the same in all its places."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from jostle.server.http._callers import read_keys
from tests.packages.server.chart import CHART, DEPLOY, PLAIN, plain, rendered

VERSIONS = tuple(f"v1.{minor}.0" for minor in range(29, 35))
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"model": {"image": "model:1"}},
    {"state": {"secret": "db"}, "replicas": 2},
    {"scheduler": {"name": "other", "version": "v1.31.2"}},
    {"metrics": {"namespace": "monitoring"}, "storageClass": "fast"},
    {"tolerations": [{"key": "gpu", "operator": "Exists"}], "nodeSelector": {"zone": "a"}},
)


def documents(text: str) -> dict[tuple[str, str], Any]:
    listed = [one for one in yaml.safe_load_all(text) if one]
    made = {(one["kind"], one["metadata"]["name"]): one for one in listed}
    assert len(made) == len(listed)
    return made


def chart(version: str = "v1.34.0", **changed: Any) -> dict[tuple[str, str], Any]:
    return documents("---\n".join(rendered(version, **changed).values()))


def scheduler_config(there: dict[tuple[str, str], Any]) -> dict[str, Any]:
    return yaml.safe_load(there["ConfigMap", "jostle-scheduler"]["data"]["scheduler.yaml"])


def test_the_plain_manifests_are_what_the_chart_renders() -> None:
    """Else: python -m tests.packages.server.chart > deploy/kubernetes/jostle.yaml"""
    assert PLAIN.read_text("utf-8") == plain()
    there = documents(PLAIN.read_text("utf-8"))
    assert there.pop(("Namespace", "jostle"))
    assert there == chart()
    whole = yaml.safe_load((PLAIN.parent / "kustomization.yaml").read_text("utf-8"))
    assert whole["resources"] == [PLAIN.name]
    images = {one["name"] for one in whole["images"]}
    assert images == {image.partition(":")[0] for image in re.findall("image: (.*)", plain())}


def test_every_value_of_the_chart_is_used() -> None:
    text = "".join(path.read_text("utf-8") for path in (CHART / "templates").iterdir())
    used = set(re.findall(r"\.Values\.([\w.]+)", text))
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    known = {
        f"{name}.{inner}" if inner else name
        for name, value in values.items()
        for inner in (value if isinstance(value, dict) and name not in used else [""])
    }
    assert used == known


@pytest.mark.parametrize("version", [f"1.{minor}" for minor in range(29, 35)])
def test_the_manifests_are_of_the_published_schemas(version: str) -> None:
    """Of Kubernetes itself, strictly: no field that the version does not know."""
    published = pytest.importorskip("kubernetes_validate")
    for changed in CHANGES:
        for (kind, _), document in chart(f"v{version}.0", **changed).items():
            if kind != "ServiceMonitor":  # the Prometheus operator's
                published.validate(document, version, strict=True)


@pytest.mark.parametrize("changed", CHANGES)
def test_the_manifests_fit_together(changed: dict[str, Any]) -> None:
    there = chart(**changed)
    deployment, scheduler = (there["Deployment", name] for name in ("jostle", "jostle-scheduler"))
    for one in (deployment, scheduler):
        spec = one["spec"]["template"]["spec"]
        boxes = [*spec.get("initContainers", ()), *spec["containers"]]
        mounted = {v["name"] for box in boxes for v in box["volumeMounts"]}
        assert mounted == {v["name"] for v in spec["volumes"]}
        assert "schedulerName" not in spec  # it never waits for itself
        assert spec["securityContext"]["runAsNonRoot"]
        for box in boxes:
            assert box["securityContext"]["readOnlyRootFilesystem"]
    spec = deployment["spec"]["template"]["spec"]
    claims = {
        v["persistentVolumeClaim"]["claimName"]
        for v in spec["volumes"]
        if "persistentVolumeClaim" in v
    }
    assert claims == {name for kind, name in there if kind == "PersistentVolumeClaim"}
    assert (
        scheduler["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
        == "jostle-scheduler"
    )
    service, policy = there["Service", "jostle"], there["NetworkPolicy", "jostle"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels == policy["spec"]["podSelector"]["matchLabels"]
    config = scheduler_config(there)
    (extender,) = config["extenders"]
    port = service["spec"]["ports"][0]["port"]
    assert extender["urlPrefix"] == f"https://jostle.jostle.svc:{port}/v1/kubernetes"
    (profile,) = config["profiles"]
    assert f"--scheduler-name={profile['schedulerName']}" in spec["containers"][0]["args"]
    accounts = {
        d["spec"]["template"]["spec"]["serviceAccountName"] for d in (deployment, scheduler)
    }
    assert accounts == {name for kind, name in there if kind == "ServiceAccount"}


def test_a_volume_of_the_model_is_filled_once_and_from_nothing() -> None:
    (step,) = chart(model={"image": "model:1"})["Deployment", "jostle"]["spec"]["template"]["spec"][
        "initContainers"
    ]
    assert step["image"] == "model:1"
    for changed in CHANGES:
        _, learner = chart(**changed)["Deployment", "jostle"]["spec"]["template"]["spec"][
            "containers"
        ]
        (mount,) = [one for one in learner["volumeMounts"] if one["name"] == "model"]
        assert "readOnly" not in mount
        assert "--learn=200" in learner["args"]


# The published types of kubescheduler.config.k8s.io/v1 (config/v1/types.go of k8s.io/kube-scheduler, and
# those of component-base that they hold): JSON names and kinds; the same in the tags v0.29.0 to v0.34.0.
DURATION = re.compile(r"([0-9.]+(ns|us|ms|s|m|h))+")
TLS = {
    "insecure": bool, "serverName": str, "certFile": str, "keyFile": str, "caFile": str,
    "certData": str, "keyData": str, "caData": str,
}  # fmt: skip
EXTENDER = {
    "urlPrefix": str, "filterVerb": str, "preemptVerb": str, "prioritizeVerb": str, "weight": int,
    "bindVerb": str, "enableHTTPS": bool, "tlsConfig": TLS, "httpTimeout": DURATION,
    "nodeCacheCapable": bool, "managedResources": [{"name": str, "ignoredByScheduler": bool}],
    "ignorable": bool,
}  # fmt: skip
_PLUGINS = [{"name": str, "weight": int}]
_SET = {"enabled": _PLUGINS, "disabled": _PLUGINS}
PROFILE = {
    "schedulerName": str, "percentageOfNodesToScore": int,
    "plugins": dict.fromkeys(
        ("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
         "permit", "preBind", "bind", "postBind", "multiPoint"), _SET),
    "pluginConfig": [{"name": str, "args": dict}],
}  # fmt: skip
CONFIGURATION = {
    "apiVersion": str, "kind": str, "parallelism": int,
    "leaderElection": {
        "leaderElect": bool, "leaseDuration": DURATION, "renewDeadline": DURATION, "retryPeriod": DURATION,
        "resourceLock": str, "resourceName": str, "resourceNamespace": str,
    },
    "clientConnection": {
        "kubeconfig": str, "acceptContentTypes": str, "contentType": str, "qps": float, "burst": int,
    },
    "enableProfiling": bool, "enableContentionProfiling": bool, "percentageOfNodesToScore": int,
    "podInitialBackoffSeconds": int, "podMaxBackoffSeconds": int, "delayCacheUntilActive": bool,
    "profiles": [PROFILE], "extenders": [EXTENDER],
}  # fmt: skip


def assert_is(value: Any, kind: Any, where: str = "") -> None:
    if isinstance(kind, dict):
        assert isinstance(value, dict), where
        for name, inner in value.items():
            assert name in kind, f"{where}.{name} is no field"
            assert_is(inner, kind[name], f"{where}.{name}")
    elif isinstance(kind, list):
        assert isinstance(value, list), where
        for inner in value:
            assert_is(inner, kind[0], f"{where}[]")
    elif isinstance(kind, re.Pattern):
        assert isinstance(value, str), where
        assert kind.fullmatch(value), where
    else:
        assert type(value) is kind, where


@pytest.mark.parametrize("version", VERSIONS)
def test_the_scheduler_can_read_its_configuration(version: str) -> None:
    there = chart(f"{version}-gke.12")
    (box,) = there["Deployment", "jostle-scheduler"]["spec"]["template"]["spec"]["containers"]
    assert box["image"] == f"registry.k8s.io/kube-scheduler:{version}"
    config = scheduler_config(there)
    assert_is(config, CONFIGURATION)
    assert (config["apiVersion"], config["kind"]) == (
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
    )
    (extender,) = config["extenders"]
    # Away, it holds nothing up; it cannot bind; and what it is asked with has to be there.
    assert extender["ignorable"]
    assert "bindVerb" not in extender
    assert extender["weight"] > 0
    assert not extender["tlsConfig"].get("insecure")
    mounts = {mount["mountPath"] for mount in box["volumeMounts"]}
    files = [extender["tlsConfig"][name] for name in ("caFile", "certFile", "keyFile")]
    assert {str(Path(file).parent) for file in files} <= mounts


def test_a_monitor_gets_scheme_certificate_and_key_only_where_it_is_named() -> None:
    assert not [name for kind, name in chart() if kind == "ServiceMonitor"]
    there = chart(metrics={"namespace": "monitoring"})
    (endpoint,) = there["ServiceMonitor", "jostle"]["spec"]["endpoints"]
    service = there["Service", "jostle"]
    selected = there["ServiceMonitor", "jostle"]["spec"]["selector"]["matchLabels"]
    assert selected == service["metadata"]["labels"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert (endpoint["scheme"], endpoint["path"]) == ("https", "/metrics")
    assert {"tlsConfig", "authorization"} <= set(endpoint)
    sources = there["NetworkPolicy", "jostle"]["spec"]["ingress"][0]["from"]
    labels = {"kubernetes.io/metadata.name": "monitoring"}
    assert {"namespaceSelector": {"matchLabels": labels}} in sources


def test_what_one_may_choose_of_pods_and_volumes_is_in_them() -> None:
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    there = chart(tolerations=tolerations, storageClass="fast", resources={"limits": {"cpu": "2"}})
    for (kind, _), one in there.items():
        if kind == "Deployment":
            pod = one["spec"]["template"]["spec"]
            assert pod["tolerations"] == tolerations
            assert all("requests" in box["resources"] for box in pod["containers"])
        if kind == "PersistentVolumeClaim":
            assert one["spec"]["storageClassName"] == "fast"
    (box, _) = there["Deployment", "jostle"]["spec"]["template"]["spec"]["containers"]
    assert box["resources"]["limits"] == {"cpu": "2"}


def test_one_command_makes_secrets_with_which_both_sides_trust_each_other(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    made = subprocess.run(
        [CHART / "make-secrets", "jostle"], check=True, capture_output=True, text=True
    )
    secrets = {
        name: one for (kind, name), one in documents(made.stdout).items() if kind == "Secret"
    }
    there = chart(metrics={"namespace": "monitoring"})
    asked = set(
        re.findall(
            r"'(?:secretName|name)': '(jostle-(?:tls|keys|scheduler-tls|monitor))'", str(there)
        )
    )
    assert asked == set(secrets)
    for name, one in secrets.items():
        (tmp_path / name).mkdir()
        for key, value in one["data"].items():
            (tmp_path / name / key).write_bytes(b64decode(value, validate=True))
    callers = {one.name: one for one in read_keys(tmp_path / "jostle-keys" / "keys")}
    assert callers["kube-scheduler"].key == "certificate"
    assert callers["monitor"].key == (tmp_path / "jostle-monitor" / "key").read_text()
    assert not callers["monitor"].may("write")
    contexts = []
    for name, purpose in (("jostle-tls", "CLIENT_AUTH"), ("jostle-scheduler-tls", "SERVER_AUTH")):
        folder = tmp_path / name
        context = ssl.create_default_context(ssl.Purpose[purpose], cafile=str(folder / "ca.crt"))
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        context.verify_mode = ssl.CERT_REQUIRED
        contexts.append(context)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts[0].wrap_bio(to_server, to_client, server_side=True)
    client = contexts[1].wrap_bio(to_client, to_server, server_hostname="jostle.jostle.svc")
    waiting = [client, server]
    for _ in range(6):
        for one in list(waiting):
            with suppress(ssl.SSLWantReadError):
                one.do_handshake()
                waiting.remove(one)
    assert not waiting
    subject: Any = (server.getpeercert() or {})["subject"]
    assert subject == ((("commonName", "kube-scheduler"),),)


def test_nothing_may_be_changed_in_the_cluster() -> None:
    roles = [one["rules"] for (kind, _), one in chart().items() if kind.endswith("Role")]
    assert roles == [[{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]}]]


def test_nothing_listens_to_others_without_a_certificate_and_a_key() -> None:
    for name in ("kubernetes/jostle.yaml", "Containerfile"):
        text = (DEPLOY / name).read_text()
        assert {"--tls-cert", "--tls-key", "--keys"} <= set(re.findall(r"--[a-z-]+", text)), name


ROOT = DEPLOY.parent


def pinned(name: str) -> list[str]:
    """Each requirement with its hashes, on one line."""
    text = (ROOT / "constraints" / name).read_text("utf-8").replace("\\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_every_pin_has_hashes_and_what_is_shipped_a_licence() -> None:
    shipped, tested = pinned("shipped.txt"), pinned("tested.txt")
    for line in (*shipped, *tested):
        assert re.fullmatch(
            r"[\w.-]+(\[\w+\])?==[^\s;]+( ; [^-]+?)?(\s+--hash=sha256:[0-9a-f]{64})+", line
        ), line
    names = [{re.split(r"[=\[]", line)[0] for line in lines} for lines in (shipped, tested)]
    rows = re.findall(r"^\| (\S+) \| ([^|?]+) \|$", (ROOT / "LICENCES.md").read_text("utf-8"), re.M)
    assert {name for name, licence in rows if name != "package" and licence.strip()} == names[0]
    # Nothing else gets into the image, and both together are the whole environment.
    entry = (DEPLOY / "Containerfile").read_text()
    assert "--require-hashes --requirement /source/constraints/shipped.txt" in entry
    assert (ROOT / "Makefile").read_text().count("--require-hashes") == 1
    assert not names[0] & names[1]


def test_every_option_that_is_used_exists() -> None:
    from dataclasses import fields

    from jostle.server import ServeSettings

    known = {"--" + one.name.replace("_", "-") for one in fields(ServeSettings)}
    boxes = chart()["Deployment", "jostle"]["spec"]["template"]["spec"]["containers"]
    entry = re.findall(r'"(--[a-z-]+)"', (DEPLOY / "Containerfile").read_text())
    used = {word.partition("=")[0] for box in boxes for word in box["args"]} | set(entry)
    needed = {"--host", "--state", "--learn", "--kubernetes", "--tls-cert", "--keys", "--client-ca"}
    assert needed <= used <= known
