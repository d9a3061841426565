# Everything a person or CI does with the project. Each target does only what changed since its last run.
#   make demo    environment, build, then the main job: failing models go in, minimal verified repros and reports come out
#   make test    environment, build, all tests
#   make test-quick    a part of every folder's tests, some programs, a planted fault; from a built tree
#   make test-plain    the folders that need no libtorch, built and tested
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BUILD := build/cxx
STAMPS := build/stamps
JOBS ?= $(shell nproc)
# How many files are compiled as one: a new build tree gets batches, an old one stays as it is. `make BATCH=0` for daily work on many files.
BATCH ?= $(if $(wildcard $(BUILD)/CMakeCache.txt),,12)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
SOURCES := $(shell find src python CMakeLists.txt pyproject.toml -type f 2>/dev/null)
TEST_SOURCES := $(shell find tests -name '*.cc' -o -name '*.h' 2>/dev/null)

.PHONY: build test test-quick test-plain test-cxx test-python test-asan test-op-db test-op-db-raises test-fuzz test-differential test-mutated test-native test-debugger demo demo-core bench lint format stubs house wheel sdist docs clean help
help:
	@sed -n 's/^# *\(make .*\)/\1/p' Makefile; echo "make build | wheel | sdist | docs | bench | lint | format | stubs | house | test-asan | test-op-db | test-op-db-raises | test-aot | test-fuzz | test-differential | test-mutated | test-native | test-debugger | clean"

build: $(STAMPS)/installed

