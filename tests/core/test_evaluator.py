"""The evaluator: options, cutoffs, metrics, and matching only once."""

import math
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import reference
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import SIMILARITIES, Item, Query, TableMatcher, no_advice
from results_made import sample_s
from trials import trials

from krag_eval import (
    METRICS,
    AnyOf,
    AveragingMethod,
    Conventions,
    MatchingCriteria,
    Metric,
    OfflineRetrievalEvaluator,
)
from krag_eval.core import PLAN_OPTIONS, parse_metric, spelled
from krag_eval.core.scoring.cutoffs import check_cutoffs, unspelled

AVERAGED = {
    "hit_rate": ["hit_rate"], "precision": ["micro_precision", "macro_precision"],
    "recall": ["micro_recall", "macro_recall"], "f1_score": ["micro_f1", "macro_f1"],
    "mrr": ["mrr"], "map": ["map"], "ndcg": ["ndcg"], "mean_rank": ["mean_rank", "found_rate"],
}  # fmt: skip
KEYS = {f"calculate_{name}": keys for name, keys in AVERAGED.items()}
every_calculation = pytest.mark.parametrize("calculation", KEYS)


class CountingTable(TableMatcher):
    """Counts the pairs it was asked about."""

    def __init__(self, table):
        super().__init__(table)
        self.n_pairs = 0

    def similarity(self, actual, predicted):
        self.n_pairs += 1
        return super().similarity(actual, predicted)


# --- keys ------------------------------------------------------------------------------------


@every_calculation
@pytest.mark.parametrize("method", AveragingMethod)
def test_the_averaging_method_selects_keys(calculation, method):
    """Those that are neither micro nor macro stay, whether a member or its string was given."""
    other = {"micro": "macro_", "macro": "micro_", "both": "none"}[method]
    for given_ in (method, str(method)):
        averages = getattr(sample_s(averaging_method=given_), calculation)(1)
        assert list(averages) == [key for key in KEYS[calculation] if not key.startswith(other)]


@every_calculation
def test_calculating_agrees_with_evaluating(calculation):
    """The keys in a fixed order, as Python floats, to the last digit, at every cutoff."""
    evaluator = sample_s()
    result = evaluator.evaluate([1, 2, None])
    for k in result.k:
        averages = getattr(evaluator, calculation)(k)
        expected = [(key, result.averages(k)[key]) for key in KEYS[calculation]]
        assert list(averages.items()) == expected
        assert {type(value) for value in averages.values()} == {float}


# --- random input against loops --------------------------------------------------------------


@st.composite
def evaluations(draw):
    """Draw documents with alternatives and repeats, a table of similarities, and what it means.

    Predicted documents repeat within and between queries; a ground-truth text is new in every item,
    so that no item repeats another.
    """
    texts = ["p0", "p1", "p2", "p3"]
    actual, predicted, table, meant = [], [], {}, []
    for number in range(draw(st.integers(1, 3))):
        retrieved = draw(st.lists(st.sampled_from(texts), max_size=5))
        items, wanted = [], []
        for position in range(draw(st.integers(1, 3))):
            alternatives = [f"a{number}.{position}.{i}" for i in range(draw(st.integers(1, 2)))]
            rows = [
                draw(st.dictionaries(st.sampled_from(texts), st.sampled_from(SIMILARITIES)))
                for _ in alternatives
            ]
            for alternative, row in zip(alternatives, rows, strict=True):
                table |= {(alternative, text): similarity for text, similarity in row.items()}
            best = {text: max(row.get(text, 0.0) for row in rows) for text in texts}
            found = {rank: best[text] for rank, text in enumerate(retrieved, 1) if best[text]}
            items.append(AnyOf(alternatives) if len(alternatives) > 1 else alternatives[0])
            wanted.append(Item(found, n_alternatives=len(alternatives)))
        actual.append(items)
        predicted.append(retrieved)
        meant.append(Query(wanted, len(retrieved)))
    return actual, predicted, TableMatcher(table), meant


