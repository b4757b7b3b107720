"""An index made in parts, and one that replaces another: what is there stays until the new one
is whole.
"""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from folders import change_model, tree

from pyserini_repbert.commands import command, encode, index
from pyserini_repbert.data.corpus_files import corpus_of_files
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.dense import DenseShardWriter
from pyserini_repbert.index.manifest import MANIFEST, SETTINGS as SETTINGS_FILE, write_json
from pyserini_repbert.index.records import DenseSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle

MAIN = {'encode': encode.main, 'epic': index.main}
SETTINGS = DenseSettings('tiny', '0' * 64, 'mean', 20, 1, 'float32', 'float32', 2, True)


@pytest.fixture
def call(capsys):
    """call(*arguments, kind='encode') -> status, what it printed, its error."""

    def run(*arguments, kind='encode'):
        given = [str(argument) for argument in arguments]
        status = command.run(MAIN[kind], [*(['epic'] if kind == 'epic' else []), *given, '--quiet'])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def made(tiny_checkpoint, corpus_file):
    """Arguments that make an index of 11 passages in shards of 4."""
    return [
        '--corpus',
        corpus_file(11),
        '--encoder',
        tiny_checkpoint(),
        '--shard-size',
        4,
        '--store-text',
    ]


def written(folder, numbers):
    """A file of TSV passages with these numbers, in `folder`."""
    folder.mkdir(exist_ok=True)
    path = folder / f'{numbers[0]:02d}.tsv'
    path.write_text(''.join(f'd{number}\ttext {number}\n' for number in numbers))
    return path


def build(folder, passages, value=1.0, **options):
    def vectors(batch):
        return np.full((len(batch), 1), value, np.float32)

    return build_bundle(
        passages, folder, BundleEncoding(SETTINGS, DenseShardWriter, vectors, 2), **options
    )


def docids(corpus):
    return [passage.docid for passage in corpus]


def test_rows_of_a_file_are_dealt_out(tmp_path):
    corpus = corpus_of_files(written(tmp_path, range(5)), 'tsv')
    assert [docids(corpus.part(index, 2, 2)) for index in (0, 1)] == [
        ['d0', 'd1', 'd4'],
        ['d2', 'd3'],
    ]
    assert docids(corpus) == ['d0', 'd1', 'd2', 'd3', 'd4'] and corpus.part(1, 2).count_hint() == 3


def test_files_of_a_folder_are_dealt_out_where_there_are_as_many_as_parts(tmp_path):
    for start in (0, 2, 4):
        written(tmp_path / 'corpus', range(start, start + 2))
    corpus = corpus_of_files(tmp_path / 'corpus', 'tsv')
    assert [docids(corpus.part(index, 2)) for index in (0, 1)] == [
        ['d0', 'd1', 'd4', 'd5'],
        ['d2', 'd3'],
    ]
    assert [docids(corpus.part(index, 4)) for index in range(4)] == [
        ['d0', 'd4'],
        ['d1', 'd5'],
        ['d2'],
        ['d3'],
    ]


@pytest.mark.parametrize('flags', ['--shard {}/3', '--shard-id {} --shard-num 3'])
def test_parts_put_together_have_the_bytes_of_an_index_made_at_once(made, call, tmp_path, flags):
    folder = tmp_path / 'parts'
    assert call(*made, '--output', tmp_path / 'whole')[0] == 0
    for number, count in ((2, 3), (0, 4), (1, 4)):
        done = call(*made, '--output', folder, *flags.format(number).split())
        assert done == (0, f'{folder}: part {number}/3 is done, {count} passages\n', '')
    with pytest.raises(InputError, match='is in parts'):
        DenseBundle(folder)
    printed = f'{folder}: 11 passages x 16 float32 in 3 shards\n'
    assert call('--output', folder, '--finish') == (0, printed, '')
    assert tree(folder) == tree(tmp_path / 'whole')
    record = json.loads((tmp_path / 'parts.record.json').read_text())
    assert (
        record['settings']['store_text'] is True and record['models'][0]['precision'] == 'float32'
    )
    again = call('--output', folder, '--finish')
    assert again[0] == 2 and 'no parts to put together' in again[2]


@pytest.mark.parametrize(
    'flags', ['--shard-id 0', '--shard-num 2', '--shard-id 0 --shard-num 2 --shard 0/2']
)
def test_pyserinis_flags_of_a_part_go_together(made, call, tmp_path, flags):
    status, _, error = call(*made, '--output', tmp_path / 'parts', *flags.split())
    assert (
        status == 2
        and '--shard-id and --shard-num go together' in error
        and len(error.splitlines()) == 1
    )


