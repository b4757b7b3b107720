"""README and docs: every shell and Python block runs, and prints what the page shows."""

import pytest
from doc_runner import ROOT, Page

PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))]


@pytest.mark.slow
@pytest.mark.docs
@pytest.mark.parametrize('path', PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(
    path,
    tmp_path,
    doc_cache,
    doc_programs,
    doc_counts,
    copy_files,
    pytestconfig,
):
    copy_files(path, tmp_path)
    rewrite = pytestconfig.getoption('rewrite_outputs', default=None)
    failures = Page(path, tmp_path, doc_cache, doc_programs).run(doc_counts, rewrite)
    assert not failures, '\n\n'.join(map(str, failures))