@settings(max_examples=trials(150))
@given(drawn=evaluations(), conventions=reference.CONVENTIONS)
def test_documents_with_alternatives_and_repeats_agree_with_loops(drawn, conventions):
    """From documents to averages, under any conventions, at several cutoffs."""
    actual, predicted, matcher, meant = drawn
    evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher, conventions=conventions)
    with no_advice():
        result = evaluator.evaluate([1, 2, 4, None])
    for k in result.k:
        expected = reference.averages(meant, k, conventions)
        assert result.averages(k) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(max_examples=trials(150))
@given(drawn=evaluations(), conventions=reference.CONVENTIONS, data=st.data())
def test_the_order_of_queries_does_not_change_a_digit(drawn, conventions, data):
    """Averages are exact sums, rounded once."""
    actual, predicted, matcher, _ = drawn
    order = data.draw(st.permutations(range(len(actual))))
    shuffled = [actual[i] for i in order], [predicted[i] for i in order]
    with no_advice():
        result, other = (
            OfflineRetrievalEvaluator(*lists, matcher, conventions=conventions).evaluate([1, 3])
            for lists in ((actual, predicted), shuffled)
        )
    # As text, since an undefined mean rank does not equal itself.
    assert repr(other.to_dict()) == repr(result.to_dict())


@pytest.mark.parametrize("rule", ["skip", "zero"])
def test_the_order_of_many_queries_does_not_change_a_digit(rule):
    """300 queries with values that no float can hold, some without ground truth."""
    source = np.random.default_rng(5)
    actual = [[str(i) for i in range(source.integers(0, 8))] for _ in range(300)]
    predicted = [[str(i) for i in source.permutation(12)[:7]] for _ in range(300)]
    order = source.permutation(300)
    one = OfflineRetrievalEvaluator(actual, predicted, no_ground_truth=rule)
    other = OfflineRetrievalEvaluator(
        [actual[i] for i in order], [predicted[i] for i in order], no_ground_truth=rule
    )
    assert one.evaluate().to_dict() == other.evaluate().to_dict()


# --- matching once ---------------------------------------------------------------------------


def test_matching_happens_once_whatever_is_asked():
    """Every calculation, every cutoff, other thresholds and conventions."""
    matcher = CountingTable({("a", "x"): 0.6, ("b", "y"): 0.9})
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["x", "y"], ["y"]], matcher)
    for calculation in KEYS:
        getattr(evaluator, calculation)(1)
    evaluator.evaluate([1, 2, None])
    evaluator.with_threshold(0.8).evaluate()
    evaluator.with_conventions(Conventions.trec()).evaluate()
    evaluator.explain_conventions(1)
    assert matcher.n_pairs == 3


def test_matching_waits_for_the_first_question_and_serves_twins_made_before():
    """The constructor checks, and no more; whoever asks first, matches for both."""
    matcher = CountingTable({("a", "x"): 0.6})
    evaluator = OfflineRetrievalEvaluator([["a"]], [["x"]], matcher)
    other = evaluator.with_threshold(0.6)
    assert matcher.n_pairs == 0
    other.calculate_recall()
    evaluator.calculate_recall()
    assert matcher.n_pairs == 1


def test_threads_get_the_same_numbers():
    """One evaluator may be asked by several at once."""
    source = np.random.default_rng(0)
    actual = [[str(i) for i in source.permutation(20)[:4]] for _ in range(200)]
    predicted = [[str(i) for i in source.permutation(20)[:8]] for _ in range(200)]
    expected = OfflineRetrievalEvaluator(actual, predicted).evaluate().to_dict()
    for _ in range(5):
        evaluator = OfflineRetrievalEvaluator(actual, predicted)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _, e=evaluator: e.evaluate().to_dict(), range(4)))
        assert results == [expected] * 4


def test_an_evaluator_can_be_pickled():
    """To be sent to another process, before or after matching."""
    evaluator = sample_s()
    fresh = pickle.loads(pickle.dumps(evaluator))
    expected = evaluator.evaluate().to_dict()
    assert fresh.evaluate().to_dict() == expected
    assert pickle.loads(pickle.dumps(evaluator)).evaluate().to_dict() == expected


