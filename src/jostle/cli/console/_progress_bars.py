"""Progress bars on stderr. Imports rich only when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.collect import CampaignProgress


@contextmanager
def fit_progress(doing: str) -> Iterator[Callable[[int, int, float], None]]:
    """Show a bar for training on stderr; yields what to call with (done, total, loss)."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def report(done: int, total: int, loss: float) -> None:
            bar.update(task, completed=done, total=total)

        yield report


@contextmanager
def progress_bar() -> Iterator[Callable[[CampaignProgress], None]]:
    """Show a bar with the time left on stderr; drawn between windows only, never during one."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left"),
        TextColumn("{task.fields[doing]}", style="dim"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("measure", total=None, left="…", doing="getting ready")
        bar.refresh()

        def report(now: CampaignProgress) -> None:
            left = f"{int(now.remaining_seconds) // 60}:{int(now.remaining_seconds) % 60:02d}"
            bar.update(task, completed=now.done, total=now.total, left=left, doing=now.doing)
            bar.refresh()

        yield report
