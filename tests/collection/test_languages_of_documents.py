"""A new collection has an encoder and an analyzer that fit its documents, or says what does not."""

import json

import pytest

from pyserini_repbert.collection import Collection, defaults
from pyserini_repbert.collection.defaults import defaults_for
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.names.corpora import open_corpus

GERMAN = {
    'schnecken': 'Schnecken fressen zuerst die jungen Pflanzen und verstecken sich am Tag unter '
    'den Brettern. Ein Kupferband hält jede Schnecke vom Salat fern, wenn es breit genug ist.',
    'tomaten': 'Eine Pflanze, die austrocknet und dann durchnässt wird, bekommt geplatzte '
    'Früchte. Gieße sie gleichmäßig und lege Stroh um die Stängel, damit der Boden sein Wasser '
    'behält.',
}
ENGLISH = {
    'slugs': 'Slugs eat the young plants first, and hide under boards by day. A band of copper '
    'keeps every slug away from the lettuce, if it is broad enough for them.',
    'tomatoes': 'A plant that dries out and is then soaked gets cracked fruit. Water it evenly, '
    'and lay straw around the stems, so that the soil keeps its water.',
    'beans': 'Bacteria on the roots of beans and peas bind nitrogen from the air, which they give '
    'to the plant, and which stays in the soil after the harvest.',
}


def write_notes(folder, texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f'{name}.txt').write_text(f'{text}\n', encoding='utf-8')
    return folder


@pytest.fixture
def sync(tmp_path, monkeypatch, capsys):
    """sync(texts, *flags) -> the lines on stderr."""
    monkeypatch.chdir(tmp_path)

    def sync(texts, *flags):
        write_notes(tmp_path / 'notes', texts)
        command = ['index', 'sync', '--corpus', 'notes', '--index', 'mine', *flags]
        assert run(main, command) == 0
        lines = capsys.readouterr().err.splitlines()
        return [line for line in lines if 'mine' in line or 'encoder' in line]

    return sync


@pytest.fixture
def search(capsys):
    """search(question) -> the docids."""

    def search(question):
        command = ['search', '--index', 'mine', '--query', question, '--quiet']
        assert run(main, command) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.split()[1] for line in lines if line.lstrip()[:1].isdigit()]

    return search


@pytest.fixture
def without_e5(monkeypatch):
    monkeypatch.setattr(defaults, 'is_installed', lambda encoder: False)


def settings_of(folder):
    with Collection.open(folder) as collection:
        return collection.generation.settings


def test_english_documents_have_minilm(sync, search, tmp_path):
    assert sync(ENGLISH) == [
        "mine has encoder 'minilm', which knows English, and Lucene's analyzer for language 'en'"
    ]
    assert search('why does fruit split open')[0] == 'tomatoes.txt'


def encoder_for(folder, n_english, n_german):
    """The encoder of a new collection of so many notes, if both encoders are installed."""
    texts = {f'en{number}': ENGLISH['beans'] for number in range(n_english)}
    texts |= {f'de{number}': GERMAN['tomaten'] for number in range(n_german)}
    return defaults_for(open_corpus(write_notes(folder, texts)), True, False).encoder


def test_a_few_german_documents_among_english_ones_need_no_other_encoder(tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, 'is_installed', lambda encoder: True)
    assert encoder_for(tmp_path / 'few', 18, 3) == 'minilm'
    assert encoder_for(tmp_path / 'more', 16, 4) == 'e5-small'


@pytest.mark.jvm
def test_german_documents_without_e5_are_searched_by_words_alone(
    sync, search, tmp_path, without_e5
):
    lines = sync(GERMAN)
    assert lines[0].endswith("Lucene's analyzer for language 'de'")
    assert lines[1].startswith(
        "encoder 'minilm' does not know the words of the documents: the collection is searched "
        'only by words, until `index settings --index mine --go-back`; encoder e5-small knows '
        'about 100 languages'
    )
    # 'Brett' is found by its stem, and a question without a word of theirs finds nothing.
    assert search('Brett') == ['schnecken.txt']
    assert search('cracked fruit') == []
    assert run(main, ['index', 'settings', '--index', 'mine', '--go-back']) == 0
    assert len(search('cracked fruit')) == 2
    # It is said again, and changes nothing that a person set.
    (line,) = sync({'kohl': GERMAN['tomaten'].replace('Pflanze', 'Kohlpflanze')})
    assert 'they are found by their words, and not by meaning' in line
    assert len(search('cracked fruit')) == 3


@pytest.mark.jvm
def test_the_status_says_why_documents_are_searched_by_words_alone(sync, capsys, without_e5):
    """A second sync says nothing, and people forget what the first one said."""

    def status():
        assert run(main, ['index', 'status', '--index', 'mine']) == 0
        return capsys.readouterr().out

    sync(GERMAN)
    assert status().endswith(
        "  rankings bm25 (set), since encoder 'minilm' does not know the words of the documents\n"
    )
    assert run(main, ['index', 'settings', '--index', 'mine', '--rankings', 'bm25']) == 0
    assert status().endswith('  rankings bm25 (set)\n')


