"""Cross-encoders on ONNX Runtime: exported once into the cache, in float32 or with weights of 8 bits.

In float32 the logits differ from PyTorch's by rounding (1e-5). With 8 bits (dynamic quantisation: weights by channel,
activations at run time) they differ by tenths; on a CPU with VNNI instructions, this is several times faster.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyserini_repbert.errors import needs
from pyserini_repbert.files import cache_folder
from pyserini_repbert.models.cross_encoder import CrossEncoder

_OPSET = 18
_FORMAT = 2  # of the exported graph: raised whenever the export changes


class OnnxForward:
    """The model's forward pass on ONNX Runtime, with as many threads as PyTorch has.

    Parameters
    ----------
    model : in float32 and in evaluation mode
    weights_sha256 : its first 16 digits, and those of the model's configuration, name the exported file in the cache
    int8 : quantise the weights

    Raises MissingDependencyError without onnxruntime, or (for the first use of a checkpoint) onnx and onnxscript.
    """

    def __init__(self, model: CrossEncoder, weights_sha256: str, int8: bool = False) -> None:
        with needs('onnxruntime', 'the backend onnx'):
            import onnxruntime
        kind = 'int8' if int8 else 'float32'
        config = hashlib.sha256(repr(model.bert.config).encode()).hexdigest()
        name = f'{type(model).__name__.lower()}-{weights_sha256[:16]}-{config[:8]}-{_FORMAT}-{kind}.onnx'
        path = cache_folder() / 'onnx' / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            _export(model, path, int8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])

    def __call__(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits, float32 (n, labels)."""
        mask = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask
        tensors = {'input_ids': input_ids, 'token_type_ids': token_type_ids, 'attention_mask': mask}
        outputs = self._session.run(None, {name: tensor.numpy() for name, tensor in tensors.items()})
        return torch.from_numpy(np.asarray(outputs[0], dtype=np.float32))


def _export(model: CrossEncoder, path: Path, int8: bool) -> None:
    with needs('onnx and onnxscript', 'exporting a model to ONNX', 'onnx'):
        import onnx
        import onnxscript  # noqa: F401
    from onnxruntime.quantization import QuantType, quantize_dynamic

    n, length = torch.export.Dim('n'), torch.export.Dim('length', max=model.bert.config.max_position_embeddings)
    ids = torch.ones(2, 8, dtype=torch.long)
    shapes = {name: {0: n, 1: length} for name in ('input_ids', 'token_type_ids', 'attention_mask')}
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, _silence():
        program: Any = torch.onnx.export(
            model,
            (ids, torch.zeros_like(ids), ids > 0),
            input_names=list(shapes),
            output_names=['logits'],
            opset_version=_OPSET,
            dynamo=True,
            dynamic_shapes=shapes,
            verbose=False,
        )
        exported, written = program.model_proto, Path(folder) / path.name
        if int8:
            del exported.graph.value_info[:]  # the quantiser takes these shapes for those of transposed weights
            quantize_dynamic(exported, written, per_channel=True, weight_type=QuantType.QInt8)
        else:
            onnx.save(exported, written)
        written.replace(path)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Without warnings: exporters warn of packages that a BERT does not need, and advise steps that were taken."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action='ignore'):
            yield
    finally:
        logging.disable(before)
