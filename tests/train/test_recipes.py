"""Recipes: those that ship are whole, and what is wrong with another is said in one line."""

import pytest
import yaml

from pyserini_repbert.errors import InputError
from pyserini_repbert.train.recipe_files import RECIPES, read_recipe, recipe_path

SHIPPED = sorted(path.stem for path in RECIPES.glob('*.yaml'))
PAPERS = (
    'repbert-msmarco',
    'monobert-msmarco',
    'duobert-msmarco',
    'epic-msmarco',
    'vanilla-robust04',
)
VARIABLES = (
    'MSMARCO',
    'MEDQUAD',
    'MATERIAL',
    'RUNS',
    'VANILLA',
    'START',
    'ROBUST04',
    'INDEX',
    'FOLD',
    'CAR',
)
VALIDATION = ('VALIDATION_TOPICS', 'VALIDATION_QRELS', 'VALIDATION_RUN')


@pytest.fixture
def shipped(monkeypatch):
    """read(name) -> a shipped recipe, its variables given."""
    for name in (*VARIABLES, *VALIDATION):
        monkeypatch.setenv(name, f'/somewhere/{name.lower()}')
    return lambda name, *settings: read_recipe(recipe_path(name), settings)


@pytest.mark.parametrize('name', SHIPPED)
def test_shipped_recipes_are_whole(name, shipped):
    recipe = shipped(name)
    assert recipe.licence == 'Apache-2.0'
    assert recipe.name == (
        f'{name.removeprefix("demo-")}-demo' if name.startswith('demo-') else name
    )
    assert '$' not in recipe.text


def test_the_papers_settings(shipped):
    repbert, mono, duo, epic, vanilla = (shipped(name) for name in PAPERS)
    own = repbert.training
    assert (own.learning_rate, own.warmup_steps, own.weight_decay) == (3e-6, 10_000, 0.01)
    assert (own.batch_size, own.accumulate, own.steps) == (26, 2, 350_000)
    assert repbert.ranking == {'max_query_length': 20, 'max_doc_length': 256}
    for recipe in (mono, duo):
        own = recipe.training
        assert (own.batch_size, own.steps, own.learning_rate) == (128, 100_000, 3e-6)
        assert recipe.ranking['max_length'] == 512
    assert (mono.system, duo.system) == ('monobert', 'duobert')
    assert (epic.training.learning_rate, epic.training.batch_size) == (2e-5, 16)
    assert epic.validation.every * epic.training.batch_size == 512
    assert (epic.validation.sample, epic.validation.patience, epic.validation.measure) == (
        200,
        20,
        'MRR@10',
    )
    assert vanilla.training.steps == 100 * 32
    for name in ('knrm', 'pacrr', 'drmm'):
        cedr = shipped(f'cedr-{name}-robust04')
        assert (cedr.training.learning_rate, cedr.training.head_learning_rate) == (2e-5, 1e-3)
        assert (cedr.training.loss, cedr.ranking['architecture'], cedr.data[0].judged_only) == (
            'hinge',
            name,
            True,
        )


@pytest.mark.parametrize('name', [name for name in SHIPPED if name.startswith('demo-')])
def test_demo_recipes_never_see_test_topics(name, shipped):
    recipe = shipped(name)
    own = {'demo-train', 'demo-xquad', '/somewhere/medquad/train.queries.tsv.gz'}
    taught = {f'/somewhere/material/{name}.tsv' for name in ('cut', 'judged', 'sentences')}
    topics = {source.topics for source in recipe.data}
    assert topics == own or {'/somewhere/material/judged.tsv'} <= topics <= taught
    assert recipe.test_topics == ('/somewhere/medquad/liveqa.topics.tsv',)
    assert not recipe.allow_test_topics
    assert recipe.validation.topics == (
        'demo-train' if topics == own else '/somewhere/material/validation.tsv'
    )


def test_settings_replace_values(recipe_file, world):
    path = recipe_file('repbert')
    settings = (
        'training.steps=7',
        'training.learning_rate=3e-5',
        'data.0.run=other.txt',
        'adapter.rank=4',
    )
    recipe = read_recipe(path, settings)
    assert (recipe.training.steps, recipe.training.learning_rate) == (7, 3e-5)
    assert (recipe.data[0].run, recipe.data[0].corpus, recipe.adapter.rank) == (
        'other.txt',
        world['corpus'],
        4,
    )
    assert yaml.safe_load(recipe.text)['training']['steps'] == 7


