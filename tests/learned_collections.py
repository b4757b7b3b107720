"""Collections that learned from judgments, with probabilities that a test supports."""

from dataclasses import replace
from typing import Any

from folders import N_QUESTIONS

from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments
from pyserini_repbert.collection.judgments import Judgment

# As if the few judgments of tests had told more than chance.
PASSED = {'hits_test': {'auc': 0.8, 'chance': 0.6}, 'questions_test': {'auc': 0.8, 'chance': 0.6}}


def let_learn(folder) -> dict[str, Any]:
    """Judge the documents 'wanted0', … of a collection, and let it learn; returns what its report
    says of confidence.
    """
    judgments = [Judgment(f'mat w{i}', f'wanted{i}', 2) for i in range(N_QUESTIONS)]
    store = judgments_of(folder)
    store.add(judgments)
    learning = learn_from_judgments(folder)
    confidence = learning.report['confidence']
    models = {}
    for name, value in confidence.items():
        if name.startswith('model'):
            models[name] = value | PASSED
    report = {**learning.report, 'confidence': confidence | models}
    store.add_learning(replace(learning, number=learning.number + 1, report=report))
    return confidence
