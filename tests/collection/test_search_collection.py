"""`search --index COLLECTION`: what is printed and written, and what is refused in one line."""

import json

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.evaluate import main as evaluate
from pyserini_repbert.commands.search import main
from pyserini_repbert.data.runs import read_run

DOCUMENTS = [
    ('cats', 'the cat sat on the mat. a big cat ate the fish. a bird sat in the tree.'),
    ('seas', 'the sea. the blue sky on the sea. a red sun on the blue sea. the old moon.'),
    ('dogs', 'a dog ran. the dog ate a root. the small dog ran on the leaf. a new dog.'),
]
TOPICS = 'q1\tcat fish\nq2\tmoon\n'


@pytest.fixture
def folder(tmp_path, open_collection, monkeypatch):
    """The collection 'mine' of three documents, without Lucene; it is in the current folder."""
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
    (tmp_path / 'topics.tsv').write_text(TOPICS, encoding='utf-8')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def search(folder, capsys):
    """run(*arguments) -> (status, what was printed)."""

    def run(*arguments):
        capsys.readouterr()
        status = command.run(main, ['--quiet', *arguments])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


@pytest.fixture
def refusal(search):
    """refused(*arguments) -> the one line with which a search was refused."""

    def refused(*arguments):
        status, printed = search(*arguments)
        assert status == 2
        assert printed.startswith('error: ')
        assert printed.count('\n') == 1
        return printed

    return refused


def test_a_question_shows_documents_with_their_best_passage(search, folder):
    status, printed = search('--index', 'mine', '--query', 'moon', '--hits', '1')
    with Collection.open('mine') as collection:
        (hit,) = collection.search('moon', 1)
    assert status == 0
    assert printed.split('\n')[1].split()[:2] == ['1.', hit.docid]
    assert hit.excerpts[0].text in ' '.join(printed.split())


def test_topics_become_a_run_of_documents_whose_record_has_the_generation(search, folder, capsys):
    topics = ['--topics', 'topics.tsv', '--output', 'run.txt']
    assert search('--index', 'mine', *topics)[0] == 0
    run = read_run('run.txt')
    with Collection.open('mine') as collection:
        generation = collection.generation.sha256
        frame_hits = collection.search('cat fish', 10)
    assert list(run) == ['q1', 'q2']
    assert run['q1'].docids == tuple(hit.docid for hit in frame_hits)
    record = json.loads((folder / 'run.txt.record.json').read_text('utf-8'))
    (index,) = [entry for entry in record['inputs'] if entry['name'] == 'mine']
    assert index['sha256'] == generation
    (folder / 'qrels.txt').write_text(f'q1 0 {run["q1"].docids[0]} 1\n', encoding='utf-8')
    evaluate(['--qrels', 'qrels.txt', 'run.txt', '--measures', 'RR@10'])
    assert '1.0000' in capsys.readouterr().out


def test_a_report_shows_titles_and_texts_of_documents(search, folder):
    with Collection.open('mine') as collection:
        collection.add([{'id': 'moons', 'title': 'The Moon', 'text': 'an old moon.'}])
    search('--index', 'mine', '--topics', 'topics.tsv', '--output', 'run.txt')
    (folder / 'qrels.txt').write_text('q2 0 moons 1\nq2 0 gone 1\n', encoding='utf-8')
    arguments = ['--qrels', 'qrels.txt', 'run.txt', '--topics', 'topics.tsv', '--index', 'mine']
    evaluate([*arguments, '--html', 'report.html'])
    page = (folder / 'report.html').read_text('utf-8')
    assert '<bdi>The Moon</bdi> <code><bdi>moons</bdi></code>' in page
    assert 'an old <mark>moon</mark>.' in page
    # A judged document that was deleted since.
    assert '<code><bdi>gone</bdi></code></th><td>1</td><td class="number">not found</td>' in page


def test_another_generation_has_another_digest(search, folder):
    digests = []
    for number in range(2):
        output = f'run{number}.txt'
        search('--index', 'mine', '--topics', 'topics.tsv', '--output', output)
        record = json.loads((folder / f'{output}.record.json').read_text('utf-8'))
        digests += [entry['sha256'] for entry in record['inputs'] if entry['name'] == 'mine']
        with Collection.open('mine') as collection:
            collection.add([('new', 'the old tree')])
    assert len(set(digests)) == 2


