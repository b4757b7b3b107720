"""Which hosts a service answers to: a page of another site must not reach a service behind its
reader's browser, by a name that the site lets point to this machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

ANY = '*'


@dataclass(frozen=True)
class Refused:
    """Why a request is refused, with the status of its answer."""

    status: int
    message: str


def is_loopback(name: str) -> bool:
    """Whether a host's name or address is this machine's, whatever a name server says."""
    if name == 'localhost':
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_host(host: str, allowed: Sequence[str] | None) -> Refused | None:
    """The refusal of a request whose header Host names another host; `allowed` is None or has
    '*': any is taken.
    """
    if allowed is None or ANY in allowed or _is_known(_name_in(f'//{host}'), allowed):
        return None
    message = (
        f"this service does not answer to host '{host[:100]}': ask for 127.0.0.1, or name the host "
        "in its setting 'allowed_hosts'"
    )
    return Refused(421, message)


def check_origin(origin: str, allowed: Sequence[str] | None) -> Refused | None:
    """The refusal of a request that a page of another site sends.

    A browser names the site; other clients name none. A site has to be named: '*' does not name
    one.
    """
    if not origin or _is_known(_name_in(origin), allowed or ()):
        return None
    message = (
        f"pages of origin '{origin[:100]}' may not use this address: name their host in the "
        "service's setting 'allowed_hosts'"
    )
    return Refused(403, message)


def _name_in(address: str) -> str:
    """The host of an address, without its port; empty for anything else."""
    try:
        return urlsplit(address).hostname or ''
    except ValueError:
        return ''


def _is_known(name: str, allowed: Sequence[str]) -> bool:
    return is_loopback(name) or name in allowed