def test_parts_of_an_epic_index(tiny_epic, corpus_file, call, tmp_path):
    made = [
        '--corpus',
        corpus_file(5),
        '--encoder',
        tiny_epic(),
        '--prune',
        5,
        '--weights',
        'uint8',
        '--shard-size',
        2,
    ]
    folder = tmp_path / 'index'
    for number in (0, 1):
        assert call(*made, '--output', folder, '--shard', f'{number}/2', kind='epic')[0] == 0
    wrong = call('--output', folder, '--finish')
    assert wrong[0] == 2 and "of kind 'epic'" in wrong[2]
    assert call('--output', folder, '--finish', kind='epic')[0] == 0
    assert len(TermWeightsBundle(folder)) == 5
    settings = json.loads((tmp_path / 'index.record.json').read_text())['settings']
    assert (settings['weights'], settings['prune']) == ('uint8', 5)


PASSAGES = [Passage(f'd{number}', f'text {number}') for number in range(7)]


def parts(folder, passages=PASSAGES, of=2):
    for number in range(of):
        build(part_folder(folder, EncodingPart(number, of)), dealt(passages, number, of))


def dealt(passages, number, of=2):
    """The passages of a part, dealt out two at a time."""
    return [passage for row, passage in enumerate(passages) if row // 2 % of == number]


def test_a_stopped_part_goes_on_to_the_same_bytes(tmp_path):
    parts(tmp_path / 'one')
    parts(tmp_path / 'other')
    (tmp_path / 'other/part-1-of-2/manifest.json').unlink()
    shutil.rmtree(tmp_path / 'other/part-1-of-2/shard-00001')
    with pytest.raises(InputError, match=r'lacks 1 of 2 parts \(1/2\): encode them'):
        finish_parts(tmp_path / 'other', DenseSettings)
    build(tmp_path / 'other/part-1-of-2', dealt(PASSAGES, 1), resume=True)
    for name in ('one', 'other'):
        assert finish_parts(tmp_path / name, DenseSettings).count == 7
    build(tmp_path / 'whole', PASSAGES)
    assert tree(tmp_path / 'one') == tree(tmp_path / 'other') == tree(tmp_path / 'whole')


def test_a_stopped_removal_of_parts_is_finished(tmp_path, monkeypatch):
    folder = tmp_path / 'index'

    def stop(output):
        for settings in output.glob(f'part-*/{SETTINGS_FILE}'):
            settings.unlink()
        (output / 'part-0-of-2' / MANIFEST).unlink()
        raise KeyboardInterrupt

    parts(folder)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr('pyserini_repbert.encode.parts._remove_parts', stop)
        finish_parts(folder, DenseSettings)
    assert finish_parts(folder, DenseSettings).count == 7
    build(tmp_path / 'whole', PASSAGES)
    assert tree(folder) == tree(tmp_path / 'whole')


def test_parts_that_do_not_fit_are_refused(tmp_path):
    folder = tmp_path / 'index'
    parts(folder, [*PASSAGES, PASSAGES[0]])
    with pytest.raises(
        InputError, match=r"docid 'd0' is used in .*part-0-of-2.* again in .*part-1-of-2"
    ):
        finish_parts(folder, DenseSettings)
    shutil.rmtree(folder)
    parts(folder)
    vectors = folder / 'part-1-of-2/shard-00001/vectors.npy'
    vectors.write_bytes(vectors.read_bytes()[:-1] + b'x')
    with pytest.raises(DamagedFileError, match='part-1-of-2/shard-00001/vectors.npy is damaged'):
        finish_parts(folder, DenseSettings)
    shutil.rmtree(folder / 'part-1-of-2')
    other = BundleEncoding(
        DenseSettings('tiny', '1' * 64, 'mean', 20, 1, 'float32', 'float32', 2, True),
        DenseShardWriter,
        lambda batch: np.ones((len(batch), 1), np.float32),
        2,
    )
    build_bundle(PASSAGES[1::2], folder / 'part-1-of-2', other)
    with pytest.raises(MismatchError, match='weights_sha256'):
        finish_parts(folder, DenseSettings)
    build(folder / 'part-0-of-3', PASSAGES)
    with pytest.raises(InputError, match='parts of 2 and of 3'):
        finish_parts(folder, DenseSettings)
    assert not (folder / 'manifest.json').exists()


@pytest.mark.parametrize('how', ['resume', 'finish'])
@pytest.mark.parametrize('part', ['configuration', 'tokenizer'])
@pytest.mark.parametrize('kind', ['encode', 'epic'])
def test_shards_of_two_models_are_no_index(
    call, corpus_file, tiny_checkpoint, tiny_epic, tmp_path, kind, part, how
):
    checkpoint = (tiny_checkpoint if kind == 'encode' else tiny_epic)()
    arguments = [
        '--corpus',
        corpus_file(11),
        '--encoder',
        checkpoint,
        '--output',
        tmp_path / 'index',
    ]
    arguments += ['--shard-size', 4]
    arguments += ['--prune', 5] if kind == 'epic' else []
    assert call(*arguments, '--shard', '0/2', kind=kind)[0] == 0
    change_model(checkpoint, part)
    expected = f'another {part}: {part[:6]}'
    if how == 'resume':
        status, _, error = call(*arguments, '--shard', '0/2', '--resume', kind=kind)
        assert status == 2 and expected in error and 'resume with the same settings' in error
    else:
        assert call(*arguments, '--shard', '1/2', kind=kind)[0] == 0
        status, _, error = call('--output', tmp_path / 'index', '--finish', kind=kind)
        assert status == 2 and expected in error and 'encode one of them again' in error
    assert len(error.splitlines()) == 1 and not (tmp_path / 'index/manifest.json').exists()


def test_an_index_of_an_earlier_release_is_resumed(tmp_path):
    earlier = replace(build(tmp_path / 'index', PASSAGES), format_version=2)
    write_json(tmp_path / 'index' / MANIFEST, earlier, is_signed=True)
    assert len(DenseBundle(tmp_path / 'index')) == 7
    known = replace(SETTINGS, config_sha256='2' * 64, tokenizer_sha256='3' * 64)
    encoding = BundleEncoding(
        known, DenseShardWriter, lambda batch: np.ones((len(batch), 1), np.float32), 2
    )
    assert 'config_sha256' not in (tmp_path / 'index/manifest.json').read_text()
    assert build_bundle(PASSAGES, tmp_path / 'index', encoding, resume=True).settings == known
    with pytest.raises(MismatchError, match='another configuration: config_sha256'):
        other = replace(encoding, settings=replace(known, config_sha256='4' * 64))
        build_bundle(PASSAGES, tmp_path / 'index', other, resume=True)


def test_an_index_stays_until_the_new_one_is_whole(tmp_path):
    folder = tmp_path / 'index'
    build(folder, PASSAGES)
    before = DenseBundle(folder)

    def stopped():
        yield from PASSAGES[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(folder, stopped(), 2.0, overwrite=True)
    assert (
        DenseBundle(folder).vectors(np.arange(7)).tolist() == [[1.0]] * 7
    )  # a search goes on with the old one
    build(folder, [Passage(f'e{number}', 'new') for number in range(5)], 2.0, overwrite=True)
    now = DenseBundle(folder)
    assert now.vectors(np.arange(5)).tolist() == [[2.0]] * 5 and now.texts(['e4']) == ['new']
    assert sorted(path.name for path in folder.iterdir()) == [
        'encoding.json',
        'manifest.json',
        'shard-00000',
        'shard-00001',
        'shard-00002',
    ]
    # the index opened before still answers, from files that only it sees
    assert (
        before.texts(['d6', 'd0']) == ['text 6', 'text 0']
        and before.vectors(np.arange(7)).tolist() == [[1.0]] * 7
    )


def test_a_stopped_replacement_is_resumed(tmp_path):
    folder = tmp_path / 'index'
    build(folder, PASSAGES)

    def stopped():
        yield from PASSAGES[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(folder, stopped(), 2.0, overwrite=True)
    build(folder, PASSAGES, 2.0, resume=True)
    build(tmp_path / 'whole', PASSAGES, 2.0)
    assert tree(folder) == tree(tmp_path / 'whole')


def test_parts_replace_an_index_only_when_told_to(tmp_path):
    folder = tmp_path / 'index'
    build(folder, PASSAGES)
    with pytest.raises(InputError, match='holds a whole index: overwrite it'):
        part_folder(folder, EncodingPart(0, 2))
    for number in (0, 1):
        build(
            part_folder(folder, EncodingPart(number, 2), overwrite=True), PASSAGES[number::2], 2.0
        )
    with pytest.raises(InputError, match='holds a whole index: overwrite it'):
        finish_parts(folder, DenseSettings)
    assert DenseBundle(folder).vectors(np.arange(1)).tolist() == [[1.0]]
    finish_parts(folder, DenseSettings, overwrite=True)
    assert DenseBundle(folder).vectors(np.arange(7)).tolist() == [[2.0]] * 7
