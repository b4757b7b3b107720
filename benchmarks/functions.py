"""How often a hit about code names the function that answers, by how passages are cut for display.

60 questions, 36 in English and 24 in German, about modules of Python's standard library and files
in C, C++ and JavaScript of installed packages (function_questions.tsv), were written before they
were asked. A folder with these files is searched as `index sync` makes it. The hit of the right
file, at whatever rank, names the function if its line is one of the function's, or of the comment
directly above.

Three ways to cut a passage are compared: not at all, into functions, which is the default, and into
as many pieces of about equal length, at ends of lines.

    python benchmarks/functions.py
    python benchmarks/functions.py --encoder e5-small --list
"""

import argparse
import re
import shutil
import sysconfig
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest.mock import patch

from pyserini_repbert.collection import Collection, excerpts
from pyserini_repbert.data.code_blocks import code_blocks
from pyserini_repbert.data.origins import TextSpan
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.names.corpora import open_corpus

QUESTIONS = Path(__file__).with_name('function_questions.tsv')
MODULES = (
    'base64 bisect calendar cmd colorsys copy csv difflib filecmp fileinput fnmatch getpass glob '
    'graphlib gzip heapq linecache mimetypes netrc queue quopri random sched secrets shelve shutil '
    'statistics string tempfile textwrap wave webbrowser'
).split()
PACKAGED = (
    'caio/src/threadpool/threadpool.c',
    'importlinter/ui/static/explorer.js',
    'markupsafe/_speedups.c',
    'matplotlib/backends/web_backend/js/mpl.js',
    'matplotlib/backends/web_backend/js/nbagg_mpl.js',
    'mypyc/lib-rt/bytes_ops.c',
    'mypyc/lib-rt/exc_ops.c',
    'mypyc/lib-rt/float_ops.c',
    'mypyc/lib-rt/int_ops.c',
    'mypyc/lib-rt/list_ops.c',
    'mypyc/lib-rt/locks.c',
    'mypyc/lib-rt/str_ops.c',
    'pyarrow/src/arrow/python/datetime.cc',
    'pyarrow/src/arrow/python/decimal.cc',
)
HITS = 10
# Not a label of C such as 'fail:', and not '#ifdef'.
_NEXT_STATEMENT = re.compile(r'(?!\w+:$)(?:[\w@/]|#[ #])')


@dataclass(frozen=True)
class Question:
    """A question, with the function that answers it.

    Attributes
    ----------
    language : 'en' or 'de'
    text : what is asked
    docid : of the file
    first, last : the lines of the function, with the comment directly above
    """

    language: str
    text: str
    docid: str
    first: int
    last: int


@dataclass(frozen=True)
class Shown:
    """What the hit of the right file shows.

    Attributes
    ----------
    question : what was asked
    rank : of the file, from 1; 0 where it is not among the hits
    line : that the hit names
    n_characters : of the part that is shown
    """

    question: Question
    rank: int
    line: int
    n_characters: int

    @property
    def is_right(self):
        """Whether the hit names the function."""
        return self.question.first <= self.line <= self.question.last


def copy_code(folder):
    """Copy the files into a folder."""
    paths = [Path(sysconfig.get_path('stdlib'), f'{module}.py') for module in MODULES]
    paths += [Path(sysconfig.get_path('purelib'), name) for name in PACKAGED]
    for path in paths:
        if not path.is_file():
            raise SystemExit(f"{path} is missing: install the extra 'dev'")
        shutil.copy(path, folder / path.name)


def lines_of(text, definition):
    """The first and the last line of a function, from 1."""
    lines = text.splitlines()
    (row,) = [number for number, line in enumerate(lines) if line.strip().startswith(definition)]
    indentation = lines[row][: -len(lines[row].lstrip())]
    first = row
    while lines[first - 1].startswith((f'{indentation}//', f'{indentation}#', f'{indentation}@')):
        first -= 1
    last = row
    for number in range(row + 1, len(lines)):
        line = lines[number]
        is_deeper = line.startswith((f'{indentation} ', f'{indentation}\t'))
        if line.strip() and not is_deeper and _NEXT_STATEMENT.match(line.strip()):
            break
        if line.strip():
            last = number
    return first + 1, last + 1


def read_questions(folder):
    """The questions, with the lines of the functions in a folder."""
    questions = []
    for line in QUESTIONS.read_text(encoding='utf-8').splitlines():
        language, text, docid, definition = line.split('\t')
        source = (folder / docid).read_text(encoding='utf-8')
        questions.append(Question(language, text, docid, *lines_of(source, definition)))
    return questions


def whole_passage(text, start, end):
    return [TextSpan(start, end)]


def equal_pieces(text, start, end):
    """As many pieces as there are functions, of about equal length, which end with a line."""
    n_pieces = len(code_blocks(text, start, end))
    starts = [start]
    for number in range(1, n_pieces):
        least = max(starts[-1] + 1, start + (end - start) * number // n_pieces)
        line_end = text.find('\n', least, end)
        if 0 <= line_end < end - 1:
            starts.append(line_end + 1)
    return [TextSpan(*span) for span in zip(starts, [*starts[1:], end], strict=True)]


CUTS = {
    'whole passages': whole_passage,
    'equal pieces': equal_pieces,
    'functions': code_blocks,
}


def ask(searcher, questions, cut):
    """What is shown for each question, if passages of code are cut so."""
    results = []
    with patch.object(excerpts, 'code_blocks', cut):
        for question in questions:
            docids = [hit.docid for hit in searcher.search(question.text, HITS)]
            rank = docids.index(question.docid) + 1 if question.docid in docids else 0
            answering = searcher.dense.answering_excerpts(question.text, [question.docid])
            (shown,) = answering[question.docid]
            results.append(Shown(question, rank, shown.line, len(shown.shown_text)))
    return results


def print_table(by_cut):
    """Print how many files and functions are right, by language and cut."""
    print('| questions | right file first | among 3 | cut | function named | characters shown |')
    print('|---|---:|---:|---|---:|---:|')
    for language in ('en', 'de'):
        for name, results in by_cut.items():
            own = [shown for shown in results if shown.question.language == language]
            n_first = sum(shown.rank == 1 for shown in own)
            n_among = sum(1 <= shown.rank <= 3 for shown in own)
            n_right = sum(shown.is_right for shown in own)
            characters = median(shown.n_characters for shown in own)
            print(
                f'| {len(own)} {language} | {n_first} | {n_among} | {name} | {n_right} '
                f'| {characters:.0f} |'
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--index', type=Path, help='where to make the collection, to ask it again')
    parser.add_argument('--list', action='store_true', help='also hits that name another function')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        code = Path(work) / 'code'
        code.mkdir()
        copy_code(code)
        questions = read_questions(code)
        index = options.index or Path(work) / 'index'
        with Collection.open(index, encoder=options.encoder) as collection:
            if not is_collection(index):
                collection.sync(open_corpus(code))
            with closing(collection.searcher()) as searcher:
                by_cut = {name: ask(searcher, questions, cut) for name, cut in CUTS.items()}
    print_table(by_cut)
    if options.list:
        for shown in by_cut['functions']:
            question = shown.question
            if not shown.is_right:
                print(
                    f'{shown.rank} {question.text}: {question.docid}:{shown.line}, '
                    f'not {question.first} to {question.last}'
                )


if __name__ == '__main__':
    main()
