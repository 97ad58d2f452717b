"""Where krag is broken, compat is right: one test per row of the table in the migration guide.

What krag does was measured with krag 0.0.32 (and 0.0.31 where they differ), Python 3.11.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from krag_eval import Conventions, KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.compat.evaluators import (
    AveragingMethod,
    EmbeddingRougeOfflineRetrievalEvaluators,
    MatchingCriteria,
    OfflineRetrievalEvaluators,
    RougeOfflineRetrievalEvaluators,
    TokenizerType,
)
from krag_eval.errors import Refusal

_ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
_PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]


def _rouge(actual: Any, predicted: Any, **options: Any) -> RougeOfflineRetrievalEvaluators:
    return RougeOfflineRetrievalEvaluators(
        actual, predicted, tokenizer=TokenizerType.WHITESPACE, **options
    )


def test_a_chunk_retrieved_again_earns_nothing() -> None:
    """krag: MAP 3.0, nDCG 2.1309 (1.0 up to 0.0.31)."""
    evaluator = OfflineRetrievalEvaluators([["a cat"]], [["a cat", "a cat", "a cat"]])
    assert evaluator.calculate_map(k=10) == {"map": 1.0}
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 1.0}


def test_a_chunk_that_holds_two_documents_is_worth_both() -> None:
    """krag: recall 1.0 but MAP 0.5 and nDCG 0.6131 (1.0 up to 0.0.31)."""
    evaluator = OfflineRetrievalEvaluators([["a cat", "a dog"]], [["a cat and a dog", "fish"]])
    assert evaluator.calculate_recall(k=10)["macro_recall"] == 1.0
    assert evaluator.calculate_map(k=10) == {"map": 1.0}
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 1.0}


def test_f1_has_its_keys_when_nothing_was_found() -> None:
    """krag: {}, so that indexing it raises KeyError."""
    with pytest.warns(KragEvalWarning, match="matched nothing at all"):
        found = OfflineRetrievalEvaluators([["a"]], [["b"]]).calculate_f1_score(k=10)
    assert found == {"micro_f1": 0.0, "macro_f1": 0.0}


@pytest.mark.parametrize("build", [OfflineRetrievalEvaluators, _rouge])
def test_no_ground_truth_is_no_hit(build: Any) -> None:
    """krag: hit rate 1.0 of these two queries, and ValueError from the nDCG of ROUGE."""
    with pytest.warns(KragEvalWarning, match=r"no ground truth for 1 of 2 queries \(0\)"):
        evaluator = build([[], ["a"]], [["b"], ["a"]])
    assert evaluator.calculate_hit_rate(k=10) == {"hit_rate": 0.5}
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 0.5}
    assert evaluator.calculate_recall(k=10)["macro_recall"] == 0.5


def test_the_native_evaluator_refuses_missing_ground_truth() -> None:
    """Unless told what to do about it."""
    with pytest.raises(ValueError, match="no ground truth"):
        OfflineRetrievalEvaluator([[], ["a"]], [["b"], ["a"]])


def test_the_string_micro_means_micro() -> None:
    """krag: recall, precision and F1 are all {}."""
    evaluator = OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, averaging_method="micro")
    assert evaluator.calculate_recall(k=10) == {"micro_recall": 0.8}


def test_the_string_all_means_all() -> None:
    """In krag any string means PARTIAL: hit rate 1.0."""
    evaluator = OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, matching_criteria="all")
    assert evaluator.calculate_hit_rate(k=10) == {"hit_rate": 0.5}


@pytest.mark.parametrize(
    "options",
    [{"averaging_method": "mirco"}, {"matching_criteria": "any"}, {"averaging_method": None}],
)
def test_unknown_choices_are_refused(options: dict[str, Any]) -> None:
    """In krag they are another way of saying BOTH, or PARTIAL."""
    with pytest.raises(Refusal) as info:
        OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, **options)
    assert {info.value.argument} == set(options)


def test_the_string_kiwi_means_kiwi() -> None:
    """In krag anything but a member splits at white space: nDCG 0.8155 here."""
    evaluator = RougeOfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, tokenizer="kiwi")
    assert evaluator.tokenizer.type is TokenizerType.KIWI
    assert evaluator.calculate_ndcg(k=10)["ndcg"] == pytest.approx(0.926386029921535)


def test_an_unknown_tokenizer_is_refused() -> None:
    """In krag it splits at white space."""
    with pytest.raises(ValueError, match="tokenizer must be one of 'whitespace', 'kiwi', 'nltk'"):
        RougeOfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, tokenizer="mecab")


def test_the_text_evaluator_refuses_rouge() -> None:
    """In krag it compares by substring and does not say so."""
    with pytest.raises(ValueError, match="RougeOfflineRetrievalEvaluators compares by ROUGE"):
        OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, match_method="rouge1")


def test_the_rouge_evaluator_compares_text_if_asked() -> None:
    """krag: six metrics by substring, then nDCG raises ValueError: Invalid rouge type: text."""
    evaluator = _rouge(_ACTUAL, _PREDICTED, match_method="text")
    assert evaluator.evaluate(10).averages() == (
        OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED).evaluate(10).averages()
    )
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 0.8154648767857288}


@pytest.mark.parametrize("method", ["rouge3", "rougeLsum", "rougel"])
def test_other_rouge_types_are_refused(method: str) -> None:
    """krag: six metrics by substring, nDCG by that ROUGE (0.0 for rouge3)."""
    with pytest.raises(ValueError, match="match_method must be one of 'rouge1', 'rouge2'"):
        _rouge(_ACTUAL, _PREDICTED, match_method=method)


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_cutoffs_below_1_are_refused(k: Any) -> None:
    """In krag 0 gives precision 0.6667 (of the whole list) and 0 elsewhere, -1 recall 0.6."""
    evaluator = OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED)
    for name in ("hit_rate", "mrr", "recall", "precision", "f1_score", "map", "ndcg"):
        with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
            getattr(evaluator, f"calculate_{name}")(k)


@pytest.mark.parametrize("build", [OfflineRetrievalEvaluators, _rouge])
def test_an_empty_text_matches_nothing(build: Any) -> None:
    """krag: the empty text is in every text, 1.0 in every metric; ROUGE gives "" and "" 1.0."""
    evaluator = build([["", "a"]], [["", "a"]])
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted documents have empty"):
        found = evaluator.calculate_recall(k=10)
    assert found == {"micro_recall": 0.5, "macro_recall": 0.5}


@pytest.mark.parametrize("threshold", [80, -0.1, "0.5", True])
def test_thresholds_outside_0_to_1_are_refused(threshold: Any) -> None:
    """krag: a threshold of 80 finds nothing, silently."""
    with pytest.raises(Refusal) as info:
        _rouge(_ACTUAL, _PREDICTED, threshold=threshold)
    assert info.value.argument == "threshold"
    for name in ("rouge_threshold", "similarity_threshold"):
        with pytest.raises(Refusal) as info:
            EmbeddingRougeOfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, **{name: threshold})
        assert info.value.argument == name


def test_at_threshold_0_having_nothing_in_common_is_no_match() -> None:
    """krag: 1.0 in every metric but nDCG."""
    evaluator = _rouge([["a", "b"]], [["a", "c"]], threshold=0)
    assert evaluator.calculate_recall(k=10)["macro_recall"] == 0.5


def test_ground_truth_listed_twice_is_one_document() -> None:
    """krag: recall 2/3 of a, a, b when a was found."""
    evaluator = OfflineRetrievalEvaluators([["a", "a", "b"]], [["a"]])
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        assert evaluator.calculate_recall(k=10)["macro_recall"] == 0.5


def test_settings_that_cannot_change_refuse_to() -> None:
    """krag: a threshold assigned later has no effect on pairs it has compared before."""
    evaluator = _rouge([["a b c d"]], [["a b x y"]], threshold=0.9)
    with pytest.raises(AttributeError, match="threshold"):
        evaluator.threshold = 0.1  # type: ignore[misc]
    with pytest.raises(AttributeError, match="predicted_docs"):
        evaluator.predicted_docs = _PREDICTED  # type: ignore[misc]
    with pytest.warns(KragEvalWarning, match="highest similarity is 0.5"):
        assert evaluator.calculate_recall(k=1)["macro_recall"] == 0.0
    assert evaluator.evaluator.with_threshold(0.1).calculate_recall(k=1)["macro_recall"] == 1.0


def test_text_match_takes_several_texts() -> None:
    """krag: TypeError: unhashable type: 'list'."""
    assert OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED).text_match("a", ["b", "a cat"])
    assert not OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED).text_match("a", [])


@pytest.mark.parametrize("build", [OfflineRetrievalEvaluators, _rouge])
def test_composed_and_decomposed_hangul_are_the_same_text(build: Any) -> None:
    """krag: 0.0 in every metric."""
    evaluator = build([["한국어"]], [[unicodedata.normalize("NFD", "한국어")]])
    assert evaluator.calculate_recall(k=10)["macro_recall"] == 1.0


def test_the_ndcg_by_embedding_stays_in_0_to_1() -> None:
    """In krag 0.0.32 it is 2.1309, in 0.0.31 1.0."""
    evaluator = EmbeddingRougeOfflineRetrievalEvaluators(
        [["a cat sat"]],
        [["a cat sat"] * 3],
        embeddings=_Constant(),
        tokenizer=TokenizerType.WHITESPACE,
    )
    assert evaluator.calculate_ndcg(k=3) == {"ndcg": 1.0}
    assert evaluator.calculate_map(k=3) == {"map": 1.0}


class _Constant:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


@pytest.mark.parametrize(
    ("conventions", "version", "ndcg"),
    [
        (Conventions(ideal="retrieved", credit="every"), "0.0.31", 1.0),
        (Conventions(credit="every"), "0.0.32", 2.1309297535714578),
    ],
)
def test_krag_to_the_letter(conventions: Conventions, version: str, ndcg: float) -> None:
    """Who needs krag's own number has it: MAP 3.0, and the nDCG of either version."""
    evaluator = OfflineRetrievalEvaluators([["a cat"]], [["a cat"] * 3]).evaluator
    letter = evaluator.with_conventions(conventions)
    assert letter.calculate_map(k=10) == {"map": 3.0}, version
    assert letter.calculate_ndcg(k=10)["ndcg"] == pytest.approx(ndcg), version


