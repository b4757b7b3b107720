"""What is read of Markdown: words and code, headings with their anchors, lines of the file."""

import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.markdown_documents import (
    document_of_markdown,
    document_of_text,
)
from pyserini_repbert.collection.files.plain_documents import source_documents
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Heading, Origin

DIALECTS = Path(__file__).with_name('dialects.md')
READ = """\
Intro with a link, code(), bold, H2O and a footnote.
A beach

Careful

Inside the note.

x = 1

Python 3.10

y = 2

Docker

Linux

Use apt.

Hint
Be quick.

Ports

- one
- two
  - nested

1. first
2. second

a\tb
1\t2

More

Details here.

Quoted alias.

Docker

The note."""


def lines_in_file(document):
    """(line of the file, line of the text) of all lines of the text that are not empty."""
    position = 0
    found = []
    for line in document.text.split('\n'):
        if line:
            found.append((document.origin.line_at(document.text, position), line))
        position += len(line) + 1
    return found


def test_marks_are_no_text_and_code_stays():
    """Hits showed '//// tab', '{!> ../x.py!}' and backticks."""
    document = document_of_markdown('d', DIALECTS.read_text(encoding='utf-8'))
    assert (document.title, document.text) == ('Deploy', READ)


def test_each_line_knows_its_line_in_the_file():
    source = DIALECTS.read_text(encoding='utf-8').split('\n')
    found = lines_in_file(document_of_markdown('d', '\n'.join(source)))
    for line, word in ((7, 'link'), (8, 'beach'), (22, 'y = 2'), (41, 'nested'), (52, 'Details')):
        assert word in dict(found)[line]
        assert word in source[line - 1]
    assert [line for line, _ in found] == sorted(line for line, _ in found)


def test_headings_have_paths_and_anchors():
    document = document_of_markdown('d', DIALECTS.read_text(encoding='utf-8'))
    origin = document.origin
    assert [(own.level, own.title, own.anchor) for own in origin.headings] == [
        (2, 'Docker', 'docker'),
        (3, 'Ports', 'ports'),
        (2, 'Docker', 'docker-1'),
    ]
    for heading in origin.headings:
        assert document.text[heading.start :].startswith(heading.title)
    docker = document.text.index('Docker')
    assert origin.parts(docker - 9, docker + 9) == [(docker - 9, docker), (docker, docker + 9)]
    for word, path in (('Intro', []), ('first', ['Docker', 'Ports']), ('The note', ['Docker'])):
        headings = origin.headings_at(document.text.index(word))
        assert [heading.title for heading in headings] == path


@pytest.mark.parametrize(
    ('heading', 'anchor'),
    [
        ("## What's new?", 'whats-new'),
        ('## `pip install` & go', 'pip-install--go'),
        ('## Über_uns 2.0', 'über_uns-20'),
        ('## Two {#ports .x}', 'ports'),
        ('Two\n---', 'two'),
        ('## [Link](x.md)', 'link'),
    ],
)
def test_anchors_are_those_of_github(heading, anchor):
    (found,) = document_of_markdown('d', f'Prose.\n\n{heading}\nx').origin.headings
    assert found.anchor == anchor


