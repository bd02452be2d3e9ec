"""What a pod of Kubernetes is a run of, and which platform a node is, for logs and schedulers alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PREFIX = "jostle/"
_DRAWN = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")  # of these Kubernetes draws names
_TEMPLATE = re.compile(r"-[bcdf4-9]{6,10}$")  # a Deployment adds a number's digits, as letters
_SCHEDULE = re.compile(r"-\d{7,}$")  # what a CronJob adds to the name of each of its jobs
_LASTING = ("DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet")
DAEMONS = (
    "DaemonSet",
    "Node",
)  # whose pods are part of each node; a static one's owner is its node


def workload_of(metadata: Mapping[str, Any], texts: Mapping[str, str]) -> str | None:
    """Name a pod's workload: by the label or annotation jostle/workload, else NAMESPACE/OWNER; None if
    nothing owns the pod. texts: its labels and annotations."""
    owner = owner_of(metadata, texts)
    told = texts.get(f"{PREFIX}workload")
    return told or (f"{metadata.get('namespace') or 'default'}/{owner}" if owner else None)


def owner_of(metadata: Mapping[str, Any], texts: Mapping[str, str]) -> str | None:
    """Return the Deployment or CronJob behind its ReplicaSet or Job, and what else made it, without what is
    drawn or counted for each of its runs; without an owner what its name was generated from."""
    kind, name = maker_of(metadata)
    template = texts.get("pod-template-hash")
    if template and name.endswith(f"-{template}"):
        return name.removesuffix(f"-{template}")
    name = name or str(metadata.get("generateName") or "").rstrip("-.")
    return lasting_name(kind, name) or None


def maker_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Return (kind, name) of its controller, else of its first owner; empty of a pod that nothing made."""
    owners = [one for one in metadata.get("ownerReferences") or [] if isinstance(one, Mapping)]
    owners.sort(key=lambda one: not one.get("controller"))
    first = owners[0] if owners else {}
    return str(first.get("kind") or ""), str(first.get("name") or "")


def lasting_name(kind: str, name: str) -> str:
    """Strip from an owner's name what is drawn or counted for each run."""
    if kind == "ReplicaSet":
        return _TEMPLATE.sub("", name)
    return name if kind in _LASTING else _SCHEDULE.sub("", _DRAWN.sub("", name))


def owner_by_name(pod: str) -> str:
    """Guess the owner of a pod from the pod's name."""
    name = _DRAWN.sub("", pod)
    if name == pod:
        return re.sub(r"-\d+$", "", name)  # of a StatefulSet
    return lasting_name("", _TEMPLATE.sub("", name))


def platform_of_node(metadata: Mapping[str, Any]) -> str:
    """Return its label jostle/platform, else its type of machine, else its name."""
    labels = metadata.get("labels") or {}
    kind = labels.get(f"{PREFIX}platform") or labels.get("node.kubernetes.io/instance-type")
    return str(kind or metadata.get("name") or "")
