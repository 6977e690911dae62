# Everything a contributor runs. `make` alone lists it.

PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
TRAIN := .venv/.stamp-train
DEV := .venv/.stamp-dev
DOCS := .venv/.stamp-docs

# One thread per test worker: the workers share the cores, and threads that fight for them are slower than none.
# A worker that has nothing left takes tests from another.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup test check lint types demo docs docs-serve lens catalog bench format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV) ## Create .venv with everything that development needs (PYTHON=python3.12 picks another Python)

test: lint types ## Lint, types and every test: what has to pass before a change goes in
	$(PYTEST)

check: lint types ## The quick loop: lint, types and the tests that are not slow, stopping at the first failure
	$(PYTEST) -x -q -m "not slow"

lint: $(DEV) ## Style and formatting, without changing a file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV) ## mypy, strict, over src
	$(BIN)/mypy

# Where everything is installed, the demo asks for nothing less.
demo: $(if $(wildcard $(DEV)),$(DEV),$(TRAIN)) ## See it work; installs what it needs and no more
	$(BIN)/likewise demo

docs: $(DOCS) ## Build the pages into site/
	$(BIN)/python -m mkdocs build --strict

docs-serve: $(DOCS) ## Serve the pages on this machine, rebuilt as they change
	$(BIN)/python -m mkdocs serve

lens: $(DEV) ## Print the losses of the lens page, and make the pictures of docs/lens.md
	$(BIN)/python -c 'from likewise.analysis import write_scripts; print(write_scripts())'
	OMP_NUM_THREADS=1 $(BIN)/python tools/lens_figures.py

bench: $(DEV) ## Measure the losses: speed and memory
	$(BIN)/python -m benchmarks.losses.measure

catalog: $(DEV) ## Write the table that `likewise losses`, `datasets` and `trunks` print
	$(BIN)/python tools/write_catalog.py

format: $(DEV) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove caches and built files; .venv stays
	rm -rf site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name .venv -prune -o -name .git -prune -o -type d -name __pycache__ -exec rm -rf {} +

# .venv/bin/python links to a file of its own age, so the stamps only ask that it exists.
$(BIN)/python:
	$(PYTHON) -m venv .venv

$(TRAIN): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[train]'
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(DOCS): $(DEV)
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@
