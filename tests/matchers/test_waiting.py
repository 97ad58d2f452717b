"""Long texts: a warning before the comparison begins, only if it takes minutes."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from krag_eval import (
    AnyOf,
    FuzzyMatcher,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    RougeMatcher,
    evaluate_file,
)
from krag_eval.core import QuerySet, Units
from krag_eval.errors import Advice
from krag_eval.matchers import rouge
from krag_eval.matchers.waiting import Comparison, check_waits


def comparison(per_pair):
    """Return a comparison that takes so many seconds per pair of letters."""
    return Comparison(
        name="letters",
        of="characters",
        seconds=lambda actual, predicted: float(actual.sum() * predicted.sum() * per_pair),
        at_most=per_pair,
        advice=Advice("Use fewer"),
    )


def announced(actual, predicted, per_pair, max_cells=10**13):
    """Return what is said of these texts."""
    units = Units.of_texts(QuerySet.from_lists(actual, predicted))
    with warnings.catch_warnings(record=True, action="always") as caught:
        check_waits(units, np.array([*map(len, units.values)]), comparison(per_pair), max_cells)
    return [str(warning.message) for warning in caught]


def test_the_wait_is_that_of_all_queries_with_long_texts():
    """Of 2 * 3 and 4 * 5 pairs at 3 seconds each: 78 seconds, though no query takes 60."""
    actual, predicted = [["ab"], ["cdef"], ["x"]], [["abc"], ["abcde"], []]
    assert announced(actual, predicted, 3.0) == [
        "letters compares every character with every other, and 2 of 3 queries have long texts, up "
        "to 4 characters of ground truth and 5 predicted ones in query 1 (counted from 0). That "
        "takes about 1 minute of one core. Use fewer."
    ]
    assert announced(actual, predicted, 2.0) == []


@pytest.mark.parametrize(
    ("actual", "predicted", "per_pair", "told"),
    [
        # Each query takes less than a tenth of a second, however many there are; or more.
        ([["a"]] * 2_000, [["b"]] * 2_000, 0.09, []),
        ([["a"]] * 2_000, [["b"]] * 2_000, 0.11, ["up to 1 characters of ground truth and 1 "]),
        # A text that is repeated is compared once: 10 seconds, not 100.
        ([["a"]], [["b"] * 10], 10.0, []),
        ([["a"]], [[*"bcdefgh"]], 10.0, ["up to 1 characters of ground truth and 7 predicted"]),
        # Alternatives are compared too: three letters against one, 61.5 seconds.
        ([[AnyOf(["a", "bc"])]], [["d"]], 20.5, ["up to 3 characters of ground truth and 1 "]),
    ],
)
def test_what_is_compared_counts(actual, predicted, per_pair, told):
    said = announced(actual, predicted, per_pair)
    assert [part in one for part, one in zip(told, said, strict=True)] == [True] * len(told)


def test_it_is_said_before_the_work_begins(monkeypatch):
    """So that the work can be stopped: here the warning is an error, and nothing was compared."""
    long = Comparison("rougeL", "tokens", lambda a, p: 1e5, 1e5, Advice("Wait"))
    monkeypatch.setattr(rouge, "_SUBSEQUENCES", long)
    monkeypatch.setattr(rouge, "_subsequences", None)
    evaluator = OfflineRetrievalEvaluator([["a b"]], [["b c"]], matcher=RougeMatcher("rougeL"))
    told = "about 28 hours of one core"
    with pytest.warns(KragEvalWarning, match=told), pytest.raises(TypeError):
        evaluator.calculate_recall()
    warnings.simplefilter("error")
    for ask in (evaluator.calculate_mrr, lambda: RougeMatcher("rougeL").similarity("a", "b")):
        with pytest.raises(KragEvalWarning, match=told):
            ask()


# --- pairs that are too long -------------------------------------------------------------------


def test_what_is_never_compared_is_never_too_long():
    """Long texts of different queries are no pair, and blank ones are compared with none."""
    assert announced([["abcdef"], ["a"]], [["a"], ["abcdef"]], 1e-9, 10) == []
    assert announced([[" " * 100], ["a"]], [["abc"], [" " * 100]], 1e-9, 10) == []


def test_the_longest_pair_is_named_by_query_item_and_rank():
    """By hand: in query 1 the item 2, its second alternative of 4, and rank 3 of 5 letters."""
    actual = [["abc"], ["a", "bc", AnyOf(["x", "abcd"])]]
    predicted = [["abcdef"], ["a", "b", "abcde"]]
    with pytest.raises(ValueError, match=r"^actual_docs\[1\]\[2\] and .* rank 3") as caught:
        announced(actual, predicted, 1e-9, 19)
    parts = "have 4 and 5 characters", "max_cells=19", "Use fewer."
    assert all(part in str(caught.value) for part in parts)
    assert announced(actual, predicted, 1e-9, 20) == []


def test_partial_ratio_counts_the_stretches():
    """1,000 characters along as many: 4e-11 * 1,000 ** 3 + 1e-12 * 1,000 ** 3 s, 4.1e8 cells."""
    texts = ["a" * 1_000, "b" * 1_000]
    FuzzyMatcher("partial_ratio", max_cells=411_000_000).announce(Units.of_pair(texts))
    with pytest.raises(ValueError, match=r"4\.1e\+08 cells"):
        FuzzyMatcher("partial_ratio", max_cells=409_000_000).announce(Units.of_pair(texts))


@pytest.mark.parametrize(
    ("matcher", "bounded"),
    [
        (RougeMatcher("rougeL"), RougeMatcher("rougeL", max_cells=np.int64(12))),
        (FuzzyMatcher(), FuzzyMatcher(max_cells=35)),
        (RougeMatcher("rouge1"), RougeMatcher("rouge1", max_cells=1)),  # it has no such table
    ],
)
def test_the_bound_changes_no_number_and_no_signature(matcher, bounded):
    """Exactly as many cells are allowed."""
    assert bounded.similarity("a b c", "a b c d") == matcher.similarity("a b c", "a b c d")
    assert bounded.signature == matcher.signature


def test_two_texts_of_ten_megabytes_are_refused_as_it_comes():
    """By edit distance, which would take an hour and more: 1e14 cells."""
    with pytest.raises(ValueError, match="10,000,000 and 10,000,000 characters"):
        FuzzyMatcher().announce(Units.of_pair(["a" * 10**7, "b" * 10**7]))
    with warnings.catch_warnings(action="ignore"):
        FuzzyMatcher().announce(Units.of_pair(["a" * 1_000_000, "b" * 1_000_000]))


def test_in_a_file_the_place_is_named(tmp_path):
    """The line of the query."""
    path = tmp_path / "run.jsonl"
    rows = [{"actual": ["x"], "predicted": ["x"]}, {"actual": ["abc"], "predicted": ["a", "abcd"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=r"run\.jsonl:2: actual.*rank 2"):
        evaluate_file(path, 1, matcher=FuzzyMatcher(max_cells=11))


# --- interrupted ---


@pytest.mark.skipif(os.name == "nt", reason="Windows has another way of interrupting a process")
@pytest.mark.parametrize("options", [[], ["--chunk-size", "1"]])
def test_the_shell_is_interrupted_between_ground_truth_texts(tmp_path, options):
    """In memory and in chunks: 40 pairs of a second or two each, announced first, end with 130."""
    rng = np.random.default_rng(7)
    texts = ["".join(map(chr, rng.integers(0xAC00, 0xB200, 130_000))) for _ in range(41)]
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"actual": texts[1:], "predicted": texts[:1]}), "utf-8")
    command = [sys.executable, "-m", "krag_eval", "evaluate", str(path), "--matcher", "fuzzy"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert "fuzzy ratio compares every character" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
