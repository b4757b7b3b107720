"""Settings files: what each key means, and one line for each mistake, with file and line."""

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.command import _settings, main, make_parser
from pyserini_repbert.serve.settings import IndexSettings, Limits, read_settings


def _written(folder, text):
    for name in ('lucene', 'bundle', 'checkpoint'):
        (folder / name).mkdir(exist_ok=True)
    path = folder / 'serve.yaml'
    path.write_text(text, encoding='utf-8')
    return path


def test_an_index_may_be_a_path_alone(tmp_path):
    file = read_settings(_written(tmp_path, 'indexes: {text: lucene}'))
    assert file.indexes == {'text': IndexSettings(path=str(tmp_path / 'lucene'))}


def test_all_settings_of_an_index(tmp_path):
    (tmp_path / 'topics.tsv').write_text('q1\tcat\n', encoding='utf-8')
    path = _written(
        tmp_path,
        """
indexes:
  dense:
    path: bundle
    index_type: dense
    encoder: checkpoint
    base_index: text
    topics: topics.tsv
""",
    )
    assert read_settings(path).indexes['dense'] == IndexSettings(
        path=str(tmp_path / 'bundle'),
        index_type='dense',
        encoder=str(tmp_path / 'checkpoint'),
        base_index='text',
        topics=str(tmp_path / 'topics.tsv'),
    )


def test_names_of_the_catalog_and_addresses_of_clusters_stay_as_they_are(tmp_path):
    path = _written(
        tmp_path,
        """
indexes:
  known: {name: demo, sparse: [bm25], qrels: demo}
  spread: {path: bundle, ray: '10.0.0.1:6379'}
""",
    )
    assert read_settings(path).indexes == {
        'known': IndexSettings(name='demo', sparse=['bm25'], qrels='demo'),
        'spread': IndexSettings(path=str(tmp_path / 'bundle'), ray='10.0.0.1:6379'),
    }


def test_keys_rerankers_and_limits(tmp_path):
    text = 'api_keys: [secret]\nrerankers: []\nlimits: {hits: 50, search_seconds: 2}\n'
    file = read_settings(_written(tmp_path, text))
    assert file.api_keys == ['secret']
    assert file.rerankers == []
    assert file.limits == Limits(hits=50, search_seconds=2.0)


def test_an_empty_file_has_the_defaults(tmp_path):
    file = read_settings(_written(tmp_path, ''))
    assert file.indexes == {}
    assert file.rerankers is None


def test_paths_are_relative_to_the_file(tmp_path):
    path = _written(
        tmp_path,
        """
indexes:
  text: {path: bundle, sparse: [bm25, bm25@lucene, lucene, bm25@msmarco-v1-passage]}
rerankers: [monobert-demo, checkpoint, nowhere]
""",
    )
    file = read_settings(path)
    here = str(tmp_path / 'lucene')
    assert file.indexes['text'].sparse == ['bm25', f'bm25@{here}', here, 'bm25@msmarco-v1-passage']
    assert file.rerankers == ['monobert-demo', str(tmp_path / 'checkpoint'), 'nowhere']


MISTAKES = [
    ('limits: {stop_seconds: .inf}\n', 1, 'stop_seconds'),
    ("api_keys: [' abc ']\n", 1, 'without blanks around it'),
    ('indexes:\n  a:\n    encoder: repbert-demo\n', 2, 'give its path'),
    ('indexes:\n  a:\n    path: lucene\n    index_type: lucen\n', 4, 'index_type'),
    ('indexes:\n  a/b: lucene\n', 2, 'cannot be the name of an index'),
    ('indx:\n  a: lucene\n', 1, "did you mean 'indexes'"),
    ('indexes:\n  a: lucene\n  a: bundle\n', 3, 'a'),
    ('indexes:\n  a: lucene\nlimits:\n  hits: 0\n', 4, 'hits'),
    ('indexes:\n  a: lucene\napi_keys:\n  - good\n  - " "\n', 5, 'empty'),
    ('indexes:\n  a:\n    path: lucene\n    writable: yes\n', 4, 'true or false was expected'),
    ('indexes: {a: lucene\n', 2, ''),
    ('- a\n', 1, ''),
]


@pytest.mark.parametrize(('text', 'line', 'says'), MISTAKES)
def test_mistakes(text, line, says, tmp_path):
    path = _written(tmp_path, text)
    with pytest.raises(InputError) as found:
        read_settings(path)
    message = str(found.value)
    assert message.startswith(f'{path}:{line}: ')
    assert says in message
    assert '\n' not in message
    assert len(message) < 400


def _empty(folder):
    path = folder / 'empty.yaml'
    path.touch()
    return path


def test_the_command_says_one_line_and_ends_with_2(tmp_path, capsys):
    path = _written(tmp_path, 'indexes:\n  a: nowhere\n')
    for arguments, says in (
        (['--config', str(path)], 'points to a folder that does not exist: nowhere'),
        (['--config', str(tmp_path / 'none.yaml')], 'none.yaml'),
        (['--index', f'x={tmp_path}', '--index', f'x={tmp_path}'], "two indexes have the name 'x'"),
        (['--index', f'indexes={tmp_path}'], 'cannot be the name of an index'),
        (['--index', 'demo', '--port', '70000'], 'at most 65535'),
        ([], 'nothing to serve'),
        (['--config', str(_empty(tmp_path))], 'names no indexes: there is nothing to serve'),
    ):
        assert command.run(main, arguments) == 2
        error = capsys.readouterr().err
        assert says in error
        assert len(error.strip().splitlines()) == 1, error


def test_a_dense_and_a_lucene_index_behind_one_name():
    flags = ['--index', 'mine=dense+lucene', '--topics', 'topics.tsv', '--qrels', 'qrels.txt']
    assert _settings(make_parser().parse_args(flags)).indexes == {
        'mine-lucene': IndexSettings(path='lucene'),
        'mine': IndexSettings(
            path='dense', base_index='mine-lucene', topics='topics.tsv', qrels='qrels.txt'
        ),
    }


def test_judgments_of_several_indexes_are_refused():
    assert command.run(main, ['--index', 'a', '--index', 'b', '--qrels', 'qrels.txt']) == 2


def test_what_adapt_wrote_is_named_relative_to_the_file(tmp_path):
    (tmp_path / 'mine').mkdir()
    file = read_settings(_written(tmp_path, 'indexes: {known: {name: demo, adapted: mine}}'))
    assert file.indexes['known'].adapted == str(tmp_path / 'mine')
