"""Likeness of two texts in meaning: the cosine of their embeddings, by any model of the user's."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np

from krag_eval.asking.timeouts import check_timeout, in_thread
from krag_eval.core import (
    N_,
    FloatArray,
    IntArray,
    InvalidInput,
    InvalidType,
    TextMatcher,
    clipped,
    is_blank,
    must,
    number,
    whole,
)
from krag_eval.core.files import ForkLock
from krag_eval.core.matching.identity import mark_of
from krag_eval.core.matching.joins import BlockScorer, real_numbers

# A unit vector times itself may differ from 1 by some 1e-15.
_ROUNDING = 1e-12
_MODEL_FIRST = "write EmbeddingMatcher(embeddings, threshold), the model first"


class Embeddings(Protocol):
    """What is asked of an embedding model; every LangChain ``Embeddings`` has it."""

    def embed_documents(self, texts: list[str], /) -> Sequence[Sequence[float]]:
        """Return one vector per text."""


class EmbeddingMatcher(TextMatcher):
    """Texts match when their embeddings point in nearly the same direction.

    The similarity is the cosine of the two vectors, in [0, 1], higher is better; a negative cosine
    counts as 0, and identical texts are exactly 1. Each distinct text is embedded once. Both sides
    go through ``embed_documents``: a passage is compared with a passage, and ``embed_query`` is
    made for questions.

    Cosines of different models are on different scales, and texts on the same subject are always
    somewhat alike, so there is no default threshold: look at pairs you know, or calibrate. An
    embedding hardly sees numbers or negations; combine it with a matcher that does, as in
    ``EmbeddingMatcher(embeddings, 0.7) & RougeMatcher("rouge1", 0.5)``.

    Args:
        embeddings: Any LangChain ``Embeddings``, or another object with ``embed_documents(texts)``
            returning one vector per text. Or a function without arguments that makes one: it is
            called at the first text, once per process, and it alone travels when the matcher is
            pickled; its name is in the signature.
        threshold: Similarity from which a pair is a match.
        batch_size: Texts per call of ``embed_documents``.
        timeout: Seconds that a call of ``embed_documents`` may take, which is then made in a thread
            of its own; any time if not given.
        cache: A dict, or anything like one, from text to vector. It is read first and filled after
            every batch, so that a run that failed half-way pays only for the rest when repeated
            with the same cache. It belongs to one model: another one needs a cache of its own.
            LangChain's ``CacheBackedEmbeddings``, passed as ``embeddings``, does the same on disk.

    Raises:
        InvalidType: If ``embeddings`` has no ``embed_documents`` or the cache is not like a dict.
        InvalidInput: If the threshold is outside [0, 1] or ``batch_size`` below 1; when matching,
            if the model returns anything but one vector of finite numbers, not all zero, per text,
            all of one length.
        TimeoutError: When matching, if a call takes longer than ``timeout``.

    >>> class LetterCounts:
    ...     def embed_documents(self, texts):
    ...         return [[text.count(letter) for letter in "abc"] for text in texts]
    >>> matcher = EmbeddingMatcher(LetterCounts(), 0.7)
    >>> matcher.similarity("aab", "baa"), matcher.similarity("aab", "ccc")
    (1.0, 0.0)
    >>> matcher.signature
    'embedding(embeddings=LetterCounts#...)'
    """

    name = "embedding"
    # A model uses all cores already, and a copy of it for each process may not fit.
    divisible: ClassVar[bool] = False

    def __init__(
        self,
        embeddings: Embeddings | Callable[[], Embeddings],
        threshold: float,
        *,
        batch_size: int = 64,
        timeout: float | None = None,
        cache: MutableMapping[str, Sequence[float]] | None = None,
    ) -> None:
        made: Any = embeddings
        is_maker = callable(made) and not (
            hasattr(made, "embed_documents") or isinstance(made, type)
        )
        self._source = MadeOnce(made) if is_maker else _checked_embeddings(made)
        # LangChain's cache wraps a model; the vectors are those of the model inside.
        self._mark = mark_of(getattr(made, "underlying_embeddings", made))
        self.threshold = number("threshold", threshold, 0, 1)
        self.batch_size = whole("batch_size", batch_size, 1)
        self.timeout = check_timeout(timeout)
        if cache is not None and not (hasattr(cache, "get") and hasattr(cache, "update")):
            fix = "For a LangChain store, wrap the embeddings in CacheBackedEmbeddings instead"
            raise must("cache", "be a dict or something like it", cache, fix, InvalidType)
        self.cache = cache

    _advice = N_(
        "Cosines of different models are on different scales: look at the similarities of "
        "pairs you know to be right before choosing a threshold."
    )

    @property
    def embeddings(self) -> Embeddings:
        """The embeddings; made now, if they were given as a function."""
        source = self._source
        return _checked_embeddings(source.get()) if isinstance(source, MadeOnce) else source

    def settings(self) -> dict[str, object]:
        """Return the class of the embeddings, and the model's name if it has one.

        Of embeddings yet to be made, the name of the function that makes them: a signature must
        not load a model. A digest says what the embeddings, or the function, hold.
        """
        if isinstance(self._source, MadeOnce):
            return {"embeddings": self._source.name + self._mark}
        model = getattr(self.embeddings, "underlying_embeddings", self.embeddings)
        settings: dict[str, object] = {"embeddings": type(model).__name__ + self._mark}
        return settings | ({"model": name} if (name := model_name(model)) else {})

    def block_scorer(self, texts: Sequence[str]) -> BlockScorer:
        """Embed each distinct text once."""
        distinct = [text for text in dict.fromkeys(texts) if not is_blank(text)]
        numbers = {text: number for number, text in enumerate(distinct)}
        rows = np.array([numbers.get(text, -1) for text in texts], np.int64)
        directions = _directions(self._vectors(distinct))

        def score(actual: IntArray, predicted: IntArray) -> FloatArray:
            found = directions[rows[predicted]]
            # Summed pair by pair rather than as a product of matrices, whose last digits depend on
            # their shapes: a pair must score the same alone and among others.
            cosines: FloatArray = np.stack(
                [(found * wanted).sum(axis=1) for wanted in directions[rows[actual]]]
            )
            cosines[cosines > 1.0 - _ROUNDING] = 1.0
            cosines[cosines < 0.0] = 0.0
            return cosines

        return score

    def _vectors(self, texts: list[str]) -> list[FloatArray]:
        """Return one vector per text, from the cache or else from the model."""
        known = {} if self.cache is None else {text: self.cache.get(text) for text in texts}
        found = {
            text: _checked_vector(text, vector, "the cache")
            for text, vector in known.items()
            if vector is not None
        }
        self._check_lengths(found.values())
        missing = [text for text in texts if text not in found]
        for start in range(0, len(missing), self.batch_size):
            batch = missing[start : start + self.batch_size]
            new = dict(zip(batch, self._embedded(batch), strict=True))
            self._check_lengths([*new.values(), *islice(found.values(), 1)])
            found |= new
            if self.cache is not None:
                self.cache.update({text: vector.tolist() for text, vector in new.items()})
        return [found[text] for text in texts]

    def _embedded(self, batch: list[str]) -> list[FloatArray]:
        model = self.embeddings
        vectors = in_thread(self.timeout, lambda: [*model.embed_documents(batch)])
        if len(vectors) != len(batch):
            problem = f": {self._model} must return one vector per text, got {len(vectors)} for "
            raise InvalidInput("embeddings", f"{problem}{len(batch)} texts")
        pairs = zip(batch, vectors, strict=True)
        return [_checked_vector(text, vector, self._model) for text, vector in pairs]

    def _check_lengths(self, vectors: Iterable[FloatArray]) -> None:
        lengths = ", ".join(map(str, sorted({*map(len, vectors)})))
        if "," in lengths:
            who = f": {self._model} and the cache returned vectors of different lengths ({lengths})"
            fix = "A cache belongs to one model; pass another model a cache of its own"
            raise InvalidInput("embeddings", who, fix)

    @property
    def _model(self) -> str:
        return f"{type(self.embeddings).__name__}.embed_documents"


def _directions(vectors: list[FloatArray]) -> FloatArray:
    """Return the vectors scaled to length 1; shape (texts, dimensions)."""
    if not vectors:
        return np.empty((0, 0))
    directions = np.empty((len(vectors), len(vectors[0])))
    for direction, vector in zip(directions, vectors, strict=True):
        # First to a size whose square neither overflows nor vanishes.
        direction[:] = vector / np.abs(vector).max()
        direction /= np.sqrt((direction**2).sum())
    return directions


def _checked_vector(text: str, vector: Any, source: str) -> FloatArray:
    """Return a vector as an array, refusing what has no direction."""
    with suppress(TypeError, ValueError):
        array = real_numbers(vector)
        if array.ndim == 1 and np.isfinite(array).all() and array.any():
            return array
    told = f": {source} returned {clipped(vector)} for the text {clipped(text)}"
    fix = "a cosine needs a vector of finite numbers that are not all 0"
    raise InvalidInput("embeddings", told, fix)


def _checked_embeddings(embeddings: Any) -> Embeddings:
    method = getattr(embeddings, "embed_documents", None)
    if isinstance(embeddings, type) or not callable(method):
        fix = "did you forget to call it?" if isinstance(embeddings, type) else _MODEL_FIRST
        be = "be a LangChain Embeddings object, or another with a method embed_documents(texts)"
        raise must("embeddings", be, embeddings, fix, InvalidType)
    model: Embeddings = embeddings
    return model


_lock = ForkLock()


@dataclass(frozen=True)
class MadeOnce:
    """A model, as the function that makes it; copies and pickles hold the function alone.

    A process that receives pickles of one model again and again, as the workers of a cluster do
    with every part of a run, makes it once.

    Attributes:
        make: A function without arguments that returns the model.
        identity: Equal in all copies of one model.

    >>> model = MadeOnce(lambda: ["heavy"])
    >>> model.get() is model.get()
    True
    """

    make: Callable[[], Any] = field(compare=False)
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.make, "__name__", type(self.make).__name__))

    def get(self) -> Any:
        """Return the model; the first to ask in a process makes it, and the others wait."""
        with _lock:
            return _made(self)


# Several matchers of one evaluation may each have their own; those of the past make room.
@lru_cache(maxsize=4)
def _made(model: MadeOnce) -> Any:
    return model.make()


def model_name(model: Any) -> str:
    """Return the name that a model of LangChain's goes by, such as ``gpt-4o``; none if unknown."""
    names = (getattr(model, attribute, None) for attribute in ("model", "model_name"))
    return next((name for name in names if isinstance(name, str) and name), "")
