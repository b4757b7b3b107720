"""Stand-ins for collections and their topics, expansions and folds, packed and named as the real
ones.
"""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cbor
import ncompress
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from rehearsal.texts import World

# of docTTTTTquery's predictions: a file for each part of each sample
PARTS = 18
SAMPLES = 80
LONG = 1200  # words of one document, so that CEDR splits it


def _compressed(content: bytes) -> bytes:
    """As `compress` packs it; in a thread, for ncompress needs more stack than Java leaves the
    main thread.
    """
    with ThreadPoolExecutor(1) as thread:
        return bytes(thread.submit(ncompress.compress, content).result())


def tar(members: Mapping[str, bytes], mode: str = 'w:gz') -> bytes:
    """A tar archive of members by name; `mode` as tarfile's."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def collection(world: World) -> bytes:
    """MS MARCO's collection.tar.gz."""
    lines = ''.join(f'{docid}\t{text}\n' for docid, text in world.passages.items())
    return tar({'collection.tsv': lines.encode()})


def doc2query(world: World) -> bytes:
    """doc2query's predictions: ten queries of a passage on one line."""
    lines = [
        ' / '.join(f'what is {text.split()[0]} {n}' for n in range(10))
        for text in world.passages.values()
    ]
    return tar({'pred-test_topk10.txt': ('\n'.join(lines) + '\n').encode()})


def docttttquery(world: World) -> bytes:
    """docTTTTTquery's predictions: a file for each sample and part of the collection."""
    texts = list(world.passages.values())
    size = -(-len(texts) // PARTS)
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w') as archive:
        for sample in range(SAMPLES):
            for part in range(PARTS):
                lines = [
                    f'why {text.split()[sample % 5]} {sample}\n'
                    for text in texts[part * size : (part + 1) * size]
                ]
                archive.writestr(
                    f'predicted_queries_topk_sample{sample:03d}.txt{part:03d}-1004000',
                    ''.join(lines),
                )
    return made.getvalue()


def deepct(world: World) -> bytes:
    """DeepCT's test_results.tsv: a line of wordpieces and weights, some negative, for each
    passage.
    """
    lines = []
    for text in world.passages.values():
        pairs = [
            '[CLS] 0.0',
            *(f'{word.lower()} {(n % 7 - 1) / 10}' for n, word in enumerate(text.split())),
            '##s 0.2',
        ]
        lines.append('\t'.join([*pairs, '[SEP] -0.0', '[PAD] -0.0']))
    return ('\n'.join(lines) + '\n').encode()


def top1000(world: World) -> bytes:
    """MS MARCO's top1000.dev.tar.gz: sorted by passage, with the texts."""
    found = sorted((docid, qid) for qid, docid, _ in world.ranked(9, 20))
    lines = [
        f'{qid.decode()}\t{docid.decode()}\t{world.topics[qid.decode()]}\t{world.passages[docid.decode()]}\n'
        for docid, qid in found
    ]
    return tar({'top1000.dev': ''.join(lines).encode()})


def car_paragraphs(world: World) -> bytes:
    """TREC CAR's paragraphCorpus.v2.0.tar.xz: CBOR, with a link in each text, and one paragraph
    without text.
    """
    items = []
    for docid, text in world.passages.items():
        first, _, rest = text.partition(' ')
        link = [1, [0, 'Aftertaste', [], b'enwiki:Aftertaste', first]]
        items.append(cbor.dumps([0, docid.encode(), [link, [0, f' {rest}']]]))
    items.append(cbor.dumps([0, b'0' * 40, [[0, '']]]))
    header = cbor.dumps(['CAR', [2], [], []])
    content = header + b'\x9f' + b''.join(items) + b'\xff'
    return tar(
        {
            'paragraphCorpus/README': b'v2.0',
            'paragraphCorpus/dedup.articles-paragraphs.cbor': content,
        },
        'w:xz',
    )


def beir(world: World, name: str) -> bytes:
    """A collection of BEIR, packed: JSON lines of passages and of topics, and judgments."""
    passages = []
    for docid, text in world.passages.items():
        title, _, rest = text.partition(' ')
        passages.append({'_id': docid, 'title': title, 'text': rest, 'metadata': {}})
    queries = [{'_id': qid, 'text': text, 'metadata': {}} for qid, text in world.topics.items()]
    judgments = ['query-id\tcorpus-id\tscore\n']
    for qid, grades in world.qrels.items():
        judgments += [f'{qid}\t{docid}\t{grade}\n' for docid, grade in grades.items()]
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w') as archive:
        archive.writestr(f'{name}/corpus.jsonl', json_lines(passages))
        archive.writestr(f'{name}/queries.jsonl', json_lines(queries))
        archive.writestr(f'{name}/qrels/test.tsv', ''.join(judgments))
    return made.getvalue()


def json_lines(records: Sequence[Mapping[str, object]]) -> str:
    """A line of JSON for each record."""
    return ''.join(json.dumps(record) + '\n' for record in records)


def disks(folder: Path, world: World) -> None:
    """TREC disks 4 and 5 as NIST delivers them: in Latin-1, packed by `compress`; one document
    has no text.
    """
    folders = {
        'FT': 'ft/ft911/ft911_{}.z',
        'FB': 'fbis/fb396{:03d}.z',
        'FR': 'fr94/01/fr9401{:02d}.0z',
        'LA': 'latimes/la01{:02d}89.z',
    }
    for number, (docid, text) in enumerate(world.passages.items(), 1):
        if number == 1:
            text = f'{text} {" ".join(f"word{n}" for n in range(LONG))}'
        headline = f'<HEADLINE>\nCafé {number}\n</HEADLINE>\n'
        document = (
            f'<DOC>\n<DOCNO> {docid} '
            f'</DOCNO>\n{headline}<TEXT>\n{text.replace("—", "-")}\n</TEXT>\n</DOC>\n'
        )
        path = folder / folders[docid[:2]].format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_compressed(document.encode('latin-1')))
    (folder / 'ft' / 'ft911' / 'ft911_999').write_text(
        '<DOC>\n<DOCNO>FT911-999</DOCNO>\n<TEXT>\n</TEXT>\n</DOC>\n'
    )
    (folder / 'ft' / 'readmeft').write_text('About the Financial Times.\n')
    (folder / 'cr').mkdir()
    (folder / 'cr' / 'cr93e1').write_text(
        '<DOC>\n<DOCNO>CR93E-1</DOCNO>\n<TEXT>\nno part of it\n</TEXT>\n</DOC>\n'
    )


