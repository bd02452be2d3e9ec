"""Connections that send requests or read answers too slowly, or send headers too long, are closed: uvicorn
itself waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
WRITE_SECONDS = 30.0
MOST_HEADER_BYTES = 64 << 10


class PatientProtocol(HttpToolsProtocol):
    """A limit from the connection, or the first byte of a further request, to the end of the headers, and one
    for an answer to be read. when_lost: called once the connection is gone."""

    header_seconds, write_seconds = HEADER_SECONDS, WRITE_SECONDS
    when_lost: Callable[[], None] | None = None
    _timer: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._received, self._in_headers = 0, True
        super().connection_made(transport)
        if (
            self.scheme == "http"
        ):  # what is not taken at once is waited for; uvloop's TLS resumes at 0 never
            transport.set_write_buffer_limits(high=0)
        named = transport.get_extra_info("peercert") or {}
        parts = dict(part for parts in named.get("subject", ()) for part in parts)
        self._certificate = str(parts.get("commonName", ""))
        self._start()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.write_seconds, self._close)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def data_received(self, data: bytes) -> None:
        if self._in_headers:
            self._received += len(data)
        self._start()
        super().data_received(data)
        # What was read at once may hold the headers and a part of the body.
        if self._in_headers and self._received > MOST_HEADER_BYTES:
            self._close()

    def on_message_begin(self) -> None:
        self._in_headers, self._received = True, 0
        super().on_message_begin()
        if self._certificate:  # as the extension `tls` of ASGI
            self.scope["extensions"] = {"tls": {"client_cert_name": self._certificate}}  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop()  # between requests the limit is that of idle connections

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)
        if self._writing is not None:
            self._writing.cancel()
        if self.when_lost is not None:
            self.when_lost()

    def _start(self) -> None:
        if self._timer is None and self.is_idle:
            self._timer = self.loop.call_later(self.header_seconds, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
