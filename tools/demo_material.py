"""Training data of the demo checkpoints.

Passages, pieces (excerpts) and sentences, and questions that no test has.

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
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple

from demo_docstrings import docstrings

from pyserini_repbert import catalog
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import judged_docids
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query

SEED = 20200620
LIBRARIES = ('numpy', 'scipy', 'sklearn', 'networkx', 'sympy')
HELD_ARTICLES = 8  # of XQuAD
HELD_QED = 100  # training questions of the demo
HELD_SHARE = 0.03  # of MedQuAD's documents, and of modules
PIECE_WORDS = (12, 110)  # fewest and most words of a piece
_SENTENCE = re.compile(r'(?<=[.!?])\s+(?=["(]?[A-Z0-9])')
_COMMON = frozenset(
    'a an and are as at be but by can for from had has have he her his how if in into is it its '
    'may more not of on or other she so some such than that the their them then there these they '
    'this to was were what when which who will with you your'.split()
)


class Question(NamedTuple):
    """A question.

    Attributes
    ----------
    answers : the docids that answer it
    candidates : of a question about sentences, the docids among which the answers are
    """

    qid: str
    text: str
    answers: tuple[str, ...]
    candidates: tuple[str, ...] = ()


class Sentence(NamedTuple):
    """A sentence of a paragraph: its first character there, and the docid of its text."""

    start: int
    docid: str


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
    """Consecutive sentences of a text, from a drawn one on.

    They have a drawn number of words, and are cut off at the most words.
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
    kinds = ['sentence', 'span', 'words', 'words']
    if title:
        kinds += ['title', 'title', 'title words']
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
    telling = _content_words(words)
    n_words = min(len(telling), draw.randint(2, 7))
    positions = sorted(draw.sample(range(len(telling)), n_words))
    chosen = ' '.join(telling[position] for position in positions)
    return f'{title} {chosen}' if kind == 'title words' else chosen


def _content_words(words: Sequence[str]) -> list[str]:
    """The words that tell what a text is about, each once."""
    telling: dict[str, None] = {}
    for word in words:
        plain = word.strip('.,;:()"\'`*').lower()
        has_letters = any(character.isalpha() for character in plain)
        if len(plain) > 2 and has_letters and plain not in _COMMON:
            telling[plain] = None
    return list(telling)


def collect(data: Path) -> Material:
    """All training data; the same each time for the same files and libraries."""
    material = Material()
    titles: dict[str, str] = {}
    # The docids from which nothing may be cut.
    held = _add_demo(data / 'qed', material, titles)
    held |= _add_medquad(data / 'medquad', material, titles)
    held |= _add_docstrings(material, titles)
    for docid in sorted(titles.keys() - held):
        draw = random.Random(f'{SEED} {docid}')
        piece = piece_of(material.texts[docid], draw)
        if len(piece.split()) < PIECE_WORDS[0]:
            continue
        material.texts[f'{docid}.piece'] = piece
        text = question_from(piece, titles[docid], draw)
        if text:
            material.cut.append(Question(f'cut.{docid}', text, (f'{docid}.piece',)))
    return material


def _add_demo(qed: Path, material: Material, titles: dict[str, str]) -> set[str]:
    """Add the demo collection and its training questions.

    Returns the docids from which nothing may be cut.
    """
    corpus = {passage.docid: passage.text for passage in open_corpus('demo')}
    material.texts |= corpus
    docid_of = {text: docid for docid, text in corpus.items()}
    with _open_text(qed / 'xquad.en.json.gz') as stream:
        articles = json.load(stream)['data']
    held = _hold_back(articles, docid_of)
    for name in ('demo-train', 'demo-xquad'):
        _add_judged(load_topics(name), load_qrels(name), held, material)
    _add_xquad_sentences(articles, docid_of, held, material)
    _add_qed_sentences(qed, docid_of, held, material)
    test = judged_docids(load_qrels('demo'))
    with _open_text(catalog.RESOURCES / 'demo' / 'corpus.jsonl.gz') as stream:
        for line in stream:
            record = json.loads(line)
            if record['id'] not in test:
                titles[record['id']] = record.get('title', '').replace('_', ' ')
    return held | test


def _open_text(path: Path) -> IO[str]:
    return gzip.open(path, 'rt', encoding='utf-8')


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines."""
    with _open_text(path) as stream:
        return [json.loads(line) for line in stream]


def _hold_back(articles: Sequence[dict[str, Any]], docid_of: Mapping[str, str]) -> set[str]:
    """The paragraphs of some articles, and those that answer some training questions."""
    draw = random.Random(f'{SEED} held')
    held = set()
    for number in draw.sample(range(len(articles)), HELD_ARTICLES):
        for paragraph in articles[number]['paragraphs']:
            held.add(docid_of[paragraph['context']])
    relevant = load_qrels('demo-train')
    train = sorted(topic.qid for topic in load_topics('demo-train'))
    for qid in draw.sample(train, HELD_QED):
        held.update(relevant[qid])
    return held


def _add_judged(topics: Iterable[Query], qrels: Qrels, held: Set[str], material: Material) -> None:
    """Add questions that have answers, apart from those with an answer that is held back."""
    for topic in topics:
        answers = tuple(qrels.get(topic.qid, ()))
        if answers:
            questions = material.judged if held.isdisjoint(answers) else material.held_judged
            questions.append(Question(topic.qid, topic.text, answers))


def _add_sentences(
    docid: str, text: str, starts: Sequence[int], material: Material
) -> list[Sentence]:
    """Add a paragraph's sentences, which begin at these characters, as texts of their own."""
    ends = [*starts[1:], len(text)]
    sentences = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        sentence = Sentence(start, f'{docid}.s{number}')
        material.texts[sentence.docid] = text[start:end].strip()
        sentences.append(sentence)
    return sentences


