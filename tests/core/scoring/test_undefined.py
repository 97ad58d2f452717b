"""Undefined and odd inputs: one rule for each, and never a silent guess."""

import math
import warnings
from functools import partial
from itertools import product

import pytest
from langchain_core.documents import Document
from reference import no_advice

from krag_eval import (
    AnyOf,
    Conventions,
    ExactTextMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
    RougeMatcher,
)
from krag_eval.core.scoring.metrics import DEFAULT_METRICS
from krag_eval.errors import InvalidInput

SHARES = [name for name, metric in DEFAULT_METRICS.items() if metric.range == (0, 1)]


class Constant(Matcher):
    """Finds every pair equally similar."""

    def __init__(self, similarity):
        self.value = similarity

    def similarity(self, actual, predicted):
        return self.value


# --- no ground truth -------------------------------------------------------------------------

# Query "y" has no ground truth. Query "x" finds one of two items, at rank 1 of 2.
WITHOUT = {
    "actual_docs": [["a", "b"], []],
    "predicted_docs": [["a", "z"], ["a", "z"]],
    "queries": ["x", "y"],
}


@pytest.mark.parametrize(
    ("n", "labels", "named"),
    [(1, ["x", "y"], "('y')"), (1, None, "(query 1)"),
     (7, None, "(queries 1, 2, 3, 4, 5 and 2 more)")],
)  # fmt: skip
def test_queries_without_ground_truth_are_an_error(n, labels, named):
    """By default; the constructor names the first five and the two ways out."""
    with pytest.raises(InvalidInput) as caught:
        OfflineRetrievalEvaluator([["a"], *[[]] * n], [["a"]] * (1 + n), queries=labels)
    assert f"for {n} of {n + 1} queries {named}" in caught.value.problem
    assert {name for name, _ in caught.value.fix.settings} == {"no_ground_truth"}


# Of x: precision 1/2, recall 1/2, RR 1, AP (1/1)/2, nDCG 1 / (1 + 1/log2(3)), rank 1.
OF_X = {
    "hit_rate": 0.0, "success": 1.0, "micro_precision": 0.5, "macro_precision": 0.5,
    "micro_recall": 0.5, "macro_recall": 0.5, "micro_f1": 0.5, "macro_f1": 0.5, "mrr": 1.0,
    "map": 0.5, "ndcg": 1 / (1 + 1 / math.log2(3)), "mean_rank": 1.0, "found_rate": 1.0,
}  # fmt: skip
# Micro: relevant 1 of 2 + 2 retrieved, covered 1 of 2 + 0 items, F1 2 · 1/4 · 1/2 / (3/4).
HALVED = {name: value / 2 for name, value in OF_X.items()} | {
    "micro_precision": 0.25, "micro_recall": 0.5, "micro_f1": 1 / 3, "mean_rank": 1.0
}  # fmt: skip


@pytest.mark.parametrize(("rule", "expected"), [("skip", OF_X), ("zero", HALVED)])
def test_a_query_without_ground_truth_is_skipped_or_counts_as_zero(rule, expected):
    """Only query x counts; or y is 0 everywhere, which halves the macro values of x."""
    averages = OfflineRetrievalEvaluator(**WITHOUT, no_ground_truth=rule).evaluate(2).averages()
    assert averages == pytest.approx(expected, abs=1e-15)


def test_skipped_queries_are_counted_in_the_result():
    """The signature says how many; the table keeps their rows, with undefined metrics."""
    result = OfflineRetrievalEvaluator(**WITHOUT, no_ground_truth="skip").evaluate(2)
    assert "no_ground_truth=skip(1)" in result.signature
    assert "queries=2" in result.signature
    table = result.per_query()
    assert table.loc["y", SHARES].isna().all()
    assert table.loc["y", ["ground_truth", "retrieved", "relevant", "covered"]].tolist() == [
        0, 2, 0, 0,
    ]  # fmt: skip


def test_queries_counted_as_zero_are_no_hit_whatever_the_criteria():
    """All of nothing is not found."""
    for criteria in ("all", "partial"):
        evaluator = OfflineRetrievalEvaluator(
            **WITHOUT, no_ground_truth="zero", matching_criteria=criteria
        )
        assert evaluator.evaluate(2).per_query().loc["y", "hit_rate"] == 0.0


