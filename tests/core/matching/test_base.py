"""Matchers of a user's own: what they may define, what they are given, what is checked."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from matched import Given, matches_of, nfd, pairs, per_query, rows_of
from trials import trials

from krag_eval import (
    AnyOf,
    CoverageMatcher,
    ExactTextMatcher,
    KeyMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
    TextMatcher,
)
from krag_eval.core import text_of
from krag_eval.core.matching.joins import KeyJoin
from krag_eval.errors import InvalidInput


class Overlap(Matcher):
    """The share of the ground truth's letters that the predicted text has."""

    def similarity(self, actual, predicted):
        wanted = set(actual.page_content)
        return len(wanted & set(predicted.page_content)) / len(wanted)


class Recording(Matcher):
    """Keeps the pairs it is given."""

    def __init__(self):
        self.pairs = []

    def similarity(self, actual, predicted):
        self.pairs.append((actual, predicted))
        return 1.0


class Prepared(Matcher):
    """The same share, from sets of letters made once per text."""

    def __init__(self):
        self.prepared = []

    def prepare(self, text):
        self.prepared.append(text)
        return frozenset(text)

    def similarity(self, actual, predicted):
        return len(actual & predicted) / len(actual)


class Batched(Overlap):
    """Scores all pairs of a query at once, and keeps the shapes."""

    def __init__(self):
        self.shapes = []

    def similarities(self, actual, predicted):
        self.shapes.append((len(actual), len(predicted)))
        return [[self.similarity(truth, document) for document in predicted] for truth in actual]


class Returning(Matcher):
    """Returns whatever it was made with for all pairs together."""

    def __init__(self, scores):
        self.scores = scores

    def similarity(self, actual, predicted):
        raise AssertionError("asked pair by pair")

    def similarities(self, actual, predicted):
        return self.scores


class Initial(KeyMatcher):
    """Compares first letters; a text that begins with a dash has none."""

    def key(self, document, where="document"):
        text = text_of(document, where)
        return None if text.startswith("-") else text[0]


class Lengths(TextMatcher):
    """The shorter length over the longer one; keeps the texts and the blocks that it scores."""

    def __init__(self):
        self.texts, self.blocks = None, []

    def block_scorer(self, texts):
        self.texts = list(texts)
        lengths = np.array([len(text) for text in texts], float)

        def score(actual, predicted):
            self.blocks.append((len(actual), len(predicted)))
            rows, columns = lengths[actual][:, None], lengths[predicted]
            return np.minimum(rows, columns) / np.maximum(rows, columns)

        return score


# --- similarity, prepare, similarities -------------------------------------------------------


def test_similarity_receives_langchain_documents():
    """Whatever was passed becomes one; a Document is the very object."""
    matcher, document = Recording(), Document("b", metadata={"page": 1})
    per_query(matcher, [["a"]], [[document, {"page_content": "c", "id": 5}]])
    assert all(isinstance(one, Document) for pair in matcher.pairs for one in pair)
    assert matcher.pairs[0][1] is document
    assert (matcher.pairs[1][1].page_content, matcher.pairs[1][1].id) == ("c", "5")


@pytest.mark.parametrize(
    ("actual", "predicted", "compared"),
    [
        ([["a1", "a2"]], [["p1", "p2"]], "a1p1 a1p2 a2p1 a2p2"),
        ([["a"], ["b"]], [["p"], ["q"]], "ap bq"),
        ([["a"], [], ["b"]], [[], ["p"], ["q"]], "bq"),
    ],
)
def test_the_pairs_of_each_query_are_compared_truth_first(actual, predicted, compared):
    """Never across queries, and none where there is nothing to compare."""
    matcher = Recording()
    per_query(matcher, actual, predicted, no_ground_truth="zero")
    assert [a.page_content + p.page_content for a, p in matcher.pairs] == compared.split()


def test_blank_documents_are_the_matcher_s_business():
    """A matcher that sees documents may compare something else than their texts."""
    same = Matcher.from_function(lambda actual, predicted: actual.metadata == predicted.metadata)
    one, other = Document("", metadata={"page": 1}), Document(" ", metadata={"page": 1})
    assert per_query(same, [[one]], [[other]])["recall"].tolist() == [1.0]


