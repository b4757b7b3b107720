"""The encoder and the language of a new collection, where a user names none: those that fit its
documents.
"""

from __future__ import annotations

import contextlib
from copy import copy
from itertools import islice

from pyserini_repbert.collection.known_words import WordReport
from pyserini_repbert.collection.settings import DEFAULT_ENCODER, Defaults
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.passages import Corpus, OnError
from pyserini_repbert.data.unread_files import UnreadFiles
from pyserini_repbert.errors import MissingResourceError, PyseriniRepbertError
from pyserini_repbert.lucene.guessing import guess_language
from pyserini_repbert.lucene.languages import ENGLISH, LANGUAGES
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.models.tokenizer import WordPieceTokenizer

MULTILINGUAL_ENCODER = 'e5-small'
_DOCUMENTS = 50  # that are looked at
_CHARACTERS = 4000  # of each
# Of the documents, up to which 'minilm' is as good as `MULTILINGUAL_ENCODER`, which knows all:
# regressions/studies/mixed_languages.py.
_UNKNOWN_SHARE = 0.15


def defaults_for(corpus: Corpus, needs_encoder: bool, needs_language: bool) -> Defaults:
    """The encoder and the language that fit the first documents of a corpus.

    The encoder is `MULTILINGUAL_ENCODER` where 'minilm' does not know the words of more than a few
    documents, if it is installed. The language is one with an analyzer. A default that is not
    needed is not looked for.
    """
    if not (needs_encoder or needs_language) or not corpus.can_be_read_again:
        return Defaults()
    texts = _first_texts(corpus)
    encoder = DEFAULT_ENCODER
    if needs_encoder and texts and not _knows(DEFAULT_ENCODER, texts):
        encoder = MULTILINGUAL_ENCODER if is_installed(MULTILINGUAL_ENCODER) else DEFAULT_ENCODER
    language = guess_language(texts) if needs_language else None
    return Defaults(encoder, language if language in LANGUAGES else ENGLISH)


def is_installed(encoder: str) -> bool:
    """Whether an encoder of the catalog is here; it is converted if need be."""
    try:
        open_checkpoint(encoder)
    except MissingResourceError:
        return False
    return True


def _first_texts(corpus: Corpus) -> list[str]:
    """The beginnings of the first documents, up to one that cannot be read."""
    # What is left out is reported when the whole corpus is read.
    sample = copy(corpus)
    sample.on_error = OnError.REFUSE
    sample.unread = UnreadFiles()
    sample.encodings = {}
    texts = []
    with contextlib.suppress(PyseriniRepbertError):
        for document in islice(sample.documents(), _DOCUMENTS):
            texts.append(f'{document.title} {document.text[:_CHARACTERS]}')
    return texts


def _knows(encoder: str, texts: list[str]) -> bool:
    """Whether an encoder of the catalog knows the words of texts, but for a few of these."""
    tokenizer = WordPieceTokenizer.from_folder(open_checkpoint(encoder).folder)
    report = WordReport(encoder, tokenizer.backend)
    for text in texts:
        report.add(Document('', text))
    unknown = report.unknown
    return not unknown.are_most and unknown.documents <= _UNKNOWN_SHARE * unknown.of
