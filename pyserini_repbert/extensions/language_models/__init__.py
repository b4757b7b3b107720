"""Language models: they rerank in a service, and judge what a collection finds."""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='language_models',
    package=__name__,
    options={
        'index judgments': 'judging_options:IN_JUDGMENTS',
        'serve': 'serving:IN_SERVE',
    },
    in_services=('serving:IN_SERVICES',),
)
