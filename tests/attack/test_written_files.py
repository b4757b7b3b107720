"""What the package writes it reads back: whatever is written is the same afterwards, or was
refused.
"""

import csv
import json

import numpy as np
from hypothesis import given, settings, strategies as st

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main as evaluate
from pyserini_repbert.data.runs import read_run, strictly_decreasing, write_run
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.interleaving import write_provenance
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.systems.duobert.saved_scores import (
    SavedScores,
    read_saved_scores,
    write_saved_scores,
)

NAMES = st.text(
    st.sampled_from('ab1_é\u00a0\u2028\x1c\ufeff\0 \t\r\n\ud800'), max_size=3
) | st.text(max_size=4)
SCORES = (
    st.floats(-1e6, 1e6) | st.floats(allow_nan=True) | st.sampled_from([0.0, -0.0, 1e300, 5e-324])
)
HITS = st.lists(st.tuples(NAMES, SCORES), max_size=4, unique_by=lambda hit: hit[0])


@settings(max_examples=300)
@given(
    st.dictionaries(NAMES, HITS, max_size=3),
    st.sampled_from(['trec', 'msmarco']),
    st.sampled_from(['run', 'run.gz']),
    st.text(max_size=3),
)
def test_runs(tmp_path_factory, queries, fmt, name, tag):
    path = tmp_path_factory.mktemp('runs') / name
    run = {
        qid: Ranking([docid for docid, _ in hits], [score for _, score in hits])
        for qid, hits in queries.items()
    }
    try:
        write_run(path, run, fmt, tag or 'tag')
    except InputError:
        assert not path.exists()
        return
    with_hits = {qid: ranked for qid, ranked in run.items() if ranked.docids}
    if not with_hits:
        return  # an empty file, which readers refuse
    found = read_run(path)
    assert list(found) == list(with_hits)
    for qid, ranked in with_hits.items():
        assert found[qid].docids == ranked.docids
        if fmt == 'trec':
            assert found[qid].scores == tuple(strictly_decreasing(ranked.scores))
        else:
            assert found[qid].scores == tuple(
                1 / place for place in range(1, len(ranked.docids) + 1)
            )


@settings(max_examples=100)
@given(st.lists(st.tuples(st.text(max_size=4), st.integers(0, 4), st.integers(0, 4)), max_size=3))
def test_saved_scores(tmp_path_factory, queries):
    path = tmp_path_factory.mktemp('kept') / 'kept.npz'
    draw = np.random.default_rng(0)
    kept = [
        SavedScores(
            f'q{number}',
            text,
            tuple(f'{text}{place}' for place in range(4)),
            draw.normal(size=scored),
            draw.permutation(4)[:compared].astype(np.int64),
            draw.normal(size=(compared, compared)),
        )
        for number, (text, scored, compared) in enumerate(queries)
    ]
    about = {
        'costs': [{'stage': 'm', 'seconds': 0.5, 'inferences': 2}],
        'k1': 4,
        'passages': None,
        'fields': ['a'],
    }
    write_saved_scores(path, kept, about)
    found, said = read_saved_scores(path)
    assert said == about
    assert [(own.qid, own.query, own.docids) for own in found] == [
        (own.qid, own.query, own.docids) for own in kept
    ]
    for own, other in zip(found, kept, strict=True):
        np.testing.assert_array_equal(own.scores, other.scores)
        np.testing.assert_array_equal(own.members, other.members)
        np.testing.assert_array_equal(own.differences, other.differences)


def test_provenance(tmp_path):
    """As csv and json read it: quotes, backslashes and characters of other lines."""
    names = ['"d"', 'd\\1', 'd\u20282', "'", 'ü']
    run = {'q"1': Ranking(names, [5.0, 4.0, 3.0, 2.0, 1.0])}
    other = {'q"1': Ranking(names[::-1][:2], [2.0, 1.0])}
    for name in ('p.tsv', 'p.jsonl'):
        write_provenance(tmp_path / name, ['a.txt', 'b.txt'], [run, other], run)
    with open(tmp_path / 'p.tsv', encoding='utf-8', newline='\n') as stream:
        rows = list(csv.DictReader(stream, delimiter='\t', quoting=csv.QUOTE_NONE))
    assert [(row['qid'], row['docid'], row['rank'], row['a'], row['b']) for row in rows] == [
        ('q"1', docid, str(rank), str(rank), {4: '2', 5: '1'}.get(rank, ''))
        for rank, docid in enumerate(names, 1)
    ]
    lines = (tmp_path / 'p.jsonl').read_text(encoding='utf-8').split('\n')[:-1]
    assert [json.loads(line)['docid'] for line in lines] == names
    assert json.loads(lines[4]) == {
        'qid': 'q"1',
        'docid': 'ü',
        'rank': 5,
        'ranks': {'a': 5, 'b': 1},
    }


def test_topics_of_folds(tmp_path):
    """Tabs and line ends of a topic's text are white space in what is written."""
    topics = [{'id': qid, 'text': f'text\tof\n{qid}\r "ü"'} for qid in '123']
    (tmp_path / 'topics.jsonl').write_text('\n'.join(map(json.dumps, topics)), encoding='utf-8')
    (tmp_path / 'folds.json').write_text('[["1"], [2], ["3"]]', encoding='utf-8')
    given = ['--folds', str(tmp_path / 'folds.json'), '--topics', str(tmp_path / 'topics.jsonl')]
    evaluate(['split-folds', *given, '--output', str(tmp_path / 'out')])
    found = [read_topics(tmp_path / 'out' / f'fold-{number}' / 'test.tsv') for number in (1, 2, 3)]
    assert found == [[Query(qid, f'text of {qid} "ü"')] for qid in '123']


def test_folds_are_replaced_if_asked_for(tmp_path, capsys):
    (tmp_path / 'topics.tsv').write_text('1\tcat\n2\tdog\n3\tsun\n', encoding='utf-8')
    (tmp_path / 'folds.json').write_text('[["1"], ["2"], ["3"]]', encoding='utf-8')
    output = tmp_path / 'out'
    given = ['--folds', str(tmp_path / 'folds.json'), '--topics', str(tmp_path / 'topics.tsv')]
    given = ['split-folds', *given, '--output', str(output)]
    assert run(evaluate, given) == 0
    (output / 'fold-4').mkdir()
    assert run(evaluate, given) == 2
    advice = 'exists already: overwrite it, or give another output (--overwrite)'
    assert capsys.readouterr().err == f'error: {output} {advice}\n'
    assert run(evaluate, [*given, '--overwrite']) == 0
    assert sorted(path.name for path in output.iterdir()) == ['fold-1', 'fold-2', 'fold-3']
    (output / 'fold-1' / 'test.tsv').unlink()
    assert run(evaluate, [*given, '--overwrite']) == 2
    line = f'error: {output} is not a folder of folds that was made here: give another output\n'
    assert capsys.readouterr().err == line
