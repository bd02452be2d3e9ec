"""What is taken off a disturbed time, against a made scheduler whose quiet time is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from jostle.measure.window._lost import Cleaned, Others, cleaned_executions

# Processes that start together, each a list of steps: n computes n ms, -n sleeps n ms, a list is a child with
# these steps that is waited for.
PROGRAMS: dict[str, list[list[Any]]] = {
    "computes": [[160]],
    "in pieces": [[20, -5] * 6],
    "waits": [[3, -10] * 10],
    "pipeline": [[90], [50], [30]],
    "starts processes": [[1, [1]] * 60],
    "starts one": [[5, [120], 5, -20]],
}


@dataclass
class Made:
    """One process: what is left of its steps, and what it computed and waited for a core."""

    steps: list[Any]
    parent: Made | None = None
    computed: int = 0
    waited: int = 0
    until: int = 0
    children: int = 0


def scheduled(program: list[list[Any]], hogs: int, slice_ms: int = 3) -> dict[str, float]:
    """A program on one core beside so many that only compute, by turns: what a kernel tells, in seconds.
    What a child of a few milliseconds waited is not told."""
    alive = [Made(list(steps)) for steps in program]
    ended: list[Made] = []
    queue: list[Made | None] = [None] * hogs
    queue[hogs // 2 : hogs // 2] = alive  # somewhere among the others
    asleep: list[Made] = []
    now = taken = 0

    def settle(one: Made) -> None:
        """Its next step that takes a core, or its end, or its sleep."""
        while one.steps:
            step = one.steps[0]
            if isinstance(step, list):
                one.steps.pop(0)
                child = Made(list(step), one)
                alive.append(child)
                one.children += 1
                settle(child)
                return
            if step < 0:
                one.steps.pop(0)
                one.until = now - step
                asleep.append(one)
                return
            if step > 0:
                queue.append(one)
                return
            one.steps.pop(0)
        alive.remove(one)
        ended.append(one)
        if one.parent is not None:
            one.parent.children -= 1
            settle(one.parent)

    def wake() -> None:
        for one in [one for one in asleep if one.until <= now]:
            asleep.remove(one)
            settle(one)

    while alive:
        wake()
        if not queue:
            now += 1
            continue
        holder = queue.pop(0)
        for _ in range(slice_ms):
            now += 1
            for other in queue:
                if other is not None:
                    other.waited += 1
            wake()
            if holder is None:
                taken += 1
                continue
            holder.computed += 1
            holder.steps[0] -= 1
            if not holder.steps[0]:
                break
        if holder is None:
            queue.append(None)
        else:
            settle(holder)
    used, waited = sum(one.computed for one in ended), sum(one.waited for one in ended)
    short = [one for one in ended if one.parent is not None and one.computed < 10]
    unseen = sum(one.computed for one in short)
    waited -= sum(one.waited for one in short)
    told = {"wall": now, "used": used, "waited": waited, "unseen": unseen, "taken": taken}
    return {name: milliseconds * 1e-3 for name, milliseconds in told.items()}


def corrected(told: dict[str, float]) -> Cleaned:
    others = Others(told["wall"], told["taken"], 0.0, 0.0, 0.0, told["used"])
    wall, waited, unseen, used = (
        np.array([told[name]]) for name in ("wall", "waited", "unseen", "used")
    )
    return cleaned_executions(wall, waited, unseen, used, others)


@pytest.mark.parametrize("hogs", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_quiet_time_of_a_made_program_comes_back(name: str, hogs: int) -> None:
    quiet, told = scheduled(PROGRAMS[name], 0), scheduled(PROGRAMS[name], hogs)
    assert told["used"] == quiet["used"]
    found = corrected(told)
    assert found.seconds == pytest.approx(quiet["wall"], rel=0.1)