def test_no_query_with_ground_truth_can_count_as_zero():
    """Everything is 0, the mean rank undefined."""
    evaluator = OfflineRetrievalEvaluator([[]], [[]], no_ground_truth="zero")
    assert evaluator.calculate_recall() == {"micro_recall": 0.0, "macro_recall": 0.0}
    assert evaluator.calculate_mean_rank()["found_rate"] == 0.0


@pytest.mark.parametrize("conventions", Conventions.presets())
def test_skipping_holds_under_every_preset(conventions):
    """A skipped query changes no average, whatever the conventions."""
    both = OfflineRetrievalEvaluator(**WITHOUT, no_ground_truth="skip", conventions=conventions)
    alone = OfflineRetrievalEvaluator([["a", "b"]], [["a", "z"]], conventions=conventions)
    expected = alone.evaluate([1, 5]).to_dict()
    found = both.evaluate([1, 5]).to_dict()
    assert {key: found[key] for key in expected} == expected


# --- nothing retrieved -----------------------------------------------------------------------


def test_a_query_with_nothing_retrieved_is_0_everywhere_and_counts():
    """Beside a query that is perfect, every mean is 1/2; micro recall 1 of 2, precision 1 of 1."""
    result = OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], []]).evaluate(None)
    assert result.per_query().loc[1, SHARES].tolist() == [0.0] * len(SHARES)
    averages = result.averages()
    for key in ("hit_rate", "macro_precision", "macro_recall", "macro_f1", "mrr", "map", "ndcg"):
        assert averages[key] == 0.5, key
    assert averages["micro_recall"] == 0.5
    assert averages["micro_precision"] == 1.0
    assert (averages["mean_rank"], averages["found_rate"]) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("matcher", "language", "said"),
    [("text", "en", "for any of 2 queries"), ("coverage", "en", "for any of 2 queries"),
     ("id", "en", "for any of 2 queries"), ("text", "ko", "질문 2개 모두")],
)  # fmt: skip
def test_nothing_retrieved_at_all_is_said_once_and_0(monkeypatch, matcher, language, said):
    """All keys are there; only the mean rank is undefined: NaN, over no query."""
    monkeypatch.setenv("KRAG_EVAL_LANG", language)
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [[], []], matcher)
    with pytest.warns(KragEvalWarning, match=said):
        averages = evaluator.evaluate(5).averages()
    evaluator.evaluate(2)
    values = {name: averages[name] for name in OF_X}
    assert math.isnan(values.pop("mean_rank"))
    assert set(values.values()) == {0.0}
    OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], []], matcher).evaluate(1)


# --- blank texts -----------------------------------------------------------------------------


@pytest.mark.parametrize("matcher", ["text", "contains"])
@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_a_blank_document_never_matches_and_is_counted_in_one_warning(matcher, blank):
    """Two blank ground-truth documents, three blank predicted ones, and one that matches."""
    evaluator = OfflineRetrievalEvaluator(
        [["a", blank], [blank]], [["a", blank], [Document(blank), {"page_content": blank}]], matcher
    )
    with warnings.catch_warnings(record=True, action="always") as caught:
        recall = evaluator.calculate_recall()
        evaluator.calculate_precision()
    assert recall == {"micro_recall": 1 / 3, "macro_recall": 1 / 4}
    (warning,) = caught
    assert warning.category is KragEvalWarning
    assert str(warning.message).startswith(
        "2 ground-truth and 3 predicted documents have empty or blank text"
    )


@pytest.mark.parametrize("matcher", ["text", "contains"])
def test_a_blank_alternative_never_matches(matcher):
    """The other one does."""
    evaluator = OfflineRetrievalEvaluator([[AnyOf(["", "a"])]], [["", "a"]], matcher)
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted documents have empty"):
        assert evaluator.calculate_mrr() == {"mrr": 0.5}


def test_ids_may_belong_to_documents_without_text():
    """Only matchers that read texts care about blank ones."""
    evaluator = OfflineRetrievalEvaluator(
        [[Document("", id="1")]], [[Document("", id="1")]], matcher="id"
    )
    assert evaluator.calculate_mrr() == {"mrr": 1.0}


# --- no tokens -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "tokenizer", "named"),
    [("rouge1", "rouge_score", "(?s)rouge_score.*unicode"), ("rouge2", "rouge_score", "unicode"),
     ("rougeL", "rouge_score", "unicode"), ("rougeL", lambda text: [], "lambda")],
)  # fmt: skip
def test_a_tokenizer_that_deletes_a_text_is_an_error(kind, tokenizer, named):
    """A score of 0 would be a lie: rouge-score's own tokenizer knows no Hangul."""
    matcher = RougeMatcher(kind, tokenizer=tokenizer)
    lists = [["도서관은 아홉 시에 문을 엽니다"]]
    with pytest.raises(InvalidInput, match=named):
        OfflineRetrievalEvaluator(lists, lists, matcher).calculate_recall()


