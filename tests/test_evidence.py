"""Evidence: what is kept of a query, its status, and which queries did worst."""

from __future__ import annotations

import gc
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import TableMatcher, no_advice

from krag_eval import (
    AnyOf,
    Conventions,
    CoverageMatcher,
    EvaluationResult,
    Metric,
    OfflineRetrievalEvaluator,
)
from krag_eval.errors import InvalidInput, InvalidType, Refusal
from krag_eval.results.evidence import NearMiss

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


def evaluated(k=(3, None), actual=ITEMS, predicted=DOCUMENTS, **options):
    """Return the result of the one query above."""
    matcher = TableMatcher(TABLE)
    return OfflineRetrievalEvaluator([actual], [predicted], matcher, **options).evaluate(k)


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
    found = evaluated().evidence.relevance
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
    """At 0.8 p1 covers t1 and p5 covers t4."""
    evidence = evaluated().evidence
    stricter = evidence.at_threshold(0.8)
    assert stricter.covered.tolist() == [0, 3]
    assert stricter.pair_item is evidence.relevance.pair_item
    assert evidence.relevance.covered.tolist() == [0, 1, 3]


def test_the_threshold_of_a_result_is_known():
    """Unless its matcher takes none."""
    assert evaluated(threshold=0.75).threshold == 0.75
    assert several().threshold is None


# --- predicted documents ---------------------------------------------------------------------


def test_each_predicted_document_by_hand():
    """At 3: first, repeat, first (and t1 again), not relevant, beyond the cutoff."""
    table = evaluated().explain(0, 3).predicted
    expected = pd.DataFrame(
        {
            "credit": ["first", "repeat", "first", "not relevant", "beyond cutoff"],
            "matches": [(1,), (1,), (1, 2), (), (4,)],
            "first_for": [(1,), (), (2,), (), (4,)],
            "similarity": [0.9, 0.625, 0.75, 0.375, 0.8],
            "closest": pd.array([1, 1, 2, 3, 4], dtype="Int64"),
            "text": np.array(DOCUMENTS, object),
        },
        index=pd.Index([1, 2, 3, 4, 5], name="rank"),
    )
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_without_a_cutoff_nothing_is_beyond_it():
    """Five documents, all of them looked at."""
    credit = evaluated().explain(0).predicted["credit"].tolist()
    assert credit == ["first", "repeat", "first", "not relevant", "first"]


def test_a_document_with_nothing_in_common_is_close_to_nothing():
    """Similarity 0, and no closest item."""
    row = evaluated(predicted=["p1", "z"]).explain(0).predicted.loc[2]
    assert row["similarity"] == 0.0
    assert row["closest"] is pd.NA
    assert row["credit"] == "not relevant"


def test_of_two_items_equally_close_the_first_is_named():
    """By its place in the ground truth."""
    matcher = TableMatcher({("a", "x"): 0.25, ("b", "x"): 0.25})
    with no_advice():
        result = OfflineRetrievalEvaluator([["b", "a"]], [["x"]], matcher).evaluate(1)
    assert result.explain(0).predicted.loc[1, "closest"] == 1


# --- ground-truth items ----------------------------------------------------------------------


