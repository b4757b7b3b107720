"""Every reader of files that users bring, on damaged ones: read, or refused in one line that
names the file.
"""

import logging
import random

import pytest

from pyserini_repbert.data import run_parser
from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.runs import iter_run, read_run
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.evaluate.folds import read_folds
from pyserini_repbert.index.expansions import predicted_queries, weighted_texts
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.search.adapted_folder import read_adapted
from pyserini_repbert.search.adapted_form import QUERY_MAP
from pyserini_repbert.train.recipe_files import read_recipe

CASES = [200, pytest.param(1000, marks=pytest.mark.slow)]
TREC_RUN = (
    'q1 Q0 d1 1 9.5 tag\nq1 Q0 dü 2 9.25 tag\nq1\tQ0\td3 3 -1e-3 tag\n\nq2 Q0 d1 1 3 '
    'tag\nq2 Q0 d4 2 3 tag\n'
)

MSMARCO_RUN = '1\t10\t1\n1\t20\t2\n1\t30\t3\n22\t10\t1\n22\t7\t2\n'

QRELS = '1 0 d1 1\n1 0 d2 0\n2\t0\tdü\t3\n\n10 Q0 d1 -2\n2 0 dü 2\n'

TSV = '1\tfirst text\n22\tsecond,\twith a tab\n\n3\tdritter täxt\n4\tfourth\n'

CORPUS_JSONL = (
    '{"id": "d1", "contents": "one two"}\n{"id": 2, "title": "T", "text": "two"}\n\n'
    '{"docid": "d3", "contents": "dr\\u00e4i \\ud83d\\ude00"}\n{"_id": "4", "text": "x", "url": '
    'null}\n'
)

TOPICS_JSONL = (
    '{"id": 7, "text": "seven "}\n{"qid": "q8", "title": "\\u00e9ight"}\n\n{"_id": '
    '"9", "query": ""}\n'
)

DOCUMENTS = (
    '<DOC>\n<DOCNO> a1 </DOCNO>\n<TEXT>one <b>two</b>\nthrée 1 < 2</TEXT>\n</DOC>\n\n'
    '<DOC><DOCNO>b2</DOCNO>four</DOC>\n<doc>\n<docno>c3</docno>\n<!-- no -->five\n</doc>\n'
)

TOPICS_TREC = (
    '<top>\n<num> Number: 301 \n<title> Topic: International\nOrganized Crime\n<desc> '
    'Description:\nno\n</top>\n'
    '<top>\n<num> Number: 302\n<title> Polio 2 < 3\n<desc> no\n\n<top><num>303</num><title>a '
    'b</title></top>\n'
)

HTML = '<html><pre>\nA &amp; B &#65; <b>c</b> <!-- no --> 1 < 2</pre></html>'

CEDR = (
    'query\tq1\twhat is it\ndoc\td1\tit is, it is\nquery\tq2\twho\n\ndoc\td2\tsomebody\tor other\n'
)

PREDICTIONS = 'what is it / who is it\nwhere\twhen\nwhy\n'

TERM_WEIGHTS = 'cat 0.5\tdog 0.25\t[SEP] 0\nfi 0.1\t##sh 0.9\nbird 1e-1\n'

JSON_WEIGHTS = (
    '{"id": "d0", "contents": "cat dog"}\n{"id": "d1", "contents": "a a b"}\n{"id": '
    '"d2", "contents": ""}\n'
)


FOLDS = '[["1", 2], ["3"], ["4", "5"]]'


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
"""  # noqa: E501

ADAPTED = """\
{"index": "dense", "encoder": "minilm", "encoder_weights": "", "sparse": ["bm25@lucene"],
 "query_map": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
 "weights": [0.6, 0.4], "depth": 1000, "estimate": {"topics": 3, "gain": 0.5}, "stages": [],
 "format": "pyserini_repbert.adapted", "version": 1}
"""

CONFIG = """\
{"model_type": "bert", "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2,
 "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64,
 "ranking": {"system": "repbert", "max_query_length": 8, "max_doc_length": 16}}
