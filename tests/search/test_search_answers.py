"""Questions answered with reasons, and at a prompt."""

import contextlib
import io

import pytest

from pyserini_repbert.commands import terminal
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.search import main
from pyserini_repbert.commands.terminal import hits_text, scores_in_rankings
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.explain import explain_text
from pyserini_repbert.explain.explaining import hit_reasons
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline import open_reranker
from pyserini_repbert.ranking import Candidate, Excerpt, Ranking
from pyserini_repbert.systems.epic.encoder import EpicEncoder


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    encode_corpus(
        open_corpus(corpus_file(9)),
        RepBertDocumentEncoder(tiny_checkpoint()),
        tmp_path / 'b',
        store_text=True,
    )
    return tmp_path / 'b'


def test_ranks_in_each_input():
    hits = Ranking(['b', 'a', 'c'], [3, 2, 1])
    inputs = [Ranking(['a', 'b'], [2, 1]), Ranking(['c', 'b'], [2, 1])]
    found = hit_reasons('q', hits, ['one', 'two'], inputs)
    assert found == [
        ['ranks: one 2, two 2'],
        ['ranks: one 1, not in two'],
        ['ranks: not in one, two 1'],
    ]
    cut = hit_reasons('q', hits, ['one', 'two'], [inputs[0], inputs[1][:1]], depth=2)
    assert cut[1:] == [['ranks: one 1, not in two'], ['ranks: one below 2, two 1']]


def test_the_scores_of_a_fused_hit_are_those_in_the_rankings():
    """The best hit of any question had 1.0000."""
    hits = Ranking(['b', 'a'], [1.0, 0.4])
    rankings = {'minilm': Ranking(['b', 'a'], [0.61, 0.25]), 'bm25\x1b': Ranking(['b'], [9.5])}
    scores = scores_in_rankings(hits, rankings)
    assert scores == ['minilm 0.6100, bm25\ufffd 9.5000', 'minilm 0.2500']
    assert hits_text('q', hits, scores=scores).splitlines() == [
        '? q',
        '   1. b  (minilm 0.6100, bm25\ufffd 9.5000)',
        '   2. a  (minilm 0.2500)',
    ]


def test_epics_reason_is_its_greatest_contributions(tiny_epic):
    folder = tiny_epic()
    candidate = Candidate('d', 1.0, 'the cat sat on the red mat')
    said = open_reranker(folder).reason('red cat', candidate)
    parts = explain_text(EpicEncoder(folder), 'red cat', 'the cat sat on the red mat')[
        'contributions'
    ]
    said_parts = [
        f'{own["term"]} {own["contribution"]:.2f}' for own in parts[:5] if own['contribution'] > 0
    ]
    assert said == ' + '.join(said_parts)
    assert 'cat ' in said


def test_cedrs_reason_is_its_best_matches(tiny_cedr):
    reranker = open_reranker(tiny_cedr('knrm'))
    said = reranker.reason('red cat', Candidate('d', 1.0, 'the cat sat'))
    words = [pair.partition('~')[0] for pair in said.split(', ')]
    assert sorted(words) == ['cat', 'red']
    values = [float(pair.rpartition(' ')[2]) for pair in said.split(', ')]
    assert values == sorted(values, reverse=True) and all(-1 <= value <= 1 for value in values)


def test_tokenised_passages_are_shown_as_prose():
    hits = Ranking(['d'], [1.0], ["`` Time flies , '' he said ; \x07 ( listen ) ."])
    assert (
        hits_text('q', hits).splitlines()[-1].strip() == '"Time flies," he said; \ufffd (listen).'
    )


def test_a_long_line_of_code_is_cut_around_the_words_between_words(monkeypatch):
    """It ended within a word, without a sign."""
    monkeypatch.setenv('COLUMNS', '60')
    comment = '# Copies the desk to the stick in the drawer every Sunday.'
    text = f'{comment}\n    {"add " * 30}tide()'
    excerpt = Excerpt(0, 0, len(text), text, file='backup.sh')
    lines = hits_text('tide', Ranking(['d'], [1.0], excerpts=[(excerpt,)])).splitlines()[3:]
    assert lines[0].strip() == '# Copies the desk to the stick in the drawer every …'
    assert lines[1].startswith('          … add add') and lines[1].endswith(' add tide()')
    assert max(map(len, lines)) <= 60


def test_the_command_explains(bundle, cross_encoder_folder, capsys):
    mono = cross_encoder_folder('monobert')
    command = ['--index', str(bundle), '--query', 'red cat', '--hits', '3', '--quiet']
    assert run(main, [*command, '--rerank', f'{mono}@2']) == 0
    plain = capsys.readouterr().out
    assert run(main, [*command, '--rerank', f'{mono}@2', '--explain']) == 0
    shown = capsys.readouterr().out
    own = ('      ranks: ', '      why: ')
    assert [line for line in shown.splitlines() if not line.startswith(own)] == plain.splitlines()
    assert shown.count('ranks: tiny ') == 3 and shown.count('why: relevant with p = 0.') == 2


