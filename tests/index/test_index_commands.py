"""`index epic` and `index lucene`, and `index check` on every kind of index."""

import os

import numpy as np
import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.index import main
from pyserini_repbert.index.epic import EpicBundle


@pytest.fixture
def dense(tiny_checkpoint, corpus_file, tmp_path):
    index = tmp_path / 'index'
    arguments = [
        '--corpus',
        corpus_file(6),
        '--encoder',
        tiny_checkpoint(),
        '--output',
        index,
        '--quiet',
    ]
    encode([*map(str, arguments), '--store-text', '--fp32', '--shard-size', '4'])
    return index


def check(folder, capsys):
    capsys.readouterr()
    status = command.run(main, ['check', '--index', str(folder)])
    found = capsys.readouterr()
    return status, found.out + found.err


def test_a_flipped_bit_is_found_whatever_the_files_times(dense, capsys):
    """A check believed the checksum that a search had remembered, and said 'whole'."""
    assert check(dense, capsys) == (
        0,
        f"{dense}: whole, 6 passages x 16 float32, encoder '{dense.parent / 'tiny'}'\n",
    )
    path = dense / 'shard-00001' / 'vectors.npy'
    status = path.stat()
    raw = path.read_bytes()
    path.write_bytes(raw[:-2] + bytes([raw[-2] ^ 1]) + raw[-1:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    code, text = check(dense, capsys)
    assert (
        code == 2
        and text.startswith(f'error: {path} is damaged: its sha256 is')
        and text.count('\n') == 1
    )


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
def test_altered_records(dense, capsys, name, old, new, expected):
    path = dense / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    code, shown = check(dense, capsys)
    assert code == 2 and expected in shown and str(path) in shown


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
def test_manifests_of_earlier_releases_are_read_and_their_values_checked(
    dense, capsys, caplog, old, new, expected
):
    path = dense / 'manifest.json'
    body = path.read_text().partition(',\n "sha256"')[0] + '\n}\n'
    text = body.replace('"format_version": 3', '"format_version": 1')
    path.write_text(text)
    assert check(dense, capsys)[0] == 0
    assert 'has no checksum of itself' in caplog.text
    assert old in text
    path.write_text(text.replace(old, new))
    code, shown = check(dense, capsys)
    assert code == 2 and expected in shown and shown.startswith(f'error: {path}')


def test_resuming_gives_an_earlier_manifest_its_checksum(dense, tmp_path):
    path = dense / 'manifest.json'
    whole = path.read_text()
    path.write_text(
        whole.partition(',\n "sha256"')[0].replace('"format_version": 3', '"format_version": 1')
        + '\n}\n'
    )
    arguments = [
        '--corpus',
        tmp_path / 'corpus.jsonl',
        '--encoder',
        tmp_path / 'tiny',
        '--output',
        dense,
        '--resume',
    ]
    encode([*map(str, arguments), '--quiet', '--store-text', '--fp32', '--shard-size', '4'])
    assert path.read_text() == whole


def test_exported_faiss_folders_have_checksums(dense, tmp_path, capsys):
    folder = tmp_path / 'faiss'
    assert not main(['export', '--index', str(dense), '--to-faiss', str(folder), '--quiet'])
    assert check(folder, capsys) == (0, f'{folder}: whole, 6 passages x 16\n')
    (folder / 'docid').write_text((folder / 'docid').read_text().replace('d5', 'd9'))
    assert check(folder, capsys)[0] == 2
    (folder / 'sha256sums').unlink()
    code, shown = check(folder, capsys)
    assert (
        code == 2 and 'has no file sha256sums to compare it with: another program wrote it' in shown
    )


@pytest.mark.jvm
@pytest.mark.parametrize('variant', ['bm25', 'doc2query'])
def test_lucene_indexes_have_checksums(variant, corpus_file, tmp_path, capsys):
    folder = tmp_path / 'lucene'
    predictions = tmp_path / 'predictions.txt'
    predictions.write_text('a query\n' * 6)
    more = ['--predictions', str(predictions)] if variant == 'doc2query' else []
    given = [
        'lucene',
        '--corpus',
        str(corpus_file(6)),
        '--variant',
        variant,
        '--output',
        str(folder),
        '--quiet',
    ]
    assert command.run(main, [*given, *more]) == 0
    code, shown = check(folder, capsys)
    files = sorted(
        path for path in folder.iterdir() if path.name not in ('sha256sums', 'write.lock')
    )
    assert (code, shown) == (0, f'{folder}: whole, {len(files)} files\n')
    rng = np.random.default_rng(0)
    for path in [*files, folder / 'sha256sums']:
        raw = path.read_bytes()
        place = int(rng.integers(len(raw)))
        path.write_bytes(
            raw[:place] + bytes([raw[place] ^ 1 << int(rng.integers(8))]) + raw[place + 1 :]
        )
        code, shown = check(folder, capsys)
        assert code == 2 and str(folder) in shown and shown.count('\n') == 1
        path.write_bytes(raw)


def test_a_corpus_becomes_a_bundle_that_checks_out(tiny_epic, corpus_file, tmp_path, capsys):
    output = str(tmp_path / 'index')
    arguments = [
        'epic',
        '--corpus',
        str(corpus_file(20)),
        '--encoder',
        str(tiny_epic()),
        '--output',
        output,
    ]
    assert command.run(main, [*arguments, '--prune', '10', '--weights', 'uint8', '--fp32']) == 0
    assert '20 passages x 10 terms' in capsys.readouterr().out
    assert command.run(main, [*arguments, '--prune', '10']) == 2
    assert (
        'not empty: resume it, or overwrite it (--resume, --overwrite)' in capsys.readouterr().err
    )
    assert (
        command.run(main, [*arguments, '--prune', '0', '--overwrite', '--store-text', '--fp32'])
        == 0
    )
    assert '20 passages x all terms' in capsys.readouterr().out
    assert command.run(main, ['check', '--index', output]) == 0
    assert 'whole, 20 passages x 40 float16' in capsys.readouterr().out
    bundle = EpicBundle(output)
    assert bundle.has_texts and len(bundle.vector(3)) == 40
    np.testing.assert_array_equal(bundle.rows(['d3']), [3])


def test_a_bundle_becomes_a_smaller_one(tiny_epic, corpus_file, tmp_path, capsys):
    arguments = [
        'epic',
        '--corpus',
        str(corpus_file(20)),
        '--encoder',
        str(tiny_epic()),
        '--shard-size',
        '6',
    ]
    assert (
        command.run(
            main, [*arguments, '--output', str(tmp_path / 'large'), '--prune', '20', '--store-text']
        )
        == 0
    )
    prune = ['epic-prune', '--index', str(tmp_path / 'large'), '--output']
    assert command.run(main, [*prune, str(tmp_path / 'whole'), '--shard-size', '100']) == 0
    assert (
        command.run(main, [*prune, str(tmp_path / 'small'), '--prune', '5', '--weights', 'uint8'])
        == 0
    )
    assert '20 passages in 4 shards' in capsys.readouterr().out
    large, whole, small = (EpicBundle(tmp_path / name) for name in ('large', 'whole', 'small'))
    assert len(whole.shards) == 1 and len(small.vector(7)) == 5
    assert whole.texts(['d7']) == large.texts(['d7']) != [None]
    for row in range(20):
        assert whole.vector(row).as_dict() == large.vector(row).as_dict()
    assert command.run(main, [*prune, str(tmp_path / 'more'), '--prune', '0']) == 2
    assert 'keeps 20 weights' in capsys.readouterr().err


@pytest.mark.jvm
def test_a_corpus_becomes_an_index(tmp_path, capsys):
    (tmp_path / 'c.tsv').write_text('1\tcats sleep\n2\tdogs bark\n')
    (tmp_path / 'p.txt').write_text('pets\npets / guards\n')
    out = str(tmp_path / 'index')
    arguments = ['--corpus', str(tmp_path / 'c.tsv'), '--output', out]
    expanding = ['--variant', 'doc2query', '--predictions', str(tmp_path / 'p.txt'), '--topk', '2']
    assert run(main, ['lucene', *arguments, *expanding]) == 0
    assert capsys.readouterr().out == f'{out}: 2 passages (doc2query)\n'
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    assert [hit.docid for hit in LuceneSparseSearcher(out).search('guard')] == ['2']
    # an index is a corpus too: the passages as they were
    again = str(tmp_path / 'again')
    assert run(main, ['lucene', '--corpus', out, '--output', again]) == 0
    assert LuceneSparseSearcher(again).search('guard') == []
    assert LuceneSparseSearcher(again).texts(['2']) == ['dogs bark']


@pytest.mark.jvm
def test_a_folder_of_notes_becomes_an_index(tmp_path, capsys):
    """What was skipped is counted, and where vectors are expected, the index says what it is."""
    from pyserini_repbert.commands.search import main as search

    (tmp_path / 'notes').mkdir()
    (tmp_path / 'notes' / 'about slugs.md').write_text('Ring lettuce with copper tape.')
    (tmp_path / 'notes' / 'b.txt').write_bytes(b'caf\xe9')
    out = str(tmp_path / 'index')
    arguments = ['--corpus', str(tmp_path / 'notes'), '--output', out, '--on-error', 'skip']
    assert run(main, ['lucene', *arguments]) == 0
    assert capsys.readouterr().out == f'{out}: 1 passage (bm25), 1 skipped\n'
    assert run(search, ['--sparse', f'bm25@{out}', '--query', 'copper']) == 0
    assert '1. about%20slugs.md' in capsys.readouterr().out
    assert run(search, ['--index', out, '--query', 'copper']) == 2
    assert capsys.readouterr().err == (
        f"error: '{out}' is a Lucene index, an index of vectors was expected: name it as a sparse "
        f'ranking, bm25@{out}\n'
    )
