"""What reads texts of strangers takes time in proportion to their length.

Each reader and each pattern is timed on a text of `LENGTH` characters and on one of eight times as
many. A linear one takes eight times as long for the second, a quadratic one sixty-four times.
"""

import ast
import importlib
import json
import re
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

import pyserini_repbert
from pyserini_repbert import folder_forms
from pyserini_repbert.collection.files.file_kinds import KINDS
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.html_documents import document_of_html
from pyserini_repbert.collection.files.markdown_documents import document_of_markdown
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.passages import PassageCutter, boundary_ends
from pyserini_repbert.data import yaml_schema
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.page_encodings import decode_page
from pyserini_repbert.data.snippets import cut_around
from pyserini_repbert.data.spelling import mended
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.data.trec_text import read_documents
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension_words import RECORDED_WORDS
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.serve.requests import SearchRequest

PACKAGE = Path(pyserini_repbert.__file__).parent
SCRIPTS = PACKAGE / 'serve' / 'page' / 'js'
LENGTH = 5_000
TIMES = 8
# Between those of a linear and of a quadratic reader.
MOST_GROWTH = 24
# Less says nothing; a quadratic pattern takes more than 24 times as long for 40,000 characters.
LEAST_SECONDS = 0.008
RUNS = 3
SCRIPT_PATTERN = re.compile(r'[(=] ?/(?![*/])((?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+)/([a-z]*)')
WHOLE = ('match', 'fullmatch')
SEARCHING = ('search', 'sub', 'subn', 'split', 'findall', 'finditer')
# Calls whose pattern depends on what a function is given: `other_patterns` has examples of them.
OF_FUNCTIONS = {
    'folder_forms.py: is_temporary',
    'folder_forms.py: _pattern',
    'extension_words.py: missing_extension_of_file',
    'extensions/language_models/prompts.py: fill',
}
SPACES = (' ', '\n', '\t', '\u00a0', '\n\u00a0', ' \n')


class TooSlowError(Exception):
    pass


@contextmanager
def bounded(seconds):
    """Ends what takes longer, in seconds of this process's own time, whatever else runs."""

    def end(*_):
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(read, text):
    """The processor time that a reader takes for a text, whether or not it refuses the text."""
    begun = time.thread_time()
    with suppress(ValueError, InputError):
        read(text)
    return time.thread_time() - begun


def is_linear(read: Callable[[object], object], make_text: Callable[[int], object]) -> bool:
    """Whether a reader's time grows with the length of a text, and not with its square.

    The shortest of several runs counts for both lengths. What reads the long text within the least
    that is allowed is timed on no short one.

    Parameters
    ----------
    read : reads a text
    make_text : from a length to a text of about so many characters
    """
    long = make_text(TIMES * LENGTH)
    if ends_within(MOST_GROWTH * LEAST_SECONDS, read, long):
        return True
    short = make_text(LENGTH)
    seconds = min(seconds_of(read, short) for _ in range(RUNS))
    most = MOST_GROWTH * max(seconds, LEAST_SECONDS)
    return any(ends_within(most, read, long) for _ in range(RUNS))


def ends_within(seconds, read, text):
    with suppress(TooSlowError), bounded(seconds):
        with suppress(ValueError, InputError):
            read(text)
        return True
    return False


@dataclass(frozen=True)
class Used:
    """A pattern, and the methods by which its module applies it."""

    pattern: re.Pattern
    methods: set[str] = field(default_factory=set)


def is_of(node, name):
    """Whether a node is a call `name.METHOD(…)`."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and isinstance(node.func.value, ast.Name) and node.func.value.id == name


def functions_and_calls(tree):
    """(name of the function around it, call) of each call in a module; '' outside of functions."""
    pending = [('', tree)]
    while pending:
        function, node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Call):
            yield function, node
        pending += [(function, child) for child in ast.iter_child_nodes(node)]


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix('').parts
    return importlib.import_module('.'.join(parts))


def names_of_patterns(tree):
    """The name that each call `re.compile(…)` is assigned to, by the call."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.value] = node.targets[0].id
    return names


