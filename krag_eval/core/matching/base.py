"""The matcher hierarchy, for built-in matchers and those of users.

A matcher compares all queries in one call and returns :class:`Matches`: how similar each
ground-truth item is to each predicted document of its query, sparsely. A :class:`KeyMatcher`
compares keys for equality and joins by hash; every other :class:`Matcher` scores the pairs within
each query. ``a & b`` and ``a | b`` combine the decisions of several; the module ``names`` makes
matchers by name.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from numbers import Real
from operator import is_
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from krag_eval.core import documents, errors
from krag_eval.core.documents import DocumentLike, Lists, QuerySet, Reading
from krag_eval.core.errors import Advice, Fix, InvalidInput, InvalidType, clipped
from krag_eval.core.language import N_, _
from krag_eval.core.matching import joins
from krag_eval.core.matching.identity import (
    attributes,
    held_by,
    mark_of,
)
from krag_eval.core.matching.near import near_keys, warn_of_near_keys
from krag_eval.core.matching.parallel import in_processes, n_processes
from krag_eval.core.matching.withheld import without_secrets, words_of

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: What a signature says of a matcher that holds more than it can show.
SETTINGS_UNKNOWN = "settings unknown"
# Arguments that have places of their own in a result's signature.
_SHOWN_ELSEWHERE = ("name", "threshold")
_LONGEST_SETTING = 40
# A URL with a password or a query, and what is too long and too mixed for a word.
_MAY_BE_SECRET = re.compile(
    r"://.*[@?]|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16}", re.DOTALL
)
_SOUNDS_SECRET = re.compile(
    "(key|token|secret|password|passwd|pwd|passphrase|credential|auth|authorization|bearer|cookie)"
    "s?$"
)
# What reads as nothing but a text within a signature.
_PLAIN = re.compile("(?!(yes|no|None)$)[A-Za-z_][A-Za-z0-9_./:+-]*")
# More than one, so that processes finish at about the same time.
_PARTS_PER_PROCESS = 4


class Matcher(ABC):
    """Decides how similar a predicted document is to a ground-truth document.

    Subclass it and implement :meth:`similarity`; nothing else is needed. The instance goes into
    ``OfflineRetrievalEvaluator(..., matcher=...)``.

    ``similarity`` receives LangChain ``Document`` objects. If the subclass also defines
    ``prepare(text)``, that runs once per distinct text (NFC-normalised, never blank), and
    ``similarity`` receives what it returned instead. A batched ``similarities(actual, predicted)``
    may replace the pair-by-pair loop. If ``similarity``, or the ``similarities`` of the subclass,
    has a parameter named ``question``, it is given the question by that name: the label of the
    query, as in ``queries=`` of the evaluator.

    The signature shows what it was made with: each argument of the constructor that is kept
    under its own name (or with a ``_`` in front) and is text, a number, true, false or ``None``.
    Long texts are shown as a hash, and what is named a key, token, secret or password is left out.
    Anything else, a model or a function, makes the signature say ``settings unknown``, and results
    are compared with a warning; define :meth:`settings` to say what they are.

    Attributes:
        name: Name in signatures; the class name unless set.
        threshold: Similarity from which a pair is a match, in [0, 1]. A similarity of 0 is never
            a match, whatever the threshold.

    >>> class SameLength(Matcher):
    ...     threshold = 1.0
    ...     def similarity(self, actual, predicted):
    ...         return float(len(actual.page_content) == len(predicted.page_content))
    >>> SameLength().signature
    'SameLength'
    >>> class Judge(SameLength):
    ...     def __init__(self, prompt, api_key, temperature=0):
    ...         self.prompt, self._temperature = prompt, temperature
    >>> Judge("same?", "sk-1", 0.5).signature
    'Judge(prompt="same?",temperature=0.5)'
    """

    name: str = ""
    threshold: float = 0.5
    #: Key matchers decide by equality; a threshold given for them is a mistake worth reporting.
    takes_threshold: ClassVar[bool] = True
    #: Whether its work may be divided among processes, each with a copy of the matcher.
    divisible: ClassVar[bool] = True
    #: Whether it knows which words of the ground truth a document holds, for token metrics.
    counts_words: ClassVar[bool] = False
    #: What it looks at in a document, if it has no ``prepare``.
    _reads: ClassVar[Any] = staticmethod(documents.read_everything)
    #: What to try when nothing matched at all, in English.
    _advice: ClassVar[Fix] = ""
    #: Whether documents count together, so that no pair alone tells what was found.
    union: bool = False

    @abstractmethod
    def similarity(self, actual: Any, predicted: Any) -> float:
        """Return the similarity of one pair, in [0, 1]."""

    def similarities(self, actual: Sequence[Any], predicted: Sequence[Any]) -> joins.FloatArray:
        """Return the similarities of all pairs; shape (actual, predicted).

        Override it when many pairs can be scored faster together than one by one.
        """
        return self._one_by_one(actual, predicted)

    def _one_by_one(
        self, actual: Sequence[Any], predicted: Sequence[Any], **asked: str
    ) -> joins.FloatArray:
        one: Callable[..., float] = self.similarity
        numbers = [self._number(one(a, p, **asked)) for a in actual for p in predicted]
        return np.array(numbers, np.float64).reshape(len(actual), len(predicted))

    def _number(self, value: Any) -> float:
        # Text is not parsed: "0.7" from a model's answer deserves a look first. Of a complex number
        # of numpy's, float() would drop a part.
        if not isinstance(value, (str, bytes)) and not np.iscomplexobj(value):
            with suppress(TypeError, ValueError):
                return float(value)
        problem = f"{self.signature}: a similarity must be a real number, got {clipped(value)}"
        raise InvalidType("matcher", problem)

    @staticmethod
    def from_function(
        function: Callable[[Document, Document], float],
        *,
        threshold: float = 0.5,
        name: str | None = None,
    ) -> Matcher:
        """Return a matcher that asks a plain function for the similarity of each pair.

        In signatures stand its name and a digest of its source and of the values that it uses:
        ``same_source#3f2a9c01ab12``. With ``name`` it is that name; the digest of a partial, a
        method or a function that holds values of its own stays. Where it cannot be told which
        function it is, ``#unknown`` says so, and results are compared with a warning.

        Args:
            function: ``(actual, predicted) -> similarity in [0, 1]``, given LangChain documents.
            threshold: Similarity from which a pair is a match.
            name: Name in signatures; the function's own if not given.

        Raises:
            InvalidType: If ``function`` is not callable.
            InvalidInput: If the threshold is outside [0, 1].

        >>> same_source = Matcher.from_function(
        ...     lambda actual, predicted: actual.metadata["source"] == predicted.metadata["source"],
        ...     threshold=1.0, name="source")
        >>> same_source.signature
        'source'
        """
        return _FunctionMatcher(function, threshold, name)

    def settings(self) -> dict[str, object]:
        """Return the settings that belong in the signature, in a fixed order.

        Those arguments of the constructor that can be shown; a class of your own may return others.
        """
        return dict(_arguments(self, {})[0])

    @property
    def signature(self) -> str:
        """Name and settings, such as ``rougeL(statistic=fmeasure)``."""
        settings, complete = self.settings(), True
        constructor, known = (
            next(place for place, one in enumerate(type(self).__mro__) if name in vars(one))
            for name in ("__init__", "settings")
        )
        if constructor < known:  # it has arguments that an inherited ``settings`` cannot know
            arguments, complete = _arguments(self, settings)
            settings = {**settings, **arguments}
        shown = [f"{key}={_spelled(value)}" for key, value in settings.items()]
        shown += [] if complete else [SETTINGS_UNKNOWN]
        name = self.name or type(self).__name__
        return f"{name}({','.join(shown)})" if shown else name

    @property
    def advice(self) -> Fix:
        """What to try when nothing matched at all."""
        return in_language(self._advice)

    @property
    def too_long_advice(self) -> Fix:
        """What to try when most ground truth is longer than every text that was retrieved."""
        return ""

    @property
    def _document_reading(self) -> Reading:
        """What it looks at in a document: the text for one with ``prepare``, else everything.

        Ground truths that look the same to the matcher are the same when results are compared.
        The function holds neither the matcher nor a model.
        """
        reads: Reading = self._reads
        return reads if getattr(self, "prepare", None) is None else documents.read_text

    def _for_ground_truth(self, texts: Sequence[str]) -> Matcher:
        """Return what decides about a query: itself, unless that depends on the ground truth.

        Args:
            texts: All ground-truth texts of the query.
        """
        return self

    def __repr__(self) -> str:
        threshold = f", threshold {self.threshold:g}" if self.takes_threshold else ""
        return f"<{type(self).__name__} {self.signature}{threshold}>"

    def __and__(self, other: Matcher) -> Matcher:
        """Match when both match, each by its own threshold."""
        return AndMatcher(self, other)

    def __or__(self, other: Matcher) -> Matcher:
        """Match when either matches, each by its own threshold."""
        return OrMatcher(self, other)

    def match(self, queries: QuerySet) -> joins.Matches:
        """Score the pairs within each query; the evaluator calls it once."""
        if getattr(self, "prepare", None) is None:
            return self._match(self._asked(joins.Units.of_documents(queries), queries))
        units = joins.Units.of_texts(queries)
        joins.warn_of_blank_texts(queries)
        return self._match(self._asked(units, queries))

    @property
    def _question(self) -> inspect.Parameter | None:
        """The parameter by which it is given the question, if it looks at that."""
        own = type(self).similarities is not Matcher.similarities
        compared = self.similarities if own else self.similarity
        return inspect.signature(compared).parameters.get("question")

    def _asked(self, units: joins.Units, queries: QuerySet) -> joins.Units:
        """Return units with the questions, if the matcher looks at them."""
        wanted = self._question
        if wanted is None:
            return units
        optional = wanted.default is not wanted.empty
        if optional and not all(isinstance(label, str) for label in queries.labels):
            return units
        return replace(units, questions=questions_of(queries, self.signature))

    def _match(self, units: joins.Units) -> joins.Matches:
        """Score the pairs of units, here or in several processes."""
        if n_processes() == 1 or not self.divisible:
            return units.matches([self._pairs(units)])
        parts = units.parts(_PARTS_PER_PROCESS * n_processes())
        name = f"matcher {self.signature}"
        return units.matches(in_processes(_score_part, self, name, parts))

    def _pairs(self, units: joins.Units) -> joins.Pairs:
        """Score the pairs of units in this process."""
        return units.pairs(self._scorer(units.values), self.signature)

    def _scorer(self, values: Any) -> joins.BlockScorer:
        """Return the scorer of blocks of these texts or documents."""
        prepare = getattr(self, "prepare", None)
        prepared = values
        if prepare is not None:
            prepared = [None if documents.is_blank(text) else prepare(text) for text in values]

        def score(*positions: joins.IntArray, **asked: str) -> joins.FloatArray:
            sides = ([prepared[unit] for unit in side.tolist()] for side in positions)
            own = type(self).similarities is not Matcher.similarities
            together: joins.BlockScorer = self.similarities if own else self._one_by_one
            return together(*sides, **asked)

        return score


def of_pair(
    matcher: Matcher, actual: DocumentLike, predicted: DocumentLike, question: str | None = None
) -> float:
    """Return the similarity of one pair, by a matcher that scores whole queries."""
    labels = None if question is None else [question]
    queries = QuerySet.from_lists([[actual]], [[predicted]], labels)
    with errors.muted():  # of one pair, a blank text needs no announcement
        return float(matcher.match(queries).similarity.max(initial=0.0))


def check_by_pairs(matcher: Matcher, argument: str, why: str) -> None:
    """Refuse a matcher for which documents count together, where pairs are decided one by one."""
    if matcher.union:
        problem = f": {why}, and for {matcher.signature} documents count together"
        raise InvalidInput(argument, problem, "leave out union=True")


def in_language(advice: Fix) -> Fix:
    """Return advice that stands in English, marked by ``N_``, in the language of the moment."""
    if isinstance(advice, str):
        return advice and _(advice)
    return Advice(_(advice.text), *advice.settings)


def questions_of(queries: QuerySet, signature: str) -> list[str]:
    """Return the question of each query: its label, which must be a text.

    Args:
        queries: The queries.
        signature: The matcher that looks at them.

    Raises:
        InvalidInput: If a query has a number for a label, as it has where none was given.
    """
    for query, label in enumerate(queries.labels):
        if not isinstance(label, str):
            problem = f"must be the questions, as the matcher {signature} looks at them"
            fix = Advice("pass the question of each query by {}", queries=...)
            raise InvalidInput("queries", f"{problem}, got a number", fix, query=query)
    return list(map(str, queries.labels))


class _FunctionMatcher(Matcher):
    """A plain function as a matcher."""

    def __init__(
        self, function: Callable[[Document, Document], float], threshold: float, name: str | None
    ) -> None:
        if not callable(function):
            be = "be callable as (actual, predicted) -> similarity"
            raise errors.must("function", be, function, kind=InvalidType)
        self.function = function
        self.threshold = errors.number("threshold", threshold, 0, 1)
        own = str(getattr(function, "__name__", type(function).__name__))
        # A name that was given stands for the code, and not for values that are bound to it.
        told = name is not None and isinstance(function, FunctionType) and not held_by(function)
        self.name = name or own
        self._mark = "" if told else mark_of(function)

    @property
    def signature(self) -> str:
        """The name, and what tells which function it is."""
        return self.name + self._mark

    def similarity(self, actual: Any, predicted: Any) -> float:
        """Return what the function says; strings and dicts reach it as documents."""
        return self._number(self.function(*map(documents.as_document, (actual, predicted))))


class TextMatcher(Matcher):
    """A matcher that reads nothing but texts; base of the built-in similarity matchers.

    Subclasses implement :meth:`block_scorer`, which sees the distinct texts of all queries once
    and returns a function that scores blocks of them. With ``n_jobs`` it sees, in each process, the
    texts of one run of queries after the other. What must happen once for all texts belongs into
    :meth:`read`.
    """

    #: Tokenizing matchers turn it off: their tokenizer decides about normalisation.
    normalize: ClassVar[bool] = True

    _reads: ClassVar[Any] = staticmethod(documents.read_text)

    def read(self, texts: Sequence[str]) -> Any:
        """Return what :meth:`block_scorer` is given in place of the texts: a list, one per text.

        Anything else needs ``take(positions)``, which returns some of it.
        """
        return texts

    @abstractmethod
    def block_scorer(self, texts: Any) -> joins.BlockScorer:
        """Prepare each distinct text once; return the scorer of blocks of them.

        The scorer gets positions in ``texts``, never of a blank one, and returns similarities of
        shape (ground truth, predicted).
        """

    def prepared(self, units: joins.Units) -> joins.Units:
        """Return units whose values are texts with what :meth:`read` makes of these."""
        return replace(units, values=self.read(units.values))

    def announce(self, units: joins.Units) -> None:
        """Warn, before any pair is scored, if that will take unexpectedly long."""

    def _scorer(self, values: Any) -> joins.BlockScorer:
        return self.block_scorer(values)

    def similarity(self, actual: DocumentLike, predicted: DocumentLike) -> float:
        """Return the similarity of one pair, in [0, 1]; a blank text has similarity 0.

        Args:
            actual: The ground-truth document: a LangChain ``Document``, a string or a dict.
            predicted: The predicted document, likewise.
        """
        texts = [documents.text_of(actual, "actual"), documents.text_of(predicted, "predicted")]
        if any(map(documents.is_blank, texts)):
            return 0.0
        if self.normalize:
            texts = [unicodedata.normalize("NFC", text) for text in texts]
        units = self.prepared(joins.Units.of_pair(texts))
        self.announce(units)
        score = self.block_scorer(units.values)
        return float(score(units.alternatives, units.predicted)[0, 0])

    def match(self, queries: QuerySet) -> joins.Matches:
        """Score the pairs within each query; the evaluator calls it once."""
        units = joins.Units.of_texts(queries, normalize=self.normalize)
        joins.warn_of_blank_texts(queries)
        units = self.prepared(units)
        self.announce(units)
        return self._match(units)


class KeyMatcher(Matcher):
    """A matcher that compares keys for equality; similarity is 1 or 0.

    Subclasses implement :meth:`key`. Matching joins by hash, so its cost grows with the number of
    documents, not of pairs. Two ground-truth documents of a query with the same key are one item.
    """

    threshold = 1.0
    takes_threshold: ClassVar[bool] = False
    #: Whether keys are made from texts, so that blank texts deserve a warning.
    reads_text: ClassVar[bool] = False

    @abstractmethod
    def key(self, document: DocumentLike, where: str = "document") -> Hashable:
        """Return the key of a document, or ``None`` if it can never match.

        ``where`` names the document in error messages.
        """

    def keys(self, documents: Sequence[Any], where: str) -> Sequence[Hashable]:
        """Return the keys of several documents; override it to read them in bulk."""
        return [self.key(document, f"{where}[{i}]") for i, document in enumerate(documents)]

    def own_keys(self, texts: Sequence[str]) -> bool:
        """Tell whether all of these texts, none of them blank, are their own keys, unread."""
        return False

    def similarity(self, actual: DocumentLike, predicted: DocumentLike) -> float:
        """Return 1.0 if the keys are equal, else 0.0."""
        key = self.key(actual, "actual")
        return float(key is not None and key == self.key(predicted, "predicted"))

    def match(self, queries: QuerySet) -> joins.Matches:
        """Join the keys of each query by hash; the evaluator calls it once."""
        blanks = joins.warn_of_blank_texts(queries) if self.reads_text else (0, 0)
        own_actual, own_predicted = (
            texts and not blank and self._has_own_keys(queries, side)
            for side, (texts, blank) in enumerate(zip(queries.texts_only, blanks, strict=True))
        )
        found = queries.predicted
        predicted = found if own_predicted else self._keys(found, "predicted_docs")
        join = joins.KeyJoin(lambda: self.signature)
        if queries.has_alternatives:
            join.add(self._alternative_keys(queries), predicted, alternatives=True)
        else:
            keys = queries.actual if own_actual else self._keys(queries.actual, "actual_docs")
            join.add(keys, predicted)
        matches = join.matches()
        n_items = len(queries.item_query)
        n_matched = np.count_nonzero(np.bincount(matches.item, minlength=n_items))
        if 2 * n_matched <= n_items:
            wanted = self._alternative_keys(queries)
            warn_of_near_keys(near_keys(wanted, self._keys(found, "predicted_docs")), n_items)
        return matches

    def _has_own_keys(self, queries: QuerySet, side: int) -> bool:
        """Tell whether the texts of a side (0 is the ground truth), none blank, are their keys."""
        return self.own_keys((queries.actual, queries.predicted)[side].elements)

    def _keys(self, lists: Lists, name: str) -> Iterator[list[Hashable]]:
        """Yield, per query, the keys of its documents."""
        for query, several in enumerate(lists):
            yield list(self.keys(several, f"{name}[{query}]"))

    def _alternative_keys(self, queries: QuerySet) -> Iterator[list[list[Hashable]]]:
        """Yield, per query, the keys of the alternatives of each of its items."""
        for query, items in enumerate(queries.alternatives()):
            where = f"actual_docs[{query}]"
            yield [list(self.keys(item, f"{where}[{i}]")) for i, item in enumerate(items)]


def _score_part(matcher: Matcher, part: tuple[int, joins.Units]) -> joins.Pairs:
    """Score one run of queries; what other processes do."""
    n_items_before, units = part
    return matcher._pairs(units).after(n_items_before)


def _spelled(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else without_secrets(str(value))


def _arguments(matcher: Matcher, known: Mapping[str, object]) -> tuple[dict[str, object], bool]:
    """Return the arguments that a matcher was made with, and whether these are all.

    Args:
        matcher: The matcher.
        known: Settings that are shown already.
    """
    if type(matcher).__init__ is object.__init__:
        return {}, True
    shown: dict[str, object] = {}
    held, complete = attributes(matcher), True
    _, *parameters = inspect.signature(type(matcher).__init__).parameters
    for name in parameters:
        value = held.get(name, held.get(f"_{name}", ...))
        if name in _SHOWN_ELSEWHERE or name in known or _is_hidden(name, value):
            continue
        if value is None or isinstance(value, str | Real):
            shown[name] = _text_for_signature(value) if isinstance(value, str) else value
        else:
            complete = False
    return shown, complete


def _is_hidden(name: str, value: object) -> bool:
    """Tell whether a signature shows nothing of a setting, for its name.

    >>> _is_hidden("key", "a"), _is_hidden("max_tokens", 9), _is_hidden("by_token", True)
    (True, False, False)
    """
    *_, last = words_of(name) or [""]
    counts = isinstance(value, bool) or (isinstance(value, Real) and last == "tokens")
    return not counts and _SOUNDS_SECRET.search(last) is not None


def _text_for_signature(text: str) -> str:
    """Return a text as a signature shows it; a hash of what is long or may be a secret.

    >>> _text_for_signature("gpt-4o"), _text_for_signature("same, or not?")
    ('gpt-4o', '"same, or not?"')
    >>> _text_for_signature("https://me:1234@host/")
    'sha256:a134d976896d'
    """
    if len(text) > _LONGEST_SETTING or _MAY_BE_SECRET.search(text):
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
        return f"sha256:{digest.hexdigest()[:12]}"
    if _PLAIN.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


_AT_THRESHOLD = 0.5


class _CombinedMatcher(Matcher):
    """What ``&`` and ``|`` share: one scale for all parts, and one decision per document."""

    threshold = _AT_THRESHOLD
    takes_threshold: ClassVar[bool] = False
    _advice = N_("Match by each part alone to see which one finds nothing.")
    _sign: ClassVar[str]
    #: Which of the parts' similarities counts.
    _choose: ClassVar[np.ufunc]

    def __init__(self, *parts: Matcher) -> None:
        for part in parts:
            if not isinstance(part, Matcher):
                what = f": {self._sign} combines matchers, such as CoverageMatcher(), got "
                fix = "did you forget to call it?" if isinstance(part, type) else ""
                raise InvalidType("matcher", what + clipped(part), fix)
        # (a & b) & c is a & b & c: the numbers are the same, and the signature is plainer.
        self.parts: tuple[Matcher, ...] = tuple(
            chain.from_iterable(p.parts if type(p) is type(self) else (p,) for p in parts)
        )
        if len(self.parts) < 2:
            what = f": {self._sign} needs at least two matchers, got {len(parts)}"
            raise InvalidInput("matcher", what)
        for part in self.parts:
            check_by_pairs(part, "matcher", f"{self._sign} decides about pairs")
            errors.number(f"threshold of the matcher {part.signature}", part.threshold, 0, 1)

    @property
    def _question(self) -> inspect.Parameter | None:
        """That of the first part that looks at the question."""
        found = (part._question for part in self.parts)
        return next((one for one in found if one is not None), None)

    @property
    def _document_reading(self) -> Reading:
        """What any of the parts looks at."""
        readings = [part._document_reading for part in self.parts]
        alike = all(reading == readings[0] for reading in readings)
        return readings[0] if alike else partial(_read_by_all, tuple(readings))

    @property
    def signature(self) -> str:
        """The parts' signatures, each with its threshold if it has one to choose."""
        return f"({self._sign.join(map(signature_at_threshold, self.parts))})"

    def _for_ground_truth(self, texts: Sequence[str]) -> Matcher:
        """Return the same with each part as it decides about a query."""
        parts = [part._for_ground_truth(texts) for part in self.parts]
        return self if all(map(is_, parts, self.parts)) else type(self)(*parts)

    def similarity(self, actual: DocumentLike, predicted: DocumentLike) -> float:
        """Return the similarity of one pair, in [0, 1]; 0.5 and above is a match.

        Args:
            actual: The ground-truth document: a LangChain ``Document``, a string or a dict.
            predicted: The predicted document, likewise.
        """
        return of_pair(self, actual, predicted)

    def match(self, queries: QuerySet) -> joins.Matches:
        """Let every part score all pairs; join what they found."""
        # All parts must speak of the same alternative of an AnyOf, not each of the one it likes.
        alone = alternatives_as_items(queries)
        found = [completed(part.match(alone)) for part in self.parts]
        sides = zip(self.parts, found, strict=True)
        scaled = [_on_common_scale(one.similarity, float(part.threshold)) for part, one in sides]
        n_ranks = max(int(queries.n_predicted.max(initial=0)), 1)
        pairs = np.concatenate([m.item * n_ranks + m.rank - 1 for m in found])
        pair, similarity, n_parts = _grouped(pairs, np.concatenate(scaled), self._choose)
        if self._choose is np.minimum:  # where a part found nothing, 0 is the least
            pair, similarity = pair[n_parts == len(found)], similarity[n_parts == len(found)]
        item_of = np.repeat(np.arange(len(queries.n_alternatives)), queries.n_alternatives)
        pair = item_of[pair // n_ranks] * n_ranks + pair % n_ranks
        pair, similarity, _ = _grouped(pair, similarity, np.maximum)
        kept = similarity > 0.0
        item, rank = np.divmod(pair[kept], n_ranks)
        same_as = _same_as([matches.same_as for matches in found], queries)
        return joins.Matches(item, rank + 1, similarity[kept], same_as)


class AndMatcher(_CombinedMatcher):
    """``a & b``: a pair matches when it matches under every part, each by its own threshold.

    Thresholds belong to the parts, so an evaluator takes none for the combination. To show how far
    a pair is from a match, each part's similarity is put on a common scale, on which 0.5 is
    exactly its threshold, 0 is 0 and 1 is 1; the similarity is the least of them.

    With ``AnyOf`` all parts must agree on the same alternative. Two ground-truth documents of a
    query are one item only if they are to every part.

    Raises:
        InvalidType: If a part is not an instance of a matcher.
        InvalidInput: If there are fewer than two parts.

    >>> from krag_eval.core.matching.exact import ContainsMatcher, IdMatcher
    >>> both = AndMatcher(IdMatcher(), ContainsMatcher())
    >>> both.signature
    '(id&contains(fold_whitespace=yes))'
    >>> truth = {"page_content": "5 euros", "id": "7"}
    >>> both.similarity(truth, {"page_content": "The fee is 5 euros.", "id": "7"})
    1.0
    >>> both.similarity(truth, {"page_content": "The fee is 6 euros.", "id": "7"})
    0.0
    """

    _sign: ClassVar[str] = "&"
    _choose: ClassVar[np.ufunc] = np.minimum


class OrMatcher(_CombinedMatcher):
    """``a | b``: a pair matches when it matches under any part, each by its own threshold.

    Thresholds belong to the parts, so an evaluator takes none for the combination. To show how far
    a pair is from a match, each part's similarity is put on a common scale, on which 0.5 is
    exactly its threshold, 0 is 0 and 1 is 1; the similarity is the greatest of them.

    Two ground-truth documents of a query are one item only if they are to every part.

    Raises:
        InvalidType: If a part is not an instance of a matcher.
        InvalidInput: If there are fewer than two parts.

    >>> from krag_eval.core.matching.exact import ContainsMatcher, IdMatcher
    >>> either = OrMatcher(IdMatcher(), ContainsMatcher())
    >>> either.similarity(
    ...     {"page_content": "5 euros", "id": "7"},
    ...     {"page_content": "The fee is 6 euros.", "id": "7"})
    1.0
    """

    _sign: ClassVar[str] = "|"
    _choose: ClassVar[np.ufunc] = np.maximum


def signature_at_threshold(matcher: Matcher) -> str:
    """Return the signature of a matcher, with its threshold if it has one to choose."""
    at = f">={float(matcher.threshold)!r}" if matcher.takes_threshold else ""
    return matcher.signature + at


def _read_by_all(readings: Sequence[Reading], document: DocumentLike) -> list[Any]:
    return [reading(document) for reading in readings]


def _on_common_scale(similarity: joins.FloatArray, threshold: float) -> joins.FloatArray:
    """Stretch similarities so that 0.5 is the threshold; decisions stay what they were."""
    matched = similarity >= threshold
    scaled = np.empty(len(similarity))
    # The quotient of a number and a larger one is never rounded up to 1.
    scaled[~matched] = _AT_THRESHOLD * (similarity[~matched] / threshold)
    # At threshold 1 nothing is left to stretch: what matches is 1.
    above = (similarity[matched] - threshold) / (1.0 - threshold) if threshold < 1.0 else 1.0
    scaled[matched] = _AT_THRESHOLD + _AT_THRESHOLD * above
    return scaled


def _grouped(
    pair: joins.IntArray, similarity: joins.FloatArray, choose: np.ufunc
) -> tuple[joins.IntArray, joins.FloatArray, joins.IntArray]:
    """Return each pair once, sorted, with the chosen of its similarities and their number."""
    if not len(pair):
        return pair, similarity, np.zeros(0, np.int64)
    order = np.argsort(pair, kind="stable")
    pair, similarity = pair[order], similarity[order]
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    chosen: joins.FloatArray = choose.reduceat(similarity, starts)
    return pair[starts], chosen, np.diff(starts, append=len(pair))


def alternatives_as_items(queries: QuerySet) -> QuerySet:
    """Return the same queries with each alternative of an ``AnyOf`` as an item of its own."""
    if not queries.has_alternatives:
        return queries
    actual: list[Any] = [list(chain.from_iterable(items)) for items in queries.alternatives()]
    return QuerySet.from_lists(actual, queries.predicted, queries.labels)


def completed(matches: joins.Matches) -> joins.Matches:
    """Give repeated items the pairs of the item they repeat.

    To a part they are one item, and it may have left out the pairs of all but the first; to
    another part they may be two.
    """
    first = np.searchsorted(matches.item, matches.same_as, side="left")
    n_pairs = np.searchsorted(matches.item, matches.same_as, side="right") - first
    item = np.repeat(np.arange(len(n_pairs)), n_pairs)
    source = np.arange(len(item)) + np.repeat(first - (np.cumsum(n_pairs) - n_pairs), n_pairs)
    return joins.Matches(item, matches.rank[source], matches.similarity[source], matches.same_as)


def _same_as(parts: Sequence[joins.IntArray], queries: QuerySet) -> joins.IntArray:
    """Return the first item of the query that every part takes for the same as each item.

    Args:
        parts: Per part, the first of the alternatives that says the same as each alternative;
            alternatives are numbered through all queries.
        queries: The items whose alternatives they are.
    """
    sizes = queries.n_alternatives
    same_as = np.arange(len(sizes))
    if any((part == np.arange(len(part))).all() for part in parts):
        return same_as  # to this part all are different, so they are to the whole
    meanings = list(zip(*(part.tolist() for part in parts), strict=True))
    known: dict[frozenset[tuple[int, ...]], int] = {}
    ends = np.cumsum(sizes)
    for item, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True)):
        # Alternatives of different queries are never the same to a part.
        same_as[item] = known.setdefault(frozenset(meanings[end - size : end]), item)
    return same_as


_Label = TypeVar("_Label", bound="str | int | None")


def labels_for(
    matcher: Any, labels: Sequence[_Label], questions: Sequence[Any] | None
) -> Sequence[_Label]:
    """Return the labels of queries, or their questions where a matcher looks at these.

    A judge would be told an id otherwise, where two queries ask the same and are labelled by ids.

    >>> labels_for("coverage", ["q1", "q2"], ["When?", "When?"])
    ['q1', 'q2']
    """
    if not looks_at_questions(matcher) or questions is None:
        return labels
    are_texts = all(isinstance(one, str) for one in questions)
    return cast("Sequence[_Label]", questions) if are_texts else labels


def looks_at_questions(matcher: Any) -> bool:
    """Tell whether a matcher is told the question with each pair, as a judge is."""
    return getattr(matcher, "_question", None) is not None
