"""What may be passed in as documents, queries, labels and grades, and what is refused."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import unicodedata
from datetime import date
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import no_advice

from krag_eval import AnyOf, KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.documents import (
    Digests,
    Lists,
    QuerySet,
    as_document,
    content_key,
    id_of,
    is_blank,
    metadata_of,
    read_everything,
    read_id,
    read_text,
    text_of,
)
from krag_eval.errors import InvalidInput, InvalidType


class Passage(Document):
    """A subclass, as users write them."""

    heading: str = ""


# One document, in every form that is accepted.
FORMS = [
    Document(page_content="a", metadata={"page": 3}, id="7"),
    Passage(page_content="a", metadata={"page": 3}, id="7", heading="b"),
    {"page_content": "a", "metadata": {"page": 3}, "id": "7"},
    {"page_content": "a", "metadata": {"page": 3}, "id": 7},
    Document(page_content="a", metadata={"page": 3}, id="7").model_dump(),
]


# --- parts of a document ---------------------------------------------------------------------


@pytest.mark.parametrize("document", FORMS)
def test_every_form_has_the_same_parts(document):
    """Text, id and metadata do not depend on the form."""
    assert text_of(document) == "a"
    assert id_of(document) == "7"
    assert metadata_of(document) == {"page": 3}


def test_a_string_is_its_text_and_its_own_id():
    """It has no metadata."""
    assert (text_of("a"), id_of("a"), metadata_of("a")) == ("a", "a", {})


@pytest.mark.parametrize("document", [Document("a"), {"page_content": "a"}])
def test_a_document_may_lack_id_and_metadata(document):
    """The id is None, the metadata empty."""
    assert (id_of(document), metadata_of(document)) == (None, {})


def test_metadata_may_be_none_in_a_dict():
    """As it comes from JSON."""
    assert metadata_of({"page_content": "a", "metadata": None}) == {}


def test_a_document_comes_back_as_the_same_object():
    """It is never copied."""
    document = Document("a")
    assert as_document(document) is document


@pytest.mark.parametrize("document", FORMS)
def test_every_form_becomes_a_document(document):
    """With the same parts."""
    made = as_document(document)
    assert isinstance(made, Document)
    assert (made.page_content, made.metadata, made.id) == ("a", {"page": 3}, "7")


def test_the_document_made_of_a_dict_shares_nothing_with_it():
    """What a matcher does to its metadata does not reach the user's dict."""
    given_ = {"page_content": "a", "metadata": {"page": 3}}
    as_document(given_).metadata["page"] = 4
    assert given_ == {"page_content": "a", "metadata": {"page": 3}}


@pytest.mark.parametrize("document", FORMS)
def test_every_form_has_the_same_content_key(document):
    """So the same document in two forms is recognised as a repeat."""
    assert content_key(document) == content_key(FORMS[0])


@pytest.mark.parametrize(
    "other",
    [
        Document(page_content="b", metadata={"page": 3}, id="7"),
        Document(page_content="a", metadata={"page": 4}, id="7"),
        Document(page_content="a", metadata={"page": 3}, id="8"),
        "a",
    ],
)
def test_another_text_id_or_metadata_is_another_document(other):
    """Every part counts."""
    assert content_key(other) != content_key(FORMS[0])


def test_content_keys_are_hashable_whatever_the_metadata():
    """Metadata may hold lists, in any order of keys."""
    one = Document("a", metadata={"tags": ["x"], "page": 1})
    two = Document("a", metadata={"page": 1, "tags": ["x"]})
    assert len({content_key(one), content_key(two)}) == 1


def test_content_keys_know_one_spelling_of_hangul():
    """Decomposed and composed spellings are one text."""
    assert content_key(unicodedata.normalize("NFD", "서울")) == content_key("서울")


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), (" \n\t", True), ("\u3000", True), ("a", False)]
)
def test_blank_is_empty_or_white_space(text, expected):
    """The ideographic space included."""
    assert is_blank(text) is expected