@pytest.mark.parametrize(
    ('text', 'document'),
    [
        ('---\ntitle: A\n---\n# A\n\nx', Document('d', 'x', 'A')),
        ('---\ntitle: A\n---\n# B\n\nx', Document('d', 'B\n\nx', 'A')),
        ('<p align="center"><img src="x"></p>\n\n# B\n\nx', Document('d', 'x', 'B')),
        ("import T from '@x';\n\n# B\n\nx", Document('d', 'x', 'B')),
        ('x', Document('d', 'x', 'name')),
        ('```\n{!> x.py!}\n```\n', Document('d', '', 'name')),
        ('a {b} [c] <d', Document('d', 'a {b} [c] <d', 'name')),
        ('a &amp; b\\*<br>c', Document('d', 'a & b* c', 'name')),
        ('/// x\n\n///\n\na / b', Document('d', 'a / b', 'name')),
        ('```\n!!! note\n=== "x"\n```', Document('d', '!!! note\n=== "x"', 'name')),
        (
            '```console\n$ <font color="#4E9A06">a</font> <b>b</b> <c>\n```',
            Document('d', '$ a b <c>', 'name'),
        ),
        ('~~old~~ new\n***\nx', Document('d', 'old new\n\nx', 'name')),
        ('x ![A cat](a.png) <img alt="y z">', Document('d', 'x A cat y z', 'name')),
        ('![a.png](a.png) [![b](b.svg)](c) x', Document('d', 'x', 'name')),
        ('<p><img alt="A cat" src="a"></p>\n\nx', Document('d', 'A cat\n\nx', 'name')),
    ],
)
def test_titles_and_texts(text, document):
    assert document_of_markdown('d', text, 'name') == document


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        # Code is not a mark.
        ('Use `[^a-z]`, `{x=1}`, `{#id}` and `[[a|b]]`.', 'Use [^a-z], {x=1}, {#id} and [[a|b]].'),
        ('```\n{% for x in y %}\n{{< x >}}\n::: z\n```', '{% for x in y %}\n{{< x >}}\n::: z'),
        # What only looks like a mark.
        ('A set {a=1} and [^2], $x_{i=1}$.', 'A set {a=1} and [^2], $x_{i=1}$.'),
        (
            '!!! Never do that\n\n??? Why not\n\n::: x y',
            '!!! Never do that\n\n??? Why not\n\n::: x y',
        ),
        ('import duties from abroad rose', 'import duties from abroad rose'),
        # Marks with words.
        ('{% raw %}{{ x }}{% endraw %}', '{% raw %}{{ x }}{% endraw %}'),
        ('{% include f.html caption="A cat" %}\nx\n{% end %} {% x %}', 'A cat\nx'),
        ('::: {.callout title="Careful" a="b"}\nx\n:::', 'Careful\nx'),
        ('x[^1] y[^n]\n\n[^1]: Yes\n[^n]: https://a.org', 'x y\n\nYes\nhttps://a.org'),
        ('x[^1]\n\n[^1]: One.\n\n    *Two.*', 'x\n\nOne.\n\nTwo.'),
        # Attributes.
        ('[a](b){ .c d="e f" } ![g](h){width=3}\n{: .i }', 'a g'),
        # Cells and blocks of HTML are words of their own.
        ('<table>\n\n<tr><td>a</td><td>b</td></tr>\n\n</table>', 'a b'),
        ('a<hr>b<p>c', 'a b c'),
    ],
)
def test_what_is_no_mark_is_text(text, expected):
    assert document_of_markdown('d', text, 'name').text == expected


def test_what_nests_deeply_is_read():
    """The parser left out what was deeper than ten lists or twenty quotations."""
    lines = [f'{"  " * depth}- item{depth}' for depth in range(30)]
    words = document_of_markdown('d', '\n'.join(lines)).text.split()
    assert [word for word in words if word != '-'] == [f'item{depth}' for depth in range(30)]
    assert 'deep' in document_of_markdown('d', '>' * 40 + ' deep').text
    assert 'deepest' in document_of_markdown('d', '>' * 30_000 + ' deepest\n\nx').text


def test_empty_lines_take_time_linear_in_their_number():
    text = '```\n' + '\n' * 300_000 + 'x\n```\n'
    begun = time.process_time()
    document = document_of_markdown('d', text)
    assert time.process_time() - begun < 5
    assert document.origin.line_at(document.text, 0) == 300_002


@given(st.lists(st.sampled_from([*'#-*>`~|!/:=[](){}<&\n\n\n a1', '    ', '```\n', '!!! n\n'])))
def test_offsets_are_exact_whatever_is_written(parts):
    text = ''.join(parts)
    document = document_of_markdown('d', text)
    n_lines = text.count('\n') + 1
    for heading in document.origin.headings:
        assert document.text[heading.start :].startswith(heading.title)
    assert all(1 <= line <= n_lines for line, _ in lines_in_file(document))
    origin = Origin('f', document.origin.headings, document.origin.lines)
    assert Origin.parsed('f', origin.rendered()) == origin


@pytest.mark.parametrize('part', ['[', '![', '*a_', '`', '[a](<', '|', '!!! a\n    ', '[[', '{#a'])
def test_marks_take_time_linear_in_their_number(part):
    begun = time.process_time()
    document_of_markdown('d', f'x\n\n{part * 30_000}')
    assert time.process_time() - begun < 5


def test_lines_of_plain_formats(tmp_path):
    text = document_of_text('d', '---\nyear: 1\n---\n\n# T\n\n  x\ny\n')
    assert lines_in_file(text) == [(7, 'x'), (8, 'y')]
    text = document_of_text('d', '<!-- c -->\n# T\nx\n')
    assert lines_in_file(text) == [(1, '<!-- c -->'), (3, 'x')]
    (tmp_path / 'a.py').write_text('\n\nx = 1\ny = 2\n', encoding='utf-8')
    (source,) = source_documents(FileToRead(tmp_path / 'a.py', 'a.py'))
    assert lines_in_file(source) == [(3, 'x = 1'), (4, 'y = 2')]


def test_an_outline_that_is_none():
    for outline in ('[]', '{"headings": [[1, 2]]}', '{"lines": 3}', 'x'):
        with pytest.raises(ValueError):
            Origin.parsed('f', outline)
    assert Origin.parsed('f', '{"headings": [[0, 1, "T", "t"]]}').headings == (
        Heading(0, 1, 'T', 't'),
    )
