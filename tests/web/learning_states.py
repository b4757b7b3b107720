"""Answers of a service about what an index has learned."""

NOTHING = {
    'api': 'v1',
    'index': 'mine',
    'state': 'none',
    'done': 0,
    'total': 0,
    'error': None,
    'due': None,
    'in_use': False,
    'questions_judged': 12,
    'questions_needed': 20,
    'report': None,
}
NOW = 'interpolation repbert-demo+bm25 alpha=0.6 background'
WINNER = 'rrf repbert-demo+bm25 k=60'
SENTENCE = (
    f"It helps: '{WINNER}', which learned nothing, is better than the present search ({NOW})."
)
REPORT = {
    'gain': 0.031,
    'standard_error': 0.011,
    'low': 0.009,
    'high': 0.053,
    'p': 0.01,
    'is_convincing': True,
    'is_worth_using': True,
    'baseline': NOW,
    'winner': WINNER,
    'topics': 3,
    'means': {
        NOW: 0.5,
        'repbert-demo': 0.375,
        'bm25': 0.25,
        'interleave bm25+repbert-demo': 0.125,
        WINNER: 0.75,
        'and fused': 0.625,
    },
    'questions': [
        {'question': 'the same', 'before': 0.5, 'after': 0.5},
        {'question': 'better', 'before': 0.25, 'after': 1.0},
        {'question': 'worse', 'before': 1.0, 'after': 0.5},
    ],
    'sentence': SENTENCE,
}
ENOUGH = NOTHING | {'questions_judged': 21}
DONE = ENOUGH | {'state': 'done', 'report': REPORT}
