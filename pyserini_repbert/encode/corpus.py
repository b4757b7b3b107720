"""Encoding a corpus into an index folder: streamed, sharded, resumable to the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pyserini_repbert.data.passages import corpus_of
from pyserini_repbert.encode.dense import dense_encoding
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.records import Manifest


def encode_corpus(
    corpus: Iterable[Any],
    encoder: Any,
    output: StrPath,
    *,
    resume: bool = False,
    overwrite: bool = False,
    **storage: Any,
) -> Manifest[Any]:
    """Encode a corpus into the index folder `output`: a bundle of term weights with a
    `TermWeightsEncoder`, otherwise a dense bundle.

    A shard appears only when it is complete. If a run is killed, call it again with `resume`: it
    continues after the last complete shard, and the result has the same bytes. To share the work,
    encode each part of the corpus (`Corpus.part`) into its `part_folder` of `output`, and put them
    together with `finish_parts`.

    Parameters
    ----------
    corpus : a `Corpus`, or any passages of `GivenCorpus`: a list of (docid, text), of mappings, a
        DataFrame
    encoder : a document encoder of RepBERT's form, whose vectors fill a dense bundle; or one with a
        method `encoding`, as `TermWeightsEncoder` has, which says how it fills an index
    output : the index folder
    resume : continue an encoding in `output`, with the same model, settings and corpus
    overwrite : replace the index that is in `output`, once the new one is complete
    storage : further arguments of `dense_encoding`, or of the encoder's `encoding`: such as
        store_text and shard_size
    """
    encoding_of = getattr(encoder, 'encoding', partial(dense_encoding, encoder))
    encoding: BundleEncoding[Any] = encoding_of(**storage)
    return build_bundle(corpus_of(corpus), output, encoding, resume, overwrite)
