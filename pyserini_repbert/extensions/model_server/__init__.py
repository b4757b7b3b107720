"""A model server: a service reranks and encodes texts of other programs.

It answers in the forms of Cohere, Jina and OpenAI.
"""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='model_server',
    package=__name__,
    in_services=('serving:IN_SERVICES',),
    routes=('routes:router',),
)
