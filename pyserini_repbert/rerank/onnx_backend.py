"""Cross-encoders on ONNX Runtime: exported once into the cache, in float32 or with 8-bit weights.

In float32 the logits differ from PyTorch's by rounding (1e-5). With 8 bits (dynamic quantisation:
weights by channel, activations at run time) they differ by tenths; on a CPU with VNNI instructions,
this is several times faster.
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
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cross_encoder import CrossEncoder

_OPSET = 18
_INPUTS = ('input_ids', 'token_type_ids', 'attention_mask')
# The version of the exported graph; raise it whenever the export changes.
_FORMAT = 1


class OnnxForward:
    """A model's forward pass on ONNX Runtime, with as many threads as PyTorch has.

    Parameters
    ----------
    model : in float32 and in evaluation mode
    weights_sha256 : with the model's configuration, it names the exported file in the cache
    int8 : whether weights have 8 bits
    """

    def __init__(self, model: CrossEncoder, weights_sha256: str, int8: bool = False) -> None:
        with needs('onnxruntime', 'the backend onnx'):
            import onnxruntime
        kind = 'int8' if int8 else 'float32'
        config = hashlib.sha256(repr(model.bert.config).encode()).hexdigest()
        network = type(model).__name__.lower()
        name = f'{network}-{weights_sha256[:16]}-{config[:8]}-{_FORMAT}-{kind}.onnx'
        path = cache_folder() / 'onnx' / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            _export(model, path, int8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(
            str(path), options, providers=['CPUExecutionProvider']
        )

    def __call__(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Logits, float32 (n, labels)."""
        mask = attention_mask
        if mask is None:
            mask = torch.ones_like(input_ids, dtype=torch.bool)
        tensors = zip(_INPUTS, (input_ids, token_type_ids, mask), strict=True)
        arrays = {name: tensor.numpy() for name, tensor in tensors}
        (logits,) = self._session.run(None, arrays)
        return torch.from_numpy(np.asarray(logits, dtype=np.float32))


def _export(model: CrossEncoder, path: Path, int8: bool) -> None:
    """Write the model as an ONNX file, which appears at `path` when it is complete."""
    with needs('onnx and onnxscript', 'exporting a model to ONNX', 'onnx'):
        import onnx
        import onnxscript  # noqa: F401
    n = torch.export.Dim('n')
    length = torch.export.Dim('length', max=model.bert.config.longest_input)
    shape = {0: n, 1: length}
    ids = torch.ones(2, 8, dtype=torch.long)
    example = (ids, torch.zeros_like(ids), ids > 0)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, _silence():
        whole = Path(folder) / 'whole.onnx'
        torch.onnx.export(
            model,
            example,
            whole,
            input_names=_INPUTS,
            output_names=['logits'],
            opset_version=_OPSET,
            dynamo=True,
            dynamic_shapes=dict.fromkeys(_INPUTS, shape),
            external_data=False,
            verbose=False,
        )
        _fuse(whole, model.bert.config)
        if int8:
            from onnxruntime.quantization import QuantType, quantize_dynamic

            quantize_dynamic(
                whole,
                whole,
                op_types_to_quantize=['MatMul', 'Gemm'],
                per_channel=True,
                weight_type=QuantType.QInt8,
                # The type of fused operators' outputs is not inferred.
                extra_options={'DefaultTensorType': onnx.TensorProto.FLOAT},
            )
        whole.replace(path)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """A context without warnings.

    Exporters warn of packages that a BERT does not need, and advise steps that were taken.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action='ignore'):
            yield
    finally:
        logging.disable(before)


def _fuse(path: Path, config: BertConfig) -> None:
    """Fuse operators, and drop softmax's guard against rows without tokens.

    Models of 8 bits are then a third faster. Every row has tokens: [CLS] and [SEP] at least.
    """
    import onnx
    from onnxruntime.transformers import optimizer

    heads = config.num_attention_heads
    size = config.hidden_size
    model = optimizer.optimize_model(
        str(path), model_type='bert', num_heads=heads, hidden_size=size, opt_level=1
    ).model
    graph = model.graph
    masks = {node.output[0] for node in graph.node if node.op_type == 'IsNaN'}
    choices = [node for node in graph.node if node.op_type == 'Where' and node.input[0] in masks]
    # A guard is Where(IsNaN(x), 0, x): its readers get x instead.
    guarded = {node.output[0]: node.input[2] for node in choices}
    kept = []
    for node in graph.node:
        if node.op_type != 'IsNaN' and node.output[0] not in guarded:
            node.input[:] = [guarded.get(name, name) for name in node.input]
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)
    # These shapes are outdated, because weights were transposed. Without them, shapes are inferred
    # again.
    del graph.value_info[:]
    onnx.save(model, path)
