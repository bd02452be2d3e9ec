"""Follow a program that runs: one line a step, what it will use soon given what it has shown."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from jostle._options import Limits
from jostle._report import Report
from jostle.answers import step_report
from jostle.cli.console import note
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.bridge import Forecast

_DEFAULT_AHEAD = 5  # samples


@dataclass(frozen=True, kw_only=True)
class FollowedProgram:
    """A program to follow, and how far ahead to look."""

    pid: Annotated[
        int | None,
        "Follow this process, with all it started, and say at each step what it will use.",
    ] = None
    cgroup: Annotated[str | None, "Follow this control group so, such as a container's."] = None
    follow: Annotated[str | None, "Start this command and follow it so, until it ends."] = None
    ahead: Annotated[
        float | None, "Of what is followed: seconds to look ahead.  [default: 5 samples]", Limits(0)
    ] = None
    ran: Annotated[float, "Seconds that what is followed has run already.", Limits(0)] = 0.0
    steps: Annotated[int | None, "Stop after so many lines.", Limits(1)] = None

    @property
    def is_asked(self) -> bool:
        return self.pid is not None or self.cgroup is not None or self.follow is not None

    def run(
        self,
        fitted: Sequence[tuple[str, Forecast]],
        core: int,
        limits: Mapping[str, float],
        within: float | None,
    ) -> Generator[Report]:
        """A line for each sample, until it ends, or outlives the recorded runs."""
        import numpy as np

        from jostle.measure import TraceOptions, follow_running

        if len(fitted) != 1:
            raise UsageError("one workload at a time is followed", fix="Say -w NAME.")
        if sum(one is not None for one in (self.pid, self.cgroup, self.follow)) > 1:
            raise UsageError("--pid, --cgroup and --follow each say what to follow")
        if within is not None and not limits:
            raise UsageError("--within needs a --limit", fix="Say --limit COUNTER=RATE.")
        (_, forecast) = fitted[0]
        interval = float(np.median(np.diff(forecast.snapshots.times_seconds)))
        ahead = self.ahead or _DEFAULT_AHEAD * interval
        last = forecast.span_seconds[1]
        live = forecast.given(core=core)
        seconds = max(last - self.ran, interval)
        options = TraceOptions(
            interval_seconds=max(interval, 0.001), seconds=seconds, timeout_seconds=seconds + 1
        )
        with self._running() as pid:
            for number, sample in enumerate(follow_running(pid, self.cgroup, options), start=1):
                now = self.ran + sample.time_seconds
                live.see(now, sample.counters, interval_seconds=sample.interval_seconds)
                if now + ahead > last:
                    note(f"at {now:g} s: the recorded runs reach to {last:g} s, no further")
                    return
                yield step_report(live, now, ahead, limits, within)
                if number == self.steps:
                    return

    @contextmanager
    def _running(self) -> Iterator[int | None]:
        """The process to follow; one that was started here is ended with it."""
        if self.follow is None:
            yield self.pid
            return
        try:
            words = shlex.split(self.follow)
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        except (OSError, ValueError, IndexError) as error:
            raise UsageError(f"the command cannot be started: {error}", where=self.follow) from None
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait()
