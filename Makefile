# `make check` is what CI runs; see CONTRIBUTING.md.
.PHONY: check format lint types imports page apart test

check: lint types imports page apart test

# Real clusters, browsers, servers and faults: about half of the time, beside the others.
APART = tests/distributed tests/browser tests/faults tests/real_judge

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

apart:
	python -m pytest $(APART)

test:
	python -m pytest $(APART:%=--ignore=%)
