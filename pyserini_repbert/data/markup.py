"""The words of HTML, and of TREC's SGML, by an HTML5 parser."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

# Elements that begin and end a word: Jsoup's blocks, which Anserini separates, and what browsers
# put on a line or into a box of its own.
BLOCKS = frozenset(
    'address applet article aside audio blockquote body br button canvas caption center col '
    'colgroup dd del desc details dialog dir div dl dt fieldset figcaption figure footer form '
    'frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html input ins legend li link listing '
    'main marquee math menu meta nav object ol optgroup option p plaintext pre search section '
    'select summary svg table tbody td template text textarea tfoot th thead title tr ul video '
    'xmp'.split()
)
# Elements within a word. Any other element of SGML separates words.
_INLINE = frozenset(
    'a abbr acronym b bdi bdo big blink cite code data dfn em font i img kbd label mark nobr q rp '
    'rt ruby s samp small span strike strong sub sup time tt u var wbr'.split()
)
_UNSEEN = ('script', 'style', 'noscript', 'iframe', 'noembed')
_NO_FRAMES = 'noframes'
_SEPARATED = ','.join(sorted(BLOCKS - {'html', 'head', 'body'}))
# As in Jsoup: soft hyphens and spaces of no width are not part of a word.
_WITHOUT_BREAKS = str.maketrans('', '', '\u00ad\u200b')
MOST_HEAD = 65_536  # characters
PICTURES = ('.svg', '.png', '.jpg', '.jpeg', '.gif', '.webp', '.avif', '.bmp')
_WIDTH = re.compile(r'\|\d{1,5}(?:x\d{1,5})?$')
# Elements around a picture, the link or the figure among them.
_NEAR_LINK = 4
CDATA = '<![CDATA['
_CDATA_END = ']]>'
# Nesting costs the parser time quadratic in its depth. A page with more tags is read without it.
_MOST_TAGS = 10_000
_TAG_NAME = re.compile(r'(</?)([a-zA-Z][^\s/>]*)')
# Elements that nothing ends, so that nothing nests in them.
_VOID = frozenset('area base br col embed hr img input link meta source track wbr'.split())
_MOST_DEPTH = 400
_XML = '<?xml'
_XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
_MOST_DECLARED = 2_000  # characters
# Elements that are empty in XML, but take everything after them as content in HTML.
_EMPTY = re.compile(
    r'<(iframe|noembed|noframes|noscript|script|style|textarea|title|xmp)(\s[^<>]*)?/>',
    re.IGNORECASE,
)
# The parser compares an attribute with all others of its tag. No page has a tag of so many.
_MOST_ATTRIBUTES = 250
_ATTRIBUTE = (
    r'[\s/]*+[^\s/>=][^\s/>=]*+'
    r'(?:\s*+=\s*+(?:"[^"]*+"|\'[^\']*+\'|[^\s>"\'<][^\s><]*+)?)?'
)
_MANY_ATTRIBUTES = re.compile(
    rf'(<[a-zA-Z][^\s/><]*+(?=[\s/])(?:{_ATTRIBUTE}){{{_MOST_ATTRIBUTES}}}+)(?:{_ATTRIBUTE})++'
)
# Their contents are not markup, or they begin and end markup.
_KEPT_NAMES = frozenset(
    [*_UNSEEN, _NO_FRAMES, *'base body head html meta plaintext textarea title xmp'.split()]
)


def parse_head(markup: str) -> LexborHTMLParser:
    """The tree of a page's beginning, as browsers build it, for its title and its fields."""
    return _parse(markup[:MOST_HEAD])


def parse_page(markup: str) -> LexborHTMLParser:
    """The tree of a page without what nobody sees: scripts, styles, titles.

    Tags that nest too deeply become tags that do not nest.
    """
    if _nests_deeply(markup):
        markup = _flattened(markup, is_sgml=False)
    tree = _parse(markup)
    tree.strip_tags([*_UNSEEN, _NO_FRAMES, 'title'])
    return tree


def _nests_deeply(markup: str) -> bool:
    """Whether a page has many tags, and they may nest so deeply that reading them takes long.

    The tags of each name that nothing has ended are counted. This is at least their depth, because
    an end tag that closes nothing follows a counted tag of another name.
    """
    if markup.count('<') <= _MOST_TAGS:
        return False
    open_tags: Counter[str] = Counter()
    depth = 0
    for match in _TAG_NAME.finditer(markup):
        name = match[2].lower()
        if name in _VOID:
            continue
        if match[1] == '<':
            open_tags[name] += 1
            depth += 1
        elif open_tags[name]:
            open_tags[name] -= 1
            depth -= 1
        if depth > _MOST_DEPTH:
            return True
    return False


def visible_text(markup: str, is_sgml: bool = False, with_pictures: bool = False) -> str:
    """What a reader of HTML sees, on one line.

    Blocks and line breaks separate words, elements within a line do not: 'H<sub>2</sub>O' is one
    word. Scripts, styles and comments are not text.

    Parameters
    ----------
    markup : HTML or SGML
    is_sgml : whether elements that HTML does not have separate words, as TREC's do, and CDATA
        sections are text, which to HTML are comments
    with_pictures : whether alternative texts of pictures are text (`write_alternatives`)
    """
    if is_sgml:
        markup = escape_cdata(markup)
    tree = _parse(_flattened(markup, is_sgml))
    tree.strip_tags(list(_UNSEEN))
    if with_pictures:
        write_alternatives(tree)
    no_frames = [node.text() for node in tree.css(_NO_FRAMES)]
    tree.strip_tags([_NO_FRAMES])
    text = _words(tree, is_sgml)
    if text or not no_frames:
        return text
    # A page of frames has its text, as markup, for browsers without frames.
    tree = _parse(_flattened(' '.join(no_frames), is_sgml))
    tree.strip_tags([*_UNSEEN, _NO_FRAMES])
    return _words(tree, is_sgml)


