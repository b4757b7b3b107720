"""`python -m pyserini_repbert.doctor`: what this machine has and lacks, each with the fix."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from pyserini_repbert.commands.command import parser
from pyserini_repbert.errors import MissingResourceError, PyseriniRepbertError

REQUIRED = ('transformers', 'numpy', 'safetensors', 'ir_measures', 'huggingface_hub', 'PyYAML', 'tqdm', 'pyjnius')
LITTLE_SPACE = 20e9  # bytes; MS MARCO's passages as float16 vectors are 13.6 GB
_LIBRARY = re.compile(r'\S*/(lib(?:gomp|iomp5|omp)[^/\s]*)$')


class Health(StrEnum):
    """`fail`: a required part does not work; `warn`: something works less well, or an optional part does not work."""

    OK = 'ok'
    WARN = 'warn'
    FAIL = 'fail'


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `fix` is empty when there is nothing to do."""

    check: str
    status: Health
    found: str
    fix: str = ''


def _python() -> Iterator[Finding]:
    found = f'{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs'
    yield Finding('python', Health.OK, found)


def _java() -> Iterator[Finding]:
    from pyserini_repbert.lucene import java_home, jvm

    javas = list(java_home.found_javas())
    others = [f'{java.version} in {java.home}' for java in javas if not java.usable]
    ignored = f'; too old and not used: {", ".join(others)}' if others else ''
    try:
        chosen = java_home.find_java()
        jvm.start_jvm()
        from jnius import autoclass

        version = str(autoclass('java.lang.System').getProperty('java.version'))
    except PyseriniRepbertError as error:
        yield Finding('java', Health.FAIL, f'{error}', java_home.INSTALL_JAVA)
    else:
        yield Finding('java', Health.OK, f'{version} in {chosen.home} ({chosen.source}), starts{ignored}')
    try:
        jar = java_home.anserini_jar()
    except PyseriniRepbertError as error:
        yield Finding('anserini', Health.FAIL, f'{error}', "pip install 'pyserini>=1.6,<3', or set ANSERINI_CLASSPATH")
    else:
        yield Finding('anserini', Health.OK, str(jar))


def _pyserini() -> Iterator[Finding]:
    fix = "pip install 'pyserini>=1.6,<3'"
    version = _version('pyserini')
    if version is None:
        yield Finding('pyserini', Health.FAIL, 'not installed', fix)
        return
    numbers = tuple(int(number) for number in re.findall(r'\d+', version)[:2])
    fits = (1, 6) <= numbers < (3,)
    yield Finding('pyserini', Health.OK if fits else Health.WARN, version, '' if fits else fix)


def _pyserini_import() -> Iterator[Finding]:
    """Pyserini may be installed but fail: with other versions of its packages or, 2.x, without its tables."""
    from pyserini_repbert.lucene.compat import import_pyserini
    from pyserini_repbert.lucene.tables import tables_folder

    try:
        import_pyserini('pyserini.encode')
    except PyseriniRepbertError as error:
        message, _, fix = str(error).rpartition(': ')
        status = Health.WARN if isinstance(error, MissingResourceError) else Health.FAIL
        yield Finding('pyserini import', status, f'{message}; dense search, encode and rerank need no Pyserini', fix)
    else:
        kept = sum(1 for _ in tables_folder().rglob('*.json'))
        found = 'pyserini.encode is imported' + (f', {kept} tables kept in {tables_folder()}' if kept else '')
        yield Finding('pyserini import', Health.OK, found)


def _packages() -> Iterator[Finding]:
    versions = {name: _version(name) for name in REQUIRED}
    missing = [name for name, version in versions.items() if version is None]
    found = ', '.join(f'{name} {version}' for name, version in versions.items() if version)
    if missing:
        yield Finding('packages', Health.FAIL, f'missing: {", ".join(missing)}', f'pip install {" ".join(missing)}')
    else:
        yield Finding('packages', Health.OK, found)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding('torch', Health.FAIL, str(error), 'pip install torch')
        return
    from pyserini_repbert.models.precision import bfloat16_gain

    gain = bfloat16_gain(torch.device('cpu'))
    support = f'bfloat16 natively on the CPU: --bf16 is {gain} faster' if gain else 'no native bfloat16: --bf16 is slow'
    kernels = torch.backends.cpu.get_cpu_capability()
    yield Finding('torch', Health.OK, f'{torch.__version__}, {torch.get_num_threads()} threads, {kernels}, {support}')


def _faiss() -> Iterator[Finding]:
    try:
        import faiss
    except ImportError as error:
        yield Finding('faiss', Health.FAIL, str(error), 'pip install faiss-cpu')
        return
    yield Finding('faiss', Health.OK, f'{faiss.__version__}, {faiss.omp_get_max_threads()} threads')


