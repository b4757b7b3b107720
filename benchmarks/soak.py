"""A service that is written to, for an hour: are all answers right, and does memory stay?

    python benchmarks/soak.py [--minutes 60] [--writers 20] [--readers 30] [--documents 500000]

A service of one collection runs on this machine. Each writer has its own document, and writes
its next version as soon as the last one can be seen. Each reader searches all the time, and pauses
for as long as a search took. An answer is wrong if it has a document twice, or a version that is
older than one that a reader saw in an earlier generation, or if two answers of one generation
differ. The collection is without Lucene unless `--bm25` is given. With `--documents`, it has so
many others: their vectors are random, and no question is near them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from synthetic import SyntheticVectors, documents, write_encoder

from pyserini_repbert.collection import Collection

KEY = 'a-key-of-the-soak'
_QUERY = 'which+version+is+this'
_LOOKED_EVERY = 10.0  # seconds between two looks at memory
_DIMENSION = 384  # of the vectors, with --documents


@dataclass
class Findings:
    """What was seen so far.

    Attributes
    ----------
    answers : of each generation, the versions by docid
    searches, writes : how many were answered
    milliseconds : of each search
    wrong, failed : what was wrong with answers, and why requests failed
    megabytes : resident memory of the service and its writer, now and then
    """

    answers: dict[int, dict[str, int]] = field(default_factory=dict)
    searches: int = 0
    writes: int = 0
    milliseconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def request(address: str, method: str = 'GET', body: bytes | None = None) -> dict[str, object]:
    """The JSON of an answer. Raises OSError for a refusal."""
    asked = urllib.request.Request(address, body, {'X-API-Key': KEY}, method=method)
    with urllib.request.urlopen(asked, timeout=150) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def check(findings: Findings, answer: dict[str, object]) -> None:
    """Compare an answer with those that were seen before."""
    generation = int(str(answer['generation']))
    versions: dict[str, int] = {}
    candidates = answer['candidates']
    assert isinstance(candidates, list)
    for hit in candidates:
        docid = hit['docid']
        if docid in versions:
            findings.wrong.append(f'{docid} is twice in an answer of generation {generation}')
        match = re.search(r'version (\d+)', hit['doc'])
        versions[docid] = int(match[1]) if match else -1
    with findings.lock:
        findings.searches += 1
        known = findings.answers.setdefault(generation, versions)
        if known != versions:
            findings.wrong.append(f'two answers of generation {generation} differ')
        for other, seen in findings.answers.items():
            if other < generation and any(
                versions.get(docid, -1) < version for docid, version in seen.items()
            ):
                findings.wrong.append(f'generation {generation} is older than {other}')
        # Answers of generations long gone cannot come any more.
        for old in sorted(findings.answers)[:-20]:
            del findings.answers[old]


def read(address: str, n_documents: int, until: float, findings: Findings) -> None:
    """Search until the time has come."""
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            answer = request(f'{address}/v1/mine/search?query={_QUERY}&hits={n_documents}')
            check(findings, answer)
        except (OSError, ValueError) as error:
            findings.failed.append(f'search: {_reason(error)}')
        seconds = time.monotonic() - start
        findings.milliseconds.append(1000 * seconds)
        time.sleep(seconds)


def write(address: str, docid: str, until: float, findings: Findings) -> None:
    """Write version after version until the time has come."""
    version = 1
    while time.monotonic() < until:
        version += 1
        body = json.dumps({'text': f'This is version {version} of {docid}.'}).encode()
        try:
            request(f'{address}/v1/mine/documents/{docid}?wait=true', 'PUT', body)
            findings.writes += 1
        except OSError as error:
            findings.failed.append(f'write: {_reason(error)}')


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f'{error.code} {error.read()[:200].decode()}'
    return str(error)


def resident_megabytes(process: int) -> float:
    """The memory of a process and its children (Linux)."""
    pages = int(Path(f'/proc/{process}/statm').read_text(encoding='utf-8').split()[1])
    total = pages * os.sysconf('SC_PAGE_SIZE') / 1e6
    children = Path(f'/proc/{process}/task/{process}/children')
    for child in children.read_text(encoding='utf-8').split():
        total += resident_megabytes(int(child))
    return total


def start_service(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A service of the collection `mine` in a folder, and its address."""
    settings = {
        'indexes': {'mine': {'path': 'mine', 'writable': True}},
        'write_keys': [KEY],
        'rerankers': [],
    }
    (folder / 'serve.yaml').write_text(json.dumps(settings), encoding='utf-8')
    command = [sys.executable, '-m', 'pyserini_repbert.serve', '--config', 'serve.yaml']
    command += ['--port', '0', '--log-file', 'requests.jsonl']
    service = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    line = service.stderr.readline()
    address = line.split()[0]
    while True:
        try:
            request(f'{address}/readyz')
            return service, address
        except OSError:
            if service.poll() is not None:
                raise
            time.sleep(0.2)