def test_text_that_is_no_text_is_refused():
    """LangChain does not check assignments, so a Document can hold None."""
    document = Document("a")
    document.page_content = None
    with pytest.raises(InvalidType, match=r"^here\.page_content must be text, got null"):
        text_of(document, "here")


def located(caught):
    """Return where a refused value is: argument, query, and the place within."""
    return caught.value.argument, caught.value.query, caught.value.within


# --- AnyOf -----------------------------------------------------------------------------------


def test_any_of_keeps_its_alternatives_in_order():
    """Any iterable of documents will do."""
    assert AnyOf(iter(["a", "b"])).alternatives == ("a", "b")


def test_any_of_prints_what_makes_it():
    """The representation can be typed."""
    assert repr(AnyOf(["a", {"page_content": "b"}])) == "AnyOf(['a', {'page_content': 'b'}])"


def test_any_of_compares_by_its_alternatives():
    """Equal if they are, in the same order; never equal to a list."""
    assert AnyOf(["a", "b"]) == AnyOf(("a", "b"))
    assert AnyOf(["a", "b"]) != AnyOf(["b", "a"])
    assert AnyOf(["a"]) != ["a"]


@pytest.mark.parametrize("single", ["a", Document("a"), {"page_content": "a"}, b"a"])
def test_any_of_a_single_document_is_refused(single):
    """A string is not a list of letters."""
    with pytest.raises(InvalidType) as caught:
        AnyOf(single)
    assert caught.value.argument == "alternatives"
    assert "AnyOf([first, second])" in str(caught.value)


@pytest.mark.parametrize("came", [None, 5])
def test_any_of_something_that_is_no_list_is_refused(came):
    """It is about the argument."""
    with pytest.raises(InvalidType) as caught:
        AnyOf(came)
    assert caught.value.argument == "alternatives"


def test_any_of_nothing_is_refused():
    """It could never be found."""
    with pytest.raises(InvalidInput, match="at least one document, got none"):
        AnyOf([])


def test_any_of_checks_its_alternatives():
    """The message names the position and what came."""
    with pytest.raises(InvalidType, match=r"^alternatives\[1\] must be .* got the number 5"):
        AnyOf(["a", 5])


def test_any_of_any_of_is_refused():
    """Alternatives are one level deep."""
    with pytest.raises(InvalidType, match=r"^alternatives\[0\] must be a document.*one level deep"):
        AnyOf([AnyOf(["a"])])


def test_a_subclass_of_any_of_is_any_of():
    """Whatever a user subclasses keeps its meaning: one of two alternatives is found."""

    class Translations(AnyOf):
        """The same passage in several languages."""

    evaluator = OfflineRetrievalEvaluator([[Translations(["hello", "안녕"])]], [["안녕"]])
    assert evaluator.calculate_recall() == {"micro_recall": 1.0, "macro_recall": 1.0}


# --- the two lists ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        pd.Series,
        lambda documents: np.array(list(documents), dtype=object),
    ],
)
def test_lists_tuples_arrays_and_series_are_containers(container):
    """At both levels."""
    inner = container(["a", "b"])
    queries = QuerySet.from_lists([inner, inner], container([["a"], ["b"]]))
    assert queries.actual == [["a", "b"], ["a", "b"]]
    assert queries.predicted == [["a"], ["b"]]


def test_a_two_dimensional_array_of_strings_is_a_list_of_lists():
    """Rows are queries."""
    queries = QuerySet.from_lists(np.array([["a", "b"], ["c", "d"]]), [["a"], ["d"]])
    assert queries.actual == [["a", "b"], ["c", "d"]]


def test_a_two_dimensional_array_of_documents_is_a_list_of_lists():
    """Documents in arrays stay the same objects."""
    document = Document("a")
    array = np.empty((1, 1), dtype=object)
    array[0, 0] = document
    assert QuerySet.from_lists(array, [["a"]]).actual[0][0] is document


