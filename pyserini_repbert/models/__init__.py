"""The ranking models, in PyTorch: tensors in, tensors out."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.models.bert import Bert as Bert
    from pyserini_repbert.models.bert_config import BertConfig as BertConfig
    from pyserini_repbert.models.repbert import RepBert as RepBert

__getattr__, __dir__, __all__ = exports(__name__)
