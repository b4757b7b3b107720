"""Language models rerank listwise and pointwise; wrong answers are repaired and counted."""

import json
import math

import pytest
from chat_server import by_last_number, chat_server, reply

from pyserini_repbert.commands.evaluate import main as evaluate
from pyserini_repbert.commands.rerank import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.client import ModelAnswer
from pyserini_repbert.extensions.language_models.errors import LanguageModelError
from pyserini_repbert.extensions.language_models.permutation import parse_permutation
from pyserini_repbert.extensions.language_models.reranker import LanguageModelReranker, yes_log_odds
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings
from pyserini_repbert.extensions.language_models.windows import sliding_windows
from pyserini_repbert.ranking import Candidate


@pytest.mark.parametrize(
    ('answer', 'rows', 'is_repaired'),
    [
        ('[2] > [3] > [1]', (1, 2, 0), False),
        ('<think>[1] is worse</think>[2] > [3] > [1]', (1, 2, 0), False),
        ('2, 3, 1', (1, 2, 0), False),
        ('[3]', (2, 0, 1), True),
        ('[3] > [3] > [1] > [2]', (2, 0, 1), True),
        ('[9] > [2] > [3] > [1] > [0]', (1, 2, 0), True),
        ('I cannot rank these.', (0, 1, 2), True),
        ('', (0, 1, 2), True),
    ],
)
def test_an_answer_is_an_order_of_all(answer, rows, is_repaired):
    permutation = parse_permutation(answer, 3)
    assert permutation.rows == rows and permutation.is_repaired == is_repaired


def test_windows_slide_to_the_top():
    assert sliding_windows(10, 4, 2) == [range(6, 10), range(4, 8), range(2, 6), range(4)]
    assert sliding_windows(5, 4, 3) == [range(1, 5), range(2)]
    assert sliding_windows(3, 20, 10) == [range(3)]
    assert sliding_windows(1, 4, 2) == sliding_windows(0, 4, 2) == []


def test_the_best_passage_rises_through_windows():
    hits = [Candidate(str(value), text=f'value {value}') for value in range(10)]
    with chat_server(by_last_number) as server:
        settings = LanguageModelSettings('m', server.address)
        reranker = LanguageModelReranker(llm=settings, window=4, step=2)
        ranked = [hit.docid for hit in reranker.rerank('greatest', hits)]
    assert ranked[:2] == ['9', '8'] and len(server.bodies) == reranker.inferences(10) == 4


def test_pointwise_scores_are_log_odds():
    hits = [Candidate('a', text='good'), Candidate('b', text='bad'), Candidate('c', text='odd')]
    tops = {
        'good': {'Yes': math.log(0.8), ' no': math.log(0.2)},
        'bad': {'No': math.log(0.9), 'yes': math.log(0.1)},
        'odd': {'Well': -0.1},
    }

    def rule(prompt):
        (word,) = [word for word in tops if f'Passage: {word}' in prompt]
        return reply('?', tops[word])

    with chat_server(rule) as server:
        settings = LanguageModelSettings('m', server.address)
        ranked = LanguageModelReranker(llm=settings, method='pointwise').rerank('q', hits)
    assert [hit.docid for hit in ranked] == ['a', 'c', 'b']
    assert [hit.score for hit in ranked] == pytest.approx([math.log(4), 0, -math.log(9)])


@pytest.mark.parametrize('form', ['▁{}', 'Ġ{}', ' {}', '"{}', '**{}**', '{}'])
def test_a_token_counts_in_the_form_of_its_vocabulary(form):
    top = {form.format('Yes'): -0.1, form.format('no'): -3.0}
    assert yes_log_odds(ModelAnswer('', top_tokens=tuple(top.items()))) == pytest.approx(2.9)


def test_a_server_without_probabilities_is_refused_pointwise():
    with chat_server(lambda prompt: 'Yes') as server:
        settings = LanguageModelSettings('m', server.address)
        with pytest.raises(LanguageModelError, match='no log-probabilities'):
            LanguageModelReranker(llm=settings, method='pointwise').rerank(
                'q', [Candidate('a', text='x')]
            )