def test_containers_are_copied_and_documents_shared():
    """Appending to the user's lists later changes nothing."""
    document = Document("a")
    actual, predicted = [[document]], [["a"]]
    queries = QuerySet.from_lists(actual, predicted)
    actual[0].append("b")
    predicted.append(["c"])
    assert queries.actual == [[document]]
    assert queries.actual[0][0] is document
    assert queries.predicted == [["a"]]


def test_items_and_documents_are_counted_per_query():
    """An AnyOf is one item with several alternatives; items are numbered through."""
    queries = QuerySet.from_lists([["a", AnyOf(["b", "c"])], [], ["d"]], [["a"], ["b", "c"], []])
    assert queries.n_queries == 3
    assert queries.n_items.tolist() == [2, 0, 1]
    assert queries.n_predicted.tolist() == [1, 2, 0]
    assert queries.item_query.tolist() == [0, 0, 2]
    assert queries.n_alternatives.tolist() == [1, 2, 1]


def test_lengths_that_differ_are_refused_with_both_counts():
    """The message names both arguments."""
    with pytest.raises(ValueError, match="got 1 in actual_docs and 2 in predicted_docs"):
        QuerySet.from_lists([["a"]], [["a"], ["b"]])


def test_no_queries_are_refused():
    """There is nothing to measure."""
    with pytest.raises(ValueError, match="actual_docs must hold at least one query"):
        QuerySet.from_lists([], [])


def test_an_empty_array_is_no_queries():
    """Likewise."""
    with pytest.raises(ValueError, match="actual_docs must hold at least one query"):
        QuerySet.from_lists(np.array([]), np.array([]))


OUTER = [
    (None, "None"),
    ("abc", "the text 'abc'"),
    ("x" * 50, "the text 'x{50}'"),
    (5, "a int"),
    ({"a": 1}, "a dict"),
    ({"a"}, "a set"),
    (iter([["a"]]), "a list_iterator"),
    (pd.DataFrame({"a": [1]}), "a DataFrame"),
    (np.array("a"), "a ndarray"),
]


@pytest.mark.parametrize("name", ["actual_docs", "predicted_docs"])
@pytest.mark.parametrize(("came", "described"), OUTER)
def test_something_else_than_a_list_of_lists_is_refused(name, came, described):
    """The message names the argument, what it must be, and what came."""
    lists = {"actual_docs": [["a"]], "predicted_docs": [["a"]]} | {name: came}
    with pytest.raises(
        TypeError,
        match=rf"^{name} must be a list with one list of documents per query.* {described}",
    ):
        QuerySet.from_lists(**lists)


INNER = [
    (None, "None"),
    ("abc", "the text 'abc'"),
    (Document("a"), "a Document"),
    ({"page_content": "a"}, "a dict"),
    (5, "a int"),
]


@pytest.mark.parametrize("name", ["actual_docs", "predicted_docs"])
@pytest.mark.parametrize(("came", "described"), INNER)
def test_a_query_that_is_no_list_is_refused(name, came, described):
    """A string is not a list of letters, and one document is not a list of one."""
    lists = {"actual_docs": [["a"], ["a"]], "predicted_docs": [["a"], ["a"]]}
    lists[name][1] = came
    with pytest.raises(
        TypeError,
        match=rf"^{name}\[1\] must be a list of documents, even for one document .* {described}",
    ):
        QuerySet.from_lists(**lists)


DOCUMENTS = [
    (None, "null"),
    (5, "the number 5"),
    (float("nan"), "null"),
    (b"a", "a bytes"),
    (["a"], "a list"),
]


@pytest.mark.parametrize("name", ["actual_docs", "predicted_docs"])
@pytest.mark.parametrize(("came", "described"), DOCUMENTS)
def test_something_that_is_no_document_is_refused(name, came, described):
    """The error has the position, and says what came."""
    lists = {"actual_docs": [["a"], ["a", "b"]], "predicted_docs": [["a"], ["a", "b"]]}
    lists[name][1][1] = came
    with pytest.raises(InvalidType, match=f"must be a document.*, got {described}") as caught:
        QuerySet.from_lists(**lists)
    assert located(caught) == (name, 1, "[1]")


