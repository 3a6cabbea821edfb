# The commands of this project. `make help` lists them.
#
# Nothing needs to be installed but Python 3.11 (with its venv module) and make. What else a test
# needs (Java and Maven for the Kafka broker, the shared data) is never installed from here: such
# tests skip and say how to enable them. .ci/run installs it and turns those skips into failures.

PYTHON ?= $(shell command -v python3.11 || echo python3)
ARGS ?=
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -q
# Compiled files are kept, whatever the shell says: pytest rewrites what it reads, which takes each
# of its workers seconds, and many tests start processes.
export PYTHONDONTWRITEBYTECODE :=
# Of each test, the cases that take at most so many seconds (tests/seconds.py).
FAST := $(PYTEST) -n 0 --at-most=0.04 -m "not kafka and not postgres and not docs and not faults and not wheel and not model"
# What is above the metrics; the other half is all the rest.
ABOVE := $(addprefix tests/,consumers evaluation experiments interface present)
# The doctests of the two packages, but for what needs Spark or Beam.
DOCTESTS := --doctest-modules streammetrics consumers --ignore=streammetrics/engines/spark \
  --ignore=streammetrics/engines/beam.py

.DEFAULT_GOAL := help
.PHONY: help setup check static fast-tests test test-docs test-faults test-engines test-cluster test-wheel model chaos peers engines linters generated docs notebooks site screenshots atlas demo off-policy bench bench-against coverage mutants

help:  ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: .venv/.dev  ## create .venv and install the development dependencies

check: .venv/.dev  ## ruff, ruff format --check, mypy and the fast tests
	@$(MAKE) --no-print-directory -j 3 --output-sync=target static fast-above fast-below

static: .venv/.dev  ## only ruff, ruff format --check and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fast-tests: .venv/.dev  ## only the fast tests; ARGS=--durations=30
	@$(MAKE) --no-print-directory -j 2 --output-sync=target fast-above fast-below

# Two halves that take as long as each other, each in one process: workers would each import every test,
# and hand over every result. pytest exits with 5 where ARGS chooses no test of a half.
.PHONY: fast-above fast-below
fast-above: .venv/.dev
	$(FAST) $(ABOVE) $(ARGS) || [ $$? -eq 5 ]

fast-below: .venv/.dev
	$(FAST) tests $(ABOVE:%=--ignore=%) $(ARGS) || [ $$? -eq 5 ]

test: .venv/.dev  ## tests and doctests, but for those below and what takes longest (all: ARGS=--at-most=inf); a skip says why, and how to enable the test
	$(PYTEST) -n 4 --at-most=1 -m "not docs and not faults and not wheel and not model" $(DOCTESTS) tests $(ARGS)

test-docs: .venv/.dev  ## run the code of the site's pages, the notebooks and the newcomers' scripts, and build the site
	$(PYTEST) -n 3 -m docs tests/newcomer tests/test_site.py tests/test_notebooks.py $(ARGS)

test-faults: .venv/.dev  ## tests that kill, stall and cut off the broker, the stores and workers
	$(PYTEST) -n 3 -m faults tests/consumers

test-engines: .venv/.dev  ## tests of Spark, Beam and the recipes for other engines (downloads 2 GB)
	$(MAKE) test-spark test-beam test-recipes

test-cluster: .cache/spark/.made  ## tests that kill or slow down an executor of a two-host Spark cluster
	$(call ENGINE_TEST,spark) -m cluster

test-wheel: .venv/.dev  ## install the wheel, and run README, laws and commands on each Python of this machine (downloads 100 MB a Python)
	$(PYTEST) -n0 -m wheel tests/test_wheel.py
	$(BIN)/python -m tests.pythons

model: .venv/.dev  ## go through every state of the model of exactly-once (docs/reliability.md); needs Spin and gcc
	$(PYTEST) -n 2 -m model tests/model $(ARGS)

chaos: .venv/.dev  ## kill workers, broker and stores for 10 minutes, then compare the results; ARGS=--help
	$(BIN)/python -m tests.chaos $(ARGS)

