"""Languages: what analyzers find where the English one does not, and where a language is kept."""

import json
import logging

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.commands import command, index as index_command, search as search_command
from pyserini_repbert.commands.doctor import findings
from pyserini_repbert.data.snippets import mark_words
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.check import check_index
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.analysis import Analyzer, Token, analyzed_languages
from pyserini_repbert.lucene.index_record import recorded_language
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.languages import LANGUAGES, check_language, language_of
from pyserini_repbert.lucene.query_words import word_finder
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import Rm3, SparseSettings, default_settings
from pyserini_repbert.names.sparse import open_sparse
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec

pytestmark = pytest.mark.jvm

# Of each language: a text, and a question in other forms of its words.
TEXTS = {
    'de': ('Die alten Häuser stehen am Fluss.', 'Haus'),
    'fr': ("Les chevaux courent près de l'écurie.", 'cheval'),
    'zh': ('北京大学的学生在图书馆读书。', '图书馆'),
    'ar': ('زرت المكتبات الكبيرة أمس', 'مكتبة'),
    'hi': ('किताबें मेज पर हैं', 'किताब'),
}
GERMAN = {
    'd1': 'Die alten Häuser stehen am Fluss.',
    'd2': 'Ein Garten hinter dem Haus, mit Bäumen.',
    'd3': 'Der Baum trägt Äpfel.',
    'd4': 'Boote fahren auf dem Fluss.',
}


def write_index(folder, texts, language='en'):
    """An index as another program writes it, without a record."""
    folder.mkdir()
    with LuceneWriter(folder, language=language) as writer:
        writer.add([json.dumps({'id': docid, 'contents': text}) for docid, text in texts.items()])
    return folder


@pytest.fixture(scope='module')
def foreign(tmp_path_factory):
    """The German texts in an index without a record."""
    return write_index(tmp_path_factory.mktemp('foreign') / 'index', GERMAN, 'de')


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """The German texts in an index of this package."""
    folder = tmp_path_factory.mktemp('recorded') / 'index'
    build_lucene_index(GERMAN.items(), folder, language='de')
    return folder


def docids(searcher, query):
    return sorted(hit.docid for hit in searcher.search(query, 10))


@pytest.mark.parametrize('language', TEXTS)
def test_a_language_finds_what_english_does_not(language, tmp_path):
    text, query = TEXTS[language]
    others = {'other': 'zebra'}
    settings = SparseSettings(language=language)
    for name, spoken in (('own', language), ('english', 'en')):
        write_index(tmp_path / name, {'d': text, **others}, spoken)
    own = LuceneSparseSearcher(tmp_path / 'own', settings)
    assert docids(own, query) == ['d']
    # The English analyzer breaks Chinese into single characters, which find anything.
    english = LuceneSparseSearcher(tmp_path / 'english')
    if language != 'zh':
        assert docids(english, query) == []
    marked = mark_words(query, text, word_finder(language)(query, text))
    assert any(part.match for part in marked)
    assert ''.join(part.text for part in marked) == text


def test_chinese_words_are_not_single_characters(tmp_path):
    texts = {'yes': '图书馆很大', 'no': '馆长画图写书'}
    write_index(tmp_path / 'own', texts, 'zh')
    write_index(tmp_path / 'english', texts)
    own = LuceneSparseSearcher(tmp_path / 'own', SparseSettings(language='zh'))
    assert docids(own, '图书馆') == ['yes']
    assert docids(LuceneSparseSearcher(tmp_path / 'english'), '图书馆') == ['no', 'yes']


def test_all_analyzers_of_anserini_are_known():
    assert analyzed_languages() == LANGUAGES
    for language in LANGUAGES:
        assert Analyzer(language).tokens('2024')[0].term == '2024', language
    with pytest.raises(InputError, match=r"language 'xx' has no analyzer: expected one of ar, bn"):
        check_language('xx')
    (found,) = [finding for finding in findings() if finding.check == 'languages']
    assert (found.status, found.found[:34]) == ('ok', '26, each with its analyzer: ar, bn')


def test_offsets_count_characters_not_units_of_java():
    german = Analyzer('de')
    assert german.tokens('😀 Häuser 😀😀 Bäume') == [
        Token('😀', 0, 1),
        Token('haus', 2, 8),
        Token('😀', 9, 10),
        Token('😀', 10, 11),
        Token('baum', 12, 17),
    ]
    assert german.tokens('') == []
    assert german.find_words('die der', 'die Häuser') == []


def test_overlapping_words_are_marked_once():
    text = '去北京大学读书'
    parts = mark_words('北京大学', text, word_finder('zh')('北京大学', text))
    assert [part.text for part in parts if part.match] == ['北京大学']
    assert ''.join(part.text for part in parts) == text


def test_an_index_keeps_its_language(recorded, foreign):
    assert recorded_language(recorded) == 'de'
    assert default_settings(recorded).language == 'de'
    assert recorded_language(foreign) is None
    assert docids(LuceneSparseSearcher(recorded), 'Baum') == ['d2', 'd3']
    # A technique has settings of its own, which leave the language alone.
    assert docids(open_sparse(f'bm25@{recorded}', language='fr'), 'Baum') == ['d2', 'd3']
    assert docids(open_sparse(f'bm25@{foreign}'), 'Häuser') == []
    assert docids(open_sparse(f'bm25@{foreign}', language='de'), 'Häuser') == ['d1', 'd2']
    assert docids(open_sparse(str(foreign), language='de', k1=0.5), 'Häuser') == ['d1', 'd2']
    assert check_index(recorded).endswith("files, language 'de'")


