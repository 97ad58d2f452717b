"""What may be passed in as documents, queries, labels and grades, and what is refused."""

import copy
import os
import subprocess
import sys
import unicodedata
from datetime import date
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from reference import no_advice
from trials import trials

from krag_eval import AnyOf, KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.core import (
    Location,
    QuerySet,
    id_of,
    is_blank,
    metadata_of,
    read_text,
    text_of,
)
from krag_eval.core.documents import (
    Digests,
    Lists,
    as_document,
    content_key,
    read_everything,
    read_id,
    score_of,
)
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.loading.cells import documents_in


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
    """Text, id, metadata and key do not depend on the form, and each becomes a LangChain one."""
    made = as_document(document)
    assert isinstance(made, Document)
    for one in (document, made):
        assert (text_of(one), id_of(one), metadata_of(one)) == ("a", "7", {"page": 3})
        assert content_key(one) == content_key(FORMS[0])


@pytest.mark.parametrize(
    ("document", "identity"),
    [
        ("a", "a"),
        (Document("a"), None),
        ({"page_content": "a"}, None),
        ({"page_content": "a", "metadata": None}, None),
    ],
)
def test_a_document_may_lack_id_and_metadata(document, identity):
    """A string is its own id; JSON has null for metadata."""
    assert (text_of(document), id_of(document), metadata_of(document)) == ("a", identity, {})


def test_a_document_comes_back_as_the_same_object_and_a_dict_as_a_copy():
    """What a matcher does to metadata does not reach the user's dict."""
    document, given_ = Document("a"), {"page_content": "a", "metadata": {"page": 3}}
    assert as_document(document) is document
    as_document(given_).metadata["page"] = 4
    assert given_ == {"page_content": "a", "metadata": {"page": 3}}


@pytest.mark.parametrize(
    ("text", "page", "identity", "same"),
    [("a", 3, "7", True), ("b", 3, "7", False), ("a", 4, "7", False), ("a", 3, "8", False)],
)
def test_another_text_id_or_metadata_is_another_document(text, page, identity, same):
    """Every part counts; the order of metadata, lists in it and the spelling of Hangul do not."""
    metadata = {"page": page, "tags": ["x"]}
    first = Document("서울 a", metadata={"tags": ["x"], "page": 3}, id="7")
    spelled = unicodedata.normalize("NFD", f"서울 {text}")
    other = Document(spelled, metadata=metadata, id=identity)
    assert len({content_key(first), content_key(other)}) == (1 if same else 2)


def test_blank_is_empty_or_white_space():
    """The ideographic space included."""
    assert [is_blank(one) for one in ("", " \n\t", "\u3000", "a")] == [True, True, True, False]


# --- AnyOf -----------------------------------------------------------------------------------


def test_any_of_keeps_its_alternatives_in_order():
    """Any iterable of documents will do; it prints as it is typed, and equals no list."""
    assert AnyOf(iter(["a", "b"])).alternatives == ("a", "b")
    assert repr(AnyOf(["a", {"page_content": "b"}])) == "AnyOf(['a', {'page_content': 'b'}])"
    assert AnyOf(["a", "b"]) == AnyOf(("a", "b"))
    assert AnyOf(["a", "b"]) != AnyOf(["b", "a"])
    assert AnyOf(["a"]) != ["a"]


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


def test_a_two_dimensional_array_is_a_list_of_lists():
    """Rows are queries, and documents in them stay the same objects."""
    document = Document("a")
    array = np.empty((1, 1), dtype=object)
    array[0, 0] = document
    assert QuerySet.from_lists(array, [["a"]]).actual[0][0] is document
    queries = QuerySet.from_lists(np.array([["a", "b"], ["c", "d"]]), [["a"], ["d"]])
    assert queries.actual == [["a", "b"], ["c", "d"]]


def test_containers_are_copied_and_documents_shared():
    """Appending to the user's lists later changes nothing."""
    document = Document("a")
    actual, predicted = [[document]], [["a"]]
    queries = QuerySet.from_lists(actual, predicted)
    actual[0].append("b")
    predicted[0].append("b")
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
    scores = [{}, {}, {"score": 0.5} if getattr(document, "score", None) else {}]
    for one, score in zip(found, scores, strict=True):
        assert (text_of(one), id_of(one), metadata_of(one)) == ("a", "n", {"page": 3, **score})