def build(options: argparse.Namespace, folder: Path) -> None:
    """The collection `mine` in a folder."""
    sparse = 'bm25' if options.bm25 else 'none'
    encoder = None
    if options.documents:
        encoder = folder / 'encoder'
        write_encoder(encoder, _DIMENSION)
        vectors = SyntheticVectors(_DIMENSION)
        with Collection.open(
            folder / 'mine', encoder, sparse=sparse, embedding=vectors
        ) as collection:
            collection.add(documents(options.documents))
    with Collection.open(folder / 'mine', encoder, sparse=sparse) as collection:
        collection.add(written_documents(options.writers))


def written_documents(count: int) -> Iterator[dict[str, str]]:
    """The first versions of the documents that the writers write."""
    for number in range(count):
        yield {'id': _docid(number), 'text': f'This is version 1 of {_docid(number)}.'}


def _docid(number: int) -> str:
    return f'written{number}'


def soak(options: argparse.Namespace, folder: Path) -> Findings:
    """Run the service, its readers and its writers."""
    build(options, folder)
    service, address = start_service(folder)
    findings = Findings()
    until = time.monotonic() + 60 * options.minutes
    threads = []
    for _ in range(options.readers):
        arguments = (address, options.writers, until, findings)
        threads.append(threading.Thread(target=read, args=arguments))
    for number in range(options.writers):
        arguments = (address, _docid(number), until, findings)
        threads.append(threading.Thread(target=write, args=arguments))
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        time.sleep(min(_LOOKED_EVERY, max(0.1, until - time.monotonic())))
        findings.megabytes.append(resident_megabytes(service.pid))
    for thread in threads:
        thread.join()
    service.terminate()
    service.wait(60)
    return findings


def main() -> None:
    """Soak, print what was found, and fail if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--writers', type=int, default=20)
    parser.add_argument('--readers', type=int, default=30)
    parser.add_argument('--documents', type=int, default=0, help='others, which nobody writes to')
    parser.add_argument('--bm25', action='store_true', help='with Lucene beside the vectors')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        findings = soak(options, Path(folder))
    times = statistics.quantiles(findings.milliseconds, n=100)
    memory = findings.megabytes
    third = max(1, len(memory) // 3)
    print(f'{findings.searches} searches, {findings.writes} writes in {options.minutes:g} minutes')
    print(f'wrong answers: {len(findings.wrong)}; failed requests: {len(findings.failed)}')
    print(f'a search: median {times[49]:.0f} ms, p99 {times[98]:.0f} ms')
    print(
        f'resident: {statistics.median(memory[:third]):.0f} MB in the first third, '
        f'{statistics.median(memory[-third:]):.0f} MB in the last'
    )
    for problem in [*findings.wrong[:5], *findings.failed[:5]]:
        print(f'  {problem}')
    if findings.wrong or findings.failed:
        sys.exit(1)


if __name__ == '__main__':
    main()
