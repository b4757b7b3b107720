import numpy as np
import pytest
import torch

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.rerank import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.spec import StageSpec, parse_stage
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker
from tests.rerank.many import cost_of

ARCHITECTURES = ['vanilla', 'knrm', 'pacrr', 'drmm']
QUERIES = ['cat sat', 'the big red dog ran on a mat in the sun', '']
LISTS = [
    [
        Candidate('short', 3.0, 'cat'),
        Candidate('empty', 2.0, ''),
        Candidate('split', 1.0, 'the cat sat on the mat . ' * 20),
        Candidate('exact', 0.5, 'cat sat'),
    ],
    [],
    [Candidate('other', 1.0, 'fish ate a bird'), Candidate('short', 0.5, 'cat')],
]


@pytest.mark.parametrize('architecture', ARCHITECTURES)
def test_scores_of_many_queries_equal_those_alone(architecture, tiny_cedr):
    reranker = CedrReranker(tiny_cedr(architecture))
    done = []
    together = reranker.score_lists(QUERIES, LISTS, done.append)
    assert [scores.shape for scores in together] == [(4,), (0,), (2,)]
    assert sum(done) == 6
    for query, candidates, scores in zip(QUERIES, LISTS, together, strict=True):
        for candidate, score in zip(candidates, scores, strict=True):
            alone = reranker.score_lists([query], [[candidate]])[0]
            np.testing.assert_allclose(alone, [score], atol=1e-5, rtol=1e-5)
    one_by_one = CedrReranker(tiny_cedr(architecture, 'same'), token_budget=1).score_lists(
        QUERIES, LISTS
    )
    np.testing.assert_allclose(
        np.concatenate(one_by_one), np.concatenate(together), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize('architecture', ARCHITECTURES)
@pytest.mark.parametrize('seed', range(3))
def test_an_empty_text_comes_last(architecture, seed, tiny_cedr):
    """White space has no wordpieces either.

    KNRM's log counts of nothing are far from those of any document.
    """
    reranker = CedrReranker(tiny_cedr(architecture, seed=seed))
    candidates = [
        Candidate('empty', 9.0, ''),
        Candidate('blank', 8.0, ' \n'),
        Candidate('text', 7.0, 'dog ran'),
    ]
    assert [own.docid for own in reranker.rerank('cat sat', candidates)] == [
        'text',
        'empty',
        'blank',
    ]


@pytest.mark.parametrize('architecture', ARCHITECTURES)
def test_a_document_is_cut_where_the_checkpoint_says_or_the_user(architecture, tiny_cedr):
    folder = tiny_cedr(architecture, max_doc_length=70)
    words = ('cat sat on the mat in the sun and ran ' * 500).strip()  # 5,000 words
    whole = Candidate('d', text=words)
    cut = Candidate('d', text=' '.join(words.split()[:70]))
    reranker = CedrReranker(folder)
    assert reranker.rerank('cat', [whole])[0].score == pytest.approx(
        reranker.rerank('cat', [cut])[0].score, abs=1e-6
    )
    cost = cost_of(reranker, ['cat', 'cat'], [[whole], [cut]])
    assert (cost.candidates, cost.truncated, cost.inferences, cost.tokens) == (
        2,
        1,
        2,
        2 * 2 * (1 + 3 + 35),
    )
    longer = CedrReranker(folder, max_length=6000)
    assert np.isfinite(longer.rerank('cat', [whole])[0].score)
    assert cost_of(longer, ['cat'], [[whole]]).truncated == 0
    assert (
        longer.layout.n_parts(longer.layout.cut([5], [6] * 5000)) == 91
    )  # 64 positions - 6 - 3 = 55 a part


def test_fewer_layers(tiny_cedr):
    folder = tiny_cedr('knrm')
    fewer = CedrReranker(folder, n_layers=1)
    assert fewer.n_layers == 1
    whole = CedrReranker(folder)
    candidates = [Candidate('d', text='cat sat')]
    assert fewer.rerank('cat', candidates)[0].score != whole.rerank('cat', candidates)[0].score
    assert fewer.identity() != whole.identity() == CedrReranker(folder, n_layers=2).identity()
    with pytest.raises(InputError, match='3 layers were asked for, expected 1 to the 2'):
        CedrReranker(folder, n_layers=3)


@pytest.mark.parametrize('architecture', ['vanilla', 'knrm', 'pacrr'])
def test_bfloat16_is_close(architecture, tiny_cedr):
    folder = tiny_cedr(architecture)
    half = CedrReranker(folder, precision='bfloat16')
    assert {parameter.dtype for parameter in half.ranker.bert.parameters()} == {torch.bfloat16}
    scores = half.score_lists(QUERIES, LISTS)
    assert scores[0].dtype == np.float32
    np.testing.assert_allclose(
        np.concatenate(scores),
        np.concatenate(CedrReranker(folder).score_lists(QUERIES, LISTS)),
        atol=0.5,
    )


def test_the_papers_first_stages():
    assert parse_stage('m@robust04') == StageSpec('m', 150)
    assert parse_stage('m@webtrack:layers=5,max-length=400').options == (
        ('n_layers', 5),
        ('max_length', 400),
    )


def test_rerank_command(tiny_cedr, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tiny_cedr('pacrr')
    texts = {'a': 'the cat sat', 'b': 'a dog ran', 'c': 'fish ate . ' * 30}
    (tmp_path / 'topics.tsv').write_text('query\t1\tcat sat\n')
    (tmp_path / 'docs.tsv').write_text(
        ''.join(f'doc\t{docid}\t{text}\n' for docid, text in texts.items())
    )
    (tmp_path / 'bm25.run').write_text(
        ''.join(f'1 Q0 {docid} {i} {9 - i} t\n' for i, docid in enumerate('abc', 1))
    )
    command = (
        '--run bm25.run --topics topics.tsv --corpus docs.tsv --output o --reranker '
        'cedr-pacrr@robust04:layers=1'
    )
    assert run(main, command.split()) == 0
    expected = CedrReranker(folder, n_layers=1).rerank(
        'cat sat', [Candidate(d, text=t) for d, t in texts.items()]
    )
    found = read_run('o')['1']
    assert found.docids == tuple(item.docid for item in expected)
    np.testing.assert_allclose(found.scores, [item.score for item in expected], atol=1e-5)
    assert run(main, [*command.split()[:-1], 'cedr-pacrr@9:layers=7', '--overwrite']) == 2
    assert '7 layers were asked for' in capsys.readouterr().err
