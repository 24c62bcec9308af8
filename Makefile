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

.PHONY: run test oldest prerelease fuzz mutants lint docs dist audit benchmarks-docs clean

run: $(VENV)/.installed
	$(BIN)/abex reproduce --quick

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# what depends most on other packages, on the oldest versions that may be installed; `make test` runs it on the newest
OLDEST_TESTS = kernels simulation/test_curves.py graphs/test_quantities.py support/test_intervals.py players/test_terms.py \
	lab/test_datasets_own.py support/test_showing.py

oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest -q -p no:cacheprovider $(OLDEST_TESTS:%=tests/%)

$(VENV)-oldest/.installed: pyproject.toml .ci/oldest.py
	$(PYTHON) -m venv $(VENV)-oldest
	$(PYTHON) .ci/oldest.py report store >$(VENV)-oldest/requirements.txt
	$(VENV)-oldest/bin/python -m pip install --quiet -r $(VENV)-oldest/requirements.txt pytest hypothesis ipykernel mpmath nbclient polars -e .
	touch $@

# the compiler that is to come; nothing here has to work with it yet
prerelease: $(VENV)/.installed-test
	.ci/prerelease $(BIN)/python $(VENV)-prerelease tests/kernels

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --cases $(CASES) --seed $(SEED) --table docs/reliability.md

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks examples README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md

mutants: $(VENV)/.installed-test
	$(BIN)/python -m tests.mutants --workers $(WORKERS) --report mutants.md

# the pages; NOTEBOOKS=off leaves out the outputs of the notebooks (`make test` runs them), NOTEBOOKS=cache runs what has changed
NOTEBOOKS ?= cache

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W --keep-going -D nb_execution_mode=$(NOTEBOOKS) -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

# wheel and source as they would be published, each installed with nothing else in an environment of its own and tried
dist: $(VENV)/.installed-dev
	.ci/dist $(BIN)/python $(VENV)-dist

# known weaknesses in what is installed; it asks a service on the network
audit: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python -m pip_audit --local --skip-editable

# measures again what the pages show: everything, or ONLY="steps graphs"; `python -m benchmarks.tables --list` names all
benchmarks-docs: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.tables $(ONLY)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "abex needs Python 3.11 or later: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e '.[report]'
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-dist dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache docs/_build
