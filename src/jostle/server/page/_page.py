"""The page and its parts, as they lie beside this file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

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


def page_handlers() -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """{path: handler}."""
    return {path: _handler(name, kind) for path, (name, kind) in PARTS.items()}


def _handler(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    content = (files("jostle.server.page") / name).read_bytes()

    async def handle(_: Request) -> Response:
        return Response(content, headers=HEADERS, media_type=kind)

    return handle
