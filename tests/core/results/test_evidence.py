"""Evidence: what is kept of a query, its status, and which queries did worst."""

import gc
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import TableMatcher, no_advice
from results_made import evaluated, read_back
from trials import trials

from krag_eval import (
    AnyOf,
    Conventions,
    CoverageMatcher,
    Metric,
    OfflineRetrievalEvaluator,
)
from krag_eval.core.results.evidence import NearMiss
from krag_eval.errors import InvalidInput

# Threshold 0.5. p1 is the first to cover t1, p2 repeats that, p3 is the first to cover t2 and
# covers t1 again, p4 comes nearest to t3, p5 covers t4; t5 has nothing in common with anything.
TABLE = {
    ("t1", "p1"): 0.9,
    ("t1", "p2"): 0.625,
    ("t1", "p3"): 0.5,
    ("t2", "p3"): 0.75,
    ("t2", "p2"): 0.25,
    ("t3", "p1"): 0.125,
    ("t3", "p4"): 0.375,
    ("t4", "p5"): 0.8,
}
ITEMS, DOCUMENTS = ["t1", "t2", "t3", "t4", "t5"], ["p1", "p2", "p3", "p4", "p5"]


def one_query(k=(3, None), actual=ITEMS, predicted=DOCUMENTS, **options):
    """Return the result of the one query above."""
    return evaluated([actual], [predicted], TableMatcher(TABLE), k, **options)


def several(labels=None, **options):
    """Return a result with a query of each status, at cutoff 1 and 2.

    At 1: perfect, partial (1 of 2), missed, nothing retrieved, no ground truth.
    """
    actual = [["a"], ["b", "c"], ["d"], ["e"], []]
    predicted = [["a"], ["b", "c"], ["x"], [], ["y"]]
    options = {"no_ground_truth": "skip"} | options
    return OfflineRetrievalEvaluator(actual, predicted, queries=labels, **options).evaluate([1, 2])


# --- what is kept ----------------------------------------------------------------------------


def test_every_similarity_above_0_is_kept_and_not_only_matches():
    """All eight, sorted by item and rank."""
    found = one_query().evidence.relevance
    kept = zip(found.pair_item, found.pair_rank, found.pair_similarity, strict=True)
    assert [(ITEMS[item], f"p{rank}", similarity) for item, rank, similarity in kept] == [
        (item, document, TABLE[item, document]) for item, document in sorted(TABLE)
    ]


def test_one_query_is_cut_out_of_all_of_them():
    """Its items are numbered from 0, its pairs are its own."""
    evaluator = OfflineRetrievalEvaluator(
        [["x"], ITEMS, []], [["x"], DOCUMENTS, ["z"]], TableMatcher(TABLE), no_ground_truth="skip"
    )
    evidence = evaluator.evaluate(3).evidence
    second = evidence.of_query(1)
    assert second.n_queries == 1
    assert second.n_retrieved.tolist() == [5]
    assert second.covered.tolist() == [0, 1, 3]
    assert second.first_rank.tolist() == [1, 3, 5]
    assert len(evidence.of_query(0).pair_item) == 0
    assert len(evidence.of_query(2).item_query) == 0


def test_evidence_shares_the_arrays_of_the_evaluator():
    """Nothing is copied, and nothing that was worked out from them is held."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["x", "a"]])
    kept = evaluator.evaluate(2).evidence.relevance
    assert kept.pair_rank is evaluator._found().pair_rank
    assert kept.pair_similarity is evaluator._found().pair_similarity
    assert "covered" not in vars(kept)
    assert not kept._counts


def test_no_object_is_made_per_document():
    """A result of many documents is a handful of arrays."""
    names = [[f"{query}-{i}" for i in range(100)] for query in range(500)]
    evaluator = OfflineRetrievalEvaluator([one[:3] for one in names], names, "id")
    evaluator.evaluate(5)
    gc.collect()
    before = len(gc.get_objects())
    result = evaluator.evaluate(5)
    gc.collect()
    assert len(gc.get_objects()) - before < 100
    assert result.n_queries == 500


def test_texts_are_read_when_they_are_asked_for():
    """From the user's own documents."""
    document = Document("before")
    result = OfflineRetrievalEvaluator([[document]], [[document]], "text").evaluate(1)
    document.page_content = "after"
    assert result.explain(0).predicted["text"].tolist() == ["after"]


