"""What a rule's decisions do to averages and orders: expected values are worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from krag_eval import OfflineRetrievalEvaluator, SpanMatcher
from study import consequence
from study.consequence import Asked, Collection, Piece, compared, measured, repaired, values
from study.sources import Question
from study.systems import System

N = 60


def piece(start: int, stop: int, source: str = "t") -> Piece:
    return Piece(source, start, stop, "x" * (stop - start))


ASKED = [Asked("q", "?", (piece(0, 10), piece(20, 30)))]
# Not of the text; holds the first; holds the second, and half of the first.
FOUND = [[piece(0, 50, "u"), piece(0, 15), piece(5, 40)]]


def held(asked: list[Asked], found: list[list[Piece]]) -> dict[tuple[str, str, str], bool]:
    pairs = consequence.pairs_of(asked, found)
    return {key: window.holds(wanted) for key, (_, wanted, window) in pairs.items()}


def of_one_metric(*of_retrievers: list[float]) -> dict[str, dict[str, np.ndarray]]:
    """Return values of retrievers a, b, …, the same for both metrics."""
    return {
        name: dict.fromkeys(consequence.METRICS, np.array(numbers, float))
        for name, numbers in zip("abc", of_retrievers, strict=False)
    }


# Collections.


def test_a_collection_has_windows_of_all_texts_and_questions_with_spans():
    """120 words of one letter make windows of the words 0 to 99 and 20 to 119."""
    long = " ".join("a" * 120)
    questions = [
        Question("one", "?", "title", long, ((0, 3), (0, 3), (200, 239))),
        Question("nothing", "?", "title", "b c", ()),
    ]
    asked, windows = Collection.of(questions, {"long": long, "short": "b c"})
    assert [one.place for one in windows] == ["long:0-199", "long:40-239", "short:0-3"]
    assert [(one.id, [wanted.place for wanted in one.wanted]) for one in asked] == [
        ("one", ["long:0-3", "long:200-239"])
    ]
    assert asked[0].wanted[0].text == "a a"


def test_a_window_holds_what_begins_and_ends_within_it():
    """Its own ends count as within it, and places in other texts do not."""
    window = piece(10, 20)
    assert window.holds(piece(10, 20))
    assert window.holds(piece(12, 15))
    assert not window.holds(piece(9, 12))
    assert not window.holds(piece(18, 21))
    assert not window.holds(piece(12, 15, "u"))


# Retrievers.


def test_equal_cosines_are_ranked_by_place_and_ten_windows_come_back():
    """Windows without the question's triples come last, as they stand."""
    windows = ["dog", "cat", "dog", "cat", *["bird"] * 8]
    assert consequence.by_triples(["cat"], windows) == [[1, 3, 0, 2, 4, 5, 6, 7, 8, 9]]
    assert consequence.by_triples(["zzzz"], windows) == [[*range(10)]]


def test_triples_are_weighed_by_how_few_windows_have_them():
    """Of three windows two have the triple of "abc", ln 1.5, and one that of "xyz", ln 3.

    The triples across the question's two words stand nowhere. Its length is the root of 0.405² +
    1.099², 1.171, and the cosines are 0.405 / 1.171 and 1.099 / 1.171.
    """
    assert consequence.by_triples(["abc xyz"], ["abc", "abc", "xyz"]) == [[2, 0, 1]]


def test_embeddings_are_ranked_by_cosine_to_six_digits():
    """A difference in the seventh digit is none."""
    vectors = {"?": [1, 0], "a": [0.5, 0], "b": [0.6, 0], "c": [0.6000000001, 0]}
    rank = consequence.by_embeddings(lambda texts: np.array([vectors[text] for text in texts]))
    assert rank(["?"], ["a", "b", "c"]) == [[1, 2, 0]]


# Values.


def test_values_are_of_whole_spans_by_place():
    """The items come at ranks 2 and 3: (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3)) = 0.69343."""
    found = values(ASKED, FOUND, held(ASKED, FOUND))
    assert found["recall@5"].tolist() == [1.0]
    assert found["ndcg@10"] == pytest.approx([0.69343], abs=1e-5)


