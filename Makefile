# Everything runs in .venv, which these targets make themselves. Paths are relative, so a folder name may hold spaces.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml $(shell find foundry cli -type f -not -path '*/__pycache__/*' -not -path 'foundry/_lib/*' -not -path 'foundry/cli/*')

.PHONY: help demo test test-gpu soak-gpu lint format sanitize tsan fuzz bench bench-gpu clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "foundry needs Python 3.10 or newer; found: $$($(PYTHON) --version)" >&2; exit 1; }
	$(PYTHON) -m venv .venv || { echo "hint: on Debian and Ubuntu, apt install python3-venv" >&2; rm -rf .venv; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

.venv/installed: .venv/ready $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[test]'
	@touch $@

.venv/linters: .venv/installed
	$(BIN)/python -m pip install --quiet '.[lint]'
	@touch $@

demo: .venv/installed ## Capture and restore a small server on the simulator, and show what was saved
	@$(BIN)/python tests/engines/demo.py

test: .venv/installed ## Run every test that needs no GPU
	$(BIN)/pytest -m 'not gpu' $(TESTS)

test-gpu: ## Run the GPU tests with the real driver and the torch of $(PYTHON)
	$(PYTHON) -m pytest -m gpu tests/gpu

soak-gpu: ## Capture and restore 50 times and replay 10,000 times on the GPU: nothing may grow
	$(PYTHON) tests/gpu/run_all.py build/soak driver_answers soak_runs soak_cycles

lint: .venv/linters ## Check style, types and house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files 'foundry/native/*.cpp' 'foundry/native/*.h' 'tests/native/*.c' 'tests/native/*.cpp' 'tests/native/*.h' 'tests/cases/programs/*' 'tests/engines/tinyllm/*.c' 'tests/engines/tinyllm/*.h' 'tests/engines/tinyllm/*.cu' | xargs $(BIN)/clang-format --dry-run -Werror

format: .venv/linters ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files 'foundry/native/*.cpp' 'foundry/native/*.h' 'tests/native/*.c' 'tests/native/*.cpp' 'tests/native/*.h' 'tests/cases/programs/*' 'tests/engines/tinyllm/*.c' 'tests/engines/tinyllm/*.h' 'tests/engines/tinyllm/*.cu' | xargs $(BIN)/clang-format -i

.venv/builders: .venv/installed
	$(BIN)/python -m pip install --quiet 'cmake>=3.20' ninja
	@touch $@

sanitize: .venv/builders ## Build the native part with ASan and UBSan and run the native tests on it
	FOUNDRY_SANITIZE=1 $(BIN)/pytest tests/native

tsan: .venv/builders ## Build the hook with ThreadSanitizer and run the thread and fork storms on it
	$(BIN)/python tests/races/run.py --build build/tsan

fuzz: .venv/installed ## Fuzz both readers of archives for half an hour
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python tests/fuzz/run.py

bench: .venv/installed ## Measure what needs no GPU and compare it with what is kept; BENCH holds options
	$(BIN)/python -m benchmarks $(BENCH)

bench-gpu: ## The same with the GPU, and the torch and foundry of $(PYTHON)
	$(PYTHON) -m benchmarks --gpu $(BENCH)

clean: ## Remove everything that was built
	rm -rf .venv build dist foundry/_lib
