"""No command writes over what it reads, or over another of its outputs; a folder is refused
before the work.
"""

import importlib
import os
import threading

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.fusion import main as fusion

RUN = 'q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n'
OTHER = 'q1 Q0 d2 1 2.0 y\nq2 Q0 d3 2 1.0 y\n'
FILES = {
    'a.txt': RUN,
    'b.txt': OTHER,
    'topics.tsv': 'q1\tcat\n',
    'qrels.txt': 'q1 0 d1 1\n',
    'scores.npz': 'PK',
}
RERANK = '--run a.txt --topics topics.tsv --corpus demo --reranker monobert-demo@2'


REFUSED = f"""
search --index demo --topics topics.tsv --output topics.tsv => --output topics.tsv is an input, too: give another output
search --index demo --topics topics.tsv --output o.txt --provenance p.txt => .tsv or .jsonl was expected
rerank {RERANK} --output topics.tsv => --output topics.tsv is an input
rerank {RERANK} --output link.txt => --output link.txt is an input
rerank {RERANK} --output o.txt --cost o.txt => --output and --cost
encode --corpus . --encoder repbert-demo --output new => --output new is inside the corpus folder .
rerank --from-pairs scores.npz --output scores.npz => --output scores.npz is an input
fusion --runs a.txt b.txt --output a.txt => --output a.txt is an input
evaluate --qrels qrels.txt a.txt --per-query qrels.txt => --per-query qrels.txt is an input
evaluate recall-depth --runs a.txt b.txt --qrels qrels.txt --csv qrels.txt => --csv qrels.txt is an input
evaluate tradeoff scores.npz --qrels qrels.txt --csv scores.npz => --csv scores.npz is an input
evaluate join-folds --folds folds.json --runs a.txt b.txt --output b.txt => --output b.txt is an input
explain --index index --query x --docid d1 --output index => output index is a folder
explain --index index --query x --docid d1 --output a.txt => a.txt exists
search --index demo --topics topics.tsv --output b.txt => b.txt exists: choose another output, or overwrite it (--overwrite)
search --index demo --topics topics.tsv --output o.txt --rerank monobert-demo@2 --cost b.txt => b.txt exists
rerank {RERANK} --output o.txt --pairs b.txt => b.txt exists
fusion --runs a.txt b.txt --output o.txt --provenance topics.tsv => topics.tsv exists
fusion tune --runs a.txt b.txt --qrels qrels.txt --output topics.tsv => topics.tsv exists
evaluate tradeoff scores.npz --qrels qrels.txt --csv topics.tsv => topics.tsv exists
evaluate join-folds --folds folds.json --runs a.txt b.txt --output topics.tsv => topics.tsv exists
evaluate split-folds --folds folds.json --topics topics.tsv --output index => index exists already: overwrite it
evaluate split-folds --folds folds.json --topics topics.tsv --output index --overwrite => index is not a folder of folds
adapt --index demo --topics topics.tsv --qrels qrels.txt --output index => index exists already: overwrite it
adapt --index demo --topics topics.tsv --qrels qrels.txt --output index --overwrite => index is not an adapted search
index lucene --corpus a.txt --output index => index exists already: overwrite it
index lucene --corpus a.txt --output index --overwrite => index is not a Lucene index
"""  # noqa: E501


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / 'link.txt').symlink_to('a.txt')
    (tmp_path / 'index').mkdir()
    return tmp_path


@pytest.mark.parametrize('line', REFUSED.strip().splitlines())
def test_one_line_and_nothing_lost(folder, capsys, line):
    said, message = line.split(' => ')
    name, *arguments = said.split()
    main = importlib.import_module(f'pyserini_repbert.commands.{name}').main
    assert command.run(main, arguments) == command.EXIT_ERROR
    assert message in capsys.readouterr().err
    assert {name: (folder / name).read_text() for name in FILES} == FILES
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, 'index', 'link.txt'])


@pytest.mark.skipif(not hasattr(os, 'mkfifo'), reason='this system has no named pipes')
def test_runs_from_a_pipe_are_read_once(folder, capsys):
    os.mkfifo(folder / 'pipe')
    writer = threading.Thread(target=(folder / 'pipe').write_text, args=(RUN,), daemon=True)
    writer.start()
    assert command.run(fusion, '--runs pipe b.txt --output o.txt'.split()) == 0
    writer.join(10)
    assert not writer.is_alive()
    assert command.run(fusion, '--runs a.txt b.txt --output expected.txt --tag o'.split()) == 0
    assert (folder / 'o.txt').read_text() == (folder / 'expected.txt').read_text()
    assert (
        command.run(fusion, '--runs pipe b.txt --method interpolation --output o2.txt'.split())
        == command.EXIT_ERROR
    )
    assert 'is a pipe' in capsys.readouterr().err
