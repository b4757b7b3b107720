"""The date that a file states as its own: in its path, or in what PDF and Office store."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from datetime import date
from pathlib import PurePosixPath
from typing import IO, Any

# Of a document, as mail and the front matter of notes have it.
DATE = 'date'
_BEGINS_WITH_DAY = re.compile(r'(\d{4})-(\d{2})-(\d{2})(?!\d)')
_YEAR = re.compile(r'(?<!\d)(?:19|20)\d\d(?!\d)')
# 2025-07-14, 2025_07_14, 20250714, 2025-07 or 2025.
_DATE_IN_PATH = re.compile(
    r'(?<!\d)(?P<year>(?:19|20)\d\d)'
    r'(?:(?P<sign>[-_]?)(?P<month>\d\d)(?:(?P=sign)(?P<day>\d\d))?)?(?!\d)'
)
_OF_PDF = re.compile(r'(?:D:)?(\d{4})(\d{2})(\d{2})')
_MODIFIED = re.compile(
    rb'<(?:\w{1,20}:)?modified\b[^>]{0,200}>\s{0,20}(\d{4})-(\d{2})-(\d{2})(T[\d:]{8})?'
)
# The days of the templates with which python-docx and python-pptx begin every file.
_OF_TEMPLATES = (b'T23:15:00 2013-12-23', b'T09:14:16 2013-01-27')
_PROPERTIES = 'docProps/core.xml'
_MOST_PROPERTIES = 1 << 20  # bytes
# Earlier dates come from a clock that was not set: there was neither PDF nor Word for Windows.
_FIRST_YEAR = 1989


def day_of_name(name: str) -> str:
    """The day with which the name of a file begins, as a diary's may; '' for none."""
    return _iso_day(_BEGINS_WITH_DAY.match(name))


def date_of_path(path: str) -> str:
    """The day, month or year that the path of a file has, as precise as it is; '' for none.

    The file's name comes before its folders: '2025-07.md' is of '2025-07', and
    'bills 2024/boiler.md' of '2024'. A name with several years says nothing.
    """
    file = PurePosixPath(path.removesuffix('.gz'))
    day = day_of_name(file.name)
    if day:
        return day
    for part in (file.stem, *reversed(file.parts[:-1])):
        dates = list(filter(None, map(_path_date, _DATE_IN_PATH.finditer(part))))
        years = {stated[:4] for stated in dates}
        if len(years) > 1:
            return ''
        if dates:
            return max(dates, key=len)
    return ''


def _path_date(match: re.Match[str]) -> str:
    """A date of a path: the year alone where the calendar has no such month or day.

    '' for a number of six or eight digits that is no day.
    """
    year = match['year']
    month = match['month']
    day = match['day']
    is_number = match['sign'] == ''
    try:
        if day:
            return date(int(year), int(month), int(day)).isoformat()
        if month and not is_number:
            return date(int(year), int(month), 1).isoformat()[: len('2025-07')]
    except ValueError:
        pass
    return '' if is_number and month else year


def title_with_year(title: str, path: str) -> str:
    """A title with the year that the path of its file has, where the title lacks it.

    `Minutes` of 'club/2025-11.md' is 'Minutes (2025-11)', and 'Boiler' of 'bills 2024/boiler.md' is
    'Boiler (bills 2024)'. A document without a title is called by its file's name.
    """
    file = PurePosixPath(path.removesuffix('.gz'))
    for part in (file.stem, *reversed(file.parts[:-1])):
        years = _YEAR.findall(part)
        if not years:
            continue
        title = title or file.stem
        if all(year in title for year in years):
            return title
        return f'{title} ({part})'
    return title


def name_date(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fields with the name `date` for `Date`, `DATE` or the like.

    If `date` is among them already, all stay as they are; of several others, the first one is it.
    """
    dates = [name for name in fields if name.casefold() == DATE]
    if not dates or DATE in dates:
        return fields
    return {DATE if name == dates[0] else name: value for name, value in fields.items()}


def day_of_pdf(stated: str) -> str:
    """The day of a date as PDF has them, 'D:20240503101500Z'; '' for none."""
    return _iso_day(_OF_PDF.match(stated))


def day_of_office(stream: IO[bytes]) -> str:
    """The day on which a Word, PowerPoint or Excel file was last saved; '' if it says none."""
    try:
        with zipfile.ZipFile(stream) as archive, archive.open(_PROPERTIES) as properties:
            content = properties.read(_MOST_PROPERTIES)
    except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
        return ''
    finally:
        stream.seek(0)
    modified = _MODIFIED.search(content)
    if modified is None:
        return ''
    time_and_day = b'%s %s-%s-%s' % (modified[4] or b'', *modified.groups()[:3])
    return '' if time_and_day in _OF_TEMPLATES else _iso_day(modified)


def _iso_day(match: re.Match[str] | re.Match[bytes] | None) -> str:
    """The day of a year, a month and a day, as an ISO date; '' for none of the calendar."""
    if match is None or int(match[1]) < _FIRST_YEAR:
        return ''
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).isoformat()
    except ValueError:
        return ''
