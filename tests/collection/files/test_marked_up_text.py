"""What is read of reStructuredText, AsciiDoc and Org: words, code, headings, lines of the file."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.collection.files.asciidoc_text import read_asciidoc
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.org_text import read_org
from pyserini_repbert.collection.files.plain_documents import (
    asciidoc_documents,
    org_documents,
    restructured_documents,
)
from pyserini_repbert.collection.files.read_page import place_text
from pyserini_repbert.collection.files.restructured_text import read_restructured

RESTRUCTURED = """\
Author: Ada

They climb up very high, see the
site and sun or climb and version 2.

Where to sow

In the sun:

Not
---

  indented

Text

x = 1

- one
- two
goes on

  - nested
  - again:

code

  after

1. first
- second

term
A definition.
other : class
Second.

Be careful
with it.

- inside

x.py

def a():
    pass

x

The caption.

a\tb x more
1\t2

A\tB
1\ttwo more
3\tfour

Title

a\tb c
d\te f

The footnote
goes on.

Changed in version 2.0
Now faster.

>>> 1 + 1
2

f(x)

param x: what it is
returns: y

Hello you

line one
line two

A line
of text

Where to sow

Again. PEP 8 C x *no* end"""
ASCIIDOC = """\
Ada <a@x.org>

They twine, see the repo or rows and code() with style.
NOTE: Be careful.

Sow them: early

== Not

int x = 1; // <1>

- Sets x.

A table

Name\tValue
a\tb c
d\te more

Inside the note.

- one
  - two
  next
- three

attached

1. first
2. second

term: its definition

other
Second.

Rows

A picture

How deep

Link (A note.) Ctrl site https://plain.org

literal text

Rows"""
ORG = """\
Intro with bold, it, verb, code and a link or a.txt.

Frost

It is hardy.

* Not

A table

a\tb
1\t2

- one
- two
goes on
  - nested
1. first
2) second
- term: def

Quoted text.

fixed  width
  more

Snow

