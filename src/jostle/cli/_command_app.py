"""The application: its commands, and errors turned into sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from jostle.cli.console import command_of, print_error, say
from jostle.errors import JostleError, missing_extra

# The commands by what a person is at; each is a function of its name in a file of its name.
GROUPS = {
    "start": {
        "tour": "Measure this machine, learn from it, and check the answers.",
        "doctor": "What Jostle can do here, what is missing, and how to get it.",
    },
    "data": {
        "import": "Bring measurements from elsewhere into a dataset.",
        "measure": "Measure runtimes on this machine, alone and side by side.",
        "trace": "Record what workloads do over time, alone and side by side.",
        "runs": "Summarise a dataset: counts, coverage, repeatability, suspicious values.",
    },
    "model": {
        "fit": "Learn from a dataset: jostle fit DATASET -o MODEL.",
        "update": "Teach a model the runs that came since; --dry-run says what drifts.",
        "suggest": "Which runs to measure next.",
        "evaluate": "Fit on a part of a dataset, ask about the rest, beside simple rules.",
        "evaluate limits": "Replay a log: what requests of limit and of simple rules would cost.",
    },
    "ask": {
        "predict": "How long it takes, and at most how long; --why says why.",
        "forecast": "Resource use at any time, of one workload or of several together.",
        "limit": "What memory, or what else, a run never exceeds.",
        "place": "Where workloads can go, and what happens if they do.",
        "safe": "How many batch jobs fit beside a service on a GPU.",
    },
    "run": {"serve": "Answer over HTTP."},
}
HOMES = {
    name: f"jostle.cli.{group}.{name.replace(' ', '_')}_command"
    for group, lines in GROUPS.items()
    for name in lines
}
HOMES["import"] = "jostle.cli.data.import_command"


class Jostle(TyperGroup):
    """Group of all commands, each of which is imported when it is called; the list of all needs none."""

    is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(HOMES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self.is_listing or cmd_name not in HOMES:
            return super().get_command(ctx, cmd_name)
        return _loaded(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        both = " ".join(args[:2])
        return super().resolve_command(ctx, [both, *args[2:]] if both in HOMES else args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.is_listing = True
        super().format_help(ctx, formatter)
        self.is_listing = False


def build() -> typer.Typer:
    """Build the application of all commands; a command is imported when it is called."""
    app = typer.Typer(
        name="jostle",
        cls=Jostle,
        help="How long a workload takes, and at most how long, beside others on shared hardware.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def top(
        version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    ) -> None:
        if version:
            import jostle

            say(jostle.__version__)
            raise typer.Exit

    for group, lines in GROUPS.items():
        for name, line in lines.items():
            app.command(name, help=line, rich_help_panel=group)(lambda: None)
    return app


def _loaded(name: str) -> Any:
    """Import a command, of a function or of a group of several."""
    module = import_module(HOMES[name])
    act = getattr(module, "import_" if name == "import" else name.replace(" ", "_"))
    if not isinstance(act, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(command_of(None, act))
        act = app
    return get_command(act)


def run(arguments: list[str], application: Callable[[], Any] = build) -> int:
    """Run a command line of an application; returns its exit code."""
    as_json = "--json" in arguments
    try:
        code = application()(arguments, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except JostleError as error:
        return _failed(str(error), type(error).__name__, error.exit_code, as_json)
    except KeyboardInterrupt:
        return _failed("interrupted", "Interrupted", 130, as_json)
    except BrokenPipeError:  # the reader went away: nothing is left to say, and nowhere to say it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _failed("this needs more memory than there is", "NotPermitted", 5, as_json)
    except OSError as error:  # of the system, where no command has expected one
        where = f"{error.filename!r:.200}: " if error.filename is not None else ""
        text = f"{where}{error.strerror or error}. Check the name and what may be done with it"
        return _failed(text, "NotPermitted", 5, as_json)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)):
            return _failed(str(missing), "MissingExtra", missing.exit_code, as_json)
        usage = _usage_of(error)
        if usage is not None:
            return _failed(usage, "UsageError", 2, as_json)
        if type(error).__name__ == "Abort":
            return _failed("interrupted", "Interrupted", 130, as_json)
        if os.environ.get("JOSTLE_TRACEBACK"):
            raise
        what = f"internal error: {type(error).__name__}: {error}"
        return _failed(f"{what}. Set JOSTLE_TRACEBACK=1 to see where.", "Internal", 70, as_json)


def _usage_of(error: Exception) -> str | None:
    """Return the parser's sentence on a wrong command line; None for other errors."""
    message = getattr(error, "format_message", None)
    return message() if message is not None and getattr(error, "exit_code", None) == 2 else None


def _failed(text: str, kind: str, code: int, as_json: bool) -> int:
    if text:  # else help was printed instead
        print_error(text, kind, code, as_json)
    return code
