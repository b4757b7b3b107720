"""What holds of every model of which collections store something beside dense vectors."""

import json

import pytest
from folders import all_documents

from pyserini_repbert.collection import staging, syncing
from pyserini_repbert.collection.shards import list_shards
from pyserini_repbert.commands import command
from pyserini_repbert.encode.representations import ModelSource

AGGREGATIONS = {
    'max': max,
    'first': lambda scores: scores[0],
    'mean': lambda scores: sum(scores) / len(scores),
    'top3': lambda scores: sum(sorted(scores)[-3:]) / len(scores[:3]),
}


def passage_inputs(generation):
    """{docid: its passages, as an encoder reads them}, cut from the stored texts."""
    inputs_of = {}
    for document in all_documents(generation):
        (docno,) = generation.docnos([document.docid])
        inputs = []
        for passage in generation.passages([docno])[docno]:
            text = document.text[passage.start : passage.end]
            inputs.append(f'{document.title} {text}' if document.title else text)
        inputs_of[document.docid] = inputs
    return inputs_of


def check_nothing_is_encoded_twice(make, documents, monkeypatch):
    """`make` opens one collection, again and again."""
    with make() as collection:
        assert collection.sync(documents).encoded > 0
        renamed = [document | {'id': f'{document["id"]}2'} for document in documents]
        assert collection.sync(renamed, delete_most=True).encoded == 0
    # Another object reads the model's checksums only where something is encoded.
    monkeypatch.setattr(ModelSource, 'encode', None)
    with make() as collection:
        assert collection.sync(documents, delete_most=True).encoded == 0


def check_a_killed_writer_leaves_what_it_encoded(make, documents, monkeypatch):
    """`make` opens a new collection."""
    monkeypatch.setattr(staging, '_PASSAGES_AT_ONCE', 3)
    monkeypatch.setattr(syncing, '_DOCUMENTS_AT_ONCE', 2)
    many = [document | {'id': str(number)} for number, document in enumerate(documents * 4)]

    def killed():
        yield from many
        raise RuntimeError('killed')

    with make() as collection:
        with pytest.raises(RuntimeError, match='killed'):
            collection.sync(killed())
        assert list_shards(collection.folder / 'shards')
        monkeypatch.setattr(ModelSource, 'encode', None)
        assert collection.sync(many).encoded == 0
        assert collection.search('red cat', 1)


def command_runner(documents, folder, monkeypatch, capsys):
    """run(main, *arguments) -> what a command printed in the folder, with a file of documents."""
    monkeypatch.chdir(folder)
    lines = [json.dumps(document) for document in documents]
    (folder / 'corpus.jsonl').write_text('\n'.join(lines), encoding='utf-8')

    def run(main, *arguments, status=0):
        capsys.readouterr()
        assert command.run(main, list(arguments)) == status
        streams = capsys.readouterr()
        return streams.out + streams.err

    return run
