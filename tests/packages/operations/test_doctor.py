"""`jostle doctor`, completion, and hints that fit how Jostle was installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from jostle.cli import exit_code as run
from jostle.cli.console import show
from jostle.errors import MissingExtra, install_command, needing_extras
from jostle.operations.tour import _doctor_report as _doctor


def test_the_doctor_names_what_is_missing_and_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = metadata.version

    def version(name: str) -> str:
        if name == "jax":
            raise metadata.PackageNotFoundError(name)
        return every(name)

    monkeypatch.setattr(metadata, "version", version)
    assert run(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "doctor/v1"
    found = {(one["part"], one["what"]): one for one in document["findings"]}
    fit = found["Extras", "fit"]
    assert fit["works"] is False
    assert "missing: jax" in fit["told"]
    assert "pip install" in fit["fix"]
    assert "[fit]'" in fit["fix"]
    assert found["Extras", "measure"]["works"] is True
    assert found["Installation", "jostle"]["works"] is None
    assert ("Measuring: engines", "speed") in found
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "no trouble unless you want it" in out
    assert "missing: jax" in out
    assert fit["fix"] in out
    assert "not here" in out


def test_words_to_be_typed_are_whole_where_a_terminal_is_narrow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = f"pip install -e '/{'folder/' * 30}jostle[fit]'"
    told = "learning " * 20
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(
        _doctor, "findings", lambda: [_doctor.Finding("Extras", "fit", False, told, long)]
    )
    show(_doctor.doctor_report(), as_json=False)
    out = capsys.readouterr().out
    assert long in out
    assert "…" not in out
    assert out.count("learning") == 20


def test_the_exit_code_tells_trouble_from_what_nobody_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = metadata.version
    versions = {"wasmtime": "3.0.0"}
    monkeypatch.setattr(metadata, "version", lambda name: versions.get(name) or every(name))
    monkeypatch.setattr(_doctor, "_engines", list)
    report = _doctor.doctor_report()
    assert report.exit_code == 1
    found = next(one for one in report.document["findings"] if one["what"] == "measure")
    assert found["trouble"]
    assert "wasmtime 3.0.0, wanted >=50" in found["told"]
    versions.clear()
    assert _doctor.doctor_report().exit_code == 0


def test_every_extra_is_explained() -> None:
    assert set(_doctor.extras()) == set(_doctor.FOR)
    assert "optax" in _doctor.extras()["fit"]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'jostle[fit]'"),
        (
            {"url": "https://example.org/jostle-1.whl", "archive_info": {}},
            "pip install 'jostle[fit]'",
        ),
        (
            {"url": "file:///home/me/jostle", "dir_info": {"editable": True}},
            "pip install -e '/home/me/jostle[fit]'",
        ),
        ({"url": "file:///home/me/jostle", "dir_info": {}}, "pip install '/home/me/jostle[fit]'"),
    ],
)
def test_hints_fit_the_installation(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, command: str
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert install_command("fit") == command
    assert str(MissingExtra("jax", "fit")).endswith(command)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("jostle pre", "predict"),
        ("jostle fit --meth", "--method"),
        ("jostle predict --conf", "--confidence"),
    ],
)
def test_the_shell_completes(words: str, expected: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("jostle")],
        env={
            "_JOSTLE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [expected]


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("scipy", r"needs scipy, .*fit\]"),
        ("sklearn.ensemble", r"needs scikit-learn, .*fit\]"),
        ("ot", r"needs pot, .*fit\]"),
        ("distributed", r"needs distributed, .*measure\]"),
        ("starlette", r"needs starlette, .*serve\]"),
        ("no_such", None),
    ],
)
def test_a_missing_package_is_named_with_its_extra(module: str, told: str | None) -> None:
    with pytest.raises(MissingExtra if told else ModuleNotFoundError, match=told), needing_extras():
        raise ModuleNotFoundError(name=module)
