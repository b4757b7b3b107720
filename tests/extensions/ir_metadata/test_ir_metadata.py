"""ir-metadata of a run, from its record and what a user adds."""

import gzip
import json

import pytest
import yaml

from pyserini_repbert.commands.command import EXIT_ERROR, run
from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.ir_metadata.form import read_metadata
from pyserini_repbert.record import Input, Model, Record, checksum, write_record

RUN = '1 Q0 g2 1 2.5 mine\n1 Q0 g1 2 1.5 mine\n'
DIGIT = 'a' * 64


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """recorded(**changes) writes run.txt and its record, whose fields may change."""
    monkeypatch.chdir(tmp_path)

    def write(text=RUN, **changes):
        (tmp_path / 'run.txt').write_text(text)
        values = {
            'command': ('python', '-m', 'pyserini_repbert.search', '--topics', 'my topics.tsv'),
            'models': (Model('repbert-demo', DIGIT, DIGIT, DIGIT, 'float32'),),
            'inputs': (
                Input('index', 'dense', '1' * 64),
                Input('sparse', 'bm25@lucene'),
                Input('topics', 'my topics.tsv', DIGIT),
            ),
            'settings': {'fusion': 'rrf', 'rrf_k': 60.0, 'k1': None, 'stages': ['mono@2', 'duo@2']},
            'versions': {'pyserini_repbert': '0.4.0', 'python': '3.11.7', 'pyserini': '1.6.0'},
        }
        write_record('run.txt', Record(output=checksum('run.txt'), **(values | changes)))

    return write


def header(path):
    """The YAML between the first and the last line of a header, as a reader takes it."""
    lines = path.read_text().splitlines()
    assert lines[0] == '# ir_metadata.start'
    end = lines.index('# ir_metadata.end')
    return yaml.safe_load('\n'.join(line.removeprefix('# ') for line in lines[1:end]))


def test_all_of_a_record(recorded, tmp_path):
    recorded()
    main(['ir-metadata', 'run.txt', '--output', 'annotated.txt'])
    assert header(tmp_path / 'annotated.txt') == {
        'schema-version': 0.1,
        'tag': 'mine',
        'platform': {
            'software': {
                'libraries': ['python==3.11.7'],
                'retrieval toolkit': ['pyserini_repbert==0.4.0', 'pyserini==1.6.0'],
            }
        },
        'implementation': {
            'executable': {'cmd': "python -m pyserini_repbert.search --topics 'my topics.tsv'"}
        },
        'method': {
            'retrieval': [
                {'name': 'dense'},
                {'name': 'bm25@lucene'},
                {'name': 'rrf', 'interpolates': ['dense', 'bm25@lucene']},
                {'name': 'mono@2', 'reranks': 'rrf'},
                {'name': 'duo@2', 'reranks': 'mono@2'},
            ],
            'models': [
                {
                    'name': 'repbert-demo',
                    'weights': DIGIT,
                    'tokenizer': DIGIT,
                    'config': DIGIT,
                    'precision': 'float32',
                    'engine': 'pyserini_repbert',
                }
            ],
            'settings': {'fusion': 'rrf', 'rrf_k': 60.0, 'stages': ['mono@2', 'duo@2']},
        },
        'data': {
            'test collection': {'topics': 'my topics.tsv'},
            'other': [
                {'name': 'index', 'source': 'dense', 'sha256': '1' * 64},
                {'name': 'sparse', 'source': 'bm25@lucene'},
                {'name': 'topics', 'source': 'my topics.tsv', 'sha256': DIGIT},
            ],
        },
    }


def test_a_reranked_run_reranks_it(recorded):
    command = ('python', '-m', 'pyserini_repbert.rerank', '--run', 'bm25.txt')
    settings = {'method': 'sum', 'stages': ['mono@2']}
    # Its texts come from an index, which it does not search.
    inputs = (Input('run', 'bm25.txt'), Input('index', 'dense'))
    recorded(command=command, inputs=inputs, settings=settings)
    metadata = read_metadata('run.txt')
    assert metadata['method']['retrieval'] == [
        {'name': 'bm25.txt'},
        {'name': 'mono@2', 'reranks': 'bm25.txt'},
    ]
    assert 'test collection' not in metadata['data']


