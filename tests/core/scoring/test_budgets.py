"""Budgets: cutoffs by what fits, and cutoffs that no list reaches."""

import json
import math
import pickle
import random
import re
import warnings
from functools import partial
from itertools import accumulate

import numpy as np
import pytest
from reference import no_advice
from refusals import blamed
from results_made import MISSING, changed, read_back, write_lines

from krag_eval import (
    Conventions,
    EvaluationResult,
    KragEvalWarning,
    MatchingCriteria,
    OfflineRetrievalEvaluator,
    compare,
)
from krag_eval.cli import main
from krag_eval.core import DEFAULT_CUTOFFS, Budget, parse_metric, spelled
from krag_eval.core.scoring.cutoffs import (
    check_cutoff,
    check_cutoffs,
    fitting,
    settled_cutoffs,
    unspelled,
)
from krag_eval.core.scoring.metrics import metrics_for
from krag_eval.core.scoring.parts import Reach
from krag_eval.errors import InvalidInput
from krag_eval.integrations.langsmith import retrieval_evaluators
from krag_eval.partitions import Partial, PartitionPlan
from krag_eval.streaming import evaluate_file

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()  # noqa: SIM905


def said(record, beginning):
    """Return the recorded warnings that begin like that."""
    return [str(one.message) for one in record if str(one.message).startswith(beginning)]


def times(n, text):
    return n * len(text)


