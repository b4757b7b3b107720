"""How fast this machine's CPU multiplies in int8 by ONNX Runtime, beside PyTorch's float32.

Scores of 8-bit models differ from float32 scores, by tenths of a logit, so nothing chooses
them but a user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyserini_repbert.errors import needs
from pyserini_repbert.models.timing import LAYERS, Contenders, best_times, layer_products

# Tokens of a batch.
_ROWS = 512
_OPSET = 18
_IR_VERSION = 9


def int8_speed() -> float:
    """How many times as fast as in float32 by PyTorch the CPU multiplies matrices of models' sizes
    in int8 by ONNX Runtime.

    Raises MissingDependencyError without the packages of the extra 'onnx'.
    """
    times = best_times('int8', _contenders)
    return times['float32'] / times['int8']


def _contenders() -> Contenders:
    import torch

    return {'float32': layer_products(_ROWS, torch.float32), 'int8': _int8_products()}


def _int8_products() -> Callable[[], None]:
    """A function that computes the layers of `layer_products` with weights of 8 bits, as
    `--backend onnx-int8` does.
    """
    import torch

    with needs('onnxruntime', 'the backend onnx'):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    runs = []
    for n_in, n_out in LAYERS:
        session = onnxruntime.InferenceSession(
            _quantized_layer(n_in, n_out), options, providers=['CPUExecutionProvider']
        )
        runs.append((session, {'x': np.ones((_ROWS, n_in), np.float32)}))

    def multiply() -> None:
        for session, inputs in runs:
            session.run(None, inputs)

    return multiply


def _quantized_layer(n_in: int, n_out: int) -> bytes:
    """A model of one linear layer: weights of 8 bits by channel, activations rounded when it
    runs.
    """
    with needs('onnx', 'measuring int8', 'onnx'):
        from onnx import TensorProto, helper, numpy_helper
    constants = {
        'weight': np.ones((n_in, n_out), np.int8),
        'scale': np.ones(n_out, np.float32),
        'zero': np.zeros(n_out, np.int8),
    }
    nodes = [
        helper.make_node('DynamicQuantizeLinear', ['x'], ['q', 'q_scale', 'q_zero']),
        helper.make_node('MatMulInteger', ['q', 'weight', 'q_zero', 'zero'], ['whole']),
        helper.make_node('Cast', ['whole'], ['number'], to=TensorProto.FLOAT),
        helper.make_node('Mul', ['q_scale', 'scale'], ['scales']),
        helper.make_node('Mul', ['number', 'scales'], ['y']),
    ]
    x = helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', n_in])
    y = helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', n_out])
    weights: list[Any] = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, 'layer', [x], [y], weights)
    opsets = [helper.make_opsetid('', _OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    content: bytes = model.SerializeToString()
    return content
