"""`python -m pyserini_repbert.doctor`: what this machine has and lacks, each with the fix."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass

from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.console import json_text
from pyserini_repbert.errors import (
    MissingDependencyError,
    MissingResourceError,
    PyseriniRepbertError,
)

REQUIRED = (
    'transformers',
    'numpy',
    'safetensors',
    'ir_measures',
    'huggingface_hub',
    'PyYAML',
    'tqdm',
    'pyjnius',
)
_LITTLE_SPACE = 20e9  # bytes; MS MARCO's passages as float16 vectors are 13.6 GB


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes
    ----------
    check : what was checked
    status : 'ok'; 'fail': a required part does not work; 'warn': an optional part does not work,
        or a part works less well
    found : what was found
    fix : what to do
    """

    check: str
    status: str
    found: str
    fix: str = ''


def _python() -> Iterator[Finding]:
    machine = f'{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs'
    yield Finding('python', 'ok', f'{platform.python_version()} on {machine}')


def _java() -> Iterator[Finding]:
    from pyserini_repbert.lucene import java_home, jvm

    java = java_home.find_java()
    jvm.start_jvm()
    yield Finding('java', 'ok', f'{java.version} in {java.home} ({java.source}), starts')


def _anserini() -> Iterator[Finding]:
    from pyserini_repbert.lucene.java_home import anserini_jar

    yield Finding('anserini', 'ok', str(anserini_jar()))


def _classes() -> Iterator[Finding]:
    """The archive of Java's classes, which is made if it is missing."""
    from pyserini_repbert.files import human_size
    from pyserini_repbert.lucene.jvm import prepare_classes

    archive = prepare_classes()
    if archive is None:
        yield Finding('classes', 'ok', 'no archive of them, so Java reads the jar each time')
    else:
        size = human_size(archive.stat().st_size)
        found = f'{archive} ({size}), with which a search starts Java sooner'
        yield Finding('classes', 'ok', found)


def _languages() -> Iterator[Finding]:
    """The languages whose analyzers Anserini's jar has."""
    from pyserini_repbert.lucene.analysis import analyzed_languages
    from pyserini_repbert.lucene.languages import LANGUAGES

    known = analyzed_languages()
    found = f'{len(known)}, each with its analyzer: {", ".join(known)}'
    missing = sorted(set(LANGUAGES) - set(known))
    if missing:
        fix = f"no {', '.join(missing)}: pip install 'pyserini>=1.6,<3'"
        yield Finding('languages', 'warn', found, fix)
    else:
        yield Finding('languages', 'ok', found)


def _pyserini() -> Iterator[Finding]:
    """Pyserini may be installed but fail: with other versions of its packages or, 2.x, without
    its tables.
    """
    from pyserini_repbert.lucene.compat import import_pyserini, pyserini_version

    version = pyserini_version()
    numbers = tuple(int(number) for number in re.findall(r'\d+', version)[:2])
    if (1, 6) <= numbers < (3,):
        yield Finding('pyserini', 'ok', version)
    else:
        yield Finding('pyserini', 'warn', version, "pip install 'pyserini>=1.6,<3'")
    try:
        import_pyserini('pyserini.encode')
    except PyseriniRepbertError as error:
        status = 'warn' if isinstance(error, MissingResourceError) else 'fail'
        yield _problem(
            'pyserini import', status, error, '; dense search, encode and rerank need no Pyserini'
        )


def _packages() -> Iterator[Finding]:
    versions = ', '.join(f'{name} {importlib.metadata.version(name)}' for name in REQUIRED)
    yield Finding('packages', 'ok', versions)


def _extensions() -> Iterator[Finding]:
    """The installed extensions, and this release's extensions that are missing."""
    from pyserini_repbert.extension import extensions
    from pyserini_repbert.extension_words import missing_extensions

    found = ', '.join(sorted(extensions())) or 'none'
    missing = ', '.join(missing_extensions())
    if missing:
        found += f'; not installed: {missing}'
    yield Finding('extensions', 'ok', found)


def _torch() -> Iterator[Finding]:
    import torch

    from pyserini_repbert.models.precision import auto_reason, bfloat16_gain
    from pyserini_repbert.models.question_threads import question_threads

    device = torch.device('cpu')
    gain = bfloat16_gain(device)
    if gain:
        support = f'bfloat16 natively on the CPU: --bf16 is {gain} faster'
    else:
        support = f'{auto_reason(device)}: --bf16 is slow'
    threads = f'{torch.get_num_threads()} threads'
    kernels = torch.backends.cpu.get_cpu_capability()
    yield Finding('torch', 'ok', f'{torch.__version__}, {threads}, {kernels}, {support}')
    question = question_threads()
    found = f'{question.threads} for one question (--threads auto): {question.reason}'
    yield Finding('threads', 'ok', found)


