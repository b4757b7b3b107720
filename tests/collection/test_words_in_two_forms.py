"""BM25, filters, docids and marks find words in whichever form they are written."""

import hashlib
import json
import sqlite3
import unicodedata
from contextlib import closing

import pytest
from folders import all_documents

from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.data.word_forms import WordForms
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.query_words import word_finder
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher


def nfd(text):
    return unicodedata.normalize('NFD', text)


# By language: a word as one writes it, and the same word in other forms.
WORDS = {
    'en': ['crème', 'office', "don't", 'server'],
    'de': ['Größe', 'Krankenversicherung', 'Straße'],
    'ar': ['مدرسة', 'كتاب', 'السلام'],
    'zh': ['数据', '服务器', 'ABC'],
    'ko': ['학교', '도서관'],
    'fa': ['کتاب\u200cخانه'],
}
CHANGES = {
    'NFD': nfd,
    'soft hyphens': lambda word: '\u00ad'.join(word),
    'marks of direction': lambda word: f'\u200f{word}\u200e',
    'byte order mark': lambda word: f'\ufeff{word}',
    'full width': lambda word: ''.join(
        chr(ord(sign) + 0xFEE0) if '!' < sign < '~' and sign.isalnum() else sign for sign in word
    ),
    'ligatures': lambda word: word.replace('ffi', 'ﬃ').replace('لا', '\ufefb'),
    'curly apostrophes': lambda word: word.replace("'", '’'),
}


@pytest.mark.jvm
@pytest.mark.parametrize('language', WORDS)
def test_bm25_finds_words_in_each_form(open_collection, language):
    """In documents and in questions; what is stored is as it was written."""
    words = WORDS[language]
    texts = {'none': 'nothing'}
    for number, word in enumerate(words):
        for name, change in CHANGES.items():
            texts[f'{number}-{name.replace(" ", "-")}'] = f'{change(word)} 7{number}'
    with open_collection(sparse='bm25', language=language) as collection:
        collection.sync([{'id': docid, 'text': text} for docid, text in texts.items()], 's')
        assert {item.docid: item.text for item in all_documents(collection.generation)} == texts
        searcher = collection.searcher(rankings=['bm25'])
        for number, word in enumerate(words):
            for change in CHANGES.values():
                hits = searcher.search(change(word), k=100)
                found = [hit.docid for hit in hits if hit.docid.startswith(f'{number}-')]
                assert len(found) == len(CHANGES)
                # All have the same words, so they have the same score.
                assert hits[0].score - hits[len(found) - 1].score < 1e-4
        find_words = word_finder(language)
        for docid, text in texts.items():
            word = words[int(docid[0])] if docid != 'none' else ''
            matches = find_words(word, text)
            marked = ''.join(text[match.start : match.end] for match in matches)
            # English marks stop at apostrophes; the rest of the word is shown as it was written.
            whole = text.split(' ')[0] if matches else ''
            assert set(whole) - set(marked) <= set("'’\u200e\u200f\ufeff\u00ad\u200c")
            assert bool(matches) == bool(word)


@pytest.mark.jvm
def test_the_words_of_reasons_are_those_of_the_question(open_collection):
    with open_collection(sparse='bm25') as collection:
        collection.sync([('a', 'the crème'), ('b', 'the cat')], 's')
        ranking = collection.searcher(rankings=['bm25']).ranking('bm25')
        question = nfd('Crème')
        (reason,) = ranking.reasons(question, ['a'])['a']
        assert [weight.word for weight in reason.words] == [question]


@pytest.mark.jvm
def test_a_lucene_index_is_as_anserini_makes_it_unless_words_are_to_be_united(tmp_path):
    text = nfd('the crème')
    for forms, questions in [('written', [nfd('crème')]), ('united', ['crème', nfd('crème')])]:
        folder = tmp_path / forms
        build_lucene_index([('a', text), ('b', 'cat')], folder, word_forms=WordForms(forms))
        record = json.loads((folder / 'pyserini_repbert.json').read_text())
        assert record.get('word_forms', 'written') == forms
        with closing(LuceneSparseSearcher(folder)) as searcher:
            found = []
            for question in ('crème', nfd('crème')):
                if [hit.docid for hit in searcher.search(question)]:
                    found.append(question)
            assert found == questions
            assert searcher.texts(['a']) == [text]
            assert searcher.by_documents().search('a') == []


FIELDS = {
    'nfc': {'author': 'José Núñez', 'Größe': 'groß'},
    'nfd': {nfd('author'): nfd('José Núñez'), nfd('Größe'): nfd('GROSS')},
    'shy': {'author': 'Jo\u00adsé Núñez', 'Größe': ['gro\u00adß']},
    'full': {'author': 'Ｊosé\u00a0Núñez', 'Größe': {'outer': 'x'}},
    'other': {'author': 'Jose Nunez', 'year': '２０２４'},
}


@pytest.mark.parametrize('change', [str, *CHANGES.values()])
def test_filters_find_values_in_each_form(open_collection, change):
    def find(text):
        return sorted(hit.docid for hit in collection.search('cat', k=9, filter=text))

    with open_collection() as collection:
        documents = []
        for docid, fields in FIELDS.items():
            documents.append({'id': docid, 'text': f'cat {docid}', **fields})
        collection.sync(documents, 's')
        assert find(f'author:"{change("José Núñez")}"') == ['full', 'nfc', 'nfd', 'shy']
        assert find(f'author:{change("José")}*') == ['full', 'nfc', 'nfd', 'shy']
        assert find(f'{change("Größe")}:"{change("groß")}"') == ['nfc', 'nfd', 'shy']
        assert find(f'{change("Größe")}.outer:x') == ['full']
        assert find(f'year:{change("2024")}') == ['other']
        check_collection(collection.folder)


DOCIDS = [
    nfd('Größe.md'),
    'Kran\u00adken.md',
    'don’t.md',
    'Ａ/Ｂ.md',
    'My%20dócs/100%25.md',
    'plain.md',
]


def test_docids_are_found_in_each_form(open_collection):
    def find(text):
        return sorted(hit.docid for hit in collection.search('cat', k=9, filter=text))

    with open_collection() as collection:
        collection.sync([(docid, 'cat') for docid in DOCIDS], 's')
        typed = ['Größe.md', 'Kranken.md', "don't.md", 'A/B.md', 'My dócs/100%.md', 'plain.md']
        for docid, words in zip(DOCIDS, typed, strict=True):
            for change in (str, nfd, lambda word: f'\u200e{word}'):
                assert find(f'docid:"{change(words)}"') == [docid]
                assert find(f'docid:"{change(words[:-3])}*"') == [docid]
            assert find(f'docid:"{docid}"') == [docid]
            assert collection.generation.documents([docid])[0].docid == docid
        collection.delete([DOCIDS[0]])
        assert find('docid:"Größe.md"') == []
        check_collection(collection.folder)


def test_a_collection_that_compares_words_as_written_is_refused(open_collection):
    with open_collection() as collection:
        collection.sync([('a', 'cat')], 's')
    path = collection.folder / 'generations' / '000001.json'
    manifest = json.loads(path.read_text(encoding='utf-8'))
    del manifest['settings']['word_forms']
    path.write_text(json.dumps(manifest), encoding='utf-8')
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    with closing(sqlite3.connect(collection.folder / 'collection.sqlite')) as connection:
        connection.execute('UPDATE generations SET manifest_sha256 = ?', [sha256])
        connection.commit()
    for use in (lambda: collection.search('cat'), lambda: collection.add([('b', 'dog')])):
        with open_collection() as collection, pytest.raises(InputError, match='build it again'):
            use()
