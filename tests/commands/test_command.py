import os
import subprocess
import sys

import pytest

from pyserini_repbert.commands.command import parser, run
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.manifest import MANIFEST, PART, SETTINGS
from pyserini_repbert.pipeline.part_file import SUFFIX
from pyserini_repbert.train.forms import RECIPE


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (
            InputError('no passages', parameters=('store_text', 'corpus')),
            'error: no passages (--store-text, --corpus)\n',
        ),
        (
            MismatchError('begun otherwise', parameters=('resume',)),
            'error: begun otherwise (--resume)\n',
        ),
        (InputError('nothing\nhelps'), 'error: nothing helps\n'),
        (InputError("no docid '\x1b[2J\u202ed'"), "error: no docid '\ufffd[2J\ufffdd'\n"),
    ],
)
def test_parameters_that_help_are_shown_as_flags(error, line, capsys):
    """A library speaks of its parameters, a command of its flags; both in one line."""

    def main(arguments):
        raise error

    assert run(main, []) == 2
    assert capsys.readouterr().err == line


def test_stdout_and_stderr_are_in_the_order_in_which_they_were_printed():
    script = (
        'import sys\n'
        'from pyserini_repbert.commands.command import run\n'
        'def main(arguments):\n'
        "    print('one')\n"
        "    print('two', file=sys.stderr)\n"
        "    print('three')\n"
        'run(main, [])\n'
    )
    buffered = {name: value for name, value in os.environ.items() if name != 'PYTHONUNBUFFERED'}
    done = subprocess.run(
        [sys.executable, '-c', script],
        env=buffered,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    assert done.stdout == 'one\ntwo\nthree\n'


def test_threads_soon_sleep_and_are_as_many_as_asked_for():
    """In a process of its own: OpenMP's settings are read once, when PyTorch is loaded."""
    script = (
        'from pyserini_repbert.commands.command import run, use_threads\n'
        'def main(arguments):\n'
        '    use_threads(1)\n'
        '    import os, torch, faiss\n'
        '    print(torch.get_num_threads(), faiss.omp_get_max_threads(), '
        "os.environ.get('GOMP_SPINCOUNT'))\n"
        '    use_threads(2)\n'
        '    print(torch.get_num_threads(), faiss.omp_get_max_threads())\n'
        'run(main, [])\n'
    )
    inherited = {name: value for name, value in os.environ.items() if 'OMP_' not in name}
    for given, turns in (({}, '10000'), ({'OMP_WAIT_POLICY': 'ACTIVE'}, 'None')):
        done = subprocess.run(
            [sys.executable, '-c', script],
            env=inherited | given,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split('\n')[:2] == [f'1 1 {turns}', '2 2']


@pytest.mark.parametrize(
    ('arguments', 'status', 'printed'),
    [
        (['--index', 'a', '--index', 'b'], 2, "argument --index: 'a' and 'b' were given: give one"),
        (['--index', 'a', '--index', 'a'], 0, ''),
        (['--query', 'x', '--query', 'y'], 0, ''),
        (['--fields', 'a', 'b', '--fields', 'c'], 2, "'a b' and 'c' were given: give one"),
    ],
)
def test_an_option_of_one_value_is_given_once(arguments, status, printed, capsys):
    def main(given):
        flags = parser('search', 'Searches.')
        flags.add_argument('--index')
        flags.add_argument('--query', action='append')
        flags.add_argument('--fields', nargs='+')
        flags.parse_args(given)

    assert run(main, arguments) == status
    assert printed in capsys.readouterr().err


def test_a_question_without_text_is_refused(capsys):
    from pyserini_repbert.commands.search import main

    assert run(main, ['--index', 'demo', '--query', ' ']) == 2
    assert capsys.readouterr().err == 'error: the query is empty: give a question\n'


@pytest.mark.parametrize(
    ('left', 'goes_on'),
    [
        ([], False),
        # work of our own that is not finished
        ([f'o{SUFFIX}'], True),
        ([f'o.training/{RECIPE}'], True),
        ([f'o/{SETTINGS}', 'o/shard-00000/docids'], True),
        ([f'o/{PART}1-of-2/{SETTINGS}', f'o/{PART}0-of-2/{SETTINGS}'], True),
        ([f'o/{SETTINGS}', f'o/{MANIFEST}', f'o/{PART}0-of-1/{MANIFEST}'], True),
        # finished work, and folders of others
        ([f'o/{SETTINGS}', f'o/{MANIFEST}'], False),
        ([f'o/{PART}0-of-2/{SETTINGS}', f'o/{PART}0-of-2/{MANIFEST}'], False),
        (['o/notes.txt'], False),
        (['o/part-00000.parquet'], False),
        (['o.training/notes.txt'], False),
        (['o.part/notes.txt'], False),
    ],
)
def test_an_interrupted_command_names_resume_where_it_left_work(
    left, goes_on, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)

    def main(arguments):
        flags = parser('encode', 'Encodes.')
        flags.add_argument('--output')
        flags.add_argument('--resume', action='store_true')
        flags.parse_args(arguments)
        for name in left:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        raise KeyboardInterrupt

    assert run(main, ['--output', 'o']) == 130
    advice = ': to continue, run it again with --resume' if goes_on else ''
    assert capsys.readouterr().err == f'error: interrupted{advice}\n'


def test_an_interrupted_encoding_names_resume_once_a_shard_is_whole(
    tiny_checkpoint, tmp_path, monkeypatch, capsys
):
    from pyserini_repbert.commands.encode import main
    from pyserini_repbert.index.shard_writer import ShardWriter

    corpus = tmp_path / 'corpus.tsv'
    corpus.write_text('a\tcat\nb\tdog\nc\tmoon\n', encoding='utf-8')
    output = tmp_path / 'o'
    arguments = ['--corpus', str(corpus), '--encoder', str(tiny_checkpoint())]
    arguments += ['--output', str(output), '--shard-size', '1', '--quiet']
    append = ShardWriter.append
    left = []

    def interrupted_append(*given):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        append(*given)

    monkeypatch.setattr(ShardWriter, 'append', interrupted_append)
    assert run(main, arguments) == 130
    assert capsys.readouterr().err.endswith('error: interrupted\n')
    assert not output.exists()
    left.append('a shard')
    assert run(main, arguments) == 130
    advice = 'error: interrupted: to continue, run it again with --resume\n'
    assert capsys.readouterr().err.endswith(advice)
    monkeypatch.setattr(ShardWriter, 'append', append)
    assert run(main, [*arguments, '--resume']) == 0


@pytest.mark.parametrize(
    ('words', 'advice'),
    [
        ('search --index x --interactive', '; leave it out: without a question, search asks'),
        ('search --index x --pairs p.npz', '; write a run with --output, and give it to `rerank'),
        ('search --index x --batch-tokens 9', '; leave it out: batches that do not fit in memory'),
        ('index sync --index x --batch-tokens 9', '; leave it out: batches that do not fit'),
        ('encode --fp32', "; did you mean '--precision float32' instead of --fp32?"),
    ],
)
def test_a_flag_that_has_left_says_what_to_do_instead(words, advice, capsys):
    from pyserini_repbert.commands.dispatcher import main

    assert run(main, words.split()) == 2
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize(
    ('words', 'advice'),
    [
        ('index snyc', "'lucene'); did you mean 'sync'? (see"),
        ('search --index x --query y --fusion interleaf', "; did you mean 'interleave'? (see"),
        ('index quilt', "'lucene') (see"),
    ],
)
def test_the_nearest_choice_is_named(words, advice, capsys):
    from pyserini_repbert.commands.dispatcher import main

    assert run(main, words.split()) == 2
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        (
            ['lucene', '--output', 'o', '--overwrit'],
            "unrecognized arguments: --overwrit; did you mean '--overwrite' instead of --overwrit?",
        ),
        (['lucene', 'x', '--output', 'o'], 'unrecognized arguments: x'),
        (['lucene'], 'the following arguments are required: --output'),
    ],
)
def test_an_error_of_an_action_names_its_own_help(arguments, problem, capsys):
    """The parser above knew neither the action's flags nor its name."""
    from pyserini_repbert.commands.index import main

    assert run(main, arguments) == 2
    assert capsys.readouterr().err == (
        f'error: {problem} (see python -m pyserini_repbert.index lucene --help)\n'
    )