$(STAMPS)/venv: requirements.txt
	@mkdir -p $(STAMPS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cutaway: Python 3.11 or newer is needed; try: make PYTHON=python3.11"; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check torch==2.13.0
	$(PY) -m pip install -q --disable-pip-version-check -r requirements.txt
	@touch $@

$(STAMPS)/headers: tools/fetch_headers
	@mkdir -p $(STAMPS)
	tools/fetch_headers
	@touch $@

$(STAMPS)/installed: $(STAMPS)/venv $(STAMPS)/headers $(SOURCES)
	@echo "building (a clean build takes a few minutes; the log is build/build.log)"
	@$(PY) -m pip install -v --disable-pip-version-check --no-build-isolation --no-deps $(if $(BATCH),-C cmake.define.CUTAWAY_BATCH=$(BATCH)) . > build/build.log 2>&1 \
	  || { grep -E "error|Error" build/build.log | head -20; tail -30 build/build.log; echo "cutaway: the build failed; the whole log is build/build.log"; exit 1; }
	@touch $@

$(STAMPS)/test-programs: $(STAMPS)/installed $(TEST_SOURCES)
	@cmake -B $(BUILD) -DCUTAWAY_TESTS=ON > build/tests.log 2>&1 && cmake --build $(BUILD) --target cutaway_core_tests cutaway_torch_tests train_without_python >> build/tests.log 2>&1 \
	  || { grep -E "error" build/tests.log | head -20; tail -30 build/tests.log; exit 1; }
	@touch $@

test: lint-layers test-cxx test-python
test-cxx: $(STAMPS)/test-programs
	$(BUILD)/cutaway_core_tests
	$(BUILD)/cutaway_torch_tests
	$(BUILD)/train_without_python
test-python: $(STAMPS)/installed
	$(PY) -m pytest -q -n $(JOBS) --dist loadfile tests

# What tests/quick.txt names.
test-quick: $(STAMPS)/installed
	$(PY) -m pytest -q -n $(JOBS) --dist worksteal --quick

# Neither optimised nor installed; each folder compiled as one file.
test-plain: $(STAMPS)/venv $(STAMPS)/headers
	@cmake -S . -B build/plain -G Ninja -DCUTAWAY_TORCH=OFF -DCUTAWAY_TESTS=ON -DCUTAWAY_BATCH=100 -DCMAKE_BUILD_TYPE=Quick -DCMAKE_CXX_FLAGS_QUICK=-O0 > build/plain.log 2>&1 \
	  && cmake --build build/plain >> build/plain.log 2>&1 || { grep -E "error" build/plain.log | head -20; tail -30 build/plain.log; exit 1; }
	build/plain/cutaway_core_tests

# The folders without libtorch, and all parsers, under AddressSanitizer and UndefinedBehaviorSanitizer.
test-asan: $(STAMPS)/venv $(STAMPS)/headers
	cmake -S . -B build/asan -G Ninja -DCUTAWAY_TORCH=OFF -DCUTAWAY_TESTS=ON -DCUTAWAY_SANITIZE=ON
	cmake --build build/asan
	build/asan/cutaway_core_tests

# Every operator of torch's operator database; up to 15 minutes.
test-op-db: build
	$(PY) -m tests.operators.op_db --full --jobs $(JOBS)

# The same operators on valid and invalid arguments, compiled, inside a try block and outside of one.
test-op-db-raises: build
	$(PY) -m tests.operators.op_db --raises --full --jobs $(JOBS)

# 20,000 random programs, eager against compiled; about 20 minutes on one core. What fails is minimised into tests/random/found.
test-differential: build
	$(PY) -m tests.random.campaign --count 20000 --jobs $(JOBS) --keep tests/random/found

# 20,000 programs changed at random places: odd constants, dunders, class bodies, arguments. No signal, no error of our own, no difference.
test-mutated: build
	$(PY) -m tests.random.mutate --count 20000 --jobs $(JOBS) --keep tests/random/found

# 10,000 random programs of operators, with gradients, and all programs of tests/programs through the backend native.
test-native: build
	$(PY) -m tests.random.native_graphs --count 10000 --jobs $(JOBS)
	$(PY) -m tests.programs.native_programs --jobs $(JOBS)

# 120 planted failures of backends through `cutaway triage`, each judged (about 20 minutes), and programs that Inductor computes otherwise than eager;
# planted operators whose node analyze has to name (about 15 minutes); and a reduction that is killed 50 times and goes on.
test-debugger: build
	$(PY) -m tests.flows.debugger.table --jobs $(JOBS)
	$(PY) -m tests.flows.debugger.inductor_table --jobs $(JOBS)
	$(PY) -m tests.flows.debugger.analyze_table
	$(PY) -m pytest -q tests/flows/test_minify.py -k killed --kills 50

# Ahead-of-time autograd: every operator that has a backward (about 6 minutes), and every program of the aliasing tests.
test-aot: build
	$(PY) -m tests.operators.op_db --aot --full --jobs $(JOBS)
	$(PY) -m tests.programs.test_aot_aliasing

# Each parser for FUZZ_SECONDS under libFuzzer (needs clang).
FUZZ_SECONDS ?= 600
test-fuzz: $(STAMPS)/venv $(STAMPS)/headers
	cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCUTAWAY_TORCH=OFF -DCUTAWAY_FUZZ=ON -DCUTAWAY_SANITIZE=ON
	cmake --build build/fuzz
	@for t in build/fuzz/*_fuzz; do n=$$(basename $$t _fuzz); mkdir -p build/fuzz/corpus/$$n; \
	  $$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 build/fuzz/corpus/$$n tests/fuzz/$$n || exit 1; done

demo: build
	@examples/demo.sh
# Three scripts with small real models, each cut down to a minimal repro: a compile error, wrong numbers, a segfault.
# The core alone: import, save, run, perturb one operator, compare.
demo-core: build
	@$(PY) examples/demo.py

bench: build
	$(PY) bench/run_all.py

lint-layers: $(STAMPS)/venv
	@$(PY) tools/check_layers.py
# Also what the tree looks like: longest files and functions, functions that nothing calls, repeated passages. Only include cycles, two helpers of one name in a folder, and an untrue drawing are errors.
lint: lint-layers $(STAMPS)/installed
	$(VENV)/bin/ruff check python tests bench tools examples
	$(VENV)/bin/ruff format --check python tests bench tools examples
	$(VENV)/bin/mypy
	$(PY) tools/write_stubs.py --check
	@$(PY) tools/draw_house.py --check
	@$(PY) tools/lint_cxx.py --clang-tidy
	$(VENV)/bin/codespell --skip '*_test.cc,*_fuzz.cc' -L nd,statics,coo README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs src python
format:
	$(VENV)/bin/ruff format python tests bench tools examples

# The drawing of the folders in ARCHITECTURE.md, from the #include lines.
house: $(STAMPS)/venv
	$(PY) tools/draw_house.py

# The stubs of the native module, python/cutaway/_native/*.pyi, from what is installed.
stubs: $(STAMPS)/installed
	$(PY) tools/write_stubs.py

# A wheel for the torch in place, in dist/: built, named after that torch, and tried in an empty environment. The build tree is left as `make build` wants it.
wheel: $(STAMPS)/installed
	$(PY) tools/make_wheel.py; status=$$?; cmake -B $(BUILD) -DCUTAWAY_WHEEL=OFF > build/wheel.log 2>&1; exit $$status

# The sources as one archive, in dist/; the same bytes from the same commit.
sdist: $(STAMPS)/venv
	$(PY) tools/make_sdist.py

# The site, build/site/index.html: pages of docs/, and what commands and docstrings say of themselves. A broken link is an error. MkDocs has an environment of its own.
$(STAMPS)/docs-venv: requirements-docs.txt
	@mkdir -p $(STAMPS)
	test -x build/docs-venv/bin/python || $(PYTHON) -m venv build/docs-venv
	build/docs-venv/bin/python -m pip install -q --disable-pip-version-check -r requirements-docs.txt
	@touch $@
docs: $(STAMPS)/installed $(STAMPS)/docs-venv
	$(PY) tools/write_site.py
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict > build/docs.log 2>&1 || { grep -E "WARNING|ERROR|Aborted" build/docs.log; exit 1; }   # not -q: a warning that is not told is not counted
	@echo "build/site/index.html"

clean:
	rm -rf build
