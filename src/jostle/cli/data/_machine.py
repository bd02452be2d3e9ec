"""What `jostle measure --engines` and `--check` print."""

from __future__ import annotations

from jostle._report import Report


def engines_report() -> Report:
    """Every engine, whether it works here, and why not."""
    from jostle.measure import engine_table

    rows = engine_table()
    engines = [{"engine": n, "what": w, "works": r is None, "reason": r} for n, w, r in rows]
    lines = [
        f"{name:12} {what}{'' if reason is None else f'  (not here: {reason})'}"
        for name, what, reason in rows
    ]
    return Report({"schema": "measure-engines/v1", "engines": engines}, lines)


def check_report() -> Report:
    """Whether this machine is quiet; ends with exit code 1 where it is not."""
    from jostle.measure import check_machine

    check = check_machine()
    low, high = check.foreign_load_ratio
    lines = [
        "quiet enough to measure" if check.quiet else "not quiet enough to measure",
        *(f"- {text}" for text in check.disturbances),
        f"others held {low:.1%} of {len(check.cores)} cores (median; {high:.1%} nine times of "
        f"ten), cores up to {check.slowdown_p90_ratio:.2f} times slower than usual, sleepers up "
        f"to {1000 * check.lateness_p99_seconds:.1f} ms late",
        *(f"  {name}: {load:.1%} of a core" for name, load in check.other_processes),
    ]
    return Report(check.to_json(), lines, exit_code=0 if check.quiet else 1)
