# `make check` is what CI runs; see CONTRIBUTING.md.
.PHONY: check format lint types imports page ray test

check: lint types imports page ray test

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

# A cluster of two nodes: mostly waiting, so that it can run beside the other tests.
ray:
	python -m pytest tests/distributed

test:
	python -m pytest --ignore=tests/distributed
