"""Long searches in a process of their own: ended where it takes too long, it disturbs no other answer."""

from __future__ import annotations

import asyncio
import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from jostle._verbs import load_verb
from jostle.errors import JostleError, NotPermitted
from jostle.placement import Fleet, Placement, Requests, SetBounds, Standard
from jostle.service.state._served import Served

TOO_LONG = "no answer within {seconds:g} s"
_START_SECONDS = 20.0


@dataclass(frozen=True)
class ApartQuery:
    """verb: its name."""

    verb: str
    question: Any
    requests: Requests
    fleet: Fleet
    standard: Standard

    def answer(self, model: Any) -> dict[str, Any]:
        """As a document."""
        placement = Placement(self.fleet, SetBounds(model, self.standard))
        verb = load_verb("placement", self.verb)
        return placement.ask(verb, self.requests, self.question).to_document()


class Apart:
    """One process, made when first needed; questions wait for each other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._knows: tuple[str, int] | None = None

    async def ask(self, query: ApartQuery, served: Served, seconds: float) -> dict[str, Any]:
        """The answer's document.

        Raises what the verb raises, NotPermitted where it takes longer than `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise NotPermitted(TOO_LONG.format(seconds=seconds), fix="Others are asking.") from None
        try:
            return await asyncio.to_thread(self._ask, query, served, seconds)
        finally:
            self._lock.release()

    def _ask(self, query: ApartQuery, served: Served, seconds: float) -> dict[str, Any]:
        pipe = self._ready()
        try:
            if self._knows != served.key:
                pipe.send(("model", served.model))
                self._knows = served.key
            pipe.send(("ask", query))
            if not pipe.poll(seconds):
                self.close()
                raise NotPermitted(
                    TOO_LONG.format(seconds=seconds), fix="Ask for fewer requests or nodes at once."
                )
            kind, answer = pipe.recv()
        except (EOFError, OSError):
            self.close()
            raise NotPermitted("the search ended before its answer", fix="Ask again.") from None
        if kind == "raise":
            raise answer
        return answer

    def _ready(self) -> Connection:
        if self._process is None or not self._process.is_alive() or self._pipe is None:
            self.close()
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
            if not self._pipe.poll(_START_SECONDS):
                self.close()
                raise NotPermitted("the process that searches does not start")
            self._pipe.recv()
        assert self._pipe is not None
        return self._pipe

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = self._knows = None


def _work(pipe: Connection) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    pipe.send("ready")
    model: Any = None
    while True:
        try:
            kind, content = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if kind == "model":
            model = content
            continue
        try:
            reply = ("ok", content.answer(model))
        except JostleError as error:
            reply = ("raise", error)
        except Exception as error:  # the parent says what it may of it
            reply = ("raise", RuntimeError(f"{type(error).__name__}: {error}"))
        pipe.send(reply)
