"""A script that syncs a collection with Lucene, and kills the sync at steps of it.

`python collection_with_lucene.py FOLDER` makes the collections FOLDER/base and, from a copy of it,
FOLDER/whole, and prints as JSON what each sync ended with: what the collection then answers, and
how many steps were passed.

`python collection_with_lucene.py FOLDER STEP …` syncs a copy of FOLDER/base, kills that at a step,
and syncs the copy again; it prints a list of what each second sync ended with.

Each sync is a fork of the script, which has PyTorch imported and no Java: Java starts in the fork.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

# A script has no folder of pytest's on its path.
sys.path.append(str(Path(__file__).parents[1]))

import kill_at
from test_killed_collections import AFTER, BEFORE, FakeEncoder, answers

from pyserini_repbert.collection import Collection, lucene_folder, writing
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.generation import open_generation
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


def watch(owner, name, last):
    original = getattr(owner, name)

    def step():
        global passed
        if passed == last:
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


def sync(folder, texts, last=None):
    """Print what the collection answers before, if it is there, and after; dies at step `last`."""
    found = {}
    if folder.exists() and last is None:
        found['before'] = state(folder)
    for owner, name in STEPS:
        watch(owner, name, last)
    encoder = FakeEncoder(folder.with_name('log'))
    with Collection.open(folder, encoder, passage_tokens=6, overlap=2) as collection:
        collection.sync(texts, source='one', merge=True)
    print(
        json.dumps({**found, **state(folder), 'steps': passed, 'check': check_collection(folder)})
    )


def whole_sync(folder, texts):
    """What a sync that is not killed prints."""
    ended = kill_at.run(lambda: sync(folder, texts), folder)
    assert ended.status == 0, ended.output
    return json.loads(ended.output.splitlines()[-1])


def sync_after_kill(base, folder, step):
    """What a sync prints that follows one which was killed at a step."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    ended = kill_at.run(lambda: sync(folder, AFTER, last=step), folder)
    assert ended.killed, ended.output
    return whole_sync(folder, AFTER)


def main(folder, *steps):
    base = Path(folder, 'base')
    if steps:
        found = [sync_after_kill(base, Path(folder, 'mine'), int(step)) for step in steps]
    else:
        found = {'base': whole_sync(base, BEFORE)}
        shutil.copytree(base, Path(folder, 'whole'))
        found['whole'] = whole_sync(Path(folder, 'whole'), AFTER)
    print(json.dumps(found))


if __name__ == '__main__':
    main(*sys.argv[1:])
