"""`index epic` and `index lucene`, and `index check` on every kind of index."""

import os
import re
from dataclasses import dataclass

import numpy as np
import pytest
from folders import write_files

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.index import main
from pyserini_repbert.index.term_weights import TermWeightsBundle


@dataclass(frozen=True)
class Checked:
    """What `index check` said."""

    status: int
    text: str  # of stdout and stderr

    @property
    def is_one_line(self):
        return self.text.count('\n') == 1


@pytest.fixture
def check(capsys):
    """check(folder): what `index check` says of an index."""

    def checked(folder):
        capsys.readouterr()
        status = run(main, ['check', '--index', str(folder)])
        shown = capsys.readouterr()
        return Checked(status, shown.out + shown.err)

    return checked


@pytest.fixture
def encode_flags(tiny_checkpoint, corpus_file, tmp_path):
    """The flags of the command that makes `dense`."""
    source = ['--corpus', corpus_file(6), '--encoder', tiny_checkpoint()]
    settings = ['--quiet', '--store-text', '--shard-size', '4']
    return [*map(str, source), '--output', str(tmp_path / 'index'), *settings]


@pytest.fixture
def dense(encode_flags, tmp_path):
    encode(encode_flags)
    return tmp_path / 'index'


def flip_bit(path, position, bit=0):
    raw = bytearray(path.read_bytes())
    raw[position] ^= 1 << bit
    path.write_bytes(raw)


def test_a_whole_index(dense, check):
    encoder = dense.parent / 'tiny'
    line = f"{dense}: intact, 6 passages x 16 float32, encoder '{encoder}'\n"
    assert check(dense) == Checked(0, line)


def test_a_flipped_bit_is_found_whatever_the_files_times(dense, check):
    """A check believed the checksum that a search had remembered, and said 'whole'."""
    path = dense / 'shard-00001' / 'vectors.npy'
    check(dense)
    status = path.stat()
    flip_bit(path, -2)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    checked = check(dense)
    assert checked.status == 2
    assert checked.text.startswith(f'error: {path} is damaged: its sha256 is')
    assert checked.is_one_line


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'expected'),
    [
        ('manifest.json', '"max_length": 16', '"max_length": -7', 'its checksum does not fit'),
        ('manifest.json', '"count": 6', '"count": 7', 'its checksum does not fit'),
        (
            'encoding.json',
            '"max_length": 16',
            '"max_length": 17',
            'encoding.json is not what the manifest says',
        ),
        (
            'shard-00000/shard.json',
            '"count": 4',
            '"count": 5',
            'shard.json is not what the manifest says',
        ),
    ],
)
def test_altered_records(dense, check, name, old, new, expected):
    path = dense / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    checked = check(dense)
    assert checked.status == 2
    assert expected in checked.text
    assert str(path) in checked.text


def as_of_version_1(manifest):
    """The text of a manifest as an earlier release wrote it: without its kind, and without a
    checksum of itself.
    """
    body, _, _ = manifest.partition(',\n "sha256"')
    body, n_kinds = re.subn(r' "kind": "dense",\n', '', body)
    assert n_kinds == 1
    return body.replace('"format_version": 3', '"format_version": 1') + '\n}\n'


def test_manifests_of_earlier_releases_are_read_with_a_warning(dense, check, caplog):
    path = dense / 'manifest.json'
    path.write_text(as_of_version_1(path.read_text()))
    assert check(dense).status == 0
    assert 'has no checksum of itself' in caplog.text


@pytest.mark.parametrize(
    ('old', 'new', 'expected'),
    [
        (
            '"max_length": 16',
            '"max_length": -7',
            'settings.max_length is -7: Input should be greater than',
        ),
        (
            '"max_length": 16',
            '"max_length": "16"',
            'settings.max_length is 16: Input should be a valid integer',
        ),
        ('"max_length": 16,', '', 'settings.max_length is missing'),
        (
            '"vectors.npy"',
            '"vektors.npy"',
            "shard 0 does not name 'vectors.npy', which the format requires",
        ),
        ('"shard-00001"', '"../../else"', 'shards.1.folder is ../../else'),
        ('"count": 6', '"count": 7', 'its shards do not add up to its count, 7'),
        (
            '"format_version": 1',
            '"format_version": 4',
            'format version 4, this release reads 1 to 3',
        ),
        ('"format_version": 1', '"format_version": 2', 'its checksum does not fit'),
    ],
)
def test_values_of_manifests_of_earlier_releases_are_checked(dense, check, old, new, expected):
    path = dense / 'manifest.json'
    text = as_of_version_1(path.read_text())
    assert old in text
    path.write_text(text.replace(old, new))
    checked = check(dense)
    assert checked.status == 2
    assert checked.text.startswith(f'error: {path}')
    assert expected in checked.text