def half(text):
    """Count half of the words, rounded up."""
    return -(-len(text.split()) // 2)


# Texts of 2, 3 and 4 words.
TWO, THREE, FOUR = "one two", "three four five", "six seven eight nine"


MIXED = [[TWO, THREE], [THREE, FOUR, TWO], [FOUR], []] * 10


# --- spelling ---------------------------------------------------------------------------------


@pytest.mark.parametrize("amount_and_unit", [(1000, "w"), (80, "c"), (1, "t")])
def test_a_budget_is_read_and_spelled(amount_and_unit):
    """A budget reads as it is written, wherever a cutoff may stand."""
    text, cutoff = "{}{}".format(*amount_and_unit), Budget(*amount_and_unit)
    assert check_cutoff(text) == unspelled(text) == check_cutoff(cutoff) == cutoff
    assert spelled(cutoff) == text
    assert (check_cutoffs([5, text]), check_cutoffs(text)) == ((5, cutoff), (cutoff,))
    assert parse_metric(f"ndcg@{text}") == ("ndcg", cutoff)


def test_a_budget_without_k_leaves_out_the_default_cutoffs():
    """Only cutoffs that were named are evaluated beside a budget."""
    assert settled_cutoffs(DEFAULT_CUTOFFS, 100)[0] == (Budget(100, "w"),)
    assert settled_cutoffs([3], [100, 200], "characters")[0] == (
        3, Budget(100, "c"), Budget(200, "c"),
    )  # fmt: skip
    assert settled_cutoffs(DEFAULT_CUTOFFS)[0] == DEFAULT_CUTOFFS
    assert settled_cutoffs(["10t", 5], length=len)[0] == (Budget(10, "t"), 5)


# --- values -----------------------------------------------------------------------------------


def test_a_budget_sees_the_longest_prefix_that_fits():
    """A list of 2, 3 and 4 words: 2 fit into 4 words one document, into 5 two, into 9 all."""
    evaluator = OfflineRetrievalEvaluator([[FOUR]], [[TWO, THREE, FOUR]])
    with pytest.warns(KragEvalWarning, match="@1w sees nothing"):
        result = evaluator.evaluate(["1w", "2w", "4w", "5w", "8w", "9w", "99w"])
    seen = [int(result.tables[k]["retrieved"][0]) for k in result.k]
    assert seen == [0, 1, 1, 2, 2, 3, 3]
    assert [result.averages(k)["macro_recall"] for k in result.k] == [0, 0, 0, 0, 0, 1, 1]
    # Rank 3: 1/3.
    assert result.averages("9w")["mrr"] == pytest.approx(1 / 3)


def test_nothing_is_seen_where_the_first_document_does_not_fit():
    """A shorter one behind it is not pulled forward; no metric is defined that needs a document.

    Three words hold nothing of the first list, all of the second and one document of the third.
    """
    evaluator = OfflineRetrievalEvaluator(
        [[TWO], [TWO], [TWO, "x"]], [[FOUR, TWO], [TWO], [TWO, FOUR]]
    )
    result = evaluator.evaluate("3w")
    row = result.per_query("3w").iloc[0]
    assert row[["retrieved", "relevant", "covered"]].tolist() == [0, 0, 0]
    assert row[["precision", "recall", "f1", "reciprocal_rank", "ndcg"]].tolist() == [0.0] * 5
    assert math.isnan(result.tables[Budget(3, "w")]["rank"][0])
    assert result.tables[Budget(3, "w")]["retrieved"].tolist() == [0, 1, 1]
    # Of two documents seen in all, two are relevant; of four items, two are covered.
    found = result.averages("3w")
    assert (found["micro_precision"], found["micro_recall"]) == (1.0, 2 / 4)
    # 0, 1/1 and 1/1; 0, 1/1 and 1/2.
    assert found["macro_precision"] == pytest.approx(2 / 3)
    assert found["macro_recall"] == 1.5 / 3
    # Something was retrieved: it is a miss, not an empty answer.
    assert result.statuses("3w").tolist() == ["missed", "perfect", "partial"]


def test_ndcg_has_its_ideal_over_all_of_the_ground_truth():
    """Three items of grades 1, 2, 3; 5 words hold the first two documents.

    Seen are grade 1 at place 1 and grade 2 at place 2: DCG = 1 + 3/log2(3). The ideal has all
    three: 7 + 3/log2(3) + 1/2. At k = 2 the ideal has two places: 7 + 3/log2(3).
    """
    graded = [
        {"page_content": text, "metadata": {"grade": grade}}
        for text, grade in ((TWO, 1), (THREE, 2), (FOUR, 3))
    ]
    evaluator = OfflineRetrievalEvaluator([graded], [[TWO, THREE, FOUR]], grade_key="grade")
    result = evaluator.evaluate([2], budget=5)
    gained = 1 + 3 / math.log2(3)
    assert result.averages("5w")["ndcg"] == pytest.approx(gained / (7 + 3 / math.log2(3) + 0.5))
    assert result.averages(2)["ndcg"] == pytest.approx(gained / (7 + 3 / math.log2(3)))


def test_precision_divides_by_what_fits_under_all_conventions():
    """Of five retrieved documents two fit, one of them relevant: 1/2, also where k divides."""
    evaluator = OfflineRetrievalEvaluator(
        [[TWO]], [[TWO, THREE, FOUR, FOUR + " x", FOUR + " y"]], conventions=Conventions.trec()
    )
    result = evaluator.evaluate([10], budget=5)
    assert result.averages("5w")["macro_precision"] == 0.5
    assert result.averages("5w")["micro_precision"] == 0.5
    assert result.averages(10)["macro_precision"] == 0.1
    assert evaluator.calculate_precision("5w") == {"micro_precision": 0.5, "macro_precision": 0.5}


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_units():
    """Characters are code points; words are those of the tokenizer unicode, not spaces."""
    evaluator = OfflineRetrievalEvaluator([["b, c"]], [["a-a", "b, c"]])
    # "a-a" and "b, c" are two words each, 3 and 4 characters.
    for unit, amounts in (("w", (1, 2, 3, 4)), ("c", (2, 3, 6, 7))):
        tables = evaluator.evaluate([f"{n}{unit}" for n in amounts]).tables.values()
        assert [int(table["retrieved"][0]) for table in tables] == [0, 1, 1, 2]
    result = evaluator.evaluate(budget=[1, 2], length=half)
    # One and one.
    assert [int(table["retrieved"][0]) for table in result.tables.values()] == [1, 2]
    assert re.search("[.]half#[0-9a-f]{12}$", result.settings["length"])
    assert result.settings["k"] == "1t,2t"


@pytest.mark.filterwarnings("ignore:.*a signature cannot tell it")  # it counts
def test_each_distinct_text_is_measured_once():
    """A function that costs something is not asked twice for the same text."""
    asked = []

    def length(text):
        asked.append(text)
        return 1

    evaluator = OfflineRetrievalEvaluator([[TWO], [TWO]], [[TWO, THREE], [THREE, TWO]])
    evaluator.evaluate(budget=[1, 2], length=length)
    assert sorted(asked) == [TWO, THREE]


@pytest.mark.parametrize(
    ("amount", "prefix"),
    [(1, [1, 0, 0, 1]), (2, [3, 0, 0, 2]), (3, [3, 1, 0, 3]), (2**53, [3, 1, 0, 3])],
)
def test_documents_without_length_always_fit(amount, prefix):
    """Lists of lengths 0 2 0, of 3, of none, and 1 1 1: worked out by hand."""
    lengths, n_retrieved = np.array([0, 2, 0, 3, 1, 1, 1]), np.array([3, 1, 0, 3])
    assert fitting(Budget(amount, "t"), lengths, n_retrieved).tolist() == prefix


def random_run(rng):
    """Return ground truth with grades, and lists of up to six documents with repeats."""
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 6))) for _ in range(8)]
    actual, predicted = [], []
    for _ in range(rng.randint(1, 5)):
        chosen = dict.fromkeys(rng.sample(texts, rng.randint(1, 4)))
        actual.append(
            [{"page_content": one, "metadata": {"g": rng.randint(1, 3)}} for one in chosen]
        )
        predicted.append(rng.choices(texts, k=rng.randint(0, 6)))
    return actual, predicted


