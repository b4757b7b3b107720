"""How far the hits of a collection can be believed: in Python and in the terminal."""

import contextlib
import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from folders import N_QUESTIONS
from learned_collections import let_learn

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.own_settings import set_settings
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.collection.search_description import SearchedRankings
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.confidence.estimating import (
    ConfidenceEstimator,
    ConfidenceLostError,
    model_for,
)
from pyserini_repbert.extensions.confidence.models import (
    HIT_FEATURES,
    ConfidenceModel,
    HeldOutTest,
    LogisticModel,
)
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Query


def model(answered=0.0, relevant=(0.0, 0.0, 0.0, 0.0, 1.0)):
    zeros = (0.0,) * len(HIT_FEATURES)
    ones = (1.0,) * len(HIT_FEATURES)
    return ConfidenceModel(
        LogisticModel(zeros, ones, relevant, 0.0),
        LogisticModel(zeros, ones, zeros, answered),
        'learned',
        HeldOutTest(0.8, 0.6),
        HeldOutTest(0.8, 0.6),
        {},
        '',
    )


@pytest.fixture
def learned(mine):
    """The collection, which has learned from its judgments."""
    confidence = let_learn(mine)
    assert 0 <= confidence['questions']['ece'] <= 1
    return mine


def search(capsys, *arguments):
    status = run(main, ['search', *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_without_judgments_nothing_is_said(mine, capsys):
    known = pytest.raises(InputError, match='confidence is not known for encoder')
    with Collection.open(mine) as collection, known:
        collection.search('w1 mat', confidence=True)
    unknown = pytest.raises(InputError, match="no extension that is installed takes 'doubt'")
    with Collection.open(mine) as collection, unknown:
        collection.search('w1 mat', doubt=False)
    status, out, err = search(capsys, '--index', mine, '--query', 'w1 mat', '--confidence')
    assert (status, out) == (2, '')
    assert 'judge questions, and let the collection learn' in err


def test_probabilities_follow_the_hits(learned):
    with Collection.open(learned) as collection:
        plain = collection.search('w1 mat', 5)
        hits = collection.search('w1 mat', 5, confidence=True)
        with pytest.raises(InputError):
            collection.search(' ', confidence=True)
    assert [(hit.docid, hit.score) for hit in hits] == [(hit.docid, hit.score) for hit in plain]
    assert all(0 <= hit.probability <= 1 for hit in hits)
    assert not any(hit.added for hit in plain)


def test_the_background_of_questions_is_read_once(learned, monkeypatch):
    read = []
    gather = PassageVectors.gather

    def counted(self, rows):
        read.append(len(rows))
        return gather(self, rows)

    monkeypatch.setattr(PassageVectors, 'gather', counted)
    with Collection.open(learned) as collection:
        for filter_text in (None, None, 'docid:wanted1'):
            collection.search('w1 mat', 5, filter=filter_text, confidence=True)
    # A filter reads the vectors of the few rows that it leaves.
    assert read == [2 * N_QUESTIONS, 1]


def test_confidence_is_of_the_reranked_hits(mine, capsys):
    stages = ('monobert-demo@5',)
    set_settings(mine, {'stages': list(stages)})
    let_learn(mine)
    with Collection.open(mine) as collection:
        searcher = collection.searcher()
        search_of_vectors = SearchedRankings.of(searcher)
        reranked = model_for(search_of_vectors, stages)
        assert reranked.stages == stages
        assert len(reranked.hits.weights) == len(HIT_FEATURES) + 1
        # A search without it has a model of its own, and one with another one has none.
        without = model_for(search_of_vectors)
        assert without.stages == ()
        assert len(without.hits.weights) == len(HIT_FEATURES)
        with pytest.raises(InputError, match='rerank monobert-demo@5, here monobert-demo@3'):
            model_for(search_of_vectors, ['monobert-demo@3'])
        searcher.close()
        plain = collection.search('w1 mat', 5)
        hits = collection.search('w1 mat', 5, confidence=True)
    assert [(hit.docid, hit.score) for hit in hits] == [(hit.docid, hit.score) for hit in plain]
    flags = ('--index', mine, '--query', 'w1 mat', '--hits', 5, '--confidence')
    _, out, _ = search(capsys, *flags)
    # Commands and Python estimate alike.
    assert [
        line.split('relevant: ')[1][:4] for line in out.splitlines() if 'relevant: ' in line
    ] == [f'{hit.probability:.2f}' for hit in hits]


def test_a_verdict_is_by_the_probability_of_the_question(mine):
    with Collection.open(mine) as collection:
        searcher = collection.searcher()
        estimator = ConfidenceEstimator.of(searcher, model(answered=-3.0))
        ranking = searcher.rank([Query('1', 'w1 mat')], None, 20)['1']
        confidence = estimator.estimate('w1 mat', ranking.docids, {'dense': ranking})
        nothing = estimator.estimate('w1 mat', [], {'dense': ranking})
        searcher.close()
    assert confidence.found == 'nothing'
    assert confidence.answered == pytest.approx(1 / (1 + np.exp(3)))
    assert len(confidence.relevant) == 20
    # What is relevant answers: no hit is likelier than an answer.
    assert max(confidence.relevant) <= confidence.answered
    assert (nothing.answered, nothing.relevant) == (0.0, ())


def test_the_terminal_says_it(learned, capsys):
    flags = ('--index', learned, '--query', 'w1 mat', '--hits', 2)
    status, out, _ = search(capsys, *flags, '--confidence')
    assert status == 0
    lines = out.splitlines()
    assert lines[1].startswith('   found: ')
    assert ', relevant: ' in lines[2]
    _, more, _ = search(capsys, *flags[:-1], 20, '--confidence')
    # However few are shown, ten decide.
    assert more.splitlines()[1] == lines[1]
    _, out, _ = search(capsys, *flags[:3], 'elsewhere', *flags[4:], '--min-confidence', '1')
    assert '   no hits' in out
    for impossible in ('1.1', '-0.5', 'nan'):
        status, _, err = search(capsys, *flags, f'--min-confidence={impossible}')
        assert status == 2
        assert 'argument --min-confidence' in err
    status, _, err = search(capsys, *flags, '--confidence', 'file.tsv')
    assert status == 2
    assert '--confidence names a file with --topics' in err


def test_a_run_has_a_file_beside_it(learned, tmp_path, capsys):
    topics = tmp_path / 'topics.tsv'
    topics.write_text('q1\tw1 mat\nq2\tw2 mat\n')
    path = tmp_path / 'confidence.tsv'
    run_file = tmp_path / 'run.txt'
    flags = ('--index', learned, '--topics', topics, '--hits', 3, '--output')
    assert search(capsys, *flags, run_file, '--confidence', path)[0] == 0
    assert search(capsys, *flags, tmp_path / 'plain.txt', '--runtag', 'run')[0] == 0
    assert run_file.read_bytes() == (tmp_path / 'plain.txt').read_bytes()
    rows = [line.split('\t') for line in path.read_text().splitlines()]
    hits = [line.split() for line in run_file.read_text().splitlines()]
    assert [row[:2] for row in rows] == [[hit[0], hit[2]] for hit in hits]
    assert [row[2] for row in rows] == ['1', '2', '3'] * 2
    assert all(0 <= float(value) <= 1 for row in rows for value in row[3:])
    assert search(capsys, *flags, tmp_path / 'third.txt', '--confidence')[0] == 2


def test_what_cannot_tell_questions_apart_is_not_shown(learned):
    store = judgments_of(learned)
    learning = store.learnings()[-1]
    confidence = learning.report['confidence']
    low = confidence | {'model': confidence['model'] | {'hits_test': {'auc': 0.55, 'chance': 0.6}}}
    report = {**learning.report, 'confidence': low}
    store.add_learning(replace(learning, number=3, report=report))
    with (
        Collection.open(learned) as collection,
        pytest.raises(InputError, match=r'P\(relevant\) has an AUC of 0.55, and chance'),
    ):
        collection.search('w1 mat', confidence=True)


def test_another_search_than_the_learned_one_has_no_confidence(learned, capsys):
    """It got the probabilities that were learned for the collection's own search."""
    flags = ('--index', learned, '--query', 'w1 mat', '--hits', 2, '--confidence')
    for other, difference in (
        (('--aggregate', 'mean'), 'aggregate max, here mean'),
        (('--prf', 'average'), 'prf none, here average'),
        (('--max-length', 5), 'here 5'),
        (('--rerank', 'monobert-demo@3'), 'rerank none, here monobert-demo@3'),
    ):
        status, out, err = search(capsys, *flags, *other)
        assert (status, out) == (2, '')
        assert 'confidence was learned for another search' in err
        assert difference in err
        assert 'Traceback' not in err
    assert search(capsys, *flags, '--aggregate', 'max')[0] == 0


def test_a_description_has_all_that_decides_a_fusion(mine):
    with Collection.open(mine) as collection:
        searcher = collection.searcher()
        dense = SearchedRankings.of(searcher).dense
        searcher.close()

    def description(names, **settings):
        return SearchedRankings(dense, None, names, FusionSettings(**settings)).description()

    both = ('dense', 'bm25')
    turned = ('bm25', 'dense')
    by_sums = {'method': 'interpolation', 'normalize': 'max'}
    same = description(both, **by_sums, weights=(0.4, 0.6))
    assert same == description(turned, **by_sums, weights=(0.6, 0.4))
    assert json.loads(json.dumps(same)) == same
    others = [
        description(both, **by_sums, weights=(0.6, 0.4)),
        description(both, **by_sums, weights=(0.4, 0.6), depth=100),
        description(both, method='interpolation', weights=(0.4, 0.6)),
        description(both, method='rrf'),
        description(both, method='rrf', rrf_k=10),
        description(both),
        description(turned),
    ]
    fusion = FusionSettings(**by_sums, weights=(0.4, 0.6))
    others.append(SearchedRankings(dense, None, both, fusion, scan='ann').description())
    for number, other in enumerate(others):
        assert other not in (same, *others[:number])
    assert description(both, method='rrf') == description(turned, method='rrf')


def test_confidence_holds_for_the_query_map_that_is_used(learned, capsys):
    assert run(main, ['adapt', '--index', str(learned), '--use', '--even-if-worse']) == 0
    assert 'no probabilities' not in capsys.readouterr().out
    with Collection.open(learned) as collection:
        searcher = collection.searcher()
        assert searcher.dense.query_map is not None
        stored = judgments_of(learned).learnings()[-1].report['confidence']['model_of_offered']
        assert model_for(SearchedRankings.of(searcher)).search == stored['search']
        # Another map is another search.
        other = searcher.with_query_map(searcher.dense.query_map * 0.5)
        with pytest.raises(ConfidenceLostError, match='no query map, here a query map'):
            model_for(SearchedRankings.of(other))
        searcher.close()
        hits = collection.search('w1 mat', 5, confidence=True)
    assert all(0 <= hit.probability <= 1 for hit in hits)


def test_a_terminal_says_that_confidence_is_gone(learned, capsys):
    store = judgments_of(learned)
    learning = store.learnings()[-1]
    confidence = learning.report['confidence']
    tests = {'hits_test': {'auc': 0.55, 'chance': 0.6}}
    low = confidence | {'model_of_offered': confidence['model_of_offered'] | tests}
    for each in store.learnings():
        report = json.dumps({**each.report, 'confidence': low})
        with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
            statement = 'UPDATE learnings SET report = ? WHERE number = ?'
            connection.execute(statement, [report, each.number])
    assert run(main, ['adapt', '--index', str(learned), '--use', '--even-if-worse']) == 0
    printed = capsys.readouterr().out
    assert 'searches show no probabilities now: confidence cannot be estimated here' in printed
    assert 'AUC of 0.55' in printed
    assert run(main, ['adapt', '--index', str(learned), '--go-back']) == 0
    assert 'no probabilities' not in capsys.readouterr().out
    assert run(main, ['index', 'settings', '--index', str(learned), '--aggregate', 'mean']) == 0
    assert 'no probabilities now: confidence was learned for another' in capsys.readouterr().out


def test_a_stored_model_is_checked(learned):
    store = judgments_of(learned)
    learning = store.learnings()[-1]
    damaged = learning.report['confidence'] | {'model': {'hits': 'all'}}
    report = {**learning.report, 'confidence': damaged}
    store.add_learning(replace(learning, number=3, report=report))
    with (
        Collection.open(learned) as collection,
        pytest.raises(DamagedFileError, match='is not a model'),
    ):
        collection.search('w1 mat', confidence=True)
