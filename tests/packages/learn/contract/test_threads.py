"""Learning is of one thread, whatever library multiplies."""

from __future__ import annotations

import json
import os
import subprocess
import sys

SCRIPT = """
import json, os
import numpy
from jostle.learn import one_thread

@one_thread()
def learned():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    scipy.linalg.cho_factor(numpy.eye(3))
    return [(one["internal_api"], one["num_threads"]) for one in threadpool_info()]

print(json.dumps(learned()))
"""


def test_libraries_that_come_while_learning_have_one_thread_too() -> None:
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
    )
    libraries = json.loads(done.stdout)
    assert libraries
    assert {threads for _, threads in libraries} == {1}