def test_the_same_document_twice_is_one_item():
    """It is in any form; those that differ in metadata are two, which may be told apart."""
    with pytest.warns(KragEvalWarning, match="^2 ground-truth documents repeat another"):
        table = per_query(Overlap(), [["a", Document("a"), {"page_content": "a"}]], [["a"]])
    assert table["ground_truth"].tolist() == [1]
    pages = [Document("a", metadata={"page": page}) for page in (1, 2)]
    assert per_query(Overlap(), [pages], [["a"]])["ground_truth"].tolist() == [2]


@pytest.mark.parametrize(
    ("actual", "predicted", "expected"),
    [
        # One method is enough: half of the letters of "ab" in "ax", all in "bab", none in "x".
        ([["ab"]], [["x", "ax", "bab"]], [(0, 2, 0.5), (0, 3, 1.0)]),
        # A quarter of "abcd", half of "ax", nothing of "y": half.
        ([[AnyOf(["abcd", "ax", "y"]), "a"]], [["za"]], [(0, 1, 0.5), (1, 1, 1.0)]),
        ([["a", AnyOf(["b", "c"]), "d"]], [["d", "c", "a"]], [(0, 3, 1), (1, 2, 1), (2, 1, 1)]),
        ([[AnyOf(["a", "b"])], ["a"]], [[], ["a"]], [(1, 1, 1.0)]),
    ],
)
def test_the_best_alternative_counts(actual, predicted, expected):
    """Items before and after one with alternatives have their own pairs."""
    assert rows_of(matches_of(Overlap(), actual, predicted)) == expected


def test_a_matcher_prints_as_what_it_does():
    """Its class, settings and threshold; a matcher without a threshold to choose shows none."""
    told = (
        "<CoverageMatcher coverage(min_run=5,tokenizer=auto(words,letters),"
        "guard=aligned), threshold 0.7>"
    )
    assert repr(CoverageMatcher(threshold=0.7)) == told
    assert repr(ExactTextMatcher()) == "<ExactTextMatcher text>"


def test_a_matcher_without_similarity_cannot_be_made():
    """Python says what is missing."""
    with pytest.raises(TypeError, match="similarity"):
        type("Nothing", (Matcher,), {})()


def test_prepare_runs_once_per_distinct_text():
    """However many documents and queries have it, on both sides, in whatever spelling."""
    matcher = Prepared()
    per_query(matcher, [["서울", "b"], ["서울"]], [[nfd("서울"), "c", "c"], ["c", Document("b")]])
    assert matcher.prepared == ["서울", "b", "c"]


@pytest.mark.parametrize("matcher", [Prepared, Batched])
def test_what_prepare_returned_and_batches_are_compared_as_documents_are(matcher):
    """The tables are equal, with alternatives and with nothing retrieved."""
    lists = [["ab", AnyOf(["cd", "ef"])], ["d"]], [["ax", "fe", "x"], []]
    assert per_query(matcher(), *lists).equals(per_query(Overlap(), *lists))


def test_prepare_never_sees_a_blank_text():
    """It matches nothing; one warning counts them."""
    matcher = Prepared()
    told = "^1 ground-truth and 2 predicted documents have empty"
    with pytest.warns(KragEvalWarning, match=told):
        table = per_query(matcher, [["a", ""]], [[" ", "a", "\n"]])
    assert matcher.prepared == ["a"]
    assert table["covered"].tolist() == [1]


def test_similarities_may_be_computed_together():
    """One call per query that has any, of shape (alternatives of ground truth, predicted)."""
    matcher = Batched()
    per_query(matcher, [[AnyOf(["ab", "x"]), "c"], ["d"], ["e"]], [["a", "c"], [], ["e"]])
    assert matcher.shapes == [(3, 2), (1, 1)]


@pytest.mark.parametrize(
    "scores", [[[1.0, 0.25]], ((1, 0.25),), np.array([[1.0, 0.25]]), np.float32([[1.0, 0.25]])]
)
def test_similarities_may_be_anything_like_an_array(scores):
    """Lists, tuples, arrays of any number type."""
    assert pairs(Returning(scores), ["a"], ["p", "q"]) == [(0, 1, 1.0), (0, 2, 0.25)]


