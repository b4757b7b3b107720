"""A collection learns from the judgments in it, and is searched so."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pyserini_repbert.adapt import from_judgments
from pyserini_repbert.adapt.adaptation import Adaptation
from pyserini_repbert.adapt.from_judgments import (
    learn_from_judgments,
    learning_state,
    report_of,
    use_learning,
)
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import (
    adaptation_in_use,
    judgments_of,
    why_learn_again,
)
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.settings import SparseKind
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.data.judgments import Judgment
from pyserini_repbert.errors import BusyError, InputError
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec

N_QUESTIONS = 24


@pytest.fixture
def checkpoint(tiny_checkpoint):
    return str(tiny_checkpoint())


@pytest.fixture
def folder(checkpoint, tmp_path):
    """A collection without Lucene: two documents for each question, the second one relevant."""
    words = [f'w{n}' for n in range(N_QUESTIONS)]
    documents = []
    for number, word in enumerate(words):
        documents.append((f'plain{number}', f'{word} cat'))
        documents.append((f'wanted{number}', f'{word} mat'))
    with Collection.open(tmp_path / 'mine', encoder=checkpoint, sparse='none') as collection:
        collection.sync(documents)
    return tmp_path / 'mine'


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
    with from_judgments._learning_lock(folder):
        store.set_progress({'state': 'running', 'done': 3, 'total': 16})
        assert learning_state(folder)['state'] == 'running'
        with pytest.raises(BusyError, match='another program learns'):
            learn_from_judgments(folder)
    # the lock is gone, as after a kill
    assert learning_state(folder)['state'] == 'failed'
    assert 'learn again' in learning_state(folder)['error']


def test_the_sentence_tells_a_gain_from_noise():
    learnt = Adaptation(
        query_map=np.eye(2, dtype=np.float32),
        weights=(1.0,),
        rerank_weight=None,
        n_topics=4,
        texts=('a', 'b', 'c', 'd'),
        untuned={'dense': np.array([0.1, 0.2, 0.3, 0.4])},
        steps={'with the query map': np.array([0.3, 0.4, 0.5, 0.61])},
    )
    report = report_of(learnt, learnt.estimate())
    assert report['sentence'].startswith('It helps. nDCG@10 of questions held out is 0.45')
    assert report['questions'][3] == {'question': 'd', 'before': 0.4, 'after': 0.61}
    same = report_of(
        Adaptation(learnt.query_map, (1.0,), None, 4, learnt.texts, learnt.untuned, learnt.untuned),
        Adaptation(
            learnt.query_map,
            (1.0,),
            None,
            4,
            learnt.texts,
            learnt.untuned,
            {'m': np.array([0.2, 0.1, 0.4, 0.3])},
        ).estimate(),
    )
    assert same['sentence'].startswith('No gain can be told from noise.')


def test_learning_at_the_command_line(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    topics = ''.join(f't{i}\tcat w{i}\n' for i in range(N_QUESTIONS))
    (tmp_path / 'topics.tsv').write_text(topics)
    (tmp_path / 'qrels').write_text(''.join(f't{i} 0 wanted{i} 2\n' for i in range(N_QUESTIONS)))
    arguments = 'index judgments --index mine --topics topics.tsv --qrels qrels --judge ann'
    assert run(main, arguments.split()) == 0
    assert '24 judgments of 24 questions' in capsys.readouterr().out
    assert run(main, 'adapt --index mine --quiet'.split()) == 0
    assert 'gain: ' in capsys.readouterr().out
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
    assert opened.search('cat w0', 5) == before
    opened.close()
    out = 'index judgments --index mine --export-topics out.tsv --export-qrels out.qrels'
    assert run(main, out.split()) == 0
    assert (tmp_path / 'out.tsv').read_text() == topics
    assert (tmp_path / 'out.qrels').read_text().splitlines()[0] == 't0 0 wanted0 2'
