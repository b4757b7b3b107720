import io
import json
import tarfile

import pytest

from pyserini_repbert import catalog
from pyserini_repbert.commands import command
from pyserini_repbert.commands.search import main
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import (
    DamagedFileError,
    InputError,
    MismatchError,
    MissingResourceError,
)
from pyserini_repbert.files import cache_folder
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.names.corpora import collection_file, open_corpus
from pyserini_repbert.names.indexes import locate, ready_folder
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.search import DenseSearcher

COLLECTION = (
    '0\tThe cat sat.\n1\tA dog ran in the sun.\n2\tThe moon and the sea.\n3\tSmall red '
    'birds ate seeds.\n'
)


def test_a_missing_index_says_what_building_it_takes(capsys):
    arguments = ['--index', 'msmarco', '--encoder', 'repbert', '--query', 'cat']
    assert command.run(main, arguments) == 2
    error = capsys.readouterr().err
    for part in ('386 MB', '987 MB', '13.6 GB', '8,841,823 x 768 float16', '--build'):
        assert part in error


def test_building_offline_names_the_missing_collection(tiny_checkpoint):
    with pytest.raises(MissingResourceError, match='collection.tar.gz .987 MB. from'):
        ready_folder('msmarco', str(tiny_checkpoint()), asked_to_build=True)


def test_building_offline_names_the_missing_encoder(corpus_file):
    with pytest.raises(MissingResourceError, match='repbert.ckpt-350000.zip'):
        ready_folder('msmarco', 'repbert', asked_to_build=True, corpus=str(corpus_file(2)))


@pytest.fixture
def four_passages(monkeypatch):
    """The catalog's MS MARCO is a collection of four passages."""
    monkeypatch.setitem(catalog.get('collections', 'msmarco-v1-passage').values, 'passages', 4)


def test_a_catalog_index_is_built_from_nothing_else(tiny_checkpoint, tmp_path, capsys):
    corpus = tmp_path / 'collection.tsv'
    corpus.write_text(COLLECTION)
    checkpoint = str(tiny_checkpoint())
    arguments = ['--index', 'msmarco', '--encoder', checkpoint, '--query', 'the cat']
    assert command.run(main, [*arguments, '--build', '--corpus', str(corpus)]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    for part in (
        'has 4 passages',
        'has 8,841,823',
        f'corpus {corpus} ',
        f"with '{checkpoint}'",
        '(--index)',
    ):
        assert part in error
    assert not locate('msmarco', checkpoint).folder.exists()
    other = tmp_path / 'other.jsonl'
    other.write_text(
        ''.join(f'{{"id": "{number}", "contents": "text"}}\n' for number in range(1583))
    )
    with pytest.raises(MismatchError, match="does not have the passages of collection 'demo'"):
        ready_folder('demo', checkpoint, asked_to_build=True, corpus=str(other))


def test_what_an_earlier_release_built_from_another_corpus_is_refused(
    tiny_checkpoint, tmp_path, capsys
):
    """Such an index stayed under the catalog's name for ever."""
    corpus = tmp_path / 'collection.tsv'
    corpus.write_text(COLLECTION)
    checkpoint = str(tiny_checkpoint())
    folder = locate('msmarco', checkpoint).folder
    encode_corpus(open_corpus(corpus), RepBertDocumentEncoder(checkpoint), folder)
    assert (
        command.run(main, ['--index', 'msmarco', '--encoder', checkpoint, '--query', 'the cat'])
        == 2
    )
    error = capsys.readouterr().err
    assert (
        f"{folder} has 4 passages, collection 'msmarco-v1-passage' has 8,841,823, so it is not"
        in error
    )
    with pytest.raises(MismatchError, match='not the catalog'):
        ready_folder('msmarco', checkpoint)


def test_msmarco_is_built_from_a_collection_and_searched(
    tiny_checkpoint, tmp_path, capsys, four_passages
):
    """The whole path of --index msmarco, on a small file in MS MARCO's format."""
    corpus = tmp_path / 'collection.tsv'
    corpus.write_text(COLLECTION)
    checkpoint = str(tiny_checkpoint())
    arguments = ['--index', 'msmarco', '--encoder', checkpoint, '--query', 'the cat']
    assert command.run(main, [*arguments, '--build', '--corpus', str(corpus)]) == 0
    assert command.run(main, arguments) == 0
    shown = capsys.readouterr()
    assert shown.out.count('? the cat') == 2 and shown.err.count('building index') == 1
    searcher = DenseSearcher.from_prebuilt_index('msmarco', checkpoint)
    assert len(searcher.search('the cat', 9)) == 4
    named = locate('msmarco', checkpoint)
    bundle = DenseBundle(named.folder)
    assert bundle.settings.dtype == 'float16' and len(bundle) == 4 and bundle.has_texts


@pytest.fixture
def archive():
    """The collection's archive in the downloads; it is not the real one."""
    archive = cache_folder() / 'downloads' / 'collection.tar.gz'
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, 'w:gz') as packed:
        member = tarfile.TarInfo('collection.tsv')
        member.size = len(COLLECTION)
        packed.addfile(member, io.BytesIO(COLLECTION.encode()))
    return archive


@pytest.fixture
def fetched(archive, monkeypatch):
    """The archive, as if it had the right checksum."""
    monkeypatch.setattr('pyserini_repbert.download.fetch_entry', lambda entry: archive)
    return archive


MSMARCO = catalog.get('collections', 'msmarco-v1-passage')


def test_another_archive_is_refused(archive):
    with pytest.raises(DamagedFileError, match='has MD5'):
        collection_file(MSMARCO)


def test_the_collection_is_unpacked_from_its_archive(fetched):
    passages = open_corpus(collection_file(MSMARCO))
    assert [passage.docid for passage in passages] == ['0', '1', '2', '3']


def test_the_collection_is_unpacked_once(fetched):
    first = collection_file(MSMARCO)
    fetched.write_bytes(b'')
    assert collection_file(MSMARCO) == first


def test_a_damaged_archive_is_refused(fetched):
    fetched.write_bytes(fetched.read_bytes()[:50])
    with pytest.raises(DamagedFileError, match='not a complete archive'):
        collection_file(MSMARCO)


@pytest.mark.slow
def test_the_demo_answers_its_topics(demo_cache, tmp_path, monkeypatch):
    """The index that a search built where there was none."""
    from pyserini_repbert.commands.evaluate import main as evaluate

    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(demo_cache))
    run = tmp_path / 'run.txt'
    arguments = [
        '--encoder',
        'repbert-demo',
        '--index',
        'demo',
        '--topics',
        'demo',
        '--output',
        str(run),
    ]
    assert command.run(main, arguments) == 0
    scores = tmp_path / 'scores.txt'
    assert evaluate(['--qrels', 'demo', str(run), '--per-query', str(scores)]) in (0, None)
    manifest = json.loads((locate('demo', 'repbert-demo').folder / 'manifest.json').read_text())
    assert manifest['count'] == 1583 and run.read_text().count('\n') == 500 * 1000
    assert scores.stat().st_size > 0


def test_a_folder_hides_no_name_of_topics_or_judgments(tmp_path, monkeypatch):
    (tmp_path / 'demo').mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(load_topics('demo')) == len(load_qrels('demo')) == 500
    with pytest.raises(InputError, match='other is a folder'):
        (tmp_path / 'other').mkdir()
        load_topics('other')
