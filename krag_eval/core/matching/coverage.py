"""How much of the ground-truth text a retrieved text holds: the right question for chunks.

Matchers for the runs of words that two texts share, and for their numbers.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from krag_eval.core.documents import DocumentLike, text_of
from krag_eval.core.errors import Advice, Fix, InvalidInput, boolean, number, one_of, whole
from krag_eval.core.language import N_, _
from krag_eval.core.matching import tokenizers
from krag_eval.core.matching.base import TextMatcher
from krag_eval.core.matching.contradiction import (
    Beside,
    Codes,
    Difference,
    Looks,
    Reading,
    SaidOtherwise,
    in_blocks,
    in_words,
    is_cut,
    is_end_of_amounts,
    laid_beside,
    may_be_marked,
    verbatim,
)
from krag_eval.core.matching.joins import BlockScorer, BoolArray, FloatArray, IntArray, Pairs, Units
from krag_eval.core.matching.numbering import TokenNumbers, numbered
from krag_eval.core.matching.pieces import SharedRuns, Without, shared_runs
from krag_eval.core.matching.plaintext import numbers_in
from krag_eval.core.matching.seams import Seams
from krag_eval.core.matching.tokenizers import ByScript, Tokenizer, letter_tokens, word_tokens

_Direction: TypeAlias = Literal["ground_truth", "either"]
_Guard: TypeAlias = Literal["aligned", "numbers", "off"]
_Numbers: TypeAlias = Literal["aligned", "anywhere", "ignore"] | bool
_Polarity: TypeAlias = Literal["en+ko", "no"] | bool

# How these are asked for in Python and in the shell: whether, and how by the first names.
_ASKED = {True: True, "yes": True, "true": True, False: False, "no": False, "false": False}
_NUMBERS = ("ignore", "anywhere")
# The languages that have lists of negations and bounds, as signatures name them.
_POLARITY = ("no", "en+ko")
# Share of a passage that a document holds, from which it is asked whether it contradicts.
_LOOKED_AT = 0.5

# Characters of texts of which the guard keeps its readings.
_KEPT = 1 << 20

_MIN_RUN = 5
# Tokenizers whose tokens are far shorter than words.
_MIN_RUNS = {"character": 15, "letters": 12}
# Letters of Korean in a word.
_LETTERS_PER_WORD = _MIN_RUNS["letters"] / _MIN_RUN


# How the default is asked for, and how signatures spell it.
_AUTO = ("auto", ByScript.name)

_DIGITS = re.compile(r"\d+")
# Runs of digits, each with up to four white spaces after the one before.
_WITH_GAPS = re.compile(r"(?<!\d)\d++(?:\s{1,4}\d++)+")


class CoverageMatcher(TextMatcher):
    """A document matches when it holds most of the ground-truth text.

    The similarity is the share of the ground-truth text's words that lie in runs of at least
    ``min_run`` consecutive words that also occur, just so, in the predicted text. It reads as "how
    much of the golden passage would the reader see", in [0, 1], higher is better. Runs keep words
    that every text has ("of the") from counting as found; a ground-truth text shorter than
    ``min_run`` must occur as a whole.

    Right for retrieved chunks: whatever else a chunk holds, and wherever it was cut, does not
    count against it. The similarity is not symmetric, the ground truth comes first. Two texts of
    the same words are 1, whatever their case, punctuation, markup and line breaks (as far as the
    tokenizer goes). A text without words is 0 with everything.

    A chunk of last year's notice, or of another branch's rules, holds nearly all words of this
    passage, and is another text. So a document that holds half of the passage or more, and not word
    for word, is laid beside it, and its similarity is 0 where other words, another number or a
    negation stand in the place of the passage's own (``guard``). Whatever the threshold, what holds
    less is not looked at.

    Args:
        threshold: Share from which a pair is a match.
        min_run: Consecutive tokens that count as found. If not given, 5; 12 with
            ``tokenizer="letters"``, 15 with ``"character"``. With ``"auto"`` it counts words; by
            letters, a run has 2.4 times as many, 12 for 5.
        tokenizer: ``"auto"`` reads a query by words; by letters, in whatever words they stand, if
            more than 15 % of the letters of its ground truth are Korean, Chinese, Japanese, Thai,
            Lao, Khmer or Burmese. All ground truth of the query decides together, and its documents
            are read likewise. Or a name of ``krag_eval.core.matching.tokenizers``, or a callable
            ``str -> list[str]``. Among letters a number and the two behind it are one amount: those
            two are found only behind the same number. A number that a document has with up to four
            white spaces inside is whole if a ground truth has it so, and none with the gap.
        guard: ``"aligned"`` lays the passage beside the stretch of the document that holds most of
            it. The similarity is 0 where other words, another number, unit, sign or currency stand
            in the place of its own (with ``direction="either"``, of the shorter text), or where a
            negation or an exception is there on one side alone. Two spellings of one thing are the
            same: a word with a letter misread or another ending; 1.2 million and 1,200,000,
            7천만 원 and 70,000,000원, March 3, 2024 and 2024-03-03, 3 pm and 15:00, 5 kg and 5kg.
            What was left out, put in or cut off costs its words alone. ``"numbers"`` looks at
            numbers, negations and bounds alone (이상 …; before, at least …), in Korean and English:
            for ground truth that people or a model wrote in words of their own. ``"off"`` looks
            at nothing. Left out, it is ``"aligned"``, or what ``numbers`` and ``polarity``
            ask for.
        numbers: The old name of a part of the guard: ``"aligned"`` looks at numbers as
            ``guard="numbers"`` does, ``"ignore"``, or ``False``, does not. ``"anywhere"``, or
            ``True``, is 0 unless every number of the passage occurs in the document, in any place
            and order; what counts as a number is that of :class:`NumbersMatcher`.
        polarity: The old name of the other part: whether ``guard="numbers"`` looks at negations
            and bounds, yes (``True``, ``"en+ko"``) or no.
        tolerant: If true, words also count that stand at their place in shorter stretches between
            the longer ones, once passage and document lie beside each other: of two words or more
            (one at the ends), of four letters or more. For ground truth that was scanned: words
            that are broken or misread no longer cost their neighbours. The guard looks at such
            pairs as at others; what was rewritten also needs ``guard="numbers"``. It still accepts,
            two or three times as often as without, that two words changed places.
        union: If true, an item also counts where the documents complete it together: it is found
            at the first rank up to which they hold, all together, a share of at least
            ``threshold``; what a document that contradicts holds does not count. Right for passages
            that a splitter cut apart. Pairs of texts, as in ``similarity``, stay what they are.
        direction: ``"either"`` asks of the shorter text of a pair how much of it the longer one
            holds; for ground truth that is longer than the chunks. A document of fewer than
            ``min_run`` tokens is never the shorter one. ``"ground_truth"`` always asks of the
            ground truth.

    Raises:
        InvalidInput: If the threshold is outside [0, 1], ``min_run`` is below 1, no tokenizer or
            direction has that name, ``guard``, ``numbers`` or ``polarity`` is none of these, or
            ``union`` comes with ``numbers="anywhere"``, ``tolerant`` or ``direction="either"``,
            which decide about pairs; when matching, if the tokenizer finds nothing in a text that
            has letters or digits.
        InvalidType: If one of them is of another type.

    Five of the six words of the ground truth stand together in this chunk:

    >>> matcher = CoverageMatcher()
    >>> matcher.similarity("Refunds take up to five days", "… take up to five days. Fees: none.")
    0.8333333333333334
    >>> matcher.similarity("Refunds take up to five days", "Up to five refunds take days.")
    0.0

    Of these ten words two are lost, the year and the word before it:

    >>> chunk = "In 2023 revenue from lending rose to a record high, too."
    >>> unguarded = CoverageMatcher(guard="off")
    >>> unguarded.similarity("In 2024 revenue from lending rose to a record high", chunk)
    0.8
    >>> matcher.similarity("In 2024 revenue from lending rose to a record high", chunk)
    0.0
    >>> matcher.similarity(
    ...     "Members borrow as many films as they like but may not lend them to anyone",
    ...     "Members borrow as many films as they like but may lend them to anyone")
    0.0

    Of these 28 letters three are lost, the number and its unit:

    >>> passage = "시는 올해 모두 합하여 청년에게 3억원을 월세와 교육비로 지원한다"
    >>> unguarded.similarity(passage, passage.replace("3억원", "4억원"))
    0.8928571428571429
    >>> matcher.similarity(passage, passage.replace("3억원", "4억원"))
    0.0
    """

    name = "coverage"
    normalize: ClassVar[bool] = False
    counts_words: ClassVar[bool] = True

    def __init__(
        self,
        threshold: float = 0.8,
        min_run: int | None = None,
        tokenizer: str | Tokenizer = "auto",
        *,
        guard: _Guard | None = None,
        numbers: _Numbers | None = None,
        polarity: _Polarity | None = None,
        tolerant: bool = False,
        union: bool = False,
        direction: _Direction = "ground_truth",
    ) -> None:
        self.threshold = number("threshold", threshold, 0, 1)
        is_auto = isinstance(tokenizer, str) and tokenizer in _AUTO
        self.tokenizer = ByScript() if is_auto else tokenizers.resolve_tokenizer(tokenizer)
        self._tokenizer_name = tokenizers.tokenizer_name(self.tokenizer)
        if min_run is None:
            min_run = _MIN_RUNS.get(self._tokenizer_name, _MIN_RUN)
        self.min_run = whole("min_run", min_run, 1)
        self._looks, self._guard_settings = _looks(guard, numbers, polarity)
        self.guard: str = self._guard_settings["guard"]
        self.numbers = self._guard_settings.get(
            "numbers", "aligned" if self._looks.numbers else "ignore"
        )
        self.polarity = self._looks.negations
        self.tolerant = boolean("tolerant", tolerant)
        self.union = boolean("union", union)
        self.direction = one_of("direction", direction, get_args(_Direction))
        pairs = {
            "numbers": self.numbers == "anywhere",
            "tolerant": tolerant,
            "direction": direction == "either",
        }
        for argument in [name for name, decided in pairs.items() if union and decided]:
            problem = f": {argument} decides about a document alone, and with union=True they "
            raise InvalidInput("union", f"{problem}count together", "choose one of the two")

    _advice = Advice(
        N_(
            "If the two sides write the same passage differently (spaces, hyphens, corrected "
            "errors), try {}; if both sides carry ids, try {}"
        ),
        matcher=("coverage(tokenizer=letters)", "id"),
    )

    @property
    def decides_alone(self) -> bool:
        """Whether a document that holds most words decides otherwise than several together."""
        return self.numbers == "anywhere" or self.tolerant or self.direction == "either"

    @property
    def is_guarded(self) -> bool:
        """Whether a document that says something else is no match."""
        return any(self._looks)

    @property
    def too_long_advice(self) -> Fix:
        """What to try when most ground truth is longer than every text that was retrieved."""
        if self.union or self.direction == "either":
            return ""
        settings = self.signature.removesuffix(")")
        either, union = f"{settings},direction=either)", f"{settings},union=yes)"
        if self.numbers == "anywhere" or self.tolerant:  # which union refuses
            return Advice(_("Ask how much of the shorter text is held with {}"), matcher=either)
        told = _(
            "Let texts count together with {}, or ask how much of the shorter text is held with "
            "{}; token metrics count words in any case"
        )
        return Advice(told, matcher=(union, either))

    def settings(self) -> dict[str, object]:
        """Return the length of a run, of what, and what else was asked for."""
        settings = {"min_run": self.min_run, "tokenizer": self._tokenizer_name}
        either = {"direction": self.direction} if self.direction == "either" else {}
        guard = dict(self._guard_settings)
        flags = {"tolerant": self.tolerant, "union": self.union}
        return settings | guard | {name: True for name, asked in flags.items() if asked} | either

    def read(self, texts: Sequence[str]) -> Read:
        """Tokenise each distinct text once."""
        chosen = self._for_ground_truth(texts)
        tokens, names = self._numbered(chosen.tokenizer, texts)
        return chosen._as_read(tokens, names, texts, self._numbers_of(texts))

    def _as_read(
        self,
        tokens: TokenNumbers,
        names: list[str],
        texts: Sequence[str],
        numbers: list[frozenset[str]] | None = None,
    ) -> Read:
        """Return texts that are tokens already, as they are compared."""
        is_by_letters = self.tokenizer in (letter_tokens, tokenizers.character_tokens)
        by_letters = np.full(len(tokens), is_by_letters)
        run = np.full(len(tokens), self.min_run)
        return Read(tokens, run, numbers, by_letters, names, texts)

    def _numbers_of(self, texts: Sequence[str]) -> list[frozenset[str]] | None:
        return _numbers_of(texts) if self.numbers == "anywhere" else None

    def _numbered(
        self, tokenizer: Tokenizer, texts: Sequence[str]
    ) -> tuple[TokenNumbers, list[str]]:
        """Tokenise texts, and return their tokens and what each number stands for."""
        names: dict[str, int] = defaultdict(count().__next__)
        return self.numbered(texts, names, tokenizer), [*names]

    def numbered(
        self, texts: Sequence[str], names: dict[str, int], tokenizer: Tokenizer | None = None
    ) -> TokenNumbers:
        """Tokenise texts.

        Args:
            texts: The texts.
            names: The number of each token; what it lacks is added.
            tokenizer: By what, where not by the matcher's own.
        """
        return numbered(tokenizer or self.tokenizer, texts, names)

    def prepared(self, units: Units) -> Units:
        """Tokenise each text once, or once in each way in which queries ask for it."""
        if not isinstance(self.tokenizer, ByScript):
            every = np.full(len(units.n_items), self.tokenizer is letter_tokens)
            return super().prepared(without_gaps(units, every))
        by_letters = _by_letters(self.tokenizer, units)
        units = without_gaps(units, by_letters)
        n, n_truths = len(units.values), len(units.alternatives)
        # A text that is read by letters has a second number.
        wanted = np.concatenate([
            units.alternatives + n * np.repeat(by_letters, units.n_alternatives),
            units.predicted + n * np.repeat(by_letters, units.n_predicted),
        ])  # fmt: skip
        read, places = np.unique(wanted, return_inverse=True)
        texts = [units.values[one] for one in (read % n).tolist()] if n else []
        return replace(
            units,
            values=self._read_by_script(texts, int((read < n).sum())),
            blank=units.blank[read % max(n, 1)],
            alternatives=places[:n_truths],
            predicted=places[n_truths:],
        )

    def _read_by_script(self, texts: Sequence[str], n_words: int) -> Read:
        """Tokenise texts: so many by words, the others by letters."""
        tokens, names = self._numbered(word_tokens, texts[:n_words])
        if n_words < len(texts):
            # Numbers of their own: what is a number among letters may be a word among words.
            others, letters = self._numbered(letter_tokens, texts[n_words:])
            tokens, names = tokens.followed_by(others.after(len(names))), [*names, *letters]
        by_letters = np.arange(len(texts)) >= n_words
        run = np.where(by_letters, _in_letters(self.min_run), self.min_run)
        return Read(tokens, run, self._numbers_of(texts), by_letters, names, texts)

    def _for_ground_truth(self, texts: Sequence[str]) -> CoverageMatcher:
        """Return the same with the tokenizer that is right for a query."""
        if not isinstance(self.tokenizer, ByScript):
            return self
        chosen = copy.copy(self)
        chosen.tokenizer = word_tokens
        if self.tokenizer.by_letters(texts):
            chosen.tokenizer, chosen.min_run = letter_tokens, _in_letters(self.min_run)
        return chosen

    def block_scorer(self, texts: Sequence[str] | Read) -> BlockScorer:
        """Return the scorer of blocks; whole runs of queries are scored at once instead."""
        read = texts if isinstance(texts, Read) else self.read(texts)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            block = np.zeros((len(actual), len(predicted)))
            units = Units.of_block(read, actual, predicted)
            runs = self._shared(units)
            item, rank, similarity, _ = runs.pairs(units, self.shares(runs, read)[0])
            block[item, rank - 1] = similarity
            return block

        return score

    def _pairs(self, units: Units) -> Pairs:
        """Score all queries together."""
        units.check_sizes()
        runs = self._shared(units)
        if type(self).block_scorer is not CoverageMatcher.block_scorer:
            # A class of the user's own scores pairs in its way; words stay where they are.
            return super()._pairs(units)._replace(pieces=runs.pieces(units))
        similarity, without = self.shares(runs, units.values)
        return runs.pairs(units, similarity)._replace(pieces=runs.pieces(units, without))

    def _shared(self, units: Units) -> SharedRuns:
        """Return the runs that are shared within each query."""
        read: Read = units.values
        return shared_runs(read.tokens, units, read.min_run, self._seams(read))

    def _seams(self, read: Read, *, is_ranked: bool = True) -> Seams:
        """Return what finds documents that hold a passage together where it was cut.

        Args:
            read: The texts.
            is_ranked: Whether it matters by which rank they do.
        """
        sides = read.tokens, read.names, read.texts, read.by_letters, read.min_run
        return Seams(*sides, is_ranked=is_ranked)

    @property
    def _is_by_text(self) -> bool:
        """Whether tokens leave nothing of a text out but what separates them."""
        is_plain = self.tokenizer in (word_tokens, letter_tokens)
        return is_plain or isinstance(self.tokenizer, ByScript)

    def shares(self, runs: SharedRuns, read: Read) -> tuple[FloatArray, Without | None]:
        """Return how much is covered in each pair that shares a run, and which contradict."""
        truth, document = runs.truths.unit(runs.truth), runs.documents.unit(runs.document)
        sizes = runs.sizes[truth], runs.sizes[document]
        similarity = runs.held / sizes[0]
        turned = np.zeros(len(truth), np.bool_)
        if self.direction == "either":
            turned = (sizes[1] < sizes[0]) & (sizes[1] >= read.min_run[document])
            similarity[turned] = (runs.own() / sizes[1])[turned]
        if self.tolerant:
            rest = np.flatnonzero(similarity < 1.0)
            similarity[rest] = np.maximum(similarity[rest], self._in_blocks(runs, read, rest))
        without = None
        if self.is_guarded:
            pairs = self._contradicted(runs, read, similarity)
            without = Without(pairs, similarity[pairs], read.tokens, read.min_run)
            similarity[pairs] = 0.0
        if self.numbers == "anywhere":
            whole, part = np.where(turned, (truth, document), (document, truth))
            similarity[~read.have(whole, part)] = 0.0
        return similarity, without

    def _contradicted(self, runs: SharedRuns, read: Read, similarity: FloatArray) -> IntArray:
        """Return the pairs whose document is another text than the passage that it nearly holds.

        Of all pairs that share a run, those that hold half of the passage or more are looked at;
        where documents count together, the others as pieces. What both spell in other ways counts
        as shared from then on.
        """
        truth, document = runs.truths.unit(runs.truth), runs.documents.unit(runs.document)
        texts = read.texts
        alone = similarity >= _LOOKED_AT
        # What is no longer than a run stands there word for word, perhaps in a longer amount.
        is_short = (runs.sizes[truth] <= read.min_run[truth]) & read.by_letters[truth]
        is_short[is_short] = [any(map(str.isnumeric, texts[one])) for one in truth[is_short]]
        chosen = np.flatnonzero(alone | self.union)

        def pairs() -> Iterator[tuple[int, int, int]]:
            return zip(*(one[chosen].tolist() for one in (truth, document, is_short)), strict=True)

        is_new = [one or not is_cut(texts[a], texts[b]) for a, b, one in pairs()]
        chosen = chosen[np.array(is_new, bool)]
        if self._is_by_text:
            is_copy = verbatim(read.tokens, truth[chosen], document[chosen]).tolist()
            chosen = chosen[np.array([
                one or not copy or may_be_marked(texts[a]) or may_be_marked(texts[b])
                for (a, b, one), copy in zip(pairs(), is_copy, strict=True)
            ], bool)]  # fmt: skip
        pieces = (~alone[chosen]).tolist()
        found = [self._beside(read, a, b, piece=one)
                 for (a, b, _), one in zip(pairs(), pieces, strict=True)]  # fmt: skip
        if self._is_by_text:
            shares = np.array([one.share for one in found], float)
            similarity[chosen] = np.maximum(similarity[chosen], shares)
        others = chosen[np.array([one.difference is not None for one in found], bool)]
        return np.asarray(others[~self._stand_in_a_row(runs, others)])

    def _stand_in_a_row(self, runs: SharedRuns, pairs: IntArray) -> BoolArray:
        """Return which pairs are of documents that hold the passage together, word for word."""
        sides = zip(runs.truth[pairs].tolist(), runs.document[pairs].tolist(), strict=True)
        return np.array([document in runs.whole.get(truth, ()) for truth, document in sides], bool)

    def _beside(self, read: Read, truth: int, document: int, *, piece: bool) -> Beside:
        """Return what a passage and a document are side by side, both by number."""
        both, run = self._sides(read, truth, document), int(read.min_run[truth])
        is_short = read.tokens.sizes[truth] <= run and both[0].by_letters
        if is_short and self._looks.numbers and is_end_of_amounts(*both):
            return Beside(Difference("number", (0, 1), (0, 1)), 0.0)
        return laid_beside(*both, self._looks, run, piece=piece)

    def _sides(self, read: Read, truth: int, document: int) -> tuple[Reading, Reading]:
        """Return a passage and a document as the guard reads them; turned, the other way round."""
        both = read.beside(
            read.texts[truth], read.texts[document], self._is_by_letters(read, truth)
        )
        return both[::-1] if self._is_turned(read, truth, document) else both

    def _is_by_letters(self, read: Read, truth: int) -> bool:
        """Return whether the guard reads a passage by letters, whatever the tokenizer."""
        if self._is_by_text:
            return bool(read.by_letters[truth])
        return ByScript().by_letters([read.texts[truth]])

    def _is_turned(self, read: Read, truth: int, document: int) -> bool:
        """Return whether it is asked how much of the document the passage holds."""
        if self.direction != "either":
            return False
        sizes: list[int] = read.tokens.sizes[[truth, document]].tolist()
        return int(read.min_run[document]) <= sizes[1] < sizes[0]

    def _shared_spans(self, runs: SharedRuns, pairs: IntArray) -> Iterator[list[tuple[int, int]]]:
        """Yield the stretches of documents that are shared, for some pairs."""
        places = runs.of_document.places(runs.truth[pairs], runs.document[pairs])
        start, stop = runs.of_document.start.tolist(), runs.of_document.stop.tolist()
        for first, last in zip(*(one.tolist() for one in places), strict=True):
            yield [*zip(start[first:last], stop[first:last], strict=True)]

    def _in_blocks(self, runs: SharedRuns, read: Read, pairs: IntArray) -> list[float]:
        """Return how much of passages documents hold in however short stretches, for some pairs."""
        units = runs.truths.unit(runs.truth[pairs]), runs.documents.unit(runs.document[pairs])
        shares = []
        for ours, theirs, shared in zip(
            *(one.tolist() for one in units), self._shared_spans(runs, pairs), strict=True
        ):
            passage, text = map(read.words, (ours, theirs))
            if self._is_turned(read, ours, theirs):
                passage, text, shared = text, passage, [(0, len(passage))]
            by_letters = bool(read.by_letters[ours])
            shares.append(in_blocks(passage, text, shared, by_letters=by_letters))
        return shares

    def said_otherwise(self, actual: DocumentLike, predicted: DocumentLike) -> SaidOtherwise | None:
        """Return what a document has in the place of a passage's words, if it is another text.

        Args:
            actual: The passage.
            predicted: The document.

        >>> CoverageMatcher().said_otherwise(
        ...     "In 2024 revenue from lending rose to a record high",
        ...     "In 2023 revenue from lending rose to a record high, too.")
        SaidOtherwise(kind='number', passage='2024', document='2023')
        """
        units = self.prepared(Units.of_pair([text_of(actual), text_of(predicted)]))
        read = units.values
        runs = self._shared(units)
        _, without = self.shares(runs, read)
        pairs = runs.truth[:0] if without is None else without.pairs
        for pair in pairs.tolist():
            truth = int(runs.truths.unit(runs.truth[[pair]])[0])
            document = int(runs.documents.unit(runs.document[[pair]])[0])
            found = self._beside(read, truth, document, piece=False).difference
            if found is None:
                return None
            kind, ours, theirs = in_words(found, *self._sides(read, truth, document))
            is_turned = self._is_turned(read, truth, document)
            return SaidOtherwise(kind, *((theirs, ours) if is_turned else (ours, theirs)))
        return None


def _looks(guard: object, numbers: object, polarity: object) -> tuple[Looks, dict[str, Any]]:
    """Return what the guard looks at, and how a signature says so.

    The old names alone mean what they meant: numbers, negations and bounds, or some of these.

    >>> _looks(None, None, None)
    (Looks(numbers=True, negations=True, words=True), {'guard': 'aligned'})
    >>> _looks(None, "aligned", False)
    (Looks(numbers=True, negations=False, words=False), {'guard': 'numbers', 'polarity': 'no'})
    """
    asked: dict[str, Any] = {}
    if numbers is not None:
        asked["numbers"] = one_of("numbers", _named(numbers, _NUMBERS), ("aligned", *_NUMBERS))
    if polarity is not None:
        asked["polarity"] = one_of("polarity", _named(polarity, _POLARITY), _POLARITY)
    wanted = asked.get("numbers", "aligned") == "aligned", asked.get("polarity", "en+ko") != "no"
    if guard is None:
        guard = "off" if not any(wanted) else "numbers" if asked else "aligned"
    guard = one_of("guard", guard, get_args(_Guard))
    is_on = guard != "off"
    looks = Looks(is_on and wanted[0], is_on and wanted[1], guard == "aligned")
    said = {name: value for name, value in asked.items()
            if value == "anywhere" or (is_on and value in ("ignore", "no"))}  # fmt: skip
    return looks, {"guard": guard, **said}


class NumbersMatcher(TextMatcher):
    """A document matches when it holds the numbers of the ground-truth text.

    The similarity is the share of the ground-truth text's different numbers that occur in the
    predicted text, in any place and order, in [0, 1]; 1 if the ground-truth text has none. So it is
    for use with another matcher: ``CoverageMatcher() & NumbersMatcher()`` wants the passage, and
    its numbers unchanged. (``CoverageMatcher(numbers=True)`` makes the same decisions and is
    faster.)

    A number is a run of digits, wherever it stands, and those that points join to it: 3 in Q3, 2.5,
    1.2.3, each part of the dates 2024-09-30 and 2024.9.30. It counts by its value, 1,234 is 1234,
    05 is 5 and 7.50 is 7.5; several points, as in 30.09.2024, leave it as it is written. Signs,
    units and percent signs do not count, nor does what only markup holds; numbers spelled in
    letters are none.

    Args:
        threshold: Share from which a pair is a match.

    Raises:
        InvalidInput: If the threshold is outside [0, 1].

    >>> NumbersMatcher().similarity("1,200 euros for 3 years", "3 years, 1200 euros, 20 people")
    1.0
    >>> NumbersMatcher().similarity("1,200 euros for 3 years", "1,300 euros for 3 years")
    0.5
    """

    name = "numbers"
    normalize: ClassVar[bool] = False

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = number("threshold", threshold, 0, 1)

    _advice = Advice(
        N_(
            "Every number of the ground truth must occur in the chunk, in digits; with {} half of "
            "them will do"
        ),
        threshold=0.5,
    )

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Find the numbers of each distinct text once."""
        numbers = _numbers_of(texts)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            truths = [numbers[unit] for unit in actual.tolist()]
            found = [numbers[unit] for unit in predicted.tolist()]
            shares = [[len(t & f) / len(t) if t else 1.0 for f in found] for t in truths]
            return np.array(shares, float)

        return score