def cut_by_hand(lists, amount):
    """Return what fits of each list, by adding up its words one by one."""
    ends = [list(accumulate(len(document.split()) for document in one)) for one in lists]
    return [
        [document for document, end in zip(one, of_list, strict=True) if end <= amount]
        for one, of_list in zip(lists, ends, strict=True)
    ]


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize("conventions", Conventions.presets())
@pytest.mark.parametrize("matcher", ["text", "coverage(min_run=1)", "rouge1"])
def test_a_metric_at_a_budget_is_that_of_lists_cut_by_hand(conventions, matcher):
    """Every metric, all conventions, lists with repeats and items that share documents."""
    rng = random.Random(f"{conventions} {matcher}")
    every = [
        name
        for name, one in metrics_for(MatchingCriteria.ALL, words=False, aspects=False).items()
        if not (one.needs_judged or one.needs_list)
    ]
    options = {"matcher": matcher, "grade_key": "g", "conventions": conventions}
    for amount in [rng.randint(1, 15) for _ in range(24)] + [10**6]:
        actual, predicted = random_run(rng)
        cut = OfflineRetrievalEvaluator(actual, cut_by_hand(predicted, amount), **options)
        whole = OfflineRetrievalEvaluator(actual, predicted, **options)
        theirs = cut.evaluate(None, metrics=every)
        ours = whole.evaluate(budget=amount, metrics=every)
        assert ours.averages() == pytest.approx(theirs.averages(), rel=1e-15, nan_ok=True)
        for name, column in theirs.tables[None].items():
            np.testing.assert_array_equal(ours.tables[Budget(amount, "w")][name], column, name)


# --- refusals ---------------------------------------------------------------------------------


def test_ids_that_were_saved_are_no_texts_either(tmp_path):
    """They are kept as what is shown of a document, not as words."""
    result = OfflineRetrievalEvaluator([["a"]], [["x", "a"]], "id").evaluate(2)
    again = read_back(result, tmp_path, texts=True)
    assert again.explain(0).documents[1].text == "a"
    with pytest.raises(InvalidInput):
        again.budget_to_recall(0.5)


def test_ids_with_texts_have_lengths():
    """Documents matched by id may be measured by their texts, in parts that have none too."""
    predicted = [[{"page_content": TWO, "id": "a"}], [{"page_content": "", "id": "b"}]]
    plan = PartitionPlan.of(budget=2, matcher="id")
    result = _in_parts(plan, [["a"], ["b"]], predicted, 1)
    assert result.averages()["macro_recall"] == 1.0


