"""Jobs in containers: what podman or docker is told, what is said where there is neither, none left."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jostle.errors import UnreadableFile, UsageError
from jostle.measure import container_workload, job_of
from jostle.measure.slots._available import part_of
from tests.measure.measured import measured

# Knows one image, `tiny`; what is run in it runs in the folder that is mounted, here.
PROGRAM = """#!{python} -S
import os, sys
log, words = {log!r}, sys.argv[1:]
open(log, "a").write(repr(words) + chr(10))
if words[0] == "image":
    if words[2] != "tiny":
        sys.exit("Error: no such image")
elif words[0] == "run":
    at = words.index("tiny")
    for option in words[1:at]:
        name, _, value = option.partition("=")
        if name == "--volume":
            os.chdir(value.split(":")[0])
        if name == "--env":
            os.environ.update([value.split("=", 1)])
    inside = words[at + 1:] or ["/bin/true"]
    os.execvp(inside[0], inside)
elif words[0] == "ps":
    print("abc" if "left" in open(log).read() else "")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a program of this name that can be found; gives what it was told so far."""
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(
        "shutil.which", lambda name: p if os.path.exists(p := f"{folder}/{name}") else None
    )

    def make(name: str) -> Path:
        path = folder / name
        path.write_text(PROGRAM.format(python=sys.executable, log=str(log)))
        path.chmod(0o755)
        return log

    return make


def test_a_job_in_a_container(tmp_path: Path, program) -> None:
    log = program("podman")
    (tmp_path / "in.txt").write_text("hello")
    (tmp_path / "right").write_text("hello world\n")
    job = job_of(
        inputs=[tmp_path / "in.txt"], environment={"WHO": "world"}, expected=tmp_path / "right"
    )
    words = ["sh", "-c", 'echo "$(cat in.txt) $WHO"']
    box = container_workload("tiny", words, name="box", job=job, options=["--network=none"])
    (row,) = measured(tmp_path, box)
    assert (row["workload"], row["status"], row["reason"]) == ("box", "ok", None)
    assert row["cpu_seconds"] is not None
    told = [eval(line) for line in log.read_text().splitlines()]
    runs = [line for line in told if line[0] == "run"]
    assert len({next(w for w in line if w.startswith("--name=")) for line in runs}) == len(runs)
    for line in runs:
        assert {"--rm", "--pull=never", "--workdir=/work", "--network=none"} <= set(line)
        assert any(word.startswith("--cpuset-cpus=") for word in line)
        assert line[line.index("tiny") + 1 :] == words
    # The last was still running when all were told to stop, or had just ended.
    assert told[-1][:3] == ["ps", "--all", "--quiet"]


def test_what_a_service_runs_has_no_known_cpu_time(tmp_path: Path, program) -> None:
    log = program("docker")
    log.write_text("left\n")
    (row,) = measured(tmp_path, container_workload("tiny"))
    assert (row["workload"], row["status"], row["cpu_seconds"]) == ("tiny", "ok", None)
    assert "['rm', '--force', 'abc']" in log.read_text()


def test_the_platforms_limits_are_told_to_the_container(program) -> None:
    program("podman")
    box = container_workload("tiny", ["true"])
    part = part_of(box, "native@quota=0.5,memory=256M")
    found = part["job"]["container"]
    assert (found["quota_ratio"], found["memory_bytes"]) == (0.5, 256 << 20)
    assert part_of(box, "native")["job"]["container"]["quota_ratio"] is None


def test_images_that_cannot_be_run_are_refused_with_a_sentence(program) -> None:
    with pytest.raises(UnreadableFile, match="neither podman nor docker is installed"):
        container_workload("tiny")
    program("docker")
    with pytest.raises(UnreadableFile, match=r"docker: Error: no such image.*docker pull"):
        container_workload("other:latest")
    program("podman")
    assert container_workload("tiny").module.name == "podman"
    for wrong in ("", "-v/:/host", "a b", "x" * 300):
        with pytest.raises(UsageError, match="no name of an image"):
            container_workload(wrong)
    for option in ("x", "--rm", "--name=x", "-d", "--cpuset-cpus=0"):
        with pytest.raises(UsageError, match="cannot be an option"):
            container_workload("tiny", options=[option])
