"""The table of the demo checkpoints, on a tiny collection with tiny models; Lucene's part is played by a file."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from pyserini_repbert.commands.command import run
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank import DuoBertReranker

TOOLS = Path(__file__).parents[2] / 'tools'
TOPICS = {'q1': 'red cat', 'q2': 'the big sea', 'q3': 'moon'}
MONO, DUO = 'bm25.monobert-demo', 'bm25.monobert-demo.duobert-demo'


@pytest.fixture
def tools(monkeypatch):
    """(demo_runs, demo_maker, demo_results), which find each other as when they are run."""
    monkeypatch.syspath_prepend(str(TOOLS))
    names = ('demo_runs', 'demo_cosine', 'demo_maker', 'demo_results')
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return [importlib.import_module(name) for name in names if name != 'demo_cosine']


@pytest.fixture
def checkpoints(tiny_checkpoint, tiny_cedr):
    """The demo checkpoints' names, but EPIC's and PACRR's and DRMM's; tiny models stand for them."""

    def cross_encoder(system, seed, **config):
        from pyserini_repbert.models.bert_config import BertConfig
        from pyserini_repbert.models.cross_encoder import CrossEncoder

        ranking = {'system': system, 'max_query_length': 8, 'max_length': 48}
        folder = tiny_checkpoint(system, seed, ranking=ranking, **config)
        torch.manual_seed(seed)
        values = json.loads((folder / 'config.json').read_text())
        save_file(CrossEncoder(BertConfig.from_dict(values)).state_dict(), folder / 'model.safetensors')
        return folder

    made = {
        'minilm': tiny_checkpoint('base'),
        'repbert-demo': tiny_checkpoint('trained', 1),
        'monobert-demo': cross_encoder('monobert', 2),
        'duobert-demo': cross_encoder('duobert', 3, type_vocab_size=3),
        'vanilla-demo': tiny_cedr('vanilla'),
        'cedr-knrm-demo': tiny_cedr('knrm'),
    }
    return {name: str(folder) for name, folder in made.items()}


@pytest.fixture
def new_maker(tools, tmp_path, corpus_file, checkpoints):
    """make(groups=None) -> a maker over 20 passages, and the commands that it has run since."""
    demo_runs, demo_maker, _ = tools
    (tmp_path / 'topics.tsv').write_text(''.join(f'{qid}\t{text}\n' for qid, text in TOPICS.items()))
    (tmp_path / 'qrels.txt').write_text('q1 0 d3 1\nq2 0 d5 1\nq2 0 d9 2\nq3 0 d14 1\n')
    bm25 = {
        qid: Ranking([f'd{(7 * n + 3 * at) % 20}' for n in range(14)], [20.0 - n for n in range(14)])
        for at, qid in enumerate(TOPICS)
    }
    write_run(tmp_path / 'lucene.txt', bm25)
    places = (str(corpus_file(20)), str(tmp_path / 'topics.tsv'), str(tmp_path / 'qrels.txt'))
    collection = demo_runs.Collection('tiny', 'Tiny', *places, 12, ('nDCG@10', 'MRR@10'), 'Nothing was trained.')
    left_out = ('epic-demo', 'cedr-pacrr-demo', 'cedr-drmm-demo')  # nothing stands for them
    known = demo_runs.all_systems(['other-demo'])
    systems = {name: own for name, own in known.items() if own.group not in left_out}

    def make(groups=None):
        commands = []

        def command(words):
            commands.append(words)
            if '--sparse' in words:
                shutil.copyfile(tmp_path / 'lucene.txt', words[words.index('--output') + 1])
            elif words[:2] != ['index', 'lucene']:
                main = importlib.import_module(f'pyserini_repbert.commands.{words[0]}').main
                assert not main([*words[1:], '--quiet'])

        asked = {one.group for one in systems.values()} if groups is None else groups
        return demo_maker.Maker(collection, tmp_path / 'work', systems, checkpoints, asked, command), commands

    return make


def behind(maker):
    """The run of monoBERT behind the dense first stage."""
    return maker.folder / 'repbert-demo.monobert-demo.txt'


def test_every_run_is_made_once(new_maker, checkpoints):
    first, commands = new_maker()
    available = [name for name, own in first.systems.items() if own.group != 'other-demo']
    made = {name: first.run(name).path.read_bytes() for name in available}
    assert len(made) == 16
    assert sum('--pairs' in words for words in commands) == 1
    assert f'{checkpoints["monobert-demo"]}@20' in next(words for words in commands if str(behind(first)) in words)
    again, commands = new_maker()
    assert {name: again.run(name).path.read_bytes() for name in available} == made
    assert commands == []


def test_duobert_reranks_the_best_of_monobert(tools, new_maker, checkpoints):
    depth = tools[0].DUO_DEPTH
    maker, _ = new_maker()
    mono = read_run(maker.run(MONO).path)
    texts = {passage.docid: passage.text for passage in open_corpus(maker.collection.corpus)}
    for method in ('sum', 'min'):
        from pyserini_repbert.ranking import Candidate

        reranker = DuoBertReranker(checkpoints['duobert-demo'], method=method)
        found = read_run(maker.run(f'{DUO}.{method}').path)
        for qid, query in TOPICS.items():
            candidates = [Candidate(docid, 0.0, texts[docid]) for docid in mono[qid].docids[:depth]]
            expected = [item.docid for item in reranker.rerank(query, candidates)] + list(mono[qid].docids[depth:])
            assert list(found[qid].docids) == expected


def test_other_weights_make_what_rests_on_them_again(new_maker, checkpoints):
    maker, _ = new_maker()
    for name in ('bm25.vanilla-demo', 'repbert-demo+bm25', f'{DUO}.max'):
        maker.run(name)
    path = Path(checkpoints['repbert-demo']) / 'model.safetensors'
    save_file({name: 2 * value for name, value in load_file(path).items()}, path)
    maker, commands = new_maker()
    for name in ('bm25.vanilla-demo', 'repbert-demo+bm25', f'{DUO}.max'):
        maker.run(name)
    assert [words[0] for words in commands] == ['encode', 'search', 'fusion']
    assert '--overwrite' in commands[0]


@pytest.fixture
def stopped(new_maker, monkeypatch):
    """A maker whose monoBERT was killed after its first query batch, twice."""
    from pyserini_repbert.pipeline.resume import PartFile

    maker, _ = new_maker()
    original = PartFile.append

    def dies(self, number, batch):
        original(self, number, batch)
        raise PyseriniRepbertError('killed')

    monkeypatch.setattr(PartFile, 'append', dies)
    for _ in range(2):
        with pytest.raises(PyseriniRepbertError, match='killed'):
            maker.run(MONO)
    monkeypatch.undo()
    return maker


def moved(checkpoints):
    """monoBERT's checkpoint in another folder, as when it ships."""
    checkpoints['monobert-demo'] = shutil.copytree(checkpoints['monobert-demo'], checkpoints['monobert-demo'] + '.new')


