"""Requests written where they are used: Nextflow, Snakemake, Slurm and Kubernetes."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable

from jostle._base.report import finite
from jostle.operations.requests._log_requests import LogRequests, Requested, WorkloadRequest

MIB = 2**20
_RETRIES = 3
_CONTAINER = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def written(requests: LogRequests, form: str) -> str:
    """Write the requests in a form: nextflow, snakemake, slurm, kubernetes or json. Workloads of which
    nothing is known are left out."""
    return FORMS[form](requests)


def _ceil(one: Requested | None, unit: float) -> int | None:
    return None if one is None else max(1, math.ceil(one.request / unit - 1e-9))


def _known(requests: LogRequests) -> list[WorkloadRequest]:
    return [one for one in requests.items if one.memory is not None or one.time is not None]


def _attempts(requests: LogRequests) -> str:
    """Return the retry policy; `none` for a bound at a confidence, which has none."""
    return "none" if requests.confidence is not None else requests.retry


def _nextflow(requests: LogRequests) -> str:
    """Write a configuration for `nextflow run ... -c FILE`. A selector is a regular expression."""
    retry = _attempts(requests)
    lines = ["process {"]

    def resource(name: str, amount: int, most: float, unit: str) -> str:
        value = f"{amount}.{unit}"
        if retry == "x2":
            value = f"{{ {value} * (2 ** (task.attempt - 1)) }}"
        elif retry == "max" and math.isfinite(most):
            value = f"{{ task.attempt > 1 ? {max(amount, math.ceil(most))}.{unit} : {value} }}"
        return f"        {name} = {value}"

    for one in _known(requests):
        pattern = re.sub(r"([^\w:])", r"\\\1", one.workload)
        name = pattern.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"    withName: '{name}' {{")
        if (memory := _ceil(one.memory, MIB)) is not None:
            lines.append(resource("memory", memory, requests.most_memory / MIB, "MB"))
        if (minutes := _ceil(one.time, 60)) is not None:
            lines.append(resource("time", minutes, requests.most_time / 60, "min"))
        if retry != "none":
            lines += [
                "        errorStrategy = { task.exitStatus in (130..145) + [104] ? 'retry' : 'finish' }",
                f"        maxRetries = {_RETRIES if retry == 'x2' else 1}",
            ]
        lines.append("    }")
    return "\n".join([*lines, "}", ""])


def _snakemake(requests: LogRequests) -> str:
    """Write a profile's config.yaml for `snakemake --profile FOLDER`. Memory is in MB of a million bytes. A
    rule's name is an identifier, so workloads with other names are left out."""
    retry = _attempts(requests)
    lines = []
    if retry != "none":
        lines.append(f"retries: {_RETRIES if retry == 'x2' else 1}")
    lines.append("set-resources:")

    def resource(amount: int, most: float) -> str:
        if retry == "x2":
            return json.dumps(f"{amount} * 2 ** (attempt - 1)")
        if retry == "max" and math.isfinite(most):
            return json.dumps(f"{max(amount, math.ceil(most))} if attempt > 1 else {amount}")
        return str(amount)

    for one in _known(requests):
        if not one.workload.isidentifier():
            lines.append(f"  # {json.dumps(one.workload)} is no name of a rule")
            continue
        lines.append(f"  {json.dumps(one.workload)}:")
        if (memory := _ceil(one.memory, 1e6)) is not None:
            lines.append(f"    mem_mb: {resource(memory, requests.most_memory / 1e6)}")
        if (minutes := _ceil(one.time, 60)) is not None:
            lines.append(f"    runtime: {resource(minutes, requests.most_time / 60)}")
    return "\n".join([*lines, ""])


def _slurm(requests: LogRequests) -> str:
    """Write a line of sbatch for each workload."""
    lines = []
    for one in _known(requests):
        words = ["sbatch", f"--job-name={one.workload}"]
        if (memory := _ceil(one.memory, MIB)) is not None:
            words.append(f"--mem={memory}M")
        if (minutes := _ceil(one.time, 60)) is not None:
            words.append(f"--time={minutes}")
        lines.append(shlex.join(words))
    return "\n".join([*lines, ""])


def _kubernetes(requests: LogRequests) -> str:
    """Write a strategic merge patch for each workload, whose container is called like it: memory only, as a
    pod has no time of its own. Workloads whose names no container can have are left out."""
    lines = []
    for one in requests.items:
        if (memory := _ceil(one.memory, MIB)) is None:
            continue
        container = one.workload.rpartition("/")[2]
        if not _CONTAINER.fullmatch(container):
            lines.append(f"# {json.dumps(one.workload)} is no name of a container")
            continue
        amount = {"memory": f"{memory}Mi"}
        parts = {"name": container, "resources": {"requests": amount, "limits": amount}}
        patch = {"spec": {"template": {"spec": {"containers": [parts]}}}}
        lines += ["---", f"# {json.dumps(one.workload)}", json.dumps(patch)]
    return "\n".join([*lines, ""])


FORMS: dict[str, Callable[[LogRequests], str]] = {
    "nextflow": _nextflow,
    "snakemake": _snakemake,
    "slurm": _slurm,
    "kubernetes": _kubernetes,
    "json": lambda requests: json.dumps(finite(requests.to_document()), indent=1) + "\n",
}
