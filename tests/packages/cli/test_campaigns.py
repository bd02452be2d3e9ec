"""Every command that asks a model may name the campaign that it asks about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.errors import UnknownName
from tests.command_line import application, commands
from tests.command_line import jostle as command
from tests.packages.learn.ensemble.conftest import DAYS, QUICK, in_campaigns

CHANGE_OR_HOLD = {"update", "serve"}  # what a model learned, in whichever campaign
BESIDE = ["-p", "machine 0", "-b", "program 1"]
ASKED = {
    "predict": ["predict", "MODEL", "-w", "program 0", *BESIDE],
    "predict --why": ["predict", "MODEL", "--why", "-w", "program 0", *BESIDE],
    "suggest": ["suggest", "MODEL", "--workload", "program 0", "--on", "machine 0", "-n", "1"],
    **{
        f"place {verb}": ["place", verb, "MODEL", "-w", "program 0@100s", *BESIDE]
        for verb in ("assign", "at", "rank", "safe", "walltime")
    },
}


def _options(words: str) -> set[str]:
    """The parameters of a command, by name."""
    found: Any = application()
    for word in words.split():
        context = found.make_context("jostle", [], resilient_parsing=True)
        found = found.get_command(context, word)
    return {one.name for one in found.params}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of runs of three days, which were slower or faster as a whole."""
    folder = tmp_path_factory.mktemp("campaigns") / "model"
    jostle.fit(in_campaigns(DAYS), QUICK).save(folder)
    return folder


def test_a_command_with_a_model_has_the_option() -> None:
    of_one_word = [name for name in commands() if " " not in name or name.startswith("place ")]
    asking = {name for name in of_one_word if "model" in _options(name)} - CHANGE_OR_HOLD
    assert {"predict", "suggest", "limit", "forecast", "safe", "place rank"} <= asking
    assert asking == {name for name in of_one_word if "campaign" in _options(name)} - {"import"}


@pytest.mark.parametrize("asked", ASKED)
def test_each_is_answered_for_the_campaign_that_it_names(asked: str, folder: Path) -> None:
    words = [str(folder) if word == "MODEL" else word for word in ASKED[asked]]
    seconds = []
    for day in ("day 0", "day 1"):
        done = command(*words, "--campaign", day, "--json")
        assert done.exit_code in (0, 1), done.output
        seconds.append(_seconds(json.loads(done.stdout)))
    assert np.log(np.divide(*seconds)) == pytest.approx(DAYS[0] - DAYS[1], abs=0.1)
    wrong = command(*words, "--campaign", "day 9")
    assert wrong.exit_code == UnknownName.exit_code
    assert "day 9" in wrong.stderr


def _seconds(document: Any) -> float:
    """The first time in a document, in seconds."""
    if isinstance(document, dict):
        for key in ("runtime_seconds", "bound_seconds", "seconds"):
            if isinstance(document.get(key), float):
                return document[key]
    inner = document.values() if isinstance(document, dict) else document
    found = (_seconds(one) for one in inner if isinstance(one, dict | list))
    return next((one for one in found if one), 0.0)
