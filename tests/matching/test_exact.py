"""Matchers that say yes or no: equal text, contained text, equal id, equal metadata."""

from __future__ import annotations

import math
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document

from krag_eval import (
    AnyOf,
    ContainsMatcher,
    ExactTextMatcher,
    IdMatcher,
    KragEvalWarning,
    MetadataMatcher,
    OfflineRetrievalEvaluator,
)
from krag_eval.errors import InvalidInput
from krag_eval.matching import exact


def nfd(text):
    """Return the decomposed spelling, as file names have it on some systems."""
    return unicodedata.normalize("NFD", text)


def first_relevant(matcher, actual, predicted):
    """Return the rank of the first match of one ground-truth document, 0 if there is none."""
    evaluator = OfflineRetrievalEvaluator([[actual]], [predicted], matcher)
    rank = evaluator.calculate_mrr()["mrr"]
    return round(1 / rank) if rank else 0


TEXTS = st.text(st.sampled_from("ab AB.\n1ßéé가각ſ"), max_size=6)


# --- exact text ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "predicted", "same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a", "A", False),
        ("a b", "a  b", False),
        ("a", "a ", False),
        ("doc1", "doc10", False),
        ("서울", nfd("서울"), True),
        (nfd("é"), "é", True),
        ("ﬁ", "fi", False),  # a ligature is another text
        ("", "", False),
        (" ", " ", False),
    ],
)
def test_texts_match_when_equal_after_normalisation(actual, predicted, same):
    """NFC and NFD spell the same text; nothing else is folded, and blank is nothing."""
    assert ExactTextMatcher().similarity(actual, predicted) == same
    assert ExactTextMatcher().similarity(predicted, actual) == same


@pytest.mark.parametrize(
    ("actual", "predicted"),
    [
        ("Opening", "OPENING"),
        ("Straße", "STRASSE"),
        (nfd("É"), "é"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_case_can_be_folded(actual, predicted):
    """In every script that has it, whatever the spelling of accents."""
    assert ExactTextMatcher(case_sensitive=False).similarity(actual, predicted) == 1.0
    assert ExactTextMatcher().similarity(actual, predicted) == 0.0


@pytest.mark.parametrize("predicted", ["a b", " a b", "a\n\tb ", "a\u00a0b", "a\u3000b"])
def test_white_space_can_be_folded(predicted):
    """Runs of it count as one space, around the text as none; a word break stays one."""
    matcher = ExactTextMatcher(fold_whitespace=True)
    assert matcher.similarity("a b", predicted) == 1.0
    assert matcher.similarity("ab", predicted) == 0.0


def test_exact_matching_joins_many_forms():
    """Strings, documents and dicts, through the evaluator."""
    predicted = [Document("x"), {"page_content": nfd("서울")}, "서울"]
    assert first_relevant("text", Document("서울"), predicted) == 2


@pytest.mark.parametrize("matcher", ["text", "contains"])
def test_normalisation_happens_on_both_sides(matcher):
    """Whichever side is decomposed."""
    assert first_relevant(matcher, nfd("서울"), ["x", "서울"]) == 2
    assert first_relevant(matcher, "서울", ["x", nfd("서울")]) == 2


def test_a_repeated_predicted_document_is_relevant_every_time():
    """Precision counts documents: 2 of 3; recall counts items: 1 of 1."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a", "x", "a"]])
    assert evaluator.calculate_precision()["macro_precision"] == 2 / 3
    assert evaluator.calculate_recall()["macro_recall"] == 1.0


def test_spellings_of_one_text_in_the_ground_truth_are_one_item():
    """With a warning."""
    evaluator = OfflineRetrievalEvaluator([["서울", nfd("서울")]], [["서울"]])
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        assert evaluator.evaluate(1).per_query().loc[0, "ground_truth"] == 1


def test_queries_do_not_mix():
    """A document that answers another query is irrelevant to this one."""
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["b"], ["b"]])
    assert evaluator.evaluate(1).per_query()["relevant"].tolist() == [0, 1]


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=4), st.booleans(), st.booleans())
def test_joining_by_hash_agrees_with_comparing_one_by_one(actual, predicted, case, white):
    """The evaluator's join and ``similarity`` are one decision."""
    matcher = ExactTextMatcher(case_sensitive=case, fold_whitespace=white)
    alone = [i for i, text in enumerate(predicted, 1) if matcher.similarity(actual, text)]
    evaluator = OfflineRetrievalEvaluator([[actual, "z"]], [[*predicted, "z"]], matcher)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        found = evaluator.evaluate(None).per_query().loc[0, "relevant"]
    assert found == len(alone) + 1


def test_exact_settings_stand_in_the_signature():
    """Only those that differ from plain equality."""
    assert ExactTextMatcher().signature == "text"
    folding = ExactTextMatcher(case_sensitive=False, fold_whitespace=True)
    assert folding.signature == "text(case_sensitive=no,fold_whitespace=yes)"


def test_exact_matching_of_a_text_that_is_none_names_the_argument():
    """LangChain lets a Document hold None; the message says which one it is."""
    document = Document("a")
    document.page_content = None
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], ["b", document]])
    with pytest.raises(TypeError, match=r"predicted_docs.*page_content must be text, got null"):
        evaluator.calculate_recall()


