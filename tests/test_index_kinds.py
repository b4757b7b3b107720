"""Nothing asks what kind of index it has, but `indexes/` and the packages of the files themselves.

An `Index` and its `IndexKind` say what they can do: rankings, options, whether documents change.
"""

import ast
from pathlib import Path

import pyserini_repbert

PACKAGE = Path(pyserini_repbert.__file__).parent
# They read and write the files of indexes.
HOMES = ('indexes', 'index', 'lucene', 'collection')
PREDICATES = {
    'is_collection',
    'is_faiss_folder',
    'is_index_folder',
    'is_lucene_index',
    'manifest_kind',
}
CLASSES = ('Bundle', 'FaissFolder', 'Index', 'IndexKind', 'Searcher')
# What stays, and why.
ALLOWED = {
    # A corpus and a wrong name are known by files, before an index is opened.
    'names/corpora.py': ['is_lucene_index'],
    'names/rankers.py': ['is_collection'],
    # Vectors are in a bundle of this package, or in a folder of FAISS.
    'search/dense.py': ['isinstance', 'is_faiss_folder'],
    # Refuses what a user gives in place of an open bundle.
    'rerank/term_weights.py': ['isinstance'],
    # What a question's vector is compared with is in collections alone.
    'extensions/confidence/estimating.py': ['isinstance'],
    'extensions/off_topic/claims.py': ['isinstance'],
    'extensions/off_topic/options.py': ['isinstance'],
}


def asks_for_index(call):
    """Whether a call of `isinstance` is about an index, or what searches one."""
    names = [node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)]
    # A `NamedIndex` is a name of the catalog, of whatever kind.
    return any(name.endswith(CLASSES) and name != 'NamedIndex' for name in names)


def predicates(path):
    """The names of the predicates of kinds that a module calls."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in PREDICATES or (name == 'isinstance' and asks_for_index(node)):
                yield name


def test_nothing_else_asks_what_kind_of_index_it_has():
    found = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        module = path.relative_to(PACKAGE)
        names = set(predicates(path))
        if names and module.parts[0] not in HOMES:
            found[module.as_posix()] = names
    assert found == {module: set(names) for module, names in ALLOWED.items()}


def test_a_predicate_is_found(tmp_path):
    path = tmp_path / 'asking.py'
    path.write_text(
        'if isinstance(index, (str, DenseIndex)) or is_collection(folder):\n'
        '    isinstance(name, NamedIndex)\n',
        encoding='utf-8',
    )
    assert list(predicates(path)) == ['isinstance', 'is_collection']
