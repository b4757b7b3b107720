"""The folder that an encoding fills: refusals leave nothing, and two processes do not meet."""

import socket

import numpy as np
import pytest
from folders import tree

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.output import clear_parts
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.folder_forms import temporary_name
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.dense import DenseShardWriter
from pyserini_repbert.index.records import DenseSettings

SETTINGS = DenseSettings('tiny', '0' * 64, 'mean', 20, 1, 'float32', 'float32', 2, False)
HIDDEN = temporary_name('encoding.json')
PASSAGES = [Passage(f'd{number}', 'text') for number in range(5)]


def build(folder, corpus=PASSAGES, settings=SETTINGS, encode=None, **options):
    def ones(passages):
        return np.ones((len(passages), 1), np.float32)

    return build_bundle(
        corpus, folder, BundleEncoding(settings, DenseShardWriter, encode or ones, 2), **options
    )


def failing_after(count):
    """An encoder that fails after so many calls."""
    calls = []

    def encode(passages):
        calls.append(1)
        if len(calls) > count:
            raise InputError('no more')
        return np.ones((len(passages), 1), np.float32)

    return encode


def test_a_refused_encoding_leaves_nothing_and_its_advice_works(tiny_checkpoint, tmp_path, capsys):
    corpus = tmp_path / 'corpus.tsv'
    corpus.write_text('1\tthe cat\n2\t\n3\tthe dog\n')
    output = tmp_path / 'index'
    arguments = [
        '--corpus',
        str(corpus),
        '--encoder',
        str(tiny_checkpoint()),
        '--output',
        str(output),
        '--quiet',
    ]
    assert command.run(main, arguments) == 2
    assert 'or skip what cannot be used (--on-error skip)\n' in capsys.readouterr().err
    assert not output.exists()
    assert command.run(main, [*arguments, '--on-error', 'skip']) == 0
    assert len(DenseBundle(output)) == 2


def test_a_refusal_before_a_shard_is_whole_leaves_the_folder_as_it_was(tmp_path):
    with pytest.raises(InputError, match='no more'):
        build(tmp_path / 'new', encode=failing_after(0))
    assert not (tmp_path / 'new').exists()
    (tmp_path / 'empty').mkdir()
    with pytest.raises(InputError, match='no more'):
        build(tmp_path / 'empty', encode=failing_after(0))
    assert list((tmp_path / 'empty').iterdir()) == []


def test_a_refusal_after_a_whole_shard_says_how_to_go_on(tmp_path):
    folder = tmp_path / 'index'
    with pytest.raises(InputError, match=r'is kept in .*index: resume it') as refused:
        build(folder, encode=failing_after(1))
    assert refused.value.parameters == ('resume',)
    assert sorted(path.name for path in folder.iterdir()) == ['encoding.json', 'shard-00000']
    with pytest.raises(InputError, match='is not empty: resume it') as refused:
        build(folder)
    assert refused.value.parameters == ('resume', 'overwrite')
    build(folder, resume=True)
    assert len(DenseBundle(folder)) == 5


def test_an_unusable_corpus_does_not_cost_the_index_that_was_there(tmp_path):
    build(tmp_path / 'index')

    def refused():
        raise InputError('corpus.tsv:1: nothing here')
        yield

    for corpus in ([], refused()):
        with pytest.raises(InputError, match='no passages|nothing here'):
            build(tmp_path / 'index', corpus, overwrite=True)
        assert len(DenseBundle(tmp_path / 'index')) == 5