def test_each_item_by_hand():
    """At 3: found at 1 and at 3, missed by 1/8 at rank 4, found too late at 5, nothing at all."""
    table = evaluated().explain(0, 3).ground_truth
    expected = pd.DataFrame(
        {
            "grade": [1.0] * 5,
            "outcome": ["found", "found", "missed", "beyond cutoff", "nothing in common"],
            "first_rank": pd.array([1, 3, None, 5, None], dtype="Int64"),
            "place": pd.array([1, 3, None, None, None], dtype="Int64"),
            "nearest_rank": pd.array([None, None, 4, None, None], dtype="Int64"),
            "similarity": [0.9, 0.75, 0.375, 0.8, 0.0],
            "shortfall": [0.0, 0.0, 0.125, 0.0, 0.5],
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


def test_of_documents_equally_near_the_best_ranked_is_named():
    """Ranks 2 and 3 come equally near."""
    matcher = TableMatcher({("a", "y"): 0.25, ("a", "z"): 0.25})
    with no_advice():
        result = OfflineRetrievalEvaluator([["a"]], [["x", "y", "z"]], matcher).evaluate(1)
    assert result.explain(0).ground_truth.loc[1, "nearest_rank"] == 2


def test_a_similarity_at_the_threshold_falls_short_by_nothing():
    """It is a match."""
    result = evaluated(threshold=0.375)
    assert result.explain(0, None).ground_truth.loc[3, "outcome"] == "found"


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


@settings(max_examples=50, deadline=None)
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


def missed(item, documents, matcher="coverage", **options):
    """Return what the only item of a query has in common with the documents, and the words."""
    with no_advice():
        result = OfflineRetrievalEvaluator([[item]], [documents], matcher, **options).evaluate(5)
    (near,) = (one.near for one in result.explain(0).items)
    return near, result


def test_words_in_common_but_no_run_of_them():
    """Of "the captain of the ship was James Totten", six different words of seven are in rank 2.

    Rank 3 holds as many, rank 1 two ("the", "was"); no five stand in a row anywhere.
    """
    documents = [
        "the weather was fine",
        "Captain Totten, James: the master of ship Ann",
        "James Totten of the captain and ship",
    ]
    near, result = missed("the captain of the ship was James Totten", documents)
    assert near == NearMiss("run", 5, "words", 7, 6, 2)
    said = "missed; no five words in a row in common with any predicted document; 6 of its 7"
    assert f"{said} different words occur in rank 2" in result.explain(0).to_text(150)


def test_a_run_is_no_longer_than_the_item():
    """Three words must stand as a whole; one word must occur, and does not."""
    assert missed("red green blue", ["blue green red"])[0] == NearMiss("run", 3, "words", 3, 3, 1)
    near, result = missed("red", ["blue"])
    assert near == NearMiss("run", 1, "words", 1, 0, None)
    said = "no word in common with any predicted document; none of its words occurs in any of them"
    assert said in result.explain(0).to_text(150)


def test_of_interchangeable_texts_the_longest_run_and_the_best_words():
    """No two words of the one, no three of the other: no three; two of the second's occur."""
    near, _ = missed(AnyOf(["red green", "one two three"]), ["two one", "x"])
    assert near == NearMiss("run", 3, "words", 3, 2, 1)


def test_a_run_of_characters_is_one():
    """The matcher says what it counts: 15 characters, of six."""
    near, _ = missed("가나다라마바", ["바마라"], "coverage(tokenizer=character)")
    assert near == NearMiss("run", 6, "characters", 6, 3, 1)


def test_numbers_that_are_missing_are_not_words_that_are():
    """All seven words but the year stand in a row, and that is not what is missing."""
    near, result = missed(
        "in 2024 the fee was raised to six", ["in 2023 the fee was raised to six"],
        "coverage(numbers=yes)",
    )  # fmt: skip
    assert near == NearMiss("numbers", 5, "words", 8, 7, 1)
    assert "five words in a row in common with it and all its numbers" in result.explain(0).to_text(
        150
    )


def test_a_text_without_words_and_an_empty_list():
    """There is nothing to have in common."""
    assert missed("…", ["a"])[0] == NearMiss("no words")
    assert missed("a", [])[0] == missed("a", [], "text")[0] == NearMiss("nothing retrieved")


@pytest.mark.parametrize(
    ("document", "but_for", "matchers"),
    [
        ("opening  hours", ("case", "white space"), ("coverage",)),
        ("Opening\nhours", ("white space",), ("contains", "coverage")),
        ("Opening hours.", ("punctuation",), ("contains", "coverage")),
        ("Ｏpening hours", ("Unicode form",), ("coverage",)),
        ("Openinghours", ("white space",), ()),
        ("Closing hours", (), ()),
    ],
)
def test_equal_texts_but_for_what_does_not_tell(document, but_for, matchers):
    """The fewest things that differ, and the matchers that look past them."""
    near, result = missed("Opening hours", ["x", document], "text")
    assert (near.kind, near.but_for) == ("text", but_for)
    for name in ("contains", "coverage"):
        with no_advice():
            other = OfflineRetrievalEvaluator([["Opening hours"]], [["x", document]], name)
            found = other.evaluate(5).to_dict()["macro_recall@5"] == 1
        assert (name in near.matchers) == (found and bool(but_for))
    if but_for:
        assert near.rank == 2
        assert "rank 2 has it but for" in result.explain(0).to_text(150)


@pytest.mark.parametrize(
    ("matcher", "said"),
    [
        ("contains", "no predicted document has it in its text"),
        ("id", "no predicted document has the same id"),
        (TableMatcher({}), "nothing in common with any predicted document"),
    ],
)
def test_other_matchers_say_what_they_look_at(matcher, said):
    """One of the user's own is taken at its word."""
    assert said in missed("a", ["b"], matcher)[1].explain(0).to_text(150)


def test_near_misses_of_a_result_that_was_read_back(tmp_path):
    """The signature tells the matcher; without texts the words are not known."""
    _, result = missed("the captain of the ship", ["ship of the captain", "x"])
    for texts, shared in ((True, 4), (False, None)):
        result.to_json(tmp_path / "saved.json", texts=texts)
        (item,) = EvaluationResult.from_json(tmp_path / "saved.json").explain(0).items
        assert (item.near.run, item.near.shared) == (5, shared)


def test_near_misses_of_a_tokenizer_nobody_knows_any_more(tmp_path):
    """What is certain is said."""
    _, result = missed("a b c", ["c b a"], CoverageMatcher(tokenizer=lambda text: text.split()))
    result.to_json(tmp_path / "saved.json", texts=True)
    explanation = EvaluationResult.from_json(tmp_path / "saved.json").explain(0)
    assert explanation.items[0].near is None
    assert "no predicted document shares a long enough run of words" in str(explanation)


# --- what is told of a document ---------------------------------------------------------------


def told(**options):
    """Return the explanation of a query with documents of every form."""
    actual = [
        AnyOf(
            [
                {"page_content": "a", "id": 7, "metadata": {"source": "a.pdf", "page": 3}},
                Document("b", metadata={"source": "b.pdf"}),
            ]
        ),
        "c",
    ]
    predicted = [
        Document("b", id="b-1", metadata={"source": "b.pdf", "page": 4.0, "tags": ["x", 2]}),
        {"page_content": "x", "metadata": {"page": None}},
        "y",
    ]
    return OfflineRetrievalEvaluator([actual], [predicted]).evaluate(2).explain(0, **options)


def test_ids_and_sources_are_told_where_there_are_any():
    """Of an item, those of each alternative; of a plain text, nothing."""
    explanation = told()
    assert [one.about for one in explanation.documents] == [
        (("id", "b-1"), ("source", "b.pdf")),
        (),
        (),
    ]
    assert [one.about for one in explanation.items] == [
        ((("id", "7"), ("source", "a.pdf")), (("source", "b.pdf"),)),
        ((),),
    ]


def test_other_metadata_is_told_by_name():
    """In the order asked for, numbers without idle digits; what no document has is not there."""
    explanation = told(metadata=("page", "tags", "author"))
    assert explanation.documents[0].about == (("id", "b-1"), ("page", "4"), ("tags", '["x", 2]'))
    assert explanation.documents[1].about == ()
    assert told(metadata="page").items[0].about == ((("id", "7"), ("page", "3")), ())


def test_what_is_told_has_columns_of_its_own():
    """Alternatives are joined as their texts are; a name that is taken stays the table's."""
    explanation = told()
    assert explanation.predicted[["id", "source"]].to_numpy().tolist() == [
        ["b-1", "b.pdf"],
        [None, None],
        [None, None],
    ]
    assert explanation.ground_truth["source"].tolist() == ["a.pdf | b.pdf", None]
    assert explanation.ground_truth["id"].tolist() == ["7 | –", None]
    document = {"page_content": "a", "id": "1", "metadata": {"credit": "Ann", "id": "own"}}
    result = OfflineRetrievalEvaluator([["a"]], [[document]]).evaluate(1)
    table = result.explain(0, metadata=("credit", "id")).predicted
    assert table[["credit", "metadata:credit", "id", "metadata:id"]].to_numpy().tolist() == [
        ["first", "Ann", "1", "own"]
    ]
    assert "id" not in evaluated().explain(0).predicted


@pytest.mark.parametrize("metadata", [3, [3], ("source", None)])
def test_names_of_metadata_are_texts(metadata):
    """The refusal names the argument."""
    with pytest.raises(InvalidType) as info:
        told(metadata=metadata)
    assert info.value.argument == "metadata"


# --- which query, which cutoff ---------------------------------------------------------------


def test_a_query_is_named_by_its_label():
    """Whatever its place."""
    explanation = several(labels=["u", "v", "w", "x", "y"]).explain("w")
    assert (explanation.query, explanation.position, explanation.status) == ("w", 2, "missed")


def test_a_number_is_a_position_where_no_label_is_one():
    """As a label has to be looked up first, a number that is one is never a position."""
    assert several(labels=["u", "v", "w", "x", "y"]).explain(2).query == "w"
    assert several(labels=[4, 3, 2, 1, 0]).explain(4).position == 0


def test_a_number_of_numpy_is_a_number():
    """Those in the index of a table are."""
    assert several().explain(several().misses(1).index[0]).position == 2


def test_a_label_of_several_queries_is_refused_with_their_positions():
    """And the way out."""
    with pytest.raises(
        ValueError, match=r"2 queries have the label 'u', at the positions \[0, 3\]; name one by p"
    ):
        several(labels=["u", "v", "w", "u", "y"]).explain("u")


def test_a_label_of_many_queries_is_refused_with_the_first_positions():
    """As many as fit into a message."""
    actual = [["a"]] * 40
    result = OfflineRetrievalEvaluator(actual, actual, queries=["u"] * 40).evaluate(1)
    with pytest.raises(ValueError, match=r"at the positions \[0, 1, 2, 3, .*…; name"):
        result.explain("u")


def test_a_position_settles_which_query_is_meant():
    """Where labels do not."""
    result = several(labels=["u"] * 5)
    assert result.explain(position=3).status == "nothing retrieved"


@pytest.mark.parametrize("position", [-1, 5, 1.0, True, "1"])
def test_a_position_that_is_none_is_refused(position):
    """The message says what is allowed."""
    with pytest.raises(Refusal, match="position must be a whole number from 0 to 4, got "):
        several().explain(position=position)


def test_a_number_that_is_no_position_is_refused():
    """Where labels are texts."""
    with pytest.raises(ValueError, match="position must be a whole number from 0 to 4, got 7"):
        several(labels=["u", "v", "w", "x", "y"]).explain(7)


def test_an_unknown_label_is_refused_with_the_nearest():
    """It may be a slip."""
    labels = ["when is it open", "where", "w", "x", "y"]
    with pytest.raises(ValueError, match=r"no query has the label 'when is it opne'; did you mean"):
        several(labels=labels).explain("when is it opne")


def test_an_unknown_label_like_no_other_is_refused_with_the_ways_out():
    """There are no questions, so that labels are positions."""
    with pytest.raises(ValueError, match=r"no query has the label '\?'; position="):
        several().explain("?")


def test_a_part_of_questions_is_refused_with_their_positions():
    """Upper and lower case alike; a query may be named by any of them."""
    labels = ["When is the bank open?", "where", "The Bank of what?", "x", "y"]
    with pytest.raises(InvalidInput, match=r"\[0, 2\]") as info:
        several(labels=labels).explain("bank")
    assert info.value.argument == "query"


def test_a_label_of_a_megabyte_does_not_fill_the_message():
    """It is clipped."""
    with pytest.raises(ValueError, match="no query has the label 'xxx") as info:
        several().explain("x" * 1_000_000)
    assert len(str(info.value)) < 300


@pytest.mark.parametrize("query", [None, 1.0, True, ["u"]])
def test_something_that_is_no_label_is_refused(query):
    """The message says what a label is."""
    with pytest.raises(ValueError, match=r"query must be a label \(text or whole number\), got "):
        several().explain(query)


def test_a_label_and_a_position_are_one_too_many():
    """They could contradict each other."""
    with pytest.raises(InvalidInput, match="query and position"):
        several().explain(1, position=1)


def test_the_deepest_cutoff_is_explained_unless_another_is_named():
    """No cutoff is deeper than any."""
    assert several().explain(0).k == 2
    assert several().explain(0, 1).k == 1
    assert evaluated((None, 3)).explain(0).k is None


def test_a_cutoff_that_was_not_evaluated_is_refused():
    """Its metrics are not known."""
    with pytest.raises(ValueError, match=r"k must be one of the evaluated cutoffs \(1, 2\), got 3"):
        several().explain(0, 3)


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


def test_every_query_has_a_status():
    """At 1, one of each."""
    statuses = several(labels=["u", "v", "w", "x", "y"]).statuses(1)
    assert statuses.to_dict() == {
        "u": "perfect",
        "v": "partial",
        "w": "missed",
        "x": "nothing retrieved",
        "y": "no ground truth",
    }


def test_statuses_follow_the_cutoff():
    """At 2, the deepest, query 1 has found both."""
    assert several().statuses()[1] == "perfect"


def test_nothing_retrieved_where_nothing_should_be_is_no_ground_truth():
    """Nothing was lost."""
    result = OfflineRetrievalEvaluator([["a"], []], [["a"], []], no_ground_truth="skip").evaluate(1)
    assert result.statuses().tolist() == ["perfect", "no ground truth"]


def test_misses_are_the_queries_that_lost_something_worst_first():
    """At 1: recall 0 (two queries, in their order), then 1/2; the perfect one lost nothing."""
    misses = several().misses(1)
    assert misses["status"].to_dict() == {
        2: "missed",
        3: "nothing retrieved",
        1: "partial",
    }
    assert misses["recall"].tolist() == [0.0, 0.0, 0.5]


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
        "status", "missed", "similarity", "rank",
        "ground_truth", "retrieved", "relevant", "covered", "recall",
    ]  # fmt: skip


def test_misses_tell_what_is_missing_and_where_it_stands():
    """At 3 t3 (nearest at 4), t4 (found at 5) and t5 are missing; t5 is like nothing."""
    told = ["missed", "similarity", "rank"]
    table = evaluated().misses(3)
    assert table.columns[1:4].tolist() == told
    assert table[told].astype(object).to_numpy().tolist() == [["t5", 0.0, pd.NA]]
    less = evaluated(actual=["t1", "t4", "t3"]).misses(3)
    assert less[told].astype(object).to_numpy().tolist() == [["t3", 0.375, 4]]
    late = evaluated(actual=["t1", "t4"]).misses(3)
    assert late[told].astype(object).to_numpy().tolist() == [["t4", 0.8, 5]]


def test_misses_begin_a_long_text_and_nothing_acts_in_it():
    """A table in a notebook has room for no more."""
    hostile = "<script>\u202e\x1b[31m" + "x " * 5000
    (shown,) = several_lost([[AnyOf([hostile, "b"])]], [["y"]]).misses()["missed"]
    assert shown.startswith("<script>\\u202e\\x1b[31mx x")
    assert len(shown) <= 80
    assert "<script>" not in several_lost([[hostile]], [["y"]]).misses()._repr_html_()


def several_lost(actual, predicted, matcher="text", **options):
    with no_advice():
        return OfflineRetrievalEvaluator(actual, predicted, matcher, **options).evaluate(2)


def test_misses_without_texts_or_without_evidence(tmp_path):
    """The text is not known, or there are no such columns."""
    several().to_json(tmp_path / "saved.json")
    table = EvaluationResult.from_json(tmp_path / "saved.json").misses(1)
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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(PASSAGES, PASSAGES), min_size=1, max_size=4),
    st.sampled_from(["coverage", "coverage(union=yes)", "rouge1", "text"]),
)
def test_misses_say_what_explanations_say(drawn, matcher):
    """Of the items that are not found, the least similar one; the first of several."""
    actual, predicted = [truth for truth, _ in drawn], [ranked for _, ranked in drawn]
    result = several_lost(actual, predicted, matcher)
    table = result.misses(2)
    for query in table.index:
        items = result.explain(query).items
        lost = [one for one in items if not one.outcome.startswith("found")]
        worst = min(lost, key=lambda one: one.similarity)
        assert table.loc[query, "missed"] == worst.alternatives[0]
        assert table.loc[query, "similarity"] == pytest.approx(worst.similarity)
        assert table["rank"].fillna(0)[query] == (worst.rank or 0)


