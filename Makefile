# make demo    install everything and search the demo collection
# make test    install everything and run the quick tests, two at a time or JOBS=1; FLAGS=--native-bf16=yes or =no: as on a CPU
#              that computes in bfloat16, or on one that does not
# make test-random    the quick tests in random order, with other examples of property tests; SEED=NUMBER repeats an order
# make test-slow    the slow tests that have no target of their own; they take a share of the kill points, bits and seeds that
#              the quick tests leave, with FLAGS=--exhaustive all of them
# make test-all    quick tests, slow tests and the pages of test-docs in one run, long ones first
# make demo-cache    the demo's indexes in build/demo-cache; tests use them again with FLAGS='--demo-cache=build/demo-cache'
# make test-precision    the tests of models on both kinds of CPU, with PyTorch's plainest kernels, and test-avx2
# make test-avx2    the tests of models with oneDNN's kernels for a CPU without AVX-512: they add up in another order
# make install-pytorch    an environment with PyTorch alone, which `make install` begins with
# make test-pyserini2    the tests that Pyserini and Java are part of, and the demo, with Pyserini 2.x on Python 3.12; without
#              the slow tests that a version of Pyserini has no part in
# make test-web    the search page in Chromium, which it does not install (apt install chromium)
# make test-interop    what plugs us into other projects, with their packages, in an environment of its own, and
#              schemathesis on the HTTP API; without the slow tests: .venv-interop/bin/python -m pytest tests/interop
# make test-ray    the tests on a Ray cluster of two nodes on this machine, in an environment of its own
# make lint    style, types, and that imports run one way, without circles
# make docs    the documentation as a site in build/site; a dead link or an undocumented public name is an error
# make test-docs    run every block of README and docs, and compare what it prints
# make rehearsal    every regression that lacks its input, from download to score on stand-ins of it; fails where one that
#              regressions/rehearsed.json claims does not run. FLAGS=--write makes that record anew; FLAGS=--if-changed
#              leaves out a rehearsal of what has not changed since the commit of that record
# make regressions    published figures that can be checked here (collections from ../shared/data, or DATA=FOLDER)

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
# Python compiles what is imported, which is a small part of what an environment has
PIP_INSTALL = -m pip install --quiet --no-compile -c constraints.txt
INSTALL = $(RUN) $(PIP_INSTALL)
DATA ?= ../shared/data
DEMO_CACHE = build/demo-cache
JOBS ?= 2
SEED ?= $(shell date +%s)
# Each worker has a core: threads of one would wait for those of the others
WORKERS = OMP_NUM_THREADS=1 $(RUN) -m pytest -n $(JOBS) --dist worksteal
INSTALLED = $(VENV)/.installed
PYTORCH_INSTALLED = $(VENV)/.installed-pytorch
DOCS_INSTALLED = $(VENV)/.installed-docs
WEB_INSTALLED = $(VENV)/.installed-web

PYTHON2 ?= python3.12
VENV2 ?= .venv-pyserini2

VENV_INTEROP ?= .venv-interop
INTEROP_INSTALLED = $(VENV_INTEROP)/.installed-interop

VENV_RAY ?= .venv-ray
RAY_INSTALLED = $(VENV_RAY)/.installed-ray

# What learns from scores is among them: a fit may amplify the last digits of a sum
MODEL_TESTS = $(addprefix tests/,test_precision.py test_precision_here.py adapt collection encode evaluate explain \
	extensions/confidence extensions/off_topic index models names parity pipeline regression rerank search)

# Slow tests with a target of their own: test-interop, test-ray, test-web, rehearsal
ELSEWHERE = $(addprefix --ignore tests/,interop pipeline/ray serve/test_fuzz.py web) \
	--deselect tests/rehearsal/test_rehearsal.py::test_models_and_collections_from_download_to_score

# What Java is part of outside tests/lucene, without kills. The files are named, since collecting all tests takes 37 seconds
# of a core
JVM_TESTS = $(shell grep -rl 'pytest.mark.jvm' tests --include='test_*.py' | grep -vE '^tests/(attack|interop|lucene|web)/')
# How rankings are fused has no part of Pyserini; one test of it takes a minute
FUSED_ALREADY = --deselect tests/collection/test_hybrid_collections.py::test_equals_the_fusion_of_whole_rankings
# Slow ones that another Pyserini may change; kill points, notebooks, the examples of help and stand-ins for regressions are not
SLOW_JVM_TESTS = $(addprefix tests/serve/,test_index_types.py \
	test_collections.py::test_both_rankings_are_fused_as_the_collection_does)

.PHONY: demo demo-cache test test-random test-all test-slow test-docs test-precision test-avx2 test-lucene test-pyserini2 \
	test-interop test-ray test-web install install-docs install-web install-pytorch install-pyserini2 install-interop install-ray lint \
	docs regressions rehearsal clean

