"""The templates of deploy/helm/jostle as Helm renders them, as far as they go: values and `if`.

python -m tests.packages.server.chart > deploy/kubernetes/jostle.yaml     the plain manifests
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
CHART = DEPLOY / "helm" / "jostle"
PLAIN = DEPLOY / "kubernetes" / "jostle.yaml"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: jostle\n"
HEAD = "# Made from deploy/helm/jostle by python -m tests.packages.server.chart: change it there.\n"
_TAG = re.compile(r"(\n?)(?:\{\{-|\{\{)\s*(.*?)\s*\}\}")
_WORD = re.compile(r'"([^"]*)"|\(([^()]*)\)|(\S+)')


def value_of(expression: str, given: dict[str, Any], piped: Any = None) -> Any:
    """Of one expression; `piped` is the last argument. Raises KeyError for what there is not."""
    head, bar, rest = expression.partition(" | ")
    if bar:
        return value_of(rest, given, value_of(head, given))
    words = [
        text if text or not (inner or name) else value_of(inner, given) if inner else name
        for text, inner, name in _WORD.findall(expression)
    ]
    values = [_looked_up(word, given) if str(word).startswith(".") else word for word in words]
    if values[0] == "default":
        return piped or values[1]
    if values[0] == "regexFind":
        match = re.search(values[1], values[2])
        return match[0] if match else ""
    if values[0] == "toJson":
        return json.dumps(piped)
    (value,) = values
    return value


def _looked_up(path: str, given: Any) -> Any:
    for name in path[1:].split("."):
        given = given[name]
    return given


def render(text: str, given: dict[str, Any]) -> str:
    """One template. Raises KeyError for a value that there is not."""
    out, kept, at = [], [True], 0
    for tag in _TAG.finditer(text):
        trims = "{{-" in tag[0]
        before = text[at : tag.start()] + ("" if trims else tag[1])
        out += [before] if all(kept) else []
        at, words = tag.end(), tag[2]
        if words.startswith("if "):
            kept.append(bool(value_of(words[3:], given)))
        elif words == "else":
            kept[-1] = not kept[-1]
        elif words == "end":
            kept.pop()
        elif all(kept):
            out.append(str(value_of(words, given)))
    assert len(kept) == 1, "an `if` has no `end`"
    return "".join(out) + text[at:]


def rendered(kube_version: str = "v1.34.0", **changed: Any) -> dict[str, str]:
    """{template: manifest}. changed: values instead of the chart's."""
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    for name, value in changed.items():
        values[name] = {**values[name], **value} if isinstance(value, dict) else value
    version = {"KubeVersion": {"Version": kube_version}}
    given = {"Values": values, "Release": {"Namespace": "jostle"}, "Capabilities": version}
    files = sorted((CHART / "templates").glob("*.yaml"))
    return {path.name: render(path.read_text("utf-8"), given) for path in files}


def plain() -> str:
    """What stands in deploy/kubernetes/jostle.yaml."""
    return HEAD + "---\n".join([NAMESPACE, *(one for one in rendered().values() if one.strip())])


if __name__ == "__main__":
    print(plain(), end="")
