import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.studies.layers import layer_curve, length_rates
from pyserini_repbert.ranking import Candidate, Query
from pyserini_repbert.rerank import CedrReranker, Reranker

TEXTS = {'a': 'the cat sat on the mat', 'b': 'a dog ran', 'c': 'fish ate the bird in the sea . ' * 12}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'topics.tsv').write_text('query\t1\tcat sat\nquery\t2\tfish\nquery\t3\tnot in the run\n')
    (tmp_path / 'docs.tsv').write_text(''.join(f'doc\t{docid}\t{text}\n' for docid, text in TEXTS.items()))
    lines = [f'{qid} Q0 {docid} {rank} {9 - rank} t\n' for qid in '12' for rank, docid in enumerate('abc', 1)]
    (tmp_path / 'bm25.run').write_text(''.join(lines))
    (tmp_path / 'qrels').write_text('1 0 a 1\n2 0 c 1\n77 0 not-among-the-topics 1\n')
    return tmp_path


class BestAtTwoLayers(Reranker):
    """Puts 'r' first with two layers, last with one."""

    def __init__(self, n_layers):
        self.sign = 1 if n_layers == 2 else -1

    def score_lists(self, queries, lists, on_progress=None):
        import numpy as np

        return [np.array([self.sign * (item.docid == 'r') for item in items], dtype=np.float32) for items in lists]


def test_curve_by_hand():
    times = iter([0.0, 2.0, 10.0, 11.0])
    lists = [[Candidate('r', text='x'), Candidate('n', text='y')], [Candidate('n', text='y')]]
    queries = [Query('1', 'p'), Query('2', 'q')]
    found = layer_curve(
        BestAtTwoLayers, [1, 2], queries, lists, {'1': {'r': 1}}, parse_measures(['MRR@10']), clock=lambda: next(times)
    )
    assert found == {1: (1.5, {'MRR@10': 0.5}), 2: (3.0, {'MRR@10': 1.0})}


def test_ties_keep_the_order_of_the_candidates():
    class Indifferent(BestAtTwoLayers):
        def score_lists(self, queries, lists, on_progress=None):
            return [0 * scores for scores in super().score_lists(queries, lists)]

    lists = [[Candidate(docid, text='x') for docid in 'nrz']]  # trec_eval would put z first
    times = iter([0.0, 1.0])
    found = layer_curve(
        Indifferent, [1], [Query('1', 'p')], lists, {'1': {'n': 1}}, parse_measures(['RR']), clock=lambda: next(times)
    )
    assert found[1].means == {'RR': 1.0}


def test_rates_by_length(tiny_cedr):
    times = iter(range(100))
    reranker = CedrReranker(tiny_cedr('pacrr'), token_budget=1)
    rates = length_rates(reranker, [10, 100], least_seconds=2.5, clock=lambda: next(times))
    assert rates == {10: 12 / 3, 100: 12 / 3}  # 3 rounds of 4 documents, of 1 s each
    assert reranker.work.tokens == 4 * 4 * (4 + 3 + 10) + 4 * 4 * 2 * (4 + 3 + 50)


def test_command(files, tiny_cedr, capsys, figures):
    tiny_cedr('knrm')
    tiny_cedr('vanilla')
    command = (
        'layers --models cedr-knrm V=cedr-vanilla --run bm25.run --topics topics.tsv --qrels qrels --corpus docs.tsv '
        '--measures nDCG@20 --csv layers.csv --plot layers.png --lengths 5 70 --seconds 0 --csv-lengths lengths.csv '
        '--plot-lengths lengths.png'
    )
    assert run(main, command.split()) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith('|')]
    table = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    assert table[0] == ['model', 'layers', 'nDCG@20', 'documents/s']
    assert [row[:2] for row in table[2:6]] == [['cedr-knrm', '1'], ['cedr-knrm', '2'], ['V', '1'], ['V', '2']]
    assert table[6] == ['documents/s at length', '5', '70']
    csv = (files / 'layers.csv').read_text().splitlines()
    assert csv[0] == 'measure,model,layers,value'
    assert len(csv) == 1 + 2 * 2 * 2
    whole = CedrReranker('cedr-knrm').rerank('cat sat', [Candidate(docid, text=text) for docid, text in TEXTS.items()])
    fish = CedrReranker('cedr-knrm').rerank('fish', [Candidate(docid, text=text) for docid, text in TEXTS.items()])
    gain = {0: 1.0, 1: 0.6309, 2: 0.5}
    expected = sum(gain[[item.docid for item in ranked].index(docid)] for ranked, docid in ((whole, 'a'), (fish, 'c')))
    assert float(csv[2].split(',')[-1]) == pytest.approx(expected / 2, abs=1e-4)
    quality, rates = (figure.axes[0] for figure in figures)
    shown = {line.get_label(): line.get_xydata().tolist() for line in quality.lines}
    columns = [line.split(',') for line in csv if line.startswith('nDCG@20')]
    assert list(shown) == ['cedr-knrm', 'V']
    for name, points in shown.items():
        rows = [[float(layers), float(value)] for _, model, layers, value in columns if model == name]
        assert points == [[x, pytest.approx(y, abs=1e-6)] for x, y in rows]
    assert [line.get_xdata().tolist() for line in rates.lines] == [[5, 70], [5, 70]]
    for name in ('layers.png', 'lengths.png'):
        assert (files / name).read_bytes()[:4] == b'\x89PNG'


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        ('', 'nothing was asked for'),
        ('--run bm25.run --topics topics.tsv', '--run needs --qrels'),
        ('--run bm25.run --topics other.tsv --qrels qrels --corpus docs.tsv', 'qrels judges no topic of other.tsv'),
        ('--run bm25.run --topics 77.tsv --qrels qrels --corpus docs.tsv', 'run bm25.run has no topic of 77.tsv'),
        ('--run bm25.run --topics topics.tsv --qrels qrels', 'passages come from one place'),
        ('--run bm25.run --topics topics.tsv --qrels qrels --corpus docs.tsv --layers 9', '9 layers were asked for'),
        ('--run bm25.run --topics topics.tsv --qrels qrels --corpus few.tsv', "candidate 'b' has no text"),
    ],
)
def test_errors(files, tiny_cedr, capsys, flags, message):
    tiny_cedr('knrm')
    (files / 'other.tsv').write_text('9\tx\n')
    (files / '77.tsv').write_text('77\tx\n')
    (files / 'few.tsv').write_text('doc\ta\ttext\n')
    assert run(main, ['layers', '--models', 'cedr-knrm', *flags.split()]) == 2
    assert message in capsys.readouterr().err
