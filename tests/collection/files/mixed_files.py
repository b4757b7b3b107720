"""A folder with a file of each kind that needs no extra, and what each of them says."""

MAIL = """\
From: Ada <ada@example.org>
To: bob@example.org
Subject: Copper tape
Date: Mon, 1 Jan 2024 10:00:00 +0000
Message-ID: <1@example.org>
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/html; charset=utf-8

<p>Snails <b>avoid</b> it.
--b
Content-Type: text/plain; charset=utf-8

Snails avoid it.
--b--
"""
MAILBOX = """\
From ada Mon Jan  1 10:00:00 2024
Subject: First
Message-ID: <2@example.org>

Garlic likes sun.

From bob Mon Jan  1 11:00:00 2024
Subject: Second
Content-Type: text/html

<p>Leeks like <i>frost</i>.
"""
NOTEBOOK = """{"cells": [
 {"cell_type": "markdown", "source": ["# Rainfall\\n", "Litres a month."]},
 {"cell_type": "code", "source": "total = 3", "outputs": [{"text": "unseen"}]}
], "nbformat": 4}"""
# name -> (what it holds, docid, title, a part of its text)
MIXED = {
    'a.md': ('# Slugs\n\nThey hide by day.', 'a.md', 'Slugs', 'hide by day'),
    'b.mdx': ('# Props\n\nMixed with code.', 'b.mdx', 'Props', 'Mixed with'),
    'c.txt': ('Plain words.\nIn lines.', 'c.txt', '', 'Plain words.'),
    'd.rst': ('.. note\n\n=====\nBeans\n=====\n\nThey climb.', 'd.rst', 'Beans', 'They climb.'),
    'e.adoc': ('// note\n= Peas\n:toc:\n\nThey twine.', 'e.adoc', 'Peas', 'They twine.'),
    'f.org': ('#+AUTHOR: A\n* Kale\nIt is hardy.', 'f.org', 'Kale', 'It is hardy.'),
    'g.HTML': ('<title>Leeks</title><p>They stand.', 'g', 'Leeks', 'They stand.'),
    'h.xhtml': ('<title>Chard</title><p>It grows.', 'h', 'Chard', 'It grows.'),
    'i.jsonl': (
        '{"id": "j1", "title": "Mint", "text": "It spreads."}',
        'j1',
        'Mint',
        'It spreads.',
    ),
    'j.ndjson': ('{"id": "j2", "contents": "Thyme is dry."}', 'j2', '', 'Thyme is dry.'),
    'k.json': ('[{"id": "7", "text": "Dill bolts."}]', 'k.json#7', '', 'Dill bolts.'),
    'l.json': ('{"x": {"text": "Sage lasts."}}', 'l.json#x', '', 'Sage lasts.'),
    'm.csv': ('id,title,text,price\n9,Hoe,"It cuts,\nquickly.",12\n', 'm.csv#9', 'Hoe', 'It cuts,'),
    'n.csv': ('tool;colour\nrake;green\n', 'n.csv#1', 'rake', 'colour: green'),
    'o.tsv': ('id\ttitle\ttext\n5\tFork\tIt lifts.\n', 'o.tsv#5', 'Fork', 'It lifts.'),
    'p.tsv': ('t1\tA spade digs.\n', 't1', '', 'A spade digs.'),
    'q.trec': ('<DOC>\n<DOCNO>u1</DOCNO>\nBasil wilts.\n</DOC>\n', 'u1', '', 'Basil wilts.'),
    'r.eml': (MAIL, 'r.eml', 'Ada: Copper tape', 'Snails avoid it.'),
    's.mbox': (MAILBOX, 's.mbox#2@example.org', 'First', 'Garlic likes sun.'),
    't.ipynb': (NOTEBOOK, 't.ipynb', 'Rainfall', 'total = 3'),
    'u/v.PY': ('def water():\n    """Soaks the bed."""\n', 'u/v.PY', 'u/v.PY', 'Soaks the bed'),
    'w.yaml': ('bed: raised\n', 'w.yaml', 'w.yaml', 'bed: raised'),
}
# Files that no one asks for, and how each is counted.
UNREAD = {
    'settings.json': ('{\n  "editor": {"tab": 2},\n  "text": "x"\n}', '1 .json without records'),
    'package.json': ('{"name": "x", "description": "y"}', '1 .json without records'),
    'log.jsonl': ('{"level": "info"}\n{"level": "warn"}\n', '1 .jsonl without records'),
    'a.zip': ('PK', '1 .zip'),
    'core': ('\0', '1 file without suffix'),
    'empty.py': ('\n', '1 .py without text'),
    'damaged.sql': ('naïve café'.encode() + b'\xe9', '1 .sql that cannot be read'),
    'broken.ipynb': ('{"cells": ', '1 .ipynb that cannot be read'),
    'no.parquet': ('PAR1', '1 .parquet that cannot be read'),
    '.git/config': ('x', '1 hidden file, cache or backup'),
    'node_modules/a/b.js': ('x', '1 hidden file, cache or backup'),
    'a.md~': ('x', '1 hidden file, cache or backup'),
    '~$a.docx': ('x', '1 hidden file, cache or backup'),
}