# --- contained text --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "typeset"),
    [
        ("5 euros", "5\u00a0euros"),  # no-break, figure and narrow no-break space
        ("5 000 euros", "5\u2007000\u202feuros"),
        ("cooperation", "co\u00adoper\u00adation"),  # soft hyphens
        ("a long word", "a\u200b \ufefflong wo\u200brd\u2060"),  # zero-width spaces
        ("می خواهم", "می\u200c خواهم"),  # zero-width joiners and non-joiners
        ("the dogs' owner's ", "the dogs’ owner’s"),
        ("'a' and 'b'", "‘a’ and ‚b‛"),
        ('"a" and "b"', "“a” and „b‟"),
        ("서울", "\ufeff서울"),
    ],
)
@pytest.mark.parametrize("word_boundaries", [True, False])
def test_what_typesetting_adds_does_not_count(plain, typeset, word_boundaries):
    """Either side may be typeset; that of the other matchers stays as it is."""
    matcher = ContainsMatcher(word_boundaries=word_boundaries)
    assert matcher.similarity(plain, f"x {typeset}.") == 1.0
    assert matcher.similarity(typeset, f"x {plain}.") == 1.0
    assert ExactTextMatcher().similarity(plain, typeset) == 0.0


@pytest.mark.parametrize("word_boundaries", [True, False])
def test_a_text_that_shows_nothing_is_contained_nowhere(word_boundaries):
    """It would stand everywhere."""
    matcher = ContainsMatcher(word_boundaries=word_boundaries)
    assert matcher.similarity("\u200b\u00ad", "a\u200b\u00ad") == 0.0
    assert matcher.similarity("a", "\u200b") == 0.0


@pytest.mark.parametrize(
    ("actual", "predicted", "contained"),
    [
        ("doc1", "see doc1.", True),
        ("doc1", "doc10", False),
        ("doc1", "mydoc1", False),
        ("doc1", "doc10 and doc1", True),  # a later occurrence
        ("doc1", "doc1", True),
        ("doc_1", "doc_1_2", False),  # an underscore joins
        ("art", "start", False),
        ("the fee", "the fees", False),
        ("(a)", "x(a)y", True),  # brackets bound themselves
        ("a", "A", False),
        ("a b", "a\nb", False),
        (" a ", "(a)", True),  # white space around the ground truth does not count
        ("b", "é", False),
        ("e", nfd("é"), False),  # nor is an accent cut off
        ("x", "x\u0302", False),  # not even one that has no composed spelling
        ("क", "कि", False),
        ("서울", "서울 시청", True),
        ("서울", "서울은 크다", False),  # Hangul is spaced
        ("東京", "東京タワー", True),  # Japanese and Chinese are not
        ("タワー", "東京タワー", True),
        ("ภาษา", "ภาษาไทย", True),
        ("AI", "AI技術", True),
        ("AI", "MAIL", False),
        ("2024", "20241", False),
        ("", "a", False),
        ("a", " ", False),
    ],
)
def test_contained_means_word_for_word(actual, predicted, contained):
    """The occurrence begins and ends at word boundaries."""
    assert ContainsMatcher().similarity(actual, predicted) == contained


def test_containing_is_not_symmetric():
    """The ground truth stands in the predicted text, not the other way round."""
    assert ContainsMatcher().similarity("a", "a b") == 1.0
    assert ContainsMatcher().similarity("a b", "a") == 0.0


@pytest.mark.parametrize(("actual", "predicted"), [("서울", "서울은"), ("art", "start")])
def test_word_boundaries_can_be_left_out(actual, predicted):
    """Then an occurrence anywhere counts."""
    assert ContainsMatcher(word_boundaries=False).similarity(actual, predicted) == 1.0
    assert ContainsMatcher().similarity(actual, predicted) == 0.0


