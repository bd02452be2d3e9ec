"""The application: its commands, and errors turned into sentences and exit codes."""

from __future__ import annotations

import os
import sys

import typer

from jostle.cli.collect import _audit, _measure, _opcodes, _trace
from jostle.cli.console import print_error, say
from jostle.cli.data import _import, _runs
from jostle.cli.doctor import _doctor
from jostle.cli.evaluate import _studies
from jostle.cli.forecasting import _forecast
from jostle.cli.models import _drift, _explain, _fit, _predict, _suggest, _update
from jostle.cli.placement import _place, _safe
from jostle.cli.report import _report as _report_command
from jostle.cli.service import _serve
from jostle.cli.tour import _tour
from jostle.errors import JostleError, missing_extra


def build() -> typer.Typer:
    """All commands; none of them imports anything heavy before it runs."""
    app = typer.Typer(
        name="jostle",
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

    modules = (
        _tour,
        _measure,
        _trace,
        _opcodes,
        _audit,
        _import,
        _runs,
        _fit,
        _predict,
        _explain,
        _drift,
        _update,
        _suggest,
        _studies,
        _forecast,
        _safe,
        _place,
        _report_command,
        _serve,
        _doctor,
    )
    for module in modules:
        module.register(app)
    return app


def run(arguments: list[str]) -> int:
    """Run a command line; returns its exit code."""
    as_json = "--json" in arguments
    try:
        code = build()(arguments, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except JostleError as error:
        return _report(str(error), type(error).__name__, error.exit_code, as_json)
    except KeyboardInterrupt:
        return _report("interrupted", "Interrupted", 130, as_json)
    except BrokenPipeError:  # the reader went away: nothing is left to say, and nowhere to say it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _report("this needs more memory than there is", "NotPermitted", 5, as_json)
    except OSError as error:  # of the system, where no command has expected one
        where = f"{error.filename!r:.200}: " if error.filename is not None else ""
        text = f"{where}{error.strerror or error}. Check the name and what may be done with it"
        return _report(text, "NotPermitted", 5, as_json)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)):
            return _report(str(missing), "MissingExtra", missing.exit_code, as_json)
        usage = _usage_of(error)
        if usage is not None:
            return _report(usage, "UsageError", 2, as_json)
        if type(error).__name__ == "Abort":
            return _report("interrupted", "Interrupted", 130, as_json)
        if os.environ.get("JOSTLE_TRACEBACK"):
            raise
        what = f"internal error: {type(error).__name__}: {error}"
        return _report(f"{what}. Set JOSTLE_TRACEBACK=1 to see where.", "Internal", 70, as_json)


def _usage_of(error: Exception) -> str | None:
    """The sentence of a wrong command line, as the parser has it; None for other errors."""
    message = getattr(error, "format_message", None)
    return message() if message is not None and getattr(error, "exit_code", None) == 2 else None


def _report(text: str, kind: str, code: int, as_json: bool) -> int:
    if text:  # else help was printed instead
        print_error(text, kind, code, as_json)
    return code
