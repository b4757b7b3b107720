"""A document knows which lines of its text are code."""

import pytest
from folders import write_files

from pyserini_repbert.data.origins import Origin, TextSpan
from pyserini_repbert.names.corpora import open_corpus

FILES = {
    'a.md': 'Words.\n\n```py\nx = 1\n\n  y = 2\n```\n\n- item\n\n      z = 3\n\nMore.',
    'a.rst': 'Words.\n\n.. code::\n\n   x = 1\n\n     y = 2\n\n- item::\n\n    z = 3\n\nMore.',
    'a.adoc': 'Words.\n\n----\nx = 1\n\n  y = 2\n----\n\n* item\n\n....\nz = 3\n....\n\nMore.',
    'a.org': 'Words.\n\n#+begin_src\nx = 1\n\n  y = 2\n#+end_src\n\n- item\n\n: z = 3\n\nMore.',
    'a.html': '<p>Words.<pre>x = 1\n\n  y = 2</pre><ul><li>item<pre>z = 3</pre></ul><p>More.',
}


@pytest.mark.parametrize('name', FILES)
def test_code_in_texts(tmp_path, name):
    write_files(tmp_path, {name: FILES[name]})
    (document,) = open_corpus(tmp_path).documents()
    code = [document.text[span.start : span.end] for span in document.origin.code]
    assert code == ['x = 1\n\n  y = 2', 'z = 3']
    assert document.text.startswith('Words.') and document.text.endswith('More.')
    assert Origin.parsed(name, document.origin.rendered()) == document.origin


def test_code_within_a_part():
    origin = Origin(code=(TextSpan(10, 20), TextSpan(30, 40), TextSpan(50, 60)))
    assert origin.code_within(20, 30) == []
    assert origin.code_within(15, 35) == [(15, 20), (30, 35)]
    assert origin.code_within(0, 99) == list(origin.code)
    with pytest.raises(ValueError):
        Origin.parsed('a', '{"code": [[1]]}')