def test_a_join_of_folds_interpolates_nothing(recorded):
    command = ('python', '-m', 'pyserini_repbert.evaluate', 'join-folds', '--runs', 'a', 'b')
    recorded(command=command, inputs=(Input('runs', 'a'), Input('runs', 'b')), settings={})
    assert read_metadata('run.txt')['method'] == {
        'retrieval': [{'name': 'a'}, {'name': 'b'}],
        'models': [
            dict.fromkeys(('weights', 'tokenizer', 'config'), DIGIT)
            | {'name': 'repbert-demo', 'precision': 'float32', 'engine': 'pyserini_repbert'}
        ],
    }


def test_an_annotated_run_is_a_run(recorded, tmp_path):
    recorded()
    main(['ir-metadata', 'run.txt', '--output', 'annotated.txt.gz'])
    assert read_run('annotated.txt.gz') == read_run('run.txt')
    text = gzip.decompress((tmp_path / 'annotated.txt.gz').read_bytes()).decode()
    (tmp_path / 'bad.txt').write_text(text + '2 Q0 g1\n')
    number = text.count('\n') + 1
    with pytest.raises(InputError, match=f'bad.txt:{number}: expected'):
        read_run('bad.txt')


def test_a_header_alone_is_a_run_without_hits(tmp_path):
    path = tmp_path / 'run.txt'
    path.write_text('# ir_metadata.start\n# tag: a\n# ir_metadata.end')
    assert read_run(path) == {}


def test_a_folder_for_tira(recorded, tmp_path):
    recorded()
    (tmp_path / 'mine.yaml').write_text(
        'actor: {team: gardeners}\ndata: {test collection: {name: garden}}\n'
    )
    main(['ir-metadata', 'run.txt', '--tira', 'tira', '--add', 'mine.yaml'])
    folder = tmp_path / 'tira'
    assert sorted(path.name for path in folder.iterdir()) == ['ir-metadata.yml', 'run.txt']
    assert (folder / 'run.txt').read_text() == RUN
    metadata = yaml.safe_load((folder / 'ir-metadata.yml').read_text())
    assert metadata['actor'] == {'team': 'gardeners'}
    assert metadata['data']['test collection'] == {'topics': 'my topics.tsv', 'name': 'garden'}
    main(['ir-metadata', 'run.txt', '--tira', 'tira', '--overwrite'])
    assert 'actor' not in yaml.safe_load((folder / 'ir-metadata.yml').read_text())


def test_texts_that_look_like_numbers_stay_texts(recorded, tmp_path):
    from ruamel.yaml import YAML

    names = ('1e3', '0o17', '1_000', 'yes', 'null', '.5', '-1', '12:30', '# a', 'zwölf: 12')
    recorded(inputs=tuple(Input('runs', name) for name in names), settings={})
    main(['ir-metadata', 'run.txt', '--tira', 'tira'])
    text = (tmp_path / 'tira' / 'ir-metadata.yml').read_text()
    for metadata in (yaml.safe_load(text), YAML(typ='safe').load(text)):
        assert [entry['source'] for entry in metadata['data']['other']] == list(names)


REFUSED = """
run.txt => nothing to write: give --output, --tira or both
none.txt --output x => none.txt does not exist
bare.txt --output x => bare.txt has no record, or has changed since
msmarco.txt --output x => msmarco.txt is in the format of MS MARCO
open.txt --output x => its header of ir-metadata has no line '# ir_metadata.end'
run.txt --output run.txt => --output run.txt is an input
run.txt --output bare.txt => bare.txt exists
run.txt --output x --tira x => --output and --tira are one path
run.txt --output tag.yaml --add tag.yaml --overwrite => --output tag.yaml is an input
run.txt --tira folder => folder exists already
run.txt --tira folder --overwrite => folder is not a folder for TIRA
run.txt --output x --add text.yaml => text.yaml: expected components of ir-metadata
run.txt --output x --add tag.yaml => tag.yaml: the run and its record say 'tag' themselves
run.txt --output x --add cmd.yaml => say 'executable' themselves
"""


