"""Texts as people read them: clipped, escaped, in columns, with what two texts share marked."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from krag_eval.errors import InvalidInput

#: A stretch of text, and whether it is highlighted.
Fragment: TypeAlias = tuple[str, bool]

#: Characters of a text that are looked at; what lies beyond is not shown, nor highlighted.
EXAMINED = 20_000

_HTML_WIDTH = 400
_TITLE_WIDTH = 300
_ELLIPSIS = "…"
# What would act instead of showing: control characters, the twelve bidi controls, lone surrogates,
# byte order mark, deprecated and interlinear formatting, invisible tags, noncharacters.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u206a-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"\s+")
# Commas that are not inside parentheses.
_COMMA = re.compile(r",(?![^()]*\))")
# Marks stacked on one letter beyond what any language writes.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_STACKED = re.compile(f"([{_MARKS}]{{8}})[{_MARKS}]+")
_ISOLATE, _POP = "\u2068", "\u2069"


def name_and_settings(argument: str, spelled: str) -> tuple[str, dict[str, str]]:
    """Read ``name(setting=value, …)``; text that is not of this form is a name as it is.

    Args:
        argument: The argument it came in.
        spelled: The text.

    Raises:
        InvalidInput: If a setting is given twice.

    >>> name_and_settings("matcher", "rougeL(statistic=recall, stemmer=yes)")
    ('rougeL', {'statistic': 'recall', 'stemmer': 'yes'})
    >>> name_and_settings("matcher", "coverage(tokenizer=auto(words,letters))")
    ('coverage', {'tokenizer': 'auto(words,letters)'})
    >>> name_and_settings("metrics", "ndcg"), name_and_settings("matcher", "text(")
    (('ndcg', {}), ('text(', {}))
    """
    name, opening, rest = spelled.partition("(")
    if not opening or not rest.endswith(")"):
        return spelled, {}
    settings: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in _COMMA.split(rest[:-1]))):
        setting, _, value = (side.strip() for side in part.partition("="))
        if setting in settings:
            raise InvalidInput(argument, f": {setting} is given twice in {spelled}")
        settings[setting] = value
    return name, settings


def visible(text: str) -> str:
    r"""Return text on one line, with whatever would act instead of showing spelled out.

    Control characters and bidi controls become escapes, white space becomes single spaces. Joiners
    stay: emoji, Persian and the scripts of India need them.

    >>> print(visible("a\x1b[31m\n\n b\u202ec"))
    a\x1b[31m b\u202ec
    """
    if text.isprintable() and "  " not in text:  # nearly all are, and nothing in them acts
        return text
    return _ACTING.sub(_escaped, _SPACE.sub(" ", text))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def width_of(text: str) -> int:
    """Return the columns a text takes in a terminal: two for Hangul, Han and emoji.

    >>> width_of("서울 RAG")
    8
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def padded(text: str, width: int, *, to_the_right: bool = False) -> str:
    """Fill a text with spaces to so many columns of a terminal.

    >>> padded("지표", 6), padded("지표", 6, to_the_right=True)
    ('지표  ', '  지표')
    """
    space = " " * (width - width_of(text))
    return space + text if to_the_right else text + space


@lru_cache(1 << 16)
def _width(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    # Medial vowels and final consonants join the syllable that began before them.
    joins = "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff"
    return 0 if joins or unicodedata.category(character) in ("Mn", "Me", "Cf") else 1


def fitted(text: str, width: int) -> str:
    """Return the beginning of a text, harmless and at most so many columns wide.

    >>> fitted("The library opens at nine.", 12)
    'The library…'
    """
    return "".join(part for part, _ in Excerpt.of(text).clipped(width))


def isolated(text: str) -> str:
    """Return text whose reading direction cannot spill over to what stands beside it."""
    if text.isascii() or not any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text):
        return text
    return f"{_ISOLATE}{text}{_POP}"


@dataclass(frozen=True)
class Excerpt:
    """The part of a text that is looked at, and the places in it to be highlighted.

    Attributes:
        text: Its beginning, in NFC; of many marks stacked on one letter, eight.
        spans: What to highlight, in order.
        cut: Whether the text went on.
    """

    text: str
    spans: Spans = ()
    cut: bool = False

    @classmethod
    def of(cls, text: str, *, whole: bool = False) -> Excerpt:
        """Take the beginning of a text, where a longer one costs no more, or all of it."""
        size = len(text) if whole else EXAMINED
        start = text[:size].lstrip()
        if not start.isascii():
            start = _STACKED.sub(r"\1", unicodedata.normalize("NFC", start))
        return cls(start, cut=len(text) > size)

    @property
    def fragments(self) -> list[Fragment]:
        """All of it, ready to show."""
        return [(visible(part), marked) for part, marked in self._segments(0, len(self.text))]

    def clipped(self, width: int) -> list[Fragment]:
        """Return what fits into so many columns, around the longest highlight, ready to show."""
        start = self._start(width)
        # A long text of characters that take no columns must not all be shown.
        stop = min(len(self.text), start + 4 * width + 100)
        room = width - (start > 0)
        pieces = [(visible(part), marked) for part, marked in self._segments(start, stop)]
        whole = stop == len(self.text) and not self.cut
        if not (whole and sum(width_of(part) for part, _ in pieces) <= room):
            pieces = [*_fitting(pieces, room - 1), (_ELLIPSIS, False)]
        return [(_ELLIPSIS, False), *pieces] if start else pieces

    def _start(self, width: int) -> int:
        """Return where to begin: at the start, unless the longest highlight would not be seen."""
        begin, end = max(self.spans, key=lambda span: span[1] - span[0], default=(0, 0))
        if width_of(self.text[:end]) <= width or width_of(self.text[:begin]) <= width // 2:
            return 0
        earliest = max(0, begin - width // 4)
        space = _SPACE.search(self.text, earliest, begin)
        return space.end() if space else earliest

    def _segments(self, start: int, stop: int) -> Iterator[Fragment]:
        place = start
        for begin, end in self.spans:
            begin, end = max(begin, place), min(end, stop)
            if begin < end:
                yield self.text[place:begin], False
                yield self.text[begin:end], True
                place = end
        yield self.text[place:stop], False


def _fitting(pieces: Iterable[Fragment], room: int) -> list[Fragment]:
    """Return what fits into so many columns."""
    kept: list[Fragment] = []
    for text, marked in pieces:
        end = len(text)
        if text.isascii():  # most are, and a page has millions of characters
            end = min(end, max(room, 0))
            room -= len(text)
        else:
            for position, character in enumerate(text):
                room -= _width(character)
                if room < 0:
                    end = position
                    break
        kept.append((text[:end], marked))
        if room < 0:
            text = kept[-1][0]
            return [*kept[:-1], (text.rstrip(), marked)]
    return kept


@dataclass(frozen=True)
class Row:
    """One thing told: a few short cells, what stands dimly beside them, the texts it is about.

    As text, a brief one is a single line.
    """

    cells: tuple[str, ...]
    texts: tuple[Excerpt, ...] = ()
    aside: str = ""
    brief: bool = False


@dataclass(frozen=True)
class Section:
    """Rows under a heading; ``numeric`` holds the positions of the columns set flush right."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[Row]
    numeric: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class Sheet:
    """All there is to show, in order; texts are whole, or clipped, in a column of that name."""

    title: str
    lines: Sequence[str]
    sections: Sequence[Section] = field(default=())
    whole: bool = False
    text: str = "text"


def as_text(sheet: Sheet, width: int) -> str:
    """Lay a sheet out in lines of at most ``width`` columns; every text on a line of its own."""
    lines = [isolated(fitted(sheet.title, width))]
    lines += [isolated(part) for line in sheet.lines for part in _wrapped(visible(line), width)]
    for section in sheet.sections:
        lines += ["", section.title, *_aligned(section, width, sheet.whole)]
        if section.note:
            lines += _wrapped(section.note, width)
    return "\n".join(line.rstrip() for line in lines)


def _aligned(section: Section, width: int, whole: bool) -> Iterator[str]:
    table = [section.header, *(row.cells for row in section.rows)]
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    indent = 2 * " " + widths[0] * " " + 2 * " "
    for cells, row in zip(table, (None, *section.rows), strict=True):
        filled = [
            padded(cell, size, to_the_right=i in section.numeric)
            for i, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ]
        lines = _row_lines(filled, width)
        yield from lines[:-1]
        yield from _beside(lines[-1], row, len(indent), width)
        if row and row.brief:
            continue
        for excerpt in row.texts if row else ():
            for one in _text_lines(excerpt, max(width - len(indent) - 4, 8), whole):
                yield indent + isolated(one)


def _row_lines(cells: Sequence[str], width: int) -> list[str]:
    """Return the line of a row; the last cell is continued below itself."""
    start = "  " + "".join(f"{cell}  " for cell in cells[:-1])
    room = width - width_of(start)
    if width_of(cells[-1].rstrip()) <= room or room < width // 3:
        return [_cut(start + cells[-1], width)]
    first, *others = _wrapped(cells[-1].rstrip(), room)
    return [start + first, *(" " * width_of(start) + one for one in others)]


def _beside(line: str, row: Row | None, indent: int, width: int) -> list[str]:
    """Return the line of a row and what stands beside it, in a line of its own if it must be."""
    if row is not None and row.brief:
        return [_brief(line, row, width)]
    if row is None or not row.aside:
        return [line]
    aside = isolated(fitted(row.aside, max(width - indent - 2, 8)))
    room = width - width_of(line) - width_of(aside) - 4
    return [f"{line}  [{aside}]"] if room >= 0 else [line, f"{indent * ' '}[{aside}]"]


# Columns that are worth beginning a text in.
_LEAST = 12


def _brief(line: str, row: Row, width: int) -> str:
    """Return the line of a row with what stands beside it and its text, as far as there is room."""
    parts = [(Excerpt.of(f"[{row.aside}]"), 2)] if row.aside else []
    for excerpt, share in [*parts, *((text, 1) for text in row.texts[:1])]:
        room = width - width_of(line) - 4
        if room >= _LEAST:
            line += "  " + isolated(_marked(excerpt.clipped(max(room // share, _LEAST) - 2)))
    return line


def _text_lines(excerpt: Excerpt, width: int, whole: bool) -> list[str]:
    """Return what is shown of a text, in lines of so many columns and two for marks."""
    if not whole:
        return [_marked(excerpt.clipped(width))]
    lines, room = [""], width
    for word in _SPACE.split(_marked(excerpt.fragments)):
        while word:
            between = " " if lines[-1] else ""
            if width_of(word) + len(between) <= room:
                lines[-1] += between + word
                room -= width_of(word) + len(between)
                break
            part = word if width_of(word) <= width else _fitting([(word, False)], width)[0][0]
            lines.append(part)
            word, room = word[len(part) :], width - width_of(part)
    return [line for line in lines if line] or [""]


def _marked(fragments: Iterable[Fragment]) -> str:
    return "".join(f"«{text}»" if marked else text for text, marked in fragments)


def _cut(line: str, width: int) -> str:
    """Cut a line that is too wide."""
    line = line.rstrip()
    return (
        line
        if width_of(line) <= width
        else "".join(t for t, _ in _fitting([(line, False)], width - 1)) + _ELLIPSIS
    )


def _wrapped(line: str, width: int) -> list[str]:
    """Break a line between its parts, or its words; what is too long for a line is cut."""
    between = " | " if " | " in line else " "
    lines: list[str] = []
    for part in line.split(between):
        if lines and width_of(lines[-1] + between + part) <= width:
            lines[-1] += between + part
        else:
            lines.append(_cut(part, width))
    return lines


def as_html(sheet: Sheet) -> str:
    """Lay a sheet out as an HTML fragment: no script, no style sheet, nothing unescaped."""
    parts = [
        '<div style="max-width:72em;overflow-x:auto">',
        f'<p dir="auto" style="{_WRAP}"><strong>{_escape(fitted(sheet.title, _TITLE_WIDTH))}'
        "</strong></p>",
        *(
            f'<p style="margin:0.2em 0;{_WRAP}">{_escape(visible(line))}</p>'
            for line in sheet.lines
        ),
        *(_html_table(section, sheet.text, sheet.whole) for section in sheet.sections),
        "</div>",
    ]
    return "".join(parts)


# A word of any length breaks inside its box, and marks stacked on a letter stay within it.
_WRAP = "white-space:normal;overflow-wrap:anywhere;overflow:hidden"
_CELL = "text-align:left;vertical-align:top;padding:0.3em 0.6em"
_MARK = "background:#ffe08a;color:#000"


def _html_table(section: Section, text: str, whole: bool) -> str:
    header = "".join(
        f'<th style="{_CELL}">{_escape(name)}</th>' for name in (*section.header, text)
    )
    rows = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}">{_escape(visible(cell))}</td>' for cell in row.cells[:-1])
        + f'<td style="{_CELL}">{_escape(visible(row.cells[-1]))}{_html_aside(row.aside)}</td>'
        + f'<td style="{_CELL};width:60%">'
        + "".join(_html_text(one, whole) for one in row.texts)
        + "</td></tr>"
        for row in section.rows
    )
    note = f"<p><small>{_escape(section.note)}</small></p>" if section.note else ""
    return (
        f'<p style="margin:0.8em 0 0.2em"><strong>{_escape(section.title)}</strong></p>'
        # Jupyter makes all columns equally wide unless told otherwise.
        f'<table style="width:100%;table-layout:auto"><thead><tr>{header}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f"{note}"
    )


def _html_aside(aside: str) -> str:
    if not aside:
        return ""
    shown = _escape(fitted(aside, _TITLE_WIDTH))
    return f'<div dir="auto" style="opacity:0.65;{_WRAP}"><small>{shown}</small></div>'


def _html_text(excerpt: Excerpt, whole: bool) -> str:
    shown = "".join(
        f'<mark style="{_MARK}">{_escape(part)}</mark>' if marked else _escape(part)
        for part, marked in (excerpt.fragments if whole else excerpt.clipped(_HTML_WIDTH))
    )
    return f'<div dir="auto" style="text-align:start;{_WRAP}">{shown}</div>'


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


#: Places in a text: where each begins, and where it ends.
Spans: TypeAlias = tuple[tuple[int, int], ...]

# Shorter runs agree by chance: "of the", "in a".
_SHORTEST_RUN, _SHORTEST_RUN_OF_LETTERS = 3, 7
_LETTER = re.compile(r"[^\W_]")
# Scripts written without spaces, where a word has no visible end: each character is a token.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def agreement(first: str, second: str, *, by_letters: bool = False) -> Spans:
    """Return where the first of two texts shares runs of three words or more with the second.

    Of a text with fewer words, all of them must be there. Case and punctuation do not matter. The
    cost grows with the length of the texts, not with its square.

    Args:
        first: A text.
        second: Another.
        by_letters: Whether runs are of seven letters or more, whatever the spaces between them.

    >>> text = "Books may be kept for four weeks."
    >>> [text[start:stop] for start, stop in agreement(text, "All books may be kept")]
    ['Books may be kept']
    """
    token = _LETTER if by_letters else _TOKEN
    words = [_words(token, text) for text in (first, second)]
    size = min(_SHORTEST_RUN_OF_LETTERS if by_letters else _SHORTEST_RUN, *map(len, words))
    if size == 0:
        return ()
    runs, others = (zip(*(one[i:] for i in range(size)), strict=False) for one in words)
    of_first = list(runs)
    shared = set(of_first).intersection(others)
    if not shared:
        return ()
    return _spans([run in shared for run in of_first], size, list(token.finditer(first)))


@lru_cache(64)  # a text is held against several others, one after the other
def _words(token: re.Pattern[str], text: str) -> list[str]:
    return [word.casefold() for word in token.findall(text)]


def _spans(is_shared: list[bool], size: int, tokens: list[re.Match[str]]) -> Spans:
    """Join shared runs that overlap or touch, from their first word to their last."""
    spans: list[tuple[int, int]] = []
    after = -1  # the token after the last run
    for position, shared in enumerate(is_shared):
        if not shared:
            continue
        end = tokens[position + size - 1].end()
        if position <= after:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((tokens[position].start(), end))
        after = position + size
    return tuple(spans)


def united(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return the stretches that lie in any of the spans.

    >>> united([(0, 4), (8, 9), (2, 6)])
    ((0, 6), (8, 9))
    """
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return tuple(joined)


def whole_percent(share: float) -> str:
    """Return a share in percent, rounded down to what no larger share is taken for.

    >>> whole_percent(0.92), whole_percent(0.9999), whole_percent(1.0), whole_percent(0.003)
    ('92', '99', '100', '0.3')
    """
    hundredths = math.floor(round(share * 100, 6))
    return str(hundredths) if hundredths or not share else f"{share * 100:.1g}"
