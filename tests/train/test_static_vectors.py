"""Word vectors in place of a BERT: converted, trained over, and refused where they do not fit."""

import json
import re

import numpy as np
import pytest
from safetensors.torch import load_file
from trained_models import CANDIDATES

from pyserini_repbert.commands.command import run
from pyserini_repbert.errors import InputError
from pyserini_repbert.rerank import CedrReranker
from pyserini_repbert.systems.cedr.static_vectors import convert_vectors, read_vectors
from pyserini_repbert.train.training import train
from tools import convert_checkpoint

GLOVE = 'cat 1 0\ndog 0 2\nmat 3 3\nsat -1 0.5\nthe 0.1 0.2\n'
STATIC = {'joint': False, 'static': True, 'max_query_length': 6, 'max_doc_length': 30}


@pytest.fixture
def vectors(tmp_path):
    """The folder of a base with five words of two values."""
    (tmp_path / 'glove.txt').write_text(GLOVE, encoding='utf-8')
    convert_vectors(tmp_path / 'glove.txt', tmp_path / 'vectors')
    return tmp_path / 'vectors'


@pytest.mark.parametrize('architecture', ['knrm', 'pacrr', 'drmm'])
def test_a_head_is_trained_over_vectors_that_stay(architecture, vectors, tiny_recipe, tmp_path):
    recipe = tiny_recipe(
        'cedr',
        base=str(vectors),
        ranking={**STATIC, 'architecture': architecture},
        training={'learning_rate': 0, 'head_learning_rate': 1e-2, 'steps': 4},
    )
    train(recipe, tmp_path / 'out', device='cpu')
    weights = load_file(tmp_path / 'out/model.safetensors')
    np.testing.assert_array_equal(
        weights['bert.embeddings.word_embeddings.weight'].numpy(),
        [*np.zeros((5, 2)), *np.float32([[1, 0], [0, 2], [3, 3], [-1, 0.5], [0.1, 0.2]])],
    )
    reranker = CedrReranker(tmp_path / 'out')
    (scores,) = reranker.score_lists(['cat mat'], [CANDIDATES])
    assert np.isfinite(scores).all() and len(set(scores.tolist())) > 1
    with pytest.raises(InputError, match='have no layers'):
        CedrReranker(tmp_path / 'out', n_layers=1)


def test_similarities_are_cosines_of_whole_words(vectors, tiny_recipe, tmp_path):
    """cat = (1, 0), dog = (0, 2), mat = (3, 3); nobody has a vector of zebra."""
    recipe = tiny_recipe(
        'cedr',
        base=str(vectors),
        ranking={'architecture': 'knrm'},
        training={'learning_rate': 0, 'head_learning_rate': 1e-2, 'steps': 1},
    )
    train(recipe, tmp_path / 'out', device='cpu')
    ranking = json.loads((tmp_path / 'out/config.json').read_text(encoding='utf-8'))['ranking']
    assert ranking['static'] is True and ranking['joint'] is False
    (only,) = CedrReranker(tmp_path / 'out').similarity_maps('Cat zebra', 'mat dog zebra cat')
    half = 2**-0.5
    np.testing.assert_allclose(only.values, [[half, 0, 0, 1], [0, 0, 0, 0]], atol=1e-6)


def test_static_vectors_have_no_cls(vectors, tiny_recipe, tmp_path):
    rates = {'learning_rate': 0, 'head_learning_rate': 1e-2}
    for ranking in ({'architecture': 'knrm', 'joint': True}, {'architecture': 'vanilla'}):
        recipe = tiny_recipe('cedr', base=str(vectors), ranking=ranking, training=rates)
        with pytest.raises(InputError, match=r'joint=false|joint=False'):
            train(recipe, tmp_path / 'out', device='cpu')


def test_words_are_read_in_the_forms_of_glove_and_word2vec(tmp_path):
    path = tmp_path / 'vectors.txt'
    path.write_text('3 2\ncat 1 0\ncat 5 5\n. . 2 2\né 3 4\nsun 0 1\n', encoding='utf-8')
    table = read_vectors(path)
    assert table.words == ['cat', 'é', 'sun']
    np.testing.assert_array_equal(table.vectors, np.float32([[1, 0], [3, 4], [0, 1]]))
    assert read_vectors(path, most_words=2).words == ['cat', 'é']


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('cat 1 0\ndog 1\n', 'vectors.txt:2: expected a word and 2 finite numbers'),
        ('cat 1 0\ndog 1 x\n', 'vectors.txt:2: expected a word and 2 finite numbers'),
        ('cat 1 nan\n', 'vectors.txt:1: expected a word and 2 finite numbers'),
        ('', 'vectors.txt has no word vectors'),
    ],
)
def test_lines_that_are_no_vectors_are_refused(text, message, tmp_path, capsys):
    path = tmp_path / 'vectors.txt'
    path.write_text(text, encoding='utf-8')
    given = ['vectors', str(path), str(tmp_path / 'out')]
    assert run(convert_checkpoint.main, given) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / 'out').exists()


def test_the_tool_keeps_the_first_words(tmp_path, capsys):
    path = tmp_path / 'glove.txt'
    path.write_text(GLOVE, encoding='utf-8')
    given = ['vectors', str(path), str(tmp_path / 'out'), '--words', '3']
    assert run(convert_checkpoint.main, given) in (0, None)
    assert '3 words x 2' in capsys.readouterr().out
