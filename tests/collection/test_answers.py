"""What `search` and `explain` say of a collection's documents: titles, passages, which decided."""

import json

import pytest

from pyserini_repbert.collection.excerpts import read_excerpts
from pyserini_repbert.commands import command
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.commands.terminal import hits_text
from pyserini_repbert.explain.explaining import hit_reasons
from pyserini_repbert.ranking import Candidate, Excerpt, Ranking

LONG = ' '.join(f'{word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird') * 3)
DOCUMENTS = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat'},
    {'id': 'b', 'text': f'{LONG} moon tree.', 'title': 'the long one'},
    {'id': 'untold', 'text': '', 'lang': 'de'},
]


@pytest.fixture
def mine(open_collection, tmp_path):
    """The folder of a collection of three documents."""
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
    return str(tmp_path / 'mine')


@pytest.fixture
def run(capsys):
    """run(main, *arguments) -> what was printed, after a status of 0, or of 2."""

    def call(main, *arguments, status=0):
        assert command.run(main, [*map(str, arguments)]) == status
        found = capsys.readouterr()
        return found.err if status else found.out

    return call


def document(text, title=''):
    """A document of 1,000 characters more, whose passage has this text."""
    passage = Excerpt(number=3, start=1000, end=1000 + len(text), text=text, title=title)
    return Ranking.of([Candidate('d', 1.0, passage.model_input, (passage,))])


def test_a_title_stands_beside_the_docid():
    assert hits_text('snail', document('A snail.', 'Salad\x07')).splitlines() == [
        '? snail',
        '   1. d  (1.0000)  Salad\ufffd',
        '      A snail.',
    ]
    assert hits_text('snail', document('A snail.')).splitlines()[1] == '   1. d  (1.0000)'


def test_the_match_is_in_the_middle_of_the_lines(monkeypatch):
    monkeypatch.setenv('COLUMNS', '46')
    words = ' '.join(['aaaa'] * 40), ' '.join(['zzzz'] * 40)
    shown = hits_text('snail', document(f'{words[0]} snail {words[1]}')).splitlines()[2:]
    assert [line.strip() for line in shown] == [
        '… ' + ' '.join(['aaaa'] * 7),
        ' '.join(['aaaa'] * 7) + ' snail',
        ' '.join(['zzzz'] * 8),
        ' '.join(['zzzz'] * 6) + ' …',
    ]


def test_without_a_match_it_is_the_beginning(monkeypatch):
    monkeypatch.setenv('COLUMNS', '46')
    shown = hits_text('snail', document(' '.join(['aaaa'] * 80))).splitlines()[2:]
    assert len(shown) == 4 and shown[0].strip().startswith('aaaa') and shown[3].endswith(' …')


def test_a_reason_is_the_passage():
    (reasons,) = hit_reasons('snail', document('A snail.'), ['dense'], [Ranking(['d'], [1.0])])
    assert reasons == [
        'ranks: dense 1',
        'passage 4 of the document, characters 1000 to 1008',
    ]


def test_search_says_which_passage_decided(mine, run, cross_encoder_folder):
    asked = ('--index', mine, '--query', 'moon tree', '--hits', 2, '--explain', '--quiet')
    shown = run(search, *asked)
    assert ')  the long one\n' in shown and shown.count('      passage ') == 2
    mono = cross_encoder_folder('monobert')
    reranked = run(search, *asked, '--rerank', f'{mono}@2:passages=20')
    scores = {}
    for number in range(20):
        # CutPassage by passage, the reranker prefers the one that is said.
        excerpt = _passage(mine, 'b', number)
        if excerpt is not None:
            stated = (
                f'passage {number + 1} of the document, characters {excerpt.start} to {excerpt.end}'
            )
            scores[stated] = _score(mono, excerpt.model_input)
    best = max(scores, key=lambda stated: scores[stated])
    assert best in reranked


def _passage(folder, docid, number):
    from pathlib import Path

    from pyserini_repbert.collection.generation import open_generation

    generation = open_generation(Path(folder))
    docno = int(generation.docnos([docid])[0])
    known = {span.number for span in generation.passages([docno])[docno]}
    excerpt = read_excerpts(generation, {docno: [number]})[docno][0] if number in known else None
    generation.close()
    return excerpt


def _score(folder, text):
    from pyserini_repbert.rerank import MonoBertReranker

    return MonoBertReranker(folder).rerank('moon tree', [Candidate('x', text=text)])[0].score


