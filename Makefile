# Begin with `make demo` and `make test`. `make help` lists all targets.
VENV    := .venv
PYTHON  ?= python3
BIN     := $(VENV)/bin
# The command alone, and all that tests, checks and documentation need (1.2 GB).
SMALL   := $(VENV)/.small
READY   := $(VENV)/.ready
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Many tests wait for something: a small machine runs two at a time on every core.
WORKERS ?= $(shell nproc | awk '{ print $$1 < 8 ? 2 * $$1 : $$1 }')
# Tests that a second version of Python runs without: whole clusters, long live runs,
# the C library, every figure and session of the pages, and what simulated numbers are
# compared with: the exact oracle, theory, long studies of papers
# (tests/parity/test_golden_bits.py compares the results of both versions).
ONE_VERSION := oracle theory schedulers/test_scheduler_conformance \
    $(addprefix e2e/,mount test_dask test_names test_reproduce test_resume \
        test_sessions test_slurm) \
    $(addprefix e2e/live/test_,archive bench_advice bench_delta crash demo faults fidelity \
        learn moosefs page_latency programs_more prometheus serve_faults serve_nodes \
        shim_busy shim_cache shim_calls shim_pacing shim_sanitizers shim_turns \
        slurm_control staging stress web) \
    $(addprefix parity/test_,best_next_event buffers_oracle oracle striped_oracle) \
    $(addprefix unit/bench/,slo/test_schedulers test_moosefs) \
    $(addprefix unit/papers/,beyond/test_drains beyond/test_frontier p1/apex/test_study \
        p4/test_delta p5/test_depth p5/test_experiment p5/test_issue_rates) \
    unit/workloads/apex/test_workload
# How long `make soak` lasts, such as 60s for a try.
SOAK ?= 1h
# Compiled tests and modules are kept, for all workers and for the next run.
unexport PYTHONDONTWRITEBYTECODE
C_FILES  = $(shell find src tests -name '*.[ch]')

.PHONY: help native mount packages demo demo-live figures test test-all test-newest test-quick soak check \
    format docs wheel dist test-install share bench clean

help:           ## list the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

demo: native  ## compare all policies on the default workload, with both figures
	mkdir -p out
	$(BIN)/penstock compare --plot out/compare.svg
	$(BIN)/penstock compare examples/three.json \
	    --policy fair-share --policy fcfs --policy greedy-yield --policy set-10 \
	    --timeline out/timeline.svg
	@echo "figures: out/compare.svg out/timeline.svg"

demo-live: mount  ## two real writers on a limited mount under live control
	PENSTOCK=$(BIN)/penstock sh scripts/demo-live.sh

figures: $(SMALL)  ## every figure of the papers at smoke scale, with an index page
	$(BIN)/penstock reproduce all --scale smoke -o out

native: $(VENV)/.cmake  ## compile the C parts (live control, mounts) into this checkout
	@PATH="$(abspath $(BIN)):$$PATH" sh scripts/build-native.sh

mount: $(VENV)/.cmake  ## what `penstock mount` needs: as root also Debian packages of FUSE
	@sh scripts/install-packages.sh gcc fuse3 libfuse3-dev
	@$(MAKE) --no-print-directory native

packages: $(READY) mount  ## what some tests need: as root also Slurm, MooseFS, MPI ...
	@sh scripts/install-packages.sh

test: packages  ## all tests but the slow ones
	$(BIN)/python scripts/run_tests.py -n $(WORKERS) --dist worksteal -m "not slow"

test-all: packages  ## all tests, full-size statistics included
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-newest:    ## the tests that a version of Python can change, on the newest one here
	@python=$$(sh scripts/newest-python.sh); \
	if [ -z "$$python" ]; then echo "skipped: no Python newer than 3.11 is installed"; \
	else $(MAKE) PYTHON="$$python" VENV=.venv-newest test-quick; fi

test-quick: $(VENV)/.tests mount  ## all but the slowest tests
	$(BIN)/python scripts/run_tests.py -n $(WORKERS) --dist worksteal -m "not slow" \
	    $(foreach name,$(ONE_VERSION),'--ignore-glob=tests/$(name)*')

soak: packages  ## an hour of troubles (SOAK=60s: a try), with a drawing in out/soak
	$(BIN)/python benchmarks/soak.py --duration $(SOAK) -o out/soak

wheel: $(VENV)/.wheel  ## build the sdist and the wheels (x86-64, aarch64) into dist/
	@sh scripts/build-wheels.sh $(BIN)/python

dist: wheel     ## also a deb and an rpm (packaging/)
	@sh scripts/install-packages.sh rpm
	@sh scripts/build-packages.sh $(BIN)/python

test-install: dist  ## install dist/ in clean Debian roots (as root) and use it there
	@sh scripts/install-packages.sh mmdebstrap qemu-user-static libc6-arm64-cross
	@sh scripts/test-install.sh $(BIN)/python

share: $(SMALL)  ## manual pages and completion scripts, for packages, in build/share
	@sh scripts/write-share.sh $(BIN)/penstock build/share

check: $(READY) docs test-install  ## lint, types, documentation and what is installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/mypy

format: $(READY)  ## put the code into the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(C_FILES)

docs: $(READY)  ## build the documentation; warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

bench: $(READY)  ## speed as ratios to SimPy, SimGrid and a time-stepped method
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/placement.py
	$(BIN)/python benchmarks/qos.py
	$(BIN)/python benchmarks/start.py

clean:          ## remove what was built
	rm -rf $(VENV) .venv-newest out build dist docs/_build docs/_generated \
	    src/penstock/native/built src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

$(SMALL): pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) -e '.[sim,plots]'
	touch $@

$(VENV)/.cmake: $(SMALL)
	$(PIP) 'cmake>=3.20'
	touch $@

$(VENV)/.wheel: $(SMALL)
	$(PIP) build wheel ziglang
	touch $@

$(VENV)/.tests: $(SMALL)
	$(PIP) -e '.[test]'
	touch $@

$(READY): $(SMALL)
	$(PIP) -e '.[test,check,docs,bench,dask]'
	touch $@

$(VENV)/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "penstock needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV) || { echo "no venv module: apt-get install python3-venv" >&2; exit 1; }
