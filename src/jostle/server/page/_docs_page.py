"""The OpenAPI document as one plain page: no script, and nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Jostle: operations</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page/page.css">
</head>
<body>
"""
_BREAK = "_<wbr>"  # where a long name may be broken
_ASK = "curl -s{method} localhost:8000{path} --json '{body}'"


def docs_html(openapi: Mapping[str, Any]) -> str:
    """Write every operation with its fields, an example and its answer, and every shared schema."""
    operations = [
        (method.upper(), path, one)
        for path, methods in openapi["paths"].items()
        for method, one in methods.items()
    ]
    links = [
        f'<li><a href="#{one["operationId"]}">{method} {escape(path)}</a></li>'
        for method, path, one in operations
    ]
    schemas = openapi["components"]["schemas"]
    parts = [
        _HEAD,
        f"<header><h1>{escape(openapi['info']['title'])}: operations</h1></header>\n<main>",
        f'<p>{escape(openapi["info"]["description"])} <a href="/">Ask on the page</a>, or read '
        "<code>/openapi.json</code>, from which this page is made.</p>",
        f'<nav aria-label="Operations"><ul>{"".join(links)}</ul></nav>',
        *(_operation(*one) for one in operations),
        "<section><h2>Schemas</h2>",
        *(f'<h3 id="{name}">{name}</h3>{_fields(one)}' for name, one in schemas.items()),
        "</section>\n</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _operation(method: str, path: str, one: Mapping[str, Any]) -> str:
    parts = [f'<section id="{one["operationId"]}"><h2>{method} {escape(path)}</h2>']
    parts += [f"<p>{escape(one['summary'])}</p>"] if "summary" in one else []
    named = [(p["name"], p["schema"], bool(p.get("required"))) for p in one["parameters"]]
    parts += [f"<p>In the path or the query:</p>{_table(named)}"] if named else []
    body = one.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        parts.append(f"<p>In the body:</p>{_fields(body['schema'])}")
        if "example" in body:
            how = "" if method == "POST" else f" -X {method}"
            text = json.dumps(body["example"])
            ask = _ASK.format(method=how, path=path.replace("{id}", "job-1"), body=text)
            parts.append(f"<pre><code>{escape(ask, quote=False)}</code></pre>")
    (answer,) = one["responses"]["200"]["content"].values()
    return "\n".join([*parts, f"<p>Answers with {_kind(answer['schema'])}.</p></section>"])


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    return _table((n, one, n in required) for n, one in schema.get("properties", {}).items())


def _table(fields: Iterable[tuple[str, Mapping[str, Any], bool]]) -> str:
    rows = [
        f"<tr><th scope='row'><code>{escape(name).replace('_', _BREAK)}</code></th><td>{_kind(schema)}</td>"
        f"<td>{'yes' if required else 'no'}</td><td>{escape(schema.get('description', ''))}</td></tr>"
        for name, schema, required in fields
    ]
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("name", "type", "required", "meaning")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _kind(schema: Mapping[str, Any]) -> str:
    """Say a schema in a few words, as HTML; other schemas are links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        kinds = dict.fromkeys(_kind(one) for one in schema["anyOf"] if one)
        return " or ".join(kinds)
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema["const"]]
        return " or ".join(f"<code>{escape(json.dumps(one))}</code>" for one in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kind = schema.get("type", "anything")
    limits = {"minimum": "at least", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
    known = [f"{words} {schema[key]:g}" for key, words in limits.items() if key in schema]
    return escape(" ".join([kind if isinstance(kind, str) else " or ".join(kind), *known]))
