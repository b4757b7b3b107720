import os
import subprocess
import sys

import pytest

from pyserini_repbert.commands.search import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.index import DenseBundle, export_faiss
from pyserini_repbert.names.corpora import open_corpus


@pytest.mark.jvm
def test_pyserinis_command_gives_the_run_of_ours(tiny_checkpoint, corpus_file, tmp_path):
    """A checkpoint folder as --encoder, an exported index, no OpenAI key: the same hits, whoever
    searches.
    """
    checkpoint = str(tiny_checkpoint())
    topics = tmp_path / 'topics.tsv'
    topics.write_text('3\tthe red cat\n1\ta dog ran in the sun\n2\tmoon\n')
    encode_corpus(
        open_corpus(corpus_file(60)), RepBertDocumentEncoder(checkpoint), tmp_path / 'dense'
    )
    export_faiss(DenseBundle(tmp_path / 'dense'), tmp_path / 'faiss')
    arguments = ['--encoder', checkpoint, '--topics', str(topics), '--hits', '20', '--output']
    main(['--index', str(tmp_path / 'dense'), *arguments, str(tmp_path / 'ours.txt')])
    environment = {name: value for name, value in os.environ.items() if name != 'OPENAI_API_KEY'}
    flags = ['--index', str(tmp_path / 'faiss'), *arguments, str(tmp_path / 'theirs.txt')]
    subprocess.run(
        [sys.executable, '-m', 'pyserini_repbert', 'pyserini.search.faiss', *flags],
        check=True,
        capture_output=True,
        env=environment,
    )
    ours = read_run(tmp_path / 'ours.txt')
    theirs = read_run(tmp_path / 'theirs.txt')
    assert ours.keys() == theirs.keys() == {'1', '2', '3'}
    for qid, ranked in ours.items():
        assert ranked.docids == theirs[qid].docids
        assert ranked.scores == pytest.approx(theirs[qid].scores, abs=1e-4)
