"""Words have one form in which they are compared, and are marked where they were written."""

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.data.snippets import cut_around, find_words, mark_words
from pyserini_repbert.data.united_texts import unite_with_places
from pyserini_repbert.data.word_forms import WordForms, unite, unite_value

# Written otherwise, and the one form.
FORMS = {
    'NFD': ('cre\u0300me', 'crème'),
    'NFD with a mark of no width': ('cre\u200d\u0300me', 'crème'),
    'soft hyphen': ('Kran\u00adken', 'Kranken'),
    'zero-width space': ('long\u200bword', 'longword'),
    'joiners': ('a\u200db\u200cc', 'abc'),
    'direction': ('\u200eab\u200f \u202bcd\u202c \u2067ef\u2069', 'ab cd ef'),
    'byte order mark': ('\ufeffab', 'ab'),
    'full width': ('Ｓｅｒｖｅｒ\u3000２０２４', 'Server 2024'),
    'half width': ('ｶﾞｽ', 'ガス'),
    'ligatures': ('eﬃcient ﬁle', 'efficient file'),
    'curly apostrophes': ('don’t ‘so’ п’ять пʼять', "don't 'so' п'ять п'ять"),
    'curly quotation marks': ('“so” „so”', '"so" "so"'),
    'hyphens': ('e‑mail e‐mail', 'e-mail e-mail'),
    'no-break space': ('10\u00a0km', '10 km'),
    'Hangul': ('\u1112\u1161\u11ab', '한'),
    'Arabic presentation forms': ('\ufedf\ufee0', 'لل'),
    'Thai keeps its words apart': ('ไทย\u200bดี', 'ไทย ดี'),
    'emoji': ('👩\u200d🔬\ufe0f', '👩🔬'),
}


@pytest.mark.parametrize('name', FORMS)
def test_one_form(name):
    written, form = FORMS[name]
    assert unite(written) == form
    assert unite(form) == form
    assert WordForms.UNITED.of(written) == form
    assert WordForms.WRITTEN.of(written) == written


def test_persian_keeps_what_its_analyzer_makes_a_space_of():
    written = 'می\u200cخواهم\u200e'
    assert unite(written, 'fa') == 'می\u200cخواهم'
    assert unite(written) == 'میخواهم'


def test_plain_text_stays_as_it_is():
    text = "Don't e-mail 10 km.\n" * 100
    assert unite(text) is text


SIGNS = st.one_of(
    st.sampled_from([*"ae f1-\n'", *'\u0301\u0308\u00ad\u200b\u200c\u200d\u200e\ufeffﬁＡ’ｶﾞ']),
    st.sampled_from([*'กข한\u1112\u1161\u11abㄱㅏ\u09c7\u09be\u00b4ﷺ😀\ufe0f']),
    st.characters(exclude_categories=['Cs']),
)


@settings(max_examples=300)
@given(st.text(SIGNS, max_size=30))
def test_the_parts_make_the_form(text):
    united = unite_with_places(text)
    assert united.form == unite(text)
    if united.parts:
        ends = [*(part.start for part in united.parts[1:]), len(united.form)]
        pieces = []
        for part, end in zip(united.parts, ends, strict=True):
            written = text[part.written : part.written + part.length]
            pieces.append(united.form[part.start : end])
            assert unite(written) == pieces[-1] or written == '\u200b'
        assert ''.join(pieces) == united.form
    for start in range(len(united.form)):
        begin, end = united.written_span(start, len(united.form))
        assert 0 <= begin < end <= len(text)


@given(st.text(SIGNS, max_size=20))
def test_a_value_is_compared_with_itself(text):
    assert unite_value(unite_value(text)) == unite_value(text)
    for form in ('NFC', 'NFD'):
        assert unite_value(unicodedata.normalize(form, text)) == unite_value(text)


@pytest.mark.parametrize(
    'name', ['NFD', 'soft hyphen', 'full width', 'ligatures', 'zero-width space']
)
def test_words_are_marked_as_they_were_written(name):
    written, form = FORMS[name]
    for query, text in [(form, f'The {written}, here'), (written, f'The {form}, here')]:
        parts = mark_words(query, text)
        assert ''.join(part.text for part in parts) == text
        shown = ' '.join(part.text for part in parts if part.match)
        assert shown == ' '.join(re.split(r'\s+', text[4:-6]))


def test_a_text_is_cut_around_a_word_as_it_was_written():
    text = 'no ' * 100 + 'Kran\u00adken\u00adver\u00adsi\u00adche\u00adrung ' + 'no ' * 100
    assert 'Kran\u00adken\u00adver' in cut_around('krankenversicherung', text, 60)


def test_marks_within_a_word_stay_together():
    (match,) = find_words('café', 'un cafe\u0301!')
    assert (match.start, match.end) == (3, 8)


def test_many_marks_of_one_letter_take_time_that_grows_with_their_number():
    """NFKC alone takes five seconds for these, and nine minutes for ten times as many."""
    marks = '\u0300\u0316' * 50_000
    began = time.process_time()
    united = unite_with_places(f'a{marks} tulip')
    assert unite_value(marks)
    assert time.process_time() - began < 2
    assert united.form == unite(f'a{marks} tulip')
    assert united.written_span(len(united.form) - 5, len(united.form)) == (100_002, 100_007)


def test_as_many_marks_as_a_word_may_have_are_in_one_order():
    marks = '\u0300\u0316' * 15
    assert unite(f'a{marks}') == unicodedata.normalize('NFKC', f'a{marks}')


def test_two_words_of_one_sign_are_marked_once():
    """'½' is '1' and '2': it was shown twice."""
    text = 'Add ½ cup, or ½kg.'
    parts = mark_words('1 2 cup 2kg', text)
    assert ''.join(part.text for part in parts) == text
    assert [part.text for part in parts if part.match] == ['½', 'cup', '½kg']
