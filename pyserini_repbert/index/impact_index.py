"""Term weights as a Lucene index of impacts: first-stage retrieval without dense search.

A weight becomes an impact, an integer from 1 to `LEVELS`, in steps of one size for the whole index;
weights below half a step, negative ones included, are left out. While indexing, Anserini repeats a
token as often as its impact, so fewer levels and stronger pruning make indexing faster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath, atomic_folder
from pyserini_repbert.index.lucene import check_target
from pyserini_repbert.index.records import MODEL_DIGESTS
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.lucene.index_record import EPIC_IMPACT, MANIFEST
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.lucene_form import LUCENE_FORM
from pyserini_repbert.lucene.searcher import PASSAGE_FIELD
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint

LEVELS = 255
BATCH = 200  # documents handed to Java at a time


def vocabulary_of(bundle: TermWeightsBundle, encoder: str | None = None) -> list[str]:
    """The names of a bundle's terms, from the checkpoint that it names or from `encoder`.

    No weights are read.
    """
    settings = bundle.settings
    name = encoder or settings.encoder
    tokenizer = open_checkpoint(name, 'rerankers').tokenizer()
    tokens = tokenizer.tokens(range(settings.vocabulary))
    if hashlib.sha256('\n'.join(tokens).encode()).hexdigest() != settings.vocabulary_sha256:
        raise MismatchError(
            f"index {bundle.folder} does not have the vocabulary of '{name}': give the encoder it "
            f"was built with ('{settings.encoder}')"
        )
    return tokens


def impacts(weights: NDArray[np.float32], step: float) -> NDArray[np.int64]:
    """Weights in whole steps, at least 0: int64 of the same shape."""
    levels: NDArray[np.int64] = np.maximum(np.rint(weights / step), 0).astype(np.int64)
    return levels


def build_impact_index(
    bundle: TermWeightsBundle,
    tokens: Sequence[str],
    output: StrPath,
    threads: int = 1,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> int:
    """Write an Anserini impact index of a bundle's vectors; the folder appears when it is complete.

    Passage texts are stored where the bundle stores them. `search.EpicImpactSearcher` searches the
    index, and Pyserini's LuceneImpactSearcher with `search.EpicImpactQueryEncoder`.

    Parameters
    ----------
    bundle : the vectors
    tokens : the names of the terms, from `vocabulary_of`
    output : the index's folder
    threads : index in parallel
    overwrite : replace an index that is in `output`, once the new one is complete
    on_progress : called with the number of passages indexed since its last call

    Returns the number of passages indexed.
    """
    target = Path(output)
    check_target(target, overwrite)
    greatest = max(float(vectors.weights.max(initial=0)) for _, vectors in bundle.vectors())
    if greatest <= 0:
        raise InputError(f'index {bundle.folder} has no weight above 0: nothing to index')
    step = greatest / LEVELS
    with atomic_folder(target, LUCENE_FORM if overwrite else None) as folder:
        documents = _documents(bundle, tokens, step)
        with LuceneWriter(folder, threads, impact=True) as writer:
            while batch := list(islice(documents, BATCH)):
                writer.add(batch)
                on_progress(len(batch))
        settings = bundle.settings
        manifest = {
            'variant': EPIC_IMPACT,
            'encoder': settings.encoder,
            **{name: getattr(settings, name) for name in MODEL_DIGESTS},
            'vocabulary_sha256': settings.vocabulary_sha256,
            'prune': settings.prune,
            'step': step,
            'passages': len(bundle),
        }
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + '\n', 'utf-8')
        write_checksums(folder)
    return len(bundle)


def _documents(bundle: TermWeightsBundle, tokens: Sequence[str], step: float) -> Iterator[str]:
    for first, vectors in bundle.vectors(BATCH):
        docids = bundle.docids(np.arange(first, first + len(vectors)))
        texts = bundle.texts(docids)
        for docid, text, vector in zip(docids, texts, vectors, strict=True):
            levels = impacts(vector.weights, step)
            kept = levels > 0
            terms = [tokens[term] for term in vector.terms[kept].tolist()]
            impact_of = dict(zip(terms, levels[kept].tolist(), strict=True))
            document = {'id': docid, 'contents': '', 'vector': impact_of}
            if text is not None:
                document[PASSAGE_FIELD] = text
            yield json.dumps(document, ensure_ascii=False)
