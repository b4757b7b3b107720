"""Lucene indexes of a corpus: plain, expanded by predicted queries, or with weighted terms."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.data.passages import Passage, corpus_of
from pyserini_repbert.data.values import Choice
from pyserini_repbert.data.word_forms import WordForms
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_folder, check_replaced
from pyserini_repbert.lucene.index_record import MANIFEST
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.languages import ENGLISH, check_language
from pyserini_repbert.lucene.lucene_form import LUCENE_FORM
from pyserini_repbert.lucene.searcher import PASSAGE_FIELD

logger = logging.getLogger(__name__)

BATCH = 1000  # documents handed to Java at a time


class LuceneVariant(Choice, what='variant'):
    """The sparse baselines of RepBERT's section 4.2.

    They differ in the text that Lucene indexes for a passage.
    """

    BM25 = 'bm25'
    DOC2QUERY = 'doc2query'
    DOCTTTTTQUERY = 'docTTTTTquery'
    DEEPCT = 'deepct'


# The parameters of `build_lucene_index` that a variant takes.
_TAKES = {
    LuceneVariant.BM25: (),
    LuceneVariant.DOC2QUERY: ('predictions', 'topk'),
    LuceneVariant.DOCTTTTTQUERY: ('predictions', 'topk'),
    LuceneVariant.DEEPCT: ('weights', 'sqrt'),
}
# Those that it cannot be built without, as errors call them.
_NEEDED = {'predictions': 'predicted queries', 'weights': 'term weights'}

# (k1, b) of DeepCT's authors: its term frequencies go up to 100, where BM25's usual k1 would
# saturate.
DEEPCT_BM25 = (10.0, 0.9)
DEEPCT_SQRT_BM25 = (18.0, 0.7)


def build_lucene_index(
    corpus: Iterable[Any],
    output: StrPath,
    variant: str = LuceneVariant.BM25,
    predictions: StrPath | Sequence[StrPath] | None = None,
    weights: StrPath | Sequence[StrPath] | None = None,
    topk: int | None = None,
    sqrt: bool = False,
    threads: int = 1,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
    language: str = ENGLISH,
    word_forms: WordForms = WordForms.WRITTEN,
) -> int:
    """Write a Lucene index with positions, document vectors and raw passages.

    The folder appears when it is complete. `LuceneSparseSearcher.texts` returns the corpus's
    passages, without anything that was added for Lucene.

    Parameters
    ----------
    corpus : a `Corpus`, or any passages of `GivenCorpus`: a list of (docid, text), of mappings, a
        DataFrame; read once; if predictions or weights have to fit, its passages are counted first
    output : the index's folder
    variant : a LuceneVariant
    predictions : of doc2query and docTTTTTquery: file, files or folder (see `predicted_queries`)
    weights : of DeepCT: file or files (see `weighted_texts`)
    topk : how many predicted queries of each passage are appended
    sqrt : DeepCT's later form, term frequency round(100 sqrt(y))
    threads : index in parallel
    overwrite : replace an index that is in `output`, once the new one is complete
    on_progress : called with the number of passages indexed since its last call
    language : of the passages: 'en', 'de', …; the index's record keeps it, and searches follow it
    word_forms : in which form Lucene gets words; the record keeps it if they are united

    Returns the number of passages indexed. Raises InputError for a corpus without text, for
    arguments that do not belong to the variant, and for predictions or weights that do not fit the
    corpus.
    """
    kind = _checked(LuceneVariant(variant), predictions, weights, topk, sqrt)
    check_language(language)
    corpus = corpus_of(corpus, reread=kind is not LuceneVariant.BM25)
    target = Path(output)
    check_target(target, overwrite)

    def docids() -> Iterator[str]:
        for passage in corpus:
            yield passage.docid
        if corpus.skipped:
            raise InputError(
                f'{corpus.skipped} lines of corpus {corpus.name} were skipped, and the lines after '
                "them would get others' additions: fix the corpus"
            )

    additions: Iterable[str] = repeat('')
    if predictions is not None:
        from pyserini_repbert.index.expansions import predicted_queries

        additions = predicted_queries(predictions, docids, topk)
    elif weights is not None:
        from pyserini_repbert.index.expansions import weighted_texts

        additions = weighted_texts(weights, docids, sqrt)
    count = 0
    with atomic_folder(target, LUCENE_FORM if overwrite else None) as folder:
        stream = documents(kind, corpus, additions, partial(word_forms.of, language=language))
        with LuceneWriter(folder, threads, language=language) as writer:
            while batch := list(islice(stream, BATCH)):
                writer.add(batch)
                count += len(batch)
                on_progress(len(batch))
        if count == 0:
            raise InputError(f'corpus {corpus.name} has no passages with text: nothing to index')
        manifest = _manifest(kind, corpus.name, passages=count, sqrt=sqrt)
        manifest['language'] = language
        if word_forms is WordForms.UNITED:
            manifest['word_forms'] = str(word_forms)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + '\n', 'utf-8')
        write_checksums(folder)
    return count


def _manifest(kind: LuceneVariant, corpus: str, passages: int, sqrt: bool) -> dict[str, Any]:
    """The record of an index."""
    manifest: dict[str, Any] = {'variant': kind.value, 'corpus': corpus, 'passages': passages}
    if kind is not LuceneVariant.DEEPCT:
        return manifest
    k1, b = DEEPCT_SQRT_BM25 if sqrt else DEEPCT_BM25
    return {**manifest, 'sqrt': sqrt, 'k1': k1, 'b': b}


def check_target(target: Path, overwrite: bool) -> None:
    """Raises InputError for an output that exists, except for an index that may be overwritten."""
    check_replaced(target, overwrite, MANIFEST, LUCENE_FORM)


def _checked(
    kind: LuceneVariant, predictions: object, weights: object, topk: int | None, sqrt: bool
) -> LuceneVariant:
    """The variant; raises InputError if it lacks an addition, or does not take one."""
    given = {
        'predictions': predictions is not None,
        'weights': weights is not None,
        'topk': topk is not None,
        'sqrt': sqrt,
    }
    for name, is_given in given.items():
        takes = name in _TAKES[kind]
        if takes and name in _NEEDED and not is_given:
            raise InputError(f'variant {kind} needs the {_NEEDED[name]}', parameters=(name,))
        if is_given and not takes:
            problem = (
                f'{name} does not belong to variant {kind}: leave it out, or choose another variant'
            )
            raise InputError(problem, parameters=(name, 'variant'))
    if topk is not None and topk < 1:
        raise InputError(f'topk is {topk}: expected at least 1', parameters=('topk',))
    return kind


def documents(
    kind: LuceneVariant,
    corpus: Iterable[Passage],
    additions: Iterable[str],
    form_of: Callable[[str], str] = str,
) -> Iterator[str]:
    """Anserini's JSON documents; a passage without terms is left out, with a warning.

    Parameters
    ----------
    kind : of the index
    corpus : the passages
    additions : what a variant adds to each, or has in its place
    form_of : turns text into the form that Lucene gets
    """
    variant = LuceneVariant(kind)
    for passage, added in zip(corpus, additions, strict=variant is not LuceneVariant.BM25):
        expanded = f'{passage.text} {added}' if added else passage.text
        contents = form_of(added if variant is LuceneVariant.DEEPCT else expanded)
        if not contents.strip():
            logger.warning(
                "passage '%s' has no terms and is left out: no query could find it", passage.docid
            )
            continue
        document = {'id': passage.docid, 'contents': contents}
        if contents != passage.text:
            document[PASSAGE_FIELD] = passage.text
        yield json.dumps(document, ensure_ascii=False)