def test_resuming_gives_an_earlier_manifest_its_checksum(dense, encode_flags):
    path = dense / 'manifest.json'
    whole = path.read_text()
    path.write_text(as_of_version_1(whole))
    encode([*encode_flags, '--resume'])
    assert path.read_text() == whole


@pytest.fixture
def exported(dense, tmp_path):
    folder = tmp_path / 'faiss'
    assert run(main, ['export', '--index', str(dense), '--to-faiss', str(folder), '--quiet']) == 0
    return folder


def test_exported_faiss_folders_have_checksums(exported, check):
    assert check(exported) == Checked(0, f'{exported}: intact, 6 passages x 16\n')


def test_an_altered_faiss_folder_is_found(exported, check):
    path = exported / 'docid'
    path.write_text(path.read_text().replace('d5', 'd9'))
    assert check(exported).status == 2


def test_a_faiss_folder_of_another_program_cannot_be_checked(exported, check):
    (exported / 'sha256sums').unlink()
    checked = check(exported)
    assert checked.status == 2
    assert 'has no file sha256sums to compare it with: another program wrote it' in checked.text


@pytest.mark.jvm
@pytest.mark.parametrize('variant', ['bm25', 'doc2query'])
def test_lucene_indexes_have_checksums(variant, corpus_file, tmp_path, check):
    """A bit is flipped in one file after the other."""
    folder = tmp_path / 'lucene'
    flags = ['--corpus', str(corpus_file(6)), '--variant', variant, '--output', str(folder)]
    if variant == 'doc2query':
        (tmp_path / 'predictions.txt').write_text('a query\n' * 6)
        flags += ['--predictions', str(tmp_path / 'predictions.txt')]
    assert run(main, ['lucene', *flags, '--quiet']) == 0
    names = {path.name for path in folder.iterdir()} - {'sha256sums', 'write.lock'}
    assert check(folder) == Checked(0, f"{folder}: intact, {len(names)} files, language 'en'\n")
    rng = np.random.default_rng(0)
    for name in [*sorted(names), 'sha256sums']:
        path = folder / name
        raw = path.read_bytes()
        flip_bit(path, int(rng.integers(len(raw))), int(rng.integers(8)))
        checked = check(folder)
        assert checked.status == 2
        assert str(folder) in checked.text
        assert checked.is_one_line
        path.write_bytes(raw)


@pytest.fixture
def epic_flags(tiny_epic, corpus_file):
    return ['epic', '--corpus', str(corpus_file(20)), '--encoder', str(tiny_epic())]


def test_a_corpus_becomes_a_pruned_bundle(epic_flags, tmp_path, capsys):
    output = str(tmp_path / 'index')
    flags = ['--output', output, '--prune', '10', '--weights', 'uint8']
    assert run(main, [*epic_flags, *flags]) == 0
    assert '20 passages x 10 terms' in capsys.readouterr().out
    assert len(TermWeightsBundle(output).vector(3)) == 10


def test_a_bundle_is_not_overwritten_unasked(epic_flags, tmp_path, capsys):
    flags = ['--output', str(tmp_path / 'index'), '--prune', '10']
    assert run(main, [*epic_flags, *flags]) == 0
    assert run(main, [*epic_flags, *flags]) == 2
    advice = 'not empty: resume it, or overwrite it (--resume, --overwrite)'
    assert advice in capsys.readouterr().err


def test_a_bundle_of_all_terms_replaces_another(epic_flags, tmp_path, capsys, check):
    output = str(tmp_path / 'index')
    assert run(main, [*epic_flags, '--output', output, '--prune', '10']) == 0
    capsys.readouterr()
    flags = ['--output', output, '--prune', '0', '--overwrite', '--store-text']
    assert run(main, [*epic_flags, *flags]) == 0
    assert '20 passages x all terms' in capsys.readouterr().out
    assert 'intact, 20 passages x 40 float16' in check(output).text
    bundle = TermWeightsBundle(output)
    assert bundle.has_texts
    assert len(bundle.vector(3)) == 40
    assert bundle.rows(['d3']).tolist() == [3]


