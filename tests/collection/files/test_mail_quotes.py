"""A reply in a mailbox is without its quote of a mail that the mailbox has."""

import pytest

from pyserini_repbert.collection.files.mail_quotes import without_quote
from pyserini_repbert.names.corpora import open_corpus


@pytest.mark.parametrize(
    'quote',
    [
        'On Mon, 3 Mar 2025 at 09:14, Mara Quinn <mara@post.example> wrote:\n> Hi,\n>\n> > wet',
        'On Mon, 3 Mar 2025 at 09:14, Mara\nQuinn <mara@post.example>\nwrote:\n\n> wet\n\n> dry\n',
        'Am 03.03.2025 um 09:14 schrieb Mara Quinn:\n> nass',
        'Le lun. 3 mars 2025 à 09:14, Mara <mara@post.example> a écrit :\n> mouillé',
        '> no line above',
        '-----Original Message-----\nFrom: Mara\nSent: 3 March 2025\n\nwet\n> older',
        '----- Ursprüngliche Nachricht -----\nVon: Mara\n\nnass',
        'From: Mara\nSent: Monday, 3 March 2025\nTo: Tom\nSubject: Roof\n\nwet',
        'Von: Mara\nAn: Tom\nGesendet: Montag, 3. März 2025\n\nnass',
    ],
)
def test_quotes_at_the_end(quote):
    own = 'The felt is gone.\n\nI wrote it down: three sheets.\nTom'
    assert without_quote(f'{own}\n\n{quote}') == own


@pytest.mark.parametrize(
    'text',
    [
        '',
        'no quote',
        '> only a quote\n> of two lines',
        # Answers below what they answer.
        '> Is it wet?\n\nYes.',
        'Hi,\n\n> Is it wet?\n\nYes.\n-- \nTom',
        'From: here to there is a mile.\nThe date: unknown.',
        'On Monday she wrote:\n\nnothing',
    ],
)
def test_texts_that_stay(text):
    assert without_quote(text) == text


def message(identifier, body, answered=''):
    reply = f'In-Reply-To: <{answered}>\n' if answered else ''
    return (
        f'From x@y Thu May  1 10:00:00 2025\nFrom: Ada <a@x>\nSubject: Roof\n{reply}'
        f'Message-ID: <{identifier}>\n\n{body}\n\n'
    )


def test_replies_of_a_mailbox(tmp_path):
    """A question about a mail found the replies that quote it."""
    messages = [
        message('3', 'Green.\n\nAda wrote:\n> How?\n>> The key is in the porch.', '2'),
        message('2', 'How?\n\nAda wrote:\n> The key is in the porch.', '1'),
        message('1', 'The key is in the porch.'),
        # The mail that it answers is nowhere else.
        message('5', 'Fine.\n\nAda wrote:\n> Saturday at nine.', '4'),
        message('6', 'Odd.\n\nAda wrote:\n> Odd.', '6'),
    ]
    path = tmp_path / 'all.mbox'
    path.write_text(''.join(messages))
    texts = {document.docid: document.text for document in open_corpus(path).documents()}
    assert texts == {
        '3': 'Green.',
        '2': 'How?',
        '1': 'The key is in the porch.',
        '5': 'Fine.\n\nAda wrote:\n> Saturday at nine.',
        '6': 'Odd.\n\nAda wrote:\n> Odd.',
    }
