"""ROUGE as a similarity: the digits of the rouge-score package at a fraction of its cost.

rouge-score tokenizes and stems both texts of every pair anew. Here every distinct text is
tokenized once and every distinct token stemmed once; from then on texts are arrays of integers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    N_,
    Advice,
    FloatArray,
    IntArray,
    InvalidInput,
    TextMatcher,
    Tokenizer,
    TokenNumbers,
    Units,
    _,
    boolean,
    number,
    one_of,
    whole,
)
from krag_eval.core.errors import warn_of
from krag_eval.core.matching.identity import function_name
from krag_eval.core.matching.joins import BlockScorer
from krag_eval.core.matching.numbering import numbered
from krag_eval.core.matching.tokenizers import resolve_tokenizer, tokenizer_name
from krag_eval.matchers import waiting

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

#: ``(positions of ground-truth texts, positions of predicted texts) -> what each pair shares``
Overlaps: TypeAlias = Callable[[IntArray, IntArray], IntArray | FloatArray]

# Tokens in a gram; ROUGE-L compares sequences of single tokens.
_GRAM_SIZES = {"rouge1": 1, "rouge2": 2, "rougeL": 1}

# All of Unicode but the surrogates, which no decoder accepts.
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800
_CODE_POINTS = 0x110000 - _SURROGATES

# 10 to 18 billion pairs of tokens a second, in short texts 20 billion.
_SECONDS_PER_TOKEN_PAIR = 1 / 1e10


class RougeMatcher(TextMatcher):
    """Similarity of two texts by ROUGE, equal to the rouge-score package to the last digit.

    Similarity is the share of n-grams (``rouge1``, ``rouge2``) or of the longest common
    subsequence of tokens (``rougeL``) that the two texts have in common: of the ground truth
    (``statistic="recall"``), of the predicted text (``"precision"``), or the harmonic mean of both
    (``"fmeasure"``). It is 0 when nothing is shared and 1 when all is.

    The F-measure asks whether two texts *say the same at the same length*. Where the ground truth
    is a passage and the retriever returns chunks cut elsewhere, no pair comes near any useful
    threshold; ask for coverage (``matcher="coverage"``) or ``statistic="recall"`` there.

    A text without tokens (blank, or punctuation only) has similarity 0 with everything. So has,
    under ``rouge2``, a text of one token, for it has no bigram; a warning counts those.

    ROUGE-L takes time by the product of two texts' lengths, a minute or two for two of a million
    words each, which a warning announces; the other two by their sum. Ctrl-C is answered between
    ground-truth texts, and a pair of texts longer still is refused (``max_cells``).

    Args:
        rouge_type: ``"rouge1"``, ``"rouge2"`` or ``"rougeL"``; with a ``scorer``, one of its types,
            which need not be named where it has one alone.
        threshold: Similarity from which a pair is a match, in [0, 1].
        statistic: ``"fmeasure"``, ``"recall"`` or ``"precision"``.
        tokenizer: A name of ``TOKENIZER_NAMES``, a tokenizer of rouge-score
            (``rouge_score.tokenizers.Tokenizer``) or any callable ``str -> list[str]``. With
            ``"rouge_score"`` the results are those of ``RougeScorer`` as it comes; with the default
            they are the same on ASCII text.
        stemmer: If true, tokens of more than three characters are reduced to their English stem
            (Porter's), as ``RougeScorer(use_stemmer=True)`` does.
        max_cells: The most cells, one length times the other, in the table that ROUGE-L fills for
            a pair of texts. A pair with more is refused before any is scored. It changes no number,
            so it is not in the signature; the other types have no such table.
        scorer: A ``RougeScorer`` of rouge-score that scores the pairs in place of the fast path,
            whatever types it knows (``"rougeLsum"``, ``"rouge4"``), with its own tokenizer,
            stemmer and way of splitting sentences.

    Raises:
        InvalidInput: For an unknown type, statistic or tokenizer name, a threshold outside [0, 1],
            a ``max_cells`` below 1, and a tokenizer or stemmer beside a scorer; when matching by
            ROUGE-L, for a pair of texts with more than ``max_cells``.
        InvalidType: For one of another type, such as a stemmer that is not a bool.

    Three of four words in common, on either side:

    >>> RougeMatcher("rouge1").similarity("the cat sat down", "the cat lay down")
    0.75
    >>> RougeMatcher("rouge1", statistic="recall").similarity("the cat", "there sat the cat")
    1.0
    >>> RougeMatcher("rougeL", threshold=0.8).signature
    'rougeL(statistic=fmeasure,tokenizer=unicode,stemmer=no)'

    With a scorer of rouge-score:

    >>> from rouge_score.rouge_scorer import RougeScorer
    >>> RougeMatcher(scorer=RougeScorer(["rouge4"])).similarity("a b c d e", "a b c d")
    0.6666666666666666

    Source: Lin, *ROUGE: A Package for Automatic Evaluation of Summaries*, 2004; rouge-score 0.1.2.
    """

    normalize: ClassVar[bool] = False

    def __init__(
        self,
        rouge_type: str | None = None,
        threshold: float = 0.5,
        statistic: str = "fmeasure",
        tokenizer: str | Tokenizer = "unicode",
        stemmer: bool = False,
        max_cells: int = waiting.MAX_CELLS,
        scorer: RougeScorer | None = None,
    ) -> None:
        types = _GRAM_SIZES if scorer is None else scorer.rouge_types
        if rouge_type is None and scorer is not None and len(types) == 1:
            (rouge_type,) = types
        self.name = self.rouge_type = one_of("rouge_type", rouge_type, tuple(types))
        self.threshold = number("threshold", threshold, 0, 1)
        self.statistic = one_of("statistic", statistic, tuple(_STATISTICS))
        self.tokenizer = resolve_tokenizer(tokenizer)
        self._tokenizer_name = tokenizer_name(self.tokenizer)
        self.stemmer = boolean("stemmer", stemmer)
        self.scorer = scorer
        if scorer is not None and (stemmer or tokenizer != "unicode"):
            fix = "make the RougeScorer with them: RougeScorer(types, use_stemmer=…, tokenizer=…)"
            raise InvalidInput("scorer", "has a tokenizer and a stemmer of its own", fix)
        self.max_cells = whole("max_cells", max_cells, 1)

    def settings(self) -> dict[str, object]:
        """Return all settings: two ROUGE scores compare only if they agree in every one."""
        if self.scorer is not None:
            return {"statistic": self.statistic, "scorer": function_name(self.scorer)}
        return {
            "statistic": self.statistic,
            "tokenizer": self._tokenizer_name,
            "stemmer": self.stemmer,
        }

    def read(self, texts: Sequence[str]) -> Sequence[str] | TokenNumbers:
        """Tokenize each distinct text once, and stem each distinct token once."""
        if self.scorer is not None:
            return texts
        tokens = numbered(self.tokenizer, texts, _StemNumbers() if self.stemmer else None)
        self._warn_of_short_texts(tokens)
        return tokens

    def block_scorer(self, texts: Sequence[str] | TokenNumbers) -> BlockScorer:
        """Number the n-grams of each distinct text."""
        if self.scorer is not None:
            return partial(self._scored, cast(Sequence[str], texts))
        tokens: Any = texts if isinstance(texts, TokenNumbers) else self.read(texts)
        grams = tokens if _GRAM_SIZES[self.rouge_type] == 1 else _bigrams(tokens)
        count_shared = _subsequences if self.rouge_type == "rougeL" else _common_grams
        overlaps = count_shared(grams)
        statistic = _STATISTICS[self.statistic]
        # A text without a gram shares none, and 0 / 1 is the 0 that rouge-score gives it.
        sizes = np.maximum(grams.sizes, 1).astype(np.float64)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            shared = overlaps(actual, predicted).astype(np.float64)
            return statistic(shared, sizes[actual][:, np.newaxis], sizes[predicted])

        return score

    def _scored(self, texts: Sequence[str], actual: IntArray, predicted: IntArray) -> FloatArray:
        """Return what the user's scorer says of every pair."""
        scorer: Any = self.scorer
        similarities = [
            [getattr(scorer.score(texts[truth], texts[found])[self.rouge_type], self.statistic)
             for found in predicted.tolist()]
            for truth in actual.tolist()
        ]  # fmt: skip
        return np.array(similarities, np.float64)

    _advice = Advice(
        N_(
            "ROUGE's F-measure finds nothing where the ground truth is a passage and the "
            "retriever returns longer or differently cut chunks; try {} or {}"
        ),
        matcher=("coverage", "rougeL(statistic=recall)"),
    )

    def announce(self, units: Units) -> None:
        """Warn of texts whose longest common subsequences take minutes; refuse longer ones."""
        if self.rouge_type == "rougeL" and self.scorer is None:
            lengths = _lengths(units.values)
            waiting.check_waits(units, lengths, _SUBSEQUENCES, self.max_cells)

    def _warn_of_short_texts(self, tokens: TokenNumbers) -> None:
        size = _GRAM_SIZES[self.rouge_type]
        short = np.count_nonzero((tokens.sizes > 0) & (tokens.sizes < size))
        if short:
            told = _(
                "{} distinct texts have fewer than {size} tokens; {rouge} gives them "
                "similarity 0 with everything, even with themselves. Use rouge1 or rougeL "
                "where texts are that short."
            )
            warn_of(told.format("{}", size=size, rouge=self.rouge_type), int(short))


def _lengths(texts: TokenNumbers | Sequence[str]) -> IntArray:
    """Return the number of tokens per text, or of words where they have not been read yet."""
    if isinstance(texts, TokenNumbers):
        return texts.sizes
    return np.array([text.count(" ") + 1 for text in texts], np.int64)


def _fmeasure(shared: FloatArray, actual: FloatArray, predicted: FloatArray) -> FloatArray:
    # The operations of rouge-score in its order; 2 * shared / (actual + predicted) differs in the
    # last digit.
    precision, recall = shared / predicted, shared / actual
    total = precision + recall
    total[total == 0.0] = 1.0
    return 2 * precision * recall / total


#: What the names ``"rouge1"``, ``"rouge2"`` and ``"rougeL"`` make.
rouge1 = partial(RougeMatcher, "rouge1")
rouge2 = partial(RougeMatcher, "rouge2")
rouge_l = partial(RougeMatcher, "rougeL")

_SUBSEQUENCES = waiting.Comparison(
    name="rougeL",
    of="tokens",
    seconds=lambda actual, predicted: float(
        actual.sum() * predicted.sum() * _SECONDS_PER_TOKEN_PAIR
    ),
    at_most=_SECONDS_PER_TOKEN_PAIR,
    advice=Advice(
        N_(
            "Cut the texts into chunks, or use {}, {} or {}, whose time grows with the length of "
            "the texts only"
        ),
        matcher=("rouge1", "rouge2", "coverage"),
    ),
)

_STATISTICS: dict[str, Callable[..., FloatArray]] = {
    "fmeasure": _fmeasure,
    "recall": lambda shared, actual, predicted: shared / actual,
    "precision": lambda shared, actual, predicted: shared / predicted,
}


def _bigrams(tokens: TokenNumbers) -> TokenNumbers:
    """Number the pairs of neighbouring tokens within each text."""
    text = np.repeat(np.arange(len(tokens.sizes)), tokens.sizes)
    inside = text[1:] == text[:-1]
    first, second = tokens.flat[:-1][inside].astype(np.int64), tokens.flat[1:][inside]
    return TokenNumbers(_dense(first * tokens.n_distinct + second), np.maximum(tokens.sizes - 1, 0))


def _dense(keys: IntArray) -> NDArray[np.int32]:
    """Number distinct keys from 0; three times as fast as ``np.unique`` with its inverse."""
    order = _radix_order(keys)
    numbers = np.zeros(len(keys), np.int32)
    numbers[order[1:]] = np.cumsum(np.diff(keys[order]) > 0)
    return numbers


def _radix_order(keys: IntArray) -> IntArray:
    """Return the order that sorts keys from 0 upwards, digit by digit.

    numpy sorts 16-bit integers, and no others, by radix: ten times as fast as 64-bit ones.
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(16, int(keys.max(initial=0)).bit_length(), 16):
        digit = (keys >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def _occurrences(grams: TokenNumbers) -> TokenNumbers:
    """Give the j-th occurrence of a gram in a text a number of its own.

    Repeats then need no counting: the clipped overlap of two texts is the size of the intersection
    of two sets. Within a text the order of grams is lost.
    """
    flat = grams.flat.copy()
    for text in grams.slices():
        flat[text].sort()
    begins = np.ones(len(flat), np.bool_)
    begins[1:] = flat[1:] != flat[:-1]
    # The last gram of a text may be the first of the next one.
    begins[(np.cumsum(grams.sizes) - grams.sizes)[grams.sizes > 0]] = True
    runs = np.flatnonzero(begins)
    lengths = np.diff(runs, append=len(flat))
    most = np.zeros(grams.n_distinct, np.int64)
    np.maximum.at(most, flat[runs], lengths)
    first_number = np.cumsum(most) - most
    repeat = np.arange(len(flat)) - np.repeat(runs, lengths)
    return TokenNumbers(first_number[flat] + repeat, grams.sizes)


def _common_grams(grams: TokenNumbers) -> Overlaps:
    """Count the grams that two texts share, each as often as it occurs in both.

    The grams of up to four ground-truth texts are marked in four 16-bit lanes of one integer per
    gram; summing the marks over a predicted text counts all four overlaps together. A lane holds
    counts below 65,536, so where a text is longer each ground-truth text has all 64 bits.
    """
    numbers = _occurrences(grams)
    parts = [numbers.flat[text] for text in numbers.slices()]
    bits = 16 if grams.sizes.max(initial=0) < 1 << 16 else 64
    lanes = np.uint64(bits) * np.arange(64 // bits, dtype=np.uint64)
    units, mask = np.uint64(1) << lanes, np.uint64((1 << bits) - 1)
    marks = np.zeros(numbers.n_distinct, np.uint64)

    def overlaps(actual: IntArray, predicted: IntArray) -> IntArray:
        truths = [parts[text] for text in actual.tolist()]
        found = np.concatenate([parts[text] for text in predicted.tolist()])
        bounds = np.zeros(len(predicted) + 1, np.int64)
        np.cumsum(grams.sizes[predicted], out=bounds[1:])
        # Sums may run over along the way; their differences are right all the same (modulo 2^64).
        running = np.zeros(len(found) + 1, np.uint64)
        shared = np.empty((len(actual), len(predicted)), np.int64)
        for start in range(0, len(truths), len(lanes)):
            group = truths[start : start + len(lanes)]
            for unit, truth in zip(units, group, strict=False):
                marks[truth] += unit
            np.cumsum(marks[found], out=running[1:])
            sums = np.diff(running[bounds])
            shared[start : start + len(lanes)] = (sums >> lanes[: len(group), np.newaxis]) & mask
            for truth in group:
                marks[truth] = 0
        return shared

    return overlaps


def _subsequences(tokens: TokenNumbers) -> Overlaps:
    """Measure the longest common subsequence of tokens of two texts, by bit-parallel LCS."""
    from rapidfuzz.distance import LCSseq

    sequence = _sequences(tokens)

    def overlaps(actual: IntArray, predicted: IntArray) -> FloatArray:
        truths, chunks = (
            [sequence(text) for text in side.tolist()] for side in (actual, predicted)
        )
        return waiting.score_rows(LCSseq.similarity, truths, chunks)

    return overlaps


def _sequences(tokens: TokenNumbers) -> Callable[[int], Sequence[int] | str]:
    """Return a function that spells a text as a sequence rapidfuzz is quick with.

    That is a string with one code point per token: the most frequent tokens become the lowest ones,
    which rapidfuzz looks up in a table rather than a hash map. Lists serve where there are more
    distinct tokens than code points.
    """
    flat, slices = tokens.flat, tokens.slices()
    if tokens.n_distinct > _CODE_POINTS:
        return lambda text: flat[slices[text]].tolist()
    by_frequency = np.argsort(-np.bincount(flat), kind="stable")
    codes = np.empty(tokens.n_distinct, np.dtype("<u4"))
    codes[by_frequency] = np.arange(tokens.n_distinct)
    codes[codes >= _FIRST_SURROGATE] += _SURROGATES
    spelled = codes[flat].tobytes().decode("utf-32-le")
    return [spelled[text] for text in slices].__getitem__


# How a word ends that Porter's rules change; every other word is its own stem.
_SUFFIXES = (
    *("s", "e", "y", "ed", "er", "al", "ic", "nt", "ll", "ou", "ci", "li"),
    *("ing", "ion", "ful", "ism", "tor", "iti", "ogi"),
)


@lru_cache(1 << 16)
def _stem(word: str) -> str:
    """Return the stem of a word as rouge-score does, which leaves short words as they are."""
    if len(word) <= 3:
        return word
    lower = word.lower()
    return str(_porter().stem(word)) if lower.endswith(_SUFFIXES) else lower


@cache
def _porter() -> Any:
    from rouge_score import tokenizers  # takes 1.4 s, for those who stem

    return tokenizers.porter.PorterStemmer()


class _StemNumbers(dict[str, int]):
    """Numbers tokens by their stem, looking each distinct token up once."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = defaultdict(count().__next__)

    def __missing__(self, token: str) -> int:
        number = self[token] = self._numbers[_stem(token)]
        return number