def test_any_of_among_the_predicted_documents_is_refused():
    """A retriever returns documents, not choices."""
    with pytest.raises(
        TypeError, match=r"^predicted_docs\[0\]\[0\] must be a document.* ground truth"
    ):
        QuerySet.from_lists([["a"]], [[AnyOf(["a"])]])


@pytest.mark.parametrize(
    "document",
    [{}, {"text": "a"}, {"page_content": "a", "score": 0.5}],
)
def test_a_dict_with_other_keys_is_refused(document):
    """The message shows the keys that came, and where they belong."""
    with pytest.raises(InvalidInput, match='needs the key "page_content"') as caught:
        QuerySet.from_lists([["a"]], [[document]])
    assert located(caught) == ("predicted_docs", 0, "[0]")
    assert all(f'"{key}"' in str(caught.value) for key in document)


@pytest.mark.parametrize(
    ("document", "part"),
    [
        ({"page_content": 5}, "page_content"),
        ({"page_content": "a", "metadata": []}, "metadata"),
        # A float that once was a whole number would not equal the text it came from.
        ({"page_content": "a", "id": True}, "id"),
        ({"page_content": "a", "id": 1.0}, "id"),
        ({"page_content": "a", "id": ["7"]}, "id"),
    ],
)
def test_a_dict_with_a_part_of_another_type_is_refused(document, part):
    """By its place."""
    with pytest.raises(InvalidType) as caught:
        QuerySet.from_lists([["b"], ["a", document]], [["a"], []])
    assert located(caught) == ("actual_docs", 1, f"[1].{part}")


class Node:
    """Like LlamaIndex's TextNode."""

    node_id = "n"
    metadata: ClassVar = {"page": 3}

    def get_content(self):
        """Return the text."""
        return "a"


OTHERS = {
    "TextNode": Node(),
    "NodeWithScore": SimpleNamespace(node=Node(), score=0.5),
    "Haystack": SimpleNamespace(content="a", id="n", meta={"page": 3}, score=None),
    "LangChain": Document("a", id="n", metadata={"page": 3}),
    "serialised": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "document", "Document"],
        "kwargs": {"page_content": "a", "id": "n", "metadata": {"page": 3}},
    },
}


@pytest.mark.parametrize("document", OTHERS.values(), ids=list(OTHERS))
def test_documents_of_other_libraries_are_documents(document):
    """Recognised by what they have, in either list and among alternatives."""
    queries = QuerySet.from_lists([[document], [AnyOf(["b", document])]], [[document], [document]])
    found = [queries.actual[0][0], queries.actual[1][0].alternatives[1], queries.predicted[1][0]]
    for one in found:
        assert (text_of(one), id_of(one), metadata_of(one)) == ("a", "n", {"page": 3})


def test_a_haystack_document_without_text_is_refused():
    """It may hold a picture."""
    picture = SimpleNamespace(content=None, id="n", meta={})
    with pytest.raises(InvalidType) as caught:
        QuerySet.from_lists([["a"]], [["a", picture]])
    assert located(caught) == ("predicted_docs", 0, "[1].page_content")


def test_alternatives_may_be_written_as_in_json():
    """In the ground truth."""
    written = {"any_of": ["a", {"page_content": "b", "any_of": None}]}
    assert QuerySet.from_lists([[written]], [[]]).actual[0] == [AnyOf(["a", {"page_content": "b"}])]
    with pytest.raises(InvalidInput, match="ground truth"):
        QuerySet.from_lists([["a"]], [[written]])


# --- labels ----------------------------------------------------------------------------------


def test_labels_are_positions_unless_given():
    """Counted from 0."""
    assert QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]]).labels == [0, 1]