def test_explain_explains_the_best_passage(mine, run, cross_encoder_folder):
    mono = cross_encoder_folder('monobert')
    asked = ('--index', mine, '--query', 'moon tree', '--model', mono, '--docid', 'b', 'a')
    explained = json.loads(run(explain, *asked, '--json'))
    assert [passage['docid'] for passage in explained['excerpts']] == ['b', 'a']
    said = run(explain, *asked).splitlines()
    for line, passage in zip(said, explained['excerpts'], strict=False):
        start, end = passage['start'], passage['end']
        assert line == (
            f'{passage["docid"]}: passage {passage["number"] + 1} of the document, '
            f'characters {start} to {end}'
        )
        excerpt = _passage(mine, passage['docid'], passage['number'])
        position = explained['docids'].index(passage['docid'])
        assert explained['scores'][position] == pytest.approx(
            _score(mono, excerpt.model_input), abs=1e-5
        )
    assert said[2] == ''


def test_explain_searches_within_a_filter(mine, run, cross_encoder_folder):
    mono = cross_encoder_folder('monobert')
    asked = ('--index', mine, '--query', 'moon tree', '--model', mono, '--json')
    found = run(search, '--index', mine, '--query', 'moon tree', '--hits', 5, '--quiet')
    docids = [line.split()[1] for line in found.splitlines() if line.startswith('   1.')]
    best = json.loads(run(explain, *asked, '--hits', 1))
    assert best['docids'] == docids
    both = json.loads(run(explain, *asked, '--hits', 5))
    assert sorted(both['docids']) == ['a', 'b']
    within = json.loads(run(explain, *asked, '--hits', 5, '--filter', 'docid:a'))
    named = json.loads(run(explain, *asked, '--docid', 'a'))
    assert within == named


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        (['--hits', 2, '--filter', 'lang:de'], 'finds no document with a text in collection'),
        (['--hits', 2, '--filter', 'kind:x'], "there is no field 'kind'"),
        (['--docid', 'a', '--filter', 'lang:de'], '--filter is for --hits, which searches'),
        (['--hits', 2, '--corpus', 'docs.jsonl'], '--hits are of a collection'),
    ],
)
def test_a_search_that_is_not_explained(arguments, problem, mine, run, cross_encoder_folder):
    mono = cross_encoder_folder('monobert')
    asked = ('--index', mine, '--query', 'moon', '--model', mono)
    printed = run(explain, *asked, *arguments, status=2)
    assert problem in printed and printed.count('\n') == 1


@pytest.mark.parametrize('docid', ['none', 'untold'])
def test_a_document_without_text_is_not_explained(docid, mine, run, cross_encoder_folder):
    mono = cross_encoder_folder('monobert')
    asked = ('--index', mine, '--query', 'moon', '--model', mono, '--docid', docid)
    assert f"has no document '{docid}' with a text" in run(explain, *asked, status=2)


def test_the_vectors_of_the_last_queries_are_at_hand(mine, monkeypatch):
    """Passages are chosen without encoding their query again, also after other queries."""
    from pyserini_repbert.collection import dense_search
    from pyserini_repbert.pipeline.opening import open_searcher
    from pyserini_repbert.pipeline.spec import PipelineSpec

    monkeypatch.setattr(dense_search, '_LAST_QUERIES', 3)
    searcher = open_searcher(PipelineSpec(index=mine))
    encoded = []
    encode = searcher.dense.query_encoder.encode_batch
    monkeypatch.setattr(
        searcher.dense.query_encoder,
        'encode_batch',
        lambda queries: (encoded.extend(queries), encode(queries))[1],
    )
    expected = searcher.search('moon', 2)
    reranked = searcher.with_stored_texts('moon', Ranking.of(expected))
    assert encoded == ['moon']
    for number in range(3):
        searcher.search(f'cat {number}', 2)
    assert encoded == ['moon', 'cat 0', 'cat 1', 'cat 2']
    ranking = Ranking([hit.docid for hit in expected], [hit.score for hit in expected])
    searcher.with_stored_texts('cat 0', ranking)
    assert len(encoded) == 4
    again = searcher.with_stored_texts('moon', ranking)
    assert encoded[4:] == ['moon'], 'it is not among the last three'
    assert [hit.excerpts for hit in again] == [hit.excerpts for hit in reranked]
    searcher.close()
