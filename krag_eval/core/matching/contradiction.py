"""Whether a chunk is another text than the passage it nearly holds.

Ground truth was cut from the corpus, so a right chunk is a copy, perhaps a damaged one. What stands
in the place of the passage's own words is either damage or another text: last year's notice, the
rules of another branch. So the two are laid side by side, and between the stretches that they share
each word that others replace is looked at. It says that this is another text, unless the two are
spellings of one thing: near in letters, one the beginning of the other, alike but for a Korean
ending, or the same amount, date, time or unit (``spelling.same_thing``).

What was left out or put in replaces nothing, and counts only where it is a negation, an exception
or a part of an amount. What was cut off at an end counts never, also inside a number. Where a
document has the passage more than once, the place that is most like it counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain, pairwise, product
from typing import Literal, NamedTuple, TypeAlias
from unicodedata import decimal, normalize

import numpy as np

from krag_eval.core.matching.english import COUNTS
from krag_eval.core.matching.joins import BoolArray, IntArray
from krag_eval.core.matching.korean import MYRIADS
from krag_eval.core.matching.numbering import TokenNumbers
from krag_eval.core.matching.plaintext import plain
from krag_eval.core.matching.spelling import (
    are_others,
    is_aside,
    is_unit,
    may_be_spelled,
    same_thing,
    values,
)
from krag_eval.core.matching.tokenizers import readable

Kind: TypeAlias = Literal["number", "negation", "text"]

# Twelve letters of Hangul say about as much as five words, or 28 Latin letters.
_OF_LATIN = 0.43


class _Scale(NamedTuple):
    """What counts in texts of letters or of words.

    Attributes:
        block: Tokens of a stretch that both share, and not by chance.
        at_an_end: The same where the passage begins or ends.
        anchor: Tokens of the longest one, without which two texts are not alike.
        run: Tokens that follow one another in both, by which the place is found.
        replaced: Tokens of the passage that another stretch may replace.
        widened: Tokens of the shared stretches that belong to a word between them.
        extra: Tokens of a negation that one side alone has.
        edge: Tokens at an end of the passage that were replaced; more were cut off.
        beyond: Tokens behind which the last ones may stand: the foot of a page is between.
        reach: How much farther the last word of the passage may stand.
    """

    block: float
    at_an_end: float
    anchor: float
    run: int
    replaced: int
    widened: int
    extra: int
    edge: int
    beyond: int
    reach: int


_LETTERS = _Scale(4.0, 2.0, 8.0, 8, 12, 12, 6, 8, 40, 5)
_WORDS = _Scale(2.0, 1.0, 3.0, 4, 4, 1, 2, 3, 14, 2)

# Tokens of an amount, a date or a time.
_LONGEST_AMOUNT = 16
# Bits of the table that an alignment fills, 16 MiB; longer texts are aligned part by part.
_LARGEST_TABLE = 1 << 27
_PART = 1 << 13

# Particles and endings of Korean, by syllable.
_TAIL = frozenset(
    "은는이가을를의에도으로와과만나까지부터서께랑며고면다요니습았었였겠라러려어아여야해인일임입함기게던든할한합하했될된됩되네죠음데"
)
# What says no, or makes an exception, and what bounds: one closed class for each language.
_NO = re.compile(
    r"\b(?:no|not|never|without|except|excluding|non|neither|nor|cannot|unless|none|nobody|nothing"
    r"|(?<=n[' ’])t|un|only)\b|\b안\b"
)
_NO_KO = re.compile(
    r"않|아니|아닌|이외|못|없|마세|마십|마시오|마라|안[되된됩돼됐]|불가|제외|예외|미만|초과|이상|이하"
)
_BOUND = re.compile(
    r"이상|이하|초과|미만|이내|이전|이후|포함|제외|무상|유상|전액|일부"
    r"|\b(?:before|after|above|below|over|under|more|less|most|least|except|unless|if|only|until"
    r"|increased?|decreased?|rose|fell|up|down|higher|lower|excluding|including)\b"
)
_PREFIXES = frozenset("불비미무부")  # of Sino-Korean words: 가능 and 불가능
_LOOKALIKE = str.maketrans("oliszb", "011528")
_LATIN_TAILS = frozenset(("less", "out"))

# A square metre, a word, a number with its parts, a percent sign; and what says something beside
# words: signs and currencies of numbers, and operators of code.
_TOKEN = re.compile(
    r"((?<=\d)[ck]?m[23](?!\w)|[^\W\d_]+|\d+(?:[.,:/\u2044-]\d+)*|%p?(?![^\W\d_])"
    r"|(?=[-+!=<>&|$€£¥₩\u2212])(?:"
    r"[$€£¥₩](?=\s?[-\d])|(?<=[ (\[:=<>,$€£¥₩])[-+\u2212](?=[$€£¥₩]?\d)|(?<![\w!=])!(?=[^\W\d]|\()"
    r"|(?<=[\w)\]\"' ])(?:<=|>=|==|!=|&&|\|\||\+=|-=|[<>])(?=\s?[\w(\[\"'-])))"
)
_SENTENCE_END = re.compile(r"[.!?\u3002]\s|\n\s*\n")
_PARTS = re.compile(r"\d+")
_MAY_BE_MARKED = re.compile(r"[$€£¥₩<>=!&|\u2212]|[-+][$€£¥₩]?\d|%\W*\Z")


class Difference(NamedTuple):
    """Where a document has something else in the place of a passage's words.

    Attributes:
        kind: ``"number"``, ``"negation"`` or, where other words replace them, ``"text"``.
        passage: The tokens of the passage: the first, and the one after the last.
        document: Those of the document, likewise.
    """

    kind: Kind
    passage: tuple[int, int]
    document: tuple[int, int]


class SaidOtherwise(NamedTuple):
    """The same in words.

    Attributes:
        kind: As of a :class:`Difference`.
        passage: What the passage says there.
        document: What the document says instead; empty if nothing.
    """

    kind: str
    passage: str
    document: str


class Looks(NamedTuple):
    """What is looked at.

    Attributes:
        numbers: Numbers, with their units, signs and currencies.
        negations: Negations, exceptions and bounds.
        words: All other words.
    """

    numbers: bool
    negations: bool
    words: bool

    def at(self, kind: str) -> bool:
        """Return whether differences of a kind count."""
        return {"number": self.numbers, "negation": self.negations}.get(kind, self.words)


class _Stretch(NamedTuple):
    """What both share, or differ in: first tokens of both, and those after the last."""

    start: int
    stop: int
    there: int
    end: int


class Codes(dict[str, str]):
    """One character for each token, the same for equal ones of all texts read together."""

    def __missing__(self, token: str) -> str:
        # Beyond the surrogates; behind a million distinct words all others are one.
        code = self[token] = chr(min(0xE000 + len(self), 0x10FFFF))
        return code

    def of(self, tokens: Iterable[str]) -> str:
        """Return the characters of some tokens."""
        return "".join(map(self.__getitem__, tokens))


class Reading:
    """A text as the guard reads it, whatever the tokenizer of the matcher.

    Attributes:
        text: The text without markup.
        by_letters: Whether tokens are letters, or words; a number with all its parts is one token.
        tokens: The tokens, in lower case.

    >>> reading = Reading("From 3.10. at 09:30, −5 €/kg", False, Codes())
    >>> reading.tokens
    ['from', '3.10', 'at', '9:30', '-', '5', 'kg']
    """

    def __init__(self, text: str, by_letters: bool, codes: Codes) -> None:
        self.text, self.by_letters = readable(plain(text)), by_letters
        self._folded = self.text.casefold()
        if len(self._folded) != len(self.text):
            self.text = self._folded
        self.tokens: list[str] = []
        self._parts = _TOKEN.split(self._folded)  # words, each between what separates them
        words: Iterable[str] = self._parts[1::2]
        if by_letters:
            words = chain.from_iterable(one if one.isalpha() else (one,) for one in words)
        self.tokens = [one if one[0].isalpha() else _number(one) for one in words]
        self._codes = codes

    @cached_property
    def coded(self) -> str:
        """One character for each token."""
        return self._codes.of(self.tokens)

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where each token begins and ends in the text."""
        ends = [*accumulate(map(len, self._parts))]
        places = zip(ends[::2], ends[1::2], strict=False)
        if not self.by_letters:
            return [*places]
        words = zip(self._parts[1::2], places, strict=True)
        return [*chain.from_iterable(
            pairwise(range(start, stop + 1)) if word.isalpha() else [(start, stop)]
            for word, (start, stop) in words
        )]  # fmt: skip

    def begins(self, token: int) -> bool:
        """Return whether a token begins a word."""
        start = self.places[token][0] if token < len(self.tokens) else 0
        return not (start and self._folded[start - 1].isalnum())

    def between(self, start: int, stop: int) -> str:
        """Return the text from one token to the one before another."""
        return self.text[self.places[start][0] : self.places[stop - 1][1]] if start < stop else ""

    def around(self, start: int, stop: int) -> str:
        """Return the same in lower case, with what stands before and behind that is no token."""
        first = self.places[start - 1][1] if start > 0 else 0
        return self._folded[first : self.places[stop][0] if stop < len(self.tokens) else None]

    def words(self, start: int, stop: int) -> tuple[int, int]:
        """Return the tokens of whole words, from one to the one before another."""
        start, stop = max(0, start), min(len(self.tokens), stop)
        least, most = max(0, start - _LONGEST_AMOUNT), min(len(self.tokens), stop + _LONGEST_AMOUNT)
        while start > least and not self.begins(start):
            start -= 1
        while stop < most and not self.begins(stop):
            stop += 1
        return start, stop


