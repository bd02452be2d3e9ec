"""`jostle doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

from jostle._base.report import Report
from jostle.operations.tour import doctor_report


def doctor() -> Report:
    """Show what Jostle can do on this machine, what is missing, and how to get it.

    Ends with 1 if something that is here is broken, and with 0 whatever is missing: nothing is needed by
    everybody.
    """
    return doctor_report()
