"""Makes the run files of demo_results.py, each once, by the package's own commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo_cosine import HITS, SHARD, cosine_run, reranked_by_cosine
from demo_runs import DUO_DEPTH, LEXICAL, Collection, Kind, System

from pyserini_repbert import catalog
from pyserini_repbert.data.runs import read_run, write_run
from pyserini_repbert.errors import MissingResourceError, PyseriniRepbertError
from pyserini_repbert.files import digest
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.regression.workspace import remember, remembered

Command = Callable[[Sequence[str]], None]


class CommandFailed(PyseriniRepbertError):
    """A command of the package ended with an error."""


def package_command(words: Sequence[str]) -> None:
    """Run `python -m pyserini_repbert.WORDS`; what it prints goes to stderr. Raises CommandFailed."""
    print('$ python -m pyserini_repbert.' + ' '.join(words), file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, '-m', f'pyserini_repbert.{words[0]}', *words[1:]], stdout=sys.stderr)
    if done.returncode:
        raise CommandFailed(f'`{words[0]}` failed with status {done.returncode}: its message is on stderr')


@dataclass(frozen=True)
class Made:
    """A run that is there: its file, and checkpoint name -> SHA-256 for it and the runs that it was made from."""

    path: Path
    weights: Mapping[str, str]


class Maker:
    """The runs of one collection, in a folder of their own.

    A run is made where it is missing, or where its note (`RUN.json`) says that it was made by other settings, from
    other runs, or with other weights. A reranking or an encoding that was stopped goes on.

    Parameters
    ----------
    collection : with its data folder filled in (`Collection.within`)
    folder : for runs and indexes
    systems : by name
    checkpoints : folders to take instead of the catalog's checkpoints, by name
    groups : systems whose runs may be made; runs of others are only taken if they are there
    command : runs a command of the package
    precision : of rerankers, 'fp32' or 'bf16'
    """

    def __init__(
        self,
        collection: Collection,
        folder: Path,
        systems: Mapping[str, System],
        checkpoints: Mapping[str, str],
        groups: Sequence[str],
        command: Command = package_command,
        precision: str = 'fp32',
    ) -> None:
        self.precision = precision
        self.collection, self.folder, self.systems = collection, folder, systems
        self.checkpoints, self.groups, self.command = checkpoints, groups, command
        self._opened: dict[str, Checkpoint] = {}
        self._made: dict[str, Made | PyseriniRepbertError] = {}

    def run(self, name: str) -> Made:
        """The run of a system. Raises PyseriniRepbertError where it cannot be had; the same one when asked again."""
        if name not in self._made:
            try:
                self._made[name] = self._run(self.systems[name])
            except PyseriniRepbertError as error:
                self._made[name] = error
        found = self._made[name]
        if isinstance(found, PyseriniRepbertError):
            raise found
        return found

    def _run(self, system: System) -> Made:
        under = [self.run(name) for name in system.needs]
        weights = {key: value for made in under for key, value in made.weights.items()}
        ranking = {}
        if system.checkpoint:
            opened = self._checkpoint(system.checkpoint)
            weights[system.checkpoint], ranking = opened.weights_sha256, opened.config.get('ranking', {})
        output = self.folder / f'{system.name}.txt'
        other = [self.precision] if system.kind in (Kind.RERANK, Kind.PAIRS) and self.precision != 'fp32' else []
        note = {
            'settings': [
                system.kind,
                system.method,
                HITS,
                self._depth(system),
                ranking,
                *self.collection.fields,
                *other,
            ],
            'runs': {made.path.name: digest(made.path) for made in under},
            'weights': weights,
        }
        if self._is_current(system, output, note):
            return Made(output, weights)
        if system.group not in self.groups:
            raise MissingResourceError('not asked for by --systems, and not made before')
        note['checkpoint'] = self._reference(system.checkpoint)  # a reranking goes on under the same name only
        begun = remembered(_note(output)) == note
        output.unlink(missing_ok=True)
        remember(_note(output), note)
        self._make(system, output, begun, [made.path for made in under])
        return Made(output, weights)

    def _is_current(self, system: System, output: Path, note: Mapping[str, Any]) -> bool:
        kept = system.kind is not Kind.PAIRS or _pairs(output).is_file()
        before = remembered(_note(output)) or {}
        return output.is_file() and kept and {key: before.get(key) for key in note} == note

    def _make(self, system: System, output: Path, begun: bool, under: Sequence[Path]) -> None:
        own, written = self.collection, ['--output', str(output)]
        topics = ['--topics', own.topics, '--hits', str(HITS)]
        encoder = self._reference(system.checkpoint)
        if system.kind is Kind.SPARSE:
            self.command(['search', '--index', str(self._lucene()), '--sparse', system.name, *topics, *written])
        elif system.kind is Kind.DENSE:
            index = ['--index', str(self._dense(system.checkpoint))]
            self.command(['search', *index, '--encoder', encoder, '--fp32', *topics, *written])
        elif system.kind is Kind.COSINE:
            from pyserini_repbert.names.topics import load_topics

            index_folder = self._dense(system.checkpoint)
            write_run(output, cosine_run(index_folder, encoder, load_topics(own.topics)), tag=system.name)
        elif system.kind in (Kind.BY_COSINE, Kind.BY_TEACHER):
            weight = LEXICAL if system.kind is Kind.BY_TEACHER else 0.0
            write_run(output, reranked_by_cosine(read_run(under[0]), encoder, own, weight), tag=system.name)
        elif system.kind is Kind.INTERLEAVE:
            self.command(['fusion', '--runs', *map(str, under), '--hits', str(HITS), *written])
        elif system.kind is Kind.REPLAY:
            pairs = ['--from-pairs', str(_pairs(under[0])), '--k0', '0', '--method', system.method]
            self.command(['rerank', *pairs, *written])
        else:
            stage = f'{encoder}@{self._depth(system)}' + (f':{system.method}' if system.method else '')
            more = ['--pairs', str(_pairs(output))] if system.kind is Kind.PAIRS else []
            if Path(f'{output}.part').exists():
                more.append('--resume' if begun else '--overwrite')
            passages = ['--corpus', own.corpus, *_fields(own)]
            first = ['--run', str(under[0]), '--reranker', stage, f'--{self.precision}']
            self.command(['rerank', *first, *topics, *passages, *more, *written])

    def _depth(self, system: System) -> int:
        """How many candidates the system reranks; 0 if it reranks none."""
        own = system.depth or self.collection.depth
        depths = {
            Kind.RERANK: own,
            Kind.BY_COSINE: own,
            Kind.BY_TEACHER: own,
            Kind.PAIRS: DUO_DEPTH,
            Kind.REPLAY: DUO_DEPTH,
        }
        return depths.get(system.kind, 0)

    def _reference(self, name: str) -> str:
        """A checkpoint as commands take it: the folder that was given for it, else its catalog name."""
        return self.checkpoints.get(name, name)

    def _checkpoint(self, name: str) -> Checkpoint:
        """A checkpoint by name, opened: among the folders given, else in the catalog."""
        if name not in self._opened:
            kind = catalog.checkpoint_kind(name)
            if name not in self.checkpoints and kind is None:
                raise MissingResourceError(f"'{name}' is not in the catalog: give --checkpoints {name}=FOLDER")
            self._opened[name] = open_checkpoint(self._reference(name), kind or 'rerankers')
        return self._opened[name]

    def _lucene(self) -> Path:
        folder = self.folder / 'lucene'
        if not folder.is_dir():
            corpus = ['--corpus', self.collection.corpus, *_fields(self.collection)]
            self.command(['index', 'lucene', *corpus, '--output', str(folder)])
        return folder

    def _dense(self, name: str) -> Path:
        """The dense bundle of an encoder, made unless it is there with the same weights."""
        folder = self.folder / f'{name}.dense'
        settings = (remembered(folder / 'manifest.json') or {}).get('settings')
        begun = remembered(folder / 'encoding.json')
        weights = self._checkpoint(name).weights_sha256
        if settings and settings['weights_sha256'] == weights:
            return folder
        more = []
        if folder.exists():
            same = begun and (begun['encoder'], begun['weights_sha256']) == (self._reference(name), weights)
            more = ['--resume' if same and not settings else '--overwrite']
        corpus = ['--corpus', self.collection.corpus, *_fields(self.collection)]
        encoder = ['--encoder', self._reference(name), '--fp32', '--shard-size', str(SHARD)]
        self.command(['encode', *corpus, *encoder, '--output', str(folder), *more])
        return folder


def _fields(collection: Collection) -> list[str]:
    return ['--fields', *collection.fields] if collection.fields else []


def _note(output: Path) -> Path:
    return output.with_suffix('.json')


def _pairs(output: Path) -> Path:
    return output.with_suffix('.npz')