def _int8() -> Iterator[Finding]:
    """How fast int8 is, where the extra 'onnx' is installed."""
    from pyserini_repbert.rerank.int8_speed import int8_speed

    with suppress(MissingDependencyError):
        speed = f'products are {int8_speed():.3g} times as fast as in float32'
        found = f'{speed}: --backend onnx-int8, whose scores differ by tenths'
        yield Finding('int8', 'ok', found)


def _faiss() -> Iterator[Finding]:
    import faiss

    yield Finding('faiss', 'ok', f'{faiss.__version__}, {faiss.omp_get_max_threads()} threads')


def _gpu() -> Iterator[Finding]:
    import torch

    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            name = torch.cuda.get_device_name(number)
            free, total = torch.cuda.mem_get_info(number)
            memory = f'{free / 1e9:.0f} of {total / 1e9:.0f} GB free'
            yield Finding('gpu', 'ok', f'cuda:{number} {name}, {memory}')
    elif shutil.which('nvidia-smi'):
        fix = (
            f"install torch's CUDA build (this is {torch.__version__}) or a newer driver: "
            f'https://pytorch.org'
        )
        yield Finding('gpu', 'warn', 'an NVIDIA driver is here, but torch cannot use it', fix)
    else:
        yield Finding('gpu', 'ok', 'none: everything runs on the CPU')


def _cache() -> Iterator[Finding]:
    from pyserini_repbert.files import cache_folder, human_size

    folder = cache_folder()
    existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        yield Finding(
            'cache',
            'fail',
            f'{folder} is not writable',
            'set PYSERINI_REPBERT_CACHE to another folder',
        )
        return
    free = shutil.disk_usage(existing).free
    held = sum(file.stat().st_size for file in folder.rglob('*') if file.is_file())
    found = f'{folder}, {human_size(free)} free, holds {human_size(held)}'
    if free < _LITTLE_SPACE:
        fix = f'less than {human_size(_LITTLE_SPACE)}: too little for MS MARCO'
        yield Finding('cache', 'warn', found, fix)
    else:
        yield Finding('cache', 'ok', found)


def _catalog() -> Iterator[Finding]:
    """What the package ships, and what comes with other packages.

    Downloads are listed only on request.
    """
    from pyserini_repbert import catalog

    for kind in catalog.KINDS:
        for name, entry in catalog.entries(kind).items():
            is_shipped = 'resource' in entry.values
            try:
                if is_shipped:
                    catalog.resource(entry)
                elif 'package' in entry.values:
                    catalog.package_folder(entry)
            except PyseriniRepbertError as error:
                yield _problem(f'{kind}/{name}', 'fail' if is_shipped else 'warn', error)


def _problem(check: str, status: str, error: PyseriniRepbertError, note: str = '') -> Finding:
    """A finding from an error, whose message ends in what to do."""
    message, _, fix = str(error).rpartition(': ')
    return Finding(check, status, f'{message}{note}', fix)


# Each comes after those that it depends on.
CHECKS = (
    _python,
    _java,
    _anserini,
    _classes,
    _languages,
    _pyserini,
    _packages,
    _extensions,
    _torch,
    _int8,
    _faiss,
    _gpu,
    _cache,
    _catalog,
)


def findings() -> Iterator[Finding]:
    """The findings of all checks, in order; a check that raises is reported as a failure."""
    for check in CHECKS:
        name = check.__name__.strip('_')
        try:
            yield from check()
        except PyseriniRepbertError as error:
            yield _problem(name, 'fail', error)
        except Exception as error:
            found = f'{type(error).__name__}: {error}'
            yield Finding(name, 'fail', found, 'reinstall the package named here')


def main(arguments: list[str]) -> int:
    """Print the report; status 1 if a required part fails."""
    flags = parser('doctor', 'Check this machine, and say how to add what is missing.')
    flags.add_argument('--json', action='store_true', help='print a JSON list instead of lines')
    options = flags.parse_args(arguments)
    report = []
    for finding in findings():
        report.append(finding)
        if not options.json:
            _print_finding(finding)
    if options.json:
        print(json_text([asdict(finding) for finding in report], indent=1))
    return int(any(finding.status == 'fail' for finding in report))


def _print_finding(finding: Finding) -> None:
    """Print a finding at once, and below it what to do."""
    print(f'{finding.status:<4}  {finding.check:<16}  {finding.found}')
    if finding.fix:
        print(f'{"":<22}  fix: {finding.fix}')