@pytest.mark.parametrize('aggregate', ['max', 'first', 'mean', 'top3'])
def test_every_aggregation_ranks_as_its_searcher(search, aggregate):
    topics = ['--topics', 'topics.tsv', '--output', 'run.txt']
    assert search('--index', 'mine', '--aggregate', aggregate, *topics)[0] == 0
    with Collection.open('mine') as collection:
        searcher = collection.searcher(aggregate=aggregate)
        expected = searcher.search('cat fish', 10)
        searcher.close()
    run = read_run('run.txt')
    assert run['q1'].docids == tuple(hit.docid for hit in expected)
    assert run['q1'].scores == pytest.approx([hit.score for hit in expected], abs=1e-4)


def test_an_unknown_aggregation_names_those_there_are(refusal):
    printed = refusal('--index', 'mine', '--query', 'cat', '--aggregate', 'sum')
    assert 'max' in printed
    assert 'top3' in printed


@pytest.mark.parametrize(
    ('rankings', 'text'),
    [
        (['colbert'], "ranking of a collection 'colbert' is unknown: expected one of dense, bm25"),
        (['dense', 'dense'], 'rankings dense dense: name each once'),
        (['bm25'], 'the collection was built without Lucene: its ranking is dense'),
    ],
)
def test_rankings_that_it_lacks_are_refused(refusal, rankings, text):
    assert text in refusal('--index', 'mine', '--query', 'cat', '--rankings', *rankings)


def test_what_the_collection_lacks_is_refused(refusal):
    asked = ('--index', 'mine', '--query', 'cat')
    assert "ray is for dense vectors, and 'mine' is a collection" in refusal(
        *asked, '--ray', 'auto'
    )
    assert '--k1 and --b' in refusal(*asked, '--k1', '1.2')
    assert '--fusion' in refusal(*asked, '--fusion', 'rrf')


def test_what_only_a_collection_has_is_refused_of_a_frozen_index(refusal, folder, corpus_file):
    encode(['--corpus', str(corpus_file(5)), '--encoder', 'tiny', '--output', 'frozen'])
    asked = ('--index', 'frozen', '--query', 'cat')
    assert "aggregate is for a collection, and 'frozen' is an index of dense vectors" in refusal(
        *asked, '--aggregate', 'mean'
    )
    assert "rankings is for a collection, and 'frozen' is an index of dense vectors" in refusal(
        *asked, '--rankings', 'dense'
    )


def test_a_search_without_index_has_no_rankings_of_a_collection(refusal):
    printed = refusal('--sparse', 'bm25@lucene', '--query', 'cat', '--rankings', 'dense')
    assert 'None' not in printed


def test_several_passages_are_refused_where_there_are_none(
    refusal, corpus_file, cross_encoder_folder
):
    cross_encoder_folder()
    corpus = str(corpus_file(5))
    encode(['--corpus', corpus, '--encoder', 'tiny', '--output', 'frozen', '--store-text'])
    asked = ('--index', 'frozen', '--query', 'cat')
    printed = refusal(*asked, '--rerank', 'monobert@3:passages=3')
    assert "leave 'passages' out" in printed


def test_several_passages_are_refused_of_a_reranker_that_compares(refusal, cross_encoder_folder):
    cross_encoder_folder('duobert')
    printed = refusal('--index', 'mine', '--query', 'cat', '--rerank', 'duobert@2:passages=3')
    assert "'duobert' compares the candidates of a list" in printed


@pytest.mark.parametrize('passages', ['0', '-1', 'x'])
def test_a_stage_reads_at_least_one_passage(refusal, passages):
    stage = f'monobert@2:passages={passages}'
    printed = refusal('--index', 'mine', '--query', 'cat', '--rerank', stage)
    assert f"'passages={passages}'" in printed