def test_a_calculation_does_not_take_the_function_of_an_earlier_evaluation():
    """Its number would depend on what was asked before."""
    evaluator = OfflineRetrievalEvaluator([[TWO]], [[TWO]])
    assert evaluator.evaluate(budget=5, length=half).averages()["macro_recall"] == 1.0
    with blamed("k"):
        evaluator.calculate_recall("5t")
    assert evaluator.calculate_recall("2w")["macro_recall"] == 1.0


def test_a_function_that_cannot_be_told_from_others_is_warned_of():
    """Results by it cannot be told apart, and compare says so as well."""
    evaluator = OfflineRetrievalEvaluator([[TWO]] * 30, [[TWO]] * 30)
    hidden = iter("ab")
    with pytest.warns(KragEvalWarning, match="length"):
        result = evaluator.evaluate(budget=5, length=lambda text: len(text) if hidden else 0)
    assert result.settings["length"].endswith("#unknown")
    with pytest.warns(KragEvalWarning) as record:
        compare({"a": result, "b": result}, metric="recall@5t")
    assert said(record, "The budgets of the results")


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_functions_are_told_apart_in_the_signature():
    """By what they are made with, by a name of their own or of their module."""
    evaluator = OfflineRetrievalEvaluator([[TWO]], [[TWO]])

    def named(text):
        return len(text)

    named.name = "cl100k"
    three, five, builtin, own = (
        evaluator.evaluate(budget=9, length=one).settings["length"]
        for one in (partial(times, 3), partial(times, 5), len, named)
    )
    assert three != five
    assert (builtin, own) == ("builtins.len", "cl100k")


# --- what no list reaches ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "told"),
    [(1, None), (2, None), (None, None), ([1, "5w"], None), (DEFAULT_CUTOFFS, "<=2")],
)
def test_cutoffs_that_nobody_asked_for_or_within_some_list_are_not_warned_of(k, told):
    """Of the default ones, only the signature says how far the lists reach."""
    evaluator = OfflineRetrievalEvaluator([[TWO], [TWO]], [[TWO, THREE], [TWO]])
    with warnings.catch_warnings(action="error", category=KragEvalWarning):
        assert evaluator.evaluate(k).settings.get("retrieved") == told


def test_the_shell_says_it_too(tmp_path, capsys):
    """One line on standard error, whether the file is read whole or in chunks."""
    path = written(tmp_path, [[TWO]], [[THREE, TWO]])
    for chunks in ([], ["--chunk-size", "1"]):
        arguments = ["evaluate", str(path), "-k", "5", "-k", "5w", *chunks]
        assert not main(arguments, standalone_mode=False)
        printed, said = capsys.readouterr()
        (line,) = said.splitlines()
        assert "2 documents" in line
        assert "k=5,5w" in printed
        assert "@5w" in printed


def test_results_with_longer_and_shorter_lists_can_be_compared():
    """How many documents come back may differ between systems."""
    actual = [[TWO]] * 30
    short = OfflineRetrievalEvaluator(actual, [[THREE, TWO]] * 30).evaluate(5)
    long = OfflineRetrievalEvaluator(actual, [[TWO, THREE, FOUR]] * 30).evaluate(5)
    compared = compare({"short": short, "long": long}, metric="mrr@5")
    assert compared.differences[0].difference == 0.5
    assert "retrieved" not in compared.signature
    alike = compare({"short": short, "again": short}, metric="mrr@5")
    assert "| retrieved<=2 |" in alike.signature


