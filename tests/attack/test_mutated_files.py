"""Every reader of files that users bring, on thousands of damaged ones.

What a reader takes has to be what an independent reading finds (`reference_readings`, for runs, qrels, TSV and JSON
lines); what it refuses has to be an error in one line that names the file, and the line where there is one. Nothing
else may escape. 200 files for each reader; 2,000 with `make test-all`.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import random
import re
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutations
import numpy as np
import pytest
import reference_readings as reference

from pyserini_repbert import catalog
from pyserini_repbert.commands.blame import differences, differing, read_report
from pyserini_repbert.commands.evaluate_tradeoff import _read_costs
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.evaluate.folds import read_folds
from pyserini_repbert.formats import run_parser as run_blocks
from pyserini_repbert.formats.runs import iter_run, read_run
from pyserini_repbert.formats.topics import read_qrels, read_topics
from pyserini_repbert.index.expansions import predicted_queries, weighted_texts
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.rerank.saved_scores import SavedScores, read_saved_scores, write_saved_scores
from pyserini_repbert.train.inputs import first_columns
from pyserini_repbert.train.leakage import Guard
from pyserini_repbert.train.reading import read_recipe
from pyserini_repbert.train.recipe import Source
from pyserini_repbert.train.sources import TrainingSource

QUICK, THOROUGH = 200, 2000

TREC_RUN = 'q1 Q0 d1 1 9.5 tag\nq1 Q0 dü 2 9.25 tag\nq1\tQ0\td3 3 -1e-3 tag\n\nq2 Q0 d1 1 3 tag\nq2 Q0 d4 2 3 tag\n'
MSMARCO_RUN = '1\t10\t1\n1\t20\t2\n1\t30\t3\n22\t10\t1\n22\t7\t2\n'
QRELS = '1 0 d1 1\n1 0 d2 0\n2\t0\tdü\t3\n\n10 Q0 d1 -2\n2 0 dü 2\n'
TSV = '1\tfirst text\n22\tsecond,\twith a tab\n\n3\tdritter täxt\n4\tfourth\n'
CORPUS_JSONL = (
    '{"id": "d1", "contents": "one two"}\n{"id": 2, "title": "T", "text": "two"}\n\n'
    '{"docid": "d3", "contents": "dr\\u00e4i \\ud83d\\ude00"}\n{"_id": "4", "text": "x", "url": null}\n'
)
TOPICS_JSONL = '{"id": 7, "text": "seven "}\n{"qid": "q8", "title": "\\u00e9ight"}\n\n{"_id": "9", "query": ""}\n'
DOCUMENTS = (
    '<DOC>\n<DOCNO> a1 </DOCNO>\n<TEXT>one <b>two</b>\nthrée 1 < 2</TEXT>\n</DOC>\n\n'
    '<DOC><DOCNO>b2</DOCNO>four</DOC>\n<doc>\n<docno>c3</docno>\n<!-- no -->five\n</doc>\n'
)
TOPICS_TREC = (
    '<top>\n<num> Number: 301 \n<title> Topic: International\nOrganized Crime\n<desc> Description:\nno\n</top>\n'
    '<top>\n<num> Number: 302\n<title> Polio 2 < 3\n<desc> no\n\n<top><num>303</num><title>a b</title></top>\n'
)
HTML = '<html><pre>\nA &amp; B &#65; <b>c</b> <!-- no --> 1 < 2</pre></html>'
CEDR = 'query\tq1\twhat is it\ndoc\td1\tit is, it is\nquery\tq2\twho\n\ndoc\td2\tsomebody\tor other\n'
PREDICTIONS = 'what is it / who is it\nwhere\twhen\nwhy\n'
TERM_WEIGHTS = 'cat 0.5\tdog 0.25\t[SEP] 0\nfi 0.1\t##sh 0.9\nbird 1e-1\n'
JSON_WEIGHTS = (
    '{"id": "d0", "weights": {"cat": 0.5, "dog": 1}}\n{"id": "d1", "contents": "a a b"}\n{"id": "d2", "weights": {}}\n'
)
TRIPLES = 'what is it\ta cat is\ta dog is\nwho\tsomebody\tnobody\n'
ID_TRIPLES = 'q1\td1\td2\nq2 d2 d1\n'
FOLD = 'q1 Q0 d 1 2.0 t\nquery\tq2\ttext\nq3\n'
FOLDS = '[["1", 2], ["3"], ["4", "5"]]'
COSTS = '{"stages": [{"inferences_per_query": 4.0, "seconds_per_query": 2.25, "stage": "mono@4"}]}'
REPORT = (
    '{"environment": {"code": "1", "torch": "2"}, "files": [{"file": "a.yaml", "conditions": [{"name": "c", '
    '"scores": [{"measure": "AP", "measured": 0.5}, {"measure": "R", "measured": null}], "fingerprint": {"m": "x"}}]}]}'
)
REGRESSION = """\
name: file
title: Two runs
resources:
  a: {what: a run, path: '{data}/a.txt', size: 60 B, get: 'https://example.org/a.txt'}
  qrels: {what: judgments, path: '{data}/qrels.txt', get: &get write them}