def test_the_truth_is_what_spans_held_whole_say():
    """``SpanMatcher`` with threshold 1 decides by the same places, and the values are the same."""
    asked = [*ASKED, Asked("r", "?", (piece(41, 60),))]
    found = [*FOUND, [piece(40, 59), piece(41, 60), piece(0, 99)]]

    def spans(pieces):
        return [{"source": one.source, "start": one.start, "end": one.stop} for one in pieces]

    result = OfflineRetrievalEvaluator(
        [spans(one.wanted) for one in asked],
        [spans(windows) for windows in found],
        matcher=SpanMatcher(threshold=1.0),
    ).evaluate(k=[5, 10])
    ours = values(asked, found, held(asked, found))
    assert ours["recall@5"].tolist() == result.per_query(5)["recall"].tolist() == [1.0, 1.0]
    assert ours["ndcg@10"].tolist() == result.per_query(10)["ndcg"].tolist()


def test_a_wanted_text_that_no_window_holds_stays_one():
    """One of two is found, so recall is 0.5."""
    asked = [Asked("q", "?", (piece(0, 10), piece(45, 70)))]
    assert values(asked, FOUND, held(asked, FOUND))["recall@5"].tolist() == [0.5]


def test_a_table_may_say_otherwise_of_the_same_places_for_another_question():
    """A judge sees the question."""
    asked = [Asked(name, name, (piece(0, 10),)) for name in "qr"]
    found = [[piece(0, 15)], [piece(0, 15)]]
    accepted = {("q", "t:0-10", "t:0-15"): True, ("r", "t:0-10", "t:0-15"): False}
    assert values(asked, found, accepted)["recall@5"].tolist() == [1.0, 0.0]


# Errors and orders.

# Truth: a is better by 1 for the third question. System: b is better by 1 for the first.
TRUTH = of_one_metric([1, 0, 1], [1, 0, 0])
SYSTEM = of_one_metric([0, 0, 1], [1, 0, 1])


def test_errors_are_what_a_system_says_less_the_truth():
    """Means: truth 2/3 and 1/3, system 1/3 and 2/3."""
    found = compared(TRUTH, SYSTEM, np.zeros((1, 1), int))
    assert found["errors"]["a"]["recall@5"] == pytest.approx(-1 / 3)
    assert found["errors"]["b"]["recall@5"] == pytest.approx(1 / 3)
    assert found["mean absolute error"]["recall@5"] == pytest.approx(1 / 3)
    assert found["values"]["b"]["ndcg@10"] == pytest.approx(2 / 3)


def test_an_order_is_turned_round_where_signs_are_opposite_and_half_where_one_is_none():
    """Differences by question: truth 0, 0, 1; system -1, 0, 0.

    So the resamples have 0 and -1 (a half), 1 and 0 (a half), 0 and 0 (none), 0.5 and -0.5 (one).
    """
    resamples = np.array([[0, 0], [2, 2], [1, 1], [0, 2]])
    order = compared(TRUTH, SYSTEM, resamples)["orders"]["a - b"]["recall@5"]
    assert order["truth"] == pytest.approx(1 / 3)
    assert order["error"] == pytest.approx(-2 / 3)
    assert order["flip"] == 1.0
    assert order["flips"] == 0.5


def test_each_pair_of_retrievers_is_an_order():
    """Three retrievers have three."""
    several = of_one_metric([1], [0], [0])
    found = compared(several, several, np.zeros((1, 1), int))["orders"]
    assert [*found] == ["a - b", "a - c", "b - c"]
    assert all(one["recall@5"]["flips"] == 0 for one in found.values())


def test_a_sum_that_is_not_quite_zero_has_no_sign():
    """0.1 + 0.2 - 0.3 is 5.6e-17."""
    almost = np.array([0.1 + 0.2 - 0.3])
    assert almost[0] > 0
    assert consequence.flips(almost, np.array([-0.1])).tolist() == [0.5]


