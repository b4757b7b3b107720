"""TREC's topics: `<top>` with fields that need not be closed, and the XML of later tracks.

What tracks have in common is a number and a short question: `<title>` or `<query>`. Other fields
(descriptions, narratives, dates) are passed over. `_XmlReader` says where other tracks differ.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

from pyserini_repbert.data.markup import escape, escape_cdata, replace_sections, visible_text
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath

_TOPIC = re.compile(r'<(top|topic|query|event|session|target)(?=[\s>])', re.IGNORECASE)
# A field of CLEF has its language in front: <EN-title>.
_FIELD = re.compile(r'<(/?)(?:\w{2}-)?(\w++)[^<>\n]*+>')
_NUMBER = 'num'
_QUERIES = ('title', 'query')
_DESCRIPTION = 'desc'
_ARTICLE = 'docid'
_KEPT_FIELDS = (_NUMBER, *_QUERIES)
# A field of another name begins a line, or is refused behind the text of a title.
_OTHER_FIELDS = (_DESCRIPTION, 'narr')
# NIST numbers topics with zeros or a track's letters in front, 'Number: 051', 'Number: MB001', but
# not in its judgments.
_NIST_NUMBER = re.compile(r'Number:\s*(?:(?:MB|AR)?0*(?=[0-9]+\Z))?')
_REFERENCE = re.compile(r'&#?\w{1,40};')
_COMMENT = '<!--'
_COMMENT_END = '-->'
# Without its declarations, a file can be read even if it has several documents, and no document can
# declare entities.
_DECLARATIONS = re.compile(
    r'<\?xml[^<>]*>|<!DOCTYPE[^<>\[]{0,200}(?:\[[^\]]{0,4000}\]\s{0,9})?>', re.IGNORECASE
)
# Text that is not XML, but occurs in files: single '&' and '<', and HTML entities.
_NO_XML = re.compile(r'&(?:#?\w{1,40};)?|<(?![a-zA-Z/!?])')
_XML_NUMBERS = ('number', 'num', 'id', 'qid', 'identifier')
_XML_QUERIES = ('title', 'query', 'content', 'question', 'summary')
# Where the element of a topic has another name, these fields are its question.
_XML_QUERIES_OF = {
    # Guidelines of TREC 2013's Temporal Summarization: the query is a few keywords, and the title
    # is an article's about the event.
    'event': ('query', 'title'),
    # Overview of TREC 2012's Session track: systems rank documents for the current query. The
    # interactions before it have queries, too.
    'session': ('currentquery',),
}
# A field that only the Entity track's topics have. Its overview of 2009 has the information need in
# the narrative: a relation to this entity, in free text.
_XML_ENTITY = 'entity_name'
_XML_NARRATIVE = 'narrative'
# Overview of TREC 2015's Dynamic Domain track: a topic's name is the first query.
_XML_NAME = 'name'
# The element of a series of questions, and the element of a question
_XML_TARGET = 'target'
_XML_QUESTION = 'q'
# Stands for a question about anything else that is known about the target
_XML_OTHER = 'other'
# With these, a topic that has no query lacks it; without, all that it says is the query.
_XML_PROSE = ('description', 'narrative', 'desc', 'narr', 'subtopic')
_SHOWN = 40
# The error in topics of TREC's Background Linking
ARTICLES = (
    'a topic is the docid of an article whose background is looked for, without a question '
    "(Background Linking): give lines 'qid<TAB>text', with the title or words of each article"
)

NumberedLines = Iterable[tuple[int, str]]


class FoundTopic(NamedTuple):
    """A topic of a file."""

    line: int  # its first, from 1
    qid: str  # as it is given
    text: str


Topics = Iterator[FoundTopic]


def parse_marked_up(path: StrPath, numbered: NumberedLines) -> Topics:
    """The topics of a file that begins with a tag: `<top>`s, or XML."""
    lines = list(numbered)
    markup = _without_sections('\n'.join(line for _, line in lines))
    first = _TOPIC.search(markup)
    if first is None or first[1].lower() == 'top':
        return _parse_trec(path, lines, markup)
    name = first[1].lower()
    if name == _XML_TARGET:
        name = _XML_QUESTION
    return _XmlReader(path, lines, name).parse(markup)


def _without_sections(markup: str) -> str:
    """Markup without comments, and with what CDATA protects as references; lines stay lines."""
    return replace_sections(escape_cdata(markup), _COMMENT, _COMMENT_END, _only_line_ends)


def _only_line_ends(text: str) -> str:
    return '\n' * text.count('\n')


def _without_references(text: str) -> str:
    """Text with the characters that HTML references mean."""
    return _REFERENCE.sub(lambda match: html.unescape(match[0]), text)


def _parse_trec(path: StrPath, lines: list[tuple[int, str]], markup: str) -> Topics:
    """Each <top> holds <num> ('Number: ' allowed) and <title> ('Topic: ' allowed).

    A field ends with its closing tag or with the next field. If no topic has a title, as in TREC-4
    and the question answering tracks, the description is the query.
    """
    reader = _TrecReader(path, lines)
    position = 0
    for tag in _FIELD.finditer(markup):
        reader.read_text(markup[position : tag.start()])
        position = tag.end()
        reader.read_tag(_Tag(tag[2].lower(), is_closing=bool(tag[1])))
    reader.read_text(markup[position:])
    reader.finish()
    have_titles = any(topic.has_query for topic in reader.topics)
    for topic in reader.topics:
        yield topic.found(path, have_titles)


class _Tag(NamedTuple):
    """A tag: its name in small letters, and whether it closes a field."""

    name: str
    is_closing: bool

    def __str__(self) -> str:
        return f'</{self.name}>' if self.is_closing else f'<{self.name}>'


@dataclass
class _TrecTopic:
    """A <top>: its first line, and its fields as written."""

    line: int
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def has_query(self) -> bool:
        """Whether it has a title or a query."""
        return any(name in self.fields for name in _QUERIES)

    def found(self, path: StrPath, have_titles: bool) -> FoundTopic:
        """The topic. Raises InputError if it has no number or no text."""
        number = self.fields.get(_NUMBER, '').strip()
        qid = _NIST_NUMBER.sub('', number, count=1).strip()
        names = _QUERIES if have_titles else (_DESCRIPTION,)
        texts = [self.fields[name] for name in names if name in self.fields]
        if not texts and _ARTICLE in self.fields:
            raise InputError.at(path, self.line, ARTICLES)
        if not qid or not texts:
            raise InputError.at(path, self.line, 'a <top> without <num> or <title>')
        text = texts[0].strip()
        for label in ('Topic:', 'Description:'):
            text = text.removeprefix(label)
        return FoundTopic(self.line, qid, ' '.join(_without_references(text).split()))


class _TrecReader:
    """The part of a file of TREC topics that has been read.

    `_topic` is the open <top>, None outside of one; `_field` is the field that is open, '' between
    fields, and `_text` its text so far.
    """

    def __init__(self, path: StrPath, lines: list[tuple[int, str]]) -> None:
        self.topics: list[_TrecTopic] = []
        self._path = path
        self._lines = lines
        self._row = 0  # in `lines`, of what is read
        self._topic: _TrecTopic | None = None
        self._field = ''
        self._text = ''

    def read_text(self, text: str) -> None:
        """Take the text between two tags. Raises InputError for text outside the fields."""
        self._text = text
        if self._topic is None or not self._field:
            self._refuse_text(text)
        elif self._field in (*_KEPT_FIELDS, _DESCRIPTION, _ARTICLE):
            self._topic.fields.setdefault(self._field, text)
        self._row += text.count('\n')

    def _refuse_text(self, text: str) -> None:
        outside = visible_text(text) if text.strip() else ''
        if not outside:
            return
        where = '<top> … </top>' if self._topic is None else 'the fields of a <top>'
        blank_lines = text[: -len(text.lstrip())].count('\n')
        number, _ = self._lines[self._row + blank_lines]
        raise InputError.at(self._path, number, f'text outside {where}: {outside[:_SHOWN]!r}')

    def read_tag(self, tag: _Tag) -> None:
        """Take a tag. Raises InputError for a tag that is not allowed there."""
        number, _ = self._lines[self._row]
        problem = self._problem(tag)
        if problem:
            raise InputError.at(self._path, number, problem)
        if tag.name == 'top':
            self.finish()
            self._topic = None if tag.is_closing else _TrecTopic(number)
            self._field = ''
        elif self._topic is not None and not tag.is_closing:
            self._field = tag.name
        elif tag.name == self._field and tag.name in _KEPT_FIELDS:
            self._field = ''

    def _problem(self, tag: _Tag) -> str | None:
        """Why a tag is wrong at its position; None if nothing is."""
        if self._topic is None:
            is_wrong = tag.name in (_NUMBER, 'title') or (tag.is_closing and tag.name == 'top')
            return f'{tag} outside <top> … </top>' if is_wrong else None
        if tag.name in _KEPT_FIELDS and tag.name in self._topic.fields and not tag.is_closing:
            return f'a <top> with two <{tag.name}>: is </top> missing between them?'
        if self._field in _KEPT_FIELDS and not self._may_end_field(tag):
            return f'the tag {tag} inside a <{self._field}>: leave it out'
        return None

    def _may_end_field(self, tag: _Tag) -> bool:
        """Whether a tag can follow the text of the field that is open."""
        if tag.name == 'top':
            return True
        if tag.is_closing:
            return tag.name == self._field
        is_known = tag.name in (*_KEPT_FIELDS, *_OTHER_FIELDS)
        begins_line = not self._text.rpartition('\n')[2].strip()
        return is_known or begins_line or self._field == _NUMBER

    def finish(self) -> None:
        """Keep the topic that is open, if one is."""
        if self._topic is not None:
            self.topics.append(self._topic)


@dataclass
class _XmlTopic:
    """A topic of XML: where it begins, its attributes, its fields, and all of its text.

    `target` is what a series of questions is about, '' elsewhere.
    """

    line: int
    attributes: Mapping[str, str]
    target: str = ''
    fields: dict[str, str] = field(default_factory=dict)
    text: str = ''


class _XmlReader:
    """Reads topics of XML: `<topic number="1"> <query>…</query> … </topic>`.

    The number is an attribute or a field. Files of several years may be concatenated.

    A topic of Temporal Summarization is an <event>, one of the Session track a <session>, one of
    question answering since 2004 a <q>. Such a question is understood only with the target of its
    series (overview of TREC 2004's track). So its text begins with the target.
    """

    def __init__(self, path: StrPath, lines: list[tuple[int, str]], name: str) -> None:
        self._path = path
        self._lines = lines
        self._name = name  # of the elements that are topics
        self._topics: list[_XmlTopic] = []
        self._topic: _XmlTopic | None = None
        self._target = ''
        self._open_fields: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._read_text

    def parse(self, markup: str) -> Topics:
        """The topics. Raises InputError for anything but XML, and for text outside the topics."""
        markup = _DECLARATIONS.sub(lambda match: _only_line_ends(match[0]), markup)
        markup = _NO_XML.sub(lambda match: escape(html.unescape(match[0])), markup)
        try:
            self._parser.Parse(f'<file>{markup}</file>', True)
        except expat.ExpatError as error:
            row = min(error.lineno, len(self._lines)) - 1
            problem = f'not XML: {expat.ErrorString(error.code)}'
            raise InputError.at(self._path, self._lines[row][0], problem) from error
        for topic in self._topics:
            yield self._found(topic)

    def _line(self) -> int:
        number, _ = self._lines[self._parser.CurrentLineNumber - 1]
        return number

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = name.lower()
        values = {key.lower(): value for key, value in attributes.items()}
        if self._topic is not None:
            self._open_fields.append(name)
            if len(self._open_fields) == 1:
                self._open_field(self._topic, name)
        elif name == self._name:
            self._topic = _XmlTopic(self._line(), values, self._target)
        elif name == _XML_TARGET:
            self._target = values.get('text', '')

    def _open_field(self, topic: _XmlTopic, name: str) -> None:
        """Begin a field of a topic."""
        if name in topic.fields and name in (*_XML_NUMBERS, *_XML_QUERIES):
            problem = (
                f'a <{self._name}> with two <{name}>: is </{self._name}> missing between them?'
            )
            raise InputError.at(self._path, self._line(), problem)
        topic.fields.setdefault(name, '')

    def _end(self, name: str) -> None:
        if self._open_fields:
            self._open_fields.pop()
            self._read_text(' ')
        elif self._topic is not None:
            self._topics.append(self._topic)
            self._topic = None

    def _read_text(self, text: str) -> None:
        topic = self._topic
        if topic is not None:
            name = self._open_fields[0] if self._open_fields else ''
            if name:
                topic.fields[name] += text
            if name not in _XML_NUMBERS:
                topic.text += text
        elif text.strip():
            blank_lines = text[: -len(text.lstrip())].count('\n')
            number, _ = self._lines[self._parser.CurrentLineNumber - 1 + blank_lines]
            outside = ' '.join(text.split())[:_SHOWN]
            where = f'<{self._name}> … </{self._name}>'
            raise InputError.at(self._path, number, f'text outside {where}: {outside!r}')

    def _found(self, topic: _XmlTopic) -> FoundTopic:
        """A topic. Raises InputError for one without a number or a query."""
        qid = _first_of(topic.attributes, _XML_NUMBERS) or _first_of(topic.fields, _XML_NUMBERS)
        if not qid.strip():
            raise InputError.at(self._path, topic.line, f'a <{self._name}> without a number')
        fields = _XML_QUERIES_OF.get(self._name)
        query = _question(topic, fields)
        if query is None:
            expected = ' or '.join(f'<{name}>' for name in fields or ('title', 'query'))
            problem = f"topic '{qid.strip()}' has no {expected}"
            raise InputError.at(self._path, topic.line, problem)
        return FoundTopic(topic.line, qid.strip(), ' '.join(query.split()))


def _question(topic: _XmlTopic, fields: tuple[str, ...] | None) -> str | None:
    """The question of a topic; None for a topic without one.

    `fields` are those that can hold it; None: this depends on what the topic has.
    """
    names = fields or _XML_QUERIES
    if any(name in topic.fields for name in names):
        return _first_of(topic.fields, names)
    if fields:
        return None
    if topic.target:
        is_other = topic.text.strip().lower() in ('', _XML_OTHER)
        return topic.target if is_other else f'{topic.target}: {topic.text}'
    if _XML_ENTITY in topic.fields:
        return topic.fields.get(_XML_NARRATIVE)
    if _XML_NAME in topic.attributes:
        return topic.attributes[_XML_NAME]
    has_prose = any(name in topic.fields for name in _XML_PROSE)
    return None if has_prose else topic.text


def _first_of(values: Mapping[str, str], names: tuple[str, ...]) -> str:
    """The value of the first of these names that there is; '' if there is none."""
    for name in names:
        if name in values:
            return values[name]
    return ''