def test_misses_can_be_limited():
    """To the worst."""
    assert several().misses(1, 2).index.tolist() == [2, 3]


def test_misses_can_be_none():
    """The table keeps its columns."""
    misses = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1).misses()
    assert len(misses) == 0
    assert misses.columns[0] == "status"


def test_a_query_that_counts_as_0_is_a_miss():
    """With ``"zero"`` it pulls every average down."""
    table = several(no_ground_truth="zero").misses(1)
    assert table["status"][4] == "no ground truth"
    assert table.loc[4, ["missed", "similarity", "rank"]].isna().all()


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "3"])
def test_a_number_of_misses_that_is_none_is_refused(n):
    """The message says what is allowed."""
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        several().misses(1, n)
    assert caught.value.argument == "n"


def test_misses_of_all_documents_where_all_were_evaluated_among_others():
    """The deepest cutoff is no cutoff."""
    assert len(evaluated((None, 3)).misses()) == 1


# --- first ranks -----------------------------------------------------------------------------


def test_first_ranks_by_hand():
    """t1 at 1, t2 at 3, t4 at 5."""
    ranks = evaluated(3).first_ranks()
    assert ranks.index.tolist() == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    assert ranks.tolist() == [1, 3, pd.NA, 5, pd.NA]
    assert ranks.index.names == ["query", "item"]


