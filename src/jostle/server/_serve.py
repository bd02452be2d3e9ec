"""Running the service until it is told to end."""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable

from jostle.errors import NotPermitted, needing_extras
from jostle.server._serve_settings import ServeSettings

_STOP_SECONDS = 5
_SWITCH_SECONDS = (
    0.0002  # that the event loop waits for a thread that computes, at each of its writes
)


def serve(settings: ServeSettings, announce: Callable[[str], None] = print) -> None:
    """Listen and answer until SIGTERM or SIGINT, then finish what is under way.

    announce: told the address once requests are taken. Raises MissingExtra, UsageError, NotPermitted where
    the address cannot be had, and what reading the fleet and opening the state raises.
    """
    with needing_extras():
        import uvicorn

        from jostle.server.http._accept import PatientServer
        from jostle.server.http._http_app import make_app
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = make_app(settings)
    listening = _listening(settings)
    host, port = listening.getsockname()[:2]
    scheme = "http" if settings.tls_cert is None else "https"
    address = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    config = uvicorn.Config(
        app,
        loop="uvloop",
        ws="none",
        access_log=False,
        log_config=None,
        log_level="error",  # or anybody fills the disk with a line for each mistake
        server_header=False,
        proxy_headers=False,  # a client would choose its own address
        timeout_keep_alive=60,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    try:
        server = PatientServer(config, settings, listening, lambda: announce(address))
    except OSError as error:  # of TLS, too
        raise NotPermitted(f"the certificate cannot be read: {error}") from None
    sys.setswitchinterval(_SWITCH_SECONDS)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # uvicorn raises the signal again once it has ended; by then everything is done.
    before = {s: signal.signal(s, lambda *_: None) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if app.state.service.is_stuck:  # a thread would be waited for, however long its answer takes
        logging.shutdown()
        os._exit(0)


def _listening(settings: ServeSettings) -> socket.socket:
    """Raises NotPermitted."""
    try:
        kind = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        return socket.create_server((settings.host, settings.port), family=kind, backlog=2048)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        reason = error.strerror or str(error)
        raise NotPermitted(
            f"cannot listen there: {reason}", where=where, fix="Choose another host or port."
        ) from None
