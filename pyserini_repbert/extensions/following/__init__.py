"""Following: keeps a collection in step with a folder, by `index sync --follow` until Ctrl-C, and
by a service whose settings say `follow`.
"""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='following',
    package=__name__,
    options={'index sync': 'options:IN_SYNC'},
    in_services=('serving:IN_SERVICES',),
)