def test_a_mixed_score_is_no_probability(bundle, cross_encoder_folder, capsys):
    mono = cross_encoder_folder('monobert')
    command = ['--index', str(bundle), '--query', 'red cat', '--hits', '2', '--quiet', '--explain']
    assert run(main, [*command, '--rerank', f'{mono}@2:weight=0.75']) == 0
    shown = capsys.readouterr().out
    assert 'relevant with p' not in shown
    assert shown.count('by MonoBertReranker (0.75) and the stage before (0.25)') == 2


def test_a_terminal_does_not_obey_what_a_corpus_says():
    hits = Ranking(['\x1b[31md'], [1.0], ['red\x1b]0;title\x07 \u202ecat'])
    shown = hits_text('a\tquery\x9b2J', hits)
    assert shown.splitlines() == [
        '? a query\ufffd2J',
        '   1. \ufffd[31md  (1.0000)',
        '      red\ufffd]0;title\ufffd \ufffdcat',
    ]


def test_texts_that_were_cut_are_counted(tiny_checkpoint, corpus_file, tmp_path, capsys):
    (tmp_path / 't.tsv').write_text('1\tred\n2\tred cat\n')
    given = f'--corpus {corpus_file(9)} --encoder {tiny_checkpoint()} --quiet'
    assert run(encode, f'{given} --output {tmp_path / "b"}'.split()) == 0
    assert ' cut to ' not in capsys.readouterr().out
    assert run(encode, f'{given} --max-length 1 --output {tmp_path / "c"}'.split()) == 0
    assert ', 9 cut to 1 wordpieces\n' in capsys.readouterr().out
    flags = (
        f'--index {tmp_path / "b"} --topics {tmp_path / "t.tsv"} --output {tmp_path / "run"} '
        f'--quiet'
    )
    assert run(main, f'{flags} --max-length 1'.split()) == 0
    assert '2 topics, 1 cut to 1 wordpieces, ' in capsys.readouterr().out


def test_a_prompt_answers_until_it_ends(bundle, monkeypatch, capsys):
    typed = iter(['red cat', 'the sea', ''])
    monkeypatch.setattr('sys.stdin', Terminal())
    monkeypatch.setattr('builtins.input', lambda prompt: next(typed))
    assert run(main, ['--index', str(bundle), '--hits', '2', '--quiet']) == 0
    shown = capsys.readouterr().out
    assert shown.startswith('Type a question. An empty line ends the search.\n')
    assert shown.count('? ') == 2 and shown.count('ranks: tiny 1') == 2


def test_one_question_has_no_bar(bundle, monkeypatch, capsys):
    bars = []
    monkeypatch.setattr(terminal, 'progress', lambda *given: bars.append(given) or NoBar())
    assert run(main, ['--index', str(bundle), '--query', 'red cat']) == 0
    assert run(main, ['--index', str(bundle), '--query', 'red cat', '--query', 'the sea']) == 0
    assert bars == [
        (1, 'search', 'topics', True),
        (2, 'search', 'topics', False),
    ]


class NoBar(contextlib.nullcontext):
    def __enter__(self):
        return self

    def update(self, n):
        pass


class Terminal(io.StringIO):
    """Input that is typed."""

    def isatty(self):
        return True


def piped(monkeypatch, content):
    monkeypatch.setattr('sys.stdin', io.TextIOWrapper(io.BytesIO(content)))


def test_without_a_question_a_terminal_is_a_prompt(bundle, monkeypatch, capsys):
    monkeypatch.setattr('sys.stdin', Terminal('red cat\nthe sea\n'))
    assert run(main, ['--index', str(bundle), '--hits', '2', '--quiet']) == 0
    shown = capsys.readouterr().out
    assert '? red cat' in shown
    assert '? the sea' in shown


def test_questions_through_a_pipe(bundle, monkeypatch, capsys):
    flags = ['--index', str(bundle), '--hits', '2', '--quiet']
    assert run(main, [*flags, '--query', 'red cat']) == 0
    by_flag = capsys.readouterr().out
    piped(monkeypatch, '\ufeffred cat\n\n  \nthe sea'.encode())
    assert run(main, flags) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(by_flag)
    assert shown.count('? ') == 2
    for content, message in {
        b'': 'error: no question was given: give one (--query)',
        b'red cat\ncaf\xe9\n': 'error: line 2 of the questions is not UTF-8: convert them',
    }.items():
        piped(monkeypatch, content)
        assert run(main, flags) == 2
        assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize('is_typed', [True, False])
def test_what_is_missing_is_said_before_a_question_is_asked(
    is_typed, monkeypatch, tmp_path, capsys
):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    monkeypatch.setattr('sys.stdin', Terminal('never read'))
    if not is_typed:
        piped(monkeypatch, b'never read')
    assert run(main, ['--encoder', 'repbert', '--index', 'msmarco']) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert 'the download of repbert (386 MB); the download of msmarco-v1-passage (987 MB)' in line
    assert '13.6 GB of disk for 8,841,823 x 768 float16 vectors' in line
    assert '14 hours on a GTX 1080 Ti' in line and 'days on a CPU' in line
    assert 'python -m pyserini_repbert.regression quick checks the published runs' in line
    assert line.endswith(
        ': python -m pyserini_repbert.search --encoder repbert --index msmarco --build'
    )