# --- thresholds ------------------------------------------------------------------------------


def at_thresholds(**options):
    """Return an evaluator with similarities 0.4 at rank 1 and 0.6 at rank 2."""
    matcher = TableMatcher({("a", "x"): 0.4, ("a", "y"): 0.6})
    return OfflineRetrievalEvaluator([["a"]], [["x", "y"]], matcher, **options)


def test_the_threshold_is_the_matcher_s_unless_given():
    """0.5 here: rank 2."""
    assert at_thresholds().threshold == at_thresholds(threshold=None).threshold == 0.5
    assert at_thresholds().calculate_mrr() == {"mrr": 0.5}


@pytest.mark.parametrize(("threshold", "mrr"), [(0.4, 1.0), (0.6, 0.5), (0.61, 0.0), (1, 0.0)])
def test_a_similarity_at_the_threshold_is_a_match(threshold, mrr):
    """Given to the constructor, or to a twin."""
    with no_advice():
        assert at_thresholds(threshold=threshold).calculate_mrr() == {"mrr": mrr}
        assert at_thresholds().with_threshold(threshold).calculate_mrr() == {"mrr": mrr}


def test_a_twin_with_another_threshold_leaves_the_first_alone():
    """Whichever is asked first."""
    evaluator = at_thresholds()
    lower = evaluator.with_threshold(0.4)
    assert lower.calculate_mrr() == {"mrr": 1.0}
    assert evaluator.calculate_mrr() == {"mrr": 0.5}
    assert evaluator.with_threshold(0.4).calculate_mrr() == {"mrr": 1.0}
    assert "threshold=0.4" in lower.evaluate().signature
    assert "threshold=0.5" in evaluator.evaluate().signature


