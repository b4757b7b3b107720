"""`index epic` from end to end on a tiny model."""

import numpy as np

from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main
from pyserini_repbert.index.epic import EpicBundle


def test_a_corpus_becomes_a_bundle_that_checks_out(tiny_epic, corpus_file, tmp_path, capsys):
    output = str(tmp_path / 'index')
    arguments = ['epic', '--corpus', str(corpus_file(20)), '--encoder', str(tiny_epic()), '--output', output]
    assert command.run(main, [*arguments, '--prune', '10', '--weights', 'uint8', '--fp32']) == 0
    assert '20 passages x 10 terms' in capsys.readouterr().out
    assert command.run(main, [*arguments, '--prune', '10']) == 2
    assert 'not empty: resume it, or overwrite it (--resume, --overwrite)' in capsys.readouterr().err
    assert command.run(main, [*arguments, '--prune', '0', '--overwrite', '--store-text', '--fp32']) == 0
    assert '20 passages x all terms' in capsys.readouterr().out
    assert command.run(main, ['check', '--index', output]) == 0
    assert 'whole, 20 passages x 40 float16' in capsys.readouterr().out
    bundle = EpicBundle(output)
    assert bundle.has_texts and len(bundle.vector(3)) == 40
    np.testing.assert_array_equal(bundle.rows(['d3']), [3])


def test_a_bundle_becomes_a_smaller_one(tiny_epic, corpus_file, tmp_path, capsys):
    arguments = ['epic', '--corpus', str(corpus_file(20)), '--encoder', str(tiny_epic()), '--shard-size', '6']
    assert command.run(main, [*arguments, '--output', str(tmp_path / 'large'), '--prune', '20', '--store-text']) == 0
    prune = ['epic-prune', '--index', str(tmp_path / 'large'), '--output']
    assert command.run(main, [*prune, str(tmp_path / 'whole'), '--shard-size', '100']) == 0
    assert command.run(main, [*prune, str(tmp_path / 'small'), '--prune', '5', '--weights', 'uint8']) == 0
    assert '20 passages in 4 shards' in capsys.readouterr().out
    large, whole, small = (EpicBundle(tmp_path / name) for name in ('large', 'whole', 'small'))
    assert len(whole.shards) == 1 and len(small.vector(7)) == 5
    assert whole.texts(['d7']) == large.texts(['d7']) != [None]
    for row in range(20):
        assert whole.vector(row).as_dict() == large.vector(row).as_dict()
    assert command.run(main, [*prune, str(tmp_path / 'more'), '--prune', '0']) == 2
    assert 'keeps 20 weights' in capsys.readouterr().err
