"""Take the pictures of the search page in docs/images: the reader's page on these docs, and the
laboratory on the demo collection.

python -m pyserini_repbert.index sync --corpus docs --include '*.md' --index guides \
    --url-prefix https://docs.example.org/
python -m pyserini_repbert.serve --index guides --index demo
python tools/page_screenshots.py [--url http://127.0.0.1:8081/] [--output docs/images]

Needs Playwright (the web extra), a Chromium, and the running service.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / 'docs' / 'images'
_READ = 'index=guides&q=which+files+of+a+folder+are+read'
_QUERY = 'index=demo&q=what+was+the+city+of+beijing+previously+known+as'
_MOVED = 'index=demo&q=where+does+kevins+family+go+in+home+alone+2&system=dense&system=bm25&hits=5'
_BOTH = f'{_QUERY}&system=dense&system=bm25&hits=5'


@dataclass(frozen=True)
class Picture:
    """A state of the page.

    Attributes
    ----------
    address : behind the service's
    awaited : the selector of what has to be there
    clicked : of what is clicked before; '' for nothing
    scheme : 'light' or 'dark'
    """

    name: str
    address: str
    awaited: str
    width: int
    height: int
    scheme: str = 'light'
    clicked: str = ''


_WHY = '.hit-tools button:has-text("Why here?")'
PICTURES = (
    Picture('reader', f'?{_READ}', '.reasons p', 1280, 960, clicked=_WHY),
    Picture(
        'document',
        f'?{_READ}&doc=guides%2Ffiles.md',
        '.in-passage',
        1280,
        960,
        'dark',
        clicked='[aria-label="Next match"]',
    ),
    Picture('phone', f'?{_READ}', '.hit', 390, 844),
    Picture('light', f'?{_MOVED}&rerank=monobert-demo%4010', '.hit', 1280, 960),
    Picture('dark', f'?{_BOTH}&open=qed-0033&why=epic', '.terms', 1280, 1100, 'dark'),
    Picture(
        'compare',
        f'?view=compare&{_QUERY}&system=dense&b.system=bm25&hits=6',
        '.pair',
        1280,
        1150,
    ),
)
_LONGEST = 60_000  # ms to wait for a picture's contents


def take(url: str, output: Path) -> None:
    """Write a picture of each state."""
    output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which('chromium') or '/usr/bin/chromium',
            args=['--no-sandbox', '--disable-dev-shm-usage'],
        )
        for picture in PICTURES:
            page = browser.new_page(
                viewport={'width': picture.width, 'height': picture.height},
                color_scheme=picture.scheme,  # type: ignore[arg-type]
                reduced_motion='reduce',
            )
            # Twice, so that it does not show the time of a first request.
            for _ in range(2):
                page.goto(url + picture.address)
                if picture.clicked:
                    page.locator(picture.clicked).first.click(timeout=_LONGEST)
                page.wait_for_selector(picture.awaited, timeout=_LONGEST)
            path = output / f'page-{picture.name}.png'
            page.screenshot(path=path)
            page.close()
            print(path)
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