@pytest.fixture
def large(epic_flags, tmp_path):
    """A bundle of 20 passages, 20 weights each."""
    folder = tmp_path / 'large'
    flags = ['--output', str(folder), '--shard-size', '6', '--prune', '20', '--store-text']
    assert run(main, [*epic_flags, *flags]) == 0
    return TermWeightsBundle(folder)


def prune(large, output, *flags):
    given = ['epic-prune', '--index', str(large.folder), '--output', str(output), *flags]
    return run(main, given)


def test_a_bundle_can_be_cut_into_other_shards(large, tmp_path):
    assert prune(large, tmp_path / 'whole', '--shard-size', '100') == 0
    whole = TermWeightsBundle(tmp_path / 'whole')
    assert len(whole.shards) == 1
    assert whole.texts(['d7']) == large.texts(['d7']) != [None]
    for row in range(20):
        assert whole.vector(row).as_dict() == large.vector(row).as_dict()


def test_a_bundle_becomes_a_smaller_one(large, tmp_path, capsys):
    assert prune(large, tmp_path / 'small', '--prune', '5', '--weights', 'uint8') == 0
    assert '20 passages in 4 shards' in capsys.readouterr().out
    assert len(TermWeightsBundle(tmp_path / 'small').vector(7)) == 5


def test_a_bundle_cannot_get_back_what_was_pruned(large, tmp_path, capsys):
    assert prune(large, tmp_path / 'more', '--prune', '0') == 2
    assert 'keeps 20 weights' in capsys.readouterr().err


@pytest.fixture
def expanded(tmp_path, capsys):
    """A Lucene index of two passages, expanded by the first two predicted queries.

    It asks for `capsys`, so that a test can read what the command printed.
    """
    write_files(
        tmp_path, {'c.tsv': '1\tcats sleep\n2\tdogs bark\n', 'p.txt': 'pets\npets / guards\n'}
    )
    folder = str(tmp_path / 'index')
    flags = ['--variant', 'doc2query', '--predictions', str(tmp_path / 'p.txt'), '--topk', '2']
    corpus = str(tmp_path / 'c.tsv')
    assert run(main, ['lucene', '--corpus', corpus, '--output', folder, *flags]) == 0
    return folder


@pytest.mark.jvm
def test_a_corpus_becomes_an_index(expanded, capsys):
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    assert capsys.readouterr().out == f'{expanded}: 2 passages (doc2query)\n'
    assert [hit.docid for hit in LuceneSparseSearcher(expanded).search('guard')] == ['2']


@pytest.mark.jvm
def test_an_index_is_a_corpus_of_the_passages_as_they_were(expanded, tmp_path):
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    again = str(tmp_path / 'again')
    assert run(main, ['lucene', '--corpus', expanded, '--output', again]) == 0
    searcher = LuceneSparseSearcher(again)
    assert searcher.search('guard') == []
    assert searcher.texts(['2']) == ['dogs bark']


@pytest.fixture
def notes(tmp_path, capsys):
    """A Lucene index of a folder with one note, and another of damaged UTF-8.

    It asks for `capsys`, so that a test can read what the command printed.
    """
    folder = write_files(
        tmp_path / 'notes',
        {
            'about slugs.md': 'Ring lettuce with copper tape.',
            'b.txt': 'déjà vu au '.encode() + b'caf\xe9',
        },
    )
    index = str(tmp_path / 'index')
    flags = ['--corpus', str(folder), '--output', index, '--on-error', 'skip']
    # A file that cannot be read is named, and the status says so.
    assert run(main, ['lucene', *flags]) == 3
    return index


@pytest.mark.jvm
def test_a_folder_of_notes_becomes_an_index(notes, capsys):
    """What was not read is named."""
    from pyserini_repbert.commands.search import main as search

    said = capsys.readouterr()
    assert said.out == f'{notes}: 1 passage (bm25)\n'
    assert said.err.startswith('not read: 1 .txt that cannot be read\n')
    assert run(search, ['--sparse', f'bm25@{notes}', '--query', 'copper']) == 0
    assert '1. about slugs.md' in capsys.readouterr().out


@pytest.mark.jvm
def test_a_lucene_index_where_vectors_are_expected_is_named(notes, capsys):
    from pyserini_repbert.commands.search import main as search

    capsys.readouterr()
    assert run(search, ['--index', notes, '--encoder', 'minilm', '--query', 'copper']) == 2
    assert capsys.readouterr().err == (
        f"error: '{notes}' is a Lucene index, an index of vectors was expected: name it as a "
        f'sparse ranking, bm25@{notes}\n'
    )