def test_first_ranks_number_the_items_of_each_query():
    """From 1."""
    ranks = OfflineRetrievalEvaluator([["a", "b"], ["c", "d"]], [["b"], ["c", "d"]]).evaluate(1)
    assert ranks.first_ranks().dropna().to_dict() == {(0, 2): 1, (1, 1): 1, (1, 2): 2}


def test_first_ranks_number_items_as_given():
    """The second repeats the first."""
    with no_advice():
        result = OfflineRetrievalEvaluator([["a", "a", "b"], ["c"]], [["b"], ["c"]]).evaluate(1)
    assert result.first_ranks().dropna().to_dict() == {(0, 3): 1, (1, 1): 1}


def test_labels_that_are_no_valid_unicode_index_every_table():
    """They come out of dirty data."""
    result = several(labels=["\udc80", "\ud800", "w", "x", "y"])
    assert result.misses(1).index.tolist() == ["w", "x", "\ud800"]
    assert result.statuses(1)["\udc80"] == "perfect"
    assert dict(result.first_ranks().items())["\udc80", 1] == 1
    assert result.explain("\udc80").to_text().startswith("Query 0: \\udc80\n")


# --- unanswerable queries --------------------------------------------------------------------


def rejecting(predicted, **options):
    """Return an evaluator of one query that has ground truth and some that have none."""
    actual = [["a"], *[[]] * (len(predicted) - 1)]
    return OfflineRetrievalEvaluator(actual, predicted, **options)


