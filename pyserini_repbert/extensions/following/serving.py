"""The setting of a service's index: `follow`, a folder or a file with which a collection is kept in
step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyserini_repbert.errors import BusyError, InputError, LostCollectionError
from pyserini_repbert.serve.service_parts import RunningPart, ServicePart
from pyserini_repbert.serve.setting_values import PathOrName

if TYPE_CHECKING:
    from pyserini_repbert.extensions.following.moments import QuietMoments
    from pyserini_repbert.serve.service import Service
    from pyserini_repbert.serve.settings import ServeSettings
    from pyserini_repbert.serve.writes import CollectionWriter, WriteJob

logger = logging.getLogger(__name__)

_SETTING = 'follow'
# Seconds between two looks at whether the service stops while a sync runs.
_CHECK_EVERY = 0.25


@dataclass(frozen=True)
class FollowedCorpus:
    """What an index of the settings follows.

    Attributes
    ----------
    alias : of the index
    corpus : the folder or the file
    """

    alias: str
    corpus: Path


class FollowingOfServices(ServicePart):
    """Keeps collections of a service in step with folders."""

    index_settings: ClassVar[Mapping[str, tuple[Any, Any]]] = {_SETTING: (PathOrName | None, None)}

    def check(self, settings: ServeSettings, n_processes: int) -> None:
        for followed in _followed(settings):
            if n_processes > 1:
                raise InputError(
                    f"index '{followed.alias}' follows a folder: one process serves it",
                    parameters=('workers',),
                )

    def start(self, service: Service) -> RunningPart | None:
        """As in `ServicePart`. Raises InputError for an index that is not a collection, or a corpus
        that is not a folder or a file of this machine.
        """
        from pyserini_repbert.extensions.following.moments import QuietMoments

        # All are watched before one is synced, because the service ends if one cannot be watched.
        watched: dict[str, QuietMoments] = {}
        for followed in _followed(service.settings):
            if not service.served[followed.alias].index.kind.is_writable:
                raise InputError(
                    f"index '{followed.alias}' is not a collection: only collections follow a "
                    'folder'
                )
            watched[followed.alias] = QuietMoments(followed.corpus)
        followers = [
            CorpusFollower(alias, moments, service.writer_of(alias))
            for alias, moments in watched.items()
        ]
        return CorpusFollowers(followers) if followers else None


class CorpusFollowers(RunningPart):
    """All that a service follows."""

    def __init__(self, followers: list[CorpusFollower]) -> None:
        self._followers = followers

    def stop(self) -> None:
        for follower in self._followers:
            follower.stop()


class CorpusFollower:
    """Keeps one collection in step, in a thread, until it is stopped.

    It syncs once when it starts: the files may have changed while nobody looked.

    Parameters
    ----------
    alias : of the collection
    moments : of the folder or the file
    writer : writes into the collection, one edit after the other
    """

    def __init__(self, alias: str, moments: QuietMoments, writer: CollectionWriter) -> None:
        self._alias = alias
        self._moments = moments
        self._writer = writer
        self._thread = threading.Thread(target=self._work, name=f'follow {alias}', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End. A running sync is abandoned; what it has encoded is kept for the next one."""
        self._moments.end()
        self._thread.join()

    def _work(self) -> None:
        from pyserini_repbert.extensions.following.loop import follow
        from pyserini_repbert.serve.refusals import OverloadedError, TooLateError

        tried_again = (BusyError, LostCollectionError, OverloadedError, TooLateError)
        follow(self._moments, self._sync, self._say, must_sync=True, tried_again=tried_again)

    def _sync(self) -> None:
        """Sync once. Raises the error of the sync."""
        from pyserini_repbert.serve.writes import Edit

        job = self._writer.submit(Edit(source=str(self._moments.corpus)))
        self._wait_for(job)
        if job.error is not None and not self._moments.have_ended:
            raise job.error

    def _wait_for(self, job: WriteJob) -> None:
        """Wait until a sync has ended, or the service stops."""
        while not job.ended.wait(_CHECK_EVERY):
            if self._moments.have_ended:
                self._writer.give_up(job)
                return

    def _say(self, error: Exception) -> None:
        """Log an error in one line."""
        reason = ' '.join(str(error).split())
        logger.warning(
            "index '%s' is not in step with %s: %s", self._alias, self._moments.corpus, reason
        )


def _followed(settings: ServeSettings) -> Iterator[FollowedCorpus]:
    """What the indexes of a service follow."""
    for alias, index in settings.indexes.items():
        corpus = getattr(index, _SETTING)
        if corpus is not None:
            yield FollowedCorpus(alias, Path(corpus))


IN_SERVICES = FollowingOfServices()
