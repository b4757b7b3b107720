"""HTML pages: every text is escaped, a forgotten value is an error, and a wheel holds the
templates.
"""

import html.parser
from pathlib import Path

import jinja2
import pytest

from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.explain.rendering import write_html
from pyserini_repbert.regression.report import as_html as regressions_page

ROOT = Path(__file__).parent.parent
HOSTILE = """"><script>alert('x')</script>&amp;{{ 7 * 7 }}</style></title>"""


class Reader(html.parser.HTMLParser):
    """The tags of a page, and every text and attribute that a reader would see."""

    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.seen += [value or '' for _, value in attrs]

    def handle_data(self, data):
        self.seen.append(data)


def epic(folder):
    terms = [{'term': HOSTILE, 'weight': 1.0}, {'term': 'weaker', 'weight': 0.5}]
    part = {'term': HOSTILE, 'query_weight': 1.0, 'passage_weight': 2.0, 'contribution': 2.0}
    listed = {
        'query_terms': terms,
        'passage_terms': terms,
        'expansions': terms,
        'contributions': [part],
    }
    return shown(folder, 'epic', passages=[{'docid': 'd', 'score': 2.0, 'quality': 0.5, **listed}])


def similarity(folder):
    maps = [{'layer': 1, 'values': [[0.5, 1.0]]}]
    passage = {
        'docid': HOSTILE,
        'query_tokens': [HOSTILE],
        'passage_tokens': [HOSTILE, 'b'],
        'maps': maps,
    }
    return shown(folder, 'cedr', passages=[passage, passage])


def pairs(folder):
    methods = {'sum': {'scores': [1.0, 0.0], 'order': [HOSTILE, 'b']}}
    return shown(
        folder,
        'duobert',
        docids=[HOSTILE, 'b'],
        probabilities=[[None, 0.9], [0.1, None]],
        methods=methods,
    )


def scores(folder):
    return shown(folder, 'monobert', docids=[HOSTILE], probabilities=[0.5], scores=[-0.7])


def shown(folder, system, **values):
    write_html(
        folder / 'page.html', {'model': HOSTILE, 'system': system, 'query': HOSTILE, **values}
    )
    return (folder / 'page.html').read_text(encoding='utf-8')


def regressions():
    texts = dict.fromkeys(('measure', 'expected', 'source'), HOSTILE)
    condition = {
        'name': HOSTILE,
        'status': 'FAIL',
        'why': HOSTILE,
        'missing': [],
        'commands': [HOSTILE],
        'scores': [{**texts, 'measured': 0.5, 'status': 'FAIL', 'cell': ''}],
        'fingerprint': {f'{HOSTILE} weights': HOSTILE},
    }
    files = [{'file': HOSTILE, 'title': HOSTILE, 'conditions': [condition]}]
    return regressions_page(
        {'environment': {HOSTILE: HOSTILE}, 'totals': {'FAIL': 1}, 'files': files}
    )


@pytest.mark.parametrize(
    ('name', 'times'),
    [('epic', 7), ('similarity', 15), ('pairs', 6), ('scores', 4), ('regressions', 13)],
)
def test_hostile_texts_stay_texts(name, times, tmp_path):
    """Every place that shows a text shows it whole; none of it becomes a tag, a style or a
    template's expression.
    """
    pages = {'epic': epic, 'similarity': similarity, 'pairs': pairs, 'scores': scores}
    text = pages[name](tmp_path) if name in pages else regressions()
    reader = Reader()
    reader.feed(text)
    assert reader.tags.count('script') == (name == 'regressions')  # its filters
    assert reader.tags.count('style') == reader.tags.count('title') == 1
    assert text.count('</style>') == text.count('</title>') == 1
    assert sum(seen.count(HOSTILE) for seen in reader.seen) == times
    assert '{{ 7 * 7 }}' in text and '49' not in text


def test_a_forgotten_value_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match='panels'):
        page('explanation', explained={'model': 'm', 'query': 'q', 'system': 'cedr'})
