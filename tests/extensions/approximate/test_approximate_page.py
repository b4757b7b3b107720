"""The page: what is copied of approximate systems, and how they are fused."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

# Commands for systems of a collection with approximate indexes, without their first words.
COMMANDS_OF = """async (asked) => {
  await import('/extensions/approximate/approximate.js');
  const { asCommand } = await import('/js/copying.js');
  const { BARE } = await import('/js/state.js');
  const about = {
    name: 'mine', index_type: 'collection', default: ['rescored'], weights: [0.6, 0.4],
    systems: ['dense', 'bm25', 'multi', 'rescored', 'ann', 'multi-ann'],
    approximate: { ann: 'dense', 'multi-ann': 'multi' },
  };
  return asked.map((system) => asCommand({ q: 'cat', hits: 3 }, about, { ...BARE, system }));
}"""


def test_approximate_systems_are_their_rankings_with_ann(opened):
    page = opened().open('?view=search', '.start')
    asked = [[], ['multi-ann'], ['ann', 'bm25', 'multi-ann'], ['dense', 'multi'], ['ann', 'multi']]
    commands_of = page.evaluate(COMMANDS_OF, asked)
    begin = 'python -m pyserini_repbert.search --index mine'
    end = '--hits 3 --query cat'
    assert [text and text.replace(' \\\n  ', ' ') for text in commands_of] == [
        f'{begin} {end}',
        f'{begin} --rankings multi --ann {end}',
        f'{begin} --rankings dense bm25 multi --ann {end}',
        f'{begin} --rankings dense multi {end}',
        None,
    ]


def test_approximate_systems_are_fused_as_their_rankings(opened):
    page = opened().open('?view=search', '.start')
    fused = page.evaluate("""async () => {
      await import('/extensions/approximate/approximate.js');
      const { ownFusion } = await import('/js/state.js');
      const about = {
        systems: ['dense', 'bm25', 'ann'], approximate: { ann: 'dense' },
        fusion: 'interpolation', weights: [0.6, 0.4], normalize: 'max',
      };
      return ownFusion(about, ['bm25', 'ann']);
    }""")
    assert fused == {'fusion': 'interpolation', 'weights': [0.4, 0.6], 'normalize': 'max'}
