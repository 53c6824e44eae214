# Two commands do everything on a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Processes run side by side: one thread each, or they fight over the cores.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1

.PHONY: demo test test-all check clean

demo: $(VENV)/.installed
	@mkdir -p demo
	$(BIN)/attlas explain --method gradient_attention --html demo/explanation.html \
	  "not a great film, but I could not look away"
	$(BIN)/attlas audit --quick --out demo/audit
	@echo "Open demo/explanation.html and demo/audit/report.html in a browser."

test: check
	scripts/browser
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: check
	scripts/browser
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2

check: $(VENV)/.installed-dev
	VENV=$(abspath $(VENV)) scripts/check

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(INSTALL) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo build dist
