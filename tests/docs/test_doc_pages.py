"""README and docs: every shell and Python block runs, and prints what the page shows."""

import pytest
from doc_blocks import blocks, files_from, runs
from doc_runner import ROOT

FILES = [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))]
# Other pages begin with the files that these leave.
FIRST = {first for path in FILES if (first := files_from(path)) is not None}


def _order(path):
    """The pages that others need, then those with the most blocks: two workers end together."""
    return path not in FIRST, -sum(map(runs, blocks(path)))


PAGES = sorted(FILES, key=_order)


@pytest.mark.slow
@pytest.mark.docs
@pytest.mark.parametrize('path', PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(path, tmp_path, run_once, run_page, copy_files):
    if path in FIRST:
        _, problems = run_once(path)
    else:
        copy_files(path, tmp_path)
        problems = run_page(path, tmp_path)
    assert not problems, '\n\n'.join(problems)