@pytest.mark.parametrize("labels", [["x", "y"], ("x", "y"), np.array(["x", "y"])])
def test_labels_may_be_any_list_of_texts(labels):
    """Arrays included."""
    assert QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]], labels).labels == ["x", "y"]


def test_labels_may_be_whole_numbers():
    """Those of numpy become Python's, so that they can be saved."""
    labels = QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]], [np.int64(7), 8]).labels
    assert labels == [7, 8]
    assert all(type(label) is int for label in labels)


def test_another_number_of_labels_is_refused():
    """The message gives both counts."""
    with pytest.raises(
        ValueError, match=r"^queries must have one label per query, got 1 for 2 queries"
    ):
        QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]], ["x"])


def test_labels_as_one_text_are_refused():
    """A string is not a list of letters."""
    with pytest.raises(TypeError, match=r"^queries must be a list with one label .*the text 'xy'"):
        QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]], "xy")


@pytest.mark.parametrize("label", [None, True, 1.5, ["x"]])
def test_a_label_that_is_neither_text_nor_whole_number_is_refused(label):
    """The message gives the position and what came."""
    with pytest.raises(TypeError, match=r"^queries\[1\] must be text or a whole number, got "):
        QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]], ["x", label])


# --- grades ----------------------------------------------------------------------------------


def graded(text, grade):
    """Return a document with a grade in its metadata."""
    return Document(text, metadata={"grade": grade})


def grades_of(*items):
    """Return the grades of the items of one query."""
    given = QuerySet.from_lists([list(items)], [["a"]]).given_grades("grade")
    return np.nan_to_num(given, nan=1.0).tolist()


def test_grades_come_from_metadata():
    """A document without one, or with None, has grade 1; floats stay floats."""
    items = [graded("a", 3), graded("b", 0), graded("c", 0.5), "d", graded("e", None)]
    assert grades_of(*items) == [3.0, 0.0, 0.5, 1.0, 1.0]


def test_grades_may_be_numpy_numbers():
    """As they come from data frames."""
    assert grades_of(graded("a", np.int64(2)), graded("b", np.float32(0.5))) == [2.0, 0.5]


def test_an_any_of_has_the_grade_its_alternatives_share():
    """Each alternative carries it."""
    assert grades_of(AnyOf([graded("a", 2), graded("b", 2.0)])) == [2.0]


def test_an_any_of_whose_alternatives_differ_in_grade_is_refused():
    """The message gives the position and the grades."""
    with pytest.raises(
        ValueError,
        match=r"actual_docs\[0\]\[1\]: the alternatives of one AnyOf must have the same grade",
    ):
        grades_of("x", AnyOf([graded("a", 2), "b"]))


def test_a_missing_grade_among_alternatives_is_a_grade_of_1():
    """Without a grade is grade 1, so these two agree."""
    assert grades_of(AnyOf([graded("a", 1), "b"])) == [1.0]


@pytest.mark.parametrize("grade", [-1, -0.5, float("nan"), float("inf"), "2", True, [1]])
def test_a_grade_that_is_no_number_of_at_least_0_is_refused(grade):
    """The message gives the position, what is allowed and what came."""
    with pytest.raises(
        ValueError, match=r"^actual_docs\[0\]\[1\]: a grade must be a finite number of at least 0"
    ):
        grades_of("x", graded("a", grade))


def test_a_grade_key_that_is_no_text_is_refused():
    """The message shows what came."""
    with pytest.raises(InvalidType, match="grade_key must be the name of a metadata key, got 5"):
        QuerySet.from_lists([["a"]], [["a"]]).given_grades(5)


def test_a_grade_key_that_no_document_has_is_pointed_out():
    """It is most likely misspelled."""
    with pytest.warns(KragEvalWarning, match="grade_key='grade': no ground-truth document has"):
        OfflineRetrievalEvaluator(
            [["a", Document("b", metadata={"Grade": 2})]], [["a"]], grade_key="grade"
        )