def test_a_record_without_a_language_is_of_an_english_index(tmp_path):
    write_index(tmp_path / 'index', {'a': 'cats'})
    record = tmp_path / 'index/pyserini_repbert.json'
    record.write_text('{"variant": "bm25"}', encoding='utf-8')
    assert recorded_language(tmp_path / 'index') == 'en'
    assert docids(open_sparse(str(tmp_path / 'index'), language='de'), 'cat') == ['a']


def test_feedback_and_pairs_follow_the_language(foreign, tmp_path):
    feedback = Rm3(fb_docs=1, original_query_weight=0.3)
    # Feedback leaves out what a tenth of all texts has.
    others = {f'other{number}': 'zebra' for number in range(40)}
    write_index(tmp_path / 'german', GERMAN | others, 'de')
    german = SparseSettings(language='de', rm3=feedback)
    # d4 shares the river with d1, which has old houses.
    found = docids(LuceneSparseSearcher(tmp_path / 'german', german), 'altes Haus')
    assert found == ['d1', 'd2', 'd4']
    pairs = LuceneSparseSearcher(foreign, SparseSettings(language='de', sdm=True))
    assert pairs.search('altes Haus', 1)[0].docid == 'd1'
    # Feedback takes terms that are not Latin letters.
    texts = {'a': 'القطط والكلاب', 'b': 'الكلاب تجري', 'c': 'السمك'}
    write_index(tmp_path / 'arabic', texts | others, 'ar')
    arabic = SparseSettings(language='ar', rm3=feedback)
    assert docids(LuceneSparseSearcher(tmp_path / 'arabic', arabic), 'قطط') == ['a', 'b']


def test_a_query_without_a_word_is_said(foreign, caplog):
    searcher = open_sparse(str(foreign), language='de').with_settings(name='bm25')
    warning = (
        "Lucene finds nothing for 'der die das': the analyzer of language 'de' leaves no word of it"
    )
    assert searcher.warnings('der die das') == [warning]
    assert searcher.warnings('der Baum') == []
    with caplog.at_level(logging.WARNING):
        assert searcher.search('der die das') == []
    assert caplog.messages == [warning]
    pipeline = open_pipeline(PipelineSpec(sparse=(str(foreign),), language='de')).pipeline
    assert len(pipeline.warnings('?!')) == 1


def test_a_language_that_no_index_takes_is_refused(recorded, foreign):
    with pytest.raises(InputError, match="language 'fr' is for .* records say 'de': leave it out"):
        open_pipeline(PipelineSpec(sparse=(str(recorded),), language='fr'))
    with pytest.raises(InputError, match=r"language 'xx' has no analyzer"):
        open_pipeline(PipelineSpec(index=str(foreign), language='xx'))


def test_the_commands(tmp_path, capsys, recorded, foreign):
    corpus = tmp_path / 'corpus.jsonl'
    lines = [json.dumps({'id': docid, 'contents': text}) for docid, text in GERMAN.items()]
    corpus.write_text('\n'.join(lines), encoding='utf-8')
    words = ['lucene', '--corpus', str(corpus), '--output', str(tmp_path / 'index'), '--quiet']
    assert command.run(index_command.main, [*words, '--language', 'de']) == 0
    capsys.readouterr()

    def search(*arguments):
        status = command.run(search_command.main, ['--quiet', *map(str, arguments)])
        return status, capsys.readouterr()

    status, shown = search('--index', tmp_path / 'index', '--query', 'Baum')
    assert (status, shown.out.count('d2'), shown.out.count('d3')) == (0, 1, 1)
    status, shown = search('--index', foreign, '--language', 'de', '--query', 'der die das')
    assert (status, shown.out) == (0, '? der die das\n   no hits\n')
    assert shown.err.startswith("warning: Lucene finds nothing for 'der die das': the analyzer")
    assert shown.err.count('\n') == 1
    status, shown = search('--index', recorded, '--language', 'fr', '--query', 'Baum')
    assert (status, shown.err.count('\n')) == (2, 1)
    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tdie\n2\tBaum\n3\tder\n', encoding='utf-8')
    run = tmp_path / 'run.txt'
    status, shown = search('--index', recorded, '--topics', topics, '--output', run)
    assert (status, shown.out.count('2 without hits')) == (0, 1)
    assert shown.err.startswith("warning: topic '1': Lucene finds nothing for 'die'")
    assert shown.err.endswith('(and 1 more)\n')


def test_a_collection_keeps_its_language(tmp_path, tiny_checkpoint):
    small = {'encoder': str(tiny_checkpoint()), 'passage_tokens': 10, 'overlap': 3}
    documents = [{'id': docid, 'text': text, 'number': docid[1]} for docid, text in GERMAN.items()]
    with Collection.open(tmp_path / 'mine', language='de', **small) as collection:
        collection.sync(documents)
        searcher = collection.searcher(rankings=['bm25'])
        assert docids(searcher, 'Häuser') == ['d1', 'd2']
        within = searcher.within(DocumentFilter('number:2'))
        assert docids(within, 'Häuser') == ['d2']
        assert language_of(within) == 'de'
        assert within.warnings('der')[0].startswith("Lucene finds nothing for 'der'")
        searcher.close()
    assert "language 'de'" in check_collection(tmp_path / 'mine')
    with pytest.raises(InputError, match=r"records say 'de'"):
        open_pipeline(PipelineSpec(index=str(tmp_path / 'mine'), language='fr'))
