"""The rehearsal on a part of the regressions: stand-ins fetched from a server here, commands run
to their scores.
"""

import os
from pathlib import Path

import pytest

from rehearsal.running import rehearse

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get('PYSERINI_REPBERT_DATA', ROOT.parent / 'shared' / 'data'))

pytestmark = pytest.mark.skipif(
    not (DATA / 'msmarco').is_dir(), reason='the real topics and judgments are not here'
)


@pytest.fixture
def rehearsal(monkeypatch, tmp_path):
    """run(file, *conditions), with a cache of its own."""
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setenv('HF_HUB_OFFLINE', '')
    for name in ('http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_CACHE', str(tmp_path / 'hub'))

    def run(file, *conditions):
        return rehearse(
            [str(ROOT / 'regressions' / f'{file}.yaml')], conditions, DATA, tmp_path / 'rehearsal'
        )

    yield run


def test_published_runs_from_download_to_score(rehearsal):
    names = ['published.RepBERT', 'published.doc2query', 'eval.RepBERT']
    found = rehearsal('msmarco-v1-passage.repbert', *names)
    assert found.failed == {}
    assert found.rehearsed == [
        f'msmarco-v1-passage.repbert {name}' for name in ('published.doc2query', names[0])
    ]
    assert (
        'the leaderboard evaluates submitted runs'
        in found.not_run['msmarco-v1-passage.repbert eval.RepBERT']
    )


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.parametrize(
    ('file', 'conditions'),
    [
        ('msmarco-v1-passage.mono-duo', ['made.mono+duo_SUM+TCP', 'BM25 (Microsoft), candidates']),
        ('msmarco-v1-passage.repbert', ['made.RepBERT', 'made.docTTTTTquery', 'made.DeepCT']),
        ('msmarco-v1-passage.epic', ['EPIC+BM25 r=100', 'EPIC+docTTTTTquery r=100']),
        ('robust04.cedr', ['CEDR-PACRR', 'DRMM (BERT ft)']),
        ('webtrack.cedr', ['Vanilla BERT']),
        ('trec-car.mono-duo', ['+monoBERT+duoBERT_MAX', 'EPIC']),
    ],
)
def test_models_and_collections_from_download_to_score(rehearsal, file, conditions):
    found = rehearsal(file, *conditions)
    assert found.failed == {} and found.not_run == {}
    assert sorted(found.rehearsed) == sorted(f'{file} {name}' for name in conditions)
