"""The text of PDF files, by PDFium: what a person reads of each page, in its order.

PDFium (pypdfium2, which the extra `files` brings) goes through two columns one after the other, and
says where a word is cut at the end of a line. `benchmarks/readings.py` compares it with others.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from pyserini_repbert.collection.files.read_file import ReadFile
from pyserini_repbert.collection.files.stated_dates import day_of_pdf

# PDFium's sign for a hyphen at the end of a line, which it joins with the line below.
_CUT = re.compile(r'(\w{1,80})(?:\ufffe|\x02)(\w{1,80})')
_CUT_SIGNS = re.compile(r'[\ufffe\x02]')
_SOFT_HYPHEN = re.compile(r'\xad\s?\n?')
_WORD = re.compile(r'\w+')
_LEAST_WORD = 4  # letters of a word in front of a hyphen; shorter ones are often syllables
_HYPHENATED = re.compile(r'(?<!\w)\w+-\w+')
_LIGATURES = re.compile('[\ufb00-\ufb06]')
_LEAST = 20  # letters of a page on average, below which another library may find more


class NeedsPasswordError(ValueError):
    """A file that is encrypted."""


def read_pdf(path: str) -> ReadFile:
    """The pages of a file, a form feed between them.

    Raises NeedsPasswordError for an encrypted file.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if 'password' in str(error).lower():
            raise NeedsPasswordError('it needs a password') from error
        raise
    stated = document.get_metadata_dict()
    title = str(stated.get('Title', ''))
    day = day_of_pdf(str(stated.get('CreationDate', '')))
    pages = [_text_of_page(page) for page in document]
    text = '\f'.join(pages)
    if _n_letters(text) < _LEAST * len(pages):
        text = _more_text(path, text)
    return ReadFile(_mended(text), title if _is_title(title, text) else '', day)


def _text_of_page(page: Any) -> str:
    text = str(page.get_textpage().get_text_range())
    return text.replace('\r\n', '\n').replace('\f', '\n')


def _is_title(title: str, text: str) -> bool:
    """Whether a title that a file states is one that a person reads in it."""
    words = ' '.join(title.split())
    return bool(words) and words.lower() in ' '.join(text[:10_000].split()).lower()


def _more_text(path: str, text: str) -> str:
    """The text that pdfminer finds, which knows vertical Japanese, if it is more."""
    from pdfminer.high_level import extract_text
    from pdfminer.layout import LAParams

    try:
        other = extract_text(path, laparams=LAParams(detect_vertical=True))
    except Exception:
        # It may raise any error; PDFium has read the file.
        return text
    return other.removesuffix('\f') if _n_letters(other) > 2 * _n_letters(text) else text


def _n_letters(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _mended(text: str) -> str:
    """Text with letters instead of ligatures, and with words joined that a line's end cuts."""
    text = _LIGATURES.sub(_letters, _SOFT_HYPHEN.sub('', text))
    hyphenated = {word.lower() for word in _HYPHENATED.findall(text)}
    words = {word.lower() for word in _WORD.findall(_CUT.sub(' ', text))}

    def keeps_hyphen(first: str, second: str) -> bool:
        """Whether the hyphen between two parts, at a line's end, belongs to the word."""
        # No syllable is a single letter. A capital begins another word: a name, or the foot of a
        # page.
        if len(first) == 1 or (first[-1].islower() and second[0].isupper()):
            return True
        first = first.lower()
        second = second.lower()
        if f'{first}-{second}' in hyphenated:
            return True
        are_words = len(first) >= _LEAST_WORD and {first, second} <= words
        return are_words and first + second not in words

    def joined(match: re.Match[str]) -> str:
        hyphen = '-' if keeps_hyphen(match[1], match[2]) else ''
        return f'{match[1]}{hyphen}{match[2]}'

    return _CUT_SIGNS.sub('', _CUT.sub(joined, text))


def _letters(match: re.Match[str]) -> str:
    return unicodedata.normalize('NFKC', match[0])
