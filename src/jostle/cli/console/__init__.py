"""What every command shares: tables, JSON, progress, notes, and options made from settings."""

from jostle.cli.console._command_options import command_of as command_of
from jostle.cli.console._command_options import flags_of as flags_of
from jostle.cli.console._output import as_typed as as_typed
from jostle.cli.console._output import note as note
from jostle.cli.console._output import print_error as print_error
from jostle.cli.console._output import say as say
from jostle.cli.console._output import show as show
from jostle.cli.console._program_words import followed as followed
from jostle.cli.console._program_words import program_of as program_of
from jostle.cli.console._program_words import running as running
from jostle.cli.console._program_words import words_of as words_of
from jostle.cli.console._progress_bars import fit_progress as fit_progress
from jostle.cli.console._progress_bars import progress_bar as progress_bar