@pytest.mark.parametrize("value", [1, True, np.float32(1.0), np.int64(1), Fraction(1), Decimal(1)])
def test_a_similarity_may_be_any_number(value):
    """Whole, boolean, numpy's."""
    assert pairs(Given(value), ["a"], ["p"]) == [(0, 1, 1.0)]


@pytest.mark.parametrize(
    ("actual", "predicted", "places"),
    [
        ([["q"], ["a", "b"]], [["p"], ["w", "x", "y"]], ("[1][1]", "[1][2]")),
        # The third text of the ground truth is that of the second item: the first has two.
        ([[AnyOf(["a", "x"]), "b"]], [["y"]], ("[0][1]", "[0][0]")),
    ],
)
def test_the_message_says_which_pair_is_out_of_range(actual, predicted, places):
    """The matcher, the number, the query and both documents; items, and not alternatives."""
    wrong = Given(defaultdict(float, {("b", "y"): 2.0}))
    with pytest.raises(InvalidInput) as caught:
        per_query(wrong, actual, predicted)
    told = f"{wrong.signature}: a similarity must be a number from 0 to 1, got 2.0 for "
    places = "actual_docs{} and predicted_docs{}".format(*places)
    assert str(caught.value) == f"matcher {told}{places}."


def test_an_error_inside_a_matcher_is_the_user_s_to_see():
    """It comes through as it is, and matching can be repeated: a service may have been down."""
    answers = iter([ConnectionError("try again"), 1.0])

    def asked(actual, predicted):
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    evaluator = OfflineRetrievalEvaluator([["a"]], [["p"]], Matcher.from_function(asked, name="x"))
    with pytest.raises(ConnectionError):
        evaluator.calculate_recall()
    assert evaluator.calculate_recall()["macro_recall"] == 1.0


# --- a function as a matcher -----------------------------------------------------------------


def same_length(actual, predicted):
    return len(actual.page_content) == len(predicted.page_content)


def test_a_function_can_be_a_matcher():
    """Given LangChain documents, whatever was passed; its name is the function's."""
    matcher = Matcher.from_function(same_length)
    predicted = ["x", Document("yz"), {"page_content": "cd"}]
    assert pairs(matcher, ["ab"], predicted) == [(0, 2, 1.0), (0, 3, 1.0)]
    assert matcher.similarity("ab", {"page_content": "cd"}) == 1.0
    assert re.fullmatch("same_length#[0-9a-f]{12}", matcher.signature)


def test_a_function_can_be_given_a_threshold_and_a_name():
    """Both stand in what is said of it, as for any matcher."""
    matcher = Matcher.from_function(lambda actual, predicted: 0.6, threshold=0.7, name="mine")
    with pytest.warns(KragEvalWarning, match="The matcher mine .* 0.6, below the threshold of 0.7"):
        assert per_query(matcher, [["a"]], [["b"]])["recall"].tolist() == [0.0]


# --- keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "predicted", "expected"),
    [
        # Equal keys match at every rank.
        (["ab", "cd"], ["ax", "zz", "cy", "aq"], [(0, 1, 1.0), (0, 4, 1.0), (1, 3, 1.0)]),
        # No key equals nothing, not even another document without one.
        (["-", "a"], ["-", "a"], [(1, 2, 1.0)]),
        # Items with alternatives may share a key.
        ([AnyOf(["ab", "cd"]), AnyOf(["ax", "ef"])], ["e", "a"], [(0, 2, 1), (1, 1, 1), (1, 2, 1)]),
    ],
)
def test_equal_keys_match(actual, predicted, expected):
    assert pairs(Initial(), actual, predicted) == expected
    assert Initial().similarity("ab", "ac") == 1.0
    assert Initial().similarity("-", "-") == Initial().similarity("a", "b") == 0.0


