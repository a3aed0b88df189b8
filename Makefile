# One target per job; CI calls the same ones. Everything lives in .venv and build/, nothing is installed into the system.

PYTHON ?= $(shell test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
VENV := .venv
# Room by room, in the order of tests/rooms.py.
PYTEST := $(VENV)/bin/python -m pytest -n auto --no-loadscope-reorder
PIP := $(VENV)/bin/python -m pip --quiet --disable-pip-version-check install --root-user-action=ignore

.PHONY: run test check lint native bench clean

run: $(VENV)/.run native
	$(VENV)/bin/simnode run --board h100 -- nvidia-smi

test: $(VENV)/.test native
	@$(VENV)/bin/python tests/consumers/fetch.py
	$(PYTEST)

check: lint native
	$(PYTEST) -q -m "not consumer"

lint: $(VENV)/.test
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

native: $(VENV)/.run
	@$(VENV)/bin/python native/build.py

bench: $(VENV)/.test native
	@$(VENV)/bin/python tests/consumers/fetch.py
	$(VENV)/bin/python -m bench

clean:
	rm -rf $(VENV) build dist src/simnode/_native .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench native -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.run: pyproject.toml hatch_build.py
	@sh tools/preflight.sh "$(PYTHON)"
	@echo "setting up $(VENV) and building the native half: half a minute, once"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@$(PIP) --editable '.[test,check]'
	@touch $@
