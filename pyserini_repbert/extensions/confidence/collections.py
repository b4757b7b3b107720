"""What confidence does in collections: it is learned with a search, and `adapt` tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.parts import CollectionPart, LearnedSearches, MoreLearned

# Its name in the report of a learning.
_NAME = 'confidence'


class ConfidenceOfCollections(CollectionPart):
    """Learns confidence, and says how far it can be believed."""

    def learn(self, learned: LearnedSearches) -> MoreLearned:
        from pyserini_repbert.extensions.confidence.learned import LOST, learn_both_confidences

        confidence = learn_both_confidences(learned)
        problem = confidence.get(LOST)
        sentence = ''
        if problem is not None:
            sentence = f'Searches as it learned show no probabilities: {problem}.'
        return MoreLearned({_NAME: confidence} if confidence else {}, sentence)

    def describe_learning(self, report: Mapping[str, Any]) -> list[str]:
        from pyserini_repbert.extensions.confidence.estimating import MODEL
        from pyserini_repbert.extensions.confidence.models import parse_model

        confidence = report.get(_NAME, {})
        if MODEL not in confidence:
            return []
        lines = ['confidence, held out:']
        hits = _reliability_text(confidence['hits'])
        lines.append(f'  P(relevant) of {confidence["hits"]["n"]} hits: {hits}')
        questions = _reliability_text(confidence['questions'])
        lines.append(
            f'  P(answered) of questions, and of the same without their answers: {questions}'
        )
        elsewhere = confidence.get('elsewhere_auc')
        if elsewhere is not None:
            lines.append(
                f"  P(answered) of questions, and of the demo collection's: AUC {elsewhere:.3f}"
            )
        treated = 'count as not relevant' if confidence['counts_unjudged'] else 'are left out'
        lines.append(f'  unjudged hits {treated}')
        problem = parse_model(confidence[MODEL], 'the report').why_not_shown()
        if problem is not None:
            lines.append(f'  searches show no probabilities: {problem}: judge more questions')
        return lines

    def describe_loss(self, folder: Path) -> list[str]:
        from pyserini_repbert.extensions.confidence.learned import why_confidence_is_lost

        problem = why_confidence_is_lost(folder)
        return [] if problem is None else [f'searches show no probabilities now: {problem}']


def _reliability_text(values: Mapping[str, Any]) -> str:
    """AUC, ECE and Brier score, in a line."""
    auc = 'none' if values['auc'] is None else f'{values["auc"]:.3f}'
    return f'AUC {auc}, ECE {values["ece"]:.3f}, Brier {values["brier"]:.3f}'


IN_COLLECTIONS = ConfidenceOfCollections()
