"""What pruning EPIC's vectors costs."""

import numpy as np
import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.data.runs import write_run
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from pyserini_repbert.systems.epic.encoding import prune_epic_bundle


def ranked(docids):
    return Ranking(list(docids), [1 / rank for rank in range(1, len(docids) + 1)])


@pytest.fixture
def bundle(tiny_epic, corpus_file, tmp_path):
    encode_corpus(
        open_corpus(corpus_file(30)),
        EpicEncoder(tiny_epic()),
        tmp_path / 'index',
        prune=0,
        shard_size=8,
    )
    return EpicBundle(tmp_path / 'index')


def test_pruning_a_bundle_keeps_its_largest_weights(bundle, tmp_path):
    pruned = prune_epic_bundle(bundle, tmp_path / 'pruned', 7, 'float16')
    for row in range(30):
        whole = bundle.vector(row)
        kept = pruned.vector(row)
        assert kept.weights.min() >= np.sort(whole.weights)[-7]
        np.testing.assert_array_equal(kept.weights, whole.weights_of(kept.terms))
    again = prune_epic_bundle(pruned, tmp_path / 'again', 3, 'uint8')
    assert len(again.vector(0)) == 3 and again.docids(np.array([29])) == ['d29']
    for more in (8, 0):
        with pytest.raises(InputError, match='keeps 7 weights'):
            prune_epic_bundle(pruned, tmp_path / 'more', more, 'float16')
    quantised = prune_epic_bundle(bundle, tmp_path / 'quantised', 0, 'uint8')
    np.testing.assert_allclose(quantised.vector(3).weights, bundle.vector(3).weights, atol=5e-3)


def test_a_stopped_pruning_goes_on(bundle, tmp_path):
    def stop(count):
        done.append(count)
        if sum(done) == 16:
            raise KeyboardInterrupt

    done = []
    expected = prune_epic_bundle(bundle, tmp_path / 'at once', 7, 'float16').folder
    with pytest.raises(KeyboardInterrupt):
        prune_epic_bundle(bundle, tmp_path / 'stopped', 7, 'float16', stop)
    with pytest.raises(InputError, match='is not empty: resume it') as refused:
        prune_epic_bundle(bundle, tmp_path / 'stopped', 7, 'float16')
    assert refused.value.parameters == ('resume', 'overwrite')
    done.clear()
    again = prune_epic_bundle(
        bundle, tmp_path / 'stopped', 7, 'float16', done.append, resume=True
    ).folder
    assert sum(done) == 30
    for path in expected.rglob('*.*'):
        assert (again / path.relative_to(expected)).read_bytes() == path.read_bytes()
    with pytest.raises(InputError, match='onto itself'):
        prune_epic_bundle(bundle, bundle.folder, 7, 'float16', overwrite=True)


def test_pruning_command(tiny_epic, corpus_file, tmp_path, capsys):
    (tmp_path / 'topics.tsv').write_text('1\tblue fish\n2\tthe old moon\n3\tno hits\n')
    (tmp_path / 'qrels').write_text('1 0 d3 1\n2 0 d4 1\n')
    hits = Ranking([f'd{number}' for number in range(20)], list(range(20, 0, -1)))
    write_run(tmp_path / 'run', {'1': hits, '2': hits})
    arguments = [
        'epic-pruning',
        '--model',
        str(tiny_epic()),
        '--corpus',
        str(corpus_file(30)),
        '--fp32',
    ]
    arguments += ['--topics', str(tmp_path / 'topics.tsv'), '--qrels', str(tmp_path / 'qrels')]
    arguments += [
        '--run',
        str(tmp_path / 'run'),
        '--prune',
        '0',
        '10',
        '--folder',
        str(tmp_path / 'kept'),
    ]
    for _ in range(2):  # the second time from the indexes that were kept
        assert (
            command.run(main, [*arguments, '--csv', str(tmp_path / 'table.csv'), '--overwrite'])
            == 0
        )
        lines = capsys.readouterr().out.splitlines()
        assert lines[2].startswith('| all | float16') and '100.0%' in lines[2]
        assert lines[6:] == ['', 'Computed in float32.']
    rows = (tmp_path / 'table.csv').read_text().splitlines()
    assert len(rows) == 5 and rows[2].startswith('10,float16')
    (tmp_path / 'small').mkdir()
    small = {'corpus': corpus_file(5, 'small.jsonl'), 'kept': tmp_path / 'small'}
    replaced = {
        str(tmp_path / 'corpus.jsonl'): small['corpus'],
        str(tmp_path / 'kept'): small['kept'],
    }
    assert command.run(main, [str(replaced.get(word, word)) for word in arguments]) == 2
    assert "lacks hit 'd10'" in capsys.readouterr().err
