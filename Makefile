# The two commands are `make demo` and `make test`; README.md tells the rest.
# PYTHON= chooses the interpreter (3.11 to 3.13).
PYTHON ?= python3
FILE ?=
EXAMPLE ?=
SERVE ?= 1
SEEDS ?=
OPTIONS ?=
OUT ?= site
MINUTES ?= 10
PART ?= all
DATABASE ?=
PORT ?= 8000

PY := .venv/bin/python
# Tests wait for browsers, servers and clocks: workers are more than processors, for the slow ones twice as many.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
# Where nothing is cached, each of the many processes of a run compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo site serve test collected test-slow find-slow lint perf soak sbom audit lock test-image
.DEFAULT_GOAL := help

help:  ## list these targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

demo: .venv/run  ## a board of SWE-bench Verified (FILE=outcomes.csv: yours, with OPTIONS=--only=NAME and other options of `manage.py demo`; EXAMPLE=simulated), served; SERVE=0 only prints; PORT=8000
	@$(PY) manage.py demo $(if $(FILE),--file "$(FILE)") $(OPTIONS) $(if $(EXAMPLE),--example "$(EXAMPLE)") $(if $(filter 0,$(SERVE)),,--serve --port $(PORT))

site: .venv/run  ## FILE=results.csv: its board as a folder of web pages, site/ (OUT=folder); OPTIONS of `manage.py site`, such as --validate
	@$(PY) manage.py site "$(or $(FILE),$(error Which file? Type: make site FILE=results.csv))" --out "$(OUT)" $(OPTIONS) || { \
	  echo 'Options of this command stand in OPTIONS, for example: make site FILE=… OPTIONS="--percent"' >&2; exit 2; }

serve: .venv/run  ## serve what is stored, with the scheduler; Ctrl-C ends both; PORT=8000
	@$(PY) manage.py migrate --verbosity 0 && exec $(PY) manage.py serve --port $(PORT)

lint: .venv/dev  ## ruff, mypy and the import contracts
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) tools/words.py

test: .venv/dev  ## all tests of under half a second
	@$(MAKE) --no-print-directory -j 2 lint collected
	$(PY) -m pytest -n $$(( $(PROCESSORS) + 1 )) --dist worksteal -m "not slow"

# One reads and compiles the tests while mypy keeps one processor, before as many workers as there are do it all at once.
collected: .venv/dev
	@told=$$($(PY) -m pytest --collect-only -qq -m "not slow") || { echo "$$told"; exit 1; }

test-slow: .venv/dev  ## all other tests: crashes, crowds, simulations, whole walks; SEEDS=1 takes one parameter set of these
	$(PY) -m pytest -n $$(( 2 * $(PROCESSORS) )) --dist worksteal -m slow $(if $(SEEDS),--seeds $(SEEDS))

find-slow: .venv/dev  ## time all tests but those marked slow, and write tests/slow.txt: what `make test` leaves out
	$(PY) -m pytest -n $$(( $(PROCESSORS) + 1 )) --dist worksteal -m "not slow" -q --find-slow

test-image: .venv/dev  ## build the image without a daemon and walk through it as docs/deployment.md says; as root on a Debian
	$(PY) -m pytest -s tests/image/walk.py

perf: .venv/run  ## ratios against named rivals
	@for benchmark in perf/[a-z]*.py; do $(PY) -m perf.$$(basename $$benchmark .py) || exit 1; done

soak: .venv/dev  ## MINUTES=10 of mixed load, of faults, of fuzzing each reader; PART=load|faults|fuzz
	$(PY) -m tests.soak $(PART) $(MINUTES)

sbom: .venv/dev  ## the bill of materials of the service (CycloneDX): bandstand.cdx.json
	@$(PY) tools/sbom.py

audit: .venv/dev  ## known vulnerabilities of what is locked; DATABASE=folder of OSV's records; 2: could not be asked
	@$(PY) tools/audit.py $(if $(DATABASE),--database "$(DATABASE)")

lock: .venv/run  ## resolve the requirements anew
	sh tools/lock.sh

# A stamp holds the hash of the lock that was installed, so that a second run has nothing to do.
.venv/run: requirements.txt
	@sh tools/install.sh "$(PYTHON)" requirements.txt $@
.venv/dev: requirements-dev.txt requirements.txt
	@sh tools/install.sh "$(PYTHON)" requirements-dev.txt $@
