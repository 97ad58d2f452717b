"""krag's three ways of deciding that a document matches, as matchers of krag_eval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from krag_eval.matching.base import Matcher, TextMatcher
from krag_eval.matching.embedding import EmbeddingMatcher
from krag_eval.matching.joins import BlockScorer, FloatArray, IntArray, Units
from krag_eval.matching.rouge import RougeMatcher

__all__ = ["GatedRougeMatcher", "OwnTextMatcher", "SubstringMatcher"]


class SubstringMatcher(TextMatcher):
    """A document matches when the ground-truth text occurs in it, anywhere, to the letter.

    krag's ``match_method="text"``, after Unicode NFC normalisation. ``doc1`` occurs in ``doc10``;
    :class:`~krag_eval.ContainsMatcher` minds word boundaries.

    >>> SubstringMatcher().similarity("doc1", "doc10")
    1.0
    """

    name = "krag-text"
    threshold = 1.0
    takes_threshold: ClassVar[bool] = False

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Look the texts up as they are."""

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            retrieved = [texts[unit] for unit in predicted.tolist()]
            return np.array(
                [[texts[unit] in text for text in retrieved] for unit in actual.tolist()], float
            )

        return score


class GatedRougeMatcher(TextMatcher):
    """ROUGE, but only between texts whose embeddings are alike; 0 between all others.

    Args:
        rouge: The similarity, with its threshold.
        gate: What must match for a pair to be looked at.
    """

    divisible: ClassVar[bool] = False

    def __init__(self, rouge: RougeMatcher, gate: EmbeddingMatcher) -> None:
        self.name = f"krag-embedding-{rouge.name}"
        self.threshold = rouge.threshold
        self.rouge = rouge
        self.gate = gate

    def settings(self) -> dict[str, object]:
        """Return the settings of both, and the gate's threshold."""
        gate = {**self.gate.settings(), "similarity_threshold": self.gate.threshold}
        return {**self.rouge.settings(), **gate}

    def announce(self, units: Units) -> None:
        """Warn of long texts, as if all of them passed the gate."""
        self.rouge.announce(units)

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Embed and tokenise each distinct text once."""
        alike, rouge = self.gate.block_scorer(texts), self.rouge.block_scorer(texts)

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            passed = alike(actual, predicted) >= self.gate.threshold
            return np.where(passed, rouge(actual, predicted), 0.0)

        return score


class OwnTextMatcher(Matcher):
    """What a subclass of krag's evaluators decides in its own ``text_match``.

    Args:
        text_match: ``(ground-truth text, predicted text) -> whether they match``.
        name: Name in signatures.
    """

    threshold = 1.0
    takes_threshold: ClassVar[bool] = False

    def __init__(self, text_match: Callable[[str, str], bool], name: str) -> None:
        self.name = name
        self._text_match = text_match

    def settings(self) -> dict[str, object]:
        """Return none: the name stands for all."""
        return {}

    def prepare(self, text: str) -> str:
        """Ask for texts instead of documents."""
        return text

    def similarity(self, actual: str, predicted: str) -> float:
        """Return 1.0 for a match, else 0.0."""
        return float(bool(self._text_match(actual, predicted)))
