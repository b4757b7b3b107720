"""--overwrite removes what this package wrote, and no file of a user's beside it, at any depth."""

import os
import re
from pathlib import Path

import indexes
import numpy as np
import pytest
from folders import tree

from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.encode.parts import finish_parts
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate import folds
from pyserini_repbert.files import check_replaced, locked
from pyserini_repbert.index.bundle_form import bundle_form
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_layout import export_faiss
from pyserini_repbert.index.lucene import check_target
from pyserini_repbert.index.surrounding import surrounding_index
from pyserini_repbert.record import record_path
from pyserini_repbert.search.adapted_folder import write_adapted

THESIS = 'ten years of work'


def put_thesis(folder: Path, name: str = 'thesis.txt') -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(THESIS)


def refuses(work, folder: Path, name: str) -> None:
    """The work is refused, the entry or its folder is named, and every file stays."""
    before = tree(folder)
    names = '|'.join([re.escape(name), *map(re.escape, map(str, Path(name).parents[:-1]))])
    with pytest.raises(
        InputError, match=rf'^{folder} holds (the link )?({names}), which no .* has: '
    ):
        work()
    assert tree(folder) == before
    assert not list(folder.parent.glob('.*'))


@pytest.mark.parametrize(
    'name',
    [
        'thesis.txt',
        '.profile',
        'shard-00000/thesis.txt',
        'shard-mine/thesis.txt',
        'figures/thesis.txt',
        'shard-00000.txt',
        'ann/thesis.txt',
        'part-0-of-1/thesis.txt',
        'part-1-of-my-thesis/manifest.json',
        '.shard-00000.20240101/thesis.txt',
        'manifest.json.bak',
        'encoding.json2',
    ],
)
def test_encode(tmp_path, name):
    folder = indexes.dense(tmp_path / 'index')
    put_thesis(folder, name)
    refuses(lambda: indexes.dense(folder, overwrite=True), folder, name)


def test_encode_into_a_folder_with_guessable_names_alone(tmp_path):
    put_thesis(tmp_path / 'mine', 'part-1-of-my-thesis')
    mine = tmp_path / 'mine'
    refuses(lambda: indexes.dense(mine, overwrite=True), mine, 'part-1-of-my-thesis')


def test_encode_without_links(tmp_path):
    folder = indexes.dense(tmp_path / 'index')
    (folder / 'shard-00001').rename(tmp_path / 'elsewhere')
    (folder / 'shard-00001').symlink_to(tmp_path / 'elsewhere')
    before = tree(tmp_path)
    refuses(lambda: indexes.dense(folder, overwrite=True), folder, 'shard-00001')
    refuses(lambda: finish_parts(folder, type(indexes.DENSE)), folder, 'shard-00001')
    assert tree(tmp_path) == before


def test_whole_indexes_are_replaced(tmp_path):
    """What any encoding writes is of the form, with what a file manager leaves there."""
    for make in (indexes.dense, indexes.epic):
        folder = make(tmp_path / make.__name__)
        whole = tree(folder)
        (folder / '.DS_Store').write_bytes(b'')
        assert bundle_form().foreign_entry(folder) is None
        make(folder, overwrite=True)
        assert tree(folder) == whole | {'.DS_Store': b''}


@pytest.mark.parametrize('name', ['thesis.txt', 'index.bak', 'figures/thesis.txt'])
def test_export(tmp_path, name):
    bundle = DenseBundle(indexes.dense(tmp_path / 'dense'))
    export_faiss(bundle, tmp_path / 'faiss')
    export_faiss(bundle, tmp_path / 'faiss', overwrite=True)
    put_thesis(tmp_path / 'faiss', name)
    refuses(
        lambda: export_faiss(bundle, tmp_path / 'faiss', overwrite=True), tmp_path / 'faiss', name
    )


def test_export_beside_a_docid_of_a_user(tmp_path):
    """One guessable name does not make a folder ours."""
    mine = tmp_path / 'mine'
    put_thesis(mine, 'docid')
    put_thesis(mine)
    bundle = DenseBundle(indexes.dense(tmp_path / 'dense'))
    refuses(lambda: export_faiss(bundle, mine, overwrite=True), mine, 'thesis.txt')


@pytest.mark.parametrize(
    'name', ['thesis.txt', '_thesis.txt', '_thesis.doc', 'segments.txt', 'old/segments_1']
)
def test_index_lucene(tmp_path, name):
    folder = tmp_path / 'index'
    put_thesis(folder, name)
    for own in (
        'pyserini_repbert.json',
        'sha256sums',
        'segments_1',
        '_0.cfs',
        '_0_Lucene90_0.dvd',
        '_0_Lucene90_0.dvs',
    ):
        (folder / own).touch()
    refuses(lambda: check_target(folder, overwrite=True), folder, name)


