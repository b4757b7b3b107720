"""`index sync --follow`: a collection in step with a folder whose files change."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
from folders import HANGS, write_files

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.locks import writer_lock
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.index import main, make_parser
from pyserini_repbert.extensions.following.moments import QuietMoments
from pyserini_repbert.extensions.following.options import IN_SYNC
from pyserini_repbert.processes import is_to_end_soon


@pytest.fixture
def sync(tmp_path, notes, tiny_checkpoint):
    """The arguments of a sync of the notes that follows them."""
    encoder = str(tiny_checkpoint('encoder'))
    settings = ['--encoder', encoder, '--sparse', 'none', '--passage-tokens', '10']
    named = ['--corpus', str(notes), '--index', str(tmp_path / 'mine')]
    return ['sync', *named, *settings, '--overlap', '3', '--quiet', '--follow']


@pytest.fixture
def follow(monkeypatch, sync):
    """follow(*steps) -> the exit status: each step is what happens before a quiet moment."""

    def run_steps(*steps):
        left = iter(steps)

        class Moments:
            have_ended = False

            def __init__(self, corpus):
                pass

            def wait(self):
                step = next(left, None)
                if step is None:
                    raise KeyboardInterrupt
                return step() is not False

        monkeypatch.setattr('pyserini_repbert.extensions.following.moments.QuietMoments', Moments)
        return run(main, sync)

    return run_steps


def n_documents(tmp_path):
    with Collection.open(tmp_path / 'mine') as collection:
        return len(collection.generation)


def test_files_that_change_are_synced_until_ctrl_c(notes, sync, tmp_path):
    command = [sys.executable, '-m', 'pyserini_repbert.index', *sync]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert 'generation 1' in process.stdout.readline()
        write_files(notes, {'bird.txt': 'a bird in the tree', 'moon.txt': 'the moon'})
        line = process.stdout.readline()
        assert line.startswith(f'{tmp_path / "mine"}: 2 added')
        assert 'generation 2' in line
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=HANGS)[0]
    assert process.returncode == 0
    assert rest == ''
    assert n_documents(tmp_path) == 5


def test_a_sync_that_fails_is_said_and_the_next_one_works(notes, follow, tmp_path, capsys):
    def lose_most():
        (notes / 'cat.txt').unlink()
        (notes / 'dog.txt').unlink()

    def lose_all():
        shutil.move(notes, tmp_path / 'elsewhere')

    def come_back():
        shutil.move(tmp_path / 'elsewhere', notes)
        (notes / 'cat.txt').write_text('red cat', encoding='utf-8')

    assert follow(lose_most, lose_all, come_back) == 0
    shown = capsys.readouterr()
    errors = [line for line in shown.err.splitlines() if line.startswith('error: ')]
    assert 'has lost 2 of 3 documents' in errors[0]
    assert '--delete-most' in errors[0]
    assert str(notes) in errors[1]
    assert len(errors) == 2
    assert '1 changed, 1 deleted' in shown.out
    assert n_documents(tmp_path) == 2


def test_it_waits_for_another_writer_and_says_so_once(notes, follow, tmp_path, capsys):
    held = []

    def begin_to_write():
        (notes / 'bird.txt').write_text('bird', encoding='utf-8')
        held.append(writer_lock(tmp_path / 'mine'))
        held[0].__enter__()

    def nothing():
        return False

    def end_writing():
        held[0].__exit__(None, None, None)
        return False

    assert follow(begin_to_write, nothing, nothing, end_writing, nothing) == 0
    shown = capsys.readouterr()
    assert shown.err.count('is being written by') == 1
    assert shown.out.count('1 added') == 1
    assert n_documents(tmp_path) == 4


def test_what_is_asked_once_is_not_asked_again(notes, follow, sync, monkeypatch):
    given = []

    def record(options):
        given.append((options.delete_most, options.rebuild, options.follow))

    monkeypatch.setattr('pyserini_repbert.collection.commands.actions.run_sync', record)
    options = make_parser(sync).parse_args([*sync, '--delete-most', '--rebuild'])
    moments = iter([True])

    class Moments:
        have_ended = False

        def __init__(self, corpus):
            pass

        def wait(self):
            for has_changed in moments:
                return has_changed
            raise KeyboardInterrupt

    monkeypatch.setattr('pyserini_repbert.extensions.following.moments.QuietMoments', Moments)
    assert IN_SYNC.run(options)
    assert given == [(True, True, False), (False, False, False)]


def changed_within(moments, looks=40):
    return any(moments.wait() for _ in range(looks))


def test_quiet_moments_come_after_changes_of_what_is_read(notes):
    moments = QuietMoments(notes)
    assert not changed_within(moments, looks=2)
    (notes / '.draft').write_text('hidden', encoding='utf-8')
    assert not changed_within(moments, looks=4)
    (notes / 'deep').mkdir()
    (notes / 'deep' / 'new.txt').write_text('new', encoding='utf-8')
    assert changed_within(moments)


def test_a_folder_that_vanishes_and_one_that_comes_back_have_changed(notes, tmp_path):
    moments = QuietMoments(notes)
    os.rename(notes, tmp_path / 'away')
    assert changed_within(moments)
    assert not changed_within(moments, looks=2)
    os.rename(tmp_path / 'away', notes)
    assert changed_within(moments)
    (notes / 'new.txt').write_text('new', encoding='utf-8')
    assert changed_within(moments)


def test_a_file_that_is_replaced_is_followed(tmp_path):
    path = tmp_path / 'notes.jsonl'
    path.write_text('{"id": "a", "text": "cat"}\n', encoding='utf-8')
    moments = QuietMoments(path)
    (tmp_path / 'other.txt').write_text('x', encoding='utf-8')
    assert not changed_within(moments, looks=4)
    for text in ('dog', 'fish'):
        (tmp_path / 'new').write_text(f'{{"id": "a", "text": "{text}"}}\n', encoding='utf-8')
        os.replace(tmp_path / 'new', path)
        assert changed_within(moments)


def test_only_files_of_this_machine_are_followed(tmp_path, capsys):
    arguments = ['sync', '--corpus', 'demo', '--index', str(tmp_path / 'mine'), '--follow']
    assert run(main, arguments) == 2
    assert "'demo' is not a folder or a file of this machine" in capsys.readouterr().err
    assert not (tmp_path / 'mine').exists()


def test_without_watchfiles_the_extra_is_named(notes, monkeypatch, sync, capsys):
    monkeypatch.setitem(sys.modules, 'watchfiles', None)
    assert run(main, sync) == 2
    assert "pip install '.[follow]'" in capsys.readouterr().err


def test_java_is_started_for_a_long_life(follow):
    assert follow() == 0
    assert not is_to_end_soon()
