"""What krag's evaluators offer beyond the seven numbers."""

import inspect

import pytest
from results_made import ACTUAL, PREDICTED

from krag_eval import AveragingMethod, Conventions, KragEvalWarning, MatchingCriteria
from krag_eval.compat.evaluators import (
    EmbeddingRougeOfflineRetrievalEvaluators,
    OfflineRetrievalEvaluators,
    RougeOfflineRetrievalEvaluators,
    TokenizerType,
)

_BOTH, _ALL, _KIWI = AveragingMethod.BOTH, MatchingCriteria.ALL, TokenizerType.KIWI
_COMMON = {"averaging_method": _BOTH, "matching_criteria": _ALL}


@pytest.mark.parametrize(
    ("build", "defaults"),
    [
        (OfflineRetrievalEvaluators, {"match_method": "text", **_COMMON}),
        (RougeOfflineRetrievalEvaluators,
         {"match_method": "rouge1", **_COMMON, "threshold": 0.5, "tokenizer": _KIWI}),
        (EmbeddingRougeOfflineRetrievalEvaluators,
         {"match_method": "rouge1", **_COMMON, "rouge_threshold": 0.7, "similarity_threshold": 0.7,
          "embedding_type": "huggingface", "embedding_config": None, "tokenizer": _KIWI}),
    ],
)  # fmt: skip
def test_parameters_and_defaults_are_krags(build, defaults):
    """In krag's order, as read from krag 0.0.32; anything of ours can only be named."""
    parameters = list(inspect.signature(build).parameters.values())
    assert [parameter.name for parameter in parameters[:2]] == ["actual_docs", "predicted_docs"]
    positional = [one for one in parameters[2:] if one.kind is not one.KEYWORD_ONLY]
    assert [(one.name, one.default) for one in positional] == list(defaults.items())


@pytest.mark.parametrize(
    ("method", "keys"),
    [
        ("micro", {"micro_recall"}),
        (AveragingMethod.MACRO, {"macro_recall"}),
        (AveragingMethod.BOTH, {"micro_recall", "macro_recall"}),
    ],
)
def test_the_averaging_method_selects_keys(method, keys):
    """As in krag since 0.0.29."""
    evaluator = OfflineRetrievalEvaluators(ACTUAL, PREDICTED, averaging_method=method)
    assert evaluator.calculate_recall(k=10).keys() == keys
    assert evaluator.calculate_ndcg(k=10).keys() == {"ndcg"}


def test_what_was_given_can_be_read():
    """By the names krag has for it."""
    evaluator = RougeOfflineRetrievalEvaluators(
        ACTUAL, PREDICTED, "rougeL", threshold=0.8, tokenizer="whitespace"
    )
    assert evaluator.actual_docs is ACTUAL
    assert evaluator.predicted_docs is PREDICTED
    assert (evaluator.match_method, evaluator.threshold) == ("rougeL", 0.8)
    assert evaluator.averaging_method is AveragingMethod.BOTH
    assert evaluator.matching_criteria is MatchingCriteria.ALL


def test_text_match_uses_the_threshold():
    """Three of four words in common are ROUGE-1 0.75."""
    evaluator = RougeOfflineRetrievalEvaluators(
        ACTUAL, PREDICTED, threshold=0.75, tokenizer="whitespace"
    )
    assert evaluator.text_match("the cat sat down", "the cat lay down")
    assert not evaluator.text_match("the cat sat down", "the dog lay down")


class _BySource(OfflineRetrievalEvaluators):
    """Compares what stands before the colon, as a krag user's subclass might."""

    def text_match(self, actual_text, predicted_text):
        return actual_text.split(":")[0] == predicted_text.split(":")[0]


class _Lenient(RougeOfflineRetrievalEvaluators):
    """Falls back on what it inherits."""

    def text_match(self, actual_text, predicted_text):
        return super().text_match(actual_text.lower(), predicted_text) or predicted_text == "?"


def test_a_subclass_decides_by_its_own_text_match():
    """In krag that is how to compare in another way."""
    evaluator = _BySource([["guide: a", "faq: b"]], [["faq: c", "terms: d"]])
    assert evaluator.calculate_recall(k=10)["macro_recall"] == 0.5
    assert evaluator.calculate_map(k=10) == {"map": 0.5}
    assert "matcher=_BySource.text_match | threshold=-" in evaluator.evaluate(1).signature
    lenient = _Lenient([["a b"], ["c"]], [["a b"], ["?"]], tokenizer="whitespace")
    assert lenient.calculate_hit_rate(k=1) == {"hit_rate": 1.0}


def test_all_metrics_as_text():
    """The lines of krag, with None where there is no cutoff.

    nDCG is (1 + 1/log2(3)) / 2: the first query is perfect, the second has its one hit at rank 2.
    """
    evaluator = OfflineRetrievalEvaluators(ACTUAL, PREDICTED, averaging_method="macro")
    assert evaluator.get_metrics_by_averaging_method().splitlines() == [
        "Hit Rate @None: {'hit_rate': 0.5}",
        "MRR @None: {'mrr': 0.75}",
        "Recall @None: {'macro_recall': 0.75}",
        "Precision @None: {'macro_precision': 0.6666666666666666}",
        "F1 Score @None: {'macro_f1': 0.7058823529411765}",
        "MAP @None: {'map': 0.625}",
        "NDCG @None: {'ndcg': 0.8154648767857288}",
    ]


def test_results_say_how_their_ndcg_came_about():
    """The nDCG of ROUGE has conventions of its own, and is the one that is drawn."""
    evaluator = RougeOfflineRetrievalEvaluators(ACTUAL, PREDICTED, threshold=0.8)
    result = evaluator.evaluate(10)
    assert result.averages()["ndcg"] == evaluator.calculate_ndcg(k=10)["ndcg"]
    assert "conventions=ideal=retrieved |" in result.signature
    assert result.signature.endswith("ndcg=graded_by=similarity,ideal=retrieved,credit=every")
    plain = OfflineRetrievalEvaluators(ACTUAL, PREDICTED).evaluate(10)
    assert plain.signature.endswith("ndcg=ideal=retrieved")


def test_the_evaluator_behind_goes_on_where_krag_ends():
    """Same matches, other conventions."""
    evaluator = OfflineRetrievalEvaluators(ACTUAL, PREDICTED).evaluator
    assert evaluator.conventions == Conventions.krag()
    default = evaluator.with_conventions(Conventions())
    assert default.calculate_ndcg(k=10)["ndcg"] == pytest.approx(0.6934264036172708)


def test_numbers_are_settled_once(recwarn):
    """A warning comes once, whatever is asked first and how often."""
    evaluator = RougeOfflineRetrievalEvaluators([["a", "a"]], [["a"]], tokenizer="whitespace")
    with pytest.warns(KragEvalWarning, match="repeat") as warned:
        evaluator.get_metrics_by_averaging_method(1)
    evaluator.calculate_ndcg(k=2)
    assert len(warned) == 1


def test_results_are_shown(shown):
    """One figure, with a row for each of krag's seven metrics; nothing is returned."""
    evaluator = RougeOfflineRetrievalEvaluators(ACTUAL, PREDICTED, threshold=0.8)
    assert evaluator.visualize_results(k=10) is None
    (figure,) = shown
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["Hit rate (all found)", "MRR", "Recall", "Precision", "F1", "MAP", "nDCG"]
    # krag's own nDCG, measured with 0.0.32.
    assert "0.93" in [text.get_text() for text in figure.axes[0].texts]