"""

TOKENS = [
    *(
        b'\r',
        b'\r\n',
        b'\n\n',
        b'\t',
        b' ',
        b'\x0b',
        b'\x1c',
        b'\x85',
        b'\0',
        b'\xff',
        b'\xc3',
        b'\xef\xbb\xbf',
    ),
    *(
        '\u00a0'.encode(),
        '\u2028'.encode(),
        '\u0663'.encode(),
        b'-1',
        b'1_0',
        b'01',
        b'1e400',
        b'nan',
        b'9' * 400,
    ),
    *(
        b'9007199254740993',
        b'true',
        b'null',
        b'Infinity',
        b'[]',
        b'{}',
        b'[' * 3000,
        b'{"a":' * 3000,
        b'"\\ud800"',
    ),
    *(
        b'"id": true',
        b'"contents": 5',
        b'"text": null',
        b'"id": "\\ufeffx"',
        b'<DOC>',
        b'</DOC>',
        b'<DOD>',
        b'<DOCNO>',
    ),
    *(
        b'<top>',
        b'</top>',
        b'<num>',
        b'<title>',
        b'<!--',
        b'&#xD800;',
        b'query\t',
        b'doc\t',
        b'Q0',
        b'<',
        b'*a',
    ),
    *(b'!!int x', b'? ', b'- ', b': ', b'{x}', b'2020-01-01', b'1:30', b'~', b'"', b"'", b'\\'),
]


def last_docids():
    return ['d0', 'd1', 'd2']


def corpus(fmt, **options):
    return lambda path: list(open_corpus(path, fmt, **options))


def adapted_folder(path):
    """What a folder says whose query map is a byte."""
    path.with_name(QUERY_MAP).write_bytes(b'x')
    return read_adapted(path.parent)


READERS = {
    'run': ([TREC_RUN, MSMARCO_RUN], read_run),
    'qrels': ([QRELS], read_qrels),
    'topics': ([TSV, TOPICS_JSONL, TOPICS_TREC, DOCUMENTS, CEDR], read_topics),
    'corpus.tsv': ([TSV], corpus('tsv')),
    'corpus.jsonl': ([CORPUS_JSONL], corpus('jsonl')),
    'corpus.trec': ([DOCUMENTS], corpus('trec')),
    'corpus.cedr': ([CEDR], corpus('cedr')),
    'guessed': ([TSV, CORPUS_JSONL, DOCUMENTS, CEDR], corpus('auto', on_error='skip')),
    'predictions': ([PREDICTIONS], lambda path: list(predicted_queries(path, last_docids))),
    'weights': ([TERM_WEIGHTS, JSON_WEIGHTS], lambda path: list(weighted_texts(path, last_docids))),
    'folds': ([FOLDS], lambda path: read_folds([path])),
    'file.yaml': ([REGRESSION], read_regression),
    'recipe.yaml': ([RECIPE], read_recipe),
    'adapted.json': ([ADAPTED], adapted_folder),
    'config.json': ([CONFIG], lambda path: Checkpoint.open(path.parent)),
}


def mutated(draw, texts):
    """One of the texts after up to three accidents: bytes inserted, changed, deleted, cut,
    doubled, lines moved.
    """
    data = draw.choice(texts).encode()
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        start = draw.randrange(len(data) + 1)
        end = start + draw.choice([0, 0, 1, 1, 5, 20])
        rest = data[end:]
        kind = draw.randrange(6)
        if kind < 3:  # `end` decides whether a token is inserted or replaces something
            data = data[:start] + draw.choice(TOKENS) + rest
        elif kind == 3:
            data = data[:end] + data[start:]
        elif kind == 4:
            data = data[:start] if draw.random() < 0.3 else data[:start] + rest
        else:
            lines = data.split(b'\n')
            lines.insert(draw.randrange(len(lines) + 1), lines.pop(draw.randrange(len(lines))))
            data = draw.choice([b'\n', b'\n', b'\r\n', b'\r']).join(lines)
    return data


@pytest.mark.parametrize('cases', CASES)
@pytest.mark.parametrize('name', READERS)
def test_damaged_files(name, cases, tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)  # each skipped line is a warning
    texts, read = READERS[name]
    path = tmp_path / name
    refused = 0
    for case in range(cases):
        path.write_bytes(mutated(random.Random(f'{name} {case}'), texts))
        try:
            read(path)
        except PyseriniRepbertError as error:
            refused += 1
            assert str(path) in str(error) and '\n' not in str(error), path.read_bytes()
        except Exception as error:
            raise AssertionError(
                f'{path.read_bytes()!r}: {type(error).__name__} escaped'
            ) from error
    assert cases // 50 <= cases - refused and (refused >= cases // 50 or name == 'guessed')


@pytest.mark.parametrize('cases', CASES)
def test_a_run_in_blocks_or_query_by_query_is_the_same_run(cases, tmp_path, monkeypatch):
    def or_refused(read):
        try:
            return dict(read(path))
        except PyseriniRepbertError:
            return None

    path = tmp_path / 'run'
    for case in range(cases):
        draw = random.Random(f'blocks {case}')
        path.write_bytes(mutated(draw, [TREC_RUN, MSMARCO_RUN]))
        whole = or_refused(read_run)
        assert or_refused(iter_run) in (
            whole,
            None,
        )  # None where a query's lines are in several places
        monkeypatch.setattr(run_parser.line_blocks, '__defaults__', (draw.choice([1, 7, 30]),))
        assert or_refused(read_run) == whole, path.read_bytes()
        monkeypatch.undo()