@pytest.mark.parametrize("document", FORMS)
@pytest.mark.parametrize("pair", [tuple, list])
@pytest.mark.parametrize("score", [0.5, np.float32(0.5)])
def test_a_pair_is_a_retrieved_document_with_its_score(document, pair, score):
    """As vector stores return it; the document itself stays as it was, and wins over no score."""
    before = copy.deepcopy(document)
    (found,) = QuerySet.from_lists([["x"]], [[pair((document, score))]]).predicted[0]
    assert (text_of(found), id_of(found)) == ("a", "7")
    assert metadata_of(found) == {"page": 3, "score": 0.5}
    assert score_of(found) == 0.5
    assert document == before


def test_a_text_with_a_score_is_a_document():
    """A text has no metadata, so that it becomes a dict; it is its own id still."""
    (found,) = documents_in('[["a", 1]]', Location("predicted"), ground_truth=False)
    assert found == {"page_content": "a", "id": "a", "metadata": {"score": 1}}
    evaluator = OfflineRetrievalEvaluator([["a"]], [[("b", 2), ("a", 1)]], matcher="id")
    result = evaluator.evaluate(2)
    assert result.to_dict()["mrr@2"] == 1 / 2
    assert "[id" not in str(result.explain(0))  # the text says it


@pytest.mark.parametrize("score", [float("nan"), float("inf"), True])
def test_a_score_is_a_finite_number(score):
    """In a pair, and in metadata."""
    with pytest.raises(InvalidInput) as caught:
        QuerySet.from_lists([["x"]], [["a", ("a", score)]])
    error = caught.value
    assert (error.argument, error.query, error.within) == ("predicted_docs", 0, "[1][1]")
    with pytest.raises(InvalidInput):
        score_of({"page_content": "a", "metadata": {"score": score}})


@pytest.mark.parametrize("item", [("a", 0.5), {"any_of": [["a", 0.5]]}])
def test_ground_truth_has_no_scores(item):
    """A pair there is no document, alone or among alternatives."""
    with pytest.raises(InvalidType):
        QuerySet.from_lists([[item]], [[]])
    with pytest.raises(InvalidType):
        AnyOf([("a", 0.5)])


@pytest.mark.parametrize(
    ("metadata", "score"),
    [({}, None), ({"score": None}, None), ({"relevance_score": 0.25}, 0.25), ({"score": 2}, 2)],
)
def test_where_scores_are(metadata, score):
    """Under the name that pairs get, or that of LangChain's rerankers."""
    assert score_of(Document("a", metadata=metadata)) == score


def test_a_text_where_a_list_is_due_is_one_document():
    """For a query; the argument itself must still be a list."""
    queries = QuerySet.from_lists(["a", ["b", "c"]], [["x"], "c"])
    assert (queries.actual, queries.predicted) == ([["a"], ["b", "c"]], [["x"], ["c"]])
    for lists in (("a", [["b"]]), ([["a"]], "b")):
        with pytest.raises(InvalidType):
            QuerySet.from_lists(*lists)


def test_alternatives_may_be_written_as_in_json():
    """In the ground truth."""
    written = {"any_of": ["a", {"page_content": "b", "any_of": None}]}
    assert QuerySet.from_lists([[written]], [[]]).actual[0] == [AnyOf(["a", {"page_content": "b"}])]


# --- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, [0, 1]),
        (["x", "y"], ["x", "y"]),
        (("x", "y"), ["x", "y"]),
        (np.array(["x", "y"]), ["x", "y"]),
        ([np.int64(7), 8], [7, 8]),
    ],
)
def test_labels_are_positions_or_any_list_of_texts_and_whole_numbers(labels, expected):
    """Those of numpy become Python's, so that they can be saved."""
    found = QuerySet.from_lists([["a"], ["b"]], [["a"], ["b"]], labels).labels
    assert found == expected
    assert {type(label) for label in found} <= {int, str}