def module_patterns(path):
    """(name, use) of each pattern of a module, in functions, tables and calls, too.

    Of a call whose pattern depends on what its function is given, the use is None.
    """
    source = path.read_text()
    if 're.' not in source:
        return
    tree = ast.parse(source)
    names = names_of_patterns(tree)
    calls = list(functions_and_calls(tree))
    for function, call in calls:
        if not is_of(call, 're') or call.func.attr not in ('compile', *WHOLE, *SEARCHING):
            continue
        flags = [item.value for item in call.keywords if item.arg == 'flags']
        compiled = ast.Call(ast.parse('re.compile').body[0].value, [call.args[0], *flags], [])
        if call.func.attr == 'compile':
            compiled = call
        try:
            # What it names are constants of the module.
            pattern = eval(ast.unparse(compiled), dict(vars(module_of(path))))
        except (NameError, AttributeError):
            yield f'{path.relative_to(PACKAGE)}: {function}', None
            continue
        methods = {call.func.attr}
        if call.func.attr == 'compile':
            name = names.get(call)
            methods = {user.func.attr for _, user in calls if name and is_of(user, name)}
        used = Used(pattern, methods & {*WHOLE, *SEARCHING} or {'finditer'})
        yield f'{path.relative_to(PACKAGE)}: {pattern.pattern}', used


def other_patterns():
    """Patterns that are made of what a function is given: names of files, kinds of values."""
    yield (
        'files.py: leftovers',
        Used(re.compile(rf'\.run\.txt\.{folder_forms._MARK}'), {'match'}),
    )
    for pattern in json.loads(RECORDED_WORDS.read_text(encoding='utf-8'))['files']:
        yield f'extension_words.json: {pattern}', Used(re.compile(pattern), {'fullmatch'})
    yield 'prompts.py: fill', Used(re.compile(r'{(query|passages|number)}'), {'sub'})
    for _, form, _ in yaml_schema._CORE_SCHEMA:
        yield f'yaml_schema.py: {form}', Used(re.compile(rf'(?:{form})\Z'), {'match'})
    for path in sorted(PACKAGE.rglob('*.py')):
        if 'FolderForm(' not in path.read_text():
            continue
        for name, value in vars(module_of(path)).items():
            if isinstance(value, FolderForm):
                yield f'{path.name}: {name}', Used(value._pattern, {'fullmatch'})


def script_patterns(path):
    """The patterns of a script of the page."""
    for text, flags in SCRIPT_PATTERN.findall(path.read_text()):
        as_python = re.sub(r'\\p\{(?:[LN]|Ll)\}', lambda _: r'\w', text)
        used = Used(re.compile(as_python, re.DOTALL if 's' in flags else 0), {'finditer'})
        yield f'{path.name}: {text}', used


def all_patterns():
    patterns = dict(other_patterns())
    for path in sorted(PACKAGE.rglob('*.py')):
        patterns.update(module_patterns(path))
    for path in sorted(SCRIPTS.glob('*.js')):
        patterns.update(script_patterns(path))
    return patterns


def hostile_parts(pattern):
    """What hostile texts begin with, and what they repeat: characters and words of a pattern."""
    text = pattern if isinstance(pattern, str) else pattern.decode('latin-1')
    plain = re.sub(r'\\[a-zA-Z]|[\\()|?*+]', '', text)
    signs = list(dict.fromkeys(sign for sign in plain if not sign.isalnum()))
    words = re.findall(r'[<&./]+[A-Za-z]+|[A-Za-z]{2,}', text)
    repeated = {'a', '1', *SPACES, *signs, *words}
    named = ''.join([*signs[:1], *words[:1]])
    for begin in ('', named):
        for part in sorted(repeated):
            yield begin, part


