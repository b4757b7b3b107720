import html.parser
import re
import sys

import numpy as np
import pytest

from pyserini_repbert.commands.command import run as run_command
from pyserini_repbert.commands.explain import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.explain.similarity import Panel, SimilarityMap, SimilarityModel, scales, write_html

VALUES = np.array([[0.1, 0.9, -0.2, 0.9], [0.0, 0.5, 0.4, -1.0]], dtype=np.float32)
MAP = SimilarityMap(2, ['<b>', '##ing'], ['a', '&', '</td>', '$x$'], VALUES)


def explain(arguments):
    return run_command(main, ['similarity', *arguments])


def test_matches_and_windows_by_hand():
    first, second = MAP.best_matches(2)
    assert first == [('&', 1, pytest.approx(0.9)), ('$x$', 3, pytest.approx(0.9))]
    assert [place for _, place, _ in second] == [1, 2]
    assert MAP.best_window(2) == 1
    assert MAP.best_window(4) == MAP.best_window(9) == 0
    assert MAP.window(1, 2).passage == ['&', '</td>']
    assert MAP.window(1, 2).values.tolist() == VALUES[:, 1:3].tolist()


def test_maps_of_a_layer_share_their_colours():
    other = MAP._replace(values=VALUES / 2)
    third = MAP._replace(layer=1, values=VALUES / 4)
    found = scales([Panel('a', other), Panel('b', third), Panel('c', MAP)])
    assert found == {2: (-1.0, pytest.approx(0.9)), 1: (-0.25, pytest.approx(0.225))}


class _Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.titles = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.titles += [value for name, value in attrs if name == 'title']

    def handle_data(self, data):
        self.texts.append(data)


def test_html_is_escaped_and_needs_nothing_else(tmp_path):
    path = tmp_path / 'map.html'
    write_html(path, '<script>alert(1)</script>', [Panel('a "title" <i>', MAP)])
    text = path.read_text()
    reader = _Reader()
    reader.feed(text)
    assert 'script' not in reader.tags and 'b' not in reader.tags and 'i' not in reader.tags
    assert reader.tags.count('td') == 8
    assert '<script>alert(1)</script>' in reader.texts and '</td>' in reader.texts
    assert '<b> · &: 0.900' in reader.titles
    assert not re.search(r'(src|href)=', text)
    shares = [float(share) for share in re.findall(r'<td style="--share:([^"]*)"', text)]
    assert shares == pytest.approx([1.1 / 1.9, 1, 0.8 / 1.9, 1, 1 / 1.9, 1.5 / 1.9, 1.4 / 1.9, 0], abs=6e-4)


def test_html_of_a_map_without_differences(tmp_path):
    write_html(tmp_path / 'map.html', '', [Panel('', MAP._replace(values=np.full((2, 4), 0.5)))])
    assert (tmp_path / 'map.html').read_text().count('--share:0.000') == 8


def test_maps_are_what_a_model_sees(tiny_cedr):
    model = SimilarityModel(tiny_cedr('knrm'))
    maps = model.maps('cat sat', 'the cat sat on the mat')
    assert [found.layer for found in maps] == [0, 1, 2]
    assert maps[0].query == ['cat', 'sat'] and maps[0].passage == ['the', 'cat', 'sat', 'on', 'the', 'mat']
    assert maps[1].values.shape == (2, 6)
    assert not np.allclose(maps[1].values, maps[2].values)
    assert np.abs(maps[2].values).max() <= 1.0001
    only = model.maps('cat sat', 'the cat sat on the mat', [2])
    np.testing.assert_array_equal(only[0].values, maps[2].values)
    assert len(model.maps('cat ' * 30, 'mat')[0].query) == 6


def test_any_bert_will_do(tiny_checkpoint):
    assert SimilarityModel(tiny_checkpoint()).maps('cat', 'the cat sat')[2].values.shape == (1, 3)


def test_what_cannot_be_compared(tiny_cedr):
    model = SimilarityModel(tiny_cedr('vanilla'))
    with pytest.raises(InputError, match=r'layer 3 was asked for, expected 0 \(embeddings\) to 2'):
        model.maps('cat', 'sat', [3])
    with pytest.raises(InputError, match='the query has no words'):
        model.maps(' ', 'sat')
    with pytest.raises(InputError, match='the passage has no words'):
        model.maps('cat', '')


def test_command(tiny_cedr, tmp_path, monkeypatch, capsys, figures):
    monkeypatch.chdir(tmp_path)
    tiny_cedr('pacrr')
    flags = ['--model', 'cedr-pacrr', '--query', 'cat sat', '--passage', 'the cat sat on the mat']
    assert explain([*flags, '--output', 'one.png', 'one.html']) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].startswith('| layer 2')
    assert printed.splitlines()[-2:] == ['one.png', 'one.html']
    assert (tmp_path / 'one.png').read_bytes()[:4] == b'\x89PNG'
    axis = figures[0].axes[0]
    (expected,) = SimilarityModel('cedr-pacrr').maps('cat sat', 'the cat sat on the mat', [2])
    np.testing.assert_allclose(axis.images[0].get_array(), expected.values, atol=1e-6)
    assert [label.get_text() for label in axis.get_xticklabels()] == expected.passage
    assert [label.get_text() for label in axis.get_yticklabels()] == expected.query
    long = 'a dog ran . ' * 30
    flags += ['--passage', long, '--layer', '0', '1', '--width', '10']
    assert explain([*flags, '--output', 'two.html', 'two.png']) == 0
    assert (tmp_path / 'two.html').read_text().count('<table>') == 4
    assert '| passage 2, embeddings' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        (['--output', 'map.pdf'], "'map.pdf' is neither"),
        (['--output', 'map.png', '--start', '6'], '--start 6 is behind the end of the passage, which has 6 tokens'),
        (['--layer', '7'], 'layer 7 was asked for'),
        (['--query', 'a \udcff'], "'a \\udcff' is not valid UTF-8"),
        (['--passage', '\udcff'], 'argument --passage'),
    ],
)
def test_errors(flags, message, tiny_cedr, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny_cedr('drmm')
    common = ['--model', 'cedr-drmm', '--query', 'cat', '--passage', 'the cat sat on the mat']
    assert explain([*common, *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / 'map.png').exists()


def test_png_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    assert explain(['--model', 'x', '--query', 'a', '--passage', 'b', '--output', 'map.png']) == 2
    assert "pip install '.[plots]'" in capsys.readouterr().err