@pytest.mark.parametrize(
    ("predicted", "asked", "beginning", "words"),
    [
        # The lists have 2 and 1 documents: @3 and @10 see no more than @2.
        ([[TWO, THREE], [TWO]], {"k": [1, 2, 3, 10, None]}, "Every list",
         ["at most 2 documents", "@3 and @10 see "]),
        # The shortest first document has 3 words; that of 2 stands behind another.
        ([[THREE], [FOUR, TWO]], {"budget": [1, 2, 3]}, "No query's first",
         ["has 3", "@1w and @2w see "]),
        # The first documents have 2, 3 and 4: two of three do not fit into 2, one into 3.
        ([[TWO], [THREE], [FOUR]], {"budget": [2, 3]}, "In 2 of 3 queries",
         ["not even the first", "@2w"]),
        # The longest list has 3 + 4 words: 7 are seen by 7, and no more by 8.
        ([[TWO], [THREE, FOUR]], {"budget": [5, 7, 8]}, "No list is longer",
         ["than 7 words", "@8w sees"]),
    ],
)  # fmt: skip
def test_cutoffs_that_fit_nothing_hardly_anything_or_everything_are_said_once(
    predicted, asked, beginning, words
):
    """Each once, in memory and in parts."""
    actual = [[TWO]] * len(predicted)
    evaluator = OfflineRetrievalEvaluator(actual, predicted)
    with pytest.warns(KragEvalWarning) as record:
        whole, _ = [evaluator.evaluate(**asked) for _ in range(2)]
    (warning,) = said(record, beginning)
    assert all(one in warning for one in words)
    with pytest.warns(KragEvalWarning) as record:
        parts = _in_parts(PartitionPlan.of(**asked), actual, predicted, 1)
    assert said(record, beginning) == [warning]
    assert parts.signature == whole.signature


def test_what_is_known_of_the_lists_can_be_kept():
    """Lists of 2, 3, 1 and 0 documents begin with 2, 3 and 4 words; the longest has 2 + 3 + 4.

    Of the first 30 lists, 7 are empty; into one word fits none of the others.
    """
    part = PartitionPlan.of(budget=[1, 9]).evaluate([[TWO]] * 30, MIXED[:30]).partial
    kept = json.loads(json.dumps(part.to_json()))
    reach = Reach(3, {"w": 2}, {"w": 9}, {"1w": 23, "9w": 0}, 23, True)
    assert Partial.from_json(kept).findings.reach == part.findings.reach == reach


# --- wherever a cutoff is accepted ------------------------------------------------------------


def mixed_result(**options):
    """Return 40 queries: found first, found third, not found, nothing retrieved."""
    evaluator = OfflineRetrievalEvaluator([[TWO]] * 40, MIXED, **options)
    return evaluator.evaluate([1, 3], budget=[4, 9])


def test_a_result_takes_a_budget_wherever_it_takes_a_cutoff():
    """Tables, statuses, misses, intervals, gates, explanations and comparisons."""
    result = mixed_result()
    assert result.k == (1, 3, Budget(4, "w"), Budget(9, "w"))
    assert result.metrics.index.tolist() == [1, 3, "4w", "9w"]
    assert result.metrics.loc["9w", "macro_recall"] == 0.5
    assert result.to_dict()["macro_recall@4w"] == 0.25
    statuses = ["perfect", "missed", "missed", "nothing retrieved"]
    assert result.statuses("4w").tolist()[:4] == statuses
    assert len(result.misses("4w")) == 30
    assert len(result.misses()) == 20  # at the deepest k
    assert result.per_query("9w")["retrieved"].tolist()[:4] == [2, 3, 1, 0]
    with pytest.warns(KragEvalWarning, match="mean_rank@4w"):
        table = result.confidence_intervals(n_resamples=200)
    assert table.loc["macro_recall@9w", "k"] == "9w"
    assert result.check({"macro_recall@9w": 0.5}).passed
    assert not result.check({"recall@4w": 0.5}).passed
    compared = compare({"a": result, "b": result}, metric="ndcg@9w", n_resamples=200)
    assert compared.differences[0].metric == "ndcg@9w"
    with blamed("k"):
        result.per_query("5w")


def test_an_explanation_says_what_fits():
    """Query 1 has the item at rank 3: beyond 4 words, within 9."""
    result = mixed_result()
    short, long = result.explain(position=1, k="4w"), result.explain(position=1, k="9w")
    assert [item.outcome for item in short.items] == ["beyond cutoff"]
    assert [one.credit for one in short.documents][2] == "beyond cutoff"
    assert short.status == "missed"
    assert [item.outcome for item in long.items] == ["found"]
    assert long.items[0].place == 3
    assert "4 words" in str(short)
    assert result.explain(position=2, k="4w").items[0].outcome == "nothing in common"