# --- grades ----------------------------------------------------------------------------------


def graded(grade):
    """Return a document with a grade in its metadata."""
    return Document("a", metadata={"grade": grade})


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (graded(3), 3.0),
        (graded(0), 0.0),
        (graded(np.float32(0.5)), 0.5),
        (graded(np.int64(2)), 2.0),
        ("a", 1.0),
        (graded(None), 1.0),
        (AnyOf([graded(2), graded(2.0)]), 2.0),
        (AnyOf([graded(1), "b"]), 1.0),
    ],
)
def test_grades_come_from_metadata(item, expected):
    """A document without one, or with None, has grade 1, also among alternatives."""
    given = QuerySet.from_lists([[item]], [["a"]]).given_grades("grade")
    assert np.nan_to_num(given, nan=1.0).tolist() == [expected]


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


@settings(max_examples=trials(150))
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


def test_lists_read_like_the_lists_they_were_made_of():
    """By position, from the end, by slice, and one after the other; empty ones have a length."""
    made = [["a", "b"], [], ["c"]]
    lists = Lists(made)
    assert [len(lists), lists[0], lists[1], lists[-1], lists[1:]] == [3, *made, made[1:]]
    assert list(lists) == made
    assert lists == made
    assert lists.lengths.tolist() == [2, 0, 1]
    assert Lists([]).lengths.tolist() == []
    with pytest.raises(IndexError):
        lists[3]


# --- what tells one ground truth from another ------------------------------------------------


def digests(*actual, reading=read_text, grades=None):
    """The digests of some ground truths."""
    queries = QuerySet.from_lists(list(actual), [[]] * len(actual))
    return queries.digests(None if grades is None else np.array(grades, float), reading)


@pytest.mark.parametrize(
    ("items", "options", "expected"),
    [
        (["a", "b"], {}, "4cbd2fc7c986dcb4"),  # printf '"a"\\n"b"' | b2sum -l 64
        (["a", AnyOf(["c", "b"])], {"grades": [2, 1]}, "019580ebe8ab92b0"),  # "b"|"c" and 2.0*"a"
        (["공지"], {}, "421f2f125f2f1e32"),  # "\\uacf5\\uc9c0"
        ([], {}, "e4a6a0577479b2b4"),  # nothing
        (["x"], {}, "6d6f773a11561dcc"),  # "x"
        ([Document("x")], {}, "6d6f773a11561dcc"),
        # ["x","7"], and behind it what the matcher looks at: "x" or "7".
        ([Document("x", id="7")], {}, "a228b6028fce217f-6d6f773a11561dcc"),
        ([Document("x", id="7")], {"reading": read_id}, "a228b6028fce217f-f7402aef7fa6bc37"),
    ],
)
def test_a_digest_is_a_hash_of_the_items_as_json(items, options, expected):
    """The same on every machine: the numbers are those of coreutils' b2sum."""
    assert digests(items, **options) == [expected]


@settings(max_examples=trials(60))
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
    """Whatever stands in them, halves of characters included."""
    tricky = [["a", "b"], ['a"\n"b'], ["a\nb"], ['a"|"b'], [AnyOf(["a", "b"])], ['2.0*"a"']]
    tricky += [["\ud800"], ["\ud801"]]
    assert len(set(digests(*tricky))) == len(tricky)


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
        "from krag_eval.core.documents import QuerySet, read_everything;"
        "print(*QuerySet.from_lists([[{'page_content': 'a', 'metadata': {'t': set('stuvwxyz')}}]],"
        " [[]]).digests(None, read_everything))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    document = {"page_content": "a", "metadata": {"t": set("stuvwxyz")}}
    assert printed.split() == digests([document], reading=read_everything)


def test_digests_are_made_when_they_are_looked_at_and_once():
    """Most results are never compared."""
    made = []
    lazy = Digests(lambda: made.append(1) or ["x", "y"], 2)
    assert len(lazy) == 2
    assert made == []
    assert list(lazy) == ["x", "y"]
    assert lazy[1] == "y"
    assert made == [1]
