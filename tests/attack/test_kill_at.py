"""The hook itself: every point is met once, in order, and leaves what a killed process would leave."""

from __future__ import annotations

import kill_at
import pytest

from pyserini_repbert.files import atomic_file


@pytest.fixture
def write(tmp_path):
    """A plain file, an atomic one, and one in an atomic folder."""

    def work():
        (tmp_path / 'plain').write_text('abcdef')
        with open(tmp_path / 'plain', 'a') as stream:
            stream.write('ghij')
        with atomic_file(tmp_path / 'atomic') as stream:
            stream.write('xyz')
        (tmp_path / 'plain').unlink()

    return work


def test_what_a_killed_process_leaves(write, tmp_path):
    left = {}
    for number in range(14):
        for file in tmp_path.iterdir():
            file.unlink()
        ended = kill_at.run(write, tmp_path, at=number)
        assert (ended.killed, ended.status, len(ended.points)) == (True, -9, number)
        left[number] = [(file.name[:7], file.read_text()) for file in sorted(tmp_path.iterdir(), reverse=True)]
    plain, whole = ('plain', 'abcdef'), ('plain', 'abcdefghij')
    assert [left[number] for number in range(6)] == [[], [('plain', '')], [('plain', 'abc')], [plain], [plain],
                                                     [('plain', 'abcdefgh')]]  # fmt: skip
    assert [left[number][0] for number in range(6, 14)] == [whole] * 8
    atomic = [left[number][1:] for number in range(6, 14)]
    empty = [('.atomic', '')]
    assert atomic == [[], empty, empty, empty, [('.atomic', 'x')], [('.atomic', 'xyz')], [('.atomic', 'xyz')],
                      [('atomic', 'xyz')]]  # fmt: skip