peers: .cache/torch/.made .cache/ranx/.made .cache/list-peers/.made .cache/obp/.made .cache/ddsketch/.made .cache/uplift-peers/.made .cache/evidently/.made  ## install the libraries that tests compare with (7 GB)

engines: .cache/spark/.made .cache/beam/.made .cache/recipes/.made  ## install what test-engines needs (2 GB)

linters: .cache/linters/.made  ## install what checks workflows, compose file, chart and Dockerfile (400 MB; two of them need Go)
	@command -v go >/dev/null || echo "no Go, so no actionlint and no Helm: install Go, or these two" >&2
	@! command -v go >/dev/null || { set -ex; export GOBIN="$(CURDIR)/.cache/linters/bin"; \
	  go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; \
	  go install helm.sh/helm/v3/cmd/helm@v3.22.0; }

generated: .venv/.dev  ## write the generated parts of the docs and the entries of new metrics, measures and config keys
	$(BIN)/python docs/new_metrics.py
	$(BIN)/python -m docs.metrics_page
	$(BIN)/python -m docs.usual_names
	$(BIN)/python -m docs.config_table
	$(BIN)/python -m docs.http_page
	$(BIN)/python -m benchmarks.page

docs: generated  ## the same, then build the site
	@$(MAKE) --no-print-directory site

notebooks: .venv/.dev  ## run the notebooks of examples/, and write their outputs and pictures
	$(BIN)/python -m docs.notebooks

site: .cache/site/.made  ## only build the site, in strict mode, into .cache/site/pages
	NO_MKDOCS_2_WARNING=1 .cache/site/bin/python -m mkdocs build --strict --quiet $(ARGS)

screenshots: .venv/.dev  ## take pictures of the page in three sizes and two themes; ARGS=--help
	$(BIN)/python -m tests.screenshots $(ARGS)

atlas: .venv/.dev $(patsubst %,.cache/%/.made,atlas rectools ranx torch obp uplift-peers)  ## ask other libraries for each definition, and write the atlas; nightly: ARGS=--check (6 GB)
	$(BIN)/python -m docs.atlas $(ARGS)

demo: .venv/.serve  ## simulate three A/B tests, count them, print the results and serve the live page; ARGS=--once, --join, --exposures, --help
	$(BIN)/streammetrics demo $(ARGS)

off-policy: .cache/obp/.made  ## print and draw what each log of the Open Bandit sample says of the other policy
	$(BIN)/python docs/off_policy_picture.py .cache/obp/lib/python3*/site-packages/obp/dataset/obd

bench: .cache/bench/.made .cache/ranx/.made  ## compare the speed with peer libraries; ARGS=--quick, --json FILE, --help
	.cache/bench/bin/python -m benchmarks $(ARGS)

bench-against: .venv/.dev  ## compare the speed of updates with that of the last tag, or of REV=HEAD~1; ARGS=--help
	$(BIN)/python -m benchmarks.against $(REV) $(ARGS)

coverage: .venv/.dev  ## measure how often intervals and tests are wrong (75 minutes); ARGS=--help
	$(BIN)/python -m benchmarks.coverage $(ARGS)

mutants: .venv/.dev  ## list which tests fail for which code mutation (docs/testing.md); ARGS=--help
	nice $(BIN)/python -m tests.mutation $(ARGS)

# The environment is brought up to date whenever pyproject.toml changes. Two marks, because the
# demo needs a fifth of what development needs.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 is required: install it, or pass its path: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "Python's venv module is required: on Debian, install python3.11-venv" >&2; exit 1; }

.venv/.serve: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[serve]'
	@touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch .venv/.serve $@

# What the benchmarks have beside what they measure, apart from the tests.
.cache/bench/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/bench
	.cache/bench/bin/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@touch $@

# The environments below are large, and few of their modules are ever imported: pip compiles none.
NOT_COMPILED := pip install -q --disable-pip-version-check --no-compile

# ranx, beside which a benchmark and some tests run, in an environment of its own.
.cache/ranx/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/ranx
	.cache/ranx/bin/python -m $(NOT_COMPILED) -e '.[ranx]'
	@touch $@

