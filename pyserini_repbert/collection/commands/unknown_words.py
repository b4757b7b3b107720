"""What `index sync` and `index add` say of the language of documents.

They say which encoder a new collection has, and which documents it does not know.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.collection.adaptation import has_judgments
from pyserini_repbert.collection.known_words import UnknownDocuments
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.collection.settings import CollectionSettings, SparseKind
from pyserini_repbert.commands.console import printable

_WORDS_ALONE = str(CollectionRanking.BM25)


def say_encoder(index: str, settings: CollectionSettings, is_new: bool) -> None:
    """Say on stderr which encoder and analyzer a collection has, or has from now on."""
    entry = catalog.find('encoders', settings.encoder)
    languages = '' if entry is None else entry.values.get('languages', '')
    knows = f', which knows {languages}' if languages else ''
    has = 'has' if is_new else 'now has'
    print(
        f"{printable(index)} {has} encoder '{printable(settings.encoder)}'{knows}, and Lucene's "
        f"analyzer for language '{settings.language}'",
        file=sys.stderr,
    )


def say_unknown(
    index: str,
    unknown: UnknownDocuments | None,
    settings: CollectionSettings,
    has_new_encoder: bool,
) -> None:
    """Say on stderr which documents have words that the encoder does not know.

    A collection with a new encoder that does not know the words of its documents is searched by
    words alone from now on, unless a user says otherwise. One that was set so for its last encoder
    is searched by all its rankings again, if the new one knows them.

    Parameters
    ----------
    index : the collection's folder
    unknown : those documents; None if there are none
    settings : of the collection
    has_new_encoder : whether the command has made the collection, or has given it another encoder
    """
    are_most = unknown is not None and unknown.are_most
    if has_new_encoder and not are_most:
        _search_vectors_again(index, settings)
    if unknown is None:
        return
    consequence = 'they are found by their words, and not by meaning'
    if are_most and has_new_encoder and _can_be_set(index, settings):
        from pyserini_repbert.collection.judging.own_settings import set_settings

        set_settings(Path(index), {'rankings': (_WORDS_ALONE,)}, is_by_sync=True)
        consequence = f'the collection is searched only by words, until {_go_back(index)}'
    print(f'{printable(str(unknown))}: {consequence}; {_advice(settings)}', file=sys.stderr)


def _search_vectors_again(index: str, settings: CollectionSettings) -> None:
    """End the search by words only, if a sync has set it, and say so."""
    if not has_judgments(Path(index)):
        return
    from pyserini_repbert.collection.judging.own_settings import forget_choice_of_sync

    if forget_choice_of_sync(Path(index)):
        print(
            f'{printable(index)} is searched by meaning again: encoder '
            f"'{printable(settings.encoder)}' knows the words of its documents",
            file=sys.stderr,
        )


def _can_be_set(index: str, settings: CollectionSettings) -> bool:
    """Whether a collection has words to be searched by, and nobody has said how it is searched."""
    from pyserini_repbert.collection.adaptation import judgments_of

    return settings.sparse is SparseKind.BM25 and judgments_of(Path(index)).in_use() is None


def say_words_alone(index: str) -> None:
    """Say on stderr that a collection is still searched only by words, if it was set so."""
    if not has_judgments(Path(index)):
        return
    from pyserini_repbert.collection.judging.own_settings import own_settings

    for setting in own_settings(Path(index)):
        if (setting.name, setting.value) == ('rankings', _WORDS_ALONE) and setting.source == 'set':
            print(
                f'{printable(index)} is still searched only by words, until {_go_back(index)}',
                file=sys.stderr,
            )


def _go_back(index: str) -> str:
    return f'`index settings --index {printable(index)} --go-back`'


def _advice(settings: CollectionSettings) -> str:
    """Which encoder to take."""
    from pyserini_repbert.collection.defaults import MULTILINGUAL_ENCODER, is_installed

    if settings.encoder == MULTILINGUAL_ENCODER:
        return 'name an encoder that knows their language'
    steps = f'`index sync` with `--encoder {MULTILINGUAL_ENCODER} --rebuild`'
    if not is_installed(MULTILINGUAL_ENCODER):
        install = catalog.install_command(catalog.get('encoders', MULTILINGUAL_ENCODER))
        steps = f'{install}, then {steps}'
    return f'encoder {MULTILINGUAL_ENCODER} knows about 100 languages: {steps}'
