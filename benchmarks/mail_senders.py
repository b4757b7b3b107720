"""Where the sender of a mail should stand: nowhere, in the first line of its text, in its title.

24 mails in English and the same in German, each with a question about its content and one that
names its sender; the questions were written before this was measured (mails_en.yaml,
mails_de.yaml). A collection is made for each place, as `index sync` makes it, and searched by the
encoder, by words and by both.

    python benchmarks/mail_senders.py --with-pages
    python benchmarks/mail_senders.py --encoder e5-small --language de
"""

import argparse
import tempfile
from email.utils import getaddresses
from pathlib import Path

import yaml
from headings import p_value, read_pages
from numpy import array

from pyserini_repbert.collection import Collection, Document

DEPTH = 10


def names_of(addresses):
    return ', '.join(name or address for name, address in getaddresses([addresses]))


def document_of(mail, place):
    """The document of a mail, with its sender in a place."""
    sender = names_of(mail['from'])
    title = mail['subject']
    text = mail['body']
    if place == 'first line':
        text = f'From: {sender}\n\n{text}'
    elif place == 'first line, with recipients':
        text = f'From: {sender}\nTo: {names_of(mail["to"])}\n\n{text}'
    elif place == 'title':
        title = f'{sender}: {title}'
    return Document(mail['id'], text, title)


PLACES = ('nowhere', 'first line', 'first line, with recipients', 'title')


def reciprocal_ranks(searcher, mails, kind):
    """1 / rank of the right mail for each question of a kind, 0 beyond DEPTH."""
    values = []
    for mail in mails:
        docids = [hit.docid for hit in searcher.search(mail[kind], DEPTH)]
        values.append(1 / (docids.index(mail['id']) + 1) if mail['id'] in docids else 0.0)
    return array(values)


def measure(place, mails, others, options):
    """The reciprocal ranks of each ranking and kind of question."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.open(
            Path(folder) / 'index', encoder=options.encoder, language=options.language
        )
        with collection:
            collection.sync([document_of(mail, place) for mail in mails] + others, source='mails')
            rankings = {
                'both': collection.searcher(),
                'encoder': collection.searcher(rankings=('dense',)),
                'words': collection.searcher(rankings=('bm25',)),
            }
            for ranking, searcher in rankings.items():
                for kind in ('content', 'sender'):
                    found[ranking, kind] = reciprocal_ranks(searcher, mails, kind)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--language', default='en', choices=('en', 'de'))
    parser.add_argument('--with-pages', action='store_true', help='the pages of docs/ beside them')
    options = parser.parse_args()
    path = Path(__file__).with_name(f'mails_{options.language}.yaml')
    mails = yaml.safe_load(path.read_text(encoding='utf-8'))
    others = read_pages() if options.with_pages else []
    by_place = {place: measure(place, mails, others, options) for place in PLACES}
    for key in by_place['nowhere']:
        for place, found in by_place.items():
            differences = found[key] - by_place['nowhere'][key]
            better = sum(differences > 0)
            worse = sum(differences < 0)
            print(
                f'{options.encoder}, {options.language}, {", ".join(key)}: {place}: '
                f'MRR@10 {found[key].mean():.3f}, better {better}, worse {worse}, '
                f'p {p_value(differences):.3f}'
            )


if __name__ == '__main__':
    main()