def test_another_threshold_looks_at_the_same_pairs():
    """At 0.8 p1 covers t1 and p5 covers t4; 0.375 is reached by the one at 0.375."""
    result = one_query()
    stricter = result.evidence.relevance.at_threshold(0.8)
    assert stricter.covered.tolist() == [0, 3]
    assert stricter.pair_item is result.evidence.relevance.pair_item
    assert result.evidence.relevance.covered.tolist() == [0, 1, 3]
    laxer = one_query(threshold=0.375)
    assert (laxer.threshold, several().threshold) == (0.375, None)
    assert laxer.explain(0, None).ground_truth.loc[3, "outcome"] == "found"


# --- predicted documents ---------------------------------------------------------------------


def test_each_predicted_document_by_hand():
    """At 3: first, repeat, first (and t1 again), not relevant, beyond the cutoff."""
    table = one_query().explain(0, 3).predicted
    expected = pd.DataFrame(
        {
            "credit": ["first", "repeat", "first", "not relevant", "beyond cutoff"],
            "matches": [(1,), (1,), (1, 2), (), (4,)],
            "first_for": [(1,), (), (2,), (), (4,)],
            "similarity": [0.9, 0.625, 0.75, 0.375, 0.8],
            "closest": pd.array([1, 1, 2, 3, 4], dtype="Int64"),
            "contradicts": [()] * 5,
            "text": np.array(DOCUMENTS, object),
        },
        index=pd.Index([1, 2, 3, 4, 5], name="rank"),
    )
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_credit_without_a_cutoff_and_of_what_is_like_nothing_or_two():
    """Nothing is beyond; similarity 0 has no closest item; of equals, the first is named."""
    credit = one_query().explain(0).predicted["credit"].tolist()
    assert credit == ["first", "repeat", "first", "not relevant", "first"]
    row = one_query(predicted=["p1", "z"]).explain(0).predicted.loc[2]
    assert row[["similarity", "closest", "credit"]].tolist() == [0.0, pd.NA, "not relevant"]
    equal = TableMatcher({(item, at): 0.25 for item in "ab" for at in "xy"})
    explanation = evaluated([["b", "a"]], [["z", "x", "y"]], equal).explain(0)
    assert explanation.predicted.loc[2, "closest"] == 1
    assert explanation.ground_truth.loc[1, "nearest_rank"] == 2


# --- ground-truth items ----------------------------------------------------------------------


def test_each_item_by_hand():
    """At 3: found at 1 and at 3, missed by 1/8 at rank 4, found too late at 5, nothing at all."""
    table = one_query().explain(0, 3).ground_truth
    expected = pd.DataFrame(
        {
            "grade": [1.0] * 5,
            "outcome": ["found", "found", "missed", "beyond cutoff", "nothing in common"],
            "first_rank": pd.array([1, 3, None, 5, None], dtype="Int64"),
            "place": pd.array([1, 3, None, None, None], dtype="Int64"),
            "nearest_rank": pd.array([None, None, 4, None, None], dtype="Int64"),
            "similarity": [0.9, 0.75, 0.375, 0.8, 0.0],
            "shortfall": [0.0, 0.0, 0.125, 0.0, 0.5],
            "contradicted_by": [()] * 5,
            "alternatives": [1] * 5,
            "text": np.array(ITEMS, object),
        },
        index=pd.Index([1, 2, 3, 4, 5], name="item"),
    )
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_an_item_that_is_completed_too_late():
    """Rank 3 brings the second half of the item, when two documents are seen."""
    halves = ["a b c d e", "x y z", "f g h i j"]
    result = OfflineRetrievalEvaluator(
        [["a b c d e f g h i j"]], [halves], "coverage(union=true)"
    ).evaluate(2)
    explanation = result.explain(0, 2)
    (item,) = explanation.items
    assert (item.outcome, item.first_rank, item.pieces) == ("beyond cutoff", 3, (1, 3))
    assert [one.piece_of for one in explanation.documents] == [(), (), (1,)]
    assert [one.credit for one in explanation.documents][2] == "beyond cutoff"
    text = explanation.to_text()
    assert "missed; ranks 1 and 3 together hold 100 %, rank 3 beyond the cutoff" in text
    assert "beyond the cutoff, completes item 1" in text


