"""GET requests that are sent when they are due, whether or not earlier ones were answered.

Written on bare sockets: what asks shares a core with what answers, and a general client would take more of it
than many a server does. `select` waits to the microsecond, where others round up to milliseconds.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

_CHUNK = 1 << 16
_HEAD_BYTES = 1 << 16
# Descriptors that `select` takes end at 1023.
MOST_OPEN = 512


class Refused(Exception):
    """Why there was no good answer."""


class Address:
    """What is asked for, resolved once. Raises OSError for a host that is not known."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self.family, _, _, _, self.place = addresses[0]
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: jostle\r\n\r\n"
        ).encode()

    def connected(self) -> socket.socket:
        """A socket on its way to the server. Raises OSError."""
        connection = socket.socket(self.family, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(BlockingIOError):
            connection.connect(self.place)
        return connection


class Answer:
    """What has come of one answer (RFC 9112). status: once its head is there. keeps: whether the connection
    can be used again."""

    def __init__(self) -> None:
        self.status = 0
        self.keeps = False
        self._data = bytearray()
        self._length: int | None = None  # of the body; None where it ends with the connection
        self._chunked = False
        self._at = 0  # of the body, or of the next chunk

    @property
    def is_empty(self) -> bool:
        return not self._data

    def take(self, data: bytes) -> bool:
        """Whether it is whole; no data: the connection has ended. Raises Refused."""
        self._data += data
        if not self.status and not self._head():
            if not data:
                raise Refused("the connection ended before an answer")
            return False
        if self.status in (204, 304) or 100 <= self.status < 200:
            return True
        if self._chunked:
            whole = self._all_chunks()
        elif self._length is not None:
            whole = len(self._data) - self._at >= self._length
        else:
            whole = not data
        if not whole and not data:
            raise Refused("the connection ended within an answer")
        return whole

    def _head(self) -> bool:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            if len(self._data) > _HEAD_BYTES:
                raise Refused("not an answer of HTTP: its head has no end")
            return False
        first, *lines = self._data[:end].decode("latin-1").split("\r\n")
        words = first.split()
        if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
            raise Refused(f"not an answer of HTTP: {first[:60]!r}")
        fields = {
            name.strip().lower(): value.strip().lower()
            for name, _, value in (line.partition(":") for line in lines)
        }
        self.status, self._at = int(words[1]), end + 4
        self._chunked = fields.get("transfer-encoding") == "chunked"
        length = fields.get("content-length", "")
        if length:
            if not length.isdigit():
                raise Refused(f"not an answer of HTTP: a length of {length[:60]!r}")
            self._length = int(length)
        ends = self._chunked or self._length is not None or self.status in (204, 304)
        self.keeps = ends and words[0] == "HTTP/1.1" and fields.get("connection") != "close"
        return True

    def _all_chunks(self) -> bool:
        """Go on over the chunks that have come."""
        while True:
            end = self._data.find(b"\r\n", self._at)
            if end < 0:
                return False
            try:
                size = int(self._data[self._at : end].split(b";")[0], 16)
            except ValueError:
                raise Refused("not an answer of HTTP: a chunk without a size") from None
            past = end + 2 + size + 2
            if len(self._data) < past:
                return False
            self._at = past
            if not size:
                return True


class _Exchange:
    """One request on its way. due: when it was to be sent, in `time.monotonic`."""

    def __init__(self, address: Address, due: float, idle: socket.socket | None) -> None:
        self.address, self.due = address, due
        self.is_again = idle is not None
        self.socket = idle or address.connected()
        self.answer = Answer()
        self.unsent = memoryview(address.request)

    def send(self) -> None:
        """As much as goes. Raises OSError."""
        with suppress(BlockingIOError):
            failed = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                raise OSError(failed, os.strerror(failed))
            self.unsent = self.unsent[self.socket.send(self.unsent) :]

    def receive(self) -> bool:
        """Whether the answer is whole. Raises OSError, Refused."""
        try:
            data = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        return self.answer.take(data)

    def begins_anew(self) -> bool:
        """Whether a connection that was kept had been closed meanwhile: then it is tried on a fresh one."""
        if not self.is_again or not self.answer.is_empty:
            return False
        self.socket.close()
        self.is_again, self.unsent = False, memoryview(self.address.request)
        self.socket = self.address.connected()
        return True


class OpenLoop:
    """Requests at a rate. latencies: seconds from when a request was due to the whole answer; failed: why."""

    def __init__(self, url: str, rate: float) -> None:
        self._address = Address(url)
        self._between = 1 / rate
        self._open: dict[int, _Exchange] = {}
        self._idle: list[socket.socket] = []
        self.latencies: list[float] = []
        self.failed: list[str] = []

    def run(self, stop: int, tell: Callable[[], None], patience_seconds: float) -> None:
        """Until there is something to read from the descriptor `stop`, and the answers that are due then."""
        began, number = time.monotonic(), 0
        while True:
            due = began + number * self._between
            if due <= time.monotonic():
                number += 1
                self._begin(due)
                due += self._between
            # Also when it is behind: answers are taken, and the stop is heard.
            stopped = self._wait(due - time.monotonic(), [stop])
            tell()
            if stopped:
                break
        until = time.monotonic() + patience_seconds
        while self._open and (left := until - time.monotonic()) > 0:
            self._wait(left, [])
        for exchange in self._open.values():
            exchange.socket.close()
            self.failed.append("no answer when the window ended")
        for one in self._idle:
            one.close()
        self._open.clear()
        self._idle.clear()

    def _begin(self, due: float) -> None:
        if len(self._open) >= MOST_OPEN:
            self.failed.append(f"{MOST_OPEN} requests were open already")
            return
        try:
            exchange = _Exchange(self._address, due, self._idle.pop() if self._idle else None)
        except OSError as error:
            self.failed.append(str(error))
            return
        self._open[exchange.socket.fileno()] = exchange
        self._go_on(exchange, exchange.send)

    def _wait(self, seconds: float, stops: list[int]) -> bool:
        """Let what is open go on, for so long at most; whether one of stops can be read."""
        writing = [file for file, one in self._open.items() if one.unsent]
        reading = [file for file, one in self._open.items() if not one.unsent]
        ready, sendable, _ = select.select([*stops, *reading], writing, [], max(0.0, seconds))
        for file in sendable:
            self._go_on(self._open[file], self._open[file].send)
        stopped = False
        for file in ready:
            if file in stops:
                stopped = True
            else:
                self._go_on(self._open[file], self._open[file].receive)
        return stopped

    def _go_on(self, exchange: _Exchange, step: Callable[[], bool | None]) -> None:
        """One step of an exchange, which may be its last."""
        file = exchange.socket.fileno()
        try:
            if not step():
                return
            if exchange.answer.status >= 400:
                raise Refused(f"status {exchange.answer.status}")
            self.latencies.append(time.monotonic() - exchange.due)
        except (OSError, Refused) as error:
            del self._open[file]
            why = str(error) or type(error).__name__
            try:
                if exchange.begins_anew():
                    self._open[exchange.socket.fileno()] = exchange
                    return
            except OSError as again:
                why = str(again)
            exchange.socket.close()
            self.failed.append(why)
            return
        del self._open[file]
        if exchange.answer.keeps:
            self._idle.append(exchange.socket)
        else:
            exchange.socket.close()


def answer_status(url: str, seconds: float) -> int:
    """The status of one answer. Raises OSError, TimeoutError included, and Refused."""
    address = Address(url)
    until, answer = time.monotonic() + seconds, Answer()
    with socket.socket(address.family, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(address.place)
        connection.sendall(address.request)
        while time.monotonic() < until:
            if answer.take(connection.recv(_CHUNK)):
                return answer.status
    raise TimeoutError(f"no answer in {seconds:g} s")
