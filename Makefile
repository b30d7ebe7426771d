# `make check` is what CI runs; see CONTRIBUTING.md.
.PHONY: check format lint types imports page audit apart commands test

check: lint types imports page apart commands test

# Three test runs of similar length, so that two cores are busy until the end: real clusters,
# browsers, servers and faults; whole commands and runs; everything else.
APART = tests/distributed tests/browser tests/faults tests/real_judge
COMMANDS = tests/cli tests/reference tests/audit tests/evolve tests/studies

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

# Known vulnerabilities of what is installed, where the registries of advisories can be reached.
audit:
	@found=$$(timeout 120 pip-audit --progress-spinner off --skip-editable 2>&1) \
	  && echo "dependency audit: nothing known" \
	  || case "$$found" in \
	    *"known vulnerabilit"*) echo "$$found"; exit 1;; \
	    *) echo "dependency audit: the registries cannot be reached, skipped";; \
	  esac

apart:
	python -m pytest $(APART)

commands:
	python -m pytest $(COMMANDS)

test:
	python -m pytest $(APART:%=--ignore=%) $(COMMANDS:%=--ignore=%)
