"""The OpenAPI document: clients are made from it, so it changes only on purpose.

`python tests/serve/test_description.py` records it anew; the changelog says then what changed.
"""

import json
from pathlib import Path

from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import ServeSettings

GOLDEN = Path(__file__).parent / 'openapi.json'


def described():
    description = create_app(ServeSettings()).openapi()
    # It has the version of the package.
    del description['info']
    return json.dumps(description, indent=1, ensure_ascii=False) + '\n'


def test_the_description_is_the_recorded_one():
    assert described().splitlines() == GOLDEN.read_text(encoding='utf-8').splitlines()


if __name__ == '__main__':
    GOLDEN.write_text(described(), encoding='utf-8')