builds:
  b: {path: '{out}/b', commands: ['python -m x {a}'], needs: [a]}
sources:
  here: {text: this project, commit: '0123456'}
  paper: {text: a paper, cells: a/b}
tolerances:
  none: {value: 0, reason: nothing can differ}
conditions:
- name: '{first}+{second}'
  grid: {first: [a, b], second: {a: {k: v}, b: {k: w}}}
  only: different
  commands: ['python -m pyserini_repbert.fusion --runs {a} {b} --output {out}/{first}.txt']
  run: '{out}/{first}.txt'
  qrels: '{qrels}'
  expected:
  - {measure: RR@10, source: here, tolerance: none, values: {a: {b: 0.3333}, b: {a: 2.5e-1}}}
  recorded:
  - {measure: time, source: paper, unit: ms, value: 12, row: x}
"""
RECIPE = """\
name: small
system: cedr
base: vanilla-demo
variables: {ROOT: data}
ranking: {architecture: knrm}
data:
- {topics: '${ROOT}/topics.tsv', qrels: q.txt, run: r.txt, corpus: c.tsv, depth: 150, judged_only: true}
- {topics: t.tsv, qrels: q.txt, run: &run r.txt, index: i, negatives: 2, fields: [a, b]}
validation: {topics: v.tsv, qrels: q.txt, run: *run, index: i, measure: P@20, every: 32}
adapter: {rank: 4, dropout: 0.1, targets: [query, key]}
training: {steps: 32, batch_size: 16, learning_rate: 2.0e-5, head_learning_rate: 3e-6, schedule: constant, loss: hinge}
"""
CATALOG = """\
encoders:
  one: {description: a model, dimension: 384, resource: x/y, sha256: {a: b}, ranking: {system: repbert, joint: true}}
  two:
    description: another
    download: {file: f, address: 'https://example.org/f', size: 3 MB, md5: '0123'}
collections:
  demo: {description: passages, passages: 12}
sparse:
  bm25: {description: BM25, settings: {k1: 0.9, b: 0.4}, indexes: {x: y}}
"""


def encoded(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


def archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as packed:
        for name in ('a.html', 'b.html'):
            member = tarfile.TarInfo(name)
            member.size = len(HTML)
            packed.addfile(member, io.BytesIO(HTML.encode()))
        link = tarfile.TarInfo('c.txt')
        link.type, link.linkname = tarfile.SYMTYPE, 'a.html'
        packed.addfile(link)
    return stream.getvalue()


def kept_scores(folder: Path) -> list[bytes]:
    """An .npz, and the JSON in it with the arrays behind."""
    differences = np.arange(4, dtype=float).reshape(2, 2)
    query = SavedScores('q', 'text', ('a', 'b', 'c'), np.array([-1.0, -2.0]), np.array([0, 2]), differences)
    path = folder / 'kept.npz'
    write_saved_scores(path, [query, query], {'costs': [{'seconds': 1.0, 'inferences': 3}], 'k1': 2})
    return [path.read_bytes()]


def repacked(draw: random.Random, data: bytes) -> bytes:
    """With an accident in one of its arrays, which are packed again."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(made, 'w') as after:
        names = before.namelist()
        chosen = draw.choice(names)
        for name in names:
            content = before.read(name)
            if name == chosen == 'names.npy':
                with io.BytesIO(content) as stream:
                    text = mutations.mutated(draw, np.load(stream).tobytes())
                with io.BytesIO() as stream:
                    np.save(stream, np.frombuffer(text, dtype=np.uint8))
                    content = stream.getvalue()
            elif name == chosen:
                content = mutations.mutated(draw, content)
            after.writestr(name, content)
    return made.getvalue()