def test_wrong_settings_are_refused(tmp_path):
    settings = LanguageModelSettings('m', 'http://127.0.0.1:9/v1')
    with pytest.raises(InputError, match='none was named'):
        LanguageModelReranker()
    with pytest.raises(InputError, match='the step is from 1'):
        LanguageModelReranker(llm=settings, window=2, step=3)
    with pytest.raises(InputError, match='are for listwise'):
        LanguageModelReranker(llm=settings, method='pointwise', window=3)
    prompt = tmp_path / 'mine.txt'
    prompt.write_text('{query}', encoding='utf-8')
    with pytest.raises(InputError, match='has no {passages}'):
        LanguageModelReranker(llm=settings, prompt=str(prompt))


@pytest.fixture
def three_hits(tmp_path, monkeypatch):
    """The flags of a run of three hits, its topic and its passages, which are written here."""
    monkeypatch.chdir(tmp_path)
    texts = [{'id': f'd{value}', 'contents': f'value {value}'} for value in range(3)]
    (tmp_path / 'c.jsonl').write_text('\n'.join(map(json.dumps, texts)), encoding='utf-8')
    run = ''.join(f'1 Q0 d{value} {value + 1} {9 - value} x\n' for value in range(3))
    (tmp_path / 'run.txt').write_text(run, encoding='utf-8')
    (tmp_path / 'topics.tsv').write_text('1\tgreatest\n', encoding='utf-8')
    return ['--run', 'run.txt', '--topics', 'topics.tsv', '--corpus', 'c.jsonl']


def test_a_run_is_repeated_without_the_model(tmp_path, three_hits, capsys):
    words = [*three_hits, '--reranker', 'llm@3:window=3', '--llm-model', 'm']
    words += ['--llm-answers', 'a.sqlite']
    with chat_server(lambda prompt: '[3] > [3]') as server:
        main([*words, '--tag', 't', '--llm', server.address, '--output', 'first.txt'])
    assert '1 answers asked for, 0 kept; 1 repaired' in capsys.readouterr().out
    main([*words, '--tag', 't', '--output', 'again.txt'])
    assert '0 answers asked for, 1 kept; 1 repaired' in capsys.readouterr().out
    first = (tmp_path / 'first.txt').read_bytes()
    assert first == (tmp_path / 'again.txt').read_bytes()
    assert [line.split()[2] for line in first.decode().splitlines()] == ['d2', 'd0', 'd1']
    records = [
        json.loads((tmp_path / f'{name}.txt.record.json').read_text('utf-8'))
        for name in ('first', 'again')
    ]
    used = [record['settings']['language_models'] for record in records]
    assert used == [{'llm@3': {'answers': 1, 'tokens': 12, 'answer_tokens': 2, 'repaired': 1}}] * 2
    assert len(records[0]['settings']['rankers'][0]['prompt_sha256']) == 64
    evaluate(['costs', 'again.txt', '--prompt-price', '1e5', '--answer-price', '1e6'])
    row = capsys.readouterr().out.splitlines()[2].split('|')[1:-1]
    cells = [cell.strip() for cell in row]
    assert cells == ['again.txt: llm@3', 'm', '1', '10', '2', '3.0000']


def test_costs_of_two_stages_of_one_depth(three_hits, capsys):
    words = [*three_hits, '--reranker', 'llm@3', '--reranker', 'llm@3:window=2,step=1']
    words += ['--llm-model', 'm']
    with chat_server(by_last_number) as server:
        main([*words, '--llm', server.address, '--output', 'out.txt'])
    capsys.readouterr()
    evaluate(['costs', 'out.txt'])
    rows = [line.split('|')[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ['out.txt: llm@3', 'm', '1', '10', '2'],
        ['out.txt: llm@3#2', 'm', '2', '20', '4'],
    ]