# --- repeats in the ground truth -------------------------------------------------------------


TWICE = ["a", "a"], [AnyOf(["a", "b"]), AnyOf(["b", "a"])]
BLANK = ([AnyOf(["a", ""])] * 2, [AnyOf(["", "a"]), AnyOf(["a", ""])], [AnyOf(["a", ""]), "a"])


@pytest.mark.parametrize(
    ("items", "matcher"),
    [*product(TWICE, ("text", "contains", "id", Constant(1.0))),
     *product(BLANK, ("text", "contains"))],
    ids=str,
)  # fmt: skip
def test_the_same_ground_truth_twice_is_one_item_with_a_warning(matcher, items):
    """Alternatives in any order; a blank one can never be found, and hides no repeat."""
    evaluator = OfflineRetrievalEvaluator([items], [["a"]], matcher)
    with pytest.warns(KragEvalWarning) as caught:
        table = evaluator.evaluate(None).per_query()
    assert table.loc[0, ["ground_truth", "recall"]].tolist() == [1, 1.0]
    said = "1 ground-truth documents repeat another document"
    assert any(str(one.message).startswith(said) for one in caught)


@pytest.mark.parametrize("matcher", ["text", "contains"])
@pytest.mark.parametrize(
    ("items", "counts"),
    [([AnyOf(["a", "b"]), AnyOf(["b", "c"])], [2, 2, 1]), (["b", "", " "], [3, 1, 1])],
)
def test_what_only_overlaps_or_is_blank_is_no_repeat(matcher, items, counts):
    """Items, covered items and relevant documents of one list that holds b."""
    with no_advice():
        table = (
            OfflineRetrievalEvaluator([items, ["b"]], [["b"]] * 2, matcher).evaluate(1).per_query()
        )
    assert table.loc[0, ["ground_truth", "covered", "relevant"]].tolist() == counts
    assert table.loc[1, "ground_truth"] == 1  # items belong to their query


def test_the_same_document_twice_with_one_grade_is_one_item_of_that_grade():
    """Items a (grade 2, twice) and b (grade 1, missing): nDCG 3 / (3 + 1/log2(3))."""
    actual = [Document("a", metadata={"grade": 2}), Document("a", metadata={"grade": 2}), "b"]
    evaluator = OfflineRetrievalEvaluator([actual], [["a"]], grade_key="grade")
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        ndcg = evaluator.calculate_ndcg()["ndcg"]
    assert ndcg == pytest.approx(3 / (3 + 1 / math.log2(3)), abs=1e-15)


# --- similarities that are none --------------------------------------------------------------


