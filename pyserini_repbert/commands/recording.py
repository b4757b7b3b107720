"""The record that a command writes beside its output."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyserini_repbert.record import Input, Model

# Options that are not settings: how a command runs, what else it writes, and checkpoints, which have their own entry.
_LEFT_OUT = frozenset(
    'command action shard shard_id shard_num finish quiet ray resume overwrite offline download build advised tag '
    'query output provenance cost pairs csv folder to_faiss install logs encoder model precision'.split()
)


def write(
    options: argparse.Namespace,
    output: str,
    roles: Iterable[str],
    models: Iterable[Model] = (),
    inputs: Sequence[Input] = (),
    rankers: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the record of the command that has written `output`; does nothing for a pipe or a device.

    Parameters
    ----------
    options : as parsed, with defaults that depend on other values filled in
    roles : options that name inputs
    models : the checkpoints that ran
    inputs : inputs whose files cannot be found from their names; they replace options of the same role
    rankers : what identifies rankers of the user's own
    """
    from pyserini_repbert.record import Record, checksum, decisive, plain, versions, write_record

    if (sha256 := checksum(output)) is None:
        return
    known = {own.role for own in inputs}
    found = [*inputs, *(own for role in roles if role not in known for own in _inputs(options, role))]
    named = {*_LEFT_OUT, *known, *roles}
    settings = {name: plain(value) for name, value in sorted(vars(options).items()) if name not in named}
    settings |= {'rankers': plain(rankers)} if rankers else {}
    record = Record(decisive(options.command), sha256, tuple(models), tuple(found), settings, versions())
    write_record(output, record)


def _inputs(options: argparse.Namespace, role: str) -> Iterator[Input]:
    from pyserini_repbert.names.inputs import input_of

    given = getattr(options, role, None) or []
    for name in [given] if isinstance(given, str) else given:
        yield input_of(role, name)