def test_thresholds_take_budgets_that_were_not_evaluated():
    """Lengths that were not kept are measured from the texts."""
    evaluator = OfflineRetrievalEvaluator(
        [[FOUR]], [[TWO, "six seven eight"]], "coverage(min_run=1)", threshold=0.75
    )
    result = evaluator.evaluate(5)
    table = result.metrics_at_thresholds(["macro_recall@4w", "macro_recall@5w"], [0.7, 0.8])
    assert table.to_numpy().tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_evaluators_that_share_matches_share_lengths():
    """Other conventions and thresholds at a budget; a copy can be pickled with its function."""
    evaluator = OfflineRetrievalEvaluator([[TWO, FOUR]], [[TWO, THREE]])
    before = evaluator.calculate_recall("2w")
    assert before == {"micro_recall": 0.5, "macro_recall": 0.5}
    other = evaluator.with_conventions(Conventions.krag())
    assert other.calculate_ndcg("2w") == {"ndcg": 1.0}
    assert evaluator.explain_conventions("2w").loc["macro_recall", "default"] == 0.5
    with pytest.warns(KragEvalWarning):
        evaluator.evaluate(budget=5, length=lambda text: 1)
    assert pickle.loads(pickle.dumps(evaluator)).calculate_recall("2w") == before
    assert evaluator.visualize_results("2w").get_title(loc="left")


def test_a_run_without_budgets_measures_nothing(monkeypatch):
    """Neither in memory nor in parts."""

    def refuse(*_):
        raise AssertionError("measured")

    monkeypatch.setattr("krag_eval.core.scoring.cutoffs.lengths_of", refuse)
    evaluator = OfflineRetrievalEvaluator([[TWO]], [[TWO]])
    evidence = evaluator.evaluate([1, None]).evidence
    assert evidence is not None
    assert evidence.relevance.lengths is None
    PartitionPlan.of(1).evaluate([[TWO]], [[TWO]])


def test_a_result_with_budgets_is_drawn_and_reported(tmp_path):
    """Pictures and the page take them as they take k; the page is about the deepest cutoff."""
    pytest.importorskip("matplotlib")
    from krag_eval import plotting

    result = mixed_result(matcher="coverage(min_run=1)")
    ticks = [text.get_text() for text in plotting.cutoff_curves(result).get_xticklabels()]
    assert ticks == ["1", "3"]  # budgets have curves of their own
    assert "4 words" in plotting.metric_bars(result, "4w").get_title(loc="left")
    plotting.metric_distribution(result, "recall@9w")
    with no_advice():
        result.report(tmp_path / "page.html", k="4w", language="ko")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<th>@4w</th>" in page
    assert "예산 4단어" in page


def test_langsmith_scores_at_a_budget():
    """The comment counts what fits."""
    per_query, summary = retrieval_evaluators(budget=4, metrics=["recall"])
    outputs, reference = {"documents": [TWO, THREE]}, {"documents": [TWO, THREE]}
    (score,) = per_query(inputs={}, outputs=outputs, reference_outputs=reference)
    assert score["key"] == "recall@4w"
    assert score["score"] == 0.5
    assert "within 1 (rank 1)" in score["comment"]
    (micro, macro) = summary([{}], [outputs], [reference])
    assert (micro["key"], macro["key"]) == ("micro_recall@4w", "macro_recall@4w")


# --- in parts, and kept -----------------------------------------------------------------------


def _in_parts(plan, actual, predicted, size):
    return plan.result(
        plan.evaluate(actual[start : start + size], predicted[start : start + size]).partial
        for start in range(0, len(actual), size)
    )


def test_rejection_is_about_the_whole_list(tmp_path):
    """A document that does not fit was retrieved all the same, for a query without an answer."""
    actual, predicted = [[TWO], [], []], [[TWO], [FOUR], []]
    options = {"budget": 2, "no_ground_truth": "skip"}
    evaluator = OfflineRetrievalEvaluator(actual, predicted, no_ground_truth="skip")
    in_file = evaluate_file(
        written(tmp_path, actual, predicted), per_query=tmp_path / "rows.csv", **options
    )
    in_parts = _in_parts(PartitionPlan.of(**options), actual, predicted, 2)
    for result in (evaluator.evaluate(budget=2), in_parts, in_file):
        assert result.to_dict()["rejection_rate@2w"] == 0.5
    assert evaluator.calculate_rejection_rate("2w") == {"rejection_rate": 0.5}
    assert in_file.statuses().tolist() == ["perfect", "no ground truth", "no ground truth"]


