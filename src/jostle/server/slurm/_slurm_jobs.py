"""Jobs as prolog and epilog see them: who is on which node now, and which job has ended, as runs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from jostle.errors import JostleError, UsageError
from jostle.placement import Node, Requests
from jostle.server.operations import Question, StateAnswer
from jostle.server.operations._http_operation import checked_id
from jostle.server.state._observed_stays import ObservedStay, ObservedStays

_WORKLOAD = re.compile(r"jostle\s(?:.*\s)?workload=(\S+)")
_LATE_SECONDS = 60.0
RUNS = "slurm-job:"  # how the ids of those begin that Jostle did not place
# The last one: users write before it.
_PLACEMENT = re.compile(r".*\bplacement=(slurm-[0-9a-f]+)", re.DOTALL)


@dataclass(frozen=True)
class JobsQuestion(Question):
    """Jobs that a script of Slurm sees when one begins or ends. Times are seconds since 1970."""

    event: Annotated[Literal["began", "ended"], "What the job does."]
    job: Annotated[str, "Its number."]
    nodes: Annotated[tuple[str, ...], "Lines NODE|FEATURES|CPUS of all nodes."]
    jobs: Annotated[
        tuple[str, ...], "Lines JOB|USER|NODE|START|NAME|COMMENT of this job and all that run."
    ]
    exit: Annotated[str, "Of a job that ended, 0:0 where it succeeded."] = ""


@dataclass(frozen=True)
class JobsAnswer(StateAnswer, schema="slurm_jobs/v1"):
    """Count of the runs that were recorded. recorded: how many runs became known."""

    recorded: int


@dataclass(frozen=True)
class SeenJob:
    """A line of what Slurm lists of a job. placement: the one that its comment names, which its user may have
    written. Raises UsageError."""

    number: str
    node: str
    start: float
    workload: str
    placement: str | None

    @classmethod
    def read(cls, line: str) -> SeenJob:
        parts = line.split("|", 5)
        try:
            number, user, node, start, name, comment = parts
            begun = float(start)
        except ValueError:
            raise UsageError(f"{line[:80]!r} is no job") from None
        if not (number.isdecimal() and math.isfinite(begun)):
            raise UsageError(f"{line[:80]!r} is no job")
        checked_id(f"{RUNS}{number}:{node}")
        told, placed = _WORKLOAD.match(comment), _PLACEMENT.match(comment)
        return cls(
            number,
            node,
            begun,
            told[1] if told else f"{user}/{name}",
            placed[1] if placed else None,
        )


class ObservedJobs:
    """Jobs of Slurm seen since a moment. since: seconds since 1970, as of ObservedStays."""

    def __init__(self, since: float) -> None:
        self.stays = ObservedStays(since)
        self._began: dict[str, float] = {}  # as told, where the scheduler knows seconds alone
        self._tied: dict[tuple[str, str], str | None] = {}  # placements by job and node

    def see(
        self,
        seen: JobsQuestion,
        platform_of: dict[str, str],
        placed: Mapping[str, tuple[str, str]],
        now: float,
    ) -> tuple[list[dict[str, object]], list[str], dict[str, tuple[str, dict[str, Any]]]]:
        """Take what a script of Slurm sees. placed: (node, workload) of each placement that is alive.

        Returns (runs as they are sent to a service; placements that are over; those who run without one, as
        LivePlaces.follow takes them). Raises UsageError.
        """
        jobs = [SeenJob.read(line) for line in seen.jobs]
        n_nodes = Counter(one.number for one in jobs)
        self._began = {key: when for key, when in self._began.items() if key in n_nodes}
        self._tie(jobs, placed)
        if seen.event == "began":
            self._began[seen.job] = now
        there, over, unplaced = {}, [], {}
        for one in jobs:
            begun, is_it = self._began.get(one.number, one.start), one.number == seen.job
            if one.start > begun + _LATE_SECONDS:  # it began once more, and nobody told
                begun = one.start
            name = f"slurm:{one.number}:{begun:.0f}"
            stay = ObservedStay(one.workload, one.node, begun)
            placement = self._tied[one.number, one.node]
            if is_it and seen.event == "ended":
                is_one = seen.exit == "0:0" and n_nodes[one.number] == 1
                stay = ObservedStay(one.workload, one.node, begun, now, is_one)
                over += [placement] if placement else []
            elif placement is None:
                wish = {"workload": one.workload}
                if Requests.read([wish]).rows[0] is not None:
                    unplaced[f"{RUNS}{one.number}:{one.node}"] = one.node, wish
            there[f"{name}:{one.node}" if n_nodes[one.number] > 1 else name] = stay
        return self.stays.see(there, platform_of, now), over, unplaced

    def _tie(self, jobs: list[SeenJob], placed: Mapping[str, tuple[str, str]]) -> None:
        """Decide at first sight which placement a job has: one on its node, of its workload, that no other
        job has. What its comment says later changes nothing."""
        keys = {(one.number, one.node) for one in jobs}
        self._tied = {key: id for key, id in self._tied.items() if key in keys}
        taken = set(self._tied.values())
        for one in jobs:
            own, key = one.placement, (one.number, one.node)
            is_own = own not in taken and placed.get(own or "") == (one.node, one.workload)
            if key not in self._tied:
                self._tied[key] = own if is_own else None
                taken.add(self._tied[key])


def nodes_of(lines: tuple[str, ...]) -> tuple[Node, ...]:
    """Read the fleet from lines of sinfo: a node's platform is its first feature, or itself; it has as many
    slots as processors."""
    nodes = {}
    for line in lines:
        name, features, cpus = (*line.split("|"), "", "")[:3]
        feature = features.partition(",")[0]
        platform = name if feature in ("", "(null)") else feature
        try:
            nodes[name] = Node(name, platform, int(cpus) if cpus.isdecimal() else None)
        except JostleError:
            continue
    return tuple(nodes.values())
