"""Encoders from folders of sentence-transformers, with the pooling, prompts and length that their files name.

Vectors are those of that package's `encode_query` and `encode_document`; where the model's similarity is cosine, they
are scaled to length 1, so that inner products are that package's scores. Tested with its release 6.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyserini_repbert.encode.text_encoder import TextDocumentEncoder, TextEncoder, TextQueryEncoder
from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.files import digest
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, Checkpoint, open_checkpoint
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.sentence.modules import SentenceEncoder, encoder_body
from pyserini_repbert.models.sentence.reading import encoder_settings
from pyserini_repbert.models.sentence.settings import EncoderSettings, is_encoder
from pyserini_repbert.models.sentence.tokens import TextTokens
from pyserini_repbert.models.tokenizer import TokenSequence


class _SentenceEncoder(TextEncoder):
    """The base of both encoders.

    Parameters
    ----------
    encoder_dir : a folder of sentence-transformers
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : of the body: 'float32', 'bfloat16', 'float16', or 'auto'; what follows the body is in float32
    max_length : wordpieces kept of a text and its prompt, special tokens not counted; default: as the folder says

    Raises
    ------
    MismatchError
        for a folder that is not a bi-encoder of sentence-transformers
    InputError
        for a module or a setting that is not supported, a device that this machine lacks, or a maximum length beyond
        the folder's
    DamagedFileError
        for files that do not fit each other
    """

    prompt_key: str  # name of the prompt in `EncoderSettings`

    def __init__(
        self,
        encoder_dir: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        **_: object,
    ) -> None:
        self.checkpoint = open_checkpoint(encoder_dir)
        self.name = self.checkpoint.name
        if not is_encoder(self.checkpoint):
            raise MismatchError(f"'{self.name}' is not a bi-encoder of sentence-transformers: it has no modules.json")
        self.settings = encoder_settings(self.checkpoint)
        self.pooling = self.settings.label
        self.device = usable_device(device)
        self.precision = Precision(precision).on(self.device)
        self.tokens = TextTokens(self.checkpoint, self.settings.texts)
        self.pad = self.tokens.pad
        self.max_length = self.settings.texts.max_tokens - self.tokens.n_special
        self.limit = self._checked(self.max_length if max_length is None else max_length)
        body = encoder_body(self.checkpoint).to(self.device, self.precision.dtype(self.device))
        model = SentenceEncoder(body, _hidden_size(self.checkpoint), self.settings).to(self.device).eval()
        self.model, self.dimension = model, model.dimension

    @property
    def weights_sha256(self) -> str:
        """Checksum over the weights, those of Dense modules included, and every setting that changes a vector."""
        parts = [self.checkpoint.weights_sha256, *(digest(step.weights) for step in self.settings.dense)]
        return hashlib.sha256('\n'.join([*parts, *_vector_settings(self.settings)]).encode()).hexdigest()

    def _sequences(self, texts: Sequence[str], limit: int) -> list[TokenSequence]:
        prompt = getattr(self.settings, self.prompt_key)
        built = self.tokens.texts([prompt + text for text in texts], limit + self.tokens.n_special)
        return [own.sequence for own in built]


class SentenceQueryEncoder(_SentenceEncoder, TextQueryEncoder):
    """Queries to vectors, with the folder's query prompt. Parameters and errors are those of its base class."""

    prompt_key = 'query_prompt'


class SentenceDocumentEncoder(_SentenceEncoder, TextDocumentEncoder):
    """Passages to vectors, with the folder's document prompt. Parameters and errors are those of its base class."""

    prompt_key = 'passage_prompt'


def _hidden_size(checkpoint: Checkpoint) -> int:
    size = checkpoint.config.get('hidden_size') or checkpoint.config.get('dim') or checkpoint.config.get('d_model')
    if type(size) is not int:
        raise DamagedFileError(f"checkpoint '{checkpoint.name}': its config.json names no hidden_size")
    return size


def _vector_settings(settings: EncoderSettings) -> list[str]:
    steps = [f'{step.activation} {step.bias}' for step in settings.dense]
    return [settings.label, *steps, str(settings.texts._asdict()), settings.query_prompt, settings.passage_prompt]
