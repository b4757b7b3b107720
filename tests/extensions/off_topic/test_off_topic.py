"""What a search claims of a question that is not about the collection."""

import asyncio
from contextlib import closing
from itertools import product

import numpy as np
import pytest
from ready_services import ready_client

from pyserini_repbert import catalog
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extensions.off_topic import claims, known_languages
from pyserini_repbert.extensions.off_topic.claims import LINE, TopicCheck
from pyserini_repbert.extensions.off_topic.file import FILE, LEAST_PASSAGES, N_QUESTIONS
from pyserini_repbert.extensions.off_topic.fixed_questions import answered_questions
from pyserini_repbert.extensions.off_topic.kept import Threshold, read_kept, read_threshold
from pyserini_repbert.extensions.off_topic.known_languages import knows_languages
from pyserini_repbert.extensions.off_topic.threshold import choose_threshold
from pyserini_repbert.extensions.off_topic.updating import keep_threshold
from pyserini_repbert.models.tokenizer import WordPieceTokenizer, read_tokenizer
from pyserini_repbert.ranking import Query

SENTENCES = product(
    ('red', 'blue', 'big', 'small', 'old'), ('cat', 'dog', 'fish', 'bird'), ('sat', 'ate', 'ran')
)
# 60 documents of a passage each.
DOCUMENTS = {f'd{number:02d}': ' '.join(words) for number, words in enumerate(SENTENCES)}


def documents(names=DOCUMENTS):
    return [{'id': name, 'text': DOCUMENTS[name], 'half': int(name[1:]) % 2} for name in names]


@pytest.fixture
def collection(tmp_path, tiny_checkpoint):
    """60 documents of a tiny encoder, without Lucene."""
    settings = {'encoder': str(tiny_checkpoint()), 'sparse': 'none'}
    with Collection.open(tmp_path / 'mine', **settings) as opened:
        opened.sync(documents())
        yield opened


def threshold_of(collection):
    generation = collection.generation
    return read_threshold(collection.folder, generation.sha256)


def claim(searcher, question):
    """What a search claims of a question."""
    check = TopicCheck.of(searcher)
    ranking = searcher.rank([Query('1', question)], None, 5)['1']
    return check.is_off_topic(question, ranking, ranking.docids)


def unclaimed(collection, docids, questions):
    """The questions that are not claimed to be off-topic, if these are their hits."""
    with closing(collection.searcher()) as searcher:
        check = TopicCheck.of(searcher)
        return [each for each in questions if not check.is_off_topic(each, None, docids)]


def best_score(collection, question):
    """The score of a question's best passage, by all vectors."""
    with closing(collection.searcher()) as searcher:
        vector = searcher.dense.vector_of(question)
        vectors = searcher.dense.vectors
        return float((vectors.gather(np.flatnonzero(vectors.live)) @ vector).max())


def set_threshold(monkeypatch, value):
    """Let the threshold of all generations be this one, above a background of 0."""
    # Words do not lower it, unless a hit has all of them.
    threshold = Threshold(value, answer=value, background=np.zeros(16, np.float32))
    monkeypatch.setattr(claims, 'read_threshold', lambda *_: threshold)


def test_the_threshold_lies_between_misses_and_answers():
    best = np.array([0.0, 0.1, 0.1, 0.1, 0.9], np.float32)
    answers = np.linspace(0.4, 0.8, 101, dtype=np.float32)
    # The median of the misses is .1, that of the answers .6; 5 of 100 answers lie below .42.
    assert choose_threshold(best, answers) == pytest.approx(0.1 + 0.1 * 0.5)
    assert choose_threshold(best + 0.5, answers) == pytest.approx(0.42)


def test_words_of_a_question_in_a_hit_lower_the_threshold():
    threshold = Threshold(0.2, answer=0.6, background=np.zeros(16, np.float32))
    assert threshold.with_words(0.0) == 0.2
    assert threshold.with_words(0.5) == pytest.approx(0.2 - 0.5 * 0.5 * 0.4)


def test_fixed_questions_have_one_answer_each():
    answered = answered_questions()
    assert len(answered) == N_QUESTIONS
    assert len({each.question for each in answered}) == N_QUESTIONS
    assert len({each.passage for each in answered}) == N_QUESTIONS


