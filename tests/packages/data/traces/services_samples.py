"""Samples and helpers for tests of services, and for others that need them."""

from __future__ import annotations

from typing import Any

DAY = 1_767_225_600  # 2026-01-01T00:00:00Z


def matrix(*series: tuple[dict[str, str], list[tuple[float, object]]]) -> dict[str, Any]:
    result = [{"metric": m, "values": [[t, str(v)] for t, v in values]} for m, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def every(step: float, values: list[object], start: float = DAY) -> list[tuple[float, object]]:
    return [(start + step * k, value) for k, value in enumerate(values)]
