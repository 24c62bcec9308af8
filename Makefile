# Two commands do everything on a machine with Python 3.11+, git and make:
#   make run     installs into .venv and reproduces the paper's experiments at small scale
#   make test    installs into .venv and runs all tests
# and `make fuzz` throws 100,000 forged inputs at every reader (CASES=, SEED=).

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
WORKERS ?= 2
CASES ?= 100000
SEED ?= 1

OLDEST_NUMBA = 0.61.0

.PHONY: run test oldest fuzz mutants lint docs clean

run: $(VENV)/.installed
	$(BIN)/abex reproduce --quick

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# the boundary to the compiler on the oldest Numba that may be installed; `make test` runs it on the newest
oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest -q -p no:cacheprovider tests/test_kernels.py tests/test_kernels_cache.py tests/test_kernels_interfaces.py tests/test_kernels_records.py

$(VENV)-oldest/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet 'numba==$(OLDEST_NUMBA)' 'numpy==2.0.*' pytest -e .
	touch $@

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --cases $(CASES) --seed $(SEED) --table docs/reliability.md

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md

mutants: $(VENV)/.installed-test
	$(BIN)/python -m tests.mutants --workers $(WORKERS) --report mutants.md

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "abex needs Python 3.11 or later: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-oldest .pytest_cache .mypy_cache .ruff_cache .import_linter_cache docs/_build
