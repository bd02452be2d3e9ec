"""Long searches in a process of their own: ended where it takes too long, it disturbs no other answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from threading import Thread
from typing import Any

from jostle._verbs import load_verb
from jostle.errors import NotPermitted
from jostle.placement import Fleet, Placement, Requests, SetBounds, Standard
from jostle.service.state._served import Served

_START_SECONDS = 20.0
_model: Any = None  # of the process that searches


@dataclass(frozen=True)
class ApartQuery:
    """verb: its name."""

    verb: str
    question: Any
    requests: Requests
    fleet: Fleet
    standard: Standard

    def answer(self) -> dict[str, Any]:
        """As a document."""
        placement = Placement(self.fleet, SetBounds(_model, self.standard))
        verb = load_verb("placement", self.verb)
        return placement.ask(verb, self.requests, self.question).to_document()


class Apart:
    """One process, made when first needed; questions wait for each other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._knows: tuple[str, int] | None = None

    async def ask(self, query: ApartQuery, served: Served, seconds: float) -> dict[str, Any]:
        """The answer's document.

        Raises what the verb raises, NotPermitted where it takes longer than `seconds`.
        """
        why = NotPermitted(
            f"no answer within {seconds:g} s", fix="Ask for fewer at once, or again."
        )
        try:
            await asyncio.wait_for(self._lock.acquire(), seconds)
        except TimeoutError:
            raise why from None
        try:
            if self._knows != served.key:
                await self._do(_START_SECONDS, _know, served.model)
                self._knows = served.key
            return await self._do(seconds, query.answer)
        except (TimeoutError, BrokenProcessPool, asyncio.CancelledError) as error:
            self.close()  # it takes too long, has ended, or nobody waits any more
            if isinstance(error, asyncio.CancelledError):
                raise
            raise why from None
        finally:
            self._lock.release()

    async def _do(self, seconds: float, act: Callable[..., Any], *given: Any) -> Any:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin)
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(loop.run_in_executor(self._pool, act, *given), seconds)

    def close(self) -> None:
        """End the process."""
        pool, self._pool, self._knows = self._pool, None, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """It is ended by its parent, or with it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=lambda: (parent.join(), os._exit(0)), daemon=True).start()


def _know(model: Any) -> None:
    global _model
    _model = model
