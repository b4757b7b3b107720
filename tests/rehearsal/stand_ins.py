"""The stand-in for each resource; a resource without one is an error."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.lucene.published import published_addresses
from pyserini_repbert.regression.resources import MissingResource
from pyserini_repbert.regression.schema import ResourceOrigin
from rehearsal import corpora, weights
from rehearsal.texts import FILLERS, gzipped, msmarco, numbered

WEB_YEARS = ((151, 200), (201, 250), (251, 300))
FOLDS = json.loads(
    (Path(__file__).parents[2] / 'regressions' / 'shared' / 'robust04.folds.json').read_text()
)
# The path of CEDR's data files in their repository.
_OF_CEDR = re.compile(r'.*/Georgetown-IR-Lab/cedr/[0-9a-f]{40}/data/(.+)')
# Paths of a page, its sections and their sections, in the order of the alphabet: qid -> text.
_HEADINGS = {}
for _section in sorted(FILLERS[:10]):
    _HEADINGS[f'enwiki:Aftertaste/Cooking%20{_section}'] = f'Aftertaste/Cooking {_section}'
    _HEADINGS[f'enwiki:Aftertaste/Cooking%20{_section}/In%20{FILLERS[20]}'] = (
        f'Aftertaste/Cooking {_section}/In {FILLERS[20]}'
    )
MONOBERT = {'system': 'monobert', 'layout': 'paper', 'max_query_length': 64, 'max_length': 512}
DUOBERT = {'system': 'duobert', 'layout': 'paper', 'max_query_length': 62, 'max_length': 512}


@dataclass
class Site:
    """What is served from `folder`, by address and by the hub's repositories, and `data`, what a
    user brought.
    """

    folder: Path
    data: Path
    files: dict[str, Path] = field(default_factory=dict)
    hub: dict[str, Path] = field(default_factory=dict)

    def serve(self, address: str, content: bytes) -> None:
        """Serve this content at an address."""
        path = self.folder / f'{len(self.files):03d}'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.files[address] = path


class Worlds:
    """The small collections that all stand-ins are made from."""

    def __init__(self, real: Path) -> None:
        self.msmarco = msmarco(real)
        disks = [f'FT911-{n}' for n in range(1, 9)] + [f'FBIS3-{n}' for n in range(1, 9)]
        disks += [f'FR940101-0-{n:05d}' for n in range(1, 9)] + [
            f'LA010189-{n:04d}' for n in range(1, 9)
        ]
        self.robust = numbered([qid for fold in FOLDS for qid in fold], disks)
        years = [str(qid) for qid in range(1, WEB_YEARS[-1][-1] + 1)]
        pages = [f'clueweb09-en0000-00-{n:05d}' for n in range(15)] + [
            f'clueweb12-0000tw-00-{n:05d}' for n in range(15)
        ]
        self.web = numbered(years, pages)
        paragraphs = [hashlib.sha1(str(n).encode()).hexdigest() for n in range(60)]
        self.car = numbered(list(_HEADINGS), paragraphs, texts=_HEADINGS)
        claims = [str(number) for number in range(1, 41)]
        abstracts = [str(number) for number in range(4000, 4060)]
        self.scifact = numbered(claims, abstracts)


def stand_ins(needs: Iterable[MissingResource], real: Path, folder: Path, data: Path) -> Site:
    """The stand-ins for all `needs` but those that were never published; a KeyError for a need
    without one.
    """
    site = Site(folder, data)
    worlds = Worlds(real)
    for need in {need.key: need for need in needs}.values():
        resource = need.resource
        if resource.catalog:
            _catalog(catalog.get(*resource.catalog.split('/')), site, worlds)
        elif resource.origin is ResourceOrigin.ADDRESS:
            for address in resource.address:
                _check_address(address)
                name = address.partition('?')[0].rpartition('/')[2]
                name = resource.path.rpartition('/')[2] if name == 'download' else name
                of_cedr = _OF_CEDR.fullmatch(address)
                content = _of_cedr(of_cedr[1], worlds) if of_cedr else _served(name, worlds)
                site.serve(address, content)
        elif resource.origin not in (ResourceOrigin.UNPUBLISHED, ResourceOrigin.OTHER_SYSTEM):
            inside = resource.path.partition('/')[2]
            (data / inside).parent.mkdir(parents=True, exist_ok=True)
            _brought(inside, data / inside, worlds)
    return site


def _check_address(address: str) -> None:
    """A KeyError for topics or judgments that are not in the table of those published."""
    is_published = address in published_addresses()
    if 'raw.githubusercontent.com/castorini/eval' in address and not is_published:
        raise KeyError(f'{address} is not among the published topics and judgments')


def _catalog(entry: catalog.Entry, site: Site, worlds: Worlds) -> None:
    if 'hub' in entry.values:
        repository = entry.values['hub']['repository']
        site.hub[repository] = site.folder / 'hub' / entry.name
        weights.hub_folder(site.hub[repository])
        return
    source = entry.values['download']
    made: dict[str, Callable[[], bytes]] = {
        'repbert': weights.repbert_zip,
        'epic': weights.epic_p,
        'monobert-large-2019': lambda: weights.tensorflow_zip(
            'BERT_Large_trained_on_MSMARCO', 100000
        ),
        'monobert-large-tcp': lambda: weights.tensorflow_zip(
            'monobert-large-msmarco-pretrained-and-finetuned', 100001
        ),
        'duobert-large': lambda: weights.tensorflow_zip(
            'duobert-large-msmarco-pretrained-and-finetuned', 100002, 3
        ),
        'msmarco-v1-passage': lambda: corpora.collection(worlds.msmarco),
    }
    site.serve(source['address'], made[entry.name]())


def _served(name: str, worlds: Worlds) -> bytes:
    """The content of a downloaded file by its name."""
    world = worlds.msmarco
    runs = (
        'run.bm25 run.doc2query run.dev.small repbert.dev BERT_Large_dev repbert.eval '
        'run.duobert run.monobert'
    )
    for seed, start in enumerate(runs.split()):
        if name.startswith(start):
            run = world.run_msmarco(seed)
            return gzipped(run) if name.endswith('.gz') else run
    made: dict[str, Callable[[], bytes]] = {
        'topics.msmarco-passage.dev-subset.txt': world.topics_tsv,
        'qrels.msmarco-passage.dev-subset.txt': world.qrels_trec,
        'msmarco-passage-pred-test_topk10.tar.gz': lambda: corpora.doc2query(world),
        'predicted_queries_topk_sampling.zip': lambda: corpora.docttttquery(world),
        'top1000.dev.tar.gz': lambda: corpora.top1000(world),
        'paragraphCorpus.v2.0.tar.xz': lambda: corpora.car_paragraphs(worlds.car),
        'topics.car17v2.0.benchmarkY1test.txt': lambda: ''.join(
            f'{qid}\n' for qid in worlds.car.topics
        ).encode(),
        'qrels.car17v2.0.benchmarkY1test.txt': worlds.car.qrels_trec,
        'scifact.zip': lambda: corpora.beir(worlds.scifact, 'scifact'),
        'topics.beir-v1.0.0-scifact.test.tsv.gz': lambda: gzipped(worlds.scifact.topics_tsv()),
        'qrels.beir-v1.0.0-scifact.test.txt': worlds.scifact.qrels_trec,
    }
    for first, last in WEB_YEARS:
        of_year = worlds.web.part([str(qid) for qid in range(first, last + 1)])
        made[f'qrels.web.{first}-{last}.txt'] = of_year.qrels_trec
    return made[name]()


def _of_cedr(name: str, worlds: Worlds) -> bytes:
    """The content of one of CEDR's data files by its path."""
    folder, _, file = name.partition('/')
    world = {'robust': worlds.robust, 'wt': worlds.web}[folder]
    made: dict[str, Callable[[], bytes]] = {
        'queries.tsv': world.queries_cedr,
        'qrels': world.qrels_trec,
    }
    if folder == 'robust':
        for number, fold in enumerate(FOLDS, 1):
            others = [qid for qid in world.topics if qid not in fold]
            made[f'f{number}.test.run'] = world.part(fold).run_trec
            made[f'f{number}.train.pairs'] = world.part(others).pairs
    else:
        for year, first in ((11, 101), (12, 151), (13, 201), (14, 251)):
            tested = [str(qid) for qid in range(first, first + 50)]
            others = [qid for qid in world.topics if qid not in tested]
            kind = 'valid' if year == 11 else 'test'
            made[f'{kind}.wt{year}.run'] = world.part(tested).run_trec
            made[f'train.wt{year}.pairs'] = world.part(others).pairs
    return made[file]()


def _brought(name: str, path: Path, worlds: Worlds) -> None:
    """Write what a user would bring below their folder: data by agreement or by hand, or trained
    checkpoints.
    """
    if name == 'robust04/disk45':
        corpora.disks(path, worlds.robust)
    elif name == 'webtrack/documents':
        corpora.clueweb(path, worlds.web, ('clueweb09', 'clueweb12'))
    elif name in ('webtrack/clueweb09', 'webtrack/clueweb12'):
        corpora.clueweb(path, worlds.web, (path.name,))
    elif name == 'deepct/test_results.tsv':
        path.write_bytes(corpora.deepct(worlds.msmarco))
    elif name == 'run.deepct.dev.small.tsv':
        path.write_bytes(worlds.msmarco.run_msmarco(20))
    elif name.startswith('cedr/'):
        weights.cedr_folds(path, path.name, len(FOLDS if 'robust04' in name else WEB_YEARS))
    elif name.endswith('epic'):
        weights.epic_folder(path)
    elif name.endswith('monobert'):
        weights.cross_encoder_folder(path, MONOBERT)
    elif name.endswith('duobert') or name.startswith('duobert'):
        weights.cross_encoder_folder(path, DUOBERT)
    else:
        raise KeyError(f'no stand-in for {name}')