@pytest.mark.parametrize("similarity", [math.nan, -0.1, 1.1, math.inf, -math.inf])
def test_a_similarity_out_of_range_is_an_error(similarity):
    """The message names the matcher, the number and the pair."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["b"]], Constant(similarity))
    with pytest.raises(InvalidInput) as caught:
        evaluator.calculate_recall()
    for part in ("Constant", f"got {similarity}", "actual_docs[0][0]", "predicted_docs[0][0]"):
        assert part in str(caught.value)


# --- a warning when nothing matched ----------------------------------------------------------


@pytest.mark.parametrize(
    ("matcher", "said"),
    [("text", r"text matched nothing at all in 2 queries: no .* condition.*matcher=\"contains\""),
     (Constant(0.25), "the highest similarity is 0.25, below the threshold of 0.5")],
)  # fmt: skip
def test_nothing_matched_at_all_is_pointed_out_with_advice(matcher, said):
    """Two other matchers, or how similar the nearest pair is."""
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["x"], ["y"]], matcher)
    with pytest.warns(KragEvalWarning, match=said):
        assert evaluator.calculate_recall()["macro_recall"] == 0.0


PASSAGE = "books may be kept for four weeks and renewed twice"
CHUNK = f"opening hours are nine to six {PASSAGE} unless somebody waits for them"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"k": None}, "recall@all 0.67"),
        ({"k": 1}, "recall@1 0.33"),
        ({"k": [1, 2]}, "recall@2 0.67"),
        ({"k": ["21w", "4000c"]}, "recall@4000c 0.67"),
        ({"k": "21w"}, "recall@21w 0.33"),
        ({"budget": 1, "length": len}, "recall@all 0.67"),
    ],
)
def test_what_coverage_would_find_stands_beside_the_zeros(asked, said):
    """Two of three lists hold their passage, one in the first chunk, of 21 words; one after "x"."""
    evaluator = OfflineRetrievalEvaluator([[PASSAGE]] * 3, [[CHUNK], ["x", CHUNK], ["x"]])
    with pytest.warns(KragEvalWarning, match="matched nothing at all in 3 queries") as caught:
        evaluator.evaluate(**asked)
    (warning,) = (one.message for one in caught if "matched nothing" in str(one.message))
    assert str(warning.fix) == f'With matcher="coverage": {said}'


def test_next_to_nothing_is_pointed_out_where_coverage_finds_more():
    """One passage of 60 came back as it is; coverage finds it and half of the others, 30."""
    predicted = [[PASSAGE], *[[CHUNK]] * 29, *[["x"]] * 30]
    evaluator = OfflineRetrievalEvaluator([[PASSAGE]] * 60, predicted)
    with pytest.warns(KragEvalWarning, match="next to nothing in 60 queries") as caught:
        evaluator.calculate_recall(k=3)
    assert str(caught[0].message.fix) == 'With matcher="coverage": recall@3 0.50'


@pytest.mark.parametrize(
    ("no_ground_truth", "said"), [("skip", "recall@3 1.00"), ("zero", "recall@3 0.50")]
)
def test_what_coverage_would_find_is_averaged_as_was_asked_for(no_ground_truth, said):
    """Both passages come back; two more queries have none, one of them an item of grade 0."""
    unwanted = {"page_content": CHUNK, "metadata": {"grade": 0}}
    by_matcher = partial(
        OfflineRetrievalEvaluator,
        [[], [unwanted], [PASSAGE], [PASSAGE]],
        [["x"], ["x"], [CHUNK], [CHUNK]],
        no_ground_truth=no_ground_truth,
        grade_key="grade",
    )
    with pytest.warns(KragEvalWarning) as caught:
        by_matcher().calculate_recall(k=3)
    assert str(caught[0].message.fix) == f'With matcher="coverage": {said}'
    recall = by_matcher(matcher="coverage").calculate_recall(k=3)["macro_recall"]
    assert said == f"recall@3 {recall:.2f}"


@pytest.mark.parametrize("n_without", [0, 9])
def test_coverage_is_tried_on_the_first_queries_that_count(n_without):
    """On those that have a million characters together: 8 of 110,000 each, not the 9th."""
    long = CHUNK + " filler" * 16_000
    actual = [*[[]] * n_without, *[[PASSAGE]] * 20]
    evaluator = OfflineRetrievalEvaluator(actual, [[long]] * len(actual), no_ground_truth="skip")
    with pytest.warns(KragEvalWarning, match="recall@all 1.00 on the first 8 queries"):
        evaluator.calculate_recall()


@pytest.mark.parametrize("matcher", ["text", "id", "coverage", Constant(0.1)])
def test_coverage_is_not_named_where_it_would_find_little_or_nobody_asked(matcher):
    """Texts that have nothing in common, matchers of ids or of one's own, and coverage itself."""
    shared = [{"id": "1", "page_content": CHUNK}] if matcher != "text" else ["x"]
    wanted = [{"id": "2", "page_content": PASSAGE}]
    evaluator = OfflineRetrievalEvaluator([wanted] * 2, [shared] * 2, matcher)
    with warnings.catch_warnings(record=True, action="always") as caught:
        evaluator.calculate_recall()
    assert not any("With matcher=" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("conventions", Conventions.presets())
def test_one_warning_is_enough_however_often_one_asks(conventions):
    """Every metric, other conventions, and the table of conventions: said once.

    The twin shares the matches, and what was said about them.
    """
    evaluator = OfflineRetrievalEvaluator([["a", "a"]], [["x"]])
    with warnings.catch_warnings(record=True, action="always") as caught:
        evaluator.with_conventions(Conventions.presets()[conventions]).evaluate()
        evaluator.calculate_recall()
        evaluator.calculate_ndcg()
        evaluator.explain_conventions(3)
    said = sorted(str(warning.message).split()[0] for warning in caught)
    assert said == ["1", "Every", "The"]


def test_something_matched_is_worth_no_warning():
    """One pair is enough."""
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["x"], ["b"]], ExactTextMatcher())
    assert evaluator.calculate_recall()["macro_recall"] == 0.5
