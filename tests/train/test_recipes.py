"""Recipes: those that ship are whole, and what is wrong with another is said in one line."""

import pytest
import yaml

from pyserini_repbert.errors import InputError
from pyserini_repbert.train.recipe_files import RECIPES, read_recipe, recipe_path

SHIPPED = sorted(path.stem for path in RECIPES.glob('*.yaml'))
PAPERS = (
    'repbert-msmarco-paper',
    'monobert-msmarco-paper',
    'duobert-msmarco-paper',
    'epic-msmarco-paper',
    'vanilla-robust04-paper',
)
VARIABLES = (
    'MSMARCO',
    'MEDQUAD',
    'MATERIAL',
    'RUNS',
    'VANILLA',
    'START',
    'ROBUST04',
    'WEBTRACK',
    'DOCUMENTS',
    'INDEX',
    'FOLD',
    'CAR',
    'CAR_BERT',
    'GLOVE',
    'WWM',
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
        cedr = shipped(f'cedr-{name}-robust04-paper')
        assert (cedr.training.learning_rate, cedr.training.head_learning_rate) == (2e-5, 1e-3)
        assert (cedr.training.loss, cedr.ranking['architecture'], cedr.data[0].judged_only) == (
            'hinge',
            name,
            True,
        )


def test_each_training_reads_the_file_that_its_authors_code_reads(shipped):
    """No paper's training reads qidpidtriples.train.full.2.tsv, which goes query by query."""
    triples = {
        'repbert-msmarco': 'qidpidtriples.train.small.tsv',
        'epic-msmarco': 'qidpidtriples.train.full.tsv',
        'monobert-msmarco': 'triples.train.small.tsv',
        'duobert-msmarco': 'triples.train.small.tsv',
    }
    for name, file in triples.items():
        for which in ('paper', 'code'):
            recipe = shipped(f'{name}-{which}')
            assert [source.triples for source in recipe.data] == [f'/somewhere/msmarco/{file}']


def test_where_a_paper_and_its_code_differ(shipped):
    def both(name):
        return [shipped(f'{name}-{which}') for which in ('paper', 'code')]

    paper, code = both('epic-msmarco')
    assert (paper.ranking['variant'], paper.training.loss) == ('paper_strict', 'cross_entropy')
    assert (code.ranking['variant'], code.training.loss) == ('official', 'one_minus_softmax')
    paper, code = both('repbert-msmarco')
    assert (paper.training.schedule_steps, code.training.schedule_steps) == (None, 1_038_150)
    paper, code = both('duobert-msmarco')
    assert (paper.ranking['layout'], code.ranking['layout']) == ('paper', 'code')
    assert (paper.training.optimizer, code.training.optimizer) == ('adamw', 'bert')
    paper, code = both('cedr-pacrr-robust04')
    assert (paper.ranking['k_max'], code.ranking['k_max']) == (30, 2)
    assert (paper.data[0].judged_only, code.data[0].judged_only) == (True, False)
    for recipe in (paper, code):
        assert (recipe.training.max_grad_norm, recipe.data[0].pairs_per_topic) == (0, 1)
        assert recipe.ranking['max_query_length'] == 20
    for name in ('monobert-car-paper', 'monobert-car-code', 'duobert-car', 'epic-car-paper'):
        (source,) = shipped(name).data
        assert (source.depth, source.retrieved_only) == (10, True)


def test_a_recipe_extends_another_one(recipe_file, tmp_path):
    first = recipe_file('monobert')
    second = tmp_path / 'second.yaml'
    second.write_text(
        f'extends: {first}\nchanges:\n  name: second\n  training.steps: 9\n'
        '  ranking: {layout: dl4marco}\n  data.0.depth: 3\n',
        encoding='utf-8',
    )
    third = tmp_path / 'third.yaml'
    third.write_text(
        f'extends: {second}\nchanges: {{name: third, training.batch_size: 2}}\n', encoding='utf-8'
    )
    recipe = read_recipe(third, ('training.seed=7',))
    assert (recipe.name, recipe.system, recipe.ranking) == (
        'third',
        'monobert',
        {'layout': 'dl4marco'},
    )
    assert (recipe.training.steps, recipe.training.batch_size, recipe.training.seed) == (9, 2, 7)
    assert recipe.data[0].depth == 3
    assert not {'extends', 'changes'} & yaml.safe_load(recipe.text).keys()


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('extends: FIRST\nchanges:\n  training.stps: 3\n', r'b\.yaml:3: training\.stps is unknown'),
        ('extends: FIRST\nchanges:\n  data.4.run: x\n', r"b\.yaml:3: changes: there is no 'data"),
        ('extends: FIRST\nchanges: {}\nname: x\n', r'b\.yaml:3: a recipe that extends another'),
        ('extends: FIRST\n', r'b\.yaml:1: a recipe that extends another'),
        ('extends: SELF\nchanges: {}\n', r'b\.yaml:1: extends: .* extends this recipe'),
        ('extends: nothing\nchanges: {}\n', r"'nothing' is neither a recipe file"),
        ('extends: FIRST\nchanges: {name: x, base: }\n', r'b\.yaml:2: base is None'),
    ],
)
def test_an_extension_that_is_wrong_is_one_line(text, message, recipe_file, tmp_path):
    path = tmp_path / 'b.yaml'
    text = text.replace('FIRST', str(recipe_file('monobert'))).replace('SELF', str(path))
    path.write_text(text, encoding='utf-8')
    with pytest.raises(InputError, match=message):
        read_recipe(path)


def test_a_frozen_bert_has_a_head_to_train(recipe_file):
    frozen = 'training.learning_rate=0'
    assert read_recipe(recipe_file('cedr'), (frozen, 'training.head_learning_rate=1e-3'))
    with pytest.raises(InputError, match=r'learning_rate is 0'):
        read_recipe(recipe_file('cedr'), (frozen,))


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
    with pytest.raises(InputError, match='training.loss is hinge'):
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
