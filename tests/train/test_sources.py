"""Instances: which, in what order, from which position; and which topics may not be among them."""

import itertools

import pytest
import torch

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Query
from pyserini_repbert.tasks.bi_encoder import in_batch_labels
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.recipe import Source
from pyserini_repbert.train.checkpoints import new_task, open_base
from pyserini_repbert.train.inputs import Guard
from pyserini_repbert.train.sources import TrainingSource
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.training import train


def opened(world, guard=None, **keys):
    """A source of the tiny world, with other values for some of its keys."""
    values = {key: world[key] for key in ('topics', 'qrels', 'corpus', 'run')} | keys
    return TrainingSource(Source(**values), 0, guard or Guard())


def test_negatives_come_from_the_run_and_are_not_relevant(world):
    source = opened(world, negatives=2, depth=4)
    found = list(source.instances(0, 0))
    assert len(found) == 48
    for instance in found:
        number = int(instance.qid[1:])
        assert instance.docids[0] == f'd{number}'
        assert instance.docids[1] in [f'd{(number + 5 * rank) % 24}' for rank in (1, 2, 3)]
    assert found == list(source.instances(0, 0))
    assert found != list(source.instances(0, 1))


def test_judged_negatives_and_retrieved_positives(world, tmp_path):
    """q0: d0 is retrieved, d1 is not, d2 and d3 are judged non-relevant; q1 has no judged
    negative.
    """
    (tmp_path / 'graded.txt').write_text(
        'q0 0 d0 1\nq0 0 d1 2\nq0 0 d2 0\nq0 0 d3 0\nq1 0 d1 1\n', encoding='utf-8'
    )
    source = opened(
        world, qrels=str(tmp_path / 'graded.txt'), judged_only=True, negatives=5, depth=5
    )
    assert sorted(source.instances(0, 0)) == [
        Instance(0, 'q0', ('d0', 'd2')),
        Instance(0, 'q0', ('d0', 'd3')),
    ]


def test_a_list_of_qids_of_other_topics_is_refused(world, tmp_path):
    """The source was empty without a word, if another one had instances."""
    (tmp_path / 'fold.txt').write_text('301\n302\n', encoding='utf-8')
    with pytest.raises(InputError, match=r'fold\.txt has no qid of .*topics\.tsv'):
        opened(world, qids=str(tmp_path / 'fold.txt'))


def test_scores_of_a_run_with_ranks_alone_are_refused(world, tmp_path):
    """The teacher's scores were 1, 1/2, 1/3, …"""
    (tmp_path / 'ranks.txt').write_text('q0\td0\t1\nq0\td5\t2\n', encoding='utf-8')
    with pytest.raises(InputError, match=r'data\.0: .*ranks\.txt has ranks alone'):
        opened(world, scores=str(tmp_path / 'ranks.txt'))


def test_triples_keep_their_order(world):
    stream = InstanceStream([opened(world, triples=world['triples'], run=None)], seed=1, shuffle=1)
    first = list(itertools.islice(stream, 3))
    assert first == [
        Instance(0, 'q0', ('d0', 'd7')),
        Instance(0, 'q1', ('d1', 'd8')),
        Instance(0, 'q2', ('d2', 'd9')),
    ]


def test_texts_in_triples_are_their_own_ids(tmp_path):
    (tmp_path / 'texts.tsv').write_text('what is a cat\ta cat is\ta dog is\n', encoding='utf-8')
    source = TrainingSource(Source(triples=str(tmp_path / 'texts.tsv')), 0, Guard())
    (instance,) = source.instances(0, 0)
    assert source.query(instance.qid) == 'what is a cat'
    assert source.texts(instance.docids) == ['a cat is', 'a dog is']


def test_triples_of_two_columns_are_refused(tmp_path):
    source = TrainingSource(Source(triples=str(tmp_path / 'texts.tsv')), 0, Guard())
    (tmp_path / 'texts.tsv').write_text('what is a cat\ta cat is\n', encoding='utf-8')
    with pytest.raises(InputError, match=r'texts.tsv:1: expected .* found 2 columns'):
        list(source.instances(0, 0))


def test_a_stream_goes_on_from_any_position(world):
    """24 instances an epoch in another order each time, every one once; positions reach into
    later epochs.
    """
    stream = InstanceStream([opened(world)], seed=3, shuffle=10)
    start = list(itertools.islice(stream, 60))
    later = InstanceStream([opened(world)], seed=3, shuffle=10, position=37)
    assert list(itertools.islice(later, 23)) == start[37:]
    first_epoch = [instance.qid for instance in start[:24]]
    second_epoch = [instance.qid for instance in start[24:48]]
    assert sorted(first_epoch) == sorted(second_epoch)
    assert first_epoch != second_epoch
    of_another_seed = InstanceStream([opened(world)], seed=4, shuffle=10)
    assert list(itertools.islice(of_another_seed, 60)) != start


