"""krag's evaluators: its names, parameters, defaults and keys, on krag_eval's evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from krag_eval.compat.embeddings import load_embeddings
from krag_eval.compat.tokens import KragTokens, TokenizerConfig, TokenizerType
from krag_eval.core import (
    AveragingMethod,
    Conventions,
    FloatArray,
    IntArray,
    Matcher,
    RowsInMemory,
    TextMatcher,
    Units,
    _,
    number,
    warn,
)
from krag_eval.core.conventions import MatchingCriteria
from krag_eval.core.errors import unknown
from krag_eval.core.matching.joins import BlockScorer
from krag_eval.evaluator import OfflineRetrievalEvaluator
from krag_eval.matchers.embedding import EmbeddingMatcher
from krag_eval.matchers.rouge import RougeMatcher
from krag_eval.result import EvaluationResult

__all__ = [
    "AveragingMethod",
    "EmbeddingRougeOfflineRetrievalEvaluators",
    "MatchingCriteria",
    "OfflineRetrievalEvaluators",
    "RougeOfflineRetrievalEvaluators",
    "TokenizerConfig",
    "TokenizerType",
]

_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
# krag's ROUGE nDCG: every retrieved document gains by its best similarity, matched or not, and the
# ideal list is the same list sorted.
_ROUGE_NDCG = Conventions(graded_by="similarity", credit="every", ideal="retrieved")


def _fixed(told: str, name: str) -> Any:
    """Return a property that cannot be assigned, as it would change nothing."""
    return property(attrgetter(name), doc=told)


class OfflineRetrievalEvaluators:
    """krag's evaluator of retrieval by text: a document matches if it contains the ground truth.

    The numbers are those of :class:`krag_eval.OfflineRetrievalEvaluator` under
    ``Conventions.krag()``; that evaluator is :attr:`evaluator`, to go on with. A query without
    ground truth counts as 0 in every metric, with a warning.

    A subclass that defines its own ``text_match`` decides by that.

    Args:
        actual_docs: Per query, the documents that should come back.
        predicted_docs: Per query, the documents that did, best first.
        match_method: ``"text"``.
        averaging_method: Which of the micro and macro keys are returned; a string does as well.
        matching_criteria: Whether a hit needs all of the ground truth or any of it; likewise.

    Raises:
        InvalidType: If the lists are not lists of lists of documents.
        InvalidInput: If there are no queries, lengths differ, or an option is not allowed.

    >>> evaluator = OfflineRetrievalEvaluators(
    ...     [["doc1", "doc2", "doc5"], ["doc3", "doc4"]],
    ...     [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]],
    ... )
    >>> evaluator.calculate_recall(k=10), evaluator.calculate_ndcg(k=10)
    ({'micro_recall': 0.8, 'macro_recall': 0.75}, {'ndcg': 0.8154648767857288})
    """

    _match_methods: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(
        self,
        actual_docs: Any,
        predicted_docs: Any,
        match_method: str = "text",
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
    ) -> None:
        self._match_method = self._checked_method(match_method)
        self._matcher = self._make_matcher()
        self._actual_docs, self._predicted_docs = actual_docs, predicted_docs
        #: The krag_eval evaluator behind the numbers.
        self.evaluator = self._build(averaging_method, matching_criteria)
        _warn_of_missing_ground_truth(actual_docs)

    actual_docs = _fixed("The ground truth as given.", "_actual_docs")
    predicted_docs = _fixed("The retrieved documents as given.", "_predicted_docs")
    match_method = _fixed("The match method.", "_match_method")

    @property
    def averaging_method(self) -> AveragingMethod:
        """Which of the micro and macro keys are returned; may be assigned."""
        return self.evaluator.averaging_method

    @averaging_method.setter
    def averaging_method(self, value: AveragingMethod | str) -> None:
        self.evaluator = self._build(value, self.matching_criteria)

    @property
    def matching_criteria(self) -> MatchingCriteria:
        """Whether a hit needs all of the ground truth or any of it; may be assigned."""
        return self.evaluator.matching_criteria

    @matching_criteria.setter
    def matching_criteria(self, value: MatchingCriteria | str) -> None:
        self.evaluator = self._build(self.averaging_method, value)

    def text_match(self, actual_text: str, predicted_text: str | Sequence[str]) -> bool:
        """Tell whether a predicted text, or any of several, matches a ground-truth text."""
        texts = [predicted_text] if isinstance(predicted_text, str) else predicted_text
        similarities = [self._matcher.similarity(actual_text, text) for text in texts]
        # A similarity of 0 is never a match, as everywhere in krag_eval.
        return any(value and value >= self._matcher.threshold for value in similarities)

    def calculate_hit_rate(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"hit_rate"}``."""
        return self.evaluator.calculate_hit_rate(k)

    def calculate_precision(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"micro_precision", "macro_precision"}``."""
        return self.evaluator.calculate_precision(k)

    def calculate_recall(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"micro_recall", "macro_recall"}``."""
        return self.evaluator.calculate_recall(k)

    def calculate_f1_score(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"micro_f1", "macro_f1"}``, 0.0 where nothing was found.

        Worked out as krag does, 2 · p · r / (p + r), so that the last digit is its own too.
        """
        precision, recall = self.calculate_precision(k), self.calculate_recall(k)
        return {
            name.replace("precision", "f1"): 2 * p * r / (p + r) if p + r else 0.0
            for (name, p), r in zip(precision.items(), recall.values(), strict=True)
        }

    def calculate_mrr(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"mrr"}``."""
        return self.evaluator.calculate_mrr(k)

    def calculate_map(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"map"}``; each ground-truth document counts once."""
        return self.evaluator.calculate_map(k)

    def calculate_ndcg(self, k: int | None = None) -> dict[str, float]:
        """Return ``{"ndcg"}``, its ideal list being what was retrieved, in the best order."""
        return self._ndcg_evaluator.calculate_ndcg(k)

    def get_metrics_by_averaging_method(self, k: int | None = None) -> str:
        """Return all metrics as text, one a line."""
        calculations = {
            "Hit Rate": self.calculate_hit_rate,
            "MRR": self.calculate_mrr,
            "Recall": self.calculate_recall,
            "Precision": self.calculate_precision,
            "F1 Score": self.calculate_f1_score,
            "MAP": self.calculate_map,
            "NDCG": self.calculate_ndcg,
        }
        return "\n".join(f"{name} @{k}: {of(k)}" for name, of in calculations.items())

    def visualize_results(self, k: int | None = None) -> None:
        """Show all metrics as a bar chart."""
        from matplotlib import pyplot

        from krag_eval.plotting import metric_bars

        metric_bars(self.evaluate(k))
        pyplot.show()

    def evaluate(self, k: int | None = None) -> EvaluationResult:
        """Return krag's seven metrics at one cutoff, per query and averaged; krag has no such."""
        names = ["hit_rate", "reciprocal_rank", "recall", "precision", "f1", "average_precision"]
        result = self.evaluator.evaluate(k, metrics=names)
        ndcg = self._ndcg_evaluator.evaluate(k, metrics=["ndcg"])
        of_ndcg = ndcg.tables
        tables = {k: {**one, "ndcg": of_ndcg[k]["ndcg"]} for k, one in result.tables.items()}
        return replace(
            result,
            settings={**result.settings, "ndcg": ndcg.settings["conventions"]},
            rows=RowsInMemory(result.labels, tables, result.counted, result.rows.digests),
            keys={**result.keys, **ndcg.keys},
        )

    @property
    def _ndcg_evaluator(self) -> OfflineRetrievalEvaluator:
        if self.match_method == "text":
            return self.evaluator
        return self.evaluator.with_conventions(_ROUGE_NDCG)

    def _build(
        self, averaging_method: AveragingMethod | str, matching_criteria: MatchingCriteria | str
    ) -> OfflineRetrievalEvaluator:
        matcher: Matcher = self._matcher
        if type(self).text_match is not OfflineRetrievalEvaluators.text_match:  # a subclass's own
            matcher = OwnTextMatcher(self.text_match, f"{type(self).__name__}.text_match")
        return OfflineRetrievalEvaluator(
            self.actual_docs,
            self.predicted_docs,
            matcher,
            averaging_method=averaging_method,
            matching_criteria=matching_criteria,
            conventions=Conventions.krag(),
            no_ground_truth="zero",
        )

    def _checked_method(self, match_method: str) -> str:
        if match_method in self._match_methods:
            return match_method
        refusal = unknown("match_method", match_method, self._match_methods)
        if match_method in _ROUGE_TYPES:
            refusal.fix = "RougeOfflineRetrievalEvaluators compares by ROUGE"
        raise refusal

    def _make_matcher(self) -> TextMatcher:
        return SubstringMatcher()


