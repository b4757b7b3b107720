"""Training data of the demo checkpoints: passages, pieces (excerpts) and sentences, and questions
that no test has.

    from demo_material import collect

The passages are paragraphs of the demo collection, MedQuAD's answers, and the prose of the
docstrings of Python's standard library and of numpy, scipy, scikit-learn, networkx and sympy as
installed (all BSD or PSF). The questions are those that come with the texts, and pseudo-questions
cut from pieces, which have a teacher's scores instead of judgments. No piece is cut from a passage
that is judged for a test topic, or held back for validation.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from demo_docstrings import docstrings

from pyserini_repbert import catalog
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics

SEED = 20200620
LIBRARIES = ('numpy', 'scipy', 'sklearn', 'networkx', 'sympy')
HELD_ARTICLES = 8  # of XQuAD
# training questions of the demo; share of MedQuAD's documents, and of modules
HELD_QED = 100
HELD_SHARE = 0.03
PIECE_WORDS = (12, 110)  # fewest and most words of a piece
_SENTENCE = re.compile(r'(?<=[.!?])\s+(?=["(]?[A-Z0-9])')
_COMMON = frozenset(
    'a an and are as at be but by can for from had has have he her his how if in into is it its '
    'may more not of on or '
    'other she so some such than that the their them then there these they this to was were what '
    'when which who will '
    'with you your'.split()
)


class Question(NamedTuple):
    """A question, the docids of its answers, and for questions about sentences, of its
    candidates.
    """

    qid: str
    text: str
    answers: tuple[str, ...]
    candidates: tuple[str, ...] = ()


@dataclass
class Material:
    """Texts by docid, and questions about them.

    Attributes
    ----------
    texts : passages, pieces and sentences
    judged : questions with their answers among passages
    sentences : questions with the sentences that answer them, among all sentences of their
        paragraphs or article
    cut : pseudo-questions with the piece that each was cut from
    held_judged, held_sentences : as `judged` and `sentences`, for validation
    """

    texts: dict[str, str] = field(default_factory=dict)
    judged: list[Question] = field(default_factory=list)
    sentences: list[Question] = field(default_factory=list)
    cut: list[Question] = field(default_factory=list)
    held_judged: list[Question] = field(default_factory=list)
    held_sentences: list[Question] = field(default_factory=list)


def sentences_of(text: str) -> list[str]:
    """A text's sentences, by punctuation."""
    return [part for part in _SENTENCE.split(' '.join(text.split())) if part]


def piece_of(text: str, draw: random.Random) -> str:
    """Consecutive sentences of a text from a drawn one on, up to a drawn number of words; cut
    off at the most words.
    """
    parts = sentences_of(text)
    wanted = draw.randint(*PIECE_WORDS)
    start = draw.randrange(len(parts))
    words: list[str] = []
    for part in parts[start:]:
        words += part.split()
        if len(words) >= wanted:
            break
    return ' '.join(words[: PIECE_WORDS[1]])


def question_from(piece: str, title: str, draw: random.Random) -> str:
    """A pseudo-question: a title, or a sentence, a span or content words of a piece, by chance."""
    kinds = ['sentence', 'span', 'words', 'words'] + (
        ['title', 'title', 'title words'] if title else []
    )
    kind = draw.choice(kinds)
    words = piece.split()
    if kind == 'title':
        return title
    if kind == 'sentence':
        return ' '.join(draw.choice(sentences_of(piece)).split()[:24])
    if kind == 'span':
        length = draw.randint(4, 9)
        start = draw.randrange(max(1, len(words) - length))
        return ' '.join(words[start : start + length])
    telling = [
        word for word in (word.strip('.,;:()"\'`*').lower() for word in words) if len(word) > 2
    ]
    telling = [
        word
        for word in dict.fromkeys(telling)
        if word not in _COMMON and any(map(str.isalpha, word))
    ]
    chosen = sorted(draw.sample(range(len(telling)), min(len(telling), draw.randint(2, 7))))
    found = ' '.join(telling[place] for place in chosen)
    return f'{title} {found}' if kind == 'title words' else found


def collect(data: Path) -> Material:
    """All training data; the same each time for the same files and libraries."""
    made = Material()
    titles: dict[str, str] = {}
    held = _demo(data, made, titles) | _medquad(data, made, titles) | _docstrings(made, titles)
    for docid in sorted(titles.keys() - held):
        draw = random.Random(f'{SEED} {docid}')
        piece = piece_of(made.texts[docid], draw)
        if len(piece.split()) < PIECE_WORDS[0]:
            continue
        made.texts[f'{docid}.piece'] = piece
        text = question_from(piece, titles[docid], draw)
        if text:
            made.cut.append(Question(f'cut.{docid}', text, (f'{docid}.piece',)))
    return made