def test_variables_come_from_the_recipe_settings_or_environment(recipe_file, monkeypatch):
    path = recipe_file('repbert', variables={'WHERE': 'here'}, description='${WHERE} ${ELSEWHERE}')
    with pytest.raises(
        InputError, match=r'\$\{ELSEWHERE\} has no value: set variables.ELSEWHERE, or ELSEWHERE in'
    ):
        read_recipe(path)
    monkeypatch.setenv('ELSEWHERE', 'there')
    assert read_recipe(path).description == 'here there'
    assert read_recipe(path, ('variables.ELSEWHERE=far',)).description == 'here far'


@pytest.mark.parametrize(
    ('setting', 'message'),
    [
        ('training.step=3', r"training.step is unknown \(did you mean 'steps'"),
        ('training.steps=0', 'training.steps is 0, expected: greater than or equal to 1'),
        ('training.learning_rate=.inf', 'training.learning_rate is inf, expected: a finite number'),
        (
            'adapter.targets=[keys]',
            "adapter.targets.0 is 'keys', expected: 'query', 'key', 'value' or 'dense'",
        ),
        ('name=a/b', "name is 'a/b', expected: "),
        ('data.0.qrels=', 'data.0: give topics and qrels, or triples'),
        ('data.0.run=', 'negatives are drawn from a run'),
        ('data.0.pairs=p.tsv', 'pairs are all documents of a topic: give neither run'),
        ('data.0.run=${NOWHERE}', r'\$\{NOWHERE\} has no value'),
        ('validation={topics: t, qrels: q}', 'validation.run is missing'),
        # They were passed over without a word.
        ('training.unit_layer=true', "training.unit_layer is for RepBERT, not for 'monobert'"),
        ('training.scale=2', 'training.scale is for RepBERT, not'),
        ('training.gather=true', 'training.gather is for RepBERT, not'),
        ('training.vanilla_head=true', 'training.vanilla_head is for CEDR, not'),
        ('training.loss=hinge', "training.loss is for CEDR and EPIC, not for 'monobert'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(setting, message, recipe_file):
    path = recipe_file('monobert')
    with pytest.raises(InputError, match=message) as caught:
        read_recipe(path, (setting,))
    assert '\n' not in str(caught.value)
    assert str(caught.value).startswith(f"setting '{setting}'")


def test_a_loss_of_pairs_is_none_of_groups(recipe_file):
    settings = ('training.loss=hinge', 'training.group=4')
    with pytest.raises(InputError, match='training.loss is hinge, the loss of a pair, and'):
        read_recipe(recipe_file('epic'), settings)


@pytest.mark.parametrize(
    ('old', 'new', 'line', 'message'),
    [
        ('  steps: 6', '  steps: six', 12, "training.steps is 'six'"),
        ('system: monobert', '', 1, 'system is missing'),
        ('  qrels: ', '  qrels: null #', 5, 'data.0: give topics and qrels'),
        ('  run: ', '  run: ${NOWHERE}', 8, 'NOWHERE'),
    ],
)
def test_a_fault_is_found_at_its_line(old, new, line, message, tmp_path):
    path = tmp_path / 'r.yaml'
    text = (
        'name: x\nsystem: monobert\nbase: b\ndata:\n- topics: t\n  corpus: c\n  qrels: q\n  run: '
        'r\n'
        'licence: MIT\nranking: {}\ntraining:\n  steps: 6\n  batch_size: 4\n'
    )
    path.write_text(text, encoding='utf-8')
    read_recipe(path)
    path.write_text(text.replace(old, new), encoding='utf-8')
    with pytest.raises(InputError, match=message) as caught:
        read_recipe(path)
    assert str(caught.value).startswith(f'{path}:{line}: ')


def test_a_setting_changes_one_place_of_what_an_alias_repeats(tmp_path):
    text = (
        'name: x\nsystem: monobert\nbase: b\nadapter: null\ndata:\n'
        '- &a {topics: t, corpus: c, qrels: q, run: r}\n- *a\ntraining: {steps: 6, batch_size: 4}\n'
    )
    (tmp_path / 'r.yaml').write_text(text, encoding='utf-8')
    recipe = read_recipe(tmp_path / 'r.yaml', ('data.1.run=other', 'adapter.rank=4'))
    assert [source.run for source in recipe.data] == ['r', 'other']
    assert recipe.adapter.rank == 4
    assert '&' not in recipe.text
