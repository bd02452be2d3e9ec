"""What every command shares: tables, JSON, progress, notes, and options made from settings."""

from jostle._report import duration as duration
from jostle._report import percent as percent
from jostle.cli.console._output import print_json as print_json
from jostle.cli.console._output import print_table as print_table
from jostle.cli.console._progress import fit_progress as fit_progress
from jostle.cli.console._progress import progress_bar as progress_bar
