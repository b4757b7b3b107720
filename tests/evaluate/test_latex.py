"""LaTeX tables: what is marked, and that the caption says how it was tested."""

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.evaluate import latex_table
from pyserini_repbert.evaluate.comparisons import all_pairs, compare_pairs, pairs_with
from pyserini_repbert.evaluate.marks import assign_letters
from pyserini_repbert.evaluate.measures import Evaluation

TOPICS = 12
BETTER = r'$^{\blacktriangle}$'
WORSE = r'$^{\blacktriangledown}$'


def evaluation(mean):
    """Topics whose values vary a little around a mean: another mean is significantly another."""
    values = {str(number): mean + 0.001 * (number % 3) for number in range(TOPICS)}
    return Evaluation({'m_1': values}, {'m_1': sum(values.values()) / TOPICS}, ())


LOW = evaluation(0.2)
MIDDLE = evaluation(0.4)
HIGH = evaluation(0.6)


def rows(text):
    """The values of the rows of a table, by the first cell."""
    body = text.split('\\midrule\n')[1].split('\n\\bottomrule')[0]
    found = {}
    for line in body.splitlines():
        name, _, value = line.removesuffix(r' \\').partition(' & ')
        found[name] = value
    return found


def test_the_table_compiles_as_it_stands():
    assert latex_table({'b_m': LOW}).splitlines() == [
        r'% \usepackage{booktabs,amssymb}',
        r'\begin{table}',
        r'\centering',
        r'\caption{Over 12 judged topics; the best value of a measure is bold. '
        r'No difference was tested.}',
        r'\begin{tabular}{lr}',
        r'\toprule',
        r'run & m\_1 \\',
        r'\midrule',
        r'b\_m & \textbf{0.2010} \\',
        r'\bottomrule',
        r'\end{tabular}',
        r'\end{table}',
    ]


def test_a_run_that_is_worse_has_another_mark():
    runs = {'bm_25': MIDDLE, 'low': LOW, 'high': HIGH, 'same': MIDDLE}
    text = latex_table(runs, compare_pairs(runs, pairs_with(['bm_25'], list(runs))))
    assert rows(text) == {
        r'bm\_25': '0.4010',
        'low': f'0.2010{WORSE}',
        'high': rf'\textbf{{0.6010}}{BETTER}',
        'same': '0.4010',
    }
    assert (
        r'$\blacktriangle$ and $\blacktriangledown$: significantly better and worse than '
        r"\emph{bm\_25} (paired t-test, two-sided, $p < .05$, Holm's correction for 3 "
        'comparisons).'
    ) in text


def test_letters_name_several_baselines():
    runs = {'bm25': MIDDLE, 'vanilla': LOW, 'low': LOW, 'high': HIGH}
    text = latex_table(runs, compare_pairs(runs, pairs_with(['bm25', 'vanilla'], list(runs))))
    assert rows(text) == {
        # 'vanilla' is worse than 'bm25', which therefore has its letter.
        'bm25 [B]': r'0.4010\,{\scriptsize[V]}',
        'vanilla [V]': '0.2010',
        'low': r'0.2010\,{\scriptsize$\blacktriangledown$[B]}',
        'high': r'\textbf{0.6010}\,{\scriptsize[BV]}',
    }
    assert r'after $\blacktriangledown$: significantly worse' in text
    assert 'for 5 comparisons' in text


def test_all_pairs_have_letters_alone():
    runs = {'a': MIDDLE, 'b': LOW, 'c': HIGH}
    text = latex_table(runs, compare_pairs(runs, all_pairs(list(runs))))
    assert rows(text) == {
        'a [A]': r'0.4010\,{\scriptsize[B]}',
        'b [B]': '0.2010',
        'c [C]': r'\textbf{0.6010}\,{\scriptsize[AB]}',
    }
    assert 'blacktriangledown' not in text
    assert 'for 3 comparisons' in text


