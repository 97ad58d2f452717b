"""Texts as people read them: clipped, harmless, with what two texts share marked."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from operator import itemgetter
from typing import TypeAlias

from krag_eval.core.errors import InvalidInput

#: A stretch of text, and whether it is highlighted: 0 if not, or what for.
Fragment: TypeAlias = tuple[str, int]
SHARED, DIFFERENT = 1, 2

#: Characters of a text that are looked at; what lies beyond is not shown, nor highlighted.
EXAMINED = 20_000

_ELLIPSIS = "…"
#: What would act instead of showing: control characters, the twelve bidi controls, lone surrogates,
#: byte order mark, deprecated and interlinear formatting, invisible tags, noncharacters.
ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u206a-\u206f\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
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
    return harmless(_SPACE.sub(" ", text))


def harmless(text: str) -> str:
    """Return text with whatever would act instead of showing spelled out, tabs and lines too."""
    return text if text.isprintable() else ACTING.sub(_escaped, text)


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
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int, *, to_the_right: bool = False) -> str:
    """Fill a text with spaces to so many columns of a terminal.

    >>> padded("지표", 6), padded("지표", 6, to_the_right=True)
    ('지표  ', '  지표')
    """
    space = " " * (width - width_of(text))
    return space + text if to_the_right else text + space


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
    shown = text.lstrip()
    return f"{text[: len(text) - len(shown)]}{_ISOLATE}{shown}{_POP}"


class Marked(str):
    """Text that is ready to show as it is, with highlights between noncharacters."""


OPEN, CLOSE, OPEN_DIFFERENT, CLOSE_DIFFERENT = "\ufdd0\ufdd1\ufdd2\ufdd3"
_SIGNS = {0: ("", ""), SHARED: (OPEN, CLOSE), DIFFERENT: (OPEN_DIFFERENT, CLOSE_DIFFERENT)}


@dataclass(frozen=True)
class Excerpt:
    """The part of a text that is looked at, and the places in it to be highlighted.

    Attributes:
        text: Its beginning, in NFC; of many marks stacked on one letter, eight.
        spans: What to highlight, in order.
        cut: Whether the text went on.
        different: What to highlight, in order, because another text says something else there.
    """

    text: str
    spans: Spans = ()
    cut: bool = False
    different: Spans = ()

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

    def marked(self, width: int | None = None) -> Marked:
        """Return what fits into so many columns, or all of it, with its highlights."""
        parts = self.fragments if width is None else self.clipped(width)
        return Marked("".join(text.join(_SIGNS[mark]) for text, mark in parts if text))

    def clipped(self, width: int) -> list[Fragment]:
        """Return what fits into so many columns, around a highlight, ready to show.

        That is the first of what is different, else the longest.
        """
        start = self._start(width)
        # A long text of characters that take no columns must not all be shown.
        stop = min(len(self.text), start + 4 * width + 100)
        room = width - (start > 0)
        pieces = [(visible(part), marked) for part, marked in self._segments(start, stop)]
        whole = stop == len(self.text) and not self.cut
        if not (whole and sum(width_of(part) for part, _ in pieces) <= room):
            pieces = [*_fitting(pieces, room - 1), (_ELLIPSIS, 0)]
        return [(_ELLIPSIS, 0), *pieces] if start else pieces

    def _start(self, width: int) -> int:
        """Return where to begin: at the start, unless that highlight would not be seen."""
        spans = self.different[:1] or self.spans
        begin, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
        room = width - bool(self.different)  # the last column may be that of an ellipsis
        if width_of(self.text[:end]) <= room or width_of(self.text[:begin]) <= width // 2:
            return 0
        earliest = max(0, begin - width // 4)
        space = _SPACE.search(self.text, earliest, begin)
        return space.end() if space else earliest

    def _segments(self, start: int, stop: int) -> Iterator[Fragment]:
        shared = (at for at in chain(*self.spans) if not _within(at, self.different))
        edges = {at for at in (*shared, *chain(*self.different)) if start < at < stop}
        for begin, end in pairwise(sorted({start, stop, *edges})):
            is_different = _within(begin, self.different)
            mark = DIFFERENT if is_different else SHARED if _within(begin, self.spans) else 0
            yield self.text[begin:end], mark


def _fitting(pieces: Iterable[Fragment], room: int) -> list[Fragment]:
    """Return what fits into so many columns."""
    from rich.cells import get_character_cell_size

    kept: list[Fragment] = []
    for text, marked in pieces:
        end = len(text)
        if text.isascii():  # most are, and a page has millions of characters
            end = min(end, max(room, 0))
            room -= len(text)
        else:
            for position, character in enumerate(text):
                room -= get_character_cell_size(character)
                if room < 0:
                    end = position
                    break
        if room < 0:
            return [*kept, (text[:end].rstrip(), marked)]
        kept.append((text, marked))
    return kept


#: Places in a text: where each begins, and where it ends.
Spans: TypeAlias = tuple[tuple[int, int], ...]

# Shorter runs agree by chance: "of the", "in a".
_SHORTEST_RUN, _SHORTEST_RUN_OF_LETTERS = 3, 7
_LETTER = re.compile(r"\d+|[^\W\d_]")  # of a number no part is marked alone
#: Scripts written without spaces, where a word has no visible end: each character is a token.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


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
    shortest = _SHORTEST_RUN_OF_LETTERS if by_letters else _SHORTEST_RUN
    size = min(shortest, *(len(_words(token, text)) for text in (first, second)))
    if size == 0:
        return ()
    runs, of_first = _runs(token, first, size)
    shared = of_first & _runs(token, second, size)[1]
    if not shared:
        return ()
    return _spans([run in shared for run in runs], size, list(token.finditer(first)))


@lru_cache(64)  # a text is held against several others, one after the other, and they against it
def _words(token: re.Pattern[str], text: str) -> list[str]:
    if text.isascii():
        return token.findall(text.lower())
    return [word.casefold() for word in token.findall(text)]


@lru_cache(64)
def _runs(
    token: re.Pattern[str], text: str, size: int
) -> tuple[list[tuple[str, ...]], frozenset[tuple[str, ...]]]:
    words = _words(token, text)
    runs = list(zip(*(words[i:] for i in range(size)), strict=False))
    return runs, frozenset(runs)


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


def _within(place: int, spans: Spans) -> bool:
    begun = bisect_right(spans, place, key=itemgetter(0))
    return begun > 0 and place < spans[begun - 1][1]


def said_at(text: str, said: str, spans: Spans, *, by_letters: bool = False) -> Spans:
    """Return where a text says something, whatever stands between its letters and digits.

    Of several places, that is the first that does not lie in a stretch that another text shares, if
    possible at the end of one. If all together are nowhere, each of the words is looked for.

    Args:
        text: The text.
        said: Words or numbers, as they are compared.
        spans: The stretches of the text that the other one shares.
        by_letters: Whether it may stand within a word.

    >>> text = "2024: in 2024, 1,200 or 3"
    >>> [text[start:stop] for start, stop in said_at(text, "1200 3", ())]
    ['1,200', '3']
    >>> said_at(text, "2024", ((0, 8),))
    ((9, 13),)
    """
    for several in ([said], said.split()):
        found = []
        for one in several:
            some = _says(text, one, r"\d" if by_letters else r"\w")
            shared = [at for at in some if any(a <= at[0] and at[1] <= b for a, b in spans)]
            some.sort(key=lambda at: (at in shared, not _within(at[0], spans)))
            found += some[:1]
        if found:
            return united(found)
    return ()


def _says(text: str, said: str, edge: str) -> list[tuple[int, int]]:
    letters = r"[\W_]*".join(map(re.escape, filter(str.isalnum, said)))
    # Not between two digits, or letters: 일 may follow 3, but 3 not 1.
    alone = rf"(?<!{edge}(?={edge})){letters}(?!(?<={edge}){edge})"
    places = re.finditer(alone, text, re.IGNORECASE)
    return [place.span() for place in places if letters]


def whole_percent(share: float) -> str:
    """Return a share in percent, rounded down to what no larger share is taken for.

    >>> whole_percent(0.92), whole_percent(0.9999), whole_percent(1.0), whole_percent(0.003)
    ('92', '99', '100', '0.3')
    """
    hundredths = math.floor(round(share * 100, 6))
    return str(hundredths) if hundredths or not share else f"{share * 100:.1g}"
