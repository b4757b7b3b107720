"""Fields whose values have several types: each type is searched by its own reading.

The oracle is the definition, value by value. A date stands for all dates that begin with it.
"""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.errors import InputError

NUMBERS = [2019, 2020, 2021, 2021.5, -3, 20.5]
DATES = ['2019-12-31', '2020-01-01', '2021-03-05T10:00', '2024-06-30', '2024-12-31T23:59:59Z']
# The last is not a date: its t is small.
TEXTS = ['2021', '2021.0', 'spring 2021', '2021-03', 'soon', True, '2021-03-05t10:00']
LISTS = [[2020, '2024-06-30'], [2019, '2021'], ['2019-12-31', 2021.5, 'soon'], []]
FIELDS = {
    'number_date': NUMBERS + DATES,
    'number_text': NUMBERS + TEXTS,
    'date_text': DATES + TEXTS,
    'all': NUMBERS + DATES + TEXTS + LISTS,
}
NUMBER_BOUNDS = ['2020', '2021', '2024', '20.5', '-4', '1e9']
DATE_BOUNDS = ['2020', '2021', '2021-03', '2021-03-05', '2021-03-05T09:00', '2024', '2024-12-31']
BOUNDS = [None, *NUMBER_BOUNDS, *DATE_BOUNDS, '2_020', 'soon']


def documents():
    for field, values in FIELDS.items():
        for number, value in enumerate(values):
            yield {'id': f'{field}/{number}', 'text': '', field: value}


@pytest.fixture
def generation(open_collection):
    with open_collection() as collection:
        collection.sync(documents())
        yield collection.generation


def matching(generation, text):
    mask = DocumentFilter(text).mask(generation)
    return sorted(generation.docids(np.flatnonzero(mask)))


def expected(field, matches):
    docids = []
    for number, value in enumerate(FIELDS[field]):
        values = value if isinstance(value, list) else [value]
        if any(matches(item) for item in values):
            docids.append(f'{field}/{number}')
    return sorted(docids)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_date(value):
    return value in DATES


def number_between(value, low, high, has_low, has_high):
    is_above = low is None or value > float(low) or (has_low and value == float(low))
    is_below = high is None or value < float(high) or (has_high and value == float(high))
    return is_above and is_below


def date_between(value, low, high, has_low, has_high):
    is_above = True
    if low is not None:
        is_above = value > low and (has_low or not value.startswith(low))
        is_above = is_above or (has_low and value == low)
    is_below = True
    if high is not None:
        is_below = value < high or (has_high and value.startswith(high))
    return is_above and is_below


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(list(FIELDS)),
    st.sampled_from(BOUNDS),
    st.sampled_from(BOUNDS),
    st.booleans(),
    st.booleans(),
)
def test_a_range_over_several_types(generation, field, low, high, has_low, has_high):
    given_bounds = [bound for bound in (low, high) if bound is not None]
    are_numbers = all(bound in NUMBER_BOUNDS for bound in given_bounds)
    are_dates = all(bound in DATE_BOUNDS for bound in given_bounds)

    def matches(value):
        if not given_bounds:
            return True
        if is_number(value):
            return are_numbers and number_between(value, low, high, has_low, has_high)
        if is_date(value):
            return are_dates and date_between(value, low, high, has_low, has_high)
        return False

    begin = '[' if has_low else '{'
    end = ']' if has_high else '}'
    text = f'{field}:{begin}{low or "*"} TO {high or "*"}{end}'
    has_numbers = 'number' in field or field == 'all'
    has_dates = 'date' in field or field == 'all'
    if given_bounds and not (are_numbers and has_numbers) and not (are_dates and has_dates):
        with pytest.raises(InputError, match='numbers, or ISO dates'):
            matching(generation, text)
    else:
        assert matching(generation, text) == expected(field, matches)


def test_a_term_over_several_types(generation):
    """A term is a whole value: a number by its amount, a text as written; a year, a month or a day
    is all dates in it.
    """
    texts = ['2021', '2020', '2021.5', '2021-03-05', '2024-06-30', 'soon', 'SOON', 'true']
    for field, text in itertools.product(FIELDS, texts):

        def is_number_of(value, text=text):
            return is_number(value) and text[:4].isdigit() and str(value) == text

        def is_text_of(value, text=text):
            is_within = is_date(value) and len(text) in (4, 10) and value.startswith(text)
            is_written = not is_number(value) and str(value).casefold() == text.casefold()
            return is_within or is_written

        as_number = expected(field, is_number_of)
        as_text = expected(field, is_text_of)
        assert matching(generation, f'{field}:{text}') == sorted({*as_number, *as_text})
        assert matching(generation, f'{field}:"{text}"') == as_text


def test_a_prefix_over_several_types(generation):
    """A prefix is the beginning of a date or a text; a number has none."""
    for field, text in itertools.product(FIELDS, ['2021', '2024-', '2021-03-05T1', 's', 'T']):

        def matches(value, text=text):
            return not is_number(value) and str(value).casefold().startswith(text.casefold())

        assert matching(generation, f'{field}:{text}*') == expected(field, matches)


def test_one_number_among_dates_hides_no_date(open_collection):
    with open_collection() as collection:
        collection.sync(
            [
                {'id': 'a', 'text': '', 'date': 2021},
                {'id': 'b', 'text': '', 'date': '2022-05-01'},
                {'id': 'c', 'text': '', 'date': '2026-05-01'},
            ]
        )
        assert matching(collection.generation, 'date:[2020 TO 2024]') == ['a', 'b']
        assert matching(collection.generation, 'date:>2021') == ['b', 'c']
        assert matching(collection.generation, 'date:[* TO 2022}') == ['a']


def test_values_are_counted_as_a_filter_finds_them(generation):
    """The number 2020 and the text '2020' are one value of the list: one filter finds both."""
    for field, count in FieldCounter(generation).counts().items():
        names = [value.value for value in count.values]
        assert len(names) == len(set(names))
        for value in count.values:
            text = value.value.replace(':', '\\:')
            quoted = f'"{value.value}"' if ' ' in text else text
            found = matching(generation, f'{field}:{quoted}')
            assert len(found) == value.documents, (field, value)
