"""Worker processes that tokenise give what this process gives, a few groups ahead, and end with
what started them.
"""

import os
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import numpy as np
import pytest
from folders import HANGS

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.models import token_ids, tokenizer_workers
from pyserini_repbert.models.tokenizer import WordPieceTokenizer, share_workers

TEXTS = [f'{"cat sat " * (number % 7)}mat' for number in range(300)]


@pytest.fixture
def tokenizers(tiny_checkpoint):
    """Two that share two workers, which cut words differently."""
    folder = tiny_checkpoint()
    pair = [
        WordPieceTokenizer.from_folder(folder),
        WordPieceTokenizer.from_vocabulary(folder / 'vocab.txt', False),
    ]
    share_workers(pair, 2)
    return pair


def processes(tokenizer):
    assert tokenizer.workers is not None
    return list(tokenizer.workers._pool._processes)


def gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
            with open(f'/proc/{pid}/stat') as stat:
                if stat.read().split()[2] == 'Z':
                    return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def test_workers_give_flat_arrays_of_the_same_ids(tokenizers):
    for tokenizer, texts in zip(tokenizers, (TEXTS, [text.upper() for text in TEXTS]), strict=True):
        here = token_ids.tokenised(tokenizer.backend, texts)
        there = tokenizer.flat_ids(texts)
        assert (there.ids.dtype, there.lengths.dtype) == (np.int32, np.int64)
        np.testing.assert_array_equal(there.ids, here.ids)
        np.testing.assert_array_equal(there.lengths, here.lengths)
        assert tokenizer.ids(texts) == tokenizer.ids(here) and len(here) == 300
        assert tokenizer.ids([]) == []
    first = tokenizers[0].single(TEXTS, 2, 1)
    cls, cat, sat, mat, sep = (
        tokenizers[0].cls,
        *tokenizers[0].ids(['cat sat mat'])[0],
        tokenizers[0].sep,
    )
    assert first.input_ids[:7].tolist() == [cls, mat, sep, cls, cat, sat, sep] and first.lengths[
        :2
    ].tolist() == [3, 4]
    assert set(first.token_type_ids) == {1}
    assert tokenizers[0].n_cut == sum(number % 7 > 0 for number in range(300))
    with pytest.raises(InputError, match=r"'\\ud800' is not text"):
        tokenizers[0].flat_ids([*TEXTS, '\ud800'])


def test_only_a_few_groups_are_in_flight(tokenizers, monkeypatch):
    """However many texts come: the group that is used, and `GROUPS_AHEAD` more."""
    workers = tokenizers[0].workers
    taken = []
    parts = []
    submit = workers._pool.submit
    monkeypatch.setattr(
        workers._pool, 'submit', lambda *given: parts.append(submit(*given)) or parts[-1]
    )
    groups = (taken.append(number) or TEXTS[:100] for number in range(40))
    for number, (group, ids) in enumerate(workers.stream(0, groups, lambda group: group)):
        assert len(taken) <= number + 1 + tokenizer_workers.GROUPS_AHEAD and len(ids) == len(group)
        assert len(parts) == 2 * len(taken)
    assert number == 39 and len(parts) == 80


def test_a_killed_worker_is_an_error(tokenizers, monkeypatch):
    pool = tokenizers[0].workers._pool
    with monkeypatch.context() as patched:  # what the pool's pipe raises just after a worker died
        patched.setattr(pool, 'submit', Mock(side_effect=OSError('handle is closed')))
        with pytest.raises(PyseriniRepbertError, match='was ended from outside'):
            tokenizers[0].flat_ids(TEXTS)
    tokenizers[0].flat_ids(TEXTS)
    os.kill(processes(tokenizers[0])[0], signal.SIGKILL)
    with pytest.raises(PyseriniRepbertError, match='was ended from outside') as died:
        for _ in range(1000):
            tokenizers[0].flat_ids(TEXTS)
    assert died.value.parameters == ('workers',)


@pytest.mark.parametrize('how', ['ends', 'is killed'])
def test_workers_end_with_the_process_that_started_them(how, tiny_checkpoint):
    code = f"""if True:
        import os, signal
        from pyserini_repbert.models.tokenizer import WordPieceTokenizer, share_workers
        from pathlib import Path
        tokenizer = WordPieceTokenizer.from_folder(Path({str(tiny_checkpoint())!r}))
        share_workers([tokenizer], 2)
        tokenizer.flat_ids(['cat'] * 300)
        print(*tokenizer.workers._pool._processes, flush=True)
        if {how == 'is killed'}:
            os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=HANGS, check=False
    )
    pids = list(map(int, ended.stdout.split()))
    assert len(pids) == 2 and all(map(gone, pids)) and (how == 'is killed' or not ended.stderr)


def test_a_long_text_is_read_until_it_has_enough_wordpieces(tokenizers, monkeypatch):
    """In this process, and in the workers, which have pieces of the usual length."""
    texts = ['cat sat mat ' * 10_000, 'cat', '', 'mat ' * 3000] * 20
    cat, sat, mat = tokenizers[0].ids(['cat sat mat'])[0]
    here = WordPieceTokenizer(tokenizers[0].backend)
    for tokenizer in (here, tokenizers[0]):
        long, short, empty, last = tokenizer.ids(texts, 5)[-4:]
        assert (short, empty) == ([cat], [])
        assert long[:6] == [cat, sat, mat] * 2
        assert last[:6] == [mat] * 6
        assert 5 <= len(long) < 2000
        assert 5 <= len(last) < 2000
        inputs = tokenizer.single(texts, 1500, 0)
        assert inputs.lengths[:4].tolist() == [1502, 3, 2, 1502]
        assert tokenizer.n_cut == 40
    assert len(here.ids(texts[:1])[0]) == 30_000
    with pytest.raises(InputError, match='is not text that UTF-8 can hold'):
        here.ids(['cat ' * 10_000 + '\ud800'], 5)


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='only where processes fork')
def test_a_forked_process_tokenises_without_the_workers(tiny_checkpoint):
    code = f"""if __name__ == '__main__':
        import os, signal
        from pathlib import Path
        from pyserini_repbert.models.tokenizer import WordPieceTokenizer, share_workers
        tokenizer = WordPieceTokenizer.from_folder(Path({str(tiny_checkpoint())!r}))
        share_workers([tokenizer], 1)
        expected = tokenizer.ids(['cat sat'] * 100)
        child = os.fork()
        if not child:
            signal.alarm(30)
            os._exit(tokenizer.ids(['cat sat'] * 100) != expected)
        print(os.waitpid(child, 0)[1])
    """
    ended = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=HANGS, check=True
    )
    assert ended.stdout == '0\n'
