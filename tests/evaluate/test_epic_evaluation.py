"""What pruning EPIC's vectors costs."""

import numpy as np
import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.data.runs import write_run
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.encode.pruning import prune_bundle
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.systems.epic.encoder import EpicEncoder


@pytest.fixture
def bundle(tiny_epic, corpus_file, tmp_path):
    folder = tmp_path / 'index'
    corpus = open_corpus(corpus_file(30))
    encode_corpus(corpus, EpicEncoder(tiny_epic()), folder, prune=0, shard_size=8)
    return TermWeightsBundle(folder)


def test_pruning_a_bundle_keeps_its_largest_weights(bundle, tmp_path):
    pruned = prune_bundle(bundle, tmp_path / 'pruned', 7, 'float16')
    for row in range(30):
        whole = bundle.vector(row)
        kept = pruned.vector(row)
        assert kept.weights.min() >= np.sort(whole.weights)[-7]
        np.testing.assert_array_equal(kept.weights, whole.weights_of(kept.terms))


def test_a_pruned_bundle_can_be_pruned_further_but_not_less(bundle, tmp_path):
    pruned = prune_bundle(bundle, tmp_path / 'pruned', 7, 'float16')
    again = prune_bundle(pruned, tmp_path / 'again', 3, 'uint8')
    assert len(again.vector(0)) == 3
    assert again.docids(np.array([29])) == ['d29']
    for more in (8, 0):
        with pytest.raises(InputError, match='keeps 7 weights'):
            prune_bundle(pruned, tmp_path / 'more', more, 'float16')


def test_quantised_weights_are_near(bundle, tmp_path):
    quantised = prune_bundle(bundle, tmp_path / 'quantised', 0, 'uint8')
    np.testing.assert_allclose(quantised.vector(3).weights, bundle.vector(3).weights, atol=5e-3)


@pytest.fixture
def stopped(bundle, tmp_path):
    """The folder of a pruning that was stopped after two of four shards."""
    counts = []

    def stop(count):
        counts.append(count)
        if sum(counts) == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune_bundle(bundle, tmp_path / 'stopped', 7, 'float16', stop)
    return tmp_path / 'stopped'


def test_a_stopped_pruning_goes_on(bundle, stopped, tmp_path):
    counts = []
    prune_bundle(bundle, stopped, 7, 'float16', counts.append, resume=True)
    assert sum(counts) == 30
    expected = prune_bundle(bundle, tmp_path / 'at once', 7, 'float16').folder
    for path in expected.rglob('*.*'):
        assert (stopped / path.relative_to(expected)).read_bytes() == path.read_bytes()


def test_a_stopped_pruning_is_not_begun_anew_unless_asked(bundle, stopped):
    with pytest.raises(InputError, match='is not empty: resume it') as refused:
        prune_bundle(bundle, stopped, 7, 'float16')
    assert refused.value.parameters == ('resume', 'overwrite')


def test_a_bundle_is_not_pruned_onto_itself(bundle):
    with pytest.raises(InputError, match='onto itself'):
        prune_bundle(bundle, bundle.folder, 7, 'float16', overwrite=True)


@pytest.fixture
def compare_pruning(tiny_epic, corpus_file, tmp_path):
    """run(FLAGS, corpus=FILE, prune=NUMBERS): the command on two topics with 20 hits each.

    Returns its exit status.
    """
    (tmp_path / 'topics.tsv').write_text('1\tblue fish\n2\tthe old moon\n3\tno hits\n')
    (tmp_path / 'qrels').write_text('1 0 d3 1\n2 0 d4 1\n')
    hits = Ranking([f'd{number}' for number in range(20)], list(range(20, 0, -1)))
    write_run(tmp_path / 'run', {'1': hits, '2': hits})
    whole = corpus_file(30)
    given = ['epic-pruning', '--model', str(tiny_epic())]
    for name, file in (('topics', 'topics.tsv'), ('qrels', 'qrels'), ('run', 'run')):
        given += [f'--{name}', str(tmp_path / file)]

    def run(*flags, corpus=whole, prune=('0', '10')):
        return command.run(main, [*given, '--corpus', str(corpus), '--prune', *prune, *flags])

    return run


def test_the_command_compares_settings(compare_pruning, tmp_path, capsys):
    table = tmp_path / 'table.csv'
    assert compare_pruning('--csv', str(table)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith('| all | float16')
    assert '100.0%' in lines[2]
    assert lines[6:] == ['', 'Computed in float32.']
    rows = table.read_text().splitlines()
    assert len(rows) == 5
    assert rows[2].startswith('10,float16')


def test_the_command_draws_and_prints_latex(compare_pruning, tmp_path, capsys, figures):
    plot = tmp_path / 'pruning.pdf'
    assert compare_pruning('--plot', str(plot), '--latex', '--measures', 'MRR@10') == 0
    printed = capsys.readouterr().out
    assert printed.startswith(r'% \usepackage{booktabs,amssymb}')
    assert 'than the first line (paired t-test' in printed
    (axis,) = figures[0].axes
    assert [line.get_label() for line in axis.lines] == ['uint8', 'float16']
    assert all(len(line.get_xdata()) == 2 for line in axis.lines)
    assert len(plot.with_suffix('.csv').read_text().splitlines()) == 5


def test_the_command_uses_indexes_that_were_kept(compare_pruning, tmp_path, capsys):
    folder = tmp_path / 'kept'
    written = set()
    for _ in range(2):
        assert compare_pruning('--folder', str(folder)) == 0
        (pruned,) = folder.glob('*top10-uint8')
        written.add((pruned / 'manifest.json').stat().st_mtime_ns)
        assert '100.0%' in capsys.readouterr().out
    assert len(written) == 1


def test_kept_indexes_of_another_run_are_not_used(compare_pruning, tmp_path, capsys):
    """Another number of weights makes another index of candidates, and all that follow from it."""
    folder = ['--folder', str(tmp_path / 'kept'), '--weights', 'fp16']
    assert compare_pruning(*folder, prune=['10']) == 0
    others = Ranking([f'd{number}' for number in range(10, 30)], list(range(20, 0, -1)))
    write_run(tmp_path / 'run', {'1': others, '2': others})
    capsys.readouterr()
    assert compare_pruning(*folder) == 0
    with_kept = capsys.readouterr().out.splitlines()
    assert compare_pruning('--weights', 'fp16') == 0
    anew = capsys.readouterr().out.splitlines()
    for kept_line, line in zip(with_kept, anew, strict=True):
        assert _without_times(kept_line) == _without_times(line)


def _without_times(line):
    cells = line.split('|')
    return cells[:4] + cells[5:]


def test_the_command_refuses_a_corpus_that_lacks_hits(compare_pruning, corpus_file, capsys):
    assert compare_pruning(corpus=corpus_file(5, 'small.jsonl')) == 2
    assert "lacks hit 'd10'" in capsys.readouterr().err