def graded(conventions=None):
    """Rank 1 covers a (grade 1) and b (grade 3), rank 2 c (grade 2), rank 4 d (grade 1)."""
    grades = {"a": 1, "b": 3, "c": 2, "d": 1}
    actual = [[{"page_content": t, "metadata": {"g": g}} for t, g in grades.items()]]
    return OfflineRetrievalEvaluator(
        actual,
        [["a b", "c", "x", "d"]],
        "contains",
        grade_key="g",
        conventions=conventions or Conventions(),
    ).evaluate(3)


def test_items_of_one_document_count_at_places_of_their_own():
    """At 3: b, worth more, at place 1; c at 2 and a, worth less, at 3; d is beyond the cutoff."""
    explanation = graded().explain(0, 3)
    assert [item.place for item in explanation.items] == [3, 1, 2, None]
    # Gains of 7, 3 and 1 at these places; within 3, no list could gain more.
    assert explanation.metrics["ndcg"] == 1.0
    assert "found at rank 1, counted at place 3" in explanation.to_text()
    assert "counted at place 1" not in explanation.to_text()


def test_without_places_none_is_shown():
    """Where the ideal is made of what was retrieved, documents count at their ranks."""
    explanation = graded(Conventions(ideal="retrieved")).explain(0, 3)
    assert [item.place for item in explanation.items] == [None] * 4
    assert explanation.ground_truth["place"].isna().all()
    assert "place" not in explanation.to_text()


def test_an_item_with_alternatives_shows_all_of_them():
    """It is one item."""
    actual = [AnyOf(["a", "b"]), "c"]
    result = OfflineRetrievalEvaluator([actual], [["b"]]).evaluate(1)
    explanation = result.explain(0)
    assert explanation.items[0].alternatives == ("a", "b")
    assert explanation.ground_truth["alternatives"].tolist() == [2, 1]
    assert explanation.ground_truth["text"].tolist() == ["a | b", "c"]


def test_items_keep_their_place_in_the_list_that_was_given():
    """The second repeats the first, the third is of grade 0: the fourth is still the fourth."""
    actual = [
        Document("a", metadata={"grade": 2}),
        Document("a", metadata={"grade": 2}),
        Document("x", metadata={"grade": 0}),
        Document("b", metadata={"grade": 1}),
    ]
    with no_advice():
        result = OfflineRetrievalEvaluator([actual], [["b", "x"]], grade_key="grade").evaluate(2)
    explanation = result.explain(0)
    assert explanation.ground_truth.index.tolist() == [1, 4]
    assert explanation.ground_truth["text"].tolist() == ["a", "b"]
    assert explanation.ground_truth["grade"].tolist() == [2.0, 1.0]
    assert explanation.predicted["matches"].tolist() == [(4,), ()]


@settings(max_examples=trials(50))
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), max_size=4), st.lists(st.sampled_from("abcd"))),
        min_size=1,
    ),
    st.sampled_from([1, 2, None]),
)
def test_explanations_add_up_to_the_counts_of_the_table(drawn, k):
    """Found items are the covered ones; first and repeats are the relevant documents."""
    actual, predicted = [truth for truth, _ in drawn], [ranked for _, ranked in drawn]
    with no_advice():
        result = OfflineRetrievalEvaluator(actual, predicted, no_ground_truth="zero").evaluate(k)
    table = result.per_query()
    for query in range(len(drawn)):
        explanation = result.explain(query)
        credit, outcome = explanation.predicted["credit"], explanation.ground_truth["outcome"]
        assert (outcome == "found").sum() == table["covered"].iloc[query]
        assert len(outcome) == table["ground_truth"].iloc[query]
        assert credit.isin(["first", "repeat"]).sum() == table["relevant"].iloc[query]


# --- near misses -----------------------------------------------------------------------------


def missed(item, documents, matcher="coverage"):
    """Return what the only item of a query has in common with the documents, and the words."""
    explanation = evaluated([[item]], [documents], matcher).explain(0)
    return explanation.items[0].near, explanation.to_text(150)


CAPTAIN = "the captain of the ship was James Totten"
# Of seven different words, six are in rank 2, as in rank 3, and two ("the", "was") in rank 1.
SHIPS = ["the weather was fine", "Captain Totten, James: the master of ship Ann",
         "James Totten of the captain and ship"]  # fmt: skip
FEE = "in 2024 the fee was raised to six"


