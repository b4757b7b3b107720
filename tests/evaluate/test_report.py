"""The page of `evaluate --html`: figures by hand, hostile texts, what it says in words."""

import html.parser
import json
import re

import pytest
from folders import write_files

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.evaluate.comparisons import RunComparison
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.report.chart import HEIGHT, WIDTH, make_chart
from pyserini_repbert.evaluate.report.questions import select_questions
from pyserini_repbert.evaluate.report.runs import measured_run
from pyserini_repbert.evaluate.report.sentences import cautions, measure_meaning, verdict
from pyserini_repbert.evaluate.significance import Comparison, Interval
from pyserini_repbert.ranking import Ranking

# Reciprocal ranks of a: 1/2, 1, 0; of b: 1, 1/2, 0. Topic 3 has no hits.
A = '1 Q0 x 1 2 t\n1 Q0 r 2 1 t\n2 Q0 s 1 1 t\n'
B = '1\tr\t1\n2\tx\t1\n2\ts\t2\n'
QRELS = '1 0 r 1\n2 0 s 2\n2 0 x 0\n3 0 y 1\n'
HOSTILE = '"><script>alert(1)</script>&amp;{{ 7 * 7 }}'
VOID = {'meta', 'br', 'rect', 'path'}


class Page(html.parser.HTMLParser):
    """The cells of the tables by id or number, the texts of list items and headings, the tags."""

    def __init__(self, text):
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.items: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ''
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.attributes.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == 'table':
            self.tables[attributes.get('id', str(len(self.tables)))] = []
        elif tag == 'tr':
            self._rows().append([])
        elif tag in ('th', 'td'):
            self._rows()[-1].append('')
        elif tag == 'li':
            self.items.append('')
        elif re.fullmatch(r'h\d', tag):
            self.headings.append((tag, ''))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if 'style' in self.open:
            return
        self.text += data
        if 'td' in self.open or 'th' in self.open:
            self._rows()[-1][-1] += data
        if 'li' in self.open:
            self.items[-1] += data
        if any(re.fullmatch(r'h\d', tag) for tag in self.open):
            tag, text = self.headings[-1]
            self.headings[-1] = (tag, text + data)

    def _rows(self):
        return list(self.tables.values())[-1]

    def attributes_of(self, tag):
        return [attributes for name, attributes in self.attributes if name == tag]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {'a.run': A, 'b.tsv': B, 'qrels': QRELS})
    return tmp_path


@pytest.fixture
def report(files):
    """make(arguments) -> the page of these arguments behind the qrels and --html."""

    def make(arguments):
        command = f'--quiet --qrels qrels --html report.html --overwrite {arguments}'
        assert run(main, command.split()) == 0
        return Page((files / 'report.html').read_text(encoding='utf-8'))

    return make


@pytest.fixture
def two(report):
    return report('a.run b.tsv --measures RR@10 R@1')


def test_means(two):
    """Judged are 2 of a's 3 hits, and all 3 of b's. Of 27 draws of three questions, one has the
    mean 1 and at least one the mean 0: 3.7%, more than the 2.5% that the interval leaves out on
    each side.
    """
    assert two.tables['means'] == [
        ['ranking', 'RR@10', 'R@1', 'top 10 judged', 'without hits'],
        ['a', '0.50000.0000 to 1.0000', '0.33330.0000 to 1.0000', '67%', '1'],
        ['b', '0.50000.0000 to 1.0000', '0.33330.0000 to 1.0000', '100%', '1'],
    ]


def test_the_page_is_named(report, capsys):
    report('a.run')
    assert capsys.readouterr().out.endswith('\nreport.html: 1 ranking, 3 judged questions\n')


