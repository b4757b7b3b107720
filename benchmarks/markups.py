"""Words that readers of reStructuredText, AsciiDoc and Org miss or add: ours, and pandoc's.

What docutils, Asciidoctor or, for Org, pandoc itself shows as HTML is right. Its words are counted,
and each reader's, and the words that differ are given for 100 words. Whole files that pandoc
refuses are named. Lines that include a file are taken out for pandoc, which refuses them.

    pip install docutils; apt install asciidoctor
    python benchmarks/markups.py .adoc FOLDER
"""

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

from pypandoc import get_pandoc_path

from pyserini_repbert.collection.files import pandoc_documents
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.html_documents import document_of_html
from pyserini_repbert.collection.files.plain_documents import (
    asciidoc_documents,
    org_documents,
    restructured_documents,
)
from pyserini_repbert.collection.files.reader_process import ReaderProcess

FORMATS = {
    '.rst': ('rst', restructured_documents),
    '.adoc': ('asciidoc', asciidoc_documents),
    '.org': ('org', org_documents),
}
LEAST = 300  # characters of a file


def words_of(title, text):
    return Counter(re.findall(r'\w+', f'{title}\n{text}'.lower()))


def words_of_html(html, title=''):
    document = document_of_html('d', html)
    return words_of(f'{title} {document.title}', document.text)


def shown(path):
    """The HTML of a file as the program of its format shows it; '' for Org."""
    if path.suffix == '.rst':
        from docutils.core import publish_string

        settings = {
            'report_level': 5,
            'halt_level': 6,
            'file_insertion_enabled': False,
            'raw_enabled': False,
            'syntax_highlight': 'none',
            'embed_stylesheet': False,
        }
        text = path.read_text()
        return publish_string(text, writer_name='html5', settings_overrides=settings).decode()
    if path.suffix == '.adoc':
        command = ['asciidoctor', '-S', 'secure', '-a', 'nofooter', '-o', '-', str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return ''


def n_different(words, right):
    return sum(((words - right) + (right - words)).values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('suffix', choices=list(FORMATS))
    parser.add_argument('folder', type=Path)
    options = parser.parse_args()
    form, read = FORMATS[options.suffix]
    script = str(Path(pandoc_documents.__file__).with_name('pandoc_process.lua'))
    pandoc = ReaderProcess([get_pandoc_path(), 'lua', script])
    total = Counter()
    seconds = Counter()
    for path in sorted(options.folder.rglob(f'*{options.suffix}')):
        text = path.read_text(errors='replace')
        if len(text) < LEAST:
            continue
        begun = time.perf_counter()
        (document,) = read(FileToRead(path, 'd'))
        seconds['ours'] += time.perf_counter() - begun
        begun = time.perf_counter()
        text = re.sub(r'(?m)^include::.*$', '', text)
        answer = pandoc.ask({'text': text, 'format': form})
        seconds['pandoc'] += time.perf_counter() - begun
        total['files'] += 1
        if 'problem' in answer:
            total['refused by pandoc'] += 1
            print(f'{path}: pandoc: {json.dumps(answer["problem"])[:100]}')
            continue
        theirs = words_of_html(answer['text'], answer['title'])
        html = shown(path)
        right = words_of_html(html) if html else theirs
        total['words'] += sum(right.values())
        total['ours'] += n_different(words_of(document.title, document.text), right)
        total['pandoc'] += n_different(theirs, right)
    pandoc.close()
    print(dict(total))
    for name in ('ours', 'pandoc'):
        share = 100 * total[name] / total['words']
        print(f'{name}: {share:.1f} % of words differ, {seconds[name]:.1f} s')


if __name__ == '__main__':
    main()
