"""What of ten pages of documentation is their main content: by the marks of HTML, by trafilatura.

The pages are of public repositories, by seven generators. For each, a person said which of the
blocks that are read are content: those from one block to another. A way is right on a page if it
keeps 95% of the words of these, and at most 10% of the words of the others. Save the pages in a
folder under the names below. The extra of this benchmark is `pip install trafilatura
lxml_html_clean`.

    python benchmarks/main_content.py FOLDER
"""

import argparse
import importlib.util
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.collection.files.html_text import read_html
from pyserini_repbert.data.page_encodings import decode_page

LEAST_KEPT = 0.95
MOST_OTHERS = 0.1


@dataclass(frozen=True)
class Page:
    """A page: its name in the folder, its address, and its first and last block of content."""

    name: str
    address: str
    first: int
    last: int


def page(name, repository, commit, path, blocks):
    address = f'https://raw.githubusercontent.com/{repository}/{commit}/{path}'
    return Page(f'{name}.html', address, *blocks)


NLTK = ('nltk/nltk.github.com', 'fff68305')
STROM = ('heterodb/pg-strom', 'd54af897')
QBS = ('ABBAPOH/qbs.github.io', '14d9bd68')
PAGES = [
    page('sphinx-api', *NLTK, 'api/nltk.tgrep.html', (8, 58)),
    page('sphinx', *NLTK, 'contribute.html', (8, 10)),
    page('docutils', *NLTK, 'book/ch00.html', (0, 91)),
    page('mkdocs', *STROM, 'docs/brin/index.html', (14, 32)),
    page('mkdocs-release', *STROM, 'docs/release_v2.0/index.html', (14, 25)),
    page(
        'mkdocs-material',
        'paws-r/paws-r.github.io',
        '6586e332',
        'docs/docs/apigateway_get_integration_response/index.html',
        (13, 33),
    ),
    page(
        'javadoc',
        'AVanDeBrook/c-dependency-graph',
        '0168c715',
        'docs/depgraph/Parser/Lexer.html',
        (5, 65),
    ),
    page(
        'doxygen',
        '1runeberg/OpenXRProvider',
        '89228dfe',
        'docs/html/class_open_x_r_provider_1_1_x_r_base_input.html',
        (3, 61),
    ),
    page('qdoc', *QBS, 'docs/cli-build/index.html', (4, 102)),
    page('jekyll', *QBS, 'blog/release-1.19/index.html', (2, 28)),
]


def words(text):
    return Counter(re.findall(r'\w+', text))


def share(part, whole):
    return part.total() / whole.total() if whole else 0.0


def measure(label, read, folder):
    """Print how much of each page's content, and of the rest, a way keeps."""
    n_right = 0
    for one in PAGES:
        markup = decode_page((folder / one.name).read_bytes())
        blocks = '\n'.join(read_html(markup).lines).split('\n\n')
        content = words(' '.join(blocks[one.first : one.last + 1]))
        others = words(' '.join(blocks[: one.first] + blocks[one.last + 1 :]))
        found = words(read(markup))
        kept = share(found & content, content)
        besides = share((found - content) & others, others)
        is_right = kept >= LEAST_KEPT and besides <= MOST_OTHERS
        n_right += is_right
        print(f'{label:13} {one.name:22} content {kept:.3f}, others {besides:.3f}')
    print(f'{label}: right on {n_right} of {len(PAGES)}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder', type=Path)
    folder = parser.parse_args().folder
    missing = [one for one in PAGES if not (folder / one.name).is_file()]
    for one in missing:
        print(f'{folder / one.name} is not there: {one.address}')
    if missing:
        return
    measure('marks of HTML', lambda markup: '\n'.join(read_html(markup, True).lines), folder)
    if importlib.util.find_spec('trafilatura') is None:
        print('trafilatura is not installed')
        return
    import trafilatura

    def extract(markup):
        return trafilatura.extract(markup, include_comments=False, favor_recall=True) or ''

    measure('trafilatura', extract, folder)


if __name__ == '__main__':
    main()
