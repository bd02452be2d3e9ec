"""The page and its parts, as they lie beside this file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

PARTS = {
    "html": ("index.html",),
    "css": ("page.css",),
    "javascript": ("page.js", "form.js", "search.js", "draw.js"),
}
HEADERS = {
    # Nothing from elsewhere, nothing inside other pages.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_handlers() -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """{path: handler}."""
    every = ((name, kind) for kind, names in PARTS.items() for name in names)
    paths = {f"/page/{name}": _handler(name, f"text/{kind}; charset=utf-8") for name, kind in every}
    return {"/": paths.pop("/page/index.html"), **paths}


def _handler(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    content = (files("jostle.service.page") / name).read_bytes()

    async def handle(_: Request) -> Response:
        return Response(content, headers=HEADERS, media_type=kind)

    return handle
