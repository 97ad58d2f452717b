"""Digits that no processor and no number of threads can change."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from processes import printed

from krag_eval.core.scoring import digits
from krag_eval.core.scoring.digits import exp2, exp2m1, log2
from krag_eval.intervals.sums import exact_parts, exact_sums

RUN = """
import hashlib, sys, warnings
import numpy as np
from krag_eval import Conventions, OfflineRetrievalEvaluator, RougeMatcher, compare
from krag_eval.core.scoring.digits import exp2, exp2m1, log2

warnings.simplefilter("ignore")
rng = np.random.default_rng(3)
words = np.array([f"word{n}" for n in range(40)])
texts = [" ".join(rng.choice(words, rng.integers(3, 20))) for _ in range(200)]
actual = [[texts[i] for i in rng.choice(200, 3, replace=False)] for _ in range(400)]
predicted = [[texts[i] for i in rng.choice(200, 30)] for _ in range(400)]
by_similarity = Conventions(graded_by="similarity", credit="every")
results = [
    OfflineRetrievalEvaluator(actual, lists, RougeMatcher("rouge1", 0.4), conventions=by_similarity)
    .evaluate([1, 10, None])
    for lists in (predicted, predicted[::-1])
]
for result in results:
    for k in result.k:
        print(hashlib.sha256(result.per_query(k).to_csv().encode()).hexdigest())
    print(result.confidence_intervals(n_resamples=300).to_csv())
metrics = ["ndcg@10", "macro_f1@10"]
compared = compare({"a": results[0], "b": results[1]}, metric=metrics, n_resamples=300)
print(compared.table.to_csv())
print(hashlib.sha256(log2(np.arange(1, 300_000)).tobytes()).hexdigest())
print(hashlib.sha256(exp2(rng.random(9999) * 20).tobytes()).hexdigest())
print(hashlib.sha256(exp2m1(rng.random(9999) / 2.0 ** rng.integers(4, 40)).tobytes()).hexdigest())
"""
# What numpy and its BLAS may find on other machines, and how many threads they may use.
MACHINES = [
    {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},  # numpy 2.4 and later
    {"NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX2 FMA3"},  # before
    {"OPENBLAS_CORETYPE": "Nehalem"},
    {"OPENBLAS_NUM_THREADS": "1"},
    {"OPENBLAS_NUM_THREADS": "3"},
]


@pytest.fixture(scope="module")
def here() -> str:
    return printed(RUN)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda one: " ".join(map("=".join, one.items())))
def test_other_processors_and_threads_print_the_same(here, machine):
    """Every metric of every query, intervals, differences and p-values."""
    assert printed(RUN, **machine) == here


def units_off(compute, arguments, exact, digits=40):
    """Return the most by which numbers are off, in units in the last place of the exact ones."""
    with localcontext() as context:
        context.prec = digits
        return max(
            abs(Decimal(ours) - (true := exact(Decimal(one)))) / Decimal(math.ulp(float(true)))
            for one, ours in zip(arguments, compute(np.array(arguments)).tolist(), strict=True)
        )


RANDOM = random.Random(6)
POWERS = np.random.default_rng(8)


@pytest.mark.parametrize(
    ("compute", "arguments", "exact", "most"),
    [
        (log2, [*range(1, 3000), *RANDOM.sample(range(3000, 1 << 16), 200), (1 << 16) - 1],
         lambda one: one.ln() / Decimal(2).ln(), 0.5),  # correctly rounded
        # Beyond the table, up to the largest cutoff there is.
        (log2, [1 << 16, (1 << 16) + 1, 1 << 53, (1 << 53) - 1,
                *(RANDOM.randint(1 << 16, 1 << RANDOM.randint(17, 53)) for _ in range(300))],
         lambda one: one.ln() / Decimal(2).ln(), 2),
        (exp2, (POWERS.random(500) * 40 - 20).tolist(), lambda one: Decimal(2) ** one, 2),
        # 2**1e-16 - 1 would be 0; 40 digits are left after those that cancel.
        (exp2m1, [*(POWERS.random(300) / 16).tolist(), *(10.0 ** POWERS.uniform(-300, -2, 100))],
         lambda one: Decimal(2) ** one - 1, 3),
    ],
    ids=["logarithms", "large logarithms", "powers", "small powers less 1"],
)  # fmt: skip
def test_numbers_are_within_some_units_in_the_last_place(compute, arguments, exact, most):
    """Compared with 40 decimal digits and more."""
    assert units_off(compute, arguments, exact, 340 if compute is exp2m1 else 40) <= most


def test_powers_of_two_are_exact_both_ways():
    """On both sides of the end of the table, and as far as floats go; of nothing, nothing."""
    assert log2(np.array([1 << n for n in range(54)])).tolist() == list(range(54))
    assert exp2(np.arange(-1000.0, 1024.0)).tolist() == [2.0**n for n in range(-1000, 1024)]
    assert log2(np.empty(0, np.int64)).shape == (0,)


def test_the_order_of_asking_does_not_matter(monkeypatch):
    """The table grows in steps, and each step computes the same."""
    monkeypatch.setattr(digits, "_table", np.zeros(2))
    at_once = log2(np.arange(1, 5000))
    monkeypatch.setattr(digits, "_table", np.zeros(2))
    for largest in (3, 2, 77, 78, 1000, 4999):
        log2(np.array([largest]))
    assert log2(np.arange(1, 5000)).tobytes() == at_once.tobytes()


def test_other_powers_less_1_keep_their_digits():
    """From 1/16 on and of whole numbers, also beside small ones."""
    exponents = np.concatenate([1 / 16 + np.random.default_rng(8).random(500) * 9, np.arange(99.0)])
    beside = exp2m1(np.append(exponents, 1e-16))
    assert beside[:-1].tobytes() == exp2m1(exponents).tobytes() == (exp2(exponents) - 1).tobytes()


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300, 3e-12])
def test_sums_are_those_of_the_columns_rounded_to_52_bits(scale):
    """Each part sums without rounding, so only their own rounding and one addition are left."""
    rng = np.random.default_rng(9)
    columns = rng.random((300, 3)) * scale * [1.0, 1e-9, 7.0]
    columns[:, 2] *= rng.random(300) < 0.5
    times = rng.integers(0, 4, (5, 300)).astype(np.float64)
    ours = exact_sums(times, exact_parts(columns))
    for line in range(5):
        for column in range(3):
            exact = sum(
                int(n) * Fraction(value)
                for n, value in zip(times[line], columns[:, column].tolist(), strict=True)
            )
            assert ours[line, column] == pytest.approx(float(exact), rel=1e-15)


def test_parts_of_counts_are_the_counts():
    """Whole numbers below 2**26 lose nothing, and nothing is left over; so do no rows, and 0."""
    counts = np.array([[0.0, 5.0], [3.0, 2.0**25 + 1]])
    leading, trailing = exact_parts(counts)
    assert leading.tolist() == counts.tolist()
    assert not trailing.any()
    assert exact_parts(np.empty((0, 2)))[0].shape == (0, 2)
    assert exact_sums(np.ones((1, 2)), exact_parts(np.zeros((2, 1)))).tolist() == [[0.0]]