@pytest.mark.parametrize(
    ("item", "documents", "matcher", "near", "said"),
    [
        (CAPTAIN, SHIPS, "coverage", NearMiss("run", 5, "words", 7, 6, 2),
         "missed; no five words in a row in common with any predicted document; 6 of its 7 "
         "different words occur in rank 2"),
        ("red green blue", ["blue green red"], "coverage", NearMiss("run", 3, "words", 3, 3, 1),
         "no three words in a row"),
        ("red", ["blue"], "coverage", NearMiss("run", 1, "words", 1, 0, None),
         "no word in common with any predicted document; none of its words occurs in any of them"),
        # No two words of the one, no three of the other: no three; two of the second's occur.
        (AnyOf(["red green", "one two three"]), ["two one", "x"], "coverage",
         NearMiss("run", 3, "words", 3, 2, 1), "2 of its 3 different words occur in rank 1"),
        ("가나다라마바", ["바마라"], "coverage(tokenizer=character)",
         NearMiss("run", 6, "characters", 6, 3, 1), "no six characters in a row"),
        # All seven words but the year stand in a row, and that is not what is missing.
        (FEE, [FEE.replace("4", "3")], "coverage(numbers=yes)",
         NearMiss("numbers", 5, "words", 8, 7, 1),
         "five words in a row in common with it and all its numbers"),
        ("…", ["a"], "coverage", NearMiss("no words"), "it has no words"),
        ("a", [], "coverage", NearMiss("nothing retrieved"), "nothing was retrieved"),
        ("a", [], "text", NearMiss("nothing retrieved"), "nothing was retrieved"),
        ("a", ["b"], "contains", NearMiss("contains"), "no predicted document has it in its text"),
        ("a", ["b"], "id", NearMiss("id"), "no predicted document has the same id"),
        ("a", ["b"], TableMatcher({}), None, "nothing in common with any predicted document"),
    ],
)  # fmt: skip
def test_what_an_item_has_in_common_with_what_came_back(item, documents, matcher, near, said):
    """Words where runs of them are missing; what else a matcher looks at; a user's own says no."""
    found, told = missed(item, documents, matcher)
    assert found == near
    assert said in told


@pytest.mark.parametrize(
    ("document", "but_for", "matchers"),
    [
        ("opening  hours", ("case", "white space"), ("coverage",)),
        ("Opening\nhours", ("white space",), ("contains", "coverage")),
        ("Opening hours.", ("punctuation",), ("contains", "coverage")),
        ("Ｏpening hours", ("Unicode form",), ("contains", "coverage")),
        ("Openinghours", ("white space",), ()),
        ("Closing hours", (), ()),
    ],
)
def test_equal_texts_but_for_what_does_not_tell(document, but_for, matchers):
    """The fewest things that differ, and the matchers that look past them."""
    near, told = missed("Opening hours", ["x", document], "text")
    assert (near.kind, near.but_for, near.matchers) == ("text", but_for, matchers)
    for name in ("contains", "coverage"):
        found = evaluated([["Opening hours"]], [["x", document]], name)["recall@5"] == 1
        assert (name in near.matchers) == (found and bool(but_for))
    assert near.rank == (2 if but_for else None)
    assert ("rank 2 has it but for" in told) == bool(but_for)


def test_near_misses_of_a_result_that_was_read_back(tmp_path):
    """The signature tells the matcher, but not a tokenizer nobody knows; words need texts."""
    result = evaluated([["the captain of the ship"]], [["ship of the captain", "x"]], "coverage")
    for texts, shared in ((True, 4), (False, None)):
        (item,) = read_back(result, tmp_path, texts=texts).explain(0).items
        assert (item.near.run, item.near.shared) == (5, shared)
    own = CoverageMatcher(tokenizer=lambda text: text.split())
    explanation = read_back(evaluated([["a b"]], [["b a"]], own), tmp_path, texts=True).explain(0)
    assert explanation.items[0].near is None
    assert "no predicted document shares a long enough run of words" in str(explanation)


# --- what is told of a document ---------------------------------------------------------------


def told(**options):
    """Return the explanation of a query with documents of every form."""
    first = {"page_content": "a", "id": 7, "metadata": {"source": "a.pdf", "page": 3}}
    actual = [AnyOf([first, Document("b", metadata={"source": "b.pdf"})]), "c"]
    metadata = {"source": "b.pdf", "page": 4.0, "tags": ["x", 2]}
    predicted = [Document("b", id="b-1", metadata=metadata),
                 {"page_content": "x", "metadata": {"page": None}}, "y"]  # fmt: skip
    return evaluated([actual], [predicted]).explain(0, **options)


