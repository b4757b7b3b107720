"""`explain`: four systems as text, JSON, HTML and PNG; passages by docid or as texts; one line
for bad input.
"""

import json

import numpy as np
import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.explain import main
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.explain import explain_indexed, similarity_maps
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker, DuoBertReranker, MonoBertReranker
from pyserini_repbert.systems.epic.encoder import EpicEncoder

QUERY = 'cat sat'
PASSAGES = ['the cat sat on the mat', 'a dog ran .', 'big blue fish']


@pytest.fixture
def explain(capsys):
    """explain(status, *arguments) -> stdout, or stderr where an error is expected."""

    def command(status, *arguments):
        assert run(main, ['--query', QUERY, *map(str, arguments)]) == status
        printed = capsys.readouterr()
        return printed.err if status else printed.out

    return command


def test_monoberts_probabilities(explain, cross_encoder_folder, figures, tmp_path):
    folder = cross_encoder_folder('monobert')
    flags = ('--model', folder, '--passage', *PASSAGES)
    explained = json.loads(explain(0, *flags, '--json'))
    passages = [Candidate(docid, text=text) for docid, text in zip('123', PASSAGES, strict=True)]
    scores = {hit.docid: hit.score for hit in MonoBertReranker(folder).rerank(QUERY, passages)}
    assert dict(zip(explained['docids'], explained['scores'], strict=True)) == pytest.approx(
        scores, abs=1e-5
    )
    rows = [line.split('|')[1].strip() for line in explain(0, *flags).splitlines()[2:]]
    assert rows == sorted(scores, key=lambda docid: -scores[docid])
    explain(0, *flags, '--output', tmp_path / 'a.png', tmp_path / 'a.html')
    assert [bar.get_width() for bar in figures[0].axes[0].patches] == explained['probabilities']
    assert f'{explained["scores"][0]:.4f}' in (tmp_path / 'a.html').read_text()


OWN = """
import numpy as np

from pyserini_repbert.rerank import Reranker


class ShortestFirst(Reranker):
    def score_lists(self, queries, lists, on_progress=int):
        return [np.array([-float(len(hit.text)) for hit in hits]) for hits in lists]
"""


def test_an_own_reranker_shows_its_scores_alone(explain, figures, tmp_path, monkeypatch):
    (tmp_path / 'by_length.py').write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    flags = ('--model', 'by_length:ShortestFirst', '--passage', 'abc', 'a')
    assert explain(0, *flags).splitlines() == [
        '| passage |   score |',
        '| ------- | ------: |',
        '| 2       | -1.0000 |',
        '| 1       | -3.0000 |',
    ]
    explain(0, *flags, '--output', tmp_path / 'a.png', tmp_path / 'a.html')
    assert [bar.get_width() for bar in figures[0].axes[0].patches] == [-3.0, -1.0]
    assert '<td>2</td><td>-1.0000</td>' in (tmp_path / 'a.html').read_text()


TABLES = (
    OWN
    + """
    def explain(self, query, hits, settings, trace=None):
        rows = [{'letter': '|', 'adds': 0.25, 'at': 3}, {'letter': '<b>', 'adds': -1.0, 'at': 4}]
        tables = [{'docid': docid, 'title': 'letters', 'rows': rows} for docid in hits.docids[:1]]
        tables.append({'docid': hits.docids[1], 'title': 'none', 'rows': []})
        return {**super().explain(query, hits, settings), 'tables': tables}
"""
)


def test_an_own_reranker_shows_tables(explain, figures, tmp_path, monkeypatch):
    (tmp_path / 'by_letter.py').write_text(TABLES)
    monkeypatch.syspath_prepend(tmp_path)
    flags = ('--model', 'by_letter:ShortestFirst', '--passage', 'abc', 'a')
    assert explain(0, *flags).splitlines()[4:] == [
        '',
        '1: letters',
        '',
        '| letter |    adds |  at |',
        '| ------ | ------: | --: |',
        r'| \|     |  0.2500 |   3 |',
        '| <b>    | -1.0000 |   4 |',
    ]
    explain(0, *flags, '--output', tmp_path / 'a.png', tmp_path / 'a.html')
    assert [bar.get_width() for bar in figures[0].axes[1].patches] == [0.25, -1.0]
    html = (tmp_path / 'a.html').read_text()
    assert '<h2>1: letters</h2>' in html
    assert '<td>&lt;b&gt;</td><td>-1.0000</td><td>4</td>' in html
    assert 'none' not in html


