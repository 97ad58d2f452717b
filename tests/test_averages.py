"""From values per query to averages: exact sums, micro and macro."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from krag_eval import AveragingMethod, Conventions, Metric, OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput
from krag_eval.scoring.averages import exact_sum
from krag_eval.scoring.metrics import METRICS
from krag_eval.scoring.parts import Summary

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SHARES = st.floats(0, 1)
many = settings(max_examples=300, deadline=None)


def columns(**values):
    """Return a table of columns."""
    return {name: np.array(column) for name, column in values.items()}


def average(name, table, *, key="x", averaging_method=AveragingMethod.BOTH, conventions=None):
    """Return the averages of one metric over all queries of a table."""
    n_queries = len(next(iter(table.values())))
    summary = Summary.of(
        {3: {"retrieved": np.ones(n_queries), **table}},
        np.ones(n_queries, np.bool_),
        keys={name: METRICS[name].key if name in METRICS else key},
        averaging_method=averaging_method,
        conventions=conventions or Conventions(),
    )
    return summary.averages(3)


def exact_mean(values):
    """Return the mean of values, exactly rounded."""
    return average("mine", {"mine": values})["x"]


# Two queries of sample S at k = 3.
TABLE = columns(
    ground_truth=[3, 2],
    retrieved=[3, 3],
    relevant=[3, 1],
    covered=[3, 1],
    precision_base=[3, 3],
    precision=[1.0, 1 / 3],
    recall=[1.0, 0.5],
    f1=[1.0, 0.4],
    ndcg=[1.0, 0.25],
    rank=[1.0, 2.0],
)


# --- exact sums ------------------------------------------------------------------------------


@many
@given(st.lists(FINITE, max_size=30))
def test_a_sum_is_that_of_fractions(values):
    """Whatever their size and sign, nothing is rounded away."""
    assert exact_sum(np.array(values)) == sum(map(Fraction, values), Fraction(0))


@many
@given(st.lists(SHARES, min_size=1, max_size=30))
def test_a_mean_is_the_nearest_float_to_the_true_mean(values):
    """It is rounded once, at the end."""
    assert exact_mean(np.array(values)) == float(sum(map(Fraction, values)) / len(values))


@many
@given(st.lists(SHARES, min_size=1, max_size=30), st.randoms())
def test_a_mean_does_not_depend_on_the_order(values, shuffler):
    """Not by a digit."""
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    assert exact_mean(np.array(shuffled)) == exact_mean(np.array(values))


@many
@given(st.lists(SHARES, max_size=20), st.lists(SHARES, max_size=20))
def test_sums_of_parts_add_up(first, second):
    """So averages over partitions can be joined without a difference."""
    whole = exact_sum(np.array(first + second))
    assert exact_sum(np.array(first)) + exact_sum(np.array(second)) == whole


def test_a_sum_of_many_values_is_exact():
    """200,000 of them, more than fit into one integer of 64 bits."""
    source = random.Random(1)
    values = [source.random() for _ in range(200_000)]
    assert float(exact_sum(np.array(values))) == math.fsum(values)
    assert exact_sum(np.full(200_000, 1 / 3)) == 200_000 * Fraction(1 / 3)


def test_nothing_summed_is_0_and_its_mean_undefined():
    """NaN, not 0."""
    assert exact_sum(np.array([])) == 0
    assert math.isnan(exact_mean(np.array([])))


def test_whole_numbers_can_be_averaged():
    """A metric may count."""
    assert exact_mean(np.array([1, 2])) == 1.5


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_sum_of_something_undefined_is_refused(odd):
    """Anything else would be a number nobody computed."""
    with pytest.raises(InvalidInput) as caught:
        exact_sum(np.array([1.0, odd]))
    assert caught.value.argument == "values"


@pytest.mark.parametrize("odd", [math.inf, -math.inf])
def test_an_infinite_metric_is_refused_by_name(odd):
    """One of a user's own is found by its column."""
    metric = Metric("speed", lambda found, k, _: np.full(found.n_queries, odd), "mean_speed")
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1, metrics=["mrr", metric])
    with pytest.raises(InvalidInput, match="'speed' is infinite") as caught:
        result.averages()
    assert caught.value.argument == "metrics"


# --- averages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "micro", "macro"),
    [
        ("precision", 4 / 6, (1 + 1 / 3) / 2),  # 3 + 1 relevant of 3 + 3
        ("recall", 4 / 5, 3 / 4),  # 3 + 1 covered of 3 + 2
        ("f1", 8 / 11, 12 / 17),  # harmonic means of the rows above
    ],
)
def test_micro_and_macro(name, micro, macro):
    """Micro is a ratio of sums, macro a mean of ratios."""
    both = average(name, TABLE, key="x")
    assert both == {
        f"micro_{name}": pytest.approx(micro, abs=1e-15),
        f"macro_{name}": pytest.approx(macro, abs=1e-15),
    }
    only_micro = average(name, TABLE, key="x", averaging_method=AveragingMethod.MICRO)
    only_macro = average(name, TABLE, key="x", averaging_method=AveragingMethod.MACRO)
    assert list(only_micro) == [f"micro_{name}"]
    assert list(only_macro) == [f"macro_{name}"]
    assert only_micro | only_macro == both


def test_macro_f1_as_a_mean_of_f1():
    """(1 + 2/5)/2."""
    conventions = Conventions(macro_f1="mean_of_f1")
    averages = average("f1", TABLE, key="x", conventions=conventions)
    assert averages["macro_f1"] == pytest.approx(0.7, abs=1e-15)
    assert averages["micro_f1"] == pytest.approx(8 / 11, abs=1e-15)


@pytest.mark.parametrize("method", AveragingMethod)
def test_other_metrics_have_one_key_whatever_the_method(method):
    """They are macro by nature."""
    assert average("ndcg", TABLE, key="ndcg", averaging_method=method) == {"ndcg": 0.625}


def test_a_metric_is_averaged_over_the_queries_where_it_is_defined():
    """NaN says that it is not: (1 + 1/2)/2."""
    assert average("mine", columns(mine=[1.0, math.nan, 0.5]), key="m") == {"m": 0.75}


@pytest.mark.parametrize("method", AveragingMethod)
def test_the_mean_rank_comes_with_the_share_of_queries_it_is_over(method):
    """Ranks 1 and 2 of two queries; with a third that found nothing, of two thirds."""
    assert average("rank", TABLE, key="x", averaging_method=method) == {
        "mean_rank": 1.5,
        "found_rate": 1.0,
    }
    assert average("rank", columns(rank=[1.0, math.nan, 2.0]), key="x") == {
        "mean_rank": 1.5,
        "found_rate": 2 / 3,
    }


def test_the_mean_rank_of_nothing_found_is_undefined():
    """NaN over no query, and the rate says so."""
    averages = average("rank", columns(rank=[math.nan, math.nan]), key="x")
    assert math.isnan(averages["mean_rank"])
    assert averages["found_rate"] == 0.0


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_nothing_over_nothing_is_0(name):
    """Nothing retrieved, no ground truth: 0, with both keys."""
    empty = columns(
        ground_truth=[0], relevant=[0], covered=[0], precision_base=[0],
        precision=[0.0], recall=[0.0], f1=[0.0],
    )  # fmt: skip
    assert average(name, empty, key="x") == {f"micro_{name}": 0.0, f"macro_{name}": 0.0}


@pytest.mark.parametrize("name", ["precision", "recall", "f1", "ndcg", "rank"])
def test_averages_are_python_floats(name):
    """Never numpy's, never rounded."""
    assert {type(value) for value in average(name, TABLE, key="x").values()} == {float}
