"""Wheel and source package in clean environments: built, installed, tried, and how large the core is.

    python benchmarks/packages.py [--python python3.12 --python python3.13] [--sdist] [--suite]

For each interpreter: a new environment takes the wheel without extras; a model that this program fits
here is answered there, by library and command, and a fit there says how to get what is missing. --sdist
installs the source package instead. --suite also installs all extras and runs the test suite of the
source package. Prints a line each, with the megabytes of the environment's packages less pip. Needs an
index to install from; some two minutes each, --suite a quarter of an hour.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MB = 150
NOT_COUNTED = ("pip", "pip-")  # what a new environment has before anything is installed
TRY = """
import sys, jostle, numpy as np
model = jostle.load(sys.argv[1])
asked = jostle.Colocations.from_columns(workload=["a"], platform=["p"], corunners=[["b"]])
print(float(model.predict(asked)[0]), float(model.bound(asked, 0.8).seconds[0]))
print(repr(model))
from jostle.data import sample
assert len(sample()) > 3000
"""


def run(*words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, check=False, env=clean
    )
    if check and done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}")
    return done


def built(folder: Path) -> tuple[Path, Path]:
    """(wheel, source package); the wheel is built from the source package, as an index would."""
    run(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder / "tools", "build")
    script = (
        f"import sys; sys.path.insert(0, {str(folder / 'tools')!r}); sys.argv = ['build', '-o', "
    )
    script += f"{str(folder / 'dist')!r}, {str(ROOT)!r}]; from build.__main__ import main; "
    script += "main(sys.argv[1:])"
    run(sys.executable, "-c", script)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    return wheel, source


def a_model(folder: Path) -> Path:
    """A small model, fitted here where all extras are."""
    import numpy as np

    import jostle

    random = np.random.default_rng(0)
    beside = [[], ["a"], ["b"], ["c"]] * 100
    runs = jostle.Runs.from_columns(
        workload=[("a", "b", "c")[i] for i in random.integers(0, 3, 400)],
        platform=["p"] * 400,
        corunners=beside,
        runtime_seconds=np.exp(0.1 * random.normal(size=400)) * [1 + len(b) for b in beside],
    )
    jostle.fit(runs, jostle.Factorization(steps=50), seed=0).save(folder / "model")
    return folder / "model"


def megabytes(site: Path) -> float:
    every = [p for p in site.rglob("*") if p.is_file()]
    counted = [p for p in every if not p.relative_to(site).parts[0].startswith(NOT_COUNTED)]
    return sum(p.stat().st_size for p in counted if "__pycache__" not in p.parts) / 1e6


def tried(python: str, package: Path, model: Path, folder: Path) -> float:
    """Installs and tries the package with this interpreter; returns the megabytes installed."""
    place = Path(tempfile.mkdtemp(prefix="with-", dir=folder))
    run(python, "-m", "venv", place)
    bin_, jostle = place / "bin", place / "bin" / "jostle"
    run(bin_ / "python", "-m", "pip", "install", "--quiet", "--no-compile", package)
    (site,) = place.glob("lib/python*/site-packages")
    size = megabytes(site)
    seconds, bound = run(bin_ / "python", "-c", TRY, model).stdout.split()[:2]
    if not 0 < float(seconds) <= float(bound):
        raise SystemExit(f"{python}: predicted {seconds}, bound {bound}")
    run(jostle, "predict", model, "-w", "a", "-b", "b", "-c", "0.8")
    run(jostle, "doctor")
    table = folder / "times.csv"
    rows = [f"{job},p,{10 + number % 7}" for number in range(60) for job in ("a", "b")]
    table.write_text("\n".join(["job,host,ms", *rows, ""]))
    names = ("--workload", "job", "--platform", "host", "--runtime", "ms", "--unit", "ms")
    run(jostle, "import", "--kind=csv", table, "-o", place / "fleet", *names)
    run(jostle, "runs", place / "fleet")
    for words, extra in ((("fit", place / "fleet", "-o", "m"), "fit"), (("tour",), "measure")):
        done = run(jostle, *words, check=False)
        if done.returncode != 2 or f"[{extra}]" not in done.stderr:
            raise SystemExit(f"jostle {words[0]} without extras: {done.returncode} {done.stderr}")
    return size


def suite(python: str, source: Path, folder: Path) -> str:
    """The test suite as it is in the source package, with all extras; its last line."""
    place = Path(tempfile.mkdtemp(prefix="suite-", dir=folder))
    run(python, "-m", "venv", place / "environment")
    with tarfile.open(source) as archive:
        archive.extractall(place, filter="data")
    (home,) = place.glob("jostle-*")
    bin_ = place / "environment" / "bin"
    run(bin_ / "python", "-m", "pip", "install", "--quiet", "pip>=25.1")
    group = f"{home}/pyproject.toml:dev"
    run(bin_ / "python", "-m", "pip", "install", "--quiet", f"{home}[all]", "--group", group)
    done = run(
        bin_ / "pytest", "-n", "2", "--dist", "worksteal", home, f"--rootdir={home}", check=False
    )
    return done.stdout.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated")
    parser.add_argument("--sdist", action="store_true")
    parser.add_argument("--suite", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = built(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        print(f"{source.name}: {source.stat().st_size / 1e6:.1f} MB", flush=True)
        model = a_model(folder)
        for python in asked.python or [sys.executable]:
            size = tried(python, source if asked.sdist else wheel, model, folder)
            verdict = "" if size < LIMIT_MB else f", over {LIMIT_MB}"
            print(f"{python}: works; the core takes {size:.0f} MB{verdict}", flush=True)
            if asked.suite:
                print(f"{python}: {suite(python, source, folder)}", flush=True)


if __name__ == "__main__":
    main()