def test_a_similarity_of_0_is_no_match_whatever_the_threshold():
    """As the matcher's documentation says: nothing in common is never a match."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["x"]], TableMatcher({}), threshold=0.0)
    with no_advice():
        assert evaluator.calculate_recall()["macro_recall"] == 0.0


# --- options ---------------------------------------------------------------------------------


@pytest.mark.parametrize("criteria", ["partial", MatchingCriteria.PARTIAL])
def test_criteria_may_be_a_member_or_its_string(criteria):
    """Query 2 is a hit at 2 if any of it will do, calculated or chosen."""
    evaluator = sample_s(matching_criteria=criteria)
    assert evaluator.calculate_hit_rate(2) == {"hit_rate": 1.0}
    assert evaluator.evaluate(2, metrics=["hit_rate"]).averages() == {"hit_rate": 1.0}


@pytest.mark.parametrize(
    "conventions", [Conventions.trec(), "trec", "precision_at=k,macro_f1=mean_of_f1,gain=linear"]
)
def test_conventions_may_be_an_object_or_its_printed_form(conventions):
    """1 of 3 and 3 of 3 relevant, over 5: (1/5 + 3/5)/2."""
    assert sample_s(conventions=conventions).conventions == Conventions.trec()
    computed = sample_s(conventions=conventions).calculate_precision(5)
    assert computed["macro_precision"] == 0.4


def test_labels_can_be_read():
    """A copy of them."""
    evaluator = sample_s(queries=["x", "y"])
    evaluator.queries.append("z")
    assert evaluator.queries == ["x", "y"]
    assert sample_s().queries == [0, 1]


@pytest.mark.parametrize("name", sorted({*PLAN_OPTIONS} & {*dir(OfflineRetrievalEvaluator)}))
def test_options_of_an_evaluator_cannot_be_assigned(name):
    """Numbers must never stand under a signature that is not theirs."""
    evaluator = sample_s()
    with pytest.raises(AttributeError):
        setattr(evaluator, name, getattr(evaluator, name))


# --- metrics of one's choice -----------------------------------------------------------------


def success(relevance, k, conventions):
    """1 if any relevant document is within the cutoff."""
    return (relevance.relevant_within(k) > 0).astype(float)


def test_metrics_can_be_chosen_by_name():
    """Only they are computed, in the order given."""
    result = sample_s().evaluate([1], metrics=["ndcg", "recall"])
    assert list(result.averages()) == ["ndcg", "micro_recall", "macro_recall"]


@pytest.mark.filterwarnings("ignore:.*have no aspect")
@pytest.mark.parametrize("name", METRICS)
def test_any_metric_can_be_chosen_alone(name):
    """With the averages it has among all the others."""
    evaluator = sample_s(
        matcher="coverage", judged=[[], []], aspect_key="part", unwanted=[[], []], cited=[[], []]
    )
    everything = evaluator.evaluate(2, metrics=METRICS).averages()
    alone = evaluator.evaluate(2, metrics=[name]).averages()
    assert alone
    assert alone == {key: everything[key] for key in alone}


def test_f1_alone_under_every_convention():
    """The harmonic mean of the means needs precision and recall, chosen or not."""
    for macro_f1 in Conventions.allowed()["macro_f1"]:
        evaluator = sample_s(conventions=Conventions(macro_f1=macro_f1))
        alone = evaluator.evaluate(3, metrics=["f1"]).averages()
        assert alone == evaluator.calculate_f1_score(3)


def test_a_metric_of_one_s_own_needs_none_of_our_files():
    """Query 1 has something at 1, query 2 at 2."""
    mine = Metric("success", success, "success")
    result = sample_s().evaluate([1, 2], metrics=["recall", mine])
    assert result.to_dict()["success@1"] == 0.5
    assert result.to_dict()["success@2"] == 1.0
    assert result.per_query(1)["success"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("metrics", ["recall", ["recall", METRICS["recall"]]])
def test_one_name_stands_for_one_metric(metrics):
    """A string is not a list of letters, and what is given twice is computed once."""
    assert sample_s().evaluate(1, metrics=metrics) == sample_s().evaluate(1, metrics=["recall"])


def test_tables_and_counts_cannot_be_written_to():
    """Counts are shared between metrics and results; what can be written to is a copy."""

    def careless(relevance, k, conventions):
        counts = relevance.covered_within(k)
        if counts.flags.writeable:
            counts[:] = 0
        return counts.astype(float)

    evaluator = sample_s()
    before = evaluator.evaluate([3, None]).to_dict()
    result = evaluator.evaluate([3, None], metrics=[Metric("careless", careless, "careless")])
    for column in (one for table in result.tables.values() for one in table.values()):
        if column.flags.writeable:
            column[:] = 0
    assert evaluator.evaluate([3, None]).to_dict() == before


# --- cutoffs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, (1,)),
        (2**53, (2**53,)),
        (np.int64(5), (5,)),
        (np.uint8(5), (5,)),
        (None, (None,)),
        ("all", (None,)),
        ((5, None, 1), (5, None, 1)),
        (np.array([1, 5]), (1, 5)),
        (iter(["all", 5]), (None, 5)),
    ],
)
def test_cutoffs_are_whole_numbers_or_all_in_the_order_given(k, expected):
    """One, or any iterable of them; a text is no iterable of letters, and numpy's are Python's."""
    found = check_cutoffs(k)
    assert found == expected
    assert {type(one) for one in found} <= {int, type(None)}


@every_calculation
def test_the_largest_cutoff_overflows_nothing(calculation):
    """Not even where precision divides by it."""
    evaluator = sample_s(conventions=Conventions(precision_at="k"))
    averages = getattr(evaluator, calculation)(2**53)
    assert all(0 <= value <= 1.5 for value in averages.values())
    assert evaluator.calculate_precision(2**53)["micro_precision"] == 4 / 2**54


def test_the_largest_cutoff_of_many_queries_overflows_nothing():
    """1,100 times the largest cutoff is beyond 64 bits; every query finds 1 of k."""
    evaluator = OfflineRetrievalEvaluator([["a"]] * 1100, [["a"]] * 1100, conventions="trec")
    k = 2**53
    assert evaluator.calculate_precision(k) == {
        "micro_precision": 1 / k,
        "macro_precision": 1 / k,
    }


def test_a_result_keeps_the_order_of_cutoffs():
    """None stands for all; 1, 3, 5 and 10 are evaluated unless others are given."""
    assert sample_s().evaluate([5, None, 1]).k == (5, None, 1)
    assert sample_s().evaluate().k == (1, 3, 5, 10)


@given(st.one_of(st.none(), st.integers(1, 2**53)))
def test_the_spelling_of_a_cutoff_reads_back(k):
    """The spelling after the @ sign loses nothing."""
    assert unspelled(spelled(k)) == k


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ndcg@10", ("ndcg", 10)), ("mrr@all", ("mrr", None)), (" my@metric@5 ", ("my@metric", 5))],
)
def test_a_metric_at_a_cutoff_reads_back(text, expected):
    """The last @ separates."""
    assert parse_metric(text) == expected


# --- grades ----------------------------------------------------------------------------------


def test_grades_are_read_from_metadata():
    """Grade 3 at rank 2, grade 1 (no key) at rank 1: (1 + 7/log2(3)) / (7 + 1/log2(3))."""
    actual = [[Document("a", metadata={"grade": 3}), "b"]]
    evaluator = OfflineRetrievalEvaluator(actual, [["b", "a"]], grade_key="grade")
    second = 1 / math.log2(3)
    expected = (1 + 7 * second) / (7 + second)
    assert evaluator.calculate_ndcg()["ndcg"] == pytest.approx(expected, abs=1e-15)
    assert OfflineRetrievalEvaluator(actual, [["b", "a"]]).calculate_ndcg() == {"ndcg": 1.0}


def test_a_document_of_grade_0_is_not_relevant():
    """It is listed so that it is known to be wrong: precision 1 of 2."""
    actual = [[Document("a", metadata={"grade": 0}), "b"]]
    evaluator = OfflineRetrievalEvaluator(actual, [["a", "b"]], grade_key="grade")
    assert evaluator.calculate_precision()["macro_precision"] == 0.5
    assert evaluator.calculate_recall()["macro_recall"] == 1.0
    assert evaluator.calculate_mrr() == {"mrr": 0.5}


# --- explaining conventions ------------------------------------------------------------------


def test_conventions_are_explained_on_sample_s():
    """At 5: what each preset makes of it, and by which field.

    trec: precision 3/5 and 1/5. autorag: RR and AP (11/18 + 1/4)/2 = 31/72.
    """
    table = sample_s().explain_conventions(5)
    assert table.index.name == "metric"
    assert list(table.columns) == [
        "default", "trec", "krag", "autorag",
        "trec differs by", "krag differs by", "autorag differs by",
    ]  # fmt: skip
    assert table.loc["macro_precision", "trec"] == pytest.approx(2 / 5, abs=1e-15)
    assert table.loc["macro_precision", "trec differs by"] == "precision_at=k"
    assert table.loc["ndcg", "krag"] == pytest.approx(0.8154648767857288, abs=1e-15)
    assert table.loc["ndcg", "krag differs by"] == "ideal=retrieved"
    assert table.loc["mrr", "autorag"] == pytest.approx(31 / 72, abs=1e-15)
    assert table.loc["mrr", "autorag differs by"] == "reciprocal_rank=per_item"
    assert table.loc["map", "autorag differs by"] == "average_precision=per_item"
    assert table.loc["macro_f1", "autorag differs by"] == "macro_f1=mean_of_f1"
    assert table.loc["macro_recall", "trec differs by"] == ""


def test_one_s_own_conventions_are_explained_beside_the_presets():
    """In a column of their own, unless they are a preset."""
    table = sample_s(conventions=Conventions(precision_at="k")).explain_conventions(5)
    assert table.loc["macro_precision", "yours"] == pytest.approx(2 / 5, abs=1e-15)
    assert table.loc["macro_precision", "yours differs by"] == "precision_at=k"
    assert "yours" not in sample_s(conventions="krag").explain_conventions(5)


@pytest.mark.parametrize(
    ("actual", "predicted", "k", "values", "differs_by"),
    [
        # All found; by default every F1 is 1. Under trec precision is 1/2 and 1, recall 1 and 1:
        # the mean of F1 is (2/3 + 1)/2 = 5/6, where the F1 of means would be 2 · 3/4 · 1 / (7/4)
        # = 6/7. So both fields have a part in 5/6.
        ([["a"], ["a", "b"]], [["a"], ["a", "b"]], 2, [1.0, 5 / 6],
         "precision_at=k, macro_f1=mean_of_f1"),
        # A difference of rounding is none: the mean of one F1 is the F1 of its means,
        # 2 · 2/3 · 1 / (5/3) = 4/5.
        ([["a"]], [["a", "a", "x"]], None, [4 / 5, 4 / 5], ""),
    ],
)  # fmt: skip
def test_fields_are_named_that_matter_only_together(actual, predicted, k, values, differs_by):
    """Macro F1, by default and under trec."""
    row = OfflineRetrievalEvaluator(actual, predicted).explain_conventions(k).loc["macro_f1"]
    assert row[["default", "trec"]].tolist() == pytest.approx(values, abs=1e-15)
    assert row["trec differs by"] == differs_by


@settings(max_examples=20, deadline=None)
@given(drawn=evaluations())
def test_the_explanation_names_a_field_wherever_numbers_differ(drawn):
    """And none where they do not; each preset's column holds its numbers."""
    actual, predicted, matcher, meant = drawn
    evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher)
    with no_advice():
        table = evaluator.explain_conventions(3)
    for name, preset in Conventions.presets().items():
        expected = reference.averages(meant, 3, preset)
        assert table[name].to_dict() == pytest.approx(expected, abs=1e-12, nan_ok=True)
        if name != "default":
            differs = ~np.isclose(table[name], table["default"], rtol=0, equal_nan=True, atol=1e-12)
            assert (table[f"{name} differs by"] != "").tolist() == differs.tolist()


