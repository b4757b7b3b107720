"""Other projects' readers take what `evaluate ir-metadata` writes.

Neither is in the extra `interop`: repro_eval needs a setuptools before 82, and tira installs a
package `tests`, which would hide this one.
"""

from pathlib import Path

import pytest

from pyserini_repbert.commands import rerank, search
from pyserini_repbert.commands.evaluate import main

CORPUS = [
    '{"id": "g1", "contents": "Tomatoes want full sun and even watering."}',
    '{"id": "g2", "contents": "Slugs hide under boards during the day."}',
    '{"id": "g3", "contents": "Beans and peas bind nitrogen from the air."}',
]
TOPICS = ['1\twhere do slugs hide', '2\tsun for tomatoes', '3\tnitrogen from the air']
ADDED = """
actor: {team: gardeners}
implementation: {source: {repository: https://example.org/garden}}
research goal: {venue: {name: none, year: 2026}}
method: {name: minilm, description: dense search}
data: {test collection: {name: garden}}
"""


@pytest.fixture
def run_file(tmp_path, monkeypatch):
    """A run of three questions with its record, in the working folder; and what a user adds."""
    from pyserini_repbert.commands import encode

    monkeypatch.chdir(tmp_path)
    Path('garden.jsonl').write_text('\n'.join(CORPUS))
    Path('topics.tsv').write_text('\n'.join(TOPICS))
    Path('added.yaml').write_text(ADDED)
    encode.main('--corpus garden.jsonl --encoder minilm --output dense --store-text'.split())
    search.main('--index dense --topics topics.tsv --output run.txt --quiet'.split())
    return 'run.txt'


def test_tira_takes_the_folder(run_file):
    check_format = pytest.importorskip('tira.check_format').check_format
    main(['ir-metadata', run_file, '--tira', 'bare'])
    status, message = check_format(Path('bare'), 'ir_metadata')
    assert status.name == 'OK', message
    main(['ir-metadata', run_file, '--tira', 'tira', '--add', 'added.yaml'])
    status, message = check_format(Path('tira'), 'run-with-metadata')
    assert status.name == 'OK', message


def test_repro_eval_reads_the_header_and_tells_what_differs(run_file):
    metadata = pytest.importorskip('repro_eval.metadata', exc_type=ImportError)
    rerank.main(
        f'--run {run_file} --topics topics.tsv --reranker monobert-demo@2 --output mono.txt '
        '--quiet'.split()
    )
    Path('runs').mkdir()
    for name in ('run.txt', 'mono.txt'):
        main(['ir-metadata', name, '--output', f'runs/{name}', '--add', 'added.yaml'])
    handler = metadata.MetadataHandler('runs/mono.txt')
    assert handler.get_metadata()['actor'] == {'team': 'gardeners'}
    assert handler.get_metadata()['method']['retrieval'] == [
        {'name': 'run.txt'},
        {'name': 'monobert-demo@2', 'reranks': 'run.txt'},
    ]
    docids = {qid: set(hits) for qid, hits in handler.strip_metadata('runs/mono.txt').items()}
    assert docids == {qid: {'g1', 'g2', 'g3'} for qid in '123'}
    analyzer = metadata.MetadataAnalyzer('runs/run.txt')
    # Another implementation (the command), method and data; the same platform, goal and actor.
    assert analyzer.analyze_directory('runs') == {'prIMaD': ['runs/mono.txt']}
