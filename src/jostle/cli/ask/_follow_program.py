"""Follow a program that runs: one line a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Annotated, Any

from jostle._base.option_fields import Limits
from jostle._base.report import Report
from jostle.cli.console import followed, program_of, running
from jostle.cli.console._shared_options import Follow


@dataclass(frozen=True, kw_only=True)
class FollowedProgram:
    """Options that name a program to follow, and how far ahead to look."""

    follow: Follow = None
    ran: Annotated[float, "Seconds that what is followed has run already.", Limits(0)] = 0.0
    steps: Annotated[int | None, "Stop after so many lines.", Limits(1)] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_began", time.monotonic())

    @property
    def is_asked(self) -> bool:
        return self.follow is not None

    def check(self) -> None:
        """Check before anything is learned. Raises UsageError, UnreadableFile for what cannot be followed."""
        from jostle.collect import TraceOptions, follow_running

        if self.follow is None:
            return
        if any(there := running(self.follow)):
            once = TraceOptions(seconds=0.001, interval_seconds=0.001)
            next(follow_running(*there, once), None)
        else:
            program_of(self.follow)

    def run(
        self,
        interval_seconds: float,
        seconds: float,
        step: Callable[[float, Any], Report | None],
    ) -> Generator[Report]:
        """Run or follow the program, and report on each sample: what `step` says, given the seconds since the
        run began and the sample. Stops when `step` returns None, the program ends, or `seconds` have passed.
        """
        from jostle.collect import TraceOptions, follow_running

        options = TraceOptions(
            interval_seconds=max(interval_seconds, 0.001),
            seconds=seconds,
            timeout_seconds=seconds + 1,
        )
        # What goes on already went on while the recorded runs were read and learned from.
        text = self.follow or ""
        ran = self.ran + (time.monotonic() - vars(self)["_began"] if any(running(text)) else 0.0)
        with followed(text) as there:
            for number, sample in enumerate(follow_running(*there, options), start=1):
                report = step(ran + sample.time_seconds, sample)
                if report is None:
                    return
                yield report
                if number == self.steps:
                    return
