"""What a package that adds methods, importers, readers or studies needs besides the public interfaces."""

from jostle._base.option_fields import Flag, Limits, NoOption, Positional, Short
from jostle._base.progress import Progress
from jostle._base.report import Report, Table, duration, percent

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