def hostile_text(begin, part, length, end='\0'):
    return begin + part * (length // len(part)) + end


def apply_pattern(used, text):
    if isinstance(used.pattern.pattern, bytes):
        text = text.encode()
    for method in used.methods:
        if method in WHOLE:
            getattr(used.pattern, method)(text)
        else:
            deque(used.pattern.finditer(text), maxlen=0)


def slow_text(used):
    """The beginning of a text for which a pattern takes more than linear time; None for none."""
    for begin, part in hostile_parts(used.pattern.pattern):
        make_text = partial(hostile_text, begin, part)
        if not is_linear(partial(apply_pattern, used), make_text):
            return make_text(20)
    return None


def test_every_pattern_of_the_package_is_linear():
    slow = {}
    of_functions = set()
    patterns = all_patterns()
    for name, used in patterns.items():
        if used is None:
            of_functions.add(name)
            continue
        text = slow_text(used)
        if text is not None:
            slow[name] = text
    assert not slow
    assert of_functions == OF_FUNCTIONS
    assert len(patterns) > 120


@pytest.mark.parametrize('pattern', ['<a[^>]*>', rb'<a[^>]*>'])
def test_a_quadratic_pattern_is_found(pattern):
    assert slow_text(Used(re.compile(pattern), {'finditer'})) is not None


@pytest.mark.parametrize('pattern', [r' ++$', r'[a1],', r'\s++x', rb'<a[^<>]*+>', r'"([^"]*)",'])
def test_a_linear_pattern_is_not_found(pattern):
    assert slow_text(Used(re.compile(pattern), {'match'})) is None


def tokenizer():
    pieces = {'[UNK]': 0, 'x': 1, '-': 2}
    made = Tokenizer(models.WordPiece(pieces, unk_token='[UNK]'))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


@pytest.mark.parametrize('line', ['\n\u00a0', '\n \t', '\n1. ', '\n- x'])
def test_long_texts_are_cut_in_linear_time(line):
    cutter = PassageCutter(tokenizer(), 16, 10, 3)
    assert is_linear(lambda text: cutter.cut([''], [text]), partial(hostile_text, 'x x', line))


def read_trec(text):
    lines = [(1, f'<DOC><DOCNO>1</DOCNO>{text}</DOC>'.encode())]
    return list(read_documents(lines))


def read_filter(text):
    try:
        return DocumentFilter(text[:10_000])
    except InputError:
        return None


READERS = {
    'passages': boundary_ends,
    'Markdown': lambda text: document_of_markdown('d', text),
    'HTML': lambda text: document_of_html('d', text),
    'encoding': lambda text: decode_page(text.encode()),
    'plain': visible_text,
    'TREC': read_trec,
    'spelling': mended,
    'snippet': lambda text: cut_around('cat', text, 480),
    'filter': read_filter,
    'stages': lambda text: SearchRequest(query='q', rerank=[text]).model_dump(),
}
BEGINS = ('', '# a', 'x. ', '---\nkey: ', '<', '<head>', 'a:(')
REPEATED = (
    *(' ', '\n', '\n\u00a0', 'a', '1', '#', ' #', '\t', '.', '`', "'", ',', ', ', '- ', '---\n'),
    *('<', '<a', '<!--', '-->', '<meta ', '</title', '<title>', '&', '&#1', '(', '"', 'a: '),
)


@pytest.mark.parametrize('reader', READERS)
def test_readers_of_texts_are_linear(reader):
    for begin in BEGINS:
        for part in REPEATED:
            make_text = partial(hostile_text, begin, part, end='x')
            assert is_linear(READERS[reader], make_text), f'{begin!r}, then {part!r} many times'


@pytest.mark.parametrize('part', ['<ul>x', '<ul><li>x', '<ul><td>x', '<ol><li><pre>x'])
def test_the_text_of_nested_lists_grows_with_the_page(part):
    """Each line was indented by its depth: a page of 48 kB had a text of 92 MB."""
    for n in (1_200, TIMES * 1_200):
        page = part * n
        text = document_of_html('d', page).text
        assert text.count('x') == n
        assert len(text) < 12 * len(page)


# By the kind of a file: its beginnings, and what it repeats.
PARTS = 'Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n'
FILES = {
    'mail': (
        ('', PARTS, PARTS.replace('; boundary=b', ''), 'Subject: x\nContent-Type: text/html\n\n'),
        ('--b\n\nx\n', '--x\n\n', '--b', '> x \n', '<a ', '<b>', 'a: b\n', '=?utf-8?q?a?= '),
    ),
    'mailbox': (('', 'From a\nSubject: x\n\n'), ('From a\nSubject: x\n\nb\n\n', '>From \n', 'x\n')),
    'notebook': (
        ('{"cells":[',),
        ('{"cell_type":"markdown","source":"<!--"},', '{"cell_type":"code","source":"```"},', '['),
    ),
    'table': (('', 'id,text\n', 'sep=;\n'), ('a,b\n', '"a\n', '"', ',', '\n', '\r', '"a""b",')),
    'json': (('[', '{"a":', ''), ('{"id":"a","text":"b"},', '[', '{"a":', '"a",')),
    'rst': (('', '.. note::\n\n'), ('a\n=\n', '* a\n', '+--+\n', '`a', '*', '|a', 'a_ ', '..\n')),
    'adoc': (
        ('', '= T\n:x: y\n\n|===\n'),
        ('* a\n', '|a\n', 'ifdef::a[]\n', '{x}', '*a', '----\n', '[a]\n', '<<a', ':a: {a}{a}\n'),
    ),
    'org': (('', '#+TODO: A B\n'), ('* A x\n', '*a', '[[a', '| a |\n', '{{{a', '@@a:', '#+a: b\n')),
    'log': (('',), ('a\n', 'a')),
}


@pytest.mark.parametrize('kind', FILES)
def test_readers_of_files_are_linear(kind, tmp_path):
    path = tmp_path / 'a'

    def read(text):
        path.write_bytes(text.encode())
        list(KINDS[kind].documents(FileToRead(path, 'd')))

    begins, parts = FILES[kind]
    for begin in begins:
        for part in parts:
            make_text = partial(hostile_text, begin, part, end='x')
            assert is_linear(read, make_text), f'{begin!r}, then {part!r} many times'


@pytest.mark.parametrize('begin', ['a', '[a', 'b = {a'])
def test_a_key_of_many_parts_is_refused_in_linear_time(begin):
    """tomllib would take time with the square of their number."""

    def make_text(length):
        return f'+++\nx = 1\n{begin}{".a" * (length // 2)} = 1\n+++\n'

    with pytest.raises(ValueError, match='a key of more than 50 parts'):
        document_of_markdown('d', make_text(LENGTH))
    assert is_linear(lambda text: document_of_markdown('d', text), make_text)


def test_dots_in_a_value_are_no_key():
    text = f'+++\nx = "{"." * 100}"\n\'y\' = 1.5\n+++\ntext'
    assert document_of_markdown('d', text).fields == {'x': '.' * 100, 'y': 1.5}


@pytest.mark.parametrize('hostile', ['<a', '<1 ', '<'])
def test_topics_are_read_in_linear_time(tmp_path, hostile):
    path = tmp_path / 'topics.txt'

    def read(text):
        path.write_text(text)
        (topic,) = read_topics(path)
        assert topic.text.startswith('cat')

    begin = f'<top><num> 1 <title> cat {hostile}'
    assert is_linear(read, partial(hostile_text, begin, 'a', end='\n</top>\n'))


# What the first pattern for boundaries found; it read the white space anew for each line's end.
FIRST_BOUNDARY = re.compile(
    r"""(?P<heading>\n(?=\#{1,6}[ ]))
    |(?P<paragraph>\n[ \t]*\r?\n\s*)
    |(?P<sentence>[.!?…]["'”’»)\]]*\s+|[。！？]["”’」』）]*\s*|\n(?=\s*(?:[-*+]|\d+[.)])[ ]))""",
    re.VERBOSE,
)
MARKS = ['\n', '\r\n', '\u00a0', ' ', '\u3000', '- ', '12) ', '1', '# ', 'x', '.', '。', '"']


@given(st.lists(st.sampled_from(MARKS), max_size=30).map(''.join))
def test_passages_begin_where_the_first_pattern_had_them_begin(text):
    ends = {'heading': [], 'paragraph': [], 'sentence': []}
    for match in FIRST_BOUNDARY.finditer(text):
        ends[match.lastgroup].append(match.end())
    assert boundary_ends(text) == ends