The note."""
FORMATS = {
    'rst': (restructured_documents, RESTRUCTURED, 'Beans'),
    'adoc': (asciidoc_documents, ASCIIDOC, 'Peas'),
    'org': (org_documents, ORG, 'Kale'),
}
HEADINGS = {
    'rst': [(2, 'Where to sow', 'where-to-sow'), (2, 'Where to sow', '')],
    'adoc': [
        (2, 'Sow them: early', 'sow'),
        (3, 'Rows', '_rows'),
        (2, 'How deep', 'depth'),
        (2, 'Rows', '_rows_2'),
    ],
    'org': [(1, 'Frost', 'frost'), (2, 'Snow', '')],
}
_WORD = re.compile(r'\w+')
READERS = (read_restructured, read_asciidoc, read_org)


def document_of(suffix):
    path = Path(__file__).with_name(f'dialects.{suffix}')
    (document,) = FORMATS[suffix][0](FileToRead(path, 'd'))
    return document, path.read_text(encoding='utf-8').split('\n')


@pytest.mark.parametrize('suffix', FORMATS)
def test_marks_are_no_text_and_code_stays(suffix):
    """Hits showed '== Rows', ':PROPERTIES:' and rows of hyphens."""
    _, text, title = FORMATS[suffix]
    document, _ = document_of(suffix)
    assert (document.title, document.text) == (title, text)


@pytest.mark.parametrize('suffix', FORMATS)
def test_headings_stand_in_the_text_and_in_their_lines(suffix):
    document, lines = document_of(suffix)
    headings = document.origin.headings
    assert [(own.level, own.title, own.anchor) for own in headings] == HEADINGS[suffix]
    for own in headings:
        assert document.text[own.start :].split('\n')[0] == own.title
        line = document.origin.line_at(document.text, own.start)
        assert own.title.split()[0] in lines[line - 1]


@pytest.mark.parametrize('suffix', FORMATS)
def test_each_line_knows_its_line_in_the_file(suffix):
    document, lines = document_of(suffix)
    numbers = []
    position = 0
    for line in document.text.split('\n'):
        if line:
            number = document.origin.line_at(document.text, position)
            numbers.append(number)
            words = _WORD.findall(line)
            # A row of a table may stand on several lines.
            assert not words or words[-1] in '\n'.join(lines[number - 1 : number + 2])
        position += len(line) + 1
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('Title of words\n====\n\nx', 'Title of words\n\nx'),
        ('Longer than\n===\n', 'Longer than\n==='),
        ('a\n\n----\n\nb', 'a\n\nb'),
        ('**a** *b* ``c*`` `d` 2 * 3 * 4', 'a b c* d 2 * 3 * 4'),
        ('snake_case_ and `a b`_ and `c <u>`__', 'snake_case_ and a b and c'),
        (':func:`~a.b` :py:meth:`.c` `d`:sub: :doc:`/e` :ref:`f <g>`', 'b c d e f'),
        ('.. |a| replace:: ``b``\n\n|a|_ c', 'b c'),
        (
            '.. image:: a.png\n   :alt: A cat\n     on a mat\n\ny',
            'A cat on a mat\n\ny',
        ),
        ('.. image:: a.png\n   :alt: a.png\n\ny', 'y'),
        ('.. figure:: a.png\n   :alt: A cat\n\n   Its caption.\n', 'A cat\n\nIts caption.'),
        ('- a\n\n  .. image:: a.png\n     :alt: b\n\n- c', '- a\n\nb\n\n- c'),
        ('x |l|\n\n.. |l| image:: a.png\n   :width: 3\n   :alt: logo', 'x logo'),
        ('x |l|\n\n.. |l| image:: a.png\n\n   :alt: y', 'x'),
        ('.. toctree::\n   :caption: x\n\n   a\n   b\n\ny', 'y'),
        ('- a `b\n  2014) <u>`_\n- c', '- a b\n2014)\n- c'),
        ('term\n  - a\n  - b', 'term\n\n- a\n- b'),
        ('.. unknown:: words\n   :option: x\n\n   y', 'words\n\ny'),
        ('.. [#n] A note.', 'A note.'),
        ('..\n\n   quoted', 'quoted'),
        ('.. hidden\n\n   too\n\nx', 'x'),
        ('text\n::\n\n    a_ *b*\n\nx', 'text\n\na_ *b*\n\nx'),
        ('====  =\n豆子  b\n====  =', '豆子\tb'),
        (':issue:`12` :file:`.a`', '#12 .a'),
        ('+---+\n| a |\n+---+\n', 'a'),
        ('.. function:: f(x)\n              g(x)\n   :noindex:\n\n   y', 'f(x)\ng(x)\n\ny'),
        ('.. code::\n   x = 1\n   y = 2\n\nz', 'x = 1\ny = 2\n\nz'),
        ('.. raw:: html\n   :file: x.html\n\nz', 'z'),
        ('=  =\n\\  3\n=  =', '\t3'),
        # Cells that look like a part of the table.
        ('+---+---+\n| + | - |\n+---+---+\n| = | x |\n+---+---+', '+\t-\n=\tx'),
        # The first row of a table spans its columns.
        ('+-------+\n| both  |\n+---+---+\n| a | b |\n+---+---+', 'both\na\tb'),
        (
            '=====  =====  ======\n   Inputs     Output\n------------  ------\n'
            '  A      B    A or B\n=====  =====  ======\nFalse  False  False\n'
            '=====  =====  ======',
            'Inputs\tOutput\nA\tB\tA or B\nFalse\tFalse\tFalse',
        ),
        # Lists and CSV as tables.
        ('.. list-table::\n\n   - * a\n     * b\n   - * c\n       d\n     *', 'a\tb\nc d'),
        ('.. list-table:: T\n\n   *   - a\n       - b\n\n         - c', 'T\n\na\tb c'),
        ('.. list-table::\n\n   no list', 'no list'),
        (
            '.. csv-table:: T\n   :header: "A","B, C"\n   :widths: 1, 2\n\n   "a ""b""",c\n   d',
            'T\n\nA\tB, C\na "b"\tc\nd',
        ),
        ('.. csv-table::\n   :delim: ;\n\n   a;b, c\n   "d\n   e";f', 'a\tb, c\nd e\tf'),
        # Options and directives that a page shows.
        ('.. code-block:: c\n   :caption: a.c\n\n   int x;', 'a.c\n\nint x;'),
        ('.. sidebar:: T\n   :subtitle: S\n\n   x', 'S\n\nT\n\nx'),
        ('.. acks::\n\n   * Ada\n\n.. header:: Top', '- Ada\n\nTop'),
        ('x [Ada24]_\n\n.. [Ada24] A book.', 'x [Ada24]\n\n[Ada24] A book.'),
        # Substitutions.
        ('|a| |b|\n\n.. |a| replace:: one\n   two\n.. |b| unicode:: U+2014 0xA9', 'one two —©'),
        (f'|a|\n\n.. |a| replace:: {"b" * 200}', f'|a|\n\n{"b" * 200}'),
        # Roles whose text is code, or is what it says.
        (':code:`vector<int>` :math:`\\frac{a}{b}`', 'vector<int> \\frac{a}{b}'),
        (':file:`~/.bashrc` :kbd:`!` :samp:`<x>` :file:`C:\\\\a`', '~/.bashrc ! <x> C:\\a'),
        (':c:func:`~a.b` :ref:`a <b>` :func:`~a.b()`', 'b a b()'),
    ],
)
def test_restructured_text(text, expected):
    assert place_text(read_restructured(text.split('\n'))).text == expected


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (
            '*a* **b**c _d_ `e` #f# [.x]#g# 2 * 3 * 4 snake_case_x',
            'a bc d e f g 2 * 3 * 4 snake_case_x',
        ),
        ('{nbsp}a{plus}{unknown}', 'a+{unknown}'),
        ("{url}/a[A^] {url} users`' [b]", 'A {url} users’ [b]'),
        ('link:a.html[A,window=_blank] https://b.c[B^] xref:d.adoc[] <<e,E>>', 'A B d E'),
        (':a:: b\n\nc:: d', ':a: b\n\nc: d'),
        ('|===\n|a +\nb\n|c|d\n|===', 'a b\nc\nd'),
        ('xref:m:x/y-z.adoc[] ifdef::a[b]', 'y z ifdef::a[b]'),
        (':a:\nifdef::a[:b: c]\nifdef::a[{b}]', 'c'),
        ('[source]\nx = *1*\n\ny', 'x = *1*\n\ny'),
        (':a:\nifdef::a[]\nx\nendif::[]\n\ninclude::y[]', 'x'),
        ('```js\n*a*\n```', '*a*'),
        ('|===\n|a|b\n|c|d\\|e\n|===', 'a\tb\nc\td|e'),
        (',===\na,b\n,===', 'a\tb'),
        (',===\na,,b\n,c,\n,===', 'a\t\tb\n\tc'),
        ('++++\n<b>a</b>\n++++', 'a'),
        ('NAME\n----\nx\n\nSYNOPSIS\n--------\n[verse]\ny', 'NAME\n\nx\n\nSYNOPSIS\n\ny'),
        ('[format=csv]\n|===\na,"b, c"\n1,2\n|===', 'a\tb, c\n1\t2'),
        ('[cols="1,1"]\n|===\n2+|span\n|c |d\n|===', 'span\nc\td'),
        ('[cols="1,2*"]\n|===\n|a |b |c\n|d\n|e\n|f\n|===', 'a\tb\tc\nd\te\tf'),
        ('"`a`" (((x))) ((y)) pass:[z]', '“a”  y z'),
        ('image::a.png[A cat,300]\n\ny', 'A cat\n\ny'),
        ('image::a.png[width=300]\n\ny', 'y'),
        ('image::a.png[role=x,alt=A cat]\n\nimage::a.png[a.png]', 'A cat'),
        ('x image:a.png["A, cat",3] y', 'x A, cat y'),
        ('a *bold\nwords* link:b[of\ntwo] c <<d,e\nf>>', 'a bold\nwords of\ntwo c e\nf'),
        ('icon:a[b\nc] d\ne', 'd\ne'),
        ('[*not a style*]\nx', '[not a style]\nx'),
        ('[#resources]\na *b*\n\n[,c]\n*d*', 'a b\n\n*d*'),
        ('[stem]\n++++\na<b and c\n++++', 'a<b and c'),
        ('[quote, Ada Lovelace, "A letter"]\nx', 'Ada Lovelace, A letter\n\nx'),
        ('a\n:b: c\n\n:d: e\n{d}', 'a\n:b: c\n\ne'),
        ('= A\nAda\n:d: e\n\n{d}', 'A\n\nAda\n\ne'),
        ('. a\n+\nb\n. c\n\nd\n\n. e', '1. a\n\nb\n\n2. c\n\nd\n\n1. e'),
        (f':a: {"b" * 300}\n\n{{a}}', f'{"b" * 300}\n\n{{a}}'),
        ('[separator=¦]\n|===\n¦a ¦b\n¦c|d ¦e\n|===', 'a\tb\nc|d\te'),
        ('[cols="1,1"]\n[%header]\n|===\n|a\n|b\n|===', 'a\tb'),
        ('[cols=2*,options=header]\n|===\n|a\n|b\n|===', 'a\tb'),
        ('[cols=2]\n|===\n|a\n|b\n|===', 'a\tb'),
        ('|===\nno cell\n|===', 'no cell'),
        ('[format=csv,separator=;]\n|===\na;"b;c"\n|===', 'a\tb;c'),
    ],
)
def test_asciidoc(text, expected):
    assert place_text(read_asciidoc(text.split('\n'))).text == expected


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('*a*, /b/ ~*c*~ a/b/c 2*3*4 _d_', 'a, b *c* a/b/c 2*3*4 d'),
        ('[[https://a.b]] [[id:x][words]] <<t>>', 'https://a.b words'),
        ('#+begin_comment\nx\n#+end_comment\ny', 'y'),
        ('## Time-stamp\n#\n# y\n###\n\n#x', '## Time-stamp\n\n#x'),
        ('a [[https://b.c][link\nof two]] and *bold\nwords* d', 'a link\nof two and bold\nwords d'),
        (':NOTES:\nWords.\n:END:\n:LOGBOOK:\nx\n:END:', 'Words.'),
        (':smile:\nWords.\n\n* A\nMore.', 'Words.\n\nA\n\nMore.'),
        ('* A\nDEADLINE: <2024-01-01>\nDEADLINE: hand it in', 'A\n\nDEADLINE: hand it in'),
        ('||a|\n|b|c|', '\ta\nb\tc'),
        ('[[https://b.c][see the a.png]] [[file:a.png]]', 'see the a.png'),
        ('#+attr_html: :width 3 :alt A cat on a mat :class x\n[[file:a.png]]', 'A cat on a mat'),
        ('#+ATTR_HTML: :alt A cat\n[[./a.webp]]\n#+attr_html: :width 3', 'A cat'),
        ('#+begin_export html\n<b>x</b>\n#+end_export', 'x'),
        ('#+begin_src sh\nnever ended', 'never ended'),
        ('A claim[fn:1] and more', 'A claim and more'),
        ('see issue\n#123 for that', 'see issue\n#123 for that'),
        ('- a\n* H\n- b', '- a\n\nH\n\n- b'),
        ('* COMMENT [50%] a :b:\n:LOGBOOK:\nx\n:END:\ny', 'a\n\ny'),
    ],
)
def test_org(text, expected):
    assert place_text(read_org(text.split('\n'))).text == expected


