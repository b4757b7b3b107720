"""Stand-ins for the published checkpoints: tiny BERTs, named and packed as the real ones."""

import io
import json
import re
import tempfile
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.checkpoints.legacy import uncased_vocabulary
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.systems.cedr.conversion import convert_cedr
from pyserini_repbert.systems.cedr.loading import new_ranker
from pyserini_repbert.systems.cedr.settings import CedrSettings
from pyserini_repbert.systems.epic.conversion import _EPIC_HEADS
from pyserini_repbert.systems.epic.network import Epic
from pyserini_repbert.systems.repbert.network import RepBert
from rehearsal.tensor_bundle import write_bundle

WORDPIECES = 30522  # of bert-base-uncased and bert-large-uncased
CONFIG: dict[str, Any] = {
    'model_type': 'bert',
    'vocab_size': WORDPIECES,
    'hidden_size': 16,
    'num_hidden_layers': 2,
    'num_attention_heads': 1,
    'intermediate_size': 32,
    'max_position_embeddings': 512,
    'type_vocab_size': 2,
    'initializer_range': 0.3,
}


def repbert_zip() -> bytes:
    """RepBERT's archive: a checkpoint of an older Hugging Face library, without a vocabulary."""
    torch.manual_seed(1)
    state = dict(RepBert(BertConfig.from_dict(CONFIG)).state_dict())
    state['bert.embeddings.position_ids'] = torch.arange(512)[None]
    state |= {
        'bert.pooler.dense.weight': torch.zeros(16, 16),
        'bert.pooler.dense.bias': torch.zeros(16),
    }
    config = CONFIG | {'architectures': ['RepBERT_Train'], 'encode_type': 'doc'}
    return _zipped(
        {
            'ckpt-350000/config.json': json.dumps(config).encode(),
            'ckpt-350000/pytorch_model.bin': _saved(state),
        }
    )