def test_a_saved_result_keeps_lengths(tmp_path):
    """Only where there is a budget; what else is kept is compared in test_pieces_everywhere.py."""
    result, path = mixed_result(), tmp_path / "result.json"
    result.to_json(path)
    # 2 and 3 words; 3, 4 and 2; 4.
    kept = json.loads(path.read_text("utf-8"))["evidence"]
    assert kept["lengths"]["w"][:6] == [2, 3, 3, 4, 2, 4]
    again = EvaluationResult.from_json(path)
    assert again.statuses("4w").tolist() == result.statuses("4w").tolist()
    assert again.explain(position=1, k="4w").items[0].outcome == "beyond cutoff"
    OfflineRetrievalEvaluator([[TWO]], [[TWO]]).evaluate(1).to_json(path)
    assert "lengths" not in json.loads(path.read_text("utf-8"))["evidence"]


@pytest.mark.parametrize("change", [(0, MISSING), ("120",), (0, -1)], ids=str)
def test_damaged_lengths_are_found_out(tmp_path, change):
    """Also where the checksum was made anew."""
    path = tmp_path / "result.json"
    mixed_result().to_json(path)
    changed(path, "evidence", "lengths", "w", *change)
    with pytest.raises(InvalidInput):
        EvaluationResult.from_json(path)


def written(folder, actual=([TWO],) * 40, predicted=MIXED):
    """Write queries to a file, those of :func:`mixed_result` unless given."""
    pairs = zip(actual, predicted, strict=True)
    rows = [{"actual": one, "predicted": other} for one, other in pairs]
    return write_lines(folder / "queries.jsonl", rows)


