"""Where fields come from (JSON lines, Markdown, HTML, a DataFrame), and their types."""

import json
import math
import sqlite3
import time
from contextlib import closing
from datetime import date, datetime

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.collection.files.html_documents import document_of_html
from pyserini_repbert.collection.files.markdown_documents import document_of_markdown
from pyserini_repbert.collection.stored_values import typed_values
from pyserini_repbert.data.documents import Document, plain_fields
from pyserini_repbert.data.passages import corpus_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus

DIGITS = '234567890123456'
PAGE = """<!DOCTYPE html>
<html><head>
<meta charset="utf-8">
<title>Snails &amp;
 slugs</title>
<META NAME="Author" CONTENT="Ü. Öz">
<meta name='year' content=2023><meta name="rating" content=" 4.5 "/><meta name="isbn" content="007">
<meta name="draft" content="False">
<meta name="published" content="2023-05-04">
<meta name="keywords" content="copper, night  walks,, 2">
<meta property="og:type" content="guide">
<meta property="article:tag" content="garden"><meta property="article:tag" content="pests">
<meta name="empty" content=""><meta name="none"><meta content="nameless">
<meta http-equiv="refresh" content="5">
<style>p { color: red }</style><script>var meta = '<meta name="scripted" content="x">';</script>
</head><body><h1>At night</h1><p>Ring them with copper.</p>
<svg><title>A snail</title></svg><meta name="late" content="x"></body></html>
"""
FRONT = """---
title: Snails
year: 2023
rating: 4.5
draft: false
day: 2023-05-04
time: 2023-05-04 10:30:00
tags: [copper, 7]
author: {name: Öz}
---
# At night

Ring them.
"""


def test_meta_of_a_page_becomes_fields():
    assert document_of_html('snails', PAGE) == Document(
        'snails',
        'At night\n\nRing them with copper.',
        'Snails & slugs',
        {
            'author': 'Ü. Öz',
            'year': 2023,
            'rating': 4.5,
            'isbn': '007',
            'draft': False,
            'published': '2023-05-04',
            'keywords': ['copper', 'night walks', 2],
            'og:type': 'guide',
            'article:tag': ['garden', 'pests'],
        },
    )


@pytest.mark.parametrize(
    ('markup', 'expected'),
    [
        ('', Document('d', '')),
        ('<p>no head', Document('d', 'no head')),
        ('<meta name=title content="From meta"><p>x', Document('d', 'x', 'From meta')),
        ('<title>A</title><meta name=title content=B>x', Document('d', 'x', 'A')),
        ('<header><meta name=a content=b></header>x', Document('d', 'x')),
        ('<meta name=a content=1234567890123456>x', Document('d', 'x', '', {'a': '1' + DIGITS})),
    ],
)  # fmt: skip
def test_pages_that_are_no_pages(markup, expected):
    assert document_of_html('d', markup) == expected


def test_what_is_no_declaration_does_no_harm():
    document = document_of_html('d', '<meta name=a content=b><![x y]><p>z')
    assert document == Document('d', 'z', '', {'a': 'b'})


def test_a_field_far_down_is_none():
    markup = f'{" " * 70_000}<meta name=a content=b>x'
    assert document_of_html('d', markup).fields == {}


@given(st.text('<>/!-[]"\'= metanicolp\n&#;xD8\ud800', max_size=80))
def test_no_markup_is_too_strange(markup):
    document = document_of_html('d', markup.encode('utf-8', 'replace').decode())
    assert json.loads(json.dumps(dict(document.fields))) == dict(document.fields)


def test_a_folder_of_pages_has_documents(tmp_path):
    (tmp_path / 'pages').mkdir()
    for name, year in (('a', 2019), ('b', 2020), ('c', 2021)):
        page = f'<title>{name}</title><meta name=year content={year}><p>text {name}'
        (tmp_path / 'pages' / f'{name}.html').write_text(page, encoding='utf-8')
    corpus = open_corpus(tmp_path / 'pages')
    documents = list(corpus.documents())
    assert documents[1] == Document('b', 'text b', 'b', {'year': 2020})
    parts = [list(corpus.part(index, of=2).documents()) for index in range(2)]
    assert sorted([*parts[0], *parts[1]], key=lambda own: own.docid) == documents
    # Its passages are as before: CACM's have their titles in their texts.
    assert [passage.text for passage in corpus] == ['a text a', 'b text b', 'c text c']