def test_containing_can_fold_case_and_white_space():
    """For chunks whose lines were wrapped anew."""
    matcher = ContainsMatcher(case_sensitive=False, fold_whitespace=True)
    assert matcher.similarity("the  Fee is", "Note: THE FEE\nIS 5.") == 1.0
    assert ContainsMatcher().similarity("the  Fee is", "Note: THE FEE\nIS 5.") == 0.0


def test_the_best_of_several_alternatives_is_contained():
    """Either will do, at the first rank of any."""
    evaluator = OfflineRetrievalEvaluator(
        [[AnyOf(["five euros", "5 euros"])]], [["free", "It is 5 euros."]], "contains"
    )
    assert evaluator.calculate_mrr() == {"mrr": 0.5}


@settings(max_examples=200, deadline=None)
@given(TEXTS.filter(str.strip), st.lists(TEXTS, min_size=1, max_size=4), st.booleans())
def test_scoring_together_agrees_with_scoring_one_by_one(actual, predicted, boundaries):
    """Texts prepared once for all pairs give what one pair gives."""
    matcher = ContainsMatcher(word_boundaries=boundaries)
    alone = [i for i, text in enumerate(predicted, 1) if matcher.similarity(actual, text)]
    evaluator = OfflineRetrievalEvaluator([[actual, "z"]], [[*predicted, "z"]], matcher)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        found = evaluator.evaluate(None).per_query().loc[0, "relevant"]
    assert found == len(alone) + 1


@settings(max_examples=200, deadline=None)
@given(TEXTS.filter(str.strip), TEXTS)
def test_equal_texts_contain_each_other(text, other):
    """And any text contains itself between spaces, whatever stands beyond."""
    assert ContainsMatcher().similarity(text, text) == 1.0
    assert ContainsMatcher().similarity(text, f"{other} {text} {other}") == 1.0


def test_contains_settings_stand_in_the_signature():
    """Only those that differ."""
    assert ContainsMatcher().signature == "contains"
    assert (
        ContainsMatcher(fold_whitespace=True, word_boundaries=False).signature
        == "contains(fold_whitespace=yes,word_boundaries=no)"
    )


# --- ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "predicted",
    ["7", Document("x", id="7"), {"page_content": "x", "id": "7"}, {"page_content": "x", "id": 7}],
)
def test_ids_match_across_forms(predicted):
    """A string is its own id, a number its text."""
    assert IdMatcher().similarity({"page_content": "y", "id": "7"}, predicted) == 1.0
    assert first_relevant("id", Document("y", id="7"), ["8", predicted]) == 2


@pytest.mark.parametrize("other", ["07", "7 ", "7.0", "８"])
def test_ids_are_compared_as_they_are(other):
    """Nothing is trimmed or guessed."""
    assert IdMatcher().similarity("7", other) == 0.0


def test_the_text_does_not_matter_to_ids():
    """Two texts, one id."""
    assert IdMatcher().similarity(Document("a", id="1"), Document("b", id="1")) == 1.0
    assert IdMatcher().similarity(Document("a", id="1"), Document("a", id="2")) == 0.0


@pytest.mark.parametrize(
    ("actual", "predicted", "where"),
    [
        ([["1"], [Document("a")]], [["1"], ["1"]], r"actual_docs\[1\]\[0\]"),
        ([["1"], ["1"]], [["1"], ["1", Document("a")]], r"predicted_docs\[1\]\[1\]"),
        ([[AnyOf(["1", Document("a")])]], [["1"]], r"actual_docs\[0\]\[0\]\[1\]"),
    ],
)
def test_a_document_without_an_id_is_an_error(actual, predicted, where):
    """It could only be counted as wrong; the message gives the position and the remedy."""
    evaluator = OfflineRetrievalEvaluator(actual, predicted, "id")
    with pytest.raises(InvalidInput, match=f"^{where} has no id") as info:
        evaluator.calculate_recall()
    assert f"{info.value.argument}\\[{info.value.query}\\]" == where.partition("]")[0] + "]"
    assert "match on text" in str(info.value.fix)


