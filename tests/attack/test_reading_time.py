"""Every reader, on 100,000 characters of what a pattern that backtracks would take minutes over."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damaged_readers import READERS, Reader, corpus, kept_scores, repacked, topics

from pyserini_repbert.data.deliveries import page_text
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import read_qrels
from pyserini_repbert.data.values import decimal, integer
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.regression.resources import size_in_bytes

LENGTH = 100_000
STRETCHED = 20  # files for each reader
SECONDS = 1.0  # of the processor; linear readers take a tenth
YAML_SECONDS = 6.0  # PyYAML takes 26 microseconds for an entry of a list


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


@pytest.mark.parametrize('parse', [integer, decimal, size_in_bytes])
@pytest.mark.parametrize('text', ['1' * LENGTH + 'x', '0' * LENGTH, '1.' + '1' * LENGTH + 'x', ' ' * LENGTH + 'x'])
def test_numbers(parse: Callable[[str], Any], text: str) -> None:
    def tried() -> None:
        with pytest.raises(ValueError):
            parse(text)
            raise ValueError

    assert seconds(tried) < SECONDS


@pytest.mark.parametrize('name', ['recipe', 'regression'])
@pytest.mark.parametrize(
    'part', ['1', '1_', '1:', 'a: ', '- ', '? ', '[', '{', '&a ', '!', '"', '${', '${a', ' ', '\n', 'a\n']
)
def test_yaml(name: str, part: str, tmp_path: Path) -> None:
    reader = next(own for own in READERS if own.name == name)
    path = tmp_path / reader.file
    path.write_text(repeated(part, 'name: '), encoding='utf-8')
    assert seconds(lambda: reader.read(path)) < YAML_SECONDS, part


@pytest.mark.parametrize('reader', READERS, ids=lambda reader: reader.name)
def test_stretched_files(reader: Reader, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A few bytes of a whole file, repeated in their place."""
    caplog.set_level(logging.CRITICAL)
    path = tmp_path / reader.file
    seeds = reader.seeds or kept_scores(tmp_path)
    for case in range(STRETCHED):
        draw = random.Random(f'{reader.name} {case}')
        data = draw.choice(seeds)
        begin = draw.randrange(len(data))
        part = data[begin : begin + draw.randint(1, 12)]
        data = data[:begin] + part * (LENGTH // len(part)) + data[begin + draw.randint(0, 12) :]
        path.write_bytes(reader.pack(draw, data) if reader.pack not in (None, repacked) else data)
        limit = YAML_SECONDS if path.suffix == '.yaml' else SECONDS
        assert seconds(lambda: reader.read(path)) < limit, (case, part)


def seconds(work: Callable[[], Any]) -> float:
    """The processor's time for `work`, which may raise one of our errors."""
    begin = time.process_time()
    try:
        work()
    except PyseriniRepbertError as error:
        assert '\n' not in str(error)
    return time.process_time() - begin
