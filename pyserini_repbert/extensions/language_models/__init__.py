"""Language models behind an address: they rerank, rewrite questions, and judge documents."""

from pyserini_repbert.extension import Command, Extension

EXTENSION = Extension(
    name='language_models',
    package=__name__,
    systems=('system:SYSTEM',),
    commands={
        'evaluate costs': Command(
            'tokens of language models, and their price',
            'costs:costs',
        ),
    },
    options={
        'search': 'options:IN_SEARCH',
        'rerank': 'options:IN_RERANK',
        'index judgments': 'judging_options:IN_JUDGMENTS',
        'serve': 'serving:IN_SERVE',
    },
    in_pipelines=('pipelines:IN_PIPELINES',),
    in_services=('serving:IN_SERVICES',),
)
