"""The archive of Java's classes: made once, read silently, and done without where it does not
fit.
"""

import os
import subprocess
import sys

import pytest
from folders import wait_until

from pyserini_repbert.lucene import class_archive, jvm
from pyserini_repbert.lucene.java_home import MIN_MAJOR, anserini_jar, find_java, found_javas

pytestmark = pytest.mark.jvm

# Prints where Java got the class of its searcher from.
_SEARCH = """
import sys
from pyserini_repbert.lucene import jvm
log = ['-Xlog:class+load:file=' + sys.argv[1]]
with jvm.started_ahead(few_queries=True, more_options=log):
    jvm.java_class('io.anserini.search.SimpleSearcher')
lines = open(sys.argv[1]).read().splitlines()
print(*[line.split('source: ')[1] for line in lines if 'search.SimpleSearcher source' in line])
"""


@pytest.fixture(scope='module')
def archive(tmp_path_factory):
    cache = tmp_path_factory.mktemp('cache')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PYSERINI_REPBERT_CACHE', str(cache))
        return jvm.prepare_classes()


def plain_path(archive):
    """The archive of processes that go on, beside the one of a search."""
    return archive.with_name(archive.name.replace('linked', 'classes'))


@pytest.fixture
def path(archive, tmp_path, monkeypatch):
    """Where Java looks for an archive in this test."""
    for variable in jvm._OPTION_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    path = class_archive.archive_path(find_java(), anserini_jar(), ends_soon=True)
    path.parent.mkdir()
    return path


# The same of its writer, where nobody has started Java before.
_WRITE = """
import sys
from pathlib import Path
from pyserini_repbert.lucene import jvm
from pyserini_repbert.lucene.updating import LuceneUpdate
log, folder = sys.argv[1:]
jvm.start_jvm(['-Xlog:class+load:file=' + log])
with LuceneUpdate(Path(folder), 'en') as index:
    index.add([('d', 'some words')])
    index.finish(most_dead=1.0)
lines = open(log).read().splitlines()
print(*[line.split('source: ')[1] for line in lines if 'index.IndexWriter source' in line])
"""


def source_of_classes(tmp_path, code=_SEARCH, *words):
    words = [sys.executable, '-c', code, str(tmp_path / 'log'), *words]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, '')
    return done.stdout


def test_java_takes_classes_of_the_archive(archive, path, tmp_path):
    assert 'jar' in source_of_classes(tmp_path)
    os.link(archive, path)
    assert source_of_classes(tmp_path) == 'shared objects file\n'
    assert set(archive.parent.glob('*.jsa')) == {archive, plain_path(archive)}


def test_a_program_that_writes_takes_them_too(archive, path, tmp_path):
    """It adds a module, with which Java reads no linked classes."""
    plain = plain_path(archive)
    os.link(plain, path.with_name(plain.name))
    assert source_of_classes(tmp_path, _WRITE, str(tmp_path / 'index')) == 'shared objects file\n'


@pytest.mark.parametrize('bytes_of_it', [0, 100, 1_000_000])
def test_java_does_without_an_archive_that_is_not_whole(archive, path, tmp_path, bytes_of_it):
    path.write_bytes(archive.read_bytes()[:bytes_of_it])
    assert 'jar' in source_of_classes(tmp_path)


def test_java_verifies_an_archive_only_if_its_file_has_changed(archive, path):
    options_of = class_archive.archive_options
    os.link(archive, path)
    options = options_of(find_java(), anserini_jar(), ends_soon=True)
    assert class_archive._VERIFIED in options
    os.link(archive.with_suffix('.sha256'), path.with_suffix('.sha256'))
    fewer = options_of(find_java(), anserini_jar(), ends_soon=True)
    assert fewer == [option for option in options if option != class_archive._VERIFIED]


