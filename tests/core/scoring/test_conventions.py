"""The disputed points: what each field changes, what it leaves alone, and how it is spelled."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from reference import Item, Query, many_queries, relevance_of

from krag_eval import METRICS, Conventions, OfflineRetrievalEvaluator
from krag_eval.core import parse_metric

EVERY = [
    Conventions(**dict(zip(Conventions.allowed(), chosen, strict=True)))
    for chosen in itertools.product(*Conventions.allowed().values())
]


# --- one field at a time ---------------------------------------------------------------------


# Discount of place 2, and gains of similarities 0.3, 0.5 and 0.8.
S = 1 / math.log2(3)
LOW, HALF, HIGH = 2**0.3 - 1, 2**0.5 - 1, 2**0.8 - 1
BY_LIKENESS = "graded_by=similarity"


@pytest.mark.parametrize(
    ("name", "items", "n_retrieved", "expected"),
    [
        # One relevant of two retrieved: 1/2 by what came back, 1/5 by k; without k as before.
        ("precision@5", [Item({1: 1.0})], 2, {"default": 1 / 2, "precision_at=k": 1 / 5}),
        ("precision@all", [Item({1: 1.0})], 2, {"precision_at=k": 1 / 2}),
        # Grade 1 at rank 1, grade 3 at rank 2: gains 1 and 7, or 1 and 3; ideally exchanged.
        (
            "ndcg@all", [Item({1: 1.0}, 1.0), Item({2: 1.0}, 3.0)], 2,
            {"default": (1 + 7 * S) / (7 + S), "gain=linear": (1 + 3 * S) / (3 + S)},
        ),
        # One of two items found with 0.8: by grade it gains 1, and ideally both do.
        (
            "ndcg@all", [Item({1: 0.8}), Item({})], 1,
            {"default": 1 / (1 + S), BY_LIKENESS: HIGH / (1 + S)},
        ),
        # One document covers items with 0.5 and 0.8, a third is missing: 0.8 takes place 1, 0.5
        # place 2. Under other ideals the document gains once, at rank 1, and so it is best; with
        # every alternative in the ideal the missing item stands first; cut at one document.
        (
            "ndcg@all", [Item({1: 0.5}), Item({1: 0.8}), Item({})], 1,
            {
                BY_LIKENESS: (HIGH + HALF * S) / (1 + S + 1 / 2),
                f"{BY_LIKENESS},ideal=retrieved": 1.0,
                f"{BY_LIKENESS},ideal=alternatives": HIGH,
            },
        ),
        # krag with ROUGE: 0.3, which is no match, gains by its likeness too, before 0.8.
        (
            "ndcg@all", [Item({1: 0.3, 2: 0.8})], 3,
            {f"{BY_LIKENESS},credit=every,ideal=retrieved": (LOW + HIGH * S) / (HIGH + LOW * S)},
        ),
        # One of two items, at rank 2: the ideal of what was retrieved forgets the other.
        (
            "ndcg@all", [Item({2: 1.0}), Item({})], 3,
            {"default": S / (1 + S), "ideal=retrieved": S},
        ),
        # One of two alternatives: AutoRAG's ideal has both, but no more than came back.
        (
            "ndcg@all", [Item({1: 1.0}, n_alternatives=2)], 2,
            {"default": 1.0, "ideal=alternatives": 1 / (1 + S)},
        ),
        ("ndcg@all", [Item({1: 1.0}, n_alternatives=3)], 1, {"ideal=alternatives": 1.0}),
        # One item retrieved three times: AP (1/1 + 2/2 + 3/3) / 1, DCG 1 + 0.6309 + 0.5.
        ("average_precision@all", [Item({1: 1.0, 2: 1.0, 3: 1.0})], 3,
         {"default": 1.0, "credit=every": 3.0}),
        ("ndcg@all", [Item({1: 1.0, 2: 1.0, 3: 1.0})], 3,
         {"default": 1.0, "credit=every": 1 + S + 1 / 2}),
        # Items first at ranks 2 and 4, a third missing: (1/2 + 1/4 + 0) / 3 per item.
        (
            "reciprocal_rank@all", [Item({2: 1.0, 3: 1.0}), Item({4: 1.0}), Item({})], 4,
            {"default": 1 / 2, "reciprocal_rank=per_item": 1 / 4},
        ),
        # Item 1 at ranks 1 and 3, item 2 missing: (1/1) / 2, or ((1/1 + 2/3) / 2 + 0) / 2.
        (
            "average_precision@all", [Item({1: 1.0, 3: 1.0}), Item({})], 4,
            {"default": 1 / 2, "average_precision=per_item": 5 / 12},
        ),
    ],
)  # fmt: skip
def test_values_of_one_query_by_hand(name, items, n_retrieved, expected):
    """Under each convention, worked out from the definitions."""
    metric, k = parse_metric(name)
    relevance = relevance_of([Query(items, n_retrieved)])
    for printed, wanted in expected.items():
        found = METRICS[metric].values(relevance, k, Conventions.parse(printed))
        assert found == pytest.approx([wanted], abs=1e-12), printed


def test_precision_at_k_holds_for_the_micro_average_too():
    """One relevant document each in lists of 2 and 1, at 4: 2/3 by what came back, 2/8 by k."""
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["a", "x"], ["b"]])
    assert evaluator.calculate_precision(k=4)["micro_precision"] == 2 / 3
    by_k = evaluator.with_conventions(Conventions(precision_at="k"))
    # Per query 1/4 and 1/4.
    assert by_k.calculate_precision(k=4) == {"micro_precision": 2 / 8, "macro_precision": 1 / 4}


def test_macro_f1_is_a_mean_of_means_or_of_f1():
    """Precision 1 and 1/3, recall 1 and 1/2.

    Of means: P = 2/3, R = 3/4, so 2 · (1/2) / (17/12) = 12/17. Mean of F1: 1 and
    2 · (1/6) / (5/6) = 2/5, so 7/10. The micro average does not change.
    """
    evaluator = OfflineRetrievalEvaluator([["a"], ["b", "c"]], [["a"], ["x", "b", "y"]])
    of_means = evaluator.calculate_f1_score()
    mean_of_f1 = evaluator.with_conventions(Conventions(macro_f1="mean_of_f1")).calculate_f1_score()
    assert of_means["macro_f1"] == pytest.approx(12 / 17, abs=1e-15)
    assert mean_of_f1["macro_f1"] == pytest.approx(7 / 10, abs=1e-15)
    assert mean_of_f1["micro_f1"] == of_means["micro_f1"]


CHANGES = {
    "precision_at": {"precision", "f1"},
    "macro_f1": set(),  # settled where queries are averaged
    "gain": {"ndcg"},
    "graded_by": {"ndcg"},
    "ideal": {"ndcg"},
    "credit": {"average_precision", "ndcg"},
    "reciprocal_rank": {"reciprocal_rank"},
    "average_precision": {"average_precision"},
}


def test_a_field_changes_what_it_should_and_nothing_else():
    """On 100 queries with overlaps and grades, exactly the metrics listed differ somewhere."""
    relevance = relevance_of(many_queries(100))
    # The others ask no convention.
    names = [
        name
        for name, one in METRICS.items()
        if not (one.needs_words or one.needs_judged or one.needs_aspects or one.needs_list)
    ]

    def values(conventions):
        return {name: METRICS[name].values(relevance, 4, conventions) for name in names}

    before = values(Conventions())
    for field, allowed in Conventions.allowed().items():
        for other in allowed[1:]:
            after = values(Conventions(**{field: other}))
            changed = {n for n in names if not np.array_equal(before[n], after[n], equal_nan=True)}
            assert changed == CHANGES[field], (field, other)


# --- spelling --------------------------------------------------------------------------------


def test_conventions_print_only_what_differs():
    """In the order of the fields, whatever order they were given in, and spaces are forgiven."""
    assert str(Conventions()) == "default"
    assert str(Conventions(credit="every", gain="linear")) == "gain=linear,credit=every"
    assert Conventions.parse("gain=linear, credit=every") == Conventions.parse(
        "credit=every,gain=linear"
    )


def test_all_384_combinations_read_back_and_print_differently():
    """Printing loses nothing."""
    assert [Conventions.parse(str(conventions)) for conventions in EVERY] == EVERY
    assert len(set(map(str, EVERY))) == len(EVERY) == 384


@pytest.mark.parametrize(
    ("preset", "made", "printed"),
    [
        ("default", Conventions(), "default"),
        ("trec", Conventions.trec(), "precision_at=k,macro_f1=mean_of_f1,gain=linear"),
        ("krag", Conventions.krag(), "ideal=retrieved"),
        (
            "autorag",
            Conventions.autorag(),
            "macro_f1=mean_of_f1,ideal=alternatives,credit=every,reciprocal_rank=per_item,"
            "average_precision=per_item",
        ),
    ],
)
def test_presets_are_what_the_documentation_says(preset, made, printed):
    """Each has its name and its method, and prints the fields in which it differs."""
    assert Conventions.presets()[preset] == Conventions.parse(preset) == made
    assert str(made) == printed


def test_conventions_are_frozen_and_hashable():
    """They stand in signatures and as keys, so they cannot change."""
    conventions = Conventions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        conventions.gain = "linear"
    assert len({Conventions(), Conventions(), Conventions.trec()}) == 2


# --- choices ---------------------------------------------------------------------------------
