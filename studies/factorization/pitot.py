"""Accuracy, bounds and training time on the published Pitot data, on one core.

    python -m studies.factorization.pitot [--observed 0.5] [--members 1] [--form saturating] [--seed 0]

Imports the published files into a temporary dataset and runs `python -m studies factorization` with the
splits that lie beside them; prints its JSON and, beside each metric, what the paper's reference code
reaches once its Eq. 9 is corrected.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from studies.data import one_core, pitot_folder

# The corrected reference code on the same splits: MAPE alone / with one co-runner, in about 100 s.
REFERENCE = {"0.1": (0.113, 0.113), "0.5": (0.058, 0.064), "0.9": (0.051, 0.058)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observed", default="0.5", choices=list(REFERENCE))
    parser.add_argument("--members", default="1")
    parser.add_argument("--form", default="saturating")
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    one_core()
    folder = pitot_folder()
    jostle = [sys.executable, "-m", "jostle"]
    with tempfile.TemporaryDirectory() as place:
        dataset = str(Path(place) / "pitot")
        subprocess.run([*jostle, "import", "pitot", str(folder), "-o", dataset], check=True)
        command = [*jostle, "evaluate", "factorization", dataset, "--json", "--seed", options.seed]
        command += ["--splits", str(folder / "splits" / f"{options.observed}_0.npz")]
        command += ["--members", options.members, "--form", options.form]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    metrics = json.loads(run.stdout)["metrics"]
    for name, value in metrics.items():
        print(f"{name:32s} {value:.4f}")
    solo, corun = REFERENCE[options.observed]
    print(
        f"\nerror / corrected reference code: alone {metrics['mape_solo_ratio'] / solo:.2f}, "
        f"with a co-runner {metrics['mape_corun_ratio'] / corun:.2f}"
    )


if __name__ == "__main__":
    main()