# Kept on purpose, and different in krag_eval itself.


def test_substrings_match_without_regard_to_words() -> None:
    """As in krag: doc1 is in doc10. matcher="contains" minds word boundaries."""
    evaluator = OfflineRetrievalEvaluators([["doc1"]], [["doc10"]])
    assert evaluator.calculate_hit_rate(k=10) == {"hit_rate": 1.0}
    native = OfflineRetrievalEvaluator([["doc1"]], [["doc10"]], "contains")
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert native.calculate_hit_rate(k=10) == {"hit_rate": 0.0}


def test_white_space_around_a_text_counts() -> None:
    """As in krag, a substring is one to the letter."""
    evaluator = OfflineRetrievalEvaluators([["a cat\n", "cat"]], [["a cat sat"]])
    assert evaluator.calculate_recall(k=10)["macro_recall"] == 0.5


def test_the_ndcg_of_rouge_judges_order_alone() -> None:
    """As in krag: a list of nothing but poor documents has nDCG 1; the default conventions say 0.

    The first two words of nine are shared by the only document: ROUGE-1 is far below 0.5.
    """
    evaluator = _rouge([["the quick brown fox jumps over it"]], [["the end"]])
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert evaluator.calculate_ndcg(k=10) == {"ndcg": 1.0}
    assert evaluator.evaluator.calculate_ndcg(k=10) == {"ndcg": 0.0}


def test_ideal_lists_hold_what_was_retrieved() -> None:
    """As in krag up to 0.0.31: one of three found, first, is nDCG 1; 0.469 by its formula."""
    evaluator = OfflineRetrievalEvaluators([["A", "B", "C"]], [["A", "x", "y"]])
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 1.0}
    native = OfflineRetrievalEvaluator([["A", "B", "C"]], [["A", "x", "y"]])
    assert native.calculate_ndcg(k=10)["ndcg"] == pytest.approx(0.46927872602275644)


def test_choices_may_be_assigned_as_in_krag() -> None:
    """Averages and the hit criterion are read anew at every question."""
    evaluator = OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED)
    evaluator.averaging_method = AveragingMethod.MACRO
    evaluator.matching_criteria = MatchingCriteria.PARTIAL
    assert evaluator.calculate_recall(k=10) == {"macro_recall": 0.75}
    assert evaluator.calculate_hit_rate(k=10) == {"hit_rate": 1.0}
    with pytest.raises(ValueError, match="averaging_method must be one of"):
        evaluator.averaging_method = "mean"