def test_comparison(two):
    """Differences 1/2, -1/2, 0: the mean is 0, and so is t. Of 27 draws, one has the mean 1/2."""
    header, of_ranks, of_recall = two.tables['compared']
    assert header[:4] == ['ranking', 'measure', 'difference', '95% interval']
    interval = '-0.5000 to +0.5000'
    assert of_ranks == ['b', 'RR@10', '+0.0000', interval, '1.0000', '1.0000', '1', '1', '1']
    assert of_recall[:3] == ['b', 'R@1', '+0.0000']


def test_all_questions(two):
    assert two.tables['questions'] == [
        ['question', 'a', 'b', 'difference'],
        ['Question 1', '0.5000', '1.0000', '+0.5000'],
        ['Question 2', '1.0000', '0.5000', '-0.5000'],
        ['Question 3', '0.0000', '0.0000', '+0.0000'],
    ]


def test_questions_to_look_at(two):
    headings = [text for tag, text in two.headings if tag == 'h4']
    assert headings == ['Question 2', 'Question 1']  # the loss, then the gain
    of_loss, of_gain = [rows for name, rows in two.tables.items() if name.isdigit()]
    assert of_loss == [['document', 'grade', 'rank in a', 'rank in b'], ['s', '2', '1', '2']]
    assert of_gain[1:] == [['r', '1', '2', '1']]
    hits = [' '.join(item.split()) for item in two.items]
    first = hits.index('s relevant, grade 2')
    assert hits[first : first + 6] == [
        's relevant, grade 2',
        *('x not relevant', 's relevant, grade 2'),
        *('x not judged', 'r relevant, grade 1'),
        'r relevant, grade 1',
    ]


def test_what_is_said(two):
    text = ' '.join(two.text.split())
    assert 'b has the same mean RR@10: 0.5000, and a 0.5000' in text
    assert 'b is better in 1 question, worse in 1, and equal in 1.' in text
    assert '3 judged questions: few.' in text
    assert 'b has more judged top hits (100%) than a (67%).' in text
    assert '4 judgments of 3 questions; 3 documents relevant, with grades up to 2.' in text
    assert 'a: a.run.' in text and 'qrels: qrels (SHA-256' in text


def test_the_page_is_one_file(two):
    """Nothing is loaded, nothing runs; tables have headers with a scope, and a caption."""
    tags = {tag for tag, _ in two.attributes}
    assert not tags & {'script', 'link', 'img', 'iframe', 'object', 'form'}
    names = set()
    for _, attributes in two.attributes:
        names |= attributes.keys()
    assert 'src' not in names and not any(name.startswith('on') for name in names)
    links = [attributes['href'] for attributes in two.attributes_of('a')]
    ids = {attributes['id'] for _, attributes in two.attributes if 'id' in attributes}
    assert links and {link.removeprefix('#') for link in links} <= ids
    assert all(header.get('scope') in ('col', 'row') for header in two.attributes_of('th'))
    assert len(two.attributes_of('caption')) == len(two.tables)
    assert two.attributes_of('html') == [{'lang': 'en'}]


def test_one_run(report):
    """The lowest values of questions that have a relevant document."""
    page = report('a.run --measures RR@10')
    assert 'compared' not in page.tables
    assert page.tables['questions'][0] == ['question', 'a']
    questions = [text for tag, text in page.headings if tag == 'h4']
    assert questions == ['Question 3', 'Question 1', 'Question 2']
    assert 'No hits.' in page.text


def test_three_runs(report):
    """p is corrected for both comparisons; each has its gains and losses."""
    page = report('a.run b.tsv c=a.run --measures RR@10')
    assert [row[0] for row in page.tables['compared']] == ['ranking', 'b', 'c']
    assert 'c and a have the same RR@10 in every question.' in page.text
    assert 'No question differs in RR@10.' in page.text


def test_one_question_is_not_tested(report, files):
    (files / 'qrels').write_text('1 0 r 1\n')
    page = report('a.run b.tsv')
    assert 'compared' not in page.tables
    assert page.tables['means'][1][1] == '0.6309'  # 1 / log2(3), without an interval


