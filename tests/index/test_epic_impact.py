"""A Lucene index of EPIC's impacts ranks as the exhaustive search of the same quantised vectors."""

import json

import numpy as np
import pytest
from folders import change_model

from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.epic_impact import LEVELS, impacts, vocabulary_of
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.epic.encoder import EpicEncoder

QUERIES = ['the old fish in the sea', 'moon', 'cat dog ? big ##s', '']


@pytest.fixture
def bundle(tiny_epic, corpus_file, tmp_path):
    encoder = EpicEncoder(tiny_epic())
    encode_corpus(
        open_corpus(corpus_file(60)), encoder, tmp_path / 'vectors', prune=15, store_text=True
    )
    return EpicBundle(tmp_path / 'vectors')


def test_impacts_by_hand():
    assert impacts(np.asarray([1.0, 0.5, 0.26, 0.24, 0.0, -1.0], np.float32), 0.5).tolist() == [
        2,
        1,
        1,
        0,
        0,
        0,
    ]


@pytest.mark.jvm
def test_search_equals_the_exhaustive_one(bundle, tmp_path, tiny_epic, capsys):
    from pyserini_repbert.systems.epic.encoder import QUERY_UNIT
    from pyserini_repbert.systems.epic.searcher import EpicImpactSearcher

    index = str(tmp_path / 'index')
    arguments = [
        'lucene',
        '--variant',
        'epic-impact',
        '--vectors',
        str(bundle.folder),
        '--output',
        index,
    ]
    assert command.run(main, arguments) == 0
    assert '60 passages (epic-impact)' in capsys.readouterr().out
    searcher = EpicImpactSearcher(index)
    encoder = searcher.query_encoder.encoder
    step = max(vectors.weights.max() for _, vectors in bundle.vectors()) / LEVELS
    found = searcher.batch_search(QUERIES, ['a', 'b', 'c', 'd'], 20)
    docids = bundle.docids(np.arange(60))
    for qid, text in zip('abcd', QUERIES, strict=True):
        query = encoder.encode_query(text)
        levels = impacts(bundle.weights_of(np.arange(60), query.terms), step)
        exact = levels @ np.rint(query.weights * QUERY_UNIT) * step / QUERY_UNIT
        best = sorted(
            (row for row in range(60) if exact[row] > 0), key=lambda row: (-exact[row], docids[row])
        )
        hits = found[qid]
        np.testing.assert_allclose([hit.score for hit in hits], exact[best[:20]], rtol=1e-5)
        above = (
            [hit.docid for hit in hits if not np.isclose(hit.score, exact[best[:20]][-1])]
            if hits
            else []
        )
        assert above == [docids[row] for row in best[: len(above)]]
        plain = np.sort(bundle.score(np.arange(len(bundle)), query))[::-1]
        np.testing.assert_allclose([hit.score for hit in hits], plain[: len(hits)], atol=0.05)
    assert found['d'] == []
    alone = searcher.search(QUERIES[0], 3)
    assert [hit.docid for hit in alone] == [hit.docid for hit in found['a'][:3]]
    assert [hit.text for hit in alone] == searcher.texts([hit.docid for hit in alone])
    searcher.close()
    with pytest.raises(MismatchError, match='other weights'):
        EpicImpactSearcher(index, tiny_epic('other', seed=1))
    for part in ('configuration', 'tokenizer'):
        changed = tiny_epic(part)
        change_model(changed, part)
        with pytest.raises(
            MismatchError, match=f'other {part} than encoder .*: pass the encoder it was built with'
        ):
            EpicImpactSearcher(index, changed)
    assert (
        json.loads((tmp_path / 'index' / 'pyserini_repbert.json').read_text())['variant']
        == 'epic-impact'
    )


@pytest.mark.jvm
def test_the_search_command_opens_it_by_its_own_record(bundle, tmp_path, capsys):
    from pyserini_repbert.commands.search import main as search
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.systems.epic.searcher import EpicImpactSearcher

    index = str(tmp_path / 'index')
    topics = tmp_path / 'topics.tsv'
    run = str(tmp_path / 'run.txt')
    built = [
        'lucene',
        '--variant',
        'epic-impact',
        '--vectors',
        str(bundle.folder),
        '--output',
        index,
    ]
    assert command.run(main, built) == 0
    topics.write_text(f'1\t{QUERIES[0]}\n2\t{QUERIES[1]}\n')
    assert (
        command.run(
            search, ['--sparse', index, '--topics', str(topics), '--output', run, '--hits', '7']
        )
        == 0
    )
    searcher = EpicImpactSearcher(index)
    expected = searcher.batch_search(QUERIES[:2], ['1', '2'], 7)
    assert {qid: list(found.docids) for qid, found in read_run(run).items()} == {
        qid: [hit.docid for hit in hits] for qid, hits in expected.items()
    }
    assert searcher.size == 60 and len(searcher.search(QUERIES[0], 10**9)) <= 60
    best = expected['1'][0].docid
    assert searcher.texts([best, 'none']) == [*bundle.texts([best]), None]
    capsys.readouterr()
    assert command.run(search, ['--sparse', index, '--query', QUERIES[0]]) == 0
    assert bundle.texts([best])[0] in capsys.readouterr().out
    assert command.run(search, ['--index', index, '--sparse', 'bm25', '--query', 'cat']) == 2
    assert (
        f"holds EPIC's impacts, which 'bm25' cannot score: name the folder alone, {index}"
        in capsys.readouterr().err
    )


@pytest.mark.jvm
def test_pyserinis_searcher_finds_the_same(bundle, tmp_path):
    from pyserini_repbert.index.epic_impact import build_impact_index
    from pyserini_repbert.lucene.compat import import_pyserini
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
    from pyserini_repbert.search import EpicImpactQueryEncoder, EpicImpactSearcher

    index = tmp_path / 'index'
    build_impact_index(bundle, vocabulary_of(bundle), index)
    ours = EpicImpactSearcher(index)
    pyserini = import_pyserini('pyserini.search.lucene')
    theirs = pyserini.LuceneImpactSearcher(
        str(index), EpicImpactQueryEncoder(ours.query_encoder.encoder), min_idf=-1
    )
    for query in QUERIES[:3]:
        expected = ours.search(query, 60)
        hits = theirs.search(query, 60)
        assert {hit.docid for hit in hits} == {hit.docid for hit in expected}
    assert LuceneSparseSearcher(index).texts(['d3']) == bundle.texts(['d3'])
    with pytest.raises(InputError, match='exists already'):
        build_impact_index(bundle, vocabulary_of(bundle), index)