# --- the user's objects ----------------------------------------------------------------------


TEXTS = st.sampled_from(["a", "b", "c", "서울", unicodedata.normalize("NFD", "서울")])


def forms_of(text):
    """Return the forms in which a text can be passed."""
    return st.sampled_from(
        [text, Document(text), {"page_content": text}, Passage(page_content=text)]
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_forms_of_documents_can_be_mixed_freely(data):
    """The same texts in any forms give the same numbers, and come out unchanged."""
    actual = data.draw(
        st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=3), "actual"
    )
    predicted = [data.draw(st.lists(TEXTS, max_size=4), "predicted") for _ in actual]
    mixed = [
        [[data.draw(forms_of(text)) for text in documents] for documents in lists]
        for lists in (actual, predicted)
    ]
    before = copy.deepcopy(mixed)
    with no_advice():
        expected = OfflineRetrievalEvaluator(actual, predicted).evaluate([1, 3]).to_dict()
        result = OfflineRetrievalEvaluator(*mixed).evaluate([1, 3]).to_dict()
    assert repr(result) == repr(expected)
    assert mixed == before


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (["a", "b"], set()),
        ([], set()),
        (["a", np.str_("b")], set()),
        (["a", ""], {str}),
        (["", 1], {str, int}),
        (["a", None], {str, type(None)}),
        ([b"a"], {bytes}),
    ],
)
def test_lists_know_what_is_no_text_in_them(elements, expected):
    """A list of non-empty texts has nothing odd; of any other list every type is named."""
    assert Lists([["a"], elements, ["b"]]).odd_types == expected
    assert Lists([["a"], tuple(elements)]).odd_types == expected


def test_lists_know_their_lengths():
    """One number per list, empty ones included."""
    assert Lists([["a", "b"], [], ["c"]]).lengths.tolist() == [2, 0, 1]
    assert Lists([]).lengths.tolist() == []


def test_lists_read_like_the_lists_they_were_made_of():
    """By position, from the end, by slice, and one after the other."""
    made = [["a", "b"], [], ["c"]]
    lists = Lists(made)
    assert (len(lists), lists[0], lists[1], lists[-1], lists[1:]) == (
        3,
        made[0],
        [],
        ["c"],
        made[1:],
    )
    assert list(lists) == made
    assert lists == made
    with pytest.raises(IndexError):
        lists[3]


def test_what_the_user_appends_later_changes_nothing():
    """The evaluation is of what was passed in."""
    actual, predicted = [["a"]], [["x"]]
    queries = QuerySet.from_lists(actual, predicted)
    predicted[0].append("a")
    actual[0].append("b")
    assert (queries.actual[0], queries.predicted[0]) == (["a"], ["x"])


# --- what tells one ground truth from another ------------------------------------------------


def digests(*actual, reading=read_text, grades=None):
    """The digests of some ground truths."""
    queries = QuerySet.from_lists(list(actual), [[]] * len(actual))
    return queries.digests(None if grades is None else np.array(grades, float), reading)


@pytest.mark.parametrize(
    ("items", "grades", "expected"),
    [
        (["a", "b"], None, "4cbd2fc7c986dcb4"),  # printf '"a"\\n"b"' | b2sum -l 64
        (["a", AnyOf(["c", "b"])], [2, 1], "019580ebe8ab92b0"),  # "b"|"c" before 2.0*"a"
        (["공지"], None, "421f2f125f2f1e32"),  # "\uacf5\uc9c0"
        ([], None, "e4a6a0577479b2b4"),  # nothing
    ],
)
def test_a_digest_is_a_hash_of_the_items_as_json(items, grades, expected):
    """The same on every machine: the numbers are those of coreutils' b2sum."""
    assert digests(items, grades=grades) == [expected]