class RougeOfflineRetrievalEvaluators(OfflineRetrievalEvaluators):
    """krag's evaluator by ROUGE F-measure of stemmed tokens.

    nDCG is krag's: every retrieved document gains by its best similarity, matched or not, and the
    ideal list is the same list sorted. It judges the order alone: a list of nothing but poor
    documents has nDCG 1.

    Args:
        actual_docs: Per query, the documents that should come back.
        predicted_docs: Per query, the documents that did, best first.
        match_method: ``"rouge1"``, ``"rouge2"``, ``"rougeL"``, or ``"text"`` as in the base class.
        averaging_method: Which of the micro and macro keys are returned.
        matching_criteria: Whether a hit needs all of the ground truth or any of it.
        threshold: ROUGE score from which a document matches, in [0, 1].
        tokenizer: What the tokens are; ``TokenizerType.KIWI`` needs ``krag-eval[korean]``.

    Raises:
        InvalidType: If the lists are not lists of lists of documents.
        InvalidInput: If there are no queries, lengths differ, or an option is not allowed.
        MissingPackage: If the tokenizer's package is not installed.

    >>> evaluator = RougeOfflineRetrievalEvaluators(
    ...     [["This is the second document."]],
    ...     [["This is the last document.", "This is the second document."]],
    ...     tokenizer=TokenizerType.WHITESPACE,
    ... )
    >>> evaluator.calculate_precision(k=2)
    {'micro_precision': 1.0, 'macro_precision': 1.0}
    """

    _match_methods: ClassVar[tuple[str, ...]] = (*_ROUGE_TYPES, "text")

    def __init__(
        self,
        actual_docs: Any,
        predicted_docs: Any,
        match_method: str = "rouge1",
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
        threshold: float = 0.5,
        tokenizer: TokenizerType | str = TokenizerType.KIWI,
    ) -> None:
        self._threshold = number("threshold", threshold, 0, 1)
        self._tokens = KragTokens(tokenizer)
        self._tokenizer = self._tokens.config
        super().__init__(
            actual_docs, predicted_docs, match_method, averaging_method, matching_criteria
        )

    threshold = _fixed("ROUGE score from which a document matches.", "_threshold")
    tokenizer = _fixed("The tokenizer's type and function.", "_tokenizer")

    def _make_matcher(self) -> TextMatcher:
        if self.match_method == "text":
            return super()._make_matcher()
        return RougeMatcher(self.match_method, self.threshold, tokenizer=self._tokens, stemmer=True)


