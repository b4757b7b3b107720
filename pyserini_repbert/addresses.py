"""Addresses that users type. Nothing that reaches the network is imported."""

from __future__ import annotations

import re
import urllib.parse

# What addresses of files of this machine begin with.
FILE_SCHEME = 'file:'
_SCHEMES = ('http', 'https')
# White space, control characters, and characters beyond ASCII.
_NOT_IN_ADDRESS = re.compile(r'[^\x21-\x7e]')


def address_problem(address: str) -> str:
    """What is wrong with an address to download from; '' if it is one of http or https."""
    expected = 'expected https:// or http://, a host, and no white space'
    problem = f"'{address}' is not an address: {expected}"
    if _NOT_IN_ADDRESS.search(address):
        return problem
    try:
        parts = urllib.parse.urlsplit(address)
        # Reading the port checks it.
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return problem
    return '' if parts.scheme in _SCHEMES and has_host else problem