@pytest.mark.parametrize('share', [0.05, 0.3, 0.6, 0.9])
def test_java_does_without_a_damaged_archive(archive, path, tmp_path, share):
    os.link(archive.with_suffix('.sha256'), path.with_suffix('.sha256'))
    content = bytearray(archive.read_bytes())
    first = int(share * len(content))
    content[first : first + 4096] = bytes(byte ^ 255 for byte in content[first : first + 4096])
    path.write_bytes(content)
    assert 'jar' in source_of_classes(tmp_path)


def test_another_java_or_jar_has_another_archive(archive, path, tmp_path):
    java = find_java()
    jar = tmp_path / 'anserini-9-fatjar.jar'
    jar.write_bytes(b'a jar')
    first = class_archive.archive_path(java, jar, ends_soon=True)
    jar.write_bytes(b'another')
    second = class_archive.archive_path(java, jar, ends_soon=True)
    assert len({path, first, second}) == 3
    assert class_archive.archive_options(java, jar, ends_soon=True) == []


def test_java_does_without_the_archive_of_another_java(archive, path, tmp_path, monkeypatch):
    javas = [java for java in found_javas() if java.major >= MIN_MAJOR]
    if len(javas) < 2:
        pytest.skip('needs two Javas')
    monkeypatch.setenv('JAVA_HOME', str(javas[1].home))
    os.link(archive, class_archive.archive_path(javas[1], anserini_jar(), ends_soon=True))
    assert 'jar' in source_of_classes(tmp_path)


def test_an_archive_is_made_once_and_not_where_it_cannot_be(archive, path, tmp_path, monkeypatch):
    os.link(archive, path)
    if plain_path(path) != path:
        os.link(plain_path(archive), plain_path(path))
    monkeypatch.setattr(class_archive, '_run', None)
    assert jvm.prepare_classes() == path
    (tmp_path / 'file').touch()
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'file'))
    assert jvm.prepare_classes() is None


def test_a_failure_leaves_nothing(path, monkeypatch):
    monkeypatch.setattr(class_archive, '_LIST_CLASSES', 'raise SystemExit(3)')
    assert jvm.prepare_classes() is None
    assert list(path.parent.iterdir()) == []


# A question from the terminal, as `search` starts Java for it.
_ASK = """
from pyserini_repbert.lucene import jvm
with jvm.started_ahead(few_queries=True):
    jvm.java_class('io.anserini.search.SimpleSearcher')
"""


def test_searches_at_the_same_time_make_one_archive(path, tmp_path):
    searches = [subprocess.Popen([sys.executable, '-c', _ASK]) for _ in range(3)]
    assert [search.wait() for search in searches] == [0, 0, 0]
    wait_until(path.is_file)
    assert source_of_classes(tmp_path) == 'shared objects file\n'
    assert {file.name for file in path.parent.iterdir()} >= {path.name}


def test_one_process_begins_an_archive(path, monkeypatch):
    begun = []
    monkeypatch.setattr(class_archive.subprocess, 'Popen', lambda *_, **__: begun.append(1))
    for _ in range(3):
        class_archive.make_in_background(find_java(), anserini_jar())
    assert begun == [1]
    # It was ended, or Java could not make the archive: another one tries, a day later.
    marker = path.with_suffix('.begun')
    os.utime(marker, (0, 0))
    class_archive.make_in_background(find_java(), anserini_jar())
    assert begun == [1, 1]
    marker.unlink()
    path.touch()
    class_archive.make_in_background(find_java(), anserini_jar())
    assert begun == [1, 1]


def test_none_begins_where_the_cache_is_not_writable(tmp_path, monkeypatch):
    (tmp_path / 'file').touch()
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'file'))
    monkeypatch.setattr(class_archive.subprocess, 'Popen', None)
    class_archive.make_in_background(find_java(), anserini_jar())


def test_a_search_with_options_of_java_begins_none(path, monkeypatch):
    environment = {**os.environ, 'JAVA_TOOL_OPTIONS': '-Xmx512m'}
    subprocess.run([sys.executable, '-c', _ASK], env=environment, check=True, capture_output=True)
    assert list(path.parent.iterdir()) == []