def test_two_items_of_one_key_are_one():
    """To this matcher they say the same; two without a key are two, which cannot be found."""
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        assert per_query(Initial(), [["ab", "ac"]], [["ad"]])["recall"].tolist() == [1.0]
    table = per_query(Initial(), [["-", "-", "a"]], [["a"]])
    assert table[["ground_truth", "covered"]].to_numpy().tolist() == [[3, 1]]


def test_keys_may_be_read_in_bulk():
    """One call per list, which may return any sequence; strings are not their own keys."""
    calls = []

    class Bulk(Initial):
        """Reads the keys of a list in one go, into a tuple or an array."""

        def keys(self, documents, where):
            calls.append(where)
            letters = super().keys(documents, where)
            return np.array(letters) if where.startswith("predicted") else tuple(letters)

    found = pairs(Bulk(), ["ab", "cd"], ["x", "cx", "ax", "cy"])
    assert found == [(0, 3, 1.0), (1, 2, 1.0), (1, 4, 1.0)]
    assert len(calls) == 2


def joined(*queries, **options):
    """Return the pairs of some queries' keys: (item, rank), and the matches."""
    join = KeyJoin(lambda: "keys")
    for actual, predicted in queries:
        join.add(actual, predicted, **options)
    matches = join.matches()
    return [(item, rank) for item, rank, _ in rows_of(matches)], matches


KEYS = st.sampled_from(["a", "b", "c", None])


@settings(max_examples=trials(200))
@given(
    st.lists(
        st.tuples(st.lists(st.lists(KEYS, min_size=1, max_size=2), max_size=4), st.lists(KEYS)),
        max_size=3,
    )
)
def test_joining_keys_agrees_with_comparing_all_pairs(queries):
    """Over several queries, with repeats, alternatives and missing keys."""
    join = KeyJoin(lambda: "keys")
    expected_pairs, expected_same, n_items = [], [], 0
    for items, predicted in queries:
        if all(len(alternatives) == 1 for alternatives in items):
            join.add([[alternatives[0] for alternatives in items]], [predicted])
        else:
            join.add([items], [predicted], alternatives=True)
        known = [{key for key in alternatives if key is not None} for alternatives in items]
        for position, keys in enumerate(known):
            first = known.index(keys) if keys else position
            expected_same.append(n_items + first)
            if first == position:
                ranks = [rank for rank, key in enumerate(predicted, 1) if key in keys]
                expected_pairs += [(n_items + position, rank, 1.0) for rank in ranks]
        n_items += len(items)
    matches = join.matches()
    assert rows_of(matches) == sorted(expected_pairs)
    assert matches.same_as.tolist() == expected_same


