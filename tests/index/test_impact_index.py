"""A Lucene index of EPIC's impacts ranks as the exhaustive search of the same quantised vectors."""

import json

import numpy as np
import pytest
from folders import change_model

from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.impact_index import LEVELS, build_impact_index, impacts, vocabulary_of
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from pyserini_repbert.systems.impact_searcher import QUERY_UNIT, EpicImpactSearcher

QUERIES = ['the old fish in the sea', 'moon', 'cat dog ? big ##s', '']


@pytest.fixture
def bundle(tiny_epic, corpus_file, tmp_path):
    encoder = EpicEncoder(tiny_epic())
    encode_corpus(
        open_corpus(corpus_file(60)), encoder, tmp_path / 'vectors', prune=15, store_text=True
    )
    return TermWeightsBundle(tmp_path / 'vectors')


@pytest.fixture
def index(bundle, tmp_path):
    """The folder of an impact index of `bundle`."""
    build_impact_index(bundle, vocabulary_of(bundle), tmp_path / 'index')
    return tmp_path / 'index'


def test_impacts_by_hand():
    weights = np.asarray([1.0, 0.5, 0.26, 0.24, 0.0, -1.0], np.float32)
    assert impacts(weights, step=0.5).tolist() == [2, 1, 1, 0, 0, 0]


@pytest.mark.jvm
def test_the_command_says_what_it_built(bundle, tmp_path, capsys):
    output = tmp_path / 'index'
    vectors = str(bundle.folder)
    flags = ['--variant', 'epic-impact', '--vectors', vectors, '--output', str(output)]
    assert command.run(main, ['lucene', *flags]) == 0
    assert '60 passages (epic-impact)' in capsys.readouterr().out
    record = json.loads((output / 'pyserini_repbert.json').read_text())
    assert record['variant'] == 'epic-impact'


@pytest.mark.jvm
@pytest.mark.parametrize('text', QUERIES[:3])
def test_search_equals_the_exhaustive_one(bundle, index, text):
    """All rows are scored here, with weights and query in whole steps."""
    searcher = EpicImpactSearcher(index)
    query = searcher.query_encoder.encoder.encode_query(text)
    rows = np.arange(60)
    docids = bundle.docids(rows)
    step = max(vectors.weights.max() for _, vectors in bundle.vectors()) / LEVELS
    levels = impacts(bundle.weights_of(rows, query.terms), step)
    exact = levels @ np.rint(query.weights * QUERY_UNIT) * step / QUERY_UNIT
    found_rows = [row for row in rows.tolist() if exact[row] > 0]
    best = sorted(found_rows, key=lambda row: (-exact[row], docids[row]))[:20]

    hits = searcher.search(text, 20)
    scores = [hit.score for hit in hits]
    np.testing.assert_allclose(scores, exact[best], rtol=1e-5)
    # Those that tie with the last may be others.
    certain = [hit.docid for hit in hits if not np.isclose(hit.score, scores[-1])]
    assert certain == [docids[row] for row in best[: len(certain)]]
    # Whole steps change scores by little.
    unrounded = np.sort(bundle.score(rows, query))[::-1]
    np.testing.assert_allclose(scores, unrounded[: len(hits)], atol=0.05)


@pytest.mark.jvm
def test_batches_answer_as_single_queries_do(index):
    searcher = EpicImpactSearcher(index)
    run = searcher.batch_search(QUERIES, ['a', 'b', 'c', 'd'], 3)
    assert run['d'] == []
    hits = searcher.search(QUERIES[0], 3)
    docids = [hit.docid for hit in hits]
    assert docids == [hit.docid for hit in run['a']]
    assert [hit.text for hit in hits] == searcher.texts(docids)


@pytest.mark.jvm
def test_an_encoder_with_other_weights_is_refused(index, tiny_epic):
    with pytest.raises(MismatchError, match='other weights'):
        EpicImpactSearcher(index, tiny_epic('other', seed=1))


@pytest.mark.jvm
@pytest.mark.parametrize('part', ['configuration', 'tokenizer'])
def test_an_encoder_that_differs_is_refused(index, tiny_epic, part):
    changed = tiny_epic(part)
    change_model(changed, part)
    message = f'other {part} than encoder .*: pass the encoder it was built with'
    with pytest.raises(MismatchError, match=message):
        EpicImpactSearcher(index, changed)


@pytest.mark.jvm
def test_the_search_command_opens_it_by_its_own_record(index, tmp_path):
    from pyserini_repbert.data.runs import read_run

    topics = tmp_path / 'topics.tsv'
    topics.write_text(f'1\t{QUERIES[0]}\n2\t{QUERIES[1]}\n')
    output = str(tmp_path / 'run.txt')
    flags = ['--sparse', str(index), '--topics', str(topics), '--output', output, '--hits', '7']
    assert command.run(search, flags) == 0
    expected = EpicImpactSearcher(index).batch_search(QUERIES[:2], ['1', '2'], 7)
    run = read_run(output)
    assert list(run) == ['1', '2']
    for qid, hits in expected.items():
        assert list(run[qid].docids) == [hit.docid for hit in hits]


@pytest.mark.jvm
def test_k_larger_than_the_index(index):
    searcher = EpicImpactSearcher(index)
    assert searcher.size == 60
    assert len(searcher.search(QUERIES[0], 10**9)) <= 60


@pytest.mark.jvm
def test_the_passages_are_those_of_the_bundle(bundle, index):
    (text,) = bundle.texts(['d3'])
    assert EpicImpactSearcher(index).texts(['d3', 'none']) == [text, None]


@pytest.mark.jvm
def test_the_search_command_shows_passages(bundle, index, capsys):
    (best,) = EpicImpactSearcher(index).search(QUERIES[0], 1)
    (text,) = bundle.texts([best.docid])
    assert command.run(search, ['--sparse', str(index), '--query', QUERIES[0]]) == 0
    assert text in capsys.readouterr().out


@pytest.mark.jvm
def test_bm25_cannot_score_it(index, capsys):
    flags = ['--sparse', f'bm25@{index}', '--query', 'cat']
    assert command.run(search, flags) == 2
    message = f"holds EPIC's impacts, which 'bm25' cannot score: name the folder alone, {index}"
    assert message in capsys.readouterr().err


@pytest.mark.jvm
def test_pyserinis_searcher_finds_the_same(index):
    from pyserini_repbert.lucene.compat import import_pyserini
    from pyserini_repbert.search import EpicImpactQueryEncoder, EpicImpactSearcher

    ours = EpicImpactSearcher(index)
    encoder = EpicImpactQueryEncoder(ours.query_encoder.encoder)
    pyserini = import_pyserini('pyserini.search.lucene')
    theirs = pyserini.LuceneImpactSearcher(str(index), encoder, min_idf=-1)
    for query in QUERIES[:3]:
        expected = {hit.docid for hit in ours.search(query, 60)}
        assert {hit.docid for hit in theirs.search(query, 60)} == expected


@pytest.mark.jvm
def test_it_is_a_lucene_index_with_passages(bundle, index):
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    assert LuceneSparseSearcher(index).texts(['d3']) == bundle.texts(['d3'])


@pytest.mark.jvm
def test_an_index_that_exists_is_not_overwritten(bundle, index):
    with pytest.raises(InputError, match='exists already'):
        build_impact_index(bundle, vocabulary_of(bundle), index)