def write_alternatives(tree: LexborHTMLParser) -> None:
    """Write the alternative text of each picture of a tree behind it.

    A picture within a link is a button, unless the link leads to a picture. An alternative text
    that repeats a file's name or the caption says nothing.
    """
    for picture in tree.css('img[alt]'):
        words = alternative_text(picture.attributes.get('alt') or '')
        if words and not _is_button(picture) and not _has_caption(picture, words):
            picture.insert_after(f' {words} ')


def alternative_text(words: str) -> str:
    """The alternative text of a picture, on one line; '' for the name of a file."""
    # Obsidian writes the width of a picture there.
    words = _WIDTH.sub('', one_line(words))
    is_file = ' ' not in words and words.lower().endswith(PICTURES)
    return '' if is_file else words


def _is_button(picture: LexborNode) -> bool:
    """Whether a picture is within a link that leads to something else than a picture."""
    node = picture.parent
    for _ in range(_NEAR_LINK):
        if node is None:
            return False
        if node.tag == 'a':
            target = (node.attributes.get('href') or '').lower()
            return bool(target) and not target.partition('?')[0].endswith(PICTURES)
        node = node.parent
    return False


def _has_caption(picture: LexborNode, words: str) -> bool:
    """Whether the figure of a picture has a caption of the same words."""
    node = picture.parent
    for _ in range(_NEAR_LINK):
        if node is None:
            return False
        if node.tag == 'figure':
            caption = node.css_first('figcaption')
            return caption is not None and words in one_line(caption.text())
        node = node.parent
    return False


def escape_cdata(markup: str) -> str:
    """Markup with what CDATA sections protect as references; lines stay lines."""
    return replace_sections(markup, CDATA, _CDATA_END, escape)


def without_cdata_tags(text: str) -> str:
    """Text with the content of its CDATA sections in their place."""
    return replace_sections(text, CDATA, _CDATA_END, str)


def replace_sections(markup: str, begin: str, end: str, change: Callable[[str], str]) -> str:
    """Markup with the insides of all sections changed, in time linear in its length.

    The marks that begin and end a section go. A section without an end does not change.
    """
    parts = []
    position = 0
    start = markup.find(begin)
    stop = markup.find(end, start + len(begin)) if start >= 0 else -1
    while start >= 0 and stop >= 0:
        parts.append(markup[position:start])
        parts.append(change(markup[start + len(begin) : stop]))
        position = stop + len(end)
        start = markup.find(begin, position)
        stop = markup.find(end, start + len(begin)) if start >= 0 else -1
    parts.append(markup[position:])
    return ''.join(parts)


def escape(text: str) -> str:
    """Text as markup of its characters."""
    return html.escape(text, quote=False)


def _parse(markup: str) -> LexborHTMLParser:
    """The tree that a browser with scripts builds, before scripts or forms change it."""
    if markup.lstrip()[: len(_XML)] == _XML or _XHTML in markup[:_MOST_DECLARED]:
        markup = _EMPTY.sub(r'<\1\2></\1>', markup)
    markup = _MANY_ATTRIBUTES.sub(r'\1', markup)
    return LexborHTMLParser(markup, options=LexborDocumentOptions.WO_EVENTS, scripting=True)


def _words(tree: LexborHTMLParser, is_sgml: bool) -> str:
    """The text of a tree, which is changed: it gets spaces around what separates words."""
    for node in _separated_nodes(tree, is_sgml):
        node.insert_before(' ')
        node.insert_after(' ')
    return '' if tree.root is None else one_line(tree.root.text())


def one_line(text: str) -> str:
    """Text with single spaces between its words."""
    return ' '.join(without_breaks(text).split())


def without_breaks(text: str) -> str:
    """Text without the marks at which its words may be broken."""
    return text.translate(_WITHOUT_BREAKS)


def _separated_nodes(tree: LexborHTMLParser, is_sgml: bool) -> list[LexborNode]:
    """The elements that separate words."""
    if not is_sgml:
        return tree.css(_SEPARATED)
    return [node for node in tree.css('head *, body *') if node.tag not in _INLINE]


def _flattened(markup: str, is_sgml: bool) -> str:
    """The markup itself; if it has many tags, these become tags that do not nest.

    What separates words becomes a line break, anything else a place where a line may break. Only
    names are replaced: the parser still finds where each tag ends. The end tag of a block that ends
    nothing separates words, too.
    """
    if markup.count('<') <= _MOST_TAGS:
        return markup

    def flat_tag(match: re.Match[str]) -> str:
        name = match[2].lower()
        if name in _KEPT_NAMES:
            return match[0]
        separates = name not in _INLINE if is_sgml else name in BLOCKS
        return match[1] + ('br' if separates else 'wbr')

    return _TAG_NAME.sub(flat_tag, markup)