# Repair.


def test_a_system_that_says_one_value_for_all_mends_nothing_and_the_labels_do():
    """20 values, half of them 1. Draws of five ones and five zeros, and of nine ones and one zero.

    The labels are off by 0 and 0.4. Wilson's intervals (z = 1.96) are 0.2366 to 0.7634, which holds
    0.5, and 0.5958 to 0.9821, which does not; their mean width is 0.4566.
    """
    truth = np.array([1.0] * 10 + [0.0] * 10)
    draws = [np.array([*range(5), *range(10, 15)]), np.array([*range(9), 10])]
    found = repaired(truth, np.full(20, 0.25), draws)
    assert found["before"] == 0.25
    assert found["after"] == found["alone"] == pytest.approx(0.2)
    assert found["held"] == found["held alone"] == 0.5
    assert found["width"] == found["width alone"] == pytest.approx(0.4566, abs=1e-4)
    assert found["warned"] == 1.0  # fewer than 30 labels


def test_the_others_are_those_without_a_label():
    """Five ones and five zeros are labelled, ten ones are not, and the system is right.

    Its weight is the variance 1/4 over twice that of all twenty, 15/4 / 19: 19/30. So the value is
    1/2 + 19/30 · (1 - 1/2), 1/15 above the 3/4 of all.
    """
    truth = np.array([1.0] * 5 + [0.0] * 5 + [1.0] * 10)
    found = repaired(truth, truth, [np.arange(10)])
    assert found["after"] == pytest.approx(1 / 15)
    assert found["alone"] == pytest.approx(1 / 4)


def test_a_system_that_is_right_makes_intervals_narrower():
    """Values of the truth's own need no mending, and tell more than the labels alone."""
    truth = np.arange(200) % 5 / 4
    found = repaired(truth, truth, [np.arange(50) * 4 + at for at in range(4)])
    assert found["before"] == 0.0
    assert found["width"] < found["width alone"]
    assert found["warned"] == 0.0


# Everything at once.


def own(questions, windows):
    """Rank each question's own window first."""
    return [[at, (at + 1) % N] for at in range(len(questions))]


def half(questions, windows):
    """Do so for every other question; the others get another's alone."""
    return [[(at + at % 2) % N] for at in range(len(questions))]


@pytest.fixture(scope="module")
def collection():
    """60 texts of three words; what is wanted are the first two, the same in each."""
    texts = {f"t{at}": f"the answer {at:02d}" for at in range(N)}
    questions = [
        Question(f"q{at}", f"question {at}", name, text, ((0, 10),))
        for at, (name, text) in enumerate(texts.items())
    ]
    return Collection.of(questions, texts)


def everything(texts):
    return np.ones(len(texts), np.bool_)


def nothing(texts):
    return np.zeros(len(texts), np.bool_)


def the_first_forty(texts):
    return np.array([int(window[-2:]) < 40 for _, window, _ in texts])


SYSTEMS = {"everything": everything, "nothing": nothing, "forty": the_first_forty}


def measured_with_few_draws(collection):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consequence, "DRAWS", 20)
        return measured(collection, {"own": own, "half": half}, SYSTEMS)


@pytest.fixture(scope="module")
def found(collection):
    return measured_with_few_draws(collection)


def test_a_collection_is_counted(found):
    """Each question has two windows by the first retriever; the second brings no others."""
    numbers, _ = found
    assert numbers["questions"] == numbers["wanted"] == numbers["windows"] == N
    assert numbers["wanted that no window holds"] == 0
    assert numbers["pairs"] == 2 * N
    assert numbers["right pairs"] == N
    assert numbers["wrong pairs whose window has the wanted text"] == N