def test_sums_have_no_interval(report):
    page = report('a.run --measures NumRet')
    assert page.tables['means'][1][1] == '3.0000'


def test_words_of_questions_and_documents(report, files):
    (files / 'topics.tsv').write_text('1\tgreen tomatoes\n2\tslugs\n')
    texts = {'r': 'Tomatoes that stay green.', 's': 'Beer drowns slugs.', 'x': 'Peas.'}
    lines = [json.dumps({'id': docid, 'contents': text}) for docid, text in texts.items()]
    (files / 'corpus.jsonl').write_text('\n'.join(lines))
    page = report('a.run b.tsv --topics topics.tsv --corpus corpus.jsonl')
    assert page.tables['questions'][1][0] == 'green tomatoes (1)'
    assert page.tables['questions'][3][0] == 'Question 3'
    assert 'Tomatoes that stay green.' in page.text
    assert len(page.attributes_of('mark')) == 6  # 'Tomatoes', 'green' and 'slugs', on each side


def test_unjudged_hits_are_shown_even_if_they_do_not_count(report):
    page = report('a.run b.tsv --measures RR@10 --judged-only')
    assert page.tables['means'][1][1].startswith('0.6667')
    assert page.tables['means'][1][2] == '67%'
    assert 'Hits that nobody judged were left out of the measures.' in page.text


def test_the_command_that_wrote_a_run_is_named(report, files):
    (files / 'topics.tsv').write_text('1\tx\n')
    from pyserini_repbert.commands.fusion import main as fuse

    assert run(fuse, '--quiet --runs a.run b.tsv --output c.run'.split()) == 0
    page = report('a.run c.run')
    assert 'written by python -m pyserini_repbert.fusion --runs a.run' in page.text


def test_hostile_texts_stay_texts(report, files):
    """Names of runs, docids, questions and documents are texts, whatever they hold."""
    docid = HOSTILE.replace(' ', '')
    write_files(
        files,
        {
            'qrels': f'1 0 {docid} 1\n2 0 s 1\n',
            'hostile': f'1 Q0 {docid} 1 1 t\n',
            'topics.tsv': f'1\t{HOSTILE}\n2\tslugs\n',
        },
    )
    line = json.dumps({'id': docid, 'contents': HOSTILE})
    (files / 'corpus.jsonl').write_text(f'{line}\n')
    name = docid.replace('=', '')
    page = report(f'a.run {name}=hostile --topics topics.tsv --corpus corpus.jsonl')
    tags = [tag for tag, _ in page.attributes]
    assert 'script' not in tags
    assert tags.count('style') == 1
    assert page.text.count(HOSTILE) >= 2  # as a question, as a text
    assert page.text.count(docid) >= 3
    assert '{{ 7 * 7 }}' in page.text


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        ('a.run --topics topics.tsv', '--topics goes with --html, which was not given'),
        ('a.run --index mine', '--index goes with --html, which was not given'),
        ('a.run --seed 1', '--seed goes with --compare, --baselines, --compare-all or --html'),
        ('a.run --html p --index mine --corpus c', '--index and --corpus both give the texts'),
        ('a.run b.run --html p --compare-all', '--html compares with the first run'),
        ('a.run --html a.run', '--html a.run is an input, too'),
        ('a.run --html p --per-query p', '--per-query and --html are one file'),
    ],
)
def test_refused(arguments, problem, capsys, files):
    assert run(main, ['--qrels', 'qrels', *arguments.split()]) == 2
    printed = capsys.readouterr().err
    assert problem in printed and printed.count('\n') == 1
    assert not (files / 'p').exists()


def test_an_existing_page_is_not_replaced(files, capsys):
    (files / 'report.html').write_text('mine')
    assert run(main, '--qrels qrels --html report.html a.run'.split()) == 2
    assert 'report.html exists' in capsys.readouterr().err
    assert (files / 'report.html').read_text() == 'mine'