def corpus(fmt: str, **options: Any) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        found = open_corpus(path, fmt, **options)
        return [tuple(passage) for passage in found], found.skipped

    return read


def run_of(path: Path) -> Any:
    found = {qid: (list(ranked.docids), list(ranked.scores)) for qid, ranked in read_run(path).items()}
    one_by_one = _or_refused(lambda: {qid: (list(own.docids), list(own.scores)) for qid, own in iter_run(path)})
    assert one_by_one in (found, None)  # None where a query's lines are in several places
    return found


def _or_refused(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except PyseriniRepbertError:
        return None


def topics(path: Path) -> Any:
    return [(query.qid, query.text) for query in read_topics(path)]


def triples(of_texts: bool) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        source = TrainingSource(Source(triples=str(path)), 0, Guard(), 'data.0')
        source.of_texts = of_texts
        source.queries = {'q1': '', 'q2': ''}
        return list(source.instances(0, 0))

    return read


def report(path: Path) -> Any:
    found = read_report(path)
    differing(found['environment'], {})
    return [differences(one, one) for file in found['files'] for one in file['conditions']]


def as_sniffed(parse: Callable[[bytes], Any], *others: bytes) -> Callable[[bytes], Any]:
    """A reference that holds where the file's first character does not tell of another format."""

    def read(data: bytes) -> Any:
        start = data.removeprefix(b'\xef\xbb\xbf').decode('utf-8', 'replace').lstrip().encode()
        return NotImplemented if start.startswith(others) or re.match(rb'(doc|query)\t', start) else parse(data)

    return read


def kept_lines(parse: Callable[[bytes], reference.Passages], skip: bool) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        passages, refused = parse(data)
        if refused and not skip:
            raise reference.Refused(refused[0])
        return passages, len(refused)

    return read


def nothing_lost(data: bytes, found: Any) -> None:
    """Each letter outside tags is in a docid or a text."""
    read = Counter(''.join(''.join(passage) for passage in (found[0] if isinstance(found, tuple) else found)))
    assert not Counter(reference.letters_outside_tags(data)) - read


def no_topic_lost(data: bytes, found: Any) -> None:
    for tag in (rb'<num\b[^>]*>', rb'<title\b[^>]*>'):
        assert len(re.findall(tag, data, re.IGNORECASE)) == len(found)


def last_docids() -> list[str]:
    return ['d0', 'd1', 'd2']


@dataclass(frozen=True)
class Reader:
    """A reader, files that it takes, and what has to hold for what it makes of damaged ones.

    Attributes
    ----------
    expected : the reference reading; NotImplemented where it does not apply
    holds : called with a file's bytes and what was read
    pack : makes the bytes of the file from the damaged text
    refuses : False for one that passes over what it cannot use
    """

    name: str
    seeds: Sequence[bytes]
    read: Callable[[Path], Any]
    expected: Callable[[bytes], Any] | None = None
    holds: Callable[[bytes, Any], None] | None = None
    file: str = 'file'
    pack: Callable[[random.Random, bytes], bytes] | None = None
    refuses: bool = True


READERS = [
    Reader('run', encoded(TREC_RUN, MSMARCO_RUN), run_of, reference.run),
    Reader('run.gz', encoded(TREC_RUN, MSMARCO_RUN), run_of, reference.run, file='run.gz', pack=mutations.packed),
    Reader('qrels', encoded(QRELS), read_qrels, reference.qrels),
    Reader('qrels.gz', encoded(QRELS), read_qrels, reference.qrels, file='qrels.gz', pack=mutations.packed),
    Reader('topics TSV', encoded(TSV), topics, as_sniffed(reference.topics_tsv, b'<', b'{')),
    Reader('topics JSONL', encoded(TOPICS_JSONL), topics, lambda data: as_json(data)),
    Reader('topics TREC', encoded(TOPICS_TREC), topics, holds=lambda data, found: if_trec(data, found)),
    Reader('topics documents', encoded(DOCUMENTS), topics, holds=lambda data, found: if_documents(data, found)),
    Reader('topics CEDR', encoded(CEDR), topics),
    Reader('corpus TSV', encoded(TSV), corpus('tsv'), kept_lines(reference.corpus_tsv, False)),
    Reader(
        'corpus TSV, skip', encoded(TSV), corpus('tsv', on_error='skip'), kept_lines(reference.corpus_tsv, True),
        refuses=False,
    ),
    Reader(
        'corpus TSV.gz', encoded(TSV), corpus('tsv'), kept_lines(reference.corpus_tsv, False),
        file='corpus.tsv.gz', pack=mutations.packed,
    ),
    Reader('corpus JSONL', encoded(CORPUS_JSONL), corpus('jsonl'), kept_lines(reference.corpus_jsonl, False)),
    Reader(
        'corpus JSONL, skip', encoded(CORPUS_JSONL), corpus('jsonl', on_error='skip'),
        kept_lines(reference.corpus_jsonl, True), refuses=False,
    ),
    Reader('corpus TREC', encoded(DOCUMENTS), corpus('trec'), holds=nothing_lost),
    Reader('corpus TREC, skip', encoded(DOCUMENTS), corpus('trec', on_error='skip'), refuses=False),
    Reader('corpus CEDR', encoded(CEDR), corpus('cedr')),
    Reader(
        'corpus, guessed', encoded(TSV, CORPUS_JSONL, DOCUMENTS, CEDR), corpus('auto', on_error='skip'), refuses=False
    ),
    Reader('corpus HTML in .tar', [archive()], corpus('html'), file='pages.tar'),
    Reader('corpus HTML in .tgz', [archive()], corpus('html'), file='pages.tgz', pack=mutations.packed),
    Reader('CEDR topics', encoded(CEDR), read_topics),
    Reader('corpus CEDR, skip', encoded(CEDR), corpus('cedr', on_error='skip'), refuses=False),
    Reader('predicted queries', encoded(PREDICTIONS), lambda path: list(predicted_queries(path, last_docids))),
    Reader('term weights', encoded(TERM_WEIGHTS, JSON_WEIGHTS), lambda path: list(weighted_texts(path, last_docids))),
    Reader('triples of texts', encoded(TRIPLES), triples(True)),
    Reader('triples of ids', encoded(ID_TRIPLES), triples(False)),
    Reader('list of qids', encoded(FOLD), lambda path: first_columns(str(path))),
    Reader('folds as lists', encoded(FOLD), lambda path: read_folds([path] * 3)),
    Reader('folds as JSON', encoded(FOLDS), lambda path: read_folds([path])),
    Reader('cost report', encoded(COSTS), lambda path: _read_costs(str(path))),
    Reader('report of regressions', encoded(REPORT), report),
    Reader('regression', encoded(REGRESSION), read_regression, file='file.yaml'),
    Reader('recipe', encoded(RECIPE), read_recipe, file='recipe.yaml'),
    Reader('catalog', encoded(CATALOG), catalog.read_catalog, file='catalog.yaml'),
    Reader('saved scores', [], read_saved_scores, file='kept.npz', pack=repacked),
]  # fmt: skip


def as_json(data: bytes) -> Any:
    start = data.removeprefix(b'\xef\xbb\xbf').decode('utf-8', 'replace').lstrip()
    return reference.topics_jsonl(data) if start.startswith('{') else NotImplemented


def if_trec(data: bytes, found: Any) -> None:
    start = data.removeprefix(b'\xef\xbb\xbf').lstrip()
    if start.startswith(b'<') and not start.upper().startswith(b'<DOC>'):
        no_topic_lost(data, found)


def if_documents(data: bytes, found: Any) -> None:
    if data.removeprefix(b'\xef\xbb\xbf').lstrip().upper().startswith(b'<DOC>'):
        nothing_lost(data, found)


def unpacked(path: Path, data: bytes) -> bytes:
    """What is in the file; raises Refused for damaged gzip data."""
    if path.suffix != '.gz':
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise reference.Refused from error


def attack(reader: Reader, folder: Path, cases: int) -> Counter[str]:
    """Read `cases` damaged files; how many were taken and how many refused."""
    counts: Counter[str] = Counter()
    path = folder / reader.file
    seeds = reader.seeds or kept_scores(folder)
    for case in range(cases):
        draw = random.Random(f'{reader.name} {case}')
        data = draw.choice(seeds)
        if reader.pack is repacked:
            data = repacked(draw, data) if draw.random() < 0.7 else mutations.mutated(draw, data)
        else:
            data = mutations.mutated(draw, data)
            data = reader.pack(draw, data) if reader.pack is not None else data
        path.write_bytes(data)
        where = f'{reader.name}, case {case}: {data[:300]!r}'
        wanted: Any = NotImplemented
        refused: reference.Refused | None = None
        if reader.expected is not None:
            try:
                wanted = reader.expected(unpacked(path, data))
            except reference.Refused as error:
                refused = error
        try:
            found = reader.read(path)
        except PyseriniRepbertError as error:
            counts['refused'] += 1
            message = str(error)
            assert wanted is NotImplemented, f'{where}: {message}, but it says {wanted}'
            assert str(path) in message and '\n' not in message, f'{where}: {message}'
            if refused is not None and refused.lines:
                named = re.search(rf'{re.escape(str(path))}:(\d+): ', message)
                assert named and int(named[1]) in refused.lines, f'{where}: {message}, expected {refused.lines}'
        except Exception as error:
            raise AssertionError(f'{where}: {type(error).__name__} escaped') from error
        else:
            counts['taken'] += 1
            assert refused is None, f'{where}: read as {found}, but {refused and refused.lines} is none'
            assert wanted is NotImplemented or found == wanted, f'{where}: read as {found}, but it says {wanted}'
            if reader.holds is not None:
                reader.holds(data, found)
    return counts


@pytest.mark.parametrize('cases', [QUICK, pytest.param(THOROUGH, marks=pytest.mark.slow)])
@pytest.mark.parametrize('reader', READERS, ids=lambda reader: reader.name)
def test_damaged_files(reader: Reader, cases: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # each skipped line is a warning
    counts = attack(reader, tmp_path, cases)
    assert counts['taken'] >= cases // 50, counts
    assert counts['refused'] >= cases // 50 or not reader.refuses, counts


@pytest.mark.parametrize('cases', [QUICK, pytest.param(THOROUGH, marks=pytest.mark.slow)])
def test_a_run_in_blocks_is_the_same_run(cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks end decides nothing."""
    path = tmp_path / 'run'
    for case in range(cases):
        draw = random.Random(f'blocks {case}')
        path.write_bytes(mutations.mutated(draw, draw.choice(encoded(TREC_RUN, MSMARCO_RUN))))
        whole = _or_refused(lambda: read_run(path))
        monkeypatch.setattr(run_blocks.line_blocks, '__defaults__', (draw.choice([1, 7, 30]),))
        assert _or_refused(lambda: read_run(path)) == whole, path.read_bytes()
        monkeypatch.undo()


def test_the_references_bite(tmp_path: Path) -> None:
    """A reading that differs in one score, or takes what it should refuse, is found."""
    path = tmp_path / 'run'
    path.write_text(TREC_RUN)
    wrong = Reader('run', encoded(TREC_RUN), lambda path: {**run_of(path), 'q9': ([], [])}, reference.run)
    with pytest.raises(AssertionError, match='but it says'):
        attack(wrong, tmp_path, 20)
    lenient = Reader('qrels', encoded('1 0 d 1_0\n'), lambda path: {'1': {'d': 10}}, reference.qrels)
    with pytest.raises(AssertionError, match='is none'):
        attack(lenient, tmp_path, 20)
    escaping = Reader('folds', encoded(FOLDS), lambda path: json.loads(path.read_text())[0])
    with pytest.raises(AssertionError, match='escaped'):
        attack(escaping, tmp_path, 50)
    nameless = Reader('folds', encoded(FOLDS), lambda path: (_ for _ in ()).throw(InputError('no')))
    with pytest.raises(AssertionError, match='no'):
        attack(nameless, tmp_path, 5)
