"""Several collections searched together: one search, with the hits of each named by it."""

import os
from contextlib import closing

import numpy as np
import pytest
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.commands.adapt import main as adapt
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.several.searching import shares_of_greatest
from pyserini_repbert.fusion import fuse
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline import PipelineSpec, open_pipeline
from pyserini_repbert.ranking import NO_HITS, Background, Query, Ranking
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

NOTES = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat', 'year': 2020},
    {'id': 'b', 'text': 'fish ate the bird in the sea', 'year': 2010},
    {'id': 'same', 'text': 'red moon', 'kind': 'guide'},
]
MAIL = [
    {'id': 'same', 'text': 'the cat ran on the red mat', 'from': 'Ida', 'year': 'unknown'},
    {'id': 'm', 'text': 'dog and bird', 'from': 'Jo'},
]
QUESTION = 'cat on the red mat'


@pytest.fixture
def make(tmp_path, tiny_checkpoint):
    """make(name, documents, **settings) -> the folder of a collection of a tiny encoder."""
    encoder = str(tiny_checkpoint('encoder'))

    def make_collection(name, documents, **settings):
        settings = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none', **settings}
        with Collection.open(tmp_path / name, **{'encoder': encoder, **settings}) as collection:
            collection.sync(documents)
        return str(tmp_path / name)

    return make_collection


@pytest.fixture
def both(make):
    """The location of two collections."""
    return os.pathsep.join([make('notes', NOTES), make('my mail', MAIL)])


@pytest.fixture
def hits_of():
    """hits(index, **fields of a spec) -> the hits of the question."""

    def hits(index, **fields):
        pipeline = open_pipeline(PipelineSpec(index=index, **fields)).pipeline
        with closing(pipeline):
            return pipeline.search(QUESTION)

    return hits


def docids(hits):
    return [hit.docid for hit in hits]


def undivided(make, **settings):
    """A collection of the documents of both."""
    documents = [{**document, 'id': f'notes/{document["id"]}'} for document in NOTES]
    documents += [{**document, 'id': f'my%20mail/{document["id"]}'} for document in MAIL]
    return make('all', documents, **settings)


def test_hits_are_those_of_one_collection_of_all_documents(make, both, hits_of):
    expected = hits_of(undivided(make))
    found = hits_of(both.split(os.pathsep))
    assert len(found) == 5
    assert docids(found) == docids(expected)
    np.testing.assert_allclose(
        [hit.score for hit in found], [hit.score for hit in expected], atol=1e-6
    )
    assert [hit.text for hit in found] == [hit.text for hit in expected]


@pytest.mark.jvm
def test_rankings_of_vectors_and_words_are_fused_as_in_one_collection(make, hits_of):
    folders = [make('notes', NOTES, sparse='bm25'), make('mail', MAIL, sparse='bm25')]
    assert {'notes/a', 'mail/same'} <= set(docids(hits_of(folders, rankings=['bm25'])))
    index = kind_of(os.pathsep.join(folders)).open(os.pathsep.join(folders), SearchOptions())
    with closing(index.searcher(Machine())) as searcher:
        dense, words = searcher.parts
        topic = Query('0', QUESTION)
        runs = [part.rank([topic], None, None) for part in searcher.parts]
        fused = fuse(runs, 'interpolation', None, 0.6, normalize='background')['0']
        ranking = searcher.rank([topic], None, 5)['0']
        assert ranking.docids == fused.docids
        np.testing.assert_allclose(ranking.scores, fused.scores, atol=1e-5)
        for part in (dense, words):
            ranking = part.rank([topic], None, None)['0']
            scores = part.document_scores(topic, [*ranking.docids, 'nobody/x'], NO_HITS)
            assert scores.pop() is None
            np.testing.assert_allclose(scores, ranking.scores, atol=1e-5)
        own = [part.rank([topic])['0'].background for part in dense.parts]
        merged = dense.rank([topic])['0'].background
        assert merged.score == pytest.approx((3 * own[0].score + 2 * own[1].score) / 5)
        best = max(background.score + background.chance for background in own)
        assert merged.score + merged.chance == pytest.approx(best)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('year:[2015 TO *]', {'notes/a'}),
        ('kind:guide', {'notes/same'}),
        ('kind:guide OR from:Ida', {'notes/same', 'my%20mail/same'}),
        ('NOT kind:guide', {'notes/a', 'notes/b', 'my%20mail/same', 'my%20mail/m'}),
        ('from:*', {'my%20mail/same', 'my%20mail/m'}),
        ('docid:"my%20mail/same"', {'my%20mail/same'}),
        ('docid:notes/s*', {'notes/same'}),
        ('docid:no*', {'notes/a', 'notes/b', 'notes/same'}),
        ('docid:same', set()),
        ('kind:gu*', {'notes/same'}),
    ],
)
def test_a_filter_means_what_it_means_in_one_collection(both, make, hits_of, text, expected):
    assert set(docids(hits_of(both, filter=text))) == expected
    assert set(docids(hits_of(undivided(make), filter=text))) == expected


