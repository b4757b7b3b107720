"""Every reader, on 100,000 characters of what a pattern that backtracks would take minutes over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damaged_readers import corpus, topics

from pyserini_repbert.data.deliveries import page_text
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import read_qrels
from pyserini_repbert.errors import PyseriniRepbertError

LENGTH = 100_000
SECONDS = 1.0  # of the processor; linear readers take a tenth


def repeated(part: str, before: str = '', after: str = '') -> str:
    return before + part * (LENGTH // len(part)) + after


DOC = '<DOC>\n<DOCNO>'
TAGS = [
    repeated('<a'), repeated('<!-- >'), repeated('<!--'), repeated('<!'), repeated(' ', '<a'), repeated('a', '<'),
    repeated('<script'), repeated('<style>', after='</style>'), repeated('</script '),
    repeated(' ', '<script></script'), repeated('&#'), repeated('1', '&#'), repeated('<'),
]  # fmt: skip
CASES: list[tuple[Callable[[Path], Any], str]] = [
    *((corpus('trec'), f'{DOC}1</DOCNO>\n{tags}\n</DOC>\n') for tags in TAGS),
    (corpus('trec'), repeated(' ', DOC, '1</DOCNO>\n</DOC>\n')),
    (corpus('trec'), repeated(' ', DOC, '1\n</DOC>\n')),
    (corpus('trec'), repeated('<DOCNO>', '<DOC>\n', '\n</DOC>\n')),
    (corpus('trec'), repeated('<DOC>', 'text ')),
    (corpus('trec'), repeated('<DOC>\n')),
    (corpus('trec'), repeated('</DOC>')),
    *((topics, f'<top>\n<num> 1\n<title> {tags}\n</top>\n') for tags in TAGS),
    (topics, repeated('a\n', '<top>\n<num> 1\n<title> ', '</top>\n')),
    (topics, repeated('<top>')),
    *((topics, f'<topic number="1"><query>{tags}</query></topic>') for tags in TAGS),
    (topics, repeated(' ', '<topic number="', '1"><query>a</query></topic>')),
    (topics, repeated(' ', '<topic number="', '1<query>a</query></topic>')),
    (topics, repeated(' ', '<topic', 'number="1"><query>a</query></topic>')),
    (topics, repeated('<topic number="1" ', after='</topic>')),
    (topics, repeated('<topic number="1">')),
    (topics, repeated('<topic number=')),
    (topics, repeated('<query>', '<topic number="1">', '</topic>')),
    (topics, ''.join(f'<topic number="{n}"><query>a</query></topic>\n' for n in range(2_000))),
    (topics, repeated('[START_ENT', '{"id": "1", "text": "', '"}')),
    (topics, repeated('%41', 'enwiki:')),
    (topics, repeated('1', '{"id": ', ', "text": "a"}')),
    (topics, repeated('[', '{"id": "1", "text": ')),
    (corpus('jsonl'), repeated('[', '{"id": "1", "contents": ')),
    (corpus('jsonl'), repeated('\\"', '{"id": "1", "contents": "', '"}')),
    (corpus('tsv'), repeated('\t')),
    (corpus('cedr'), repeated('doc\t')),
    (read_run, repeated('1', 'q Q0 d 1 ', 'x t\n')),
    (read_run, repeated('1', 'q d ', 'x\n')),
    (read_run, repeated('a')),
    (read_run, repeated(' ')),
    (read_run, repeated('\t \n')),
    (read_qrels, repeated('1', 'q 0 d ', 'x\n')),
    (read_qrels, repeated(' a', 'q')),
]  # fmt: skip


@pytest.mark.parametrize('number', range(len(CASES)))
def test_readers(number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    read, content = CASES[number]
    path = tmp_path / 'file'
    path.write_text(content, encoding='utf-8')
    assert seconds(lambda: read(path)) < SECONDS, content[:60]


@pytest.mark.parametrize('number', range(len(TAGS)))
def test_pages(number: int) -> None:
    raw = TAGS[number].encode()
    assert seconds(lambda: page_text(raw, repeated('charset=')[:LENGTH])) < SECONDS, raw[:60]


def seconds(work: Callable[[], Any]) -> float:
    """The processor's time for `work`, which may raise one of our errors."""
    begin = time.process_time()
    try:
        work()
    except PyseriniRepbertError as error:
        assert '\n' not in str(error)
    return time.process_time() - begin
