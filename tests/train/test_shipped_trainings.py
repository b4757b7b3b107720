"""The recipes of the papers, trained on stand-ins in the order and the form of the real files."""

import itertools

import pytest
from rehearsal.training_files import write_car, write_msmarco, write_robust04, write_vectors
from trained_models import losses

from pyserini_repbert.errors import InputError
from pyserini_repbert.systems.cedr.static_vectors import convert_vectors
from pyserini_repbert.train.inputs import Guard
from pyserini_repbert.train.recipe_files import RECIPES, read_recipe, recipe_path
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.training import opened_sources, train

PAPERS = sorted(path.stem for path in RECIPES.glob('*.yaml') if not path.stem.startswith('demo-'))
# What makes a recipe run on a tiny base: lengths that fit into its 64 positions.
LENGTHS = {
    'repbert': ('ranking.max_query_length=8', 'ranking.max_doc_length=16'),
    'epic': ('ranking.max_query_length=8',),
    'monobert': ('ranking.max_query_length=8', 'ranking.max_length=48'),
    'duobert': ('ranking.max_query_length=8', 'ranking.max_length=60'),
    'cedr': ('ranking.max_query_length=20', 'ranking.max_doc_length=80'),
    'mlm': ('ranking.max_length=48',),
}


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """A folder with the stand-ins."""
    folder = tmp_path_factory.mktemp('files')
    write_msmarco(folder / 'msmarco')
    write_car(folder / 'car')
    write_robust04(folder / 'robust04')
    return folder


@pytest.fixture
def shipped(files, tiny_checkpoint, monkeypatch):
    """read(name, *settings) -> a recipe of a paper over a tiny base, a few steps long."""
    base = str(tiny_checkpoint('base'))
    msmarco = files / 'msmarco'
    variables = {
        'MSMARCO': msmarco,
        'CAR': files / 'car',
        'ROBUST04': files / 'robust04',
        'FOLD': files / 'robust04',
        'WEBTRACK': files / 'robust04',
        'DOCUMENTS': files / 'robust04' / 'documents.jsonl',
        'INDEX': 'index',
        'VALIDATION_TOPICS': msmarco / 'validation.topics.tsv',
        'VALIDATION_QRELS': msmarco / 'validation.qrels.txt',
        'VALIDATION_RUN': msmarco / 'validation.run.txt',
    }
    for name in ('VANILLA', 'CAR_BERT', 'WWM'):
        variables[name] = base
    write_vectors(files / 'vectors.txt')
    vectors = files / 'vectors'
    if not vectors.is_dir():
        convert_vectors(files / 'vectors.txt', vectors)
    variables['GLOVE'] = vectors
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))

    def read(name, *settings, steps=6):
        recipe = read_recipe(recipe_path(name))
        changes = [f'training.steps={steps}', 'training.precision=float32']
        if not name.startswith('glove-'):
            changes.append(f'base={base}')
        changes += [*LENGTHS[recipe.system], 'training.log_every=1']
        if recipe.system == 'cedr':
            corpus = files / 'robust04' / 'documents.jsonl'
            changes += [f'data.0.corpus={corpus}', 'data.0.index=null']
            changes += [f'validation.corpus={corpus}', 'validation.index=null']
        if recipe.validation is not None:
            changes.append(f'validation.every={steps // 2}')
        if name == 'epic-msmarco-code':
            changes.append(f'validation.topics={msmarco / "validation.topics.tsv"}')
            changes.append(f'validation.qrels={msmarco / "validation.qrels.txt"}')
        return read_recipe(recipe_path(name), (*changes, *settings))

    return read


@pytest.mark.parametrize('name', PAPERS)
def test_a_paper_s_recipe_trains_on_files_of_the_real_order_and_form(
    name, shipped, tmp_path, caplog
):
    trained = train(shipped(name), tmp_path / 'out', device='cpu')
    assert trained.steps == 6 and len(losses(tmp_path / 'out')) == 6
    assert (tmp_path / 'out/model.safetensors').is_file()
    assert 'one after the other' not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize('name', PAPERS)
