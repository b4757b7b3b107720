"""CEDR's similarity maps: best matches, and what a model sees."""

import numpy as np
import pytest

from pyserini_repbert.explain import similarity_maps
from pyserini_repbert.explain.rendering import panels
from pyserini_repbert.rerank import CedrReranker
from pyserini_repbert.systems.cedr.explaining import SimilarityMap

VALUES = np.array([[0.1, 0.9, -0.2, 0.9], [0.0, 0.5, 0.4, -1.0]], dtype=np.float32)
MAP = SimilarityMap(2, ['<b>', '##ing'], ['a', '&', '</td>', '$x$'], VALUES)


def test_matches_by_hand():
    first, second = MAP.best_matches(2)
    assert first == [('&', 1, pytest.approx(0.9)), ('$x$', 3, pytest.approx(0.9))]
    assert [place for _, place, _ in second] == [1, 2]


def test_maps_of_a_layer_share_a_scale():
    def passage(docid, **layers):
        maps = [{'layer': int(name[1:]), 'values': values} for name, values in layers.items()]
        return {'docid': docid, 'query_tokens': ['q'], 'passage_tokens': ['a', 'b'], 'maps': maps}

    found = panels(
        {
            'passages': [
                passage('d1', l2=[[0.1, 0.9]], l0=[[0.5, 0.5]]),
                passage('d2', l2=[[-1.0, 0.2]]),
            ]
        }
    )
    assert [(panel.title, panel.low, panel.high) for panel in found] == [
        ('d1: layer 2', -1.0, 0.9),
        ('d1: embeddings', 0.5, 0.5),
        ('d2: layer 2', -1.0, 0.9),
    ]
    assert list(found[0].rows()) == [('q', [0.1, 0.9], pytest.approx([1.1 / 1.9, 1.0]))]
    assert list(found[1].rows()) == [('q', [0.5, 0.5], [0.0, 0.0])]


def test_maps_are_what_a_model_sees(tiny_cedr):
    model = CedrReranker(tiny_cedr('knrm'))
    maps = similarity_maps(model, 'cat sat', 'the cat sat on the mat')
    assert [one.layer for one in maps] == [0, 1, 2]
    assert maps[0].query == ['cat', 'sat'] and maps[0].passage == [
        'the',
        'cat',
        'sat',
        'on',
        'the',
        'mat',
    ]
    assert maps[1].values.shape == (2, 6)
    assert not np.allclose(maps[1].values, maps[2].values)
    assert np.abs(maps[2].values).max() <= 1.0001
    (last,) = similarity_maps(model, 'cat sat', 'the cat sat on the mat', [2])
    np.testing.assert_array_equal(last.values, maps[2].values)
    assert len(similarity_maps(model, 'cat ' * 30, 'mat')[0].query) == 6