def test_accepting_everything_favours_the_worse_retriever(found):
    """Recall is 1 and 0.5 by truth, and 1 for both by the rule: no difference is left.

    All resamples have a true difference, but for a chance of 2 ** -50 each.
    """
    numbers, _ = found
    system = numbers["systems"]["everything"]
    assert numbers["truth"]["own"]["recall@5"] == 1.0
    assert numbers["truth"]["half"]["recall@5"] == 0.5
    assert system["errors"]["own"]["recall@5"] == 0.0
    assert system["errors"]["half"]["recall@5"] == 0.5
    assert system["mean absolute error"]["recall@5"] == 0.25
    order = {"truth": 0.5, "error": -0.5, "flip": 0.5, "flips": 0.5}
    assert system["orders"]["own - half"]["recall@5"] == order


def test_an_order_that_hangs_on_one_question_is_lost_without_it(found):
    """By the rule of the first forty texts only question 39 tells the retrievers apart.

    It is in none of 50 draws with a chance of (59/60)**50 = 0.432, and each such resample counts a
    half.
    """
    order = found[0]["systems"]["forty"]["orders"]["own - half"]["recall@5"]
    assert order["flip"] == 0.0
    assert order["flips"] == pytest.approx(0.216, abs=0.02)


def test_repair_is_told_by_retriever_and_metric(found):
    """A rule that accepts nothing is off by the whole value, which 50 labels of one value mend."""
    numbers, _ = found
    repair = numbers["systems"]["nothing"]["repair"]
    assert repair["own"]["recall@5"]["before"] == 1.0
    assert repair["own"]["recall@5"]["after"] == 0.0
    assert repair["half"]["ndcg@10"]["before"] == 0.5
    assert 0 < repair["half"]["ndcg@10"]["after"] < 0.1


def test_decisions_are_kept_by_place(found):
    """A line is question, wanted, window, truth, and what each system said."""
    _, lines = found
    assert lines[:3] == [
        'question,wanted,window,right,"everything|nothing|forty"',
        "q0,t0:0-10,t0:0-13,1,101",
        "q0,t0:0-10,t1:0-13,0,101",
    ]
    assert len(lines) == 1 + 2 * N


def test_a_second_run_gives_the_same_digits(collection, found):
    """Draws and resamples have a seed."""
    again = measured_with_few_draws(collection)
    assert json.dumps(again) == json.dumps(found)


def test_systems_are_asked_once_in_their_languages_and_with_what_they_see(collection, monkeypatch):
    """What is not made for English is left out; a judge sees the question as well."""
    seen = {}

    def asked(name):
        def similarities(pairs):
            assert name not in seen
            seen[name] = pairs[0]
            return np.full(len(pairs), 0.5)

        return similarities

    systems = {
        "low": System("low", "x", "x", ("en", "ko"), 0.5, asked("low")),
        "high": System("high", "x", "x", ("en",), 0.6, asked("high")),
        "judge": System("judge", "x", "x", ("en",), 0.5, asked("judge"), with_questions=True),
        "korean": System("korean", "x", "x", ("ko",), 0.5, asked("korean")),
    }
    monkeypatch.setattr(consequence, "DRAWS", 2)
    monkeypatch.setattr(consequence, "collections", lambda folder: {"clapnq": collection})
    monkeypatch.setattr(consequence, "embed", lambda texts: np.eye(N))
    found = consequence.consequence(None, systems)
    of_system = found["clapnq"]["systems"]
    assert [*of_system] == ["low", "high", "judge"]
    assert seen["low"] == ("the answer", "the answer 00")
    assert seen["judge"] == ("the answer", "the answer 00", "question 0")
    assert of_system["low"]["values"]["MiniLM"]["recall@5"] == 1.0
    assert of_system["high"]["values"]["MiniLM"]["recall@5"] == 0.0
    assert [*found["decisions"]] == ["clapnq"]


def test_tables_have_three_digits(found):
    """Errors with a sign, flips of a half as such."""
    text = consequence.tables({"decisions": {}, "clapnq": found[0]})
    assert "questions: 60, wanted: 60," in text
    assert "| everything | +0.000 | +0.500 | 0.250 |" in text
    assert "| everything | -0.500 | 0.5 | 0.500 |" in text
    assert "| own | 1.000 | 1.000 |" in text