def test_workers_take_turns_batch_by_batch(world):
    """Two worker processes give the same batches in the same order as none."""
    from torch.utils.data import DataLoader

    stream = InstanceStream([opened(world)], seed=3, shuffle=10, chunk=4, position=8)
    in_process = DataLoader(stream, 4, collate_fn=list, num_workers=0)
    by_workers = DataLoader(stream, 4, collate_fn=list, num_workers=2)
    assert list(itertools.islice(in_process, 5)) == list(itertools.islice(by_workers, 5))


def test_validation_topics_are_left_out(world):
    assert 'q3' not in opened(world, Guard(validation=[Query('1', 'CAT  sky ?')])).queries


def test_test_topics_are_an_error(world):
    with pytest.raises(InputError, match=r"data.0: topic 'q3': 'cat sky \?' is a test topic"):
        opened(world, Guard(test=[Query('1', 'Cat sky ?')]))


def test_test_topics_of_a_recipe_are_an_error(tiny_recipe, tmp_path):
    (tmp_path / 'test.tsv').write_text('1\tcat sky ?\n', encoding='utf-8')
    recipe = tiny_recipe('monobert', test_topics=[str(tmp_path / 'test.tsv')])
    with pytest.raises(InputError, match='is a test topic'):
        train(recipe, tmp_path / 'out', device='cpu')


def test_test_topics_of_the_catalog_are_known(world, tiny_recipe, tmp_path):
    from pyserini_repbert import catalog
    from pyserini_repbert.data.topics import read_topics

    query = read_topics(catalog.file('topics', 'demo'))[0]
    (tmp_path / 'leaky.tsv').write_text(f'q0\t{query.text.upper()}\n', encoding='utf-8')
    data = [
        {key: world[key] for key in ('qrels', 'corpus', 'run')}
        | {'topics': str(tmp_path / 'leaky.tsv')}
    ]
    with pytest.raises(InputError, match='is a test topic'):
        train(tiny_recipe('monobert', data=data), tmp_path / 'out', device='cpu')


def task_of(recipe):
    sources = [TrainingSource(source, n, Guard()) for n, source in enumerate(recipe.data)]
    return new_task(recipe, open_base(recipe.base), sources)


def test_repbert_rows_and_labels_follow_the_judgments(tiny_recipe, world, tmp_path):
    """Two rows an instance; q0's second relevant passage d1 is positive for it though it came
    with q1.
    """
    (tmp_path / 'two.txt').write_text('q0 0 d0 1\nq0 0 d1 1\nq1 0 d1 1\n', encoding='utf-8')
    data = [
        {key: world[key] for key in ('topics', 'corpus', 'run')}
        | {'qrels': str(tmp_path / 'two.txt')}
    ]
    task = task_of(
        tiny_recipe('repbert', ranking={'max_query_length': 8, 'max_doc_length': 16}, data=data)
    )
    batch = task.collate([Instance(0, 'q0', ('d0', 'd5')), Instance(0, 'q1', ('d1', 'd5'))])
    assert batch['rows'].tolist() == [0, 0, 1, 1]
    labels = in_batch_labels(batch['passage_keys'], batch['relevant_keys'][batch['rows']])
    first = [True, False, True, False]
    second = [False, False, True, False]
    assert labels.tolist() == [first, first, second, second]
    assert set(batch['query_token_type_ids'].flatten().tolist()) == {0}
    assert 1 in batch['passage_token_type_ids']
    assert task(batch).shape == ()


def test_a_second_positive_of_unjudged_triples_is_no_negative(tiny_recipe, world, tmp_path):
    """RepBERT eq. 4: d0 and d1 are relevant to q0, as the two triples say together."""
    path = tmp_path / 'two.tsv'
    path.write_text('q0\td0\td5\nq0\td1\td6\n', encoding='utf-8')
    data = [{key: world[key] for key in ('topics', 'corpus')} | {'triples': str(path)}]
    task = task_of(
        tiny_recipe('repbert', ranking={'max_query_length': 8, 'max_doc_length': 16}, data=data)
    )
    stream = InstanceStream(task.sources, seed=0, shuffle=1)
    batch = task.collate(list(itertools.islice(stream, 2)))
    labels = in_batch_labels(batch['passage_keys'], batch['relevant_keys'][batch['rows']])
    assert labels.tolist() == [[True, False, True, False]] * 4