def test_the_header_of_markdown_becomes_fields():
    document = document_of_markdown('snails.md', FRONT)
    assert document == Document(
        'snails.md',
        'At night\n\nRing them.',
        'Snails',
        {
            'year': 2023,
            'rating': 4.5,
            'draft': False,
            'day': '2023-05-04',
            'time': '2023-05-04 10:30:00',
            'tags': ['copper', 7],
            'author': {'name': 'Öz'},
        },
    )
    assert document_of_markdown('d', '---\n\n# Not a header\n').fields == {}
    with pytest.raises(ValueError, match='fix it, or remove the lines of ---'):
        document_of_markdown('d', '---\nyear: [2023\n---\nx\n')


@pytest.mark.parametrize('title', ['', ' null', ' ~', ' ""'])
def test_an_empty_title_of_a_header_is_none(title):
    header = f'---\ntitle:{title}\nyear: 2023\n---\n'
    fields = {'year': 2023}
    assert document_of_markdown('d', f'{header}Ring.') == Document('d', 'Ring.', '', fields)
    heading = document_of_markdown('d', f'{header}# Snails\nRing.')
    assert heading == Document('d', 'Ring.', 'Snails', fields)


def test_a_title_of_a_header_that_is_no_text():
    assert document_of_markdown('d', '---\ntitle: 1984\n---\nx').title == '1984'
    assert document_of_markdown('d', '---\ntitle: 2024-01-02\n---\nx').title == '2024-01-02'
    with pytest.raises(ValueError, match='its title is not text: put it in quotes'):
        document_of_markdown('d', '---\ntitle: [One, Two]\n---\nx')


@pytest.mark.parametrize(
    ('title', 'as_written'),
    [
        ('007', '007'),
        ('1:30', '1:30'),
        ('1.10', '1.10'),
        ('2024-01-02', '2024-01-02'),
        ('NO', 'NO'),
        ('True', 'True'),
        ('0x1F', '0x1F'),
        ('1e3', '1e3'),
        ('"007"', '007'),
        ("'A: B'", 'A: B'),
        ('>\n  folded\n  text', 'folded text'),
    ],
)
def test_a_title_is_as_it_is_written(title, as_written):
    assert document_of_markdown('d', f'---\ntitle: {title}\n---\nx').title == as_written


def test_codes_of_a_header_stay_text(open_collection):
    headers = {
        'oslo': 'country: NO\nzip: 02134\nversion: 1.10\nisbn: 0306406152\nday: 2023-05-04',
        'lund': 'country: SE\nzip: 02139\nversion: 1.2\nisbn: 0306406160\nday: 2022-05-04',
    }
    documents = []
    for name, header in headers.items():
        documents.append(document_of_markdown(name, f'---\n{header}\n---\ncat'))
    assert documents[0].fields == {
        'country': 'NO',
        'zip': '02134',
        'version': 1.1,
        'isbn': '0306406152',
        'day': '2023-05-04',
    }
    with open_collection() as collection:
        collection.sync(documents)
        for text in ('country:NO', 'zip:02134', 'isbn:0306406152', 'day:[2023 TO *]'):
            assert [hit.docid for hit in collection.search('cat', filter=text)] == ['oslo'], text