@pytest.mark.parametrize("conventions", ["default", "trec"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_in_a_file_keep_budgets_and_lengths(tmp_path, ending, conventions):
    """Tables, statuses and the budget to a recall are those of the run in memory."""
    memory = mixed_result(conventions=Conventions.parse(conventions))
    options = {"k": [1, 3], "budget": [4, 9], "chunk_size": 7, "conventions": conventions}
    result = evaluate_file(
        written(tmp_path), per_query=tmp_path / f"rows.{ending}", **options, progress=False
    )
    assert result.to_dict() == memory.to_dict()
    for k in memory.k:
        for name, column in memory.tables[k].items():
            np.testing.assert_array_equal(result.tables[k][name], column, name)
        assert result.statuses(k).tolist() == memory.statuses(k).tolist()
    assert result.budget_to_recall(0.5) == memory.budget_to_recall(0.5)
    again = read_back(result, tmp_path)
    assert again.budget_to_recall(0.5) == memory.budget_to_recall(0.5)
    assert again.per_query("4w").equals(result.per_query("4w"))
    with blamed("length"):
        result.budget_to_recall(0.5, length="characters")


def test_rows_say_lengths_and_first_ranks_as_text(tmp_path):
    """One column per unit, and one for the covered items, whatever a chunk holds."""
    plan = PartitionPlan.of(["4w", "20c"])
    part = plan.evaluate([[TWO, FOUR], [TWO], [TWO]], [[TWO, THREE, FOUR], [THREE], []])
    assert list(part.rows) == list(plan.row_types)
    assert part.rows["lengths@w"].tolist() == ["2 3 4", "3", ""]
    assert part.rows["lengths@c"].tolist() == ["7 15 20", "15", ""]
    assert part.rows["first_ranks"].tolist() == ["1 3", "", ""]
    assert "first_ranks" not in PartitionPlan.of(4).row_types


@pytest.mark.parametrize(
    ("before", "after"),
    [(",2 3 4,", ",2 3 x,"), (",2 3 4,", ",,"), (",1 3,", ",1 9,"), (",1 3,", ",1 0,"),
     (",2 3 4,", ",3 3 4,")],
)  # fmt: skip
def test_rows_that_do_not_fit_are_found_out(tmp_path, before, after):
    """Lengths and ranks are checked where they are read, and against what fits."""
    source, rows = written(tmp_path, [[TWO, FOUR]], [[TWO, THREE, FOUR]]), tmp_path / "rows.csv"
    result = evaluate_file(source, budget=5, per_query=rows, progress=False)
    result.to_json(tmp_path / "result.json")
    text = rows.read_text("utf-8")
    assert before in text
    rows.write_text(text.replace(before, after), "utf-8")
    again = EvaluationResult.from_json(tmp_path / "result.json")
    with pytest.raises(InvalidInput):
        _ = again.per_query("5w") if after == ",3 3 4," else result.budget_to_recall(0.5)


def test_a_saved_result_without_lengths_and_texts_says_so(tmp_path):
    """What was neither kept nor can be measured is refused, here and at other thresholds."""
    result = OfflineRetrievalEvaluator([[TWO]], [[TWO]], "coverage(min_run=1)").evaluate(1)
    without, kept = (read_back(result, tmp_path, texts=texts) for texts in (False, True))
    for ask in (without.budget_to_recall, lambda: without.metrics_at_thresholds("recall@2w")):
        with pytest.raises(InvalidInput):
            ask()
    assert kept.metrics_at_thresholds("recall@2w", 0.5).to_numpy().tolist() == [[1.0]]
    with pytest.warns(KragEvalWarning, match="1 query"):
        assert kept.budget_to_recall().value == 2


# --- the budget that reaches a recall ---------------------------------------------------------


def test_the_budget_that_reaches_a_recall():
    """Ten queries whose only item costs 1, 2, … 10 words: 9 of 10 are found within 9."""
    texts = [[" ".join(WORDS[:n])] for n in range(1, 11)]
    evaluator = OfflineRetrievalEvaluator(texts, texts)
    result = evaluator.evaluate(1)
    with pytest.warns(KragEvalWarning, match="10 queries"):
        found = result.budget_to_recall()
    assert (found.value, found.unit, found.recall) == (9.0, "w", 0.9)
    assert 1 <= found.low <= 9 <= found.high <= 10
    assert "macro recall 0.9" in str(found)
    with no_advice():
        assert result.budget_to_recall() == found
        for tenth in range(1, 11):
            assert result.budget_to_recall(tenth / 10).value == tenth
            (at,) = evaluator.evaluate(budget=tenth).metrics["macro_recall"]
            assert at == pytest.approx(tenth / 10)
        characters = result.budget_to_recall(0.1, length="characters")
        assert (characters.value, characters.unit) == (len("alpha"), "c")
        assert result.budget_to_recall(1.0, length=half).value == 5


def test_a_recall_that_is_never_reached_needs_an_infinite_budget():
    """Half of the queries find nothing at all."""
    actual, predicted = [[TWO]] * 40, [[TWO]] * 20 + [[THREE]] * 20
    result = OfflineRetrievalEvaluator(actual, predicted).evaluate(1)
    found = result.budget_to_recall(0.6)
    assert (found.value, found.low, found.high) == (math.inf, 2.0, math.inf)
    assert result.budget_to_recall(0.5).value == 2
    with no_advice():
        nothing = OfflineRetrievalEvaluator(actual, [[]] * 40).evaluate(1).budget_to_recall(0.1)
    assert (nothing.value, nothing.low, nothing.high) == (math.inf,) * 3


def test_an_items_share_is_that_of_its_query():
    """One query finds 1 of 2 items at 2 words and the other at 9, the other 1 of 1 at 3.

    Macro recall: .25 at 2, .75 at 3, 1 at 9. The query without ground truth is no part of it.
    """
    evaluator = OfflineRetrievalEvaluator(
        [[TWO, FOUR], [], [THREE]], [[TWO, THREE, FOUR], [FOUR], [THREE]], no_ground_truth="skip"
    )
    result = evaluator.evaluate(budget=3)
    with no_advice():
        values = [result.budget_to_recall(recall).value for recall in (0.25, 0.26, 0.75, 0.76, 1)]
    assert values == [2, 3, 3, 9, 9]
