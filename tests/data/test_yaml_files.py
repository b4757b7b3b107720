"""YAML files: every entry knows its line, and so does every error."""

import gzip
import json
import time

import pytest
from hypothesis import given, settings, strategies as st
from ruamel.yaml.constructor import SafeConstructor

from pyserini_repbert.data.yaml_files import parse_yaml, read_yaml
from pyserini_repbert.data.yaml_schema import MAX_DEPTH
from pyserini_repbert.errors import InputError

TEXT = """\
# a comment
name: ü
data:
- run: bm25.txt
  fields: [a, b]
- &second
  run: other.txt
'on': {steps: 3e-6, 1: x}
same: *second
"""


@pytest.fixture
def written(tmp_path):
    """written(text or bytes) -> path"""

    def write(content, name='file.yaml'):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith('.gz') else content)
        return tmp_path / name

    return write


def test_values(written):
    assert read_yaml(written(TEXT)).value == {
        'name': 'ü',
        'data': [{'run': 'bm25.txt', 'fields': ['a', 'b']}, {'run': 'other.txt'}],
        'on': {'steps': 3e-6, 1: 'x'},
        'same': {'run': 'other.txt'},
    }


@pytest.mark.parametrize(
    ('keys', 'line'),
    [
        ((), 2),
        (('name',), 2),
        (('data',), 3),
        (('data', 0, 'fields'), 5),
        (('data', 1, 'run'), 7),
        (('on', 'steps'), 8),
        (('on', 1), 8),
        # Of an entry that is missing, the line is that of the nearest around it.
        (('data', 1, 'none', 'below'), 6),
        (('data', 7), 3),
        (('none',), 2),
    ],
)
def test_lines(written, keys, line):
    assert read_yaml(written(TEXT)).line(*keys) == line


def test_an_error_names_file_and_line(written):
    file = read_yaml(written(TEXT))
    assert str(file.error('is wrong', 'data', 1, 'run')) == f'{file.path}:7: is wrong'


def test_merged_entries_know_their_lines(written):
    file = read_yaml(written('a: &a\n  x: 1\n  y: 2\nb:\n  <<: *a\n  y: 3\n'))
    assert file.value['b'] == {'x': 1, 'y': 3}
    assert (file.line('b', 'x'), file.line('b', 'y')) == (2, 6)


def test_byte_order_mark_gzip_and_nodes(written):
    assert read_yaml(written(b'\xef\xbb\xbfa: 1')).value == {'a': 1}
    assert read_yaml(written('a: 1', 'file.yaml.gz')).value == {'a': 1}
    assert read_yaml(written('a: 0x1')).node.value[0][1].value == '0x1'  # as written
    assert parse_yaml('[1, x]', "setting 'a'").value == [1, 'x']


CHAIN = 'a0: &a0 [x]\n' + ''.join(f'a{n}: &a{n} [*a{n - 1}]\n' for n in range(1, 1000))
REFUSED = [
    (b'a: 1\nb: \xe4', r':2: not valid UTF-8'),
    ('a: 1\nb: [\n', r':3: not YAML'),
    ('a: 1\n\nb: "\x07"', r':3: not YAML: the character U\+0007 is not allowed'),
    ('a: 1\nb: *none', r":2: not YAML: found undefined alias 'none'"),
    ('a: 1\n---\nb: 2', r':2: not YAML: but found another document'),
    ('a: 1\nb: 2\na: 3', r":3: 'a' occurs twice: remove one"),
    (
        'a:\n- !!python/object/apply:os.system [x]',
        r':2: not YAML: could not determine a constructor for the tag',
    ),
    (
        'a: 1\nb: !!timestamp 2001-01-01',
        r':2: not YAML: could not determine a constructor for the tag',
    ),
    ('a: 1\nb: !!float x', r":2: not YAML: 'x' is not of type float"),
    ('a: !!int x', r":1: not YAML: 'x' is not of type int"),
    ('a: ' + '9' * 5000, r":1: not YAML: '9+' is not of type int"),
    (CHAIN, rf':\d+: more than {MAX_DEPTH} values inside each other'),
    ('a: 1\nb: ' + '[' * 100_000, rf':2: more than {MAX_DEPTH} values inside each other'),
    ('a: 1\nb: &b [1, *b]', rf':2: more than {MAX_DEPTH} values'),
]


