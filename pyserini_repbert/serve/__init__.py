"""The service: search over HTTP with rerankers, explanations and comparisons; its web page; MCP
tools.
"""

from pyserini_repbert.extension import Command, Extension

EXTENSION = Extension(
    name='serve',
    package=__name__,
    commands={'serve': Command('search over HTTP, in a page, and by MCP tools', 'command:main')},
)