def test_a_generation_has_a_threshold(collection):
    """It is what all vectors give, and it is not there for another generation."""
    kept = read_kept(collection.folder)
    with closing(collection.searcher()) as searcher:
        questions = searcher.dense.encode([each.question for each in answered_questions()])
        vectors = searcher.dense.vectors
        products = questions @ vectors.gather(np.flatnonzero(vectors.live)).T
    best = products.max(axis=1) - kept.vectors.backgrounds
    expected = choose_threshold(best, kept.vectors.answers)
    assert threshold_of(collection).value == pytest.approx(expected, abs=1e-5)
    assert read_threshold(collection.folder, '0' * 64) is None


def test_few_passages_have_none(tmp_path, tiny_checkpoint):
    with Collection.open(tmp_path / 'few', str(tiny_checkpoint()), sparse='none') as few:
        few.sync(documents()[: LEAST_PASSAGES - 1])
        assert few.generation.manifest.passages == LEAST_PASSAGES - 1
        assert threshold_of(few) is None
        with closing(few.searcher()) as searcher:
            assert TopicCheck.of(searcher) is None


def test_added_and_deleted_documents_keep_it_true(collection, tmp_path):
    """It is that of a collection which was built with these documents at once."""
    collection.delete([f'd{number:02d}' for number in range(8)])
    collection.add([{'id': 'new', 'text': 'red fish swam in the blue sea ?'}])
    collection.delete(['d59', 'd58'])
    names = [name for name in DOCUMENTS if name not in {'d58', 'd59'} and int(name[1:]) >= 8]
    with Collection.open(
        tmp_path / 'anew', collection.generation.settings.encoder, sparse='none'
    ) as anew:
        anew.sync([*documents(names), {'id': 'new', 'text': 'red fish swam in the blue sea ?'}])
        expected = threshold_of(anew).value
    assert threshold_of(collection).value == pytest.approx(expected, abs=1e-5)


def test_shards_are_read_once(collection, monkeypatch):
    """Neither a deleted nor an added document reads the vectors of the others."""
    from pyserini_repbert.extensions.off_topic import best_passages

    read = []
    look = best_passages._look_for_best

    def look_for_best(live, questions):
        read.append(len(live.shard))
        return look(live, questions)

    monkeypatch.setattr(best_passages, '_look_for_best', look_for_best)
    collection.add([{'id': 'new', 'text': 'a bird sat on a tree'}])
    assert read == [1]
    collection.delete(['d30'])
    assert read == [1]


def test_a_question_is_compared_with_the_threshold(collection, monkeypatch):
    question = 'small dog'
    best = best_score(collection, question)
    with closing(collection.searcher()) as searcher:
        set_threshold(monkeypatch, best + 0.01)
        assert claim(searcher, question)
        set_threshold(monkeypatch, best - 0.01)
        assert not claim(searcher, question)


def test_the_claim_is_about_the_collection_not_the_filter(collection, monkeypatch):
    """Within a filter that leaves out the best document, it is as without one."""
    question = 'small dog owl'
    with closing(collection.searcher()) as searcher:
        best = searcher.rank([Query('1', question)], None, 1)['1']
        half = 1 - int(best.docids[0][1:]) % 2
        within = searcher.within(DocumentFilter(f'half:{half}'))
        filtered = within.rank([Query('1', question)], None, 1)['1']
        assert filtered.scores[0] < best.scores[0]
        set_threshold(monkeypatch, (filtered.scores[0] + best.scores[0]) / 2)
        assert not claim(within, question)
        set_threshold(monkeypatch, best.scores[0] + 0.01)
        assert claim(within, question)


def test_a_mean_of_passages_does_not_decide(collection, monkeypatch):
    """Whatever makes a document's score, the best passage decides."""
    text = 'big ' * 40 + 'small dog'
    collection.add([{'id': 'long', 'text': text}])
    question = 'small dog'
    best = best_score(collection, question)
    with closing(collection.searcher(aggregate='mean')) as searcher:
        set_threshold(monkeypatch, best - 1e-4)
        assert not claim(searcher, question)


def test_a_damaged_file_is_written_again(collection):
    before = threshold_of(collection).value
    path = collection.folder / FILE
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DamagedFileError, match=f'{FILE} differs from what was written'):
        read_kept(collection.folder)
    keep_threshold(collection)
    assert threshold_of(collection).value == before


