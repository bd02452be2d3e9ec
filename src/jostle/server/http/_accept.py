"""Connections taken from the system: over TLS, and at most so many of one address.

A client that holds too many loses the oldest one on which it waits for no answer; so connections that are
silent or slow, however many, keep nobody out.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from uvicorn import Config, Server

from jostle.server._serve_settings import ServeSettings
from jostle.server.http._protocol import HEADER_SECONDS, PatientProtocol, Turns

_MOST = 1000  # of all clients
_PARTS = 4  # of a client's connections, that are taken at once
_TURNS = 2  # of the loop between two parts
_HEARD_SECONDS = 0.05  # that a connection has to ask before others of its client take its place


def has_left(taken: socket.socket) -> bool:
    """Return whether the other side is gone already and has sent nothing."""
    try:
        return not taken.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


class Connection:
    """A taken connection. protocol: once TLS is agreed on."""

    def __init__(self, taken: socket.socket, address: str) -> None:
        self.taken, self.address = taken, address
        self.protocol: PatientProtocol | None = None

    @property
    def is_idle(self) -> bool:
        return self.protocol is None or self.protocol.is_idle

    def end(self) -> None:
        if self.protocol is not None and self.protocol.transport is not None:
            self.protocol.transport.abort()
            return
        with suppress(OSError):  # the other side was faster
            self.taken.shutdown(socket.SHUT_RDWR)


class Certificate:
    """The certificate of the service, read again when its file changes: for connections from then on."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings, self._seen = settings, 0
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context, None without TLS. Raises OSError, ssl.SSLError where the first one cannot
        be read."""
        given, key = self._settings.tls_cert, self._settings.tls_key
        if given is None:
            return None
        try:
            seen = given.stat().st_mtime_ns
            if self._context is None or seen != self._seen:
                self._context, self._seen = self._read(given, key), seen
        except (OSError, ssl.SSLError):
            if self._context is None:
                raise
        return self._context

    def _read(self, given: Path, key: Path | None) -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.load_cert_chain(given, key)
        if self._settings.client_ca is not None:
            made.load_verify_locations(self._settings.client_ca)
            made.verify_mode = ssl.CERT_OPTIONAL
        return made


class PatientServer(Server):
    """A server with a limit on connections by address. announce: called once connections are taken."""

    def __init__(
        self,
        config: Config,
        settings: ServeSettings,
        listening: socket.socket,
        announce: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._listening, self._announce = listening, announce
        self._each, self._certificate = settings.most_connections, Certificate(settings)
        self._certificate.context()
        self._there: dict[str, dict[Connection, None]] = {}  # by address, in their order
        self._turns, self._is_full = Turns(), False
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
        self._listening.close()
        await super().shutdown(sockets=[])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                came = [await loop.sock_accept(self._listening)]
            except OSError:  # no descriptor is left, or the client went away
                self._make_room(self._largest())
                await asyncio.sleep(0.01)
                continue
            with suppress(OSError):
                for _ in range(_MOST):
                    if len(came) >= self._each // _PARTS:
                        break
                    taken, peer = self._listening.accept()
                    if has_left(taken):
                        taken.close()
                    else:
                        came.append((taken, peer))
            # Those taken before are heard first, however many wait: for so long, and so many turns.
            for _ in range(_TURNS if self._is_full else 1):
                await asyncio.sleep(_HEARD_SECONDS / _PARTS / _TURNS if self._is_full else 0)
            self._is_full = False
            for taken, peer in came:
                taken.setblocking(False)
                self._take(Connection(taken, str(peer[0])))

    def _take(self, made: Connection) -> None:
        own = self._there.setdefault(made.address, {})
        own[made] = None
        if len(own) > self._each:
            self._make_room(made.address)
        elif sum(map(len, self._there.values())) > _MOST:
            self._make_room(self._largest())
        if made not in own:  # all others are busy
            made.taken.close()
            return
        task = asyncio.create_task(self._serve_one(made))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def _largest(self) -> str:
        return max(self._there, key=lambda address: len(self._there[address]), default="")

    def _make_room(self, address: str) -> None:
        """End the oldest idle one of this client, the newest where none is."""
        own = list(self._there.get(address, ()))
        self._is_full = True
        if own:
            old = next((one for one in own if one.is_idle), own[-1])
            self._gone(old)
            old.end()

    def _gone(self, one: Connection) -> None:
        own = self._there.get(one.address, {})
        own.pop(one, None)
        if not own:
            self._there.pop(one.address, None)

    async def _serve_one(self, one: Connection) -> None:
        protocol = PatientProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        protocol.turns, protocol.when_lost = self._turns, lambda: self._gone(one)
        loop, tls = asyncio.get_running_loop(), self._certificate.context()
        more: dict[str, Any] = {} if tls is None else {"ssl_handshake_timeout": HEADER_SECONDS}
        try:
            await loop.connect_accepted_socket(lambda: protocol, one.taken, ssl=tls, **more)
            one.protocol = protocol
        except (OSError, ssl.SSLError):  # no TLS, another one, or nothing in time
            self._gone(one)
            one.taken.close()
