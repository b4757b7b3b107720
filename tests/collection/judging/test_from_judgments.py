"""A collection learns from the judgments in it, and is searched so."""

import json
from dataclasses import replace

import numpy as np
import pytest
from folders import N_QUESTIONS, write_files

from pyserini_repbert.adapt.adaptation import Adaptation, UntunedSearches
from pyserini_repbert.adapt.offering import LEARNED_BEFORE, report_of
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import (
    adaptation_in_use,
    judgments_of,
    why_learn_again,
)
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.judging.from_judgments import (
    learn_from_judgments,
    use_learning,
)
from pyserini_repbert.collection.judging.learning_progress import learning_lock, learning_state
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.collection.settings import SparseKind
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import BusyError, InputError, NotBetterError
from pyserini_repbert.evaluate.significance import TTest
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec


@pytest.fixture
def folder(mine):
    """A collection without Lucene: two documents for each question, the second one relevant."""
    return mine


def judge(folder, n=N_QUESTIONS):
    judgments = [Judgment(f'cat w{i}', f'wanted{i}', 2, 'ann') for i in range(n)]
    judgments_of(folder).add(judgments)


@pytest.fixture
def learned(folder):
    judge(folder)
    return learn_from_judgments(folder)


def test_nobody_judged(folder):
    assert learning_state(folder)['state'] == 'none'
    with pytest.raises(InputError, match='nobody has judged in collection'):
        learn_from_judgments(folder)
    assert learning_state(folder)['state'] == 'failed'


def test_too_few_questions_are_refused_and_said(folder):
    judge(folder, 3)
    with pytest.raises(InputError, match='at least 20 are needed'):
        learn_from_judgments(folder)
    state = learning_state(folder)
    assert state['state'] == 'failed'
    assert 'at least 20 are needed' in state['error']


def test_the_report_has_each_question(folder, learned):
    questions = [entry['question'] for entry in learned.report['questions']]
    assert questions == [f'cat w{i}' for i in range(N_QUESTIONS)]
    gains = [entry['after'] - entry['before'] for entry in learned.report['questions']]
    assert np.mean(gains) == pytest.approx(learned.report['gain'], abs=1e-5)
    assert learning_state(folder)['state'] == 'done'


def test_what_is_learned_counts_once_it_is_used(folder, learned):
    spec = PipelineSpec(index=str(folder))

    def rank(spec):
        pipeline = open_pipeline(spec).pipeline
        hits = pipeline.search('cat w3', 5)
        pipeline.close()
        return [(hit.docid, hit.score) for hit in hits]

    before = rank(spec)
    learned_ranking = rank(spec.model_copy(update={'adapted': str(folder / learned.folder)}))
    assert learned_ranking != before
    use_learning(folder, True)
    assert rank(spec) == learned_ranking
    assert rank(PipelineSpec(index=str(folder), rankings=('dense',))) == before
    assert rank(PipelineSpec(index=str(folder), adapted='none')) == before
    assert rank(PipelineSpec(index=str(folder), fusion='interleave')) == before
    with Collection.open(folder) as collection:
        hits = collection.search('cat w3', 5)
    assert [(hit.docid, hit.score) for hit in hits] == learned_ranking
    use_learning(folder, False)
    assert rank(spec) == before


def test_what_was_learned_for_another_encoder_is_not_used(folder, learned, tiny_checkpoint):
    use_learning(folder, True)
    other = str(tiny_checkpoint('other', seed=7))
    with Collection.open(folder, encoder=other) as collection:
        collection.sync([('a', 'w1 cat')], 'new', rebuild=True)
        assert adaptation_in_use(folder, collection.generation.settings) is None
        assert 'another encoder' in why_learn_again(collection.generation, learned)
        collection.search('cat', 3)


def test_what_was_learned_without_bm25_is_not_used_with_it(folder, learned):
    use_learning(folder, True)
    with Collection.open(folder) as collection:
        settings = collection.generation.settings
    assert adaptation_in_use(folder, settings) == folder / learned.folder
    assert adaptation_in_use(folder, replace(settings, sparse=SparseKind.BM25)) is None