@pytest.mark.parametrize('line', REFUSED.strip().splitlines())
def test_one_line_and_nothing_written(recorded, tmp_path, capsys, line):
    said, message = line.split(' => ')
    recorded()
    (tmp_path / 'folder').mkdir()
    files = {
        'bare.txt': RUN,
        'msmarco.txt': '1\tg2\t1\n',
        'open.txt': '# ir_metadata.start\n' + RUN,
        'text.yaml': 'gardeners',
        'tag.yaml': 'tag: other\n',
        'cmd.yaml': 'implementation: {executable: make}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert run(main, ['ir-metadata', *said.split()]) == EXIT_ERROR
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_record_of_this_release(recorded, tmp_path):
    """The mapping reads what `write_record` wrote, not what a test made up."""
    recorded()
    written = json.loads((tmp_path / 'run.txt.record.json').read_text())
    assert read_metadata('run.txt')['method']['models'] == written['models']


# The fields of LongEval's skeleton of 2026 for retrieval (clef-longeval/longeval-code,
# clef26/scientific-retrieval).
LONGEVAL = """
tag: ENTER_VALUE_HERE
actor: {team: ENTER_VALUE_HERE}
research goal: {description: ENTER_VALUE_HERE}
platform: {software: {libraries: [ENTER_VALUE_HERE]}}
implementation: {source: {repository: ENTER_VALUE_HERE}}
data: {training data: [{name: ENTER_VALUE_HERE}]}
method:
  automatic: true
  retrieval:
    - {name: bm25, lexical: no, deep_neural_model: no, sparse_neural_model: no,
       dense_neural_model: no, single_stage_retrieval: no}
"""
MINE = """
actor: {team: gardeners}
research goal: {description: a hybrid}
implementation: {source: {repository: 'https://example.org/garden'}}
data: {training data: [{name: MS MARCO}]}
method:
  automatic: true
  retrieval:
    - {name: dense, dense_neural_model: true, deep_neural_model: true}
    - {name: bm25@lucene, lexical: true, sparse_neural_model: false, single_stage_retrieval: false}
"""


def test_the_fields_of_a_task_are_filled_and_checked(recorded, tmp_path, capsys):
    recorded()
    (tmp_path / 'longeval.yml').write_text(LONGEVAL)
    (tmp_path / 'mine.yaml').write_text(MINE)
    words = 'ir-metadata run.txt --tira tira --skeleton longeval.yml'.split()
    assert run(main, words) == EXIT_ERROR
    assert capsys.readouterr().err == (
        'error: longeval.yml has fields that the metadata lack: actor, research goal, '
        'implementation.source, data.training data, method.automatic, method.retrieval.lexical, '
        'method.retrieval.deep_neural_model, method.retrieval.sparse_neural_model, '
        'method.retrieval.dense_neural_model, method.retrieval.single_stage_retrieval: add them '
        '(--add)\n'
    )
    assert not (tmp_path / 'tira').exists()
    assert run(main, [*words, '--add', 'mine.yaml']) == 0
    metadata = yaml.safe_load((tmp_path / 'tira' / 'ir-metadata.yml').read_text())
    retrieval = metadata['method']['retrieval']
    assert [stage['name'] for stage in retrieval] == [
        'dense',
        'bm25@lucene',
        'rrf',
        'mono@2',
        'duo@2',
    ]
    assert retrieval[0] == {'name': 'dense', 'dense_neural_model': True, 'deep_neural_model': True}


def test_what_tirex_tracker_measured_is_added(recorded, tmp_path):
    """It repeats the command and the packages, which the record knows better."""
    recorded()
    tracked = {
        'implementation': {'executable': {'cmd': ['python', 't.py']}, 'source': {'lang': None}},
        'platform': {
            'hardware': {'cpu': {'number of cores': 2}},
            'operating system': {'kernel': 'Linux 6'},
            'software': {'tirex-tracker': '0.2.24'},
        },
        'resources': {'cpu': {'energy used system': '12 J'}, 'runtime': {'wallclock': '900 ms'}},
    }
    (tmp_path / 'tracked.yml').write_text(yaml.safe_dump(tracked))
    (tmp_path / 'mine.yaml').write_text('actor: {team: gardeners}')
    metadata = read_metadata('run.txt', 'tracked.yml', 'mine.yaml')
    assert metadata['resources'] == tracked['resources']
    assert metadata['platform']['hardware'] == tracked['platform']['hardware']
    assert metadata['platform']['software']['libraries'][-1] == 'tirex-tracker==0.2.24'
    assert metadata['implementation']['executable']['cmd'].startswith('python -m pyserini_repbert')
    assert metadata['actor'] == {'team': 'gardeners'}