class Beside(NamedTuple):
    """What a passage and a document are, laid side by side.

    Attributes:
        difference: What makes the document another text, if anything does.
        share: How much of the passage it has in runs, what both spell in other ways included; 0
            where it is another text.
    """

    difference: Difference | None
    share: float


def laid_beside(
    passage: Reading, document: Reading, looks: Looks, run: int = 1, *, piece: bool = False
) -> Beside:
    """Return what a document has in the place of a passage's words, if it is another text.

    Args:
        passage: The passage.
        document: The document, read likewise.
        looks: What is looked at.
        run: Letters or words in a run.
        piece: Whether the document holds less than half, so that only what lies between the
            stretches that it holds counts, and only where these are close together.

    >>> codes = Codes()
    >>> passage, other, same = (Reading(text, False, codes) for text in (
    ...     "the branch in Seoul opens at 9:30", "The branch in Busan opens at 9:30 every day.",
    ...     "the branch in Seoul opens at 9.30 am"))
    >>> laid_beside(passage, other, Looks(True, True, True))
    Beside(difference=Difference(kind='text', passage=(3, 4), document=(3, 4)), share=0.0)
    >>> laid_beside(passage, same, Looks(True, True, True))
    Beside(difference=None, share=1.0)
    """
    ours, theirs = passage.coded, document.coded
    if ours in theirs:
        return Beside(None, 1.0)
    found = Beside(None, 0.0)
    scale = _LETTERS if passage.by_letters else _WORDS
    spans = _spans(ours, theirs, scale.run) or _spans(ours, theirs, scale.run // 2)
    for start, stop in _windows(len(ours), len(theirs), spans):
        # The foot of a page may stand before the last words.
        window = slice(max(0, start - scale.beyond), min(len(theirs), stop + scale.beyond))
        both = _Alignment(passage, document, window, looks)
        difference = both.difference(piece)
        if difference is None:
            return Beside(None, both.held(run) if both.alike else 0.0)
        found = Beside(difference, 0.0)
    return found


def is_end_of_amounts(passage: Reading, document: Reading) -> bool:
    """Return whether a passage that begins with a number stands only within longer amounts.

    >>> codes = Codes()
    >>> both = (Reading(text, True, codes) for text in ("1000원", "모두 1만 1000원"))
    >>> is_end_of_amounts(*both)
    True
    """
    if not passage.tokens or not _is_number(passage.tokens[0]):
        return False
    ours, theirs = passage.coded, document.coded
    tokens = document.tokens
    places = [one.start() for one in re.finditer(f"(?={re.escape(ours)})", theirs)]
    return all(
        place > 1 and tokens[place - 1] in MYRIADS and _is_number(tokens[place - 2])
        for place in places
    )


def in_words(found: Difference, passage: Reading, document: Reading) -> SaidOtherwise:
    """Return a difference in whole words; of a number with its unit."""
    sides = []
    for reading, (start, stop) in zip((passage, document), found[1:], strict=True):
        # Where nothing stands, between which words; and what says no with what is beside it.
        n = (1 + reading.by_letters) * (found.kind == "negation") if start < stop else 1
        start, stop = reading.words(start - n, stop + n)
        if found.kind == "number" and not any(map(_is_number, reading.tokens[start:stop])):
            start = reading.words(start - 1, stop)[0]  # the number of a unit
        sides.append(" ".join(reading.between(start, stop).split()))
    return SaidOtherwise(found.kind, *sides)


def in_blocks(
    passage: Sequence[str],
    document: Sequence[str],
    spans: Sequence[tuple[int, int]],
    *,
    by_letters: bool,
) -> float:
    """Return how much of a passage stands in a document in however short stretches.

    Args:
        passage: Its tokens.
        document: Those of the document.
        spans: The stretches of the document that the passage shares, ascending.
        by_letters: Whether tokens are letters, or words.

    >>> passage, document = "so the fee is 30 euros".split(), "so the fee was 30 euros".split()
    >>> in_blocks(passage, document, [(0, 3)], by_letters=False)
    0.8333333333333334
    """
    scale, weight = (_LETTERS if by_letters else _WORDS), _weights(passage, by_letters)
    ours, theirs = map(Codes().of, (passage, document))
    shares = [0.0]
    for start, stop in _windows(len(ours), len(theirs), spans):
        shared = _counted(scale, weight, ours, theirs, slice(start, stop))
        shares.append(sum(weight[one.stop] - weight[one.start] for one in shared) / weight[-1])
    return max(shares)


def verbatim(tokens: TokenNumbers, passages: IntArray, documents: IntArray) -> BoolArray:
    """Return whether documents have passages token by token, for pairs of texts.

    >>> tokens = TokenNumbers(np.array([2, 3, 1, 2, 3], np.int32), np.array([2, 3]))
    >>> verbatim(tokens, np.array([0, 1]), np.array([1, 0])).tolist()
    [True, False]
    """
    flat, size = tokens.flat.tobytes(), tokens.flat.itemsize
    stops = np.cumsum(tokens.sizes) * size
    starts = stops - tokens.sizes * size
    passage, document = (
        map(slice, starts[one].tolist(), stops[one].tolist()) for one in (passages, documents)
    )
    pairs = zip(passage, document, strict=True)
    return np.array([_holds(flat[theirs], flat[ours], size) for ours, theirs in pairs], np.bool_)


def is_cut(passage: str, document: str) -> bool:
    """Return whether a document has a passage letter by letter, but for what its ends cut off.

    >>> is_cut("one two three", "zero one two"), is_cut("one two three", "zero one four")
    (True, False)
    """
    if passage in document:
        return True
    half = (len(passage) + 1) // 2
    head, tail = document.rfind(passage[:half]), document.find(passage[-half:])
    return (head >= 0 and passage.startswith(document[head:])) or (
        tail >= 0 and passage.endswith(document[: tail + half])
    )


def may_be_marked(text: str) -> bool:
    """Return whether a text has signs, currencies or operators, which tokens lack."""
    return _MAY_BE_MARKED.search(text) is not None


def _holds(document: bytes, passage: bytes, size: int) -> bool:
    """Return whether one text is within another, each token as so many bytes."""
    at = document.find(passage)
    while at > 0 and at % size:
        at = document.find(passage, at + 1)
    return at >= 0


def _spans(passage: str, document: str, run: int) -> list[tuple[int, int]]:
    """Return the stretches of a document whose runs of tokens the passage has, ascending."""
    run = max(1, min(run, len(passage)))
    runs = {passage[at : at + run] for at in range(len(passage) - run + 1)}
    spans: list[tuple[int, int]] = []
    for at in [at for at in range(len(document) - run + 1) if document[at : at + run] in runs]:
        start = spans.pop()[0] if spans and at <= spans[-1][1] else at
        spans.append((start, at + run))
    return spans


def _windows(size: int, room: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return where in a document a passage may stand, the likeliest place last.

    Args:
        size: Tokens of the passage.
        room: Tokens of the document.
        spans: The stretches that are shared, ascending.
    """
    margin = 8 + size // 3
    places: list[tuple[int, int, int]] = []  # tokens that are shared, first, after the last
    for start, stop in spans:
        if places and stop - places[-1][1] <= size + margin:
            held, first, _ = places.pop()
            places.append((held + stop - start, first, stop))
        else:
            places.append((stop - start, start, stop))
    most = max(places, default=(0,))[0]
    likely = sorted(place for place in places if 2 * place[0] > most)
    # Sentences that others stand between: none holds enough, and none has what another has.
    if len(places) > 1 and most < 0.8 * size and sum(held for held, *_ in places) <= 1.25 * size:
        likely = [(size, places[0][1], places[-1][2])]
    return [(max(0, start - margin), min(room, stop + margin)) for _, start, stop in likely]


def _weights(tokens: Sequence[str], by_letters: bool) -> Sequence[float]:
    """Return how much the tokens before each weigh together."""
    if not by_letters:
        return range(len(tokens) + 1)
    latin = (token.isascii() and token.isalpha() for token in tokens)
    return [*accumulate((_OF_LATIN if one else 1.0 for one in latin), initial=0.0)]


def _equal_blocks(ours: str, theirs: str) -> Iterator[tuple[int, int, int]]:
    """Yield where two sequences are equal: the first tokens, and how many.

    Long ones are aligned part by part, each from where the part before it left both, since the
    table of an alignment grows with both.
    """
    from rapidfuzz.distance import Indel

    start = there = 0
    while start < len(ours) and there < len(theirs):
        is_whole = (len(ours) - start) * (len(theirs) - there) <= _LARGEST_TABLE
        size = max(len(ours), len(theirs)) if is_whole else _PART
        p, w = ours[start : start + size], theirs[there : there + size]
        blocks = [block for block in Indel.opcodes(p, w).as_matching_blocks() if block.size]
        if is_whole or start + size >= len(ours) or there + size >= len(theirs):
            yield from ((start + one.a, there + one.b, one.size) for one in blocks)
            return
        # What stands in the second half may go on otherwise.
        inside = [one for one in blocks if max(one.a, one.b) < _PART // 2] or blocks[:1]
        size = min(inside[-1].size, max(1, _PART // 2 - inside[-1].a)) if inside else 0
        yield from ((start + one.a, there + one.b, one.size) for one in inside[:-1])
        if not inside:
            start, there = start + _PART // 2, there + _PART // 2
            continue
        last = inside[-1]
        yield start + last.a, there + last.b, size
        start, there = start + last.a + size, there + last.b + size


def _counted(
    scale: _Scale, weight: Sequence[float], ours: str, theirs: str, window: slice
) -> list[_Stretch]:
    """Return the stretches that both have, if one of them is long enough to tell."""
    counted: list[_Stretch] = []
    for at, there, n in _equal_blocks(ours, theirs[window]):
        size = weight[at + n] - weight[at]
        least = scale.at_an_end if at == 0 or at + n == len(ours) else scale.block
        if size >= min(least, scale.block, weight[-1]):
            there += window.start
            counted.append(_Stretch(at, at + n, there, there + n))
    longest = max((weight[one.stop] - weight[one.start] for one in counted), default=0.0)
    return counted if longest >= min(scale.anchor, 0.999 * weight[-1]) else []


class _Alignment:
    """A passage beside the part of a document where it may stand."""

    def __init__(self, passage: Reading, document: Reading, window: slice, looks: Looks) -> None:
        self.passage, self.document, self.window = passage, document, window
        self.ours, self.theirs, self.looks = passage.coded, document.coded, looks
        self.by_letters = passage.by_letters
        self.scale = _LETTERS if self.by_letters else _WORDS
        self.weight = _weights(passage.tokens, self.by_letters)
        self.shared: list[_Stretch] = []
        self.alike: list[_Stretch] = []  # what both spell in other ways
        self.doubts: list[Difference] = []
        self.is_scan = False

    def difference(self, piece: bool) -> Difference | None:
        """Return the first thing that makes the document another text."""
        shared = _counted(self.scale, self.weight, self.ours, self.theirs, self.window)
        if not shared or (piece and not self._is_close(shared)):
            return None
        shared = self.shared = self._grown(self._without_strays(shared))
        for one, other in pairwise(shared):
            if not self._slides(one, other) and (found := self._between(one, other)):
                return found
        if len(self.doubts) == 1 and not self.is_scan:
            return self.doubts[0]
        return None if piece else self._at_edges(shared[0], shared[-1])

    def held(self, run: int) -> float:
        """Return the share of the passage in runs of so many tokens, those spelled alike too."""
        sizes = [0, *accumulate(map(len, self.passage.tokens))]
        if not self.by_letters:
            sizes = [*range(len(self.passage.tokens) + 1)]
        runs: list[tuple[int, int, int]] = []
        for start, stop, there, end in sorted([*self.shared, *self.alike]):
            touches = runs and start <= runs[-1][1] and there <= runs[-1][2]
            first = runs.pop()[0] if touches else start
            runs.append((first, stop, end))
        lengths = (sizes[stop] - sizes[start] for start, stop, _ in runs)
        return sum(one for one in lengths if one >= min(run, sizes[-1])) / sizes[-1]

    def _is_close(self, shared: Sequence[_Stretch]) -> bool:
        """Return whether of the passage, from the first stretch to the last, most is shared."""
        held = sum(self._size(one) for one in shared)
        return 2 * held >= self.weight[shared[-1].stop] - self.weight[shared[0].start]

    def _size(self, one: _Stretch) -> float:
        return self.weight[one.stop] - self.weight[one.start]

    def _grown(self, shared: list[_Stretch]) -> list[_Stretch]:
        """Return the stretches, the first and the last one with what is equal beside them."""
        from rapidfuzz.distance import Postfix, Prefix

        first = shared[0]
        n = int(Postfix.similarity(self.ours[: first.start], self.theirs[: first.there]))
        shared = [first._replace(start=first.start - n, there=first.there - n), *shared[1:]]
        last = shared[-1]
        n = int(Prefix.similarity(self.ours[last.stop :], self.theirs[last.end :]))
        return [*shared[:-1], last._replace(stop=last.stop + n, end=last.end + n)]

    def _without_strays(self, shared: list[_Stretch]) -> list[_Stretch]:
        """Drop a first or last word that stands far off by chance, as others replaced it."""

        def is_stray(end: _Stretch, beside: _Stretch) -> bool:
            one, other = sorted((end, beside))
            ours, theirs = other.start - one.stop, other.there - one.end
            is_small = self._size(end) < self.scale.block
            return is_small and theirs > (2 * ours + 2 if ours else self.scale.edge)

        while len(shared) > 1 and is_stray(shared[0], shared[1]):
            shared = shared[1:]
        while len(shared) > 1 and is_stray(shared[-1], shared[-2]):
            shared = shared[:-1]
        return shared

    def _slides(self, one: _Stretch, other: _Stretch) -> bool:
        """Return whether the first or last words stand beside the others after all."""
        first, last = self.ours[: one.stop], self.ours[other.start :]
        if one.stop == other.start:  # the document has something in between
            text, start, stop = self.theirs, one.end, other.there
        elif one.end == other.there:  # the passage has: what begins like the rest was cut off
            text, start, stop = self.ours, one.stop, other.start
        else:
            return False
        return (one.start == 0 and text[max(0, stop - len(first)) : stop] == first) or (
            other.stop == len(self.ours) and text[start : start + len(last)] == last
        )

    def _between(self, one: _Stretch, other: _Stretch) -> Difference | None:
        """Return what was replaced, left out or put in between two stretches."""
        left = min(self.scale.widened, one.stop - one.start)
        right = min(self.scale.widened, other.stop - other.start)
        gap = _Stretch(one.stop - left, other.start + right, one.end - left, other.there + right)
        return self._within(gap)

    def _within(self, gap: _Stretch, *, is_last: bool = False) -> Difference | None:
        stretches = self._stretches(gap)
        for at in stretches:
            kind = self._kind(at) if at.start < at.stop and at.there < at.end else self._extra(at)
            if not kind or not self.looks.at(kind):
                self.is_scan = self.is_scan or (kind is None and self._is_misread(at))
                continue
            found = Difference(kind, at[:2], at[2:])
            if len(stretches) > 1:
                whole = _Stretch(stretches[0].start, stretches[-1].stop,
                                 stretches[0].there, stretches[-1].end)  # fmt: skip
                if max(whole.stop - whole.start, whole.end - whole.there) <= _LONGEST_AMOUNT and (
                    self._is_same_thing(whole)
                ):
                    self.alike.append(gap)
                    return None  # 1.2억 and 1억 2천만
            if is_last or kind != "text" or not self._is_doubtful(at):
                return found
            self.doubts.append(found)
        if stretches and {*stretches} <= {*self.alike}:
            self.alike.append(gap)
        return None

    def _stretches(self, gap: _Stretch) -> list[_Stretch]:
        """Return what is not equal in a gap, neighbours in one, Latin words whole."""
        from rapidfuzz.distance import Levenshtein

        found: list[_Stretch] = []
        ours, theirs = self.ours[gap.start : gap.stop], self.theirs[gap.there : gap.end]
        if len(ours) * len(theirs) > _LARGEST_TABLE:
            return []  # what is as long replaced no word
        for edit in Levenshtein.opcodes(ours, theirs):
            if edit.tag == "equal":
                continue
            i, j, k, m = edit.src_start, edit.src_end, edit.dest_start, edit.dest_end
            at = _Stretch(gap.start + i, gap.start + j, gap.there + k, gap.there + m)
            at = self._whole_latin(at, gap) if self.by_letters else at
            if found and found[-1].stop >= at.start and found[-1].end >= at.there:
                last = found.pop()
                at = _Stretch(
                    last.start, max(at.stop, last.stop), last.there, max(at.end, last.end)
                )
            found.append(at)
        return found

    def _whole_latin(self, at: _Stretch, gap: _Stretch) -> _Stretch:
        """Return a stretch to the ends of the Latin word that it is a part of."""
        tokens, begins = self.passage.tokens, self.passage.begins
        (i, j, k, m), ours, theirs = at, self.ours, self.theirs
        if i == j or k == m:
            return at
        while i > gap.start and k > gap.there and not begins(i) and _is_latin(tokens[i - 1]) and (
            _is_latin(tokens[i]) and ours[i - 1] == theirs[k - 1]
        ):  # fmt: skip
            i, k = i - 1, k - 1
        while j < gap.stop and m < gap.end and not begins(j) and _is_latin(tokens[j]) and (
            _is_latin(tokens[j - 1]) and ours[j] == theirs[m]
        ):  # fmt: skip
            j, m = j + 1, m + 1
        return _Stretch(i, j, k, m)

    def _kind(self, at: _Stretch, edge: str = "") -> Kind | None:
        """Return what kind of other text replaces a stretch, if it does.

        Args:
            at: The stretch, empty on neither side.
            edge: ``"start"`` or ``"end"`` of the passage; with ``" cut"`` if the document is cut
                there, too.
        """
        a, b = self.passage.tokens[at.start : at.stop], self.document.tokens[at.there : at.end]
        if "".join(a) == "".join(b) or (self.by_letters and _misread(a, b)):
            return None
        if any(map(_is_mark, a)) and any(map(_is_mark, b)):
            return "number"
        kind: Kind | None = None
        if not edge and not self._fits(a, b):
            if self._is_other_unit(at):
                return "number"
            # Of what is too long the number counts that stands beside the shared words.
            ends = at._replace(stop=at.start + 1, end=at.there + 1), at._replace(
                start=at.stop - 1, there=at.end - 1)  # fmt: skip
            numbers = [
                at
                for at, pair in zip(ends, ((a[0], b[0]), (a[-1], b[-1])), strict=True)
                if len(b) > len(a) and all(map(_is_number, pair))
            ]
            if not numbers or not self._fits(a, a) or self._is_same_thing(at):
                return None
            return self._kind(numbers[0])
        if self.looks.negations and self._negates(at):
            kind = "negation"
        else:
            kind = self._other_thing(at, a, b, edge)
        return None if kind and self._is_same_thing(at) else kind

    def _other_thing(
        self, at: _Stretch, a: Sequence[str], b: Sequence[str], edge: str
    ) -> Kind | None:
        is_other = self._other_number(a, b, at, edge)
        if is_other is not None:
            return "number" if is_other else None
        words, others = ([one for one in side if not _is_number(one)] for side in (a, b))
        if not words or not others or not self._other_words(words, others, at, edge):
            return None
        return "negation" if not self.looks.words and self._other_bound(at) else "text"

    def _fits(self, ours: Sequence[str], theirs: Sequence[str]) -> bool:
        """Return whether one stretch is short enough for the other to stand in its place."""
        sizes = [_weights(side, self.by_letters)[-1] for side in (ours, theirs)]
        return 0 < sizes[0] <= self.scale.replaced and 0 < sizes[1] <= 2 * sizes[0] + 2

    def _sides(self, at: _Stretch, left: int = 0, right: int = 0) -> tuple[str, str]:
        """Return both texts in lower case, with so many tokens before and behind."""
        i, j, k, m = at
        return (
            self.passage.around(i - left, j + right),
            self.document.around(k - left, m + right),
        )

    def _negates(self, at: _Stretch) -> bool:
        """Return whether one side says no once more than the other, by itself and in its place."""
        return all(len({*map(_count_negations, self._sides(at, n, n))}) > 1 for n in (0, 2))

    def _other_bound(self, at: _Stretch) -> bool:
        bounds = [sorted(_BOUND.findall(side)) for side in self._sides(at, 2, 2)]
        return all(bounds) and bounds[0] != bounds[1]

    def _is_same_thing(self, at: _Stretch) -> bool:
        """Return whether the words around a stretch are two spellings of one thing."""
        most = 4 if self.by_letters else 1
        if not any(map(may_be_spelled, self._sides(at, most, most))):
            return False
        is_same = any(
            same_thing(*self._sides(at, left, right))
            for left, right in product((0, most), repeat=2)
        )
        self.alike += [at] * is_same
        return is_same

    def _values(self, at: _Stretch) -> list[list[tuple[str, str]]]:
        """Return the values in whole words on both sides, and in the word before if it counts."""
        sides = (self.passage, at.start, at.stop), (self.document, at.there, at.end)
        left = max(start - _with_number(reading, start) for reading, start, _ in sides)
        right = max(reading.words(stop, stop)[1] - stop for reading, _, stop in sides)
        return [*map(values, self._sides(at, left, right))]

    def _is_other_unit(self, at: _Stretch) -> bool:
        """Return whether a number that both share has another unit, as 2 % and 2 % points."""
        ours, theirs = self.passage.tokens, self.document.tokens
        before = [*filter(_is_number, ours[_with_number(self.passage, at.start) : at.start])]
        if not (before and self.looks.numbers) or any(
            map(_is_number, (ours[at.start], theirs[at.there]))
        ):
            return False
        sides = self._values(at)
        # What was misread or cut is no unit, and leaves the number as it is.
        is_known = all(side[-1:] != values(before[-1]) for side in sides)
        return is_known and are_others(*sides) and not self._is_same_thing(at)

    def _other_number(
        self, a: Sequence[str], b: Sequence[str], at: _Stretch, edge: str
    ) -> bool | None:
        """Return whether a number is another one; None if it does not depend on numbers."""
        values = self._values(at)
        if all(values) and len(values[0]) == len(values[1]) and not are_others(*values):
            self.alike += [at] * (all(map(_is_number, a)) or all(map(_is_number, b)))
            return None
        ours, theirs = ([one for one in side if _is_number(one)] for side in (a, b))
        if _are_same_digits(ours, theirs):
            space = "" if self.by_letters else " "
            words = [space.join(one for one in side if not _is_number(one)) for side in (a, b)]
            # What was misread is no unit.
            is_known = all(not one.isascii() or not one or is_unit(one) for one in words)
            return True if is_known and are_others(*values) else None
        x, y = "".join(a), "".join(b)
        if x.translate(_LOOKALIKE) == y.translate(_LOOKALIKE):
            return False
        if not theirs:
            return None if edge or len(a) > 2 or len(a) > len(ours) else x not in y
        if not ours:
            return None if (edge and self.by_letters) or len(theirs) < len(b) else True
        if edge:
            at_start = "start" in edge
            ours_at, theirs_at = (at.stop, at.end) if at_start else (at.start + 1, at.there + 1)
            x = self.passage.between(ours_at - 1, ours_at)
            y = self.document.between(theirs_at - 1, theirs_at)
            return not _is_cut(x, y, at_start, len(a) == 1, "cut" in edge)
        return True

    def _extra(self, at: _Stretch) -> Kind | None:
        """Return what kind of thing one side alone has, if it makes the other another text."""
        is_ours = at.start < at.stop
        reading, (start, stop) = (self.passage, at[:2]) if is_ours else (self.document, at[2:])
        tokens = reading.tokens
        if any(map(_is_mark, tokens[start:stop])):
            return self._extra_mark(tokens[start:stop], at)
        is_short = _weights(tokens[start:stop], self.by_letters)[-1] <= self.scale.extra
        if is_short and self.looks.negations:
            text = reading.between(start, stop).casefold()
            if _count_negations(text) or (self.by_letters and text in _PREFIXES):
                is_word = text != "안" or (reading.words(start, stop) == (start, stop))
                if is_word and (text in _PREFIXES or self._negates_around(at)):
                    return None if self._is_same_thing(at) else "negation"
        if is_aside(reading.around(start, stop)):
            self.alike.append(at)
            return None
        if stop - start <= _LONGEST_AMOUNT and are_others(*self._values(at)):
            return None if self._is_same_thing(at) else "number"
        return None

    def _extra_mark(self, tokens: Sequence[str], at: _Stretch) -> Kind | None:
        """Return ``"number"`` where one side alone has a minus, or the "not" of code."""
        is_not, is_sign = "!" in tokens, {*tokens} == {"-"}
        # Behind a letter it may have been a sign, too, where spaces were lost.
        dashes = [any(dash in text for dash in "-\u2212\u2013~") for text in self._sides(at)]
        return "number" if is_not or (is_sign and not all(dashes)) else None

    def _negates_around(self, at: _Stretch) -> bool:
        return len({*map(_count_negations, self._sides(at, 2, 2))}) > 1

    def _other_words(self, a: Sequence[str], b: Sequence[str], at: _Stretch, edge: str) -> bool:
        """Return whether words are others: neither misread, nor inflected, nor run together."""
        x, y = "".join(a), "".join(b)
        if x == y:
            return False
        if edge and x.removeprefix(y) not in _LATIN_TAILS and y.removeprefix(x) not in _LATIN_TAILS:
            cut = (x.startswith, y.startswith) if "end" in edge else (x.endswith, y.endswith)
            if cut[0](y) or cut[1](x):
                return False
        is_latin = x.isascii() and y.isascii()
        before = self.passage.tokens[at.start - 1] if at.start else ""
        if _is_number(before) and is_latin and max(len(a), len(b)) < (12 if self.by_letters else 2):
            # A unit: none of its first letters may differ.
            long = min(len(x), len(y)) >= 5 and x[0] == y[0] and _same_word(x, y)
            return not (x.startswith(y) or y.startswith(x) or long)
        if not self.by_letters or is_latin:
            if self.by_letters:
                return not _same_word(x, y)
            if len(a) == len(b):
                return not all(map(_same_word, a, b))
            return _edits(x, y, len(a)) > len(a)
        if x.isascii() != y.isascii():  # a transcription, or another thing
            return max(len(a), len(b)) > 2
        return _other_hangul(x, y)

    def _is_misread(self, at: _Stretch) -> bool:
        """Return whether words differ in letters that may have been misread."""
        ours = self.passage.tokens[at.start : at.stop]
        theirs = self.document.tokens[at.there : at.end]
        has_numbers = any(map(_is_number, (*ours, *theirs)))
        return not has_numbers and self._fits(ours, theirs) and not _TAIL.issuperset(ours)

    def _is_doubtful(self, at: _Stretch) -> bool:
        """Return whether half of the letters are the same, as where others were misread, too."""
        from rapidfuzz.distance import Levenshtein

        sides = self.passage.tokens[at.start : at.stop], self.document.tokens[at.there : at.end]
        return Levenshtein.normalized_similarity(*(_jamo("".join(one)) for one in sides)) >= 0.5

    def _at_edges(self, first: _Stretch, last: _Stretch) -> Difference | None:
        """Return what replaced the last or the first words, where the document goes on there."""
        size, scale = len(self.ours), self.scale
        first, last = self._at_words(first, last)
        if 0 < self.weight[-1] - self.weight[last.stop] <= scale.edge:
            there = min(len(self.theirs), last.end + scale.beyond)
            if found := self._at_edge(_Stretch(last.stop, size, last.end, there), "end"):
                return found
            unit = _Stretch(last.stop, last.stop + 1, last.end, last.end + 1)
            if last.end < there and self._is_other_unit(unit):
                return Difference("number", unit[:2], unit[2:])
        if 0 < self.weight[first.start] <= scale.edge:
            there = max(0, first.there - scale.beyond)
            return self._at_edge(_Stretch(0, first.start, there, first.there), "start")
        return None

    def _at_words(self, first: _Stretch, last: _Stretch) -> tuple[_Stretch, _Stretch]:
        """Return the first and the last stretch without parts of Latin words."""
        if not self.by_letters:
            return first, last
        tokens, begins = self.passage.tokens, self.passage.begins
        start, stop = first.start, last.stop
        while last.start < stop < len(tokens) and not begins(stop) and _is_latin(tokens[stop]):
            stop -= 1
        while 0 < start < first.stop - 1 and not begins(start) and _is_latin(tokens[start - 1]):
            start += 1
        first = first._replace(start=start, there=first.there + start - first.start)
        return first, last._replace(stop=stop, end=last.end - (last.stop - stop))

    def _at_edge(self, at: _Stretch, edge: str) -> Difference | None:
        """Compare what a passage ends in, or begins with, with what a document goes on with."""
        rest, there = self.ours[at.start : at.stop], self.theirs[at.there : at.end]
        n, is_end = len(rest), edge == "end"
        if not there:
            return None  # the document is cut
        # They may stand behind the foot of a page.
        is_beyond = rest in there and (not self.by_letters or n > 1)
        edge += " cut" if len(there) <= n else ""
        ours, theirs = self.passage.tokens, self.document.tokens
        x, y = "".join(ours[at.start : at.stop]), "".join(theirs[at.there : at.end])
        outer = at.stop - 1 if is_end else at.start
        is_number = _is_number(ours[outer])
        if not is_number and (y.startswith(x) if is_end else y.endswith(x)):
            return None  # spaces were lost, or stand inside a word
        # One syllable may be a particle, but not in 지 않다 and 아니다.
        is_word = not self.by_letters or n > 1 or is_number or theirs[at.there] in "지아"
        onwards = there if is_end else there[::-1]
        k = onwards.find(self.ours[outer], 0, n + self.scale.reach) + 1
        if k and is_word:
            # Up to the last word of the passage, it is a gap as others are.
            if is_end:
                gap = _Stretch(at.start - 1, at.stop, at.there - 1, at.there + k)
            else:
                gap = _Stretch(at.start, at.stop + 1, at.end - k, at.end + 1)
            found = self._within(gap, is_last=True)
            return None if found and is_beyond and found.kind != "negation" else found
        found = None if is_beyond else self._beside_edge(at, edge)
        return None if found and self._is_spelled(at, is_end) else found

    def _is_spelled(self, at: _Stretch, is_end: bool) -> bool:
        """Return whether the last or first words are a spelling of what the document has there."""
        if not any(map(may_be_spelled, self._sides(at))):
            return False
        there = range(1, min(2 * _LONGEST_AMOUNT, at.end - at.there) + 1)
        wholes = (at._replace(end=at.there + n) if is_end else at._replace(there=at.end - n)
                  for n in there)  # fmt: skip
        same = next((one for one in wholes if same_thing(*self._sides(one))), None)
        self.alike += [same] if same else []
        return same is not None

    def _beside_edge(self, at: _Stretch, edge: str) -> Difference | None:
        """Judge by the words beside the shared stretch, as many on either side."""
        is_end, n = "end" in edge, at.stop - at.start if self.by_letters else 1
        ours = self.passage.tokens[at.start : at.stop]
        theirs = self.document.tokens[at.there : at.end]
        if self.by_letters:
            around = theirs[:n] if is_end else theirs[-n:]
            inner = ours[0] if is_end else ours[-1]
            begins = self.passage.begins(at.start if is_end else at.stop)
            is_lone = n == 1 and begins and not _is_number(self.passage.tokens[at.start - 1])
            if not _is_number(inner) and (
                _TAIL.issuperset(ours) or _TAIL.issuperset(around) or is_lone
            ):
                return None
        if at.end - at.there < n or self._is_sentence_apart(at, is_end):
            return None
        ends = {"stop": at.start + n, "end": at.there + n}
        at = at._replace(**ends if is_end else {"start": at.stop - n, "there": at.end - n})
        kind = self._kind(at, edge)
        return Difference(kind, at[:2], at[2:]) if kind and self.looks.at(kind) else None

    def _is_sentence_apart(self, at: _Stretch, is_end: bool) -> bool:
        """Return whether another sentence of the document stands there: the words were left out."""
        here, there = (at.start, at.there) if is_end else (at.stop, at.end)
        if not 0 < there < len(self.document.tokens):
            return False
        ours = self.passage.around(here, here) if here else ""
        is_over = _SENTENCE_END.search(self.document.around(there, there)) is not None
        return is_over and _SENTENCE_END.search(ours) is None


def _is_mark(token: str) -> bool:
    return not token[0].isalnum() and token[0] != "%"


def _with_number(reading: Reading, start: int) -> int:
    """Return where the word begins of which a token is a part, or the number before it."""
    start = reading.words(start, start)[0]
    before = reading.words(start - 1, start)[0] if start else 0
    return before if any(map(_is_number, reading.tokens[before:start])) else start


def _number(written: str) -> str:
    """Return a number in one spelling: no zeros before its parts, dates with points.

    >>> [*map(_number, ("05", "1.05", "2024-03-05", "09:30", "7.50"))]
    ['5', '1.05', '2024.3.5', '9:30', '7.50']
    """
    if not written[0].isdecimal():
        return "-" if written == "\u2212" else written
    if not written.isascii():
        written = "".join(str(decimal(one)) if one.isdecimal() else one for one in written)
    parts = _PARTS.findall(written)
    mark = written[len(parts[0]) :][:1]
    is_one = mark == ":" or (len(parts) == 2 and mark in ".,")  # 9:05 and 1.05 keep the zero
    n = 1 if is_one else len(parts)
    parts[:n] = [part.lstrip("0") or "0" for part in parts[:n]]
    is_date = len(parts) > 2 and mark != ":"
    return ("." if is_date else mark.replace("\u2044", "/")).join(parts)


def _are_same_digits(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether numbers are the same, or spaces stand within one: 20 24 is 2024."""
    x, y = ([_PARTS.findall(one) for one in side] for side in (ours, theirs))
    return x == y or (len(x) != len(y) and [*chain(*chain(*x))] == [*chain(*chain(*y))])


def _is_cut(ours: str, theirs: str, at_start: bool, is_lone: bool, is_end_of_text: bool) -> bool:
    """Return whether a number is the part of another one that a cut left of it."""
    x, y = ("".join(_PARTS.findall(one)) for one in (ours, theirs))
    whole = (y.endswith(x), x.endswith(y)) if at_start else (y.startswith(x), x.startswith(y))
    return bool(x and y) and ((whole[0] and is_lone) or (whole[1] and is_end_of_text))


def _count_negations(text: str) -> int:
    return len(_NO.findall(text)) + len(_NO_KO.findall("".join(text.split())))


def _is_number(token: str) -> bool:
    return token[:1].isdecimal()


def _is_latin(token: str) -> bool:
    return token.isascii() and token.isalpha()


@lru_cache(1 << 14)
def _jamo(text: str) -> str:
    return normalize("NFD", text)


def _edits(one: str, other: str, most: int) -> int:
    """Return how many letters are others, left out, put in or exchanged, up to one more."""
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=most)


def _same_word(one: str, other: str) -> bool:
    """Return whether two words of letters are one: misread, or with another ending."""
    from rapidfuzz.distance import Prefix

    if one == other:
        return True
    if one in COUNTS and other in COUNTS:
        return COUNTS[one] == COUNTS[other]
    shorter, longer = sorted((len(one), len(other)))
    most = 1 + (shorter >= 10)
    if _edits(one, other, most) <= most:
        return True
    n = int(Prefix.similarity(one, other))
    is_ending = longer - n <= 4 or n == shorter > 4
    return (
        n >= max(4, 0.6 * shorter) and is_ending and _LATIN_TAILS.isdisjoint((one[n:], other[n:]))
    )


def _other_hangul(one: str, other: str) -> bool:
    """Return whether letters of Hangul are others, but for endings and what was misread."""
    from rapidfuzz.distance import Indel, Levenshtein, Postfix, Prefix

    n = int(Prefix.similarity(one, other))
    one, other = one[n:], other[n:]
    n = int(Postfix.similarity(one, other))
    one, other = one[: len(one) - n], other[: len(other) - n]
    if not one or not other or (_TAIL.issuperset(one) and _TAIL.issuperset(other)):
        return False
    if _misread(one, other):
        return False
    if len(one) == len(other) == 1 and _jamo(one)[0] != _jamo(other)[0]:
        return True  # another consonant: 계약 and 예약
    alike = max(
        Levenshtein.normalized_similarity(_jamo(one), _jamo(other)),
        Indel.normalized_similarity(one, other),
    )
    return alike < (0.7 if 1 < len(one) == len(other) else 0.5)


def _misread(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether letters of Hangul are the same but for their final consonants."""
    return len(ours) == len(theirs) and all(
        x == y or ("가" <= min(x, y) <= max(x, y) <= "힣" and _jamo(x)[:2] == _jamo(y)[:2])
        for x, y in zip(ours, theirs, strict=True)
    )
