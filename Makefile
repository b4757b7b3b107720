# make demo    install everything and search the demo collection
# make test    install everything and run the quick tests (make test-all: the slow ones too)
# make lint    style and types
# make docs    the documentation as a site in build/site; a dead link or an undocumented public name is an error
# make test-docs    run every block of README and docs, and compare what it prints
# make regressions    published figures that can be checked here (collections from ../shared/data, or DATA=FOLDER)

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
DATA ?= ../shared/data
INSTALLED = $(VENV)/.installed
DOCS_INSTALLED = $(VENV)/.installed-docs

.PHONY: demo test test-all test-docs lint install-docs docs regressions clean

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet -c constraints.txt torch
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[demo,dev]'
	touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

demo: $(INSTALLED)
	$(RUN) -m pyserini_repbert.search --encoder repbert-demo --index demo --topics demo --output runs/demo.repbert.txt
	$(RUN) -m pyserini_repbert.evaluate --qrels demo runs/demo.repbert.txt
	$(RUN) -m pyserini_repbert.search --encoder repbert-demo --index demo \
		--query 'who got the first nobel prize in physics' \
		--query 'what is the main mineral in lithium batteries' \
		--query 'how many episodes are there in dragon ball z'

test: $(INSTALLED)
	$(RUN) -m pytest -m 'not slow'

test-all: $(INSTALLED)
	$(RUN) -m pytest

test-docs: $(INSTALLED)
	$(RUN) -m pytest tests/docs

install-docs: $(DOCS_INSTALLED)

docs: $(DOCS_INSTALLED)  # never with --quiet, which hides warnings from --strict
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

regressions: $(INSTALLED)
	$(RUN) -m pyserini_repbert.regression regressions/*.yaml --data $(DATA) --jobs 2

clean:
	rm -rf $(VENV) runs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
