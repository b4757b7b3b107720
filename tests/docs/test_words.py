"""Docs, messages and docstrings say it in plain English: they have none of these phrases.

Each phrase has a plainer form. Code, outputs, headings and the targets of links are not checked,
because they repeat names and what commands print.
"""

import ast
import re

import pytest
from doc_blocks import blocks
from doc_runner import ROOT

PAGES = [
    *(ROOT / name for name in ('README.md', 'CONTRIBUTING.md', 'AGENTS.md', 'CHANGELOG.md')),
    *sorted((ROOT / 'docs').rglob('*.md')),
    *sorted((ROOT / 'benchmarks').glob('*.md')),
]
PACKAGE = ROOT / 'pyserini_repbert'


# Phrases to avoid, and what to write instead. A phrase is a regular expression that ignores case;
# it sees a paragraph as one line.
PHRASES = {
    r'\bwhoever\b': 'who it is: "you", "the command"',
    # "There are no hits" is right.
    r'(?<!there )\b(?:is|are) no (?!longer\b|more than\b)': '"is not a …", or "without …"',
    r'\bin place of\b': '"instead of"',
    r'\bby (?:itself|themselves)\b': '"automatically", or leave it out',
    r'\bwithout a word\b': '"silently"',
    r'\bnothing else than\b': '"only"',
    r'\bcannot be had\b': '"unavailable"',
    r'\b(?:seconds?|minutes?|s|ms) of (?:a|one) (?:core|processor)\b': '"s of processor time"',
    r'\bbut for\b': '"except"',
    r'\bas (?:it|they) stands? there\b|\bwhat stands\b': 'what it is',
    r'\banew\b': '"again", or "from the start"',
    r'\bany more\b': '"no longer"',
    r'\botherwise than\b': '"differently from", or what differs',
    r'\ball the same\b': '"anyway", or "still"',
    r'\btakes? the place of\b': '"replaces", or "instead of"',
    r'\bunless you say\b|\bneed not be told\b': '"by default"',
    r'\blearnt\b': '"learned"',
    r'\bwhich (?:is|are) then\b': 'a second sentence',
    r'\bwho asks\b': 'who it is: "the caller"',
    r'\bmend\b': '"fix"',
    r'\bis there twice\b': '"occurs twice"',
    r'\b(?:not a|no) whole (?:archive|file|gzip|Parquet|state|WARC)\b': '"complete"',
    r'\b(?:is|are|not) whole\b(?! [a-z])': '"complete", or "intact"',
    r', as no \w+ does\b': '"which no … does", or "too much for a …"',
    r"\b(?:None|\w+Error) where\b|(?<!\S)'' where\b": '"if"',
    r'\b(?:those|that) of\b': 'the noun again, or a possessive: "the encoder\'s"',
    # "Anything else." is right.
    r'[,;] else\b|(?<!thing )\belse[.;]|\. Else\b': '"otherwise", at the start of its clause',
    r'\b(?:is|are) said\b': 'who says it: "the command says"',
    r', say\b': '"for example", or "such as"',
    r'\bweights of terms\b': '"term weights"',
    r'\bwhole numbers?\b': '"integer"',
    r'\bas (?:it|they) (?:is|are) now\b': '"the present …"',
    r'\b(?:questions?|topics?) held out\b': '"held-out questions"',
    r'\bstands? (?:in|at|on|behind|beside|above|below|before|between|apart|together)\b': (
        '"is in …", "comes before …", "precedes"'
    ),
    r'\blies? (?:in|outside|below)\b': '"is in …"',
    r'\bby now\b': '"has since changed"',
    r'\bsays? (?:little|nothing) of\b': '"says little about"',
    r'\bof (?:its|their|your|our|his|her) own\b': '"your own …", "a separate …", or leave it out',
    r"(?<!each )\b(?:an)?other (?:[\w'-]+ ){1,3}than\b": (
        '"not the …", "whose … differs", or "… other than"'
    ),
    r'\bnot as (?:(?:it|they) (?:was|were|is|are) )?(?:made|stored|written)\b': (
        '"differs from what was written", or "damaged"'
    ),
    # "That is none of them" is right, and a docstring's "that is None" is to be "of None".
    r'\b(?:that|what|which) is none\b(?! of)': '"invalid", or "not a …"',
    r'\bhears?\b': '"gets", "is called with"; "what to tell a user about"',
    r'\bwhere that\b': '"if that", "when", or a noun: "the position of …"',
    r'\blikewise\b': '"the same", or what it is',
    r'\bextensions? brings?\b': '"adds"',
    r'\btaken away\b|\btake .{1,20} away\b': '"removed"',
    r'(?<!\b(?:all|one|two) )(?<!\b(?:copy|each|most) )(?<!\bfirst )\bof which\b': (
        'a second sentence, or "whose"'
    ),
}


