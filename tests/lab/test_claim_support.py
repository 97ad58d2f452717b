"""Judgements of claims against chunks or answers: the scores, and a result as any other."""

import math
import random

import numpy as np
import pandas as pd
import pytest
from results_made import read_back

from krag_eval import compare, evaluate_support
from krag_eval.errors import InvalidInput

# Claims in rows, chunks in columns. Best chunks: 1, ½, 0, 1; best claims: 1, ½, 1.
MATRIX = [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0, 1]]
IMPORTANCE = ["vital", "vital", "okay", "okay"]


def random_matrices(n, source, p=0.4):
    """Return judgements of 1, ½ and 0 at random: four claims, five chunks."""
    weights = [p, 0.2, 0.8 - p]
    return [[source.choices([1, 0.5, 0], weights, k=5) for _ in range(4)] for _ in range(n)]


def test_scores_by_hand():
    """Each from the best chunks and the best claims written above."""
    result = evaluate_support(MATRIX, importance=IMPORTANCE)
    assert result.averages() == {
        "strict_all": 2 / 4,
        "lenient_all": 2.5 / 4,
        "strict_vital": 1 / 2,
        "vital_rate": 1.0,
        "lenient_vital": 1.5 / 2,
        "claim_recall": 2.5 / 4,
        "context_precision": pytest.approx(2.5 / 3),
    }
    row = result.per_query().iloc[0]
    counts = row[["ground_truth", "retrieved", "relevant", "covered"]].tolist()
    assert counts == [4, 3, 2, 2]


def test_scores_as_the_two_tools_compute_them():
    """AutoNuggetizer's loop over nuggets and RAGChecker's maxima, written anew."""
    source = random.Random(5)
    matrices = random_matrices(30, source)
    importance = [source.choices(["vital", "okay"], k=4) for _ in matrices]
    table = evaluate_support(matrices, importance=importance).per_query()
    for place, (matrix, words) in enumerate(zip(matrices, importance, strict=True)):
        best = [max(row) for row in matrix]
        points = {"strict": {1: 1.0}, "lenient": {1: 1.0, 0.5: 0.5}}
        for name, worth in points.items():
            of_all = [worth.get(one, 0.0) for one in best]
            vital = [one for one, word in zip(of_all, words, strict=True) if word == "vital"]
            expected = [sum(of_all) / 4, sum(vital) / len(vital) if vital else math.nan]
            found = table[[f"{name}_all", f"{name}_vital"]].iloc[place].tolist()
            assert found == pytest.approx(expected, nan_ok=True)
        entailed = np.array(matrix)
        assert table["claim_recall"].iloc[place] == pytest.approx(entailed.max(axis=1).mean())
        assert table["context_precision"].iloc[place] == pytest.approx(entailed.max(axis=0).mean())


def test_words_of_the_tools_and_other_forms_say_the_same():
    """Words, in any case, booleans, arrays and tables."""
    numbers = [[1, 0], [0.5, 0], [0, 1]]
    words = [["support", "not_support"], ["Partial_Support", "Contradiction"],
             ["neutral", "Entailment"]]  # fmt: skip
    forms = [words, np.array(numbers), pd.DataFrame(numbers), tuple(map(tuple, numbers))]
    expected = evaluate_support(numbers).to_dict()
    for form in forms:
        assert evaluate_support(form).to_dict() == expected
        assert evaluate_support([form]).to_dict() == expected
    assert evaluate_support([[True], [False]]).averages()["strict_all"] == 0.5


def test_other_numbers_are_partial_support():
    """A probability of 0.9 is no full support, counts ½ if lenient, and itself in the means."""
    averages = evaluate_support([[0.9], [1.0]]).averages()
    assert averages["strict_all"] == 0.5
    assert averages["lenient_all"] == 0.75
    assert averages["claim_recall"] == pytest.approx(0.95)


def test_cutoffs_look_at_the_first_chunks():
    """The fourth claim is supported by the third chunk alone."""
    result = evaluate_support(MATRIX, k=[1, 2, 5])
    assert [result.averages(k)["strict_all"] for k in (1, 2, 5)] == [0.25, 0.25, 0.5]
    assert [result.averages(k)["context_precision"] for k in (1, 2)] == [1.0, 0.75]


def test_no_chunks_support_nothing():
    """Zero everywhere: what was wanted did not come back."""
    averages = evaluate_support([[[], []], [[1], [1]]]).averages()
    assert set(averages.values()) == {0.5}


def test_without_vital_claims_the_vital_scores_are_undefined():
    """The means are over the other questions, and a share says how many those are."""
    result = evaluate_support([[[1]], [[0]]], importance=[["vital"], [" Okay"]])
    averages = result.averages()
    assert (averages["strict_vital"], averages["vital_rate"]) == (1.0, 0.5)
    assert math.isnan(result.per_query()["lenient_vital"].iloc[1])
    assert "strict_vital" not in evaluate_support([[[1]], [[0]]]).averages()


def test_the_judge_is_part_of_the_signature():
    """Results of two judges are not compared, nor those with other vital claims."""
    matrices = random_matrices(12, random.Random(1))
    one, other = (evaluate_support(matrices, judge=name) for name in ("m-1", "m-2"))
    assert "judge=m-1" in one.signature
    with pytest.raises(InvalidInput):
        compare(one, other, metric="strict_all@all")
    vital, okay = (evaluate_support(matrices, importance=[[w] * 4] * 12) for w in ("vital", "okay"))
    with pytest.raises(InvalidInput):
        compare(vital, okay, metric="strict_all@all")


def test_a_result_as_any_other(tmp_path):
    """Saved, compared, sliced, drawn and reported."""
    source = random.Random(3)
    how = {"k": [2, None], "judge": "m-1", "queries": [f"q{i}" for i in range(60)],
           "tags": {"kind": ["a", "b"] * 30}}  # fmt: skip
    low, high = (evaluate_support(random_matrices(60, source, p), **how) for p in (0.1, 0.6))
    read = read_back(high, tmp_path)
    assert read == high
    assert read.definitions == high.definitions
    (difference,) = compare(low, high, metric="claim_recall@all").differences
    assert difference.ci_low > 0
    assert high.check({"strict_all@2": 0.1}, baseline=low, metric="context_precision@2").passed
    assert set(high.by("kind", metrics="lenient_all").table["slice"]) == {"a", "b"}
    assert high.confidence_intervals(n_resamples=200).shape[0] == 8
    high.report(tmp_path / "page.html", language="ko", intervals=False)
    assert "주장 재현율" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("matrix", "importance", "place"),
    [([[1, 0], [2, 0]], None, (None, "[1][0]")), ([[[1, 0]], [[1, 2]]], None, (1, "[0][1]")),
     ([[1]], ["high"], (None, "[0]")), ([[[1]], [[1]]], [["okay"], ["high"]], (1, "[0]"))],
)  # fmt: skip
def test_the_place_of_a_judgement_is_named(matrix, importance, place):
    """Of one matrix by claim and chunk, of several by question too."""
    with pytest.raises(InvalidInput) as caught:
        evaluate_support(matrix, importance=importance)
    assert (caught.value.query, caught.value.within) == place
