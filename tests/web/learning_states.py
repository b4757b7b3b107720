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
SENTENCE = 'It helps: what was learned is better than the search as it is now.'
REPORT = {
    'gain': 0.031,
    'standard_error': 0.011,
    'low': 0.009,
    'high': 0.053,
    'p': 0.01,
    'is_convincing': True,
    'is_worth_using': True,
    'baseline': 'dense',
    'winner': 'learned',
    'topics': 3,
    'means': {'dense': 0.5, 'bm25': 0.25, 'learned': 0.75},
    'questions': [
        {'question': 'the same', 'before': 0.5, 'after': 0.5},
        {'question': 'better', 'before': 0.25, 'after': 1.0},
        {'question': 'worse', 'before': 1.0, 'after': 0.5},
    ],
    'sentence': SENTENCE,
}
ENOUGH = NOTHING | {'questions_judged': 21}
DONE = ENOUGH | {'state': 'done', 'report': REPORT}