def test_split_folds(tmp_path):
    folder = tmp_path / 'folds'
    for number in (1, 2, 3):
        for name in ('train.tsv', 'validation.tsv', 'test.tsv', 'test.run'):
            put_thesis(folder / f'fold-{number}', name)
    check_replaced(folder, True, 'fold-1/test.tsv', folds.FORM)
    put_thesis(folder, 'fold-2/notes.txt')
    refuses(
        lambda: check_replaced(folder, True, 'fold-1/test.tsv', folds.FORM),
        folder,
        'fold-2/notes.txt',
    )


def test_adapt(tmp_path):
    folder = tmp_path / 'mine'
    values = {
        'index': 'x',
        'encoder': 'x',
        'encoder_weights': '',
        'sparse': (),
        'weights': (1.0,),
        'depth': 1,
        'estimate': {},
    }
    query_map = np.zeros((2, 2), np.float32)
    write_adapted(folder, query_map, **values)
    write_adapted(folder, query_map, overwrite=True, **values)
    put_thesis(folder)
    refuses(
        lambda: write_adapted(folder, query_map, overwrite=True, **values), folder, 'thesis.txt'
    )


def test_a_lock_is_no_link_to_a_file(tmp_path):
    """A lock file is written, so a link in its place would overwrite what it leads to."""
    put_thesis(tmp_path)
    os.symlink(tmp_path / 'thesis.txt', tmp_path / 'lock')
    with pytest.raises(InputError, match='lock is a link'), locked(tmp_path / 'lock', 'output'):
        pass
    assert (tmp_path / 'thesis.txt').read_text() == THESIS


INSIDE = """
search --index dz --topics t.tsv --output dz/manifest.json --overwrite => --output dz/manifest.json is inside the index
search --index dz --topics t.tsv --output dz/run.txt => --output dz/run.txt is inside the index
search --index dz --topics t.tsv --output out.txt --cost lucene/cost.json => --cost lucene/cost.json is inside the index
search --index mine --topics t.tsv --output out.txt --confidence mine/collection.sqlite --overwrite => --confidence mine/collection.sqlite is inside the index
search --index dz --topics t.tsv --output out.txt --rerank llm@2 --llm-model m --llm-answers mine/answers.sqlite => --llm-answers mine/answers.sqlite is inside the index
index judgments --index mine --export mine/collection.sqlite --overwrite => --export mine/collection.sqlite is inside
index judgments --index mine --export-qrels link/qrels.txt => --export-qrels link/qrels.txt is inside the index
index copy --index mine --output mine/copy => --output mine/copy is inside the index
index export --index dz --to-faiss dz/faiss => --to-faiss dz/faiss is inside the index
index lucene --corpus t.tsv --output faiss/a/b/c => --output faiss/a/b/c is inside the index
index sync --corpus t.tsv --index mine/inner => --index mine/inner is inside the index
encode --corpus t.tsv --encoder x --output mine/dense => --output mine/dense is inside the index
evaluate split-folds --folds f --topics t.tsv --output dz/folds => --output dz/folds is inside the index
evaluate ir-metadata t.tsv --tira dz/tira => --tira dz/tira is inside the index
adapt --index dz --topics t.tsv --qrels q --output dz/adapted => --output dz/adapted is inside the index
train recipe.yaml --output dz/model => --output dz/model is inside the index
fusion --runs t.tsv t.tsv --output dz/shard-00000/vectors.npy --overwrite => is inside the index
explain --model x --query x --passage y --output a.html dz/b.html => --output dz/b.html is inside the index
"""  # noqa: E501


@pytest.fixture
def with_indexes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    indexes.dense(tmp_path / 'dz')
    for name in ('mine/collection.sqlite', 'lucene/segments_1', 'faiss/index', 'faiss/docid'):
        put_thesis(tmp_path, name)
    (tmp_path / 'link').symlink_to('mine')
    (tmp_path / 't.tsv').write_text('1\tcat\n')
    return tmp_path


@pytest.mark.parametrize('line', INSIDE.strip().splitlines())
def test_no_output_lies_in_an_index(with_indexes, line, capsys):
    before = tree(with_indexes)
    said, message = line.split(' => ')
    assert command.run(main, said.split()) == command.EXIT_ERROR
    error = capsys.readouterr().err
    assert message in error and error.endswith(': give another output\n')
    assert tree(with_indexes) == before


def test_what_lies_in_no_index(with_indexes):
    (with_indexes / 'manifest.json').write_text('{"name": "of a web page"}')
    (with_indexes / 'segments_of_audio').mkdir()
    for path in ('run.txt', 'dz', 'new/dense', 'dz.txt'):
        assert surrounding_index(path) is None
    assert surrounding_index('dz/part-0-of-2/shard-00000') == with_indexes / 'dz'


def test_the_record_of_a_folder_lies_beside_it(tmp_path):
    """Also where its name was completed with a slash: in the folder, it would be in the way."""
    assert record_path(f'{tmp_path}/dense/') == tmp_path / 'dense.record.json'