@pytest.mark.parametrize(
    ('text', 'fields'),
    [
        ('---\n# A comment.\n\ntype: guide\n---\nx', {'type': 'guide'}),
        ('---\r\n# A comment.\r\ntype: guide\r\n---\r\nx', {'type': 'guide'}),
        ('---\n\n"type": guide\n...\nx', {'type': 'guide'}),
        ('+++\n# A comment.\ntype = "guide"\n+++\nx', {'type': 'guide'}),
        ('+++\nday = 2023-05-04\n[author]\nname = "Öz"\n+++\nx',
         {'day': '2023-05-04', 'author': {'name': 'Öz'}}),
        ('+++\nopens = 07:32:00\nhours = [08:00:30.25]\n+++\nx',
         {'opens': '07:32:00', 'hours': ['08:00:30.250000']}),
        ('---\n# No title\n\n# kind: guide\n---\nx', {}),
        ('+++\n# No title\n+++\nx', {}),
        ('---\n---\nx', {}),
    ],
)  # fmt: skip
def test_headers(text, fields):
    assert document_of_markdown('d', text) == Document('d', 'x', '', fields)


@pytest.mark.parametrize(
    'name',
    ['null', 'Null', '~', 'true', 'No', '1', '007', '1.0', '1.10', '0x1F', '2024-01-02', '.nan'],
)
def test_names_of_fields_are_as_they_are_written(name):
    nested = f'author:\n  {name}: 1\nbase: &base {{{name}: 2}}\nother: {{<<: *base}}\n'
    assert document_of_markdown('d', f'---\n{name}: x\n{nested}---\nx').fields == {
        name: 'x',
        'author': {name: 1},
        'base': {name: 2},
        'other': {name: 2},
    }


def test_a_name_of_a_field_that_is_there_twice():
    with pytest.raises(ValueError, match="'1' occurs twice: remove one"):
        document_of_markdown('d', '---\n1: x\n"1": y\n---\nx')


def test_a_value_that_is_also_a_name_keeps_its_kind():
    document = document_of_markdown('d', '---\nmap: {&year 2024: x}\nyear: *year\n---\nx')
    assert document.fields == {'map': {'2024': 'x'}, 'year': 2024}


@pytest.mark.parametrize('text', ['---\n- a: b\n---\nx', '+++\nx\n+++', '---\nx'])
def test_rules_are_no_header(text):
    assert document_of_markdown('d', text).fields == {}


def test_a_header_of_toml():
    header = '+++\ntitle = "Learning C#"\nyear = 2023\n+++\n'
    assert document_of_markdown('d', f'{header}x') == Document(
        'd', 'x', 'Learning C#', {'year': 2023}
    )
    with pytest.raises(ValueError, match=r'is not TOML .*remove the lines of \+\+\+'):
        document_of_markdown('d', '+++\nyear = 007\n+++\nx')
    nested = '[' * 5000
    with pytest.raises(ValueError, match='is not TOML'):
        document_of_markdown('d', f'+++\na = {nested}\n+++\nx')


@pytest.mark.parametrize(
    ('text', 'title', 'rest'),
    [
        ('# Learning C#\nx', 'Learning C#', 'x'),
        ('# Closed #\nx', 'Closed', 'x'),
        ('Snails\n======\nx', 'Snails', 'x'),
        ('Snails\nand slugs\n===\nx', 'Snails and slugs', 'x'),
        ('```sh\n# no title\n```\n# Snails\nx', 'Snails', '# no title\n\nx'),
        ('~~~\n# no\n```\n# no\n~~~\n# Snails', 'Snails', '# no\n```\n# no'),
        ('<!-- # no\n\n# no\n-->\n# Snails\nx', 'Snails', 'x'),
        ('[![Build](b.svg)](x)\n\n# Snails\nx', 'Snails', 'x'),
        ('---\n# Snails\nx', 'Snails', 'x'),
        ('\n\n   # Snails\r\nx\r\n', 'Snails', 'x'),
        ('#\n# Snails', 'Snails', ''),
        ('## *Second* `level` {#two}\nx', 'Second level', 'x'),
        ('Snails\n------\nx', 'Snails', 'x'),
        ('    # code\nx', '', '# code\n\nx'),
        ('#hashtag\nx', '', '#hashtag\nx'),
        ('```\n# in code that does not end', '', '# in code that does not end'),
        ('Prose.\n\n# Chapter', '', 'Prose.\n\nChapter'),
        ('- item\n- # in a list', '', '- item\n\nin a list'),
    ],
)
def test_the_title_of_markdown_is_its_first_heading(text, title, rest):
    assert document_of_markdown('d', text) == Document('d', rest, title)


