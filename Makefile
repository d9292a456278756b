# Everything runs in .venv, which these targets make themselves. Paths are relative, so a folder name may hold spaces.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml $(shell find foundry cli -type f -not -path '*/__pycache__/*' -not -path 'foundry/_lib/*' -not -path 'foundry/cli/*')

# The library, its parts, the simulator, and a capture with its restore: an emulator takes seconds to reserve what a GPU's memory needs.
AARCH64_TESTS := tests/native/test_hook_library.py tests/native/test_hook_units.py tests/native/test_sim.py tests/native/test_capi.py \
    tests/native/test_embed.py 'tests/native/test_keyed.py::test_each_way_to_run_a_pass[c]' 'tests/native/test_keyed.py::test_dedicated_execs[c]' \
    'tests/native/test_keyed.py::test_parity[c]' tests/native/test_restore.py::test_what_a_program_captures_is_restored_in_the_next

.PHONY: help demo test test-gpu soak-gpu lint format sanitize aarch64 tsan fuzz bench bench-gpu clean

help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

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

test: .venv/installed ## Run every test that needs no GPU, several at once; what fails then is asked again, alone
	$(BIN)/pytest -m 'not gpu' -n auto --maxprocesses 4 --dist loadfile $(TESTS) || $(BIN)/pytest -m 'not gpu' --last-failed --last-failed-no-failures none $(TESTS)

test-gpu: ## Run the GPU tests with the real driver and the torch of $(PYTHON)
	$(PYTHON) -m pytest -m gpu tests/gpu

soak-gpu: ## Capture and restore 50 times and replay 10,000 times on the GPU: nothing may grow
	$(PYTHON) tests/gpu/run_all.py build/soak driver_answers soak_runs soak_cycles

lint: .venv/linters ## Check style, types and house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files 'foundry/native/*.c' 'foundry/native/*.cpp' 'foundry/native/*.h' 'tests/native/*.c' 'tests/native/*.cpp' 'tests/native/*.h' 'tests/cases/programs/*' 'tests/engines/tinyllm/*.c' 'tests/engines/tinyllm/*.h' 'tests/engines/tinyllm/*.cu' 'tests/gpu/clients/*.c' 'tests/gpu/clients/*.h' 'tests/gpu/clients/*.cu' | xargs $(BIN)/clang-format --dry-run -Werror

format: .venv/linters ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files 'foundry/native/*.c' 'foundry/native/*.cpp' 'foundry/native/*.h' 'tests/native/*.c' 'tests/native/*.cpp' 'tests/native/*.h' 'tests/cases/programs/*' 'tests/engines/tinyllm/*.c' 'tests/engines/tinyllm/*.h' 'tests/engines/tinyllm/*.cu' 'tests/gpu/clients/*.c' 'tests/gpu/clients/*.h' 'tests/gpu/clients/*.cu' | xargs $(BIN)/clang-format -i

.venv/builders: .venv/installed
	$(BIN)/python -m pip install --quiet 'cmake>=3.20' ninja
	@touch $@

sanitize: .venv/builders ## Build the native part and the C engine with ASan and UBSan and run their tests
	FOUNDRY_SANITIZE=1 $(BIN)/pytest tests/native tests/engines/test_tinyllm*.py

aarch64: .venv/builders ## Build the native part for aarch64 and run its tests under an emulator (needs a cross compiler and qemu-user-static)
	$(BIN)/cmake -S foundry/native -B build/aarch64 -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" -DPython3_EXECUTABLE="$(CURDIR)/$(BIN)/python" \
	    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DFOUNDRY_WERROR=ON
	$(BIN)/cmake --build build/aarch64
	$(BIN)/cmake --install build/aarch64 --prefix build/aarch64/installed
	CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ FOUNDRY_LIBRARY_DIR="$(CURDIR)/build/aarch64/installed/_lib" \
	    FOUNDRY_TEST_EMULATOR="qemu-aarch64-static /usr/aarch64-linux-gnu" $(BIN)/pytest -m 'not gpu' $(AARCH64_TESTS)

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