def test_a_field_that_one_collection_lacks_is_said_once(both, hits_of, caplog):
    hits_of(both, filter='kind:guide AND year:2020 OR kind:x')
    assert caplog.messages == ["no document of my%20mail has a field 'kind'"]


def test_a_field_that_no_collection_has_is_refused(both, hits_of):
    with pytest.raises(InputError, match="there is no field 'color': the fields are docid, from"):
        hits_of(both, filter='color:red')


def test_collections_of_one_name_get_numbers(make, hits_of):
    folders = [make('x/notes', NOTES), make('y/notes', MAIL)]
    assert {'notes/same', 'notes#2/same'} <= set(docids(hits_of(folders)))


def test_the_terminal_and_a_run_name_the_collection(both, tmp_path, capsys):
    notes, mail = both.split(os.pathsep)
    named = ['--index', notes, '--index', mail]
    search([*named, '--query', QUESTION, '--hits', '5', '--explain'])
    shown = capsys.readouterr().out
    assert 'my mail/same' in shown
    assert 'notes/a' in shown
    topics = tmp_path / 'topics.tsv'
    topics.write_text(f'1\t{QUESTION}\n', encoding='utf-8')
    search([*named, '--topics', str(topics), '--output', str(tmp_path / 'run.txt'), '--quiet'])
    lines = (tmp_path / 'run.txt').read_text().splitlines()
    assert {line.split(' ')[2] for line in lines} == {
        *('notes/a', 'notes/b', 'notes/same'),
        *('my%20mail/same', 'my%20mail/m'),
    }


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        (['--encoder', 'minilm'], 'each of several collections has its own'),
        (['--like', 'notes/a'], 'name that collection alone'),
        (['--only-ids', 'x.txt'], 'only_ids is for a collection'),
        (['--adapted', 'x'], 'x'),
        (['--confidence'], 'confidence is of the search of a collection alone'),
        (['--rerank', 'mmr@3'], 'a stage that reads vectors or neighbours'),
        (['--index', 'nothing'], "'nothing' is not a collection"),
    ],
)
def test_what_makes_no_sense_is_refused(both, flags, message):
    notes, mail = both.split(os.pathsep)
    asked = [] if '--like' in flags else ['--query', QUESTION]
    with pytest.raises(InputError, match=message):
        search(['--index', notes, '--index', mail, *asked, *flags])


def test_a_collection_is_named_once(both, hits_of):
    notes, _ = both.split(os.pathsep)
    with pytest.raises(InputError, match='names a collection twice'):
        hits_of([notes, f'{notes}/.'])


def test_a_folder_that_is_called_as_both_is_another_one(make, hits_of, tmp_path, monkeypatch):
    make('notes', NOTES)
    make('mail', MAIL)
    make(f'notes{os.pathsep}mail', [{'id': 'x', 'text': 'sun'}])
    monkeypatch.chdir(tmp_path)
    assert len(hits_of(['notes', 'mail'])) == 5
    assert docids(hits_of(f'notes{os.pathsep}mail')) == ['x']


def test_collections_without_a_common_ranking_are_refused(make, hits_of):
    folders = [make('notes', NOTES), make('mail', MAIL)]
    with pytest.raises(InputError, match='was built without Lucene'):
        hits_of(folders, rankings=['bm25'])


def test_a_service_answers_of_several_and_follows_each(both):
    settings = ServeSettings(indexes={'all': IndexSettings(path=both)}, rerankers=[])
    with ready_client(settings) as client:

        def found(**asked):
            answer = client.get('/v1/all/search', params={'query': QUESTION, **asked})
            assert answer.status_code == 200, answer.text
            return {hit['docid'] for hit in answer.json()['candidates']}

        assert len(found()) == 5
        assert found(filter='from:Ida') == {'my%20mail/same'}
        assert 'notes/a' in found(prf='average')
        document = client.get('/v1/all/doc/notes/b').json()
        assert document['docid'] == 'notes/b'
        assert document['doc']['text'].startswith('fish ate')
        about = client.get('/v1/all').json()
        assert about['documents'] == 5
        assert about['fields']['year'] == ['number', 'text']
        assert client.get('/v1/all/judgments').status_code == 403
        with Collection.open(both.split(os.pathsep)[1]) as collection:
            collection.add([{'id': 'new', 'text': 'sun'}])
        client.app.state.service.renew('all')
        assert 'my%20mail/new' in found()


def test_filters_are_cached_by_collection(both):
    index = kind_of(both).open(both, SearchOptions())
    with closing(index):
        within = index.within(DocumentFilter('from:Ida'))
        assert [len(part.filter.beside.types) for part in within.parts.values()] == [4, 4]
        assert not index.is_open('dense')
        within.ranking('dense', Machine())
        assert within.is_open('dense')


