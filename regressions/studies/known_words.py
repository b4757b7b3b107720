"""How many of the words of documents an encoder knows: the table of `docs/guides/languages.md`.

    python regressions/studies/known_words.py --encoder minilm --corpora de/passages.jsonl notes
    python regressions/studies/known_words.py --encoder e5-small --man usr/share/man/de

Corpora are as of `index sync --corpus`. Of `--man`, up to 60 pages of man in each folder are read,
by their names, in order, without their marks, each up to 6,000 characters.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyserini_repbert.collection.known_words import FEWEST_WORDS, KnownWords, WordCounts
from pyserini_repbert.collection.passages import cutting_tokenizer
from pyserini_repbert.encode import document_encoder
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.names.corpora import open_corpus

_PAGES = 60
_CHARACTERS = 6000
_COMMENT = re.compile(r'^[.\']\\".*$', re.MULTILINE)
_REQUEST = re.compile(r'^\.\w+ ?', re.MULTILINE)
_ESCAPE = re.compile(r'\\f[A-Z]|\\&|\\\(\w\w|\\\[\w+\]')


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--encoder', required=True)
    parser.add_argument('--corpora', nargs='*', default=[])
    parser.add_argument('--fields', nargs='*')
    parser.add_argument('--man', nargs='*', type=Path, default=[])
    options = parser.parse_args()
    known_words = KnownWords(cutting_tokenizer(document_encoder(options.encoder)))
    rows = []
    for name in options.corpora:
        texts = (
            document.text for document in open_corpus(name, fields=options.fields or ()).documents()
        )
        rows.append([name, *cells(known_words, texts)])
    for folder in options.man:
        rows.append([str(folder), *cells(known_words, man_pages(folder))])
    print(markdown(['texts', 'documents', 'words known', 'documents not known'], rows))


def cells(known_words: KnownWords, texts: Iterable[str]) -> list[str]:
    """How many documents have enough words, the share of known words, and that of documents that
    are not known.
    """
    total = WordCounts(0, 0)
    n_judged = 0
    n_unknown = 0
    for text in texts:
        counts = known_words.count(text)
        if counts.words < FEWEST_WORDS:
            continue
        total += counts
        n_judged += 1
        n_unknown += not counts.are_known
    if not n_judged:
        return ['0', '–', '–']
    return [str(n_judged), f'{total.known / total.words:.2f}', f'{n_unknown / n_judged:.3f}']


def man_pages(folder: Path) -> Iterator[str]:
    """The texts of pages of man."""
    n_pages = 0
    for path in sorted(folder.rglob('*.gz')):
        if n_pages == _PAGES:
            return
        text = gzip.decompress(path.read_bytes()).decode('utf-8', 'replace')
        text = _ESCAPE.sub('', _REQUEST.sub('', _COMMENT.sub('', text))).replace('\\-', '-')
        if len(text) > 600:
            n_pages += 1
            yield text[:_CHARACTERS]


if __name__ == '__main__':
    main()