# obp, the Open Bandit Pipeline with its sample of a log, likewise, but without torch, which its
# estimators do not need.
.cache/obp/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/obp
	.cache/obp/bin/python -m $(NOT_COMPILED) --no-deps obp==0.4.1
	.cache/obp/bin/python -m $(NOT_COMPILED) scikit-learn pandas
	@touch $@

# DDSketch, beside which some tests run, likewise; it needs nothing of ours.
.cache/ddsketch/.made: Makefile | .venv/bin/python
	@$(PYTHON) -m venv .cache/ddsketch
	.cache/ddsketch/bin/python -m $(NOT_COMPILED) 'ddsketch>=3,<4'
	@touch $@

# ndeval and imbalanced-learn, likewise.
.cache/list-peers/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/list-peers
	.cache/list-peers/bin/python -m $(NOT_COMPILED) -e '.[list-peers]'
	@touch $@

# scikit-uplift and causalml, likewise.
.cache/uplift-peers/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/uplift-peers
	.cache/uplift-peers/bin/python -m $(NOT_COMPILED) -e '.[uplift-peers]'
	@touch $@

# evidently, beside which a test of drift runs, likewise.
.cache/evidently/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/evidently
	.cache/evidently/bin/python -m $(NOT_COMPILED) -e '.[evidently]'
	@touch $@

# The libraries of the atlas that no other environment has, likewise, and in their newest versions:
# the page says which. RecTools needs an older numpy.
.cache/atlas/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/atlas
	.cache/atlas/bin/python -m $(NOT_COMPILED) --upgrade catboost fairlearn ir-measures lifelines \
	  lightgbm pycm pytrec_eval-terrier recommenders river scikit-learn scipy statsmodels xgboost-cpu
	@touch $@

.cache/rectools/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/rectools
	.cache/rectools/bin/python -m $(NOT_COMPILED) --upgrade rectools
	@touch $@

# The site and what its pages run, likewise.
.cache/site/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/site
	.cache/site/bin/python -m $(NOT_COMPILED) -e '.[docs]'
	@touch $@

# What tests/test_deployment.py checks with, likewise.
.cache/linters/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/linters
	.cache/linters/bin/python -m $(NOT_COMPILED) -e '.[linters]'
	@touch $@

# torchmetrics and torcheval, likewise, but only when asked for: 3 GB to download, 5 GB on disk.
.cache/torch/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/torch
	.cache/torch/bin/python -m $(NOT_COMPILED) -e '.[torch-peers]'
	@touch $@

# Spark and Beam, likewise, and apart: they pin different versions of pyarrow. What is required of
# the machine (see tests/requirements.py) is required here too, and the engine with it.
ENGINE_TEST = STREAMMETRICS_REQUIRE="$$STREAMMETRICS_REQUIRE,$(1)" \
	.cache/$(1)/bin/python -m pytest -q --doctest-modules streammetrics/engines/$(1)$(2) \
	tests/engines/$(1)

.PHONY: test-spark test-beam test-recipes
test-spark: .cache/spark/.made
	$(call ENGINE_TEST,spark) -m "not cluster" $(ARGS)

test-beam: .cache/beam/.made
	$(call ENGINE_TEST,beam,.py) $(ARGS)

test-recipes: .venv/.dev .cache/beam/.made .cache/recipes/.made
	STREAMMETRICS_REQUIRE="$$STREAMMETRICS_REQUIRE,beam,recipes" \
	  $(PYTEST) -n0 tests/engines/test_recipes.py

.cache/spark/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/spark
	.cache/spark/bin/python -m $(NOT_COMPILED) -e '.[spark-connect,engine-tests]'
	@touch $@

.cache/beam/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/beam
	.cache/beam/bin/python -m $(NOT_COMPILED) -e '.[beam,engine-tests]'
	@touch $@

# DuckDB, Dask and Ray, which docs/engines.md shows with the library as it is.
.cache/recipes/.made: pyproject.toml | .venv/bin/python
	@$(PYTHON) -m venv .cache/recipes
	.cache/recipes/bin/python -m $(NOT_COMPILED) -e '.[recipes]'
	@touch $@
