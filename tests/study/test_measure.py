"""Numbers of a few pairs, counted by hand."""

import numpy as np
import pytest

from study.measure import Measured, described
from study.pairs import Pair
from study.systems import System


def pair(key, *, right, part="held", kind="verbatim", wanted="w", **more):
    fields = {"source": "korquad", "language": "ko", "document": key[0], "question": "q"}
    return Pair(
        f"{kind}/{key}", kind, part=part, wanted=wanted, chunk=key, right=right, **(fields | more)
    )


#: Chunk -> what the only system says of it.
SAID = {"a1": 0.9, "a2": 0.6, "a3": 0.2, "b1": 0.6, "b2": 0.0, "c1": 0.8, "c2": 0.7, "c3": 0.1}


def ask(system, texts):
    return np.array([SAID[one[1]] for one in texts])


def measured(pairs, **more):
    options = {"languages": ("ko",), "threshold": 0.5, "family": "krag_eval"} | more
    system = System("s", options["family"], "d", options["languages"], options["threshold"], None)
    return Measured.of(pairs, {"s": system}, ask)


def test_decisions_are_counted_by_group():
    pairs = [
        pair("a1", right=True),
        pair("a2", right=False),
        pair("a3", right=True),
        pair("b2", right=False),
        pair("c1", right=True, part="open"),
    ]
    found = [one for one in measured(pairs).numbers()["decisions"] if one["how"] == "main"]
    held, opened = found
    assert (held["part"], opened["part"]) == ("held", "open")
    assert [held[key] for key in ("tp", "fp", "fn", "tn")] == [1, 1, 1, 1]
    assert held["precision"][0] == 0.5
    assert held["kappa"][0] == 0.0
    # Right .9 and .2, wrong .6 and 0: three of four comparisons.
    assert held["auc"] == 0.75
    assert opened["auc"] is None


def test_a_system_is_asked_in_its_languages_and_others_nothing_later():
    pairs = [pair("a1", right=True, part="later"), pair("b1", right=True)]
    for more, expected in (
        ({"languages": ("en",)}, []),
        ({"family": "other tools"}, ["held"]),
        ({}, ["held", "later"]),
    ):
        numbers = measured(pairs, **more).numbers()["decisions"]
        assert [one["part"] for one in numbers if one["how"] == "main"] == expected


def test_a_system_that_sees_the_question_is_given_it():
    seen = []

    def noted(system, texts):
        seen.extend(texts)
        return np.ones(len(texts))

    system = System("s", "judge", "d", ("ko",), 0.5, None, with_questions=True)
    Measured.of([pair("a1", right=True)], {"s": system}, noted)
    assert seen == [("w", "a1", "q")]


def test_the_threshold_is_chosen_on_open_and_tried_on_held():
    pairs = [
        pair("c1", right=True, part="open"),
        pair("c2", right=False, part="open"),
        pair("a1", right=True),
        pair("a2", right=False),
        pair("b1", right=True),
    ]
    (found,) = measured(pairs).numbers()["calibration"]
    # Between .7, wrong, and .8, right; there, only a1 is accepted of two right ones.
    assert found["threshold"] == 0.75
    assert found["f1_shipped"][0] == pytest.approx(4 / 5)
    assert found["f1"][0] == pytest.approx(2 / 3)
    assert (found["precision"][0], found["recall"][0]) == (1.0, 0.5)


def test_changed_chunks_are_counted_among_all_and_among_accepted_originals():
    kind = {"kind": "contradicted"}
    pairs = [
        pair("a1", right=True, variant="as it is", **kind)._replace(id="x!as it is"),
        pair("a2", right=False, variant="a year", **kind)._replace(id="x!a year"),
        pair("b2", right=True, variant="as it is", **kind)._replace(id="y!as it is"),
        pair("b1", right=False, variant="a year", **kind)._replace(id="y!a year"),
        pair("c1", right=True, variant="as it is", **kind)._replace(id="z!as it is"),
        pair("c3", right=False, variant="a year", **kind)._replace(id="z!a year"),
    ]
    (found,) = measured(pairs).numbers()["contradictions"]
    assert (found["n"], found["accepted"]) == (3, pytest.approx(2 / 3, abs=1e-6))
    assert (found["n_of_accepted"], found["accepted_of_accepted"]) == (2, 0.5)
    assert "kappa" not in measured(pairs).numbers()["decisions"][0]


def test_two_people_are_compared_by_windows():
    at = {"source": "clapnq", "language": "ko"}
    pairs = [
        # Two wanted texts of the first person meet window u, one is in it; the second agrees.
        pair("a1", right=True, second=True, window="u", **at),
        pair("a3", right=False, second=True, window="u", wanted="v", **at),
        pair("b1", right=False, second=True, window="v", **at),
        pair("b2", right=False, second=False, window="x", **at),
        pair("c2", right=True, second=False, window="y", **at),
    ]
    first, system = measured(pairs).numbers()["two_people"]
    assert first["decider"] == "the first person"
    assert [first[key] for key in ("n", "tp", "fp", "fn", "tn")] == [4, 1, 1, 1, 1]
    assert [system[key] for key in ("n", "tp", "fp", "fn", "tn")] == [4, 2, 1, 0, 1]
    assert system["kappa"][0] == 0.5  # observed 3/4, by chance 1/2


def test_windows_with_a_part_of_a_sentence_are_counted_by_their_share():
    pairs = [
        pair("a1", right=True, share=1.0, answer=True),
        pair("a2", right=False, share=0.8, answer=True),
        pair("a3", right=False, share=0.79, answer=False),
        pair("b1", right=False, share=0.0, answer=False),
    ]
    assert described(pairs) == {
        "0.5": {"windows": 1, "hold the answer": 0},
        "0.8": {"windows": 1, "hold the answer": 1},
        "1.0": {"windows": 1, "hold the answer": 1},
    }
