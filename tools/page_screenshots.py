"""Take the pictures of the search page in docs/images: light, dark, narrow, compare.

python -m pyserini_repbert.serve --index demo
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
_QUERY = 'q=what+was+the+city+of+beijing+previously+known+as'
_MOVED = 'q=where+does+kevins+family+go+in+home+alone+2&system=dense&system=bm25&hits=5'
_BOTH = f'{_QUERY}&system=dense&system=bm25&hits=5'


@dataclass(frozen=True)
class Picture:
    """A state of the page.

    Attributes
    ----------
    address : behind the service's
    awaited : the selector of what has to be there
    scheme : 'light' or 'dark'
    """

    name: str
    address: str
    awaited: str
    width: int
    height: int
    scheme: str = 'light'


PICTURES = (
    Picture('light', f'?{_MOVED}&rerank=monobert-demo%4010', '.hit', 1280, 960),
    Picture('dark', f'?{_BOTH}&open=qed-0033&why=epic', '.terms', 1280, 1100, 'dark'),
    Picture('narrow', f'?{_BOTH}', '.hit', 390, 844),
    Picture(
        'compare',
        f'?view=compare&{_QUERY}&system=dense&b.system=bm25&hits=6',
        '.pair',
        1280,
        1150,
    ),
)
_LONGEST = 120_000  # ms to wait for a picture's contents


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
