"""Connections under limits of time, of the length of headers, and of what is parsed of them at once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
WRITE_SECONDS = 30.0
MOST_HEADER_BYTES = 64 << 10
MOST_HEADERS = 200
HEADER_PART_BYTES, PART_BYTES = 64, 240  # at most 16 of the shortest requests
TURN_SECONDS = 0.001
LINGER_SECONDS, MOST_DISCARDED_BYTES = 1.0, 1 << 20


class Turns:
    """Parses what all connections have received: for some milliseconds in each turn of the event loop, a part
    of every connection after the other, those first that had no answer yet. So no client, and no number of
    them, keeps the others waiting."""

    def __init__(self) -> None:
        self._new, self._others = OrderedDict[PatientProtocol, None](), OrderedDict[Any, None]()
        self._is_due = False

    def wait_for(self, one: PatientProtocol) -> None:
        """Parse what this connection has received, in its turn."""
        (self._new if one.cycle is None else self._others).setdefault(one)
        if not self._is_due:
            self._is_due = True
            one.loop.call_soon(self._take)

    def _take(self) -> None:
        end, self._is_due = time.perf_counter() + TURN_SECONDS, False
        while waiting := self._new or self._others:
            one, _ = waiting.popitem(last=False)
            if one.parse_part():
                self.wait_for(one)
            if time.perf_counter() > end:
                break
        if waiting := self._new or self._others:
            self.wait_for(next(iter(waiting)))


class HeldFlow(FlowControl):
    """Reading that is resumed by `resume`, once what was received before is parsed."""

    def __init__(self, transport: Any, resume: Callable[[], None]) -> None:
        super().__init__(transport)
        self._resume = resume

    def resume_reading(self) -> None:
        self.read_paused = False
        self._resume()


class LingeringTransport:
    """A transport that tells its end before it is closed: one that is closed with something unread is reset,
    and the client may never read its last answer."""

    def __init__(self, transport: Any) -> None:
        self._transport, self._is_ended = transport, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_ended or self._transport.is_closing()

    def close(self) -> None:
        if self._is_ended or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._is_ended = True
        self._transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)


class PatientProtocol(HttpToolsProtocol):
    """Requests are parsed in turns, and only while none of this connection waits for its answer to begin; the
    rest stays with the client. A limit holds from the connection, or the first byte of a further request, to
    the end of the headers, and another one for an answer to be read.

    turns: those of all connections. when_lost: called once the connection is gone.
    """

    header_seconds, write_seconds = HEADER_SECONDS, WRITE_SECONDS
    when_lost: Callable[[], None] | None = None
    turns: Turns
    _timer: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._received, self._in_headers = 0, True
        self._unparsed, self._is_first = bytearray(), True
        super().connection_made(LingeringTransport(transport))  # type: ignore[arg-type]
        self.flow = HeldFlow(transport, lambda: self.turns.wait_for(self))
        # What is not taken at once is waited for; uvloop's TLS resumes at 0 never.
        if self.scheme == "http":
            transport.set_write_buffer_limits(high=0)
        named = transport.get_extra_info("peercert") or {}
        parts = dict(part for parts in named.get("subject", ()) for part in parts)
        self._certificate = str(parts.get("commonName", ""))
        self._start()

    @property
    def is_idle(self) -> bool:
        """True if nobody waits for an answer here: it is being read, or a request has not come to its end."""
        cycle = self.cycle
        is_asked = cycle is not None and not (cycle.response_complete or cycle.more_body)
        return not is_asked or self._writing is not None or self.transport.is_closing()

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
        self._unparsed += data
        if self.transport.is_closing():
            if len(self._unparsed) > MOST_DISCARDED_BYTES:
                self.transport.abort()
            return
        self._start()
        if len(self._unparsed) > PART_BYTES:
            self.transport.pause_reading()
        self.turns.wait_for(self)

    def parse_part(self) -> bool:
        """Give the parser a little of what was received, and read on once nothing is left.

        Returns whether there is more to parse at once.
        """
        if self._unparsed and self._may_parse:
            size = HEADER_PART_BYTES if self._in_headers else PART_BYTES
            part = bytes(self._unparsed[:size])
            del self._unparsed[:size]
            super().data_received(part)
            self._received += len(part)
            is_much = self._received > MOST_HEADER_BYTES or len(self.headers or ()) > MOST_HEADERS
            if self._in_headers and is_much:
                self.transport.abort()
        may = self._may_parse
        if may and not self._unparsed:
            self.transport.resume_reading()
        return may and bool(self._unparsed)

    @property
    def _may_parse(self) -> bool:
        if self.parser is None or self.transport.is_closing() or self.flow.read_paused:
            return False
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def on_message_begin(self) -> None:
        self._in_headers, self._received = True, 0
        super().on_message_begin()
        state: dict[str, Any] = self.scope["state"]  # type: ignore[typeddict-item]
        state["is_first"], self._is_first = self._is_first, False
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
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._timer = self.loop.call_later(self.header_seconds, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
