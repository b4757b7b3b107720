"""The line above the hits of the search page."""

import pytest

from pyserini_repbert.extensions.off_topic.claims import LINE

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.mark.parametrize(
    ('address', 'element'),
    [('?index=mine&q=knife', '.hits'), ('?index=mine&q=knife&view=search', '.hits')],
    ids=['reader', 'laboratory'],
)
@pytest.mark.parametrize('is_off_topic', [True, False])
def test_the_page_says_it_above_the_hits(opened, served_collection, address, element, is_off_topic):
    own = opened(address=served_collection, bypass_csp=True)

    def answer(route):
        found = route.fetch().json()
        found['off_topic'] = is_off_topic
        route.fulfill(json=found)

    own.page.route('**/v1/mine/search*', answer)
    page = own.open(address, '.hit')
    notes = page.locator('.note').all_inner_texts()
    assert (LINE in notes) == is_off_topic