def test_a_reranking_that_was_stopped_goes_on(new_maker, stopped):
    maker, commands = new_maker()
    assert maker.run(MONO).path.is_file()
    assert ['--resume' in words for words in commands] == [True]


def test_a_reranking_by_a_checkpoint_that_moved_begins_again(new_maker, stopped, checkpoints):
    moved(checkpoints)
    maker, commands = new_maker()
    assert maker.run(MONO).path.is_file()
    assert ['--overwrite' in words for words in commands] == [True]


def test_a_finished_run_does_not_mind_where_its_checkpoint_lies(new_maker, checkpoints):
    made = new_maker()[0].run(MONO).path.read_bytes()
    moved(checkpoints)
    maker, commands = new_maker()
    assert maker.run(MONO).path.read_bytes() == made and commands == []


def test_cosine_is_the_order_of_normalised_vectors(tools, new_maker, checkpoints):
    maker, _ = new_maker()
    found = read_run(maker.run('minilm.cosine').path)
    passages = list(open_corpus(maker.collection.corpus))
    vectors = RepBertDocumentEncoder(checkpoints['minilm']).encode([passage.text for passage in passages])
    query = RepBertQueryEncoder(checkpoints['minilm']).encode(TOPICS['q2'])
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    expected = sorted(zip(-cosines, (passage.docid for passage in passages), strict=True))
    assert found['q2'].docids == tuple(docid for _, docid in expected)
    np.testing.assert_allclose(found['q2'].scores, [-score for score, _ in expected], atol=1e-5)
    assert found['q2'].docids != read_run(maker.run('minilm').path)['q2'].docids


def test_a_section_has_means_differences_and_what_is_missing(tools, new_maker):
    _, _, demo_results = tools
    maker, _ = new_maker()
    text, lacks = demo_results.section(maker.collection, maker)
    lines = text.splitlines()
    cells = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines if line.startswith('|')]
    assert cells[0] == ['run', 'nDCG@10', 'MRR@10']
    # d3 is hit 10 of BM25 for q1 (7 * 9 mod 20), d5 hit 7 for q2 (d9, of grade 2, is no hit), d14 hit 5 for q3
    assert ['BM25', f'{(0.28906 + 0.12670 + 0.38685) / 3:.4f}', f'{(1 / 10 + 1 / 7 + 1 / 5) / 3:.4f}'] in cells
    against = [row[:2] for row in cells if len(row) == 4]
    assert ['BM25, monobert-demo, duobert-demo MIN', 'BM25, monobert-demo'] in against
    assert ['BM25, cedr-knrm-demo', 'BM25, vanilla-demo'] in against
    assert ['repbert-demo', 'minilm (before training), cosine'] in against
    why = "'other-demo' is not in the catalog: give --checkpoints other-demo=FOLDER."
    assert f'**Not run**: BM25, other-demo. {why}' in lines
    assert lacks and 'Rerankers take the best 12 of BM25' in text and '3 judged topics' in text
    assert 'repbert-demo ' + maker.run('repbert-demo').weights['repbert-demo'][:12] in text