class EmbeddingRougeOfflineRetrievalEvaluators(OfflineRetrievalEvaluators):
    """krag's evaluator by ROUGE between documents whose embeddings are alike.

    A document matches if the cosine similarity of the embeddings reaches ``similarity_threshold``
    and the ROUGE F-measure reaches ``rouge_threshold``. Each distinct text is embedded once, in
    batches. nDCG is as in :class:`RougeOfflineRetrievalEvaluators`, with gain 0 for a document
    whose embedding is like none.

    Args:
        actual_docs: Per query, the documents that should come back.
        predicted_docs: Per query, the documents that did, best first.
        match_method: ``"rouge1"``, ``"rouge2"`` or ``"rougeL"``.
        averaging_method: Which of the micro and macro keys are returned.
        matching_criteria: Whether a hit needs all of the ground truth or any of it.
        rouge_threshold: ROUGE score from which a document matches, in [0, 1].
        similarity_threshold: Cosine similarity from which ROUGE is looked at, in [0, 1].
        embedding_type: ``"huggingface"``, ``"openai"``, ``"ollama"``, or any LangChain
            ``Embeddings``.
        embedding_config: Arguments of the provider's class, on top of krag's defaults.
        tokenizer: What the tokens are; ``TokenizerType.KIWI`` needs ``krag-eval[korean]``.
        embeddings: Any LangChain ``Embeddings``, instead of ``embedding_type``.

    Raises:
        InvalidType: If the lists are not lists of lists of documents, or the embeddings cannot
            embed.
        InvalidInput: If there are no queries, lengths differ, or an option is not allowed.
        MissingPackage: If the provider's or the tokenizer's package is not installed.
    """

    _match_methods: ClassVar[tuple[str, ...]] = _ROUGE_TYPES

    def __init__(
        self,
        actual_docs: Any,
        predicted_docs: Any,
        match_method: str = "rouge1",
        averaging_method: AveragingMethod | str = AveragingMethod.BOTH,
        matching_criteria: MatchingCriteria | str = MatchingCriteria.ALL,
        rouge_threshold: float = 0.7,
        similarity_threshold: float = 0.7,
        embedding_type: Any = "huggingface",
        embedding_config: Mapping[str, Any] | None = None,
        tokenizer: TokenizerType | str = TokenizerType.KIWI,
        *,
        embeddings: Any = None,
    ) -> None:
        self._rouge_threshold = number("rouge_threshold", rouge_threshold, 0, 1)
        self._similarity_threshold = number("similarity_threshold", similarity_threshold, 0, 1)
        self._tokens = KragTokens(tokenizer)
        self._tokenizer = self._tokens.config
        self._checked_method(match_method)
        #: The embedding model.
        model = embedding_type if embeddings is None else embeddings
        self.embeddings = load_embeddings(model, embedding_config)
        super().__init__(
            actual_docs, predicted_docs, match_method, averaging_method, matching_criteria
        )

    rouge_threshold = _fixed("ROUGE score from which a document matches.", "_rouge_threshold")
    similarity_threshold = _fixed(
        "Cosine similarity from which ROUGE is looked at.", "_similarity_threshold"
    )
    tokenizer = _fixed("The tokenizer's type and function.", "_tokenizer")

    def _make_matcher(self) -> TextMatcher:
        least = self.rouge_threshold
        rouge = RougeMatcher(self.match_method, least, tokenizer=self._tokens, stemmer=True)
        gate = EmbeddingMatcher(self.embeddings, self.similarity_threshold, cache={})
        return GatedRougeMatcher(rouge, gate)


def _warn_of_missing_ground_truth(actual_docs: Sequence[Sequence[Any]]) -> None:
    missing = [query for query, documents in enumerate(actual_docs) if not len(documents)]
    if missing:
        named = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        told = _(
            "actual_docs has no ground truth for {n} of {queries} queries ({named}); each counts "
            "as 0 in every metric. krag counted it as a hit."
        )
        warn(told.format(n=len(missing), queries=len(actual_docs), named=named))


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
            wanted = [texts[unit] for unit in actual.tolist()]
            return np.array([[one in text for text in retrieved] for one in wanted], float)

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
