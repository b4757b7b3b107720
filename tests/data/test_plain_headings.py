"""Headings of reStructuredText, AsciiDoc and Org: their paths, anchors and places."""

import pytest

from pyserini_repbert.data.file_to_read import FileToRead
from pyserini_repbert.data.plain_documents import (
    asciidoc_documents,
    org_documents,
    restructured_documents,
)

RST = """\
.. _top:

=====
Beans
=====

They climb.

Where to *sow*
--------------

In the sun::

    Not
    ---

Über 2 ``rows``
~~~~~~~~~~~~~~~

A line
of text
-------

Where to sow
------------

Again.
"""
ADOC = """\
= Peas
:toc:

They twine.

== Sow them: early

----
== Not
----

=== Rows

[#depth]
== How deep

== Rows
"""
ORG = """\
#+TITLE: Kale

* TODO [#A] Frost :cold:
:PROPERTIES:
:CUSTOM_ID: frost
:END:
It is hardy.
#+begin_src org
* Not
#+end_src
** Snow
"""


@pytest.mark.parametrize(
    ('read', 'content', 'expected'),
    [
        (
            restructured_documents,
            RST,
            [
                (2, 'Where to *sow*', 'where-to-sow'),
                (3, 'Über 2 rows', 'uber-2-rows'),
                (2, 'Where to sow', ''),
            ],
        ),
        (
            asciidoc_documents,
            ADOC,
            [
                (2, 'Sow them: early', '_sow_them_early'),
                (3, 'Rows', '_rows'),
                (2, 'How deep', 'depth'),
                (2, 'Rows', '_rows_2'),
            ],
        ),
        (org_documents, ORG, [(1, 'Frost', 'frost'), (2, 'Snow', '')]),
    ],
)
def test_headings(tmp_path, read, content, expected):
    (tmp_path / 'a').write_text(content, encoding='utf-8')
    (document,) = read(FileToRead(tmp_path / 'a', 'a'))
    headings = document.origin.headings
    assert [(own.level, own.title, own.anchor) for own in headings] == expected
    lines = content.split('\n')
    for own in headings:
        line = document.origin.line_at(document.text, own.start)
        assert document.text[own.start :].split('\n')[0] == lines[line - 1]
        assert own.title.split()[0] in lines[line - 1]
