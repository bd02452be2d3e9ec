# All set-up from nothing but Python >= 3.11 and make: everything lives in .venv, nothing outside it changes.
#   make tour    measure this machine, learn from it, answer with bounds
#   make test    the test suite
#   make test-fast   what of it is neither slow, nor hostile, nor about figures
#   make setup   the environment alone
#   make test-schedulers   a real kube-scheduler and a real Slurm, got from Debian's archives (as root)
#   make check   lint, types and the import contract of the packages
#   make docs    the documentation site, in site/, without network
#   make results draws and prints again what is cheap of docs/results (python -m studies.results --list: the rest)

# The newest supported interpreter that really starts here (version managers leave shims that do not).
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && { command -v $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: tour test test-fast test-schedulers setup check docs results clean

tour: $(READY)
	$(BIN)/jostle tour

test: $(READY)
	$(BIN)/pytest -n auto --dist worksteal

test-fast: $(READY)
	$(BIN)/pytest -n auto --dist worksteal -m "not slow and not hostile and not figures"

test-schedulers: $(READY)
	command -v slurmctld >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge curl; }
	tests/journeys/schedulers/get-kube-scheduler build/kube-scheduler
	JOSTLE_SLURM=1 JOSTLE_KUBE_SCHEDULER=$(CURDIR)/build/kube-scheduler $(BIN)/pytest tests/journeys/schedulers

check: $(READY)
	$(BIN)/ruff check src tests studies benchmarks
	$(BIN)/ruff format --check src tests studies benchmarks
	$(BIN)/pyright
	$(BIN)/lint-imports

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

results: $(READY)
	$(BIN)/python -m studies.results

setup: $(READY)

# Rebuilt when what it is made from changes; otherwise a second run starts at once.
$(READY): pyproject.toml $(wildcard constraints/*.txt)
	@test -n "$(PYTHON)" || { echo "Jostle needs Python 3.11, 3.12 or 3.13: install one, or say make PYTHON=/path/to/python3" >&2; exit 2; }
	@echo "setting up $(VENV) with $(PYTHON)" >&2
	$(PYTHON) -m venv --clear $(VENV)
	@set -x; $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement constraints/shipped.txt --requirement constraints/tested.txt && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . && \
	$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

clean:
	rm -rf $(VENV)