def _demo(data: Path, made: Material, titles: dict[str, str]) -> set[str]:
    """Add the demo collection and its training questions; the docids from which nothing may be
    cut.
    """
    corpus = {passage.docid: passage.text for passage in open_corpus('demo')}
    made.texts |= corpus
    with gzip.open(
        catalog.RESOURCES / 'demo' / 'corpus.jsonl.gz', 'rt', encoding='utf-8'
    ) as stream:
        title = {record['id']: record.get('title', '') for record in map(json.loads, stream)}
    by_text = {text: docid for docid, text in corpus.items()}
    test = {docid for grades in load_qrels('demo').values() for docid in grades}
    with gzip.open(data / 'qed' / 'xquad.en.json.gz', 'rt', encoding='utf-8') as stream:
        articles = json.load(stream)['data']
    draw = random.Random(f'{SEED} held')
    held_articles = set(draw.sample(range(len(articles)), HELD_ARTICLES))
    held = {
        by_text[own['context']]
        for number in held_articles
        for own in articles[number]['paragraphs']
    }
    train = {query.qid: query.text for query in load_topics('demo-train')}
    relevant = {qid: list(grades) for qid, grades in load_qrels('demo-train').items()}
    held |= {docid for qid in draw.sample(sorted(train), HELD_QED) for docid in relevant[qid]}
    for name in ('demo-train', 'demo-xquad'):
        answers = load_qrels(name)
        for query in load_topics(name):
            docids = list(answers[query.qid])
            where = made.held_judged if held & set(docids) else made.judged
            where.append(Question(query.qid, query.text, tuple(docids)))
    _xquad_sentences(articles, by_text, held, made)
    _qed_sentences(data, set(train.values()), by_text, held, made)
    titles |= {docid: title[docid].replace('_', ' ') for docid in corpus if docid not in test}
    return held | test


def _split(docid: str, text: str, starts: Sequence[int], made: Material) -> list[tuple[int, str]]:
    """Add a paragraph's sentences as texts of their own; (first character, docid) of each."""
    found = []
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        name = f'{docid}.s{number}'
        made.texts[name] = text[start:end].strip()
        found.append((start, name))
    return found


def _at(found: Sequence[tuple[int, str]], place: int) -> str:
    return [name for start, name in found if start <= place][-1]


def _xquad_sentences(
    articles: list[dict[str, Any]], by_text: dict[str, str], held: set[str], made: Material
) -> None:
    for article in articles:
        split = {}
        for own in article['paragraphs']:
            text = own['context']
            starts = [0, *(match.end() for match in _SENTENCE.finditer(text))]
            split[by_text[text]] = _split(by_text[text], text, starts, made)
        names = [name for found in split.values() for _, name in found]
        for own in article['paragraphs']:
            docid = by_text[own['context']]
            where = made.held_sentences if docid in held else made.sentences
            for number, asked in enumerate(own['qas']):
                answers = list(
                    dict.fromkeys(
                        _at(split[docid], one['answer_start']) for one in asked['answers']
                    )
                )
                text = ' '.join(asked['question'].split())
                where.append(Question(f'{docid}.q{number}', text, tuple(answers), tuple(names)))


def _qed_sentences(
    data: Path, train: set[str], by_text: dict[str, str], held: set[str], made: Material
) -> None:
    with gzip.open(data / 'qed' / 'qed-dev.jsonlines.gz', 'rt', encoding='utf-8') as stream:
        examples = [json.loads(line) for line in stream]
    for number, one in enumerate(examples):
        question = ' '.join(one['question_text'].split())
        text = one['paragraph_text']
        starts = one['sentence_starts']
        chosen = one['annotation'].get('selected_sentence')
        if question not in train or not chosen or len(starts) < 3:
            continue
        docid = by_text[text]
        found = _split(docid, text, starts, made)
        where = made.held_sentences if docid in held else made.sentences
        answer = _at(found, chosen['start'])
        where.append(
            Question(f'{docid}.n{number}', question, (answer,), tuple(name for _, name in found))
        )


def _medquad(data: Path, made: Material, titles: dict[str, str]) -> set[str]:
    """Add MedQuAD's answers and questions; the docids of documents that are held back."""
    folder = data / 'medquad'
    with gzip.open(folder / 'corpus.jsonl.gz', 'rt', encoding='utf-8') as stream:
        records = [json.loads(line) for line in stream]
    made.texts |= {one['id']: one['answer'] for one in records}
    judged = {
        docid
        for grades in load_qrels(str(folder / 'liveqa.qrels.txt')).values()
        for docid in grades
    }
    titles |= {
        one['id']: re.sub(r'\s*\(Also called.*', '', one['question'])
        for one in records
        if one['id'] not in judged
    }
    documents = sorted({one['id'].rpartition('_Sec')[0] for one in records})
    chosen = set(
        random.Random(f'{SEED} medquad').sample(documents, int(HELD_SHARE * len(documents)))
    )
    held = {one['id'] for one in records if one['id'].rpartition('_Sec')[0] in chosen}
    answers = load_qrels(str(folder / 'train.qrels.txt.gz'))
    for query in load_topics(str(folder / 'train.queries.tsv.gz')):
        docids = list(answers.get(query.qid, ()))
        if docids:
            where = made.held_judged if held & set(docids) else made.judged
            where.append(Question(query.qid, query.text, tuple(docids)))
    return held


def _docstrings(made: Material, titles: dict[str, str]) -> set[str]:
    """Add docstrings' prose; the docids of modules that are held back."""
    specs = {name: find_spec(name) for name in LIBRARIES}
    roots = [('python', Path(sysconfig.get_paths()['stdlib']))]
    roots += [
        (name, Path(spec.origin).parent) for name, spec in specs.items() if spec and spec.origin
    ]
    found = list(docstrings(roots))
    modules = sorted({module for module, _, _ in found})
    chosen = set(random.Random(f'{SEED} modules').sample(modules, int(HELD_SHARE * len(modules))))
    held = set()
    for number, (module, title, prose) in enumerate(found):
        docid = f'doc{number:05d}'
        made.texts[docid] = prose
        titles[docid] = title
        if module in chosen:
            held.add(docid)
            summary = sentences_of(prose)
            if len(summary) > 2:
                made.texts[docid] = ' '.join(summary[1:])
                made.held_judged.append(Question(f'{docid}.q', summary[0], (docid,)))
    return held
