"""`evaluate tune`: grids, held-out choices, and searches of a small Lucene index."""

import json

import pytest
from folders import write_files

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.data.passages import corpus_of
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.studies.tuning import choose_held_out, make_settings
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import Rm3, Sdm, SparseSettings


def test_the_grids_of_the_paper():
    settings = make_settings('bm25', ())
    assert len(settings) == 40 * 10
    assert settings[0].search == SparseSettings(k1=0.1, b=0.1)
    assert str(settings[-1]) == 'k1 4, b 1'
    assert len(make_settings('bm25+rm3', ())) == 13 * 4 * 3
    # The weights, multiples of 1/20, sum to 1.
    weights = [setting.search.sdm for setting in make_settings('sdm', ())]
    assert len(weights) == 21 * 22 / 2
    assert Sdm(0.85, 0.1, 0.05) in weights
    assert all(own.terms + own.ordered + own.unordered == pytest.approx(1) for own in weights)


def test_an_axis_replaces_that_of_the_grid():
    first, *others = make_settings('bm25+rm3', ['fb_terms=5,10', 'fb_docs=5', 'k1=0.6:0.9:0.3'])
    assert first.search == SparseSettings(k1=0.6, rm3=Rm3(5, 5, 0.2))
    assert len(others) == 2 * 1 * 3 * 2 - 1
    assert str(first) == 'fb_terms 5, fb_docs 5, original_query_weight 0.2, k1 0.6'


@pytest.mark.parametrize(
    ('axis', 'message'),
    [
        ('mu=1', "'mu=1': bm25 has k1, b"),
        ('k1', 'expected NAME=VALUE,VALUE or NAME=FROM:TO:STEP'),
        ('k1=a', 'expected NAME=VALUE,VALUE or NAME=FROM:TO:STEP'),
        ('k1=1:2', 'expected NAME=VALUE,VALUE or NAME=FROM:TO:STEP'),
        ('k1=1:2:0', 'expected a step above 0'),
        ('k1=2:1:1', 'expected a step above 0, and FROM not above TO'),
        ('k1=0:1:0.00001', '100,001 values, expected at most 10,000'),
        ('b=2', 'b from 0 to 1'),
    ],
)
def test_a_wrong_axis_is_refused(axis, message):
    with pytest.raises(InputError) as caught:
        make_settings('bm25', [axis])
    assert message in str(caught.value)


def test_weights_that_never_sum_to_1_are_refused():
    with pytest.raises(InputError, match='the grid has 0 settings'):
        make_settings('sdm', ['terms=0.5', 'ordered=0.1', 'unordered=0.1'])


def test_a_fold_is_searched_with_what_is_best_on_the_others():
    low, high = make_settings('bm25', ['k1=1', 'b=0.1,0.9'])
    values = {
        low: {'1': 0.5, '2': 0.2, '3': 0.0, '4': 0.0},
        high: {'1': 0.0, '2': 0.1, '3': 0.4, '4': 0.4},
    }
    chosen = choose_held_out(values, [['1', '2'], ['3'], ['4']])
    assert [fold.setting for fold in chosen] == [high, low, low]
    assert chosen[0].chosen == pytest.approx(0.4)
    assert chosen[0].held_out == pytest.approx(0.05)
    assert chosen[1].chosen == pytest.approx(0.7 / 3)
    assert chosen[1].held_out == 0.0


# Without a norm of lengths, `long` is first for each topic; with it, `short` is.
TEXTS = {
    'long': 'apple apple pear pear plum plum and many other fruits that grow on old trees there',
    'short': 'apple pear plum',
    'other': 'nothing of that kind',
}


@pytest.fixture
def orchard(tmp_path, monkeypatch):
    """The working folder with an index, topics, judgments and folds."""
    monkeypatch.chdir(tmp_path)
    build_lucene_index(corpus_of(TEXTS.items()), tmp_path / 'index')
    write_files(
        tmp_path,
        {
            'topics.tsv': '1\tapple\n2\tpear\n3\tplum\n',
            'qrels.txt': '1 0 long 1\n2 0 long 1\n3 0 short 1\n',
            'folds.json': json.dumps([['1'], ['2'], ['3']]),
        },
    )
    return tmp_path


TUNE = (
    'tune --index index --topics topics.tsv --qrels qrels.txt --measure P@1 --grid k1=2 b=0,1 '
    '--hits 2 --output tuned.run'
).split()


@pytest.mark.jvm
def test_the_command_chooses_for_each_fold_by_the_others(orchard, capsys):
    assert run(main, [*TUNE, '--folds', 'folds.json']) == 0
    printed = capsys.readouterr().out
    last = printed.splitlines()[4]
    assert last.startswith('| 3 ')
    assert 'k1 2, b 0 | 1.0000 |   0.0000 |      1 |' in last
    assert '\nHeld out, P@1 0.6667 over 3 topics; 2 settings.' in printed
    tuned = read_run('tuned.run')
    assert {qid: ranking.docids[0] for qid, ranking in tuned.items()} == {
        '1': 'long',
        '2': 'long',
        '3': 'long',
    }


@pytest.mark.jvm
def test_on_the_test_topics_is_named_so(orchard, capsys):
    assert run(main, [*TUNE, '--on-test']) == 0
    assert capsys.readouterr().out == (
        'k1 2, b 0: P@1 0.6667 over 3 topics, the best of 2 settings on these topics themselves\n'
    )
    assert run(main, [*TUNE]) == 2
    assert 'one of the arguments --folds --on-test is required' in capsys.readouterr().err


@pytest.mark.jvm
def test_topics_of_several_indexes(orchard, capsys):
    build_lucene_index(corpus_of([('own', 'apple'), ('x', 'y')]), orchard / 'second')
    write_files(orchard, {'more.tsv': '4\tapple\n', 'qrels.txt': '1 0 long 1\n4 0 own 1\n'})
    words = [*TUNE, '--on-test']
    words[words.index('index')] = 'index'
    words[words.index('index') + 1 : words.index('index') + 1] = ['second']
    words[words.index('topics.tsv') + 1 : words.index('topics.tsv') + 1] = ['more.tsv']
    assert run(main, words) == 0
    assert 'P@1 1.0000 over 2 topics' in capsys.readouterr().out
    assert read_run('tuned.run')['4'].docids == ('own',)


@pytest.mark.jvm
def test_terms_alone_are_bm25(orchard):
    bm25 = LuceneSparseSearcher(orchard / 'index', SparseSettings())
    terms = LuceneSparseSearcher(orchard / 'index', SparseSettings(sdm=Sdm(1, 0, 0)))
    pairs = LuceneSparseSearcher(orchard / 'index', SparseSettings(sdm=Sdm(0, 1, 0)))
    usual = LuceneSparseSearcher(orchard / 'index', SparseSettings(sdm=True))
    query = 'apple pear'
    assert terms.search(query) == bm25.search(query)
    assert pairs.search(query) != bm25.search(query)
    same = LuceneSparseSearcher(orchard / 'index', SparseSettings(sdm=Sdm()))
    assert usual.search(query) == same.search(query)
