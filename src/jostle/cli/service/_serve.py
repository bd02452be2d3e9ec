"""`jostle serve`: answers over HTTP."""

from __future__ import annotations

import sys

import typer

from jostle.cli.console import command_of, note, say
from jostle.service import ServeSettings


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("serve")(command_of(ServeSettings, serve))


def serve(settings: ServeSettings) -> None:
    """Say where, once requests are taken, and stay until told to end."""
    from jostle.service import serve as run

    if settings.api_key_file is None and settings.host not in ("127.0.0.1", "::1", "localhost"):
        note(f"Note: without --api-key-file whoever reaches {settings.host} may ask and change.")

    def announce(address: str) -> None:
        say(f"Serving {settings.model} on {address}")
        sys.stdout.flush()

    run(settings, announce)