def test_the_rejection_rate_is_the_share_of_unanswerable_queries_that_got_nothing():
    """Two of three; the query with ground truth is no part of it."""
    evaluator = rejecting([[], [], ["x"], []], no_ground_truth="skip")
    with no_advice():
        assert evaluator.calculate_rejection_rate() == {"rejection_rate": 2 / 3}


@pytest.mark.parametrize("k", [1, 5, None])
def test_the_rejection_rate_is_the_same_at_every_cutoff(k):
    """Something retrieved is something retrieved within the first document."""
    evaluator = rejecting([["a"], ["x", "y"], []], no_ground_truth="skip")
    assert evaluator.calculate_rejection_rate(k) == {"rejection_rate": 0.5}


def test_the_rejection_rate_stands_in_the_result_where_there_are_such_queries():
    """In its dictionary and its table, not among the averages of the queries that count."""
    result = rejecting([["a"], ["x"], []], no_ground_truth="skip").evaluate([1, 5])
    assert result.to_dict()["rejection_rate@1"] == 0.5
    assert result.to_dict()["rejection_rate@5"] == 0.5
    assert result.metrics["rejection_rate"].tolist() == [0.5, 0.5]
    assert "rejection_rate" in repr(result)
    assert "rejection_rate" not in result.averages(1)