@dataclass(frozen=True, eq=False)
class Read:
    """All distinct texts as tokens.

    Attributes:
        tokens: The tokens.
        min_run: Tokens in a run, of each text; shape (texts,).
        numbers: The numbers in each text, if they are asked for.
        by_letters: Whether it is read by letters; shape (texts,).
        names: The tokens that the numbers stand for.
        texts: The texts.
    """

    tokens: TokenNumbers
    min_run: IntArray
    numbers: list[frozenset[str]] | None
    by_letters: BoolArray
    names: list[str]
    texts: Sequence[str]
    _readings: dict[tuple[str, bool], Reading] = field(default_factory=dict, repr=False)
    _codes: Codes = field(default_factory=Codes, repr=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def beside(self, passage: str, document: str, by_letters: bool) -> tuple[Reading, Reading]:
        """Return two texts as the guard reads them; some of the last ones are kept."""
        if (len(passage) + len(document)) * len(self._readings) > _KEPT:
            self._readings.clear()
            self._codes.clear()
        for key in (passage, by_letters), (document, by_letters):
            if key not in self._readings:
                self._readings[key] = Reading(*key, self._codes)
        return self._readings[passage, by_letters], self._readings[document, by_letters]

    def words(self, text: int) -> list[str]:
        """Return the tokens of one text."""
        return [*map(self.names.__getitem__, self.tokens.of(text).tolist())]

    def take(self, texts: IntArray) -> Read:
        """Return some of the texts, in the order asked for."""
        numbers = self.numbers and [self.numbers[text] for text in texts.tolist()]
        tokens, run = self.tokens.take(texts), self.min_run[texts]
        taken = [self.texts[text] for text in texts.tolist()]
        return Read(tokens, run, numbers, self.by_letters[texts], self.names, taken)

    def have(self, whole: IntArray, part: IntArray) -> BoolArray:
        """Return whether one text has all numbers of another, for pairs of texts."""
        numbers = self.numbers or []
        texts = zip(whole.tolist(), part.tolist(), strict=True)
        return np.array([numbers[a] >= numbers[b] for a, b in texts], np.bool_)


def _named(asked: object, names: tuple[str, str]) -> object:
    """Return by its name what may be asked for by yes or no.

    >>> _named(True, ("no", "en+ko")), _named("yes", ("ignore", "anywhere")), _named("aligned", ())
    ('en+ko', 'anywhere', 'aligned')
    """
    known = _ASKED.get(asked) if isinstance(asked, bool | str) else None
    return asked if known is None else names[known]


def _in_letters(min_run: int) -> int:
    """Return how many letters a run of so many words has."""
    return int(_LETTERS_PER_WORD * min_run + 0.5)


def _by_letters(by_script: ByScript, units: Units) -> BoolArray:
    """Return which queries are read by letters; shape (queries,)."""
    n_queries = len(units.n_items)
    distinct = np.unique(units.alternatives)
    may = np.zeros(len(units.values), np.bool_)
    may[distinct] = [by_script.may_need_letters(units.values[one]) for one in distinct.tolist()]
    query = np.repeat(np.arange(n_queries), units.n_alternatives)
    asked = np.isin(query, query[may[units.alternatives]])
    counts = np.zeros((len(units.values), 2), np.int64)
    for one in np.unique(units.alternatives[asked]).tolist():
        counts[one] = by_script.counts(units.values[one])
    sums = np.zeros((n_queries, 2), np.int64)
    np.add.at(sums, query[asked], counts[units.alternatives[asked]])
    return np.array([by_script.decided(*of_query) for of_query in sums.tolist()], np.bool_)


def without_gaps(units: Units, by_letters: BoolArray) -> Units:
    """Close gaps inside numbers of documents, of queries that are read by letters.

    Two runs of digits with up to four white spaces between them are one number if a ground truth of
    the query has that number, and none has it with the gap. Texts that this makes come after the
    others.
    """
    query = np.repeat(np.arange(len(by_letters)), units.n_predicted)
    asked = by_letters[query]
    distinct = np.unique(units.predicted[asked]).tolist()
    gaps = {unit: found for unit in distinct if (found := _gaps(units.values[unit]))}
    if not gaps:
        return units
    ends = np.cumsum(units.n_alternatives)
    predicted = units.predicted.copy()
    closed: dict[str, int] = defaultdict(count(len(units.values)).__next__)
    places = np.flatnonzero(asked & np.isin(predicted, [*gaps])).tolist()
    for one, several in groupby(places, query.__getitem__):
        truths = units.alternatives[ends[one] - units.n_alternatives[one] : ends[one]].tolist()
        wanted = _without_any_gap([units.values[unit] for unit in truths])
        for place in several:
            unit = predicted[place]
            if not wanted.isdisjoint(gaps[unit]):
                predicted[place] = closed[_closed(units.values[unit], wanted)]
    blank = np.append(units.blank, np.zeros(len(closed), np.bool_))
    return replace(units, values=[*units.values, *closed], blank=blank, predicted=predicted)


def other_readings(
    tokenizer: Tokenizer, documents: Sequence[str], truths: Sequence[str]
) -> dict[str, int]:
    """Return how documents read for one of the ground-truth texts, where that is another text.

    Args:
        tokenizer: That of coverage; only letters have gaps inside numbers closed.
        documents: The texts to look through.
        truths: The ground-truth texts, each for itself.

    Returns:
        The texts, with the position of the document that each is a reading of.

    >>> other_readings(letter_tokens, ["예산은 20 24년"], ["2024년 예산", "24년 예산"])
    {'예산은 2024년': 0}
    """
    if tokenizer is not letter_tokens:
        return {}
    holders = _holders(documents)
    readings: dict[str, int] = {}
    for truth in truths:
        wanted = _without_any_gap([truth])
        for position in sorted({at for one in wanted & holders.keys() for at in holders[one]}):
            readings.setdefault(_closed(documents[position], wanted), position)
    return readings


def with_gaps_to_close(
    tokenizer: Tokenizer, documents: Sequence[str], truths: Mapping[int, Sequence[str]]
) -> tuple[dict[int, str], set[int]]:
    """Return the documents that have gaps to close, and for which queries.

    Args:
        tokenizer: That of coverage, as for :func:`other_readings`.
        documents: The texts to look through.
        truths: Query -> all its ground-truth texts.

    Returns:
        Their positions, with how they read if the gaps are closed for all queries; and the queries.

    >>> with_gaps_to_close(letter_tokens, ["20 24년", "2024년"], {5: ["2024년"], 6: ["24년"]})
    ({0: '2024년'}, {5})
    """
    if tokenizer is not letter_tokens:
        return {}, set()
    holders = _holders(documents)
    asked = {one: _without_any_gap(texts) & holders.keys() for one, texts in truths.items()}
    numbers = {number for found in asked.values() for number in found}
    positions = sorted({at for number in numbers for at in holders[number]})
    closed = {at: _closed(documents[at], numbers) for at in positions}
    return closed, {one for one, found in asked.items() if found}


def _holders(documents: Sequence[str]) -> dict[str, list[int]]:
    """Return which documents would have a number without a gap."""
    holders: dict[str, list[int]] = defaultdict(list)
    for position, text in enumerate(documents):
        for one in _gaps(text):
            holders[one].append(position)
    return holders


def _without_any_gap(texts: Sequence[str]) -> set[str]:
    """Return the runs of digits in some texts, but for those that one of them has with a gap."""
    numbers = {number for text in texts for number in _DIGITS.findall(text)}
    return numbers.difference(*map(_gaps, texts))


def _gaps(text: str) -> set[str]:
    """Return the numbers that a text would have without a gap, for numbers of two parts."""
    found = map(str.split, _WITH_GAPS.findall(text))
    return {"".join(parts) for parts in found if len(parts) == 2}


def _closed(text: str, numbers: set[str]) -> str:
    """Close the gaps inside some numbers of a text.

    >>> _closed("20 24년 3 0명, 1 20 24", {"2024", "12024"})
    '2024년 3 0명, 1 20 24'
    """
    return _WITH_GAPS.sub(
        lambda found: "".join(found[0].split()) if _gaps(found[0]) & numbers else found[0], text
    )


def _numbers_of(texts: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(numbers_in(text)) for text in texts]