def test_monobert_batches_are_balanced_and_duobert_has_both_orders(tiny_recipe):
    """The first half of a batch is relevant: monoBERT's d0 and d1, then d5 and d6; duoBERT: both
    orders.
    """
    instances = [Instance(0, 'q0', ('d0', 'd5')), Instance(0, 'q1', ('d1', 'd6'))]
    mono = task_of(tiny_recipe('monobert', ranking={'max_query_length': 8, 'max_length': 48}))
    duo = task_of(tiny_recipe('duobert', ranking={'max_query_length': 8, 'max_length': 60}))
    query, d0, d5 = duo.tokenizer.ids(['cat mat ?', *duo.sources[0].texts(['d0', 'd5'])])
    cls = duo.tokenizer.cls
    sep = duo.tokenizer.sep
    singles = mono.collate(instances)['input_ids']
    pairs = duo.collate(instances)['input_ids']
    for row, (one, other) in ((0, (d0, d5)), (2, (d5, d0))):
        expected = [cls, *query, sep, *one, sep, *other, sep]
        assert pairs[row, : len(expected)].tolist() == expected
        assert singles[row, : len(query) + len(one) + 3].tolist() == [cls, *query, sep, *one, sep]


def test_epic_trains_on_the_scores_that_it_ranks_by(tiny_epic, tiny_recipe, tmp_path):
    """The loss of one pair equals that of the reranker's two scores; a long passage is in
    chunks, a term repeats.
    """
    from pyserini_repbert.ranking import Candidate
    from pyserini_repbert.rerank import EpicReranker
    from pyserini_repbert.tasks.losses import pair_loss

    folder = tiny_epic(max_position_embeddings=12)
    triples = (
        'cat cat mat\tthe cat sat on the mat , a small cat sat in the sun . a bird\tthe dog ran\n'
    )
    (tmp_path / 'texts.tsv').write_text(triples, encoding='utf-8')
    data = [{'triples': str(tmp_path / 'texts.tsv')}]
    task = task_of(
        tiny_recipe('epic', base=str(folder), data=data, ranking={'max_query_length': 8})
    ).eval()
    (instance,) = task.sources[0].instances(0, 0)
    candidates = [Candidate(text, 0, text) for text in instance.docids]
    (scores,) = EpicReranker(folder).score_lists([instance.qid], [candidates])
    expected = pair_loss(torch.tensor(scores[:1]), torch.tensor(scores[1:]), 'cross_entropy')
    assert task(task.collate([instance])).item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.fixture
def pairs(world, tmp_path):
    """CEDR's form: q0 has a relevant, two unjudged documents and spam, q1 nothing relevant."""
    path = tmp_path / 'train.pairs'
    path.write_text(
        'q0\td3\nq0\td0\nq0\td5\nq0\td9\nq1\td7\nq2 d2\nq2 d4\nq2 d4\nother\td1\n', encoding='utf-8'
    )
    (tmp_path / 'graded.txt').write_text(
        'q0 0 d0 1\nq0 0 d1 2\nq0 0 d9 -2\nq1 0 d1 1\nq2 0 d2 1\n', encoding='utf-8'
    )
    return {'pairs': str(path), 'qrels': str(tmp_path / 'graded.txt'), 'run': None}


def test_of_pairs_what_is_not_relevant_is_negative(world, pairs):
    source = opened(world, **pairs, negatives=9)
    assert sorted(source.instances(0, 0)) == [
        Instance(0, 'q0', ('d0', 'd3')),
        Instance(0, 'q0', ('d0', 'd5')),
        Instance(0, 'q0', ('d0', 'd9')),
        Instance(0, 'q2', ('d2', 'd4')),
    ]
    assert list(source.instances(0, 0)) == list(source.instances(0, 0))


def test_of_pairs_only_judged_ones_on_request(world, pairs):
    source = opened(world, **pairs, negatives=9, judged_only=True)
    assert list(source.instances(0, 0)) == [Instance(0, 'q0', ('d0', 'd9'))]


def test_a_topic_with_the_words_of_a_test_topic_of_its_own_file_is_trained_on(world, tmp_path):
    """Robust04's 341 and 412 are both `airport security`, and in different folds."""
    (tmp_path / 'same.tsv').write_text('q0\tcat mat ?\nq1\tCat  mat ?\nq2\tcat sea ?\n')
    (tmp_path / 'fold.txt').write_text('q1\nq2\n')
    fold = {'topics': str(tmp_path / 'same.tsv'), 'qids': str(tmp_path / 'fold.txt')}
    tested = Query('q0', 'cat mat ?')
    assert list(opened(world, Guard(test=[tested]), **fold).queries) == ['q1', 'q2']
    assert list(opened(world, Guard(validation=[tested]), **fold).queries) == ['q1', 'q2']
    for elsewhere in (Query('q1', 'cat mat ?'), Query('other', 'cat mat ?')):
        with pytest.raises(InputError, match="topic 'q1': .* is a test topic"):
            opened(world, Guard(test=[elsewhere]), **fold)
