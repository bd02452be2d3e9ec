"""Samples and helpers for tests of fit, and for others that need them."""

from __future__ import annotations

COUNTERS = ("instructions", "stall_cycles", "cache_accesses", "working_set_byte_seconds")