def _sentence_at(sentences: Sequence[Sentence], character: int) -> str:
    """The docid of the sentence that has a character of the paragraph."""
    before = [sentence for sentence in sentences if sentence.start <= character]
    return before[-1].docid


def _add_xquad_sentences(
    articles: Sequence[dict[str, Any]],
    docid_of: Mapping[str, str],
    held: Set[str],
    material: Material,
) -> None:
    """Add XQuAD's questions, whose candidates are all sentences of their article."""
    for article in articles:
        sentences: dict[str, list[Sentence]] = {}
        candidates: list[str] = []
        for paragraph in article['paragraphs']:
            text = paragraph['context']
            docid = docid_of[text]
            starts = [0, *(match.end() for match in _SENTENCE.finditer(text))]
            sentences[docid] = _add_sentences(docid, text, starts, material)
        for of_paragraph in sentences.values():
            candidates += [sentence.docid for sentence in of_paragraph]
        for paragraph in article['paragraphs']:
            docid = docid_of[paragraph['context']]
            questions = material.held_sentences if docid in held else material.sentences
            for number, asked in enumerate(paragraph['qas']):
                question = Question(
                    qid=f'{docid}.q{number}',
                    text=' '.join(asked['question'].split()),
                    answers=_answers(asked, sentences[docid]),
                    candidates=tuple(candidates),
                )
                questions.append(question)


def _answers(asked: dict[str, Any], sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The sentences that answer a question of XQuAD, each once."""
    docids = [_sentence_at(sentences, answer['answer_start']) for answer in asked['answers']]
    return tuple(dict.fromkeys(docids))


def _add_qed_sentences(
    qed: Path, docid_of: Mapping[str, str], held: Set[str], material: Material
) -> None:
    """Add QED's training questions, whose candidates are the sentences of their paragraph."""
    train = {topic.text for topic in load_topics('demo-train')}
    for number, example in enumerate(_read_lines(qed / 'qed-dev.jsonlines.gz')):
        text = ' '.join(example['question_text'].split())
        starts = example['sentence_starts']
        chosen = example['annotation'].get('selected_sentence')
        if text not in train or not chosen or len(starts) < 3:
            continue
        docid = docid_of[example['paragraph_text']]
        sentences = _add_sentences(docid, example['paragraph_text'], starts, material)
        question = Question(
            qid=f'{docid}.n{number}',
            text=text,
            answers=(_sentence_at(sentences, chosen['start']),),
            candidates=tuple(sentence.docid for sentence in sentences),
        )
        questions = material.held_sentences if docid in held else material.sentences
        questions.append(question)


def _add_medquad(folder: Path, material: Material, titles: dict[str, str]) -> set[str]:
    """Add MedQuAD's answers and questions; the docids of documents that are held back."""
    records = _read_lines(folder / 'corpus.jsonl.gz')
    judged = judged_docids(load_qrels(str(folder / 'liveqa.qrels.txt')))
    docids_of_document: dict[str, list[str]] = {}
    for record in records:
        docid = record['id']
        material.texts[docid] = record['answer']
        if docid not in judged:
            titles[docid] = re.sub(r'\s*\(Also called.*', '', record['question'])
        docids_of_document.setdefault(docid.rpartition('_Sec')[0], []).append(docid)
    held: set[str] = set()
    for document in _sample_held(sorted(docids_of_document), 'medquad'):
        held.update(docids_of_document[document])
    topics = load_topics(str(folder / 'train.queries.tsv.gz'))
    _add_judged(topics, load_qrels(str(folder / 'train.qrels.txt.gz')), held, material)
    return held


def _sample_held(names: Sequence[str], seed: str) -> set[str]:
    """The share of documents or modules that is held back."""
    draw = random.Random(f'{SEED} {seed}')
    return set(draw.sample(names, int(HELD_SHARE * len(names))))


def _add_docstrings(material: Material, titles: dict[str, str]) -> set[str]:
    """Add docstrings' prose; the docids of modules that are held back."""
    roots = [('python', Path(sysconfig.get_paths()['stdlib']))]
    for name in LIBRARIES:
        spec = find_spec(name)
        if spec and spec.origin:
            roots.append((name, Path(spec.origin).parent))
    texts = list(docstrings(roots))
    held_modules = _sample_held(sorted({text.module for text in texts}), 'modules')
    held = set()
    for number, text in enumerate(texts):
        docid = f'doc{number:05d}'
        material.texts[docid] = text.prose
        titles[docid] = text.title
        if text.module in held_modules:
            held.add(docid)
            _add_held_docstring(docid, text.prose, material)
    return held


def _add_held_docstring(docid: str, prose: str, material: Material) -> None:
    """Add a question for validation: the first sentence asks for the others."""
    first, *others = sentences_of(prose)
    if len(others) > 1:
        material.texts[docid] = ' '.join(others)
        material.held_judged.append(Question(f'{docid}.q', first, (docid,)))
