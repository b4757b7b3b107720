"""Stand-ins for what the papers' trainings read, in the real files' order and form.

Texts are of the tiny vocabulary of `folders.WORDS`.
"""

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

WORDS = 'cat dog fish bird mat hat red blue sea sky sun moon tree leaf root seed big small'.split()
QUERIES = 120
NEGATIVES = 40  # of a query's triples; the real files have some 540 to 790
HEADINGS = 90
HITS = 10
ROBUST_TOPICS = 20


def write_msmarco(folder: Path) -> None:
    """MS MARCO's training files: topics, judgments, passages and its four kinds of triples.

    The old full file and the small ones are mixed; the second full file goes query by query.
    """
    folder.mkdir()
    chance = random.Random(0)
    names = chance.sample(list(itertools.permutations(WORDS, 3)), QUERIES)
    queries = {str(185 + 7 * n): ' '.join(words) for n, words in enumerate(names)}
    passages = _passages(chance, [str(n) for n in range(QUERIES * 5)])
    triples = []
    qrels = []
    for n, (qid, text) in enumerate(queries.items()):
        relevant = str(5 * n)
        passages[relevant] = f'the {text} .'
        qrels.append(f'{qid}\t0\t{relevant}\t1\n')
        others = [docid for docid in passages if docid != relevant]
        triples += [(qid, relevant, other) for other in chance.sample(others, NEGATIVES)]
    _write(folder / 'qidpidtriples.train.full.2.tsv', _tab_separated(triples))
    mixed = chance.sample(triples, len(triples))
    _write(folder / 'qidpidtriples.train.full.tsv', _tab_separated(mixed))
    _write(folder / 'qidpidtriples.train.small.tsv', _tab_separated(chance.sample(mixed, 2000)))
    texts = []
    for qid, relevant, other in chance.sample(mixed, 2000):
        texts.append((queries[qid], passages[relevant], passages[other]))
    _write(folder / 'triples.train.small.tsv', _tab_separated(texts))
    _write(folder / 'queries.train.tsv', _tab_separated(queries.items()))
    _write(folder / 'queries.dev.small.tsv', ['2\ta test topic of the development set\n'])
    _write(folder / 'qrels.train.tsv', qrels)
    _write(folder / 'collection.tsv', _tab_separated(passages.items()))
    _write_held_out(folder, chance, passages)


def _write_held_out(folder: Path, chance: random.Random, passages: dict[str, str]) -> None:
    """Development topics, their judgments, and BM25's hits."""
    docids = list(passages)
    topics = []
    qrels = []
    run = []
    for qid in ('9001', '9002', '9003'):
        hits = chance.sample(docids, 20)
        topics.append(f'{qid}\t{" ".join(chance.sample(WORDS, 4))}\n')
        qrels.append(f'{qid} 0 {hits[7]} 1\n')
        run += _hits(qid, hits)
    _write(folder / 'validation.topics.tsv', topics)
    _write(folder / 'validation.qrels.txt', qrels)
    _write(folder / 'validation.run.txt', run)


def write_car(folder: Path) -> None:
    """TREC CAR's training folds: headings in the order of the alphabet, page by page.

    The qid is the path of the heading. Paragraphs have SHA-1 names; a heading's relevant ones are
    not all among BM25's ten hits, and some headings have none there.
    """
    folder.mkdir()
    chance = random.Random(1)
    paragraphs = _passages(chance, [hashlib.sha1(str(n).encode()).hexdigest() for n in range(300)])
    _write(
        folder / 'paragraphs.jsonl',
        [json.dumps({'id': docid, 'contents': text}) + '\n' for docid, text in paragraphs.items()],
    )
    headings = []
    for page, section, part in itertools.product(WORDS[:5], WORDS[5:11], ('', *WORDS[11:13])):
        below = f'/{part}%20tree' if part else ''
        headings.append(f'enwiki:{page.title()}/{section.title()}%20{page}{below}')
    headings = sorted(headings)[:HEADINGS]
    for fold, qids in (
        ('train', headings),
        ('fold0', headings),
        ('test200', [f'{qid}%20hat' for qid in headings[:4]]),
    ):
        qrels = []
        run = []
        for qid in qids:
            hits = chance.sample(list(paragraphs), HITS)
            others = [docid for docid in paragraphs if docid not in hits]
            relevant = [*chance.sample(hits, chance.choice((0, 1, 2))), *chance.sample(others, 3)]
            qrels += [f'{qid} 0 {docid} 1\n' for docid in relevant]
            run += _hits(qid, hits)
        _write(folder / f'topics.{fold}.txt', [f'{qid}\n' for qid in qids])
        _write(folder / f'qrels.{fold}.txt', qrels)
        _write(folder / f'bm25.{fold}.txt', run)
    test = folder / 'topics.car17v2.0.benchmarkY1test.txt'
    _write(test, ['enwiki:Aftertaste/Aftertaste%20processing%20in%20the%20cerebral%20cortex\n'])


def write_robust04(folder: Path) -> None:
    """Robust04: topics, judgments, hits of all topics, documents, and a fold.

    A topic has some ten relevant documents, of which the run has a part, and hits without a
    judgment.
    """
    folder.mkdir()
    chance = random.Random(2)
    documents = _passages(chance, [f'FT911-{n}' for n in range(200)], n_words=50)
    _write(
        folder / 'documents.jsonl',
        [json.dumps({'id': docid, 'contents': text}) + '\n' for docid, text in documents.items()],
    )
    topics = []
    qrels = []
    run = []
    for n in range(ROBUST_TOPICS):
        qid = str(301 + n)
        topics.append(f'{qid}\t{" ".join(chance.sample(WORDS, 3))}\n')
        judged = chance.sample(list(documents), 40)
        qrels += [f'{qid} 0 {docid} {int(row < 10)}\n' for row, docid in enumerate(judged)]
        unjudged = [docid for docid in documents if docid not in judged]
        run += _hits(qid, [*judged[5:25], *chance.sample(unjudged, 20)])
    _write(folder / 'topics.tsv', topics)
    _write(folder / 'qrels.txt', qrels)
    _write(folder / 'bm25.txt', run)
    # The same in the authors' form, for the Web tracks.
    _write(folder / 'queries.tsv', [f'query\t{line}' for line in topics])
    _write(folder / 'qrels', qrels)
    _write(folder / 'train.pairs', [' '.join(line.split()[0:3:2]) + '\n' for line in run])
    _write(folder / 'validation.run', run)
    parts = {'train': topics[:12], 'validation': topics[12:16], 'test': topics[16:]}
    for name, lines in parts.items():
        _write(folder / f'{name}.tsv', lines)


def write_vectors(path: Path) -> None:
    """GloVe's text file: a word and its values on each line, the most frequent words first."""
    chance = random.Random(3)
    lines = []
    for word in ['the', '.', *WORDS]:
        values = ' '.join(f'{chance.gauss(0, 0.4):.5f}' for _ in range(8))
        lines.append(f'{word} {values}\n')
    _write(path, lines)


def _passages(chance: random.Random, docids: Sequence[str], n_words: int = 12) -> dict[str, str]:
    return {docid: f'the {" ".join(chance.choices(WORDS, k=n_words))} .' for docid in docids}


def _hits(qid: str, docids: Sequence[str]) -> list[str]:
    """The lines of a TREC run."""
    return [f'{qid} Q0 {docid} {n} {100 - n} Anserini\n' for n, docid in enumerate(docids, 1)]


def _tab_separated(rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> list[str]:
    return ['\t'.join(row) + '\n' for row in rows]


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text(''.join(lines), encoding='utf-8')