def test_a_title_behind_a_long_comment():
    comment = '<!--\n' + 'licence\n' * 1_000 + '-->\n'
    assert document_of_markdown('d', f'{comment}# Snails\nx').title == 'Snails'
    prose = 'word ' * 1_000
    assert document_of_markdown('d', f'{prose}\n===\nx').title == prose.strip()


@pytest.mark.parametrize(
    'part', ['a\n=\n', '[a]: b\n', '- ', '> ', '```\n', '---\na:\n', '<!--', '+++\n', '#\n']
)
def test_markdown_takes_time_linear_in_its_length(part):
    begun = time.process_time()
    document = document_of_markdown('d', f'---\n{part * 50_000}')
    assert document.docid == 'd'
    assert time.process_time() - begun < 5


def test_the_columns_of_a_frame_become_fields():
    pandas = pytest.importorskip('pandas')
    frame = pandas.DataFrame(
        {
            'docno': ['a', 'b'],
            'title': ['One', 'Two'],
            'text': ['x', 'y'],
            'year': [2020, 2021],
            'rating': [0.5, math.nan],
            'draft': [True, False],
            'day': pandas.to_datetime(['2020-01-02', None]),
            'tags': [['p', 'q'], []],
        }
    )
    first, second = corpus_of(frame).documents()
    assert first == Document(
        'a',
        'x',
        'One',
        {
            'year': 2020,
            'rating': 0.5,
            'draft': True,
            'day': '2020-01-02T00:00:00',
            'tags': ['p', 'q'],
        },
    )
    # What is missing is not a field.
    assert second.fields == {'year': 2021, 'draft': False, 'tags': []}


def test_what_a_frame_of_nullable_types_lacks_is_no_field():
    pandas = pytest.importorskip('pandas')
    frame = pandas.DataFrame(
        {
            'docid': ['a', 'b'],
            'title': ['One', None],
            'text': ['x', 'y'],
            'author': ['Öz', None],
            'year': [2020, None],
            'rating': [None, 0.5],
            'draft': [True, None],
        }
    ).convert_dtypes()
    assert frame['year'][1] is pandas.NA
    assert list(corpus_of(frame).documents()) == [
        Document('a', 'x', 'One', {'author': 'Öz', 'year': 2020, 'draft': True}),
        Document('b', 'y', '', {'rating': 0.5}),
    ]


@pytest.mark.parametrize('title', [1984, 2.5, True, ['One'], {'en': 'One'}])
def test_a_title_that_is_no_text_is_not_lost(tmp_path, title):
    """As the text itself, in JSON lines: there, a title was refused only where it is searched."""
    record = {'id': 'a', 'contents': 'x', 'title': title}
    path = tmp_path / 'corpus.jsonl'
    path.write_text(json.dumps(record), encoding='utf-8')
    for corpus in (open_corpus(path), corpus_of([record])):
        with pytest.raises(InputError, match="title of document 'a' is not text: put it in quotes"):
            list(corpus.documents())
    for missing in (None, math.nan):
        (document,) = corpus_of([{**record, 'title': missing}]).documents()
        assert document == Document('a', 'x')