def test_letters_are_of_names_where_they_are_free():
    names = ['bm25', 'bert', 'B', '42', 'ä']
    assert assign_letters(names) == {'bm25': 'B', 'bert': 'E', 'B': 'A', '42': 'C', 'ä': 'D'}
    many = [f'b{number}' for number in range(28)]
    assert list(assign_letters(many).values())[-2:] == ['27', '28']


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Ten topics; the relevant document is first in good.txt, second in bad.txt."""
    monkeypatch.chdir(tmp_path)
    qids = range(10)
    (tmp_path / 'qrels').write_text(''.join(f'{qid} 0 r 1\n' for qid in qids))
    for name, docids in (('good', 'rx'), ('bad', 'xr')):
        lines = []
        for qid in qids:
            for rank, docid in enumerate(docids, 1):
                lines.append(f'{qid} Q0 {docid} {rank} {3 - rank} {name}\n')
        (tmp_path / f'{name}.txt').write_text(''.join(lines))


def test_a_table_without_tests_says_so(capsys):
    assert run(main, '--qrels qrels bad.txt good.txt --measures RR@10 --latex'.split()) == 0
    printed = capsys.readouterr()
    assert 'No difference was tested.' in printed.out
    assert printed.err.count('\n') == 1
    assert 'none is marked: --compare, --baselines' in printed.err


@pytest.mark.parametrize(
    ('flags', 'marked'),
    [
        ('--compare', {'bad': '0.5000', 'good': rf'\textbf{{1.0000}}{BETTER}'}),
        ('--baselines good', {'bad': f'0.5000{WORSE}', 'good': r'\textbf{1.0000}'}),
        ('--compare-all', {'bad': '0.5000', 'good': rf'\textbf{{1.0000}}{BETTER}'}),
    ],
)
def test_flags_choose_the_baselines(capsys, flags, marked):
    command = f'--qrels qrels bad.txt good.txt --measures RR@10 --latex {flags}'
    assert run(main, command.split()) == 0
    printed = capsys.readouterr()
    assert rows(printed.out) == marked
    assert not printed.err


def test_each_baseline_has_a_table_in_the_terminal(capsys):
    command = '--qrels qrels bad.txt good.txt again=good.txt --baselines bad again'
    assert run(main, [*command.split(), '--measures', 'RR@10']) == 0
    printed = capsys.readouterr().out
    assert printed.index('Against bad (paired t-test') < printed.index('Against again (paired')


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        ('--baselines none', "baseline 'none' is not one of the runs: expected one of bad, good"),
        ('--compare --compare-all', 'not allowed with'),
        ('--plot a.pdf', '--plot draws differences of topics'),
        ('--compare-all --plot a.pdf', 'differences from one baseline'),
    ],
)
def test_errors_are_one_line(capsys, flags, message):
    assert run(main, f'--qrels qrels bad.txt good.txt {flags}'.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count('\n') == 1


def test_a_fusion_is_compared_with_the_run_of_its_row(capsys):
    command = 'fusion-table --qrels qrels --runs bad.txt good.txt --measures RR@10 --latex'
    assert run(main, command.split()) == 0
    printed = capsys.readouterr().out
    # Interleaved, the first hit is that of the run of the row.
    assert rows(printed) == {
        'bad': r'\textbf{0.500} & \textbf{0.500 (+0\%)}',
        'good': r'\textbf{1.000 (+0\%)} & \textbf{1.000}',
    }
    assert "than the run of the row alone (paired t-test, two-sided, $p < .05$, Holm's" in printed


def test_depths_of_one_run_are_compared_with_its_first(capsys):
    command = 'rerank-depth --qrels qrels --runs bad.txt --reranked good.txt --measures RR@10'
    assert run(main, [*command.split(), '--depths', '0', '1', '2', '--latex']) == 0
    printed = capsys.readouterr().out
    assert rows(printed) == {
        '0': '0.500',
        '1': r'0.500 (+0\%)',
        '2': rf'\textbf{{1.000 (+100\%)}}{BETTER}',
    }
    assert 'than at depth 0 (' in printed


def test_depths_of_runs_are_compared_at_the_same_depth(capsys):
    command = 'rerank-depth --qrels qrels --runs bad.txt good.txt --reranked good.txt good.txt'
    assert run(main, [*command.split(), *'--measures RR@10 --depths 0 2 --latex'.split()]) == 0
    assert rows(capsys.readouterr().out) == {
        '0': rf'0.500 & \textbf{{1.000 (+100\%)}}{BETTER}',
        '2': r'\textbf{1.000} & \textbf{1.000 (+0\%)}',
    }
