"""The worked examples of CONTRIBUTING.md, installed as a package and run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.cli import exit_code

TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of the examples, as pip would have installed it."""
    site = tmp_path_factory.mktemp("site")
    (site / "my_package").mkdir()
    (site / "my_package" / "__init__.py").touch()
    for code in blocks("python"):
        head, _, _ = code.partition("\n")
        (site / head.removeprefix("# ")).write_text(code, "utf-8")
    info = site / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (toml,) = blocks("toml")
    points = re.sub(r'\[project\.entry-points\."([^"]+)"\]', r"[\1]", toml)
    (info / "entry_points.txt").write_text(points.replace('"', ""), "utf-8")
    return site


def test_every_command_shown_works(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first as a process of its own, the others in this one, from the folder where the user stands."""
    random = [f"{name} {10 + (7 * k) % 5}" for k in range(40) for name in ("fft", "sort")]
    (tmp_path / "times.txt").write_text("\n".join(random))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    _, console = blocks("console")
    first, *others = console.splitlines()
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(first)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{first}\n{done.stdout}\n{done.stderr}"
    assert done.stdout, first
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    for line in others:
        program, *words = shlex.split(line)
        assert program == "jostle"
        code, said = exit_code(words), capsys.readouterr()
        assert code == 0, f"{line}\n{said.out}\n{said.err}"
        assert said.out, line


def test_the_method_passes_the_contract_suite(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.learn import check
    from tests.packages.learn.contract.conftest import made_runs

    monkeypatch.syspath_prepend(str(site))
    from my_package.typical import Typical  # pyright: ignore[reportMissingImports]

    assert len(check(Typical(), made_runs())) >= 15
