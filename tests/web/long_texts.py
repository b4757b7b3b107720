"""A page of Markdown of any length, in whose midst one paragraph answers a question."""

FILLER = 'river stone cloud apple market engine letter window garden music silver winter'.split()
ANSWER = (
    'The lost key of the lighthouse lies below the `third step`, see [the map](https://x.org/m).'
)
QUESTION = 'where is the key of the lighthouse'
SHORT = """---
kind: note
---
# Keys

Keys are kept in the **drawer** of the hall.

## Lighthouse

- The key of the lighthouse is lost.
"""


def long_page(n_bytes):
    """The page, and in how many sections."""
    parts = ['---\nkind: chronicle\n---\n# The long chronicle\n']
    size = 0
    number = 0
    while size < n_bytes:
        number += 1
        words = ' '.join(FILLER[(number * step) % len(FILLER)] for step in range(1, 90))
        level = '##' if number % 10 == 1 else '###'
        section = f'\n{level} Chapter {number}\n\n{words} {number}.\n\n{words}.\n'
        size += len(section)
        parts.append(section)
    parts.insert(len(parts) // 2, f'\n## The keeper\n\n{ANSWER}\n')
    return ''.join(parts)