@pytest.mark.parametrize("empty", ["", {"page_content": "a", "id": ""}, Document("a", id="")])
def test_an_empty_id_is_no_id(empty):
    """Documents without one, exported as empty text, must not all be each other."""
    evaluator = OfflineRetrievalEvaluator(
        [["1"], [empty]], [["1"], [{"page_content": "b", "id": ""}]], "id"
    )
    with pytest.raises(ValueError, match=r"actual_docs\[1\]\[0\] has no id"):
        evaluator.calculate_recall()


@pytest.mark.parametrize("empty", ["", np.str_("")])
@pytest.mark.parametrize(
    "documents", [["2", "1"], [Document("a", id="1")], [{"page_content": "a", "id": 1}]]
)
def test_an_empty_id_among_the_retrieved_ones_is_named(empty, documents):
    """Also as the last of many, where nothing else needs a look."""
    predicted = [["1"], [*documents, empty]]
    evaluator = OfflineRetrievalEvaluator([["1"], ["1"]], predicted, "id")
    where = rf"predicted_docs\[1\]\[{len(documents)}\] has no id"
    with pytest.raises(ValueError, match=where):
        evaluator.calculate_recall()


def test_every_occurrence_of_a_repeated_id_counts_for_precision():
    """By hand: ranks 1, 3 and 4 of 5 are relevant, of two items both are covered."""
    evaluator = OfflineRetrievalEvaluator([["a", "b"]], [["b", "x", "b", "a", "y"]], "id")
    assert evaluator.calculate_precision()["macro_precision"] == 3 / 5
    assert evaluator.calculate_recall()["macro_recall"] == 1.0


def test_ids_are_compared_as_they_are_and_texts_after_composing():
    """An id is no text: two spellings of it are two ids, as in the index it comes from."""
    composed, decomposed = "가", nfd("가")
    lists = [[composed]], [["x", decomposed]]
    with pytest.warns(KragEvalWarning, match="matched nothing"):
        assert OfflineRetrievalEvaluator(*lists, "id").calculate_mrr() == {"mrr": 0.0}
    assert OfflineRetrievalEvaluator(*lists, "text").calculate_mrr() == {"mrr": 0.5}


# --- metadata --------------------------------------------------------------------------------


def page(number, source="guide.pdf"):
    """Return a document of a page."""
    return Document("text", metadata={"source": source, "page": number})


def test_documents_match_when_all_compared_values_agree():
    """Other metadata, texts and ids do not matter."""
    matcher = MetadataMatcher("source", "page")
    assert matcher.similarity(page(3), {"page_content": "x", "metadata": page(3).metadata}) == 1.0
    assert matcher.similarity(page(3), page(4)) == 0.0
    assert matcher.similarity(page(3), page(3, "other.pdf")) == 0.0
    assert MetadataMatcher("page").similarity(page(3), page(3, "other.pdf")) == 1.0


@pytest.mark.parametrize("value", [0, False, "", 1.5, (1, 2)])
def test_any_hashable_value_can_be_compared(value):
    """Zero and empty text are values too."""
    assert MetadataMatcher("page").similarity(page(value), page(value)) == 1.0


def test_hangul_in_metadata_is_one_spelling():
    """File names are decomposed on some systems, and they are the usual sources."""
    matcher = MetadataMatcher("source")
    assert matcher.similarity(page(3, "공지.pdf"), page(3, nfd("공지.pdf"))) == 1.0


def test_a_number_is_not_its_text():
    """Page 3 and page "3" come from different places; neither is guessed at."""
    assert MetadataMatcher("page").similarity(page(3), page("3")) == 0.0


def test_two_ground_truth_chunks_of_one_page_are_one_item():
    """At the level of pages they are the same, with a warning."""
    evaluator = OfflineRetrievalEvaluator(
        [[page(3), page(3)]], [[page(3)]], MetadataMatcher("source", "page")
    )
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat another"):
        assert evaluator.calculate_recall()["macro_recall"] == 1.0


@pytest.mark.parametrize("missing", [Document("a"), "a", {"page_content": "a"}])
def test_a_document_without_the_compared_metadata_is_an_error(missing):
    """The message gives the position, the key, and the keys that are there."""
    evaluator = OfflineRetrievalEvaluator(
        [[page(3)]], [[page(3), missing]], MetadataMatcher("page")
    )
    with pytest.raises(
        ValueError,
        match=r"^predicted_docs\[0\]\[1\] has no metadata 'page', .* there are",
    ):
        evaluator.calculate_recall()


