"""krag's tokens: what its ROUGE compares."""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from krag_eval.core import MissingPackage, install_line
from krag_eval.core.errors import unknown
from krag_eval.core.matching import tokenizers

__all__ = ["KragTokens", "TokenizerConfig", "TokenizerType"]


class TokenizerType(Enum):
    """How ROUGE splits a text: at white space, into Kiwi's morphemes, or into NLTK's words."""

    WHITESPACE = "whitespace"
    KIWI = "kiwi"
    NLTK = "nltk"


@dataclass(frozen=True)
class TokenizerConfig:
    """A tokenizer type and what it does: a text comes back with spaces between its words."""

    type: TokenizerType
    tokenize_fn: Callable[[str], str]


class KragTokens:
    """A tokenizer for :class:`~krag_eval.RougeMatcher` that finds krag's tokens.

    The words of the chosen type in lower case, of the text in Unicode NFC. Particles, endings and
    punctuation all count.

    Args:
        tokenizer: A ``TokenizerType`` or its value, such as ``"whitespace"``.

    Raises:
        InvalidInput: For anything else.
        MissingPackage: If ``KIWI`` or ``NLTK`` is asked for and not installed.
        LookupError: If NLTK has no ``punkt_tab`` data.

    >>> KragTokens("whitespace")("The cat sat.")
    ['the', 'cat', 'sat.']
    >>> KragTokens(TokenizerType.KIWI)("나는 밥을 먹었다.")
    ['나', '는', '밥', '을', '먹', '었', '다', '.']
    """

    def __init__(self, tokenizer: TokenizerType | str) -> None:
        allowed = {one.value: one for one in TokenizerType} | {one: one for one in TokenizerType}
        if tokenizer not in allowed:
            raise unknown("tokenizer", tokenizer, [one.value for one in TokenizerType])
        self.type = allowed[tokenizer]
        self._words = _WORDS[self.type]()

    @property
    def name(self) -> str:
        """Name in signatures, with the versions of what finds the words."""
        versions = ",".join(f"{name}={value}" for name, value in _VERSIONS[self.type]().items())
        return f"krag-{self.type.value}" + (f"({versions})" if versions else "")

    @property
    def config(self) -> TokenizerConfig:
        """The same tokenizer in krag's form."""
        return TokenizerConfig(self.type, lambda text: " ".join(self._words(text)))

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of one text."""
        return _tokens(self._words(_composed(text)))

    def tokenize_all(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the tokens of each text in order; Kiwi works on all cores."""
        if self.type is TokenizerType.KIWI:
            analysed = tokenizers.shared_kiwi.analyse_all(map(_composed, texts))
            return map(_tokens, map(_forms, analysed))
        return map(self, texts)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _tokens(words: Iterable[str]) -> list[str]:
    # Joined and split again, because a morpheme may hold a space.
    return " ".join(words).lower().split()


def _kiwi_words() -> Callable[[str], list[str]]:
    if importlib.util.find_spec("kiwipiepy") is None:
        problem = "TokenizerType.KIWI, krag's default, needs kiwipiepy, which is not installed"
        fix = f"run: {install_line('korean')} (or pass TokenizerType.WHITESPACE)"
        raise MissingPackage("tokenizer", problem, fix)
    return lambda text: _forms(tokenizers.shared_kiwi.analyse(text))


def _forms(morphemes: Iterable[Any]) -> list[str]:
    return [morpheme.form for morpheme in morphemes]


def _nltk_words() -> Callable[[str], list[str]]:
    import nltk

    try:
        nltk.data.find("tokenizers/punkt_tab")
    except LookupError:
        problem = "tokenizer=TokenizerType.NLTK needs NLTK's sentence data, which is not here"
        raise LookupError(f"{problem}; run: python -m nltk.downloader punkt_tab") from None
    words: Callable[[str], list[str]] = nltk.word_tokenize
    return words


_VERSIONS: dict[TokenizerType, Callable[[], dict[str, str]]] = {
    TokenizerType.WHITESPACE: dict,
    TokenizerType.KIWI: tokenizers.kiwi_versions,
    TokenizerType.NLTK: lambda: {"version": tokenizers.installed_version("nltk")},
}
_WORDS: dict[TokenizerType, Callable[[], Callable[[str], list[str]]]] = {
    TokenizerType.WHITESPACE: lambda: str.split,
    TokenizerType.KIWI: _kiwi_words,
    TokenizerType.NLTK: _nltk_words,
}
