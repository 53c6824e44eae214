# Two commands do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One thread: processes that run side by side fight over the cores, and small models gain nothing by more.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1

# Each process takes files that lie together, so that what tests of one file share is made once.
# What is compiled is kept, also where the surroundings say otherwise: tests start several processes.
PYTEST := $(ONE_THREAD) PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist worksteal

.PHONY: demo test test-all check advisories clean

demo: $(VENV)/.installed
	@mkdir -p demo && rm -rf demo/audit
	@$(ONE_THREAD) $(BIN)/attlas explain --html demo/explanation.html \
	  "The acting is superb, but the plot is boring and far too long."
	@$(ONE_THREAD) $(BIN)/attlas audit --quick --data reviews --out demo/audit
	@echo 'Next: $(BIN)/attlas explain "your own sentence" · $(BIN)/attlas --help'

test: check
	scripts/browser
	$(PYTEST) -m "not slow"

test-all: check advisories
	scripts/browser
	$(PYTEST)

check: $(VENV)/.installed-dev
	VENV=$(abspath $(VENV)) scripts/check

# Known vulnerabilities of what is installed; skipped, with a word, where the service is out of reach.
advisories: $(VENV)/.installed-dev
	$(BIN)/python scripts/advisories.py

$(VENV)/.created:
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@scripts/quietly "Installing Attlas, torch and transformers" \
	  sh -c "$(INSTALL) torch && $(INSTALL) --editable ."
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@scripts/quietly "Installing what the tests need" $(INSTALL) --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) node_modules demo build dist