def test_chart_by_hand():
    """Three questions: steps of a third; the longest bar reaches from the middle to the edge."""
    chart = make_chart({'q1': -0.5, 'q2': 0.0, 'q3': 0.25})
    gain, loss = chart.bars
    middle = HEIGHT / 2
    assert chart.greatest == 0.5
    assert (gain.qid, gain.x, gain.y, gain.height) == ('q3', 0.0, middle / 2, middle / 2)
    assert (loss.qid, loss.y, loss.height) == ('q1', middle, middle)
    assert loss.x == pytest.approx(2 * WIDTH / 3)
    assert loss.width == pytest.approx(0.8 * WIDTH / 3)
    assert make_chart({'q1': 0.0}).bars == make_chart({}).bars == ()


def test_the_five_greatest_losses_and_gains():
    """Of seven questions, b has the reciprocal rank 1/n in the n-th, and a has always 1/4: b gains
    in 1, 2 and 3, and loses in 5, 6 and 7.
    """
    qrels = {str(number): {'r': 1} for number in range(1, 8)}
    a = {qid: _with_rank_of_r(4) for qid in qrels}
    b = {qid: _with_rank_of_r(int(qid)) for qid in qrels}
    measures = parse_measures(['RR'])
    runs = []
    for name, hits in {'a': a, 'b': b}.items():
        evaluation = evaluate(hits, qrels, measures)
        runs.append(measured_run(name, name, hits, evaluation=evaluation, qrels=qrels))
    (selection,) = select_questions(runs, 'RR', qrels)
    assert selection.gains == ('1', '2', '3')
    assert selection.losses == ('7', '6', '5')
    (only,) = select_questions(runs[1:], 'RR', qrels)
    assert only.losses == ('7', '6', '5', '4', '3')


def _with_rank_of_r(rank):
    docids = [f'n{number}' for number in range(1, rank)] + ['r']
    return Ranking(docids, [-number for number in range(rank)])


@pytest.mark.parametrize(
    ('name', 'meaning'),
    [
        ('R@100', 'the share of the relevant documents that are among the first 100 hits'),
        ('P(rel=2)@5', 'the share of the first 5 hits that is relevant; relevant are grades from '
         '2 on'),
        ('Bpref', 'a measure that https://ir-measur.es describes'),
    ],
)  # fmt: skip
def test_meanings(name, meaning):
    assert measure_meaning(parse_measures([name])[0]) == meaning


def test_verdicts():
    better = Comparison('RR', 0.5, 0.75, 0.25, t=3.0, p=0.01, wins=8, ties=1, losses=1)
    compared = RunComparison('a', 'b', better, p_holm=0.02, interval=Interval(0.1, 0.4))
    assert verdict(compared, 0.95) == [
        'b has the higher mean RR: 0.7500, and a 0.5000 (+0.2500).',
        'The difference is more than chance explains (p = 0.0200).',
        'With 95% confidence, it lies between +0.1000 and +0.4000.',
        'b is better in 8 questions, worse in 1, and equal in 1.',
    ]
    unsure = RunComparison('a', 'b', better, p_holm=0.06)
    assert 'may be chance (p = 0.0600)' in ' '.join(verdict(unsure, 0.95))
    assert 'better than' not in ' '.join(verdict(unsure, 0.95))
    worse = Comparison('RR', 0.75, 0.5, -0.25, t=-3.0, p=0.00001, wins=1, ties=1, losses=8)
    assert 'b has the lower mean' in verdict(RunComparison('a', 'b', worse), 0.95)[0]
    assert '(p < 0.0001)' in verdict(RunComparison('a', 'b', worse), 0.95)[1]


def test_cautions():
    assert cautions(25, 0, {'a': 0.9, 'b': 0.85}) == []
    few, empty, unjudged = cautions(24, 1, {'a': 0.1, 'b': 0.15})
    assert few.startswith('24 judged questions: few.')
    assert empty.startswith('1 question without any relevant document')
    assert 'judged are 10% of a and 15% of b' in unjudged