@pytest.mark.parametrize('flags', [{}, {'resume': True}, {'overwrite': True}])
@pytest.mark.parametrize(
    'left',
    [HIDDEN, temporary_name('manifest.json'), 'encoding.json', 'both'],
    ids=['settings', 'manifest', 'encoding.json', 'both'],
)
def test_what_a_kill_before_the_first_shard_leaves_is_in_nobodys_way(tmp_path, flags, left):
    build(tmp_path / 'whole')
    folder = tmp_path / 'index'
    folder.mkdir()
    for name in [HIDDEN, 'encoding.json'] if left == 'both' else [left]:
        (folder / name).write_text('{"half": ')
    (folder / '.part-0-of-1.lock').write_text(f'4194304 {socket.gethostname()}\n')
    build(folder, **flags)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ['encoding.json', 'manifest.json', 'shard-00000', 'shard-00001', 'shard-00002']
    assert (folder / 'manifest.json').read_bytes() == (
        tmp_path / 'whole' / 'manifest.json'
    ).read_bytes()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / 'index').mkdir()
    (tmp_path / 'index' / '.profile').write_text('mine')
    for flags in ({}, {'resume': True}, {'overwrite': True}):
        with pytest.raises(InputError, match=r'holds \.profile, .*move it'):
            build(tmp_path / 'index', **flags)
    assert [path.name for path in (tmp_path / 'index').iterdir()] == ['.profile']


def test_resuming_without_the_record_of_the_settings(tmp_path):
    """Settings are compared with the manifest's then; without that, nothing is known of the
    shards.
    """
    other = DenseSettings('other', '1' * 64, 'mean', 20, 1, 'float32', 'float32', 2, False)
    build(tmp_path / 'index')
    (tmp_path / 'index' / 'encoding.json').unlink()
    with pytest.raises(MismatchError, match="begun with encoder 'tiny', now it is 'other'"):
        build(tmp_path / 'index', settings=other, resume=True)
    (tmp_path / 'index' / 'manifest.json').unlink()
    with pytest.raises(DamagedFileError, match='encoding.json is missing.*start again') as refused:
        build(tmp_path / 'index', resume=True)
    assert refused.value.parameters == ('overwrite',)


def test_resuming_notices_a_damaged_shard(tmp_path):
    build(tmp_path / 'index')
    path = tmp_path / 'index' / 'shard-00001' / 'vectors.npy'
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b'\x00')
    with pytest.raises(DamagedFileError, match='shard-00001/vectors.npy is damaged'):
        build(tmp_path / 'index', resume=True)


def test_an_interrupt_while_the_settings_are_written_leaves_nothing(tmp_path, monkeypatch):
    """Between the making of a hidden file and its removal, which an interrupt may prevent."""
    from pyserini_repbert.encode import output

    def interrupted(path, record):
        (path.parent / temporary_name(path.name)).touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(output, 'write_json', interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / 'index')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('ends', ['refused', 'finished'])
def test_what_a_killed_run_left_hidden_goes_with_the_next(ends, tmp_path):
    folder = tmp_path / 'index'
    folder.mkdir()
    (folder / temporary_name('encoding.json')).write_text('{"enc')
    (folder / '.encoding.lock').write_text('1 elsewhere\n')
    if ends == 'refused':
        with pytest.raises(InputError, match='no more'):
            build(folder, encode=failing_after(0))
        assert list(folder.iterdir()) == []
    else:
        build(folder)
        assert not list(folder.glob('.*'))


def test_parts_are_removed_and_nothing_that_another_program_left(tmp_path):
    for name in ('part-0-of-2', 'part-1-of-2', 'part-of-the-thesis'):
        (tmp_path / name / 'shard-00000').mkdir(parents=True)
        (tmp_path / name / 'shard-00000' / 'vectors.npy').write_bytes(b'1')
    (tmp_path / 'part-0-of-2.record.json').write_text('{}')
    (tmp_path / 'part-1-of-2' / 'thesis.txt').write_text('mine')
    (tmp_path / 'part-2-of-2').write_text('mine')
    clear_parts(tmp_path)
    assert sorted(tree(tmp_path)) == [
        'part-1-of-2/thesis.txt',
        'part-2-of-2',
        'part-of-the-thesis/shard-00000/vectors.npy',
    ]