def test_texts_and_ids_are_in_the_digest_and_what_the_matcher_looks_at_after_it():
    """Printf '["x","7"]' | b2sum -l 64, and of '"x"' and '"7"'."""
    document = Document("x", id="7")
    assert digests([document], reading=read_text) == ["a228b6028fce217f-6d6f773a11561dcc"]
    assert digests([document], reading=read_id) == ["a228b6028fce217f-f7402aef7fa6bc37"]
    assert digests([Document("x")]) == digests(["x"]) == ["6d6f773a11561dcc"]


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), max_size=4),
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), max_size=4),
    st.randoms(use_true_random=False),
)
def test_digests_are_equal_where_the_ground_truth_is(first, second, random):
    """Neither the order of items or alternatives nor their repetition makes a difference."""
    meant = [{frozenset(item) for item in items} for items in (first, second)]
    shuffled = [AnyOf(random.sample(item, len(item))) for item in first]
    random.shuffle(shuffled)
    one, other, again = digests(
        [AnyOf(item) for item in first], [AnyOf(item) for item in second], shuffled * 2
    )
    assert one == again
    assert (one == other) == (meant[0] == meant[1])


@pytest.mark.parametrize("other", [[1, 2, 1], [2, 1, 0], [2, 2, 1], [1, 1, 1]])
def test_grades_that_change_places_are_another_ground_truth(other):
    """Each belongs to its item; a document of grade 0 is no ground truth."""
    items = ["a", "b", "c"]
    assert digests(items, grades=[2, 1, 1]) != digests(items, grades=other)
    assert digests(items, grades=[1, 1, 0]) == digests(["b", "a"])


def test_texts_cannot_run_into_each_other():
    """Whatever stands in them."""
    tricky = [["a", "b"], ['a"\n"b'], ["a\nb"], ['a"|"b'], [AnyOf(["a", "b"])], ['2.0*"a"']]
    assert len(set(digests(*tricky))) == len(tricky)


def test_half_a_character_has_a_digest():
    """JSON can spell it."""
    assert digests(["\ud800"]) != digests(["\ud801"])


def test_everything_in_a_document_can_be_looked_at():
    """Numbers that are equal are one, and nothing depends on the process."""

    class Plain:
        """Prints as an address in memory."""

    def of(**metadata):
        return digests([Document("a", metadata=metadata)], reading=read_everything)

    assert of(page=3) == of(page=3.0) == of(page=np.int64(3))
    assert of(page=3) != of(page="3") != of(page=None)
    assert of(tags={"x", "y", "z"}) == of(tags=["x", "y", "z"])
    assert of(day=date(2024, 1, 1)) != of(day=date(2024, 1, 2))
    assert of(source=Plain()) == of(source=Plain())
    assert of(a=1, b=2) == of(b=2, a=1)
    assert of() == digests(["a"])


def test_a_digest_is_the_same_in_another_process():
    """Whatever seed its hashes have."""
    code = (
        "from krag_eval.documents import QuerySet, read_everything;"
        "print(*QuerySet.from_lists([[{'page_content': 'a', 'metadata': {'t': {'x', 'y'}}}, 'b']],"
        " [[]]).digests(None, read_everything))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_digests_are_made_when_they_are_looked_at_and_once():
    """Most results are never compared."""
    made = []
    lazy = Digests(lambda: made.append(1) or ["x", "y"], 2)
    assert len(lazy) == 2
    assert made == []
    assert list(lazy) == ["x", "y"]
    assert lazy[1] == "y"
    assert made == [1]


@pytest.mark.parametrize("document", [{"text": "a"}, {"contents": "a", "id": "1"}, {"title": 3}])
def test_a_text_under_another_name_is_told_where_it_belongs(document: dict[str, Any]) -> None:
    """As BEIR, AutoRAG and vector stores write documents."""
    for lists in (([[document]], [["a"]]), ([["a"]], [[document]])):
        with pytest.raises(InvalidInput, match="the keys") as info:
            OfflineRetrievalEvaluator(*lists)
        assert "page_content" in str(info.value.fix)
