"""How a collection is searched: what it learned from people's judgments, and what a user set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert import catalog
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.collection.store import FOREVER
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.search.adapted_form import ADAPTED

if TYPE_CHECKING:
    from pyserini_repbert.collection.judgments import JudgmentStore, Learning

JUDGMENTS = 'judgments.sqlite'
# The folder inside the collection's folder that holds what was learned.
ADAPTATIONS = 'adapted'
LEARNING_LOCK = '.learning.lock'
_FOLDER = re.compile(rf'{ADAPTATIONS}/[0-9]{{6,}}')
# A reranker that a collection may name: a folder or a class would be somebody else's choice.
_STAGE = re.compile(r'([^@:]+)@([0-9]{1,3})')
MOST_RERANKED = 100
# It is time to learn again when so great a part of the documents, or of the judgments, is new.
_NEW_DOCUMENTS = 1 / 10
_NEW_JUDGMENTS = 1 / 4


def judgments_of(folder: Path) -> JudgmentStore:
    """The judgments of people in a collection."""
    from pyserini_repbert.collection.judgments import JudgmentStore

    return JudgmentStore(folder / JUDGMENTS)


def has_judgments(folder: Path) -> bool:
    """Whether people have judged in a collection, or have set how it is searched."""
    return (folder / JUDGMENTS).is_file()


def adaptation_in_use(folder: Path, settings: CollectionSettings) -> Path | None:
    """The folder of what a collection learned or a person set, if it is searched so; None if not.

    If it was learned for another encoder or sparse ranking, it is not used. Raises the errors of
    `learned_folder`.
    """
    if not has_judgments(folder):
        return None
    learning = judgments_of(folder).in_use()
    if learning is None or not fits_models(learning, settings):
        return None
    return learned_folder(folder, learning)


def fits_models(learning: Learning, settings: CollectionSettings) -> bool:
    """Whether a collection has the models that a learning is for; settings alone fit all."""
    return learning.encoder_weights in ('', settings.models_sha256)


def can_be_stored(stage: str) -> bool:
    """Whether a collection may name a reranker, as NAME@K: one of the catalog, of at most
    `MOST_RERANKED` candidates.
    """
    match = _STAGE.fullmatch(stage)
    if match is None or catalog.find('rerankers', match[1]) is None:
        return False
    return 1 <= int(match[2]) <= MOST_RERANKED


def learned_folder(folder: Path, learning: Learning) -> Path:
    """The folder of what a collection learned.

    Raises DamagedFileError if the file of judgments names a folder that is not the
    collection's, or if that folder names a ranking of another index, or a reranker that
    `can_be_stored` does not allow: both can be code.
    """
    if not _FOLDER.fullmatch(learning.folder):
        raise DamagedFileError(
            f"{folder / JUDGMENTS} names the folder '{learning.folder}', expected {ADAPTATIONS}/ "
            'and a number: restore it from a copy, or search without what was learned',
            parameters=('adapted=none',),
        )
    from pyserini_repbert.search.adapted_folder import read_description

    learned = folder / learning.folder
    adapted = read_description(learned)
    refused = [stage for stage in adapted.stages if not can_be_stored(stage)]
    for name in (*refused, *adapted.sparse):
        raise DamagedFileError(
            f"{learned / ADAPTED} names '{name}', which no collection learns: do not trust it, or "
            'search without what was learned',
            parameters=('adapted=none',),
        )
    return learned


def why_learn_again(generation: Generation, learning: Learning) -> str | None:
    """A sentence that says what has changed since a learning; None if that is little."""
    if learning.encoder_weights != generation.settings.models_sha256:
        return 'The collection has another encoder or sparse ranking since it learned: learn again.'
    ((new_documents,),) = generation.select(
        # It has only the key, which is read without any text; few versions have ended.
        f'SELECT (SELECT COUNT(*) FROM texts WHERE since > {learning.generation:d} '
        'AND since <= :generation) - (SELECT COUNT(*) FROM texts WHERE until <= :generation '
        f'AND until < {FOREVER} AND since > {learning.generation:d})'
    )
    if new_documents >= _NEW_DOCUMENTS * len(generation):
        return (
            f'{new_documents} of {len(generation)} documents are new or changed since the '
            'collection learned: it is time to learn again.'
        )
    judged = judgments_of(generation.folder).judgments()
    new_judgments = sum(judgment.judged > learning.learned for judgment in judged)
    if new_judgments >= _NEW_JUDGMENTS * len(judged):
        return (
            f'{new_judgments} of {len(judged)} judgments are new since the collection learned: it '
            'is time to learn again.'
        )
    return None
