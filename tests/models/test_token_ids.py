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
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.models import token_ids
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
    with pytest.raises(InputError, match=r"'\\ud800' is no text"):
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
        assert len(taken) <= number + 1 + token_ids.GROUPS_AHEAD and len(ids) == len(group)
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
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=60, check=False
    )
    pids = list(map(int, ended.stdout.split()))
    assert len(pids) == 2 and all(map(gone, pids)) and (how == 'is killed' or not ended.stderr)


WORDS = st.lists(
    st.sampled_from(
        ['cat', 'sat', ' ', '\n', '\t', ',', '.', '[SEP]', '[', ']', '-', 'é', '貓', '。', '\x00']
    ),
    max_size=60,
).map(''.join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=WORDS, size=st.integers(1, 12))
def test_pieces_of_a_text_have_the_ids_of_the_whole(text, size, tokenizers):
    tokenizer = tokenizers[0]
    parts = list(token_ids.pieces(text, size))
    assert ''.join(parts) == text
    whole = tokenizer.ids([text])[0]
    assert [number for ids in tokenizer.ids(parts) for number in ids] == whole


def test_a_long_text_is_read_until_it_has_enough_wordpieces(tokenizers, monkeypatch):
    tokenizer = tokenizers[0]
    monkeypatch.setattr(token_ids, 'PIECE', 40)
    monkeypatch.setattr(token_ids, 'MOST_IDS', 8)
    texts = ['cat sat mat ' * 1000, 'cat']
    long, short = tokenizer.ids(texts)
    cat, sat, mat = tokenizer.ids(['cat sat mat'])[0]
    assert short == [cat]
    assert long[:9] == [cat, sat, mat] * 3
    assert 8 <= len(long) < 20
    tokenizer.single(texts, 5, 0)
    assert tokenizer.n_cut == 1
