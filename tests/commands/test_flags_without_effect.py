"""A flag that would have no effect is refused, by name, with the flag that it is for."""

import importlib

import pytest

from pyserini_repbert.commands.command import EXIT_ERROR, run

RERANK = '--run a.txt --topics t.tsv --corpus demo --reranker monobert-demo@2 --output o.txt'
REFUSED = f"""
search --index demo --query x --rerank monobert-demo@2 --cost c.json: --cost is for --topics
search --index demo --query x --rerank monobert-demo@2 --pairs p.npz: --pairs is for --topics
rerank {RERANK} --samples=3 --k0 1: --k0 is for --from-pairs
serve --config c.yaml --ann: --ann is for --index
serve --config c.yaml --encoder repbert-demo: --encoder is for --index
explain --model epic-demo --query x --passage y --corpus demo: --index and --corpus are for --docid
"""


@pytest.mark.parametrize('line', REFUSED.strip().splitlines())
def test_it_is_refused(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said, message = line.split(': ')
    name, *arguments = said.split()
    assert run(importlib.import_module(f'pyserini_repbert.commands.{name}').main, arguments) == EXIT_ERROR
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())