@pytest.mark.parametrize(
    "missing", [None, math.nan, float("nan"), np.float64("nan"), np.float32("nan"), pd.NA, pd.NaT]
)
def test_what_data_frames_make_of_a_missing_value_is_no_value(missing):
    """Documents must not agree in having no page."""
    evaluator = OfflineRetrievalEvaluator(
        [[page(missing)]], [[page(missing)]], MetadataMatcher("page")
    )
    with pytest.raises(ValueError, match=r"actual_docs\[0\]\[0\] has .*'page'.*but its value is"):
        evaluator.calculate_recall()


def nested(url, **others):
    """A document whose source is a dict."""
    return {"page_content": "a", "metadata": {"source": {"url": url, "date": None}, **others}}


def test_a_key_reaches_into_nested_metadata():
    """As deep as it has dots."""
    matcher = MetadataMatcher("source.url")
    assert matcher.similarity(nested("x"), nested("x")) == 1.0
    assert matcher.similarity(nested("x"), nested("y")) == 0.0
    assert matcher.signature == "metadata(keys=source.url)"
    deep = {"page_content": "a", "metadata": {"a": {"b": {"c": 1}}}}
    assert MetadataMatcher("a.b.c").similarity(deep, deep) == 1.0


def test_a_key_that_is_spelled_with_a_dot_comes_first():
    """It is what was asked for to the letter."""
    matcher = MetadataMatcher("source.url")
    assert matcher.similarity(nested("x", **{"source.url": "z"}), nested("z")) == 1.0


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("source.uri", r"there are \['date', 'url'\]"),
        ("source.url.host", "there are no keys"),
        ("origin.url", r"there are \['source'\]\."),
        ("source.date", "'source.date' .* but its value is None"),
        ("", "has no metadata ''"),
    ],
)
def test_a_key_that_leads_nowhere_is_an_error(key, named):
    """The message says what keys there are on the way."""
    with pytest.raises(ValueError, match=f"predicted .*{named}"):
        MetadataMatcher(key).key(nested("x"), "predicted")


def test_metadata_that_cannot_be_compared_is_an_error():
    """The message gives the position, the key and the type."""
    evaluator = OfflineRetrievalEvaluator([[page([1, 2])]], [[page(3)]], MetadataMatcher("page"))
    with pytest.raises(
        TypeError, match=r"^actual_docs\[0\]\[0\]: metadata 'page' must be hashable .* got a list"
    ):
        evaluator.calculate_recall()


@pytest.mark.parametrize("keys", [(), (5,), ("page", None)])
def test_metadata_matching_wants_names_of_keys(keys):
    """The message shows what came, and an example."""
    with pytest.raises(InvalidInput) as info:
        MetadataMatcher(*keys)
    assert info.value.argument == "keys"
    assert repr(keys) in info.value.problem


def test_metadata_keys_stand_in_the_signature():
    """In the order given."""
    assert MetadataMatcher("source", "page").signature == "metadata(keys=source+page)"


# --- what they share -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "matcher", [ExactTextMatcher(), ContainsMatcher(), IdMatcher(), MetadataMatcher("page")]
)
def test_matchers_that_say_yes_or_no_take_no_threshold(matcher):
    """Their similarity is 1 or 0, and a match is 1."""
    assert matcher.takes_threshold is False
    assert matcher.threshold == 1.0


# --- texts full of occurrences -----------------------------------------------------------------

# Letters, digits, marks, scripts without spaces, punctuation, NUL and half a surrogate pair.
odd_texts = st.text("ab1_\u0301가한中 -\x00\ud800", min_size=1, max_size=12)


@given(odd_texts, odd_texts)
@settings(max_examples=500)
def test_one_search_for_whole_words_finds_what_looking_at_each_occurrence_finds(text, needle):
    """By the definition: some occurrence has no word going on at either end."""
    ends = [
        (start, start + len(needle)) for start in range(len(text)) if text.startswith(needle, start)
    ]
    whole = any(
        not exact._joined(text[start - 1 : start], needle[0])
        and not exact._joined(needle[-1], text[end : end + 1])
        for start, end in ends
    )
    assert (exact._with_boundaries(needle) in exact._with_boundaries(text)) == whole


@pytest.mark.parametrize(("last", "expected"), [("a", 0.0), ("-", 1.0)])
def test_a_long_text_that_repeats_itself_does_not_take_for_ever(last, expected):
    """The needle occurs 50,000 times, and only the last occurrence ends where a word ends."""
    needle = "ab-" * 50_000 + "a"
    text = "ab-" * 100_000 + "a" + last
    assert ContainsMatcher().similarity(needle, text) == expected