def test_a_paper_s_recipe_trains_for_some_hundred_steps(name, shipped, tmp_path):
    settings = ['training.warmup_steps=0', 'training.head_learning_rate=1e-2']
    if not name.startswith('glove-'):
        settings.append('training.learning_rate=1e-3')
    recipe = shipped(name, *settings, steps=200)
    train(recipe, tmp_path / 'out', device='cpu')
    by_step = losses(tmp_path / 'out')
    assert sum(by_step[-20:]) < sum(by_step[:20])


@pytest.mark.parametrize('name', [name for name in PAPERS if not name.startswith('tcp-')])
def test_a_batch_has_many_queries(name, shipped):
    """As many as a random order gives: one of 120 queries, 90 headings or 12 topics is rarely in
    a batch twice.
    """
    recipe = shipped(name)
    stream = InstanceStream(
        opened_sources(recipe, Guard()), recipe.training.seed, recipe.training.shuffle
    )
    size = 12
    instances = list(itertools.islice(stream, 20 * size))
    for start in range(0, len(instances), size):
        queries = {instance.qid for instance in instances[start : start + size]}
        assert len(queries) >= size // 2


GROUPED = 'data.0.triples=${MSMARCO}/qidpidtriples.train.full.2.tsv'


def test_negatives_of_one_query_are_refused(shipped, tmp_path):
    recipe = shipped('repbert-msmarco-paper', GROUPED)
    message = (
        r'1\.\d different queries in a batch of 13, 12\.\d if the first 4,800 instances were '
        r'mixed, and negatives come from the batch: mix the file \(shuf\), or raise '
        r'training\.shuffle; training\.order: grouped trains on it anyway'
    )
    with pytest.raises(InputError, match=message):
        train(recipe, tmp_path / 'out', device='cpu')
    assert not list(tmp_path.glob('out*'))
    insists = shipped('repbert-msmarco-paper', GROUPED, 'training.order=grouped')
    assert train(insists, tmp_path / 'out', device='cpu').steps == 6


def test_a_shuffle_buffer_that_holds_the_file_mixes_it(shipped, tmp_path):
    recipe = shipped('repbert-msmarco-paper', GROUPED, 'training.shuffle=5000')
    assert train(recipe, tmp_path / 'out', device='cpu').steps == 6


def test_pairs_of_one_query_are_told(shipped, tmp_path, caplog):
    recipe = shipped('epic-msmarco-paper', GROUPED)
    assert train(recipe, tmp_path / 'out', device='cpu').steps == 6
    (line,) = [record.message for record in caplog.records if 'one after' in record.message]
    assert '1.2 different queries in a batch of 16' in line


def test_pairs_of_car_are_of_the_ten_best_hits(shipped):
    """Though each heading has relevant paragraphs beyond them."""
    (source,) = opened_sources(shipped('monobert-car-paper'), Guard())
    hits = {}
    with open(source.source.run, encoding='utf-8') as stream:
        for line in stream:
            qid, _, docid, *_ = line.split()
            hits.setdefault(qid, set()).add(docid)
    instances = list(source.instances(0, 0))
    assert len({instance.qid for instance in instances}) < len(hits) == 90
    for instance in instances:
        relevant, other = instance.docids
        assert {relevant, other} <= hits[instance.qid]
        assert relevant in source.relevant(instance.qid)
        assert other not in source.relevant(instance.qid)


@pytest.mark.parametrize('name', ['vanilla-robust04-paper', 'vanilla-robust04-code'])
def test_a_pass_of_cedr_has_one_pair_of_each_topic(name, shipped):
    (source,) = opened_sources(shipped(name), Guard())
    passes = [list(source.instances(42, epoch)) for epoch in range(3)]
    for instances in passes:
        assert sorted(instance.qid for instance in instances) == [str(n) for n in range(301, 313)]
    assert passes[0] != passes[1] != passes[2]


def test_unjudged_hits_are_negatives_of_cedr_s_code_and_not_of_the_paper(shipped):
    share = {}
    for name in ('vanilla-robust04-paper', 'vanilla-robust04-code'):
        (source,) = opened_sources(shipped(name), Guard())
        others = []
        for epoch in range(20):
            others += [(pair.qid, pair.docids[1]) for pair in source.instances(42, epoch)]
        judged = [docid in source.judged[qid] for qid, docid in others]
        share[name] = sum(judged) / len(judged)
    assert share['vanilla-robust04-paper'] == 1
    assert 0.3 < share['vanilla-robust04-code'] < 0.55  # 15 of 35 hits that are not relevant