def test_ids_and_sources_are_told_where_there_are_any():
    """Of an item, those of each alternative; of a plain text, nothing."""
    explanation = told()
    of_documents = [one.about for one in explanation.documents]
    assert of_documents == [(("id", "b-1"), ("source", "b.pdf")), (), ()]
    first, second = (one.about for one in explanation.items)
    assert first == ((("id", "7"), ("source", "a.pdf")), (("source", "b.pdf"),))
    assert second == ((),)


def test_other_metadata_is_told_by_name():
    """In the order asked for, numbers without idle digits; what no document has is not there."""
    explanation = told(metadata=("page", "tags", "author"))
    assert explanation.documents[0].about == (("id", "b-1"), ("page", "4"), ("tags", '["x", 2]'))
    assert explanation.documents[1].about == ()
    assert told(metadata="page").items[0].about == ((("id", "7"), ("page", "3")), ())


def test_what_is_told_has_columns_of_its_own():
    """Alternatives are joined as their texts are; a name that is taken stays the table's."""
    explanation = told()
    of_documents = explanation.predicted[["id", "source"]].to_numpy().tolist()
    assert of_documents == [["b-1", "b.pdf"], [None, None], [None, None]]
    assert explanation.ground_truth["source"].tolist() == ["a.pdf | b.pdf", None]
    assert explanation.ground_truth["id"].tolist() == ["7 | –", None]
    document = {"page_content": "a", "id": "1", "metadata": {"credit": "Ann", "id": "own"}}
    result = OfflineRetrievalEvaluator([["a"]], [[document]]).evaluate(1)
    table = result.explain(0, metadata=("credit", "id")).predicted
    assert table[["credit", "metadata:credit", "id", "metadata:id"]].to_numpy().tolist() == [
        ["first", "Ann", "1", "own"]
    ]
    assert "id" not in one_query().explain(0).predicted


# --- which query, which cutoff ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "query", "position"),
    [("uvwxy", {"query": "w"}, 2), ("uvwxy", {"query": 2}, 2), (None, {"query": np.int64(2)}, 2),
     ([4, 3, 2, 1, 0], {"query": 4}, 0), ("uuuuu", {"position": 3}, 3)],
)  # fmt: skip
def test_a_query_is_named_by_its_label_or_position(labels, query, position):
    """A number is a position where no label is one."""
    explanation = several(labels and [*labels]).explain(**query)
    assert explanation.position == position
    assert explanation.status == STATUSES[position]


@pytest.mark.parametrize(
    ("labels", "query", "said"),
    [("uvwuy", "u", "[0, 3]"), (["the Bank?", "v", "BANK of what", "x", "y"], "bank", "[0, 2]"),
     (["when is it open", *"vwxy"], "when is it opne", "when is it open"),
     ("uvwxy", "x" * 1_000_000, "xxx…"), (None, "?", "position=")],
)  # fmt: skip
def test_a_label_that_names_no_query_is_refused_with_the_nearest(labels, query, said):
    """Or with the positions of several, or what to name instead; it is clipped."""
    with pytest.raises(InvalidInput) as caught:
        several(labels and [*labels]).explain(query)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_deepest_cutoff_is_explained_unless_another_is_named():
    """No cutoff is deeper than any."""
    assert several().explain(0).k == 2
    assert several().explain(0, 1).k == 1
    assert one_query((None, 3)).explain(0).k is None


def test_a_query_s_own_metrics_are_shown():
    """Those of the per-query table; none where it does not count."""
    result = several()
    row = result.per_query(1).iloc[1]
    metrics = dict(result.explain(1, 1).metrics)
    assert metrics.pop("rank") == 1.0
    assert metrics == row.drop(["ground_truth", "retrieved", "relevant", "covered"]).to_dict()
    assert result.explain(4).metrics == {}
    assert "not counted in the averages" in str(result.explain(4))


# --- statuses and misses ---------------------------------------------------------------------

STATUSES = ["perfect", "partial", "missed", "nothing retrieved", "no ground truth"]


