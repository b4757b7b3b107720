"""XQuAD in twelve languages, and questions in one language about documents in another.

    python regressions/studies/xquad_languages.py --data FOLDER --encoder e5-small --work FOLDER

FOLDER of `--data` has `xquad.LANGUAGE.json` of google-deepmind/xquad. Documents, questions and
judgments are those of `tools/squad_collection.py`, as in MTEB's XQuADRetrieval. The same paragraph
and the same question have the same ids in all languages, so a question's judgments hold for the
documents of each. The work folder keeps vectors: said again, the command encodes nothing.

Two tables of nDCG@10 are printed: each language by itself beside the figure that
`regressions/xquad.md` cites, and questions of each row among the documents of each column.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode import document_encoder, query_encoder
from pyserini_repbert.evaluate.tables import markdown
from tools.squad_collection import Collection, read_collection

LANGUAGES = ('ar', 'de', 'el', 'en', 'es', 'hi', 'ro', 'ru', 'th', 'tr', 'vi', 'zh')
DEPTH = 10


@dataclass(frozen=True)
class Encoded:
    """A language's collection.

    Attributes
    ----------
    docids : of the documents
    relevant : the relevant documents of each question, by its id
    documents, questions : vectors, in the order of `docids` and `relevant`
    """

    docids: list[str]
    relevant: dict[str, set[str]]
    documents: NDArray[np.float32]
    questions: NDArray[np.float32]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--encoder', default='e5-small')
    parser.add_argument('--precision', default='float32')
    parser.add_argument('--work', type=Path, required=True)
    options = parser.parse_args()
    encoded = encode_languages(options)
    rows = [[language, f'{ndcg(part, part):.5f}'] for language, part in encoded.items()]
    print(markdown(['language', 'nDCG@10'], rows))
    rows = []
    for language, questions in encoded.items():
        cells = [f'{ndcg(questions, documents):.3f}' for documents in encoded.values()]
        rows.append([language, *cells])
    print(markdown(['questions, documents', *encoded], rows))


def encode_languages(options: argparse.Namespace) -> dict[str, Encoded]:
    """The collections by language; vectors that are in the work folder are not made again."""
    options.work.mkdir(parents=True, exist_ok=True)
    model = {'precision': options.precision}
    documents = None
    questions = None
    encoded = {}
    for language in LANGUAGES:
        collection = read_collection(options.data / f'xquad.{language}.json')
        path = options.work / f'{language}.npz'
        if not path.is_file():
            documents = documents or document_encoder(options.encoder, **model)
            questions = questions or query_encoder(options.encoder, **model)
            of_documents = documents.encode(list(collection.docids))
            of_questions = questions.encode_batch([' '.join(q.split()) for q in collection.qids])
            np.savez(path, documents=of_documents, questions=of_questions)
        with np.load(path) as vectors:
            encoded[language] = Encoded(
                docids=list(collection.docids.values()),
                relevant=relevant_documents(collection),
                documents=vectors['documents'],
                questions=vectors['questions'],
            )
    return encoded


def relevant_documents(collection: Collection) -> dict[str, set[str]]:
    """The relevant documents of each question, by its id."""
    relevant: dict[str, set[str]] = {}
    for question, qid in collection.qids.items():
        relevant[qid] = set(collection.relevant[question])
    return relevant


def ndcg(questions: Encoded, documents: Encoded) -> float:
    """The mean nDCG@10 of one language's questions among another's documents."""
    scores = questions.questions @ documents.documents.T
    gains = []
    for number, relevant in enumerate(questions.relevant.values()):
        best = np.lexsort((documents.docids, -scores[number]))[:DEPTH]
        gain = 0.0
        for rank, index in enumerate(best):
            gain += (documents.docids[index] in relevant) / np.log2(rank + 2)
        ideal = sum(1 / np.log2(rank + 2) for rank in range(min(len(relevant), DEPTH)))
        gains.append(gain / ideal)
    return float(np.mean(gains))


if __name__ == '__main__':
    main()