def tensorflow_zip(name: str, step: int, segments: int = 2) -> bytes:
    """An archive of a fine-tuned TensorFlow 1 checkpoint: weights, Adam's moments, heads, its
    graph and vocabulary.
    """
    torch.manual_seed(step)
    config = CONFIG | {'type_vocab_size': segments}
    model = CrossEncoder(BertConfig.from_dict(config), 2)
    variables: dict[str, np.ndarray] = {'global_step': np.array(step, dtype=np.int64)}
    for ours, tensor in model.state_dict().items():
        theirs, transposed = _tensorflow_name(ours)
        value = tensor.numpy().astype(np.float32)
        variables[theirs] = np.ascontiguousarray(value.T if transposed else value)
    for theirs in [own for own in variables if own != 'global_step']:
        for moment in ('adam_m', 'adam_v'):
            variables[f'{theirs}/{moment}'] = np.zeros_like(variables[theirs])
    variables['cls/seq_relationship/output_weights'] = np.zeros((2, 16), np.float32)
    variables['cls/predictions/output_bias'] = np.zeros(WORDPIECES, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / f'model.ckpt-{step}'
        write_bundle(prefix, variables)
        members = {f'{name}/{path.name}': path.read_bytes() for path in Path(folder).iterdir()}
    members[f'{name}/model.ckpt-{step}.meta'] = b'a graph'
    own = {key: value for key, value in config.items() if key != 'model_type'} | {
        'hidden_act': 'gelu'
    }
    members[f'{name}/bert_config.json'] = json.dumps(own).encode()
    members[f'{name}/vocab.txt'] = uncased_vocabulary().read_bytes()
    return _zipped(members)


def epic_p() -> bytes:
    """EPIC's `epic.p`: an OpenNIR state, with the tied decoder and the unused next-sentence
    head.
    """
    torch.manual_seed(3)
    heads = {ours: theirs for theirs, ours in _EPIC_HEADS.items()}
    state = Epic(BertConfig.from_dict(CONFIG)).state_dict()
    theirs: OrderedDict[str, torch.Tensor] = OrderedDict(_nil=torch.zeros(1))
    for name, value in state.items():
        head, _, rest = name.partition('.')
        theirs[f'{heads[head]}.{rest}' if head in heads else f'encoder.bert.{name}'] = value
    theirs['encoder.bert.bert.embeddings.position_ids'] = torch.arange(512)[None]
    theirs['encoder.bert.cls.predictions.decoder.weight'] = state[
        'bert.embeddings.word_embeddings.weight'
    ]
    theirs['encoder.bert.cls.seq_relationship.weight'] = torch.zeros(2, 16)
    theirs['encoder.bert.cls.seq_relationship.bias'] = torch.zeros(2)
    return _saved(theirs)


def hub_folder(folder: Path, labels: int = 2) -> None:
    """A cross-encoder as the hub has it: config, safetensors and vocab.txt."""
    folder.mkdir(parents=True)
    torch.manual_seed(4)
    config = CONFIG | {'architectures': ['BertForSequenceClassification']}
    save_file(
        CrossEncoder(BertConfig.from_dict(CONFIG), labels).state_dict(),
        folder / 'model.safetensors',
    )
    (folder / 'config.json').write_text(json.dumps(config), encoding='utf-8')
    (folder / 'vocab.txt').write_bytes(uncased_vocabulary().read_bytes())


def cross_encoder_folder(folder: Path, ranking: dict[str, Any]) -> None:
    """A monoBERT or duoBERT that a user would have trained, as this package's checkpoint folder."""
    folder.mkdir(parents=True)
    config = CONFIG | {
        'type_vocab_size': 3 if ranking['system'] == 'duobert' else 2,
        'ranking': ranking,
    }
    (folder / 'vocab.txt').write_bytes(uncased_vocabulary().read_bytes())
    Checkpoint.write(
        folder, config, CrossEncoder(BertConfig.from_dict(config), 2).state_dict(), 'a stand-in'
    )


def epic_folder(folder: Path) -> None:
    """An EPIC that a user would have trained, as this package's checkpoint folder."""
    folder.mkdir(parents=True)
    torch.manual_seed(4)
    config = CONFIG | {
        'ranking': {'system': 'epic', 'variant': 'paper_strict', 'max_doc_length': 150}
    }
    (folder / 'vocab.txt').write_bytes(uncased_vocabulary().read_bytes())
    state = Epic(BertConfig.from_dict(config), 'paper_strict').state_dict()
    Checkpoint.write(folder, config, state, 'a stand-in')


def cedr_folds(folder: Path, model: str, folds: int) -> None:
    """`fold-N` checkpoints of a CEDR model; the joint ones come from a `weights.p` as the
    authors' code saves it.
    """
    torch.manual_seed(5)
    architecture = model.removeprefix('cedr-').partition('-')[0]
    settings = CedrSettings.from_ranking(
        {
            'system': 'cedr',
            'architecture': architecture,
            'joint': '-' not in model.removeprefix('cedr-'),
        }
    )
    ranker = new_ranker(BertConfig.from_dict(CONFIG), settings)
    for fold in range(1, folds + 1):
        made = folder / f'fold-{fold}'
        if settings.joint:
            _converted(ranker, made)
        else:
            made.mkdir(parents=True)
            (made / 'vocab.txt').write_bytes(uncased_vocabulary().read_bytes())
            Checkpoint.write(
                made, CONFIG | {'ranking': settings.ranking()}, ranker.state_dict(), 'a stand-in'
            )


def _converted(ranker: torch.nn.Module, target: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary) / 'base'
        base.mkdir()
        (base / 'vocab.txt').write_bytes(uncased_vocabulary().read_bytes())
        Checkpoint.write(base, CONFIG, ranker.state_dict(), 'a stand-in')
        torch.save(OrderedDict(ranker.state_dict()), base / 'weights.p')
        target.parent.mkdir(parents=True, exist_ok=True)
        convert_cedr(base / 'weights.p', Checkpoint.open(base), target)


def _tensorflow_name(ours: str) -> tuple[str, bool]:
    """(TensorFlow's name for a variable, whether it is transposed)."""
    if ours.startswith('classifier.'):
        return ('output_weights' if ours.endswith('weight') else 'output_bias'), False
    stem, _, last = re.sub(r'layer\.(\d+)', r'layer_\1', ours).rpartition('.')
    if stem.endswith('_embeddings'):
        return stem.replace('.', '/'), False
    if stem.endswith('LayerNorm'):
        return f'{stem.replace(".", "/")}/{"gamma" if last == "weight" else "beta"}', False
    return f'{stem.replace(".", "/")}/{"kernel" if last == "weight" else "bias"}', last == 'weight'


def _saved(state: dict[str, torch.Tensor]) -> bytes:
    made = io.BytesIO()
    torch.save(state, made)
    return made.getvalue()


def _zipped(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()
