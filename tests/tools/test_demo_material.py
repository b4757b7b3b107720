"""What the demo rerankers are taught with: cut from real paragraphs, and from documents and
modules made up here.
"""

import gzip
import importlib
import json
import random
import sys
from pathlib import Path

import pytest

from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics

TOOLS = Path(__file__).parents[2] / 'tools'
TEXT = (
    'Slugs eat young lettuce at night. They hide under boards during the day. Copper tape '
    'keeps them off the beds.'
)
MODULE = '''"""Count the slugs that hide under boards, and the plants that they have eaten since the evening before.

They are counted once an hour by a camera that looks at every board from below, and the count is kept.

Parameters
----------
boards : how many
"""
'''  # noqa: E501


@pytest.fixture
def tool(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(TOOLS))
    for name in ('demo_docstrings', 'demo_material'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    made = importlib.import_module('demo_material')
    for number in range(40):
        (tmp_path / 'lib').mkdir(exist_ok=True)
        (tmp_path / 'lib' / f'slugs{number}.py').write_text(
            MODULE.replace('slugs', f'slugs number {number}', 1)
        )
    monkeypatch.setattr(made, 'LIBRARIES', ())
    monkeypatch.setattr(made.sysconfig, 'get_paths', lambda: {'stdlib': str(tmp_path / 'lib')})
    return made


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, 'wt', encoding='utf-8') as stream:
        stream.write(text)


@pytest.fixture
def data(tmp_path):
    """XQuAD's articles with a paragraph each, QED's examples, and 40 documents of MedQuAD, all
    about slugs.
    """
    corpus = {passage.docid: passage.text for passage in open_corpus('demo')}
    articles = [
        {
            'paragraphs': [
                {
                    'context': text,
                    'qas': [{'question': f'what is {docid}', 'answers': [{'answer_start': 0}]}],
                }
            ]
        }
        for docid, text in corpus.items()
        if docid.startswith('xquad')
    ]
    _write(tmp_path / 'data/qed/xquad.en.json.gz', json.dumps({'data': articles}))
    relevant = load_qrels('demo-train')
    examples = []
    for query in load_topics('demo-train'):
        text = corpus[next(iter(relevant[query.qid]))]
        chosen = {'selected_sentence': {'start': 10}}
        example = {
            'question_text': query.text,
            'paragraph_text': text,
            'sentence_starts': [0, 9, 30],
        }
        examples.append(json.dumps(example | {'annotation': chosen}))
    _write(tmp_path / 'data/qed/qed-dev.jsonlines.gz', '\n'.join(examples))
    folder = tmp_path / 'data/medquad'
    documents = [
        {
            'id': f'D{n}_Sec1',
            'question': f'What do slugs {n} eat ? (Also called: x)',
            'answer': TEXT,
        }
        for n in range(40)
    ]
    _write(folder / 'corpus.jsonl.gz', '\n'.join(map(json.dumps, documents)))
    _write(folder / 'train.queries.tsv.gz', ''.join(f'MQ{n}\tslugs {n} ?\n' for n in range(40)))
    _write(folder / 'train.qrels.txt.gz', ''.join(f'MQ{n} 0 D{n}_Sec1 1\n' for n in range(40)))
    (folder / 'liveqa.qrels.txt').write_text('1 0 D3_Sec1 2\n')
    return tmp_path / 'data'


def test_nothing_is_cut_from_what_tests_or_validation_judge(tool, data):
    made = tool.collect(data)
    cut_from = {one.answers[0].removesuffix('.piece') for one in made.cut}
    test = {docid for grades in load_qrels('demo').values() for docid in grades}
    held = {docid for one in made.held_judged for docid in one.answers}
    assert held and not cut_from & (test | held | {'D3_Sec1'})
    assert {docid[:3] for docid in cut_from} >= {'qed', 'xqu', 'D1_', 'doc'}
    trained = {docid for one in made.judged for docid in one.answers}
    assert not trained & held and not trained & test
    assert {one.text for one in made.judged}.isdisjoint(one.text for one in made.held_judged)
    assert tool.collect(data) == made


def test_sentences_that_answer_are_among_their_candidates(tool, data):
    made = tool.collect(data)
    for one in (*made.sentences, *made.held_sentences):
        assert set(one.answers) <= set(one.candidates) <= made.texts.keys()
    natural = next(one for one in made.sentences if '.n' in one.qid)
    docid = natural.qid.partition('.n')[0]
    assert natural.answers == (f'{docid}.s1',)  # the one that begins at 9
    assert made.texts[f'{docid}.s1'] == made.texts[docid][9:30].strip()


def test_docstrings_without_parameters_and_examples(tool, tmp_path):
    _, title, prose = next(tool.docstrings([('python', tmp_path / 'lib')]))
    assert (
        title == 'slugs'
        and prose.startswith('Count the slugs')
        and prose.endswith('the count is kept.')
    )


@pytest.mark.parametrize('seed', range(20))
def test_pieces_are_whole_sentences_and_questions_come_from_them(tool, seed):
    draw = random.Random(seed)
    piece = tool.piece_of(TEXT, draw)
    assert piece in TEXT
    words = tool.question_from(piece, 'garden pests', draw).lower().split()
    known = {word.strip('.,') for word in f'{piece} garden pests'.lower().split()}
    assert words and {word.strip('.,') for word in words} <= known
