"""A model, and a real scheduler where `make test-schedulers` got one."""

from __future__ import annotations

from tests.packages.server.conftest import model_folders  # noqa: F401