install: $(INSTALLED)

install-pytorch: $(PYTORCH_INSTALLED)

$(PYTORCH_INSTALLED): constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(INSTALL) torch
	touch $@

$(INSTALLED): $(PYTORCH_INSTALLED) setup.cfg pyproject.toml constraints.txt
	$(INSTALL) -e '.[demo,dev]'
	touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	$(INSTALL) -e '.[docs]'
	touch $@

$(WEB_INSTALLED): $(INSTALLED)
	$(INSTALL) -e '.[web]'
	touch $@

demo: $(INSTALLED)
	$(RUN) -m pyserini_repbert.search --encoder repbert-demo --index demo --topics demo --output runs/demo.repbert.txt \
		--overwrite
	$(RUN) -m pyserini_repbert.evaluate --qrels demo runs/demo.repbert.txt
	$(RUN) -m pyserini_repbert.search --encoder repbert-demo --index demo \
		--query 'who got the first nobel prize in physics' \
		--query 'what is the main mineral in lithium batteries' \
		--query 'how many episodes are there in dragon ball z'

demo-cache: $(INSTALLED)
	for encoder in repbert-demo minilm; do \
		PYSERINI_REPBERT_CACHE=$(DEMO_CACHE) $(RUN) -m pyserini_repbert.search --encoder $$encoder --index demo --sparse bm25 \
			--query 'what is the main mineral in lithium batteries' --hits 1 || exit; \
	done

test: $(INSTALLED)
	$(WORKERS) -m 'not slow' $(FLAGS)

test-random: $(INSTALLED)
	$(WORKERS) -m 'not slow' --random-order-seed=$(SEED) --hypothesis-profile='other examples' $(FLAGS)

test-all: $(INSTALLED)
	$(WORKERS) -rs $(ELSEWHERE) $(FLAGS)

test-slow: $(INSTALLED)
	$(WORKERS) -m 'slow and not docs' -rs $(ELSEWHERE) $(FLAGS)

test-avx2: $(INSTALLED)
	ONEDNN_MAX_CPU_ISA=AVX2 $(WORKERS) -m 'not slow' $(MODEL_TESTS)

test-precision: test-avx2
	$(RUN) -m pytest -m 'not slow' --native-bf16=yes $(MODEL_TESTS)
	$(RUN) -m pytest -m 'not slow' --native-bf16=no $(MODEL_TESTS)
	ATEN_CPU_CAPABILITY=default $(RUN) -m pytest -m 'not slow' $(MODEL_TESTS)

test-lucene: $(INSTALLED)
	$(RUN) -m pytest -rs tests/lucene tests/pipeline/test_without_network.py $(SLOW_JVM_TESTS)
	$(RUN) -m pytest -rs -m 'jvm and not slow' $(JVM_TESTS) $(FUSED_ALREADY)

install-web: $(WEB_INSTALLED)

test-web: $(WEB_INSTALLED)
	$(RUN) -m pytest -rs tests/web

install-pyserini2:
	$(MAKE) install PYTHON=$(PYTHON2) VENV=$(VENV2)

test-pyserini2: install-pyserini2
	$(MAKE) test-lucene demo VENV=$(VENV2)

install-interop: $(INTEROP_INSTALLED)

install-ray: $(RAY_INSTALLED)

$(INTEROP_INSTALLED): EXTRA = interop
$(RAY_INSTALLED): EXTRA = ray

$(INTEROP_INSTALLED) $(RAY_INSTALLED): setup.cfg pyproject.toml constraints.txt
	$(MAKE) install VENV=$(@D)
	$(@D)/bin/python $(PIP_INSTALL) -e '.[$(EXTRA)]'
	touch $@

test-interop: install-interop
	$(VENV_INTEROP)/bin/python -m pytest -m 'not slow' -rs tests/interop tests/extensions/neighbours/test_adaptive_as_others.py
	$(VENV_INTEROP)/bin/python -m pytest -rs tests/serve/test_fuzz.py

test-ray: install-ray
	$(VENV_RAY)/bin/python -m pytest -rs tests/pipeline/ray

test-docs: $(INSTALLED)
	$(WORKERS) tests/docs $(FLAGS)

install-docs: $(DOCS_INSTALLED)

docs: $(DOCS_INSTALLED)  # never with --quiet, which hides warnings from --strict
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports --no-logo

regressions: $(INSTALLED)
	$(RUN) tests/regressions.py regressions/*.yaml --data $(DATA)

rehearsal: $(INSTALLED)
	$(RUN) tests/rehearse.py --data $(DATA) $(FLAGS)

clean:
	rm -rf $(VENV) $(VENV2) $(VENV_INTEROP) $(VENV_RAY) runs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
