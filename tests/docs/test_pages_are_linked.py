"""Each page of docs is found by following links from docs/index.md."""

import re

from doc_runner import ROOT

DOCS = (ROOT / 'docs').resolve()
_LINK = re.compile(r'\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)')


def linked_pages(page):
    for target in _LINK.findall(page.read_text(encoding='utf-8')):
        path = (page.parent / target).resolve()
        if path.is_file() and path.is_relative_to(DOCS):
            yield path


def test_each_page_is_reachable():
    reached = set()
    ahead = [DOCS / 'index.md']
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            ahead.extend(linked_pages(page))
    pages = set(DOCS.rglob('*.md'))
    assert sorted(str(page.relative_to(DOCS)) for page in pages - reached) == []