def test_a_copy_has_what_was_learned(folder, learned, tmp_path, capsys):
    use_learning(folder, True)
    copy_collection(folder, tmp_path / 'copy')
    shown = []
    for place in (folder, tmp_path / 'copy'):
        with Collection.open(place) as collection:
            hits = collection.search('cat w3', 5)
        shown.append([(hit.docid, hit.score) for hit in hits])
    assert shown[0] == shown[1]
    assert judgments_of(tmp_path / 'copy').count() == N_QUESTIONS
    assert run(main, ['index', 'check', '--index', str(tmp_path / 'copy')]) == 0
    (tmp_path / 'copy' / learned.folder / 'query_map.npy').unlink()
    assert run(main, ['index', 'check', '--index', str(tmp_path / 'copy')]) == 2
    assert 'query map' in capsys.readouterr().err


def test_a_damaged_file_of_judgments_is_found(folder, capsys):
    judge(folder)
    path = judgments_of(folder).path
    content = bytearray(path.read_bytes())
    content[8192:12288] = bytes(4096)
    path.write_bytes(content)
    assert run(main, ['index', 'check', '--index', str(folder)]) == 2
    assert 'judgments.sqlite is damaged' in capsys.readouterr().err


def test_it_says_when_to_learn_again(folder, learned):
    n_documents = 2 * N_QUESTIONS
    with Collection.open(folder) as collection:
        assert why_learn_again(collection.generation, learned) is None
        # 4 of 52 documents are new, then 6 of 54
        collection.add([(f'new{n}', 'w1 mat') for n in range(4)])
        assert len(collection) == n_documents + 4
        assert why_learn_again(collection.generation, learned) is None
        collection.add([(f'newer{n}', 'w2 mat') for n in range(2)])
        assert why_learn_again(collection.generation, learned).startswith('6 of 54 documents')


def test_new_judgments_are_a_reason_to_learn_again(folder, learned):
    store = judgments_of(folder)
    with Collection.open(folder) as collection:
        # 7 of 31, then 8 of 32 judgments are new
        store.add([Judgment('other', f'plain{n}', 0) for n in range(7)])
        assert why_learn_again(collection.generation, learned) is None
        store.add([Judgment('other', 'plain7', 0)])
        assert why_learn_again(collection.generation, learned).startswith('8 of 32 judgments')


def test_one_program_learns_at_a_time(folder):
    judge(folder)
    store = judgments_of(folder)
    with learning_lock(folder):
        store.set_progress({'state': 'running', 'done': 3, 'total': 16})
        assert learning_state(folder)['state'] == 'running'
        with pytest.raises(BusyError, match='another program is learning'):
            learn_from_judgments(folder)
    # the lock is gone, as after a kill
    assert learning_state(folder)['state'] == 'failed'
    assert 'learn again' in learning_state(folder)['error']


def adaptation(learned):
    """Of four texts; the present search has 0.1, 0.2, 0.3 and 0.4."""
    return Adaptation(
        query_map=np.eye(2, dtype=np.float32),
        weights=(1.0,),
        rerank_weight=None,
        n_topics=4,
        texts=('a', 'b', 'c', 'd'),
        untuned=UntunedSearches(
            now='dense',
            values={'dense': np.array([0.1, 0.2, 0.3, 0.4])},
            ways={},
            agreement=TTest(9.0, 0.001),
        ),
        steps={'with the query map': np.array(learned)},
        chosen=np.array(learned),
        fold_maps=(),
        fold_of_text=(),
    )


@pytest.mark.parametrize(
    ('learned', 'sentence'),
    [
        (
            [0.3, 0.4, 0.5, 0.61],
            'It helps: what was learned is better than the present search. nDCG@10 on '
            'held-out questions is 0.45',
        ),
        (
            [0.2, 0.2, 0.4, 0.39],
            'It probably helps: what was learned is better than the present search with a '
            'probability of 0.9',
        ),
        ([0.4, 0.1, 0.1, 0.5], 'No gain is more than noise. With what was learned, nDCG@10'),
        ([0.0, 0.1, 0.3, 0.4], 'The present search is the best. With what was learned'),
    ],
)
def test_the_sentence_tells_a_gain_from_noise_and_from_a_loss(learned, sentence):
    learnt = adaptation(learned)
    report = report_of(learnt, learnt.estimate())
    assert report['sentence'].startswith(sentence)
    assert report['questions'][3] == {'question': 'd', 'before': 0.4, 'after': learned[3]}
    assert report['baseline'] == 'dense'
    assert report['low'] < report['gain'] < report['high']


