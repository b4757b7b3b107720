"""What plots show: read back from the figures that were saved."""

import pytest

from pyserini_repbert.evaluate.plots import plot_lines


@pytest.mark.parametrize(
    ('name', 'start'), [('a.pdf', b'%PDF'), ('a.SVG', b'<?xml'), ('a', b'\x89PNG')]
)
def test_a_plot_has_the_format_of_its_name_and_the_same_bytes_again(tmp_path, name, start):
    contents = []
    for _ in range(2):
        plot_lines(tmp_path / name, {'recall': {'a': {0: 0.1, 10: 0.5}}}, 'depth')
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1] and contents[0].startswith(start)
