"""tools/squad_collection.py: what MTEB's XQuADRetrieval makes of SQuAD's JSON."""

import gzip
import json

TOOL = 'squad_collection'


def test_distinct_paragraphs_and_questions(main, tmp_path, capsys):
    slugs = {
        'context': 'Slugs hide.\n',
        'qas': [
            {'id': 'a', 'question': ' Where do\tslugs hide?'},
            {'id': 'b', 'question': 'Who hides?'},
        ],
    }
    snails = {
        'context': 'Schnecken fressen Salat.',
        'qas': [{'id': 'c', 'question': 'Who hides? '}],
    }
    articles = [{'paragraphs': [slugs]}, {'paragraphs': [snails, slugs | {'qas': []}]}]
    with gzip.open(tmp_path / 'squad.json.gz', 'wt') as stream:
        json.dump({'data': articles}, stream)
    folder = tmp_path / 'made'
    main(['--squad', str(tmp_path / 'squad.json.gz'), '--output', str(folder)])
    assert (folder / 'passages.jsonl').read_text() == (
        '{"id": "p001", "contents": "Slugs hide."}\n'
        '{"id": "p002", "contents": "Schnecken fressen Salat."}\n'
    )
    # The last occurrence of a question gives its id, and both of its paragraphs are relevant.
    assert (folder / 'questions.tsv').read_text() == 'a\tWhere do slugs hide?\nc\tWho hides?\n'
    assert (folder / 'qrels.txt').read_text() == 'a 0 p001 1\nc 0 p001 1\nc 0 p002 1\n'
    assert capsys.readouterr().out == f'{folder}: 2 paragraphs, 2 questions\n'