def _openmp() -> Iterator[Finding]:
    """Runs after `_torch` and `_faiss`, which load the libraries: only loaded ones count."""
    paths = loaded_openmp()
    if paths is None:
        yield Finding('openmp', Health.OK, 'not checked: this system does not list loaded libraries')
        return
    families = {re.split(r'[-.]', path.name)[0] for path in paths}
    found = ', '.join(str(path) for path in paths) or 'none loaded'
    if len(paths) > 1 and families != {'libgomp'}:  # copies of GNU's runtime get along: each has its own threads
        fix = 'install torch and faiss from one source (both pip, or both conda); else set KMP_DUPLICATE_LIB_OK=TRUE'
        yield Finding('openmp', Health.WARN, f'{len(paths)} runtimes: {found}', fix)
    else:
        yield Finding('openmp', Health.OK, found)


def loaded_openmp() -> list[Path] | None:
    """The paths of the OpenMP runtimes loaded into this process; None where the system does not list them."""
    try:
        lines = Path('/proc/self/maps').read_text(encoding='utf-8', errors='replace').splitlines()
    except OSError:
        return None
    matches = (_LIBRARY.search(line) for line in lines)
    return sorted({Path(found.group(0)).resolve() for found in matches if found})


def _gpu() -> Iterator[Finding]:
    import torch

    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(number)
            name = torch.cuda.get_device_name(number)
            yield Finding('gpu', Health.OK, f'cuda:{number} {name}, {free / 1e9:.0f} of {total / 1e9:.0f} GB free')
    elif shutil.which('nvidia-smi'):
        fix = f"install torch's CUDA build (this is {torch.__version__}) or a newer driver: https://pytorch.org"
        yield Finding('gpu', Health.WARN, 'an NVIDIA driver is here, but torch cannot use it', fix)
    else:
        yield Finding('gpu', Health.OK, 'none: everything runs on the CPU')


def _cache() -> Iterator[Finding]:
    from pyserini_repbert.files import cache_folder, human_size

    folder = cache_folder()
    there = folder
    while not there.exists():
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        yield Finding('cache', Health.FAIL, f'{folder} is not writable', 'set PYSERINI_REPBERT_CACHE to another folder')
        return
    free = shutil.disk_usage(there).free
    content = [f'{item.name} {human_size(_size(item))}' for item in sorted(folder.glob('*'))]
    found = f'{folder}, {human_size(free)} free, holds {", ".join(content) or "nothing yet"}'
    fix = f'less than {human_size(LITTLE_SPACE)}: too little for MS MARCO' if free < LITTLE_SPACE else ''
    yield Finding('cache', Health.WARN if fix else Health.OK, found, fix)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob('*')
    return sum(file.stat().st_size for file in files if file.is_file())


def _catalog() -> Iterator[Finding]:
    from pyserini_repbert import catalog
    from pyserini_repbert.download import downloads_folder

    for kind in catalog.KINDS:
        for name, entry in catalog.entries(kind).items():
            check = f'{kind}/{name}'
            try:
                if 'resource' in entry.values:
                    yield Finding(check, Health.OK, str(catalog.resource(entry)))
                elif 'package' in entry.values:
                    yield Finding(check, Health.OK, str(catalog.package_folder(entry)))
                elif source := entry.values.get('download') or entry.values.get('hub'):
                    path = downloads_folder() / source['file'] if 'file' in source else _in_hub(source['repository'])
                    absent = f'not here: {source["size"]} are fetched when it is first asked for'
                    yield Finding(check, Health.OK, str(path) if path.exists() else absent)
            except PyseriniRepbertError as error:
                status = Health.FAIL if 'resource' in entry.values else Health.WARN
                message, _, fix = str(error).rpartition(': ')
                yield Finding(check, status, message, fix)


def _in_hub(repository: str) -> Path:
    hub = Path(os.environ.get('HF_HOME', Path.home() / '.cache' / 'huggingface')) / 'hub'
    return hub / f'models--{repository.replace("/", "--")}' / 'snapshots'


# Each comes after those that it depends on.
CHECKS = (
    _python, _java, _pyserini, _pyserini_import, _packages, _torch, _faiss, _openmp, _gpu, _cache, _catalog,
)  # fmt: skip


def findings() -> Iterator[Finding]:
    """The findings of all checks, in order; a check that raises is reported as a failure."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:
            name = check.__name__.strip('_').replace('_', ' ')
            yield Finding(name, Health.FAIL, f'{type(error).__name__}: {error}', 'reinstall the package named here')


def main(arguments: list[str]) -> int:
    """Print the report; status 1 if a required part fails."""
    flags = parser('doctor', 'What this machine has and lacks, each with the fix.')
    flags.add_argument('--json', action='store_true', help='a JSON list instead of lines')
    options = flags.parse_args(arguments)
    report = []
    for finding in findings():
        report.append(finding)
        if not options.json:
            print(f'{finding.status:<4}  {finding.check:<28}  {finding.found}')
            print(f'{"":<34}  fix: {finding.fix}\n' if finding.fix else '', end='')
    if options.json:
        print(json.dumps([asdict(finding) for finding in report], indent=1, ensure_ascii=False))
    return 1 if any(finding.status is Health.FAIL for finding in report) else 0