@pytest.mark.parametrize("rule", ["error", "skip"])
def test_the_rejection_rate_is_not_reported_where_there_are_none(rule):
    """Every query has ground truth."""
    result = OfflineRetrievalEvaluator([["a"]], [["a"]], no_ground_truth=rule).evaluate(1)
    assert "rejection_rate@1" not in result.to_dict()
    assert "rejection_rate" not in result.metrics


def test_the_rejection_rate_without_such_queries_is_refused():
    """The message says how to list one."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]], no_ground_truth="skip")
    with pytest.raises(InvalidInput) as caught:
        evaluator.calculate_rejection_rate(5)
    assert caught.value.argument == "actual_docs"
    assert "empty list" in caught.value.fix


def test_the_rejection_rate_of_queries_that_count_as_0_is_refused():
    """They would be scored twice; the message names the remedy."""
    evaluator = rejecting([["a"], []], no_ground_truth="zero")
    with pytest.raises(ValueError, match=r'stand apart; pass no_ground_truth="skip"'):
        evaluator.calculate_rejection_rate(5)


def test_the_rejection_rate_of_queries_that_are_refused_is_refused():
    """By default there can be none."""
    with pytest.raises(ValueError, match=r'stand apart; pass no_ground_truth="skip"'):
        OfflineRetrievalEvaluator([["a"]], [["a"]]).calculate_rejection_rate(5)


def test_the_rejection_rate_checks_its_cutoff():
    """As everywhere."""
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        rejecting([["a"], []], no_ground_truth="skip").calculate_rejection_rate(0)


# --- a result without evidence ---------------------------------------------------------------


@pytest.mark.parametrize("ask", ["explain", "first_ranks", "metrics_at_thresholds"])
def test_a_result_without_evidence_says_so(ask):
    """Rather than explain nothing."""
    from dataclasses import replace

    bare = replace(several(), evidence=None)
    with pytest.raises(ValueError, match="this result holds no evidence"):
        getattr(bare, ask)(*([0] if ask == "explain" else []))
    assert math.isclose(bare.to_dict()["macro_recall@1"], 1.5 / 4)