def test_twins_with_other_conventions_are_new_evaluators():
    """The first keeps its own, whatever is explained; the twin of the twin has only the last."""
    evaluator = sample_s()
    krag = evaluator.with_conventions("krag")
    before = krag.evaluate().to_dict()
    krag.explain_conventions(3)
    assert evaluator.conventions == Conventions()
    assert krag.conventions == Conventions.krag()
    assert krag.with_conventions(Conventions.trec()).conventions == Conventions.trec()
    assert krag.evaluate().to_dict() == before


def test_an_evaluator_prints_as_what_it_holds():
    """How many queries, and how a match is decided."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]], "rouge1", threshold=0.25)
    assert repr(evaluator) == (
        "OfflineRetrievalEvaluator of 1 query, "
        "matcher rouge1(statistic=fmeasure,tokenizer=unicode,stemmer=no), threshold 0.25"
    )
    assert repr(OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], []])) == (
        "OfflineRetrievalEvaluator of 2 queries, matcher text"
    )


def peak_of_ids(n_queries):
    """Return the bytes it takes, at most, to evaluate so many queries of 100 ids at 4 cutoffs."""
    actual = [[f"{query} {7 * n}" for n in range(1 + query % 5)] for query in range(n_queries)]
    predicted = [[f"{query} {n}" for n in range(100)] for query in range(n_queries)]
    tracemalloc.start()
    try:
        evaluator = OfflineRetrievalEvaluator(actual, predicted, "id")
        evaluator.evaluate((1, 3, 5, 10)).averages(10)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_query_of_many_ids_takes_little_more_than_its_list():
    """Beside the copy of 100 references (800 bytes, and 100 as room to grow), 1,000 at most.

    288 of these are four tables of eight metrics and a count, which no two cutoffs share; three
    items and two matches of three or four numbers each, with what follows from them, are 300.
    """
    peak_of_ids(100)  # loads what is loaded on first use
    assert peak_of_ids(4_000) - peak_of_ids(1_000) < 3_000 * 1_900