def test_duoberts_matrix(explain, cross_encoder_folder, figures, tmp_path):
    folder = cross_encoder_folder('duobert')
    flags = ('--model', folder, '--passage', *PASSAGES, '--samples', '1', '--seed', '2')
    explained = json.loads(explain(0, *flags, '--json'))
    passages = [Candidate(docid, text=text) for docid, text in zip('123', PASSAGES, strict=True)]
    for method, samples in (('sum', None), ('binary', None), ('sample', 1)):
        reranked = DuoBertReranker(folder, method=method, samples=samples, seed=2).rerank(
            QUERY, passages
        )
        assert explained['methods'][method]['order'] == [hit.docid for hit in reranked]
    assert explained['probabilities'][1][1] is None and explained['inferences'] == 6
    text = explain(0, *flags, '--output', tmp_path / 'a.png', tmp_path / 'a.html')
    assert f'{100 * explained["probabilities"][0][1]:.1f}' in text and '| rank (score) |' in text
    drawn = np.ma.getdata(figures[0].axes[0].images[0].get_array())
    assert drawn[0, 1:].tolist() == explained['probabilities'][0][1:]
    assert (tmp_path / 'a.html').read_text().count('<td') == 9 + 3 * 6
    assert 'give two passages' in explain(2, *flags[:3], 'alone')


def test_cedrs_maps(explain, tiny_cedr, figures, tmp_path):
    folder = tiny_cedr('pacrr')
    flags = ('--model', folder, '--passage')
    text = explain(0, *flags, PASSAGES[0], '--output', tmp_path / 'a.png')
    assert text.startswith('| layer 2') and text.count('@') == 6
    axis = figures[0].axes[0]
    (expected,) = similarity_maps(CedrReranker(folder), QUERY, PASSAGES[0], [2])
    np.testing.assert_allclose(axis.images[0].get_array(), expected.values, atol=1e-4)
    assert [label.get_text() for label in axis.get_xticklabels()] == expected.passage
    assert [label.get_text() for label in axis.get_yticklabels()] == expected.query
    long = 'a dog ran . ' * 30
    files = tmp_path / 'b.html', tmp_path / 'b.png'
    assert '| 2: embeddings' in explain(
        0, *flags, PASSAGES[0], long, '--layer', '0', '1', '--output', *files
    )
    assert files[0].read_text().count('<table>') == 4
    assert len(figures[1].axes[2].get_xticklabels()) == 40  # of a long passage, what matches best


def test_epics_stored_vectors(explain, tiny_epic, corpus_file, figures, tmp_path):
    model = tiny_epic()
    corpus = corpus_file(12)
    index = tmp_path / 'index'
    encode_corpus(open_corpus(corpus), EpicEncoder(model), index, prune=12, weights='uint8')
    flags = ('--index', index, '--docid', 'd3', 'd5')
    explained = json.loads(explain(0, *flags, '--top', '4', '--json'))
    assert [passage['docid'] for passage in explained['passages']] == ['d3', 'd5']
    expected = explain_indexed(EpicEncoder(model), TermWeightsBundle(index), QUERY, 'd5', top=4)
    assert explained['passages'][1] == {'docid': 'd5', **expected}
    assert 'd5: score' in explain(0, *flags, '--output', tmp_path / 'a.png')
    assert len(figures[0].axes) == 2
    text = explain(0, *flags[:3], 'd3', '--corpus', corpus, '--top', '0')
    assert text.startswith('score') and 'passage:' in text and '(none)' in text


def test_epics_terms_are_shaded_on_a_terminal(explain, tiny_epic, monkeypatch):
    monkeypatch.setattr('sys.stdout.isatty', lambda: True, raising=False)
    assert '\x1b[30;48;5;46m' in explain(0, '--model', tiny_epic(), '--passage', PASSAGES[0])


def test_bad_input_is_one_line(explain, tiny_epic, cross_encoder_folder, corpus_file, tmp_path):
    mono = cross_encoder_folder('monobert')
    corpus = corpus_file(2)
    for flags, message in (
        (['--model', mono, '--docid', 'd1'], '--docid needs the --index or the --corpus'),
        (['--passage', 'x'], '--model names the reranker'),
        (['--model', mono, '--passage', 'x', '--corpus', corpus], 'are for --docid'),
        (['--model', mono, '--docid', 'd9', '--corpus', corpus], "has no passage 'd9'"),
        (['--model', mono, '--docid', 'd1', 'd1', '--corpus', corpus], "'d1' comes twice"),
        (
            ['--model', mono, '--passage', 'x', '--output', tmp_path / 'a.pdf'],
            'neither a .html nor a .png file',
        ),
        (['--model', 'nowhere', '--passage', 'x'], "'nowhere'"),
        (['--model', mono, '--passage', 'a \udcff'], 'argument --passage'),
    ):
        error = explain(2, *flags)
        assert message in error and error.count('\n') == 1, error
    assert not (tmp_path / 'a.pdf').exists()