def test_another_model_is_asked_anew(collection, tiny_checkpoint):
    """What was kept of another encoder is not used."""
    other = str(tiny_checkpoint('other', seed=1))
    with Collection.open(collection.folder, other) as rebuilt:
        rebuilt.sync(documents(), rebuild=True)
        kept = read_kept(rebuilt.folder)
        assert kept.record.model == rebuilt.generation.settings.model_key().hex()


def test_a_copy_has_the_threshold(collection, tmp_path):
    copy_collection(collection.folder, tmp_path / 'copy')
    assert read_threshold(tmp_path / 'copy', collection.generation.sha256) is not None
    assert 'intact' in check_collection(tmp_path / 'copy')


def test_a_question_whose_words_stand_in_a_hit_is_not_claimed(collection, monkeypatch):
    """A vector says little of a word or a name; words match as the marked ones of a hit do."""
    set_threshold(monkeypatch, 100.0)
    hits = ['d59', 'd00']
    questions = ['red cat sat', 'is the RED cats', 'red zebra sat', 'the']
    assert unclaimed(collection, hits, questions) == questions[:2]
    assert unclaimed(collection, ['d59'], ['red cat sat']) == []
    assert unclaimed(collection, [], ['red cat sat']) == []
    assert collection.search('red zebra sat').off_topic is True


def answers_of_service(folder, addresses):
    """The answers of a service of a collection."""
    from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder))})
    with ready_client(settings) as client:
        return [client.get(f'/v1/mine/search?{address}').json() for address in addresses]


def test_an_answer_of_the_service_has_the_field(collection, monkeypatch):
    pytest.importorskip('fastapi', reason='the serve extra is not installed')
    question = 'small zebra'
    best = best_score(collection, question)
    asked = [f'query={question}', f'query={question}&filter=half:1', 'like=d07']
    set_threshold(monkeypatch, best + 0.01)
    plain, filtered, like = answers_of_service(collection.folder, asked)
    assert plain['off_topic'] is True
    assert filtered['off_topic'] is True
    assert 'off_topic' not in like
    set_threshold(monkeypatch, best - 0.01)
    plain, filtered, _ = answers_of_service(collection.folder, asked)
    assert plain['off_topic'] is False
    assert filtered['off_topic'] is False


def answer_of_mcp(folder, question):
    """What the MCP tool `search` answers."""
    from fastmcp import Client

    from pyserini_repbert.serve.mcp import make_mcp
    from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder))})

    async def call_search():
        async with Client(make_mcp(settings)) as client:
            return (await client.call_tool('search', {'query': question, 'hits': 3})).data

    return asyncio.run(call_search())


def test_the_tool_of_mcp_says_it_beside_the_hits(collection, monkeypatch):
    pytest.importorskip('fastmcp', reason='the serve extra is not installed')
    question = 'small zebra'
    best = best_score(collection, question)
    set_threshold(monkeypatch, best + 0.01)
    answer = answer_of_mcp(collection.folder, question)
    assert answer['off_topic'] is True
    assert len(answer['candidates']) == 3
    set_threshold(monkeypatch, best - 0.01)
    assert answer_of_mcp(collection.folder, question)['off_topic'] is False
    monkeypatch.setattr(claims, 'read_threshold', lambda *_: None)
    assert 'off_topic' not in answer_of_mcp(collection.folder, question)


def test_the_terminal_says_it_above_the_hits(collection, monkeypatch, capsys):
    from pyserini_repbert.commands.search import main

    question = 'small zebra'
    best = best_score(collection, question)
    arguments = ['--index', str(collection.folder), '--query', question, '--hits', '1']
    set_threshold(monkeypatch, best + 0.01)
    main(arguments)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ['? small zebra', f'   {LINE}']
    assert lines[2].startswith('   1. ')
    main([*arguments, '--filter', 'half:7'])
    assert capsys.readouterr().out.splitlines() == ['? small zebra', '   no hits']
    set_threshold(monkeypatch, best - 0.01)
    main(arguments)
    assert LINE not in capsys.readouterr().out


def test_an_answer_in_python_has_the_attribute(collection, monkeypatch):
    question = 'small zebra'
    best = best_score(collection, question)
    set_threshold(monkeypatch, best + 0.01)
    answer = collection.search(question, k=3)
    assert answer.off_topic is True
    assert len(answer) == 3
    set_threshold(monkeypatch, best - 0.01)
    assert collection.search(question, filter='half:0').off_topic is False
    (collection.folder / FILE).unlink()
    assert collection.search(question).off_topic is None


