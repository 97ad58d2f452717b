"""Matchers that say yes or no: equal text, contained text, equal id, equal metadata."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from matched import nfd, pairs, quiet
from trials import trials

from krag_eval import (
    ContainsMatcher,
    ExactTextMatcher,
    IdMatcher,
    KragEvalWarning,
    MetadataMatcher,
    OfflineRetrievalEvaluator,
)
from krag_eval.core import resolve_matcher
from krag_eval.core.matching import exact
from krag_eval.errors import InvalidInput

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
    ("settings", "actual", "predicted", "same"),
    [
        ({"case_sensitive": False}, "Opening", "OPENING", True),
        ({"case_sensitive": False}, "Straße", "STRASSE", True),
        ({"case_sensitive": False}, nfd("É"), "é", True),
        ({"case_sensitive": False}, "ΣΑΣ", "σας", True),
        *(({"fold_whitespace": True}, "a b", other, True)
          for other in ("a b", " a b", "a\n\tb ", "a\u00a0b", "a\u3000b")),
        ({"fold_whitespace": True}, "ab", "a b", False),  # a word break stays one
    ],
)  # fmt: skip
def test_case_and_white_space_can_be_folded(settings, actual, predicted, same):
    """In every script that has case; runs of white space count as one space, around as none."""
    assert ExactTextMatcher(**settings).similarity(actual, predicted) == same
    assert ExactTextMatcher().similarity(actual, predicted) == (actual == predicted)


@pytest.mark.parametrize("matcher", ["text", "contains"])
def test_texts_match_in_any_form_and_spelling(matcher):
    """Strings, documents and dicts, whichever side is decomposed."""
    predicted = [Document("x"), {"page_content": nfd("서울")}, "서울"]
    assert pairs(resolve_matcher(matcher), [Document("서울")], predicted) == [(0, 2, 1), (0, 3, 1)]
    assert pairs(resolve_matcher(matcher), [nfd("서울")], ["x", "서울"]) == [(0, 2, 1)]


@pytest.mark.parametrize(
    "make",
    [
        lambda one, other: ExactTextMatcher(case_sensitive=one, fold_whitespace=other),
        lambda one, other: ContainsMatcher(word_boundaries=one, case_sensitive=other),
    ],
)
@settings(max_examples=trials(200))
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4), st.booleans(), st.booleans())
@quiet
def test_matching_agrees_with_comparing_one_by_one(make, actual, predicted, one, other):
    """The join by hash, texts prepared once for all pairs, and ``similarity`` are one decision."""
    matcher = make(one, other)
    alone = [i for i, text in enumerate(predicted, 1) if matcher.similarity(actual, text)]
    assert pairs(matcher, [actual], predicted) == [(0, i, 1.0) for i in alone]


def test_a_repeated_predicted_document_is_relevant_every_time():
    """Precision counts documents: 2 of 3; recall counts items: 1 of 1."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a", "x", "a"]])
    assert evaluator.calculate_precision()["macro_precision"] == 2 / 3
    assert evaluator.calculate_recall()["macro_recall"] == 1.0


def test_a_text_that_is_none_is_named():
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


@pytest.mark.parametrize(
    ("settings", "actual", "predicted", "contained"),
    [
        *(({"word_boundaries": bounded}, actual, predicted, False)  # it would stand everywhere
          for bounded in (True, False)
          for actual, predicted in (("\u200b\u00ad", "a\u200b\u00ad"), ("a", "\u200b"))),
        ({}, "서울", "서울은", False),
        ({"word_boundaries": False}, "서울", "서울은", True),
        ({}, "art", "start", False),
        ({"word_boundaries": False}, "art", "start", True),
        # For chunks whose lines were wrapped anew.
        ({}, "the  Fee is", "Note: THE FEE\nIS 5.", False),
        ({"case_sensitive": False}, "the  Fee is", "Note: THE FEE\nIS 5.", True),
        ({"fold_whitespace": False}, "the  Fee is", "Note: the Fee\nis 5.", False),
        ({"fold_whitespace": False}, "Fee (5%)", "Ｆｅｅ\u3000（５％）", True),
    ],
)  # fmt: skip
def test_what_is_contained_by_settings(settings, actual, predicted, contained):
    """An occurrence anywhere, other case and other white space count if asked for."""
    assert ContainsMatcher(**settings).similarity(actual, predicted) == contained


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
        ("a b", "a\nb", True),
        ("a1", "ａ１", True),  # as wide as a letter of Korean
        ("a", "ａ１", False),
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
        ("a", "a b", True),  # and not the other way round
        ("a b", "a", False),
    ],
)
def test_contained_means_word_for_word(actual, predicted, contained):
    """The occurrence begins and ends at word boundaries."""
    assert ContainsMatcher().similarity(actual, predicted) == contained


