"""The collections, systems and run files behind demo_results.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, auto

from pyserini_repbert.errors import InputError

BASE, DENSE, BM25 = 'minilm', 'repbert-demo', 'bm25'
MONO, DUO, VANILLA = 'monobert-demo', 'duobert-demo', 'vanilla-demo'
RERANKERS = ('epic-demo', MONO, VANILLA, 'cedr-knrm-demo', 'cedr-pacrr-demo', 'cedr-drmm-demo')
APART = '-apart'  # CEDR without [CLS]
METHODS = ('sum', 'binary', 'min', 'max')  # Multi-Stage eq. 3-6
DUO_DEPTH = 10  # k1: k1 (k1 - 1) inputs for each topic, each as long as two passages
LEXICAL = 0.3  # weight of BM25 beside the cosine; the best of 0.1 to 1 on the questions held back
DENSE_DEPTH = 20  # hits of a dense first stage that are reranked


@dataclass(frozen=True)
class Collection:
    """Test topics over a collection.

    Attributes
    ----------
    corpus, topics, qrels : catalog names, or paths in which '{data}' stands for the data folder
    fields : text fields of the corpus
    depth : hits of the first stage that are reranked
    measures : in ir_measures' form
    note : on what the checkpoints saw of it in training
    """

    name: str
    title: str
    corpus: str
    topics: str
    qrels: str
    depth: int
    measures: tuple[str, ...]
    note: str
    fields: tuple[str, ...] = ()

    def within(self, data: str) -> Collection:
        """The collection with `data` as the data folder."""
        corpus, topics, qrels = (text.format(data=data) for text in (self.corpus, self.topics, self.qrels))
        return replace(self, corpus=corpus, topics=topics, qrels=qrels)


USUAL = ('nDCG@10', 'MRR@10', 'AP', 'R@100')
UNSEEN = 'The checkpoints saw nothing of it in training.'
COLLECTIONS = (
    Collection(
        'demo',
        'Demo collection',
        *('demo', 'demo', 'demo'),
        50,
        ('nDCG@10', 'MRR@10', 'R@100'),
        'Checkpoints were trained on other questions about these passages; none of the test questions was among them.',
    ),
    Collection(
        'liveqa',
        'LiveQA-Med',
        '{data}/medquad/corpus.jsonl.gz',
        '{data}/medquad/liveqa.topics.tsv',
        '{data}/medquad/liveqa.qrels.txt',
        50,
        ('nDCG@10', 'MRR(rel=2)@10', 'AP(rel=2)@1000', 'R(rel=2)@100'),
        "Checkpoints were trained on MedQuAD's own questions to these answers, not on LiveQA-Med's. Grades are 0 to 3; "
        'rel=2 counts 2 and 3 as relevant. The answer alone is searched.',
        ('answer',),
    ),
    Collection(
        'cacm',
        'CACM',
        '{data}/cacm/cacm.tar.gz',
        '{data}/cacm/topics.cacm.txt',
        '{data}/cacm/qrels.cacm.txt',
        20,
        USUAL,
        UNSEEN,
    ),
    Collection(
        'vaswani',
        'Vaswani',
        '{data}/vaswani/doc-text.trec.gz',
        '{data}/vaswani/query-text.trec',
        '{data}/vaswani/qrels',
        20,
        USUAL,
        UNSEEN,
    ),
)


class Kind(StrEnum):
    """How a run is made."""

    SPARSE = auto()
    DENSE = auto()
    COSINE = auto()
    INTERLEAVE = auto()
    BY_COSINE = auto()
    BY_TEACHER = auto()
    RERANK = auto()
    PAIRS = auto()
    REPLAY = auto()


@dataclass(frozen=True)
class System:
    """A row of a table.

    Attributes
    ----------
    name : of the run file, without its suffix
    label : in the table
    group : its name for --systems, which several rows may share
    checkpoint : the model that makes the run, '' for none
    needs : names of the runs that it is made from, in their order
    against : names of the runs that it is compared with
    method : duoBERT's aggregation
    depth : hits that are reranked, 0 for the collection's depth
    """

    name: str
    label: str
    group: str
    kind: Kind
    checkpoint: str = ''
    needs: tuple[str, ...] = ()
    against: tuple[str, ...] = (BM25,)
    method: str = ''
    depth: int = 0


def all_systems(extra: Sequence[str] = ()) -> dict[str, System]:
    """The systems by name, in the order of the tables.

    `extra` are further rerankers, compared with Vanilla BERT; `cedr-NAME-apart` with `cedr-NAME-demo` too.
    """
    cosine = f'{BASE}.cosine'
    untrained = f'{BASE} (before training)'
    found = [
        System(BM25, 'BM25', BM25, Kind.SPARSE, against=()),
        System(BASE, f'{untrained}, inner product', BASE, Kind.DENSE, BASE),
        System(cosine, f'{untrained}, cosine', BASE, Kind.COSINE, BASE),
        System(DENSE, DENSE, DENSE, Kind.DENSE, DENSE, against=(BM25, BASE, cosine)),
    ]
    for runs in ((DENSE, BM25), (BM25, DENSE)):
        label = ' + '.join('BM25' if name == BM25 else name for name in runs)
        found.append(
            System('+'.join(runs), f'{label}, interleaved', 'interleave', Kind.INTERLEAVE, '', runs, (BM25, DENSE))
        )
    by_cosine = _reranked(cosine)
    taught = f'{by_cosine}+{BM25}'
    found.append(System(by_cosine, f"BM25, {BASE}'s cosine", 'cosine', Kind.BY_COSINE, BASE, (BM25,), (BM25,)))
    label = f"BM25, {BASE}'s cosine + {LEXICAL} BM25"
    found.append(System(taught, label, 'teacher', Kind.BY_TEACHER, BASE, (BM25,), (BM25, by_cosine)))
    for name in (*RERANKERS, *extra):
        compared = name.startswith('cedr-') or name in extra
        against = (BM25, by_cosine, _reranked(VANILLA)) if compared else (BM25, by_cosine)
        joint = name.removesuffix(APART) + '-demo'
        if joint != name and joint in RERANKERS:
            against = (*against, _reranked(joint))
        found.append(System(_reranked(name), f'BM25, {name}', name, Kind.RERANK, name, (BM25,), against))
        if name == MONO:
            found += _duo()
            behind = f'{DENSE}.{MONO}'
            label = f'{DENSE}, its best {DENSE_DEPTH} by {MONO}'
            found.append(System(behind, label, behind, Kind.RERANK, MONO, (DENSE,), (DENSE,), depth=DENSE_DEPTH))
    return {system.name: system for system in found}


def _reranked(name: str) -> str:
    return f'{BM25}.{name}'


def _duo() -> list[System]:
    """duoBERT with each aggregation: pairs are scored once, for SUM, and replayed for the others."""
    mono = _reranked(MONO)
    names = {method: f'{mono}.{DUO}.{method}' for method in METHODS}
    return [
        System(
            names[method],
            f'BM25, {MONO}, {DUO} {method.upper()}',
            DUO,
            Kind.REPLAY if number else Kind.PAIRS,
            DUO,
            (names['sum'] if number else mono,),
            (BM25, mono),
            method,
        )
        for number, method in enumerate(METHODS)
    ]


def chosen(names: str | None, known: Sequence[str], what: str) -> tuple[str, ...]:
    """The names in a comma-separated list, all known ones for None. Raises InputError for an unknown one."""
    if names is None:
        return tuple(known)
    wanted = tuple(name for name in names.split(',') if name)
    if bad := [name for name in wanted if name not in known]:
        raise InputError(f"{what} '{bad[0]}' is unknown: expected {', '.join(known)}")
    return wanted


def named(pairs: Sequence[str], what: str, known: Mapping[str, object] | None = None) -> dict[str, str]:
    """{name: value} of NAME=VALUE texts. Raises InputError for another form, or a name that is not `known`."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition('=')
        if not (name and equals and value) or (known is not None and name not in known):
            raise InputError(f"{what} '{pair}': NAME=VALUE was expected" + (f', {", ".join(known)}' if known else ''))
        found[name] = value
    return found