def test_a_word_without_spaces_around_stands_in_a_hit(collection, monkeypatch):
    """Chinese and Japanese words are parts of what stands between two signs; Latin ones are not."""
    collection.add([{'id': 'zh', 'text': '巴黎大学在1200年左右成立。'}])
    collection.add([{'id': 'ja', 'text': 'データベースの索引を毎晩ひとつ作る。redcat'}])
    set_threshold(monkeypatch, 100.0)
    questions = ['巴黎大学', '成立 大学', '索引', 'データベース', '索引 redcat']
    assert unclaimed(collection, ['zh', 'ja'], questions) == questions
    assert unclaimed(collection, ['zh', 'ja'], ['伦敦大学', 'データ 鉄道', '索引 cat']) == []


ENGLISH = (
    'The landlord sends somebody for the damp wall of the kitchen on the first Monday of March and '
    'asks to have the cupboard moved before that day'
)
GERMAN = (
    'Der Vermieter schickt am ersten Montag im März jemanden wegen der feuchten Wand in der Küche '
    'und bittet darum, den Schrank vorher wegzurücken, damit der Handwerker arbeiten kann'
)


class ReadingEncoder:
    """An encoder of which only the tokenizer is asked."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer


@pytest.fixture(scope='module')
def knows_english():
    """minilm's words."""
    folder = catalog.package_folder(catalog.get('encoders', 'minilm'))
    return ReadingEncoder(WordPieceTokenizer(read_tokenizer(folder / 'tokenizer.json')))


@pytest.mark.parametrize(
    ('question', 'text', 'is_known'),
    [
        ('when does the landlord come', ENGLISH, True),
        ('when does the landlord come', 'Küche, März', True),
        ('when does the landlord come', GERMAN, False),
        ('wann kommt der landlord', ENGLISH, False),
        # Two thirds of the words are not enough.
        ('the landlord kommt', ENGLISH, False),
    ],
)
def test_words_of_questions_and_hits_are_known(knows_english, question, text, is_known):
    assert knows_languages(knows_english, question, [ENGLISH, text]) is is_known


def test_an_encoder_without_a_telling_tokenizer_is_taken_to_know_all(tiny_checkpoint):
    few_pieces = WordPieceTokenizer.from_folder(tiny_checkpoint())
    assert knows_languages(ReadingEncoder(few_pieces), 'wann kommt er', [GERMAN])


def test_nothing_is_claimed_in_a_language_that_the_encoder_does_not_know(collection, monkeypatch):
    set_threshold(monkeypatch, 100.0)
    assert collection.search('red zebra sat').off_topic is True
    monkeypatch.setattr(known_languages, 'knows_languages', lambda *_: False)
    assert collection.search('red zebra sat').off_topic is None
    # What is near needs no look at the words.
    set_threshold(monkeypatch, -100.0)
    assert collection.search('red zebra sat').off_topic is False


def test_a_filter_within_a_question_is_not_judged(collection, monkeypatch):
    """The page offers to use `half:1` as a filter; a question about a red cat is left."""
    set_threshold(monkeypatch, 100.0)
    hits = ['d59', 'd00']
    questions = ['half:1 red cat sat', 'red half:[0 TO 1] cat sat', 'half:1']
    assert unclaimed(collection, hits, questions) == questions
    others = ['half:1 red zebra sat', 'type:1 red cat sat', 'half: red cat sat']
    assert unclaimed(collection, hits, others) == []


def test_words_of_documents_that_a_filter_leaves_out_count(collection, monkeypatch):
    """A question was off-topic within a filter that left out the document with all of its words."""
    with closing(collection.searcher()) as searcher:
        for docid, question in DOCUMENTS.items():
            vector = searcher.dense.vector_of(question)
            if docid in searcher.dense.nearest_documents(vector, 5):
                break
        set_threshold(monkeypatch, best_score(collection, question) + 1)
        assert claim(searcher, question) is False
        within = searcher.within(DocumentFilter(not_ids=frozenset([docid])))
        assert docid in within.dense.nearest_documents(vector, 5)
        assert claim(within, question) is False
