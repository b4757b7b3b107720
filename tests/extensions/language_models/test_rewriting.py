"""Questions are rewritten by a language model: HyDE and query2doc."""

import json
import re

import numpy as np
import pytest
from chat_server import chat_server, reply

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.rewriting import RewritingSettings
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query
from pyserini_repbert.systems.encoders import document_encoder, query_encoder
from pyserini_repbert.trace import Notes

DOCUMENTS = [('a', 'cat sat on the mat'), ('b', 'sea sky sun moon'), ('c', 'tree leaf root seed')]
TOPICS = [Query('1', 'cat')]
# A search that asks a model, which is not there.
ASKED = ['--rewrite', 'hyde', '--llm-model', 'm', '--llm', 'http://127.0.0.1:9/v1']


@pytest.fixture
def checkpoint(tiny_checkpoint):
    return str(tiny_checkpoint())


@pytest.fixture
def folder(checkpoint, tmp_path, monkeypatch):
    """A collection without Lucene."""
    monkeypatch.chdir(tmp_path)
    with Collection.open('mine', encoder=checkpoint, sparse='none') as collection:
        collection.sync(DOCUMENTS)
    return 'mine'


def open_search(server, rewrite, folder, **settings):
    spec = PipelineSpec(
        index=folder, rewrite=rewrite, llm=server.address, llm_model='m', **settings
    )
    return open_pipeline(spec).pipeline


def test_hyde_searches_for_the_mean_of_question_and_passages(folder, checkpoint):
    passages = iter(['sea  sky\n', '<think>moon?</think> sun moon'])
    with chat_server(lambda prompt: next(passages)) as server:
        pipeline = open_search(server, 'hyde:passages=2', folder)
        notes = Notes()
        ranked = pipeline.rank(TOPICS, None, 3, notes)['1']
        bodies = server.bodies
    rows = [query_encoder(checkpoint).encode('cat')]
    rows += list(document_encoder(checkpoint).encode(['sea sky', 'sun moon']))
    texts = [text for _, text in DOCUMENTS]
    scores = document_encoder(checkpoint).encode(texts) @ np.mean(rows, axis=0)
    expected = dict(zip(['a', 'b', 'c'], scores.tolist(), strict=True))
    assert dict(zip(ranked.docids, ranked.scores, strict=True)) == pytest.approx(expected, abs=1e-5)
    assert [(body['temperature'], body['seed']) for body in bodies] == [(0.7, 0), (0.7, 1)]
    cost = notes.parts['rewrite'].cost
    assert (cost.stage, cost.inferences, cost.tokens, cost.answer_tokens) == ('hyde', 2, 24, 4)
    # The passage that a hit shows fits the question, not what was written.
    assert pipeline.first.dense.vector_of('cat').tolist() == rows[0].tolist()
    pipeline.close()


def test_query2doc_encodes_question_and_passage_with_a_separator(folder, checkpoint):
    passage = 'sea sky sun moon tree leaf root seed cat dog'
    with chat_server(lambda prompt: passage) as server:
        pipeline = open_search(server, 'query2doc', folder)
        vector = pipeline.first.parts[0].encode(['cat'])[0]
        assert 'seed' not in server.bodies[0] and server.bodies[0]['temperature'] == 0
        pipeline.close()
    encoder = query_encoder(checkpoint, max_length=62)
    ids = encoder.tokenizer.ids([f'cat [SEP] {passage}'])[0]
    # Longer than a question may be, and with the separator of the model.
    assert len(ids) == 12 and ids[1] == encoder.tokenizer.sep
    assert vector.tolist() == encoder.encode(f'cat [SEP] {passage}').tolist()


def test_an_empty_passage_leaves_the_question(folder):
    answers = iter(['', '<think>the tokens were spent'])
    with chat_server(lambda prompt: next(answers)) as server:
        pipeline = open_search(server, 'hyde:passages=2', folder)
        notes = Notes()
        ranked = pipeline.rank(TOPICS, None, 3, notes)
        pipeline.close()
    assert notes.parts['rewrite'].cost.repaired == 2
    plain = open_pipeline(PipelineSpec(index=folder)).pipeline
    assert ranked == plain.rank(TOPICS, None, 3)
    plain.close()


@pytest.fixture
def hybrid(checkpoint, tmp_path, monkeypatch):
    """A collection with BM25, and a field."""
    monkeypatch.chdir(tmp_path)
    documents = [{'id': docid, 'contents': text, 'kind': docid} for docid, text in DOCUMENTS]
    lines = ''.join(f'{json.dumps(document)}\n' for document in documents)
    (tmp_path / 'corpus.jsonl').write_text(lines, encoding='utf-8')
    words = ['index', 'sync', '--index', 'mine', '--corpus', 'corpus.jsonl']
    assert run(main, [*words, '--encoder', checkpoint, '--quiet']) == 0
    return 'mine'


