"""A small whole file of every format that users bring."""

from __future__ import annotations

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

REPORT = (
    '{"environment": {"torch": "2"}, "files": [{"file": "a.yaml", "title": "A", "conditions": [{"name": "c", '
    '"status": "FAIL", "why": "", "missing": [{"name": "r", "what": "runs", "size": "", "get": "ask"}], '
    '"commands": [], "fingerprint": {"m weights": "x"}, "scores": [{"measure": "AP", "expected": "0.5", '
    '"measured": 0.5, "status": "PASS", "source": "s", "cell": ""}, {"measure": "R", "expected": "1", '
    '"measured": null, "status": "FAIL", "source": "s", "cell": "t/BM25/dev"}]}]}]}'
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


def encoded(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]
