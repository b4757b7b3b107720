"""The package as users install it: a wheel, in an environment of its own, away from the
checkout.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def tracked():
    """What a commit of this checkout would hold of the package and its build files."""
    places = ['pyserini_repbert', 'setup.cfg', 'pyproject.toml', 'README.md', 'LICENSE']
    command = ['git', 'ls-files', '-z', *places]
    listed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    return [name for name in listed.split('\0') if (ROOT / name).is_file()]


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp('wheel')
    source = tmp_path_factory.mktemp('source')
    for name in tracked():  # what an earlier build left in the checkout would be packed, too
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    command = [
        sys.executable,
        '-m',
        'build',
        '--wheel',
        '--no-isolation',
        '--outdir',
        str(folder),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    (found,) = folder.glob('*.whl')
    return found


@pytest.fixture(scope='module')
def installed(wheel, tmp_path_factory):
    """The Python of a new environment that has the wheel, and this environment's other packages."""
    folder = tmp_path_factory.mktemp('environment')
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', folder], check=True)
    (site,) = folder.glob('lib/python*/site-packages')
    (site / 'others.pth').write_text(sysconfig.get_path('purelib') + '\n', encoding='utf-8')
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return folder / 'bin' / 'python'


NEXT = '-- next --'
OTHERS = f"""
import sys
from pyserini_repbert.commands.search import main
for reranker in ('duobert-demo@2', 'epic-demo@2', 'cedr-pacrr-demo@2'):
    print('{NEXT}')
    main([*sys.argv[1:], '--rerank', reranker])
"""


def run(python, folder, *arguments, **own):
    """What a command of the wheel prints, with environment variables of its own."""
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'} | own
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_what_the_checkout_has(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert [
        name for name in tracked() if name.startswith('pyserini_repbert/') and name not in names
    ] == []
    assert not [
        name
        for name in names
        if name.startswith(('tests/', 'tools/', 'benchmarks/', 'regressions/'))
    ]


def test_the_demo_runs_from_the_wheel(installed, demo_cache, tmp_path):
    """The vectors of its passages are those that the checkout built."""
    where = run(
        installed, tmp_path, '-c', 'import pyserini_repbert; print(pyserini_repbert.__file__)'
    )
    assert Path(where.strip()).is_relative_to(installed.parents[1])
    question = 'who got the first nobel prize in physics'
    search = ['--encoder', 'repbert-demo', '--index', 'demo', '--query', question, '--hits', '2']
    own = {'PYSERINI_REPBERT_CACHE': str(demo_cache)}
    command = ['-m', 'pyserini_repbert.search', *search, '--rerank', 'monobert-demo@3']
    assert 'Röntgen' in run(installed, tmp_path, *command, **own)
    # One process for the others: each would import PyTorch.
    for shown in run(installed, tmp_path, '-c', OTHERS, *search, **own).split(NEXT)[1:]:
        assert shown.count('(') >= 2
