"""What `jostle measure --engines` and `--check` print."""

from __future__ import annotations

import typer

from jostle.cli.console import print_json, say


def print_engines(as_json: bool) -> None:
    """Every engine, whether it works here, and why not."""
    from jostle.measure import engine_table

    rows = engine_table()
    if as_json:
        engines = [{"engine": n, "what": w, "works": r is None, "reason": r} for n, w, r in rows]
        print_json({"schema": "measure-engines/v1", "engines": engines})
        return
    for name, what, reason in rows:
        say(f"{name:12} {what}{'' if reason is None else f'  (not here: {reason})'}")


def print_check(as_json: bool) -> None:
    """Whether this machine is quiet; ends with exit code 1 where it is not."""
    from jostle.measure import check_machine

    found = check_machine()
    if as_json:
        print_json(found.to_json())
    else:
        low, high = found.foreign_load_ratio
        say("quiet enough to measure" if found.quiet else "not quiet enough to measure")
        for text in found.disturbances:
            say(f"- {text}")
        say(
            f"others held {low:.1%} of {len(found.cores)} cores (median; {high:.1%} nine times of "
            f"ten), cores up to {found.slowdown_p90_ratio:.2f} times slower than usual, sleepers up "
            f"to {1000 * found.lateness_p99_seconds:.1f} ms late"
        )
        for name, load in found.other_processes:
            say(f"  {name}: {load:.1%} of a core")
    if not found.quiet:
        raise typer.Exit(1)