def test_every_query_has_a_status():
    """At 1, one of each; at 2, the deepest, query 1 has found both."""
    labels = [*"uvwxy"]
    assert several(labels).statuses(1).to_dict() == dict(zip(labels, STATUSES, strict=True))
    assert several().statuses().tolist() == ["perfect", "perfect", *STATUSES[2:]]
    nothing = evaluated([["a"], []], [["a"], []], no_ground_truth="skip")
    assert nothing.statuses().tolist() == ["perfect", "no ground truth"]


def test_misses_are_the_queries_that_lost_something_worst_first():
    """At 1: recall 0 (two queries, in their order), then 1/2; the perfect one lost nothing."""
    misses = several().misses(1)
    assert misses["status"].to_dict() == {
        2: "missed",
        3: "nothing retrieved",
        1: "partial",
    }
    assert misses["recall"].tolist() == [0.0, 0.0, 0.5]
    assert several().misses(1, 2).index.tolist() == [2, 3]
    assert evaluated([["a"]], [["a"]]).misses().columns[0] == "status"  # of no rows


def test_misses_with_the_same_recall_are_sorted_by_ndcg_then_by_what_is_missing():
    """Recall 1/2 at rank 2 lost more than at rank 1; two missing items are more than one."""
    actual = [["a", "b"], ["a", "b"], ["c"], ["d", "e"]]
    predicted = [["a", "x"], ["x", "a"], ["x"], ["x"]]
    result = OfflineRetrievalEvaluator(actual, predicted).evaluate(2)
    assert result.misses().index.tolist() == [3, 2, 1, 0]


def test_misses_need_no_ndcg():
    """Whatever metrics were chosen."""
    evaluator = OfflineRetrievalEvaluator([["a", "b"], ["c"]], [["a"], ["x"]])
    misses = evaluator.evaluate(2, metrics=["recall"]).misses()
    assert misses.index.tolist() == [1, 0]
    assert misses.columns.tolist() == [
        "status", "position", "missed", "similarity", "rank", "contradicted_by",
        "ground_truth", "retrieved", "relevant", "covered", "recall",
    ]  # fmt: skip


def test_misses_tell_what_is_missing_and_where_it_stands():
    """At 3 t3 (nearest at 4), t4 (found at 5) and t5 are missing; t5 is like nothing."""
    told = ["missed", "similarity", "rank"]
    table = one_query().misses(3)
    assert table.columns[2:5].tolist() == told
    assert table[told].astype(object).to_numpy().tolist() == [["t5", 0.0, pd.NA]]
    less = one_query(actual=["t1", "t4", "t3"]).misses(3)
    assert less[told].astype(object).to_numpy().tolist() == [["t3", 0.375, 4]]
    late = one_query(actual=["t1", "t4"]).misses(3)
    assert late[told].astype(object).to_numpy().tolist() == [["t4", 0.8, 5]]


def test_misses_are_shown_by_five_columns_and_hold_them_all():
    """Whatever is selected of them is a plain data frame; a pickle keeps both."""
    misses = one_query().misses(3)
    shown = ["status", "missed", "similarity", "rank", "recall"]
    assert repr(misses).split("\n")[0].split() == shown
    assert re.findall(r"<th>(\w+)</th>", misses._repr_html_())[:5] == shown
    assert "retrieved" in repr(misses).splitlines()[-1]
    assert {"retrieved", "ndcg", "contradicted_by"} < set(misses.columns)
    assert type(misses[:]) is type(misses.head()) is pd.DataFrame
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(misses)), misses)


def test_misses_begin_a_long_text_and_nothing_acts_in_it():
    """A table in a notebook has room for no more."""
    hostile = "<script>\u202e\x1b[31m" + "x " * 5000
    (shown,) = evaluated([[AnyOf([hostile, "b"])]], [["y"]]).misses()["missed"]
    assert shown.startswith("<script>\\u202e\\x1b[31mx x")
    assert len(shown) <= 80
    assert "<script>" not in evaluated([[hostile]], [["y"]]).misses()._repr_html_()


def test_misses_without_texts_or_without_evidence(tmp_path):
    """The text is not known, or there are no such columns."""
    table = read_back(several(), tmp_path).misses(1)
    assert table["missed"].tolist() == [None] * 3
    assert table["similarity"].tolist() == several().misses(1)["similarity"].tolist()
    assert "rank" not in replace(several(), evidence=None).misses(1)


