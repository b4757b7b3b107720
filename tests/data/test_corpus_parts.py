"""A corpus cut by bytes gives the passages that it has as a whole."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.data.corpus_parts import PartOfCorpus, bytes_digest, check_can_be_cut, cut
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus


def parts(path, size, fmt='auto', **options):
    """The cuts of a corpus, and their passages."""
    corpus = check_can_be_cut(open_corpus(path, fmt, **options))
    cuts = list(cut(corpus, size))
    return corpus, cuts, [list(PartOfCorpus(corpus, own.spans)) for own in cuts]


def test_where_the_cuts_are(tmp_path):
    path = tmp_path / 'corpus.tsv'
    path.write_bytes(b'\xef\xbb\xbf1\ta\n\n2\tb\r\n  \n3\tc\n4\td')
    corpus, cuts, found = parts(path, 2)
    spans = [[(span.file, span.start, span.end, span.line) for span in own.spans] for own in cuts]
    assert spans == [[(0, 0, 13, 1)], [(0, 13, 23, 4)]]
    assert [own.count for own in cuts] == [2, 2]
    assert cuts[1].sha256 == hashlib.sha256(b'  \n3\tc\n4\td').hexdigest() == bytes_digest(corpus.paths, cuts[1].spans)
    assert found == [[('1', 'a'), ('2', 'b')], [('3', 'c'), ('4', 'd')]]


def test_a_cut_goes_over_the_end_of_a_file(tmp_path):
    for name, docids in (('a.tsv', '123'), ('b.tsv', ''), ('c.tsv', '45')):
        (tmp_path / name).write_text(''.join(f'{docid}\ttext\n' for docid in docids))
    _, cuts, found = parts(tmp_path, 4)
    assert [[passage.docid for passage in own] for own in found] == [['1', '2', '3', '4'], ['5']]
    assert [(span.file, span.line) for span in cuts[0].spans] == [(0, 1), (2, 1)]


@given(
    st.lists(st.sampled_from(['{}\tthe text', '', ' ', '{}\tüñ', 'no tab', '{}\t', '1\tagain']), max_size=30),
    st.integers(1, 7),
    st.booleans(),
)
def test_parts_are_the_whole(tmp_path_factory, lines, size, ended):
    path = tmp_path_factory.mktemp('corpus') / 'corpus.tsv'
    path.write_text('\n'.join(line.format(number) for number, line in enumerate(lines)) + '\n' * ended)
    whole = list(open_corpus(path, 'tsv', on_error='skip'))
    _, cuts, found = parts(path, size, 'tsv', on_error='skip')
    assert [passage for own in found for passage in own] == whole
    assert [own.count for own in cuts] == [len(own) for own in found]
    assert all(own.count == size for own in cuts[:-1])


def test_a_line_that_cannot_be_used_is_found_by_who_reads_it(tmp_path):
    path = tmp_path / 'corpus.jsonl'
    lines = [json.dumps({'id': f'd{number}', 'contents': 'text'}) for number in range(5)]
    path.write_text('\n'.join([*lines[:3], 'not JSON', *lines[3:]]) + '\n')
    corpus = open_corpus(path)
    cuts = list(cut(corpus, 2))
    assert [own.count for own in cuts] == [2, 2, 2]
    assert len(list(PartOfCorpus(corpus, cuts[0].spans))) == 2
    with pytest.raises(InputError, match=r'corpus\.jsonl:4: not JSON .*: mend the corpus and plan again') as refused:
        list(PartOfCorpus(corpus, cuts[1].spans))
    assert refused.value.parameters == ('plan', 'on_error')


def test_what_cannot_be_cut(tmp_path):
    packed = tmp_path / 'corpus.tsv.gz'
    packed.write_bytes(gzip.compress(b'1\ttext\n'))
    with pytest.raises(InputError, match=r'corpus\.tsv\.gz is packed .*: unpack it \(gunzip -k ') as refused:
        check_can_be_cut(open_corpus(packed))
    assert refused.value.parameters == ('shard',)
    marked = tmp_path / 'corpus.trec'
    marked.write_text('<DOC><DOCNO>1</DOCNO> text </DOC>\n')
    with pytest.raises(InputError, match='cannot be read from its middle.*in parts'):
        check_can_be_cut(open_corpus(marked))


def test_a_file_that_shrank_has_another_digest(tmp_path):
    path = Path(tmp_path / 'corpus.tsv')
    path.write_text('1\tone\n2\ttwo\n')
    corpus, cuts, _ = parts(path, 1)
    path.write_text('1\tone\n')
    assert bytes_digest(corpus.paths, cuts[1].spans) == hashlib.sha256(b'').hexdigest() != cuts[1].sha256
