"""Where krag is broken, compat is right: one test per row of the table in the migration guide.

What krag does was measured with krag 0.0.32 (and 0.0.31 where they differ), Python 3.11.
"""

import unicodedata

import pytest
from results_made import ACTUAL, PREDICTED

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


def _rouge(actual, predicted, **options):
    return RougeOfflineRetrievalEvaluators(
        actual, predicted, tokenizer=TokenizerType.WHITESPACE, **options
    )


_TEXT, _EITHER = OfflineRetrievalEvaluators, (OfflineRetrievalEvaluators, _rouge)


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize(
    ("build", "actual", "predicted", "options", "expected"),
    [
        # A chunk retrieved again earns nothing. krag: MAP 3.0, nDCG 2.1309 (1.0 up to 0.0.31).
        (_TEXT, [["a cat"]], [["a cat"] * 3], {}, {"map": 1.0, "ndcg": 1.0}),
        # A chunk that holds two documents is worth both. krag: MAP 0.5, nDCG 0.6131.
        (_TEXT, [["a cat", "a dog"]], [["a cat and a dog", "fish"]], {},
         {"macro_recall": 1.0, "map": 1.0, "ndcg": 1.0}),
        # F1 has its keys when nothing was found. krag: {}, so that indexing it raises KeyError.
        (_TEXT, [["a"]], [["b"]], {}, {"micro_f1": 0.0, "macro_f1": 0.0}),
        # No ground truth is no hit. krag: hit rate 1.0, and ValueError from the nDCG of ROUGE.
        *((build, [[], ["a"]], [["b"], ["a"]], {},
           {"hit_rate": 0.5, "ndcg": 0.5, "macro_recall": 0.5}) for build in _EITHER),
        # The string "micro" means micro. krag: recall, precision and F1 are all {}.
        (_TEXT, ACTUAL, PREDICTED, {"averaging_method": "micro"}, {"micro_recall": 0.8}),
        # The string "all" means all. In krag any string means PARTIAL: hit rate 1.0.
        (_TEXT, ACTUAL, PREDICTED, {"matching_criteria": "all"}, {"hit_rate": 0.5}),
        # An empty text matches nothing. krag: 1.0 in every metric, and ROUGE gives "" and "" 1.0.
        *((build, [["", "a"]], [["", "a"]], {}, {"micro_recall": 0.5, "macro_recall": 0.5})
          for build in _EITHER),
        # At threshold 0, having nothing in common is no match. krag: 1.0 in all but nDCG.
        (_rouge, [["a", "b"]], [["a", "c"]], {"threshold": 0}, {"macro_recall": 0.5}),
        # Ground truth listed twice is one document. krag: recall 2/3 of a, a, b when a was found.
        (_TEXT, [["a", "a", "b"]], [["a"]], {}, {"macro_recall": 0.5}),
        # Composed and decomposed Hangul are the same text. krag: 0.0 in every metric.
        *((build, [["한국"]], [[unicodedata.normalize("NFD", "한국")]], {}, {"macro_recall": 1.0})
          for build in _EITHER),
        # As in krag, a substring is one to the letter: white space around a text counts.
        (_TEXT, [["a cat\n", "cat"]], [["a cat sat"]], {}, {"macro_recall": 0.5}),
    ],
)  # fmt: skip
def test_the_sane_number_is_given(build, actual, predicted, options, expected):
    """Together and one by one; averages that were not asked for have no key."""
    evaluator = build(actual, predicted, **options)
    together = evaluator.evaluate(10).averages()
    assert {name: together[name] for name in expected} == expected
    found: dict[str, float] = {}
    for name in ("hit_rate", "recall", "f1_score", "map", "ndcg"):
        found |= getattr(evaluator, f"calculate_{name}")(10)
    assert {name: found[name] for name in expected} == expected
    assert ("macro_recall" in found) == (options.get("averaging_method") != "micro")


@pytest.mark.parametrize(
    ("build", "actual", "predicted", "said"),
    [
        (_TEXT, [["a"]], [["b"]], "matched nothing at all"),
        *((build, [[], ["a"]], [["b"], ["a"]], r"no ground truth for 1 of 2 queries \(0\)")
          for build in _EITHER),
        *((build, [["", "a"]], [["", "a"]], "1 ground-truth and 1 predicted documents have empty")
          for build in _EITHER),
        (_TEXT, [["a", "a", "b"]], [["a"]], "1 ground-truth documents repeat"),
    ],
)  # fmt: skip
def test_what_krag_counted_otherwise_is_warned_of(build, actual, predicted, said):
    with pytest.warns(KragEvalWarning, match=said):
        build(actual, predicted).calculate_recall(k=10)


def test_the_native_evaluator_refuses_missing_ground_truth():
    """Unless told what to do about it."""
    with pytest.raises(ValueError, match="no ground truth"):
        OfflineRetrievalEvaluator([[], ["a"]], [["b"], ["a"]])


def test_the_string_kiwi_means_kiwi():
    """In krag anything but a member splits at white space: nDCG 0.8155 here."""
    evaluator = RougeOfflineRetrievalEvaluators(ACTUAL, PREDICTED, tokenizer="kiwi")
    assert evaluator.tokenizer.type is TokenizerType.KIWI
    assert evaluator.calculate_ndcg(k=10)["ndcg"] == pytest.approx(0.926386029921535)


