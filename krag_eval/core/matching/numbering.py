"""Tokens of many texts as integers: equal where tokens are equal, one text after the other.

Each distinct text is tokenised once, by several processes if asked for, and each distinct token
numbered once.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, count, pairwise, starmap
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.matching.joins import BoolArray, IntArray
from krag_eval.core.matching.parallel import in_processes, n_processes
from krag_eval.core.matching.tokenizers import (
    Tokenizer,
    letter_tokens,
    tokenize_all,
    tokenizer_name,
)

_PARTS_PER_PROCESS = 4
_LARGEST_PART = 1 << 23  # characters, so that some hundred MB are on their way at most


@dataclass(frozen=True, eq=False)
class TokenNumbers:
    """The tokens or grams of all distinct texts as integers, one text after the other.

    Attributes:
        flat: Numbers from 0, equal where tokens are equal; shape (tokens,).
        sizes: Tokens of each text; shape (texts,).
        amounts: The tokens that are numbers in texts read by letters, where the letters behind a
            number belong to it; ascending.
    """

    flat: NDArray[np.int32] | IntArray
    sizes: IntArray
    amounts: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def n_distinct(self) -> int:
        """One more than the largest number."""
        return int(self.flat.max(initial=-1)) + 1

    @cached_property
    def _ends(self) -> IntArray:
        return np.cumsum(self.sizes)

    def counted(self, marked: BoolArray) -> IntArray:
        """Return how many tokens of each text are marked; shape (texts,).

        >>> tokens = TokenNumbers(np.array([5, 6, 7]), np.array([2, 1]))
        >>> tokens.counted(np.array([True, False, True])).tolist()
        [1, 1]
        """
        text = np.repeat(np.arange(len(self)), self.sizes)
        return np.asarray(np.bincount(text[marked], minlength=len(self)), np.int64)

    def of(self, text: int) -> NDArray[np.int32] | IntArray:
        """Return the tokens of one text."""
        return self.flat[self._ends[text] - self.sizes[text] : self._ends[text]]

    def slices(self) -> list[slice]:
        """Return where each text is found in ``flat``."""
        return [*starmap(slice, pairwise([0, *np.cumsum(self.sizes).tolist()]))]

    def after(self, n_tokens: int) -> TokenNumbers:
        """Return the same texts, as their tokens are numbered after so many others."""
        return TokenNumbers(self.flat + n_tokens, self.sizes, self.amounts + n_tokens)

    def followed_by(self, others: TokenNumbers) -> TokenNumbers:
        """Return these texts and then others, whose numbers mean the same."""
        return TokenNumbers(
            np.concatenate([self.flat, others.flat]),
            np.concatenate([self.sizes, others.sizes]),
            np.union1d(self.amounts, others.amounts),
        )

    def take(self, texts: IntArray) -> TokenNumbers:
        """Return some of the texts, in the order asked for.

        >>> TokenNumbers(np.array([5, 6, 7]), np.array([2, 1])).take(np.array([1])).flat.tolist()
        [7]
        """
        sizes = self.sizes[texts]
        # Where each text begins in ``flat``, less where it begins among those taken.
        shift = self._ends[texts] - np.cumsum(sizes)
        flat = self.flat[np.arange(sizes.sum()) + np.repeat(shift, sizes)]
        return TokenNumbers(flat, sizes, self.amounts)


def numbered(
    tokenizer: Tokenizer, texts: Sequence[str], numbers: dict[str, int] | None = None
) -> TokenNumbers:
    """Tokenise each text, and number the tokens in order of appearance.

    Args:
        tokenizer: How a text becomes tokens.
        texts: The texts.
        numbers: A dict that numbers what it lacks; one that gives each token the next number if
            not given.

    >>> numbered(str.split, ["the cat", "the dog"]).flat.tolist()
    [0, 1, 0, 2]
    """
    if numbers is None:
        numbers = defaultdict(count().__next__)
    tokens = _numbered(tokenizer, texts, numbers)
    if tokenizer is not letter_tokens:
        return tokens
    return replace(tokens, amounts=amounts_in(numbers))


def amounts_in(numbers: Mapping[str, int]) -> IntArray:
    """Return the tokens, by number, that are numbers, ascending."""
    amounts = [number for token, number in numbers.items() if token.isdecimal()]
    return np.sort(np.array(amounts, np.int64))


def _numbered(tokenizer: Tokenizer, texts: Sequence[str], numbers: dict[str, int]) -> TokenNumbers:
    if n_processes() == 1 or len(texts) < 2:
        return _number(tokenize_all(tokenizer, texts), numbers)
    name = f"tokenizer {tokenizer_name(tokenizer, marked=False)}"
    parts = in_processes(_number_part, tokenizer, name, _parts(texts))
    flat, sizes = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for tokens, part in parts:
        # In order of appearance again, so that every number is what it is without processes.
        known = np.fromiter(map(numbers.__getitem__, tokens), np.int32, len(tokens))
        flat.append(known[part.flat])
        sizes.append(part.sizes)
    return TokenNumbers(np.concatenate(flat), np.concatenate(sizes))


def _number_part(tokenizer: Tokenizer, texts: list[str]) -> tuple[list[str], TokenNumbers]:
    """Return the distinct tokens of some texts, and their places among them."""
    numbers: dict[str, int] = defaultdict(count().__next__)
    part = _number(tokenize_all(tokenizer, texts), numbers)
    return list(numbers), part


def _number(tokenized: Iterable[list[str]], numbers: dict[str, int]) -> TokenNumbers:
    flat = array("i")
    sizes: list[int] = []
    for tokens in tokenized:
        # Text by text, into one buffer: a live token costs 50 bytes, its number 4.
        flat.fromlist(_looked_up(tokens, numbers))
        sizes.append(len(tokens))
    return TokenNumbers(np.array(flat, np.int32), np.array(sizes, np.int64))


def _looked_up(tokens: list[str], numbers: dict[str, int]) -> list[int]:
    if len(tokens) < 2:  # itemgetter answers with a tuple from two keys on
        return [numbers[token] for token in tokens]
    # Most of all time is spent here; going through map() takes a fifth longer.
    return [*itemgetter(*tokens)(numbers)]


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut the texts into runs of about as many characters each."""
    total = sum(map(len, texts))
    size = min(total // (_PARTS_PER_PROCESS * n_processes()) + 1, _LARGEST_PART)
    part: list[str] = []
    for text, end in zip(texts, accumulate(map(len, texts)), strict=True):
        part.append(text)
        if end // size > (end - len(text)) // size:
            yield part
            part = []
    if part:
        yield part
