"""The version of Jostle: one place for the library, its documents and its package metadata."""

from __future__ import annotations

VERSION = "0.1.0"
