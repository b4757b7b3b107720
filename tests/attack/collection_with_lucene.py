"""A script that syncs a collection with Lucene, and kills itself at the N-th step, if asked to.

`python collection_with_lucene.py FOLDER LOG before|after [N]` prints, as JSON, what the collection
then answers, and how many steps were passed.
"""

import json
import os
import signal
import sys
from pathlib import Path

# A script has no folder of pytest's on its path.
sys.path.append(str(Path(__file__).parents[1]))

from test_killed_collections import AFTER, BEFORE, FakeEncoder, answers

from pyserini_repbert.collection import Collection, lucene_folder, writing
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.reading import open_generation
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.updating import LuceneUpdate
from pyserini_repbert.ranking import Query

# What a writer calls, each a step before it and one after it.
STEPS = [
    (LuceneUpdate, '__init__'),
    (LuceneUpdate, 'delete'),
    (LuceneUpdate, 'add'),
    (LuceneUpdate, 'finish'),
    (lucene_folder, '_make_links'),
    (lucene_folder, 'sync_to_disk'),
    (writing, 'write_manifest'),
    (writing, 'clean'),
    (writing.Writer, '_publish'),
]
passed = 0


def watch(owner, name, kill_at):
    original = getattr(owner, name)

    def step():
        global passed
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    def watched(*arguments, **options):
        step()
        returned = original(*arguments, **options)
        step()
        return returned

    setattr(owner, name, watched)


def lucene_answers(folder):
    generation = open_generation(folder)
    searcher = LuceneSparseSearcher(generation.lucene_folder)
    topics = [Query(word, word) for word in ('cat dog', 'moon', 'sky sea', 'bird')]
    run = searcher.rank(topics, None, 20)
    searcher.close()
    generation.close()
    return {
        qid: list(zip(ranking.docids, ranking.scores, strict=True)) for qid, ranking in run.items()
    }


def state(folder):
    return {'dense': repr(answers(folder)), 'lucene': lucene_answers(folder)}


def main(folder, log, what, kill_at=None):
    folder = Path(folder)
    found = {}
    if what == 'after' and kill_at is None:
        found['before'] = state(folder)
    for owner, name in STEPS:
        watch(owner, name, None if kill_at is None else int(kill_at))
    encoder = FakeEncoder(log)
    with Collection.open(folder, encoder, passage_tokens=6, overlap=2) as collection:
        collection.sync(BEFORE if what == 'before' else AFTER, source='one', merge=True)
    print(
        json.dumps({**found, **state(folder), 'steps': passed, 'check': check_collection(folder)})
    )


if __name__ == '__main__':
    main(*sys.argv[1:])
