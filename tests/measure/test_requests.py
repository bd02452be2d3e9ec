"""The load on a server: answers in pieces, connections that are kept or closed, a rate that does not wait."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from jostle.measure.serving._requests import Answer, OpenLoop, Refused, answer_status

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\n\r\n"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CLOSED = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        (CHUNKED, True),
        (LENGTH, True),
        (CLOSED, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
)
def test_an_answer_is_whole_with_its_last_byte(text: bytes, keeps: bool) -> None:
    answer = Answer()
    whole = [answer.take(text[at : at + 1]) for at in range(len(text))]
    assert whole.index(True) == len(text) - 1
    assert (answer.status, answer.keeps) == (int(text.split()[1]), keeps)


def test_an_answer_may_end_with_its_connection() -> None:
    answer = Answer()
    assert not answer.take(b"HTTP/1.1 200 OK\r\n\r\nas long as it takes")
    assert answer.take(b"")
    assert not answer.keeps


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "before an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "within an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not an answer of HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "a length of '-1'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "without a size"),
        (b"x" * 70_000, "its head has no end"),
    ],
)
def test_what_is_no_answer(text: bytes, said: str) -> None:
    answer = Answer()

    def to_its_end() -> None:
        if not answer.take(text):
            answer.take(b"")

    with pytest.raises(Refused, match=said):
        to_its_end()


@contextmanager
def serving(answer: Callable[[socket.socket, int], None]) -> Iterator[tuple[str, list[int]]]:
    """(Address of a server, numbers of its connections); answer: is given each connection and its number."""
    seen: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def one(connection: socket.socket, number: int) -> None:
            with connection, suppress(OSError):
                answer(connection, number)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    seen.append(len(seen))
                    threading.Thread(target=one, args=(connection, seen[-1]), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a?b=c", seen
        server.shutdown(socket.SHUT_RDWR)


def asked(url: str, rate: float, enough: int, patience: float = 20.0) -> OpenLoop:
    """Requests until so many have been settled."""
    out, into = os.pipe()
    loop, told = OpenLoop(url, rate), False

    def tell() -> None:
        nonlocal told
        if not told and len(loop.latencies) + len(loop.failed) >= enough:
            told = True
            os.write(into, b"stop\n")

    try:
        loop.run(out, tell, patience)
    finally:
        os.close(out)
        os.close(into)
    return loop


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = connection.recv(1000)
        if not more:
            raise OSError
        data += more
    return data


def test_connections_are_kept_and_one_that_was_closed_is_made_anew() -> None:
    def answer(connection: socket.socket, number: int) -> None:
        for _ in range(3):
            assert read_request(connection).startswith(b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")
            connection.sendall(LENGTH)

    with serving(answer) as (url, seen):
        found = asked(url, 200.0, 12)
    assert not found.failed
    assert len(found.latencies) >= 12
    assert len(seen) >= 4  # after three answers each closes
    assert all(seconds > 0 for seconds in found.latencies)


def test_what_fails_is_counted_with_its_reason() -> None:
    def answer(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(
            b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" if number % 2 else b"HTTP/1.1 2"
        )

    with serving(answer) as (url, _):
        found = asked(url, 200.0, 6)
    assert not found.latencies
    assert set(found.failed) == {"status 503", "the connection ended before an answer"}


def test_a_request_is_sent_though_none_is_answered() -> None:
    release = threading.Event()

    def answer(connection: socket.socket, number: int) -> None:
        read_request(connection)
        if number == 7:
            release.set()
        assert release.wait(60)
        connection.sendall(CLOSED)

    with serving(answer) as (url, seen):
        found = asked(url, 100.0, 8)
    assert not found.failed
    assert len(seen) >= 8
    # The first waited for the eighth, which was due seven hundredths of a second later.
    assert max(found.latencies) >= 0.06


def test_answers_that_never_come_and_no_server_at_all() -> None:
    quiet = threading.Event()

    def silent(connection: socket.socket, number: int) -> None:
        quiet.wait(60)

    with serving(silent) as (url, _):
        out, into = os.pipe()
        os.write(into, b"stop\n")
        loop = OpenLoop(url, 1000.0)
        loop.run(out, lambda: None, 0.05)
        assert set(loop.failed) == {"no answer when the window ended"}
        with pytest.raises(TimeoutError):
            answer_status(url, 0.05)
        quiet.set()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    found = asked(f"http://127.0.0.1:{port}/", 1000.0, 2)
    assert found.failed
    assert not found.latencies
    with pytest.raises(ConnectionRefusedError):
        answer_status(f"http://127.0.0.1:{port}/", 1.0)
