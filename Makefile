# `make check` is what CI runs; see CONTRIBUTING.md.
.PHONY: check format lint types imports page site audit remote faults commands parts product test

check: lint types imports page site remote faults commands parts product test

# Six test runs, so that two cores are busy until the end. The first two wait for other processes
# most of the time: clusters and browsers; faults and real judges. Then whole commands and runs,
# the parts that compute, the product as a whole with its docs, and everything else.
REMOTE = tests/distributed tests/browser
FAULTS = tests/faults tests/real_judge
COMMANDS = tests/cli tests/reference tests/audit tests/evolve tests/studies
PARTS = tests/benchmarks tests/engines tests/grading tests/ranking tests/scoring tests/stats tests/store
PRODUCT = $(wildcard tests/test_*.py) tests/language tests/examples src

# A temporary folder for each run, removed if it passes: pytest clears what earlier runs left behind,
# and two runs that clear the same folder fail.
tests = folder=$$(mktemp -d) && PYTEST_DEBUG_TEMPROOT=$$folder python -m pytest $(1) && { rm -rf $$folder || true; }

format:
	ruff format .
	ruff check --fix .

lint:
	ruff format --check .
	ruff check .

types:
	mypy

imports:
	lint-imports

# The page is bundled ahead of time; the bundle must be what web/ makes.
page:
	@if command -v npm >/dev/null; then \
	  cd web && npm ci --silent && npm run --silent check; \
	else echo "npm is not here: the page's bundle was not checked against web/"; fi

# The documentation with the gallery's reports, into site/0.2/ and so on; a broken link or anchor is an
# error. Other versions in site/ stay as they are.
site:
	python docs/build_site.py site

# Known vulnerabilities of what is installed, where the registries of advisories can be reached.
audit:
	@found=$$(timeout 120 pip-audit --progress-spinner off --skip-editable 2>&1) \
	  && echo "dependency audit: nothing known" \
	  || case "$$found" in \
	    *"known vulnerabilit"*) echo "$$found"; exit 1;; \
	    *) echo "dependency audit: the registries cannot be reached, skipped";; \
	  esac

remote:
	@$(call tests,$(REMOTE))

faults:
	@$(call tests,$(FAULTS))

commands:
	@$(call tests,$(COMMANDS))

parts:
	@$(call tests,$(PARTS))

product:
	@$(call tests,$(PRODUCT))

test:
	@$(call tests,tests $(foreach path,$(REMOTE) $(FAULTS) $(COMMANDS) $(PARTS) $(PRODUCT),--ignore=$(path)))