@pytest.mark.jvm
def test_no_hits_by_words_alone_says_so(sync, tmp_path, capsys, without_e5):
    sync(GERMAN)
    nothing = ['search', '--index', 'mine', '--query', 'cracked fruit', '--quiet']
    assert run(main, nothing) == 0
    said = '   no hits: this search is only by words\n'
    assert capsys.readouterr().out == f'? cracked fruit\n{said}'
    # It is said of words, and not where a filter leaves no document to the vectors.
    assert run(main, [*nothing, '--rankings', 'dense', '--filter', 'type:pdf']) == 0
    assert capsys.readouterr().out == '? cracked fruit\n   no hits\n'


@pytest.mark.jvm
def test_a_german_diary_among_english_notes_is_named(sync, search, without_e5):
    lines = sync({**ENGLISH, 'diary': GERMAN['schnecken']}, '--encoder', 'minilm')
    assert len(lines) == 1
    assert lines[0].startswith(
        '1 of the 4 documents that have 20 words or more (diary.txt) '
        "is in words that encoder 'minilm' does not know: they are "
        'found by their words, and not by meaning; '
    )
    # The others are found by meaning as before.
    assert search('why does fruit split open')[0] == 'tomatoes.txt'


def replace_notes(tmp_path, texts):
    """Other notes in place of all."""
    for path in (tmp_path / 'notes').iterdir():
        path.unlink()
    write_notes(tmp_path / 'notes', texts)


REBUILD = ('--rebuild', '--delete-most')
AGAIN = "mine is searched by meaning again: encoder 'minilm-dot' knows the words of its documents"


@pytest.mark.jvm
def test_a_rebuild_with_an_encoder_that_knows_the_words_searches_by_meaning_again(
    sync, search, tmp_path, without_e5
):
    sync(GERMAN)
    replace_notes(tmp_path, ENGLISH)
    # The encoder is as before: what was set stays, and is said.
    assert sync(ENGLISH, *REBUILD)[-1] == (
        'mine is still searched only by words, until `index settings --index mine --go-back`'
    )
    assert sync(ENGLISH, '--encoder', 'minilm-dot', '--rebuild')[-1] == AGAIN
    assert search('ripe berries burst')[0] == 'tomatoes.txt'


@pytest.mark.jvm
def test_a_rebuild_keeps_what_a_person_set(sync, search, tmp_path, capsys, without_e5):
    def settings(*flags):
        assert run(main, ['index', 'settings', '--index', 'mine', *flags]) == 0
        return capsys.readouterr().out

    sync(GERMAN)
    settings('--k1', '1.5')
    replace_notes(tmp_path, ENGLISH)
    assert sync(ENGLISH, '--encoder', 'minilm-dot', *REBUILD)[-1] == AGAIN
    assert len(search('ripe berries burst')) == 3
    assert '1.5' in settings()
    settings('--rankings', 'bm25')
    lines = sync(ENGLISH, '--encoder', 'minilm', '--rebuild')
    assert lines[-1].startswith('mine is still searched only by words')
    assert search('ripe berries burst') == []


@pytest.mark.jvm
def test_a_rebuild_with_an_encoder_that_does_not_know_the_words_searches_words_alone(
    sync, search, tmp_path, without_e5
):
    sync(ENGLISH)
    replace_notes(tmp_path, GERMAN)
    sync(GERMAN, '--delete-most')
    assert search('cracked fruit')
    now_has, line = sync(GERMAN, '--encoder', 'minilm-dot', '--rebuild')
    assert now_has.startswith("mine now has encoder 'minilm-dot'")
    assert "encoder 'minilm-dot' does not know the words of the documents" in line
    assert 'the collection is searched only by words' in line


@pytest.mark.jvm
def test_german_documents_have_the_multilingual_encoder_where_it_is_installed(
    sync, tmp_path, monkeypatch
):
    # Any encoder of the catalog stands for it.
    monkeypatch.setattr(defaults, 'MULTILINGUAL_ENCODER', 'minilm-dot')
    sync(GERMAN)
    settings = settings_of('mine')
    assert (settings.encoder, settings.language) == ('minilm-dot', 'de')


@pytest.mark.jvm
def test_what_a_user_names_and_what_is_stored_stays(sync, tmp_path, without_e5):
    sync(ENGLISH, '--language', 'fr')
    assert settings_of('mine').language == 'fr'
    sync(GERMAN)
    assert settings_of('mine').language == 'fr'


def test_documents_of_a_program_are_looked_at_too(tmp_path):
    documents = [{'id': docid, 'text': text} for docid, text in GERMAN.items()]
    with Collection.open(tmp_path / 'mine', encoder='minilm', sparse='none') as collection:
        changes = collection.sync(iter(documents))
        assert collection.generation.settings.language == 'en'
        assert (changes.unknown.documents, changes.unknown.of) == (2, 2)
        changes = collection.sync(documents)
        assert changes.unknown is None
    with Collection.open(tmp_path / 'again', encoder='minilm', sparse='none') as collection:
        collection.add(documents)
        assert collection.generation.settings.language == 'de'


def test_a_bad_line_is_reported_once(sync, tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({'id': name, 'text': text}) for name, text in ENGLISH.items()]
    (tmp_path / 'notes.jsonl').write_text('\n'.join([*lines, '{broken']) + '\n')
    command = ['index', 'sync', '--corpus', 'notes.jsonl', '--index', 'mine', '--quiet']
    assert run(main, [*command, '--on-error', 'skip', '--sparse', 'none']) == 0
    assert caplog.text.count('notes.jsonl:4') == 1
