"""Connections that send their requests too slowly, or headers too long, are closed: uvicorn itself waits."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
MOST_HEADER_BYTES = 64 << 10


class PatientProtocol(HttpToolsProtocol):
    """A limit from the connection, or the first byte of a further request, to the end of the headers."""

    header_seconds = HEADER_SECONDS

    def connection_made(self, transport: Any) -> None:
        self._received, self._timer, self._in_headers = 0, None, True
        super().connection_made(transport)
        self._start()

    _timer: asyncio.TimerHandle | None

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

    def _start(self) -> None:
        waits = self.cycle is None or self.cycle.response_complete
        if self._timer is None and waits:
            self._timer = self.loop.call_later(self.header_seconds, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
