"""Follow a program that runs: one line a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

from jostle._base.option_fields import Limits
from jostle._base.report import Report
from jostle.cli.console import program_of, started
from jostle.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class FollowedProgram:
    """A program to follow, and how far ahead to look."""

    pid: Annotated[
        int | None,
        "Follow this process, with all it started, and say at each step what it will use.",
    ] = None
    cgroup: Annotated[str | None, "Follow this control group so, such as a container's."] = None
    follow: Annotated[str | None, "Start this command and follow it so, until it ends."] = None
    ran: Annotated[float, "Seconds that what is followed has run already.", Limits(0)] = 0.0
    steps: Annotated[int | None, "Stop after so many lines.", Limits(1)] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_began", time.monotonic())

    @property
    def is_asked(self) -> bool:
        return self.pid is not None or self.cgroup is not None or self.follow is not None

    def check(self) -> None:
        """Before anything is learned: raises UsageError, UnreadableFile for what cannot be followed."""
        from jostle.collect import TraceOptions, follow_running

        if sum(one is not None for one in (self.pid, self.cgroup, self.follow)) > 1:
            raise UsageError("--pid, --cgroup and --follow each say what to follow")
        if self.follow is not None:
            program_of(self.follow)
        elif self.is_asked:
            once = TraceOptions(seconds=0.001, interval_seconds=0.001)
            next(follow_running(self.pid, self.cgroup, once), None)

    def run(
        self,
        interval_seconds: float,
        seconds: float,
        step: Callable[[float, Any], Report | None],
    ) -> Generator[Report]:
        """A line for each sample: what `step` says of when it ended, since the run began, and of the sample;
        until it says nothing, the program ends, or so many seconds have passed."""
        from jostle.collect import TraceOptions, follow_running

        options = TraceOptions(
            interval_seconds=max(interval_seconds, 0.001),
            seconds=seconds,
            timeout_seconds=seconds + 1,
        )
        # What goes on already went on while the recorded runs were read and learned from.
        ran = self.ran + (0.0 if self.follow else time.monotonic() - vars(self)["_began"])
        with nullcontext(self.pid) if self.follow is None else started(self.follow) as pid:
            for number, sample in enumerate(follow_running(pid, self.cgroup, options), start=1):
                report = step(ran + sample.time_seconds, sample)
                if report is None:
                    return
                yield report
                if number == self.steps:
                    return
