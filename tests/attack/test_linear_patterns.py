"""What reads texts of strangers takes time in proportion to their length.

Each text here has `LENGTH` characters. A linear reader takes milliseconds of processor time for
one, a quadratic reader several seconds.
"""

import ast
import importlib
import re
import signal
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

import pyserini_repbert
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.passages import PassageCutter, boundary_ends
from pyserini_repbert.data.html_documents import document_of_html
from pyserini_repbert.data.markdown_documents import document_of_markdown
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.page_encodings import decode_page
from pyserini_repbert.data.snippets import cut_around
from pyserini_repbert.data.spelling import mended
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.data.trec_text import read_documents
from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.requests import SearchRequest

PACKAGE = Path(pyserini_repbert.__file__).parent
SCRIPTS = PACKAGE / 'serve' / 'page' / 'js'
LENGTH = 40_000
MOST_SECONDS = 0.4  # of processor time, for one text
SCRIPT_PATTERN = re.compile(r'[(=] ?/(?![*/])((?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+)/([a-z]*)')
WHOLE = ('match', 'fullmatch')
SEARCHING = ('search', 'sub', 'subn', 'split', 'findall', 'finditer')
# Its patterns read the first bytes of a page; `READERS` has the whole reader.
BOUNDED = ('html_documents.py',)
SPACES = (' ', '\n', '\t', '\u00a0', '\n\u00a0', ' \n')


class TooSlowError(Exception):
    pass


@contextmanager
def bounded(seconds=MOST_SECONDS):
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


@dataclass(frozen=True)
class Used:
    """A pattern, and the methods by which its module applies it."""

    pattern: re.Pattern
    methods: set[str] = field(default_factory=set)


def is_of(node, name):
    """Whether a node is a call `name.METHOD(…)`."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and isinstance(node.func.value, ast.Name) and node.func.value.id == name


def named_patterns(path):
    """The patterns of a module's names, with their uses in this module."""
    module = '.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts)
    source = path.read_text()
    if 're.compile(' not in source:
        return
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for name, pattern in vars(importlib.import_module(module)).items():
        if isinstance(pattern, re.Pattern) and f'{name} = ' in source:
            methods = {call.func.attr for call in calls if is_of(call, name)}
            yield Used(pattern, methods & {*WHOLE, *SEARCHING} or {'finditer'})


def direct_patterns(path):
    """The patterns that a module gives to functions of `re`, where they are literal."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not is_of(node, 're') or node.func.attr not in (*WHOLE, *SEARCHING):
            continue
        if isinstance(node.args[0], ast.Constant):
            yield Used(re.compile(node.args[0].value), {node.func.attr})


def script_patterns(path):
    """The patterns of a script of the page."""
    for text, flags in SCRIPT_PATTERN.findall(path.read_text()):
        as_python = re.sub(r'\\p\{[LN]\}', lambda _: r'\w', text)
        yield Used(re.compile(as_python, re.DOTALL if 's' in flags else 0), {'finditer'})


def all_patterns():
    patterns = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        if path.name in BOUNDED:
            continue
        for used in (*named_patterns(path), *direct_patterns(path)):
            patterns[f'{path.relative_to(PACKAGE)}: {used.pattern.pattern}'] = used
    for path in sorted(SCRIPTS.glob('*.js')):
        for used in script_patterns(path):
            patterns[f'{path.relative_to(PACKAGE)}: {used.pattern.pattern}'] = used
    return patterns


def hostile_texts(pattern):
    """Long texts of the characters and words that a pattern names, behind others of them."""
    text = pattern if isinstance(pattern, str) else pattern.decode('latin-1')
    plain = re.sub(r'\\[a-zA-Z]|[\\()|?*+]', '', text)
    signs = list(dict.fromkeys(sign for sign in plain if not sign.isalnum()))
    words = re.findall(r'[<&./]*[A-Za-z]{2,}', text)
    repeated = {'a', '1', *SPACES, *signs, *words}
    named = ''.join([*signs[:1], *words[:1]])
    for begin in ('', named):
        for part in sorted(repeated):
            hostile = begin + part * (LENGTH // len(part)) + '\0'
            yield hostile if isinstance(pattern, str) else hostile.encode()


def apply_pattern(used, text):
    for method in used.methods:
        if method in WHOLE:
            getattr(used.pattern, method)(text)
        else:
            deque(used.pattern.finditer(text), maxlen=0)


def test_every_pattern_of_the_package_is_linear():
    slow = []
    patterns = all_patterns()
    for name, used in patterns.items():
        for text in hostile_texts(used.pattern.pattern):
            try:
                with bounded():
                    apply_pattern(used, text)
            except TooSlowError:
                slow.append((name, text[:20]))
                break
    assert not slow
    assert len(patterns) > 60


def tokenizer():
    pieces = {'[UNK]': 0, 'x': 1, '-': 2}
    made = Tokenizer(models.WordPiece(pieces, unk_token='[UNK]'))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


@pytest.mark.parametrize('line', ['\n\u00a0', '\n \t', '\n1. ', '\n- x'])
def test_long_texts_are_cut_in_linear_time(line):
    with bounded(seconds=3):
        cutter = PassageCutter(tokenizer(), 16, 10, 3)
        cutter.cut([''], ['x x' + line * LENGTH])


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
            text = begin + part * (LENGTH // len(part)) + 'x'
            try:
                with bounded():
                    READERS[reader](text)
            except (ValueError, InputError):
                pass
            except TooSlowError:
                pytest.fail(f'{begin!r}, then {part!r} many times')


@pytest.mark.parametrize('begin', ['a', '[a', 'b = {a'])
def test_a_key_of_many_parts_is_refused_in_linear_time(begin):
    """tomllib would take seconds for one."""
    with bounded(), pytest.raises(ValueError, match='a key of more than 50 parts'):
        document_of_markdown('d', f'+++\nx = 1\n{begin}{".a" * (LENGTH // 2)} = 1\n+++\n')


def test_dots_in_a_value_are_no_key():
    text = f'+++\nx = "{"." * 100}"\n\'y\' = 1.5\n+++\ntext'
    assert document_of_markdown('d', text).fields == {'x': '.' * 100, 'y': 1.5}


@pytest.mark.parametrize('hostile', ['<a', '<1 ', '<'])
def test_topics_are_read_in_linear_time(tmp_path, hostile):
    path = tmp_path / 'topics.txt'
    path.write_text(f'<top><num> 1 <title> cat {hostile}{"a" * LENGTH}\n</top>\n')
    with bounded():
        (topic,) = read_topics(path)
    assert topic.text.startswith('cat')


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
