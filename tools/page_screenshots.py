"""Take the pictures of the search page in docs/images: light, dark, narrow, compare.

python -m pyserini_repbert.serve --index demo
python tools/page_screenshots.py [--url http://127.0.0.1:8081/] [--output docs/images]

Needs Playwright (the web extra), a Chromium, and the running service.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / 'docs' / 'images'
_QUERY = 'q=what+was+the+city+of+beijing+previously+known+as'
_MOVED = 'q=where+does+kevins+family+go+in+home+alone+2&system=dense&system=bm25&hits=5'
_BOTH = f'{_QUERY}&system=dense&system=bm25&hits=5'
# name: address, selector of what has to be there, width, height, color scheme
PICTURES = {
    'light': (f'?{_MOVED}&rerank=monobert-demo%4010', '.hit', 1280, 960, 'light'),
    'dark': (f'?{_BOTH}&open=qed-0033&why=epic', '.terms', 1280, 1100, 'dark'),
    'narrow': (f'?{_BOTH}', '.hit', 390, 844, 'light'),
    'compare': (
        f'?view=compare&{_QUERY}&system=dense&b.system=bm25&hits=6',
        '.pair',
        1280,
        1150,
        'light',
    ),
}
_LONGEST = 120_000  # ms to wait for a picture's contents


def take(url: str, output: Path) -> None:
    """Write a picture of each state; its page is loaded twice, so that it does not show the time
    of a first request.
    """
    output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which('chromium') or '/usr/bin/chromium',
            args=['--no-sandbox', '--disable-dev-shm-usage'],
        )
        for name, (address, wait, width, height, scheme) in PICTURES.items():
            viewport = {'width': width, 'height': height}
            page = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion='reduce')  # type: ignore[arg-type]
            for _ in range(2):
                page.goto(url + address)
                page.wait_for_selector(wait, timeout=_LONGEST)
            page.screenshot(path=output / f'page-{name}.png')
            page.close()
            print(output / f'page-{name}.png')
        browser.close()


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description='Pictures of the search page for the docs.')
    parser.add_argument('--url', default='http://127.0.0.1:8081/')
    parser.add_argument('--output', type=Path, default=IMAGES)
    options = parser.parse_args()
    take(options.url, options.output)


if __name__ == '__main__':
    main()
