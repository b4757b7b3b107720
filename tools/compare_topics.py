"""Compare files of topics, read by their path, with what Anserini's readers give for them.

    python tools/compare_topics.py CHECKOUT/topics

CHECKOUT is one of castorini/eval. Of each file of Pyserini's topics that is there, a line says what
differs or why it is refused; the last line counts.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.compat import import_pyserini, topics_of_file
from pyserini_repbert.lucene.jvm import quiet_java
from pyserini_repbert.lucene.published import PublishedFile, published_file, published_names
from pyserini_repbert.lucene.pyserini_names import question_of


def main() -> None:
    """Print the comparison."""
    files: dict[str, PublishedFile] = {}
    for name in published_names('topics'):
        published = published_file('topics', name)
        if published is not None and Path(sys.argv[1], published.file).is_file():
            files[published.file] = published
    quiet_java()
    outcomes: Counter[str] = Counter()
    for file in sorted(files):
        outcome, detail = _compare(Path(sys.argv[1], file), files[file].reader)
        outcomes[outcome] += 1
        if outcome != 'equal':
            print(f'{outcome}: {file}: {detail}')
    print(', '.join(f'{count} {outcome}' for outcome, count in outcomes.items()))


def _compare(path: Path, reader: str) -> tuple[str, str]:
    """'equal', 'different' or 'refused', and the first difference or the reason."""
    search = import_pyserini('pyserini.search._base')
    topics = topics_of_file(search, reader, path)
    theirs = {str(qid): question_of(fields) for qid, fields in topics.items()}
    try:
        ours = {topic.qid: ' '.join(topic.text.split()) for topic in read_topics(path)}
    except InputError as error:
        return 'refused', str(error)
    for qid in sorted(ours.keys() | theirs.keys()):
        if ours.get(qid) != theirs.get(qid):
            return 'different', f'{qid}: {ours.get(qid)!r}, Anserini: {theirs.get(qid)!r}'
    return 'equal', ''


if __name__ == '__main__':
    main()