@pytest.mark.jvm
def test_what_each_ranking_of_a_hybrid_reads(hybrid):
    expanded = Query('1', 'cat cat cat cat cat sea sky')

    def ranks(pipeline, topics):
        notes = Notes()
        fused = pipeline.rank(topics, None, 3, notes)['1']
        leaves = notes.parts['search'].leaves()
        pipeline.close()
        return fused, [leaf.run['1'] for leaf in leaves]

    for filtered in ({}, {'filter': 'kind:a OR kind:b'}):
        plain = {}
        for topic in (TOPICS[0], expanded):
            pipeline = open_pipeline(PipelineSpec(index=hybrid, **filtered)).pipeline
            plain[topic.text] = ranks(pipeline, [topic])[1][1]
        with chat_server(lambda prompt: 'sea sky') as server:
            fused, (_, words) = ranks(open_search(server, 'query2doc', hybrid, **filtered), TOPICS)
            assert words == plain[expanded.text] and set(words.docids) == {'a', 'b'}
            assert len(server.bodies) == 1 and set(fused.docids) >= {'a', 'b'}
            _, (_, words) = ranks(open_search(server, 'hyde', hybrid, **filtered), TOPICS)
            assert words == plain['cat'] and words.docids == ('a',)
            assert len(server.bodies) == 9


def test_a_run_is_repeated_without_the_model(folder, tmp_path, capsys):
    (tmp_path / 'topics.tsv').write_text('1\tcat\n2\tsea\n3\tcat\n', encoding='utf-8')
    words = ['search', '--index', folder, '--topics', 'topics.tsv', '--tag', 't']
    words += ['--rewrite', 'hyde:passages=3', '--llm-model', 'm', '--llm-answers', 'a.sqlite']

    def rule(prompt):
        return reply(f'{re.search("Question: (.*)", prompt)[1]} moon')

    with chat_server(rule) as server:
        assert run(main, [*words, '--llm', server.address, '--output', 'first.txt']) == 0
        assert len(server.bodies) == 6
    assert '6 answers asked for, 0 kept; 0 repaired' in capsys.readouterr().out
    assert run(main, [*words, '--offline', '--output', 'again.txt']) == 0
    assert '0 answers asked for, 6 kept; 0 repaired' in capsys.readouterr().out
    assert (tmp_path / 'first.txt').read_bytes() == (tmp_path / 'again.txt').read_bytes()
    record = json.loads((tmp_path / 'again.txt.record.json').read_text('utf-8'))['settings']
    assert record['language_models'] == {
        'hyde': {'answers': 6, 'tokens': 72, 'answer_tokens': 12, 'repaired': 0}
    }
    assert record['rankers'][0]['rewriting'] == 'hyde'
    assert (
        record['rankers'][0]['passages'] == 3 and len(record['rankers'][0]['prompt_sha256']) == 64
    )
    assert run(main, ['evaluate', 'costs', 'again.txt']) == 0
    assert 'again.txt: hyde' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('rm3', "method of rewriting 'rm3'"),
        ('hyde:passages=0', 'passages: '),
        ('hyde:passages=1000000000', 'passages: '),
        ('hyde:n=3', 'expected hyde:tokens=…, prompt=…, passages=…'),
        ('query2doc:passages=3', 'expected query2doc:tokens=…, prompt=…'),
        ('query2doc:prompt=', 'expected query2doc:'),
    ],
)
def test_wrong_settings_are_refused(text, problem):
    with pytest.raises(InputError, match=re.escape(problem)):
        RewritingSettings.parse(text)


@pytest.mark.parametrize(
    ('words', 'problem'),
    [
        (['--query', 'cat', '--rewrite', 'hyde'], 'none was named'),
        (['--like', 'a', '--rewrite', 'hyde'], '--rewrite is for questions'),
        (['--query', 'cat', '--llm-model', 'm', '--llm', 'http://a/v1'], 'or for --rewrite'),
        (['--query', 'cat', '--confidence', *ASKED], 'of the question as it was asked'),
    ],
)
def test_what_does_not_go_together_is_refused(folder, capsys, words, problem):
    assert run(main, ['search', '--index', folder, *words]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.jvm
def test_hyde_takes_a_dense_ranking(hybrid):
    with chat_server(lambda prompt: '') as server:
        with pytest.raises(InputError, match='of a dense ranking'):
            open_search(server, 'hyde', hybrid, rankings=('bm25',))
        with pytest.raises(InputError, match='of a dense ranking'):
            open_search(server, 'hyde', hybrid, rankings=('bm25',), filter='kind:a')
        assert server.bodies == []


def test_a_prompt_may_have_commas_in_its_name():
    settings = RewritingSettings.parse('hyde:prompt=notes, old/a,b.txt,passages=3')
    assert (settings.prompt, settings.passages) == ('notes, old/a,b.txt', 3)
