"""Questions that arrive in the same moment, answered in one call of the model.

A call for many costs little more than a call for one; so the more wait, the less each of them costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from jostle.server.state._served_model import Served

MOST_AT_ONCE = 512  # items, after which the event loop does something else
ItemsAnswer = Callable[[Served, list[Any], float], Sequence[Any]]


class Gatherer:
    """Gather questions of the same moment into one batch. answer: of a model, for items, at a
    confidence; used by one event loop."""

    def __init__(self, answer: ItemsAnswer) -> None:
        self._answer = answer
        self._waiting: dict[tuple[int, float], list[tuple[list[Any], asyncio.Future[Any]]]] = {}

    async def ask(self, served: Served, items: list[Any], confidence: float) -> Sequence[Any]:
        """Answer these items, together with those that others ask at the moment. Raises what answering
        raises."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[Any] = loop.create_future()
        key = id(served), confidence
        group = self._waiting.setdefault(key, [])
        group.append((items, mine))
        if len(group) == 1:  # the others of this moment come before this is called
            loop.call_soon(self._flush, key, served, confidence)
        return await mine

    def _flush(self, key: tuple[int, float], served: Served, confidence: float) -> None:
        group, rest, count = self._waiting.pop(key), list[Any](), 0
        for place, (items, _) in enumerate(group):
            count += len(items)
            if count > MOST_AT_ONCE and place:
                group, rest = group[:place], group[place:]
                break
        if rest:  # others than these have a turn before
            self._waiting[key] = rest
            asyncio.get_running_loop().call_soon(self._flush, key, served, confidence)
        try:
            answers = self._answer(served, [one for items, _ in group for one in items], confidence)
        except Exception as error:  # each of them is told
            for _, mine in group:
                if not mine.done():
                    mine.set_exception(error)
            return
        start = 0
        for items, mine in group:
            if not mine.done():  # the caller may have gone away
                mine.set_result(answers[start : start + len(items)])
            start += len(items)
