"""The tests of the documentation can fail: blocks are found, and outputs that differ are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import blocks, output_of, runs
from doc_output import agrees, same_line
from doc_runner import Counts, Page

PAGE = """# Title

```sh
echo one
```

```text
one
```

<!-- not run: takes a day -->
```sh
false
```

Prose.

```text
no output of the block above
```

```json title="a/b.json"
{}
```

<!-- fails -->
```python
cat = open('a/b.json').read()
```
"""


def test_blocks(tmp_path):
    page = tmp_path / 'page.md'
    page.write_text(PAGE, encoding='utf-8')
    found = blocks(page)
    assert [(block.language, block.title, runs(block)) for block in found] == [
        ('sh', '', True), ('text', '', False), ('sh', '', False), ('text', '', False), ('json', 'a/b.json', False),
        ('python', '', True),
    ]  # fmt: skip
    assert found[0].content == 'echo one'
    assert PAGE.split('\n')[found[0].line - 1] == 'echo one'
    assert PAGE.split('\n')[found[0].end - 1] == '```'
    assert found[2].tags == {'not run': 'takes a day'}
    assert found[5].tags == {'fails': ''}
    assert output_of(found, 0) is found[1]
    assert output_of(found, 2) is None


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('```sh\necho', 'not closed'),
        ('<!-- not run: -->\n', None),
        ('<!-- not run -->', 'reason'),
        ('```text\n…\n```', 'says nothing'),
    ],
)
def test_a_page_that_cannot_be_read(tmp_path, text, message):
    page = tmp_path / 'page.md'
    page.write_text(text, encoding='utf-8')
    if message is None:
        assert blocks(page) == []
    else:
        with pytest.raises(ValueError, match=message):
            blocks(page)


@pytest.mark.parametrize(
    ('shown', 'printed', 'same'),
    [
        ('a  0.9244 |', 'a 0.9241 |', True),
        ('a 0.9244', 'a 0.9344', False),
        ('12 topics, 3.1 ms each', '12 topics, 88 ms each', True),
        ('12 topics, 3.1 ms each', '13 topics, 3.1 ms each', False),
        ('took 4 s, 101 passages/s', 'took 31.5 s, 9 passages/s', True),
        ('qed-0001 3', 'qed-0002 3', False),
        ('p 1.2e-05', 'p 1.2e-05', True),
        ('p 1.2e-05', 'p 4.2e-05', False),
        ('0.0', '0.0', True),
        ('------', '---', True),
        ('| --: | ----- |', '| ---: | --- |', True),
        ('--resume', '--overwrite', False),
    ],
)
def test_same_line(shown, printed, same):
    assert same_line(shown, printed) is same


def test_numbers_vary():
    assert same_line('a 1 b 2.5', 'a 7 b 0.1', numbers_vary=True)
    assert not same_line('a 1 b 2.5', 'a 7 c 0.1', numbers_vary=True)


@pytest.mark.parametrize(
    ('shown', 'same'),
    [
        ('a\nb\nc\nd', True),
        ('a\n…\nd', True),
        ('…\nc\nd', True),
        ('a\n…', True),
        ('…', True),
        ('a\n…\nc\n…', True),
        ('b\n…\nd', False),
        ('a\n…\nc', False),
        ('a\nb\nc', False),
        ('a\n…\nd\n…\nb\n…', False),
    ],
)
def test_lines_left_out(shown, same):
    assert agrees(shown, 'a\nb\nc\nd\n') is same


def test_columns_of_seconds():
    table = '| setting | seconds | RR@10 |\n| --- | ---: | ---: |\n| k0=5 | {} | {} |\n\n3 seconds'
    assert agrees(table.format(0.795, 0.5), table.format(3.1, 0.5))
    assert not agrees(table.format(0.795, 0.5), table.format(0.795, 0.6))


def _page(tmp_path: Path, text: str) -> Page:
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


def test_outputs_are_rewritten(tmp_path):
    page = _page(tmp_path, '```sh\nprintf "a\\nb\\n"\n```\n\n```text\nold\n```\nend\n')
    assert page.run(Counts(), rewrite='differing')
    assert page.path.read_text(encoding='utf-8').endswith('```text\na\nb\n```\nend\n')
    assert not page.run(Counts())


def test_outputs_that_agree_are_rewritten_for_their_timings(tmp_path):
    page = _page(tmp_path, '```sh\necho 3 ms\n```\n\n```text\n8 ms\n```\n')
    assert not page.run(Counts(), rewrite='differing')
    assert '8 ms' in page.path.read_text(encoding='utf-8')
    assert not page.run(Counts(), rewrite='all')
    assert '8 ms' not in page.path.read_text(encoding='utf-8')
