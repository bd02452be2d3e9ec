"""Samples and helpers for tests of logs, and for others that need them."""

from __future__ import annotations

HEADER = "JobID|User|JobName|NodeList|Start|End|State|ElapsedRaw\n"
