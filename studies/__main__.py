"""`python -m studies` runs a study."""

import sys

from studies import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