def test_a_reranker_reads_one_passage_or_several(search, cross_encoder_folder, folder):
    cross_encoder_folder()
    runs = []
    for passages in (1, 3):
        stage = f'monobert@3:passages={passages}'
        output = f'{passages}.txt'
        arguments = ('--topics', 'topics.tsv', '--output', output, '--rerank', stage)
        status = search('--index', 'mine', *arguments)[0]
        assert status == 0
        runs.append(read_run(output)['q1'])
    assert sorted(runs[0].docids) == sorted(runs[1].docids)
    best_of_one = dict(zip(runs[0].docids, runs[0].scores, strict=True))
    best_of_three = dict(zip(runs[1].docids, runs[1].scores, strict=True))
    for docid, score in best_of_one.items():
        assert best_of_three[docid] >= score - 1e-5


@pytest.fixture
def with_lucene(folder, open_collection):
    """The collection 'both', with BM25."""
    with open_collection('both', sparse='bm25') as collection:
        collection.sync(DOCUMENTS)
    return 'both'


@pytest.mark.jvm
def test_rankings_choose_what_is_searched(search, with_lucene, folder):
    topics = ('--topics', 'topics.tsv')
    for rankings in ('bm25', 'dense', 'dense bm25'):
        output = f'{rankings}.txt'
        arguments = ('--rankings', *rankings.split(), *topics, '--output', output)
        assert search('--index', with_lucene, *arguments)[0] == 0
    assert search('--index', with_lucene, *topics, '--output', 'default.txt')[0] == 0
    assert read_run('bm25.txt')['q2'].docids == ('seas',)
    assert len(read_run('dense.txt')['q2']) == 3
    assert read_run('default.txt') == read_run('dense bm25.txt')
    record = json.loads((folder / 'default.txt.record.json').read_text('utf-8'))
    assert record['settings']['rankings'] == ['dense', 'bm25']


@pytest.mark.jvm
def test_the_default_is_interpolation_of_which_the_dense_ranking_has_three_fifths(
    search, with_lucene, folder
):
    asked = ('--index', with_lucene, '--topics', 'topics.tsv')
    said = ('--fusion', 'interpolation', '--normalize', 'background', '--alpha', '0.6')
    assert search(*asked, '--output', 'default.txt')[0] == 0
    assert search(*asked, *said, '--output', 'said.txt')[0] == 0
    assert search(*asked, '--fusion', 'rrf', '--output', 'rrf.txt')[0] == 0
    assert read_run('default.txt') == read_run('said.txt')
    assert read_run('rrf.txt') != read_run('said.txt')
    record = json.loads((folder / 'default.txt.record.json').read_text('utf-8'))
    assert record['settings']['fusion'] == 'interpolation'
    assert record['settings']['alpha'] == 0.6


@pytest.mark.jvm
def test_explain_shows_the_rank_in_each_ranking(search, with_lucene):
    status, printed = search('--index', with_lucene, '--query', 'moon', '--explain')
    assert status == 0
    assert printed.count('ranks: tiny ') == 3
    assert printed.count('bm25 1\n') == 1
    assert printed.count('not in bm25\n') == 2


@pytest.mark.jvm
def test_parameters_of_bm25(search, with_lucene):
    asked = ('--index', with_lucene, '--rankings', 'bm25', '--topics', 'topics.tsv')
    assert search(*asked, '--output', 'usual.txt')[0] == 0
    assert search(*asked, '--k1', '3', '--b', '0.9', '--output', 'other.txt')[0] == 0
    assert read_run('usual.txt')['q1'].scores != read_run('other.txt')['q1'].scores


@pytest.mark.jvm
@pytest.mark.parametrize('text', ['...', 'the of and', '\u200b'])
def test_more_like_a_document_of_which_lucene_has_no_term(open_collection, text):
    with open_collection(sparse='bm25') as collection:
        collection.sync([*DOCUMENTS, ('odd', text)])
        bm25 = collection.searcher(rankings=['bm25'])
        assert bm25.more_like('odd', 9) == []
        dense = collection.searcher(rankings=['dense'])
        expected = {hit.docid for hit in dense.more_like('odd', 9)}
        assert {hit.docid for hit in collection.more_like('odd', 9)} == expected
        bm25.close()
        dense.close()