SIGNS = [*'=-~*_`|:.+#/[](){}<>&\\ a1\n\n\n', '.. ', '   ', '::\n', '====\n', '* ', '#+begin_src\n']


@pytest.mark.parametrize('read', READERS)
@given(parts=st.lists(st.sampled_from([*SIGNS, '----\n', '|===\n', '+--+\n', ':a: '])))
def test_offsets_are_exact_whatever_is_written(read, parts):
    lines = ''.join(parts).split('\n')
    placed = place_text(read(lines))
    for heading in placed.origin.headings:
        assert placed.text[heading.start :].startswith(heading.title)
    for start, number in placed.origin.lines:
        assert 1 <= number <= len(lines)
        assert start == 0 or placed.text[start - 1] == '\n'


def test_a_title_between_two_rows_has_its_own_line():
    placed = place_text(read_restructured('=====\nTitle\n=====\n'.split('\n')))
    assert placed.origin.line_at(placed.text, 0) == 2


@pytest.mark.parametrize(
    ('read', 'lines'),
    [
        (read_org, [':a:'] * 20_000),
        (read_org, ['#+begin_src'] * 20_000),
        (read_org, [*[':a:'] * 20_000, '* h', ':end:']),
        (read_restructured, ['x', '  .. note::'] * 15_000),
        (read_asciidoc, ['===='] * 20_000),
        (read_asciidoc, ['|===', *['x'] * 50_000]),
        (read_asciidoc, ['|===', '|a', *['x' * 40] * 50_000]),
        (read_restructured, ['+---+', *['| x |'] * 100_000, '+---+']),
        (read_restructured, ['=  =', 'a  b', *['   x'] * 100_000, '=  =']),
        (read_restructured, ['.. list-table::', '', '   * - a', *['       x'] * 100_000]),
        (read_restructured, ['.. code::', *[''] * 300_000, '   x']),
        (read_org, ['* a', ':PROPERTIES:'] * 20_000),
    ],
)
def test_blocks_take_time_linear_in_their_number(read, lines):
    begun = time.process_time()
    read(lines)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize('read', READERS)
@pytest.mark.parametrize(
    'part',
    ['`', '``a', '**a ', '|a| ', ':a:', 'a.', '[[', '{a}', '.. [1] ', '_a ', 'link:a[', '.. a::\n'],
)
def test_marks_take_time_linear_in_their_number(read, part):
    begun = time.process_time()
    read(f'x\n\n.. |a| replace:: {"b" * 5_000}\n:a: {"b" * 5_000}\n\n{part * 30_000}'.split('\n'))
    assert time.process_time() - begun < 5