def with_report(folder, **report):
    """The newest learning of a collection with other figures."""
    store = judgments_of(folder)
    newest = store.learnings()[-1]
    other = replace(newest, number=newest.number + 1, report={**newest.report, **report})
    store.add_learning(other)
    return store


def test_what_is_below_the_search_as_it_is_now_is_refused(folder, learned, capsys):
    below = {
        'gain': -0.0539,
        'low': -0.09,
        'high': -0.01,
        'is_convincing': False,
        'is_worth_using': False,
    }
    store = with_report(folder, **below)
    with pytest.raises(NotBetterError, match='is below the present search, -0.054 nDCG@10'):
        use_learning(folder, True)
    assert store.in_use() is None
    use = ['adapt', '--index', str(folder), '--use']
    assert run(main, use) == 2
    printed = capsys.readouterr().err
    assert printed.count('\n') == 1
    assert '(95% interval -0.090 to -0.010)' in printed and '--even-if-worse' in printed
    assert store.in_use() is None
    assert run(main, [*use, '--even-if-worse']) == 0
    assert store.in_use().number == 2
    # What is used already is not asked again.
    assert run(main, use) == 0


def test_a_gain_that_may_be_noise_is_refused(folder, learned):
    with_report(folder, gain=0.01, low=-0.02, high=0.04, is_convincing=False, is_worth_using=False)
    with pytest.raises(
        NotBetterError, match=r'is not better than the present search, \+0.010 nDCG@10'
    ):
        use_learning(folder, True)


def test_learning_again_is_compared_with_what_is_used(folder, learned):
    """The same judgments teach the same again: nothing is better than what is used."""
    use_learning(folder, True)
    again = learn_from_judgments(folder)
    assert again.report['baseline'] == again.report['winner'] == LEARNED_BEFORE
    assert again.report['means'][LEARNED_BEFORE] > again.report['means']['tiny']
    assert not again.report['is_convincing']
    with pytest.raises(NotBetterError, match='the present search'):
        use_learning(folder, True)
    assert judgments_of(folder).in_use().number == learned.number


def test_learning_at_the_command_line(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    topics = ''.join(f't{i}\tcat w{i}\n' for i in range(N_QUESTIONS))
    write_files(
        tmp_path,
        {
            'topics.tsv': topics,
            'qrels': ''.join(f't{i} 0 wanted{i} 2\n' for i in range(N_QUESTIONS)),
        },
    )
    arguments = 'index judgments --index mine --topics topics.tsv --qrels qrels --judge ann'
    assert run(main, arguments.split()) == 0
    assert '24 judgments of 24 questions' in capsys.readouterr().out
    assert run(main, 'adapt --index mine --quiet'.split()) == 0
    printed = capsys.readouterr().out
    assert 'tiny (now)' in printed
    assert 'to use it: adapt --index mine --use' in printed
    opened = Collection.open('mine')
    before = opened.search('cat w0', 5)
    assert run(main, 'adapt --index mine --use'.split()) == 0
    learned = opened.search('cat w0', 5)
    assert [hit.score for hit in learned] != [hit.score for hit in before]
    with Collection.open('mine') as anew:
        assert learned == anew.search('cat w0', 5)
    assert 'searched as it learned' in capsys.readouterr().out
    search = ['search', '--index', 'mine', '--topics', 'mine', '--output', 'run', '--quiet']
    assert run(main, search) == 0
    record = json.loads((tmp_path / 'run.record.json').read_text())
    assert [entry['role'] for entry in record['inputs']][:2] == ['adapted', 'index']
    assert run(main, 'adapt --index mine --go-back'.split()) == 0
    capsys.readouterr()
    assert run(main, 'adapt --index mine --go-back'.split()) == 2
    assert 'collection mine does not use what it learned' in capsys.readouterr().err
    assert opened.search('cat w0', 5) == before
    opened.close()
    out = 'index judgments --index mine --export-topics out.tsv --export-qrels out.qrels'
    assert run(main, out.split()) == 0
    assert (tmp_path / 'out.tsv').read_text() == topics
    assert (tmp_path / 'out.qrels').read_text().splitlines()[0] == 't0 0 wanted0 2'
