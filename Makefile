SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := torch,sklearn,tensorboard,dev
# Only the tests and the benchmarks need all frameworks.
MORE := frameworks
BACKENDS := $(VENV)/.ready-backends

# Everything that `make` runs keeps its state in this folder, and `make clean` removes it.
export TRAINLIB_HOME ?= $(CURDIR)/.trainlib
export PREFECT_HOME ?= $(TRAINLIB_HOME)/prefect

.PHONY: demo check test test-long chaos horovod chromium screenshots lint format bench ui lock clean help

demo: $(READY) ## Set up, then preprocess, train, select and register a digits model on 2 workers
	@mkdir -p $(PREFECT_HOME)
	@$(BIN)/trainlib demo

check: lint horovod ## The quick one: lint, unit tests, and one training through all layers
	@$(BIN)/python -m pytest tests/unit tests/integration/test_pipeline.py::test_the_demo_ends_with_a_registered_model

# Two files of tests at a time, each with servers of its own: most of a test is waiting for processes to start.
# The long ones come first (tests/order.py), so that all ends are reached at once.
test: chromium lint horovod ## Set up, then lint and run the whole test suite
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-long: horovod ## What a process holds after 200 trainings, 300 trials and 200,000 reports; SCALE=0.1 makes it a tenth
	@SCALE=$(or $(SCALE),1) $(BIN)/python -m pytest -s tests/long

# How many faults, and what they are drawn from: the clock, if no seed is given.
ROUNDS ?= 20
SEED ?=

chaos: horovod ## Let random faults happen to trainings, and account for what they cost: ROUNDS=200 SEED=1
	@$(BIN)/python -m tests.chaos --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

horovod: $(BACKENDS) ## Build Horovod for the installed torch and TensorFlow, once for each pair of versions
	@$(BIN)/python -m trainlib.horovod.build

chromium: $(READY) ## Install Debian's Chromium, for the tests in a browser, where there is none
	@$(BIN)/python -m tests.browser.chromium

screenshots: chromium ## Take the pictures in docs/images anew, with the tests in a browser
	@SCREENSHOTS=docs/images $(BIN)/python -m pytest tests/browser

lint: $(READY) ## Check style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: horovod ## Measure against the frameworks' own launchers and Ray Train, side by side
	@$(BIN)/python -m bench

ui: $(READY) ## Run the platform, with the Prefect and MLflow UIs, on what the demo recorded
	@mkdir -p $(PREFECT_HOME)
	@$(BIN)/trainlib up

lock: $(BACKENDS) ## Write the versions that are installed now into requirements.lock
	@{ head -n 1 requirements.lock; $(BIN)/pip freeze --all --exclude pip --exclude trainlib --exclude horovod | sed 's/+cpu$$//'; } > requirements.new
	@mv requirements.new requirements.lock

clean: ## Remove the environment, what the demo recorded, and caches
	rm -rf $(VENV) .trainlib build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Installs extras, and tells how far it is.
define install
$(BIN)/pip install --disable-pip-version-check -c requirements.lock -e '.[$(1)]' 2>&1 | tee $(VENV)/install.log \
	| awk '/^ *Collecting/ {n++; if (n % 20 == 0) {printf "  %d packages found\n", n; fflush()}} \
	       /^Installing collected/ {print "  installing"; fflush()} /^ERROR/ {print; fflush()}' \
	|| { tail -n 5 $(VENV)/install.log; exit 1; }
endef

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "trainlib needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up $(VENV): a few minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@$(call install,$(EXTRAS))
	@touch $@

$(BACKENDS): $(READY)
	@echo "Adding the other frameworks, and what Horovod is built with"
	@$(call install,$(MORE))
	@touch $@