@pytest.mark.parametrize(
    ('words', 'advice'),
    [
        (['--index', 'mine', 'boiler'], 'give the question as --query boiler'),
        (['who fixes it', '--index', 'mine'], "give the question as --query 'who fixes it'"),
        (['--query', 'who', 'fixes', 'it'], 'put a question of several words in quotes: --query'),
    ],
)
def test_a_question_without_its_flag(words, advice, capsys):
    from pyserini_repbert.commands.search import main

    assert run(main, words) == 2
    assert f'; {advice}' in capsys.readouterr().err


def test_a_flag_that_is_not_known_is_no_question(capsys):
    from pyserini_repbert.commands.search import main

    assert run(main, ['--index', 'mine', '--wrong', 'boiler']) == 2
    assert '--query' not in capsys.readouterr().err


def test_a_value_that_begins_with_a_dash():
    flags = parser('search', 'searches')
    flags.add_argument('--query')
    flags.add_argument('--hits')
    with pytest.raises(InputError, match=r'follows an equals sign: --query=-slug \(see'):
        flags.parse_args(['--query', '-slug'])
    for lacking in (['--query', '--hits', '3'], ['--query'], ['--query', '--hit', '3']):
        with pytest.raises(InputError, match='expected one argument') as caught:
            flags.parse_args(lacking)
        assert 'equals sign' not in str(caught.value)
