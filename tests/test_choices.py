"""Settings with named values: every public function takes plain text, or says which values exist.

All public functions and classes of the package are looked through by their signatures.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import pyserini_repbert
from pyserini_repbert.errors import InputError, MissingDependencyError

_DATACLASSES = ('dataclass', 'dataclass(frozen=True)', 'dataclass(frozen=True, kw_only=True)')
# Right values of settings that a class needs beside the wrong one.
OTHERS = {'method': 'rrf'}
PACKAGE = Path(pyserini_repbert.__file__).parent


def names_of_choices():
    for path in PACKAGE.rglob('*.py'):
        yield from re.findall(r'^class (\w+)\(Choice,', path.read_text('utf-8'), re.MULTILINE)


def public_functions(tree):
    """(its name, its definition) for each public function, method and constructor of a module.

    A protocol has none of its own.
    """
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and 'Protocol' not in map(ast.unparse, node.bases):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name != '__init__':
                    yield f'{node.name}.{part.name}', part
                elif isinstance(part, ast.FunctionDef):
                    yield node.name, part
            # Those with a `config` are read from files, and checked by pydantic.
            if any(ast.unparse(name) in _DATACLASSES for name in node.decorator_list):
                yield node.name, node


def parameters(node):
    """(name, annotation, default) for each parameter of a function, or field of a dataclass."""
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.AnnAssign):
                default = ast.unparse(part.value) if part.value else ''
                yield part.target.id, ast.unparse(part.annotation), default
        return
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(positional) - len(node.args.defaults)) + node.args.defaults
    defaults += node.args.kw_defaults
    pairs = zip([*positional, *node.args.kwonlyargs], defaults, strict=True)
    for argument, default in pairs:
        annotation = ast.unparse(argument.annotation) if argument.annotation else ''
        yield argument.arg, annotation, ast.unparse(default) if default else ''


def settings():
    """(module, function, parameter, annotation) wherever a Choice is taken."""
    choice = re.compile(rf'\b({"|".join(names_of_choices())})\b')
    for path in sorted(PACKAGE.rglob('*.py')):
        module = '.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts)
        for function, node in public_functions(ast.parse(path.read_text('utf-8'))):
            for name, annotation, default in parameters(node):
                if not re.search(r'(^|\.)_', function) and choice.search(f'{annotation} {default}'):
                    yield module, function, name, annotation


SETTINGS = list(settings())


@pytest.mark.parametrize(
    ('module', 'function', 'name', 'annotation'),
    SETTINGS,
    ids=[f'{function}-{name}' for _, function, name, _ in SETTINGS],
)
def test_an_unknown_value_is_refused_at_entry(module, function, name, annotation):
    """Before anything else is looked at: the other arguments are not use."""
    try:
        called = importlib.import_module(module)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    for part in function.split('.'):
        called = getattr(called, part)
    if inspect.isabstract(called):
        called = type(f'Some{function}', (called,), {})
        called.__abstractmethods__ = frozenset()
    arguments = {}
    for parameter in inspect.signature(called).parameters.values():
        is_needed = parameter.default is parameter.empty
        if is_needed and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            arguments[parameter.name] = OTHERS.get(parameter.name, object())
    arguments[name] = ('nonsense',) if 'Sequence' in annotation else 'nonsense'
    with pytest.raises(InputError, match=r"'nonsense' is unknown: expected one of ") as refused:
        result = called(**arguments)
        # A generator begins when it is asked.
        next(result)
    assert '\n' not in str(refused.value)


def test_an_unknown_layout_is_refused_at_entry():
    from pyserini_repbert.rerank import MonoBertReranker

    with pytest.raises(InputError, match="layout 'nonsense' is unknown: expected one of paper, "):
        MonoBertReranker(object(), layout='nonsense')


def test_names_in_plain_text_are_what_they_name():
    """What was the t-test, and the mean, whatever had been asked for."""
    from pyserini_repbert.evaluate.measures import Evaluation
    from pyserini_repbert.evaluate.significance import SignificanceTest, compare
    from pyserini_repbert.ranking import Ranking
    from pyserini_repbert.search.documents_of_passages import documents_of_run

    worse = {str(qid): qid / 10 for qid in range(6)}
    better = {str(qid): qid / 10 + 0.1 * (qid != 3) for qid in range(6)}
    first = Evaluation({'RR': worse}, {'RR': 0.25}, ())
    second = Evaluation({'RR': better}, {'RR': 0.33}, ())
    by_text = compare(first, second, test='randomization')
    assert by_text == compare(first, second, SignificanceTest.RANDOMIZATION)
    assert by_text != compare(first, second)

    run = {'q': Ranking(('d#0', 'd#1', 'd#2', 'd#3'), (4.0, 3.0, 2.0, 1.0))}
    for aggregation, score in {'max': 4.0, 'first': 4.0, 'mean': 2.5, 'top3': 3.0}.items():
        assert documents_of_run(run, aggregation)['q'].scores == (score,)
