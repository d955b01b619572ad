# make demo, make test, make lint: each first makes the virtual environment and installs what it needs, once.
# A file in .venv stands for each extra that is installed; it is redone when setup.cfg or pyproject.toml changes.
#
#   make test PYTHON=python3.12        another interpreter (3.11 or newer) for a new .venv
#   make test PYTEST_ARGS="-k adam"    any further arguments for pytest
#   make faults COUNT=100              so many of each kind; FAULTS_ARGS="--kinds kill" for any other argument
#   make bench BENCH_ARGS=--dry        any further arguments for every benchmark
#   make test-all PYTEST_ARGS=…        the same for the long tier
#   make test-gpu CUDA=cuda13          cuda12 or cuda13: the CuPy to install first, unless .venv has one

VENV        := .venv
BIN         := $(VENV)/bin
PYTEST_ARGS :=
FAULTS_ARGS :=
BENCH_ARGS  :=
# What make site ends with; Sphinx has checked the links of each page before.
SITE_TESTS  := tests/site tests/test_docs.py

.PHONY: help demo test test-all test-gpu faults bench lessons site lint clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help:
	@echo "make demo        train a Transformer on dates in five languages, then translate unseen ones (about 5 minutes)"
	@echo "make test        the tests (about 5 minutes on two cores)"
	@echo "make test-all    the long tier, which make test leaves out: training, exhaustive checks, samples of the campaigns"
	@echo "make test-gpu    the tests that need a GPU: CUDA=cuda12 or CUDA=cuda13 installs CuPy first"
	@echo "make faults      COUNT=1000 kills, and as many damaged runs: is anything lost? (about an hour)"
	@echo "make bench       training, memory, decoding, import and ranks against PyTorch (about an hour)"
	@echo "make lessons     the lessons as executed notebooks, in build/lessons, and without answers in build/handouts (about a minute)"
	@echo "make site        all of the documentation as a site in docs/_site, and check each page (about 3 minutes)"
	@echo "make lint        ruff and mypy"
	@echo "make clean       remove .venv, caches and build products; what training wrote to runs/ stays"

demo: $(VENV)/extra-data $(VENV)/extra-plot
	$(BIN)/python -m transformer demo

# A process for each core and one more, up to four (tests/conftest.py), and in each of them one thread for the matrix
# products. Each begins with a stretch of the tests of its own: what the tests of a file share, such as a browser, is
# made once, and not in every process.
test: $(VENV)/extra-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist worksteal $(PYTEST_ARGS)

test-all: $(VENV)/extra-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "slow and not gpu" --numprocesses auto --maxprocesses 4 --dist worksteal $(PYTEST_ARGS)

test-gpu: $(VENV)/extra-test $(if $(CUDA),$(VENV)/extra-$(CUDA))
	$(BIN)/python -m pytest -q -m gpu $(PYTEST_ARGS)

faults: COUNT := 1000
faults: $(VENV)/extra-test
	$(BIN)/python -m tests.faults --count $(COUNT) $(FAULTS_ARGS)

bench: $(VENV)/extra-bench $(VENV)/extra-mpi $(VENV)/extra-plot
	$(BIN)/python benchmarks/training.py $(BENCH_ARGS)
	$(BIN)/python benchmarks/decoding.py $(BENCH_ARGS)
	$(BIN)/python benchmarks/import_time.py $(BENCH_ARGS)
	$(BIN)/python benchmarks/distributed.py $(BENCH_ARGS)

# The test extra has what the site needs.
site: $(VENV)/extra-test
	$(BIN)/python -m docs.site.build
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not slow and not gpu" --numprocesses auto --maxprocesses 2 --dist worksteal $(SITE_TESTS)

# What has not changed since is not executed again.
lessons: $(VENV)/extra-docs $(VENV)/extra-plot $(VENV)/extra-draw
	$(BIN)/python -m docs.site.lessons

# mypy reads the types of the installed packages: with the test extra there, its verdict is the same everywhere.
lint: $(VENV)/extra-test $(VENV)/extra-lint
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

clean:
	rm -rf $(VENV) build dist docs/_site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- The virtual environment ---------------------------------------------------------------------------------

# Installs the project in place (editable), with the extra that the target's name says: .venv/extra-test.
$(VENV)/extra-%: setup.cfg pyproject.toml | $(VENV)/created
	@echo "Installing minigrad-transformer[$*] into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# The interpreter is PYTHON, or the first of these that is new enough and can make a virtual environment.
CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python)
PROBE := import importlib.util as u, sys; \
         sys.version_info >= (3, 11) or sys.exit("Python %d.%d is too old, 3.11 or newer is needed" % sys.version_info[:2]); \
         u.find_spec("ensurepip") or sys.exit("it lacks venv; on Debian and Ubuntu: apt install python3-venv")

$(VENV)/created:
	@chosen=; refused=; \
	for candidate in $(CANDIDATES); do \
	    if reason=$$("$$candidate" -c '$(PROBE)' 2>&1); then chosen=$$candidate; break; fi; \
	    refused="$$refused\n  $$candidate: $$reason"; \
	done; \
	if [ -z "$$chosen" ]; then \
	    printf "No Python to make $(VENV) with:$$refused\nInstall one, or name it: make PYTHON=/path/to/python3\n" >&2; \
	    exit 1; \
	fi; \
	"$$chosen" -m venv $(VENV) && echo "Made $(VENV) with $$($(BIN)/python --version)" && touch $@
