"""Values of NumPy, pandas and polars in documents; docids as files have them."""

import json
from datetime import date

import numpy as np
import pandas
import pytest

from pyserini_repbert.collection.collection import open_documents
from pyserini_repbert.data.documents import plain_fields
from pyserini_repbert.data.passages import given_document

STORED = {
    'nanoseconds': (
        np.datetime64('2024-03-05T10:00:00.123456789', 'ns'),
        '2024-03-05T10:00:00.123456',
    ),
    'day in nanoseconds': (np.datetime64('2024-03-05', 'ns'), '2024-03-05T00:00:00'),
    'day': (np.datetime64('2024-03-05'), '2024-03-05'),
    'seconds': (np.datetime64('2024-03-05T10:00:00', 's'), '2024-03-05T10:00:00'),
    'timestamp': (pandas.Timestamp('2024-03-05 10:00'), '2024-03-05T10:00:00'),
    'date': (date(2024, 3, 5), '2024-03-05'),
    'longdouble': (np.longdouble('1.5'), 1.5),
    'float32': (np.float32(0.5), 0.5),
    'int8': (np.int8(-3), -3),
    'bool': (np.bool_(True), True),
    'text': (np.str_('a'), 'a'),
    'longdoubles': (np.array([1.5, 2], np.longdouble), [1.5, 2.0]),
    'dates': (np.array(['2024-03-05'], 'datetime64[ns]'), ['2024-03-05T00:00:00']),
    'matrix': (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
    'no dimension': (np.array(7), 7),
    'series': (pandas.Series([1, 2]), [1, 2]),
    'first day': (np.datetime64('0001-01-01'), '0001-01-01'),
    'last second': (np.datetime64('9999-12-31T23:59:59', 's'), '9999-12-31T23:59:59'),
    'year': (np.datetime64('2024', 'Y'), '2024-01-01'),
}


@pytest.mark.parametrize(('value', 'stored'), STORED.values(), ids=list(STORED))
def test_values_of_numpy(value, stored):
    fields = plain_fields({'field': value})
    assert fields == {'field': stored}
    assert json.loads(json.dumps(fields)) == fields


MISSING = [np.float32('nan'), np.longdouble('nan'), np.float16('nan'), np.datetime64('NaT')]


@pytest.mark.parametrize('value', [*MISSING, np.datetime64('NaT', 'ns'), pandas.NaT, pandas.NA])
def test_a_missing_value_is_left_out(value):
    assert plain_fields({'field': value, 'other': 1}) == {'other': 1}


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('value', [np.ma.masked, np.ma.array(5, mask=True)])
def test_a_masked_value_is_missing(value):
    assert plain_fields({'field': value, 'other': 1}) == {'other': 1}


LISTS = {
    'array': (np.array([np.nan, 1.0]), [1.0]),
    'float32s': (np.array([np.nan, 0.5], np.float32), [0.5]),
    'matrix': (np.array([[np.nan, 1.0], [2.0, np.nan]]), [[1.0], [2.0]]),
    'series': (pandas.Series([1, None]), [1.0]),
    'nullable series': (pandas.Series([1, None], dtype='Int64'), [1]),
    'days': (np.array(['2024-03-05', 'NaT'], 'datetime64[D]'), ['2024-03-05']),
    'series of days': (
        pandas.to_datetime(pandas.Series([None, '2024-03-05'])),
        ['2024-03-05T00:00:00'],
    ),
    'masked array': (np.ma.array([1, 2], mask=[True, False]), [2]),
    'list': ([float('nan'), pandas.NaT, pandas.NA, np.ma.masked, np.datetime64('NaT'), 'a'], ['a']),
    'tuple': ((np.float32('nan'), 1), [1]),
    'mapping': ({'a': float('nan'), 'b': {'c': pandas.NaT, 'd': 1}}, {'b': {'d': 1}}),
    'None': ([None, 1], [None, 1]),
    'all': (np.array([np.nan]), []),
}


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize(('value', 'stored'), LISTS.values(), ids=list(LISTS))
def test_missing_values_of_lists_are_left_out(value, stored):
    assert plain_fields({'field': value}) == {'field': stored}


DISTANT_DATES = [
    np.datetime64('10000-01-01'),
    np.datetime64('10000-01-01T00:00:00', 'us'),
    np.datetime64('0000-12-31'),
    np.datetime64('-0044-03-15'),
    np.datetime64('12024', 'Y'),
    np.datetime64(10**15, 'D'),
    np.array('10000-01-01', 'datetime64[D]'),
    np.array(['10000-01-01'], 'datetime64[s]'),
    pandas.Series(np.array(['10000-01-01'], 'datetime64[s]')),
]


@pytest.mark.parametrize('value', DISTANT_DATES)
def test_a_date_beyond_the_calendar_is_refused(value):
    with pytest.raises(ValueError, match='is the date .*: a year from 1 to 9999 was expected'):
        plain_fields({'field': value})


@pytest.mark.parametrize(
    'value', [np.timedelta64(5, 'ns'), np.timedelta64(5, 's'), np.complex64(1)]
)
def test_what_json_has_not_is_refused(value):
    with pytest.raises(ValueError, match="field 'field' is a "):
        plain_fields({'field': value})


def test_a_record_has_the_docid_that_it_has_in_a_file(tmp_path):
    record = {'docno': 'n', 'docid': 'd', '_id': 'u', 'id': 'i', 'text': 'cat'}
    for key in ('id', '_id', 'docid', 'docno'):
        (tmp_path / 'file.jsonl').write_text(json.dumps(record) + '\n')
        (_, of_file), *_ = open_documents(tmp_path / 'file.jsonl')._read_documents()
        assert given_document(record) == of_file
        assert of_file.docid == record[key]
        del record[key]


class PolarsFrame:
    """What a DataFrame of polars has of what is read."""

    columns = ('id', 'text', 'year')

    def iter_rows(self):
        return iter([('a', 'cat', 2020), ('b', 'dog', None)])

    def to_dict(self):
        raise AssertionError('not needed')

    def __iter__(self):
        raise AssertionError('it is of columns')


def test_a_frame_of_polars():
    frames = [PolarsFrame()]
    try:
        import polars
    except ImportError:
        pass
    else:
        columns = {'id': ['a', 'b'], 'text': ['cat', 'dog'], 'year': [2020, None]}
        frames.append(polars.DataFrame(columns))
    for frame in frames:
        documents = list(open_documents(frame).documents())
        assert [document.docid for document in documents] == ['a', 'b']
        assert [document.fields for document in documents] == [{'year': 2020}, {'year': None}]
