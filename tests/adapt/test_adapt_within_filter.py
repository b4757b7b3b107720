"""`adapt` in a collection within a filter: other documents and their judgments do not count."""

import json

import numpy as np
import pytest

from pyserini_repbert.adapt.judged_topics import select_judged
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.pipeline.opening import open_searcher
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query

N_DOCUMENTS = 40
ADAPT = (
    'adapt --index mine --topics topics.tsv --qrels qrels --quiet --output learnt --keep'.split()
)


@pytest.fixture
def folder(tiny_checkpoint, tmp_path, monkeypatch):
    """The working directory: a collection of d0 to d39, every second one even; a topic for each
    document, whose relevant documents are it and the next one.
    """
    monkeypatch.chdir(tmp_path)
    documents = []
    topics = []
    judgments = []
    for number in range(N_DOCUMENTS):
        part = 'odd' if number % 2 else 'even'
        text = f'the cat {number} sat on the mat. ' * 3
        documents.append({'id': f'd{number}', 'text': text, 'part': part})
        topics.append(f'{number}\tcat {number}\n')
        judgments.append(f'{number} 0 d{number} 2\n{number} 0 d{number + 1} 1\n')
    settings = {'encoder': str(tiny_checkpoint()), 'sparse': 'none'}
    with Collection.open('mine', passage_tokens=10, overlap=3, **settings) as collection:
        collection.sync(documents)
    (tmp_path / 'topics.tsv').write_text(''.join(topics))
    (tmp_path / 'qrels').write_text(''.join(judgments))
    return tmp_path


@pytest.fixture
def searcher(folder):
    """The open search of the collection."""
    searcher = open_searcher(PipelineSpec(index='mine'))
    yield searcher
    searcher.close()


def test_only_documents_within_are_there(searcher):
    (dense,) = searcher.within(DocumentFilter('part:odd')).leaves()
    index = dense.document_rows()
    assert index.holds(['d0', 'd1', 'gone', 'd39']).tolist() == [False, True, False, True]
    assert index.counted({'d0': 2, 'd1': 1, 'gone': 1}) == {'d1': 1}
    assert index.a_docid() == 'd1'
    rows = index.usable_rows()
    numbers = np.unique(dense.vectors.documents[rows])
    assert searcher.generation.docids(numbers) == [f'd{n}' for n in range(1, N_DOCUMENTS, 2)]
    assert len(index.rows(['d0', 'd1'])) == len(index.rows(['d1'])) > 1
    query = dense.encode(['cat'])[0]
    assert index.best_rows(query, ['d0', 'd1']).tolist() == index.best_rows(query, ['d1']).tolist()


def test_without_a_filter_all_judgments_count(searcher):
    index = searcher.dense.document_rows()
    assert index.counted({'d0': 2, 'gone': 1}) == {'d0': 2, 'gone': 1}
    assert index.a_docid() == 'd0'


def test_grades_of_other_documents_do_not_count(searcher):
    """Of each topic's two neighbours, one is odd."""
    (dense,) = searcher.within(DocumentFilter('part:odd')).leaves()
    topics = [Query(str(number), f'cat {number}') for number in range(N_DOCUMENTS)]
    qrels = {str(n): {f'd{n}': 2, f'd{n + 1}': 1} for n in range(N_DOCUMENTS)}
    judged = select_judged(dense, dense.document_rows(), topics, qrels)
    assert len(judged) == N_DOCUMENTS
    assert judged[0].grades == {'d1': 1}
    assert judged[1].grades == {'d1': 2}


def test_the_command_learns_within_a_filter(folder, capsys):
    only = [f'{number} 0 d{number} 1\n' for number in range(N_DOCUMENTS)]
    (folder / 'qrels').write_text(''.join(only))
    assert run(main, [*ADAPT, '--filter', 'part:even']) == 0
    estimate = json.loads((folder / 'learnt/adapted.json').read_text())['estimate']
    assert estimate['topics'] == N_DOCUMENTS / 2
    record = json.loads((folder / 'learnt.record.json').read_text())
    assert record['settings']['filter'] == 'part:even'
    searched = ['--adapted', 'learnt', '--filter', 'part:even', '--topics', 'topics.tsv']
    assert run(main, ['search', '--quiet', *searched, '--output', 'run.txt']) == 0
    found = (folder / 'run.txt').read_text().split('\n')[:-1]
    assert {int(line.split()[2][1:]) % 2 for line in found} == {0}


def test_refused(folder, capsys):
    assert run(main, [*ADAPT, '--filter', 'part:none']) == 2
    printed = capsys.readouterr().err
    assert 'at least 20 are needed' in printed and printed.count('\n') == 1
    assert run(main, [*ADAPT, '--language', 'de']) == 2
    printed = capsys.readouterr().err
    assert "language 'de' is for Lucene indexes" in printed and printed.count('\n') == 1
    assert not (folder / 'learnt').exists()
    assert run(main, ['adapt', '--index', 'mine', '--filter', 'part:odd']) == 2
    assert '--filter is for --topics, --qrels and --output' in capsys.readouterr().err