class Colliding:
    """Text whose hash is that of every other, so that only comparing tells them apart."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Colliding) and self.text == other.text

    def __hash__(self):
        return 1


@settings(max_examples=trials(100))
@given(
    st.lists(st.sampled_from("abcd"), unique=True),
    st.lists(st.sampled_from("abcdefgh"), max_size=40),
)
def test_keys_of_one_hash_are_told_apart(keys, predicted):
    """Pairs are those of equal keys, every occurrence counted, whatever the hashes say."""
    found, _ = joined(([list(map(Colliding, keys))], [list(map(Colliding, predicted))]))
    ranked = [*enumerate(predicted, 1)]
    assert found == [(i, rank) for i, key in enumerate(keys) for rank, one in ranked if key == one]


@pytest.mark.parametrize("n_keys", [1, 3000])
@pytest.mark.parametrize("n_predicted", [0, 1, 3000])
def test_lists_of_very_different_lengths_join(n_keys, n_predicted):
    """Backwards, so that the last key is found first; derived by hand: items meet in reverse."""
    predicted = list(range(n_predicted - 1, -1, -1))
    found, matches = joined(([["before"], list(range(n_keys))], [["before"], predicted]))
    n_common = min(n_keys, n_predicted)
    assert found == [(0, 1), *((item, n_predicted + 1 - item) for item in range(1, n_common + 1))]
    assert matches.same_as.tolist() == list(range(n_keys + 1))


def test_keys_of_several_types_join_as_they_compare():
    """1, 1.0 and True are equal to Python, "1" is not; a lone surrogate is a text like others."""
    predicted = ["1", True, "\ud800\ud800", "\ud800", 1.0, ("a", 1)]
    found, _ = joined(([[1, "1", "\ud800", ("a", 1)]], [predicted]))
    assert found == [(0, 2), (0, 5), (1, 1), (2, 4), (3, 6)]


# --- text matchers ---------------------------------------------------------------------------


def test_a_text_matcher_sees_each_distinct_text_once():
    """In any form and spelling, and scores them by position: 1/2 for one letter against two."""
    matcher = Lengths()
    assert pairs(matcher, ["가", Document("bb")], ["bb", nfd("가")]) == [
        (0, 1, 0.5), (0, 2, 1.0), (1, 1, 1.0), (1, 2, 0.5),
    ]  # fmt: skip
    assert matcher.texts == ["가", "bb"]
    assert matcher.similarity("ab", Document("x")) == 0.5


def test_a_text_matcher_is_never_asked_about_a_blank_text():
    """Its similarity is 0, with everything."""
    assert Lengths().similarity("ab", " ") == 0.0
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted documents have empty"):
        assert pairs(Lengths(), ["", "ab"], [" ", "cd"]) == [(1, 2, 1.0)]


def test_copies_of_a_text_within_a_query_are_scored_as_one():
    """A hundred thousand of them, on either side; the pairs are all there."""
    many, matcher = 100_000, Lengths()
    matches = matches_of(matcher, [["ab"], ["x", "yz"]], [["x", "yz"] * many, []])
    assert matches.similarity[:4].tolist() == [0.5, 1.0, 0.5, 1.0]
    assert matches.rank.tolist() == list(range(1, 2 * many + 1))
    assert len(matches_of(matcher, [["ab"] * many], [["ab"]])) == many
    assert matcher.blocks == [(1, 2), (1, 1)]


# --- signatures and thresholds ---------------------------------------------------------------


def made_with(*names):
    """Return a class of matchers whose constructor takes arguments of these names."""
    lines = [f"def __init__(self, {', '.join(names)}):"]
    space = {}
    exec("\n".join([*lines, *(f"    self.{name} = {name}" for name in names)]), space)
    return type("Mine", (Overlap,), {"__init__": space["__init__"]})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("gpt-4o", "gpt-4o"),
        ("BAAI/bge-m3", "BAAI/bge-m3"),
        ("text-embedding-3-small-2024-01-25", "text-embedding-3-small-2024-01-25"),
        ("is it, the same?", '"is it, the same?"'),
        ("같은가?", '"같은가?"'),
        ("a\n\x1b[31m", r'"a\n\u001b[31m"'),
        ("yes", '"yes"'),
        ("3", '"3"'),
        ("", '""'),
        (True, "yes"),
        (3, "3"),
        (np.float64(0.5), "0.5"),
        (None, "None"),
        # printf '%041d' 0 | sha256sum
        ("0" * 41, "sha256:4b7e6989a501"),
        # What may be a secret, under whatever name.
        ("postgres://u:hunter2@h/d", "sha256:#"),
        ("http://h/?k=hunter2", "sha256:#"),
        ("sk-proj-hunter2A1b2C3d4E5", "sha256:#"),
    ],
)
def test_what_a_matcher_was_made_with_stands_in_its_signature(value, told):
    """Texts, numbers, booleans and None; a long text as a hash."""
    signature = made_with("model")(value).signature
    hidden = re.sub("sha256:[0-9a-f]{12}", "sha256:#", signature) if "#" in told else signature
    assert hidden == f"Mine(model={told})"


@pytest.mark.parametrize("value", [object(), len, ["a"], ("a",), {}, b"a", 1j, Decimal(1)])
def test_any_other_object_makes_the_settings_unknown(value):
    """What can be told is told beside it."""
    matcher = made_with("model", "client")("m", value)
    assert matcher.signature == "Mine(model=m,settings unknown)"


@pytest.mark.parametrize(
    "name",
    ["key", "api_key", "apiKey", "APIKey", "apikey", "openai_api_key", "token", "access_token",
     "secret", "client_secret", "password", "db_password", "passwd", "credentials",
     "auth", "authorization", "_token"],
)  # fmt: skip
def test_a_secret_stands_nowhere_in_a_signature(name):
    """For its name, whatever it is; it does not make the settings unknown."""
    for value in ("hunter2", 1234, None, object()):
        assert made_with("model", name)("m", value).signature == "Mine(model=m)"


@pytest.mark.parametrize(
    ("name", "value"),
    [("tokenizer", "kiwi"), ("max_tokens", 100), ("keyword", "x"), ("author", "x"), ("turn", 1),
     ("min_token_length", 5), ("token_pattern", "w")],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_is_told(name, value):
    """A tokenizer is no token, nor is a number of tokens."""
    assert made_with(name)(value).signature == f"Mine({name}={value})"


class Named(Overlap):
    """Has a name and settings."""

    name = "overlap"

    def settings(self):
        return {"strict": False, "depth": 2, "mode": "x"}


class Asking(Overlap):
    """Keeps its prompt to itself."""

    def __init__(self, prompt, threshold=0.5):
        self._prompt, self.threshold = prompt, threshold


class Hiding(Overlap):
    """Keeps nothing under its name."""

    size = 1

    def __init__(self, prompt, model, size, *more):
        self.template = prompt
        self.__model = model

    @property
    def model(self):
        """Must not be asked for a signature: it might load a model."""
        raise AssertionError


@dataclass
class Plain(Overlap):
    """A dataclass, whose fields are attributes as well."""

    prompt: str
    top: int = 3


class Slotted(Overlap):
    """Has slots, and, as its base has none, a dict too."""

    __slots__ = ("_prompt",)

    def __init__(self, prompt):
        self._prompt = prompt


class Telling(Overlap):
    """Says itself which of its arguments are settings."""

    def __init__(self, prompt, client):
        self.prompt, self.client = prompt, client

    def settings(self):
        return {"prompt": self.prompt}


class Prefixed(ExactTextMatcher):
    """Has one argument more than the built-in matcher whose settings it inherits."""

    def __init__(self, prefix, **options):
        super().__init__(**options)
        self.prefix = prefix


@pytest.mark.parametrize(
    ("matcher", "signature"),
    [
        (Overlap(), "Overlap"),
        (Named(), "overlap(strict=no,depth=2,mode=x)"),
        (Asking("a", 0.9), "Asking(prompt=a)"),
        (Asking("Is it the same thing? " * 9), "Asking(prompt=sha256:044875703740)"),
        (Hiding("p", "m", 2), "Hiding(settings unknown)"),
        (Slotted("p"), "Slotted(prompt=p)"),
        (Telling("p", object()), "Telling(prompt=p)"),
        (Prefixed("a"), "text(prefix=a,settings unknown)"),  # of **options, no trace
        (type("Same", (ExactTextMatcher,), {})(case_sensitive=False), "text(case_sensitive=no)"),
        (Plain("p"), "Plain(prompt=p,top=3)"),
    ],
)
def test_settings_are_found_where_a_class_keeps_them(matcher, signature):
    """The name is that of the class unless there is one; what is kept nowhere is unknown."""
    assert matcher.signature == signature


def asking(prompt):
    return lambda actual, predicted: float(prompt == actual.page_content)


class Asks:
    """An object whose method is a function."""

    def both(self, actual, predicted):
        return 1.0


@pytest.mark.parametrize(
    ("function", "name", "signature"),
    [
        (same_length, None, "same_length#"),
        (same_length, "mine", "mine"),
        (lru_cache(same_length), None, "same_length#"),
        (lambda actual, predicted: 1.0, "mine", "mine"),
        (lambda actual, predicted: 1.0, None, "<lambda>#"),
        (lambda actual, predicted, x=3: 1.0, "mine", "mine#"),
        (asking("p"), "mine", "mine#"),
        (partial(same_length), None, "partial#"),
        (Asks().both, None, "both#"),
        (Asks.both, None, "both#"),
        (asking(iter("p")), "mine", "mine#unknown"),
        (len, None, "len"),
    ],
)
def test_a_function_is_told_by_its_name_where_that_is_all_there_is(function, name, signature):
    """A partial, a method and a function that uses variables around it hold more."""
    told = Matcher.from_function(function, name=name).signature
    assert re.sub("#[0-9a-f]{12}$", "#", told) == signature


@pytest.mark.filterwarnings("ignore:The matcher")
def test_nothing_secret_reaches_a_result_a_file_or_a_page(tmp_path):
    """Nor what is printed of the matcher and the evaluator."""
    kind = made_with("prompt", "api_key", "url", "headers")
    matcher = kind("hunter2 " * 9, "hunter2", "https://hunter2@host", {"auth": "hunter2"})
    evaluator = OfflineRetrievalEvaluator([["a"]], [["b"]], matcher)
    result = evaluator.evaluate(1)
    result.to_json(tmp_path / "result.json", texts=True)
    result.report(tmp_path / "page.html")
    written = [path.read_text("utf-8") for path in tmp_path.iterdir()]
    printed = [repr(one) for one in (matcher, evaluator, result, result.explain(0))]
    assert len(written) == 2
    assert not any("hunter2" in one for one in (*written, *printed))


def test_a_matcher_of_one_s_own_has_a_threshold_of_a_half():
    """Unless it sets another."""
    strict = type("Strict", (Overlap,), {"threshold": 1.0})()
    table = per_query(Overlap(), [["ab"]], [["x", "ax"]])
    assert table[["recall", "reciprocal_rank"]].to_numpy().tolist() == [[1.0, 0.5]]
    told = "the highest similarity is 0.5, below the threshold of 1"
    with pytest.warns(KragEvalWarning, match=told):
        assert per_query(strict, [["ab"]], [["a"]])["recall"].tolist() == [0.0]


@pytest.mark.parametrize("threshold", [0, 1, 0.5, np.float64(0.5), np.float32(0.5), Fraction(1, 2)])
def test_a_threshold_is_any_number_from_0_to_1(threshold):
    """As a Python float."""
    kept = CoverageMatcher(threshold).threshold
    assert kept == threshold
    assert type(kept) is float


# --- the user's objects ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "matcher",
    ["text", "contains", Overlap(), Prepared(), Batched(), Initial(), Lengths(), Recording()],
    ids=str,
)
def test_documents_are_never_changed(matcher):
    """Nor copied into something else, nor the lists they are in: by any metric or cutoff."""
    truth = Document("ab", metadata={"tags": ["x"]}, id="1")
    document = Document("x")
    actual = [[truth, AnyOf([{"page_content": "c"}, "d"])]]
    predicted = [[{"page_content": "ab", "metadata": {"page": 1}}, document, "d"]]
    before = copy.deepcopy((actual, predicted))
    OfflineRetrievalEvaluator(actual, predicted, matcher).evaluate([1, None])
    assert (actual, predicted) == before
    assert predicted[0][1] is document


FORMS = st.sampled_from([str, Document, lambda text: {"page_content": text}])
WORDS = st.sampled_from(["ab", "b", "ca", "xyz"])


@pytest.mark.parametrize("matcher", [Overlap, Prepared, Batched, Initial, Lengths])
@settings(max_examples=trials(50))
@given(data=st.data())
def test_the_form_of_a_document_does_not_matter(matcher, data):
    """Strings, documents and dicts mixed give the pairs that strings give."""
    actual = data.draw(st.lists(WORDS, min_size=1, max_size=3, unique=True))
    predicted = data.draw(st.lists(WORDS, max_size=4))
    mixed = [[data.draw(FORMS)(text) for text in texts] for texts in (actual, predicted)]
    assert pairs(matcher(), *mixed) == pairs(matcher(), actual, predicted)


@pytest.mark.parametrize("matcher", ["text", "contains", "coverage", "rouge1", "fuzzy"])
def test_two_spellings_of_one_text_are_one_item(matcher):
    """NFC and NFD of the same Hangul look alike and mean one document under every text matcher."""
    text = "한국어 문서입니다"
    with pytest.warns(KragEvalWarning, match="1 ground-truth documents repeat"):
        table = per_query(matcher, [[text, nfd(text)]], [[text]])
    assert table["ground_truth"].tolist() == [1]
