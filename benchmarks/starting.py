"""What each command takes before its first result: processor seconds of a process, one thread.

python benchmarks/starting.py [--runs 5] [--only search] [--encoder minilm]

Builds a collection, a dense index and a Lucene index of 300 short documents, then runs each command
several times and takes the least time. Java has the archive of classes that the first search of
words makes. User and system time are added: with other work beside it,
they vary less than the time on a clock. Below stand the parts that a command cannot do without:
Python, NumPy, Java with Anserini's searcher, PyTorch, alone and with FAISS. Some commands are also
shown as a share of the time that importing PyTorch takes in the same run.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import figures
from figures import Figure

DOCUMENTS = 300
_WORDS = 'snail salad tomato water garden lettuce soil plant seed grow frost light bed beer'.split()
_JAVA = """
from pyserini_repbert.lucene.jvm import java_class, started_ahead
with started_ahead(few_queries=True):
    java_class('io.anserini.search.SimpleSearcher')
"""
_PYTORCH = 'PyTorch'
# What is imported or started, and by which code.
PARTS = {
    'Python alone': 'pass',
    'NumPy': 'import numpy',
    "Java, with Anserini's searcher": _JAVA,
    _PYTORCH: 'import torch',
    'PyTorch and FAISS': 'import torch, faiss',
}
# The goals, in seconds: a question to a small index, and help.
_QUESTION = 1.5
_HELP = 0.25
_CHANGED_FILE = 'index sync, one changed file'
_TOOLS = 'serve, MCP tools listed'
COMMANDS = {
    'search, collection': 'search --index mine --query snail',
    'search, collection, BM25 alone': 'search --index mine --query snail --rankings bm25',
    'search, collection, vectors alone': 'search --index mine --query snail --rankings dense',
    'search, dense index': 'search --index dense --query snail',
    'search, Lucene index': 'search --index words --query snail',
    'encode, five documents': 'encode --corpus few.jsonl --encoder {encoder} --output few '
    '--overwrite --quiet',
    'index sync, nothing new': 'index sync --corpus docs.jsonl --index mine',
    _CHANGED_FILE: 'index sync --corpus notes --index desk --quiet',
    _TOOLS: 'serve --index mine --mcp',
    'index check, collection': 'index check --index mine',
    'index check, dense index': 'index check --index dense',
    'index status': 'index status --index mine',
    'evaluate': 'evaluate --qrels qrels.txt run.txt',
    'fusion': 'fusion --runs run.txt run.txt --output fused.txt --overwrite --quiet',
}
# The greatest share of the time of `import torch`, by command.
SHARES = {
    'search, collection': 0.5,
    'search, collection, vectors alone': 0.3,
    _CHANGED_FILE: 0.5,
    _TOOLS: 1.0,
}
# What an assistant sends to learn which tools there are.
_LIST_TOOLS = (
    {
        'id': 1,
        'method': 'initialize',
        'params': {
            'protocolVersion': '2025-06-18',
            'capabilities': {},
            'clientInfo': {'name': 'starting', 'version': '1'},
        },
    },
    {'method': 'notifications/initialized'},
    {'id': 2, 'method': 'tools/list'},
)
HELP = ('encode', 'index', 'search', 'fusion', 'rerank', 'explain', 'train', 'evaluate', 'adapt')


def command(words: str) -> list[str]:
    """The words of a command of this package."""
    name, *rest = words.split()
    return [sys.executable, '-m', f'pyserini_repbert.{name}', *rest]


def seconds(words: Sequence[str], folder: Path, runs: int) -> float:
    """The least processor time of some runs of a process, in seconds.

    Raises
    ------
    RuntimeError
        if a run fails
    """
    times = []
    for run in range(runs):
        # Of the commands, only one reads it.
        (folder / 'notes' / 'changed.md').write_text(f'snail {run} {random.random()}\n')
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        if '--mcp' in words:
            list_tools(process.stdin, process.stdout)
        process.stdin.close()
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f'{" ".join(words)} ended with status {process.returncode}')
        times.append(used.ru_utime + used.ru_stime)
    return min(times)


def list_tools(requests: IO[str], answers: IO[str]) -> None:
    """Ask a process that serves MCP for its tools, and wait for the answer."""
    for message in _LIST_TOOLS:
        requests.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
    requests.flush()
    # Of the start and of the list.
    for _ in range(2):
        answers.readline()


def prepare(folder: Path, encoder: str) -> None:
    """Make the documents, the indexes and a run."""
    generator = random.Random(1)
    lines = []
    for number in range(DOCUMENTS):
        text = ' '.join(generator.choices(_WORDS, k=30))
        lines.append(f'{{"id": "d{number}", "contents": "{text}"}}\n')
    (folder / 'docs.jsonl').write_text(''.join(lines), encoding='utf-8')
    (folder / 'few.jsonl').write_text(''.join(lines[:5]), encoding='utf-8')
    notes = folder / 'notes'
    notes.mkdir()
    for number, line in enumerate(lines[:40]):
        (notes / f'{number}.md').write_text(json.loads(line)['contents'], encoding='utf-8')
    (folder / 'run.txt').write_text('1 Q0 d1 1 2.0 x\n1 Q0 d2 2 1.0 x\n', encoding='utf-8')
    (folder / 'qrels.txt').write_text('1 0 d1 1\n', encoding='utf-8')
    for words in (
        f'index sync --corpus docs.jsonl --index mine --encoder {encoder} --quiet',
        f'index sync --corpus notes --index desk --encoder {encoder} --quiet',
        f'encode --corpus docs.jsonl --output dense --encoder {encoder} --quiet',
        'index lucene --corpus docs.jsonl --output words --quiet',
    ):
        subprocess.run(command(words), cwd=folder, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure parts, commands and help, and print a figure of each."""
    parser = figures.parser(__doc__, runs=5)
    parser.add_argument('--only', default='', help='measure what has this in its name')
    parser.add_argument('--encoder', default='minilm')
    options = parser.parse_args()
    os.environ['OMP_NUM_THREADS'] = '1'
    measured: list[Figure] = []
    times: dict[str, float] = {}

    def measure(name: str, words: Sequence[str], goal: float | None = None) -> None:
        if options.only in name:
            value = seconds(words, folder, options.runs)
            measured.append(Figure(name, value, 's', goal, at_most=True))
            times[name] = value

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ['PYSERINI_REPBERT_CACHE'] = str(folder / 'cache')
        prepare(folder, options.encoder)
        # It makes the archive, and waits for it.
        subprocess.run(command('doctor'), cwd=folder, check=False, stdout=subprocess.DEVNULL)
        for name, code in PARTS.items():
            measure(name, [sys.executable, '-c', code])
        for name, words in COMMANDS.items():
            goal = _QUESTION if name.startswith('search') else None
            measure(name, command(words.format(encoder=options.encoder)), goal)
        for name in HELP:
            measure(f'{name} --help', command(f'{name} --help'), _HELP)
    for name, greatest in SHARES.items():
        if name in times and _PYTORCH in times:
            share = times[name] / times[_PYTORCH]
            measured.append(Figure(f'{name}, of PyTorch', share, 'x', greatest, at_most=True))
    figures.tell(options, measured)


if __name__ == '__main__':
    main()
