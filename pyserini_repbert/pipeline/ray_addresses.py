"""Addresses of Ray clusters, checked before Ray connects: Ray waits more than a minute for a wrong address."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from pyserini_repbert.errors import ClusterError, InputError

_SECONDS = 5.0  # for a connection, and for an answer on it
# RFC 9113, section 3.4: the preface of an HTTP/2 (and so gRPC) client, with an empty SETTINGS frame
_PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_HEADER = 9  # bytes of a frame's header: its length in three, its type, flags, stream
_SETTINGS = 4
_TLS = 'RAY_USE_TLS'


def known_address(address: str) -> str:
    """`address`, or for 'auto' the HOST:PORT of this machine's cluster; '' if it knows of none."""
    return address if address != 'auto' else os.environ.get('RAY_ADDRESS') or _remembered()


def _remembered() -> str:
    """The address that `ray start` stored on this machine, of a cluster that may be gone; '' if there is none."""
    path = Path(os.environ.get('RAY_TMPDIR', '/tmp'), 'ray', 'ray_current_cluster')
    return path.read_text().strip() if path.is_file() else ''


def check_answers(address: str) -> None:
    """Find out within seconds whether an address is that of a Ray head.

    Raises
    ------
    InputError
        for an address that is not HOST:PORT
    ClusterError
        where no connection is made, or the other side does not greet as a gRPC service
    """
    host, colon, port = address.rpartition(':')
    if not (colon and host and '/' not in host and port.isascii() and port.isdigit() and int(port[:6]) < 65536):
        raise InputError(f"Ray address '{address[:80]}': expected 'auto' or HOST:PORT, '10.0.0.1:6379' say")
    try:
        connection = socket.create_connection((host.strip('[]'), int(port)), _SECONDS)
    except OSError as error:
        raise ClusterError(
            f'nothing answers at Ray address {address} ({error.strerror or error}): start a cluster there with '
            '`ray start --head`, or give the address of its head'
        ) from error
    with connection:
        if os.environ.get(_TLS, '0') in ('', '0') and not _greets(connection):
            raise ClusterError(
                f'what answers at Ray address {address} is not the head of a Ray cluster: give the HOST:PORT that '
                '`ray start --head` printed'
            )


def _greets(connection: socket.socket) -> bool:
    """Whether the other side answers HTTP/2's preface in time with a SETTINGS frame."""
    until, answer = time.monotonic() + _SECONDS, b''
    try:
        connection.sendall(_PREFACE)
        while len(answer) < _HEADER:
            connection.settimeout(max(0.001, until - time.monotonic()))
            part = connection.recv(_HEADER - len(answer))
            if not part:
                return False
            answer += part
    except OSError:  # a timeout is one, too
        return False
    return answer[3] == _SETTINGS
