"""One precision by default on every machine, in commands and API alike; another one by choice,
and recorded as used.
"""

import importlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import tree, write_files

from pyserini_repbert.commands import command
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder, encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank import CedrReranker, EpicReranker
from pyserini_repbert.systems.epic.encoder import EpicEncoder

ANSWERS = (True, False)
CPU = torch.device('cpu')
Force = Callable[[bool], None]
QUERY = 'the cat sat'


def run(module, *words):
    main = importlib.import_module(f'pyserini_repbert.commands.{module}').main
    return command.run(main, [str(word) for word in words])


@pytest.fixture
def files(tmp_path, corpus_file):
    corpus_file(20)
    write_files(tmp_path, {'topics.tsv': f'1\t{QUERY}\n', 'qrels': '1 0 d3 1\n'})
    write_run(
        tmp_path / 'first',
        {'1': Ranking([f'd{n}' for n in range(9)], [float(20 - n) for n in range(9)])},
    )
    return tmp_path


def candidates(files):
    return [
        Candidate(passage.docid, text=passage.text)
        for passage in list(open_corpus(files / 'corpus.jsonl'))[:9]
    ]


@pytest.mark.parametrize('native', ANSWERS)
def test_encode_gives_what_the_api_gives(native, native_bfloat16, files, tiny_checkpoint):
    native_bfloat16(native)
    folder = tiny_checkpoint()
    assert (
        run(
            'encode',
            '--corpus',
            files / 'corpus.jsonl',
            '--encoder',
            folder,
            '--output',
            files / 'command',
        )
        == 0
    )
    encode_corpus(
        open_corpus(files / 'corpus.jsonl'), RepBertDocumentEncoder(folder), files / 'api'
    )
    assert tree(files / 'command') == tree(files / 'api')
    assert DenseBundle(files / 'command').settings.precision == 'float32'


@pytest.mark.parametrize('native', ANSWERS)
@pytest.mark.parametrize('system', ['cedr', 'epic'])
def test_rerank_gives_what_the_api_gives(
    system, native, native_bfloat16, files, tiny_cedr, tiny_epic
):
    native_bfloat16(native)
    folder = tiny_cedr('knrm') if system == 'cedr' else tiny_epic()
    words = [
        '--run',
        files / 'first',
        '--topics',
        files / 'topics.tsv',
        '--corpus',
        files / 'corpus.jsonl',
    ]
    words += ['--reranker', f'{folder}@9', '--output', files / 'out', '--cost', files / 'cost.json']
    assert run('rerank', *words) == 0
    reranker = CedrReranker(folder) if system == 'cedr' else EpicReranker(folder)
    expected = reranker.rerank(QUERY, candidates(files))
    found = read_run(files / 'out')['1']
    assert found.docids == tuple(candidate.docid for candidate in expected)
    np.testing.assert_allclose(found.scores, [candidate.score for candidate in expected], atol=1e-6)
    assert json.loads((files / 'cost.json').read_text())['stages'][0]['precision'] == 'float32'


@pytest.mark.parametrize('native', ANSWERS)
def test_search_and_its_stages_give_what_the_api_gives(
    native, native_bfloat16, files, tiny_checkpoint, tiny_epic
):
    native_bfloat16(native)
    folder = tiny_checkpoint()
    epic = tiny_epic()
    encoder = RepBertDocumentEncoder(folder)
    encode_corpus(open_corpus(files / 'corpus.jsonl'), encoder, files / 'index', store_text=True)
    words = [
        '--index',
        files / 'index',
        '--topics',
        files / 'topics.tsv',
        '--output',
        files / 'out',
        '--hits',
        '9',
    ]
    assert run('search', *words) == 0
    texts = [passage.text for passage in open_corpus(files / 'corpus.jsonl')]
    scores = encoder.encode(texts) @ RepBertQueryEncoder(folder).encode(QUERY)
    np.testing.assert_allclose(
        read_run(files / 'out')['1'].scores, np.sort(scores)[::-1][:9], atol=1e-5
    )
    rerank = ['--overwrite', '--rerank', f'{epic}@20', '--cost', files / 'cost.json']
    assert run('search', *words, *rerank) == 0
    passages = [Candidate(f'd{number}', text=text) for number, text in enumerate(texts)]
    expected = EpicReranker(epic).rerank(QUERY, passages, 9)
    np.testing.assert_allclose(
        read_run(files / 'out')['1'].scores, [own.score for own in expected], atol=1e-6
    )
    assert json.loads((files / 'cost.json').read_text())['stages'][0]['precision'] == 'float32'


@pytest.mark.parametrize(('native', 'used'), [(True, 'bfloat16'), (False, 'float32')])
def test_what_was_used_is_recorded(
    native, used, native_bfloat16, files, tiny_checkpoint, tiny_epic, capsys
):
    native_bfloat16(native)
    auto = ('--precision', 'auto')
    words = ('--corpus', files / 'corpus.jsonl', '--store-text', *auto)
    folder = tiny_checkpoint()
    epic = tiny_epic()
    assert run('encode', '--encoder', folder, '--output', files / 'dense', *words) == 0
    assert run('index', 'epic', '--encoder', epic, '--output', files / 'terms', *words) == 0
    assert (
        DenseBundle(files / 'dense').settings.precision
        == TermWeightsBundle(files / 'terms').settings.precision
        == used
    )
    words = (
        '--topics',
        files / 'topics.tsv',
        '--output',
        files / 'out',
        '--cost',
        files / 'cost.json',
        *auto,
    )
    assert run('search', '--index', files / 'dense', '--rerank', f'{epic}@9', *words) == 0
    assert f'; {used}; ' in capsys.readouterr().out.splitlines()[-1]
    assert json.loads((files / 'cost.json').read_text())['stages'][0]['precision'] == used
    reason = json.loads((files / 'out.record.json').read_text())['settings']['precision_reason']
    assert ('2 times as fast' in reason) == native
    assert (
        run('explain', '--model', epic, '--query', QUERY, '--passage', 'red cat', '--json', *auto)
        == 0
    )
    assert json.loads(capsys.readouterr().out)['passages'][0]['precision'] == used
    assert (
        'auto'
        not in (files / 'dense' / 'manifest.json').read_text()
        + (files / 'terms' / 'manifest.json').read_text()
    )


def test_what_models_run_in(native_bfloat16, tiny_checkpoint, tiny_epic, tiny_cedr):
    native_bfloat16(True)
    assert (
        Precision('auto').on(CPU) is Precision.BFLOAT16
        and Precision('float16').on(CPU) is Precision.FLOAT16
    )
    opened = [
        RepBertQueryEncoder(tiny_checkpoint(), precision='auto'),
        EpicReranker(tiny_epic(), precision='auto'),
        CedrReranker(tiny_cedr('knrm'), precision='auto'),
    ]
    assert {own.precision for own in opened} == {'bfloat16'}
    assert opened[2].ranker.bert.encoder.layer[0].output.dense.weight.dtype is torch.bfloat16
    assert (
        opened[1].identity() != EpicReranker(opened[1].name).identity()
    )  # one is not resumed with the other
    for kind, name in ((RepBertDocumentEncoder, 'tiny'), (EpicEncoder, 'epic')):
        with pytest.raises(
            InputError, match="'int4' is unknown: expected one of float32, bfloat16, float16, auto"
        ):
            kind(Path(opened[0].name).with_name(name), precision='int4')
