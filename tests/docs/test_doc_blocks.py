"""The tests of the documentation can fail: blocks are found, and outputs that differ are told
apart.
"""

import pytest
from doc_runner import Counts, Page


def _page(tmp_path, text):
    scratch = tmp_path / 'scratch'
    scratch.mkdir()
    path = tmp_path / 'page.md'
    path.write_text(text, encoding='utf-8')
    return Page(path, scratch, tmp_path / 'cache')


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('```sh\necho 1 > a\n```\n```sh\ncat a\n```\n```text\n1\n```', None),
        ('```sh\nexit 3\n```', 'status 3'),
        ('```sh\nnothing | cat\n```', 'status 127'),
        ('```sh\necho 1\n```\n\n```text\n2\n```', 'but this was printed:\n1'),
        ('<!-- fails -->\n```sh\necho 1\n```', 'was expected to fail'),
        ('<!-- fails -->\n```sh\necho bad >&2; exit 2\n```\n```text\nbad\n```', None),
        ('```python\na = 1\n```\n```python\nprint(a)\n```\n```text\n1\n```', None),
        ('```python\nraise KeyError(5)\n```', 'KeyError: 5'),
    ],
)
def test_a_page_is_run(tmp_path, text, problem):
    failures = _page(tmp_path, text).run(Counts())
    assert len(failures) == (problem is not None)
    if problem is not None:
        assert problem in str(failures[0])
