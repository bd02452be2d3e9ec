"""The page and its parts, as they lie beside this file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jostle.server.page._docs_page import docs_html

PARTS = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/form.js": ("form.js", "text/javascript; charset=utf-8"),
    "/page/search.js": ("search.js", "text/javascript; charset=utf-8"),
    "/page/draw.js": ("draw.js", "text/javascript; charset=utf-8"),
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


def page_handlers(openapi: dict[str, Any]) -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """Serve the page's parts and, at /docs, the OpenAPI document as a page.

    Returns {path: handler}.
    """
    folder = files("jostle.server.page")
    parts = {p: _handler((folder / name).read_bytes(), kind) for p, (name, kind) in PARTS.items()}
    return parts | {"/docs": _handler(docs_html(openapi).encode(), "text/html; charset=utf-8")}


def _handler(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:

    async def handle(_: Request) -> Response:
        return Response(content, headers=HEADERS, media_type=kind)

    return handle