def test_the_tables_have_what_was_asked_for(tools, new_maker):
    _, _, demo_results = tools
    new_maker()[0].run('repbert-demo')
    maker, commands = new_maker(['bm25'])
    text, lacks = demo_results.section(maker.collection, maker)
    assert '| BM25 ' in text and 'repbert-demo' not in text and 'Rerankers' not in text and 'Not run' not in text
    assert not lacks
    assert {words[0] for words in commands} == {'index', 'search'}


def test_missing_data_is_said_loudly(tools, tmp_path, capsys):
    _, _, demo_results = tools
    page = tmp_path / 'page.md'
    arguments = ['--data', str(tmp_path), '--work', str(tmp_path / 'work'), '--page', str(page), '--only', 'cacm']
    assert run(demo_results.main, arguments) == 1
    assert '**NOT RUN**: the data folder lacks cacm.tar.gz, topics.cacm.txt, qrels.cacm.txt.' in page.read_text()
    assert 'cacm: NOT RUN' in capsys.readouterr().err
    assert not (tmp_path / 'work').exists()


def test_prose_around_the_tables_stays(tools, tmp_path):
    _, _, demo_results = tools
    page = tmp_path / 'page.md'
    page.write_text('# Mine\n\nFindings.\n\n<!-- results demo -->\nold\n<!-- end -->\n\nMore.\n')
    demo_results.write_page(page, {'demo': 'new\n'})
    expected = '# Mine\n\nFindings.\n\n<!-- results demo -->\n\nnew\n\n<!-- end -->\n\nMore.\n'
    assert page.read_text() == expected
    demo_results.write_page(page, {'demo': 'new\n'})
    assert page.read_text() == expected
    with pytest.raises(InputError, match="no '<!-- results cacm -->'"):
        demo_results.write_page(page, {'demo': 'newer', 'cacm': 'new\n'})
    assert page.read_text() == expected


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        (['--only', 'robust04'], "collection 'robust04' is unknown: expected demo, liveqa, cacm, vaswani"),
        (['--systems', 'colbert'], "system 'colbert' is unknown"),
        (['--depth', 'demo=1'], "--depth '1': a whole number of at least"),
        (['--depth', 'robust04=50'], "--depth 'robust04=50': NAME=VALUE was expected, demo, liveqa"),
        (['--checkpoints', 'folder'], "--checkpoints 'folder': NAME=VALUE was expected"),
    ],
)
def test_wrong_arguments(tools, given, message, capsys):
    _, _, demo_results = tools
    assert run(demo_results.main, ['--data', '.', '--work', '.', *given]) == 2
    assert message in capsys.readouterr().err


def test_further_rerankers_are_compared_with_vanilla_bert(tools):
    demo_runs, _, _ = tools
    own = demo_runs.all_systems(['cedr-knrm-apart', 'other'])
    both = ('bm25', 'bm25.minilm.cosine', 'bm25.vanilla-demo')
    assert own['bm25.other'].against == both
    assert own['bm25.cedr-knrm-apart'].against == (*both, 'bm25.cedr-knrm-demo')


def test_the_collections_topics_are_test_topics(tools):
    """Those that recipes never train on."""
    demo_runs, _, _ = tools
    assert [one.topics for one in demo_runs.COLLECTIONS][:2] == ['demo', '{data}/medquad/liveqa.topics.tsv']
    assert len(read_topics(importlib.import_module('pyserini_repbert.catalog').file('topics', 'demo'))) == 500


def test_candidates_by_cosine(new_maker, checkpoints):
    """BM25's best 12 in the order of their cosine, computed here in float64; the last two stay where they were."""
    shop, _ = new_maker()
    found, bm25 = (read_run(shop.run(name).path) for name in ('bm25.minilm.cosine', 'bm25'))
    texts = {passage.docid: passage.text for passage in open_corpus(shop.collection.corpus)}
    queries, passages = RepBertQueryEncoder(checkpoints['minilm']), RepBertDocumentEncoder(checkpoints['minilm'])
    for qid, text in TOPICS.items():
        best, rest = bm25[qid].docids[:12], bm25[qid].docids[12:]
        vectors = passages.embed([texts[docid] for docid in best]).astype(np.float64)
        cosines = vectors @ queries.encode(text).astype(np.float64) / np.linalg.norm(vectors, axis=1)
        assert list(found[qid].docids) == [*(best[place] for place in np.argsort(-cosines, kind='stable')), *rest]
