"""The people of a message: who sent it, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import EmailMessage

from pyserini_repbert.collection.files.mail_headers import header

_QUOTES = '\'"'


@dataclass(frozen=True)
class Person:
    """A person, or a list, in a header.

    Attributes
    ----------
    name : '' if there is only an address
    address : '' if there is only a name
    """

    name: str
    address: str = ''

    @property
    def shown_name(self) -> str:
        """The name; the address without one."""
        return self.name or self.address

    def __str__(self) -> str:
        """'Klaus Brandt <kb@example.org>'"""
        return f'{self.name} <{self.address}>' if self.name and self.address else self.shown_name


def people_of(message: EmailMessage, name: str) -> list[Person]:
    """The people in a header, such as 'to', each once; none if it is missing."""
    addresses = getattr(message.get(name), 'addresses', None)
    if addresses is None:
        # A long one, which is not parsed.
        value = header(message, name)
        return [Person(value)] if value else []
    people = []
    for parsed in addresses:
        shown = ' '.join(parsed.display_name.split()).strip(_QUOTES)
        address = ' '.join(parsed.addr_spec.split())
        if '@' not in address:
            # The name of a person in the same organisation.
            shown = shown or address.strip('<>').strip(_QUOTES)
            address = ''
        people.append(Person('' if shown == address else shown, address))
    return list(dict.fromkeys(person for person in people if person.shown_name))