def clueweb(folder: Path, world: World, kinds: Sequence[str]) -> None:
    """ClueWeb09, ClueWeb12 or both, as CMU delivers them."""
    files = {
        'clueweb09': ('ClueWeb09_English_1/en0000/00.warc.gz', '0.18'),
        'clueweb12': ('ClueWeb12_00/0000tw/0000tw-00.warc.gz', '1.0'),
    }
    for kind in kinds:
        name, version = files[kind]
        path = folder / name
        path.parent.mkdir(parents=True)
        with open(path, 'wb') as stream:
            writer = WARCWriter(stream, gzip=True, warc_version=version)
            writer.write_record(
                writer.create_warcinfo_record(path.name, {'software': 'Nutch 1.0-dev'})
            )
            for docid, text in world.passages.items():
                if not docid.startswith(kind):
                    continue
                page = (
                    f'<html><head><title>{docid}</title><script>x = '
                    f'1</script></head><body><p>{text}</p></body></html>'
                )
                headers = StatusAndHeaders(
                    '200 OK', [('Content-Type', 'text/html')], protocol='HTTP/1.1'
                )
                writer.write_record(
                    writer.create_warc_record(
                        f'http://example.org/{docid}',
                        'response',
                        payload=io.BytesIO(page.encode()),
                        http_headers=headers,
                        warc_headers_dict={'WARC-TREC-ID': docid},
                    )
                )