def test_cosines_of_two_encoders_count_as_shares_of_what_is_above_their_backgrounds():
    class Encoder:
        def vector_of(self, text):
            return np.array([0.6, 0.8])

    ranking = Ranking(['a', 'b'], [0.9, 0.7], background=Background(0.8))
    topic = Query('0', 'cat')
    shares = shares_of_greatest(ranking, Encoder(), topic)
    np.testing.assert_allclose(shares.scores, [0.5, -0.5])
    assert shares.background == Background(0.0)
    # Without the greatest score of all, the best hit has 1.
    np.testing.assert_allclose(shares_of_greatest(ranking, object(), topic).scores, [1, -1])
    assert shares_of_greatest(NO_HITS, Encoder(), topic) is NO_HITS


def test_collections_of_two_encoders_are_searched_together(make, tiny_checkpoint, hits_of):
    other = str(tiny_checkpoint('other', seed=1))
    folders = [make('notes', NOTES), make('mail', MAIL, encoder=other)]
    index = kind_of(os.pathsep.join(folders)).open(os.pathsep.join(folders), SearchOptions())
    with closing(index.searcher(Machine())) as searcher:
        assert not searcher.parts[0].gives_document_scores
        ranking = searcher.rank([Query('0', QUESTION)])['0']
    assert len(ranking) == 5
    assert {docid.partition('/')[0] for docid in ranking.docids} == {'notes', 'mail'}
    assert docids(hits_of(folders)) == list(ranking.docids)


@pytest.mark.jvm
def test_a_collection_that_is_set_to_words_alone_has_no_vectors_here(make, hits_of):
    folders = [make('notes', NOTES, sparse='bm25'), make('mail', MAIL, sparse='bm25')]
    index_command(['settings', '--index', folders[1], '--rankings', 'bm25'])
    location = os.pathsep.join(folders)
    with closing(kind_of(location).open(location, SearchOptions())) as index:
        assert index.rankings == ('dense', 'bm25')
        assert index.ranking('dense', Machine()).names == ('notes',)
        assert index.ranking('bm25', Machine()).names == ('notes', 'mail')
    assert 'mail/same' in docids(hits_of(folders))


def test_learning_is_of_one_index(both, tmp_path):
    (tmp_path / 'topics.tsv').write_text('1\tcat\n', encoding='utf-8')
    (tmp_path / 'qrels.txt').write_text('1 0 notes/a 1\n', encoding='utf-8')
    files = ['--topics', str(tmp_path / 'topics.tsv'), '--qrels', str(tmp_path / 'qrels.txt')]
    with pytest.raises(InputError, match='is several collections'):
        adapt(['--index', both, *files, '--output', str(tmp_path / 'learned')])
    assert not (tmp_path / 'learned').exists()


def test_collections_of_one_model_share_its_encoder(make, tiny_checkpoint, hits_of):
    other = str(tiny_checkpoint('other', seed=7))
    folders = [make('notes', NOTES), make('mail', MAIL, encoder=other)]
    folders += [make('more', NOTES), make('old', MAIL, encoder=other)]
    location = os.pathsep.join(folders)
    index = kind_of(location).open(location, SearchOptions())
    with closing(index.searcher(Machine())) as searcher:
        encoders = [part.dense.query_encoder for part in searcher.searchers.values()]
        notes, mail, more, old = encoders
        assert notes is more
        assert mail is old
        assert notes is not mail
        # So does an index within a filter, and the next generation.
        within = index.within(DocumentFilter('year:2020'))
        part = within.searcher(Machine()).searchers['more']
        assert part.within(DocumentFilter('year:2020')).dense.query_encoder is notes
        with Collection.open(folders[2]) as collection:
            collection.add([{'id': 'new', 'text': 'the new moon'}])
        newer = kind_of(location).open(location, SearchOptions(), index)
        newer_encoders = [
            part.dense.query_encoder for part in newer.searcher(Machine()).searchers.values()
        ]
        assert newer_encoders == encoders
        newer.close()


def test_learned_sparse_models_are_shared_too(make, tiny_epic):
    epic = str(tiny_epic('epic'))
    location = os.pathsep.join([make('notes', NOTES, sparse=epic), make('mail', MAIL, sparse=epic)])
    index = kind_of(location).open(location, SearchOptions())
    with closing(index.searcher(Machine())) as searcher:
        notes, mail = searcher.searchers.values()
        assert notes.dense.query_encoder is mail.dense.query_encoder
        notes, mail = index.parts.values()
        assert notes._further_encoders is mail._further_encoders


@pytest.mark.jvm
def test_words_judge_no_document_in_another_language_in_any_collection(make):
    german = (
        'Die Katze sitzt unter dem Tisch und wartet auf den Fisch, den der Vogel aus dem Meer holt.'
    )
    parts = [
        make('notes', NOTES, sparse='bm25'),
        make('post', [{'id': 'katze', 'text': f'{german} {german}'}], sparse='bm25'),
    ]
    location = os.pathsep.join(parts)
    index = kind_of(location).open(location, SearchOptions())
    with closing(index.searcher(Machine())) as searcher:
        _, words = searcher.parts
        unjudged = words.unjudged(Query('q', 'what is the cat doing under the table'))
        assert unjudged is not None
        assert unjudged(['notes/a', 'post/katze', 'elsewhere/x']) == {'post/katze'}
        assert words.unjudged(Query('q', 'cat')) is None
