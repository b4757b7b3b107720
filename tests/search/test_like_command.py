"""`search --like`: what it prints, and what it refuses in one line."""

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.search import main
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.search import DenseSearcher


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    encode_corpus(open_corpus(corpus_file(9)), encoder, tmp_path / 'b', store_text=True)
    return tmp_path / 'b'


def test_documents_in_place_of_questions(bundle, capsys):
    flags = ['--index', str(bundle), '--like', 'd3', '--like', 'd1', '--hits', '2', '--quiet']
    assert run(main, flags) == 0
    lines = capsys.readouterr().out.splitlines()
    searcher = DenseSearcher(bundle)
    expected = []
    for docid in ('d3', 'd1'):
        expected.append(f'? like {docid}')
        for rank, hit in enumerate(searcher.more_like(docid, 2), 1):
            expected.append(f'{rank:4d}. {hit.docid}  ({hit.score:.4f})')
    assert [line for line in lines if line and not line.startswith('      ')] == expected


def test_what_is_refused(bundle, cross_encoder_folder, capsys):
    index = ['--index', str(bundle), '--like']
    mono = str(cross_encoder_folder('monobert'))
    for flags, said in (
        (['d99'], "error: there is no document 'd99' in "),
        (['d3', '--rerank', f'{mono}@3'], 'error: a reranker reads a question, and --like is'),
        (['d3', '--query', 'cat'], 'not allowed with argument --like'),
    ):
        assert run(main, [*index, *flags, '--quiet']) == 2
        error = capsys.readouterr().err
        assert said in error
        assert 'Traceback' not in error
