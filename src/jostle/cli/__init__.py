"""The command line: results on stdout, progress and errors on stderr, exit codes that say why.

0 done or safe, 1 the answer is no, 2 usage, 3 no valid bound (too little data), 4 bad input data,
5 not permitted here, 70 internal, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line (sys.argv by default) and exit with its code."""
    from jostle.cli._app import run

    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