def paragraphs(text, code_lines):
    """(line, text) of each paragraph, list item and table row, without code and links' targets."""
    start = 0
    words = []
    for number, line in enumerate([*text.split('\n'), ''], start=1):
        plain = '' if number in code_lines else line.strip()
        begins = re.match(r'[-*] |\d+\. |\|', plain)
        is_prose = plain and not plain.startswith(('#', '<!--', '!['))
        if words and (begins or not is_prose):
            yield start, ' '.join(words)
            words = []
        if is_prose:
            start = start if words else number
            words.append(plain)


def lines_of_code(path):
    return {number for block in blocks(path) for number in range(block.line - 1, block.end + 1)}


def awkward(path):
    """Each phrase to avoid: the line at which its paragraph begins, and the plainer words."""
    found = []
    content = path.read_text(encoding='utf-8')
    for line, text in paragraphs(content, lines_of_code(path)):
        prose = re.sub(r'`[^`]*`|\]\([^)]*\)', '`', text)
        for problem in awkward_phrases(prose):
            found.append(f'{path.name}:{line}: {problem}')
    return found


def awkward_phrases(prose):
    """Each phrase to avoid that a text has, and the plainer words."""
    for pattern, plainer in PHRASES.items():
        match = re.search(pattern, prose, re.IGNORECASE)
        if match:
            yield f'"{match[0]}": write {plainer}'


def messages(path):
    """(line, text) of each text of a module that is not a docstring and has several words."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding='utf-8'))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and ' ' in node.value:
            yield node.lineno, node.value


def docstrings(path):
    """(line, text) of each docstring of a module, of its public classes and functions."""
    waiting = [ast.parse(path.read_text(encoding='utf-8'))]
    while waiting:
        node = waiting.pop()
        text = ast.get_docstring(node)
        if text:
            yield getattr(node, 'lineno', 1), ' '.join(text.split())
        for child in node.body:
            is_named = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_named and not child.name.startswith('_'):
                waiting.append(child)


def awkward_docstrings(folder):
    """Each phrase to avoid in public docstrings, and the plainer words. Code is left out."""
    found = []
    for path in sorted(folder.rglob('*.py')):
        for line, text in docstrings(path):
            for problem in awkward_phrases(re.sub(r'`[^`]*`', '`', text)):
                found.append(f'{path.relative_to(ROOT)}:{line}: {problem}')
    return found


@pytest.mark.parametrize('path', PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words(path):
    assert awkward(path) == []


def test_words_of_messages_and_help():
    found = []
    for path in sorted(PACKAGE.rglob('*.py')):
        for line, text in messages(path):
            for problem in awkward_phrases(text):
                found.append(f'{path.relative_to(PACKAGE)}:{line}: {problem}')
    assert found == []


def test_words_of_docstrings():
    assert awkward_docstrings(PACKAGE) == []
    assert awkward_docstrings(ROOT / 'benchmarks') == []
    assert awkward_docstrings(ROOT / 'tools') == []


def test_the_page_spells_learned_as_docs_do():
    scripts = [*PACKAGE.rglob('*.js'), *PACKAGE.rglob('*.html')]
    assert len(scripts) > 40
    assert [str(path) for path in scripts if 'learnt' in path.read_text('utf-8').lower()] == []


def test_phrases_are_found_in_prose_alone(tmp_path):
    page = tmp_path / 'page.md'
    page.write_text(
        '# By itself\n\nThere are no hits. `but for` [is](but-for.md) code.\n\n```text\n'
        'but for\n```\n\n- It reads all files but\n  for one.\n- A page is no file.\n',
        encoding='utf-8',
    )
    assert awkward(page) == [
        'page.md:9: "but for": write "except"',
        'page.md:11: "is no ": write "is not a …", or "without …"',
    ]