def test_the_text_evaluator_names_the_one_by_rouge():
    """In krag it compares by substring and does not say so."""
    for method, is_rouge in (("rouge1", True), ("rouge9", False)):
        with pytest.raises(Refusal) as info:
            OfflineRetrievalEvaluators(ACTUAL, PREDICTED, match_method=method)
        assert ("RougeOfflineRetrievalEvaluators" in str(info.value.fix)) == is_rouge


def test_the_rouge_evaluator_compares_text_if_asked():
    """krag: six metrics by substring, then nDCG raises ValueError: Invalid rouge type: text."""
    evaluator = _rouge(ACTUAL, PREDICTED, match_method="text")
    assert evaluator.evaluate(10).averages() == (
        OfflineRetrievalEvaluators(ACTUAL, PREDICTED).evaluate(10).averages()
    )
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 0.8154648767857288}


def test_settings_that_cannot_change_refuse_to():
    """krag: a threshold assigned later has no effect on pairs it has compared before."""
    evaluator = _rouge([["a b c d"]], [["a b x y"]], threshold=0.9)
    with pytest.raises(AttributeError, match="threshold"):
        evaluator.threshold = 0.1  # type: ignore[misc]
    with pytest.raises(AttributeError, match="predicted_docs"):
        evaluator.predicted_docs = PREDICTED  # type: ignore[misc]
    with pytest.warns(KragEvalWarning, match="highest similarity is 0.5"):
        assert evaluator.calculate_recall(k=1)["macro_recall"] == 0.0
    assert evaluator.evaluator.with_threshold(0.1).calculate_recall(k=1)["macro_recall"] == 1.0


def test_text_match_takes_several_texts():
    """krag: TypeError: unhashable type: 'list'."""
    assert OfflineRetrievalEvaluators(ACTUAL, PREDICTED).text_match("a", ["b", "a cat"])
    assert not OfflineRetrievalEvaluators(ACTUAL, PREDICTED).text_match("a", [])


def test_the_ndcg_by_embedding_stays_in_0_to_1():
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
    def embed_documents(self, texts):
        return [[1.0] for _ in texts]


@pytest.mark.parametrize(
    ("conventions", "version", "ndcg"),
    [
        (Conventions(ideal="retrieved", credit="every"), "0.0.31", 1.0),
        (Conventions(credit="every"), "0.0.32", 2.1309297535714578),
    ],
)
def test_krag_to_the_letter(conventions, version, ndcg):
    """Who needs krag's own number has it: MAP 3.0, and the nDCG of either version."""
    evaluator = OfflineRetrievalEvaluators([["a cat"]], [["a cat"] * 3]).evaluator
    letter = evaluator.with_conventions(conventions)
    assert letter.calculate_map(k=10) == {"map": 3.0}, version
    assert letter.calculate_ndcg(k=10)["ndcg"] == pytest.approx(ndcg), version


# Kept on purpose, and different in krag_eval itself.


def test_substrings_match_without_regard_to_words():
    """As in krag: doc1 is in doc10. matcher="contains" minds word boundaries."""
    evaluator = OfflineRetrievalEvaluators([["doc1"]], [["doc10"]])
    assert evaluator.calculate_hit_rate(k=10) == {"hit_rate": 1.0}
    native = OfflineRetrievalEvaluator([["doc1"]], [["doc10"]], "contains")
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert native.calculate_hit_rate(k=10) == {"hit_rate": 0.0}


def test_the_ndcg_of_rouge_judges_order_alone():
    """As in krag: a list of nothing but poor documents has nDCG 1; the default conventions say 0.

    The first two words of nine are shared by the only document: ROUGE-1 is far below 0.5.
    """
    evaluator = _rouge([["the quick brown fox jumps over it"]], [["the end"]])
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert evaluator.calculate_ndcg(k=10) == {"ndcg": 1.0}
    assert evaluator.evaluator.calculate_ndcg(k=10) == {"ndcg": 0.0}


def test_ideal_lists_hold_what_was_retrieved():
    """As in krag up to 0.0.31: one of three found, first, is nDCG 1; 0.469 by its formula."""
    evaluator = OfflineRetrievalEvaluators([["A", "B", "C"]], [["A", "x", "y"]])
    assert evaluator.calculate_ndcg(k=10) == {"ndcg": 1.0}
    native = OfflineRetrievalEvaluator([["A", "B", "C"]], [["A", "x", "y"]])
    assert native.calculate_ndcg(k=10)["ndcg"] == pytest.approx(0.46927872602275644)


def test_choices_may_be_assigned_as_in_krag():
    """Averages and the hit criterion are read anew at every question."""
    evaluator = OfflineRetrievalEvaluators(ACTUAL, PREDICTED)
    evaluator.averaging_method = AveragingMethod.MACRO
    evaluator.matching_criteria = MatchingCriteria.PARTIAL
    assert evaluator.calculate_recall(k=10) == {"macro_recall": 0.75}
    assert evaluator.calculate_hit_rate(k=10) == {"hit_rate": 1.0}
