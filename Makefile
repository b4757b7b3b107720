# make demo    install everything and search the demo collection
# make test    install everything and run the quick tests (make test-all: the slow ones too); FLAGS=--native-bf16=yes
#              or =no: as on a CPU that computes in bfloat16, or on one that does not
# make test-precision    the tests of models on both kinds of CPU, and with PyTorch's plainest kernels
# make lint    style and types
# make regressions    published figures that can be checked here (collections from ../shared/data, or DATA=FOLDER)

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
DATA ?= ../shared/data
INSTALLED = $(VENV)/.installed

MODEL_TESTS = tests/test_precision.py $(addprefix tests/,encode evaluate explain index models parity pipeline regression \
	rerank search)

.PHONY: demo test test-all test-precision lint regressions clean

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet -c constraints.txt torch
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[demo,dev]'
	touch $@

demo: $(INSTALLED)
	$(RUN) -m pyserini_repbert.search --encoder repbert-demo --index demo --topics demo --output runs/demo.repbert.txt
	$(RUN) -m pyserini_repbert.evaluate --qrels demo runs/demo.repbert.txt
	$(RUN) -m pyserini_repbert.search --encoder repbert-demo --index demo \
		--query 'who got the first nobel prize in physics' \
		--query 'what is the main mineral in lithium batteries' \
		--query 'how many episodes are there in dragon ball z'

test: $(INSTALLED)
	$(RUN) -m pytest -m 'not slow' $(FLAGS)

test-all: $(INSTALLED)
	$(RUN) -m pytest $(FLAGS)

test-precision: $(INSTALLED)
	$(RUN) -m pytest -m 'not slow' --native-bf16=yes $(MODEL_TESTS)
	$(RUN) -m pytest -m 'not slow' --native-bf16=no $(MODEL_TESTS)
	ATEN_CPU_CAPABILITY=default $(RUN) -m pytest -m 'not slow' $(MODEL_TESTS)

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

regressions: $(INSTALLED)
	$(RUN) -m pyserini_repbert.regression regressions/*.yaml --data $(DATA) --jobs 2

clean:
	rm -rf $(VENV) runs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
