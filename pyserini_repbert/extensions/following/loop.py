"""`follow`: sync after each quiet moment."""

from __future__ import annotations

from collections.abc import Callable

from pyserini_repbert.errors import BusyError, PyseriniRepbertError
from pyserini_repbert.extensions.following.moments import QuietMoments


def follow(
    moments: QuietMoments,
    sync: Callable[[], object],
    say: Callable[[Exception], object],
    *,
    must_sync: bool = False,
    tried_again: tuple[type[PyseriniRepbertError], ...] = (BusyError,),
) -> None:
    """Sync after each quiet moment, until the moments end.

    It reports an error, and the collection does not change until the next change of a file.

    Parameters
    ----------
    moments : of the synced folder
    sync : brings the collection up to date
    say : is called with an error of `sync`
    must_sync : whether to sync before the first change, too
    tried_again : errors after which `sync` is called again without a change, and which it reports
        once
    """
    is_said = False
    while not moments.have_ended:
        has_changed = moments.wait()
        if not (has_changed or must_sync) or moments.have_ended:
            continue
        must_sync = False
        try:
            sync()
            is_said = False
        except tried_again as error:
            must_sync = True
            if not is_said:
                say(error)
            is_said = True
        except (PyseriniRepbertError, OSError) as error:
            say(error)
            is_said = False