def test_the_other_keys_of_json_lines_become_fields(tmp_path):
    records = [
        {'id': 'a', 'contents': 'x', 'year': 2020, 'tags': ['p', 1, True, None], 'none': None},
        {'id': 'b', 'text': 'y', 'title': 'T', 'author': {'name': 'Öz', 'born': '1970-01-01'}},
    ]
    path = tmp_path / 'corpus.jsonl'
    path.write_text('\n'.join(map(json.dumps, records)), encoding='utf-8')
    first, second = open_corpus(path).documents()
    assert first.fields == {'year': 2020, 'tags': ['p', 1, True, None], 'none': None}
    assert (second.title, second.fields) == ('T', {'author': {'name': 'Öz', 'born': '1970-01-01'}})


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        ('Guide', {('text', 'guide')}),
        ('2020', {('text', '2020')}),
        (2020, {('number', 2020.0)}),
        (-0.5, {('number', -0.5)}),
        (np.int64(7), {('number', 7.0)}),
        (np.float32(0.5), {('number', 0.5)}),
        (True, {('text', 'true')}),
        (False, {('text', 'false')}),
        ('2020-05-04', {('date', '2020-05-04')}),
        ('2020-05-04T10:30:00Z', {('date', '2020-05-04t10:30:00z')}),
        ('2020-05-04 10:30', {('date', '2020-05-04t10:30')}),
        ('2020-05-04 10:30:00 +0200', {('date', '2020-05-04t10:30:00 +0200')}),  # as Jekyll has it
        ('2020-05-04T10:30:00.5+02:00', {('date', '2020-05-04t10:30:00.5+02:00')}),
        ('2020-05', {('text', '2020-05')}),
        (date(2020, 5, 4), {('date', '2020-05-04')}),
        (datetime(2020, 5, 4, 10, 30), {('date', '2020-05-04t10:30:00')}),
        (['a', 'A', 1, True, '2020-05-04', None, []],
         {('text', 'a'), ('number', 1.0), ('text', 'true'), ('date', '2020-05-04')}),
        (np.array([1, 2]), {('number', 1.0), ('number', 2.0)}),
        (None, set()),
        ([], set()),
    ],
)  # fmt: skip
def test_types_are_told_by_values(value, expected):
    found = typed_values(plain_fields({'field': value}))
    assert {(kind, own) for _, kind, own in found} == expected
    assert {name for name, _, _ in found} <= {'field'}


def test_a_mapping_has_fields_with_a_dot():
    fields = plain_fields({'author': {'name': 'Öz', 'at': [{'city': 'Ulm'}, {'city': 'Bern'}]}})
    assert typed_values(fields) == [
        ('author.at.city', 'text', 'bern'),
        ('author.at.city', 'text', 'ulm'),
        ('author.name', 'text', 'öz'),
    ]


@pytest.mark.parametrize(
    ('value', 'message'),
    [
        (math.inf, "field 'field' is inf: a finite number was expected"),
        (10**400, 'more than 308 digits'),
        (object(), 'is a object: a text, a number, a date, a truth value or a list of them'),
        ('\ud800', 'half of a surrogate pair'),
    ],
)
def test_values_that_cannot_be_stored(value, message):
    with pytest.raises(ValueError, match=message):
        plain_fields({'field': value})


def test_html_fields_are_filtered(open_collection, tmp_path):
    (tmp_path / 'snails.html').write_text(PAGE, encoding='utf-8')
    (tmp_path / 'other.html').write_text('<meta name=year content=2019><p>cat', encoding='utf-8')
    corpus = tmp_path / 'pages'
    corpus.mkdir()
    for name in ('snails.html', 'other.html'):
        (tmp_path / name).rename(corpus / name)
    with open_collection() as collection:
        collection.sync(open_corpus(corpus))
        for text, docids in (
            ('year:[2020 TO *]', ['snails']),
            (r'og\:type:guide AND keywords:"night walks"', ['snails']),
            ('published:[2023 TO 2023] AND draft:false', ['snails']),
            ('year:[* TO 2019]', ['other']),
        ):
            assert [hit.docid for hit in collection.search('cat', filter=text)] == docids, text
        with pytest.raises(InputError, match="there is no field 'late'"):
            collection.search('cat', filter='late:x')


def test_a_new_text_leaves_the_values_of_fields(open_collection):
    with open_collection() as collection:
        for text in ('cat', 'dog'):
            collection.add([{'id': 'a', 'text': text, 'kind': 'note'}])
    with closing(sqlite3.connect(collection.folder / 'collection.sqlite')) as connection:
        rows = connection.execute('SELECT value, since FROM field_values')
        assert rows.fetchall() == [('note', 1)]
