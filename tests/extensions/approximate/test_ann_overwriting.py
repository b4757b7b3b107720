"""A build of an approximate index removes no file of a user's."""

import pytest
from folders import tree

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate.form import ANN_FORM
from pyserini_repbert.extensions.approximate.making import ann_lock

THESIS = 'ten years of work'


def put_thesis(folder, name='thesis.txt'):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(THESIS)


def test_index_ann(tmp_path):
    folder = tmp_path / 'index'
    put_thesis(folder, 'ann/thesis.txt')

    def build():
        with ann_lock(folder, overwrite=True):
            pass

    with pytest.raises(InputError, match=f'^{folder}/ann holds thesis.txt, which no .* has: '):
        build()
    assert (folder / 'ann' / 'thesis.txt').read_text() == THESIS
    (folder / 'ann').rename(tmp_path / 'ann')
    (folder / 'ann').symlink_to(tmp_path / 'ann')
    with pytest.raises(InputError, match='ann is a link'):
        build()
    assert (tmp_path / 'ann' / 'thesis.txt').read_text() == THESIS


def test_what_a_killed_build_of_ann_seems_to_have_left(tmp_path):
    for name in ('thesis.txt', 'index.faiss', 'ann.json'):
        put_thesis(tmp_path / '.ann-cleared', name)
    ANN_FORM.remove(tmp_path / '.ann-cleared')
    assert tree(tmp_path) == {'.ann-cleared/thesis.txt': THESIS.encode()}
