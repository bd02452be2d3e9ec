"""Several programs under one name: told of two, and of one at most in a hundred imports, whatever its law."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.data import SacctImport
from jostle.data.read._mixed_names import groups_apart
from tests.limits import share_limits

IMPORTS = 100
COMPANIES = 6
LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal logs": lambda draw, n: np.exp(0.1 * draw.normal(size=n)),
    "wide normal logs": lambda draw, n: np.exp(draw.normal(size=n)),
    "exponential": lambda draw, n: draw.exponential(size=n),
    "Weibull": lambda draw, n: draw.weibull(4, n),
    "even logs": lambda draw, n: 30 ** draw.random(n),
}


def imported(
    draw: np.random.Generator, times: np.ndarray, names: int, most: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(name, company, whole seconds) of these times over those of a name, up to `most` times as long in some
    companies as in others."""
    name = np.arange(len(times)) % names
    company = name * COMPANIES + draw.integers(COMPANIES, size=len(times))
    solo = np.exp(draw.uniform(1, 8, names))
    slow = draw.choice([1.0, most], names * COMPANIES)
    return name, company, np.maximum(np.round(solo[name] * slow[company] * times), 1)


@pytest.mark.parametrize(("names", "most"), [(1, 4.0), (8, 1.0)])
@pytest.mark.parametrize("law", LAWS)
def test_one_program_is_told_as_several_once_in_a_hundred_imports(
    law: str, names: int, most: float
) -> None:
    draw, told = np.random.default_rng(7), 0
    for seed in range(IMPORTS):
        times = LAWS[law](draw, 60 * names)
        told += bool(groups_apart(*imported(draw, times, names, most), seed))
    assert told / IMPORTS <= share_limits(IMPORTS, 0.01)[1]


def test_two_programs_under_one_name_are_told_in_company_of_any_kind() -> None:
    draw, right = np.random.default_rng(3), 0
    for seed in range(20):
        times = np.exp(0.1 * draw.normal(size=600))
        times[::3] *= np.where(draw.random(200) < 0.4, 3.0, 1.0)  # of the first name
        right += groups_apart(*imported(draw, times, 3, 2.0), seed) == [0]
    assert right >= 18


def test_users_of_the_shipped_log_run_several_programs(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("node,platform\n" + "".join(f"n{k},small\n" for k in range(1, 7)))
    edges: dict[str, Any] = {"since": "2026-11-24T13:00:00", "until": "2026-11-24T13:30:00"}
    log = io.BytesIO(jostle.data.slurm_log().read_bytes())
    told = {}
    for rule in ("{User}", "{User}/{JobName:^[a-z]+}"):
        log.seek(0)
        made, _ = (
            SacctImport(log, rule, nodes=nodes, **edges).read().write(tmp_path / str(len(rule)))
        )
        told[rule] = made.several
    # Of the third one's programs, 17 to 35 s and 20 to 32 s, times tell nothing.
    assert sorted(told["{User}"]) == ["bo", "cy"]
    assert not told["{User}/{JobName:^[a-z]+}"]
