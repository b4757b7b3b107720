"""`examples/own_rankers.py`: a first stage and a reranker of the user's own in search, the
service and PyTerrier.
"""

import json
from pathlib import Path

import pytest
from ready_services import ready_client

from pyserini_repbert.commands import search
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline import PipelineSpec, open_pipeline
from pyserini_repbert.record import read_record
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

PASSAGES = {'a': 'the cat sat on the mat', 'b': 'red cat', 'c': 'the old tree'}
FIRST = 'own_rankers:SharedWords'
RERANKER = 'own_rankers:ShortestFirst'


@pytest.fixture(autouse=True)
def corpus(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / 'examples')
    lines = (json.dumps({'id': docid, 'contents': text}) + '\n' for docid, text in PASSAGES.items())
    (tmp_path / 'docs.jsonl').write_text(''.join(lines))
    return tmp_path / 'docs.jsonl'


def test_search(corpus, tmp_path):
    (tmp_path / 'topics.tsv').write_text('1\tcat on a mat\n')
    words = [
        '--topics',
        tmp_path / 'topics.tsv',
        '--sparse',
        f'{FIRST}@{corpus}',
        '--output',
        tmp_path / 'run',
    ]
    search.main(list(map(str, words)))
    assert read_run(tmp_path / 'run')['1'].docids == ('a', 'b')  # 'cat', 'on' and 'mat'; 'cat'
    search.main(list(map(str, [*words, '--overwrite', '--rerank', f'{RERANKER}@2'])))
    assert read_run(tmp_path / 'run')['1'].docids == ('b', 'a')
    rankers = read_record(tmp_path / 'run').settings['rankers']
    assert [(own.get('ranker') or own['reranker'], own['name']) for own in rankers] == [
        ('SharedWords', f'{FIRST}@{corpus}'),
        ('ShortestFirst', RERANKER),
    ]


def test_service_opens_only_what_its_operator_names(corpus, tiny_checkpoint, tmp_path, monkeypatch):
    pytest.importorskip('fastapi')

    encode_corpus(
        open_corpus(corpus),
        RepBertDocumentEncoder(tiny_checkpoint()),
        tmp_path / 'dense',
        store_text=True,
    )
    index = IndexSettings(path=str(tmp_path / 'dense'), sparse=[f'{FIRST}@{corpus}'])
    (tmp_path / 'unwanted.py').write_text(f'open({str(tmp_path / "imported")!r}, "w")')
    monkeypatch.syspath_prepend(tmp_path)
    with ready_client(ServeSettings(indexes={'tiny': index}, rerankers=[RERANKER])) as client:

        def ask(system, stage):
            body = {
                'queries': [{'text': 'cat on a mat'}],
                'system': [system],
                'rerank': [f'{stage}@2'],
            }
            return client.post('/v1/tiny/batch', json=body)

        answer = ask(FIRST, RERANKER)
        assert [hit['docid'] for hit in answer.json()['results'][0]['candidates']] == ['b', 'a']
        for unknown in (ask('unwanted:X', RERANKER), ask(FIRST, 'unwanted:X')):
            assert unknown.status_code == 404 and not (tmp_path / 'imported').exists()


def test_pyterrier(corpus):
    pd = pytest.importorskip('pandas')
    pytest.importorskip('pyterrier')
    from pyserini_repbert.interop.pyterrier import PassageText, Rerank, Retriever

    first = Retriever(f'{FIRST}@{corpus}')
    hits = (first >> PassageText(first) >> Rerank(RERANKER))(
        pd.DataFrame({'qid': ['1'], 'query': ['cat on a mat']})
    )
    assert dict(zip(hits['docno'], hits['score'], strict=True)) == {'b': -7.0, 'a': -22.0}


@pytest.mark.parametrize(
    'name', ['no_such_module:X', 'own_rankers:Absent', 'own_rankers:json', RERANKER]
)
def test_wrong_first_stage_is_one_line(name):
    with pytest.raises(InputError, match=f"^'{name}'[^\n]*$"):
        open_pipeline(PipelineSpec(sparse=(name,)))
