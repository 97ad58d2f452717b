"""From values per query to averages: exact sums, micro and macro."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from trials import trials

from krag_eval import METRICS, AveragingMethod, Conventions
from krag_eval.core.scoring.averages import exact_sum
from krag_eval.core.scoring.parts import Summary

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SHARES = st.floats(0, 1)
many = settings(max_examples=trials(300))


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


@pytest.mark.parametrize("method", AveragingMethod)
def test_other_metrics_have_one_key_whatever_the_method(method):
    """They are macro by nature."""
    assert average("ndcg", TABLE, key="ndcg", averaging_method=method) == {"ndcg": 0.625}


def test_a_metric_is_averaged_over_the_queries_where_it_is_defined():
    """NaN says that it is not: (1 + 1/2)/2; whole numbers count as well."""
    assert average("mine", columns(mine=[1.0, math.nan, 0.5]), key="m") == {"m": 0.75}
    assert average("mine", columns(mine=[1, 2]), key="m") == {"m": 1.5}


@pytest.mark.parametrize(
    ("ranks", "mean", "found"),
    [([1.0, 2.0], 1.5, 1.0), ([1.0, math.nan, 2.0], 1.5, 2 / 3), ([math.nan] * 2, math.nan, 0.0)],
)
@pytest.mark.parametrize("method", AveragingMethod)
def test_the_mean_rank_comes_with_the_share_of_queries_it_is_over(method, ranks, mean, found):
    """With a third query that found nothing, of two thirds; undefined over none."""
    averages = average("rank", columns(rank=ranks), averaging_method=method)
    assert averages == pytest.approx({"mean_rank": mean, "found_rate": found}, nan_ok=True)


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_nothing_over_nothing_is_0(name):
    """Nothing retrieved, no ground truth: 0, with both keys."""
    empty = columns(
        ground_truth=[0], relevant=[0], covered=[0], precision_base=[0],
        precision=[0.0], recall=[0.0], f1=[0.0],
    )  # fmt: skip
    assert average(name, empty, key="x") == {f"micro_{name}": 0.0, f"macro_{name}": 0.0}
