# make demo, make test: everything else happens by itself. DISTRO=kilted make test: another ROS 2.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The sourced ROS 2 if there is one, Jazzy otherwise.
DISTRO ?= $(or $(ROS_DISTRO),jazzy)
export DISTRO
PYTHON ?= python3
# ROS tests have a domain each, so that they may run side by side.
PYTEST_ARGS ?= -n 3 --dist loadfile
PYTHON_SOURCES := harness_eval launch setup test setup.py $(wildcard benchmarks examples)

ENTER := . setup/env.sh &&

.PHONY: help build demo test bench lint format clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

build:  ## set up ROS 2, the Python environment and the messages (in .envs/)
	@$(PYTHON) setup/prepare.py --distro $(DISTRO)

demo: build  ## watch a simulated robot cell being judged
	@$(ENTER) python -m harness_eval.demo.run $(DEMO_ARGS)

test: build  ## run all tests
	@$(ENTER) HARNESS_EVAL_REQUIRE_ROS=1 python -m pytest $(PYTEST_ARGS)

bench: build  ## measure against what people write today
	@$(ENTER) python -m benchmarks $(BENCH_ARGS)

lint: build  ## ruff, mypy --strict, ament's flake8 and pep257; all of them, whatever they find
	@$(ENTER) status=0; \
	ruff check $(PYTHON_SOURCES) || status=1; \
	ruff format --check $(PYTHON_SOURCES) || status=1; \
	python -m mypy || status=1; \
	python setup/check_with_ament.py $(PYTHON_SOURCES) || status=1; \
	exit $$status

format: build  ## sort imports and lay out the code
	@$(ENTER) ruff check --quiet --select I --fix $(PYTHON_SOURCES); ruff format $(PYTHON_SOURCES)

clean:  ## remove everything that was set up or made here
	rm -rf .envs build install log demo-output bench-output *.egg-info
