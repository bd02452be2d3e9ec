"""What a package that adds methods, importers, readers or studies needs besides the rooms' faces."""

from jostle._options import Flag, Limits, NoOption, Positional, Short
from jostle._report import Report, Table, duration, percent
from jostle.progress import Progress

__all__ = [
    "Flag",
    "Limits",
    "NoOption",
    "Positional",
    "Progress",
    "Report",
    "Short",
    "Table",
    "duration",
    "percent",
]