@settings(max_examples=trials(200))
@given(TEXTS.filter(str.strip), TEXTS)
def test_equal_texts_contain_each_other(text, other):
    """And any text contains itself between spaces, whatever stands beyond."""
    assert ContainsMatcher().similarity(text, text) == 1.0
    assert ContainsMatcher().similarity(text, f"{other} {text} {other}") == 1.0


# --- ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "predicted",
    ["7", Document("x", id="7"), {"page_content": "x", "id": "7"}, {"page_content": "x", "id": 7}],
)
def test_ids_match_across_forms(predicted):
    """A string is its own id, a number its text; the texts do not matter."""
    assert IdMatcher().similarity({"page_content": "y", "id": "7"}, predicted) == 1.0
    assert pairs(IdMatcher(), [Document("x", id="7")], ["8", predicted]) == [(0, 2, 1.0)]
    assert IdMatcher().similarity(predicted, Document("x", id="8")) == 0.0


def test_every_occurrence_of_a_repeated_id_counts_for_precision():
    """By hand: ranks 1, 3 and 4 of 5 are relevant, of two items both are covered."""
    evaluator = OfflineRetrievalEvaluator([["a", "b"]], [["b", "x", "b", "a", "y"]], "id")
    assert evaluator.calculate_precision()["macro_precision"] == 3 / 5
    assert evaluator.calculate_recall()["macro_recall"] == 1.0


@pytest.mark.filterwarnings("ignore:.*in another spelling")
@pytest.mark.parametrize(("actual", "other"), [("7", "07"), ("7", "7 "), ("7", "7.0"), ("7", "８")])
def test_ids_are_compared_as_they_are(actual, other):
    """Nothing is trimmed or guessed: an id is no text."""
    assert IdMatcher().similarity(actual, other) == 0.0
    assert pairs(IdMatcher(), [actual], ["x", other]) == []


# --- metadata --------------------------------------------------------------------------------


def page(number, source="guide.pdf", **more):
    """Return a document of a page."""
    return Document("text", metadata={"source": source, "page": number, **more})


NESTED = {"url": "x", "date": None, "at": {"n": 1}}


@pytest.mark.parametrize(
    ("keys", "one", "other", "alike"),
    [
        # Other metadata, texts and ids do not matter.
        (["source", "page"], page(3), {"page_content": "x", "metadata": page(3).metadata}, True),
        (["source", "page"], page(3), page(4), False),
        (["source", "page"], page(3), page(3, "other.pdf"), False),
        (["page"], page(3), page(3, "other.pdf"), True),
        # Zero and empty text are values too.
        *((["page"], page(value), page(value), True) for value in (0, False, "", 1.5, (1, 2))),
        # File names are decomposed on some systems, and they are the usual sources.
        (["source"], page(3, "공지.pdf"), page(3, nfd("공지.pdf")), True),
        # Page 3 and page "3" come from different places; neither is guessed at.
        (["page"], page(3), page("3"), False),
        (["source.url"], page(1, NESTED), page(2, NESTED), True),
        (["source.url"], page(1, NESTED), page(1, {"url": "y"}), False),
        (["source.at.n"], page(1, NESTED), page(1, NESTED), True),
        # A key that is spelled with a dot comes first: it is what was asked for to the letter.
        (["source.url"], page(1, NESTED, **{"source.url": "z"}), page(1, {"url": "z"}), True),
    ],
)
def test_documents_match_when_all_compared_values_agree(keys, one, other, alike):
    matcher = MetadataMatcher(*keys)
    assert matcher.similarity(one, other) == alike
    assert matcher.signature == f"metadata(keys={'+'.join(keys)})"


def test_two_ground_truth_chunks_of_one_page_are_one_item():
    """At the level of pages they are the same, with a warning."""
    evaluator = OfflineRetrievalEvaluator(
        [[page(3), page(3)]], [[page(3)]], MetadataMatcher("source", "page")
    )
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat another"):
        assert evaluator.calculate_recall()["macro_recall"] == 1.0


@pytest.mark.parametrize(
    "missing", [None, math.nan, np.float64("nan"), np.float32("nan"), pd.NA, pd.NaT]
)
def test_what_data_frames_make_of_a_missing_value_is_no_value(missing):
    """Documents must not agree in having no page."""
    with pytest.raises(InvalidInput, match=r"actual_docs\[0\]\[0\] has .*'page'.*but its value is"):
        pairs(MetadataMatcher("page"), [page(missing)], [page(missing)])


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("source.uri", r"there are \['at', 'date', 'url'\]"),
        ("source.url.host", "there are none"),
        ("origin.url", r"there are \['page', 'source'\]\."),
        ("source.date", "'source.date' .* but its value is None"),
        ("", "has no metadata ''"),
    ],
)
def test_a_key_that_leads_nowhere_is_an_error(key, named):
    """The message says what keys there are on the way."""
    with pytest.raises(ValueError, match=f"predicted .*{named}"):
        MetadataMatcher(key).key(page(1, NESTED), "predicted")


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
@settings(max_examples=trials(500))
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