def test_a_metric_that_is_called_like_one_of_these_columns_stays():
    """The column of the result is the metric's."""
    metric = Metric("similarity", lambda relevance, k, conventions: np.ones(1), "mean_similarity")
    result = OfflineRetrievalEvaluator([["a"]], [["b"]], TableMatcher({("a", "b"): 0.25}))
    with no_advice():
        table = result.evaluate(1, metrics=["recall", metric]).misses()
    assert table[["similarity", "missed:similarity"]].to_numpy().tolist() == [[1.0, 0.25]]


WORDS = st.lists(st.sampled_from(["a b c", "d e f", "g h i", "j"]), min_size=1, max_size=4)
PASSAGES = st.lists(WORDS.map(" ".join), min_size=1, max_size=3)


@settings(max_examples=trials(60))
@given(
    st.lists(st.tuples(PASSAGES, PASSAGES), min_size=1, max_size=4),
    st.sampled_from(["coverage", "coverage(union=yes)", "rouge1", "text"]),
)
def test_misses_say_what_explanations_say(drawn, matcher):
    """Of the items that are not found, the least similar one; the first of several."""
    actual, predicted = [truth for truth, _ in drawn], [ranked for _, ranked in drawn]
    result = evaluated(actual, predicted, matcher, 2)
    table = result.misses(2)
    for query in table.index:
        items = result.explain(query).items
        lost = [one for one in items if not one.outcome.startswith("found")]
        worst = min(lost, key=lambda one: one.similarity)
        assert table.loc[query, "missed"] == worst.alternatives[0]
        assert table.loc[query, "similarity"] == pytest.approx(worst.similarity)
        assert table["rank"].fillna(0)[query] == (worst.rank or 0)


def test_a_query_that_counts_as_0_is_a_miss():
    """With ``"zero"`` it pulls every average down."""
    table = several(no_ground_truth="zero").misses(1)
    assert table["status"][4] == "no ground truth"
    assert table.loc[4, ["missed", "similarity", "rank"]].isna().all()


# --- first ranks -----------------------------------------------------------------------------


def test_first_ranks_are_of_all_items_as_given():
    """t1 at 1, t2 at 3, t4 at 5; items of each query from 1, of which one may repeat another."""
    ranks = one_query(3).first_ranks()
    assert ranks.to_dict() == {(0, 1): 1, (0, 2): 3, (0, 3): None, (0, 4): 5, (0, 5): None}
    assert ranks.index.names == ["query", "item"]
    found = evaluated([["a", "a", "b"], ["c", "d"]], [["b"], ["c", "d"]]).first_ranks()
    assert found.dropna().to_dict() == {(0, 3): 1, (1, 1): 1, (1, 2): 2}


def test_labels_that_are_no_valid_unicode_index_every_table():
    """They come out of dirty data."""
    result = several(labels=["\udc80", "\ud800", "w", "x", "y"])
    assert result.misses(1).index.tolist() == ["w", "x", "\ud800"]
    assert result.statuses(1)["\udc80"] == "perfect"
    assert dict(result.first_ranks().items())["\udc80", 1] == 1
    assert result.explain("\udc80").to_text().startswith("Query 0: \\udc80\n")


# --- unanswerable queries --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "rate"), [([[], [], ["x"], []], 2 / 3), ([["a"], ["x", "y"], []], 1 / 2)]
)
def test_the_rejection_rate_is_the_share_of_unanswerable_queries_that_got_nothing(predicted, rate):
    """The same at every cutoff, and beside the averages of the first query, which counts alone."""
    lists = [["a"], *[[]] * (len(predicted) - 1)], predicted
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(*lists, no_ground_truth="skip")
        assert evaluator.calculate_rejection_rate() == {"rejection_rate": rate}
        assert evaluator.calculate_rejection_rate(1) == {"rejection_rate": rate}
    result = evaluated(*lists, k=(1, 5), no_ground_truth="skip")
    assert (result["rejection_rate@1"], result["rejection_rate@5"]) == (rate, rate)
    assert result.metrics["rejection_rate"].tolist() == [rate, rate]
    assert "rejection_rate" in repr(result)
    assert "rejection_rate" not in result.averages(1)


@pytest.mark.parametrize("rule", ["error", "skip"])
def test_the_rejection_rate_is_not_reported_where_there_are_none(rule):
    """Every query has ground truth."""
    result = evaluated([["a"]], [["a"]], no_ground_truth=rule)
    assert "rejection_rate@1" not in result.to_dict()
    assert "rejection_rate" not in result.metrics