@pytest.mark.parametrize(('content', 'message'), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_names_file_and_line(written, content, message):
    begun = time.process_time()
    with pytest.raises(InputError, match=message) as caught:
        read_yaml(written(content))
    assert '\n' not in str(caught.value)
    assert time.process_time() - begun < 5


def test_other_users_of_the_library_change_no_values(written, monkeypatch):
    """Its tables of kinds are global: check-jsonschema, say, makes all timestamps text."""
    monkeypatch.setitem(SafeConstructor.yaml_constructors, 'tag:yaml.org,2002:int', lambda *_: 'x')
    monkeypatch.setitem(SafeConstructor.yaml_constructors, '!x', lambda *_: 'x')
    assert read_yaml(written('a: 1')).value == {'a': 1}
    with pytest.raises(InputError, match=':1: not YAML: could not determine a constructor'):
        read_yaml(written('a: !x 1'))


def test_aliases_that_multiply_are_refused(written):
    """Ten aliases of ten aliases …: 10^8 values in nine lines."""
    lines = ['a0: &a0 [' + 'x, ' * 10 + ']']
    for level in range(1, 8):
        aliases = f'*a{level - 1}, ' * 10
        lines.append(f'a{level}: &a{level} [{aliases}]')
    with pytest.raises(InputError, match=r':5: more than 100000 values, what aliases repeat'):
        read_yaml(written('\n'.join(lines)))


def test_aliases_within_limits_are_taken(written):
    assert (
        read_yaml(written('a: &a [x, y]\nb: [' + '*a, ' * 1000 + ']')).value['b']
        == [['x', 'y']] * 1000
    )


# By the examples of YAML 1.2.2, section 10.3.2. Of theirs, numbers with zeros in front are text.
CORE_SCHEMA = [
    ('', None),
    ('null', None),
    ('~', None),
    ('nil', 'nil'),
    ('true', True),
    ('False', False),
    ('NO', 'NO'),
    ('yes', 'yes'),
    ('on', 'on'),
    ('y', 'y'),
    ('0', 0),
    ('-19', -19),
    ('+12', 12),
    ('0o7', 7),
    ('0x3A', 58),
    ('0b1', '0b1'),
    ('007', '007'),
    ('02134', '02134'),
    ('-07', '-07'),
    ('0306406152', '0306406152'),
    ('1_000', '1_000'),
    ('1:30', '1:30'),
    ('1:30.5', '1:30.5'),
    ('0.', 0.0),
    ('-0.0', -0.0),
    ('.5', 0.5),
    ('+12e03', 12e3),
    ('-2E+05', -2e5),
    ('3e-6', 3e-6),
    ('1e5', 1e5),
    ('1.10', 1.1),
    ('00.5', '00.5'),
    ('.inf', float('inf')),
    ('-.Inf', float('-inf')),
    ('2023-05-04', '2023-05-04'),
    ('2023-05-04 10:30:00', '2023-05-04 10:30:00'),
    ('=', '='),
    ('"007"', '007'),
    ('!!str 7', '7'),
    ('!!int "7"', 7),
]


@pytest.mark.parametrize(('written', 'value'), CORE_SCHEMA)
def test_values_are_those_of_the_core_schema(written, value):
    for text in (f'a: {written}', f'%YAML 1.1\n---\na: {written}'):
        assert repr(parse_yaml(text, 'x').value) == repr({'a': value})


@pytest.mark.parametrize('version', ['1.0', '1.1', '1.2', '1.3', '1.12345'])
def test_the_version_that_a_file_names_changes_nothing(version):
    assert parse_yaml(f'%YAML {version}\n---\na: no', 'x').value == {'a': 'no'}


@pytest.mark.parametrize(
    ('text', 'value'),
    [('[why?, how?]', ['why?', 'how?']), ('[:x]', [':x']), ('[\n\tx]', ['x']), ('no', 'no')],
)
def test_yaml_that_pyyaml_refuses_or_takes_for_something_else(text, value):
    """This is why the package also requires ruamel.yaml."""
    assert parse_yaml(f'a: {text}', 'x').value == {'a': value}


def test_another_major_version_is_refused():
    with pytest.raises(InputError, match=r'x:1: not YAML: .*version 1\.\* is required'):
        parse_yaml('%YAML 2.0\n---\na: no', 'x')


def test_an_anchor_that_is_used_again_is_no_warning(recwarn):
    assert parse_yaml('[&a 1, &a 2, *a]', 'x').value == [1, 2, 2]
    assert not recwarn.list


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.none() | st.booleans() | st.integers() | FLOATS | st.text()


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(), VALUES | st.lists(VALUES)))
def test_json_is_yaml(values):
    text = json.dumps(values)
    if '\\ud' not in text:
        assert parse_yaml(text, 'x').value == values


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from('ab1:.- \n\t[]{},&*!?|>\'"%@`#<=~'), max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        value = parse_yaml(text, 'x').value
    except InputError as error:
        assert '\n' not in str(error)
    else:
        assert repr(value) == repr(parse_yaml(text, 'x').value)
