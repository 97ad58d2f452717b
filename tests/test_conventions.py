"""The disputed points: what each field changes, what it leaves alone, and how it is spelled."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import reference
from reference import Item, Query, many_queries, relevance_of

from krag_eval import AveragingMethod, Conventions, MatchingCriteria, OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.scoring.metrics import METRICS

EVERY = [
    Conventions(**dict(zip(Conventions.allowed(), chosen, strict=True)))
    for chosen in itertools.product(*Conventions.allowed().values())
]


def value(name, query, conventions, k=None):
    """Return a metric's value for one query."""
    return METRICS[name].values(relevance_of([query]), k, conventions)[0]


# --- one field at a time ---------------------------------------------------------------------


def test_precision_at_k_divides_by_k():
    """One relevant of two retrieved, at 5: 1/2 by what came back, 1/5 by k."""
    query = Query([Item({1: 1.0})], 2)
    assert value("precision", query, Conventions(), 5) == 1 / 2
    assert value("precision", query, Conventions(precision_at="k"), 5) == 1 / 5


def test_precision_at_k_without_a_cutoff_divides_by_what_came_back():
    """There is no k to divide by."""
    assert value("precision", Query([Item({1: 1.0})], 2), Conventions(precision_at="k")) == 1 / 2


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


def test_gain_is_exponential_or_linear():
    """Grade 1 at rank 1, grade 3 at rank 2.

    Exponential gains are 1 and 7, linear ones 1 and 3; the ideal list has them exchanged.
    """
    query = Query([Item({1: 1.0}, 1.0), Item({2: 1.0}, 3.0)], 2)
    second = 1 / math.log2(3)
    exponential = (1 + 7 * second) / (7 + 1 * second)
    linear = (1 + 3 * second) / (3 + 1 * second)
    assert value("ndcg", query, Conventions()) == pytest.approx(exponential, abs=1e-12)
    assert value("ndcg", query, Conventions(gain="linear")) == pytest.approx(linear, abs=1e-12)


def test_graded_by_similarity_gains_by_the_similarity_of_the_match():
    """One of two items found, at rank 1, with similarity 0.8; the other is not found.

    By grade: 1 / (1 + 1/log2(3)). By similarity the item gains 2**0.8 - 1, and the ideal list is
    the same: both items with a similarity, and so a gain, of 1.
    """
    query = Query([Item({1: 0.8}), Item({})], 1)
    second = 1 / math.log2(3)
    gain = 2**0.8 - 1
    assert value("ndcg", query, Conventions()) == pytest.approx(1 / (1 + second), abs=1e-12)
    by_similarity = Conventions(graded_by="similarity")
    expected = gain / (1 + second)
    assert value("ndcg", query, by_similarity) == pytest.approx(expected, abs=1e-12)


def test_graded_by_similarity_every_item_gains_by_its_own():
    """One document at rank 1 covers two items with 0.5 and 0.8; a third item is missing.

    0.8 takes place 1 and 0.5 place 2; the ideal list has three gains of 1.
    """
    query = Query([Item({1: 0.5}), Item({1: 0.8}), Item({})], 1)
    second = 1 / math.log2(3)
    expected = (2**0.8 - 1 + (2**0.5 - 1) * second) / (1 + second + 1 / 2)
    by_similarity = Conventions(graded_by="similarity")
    assert value("ndcg", query, by_similarity) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ideal", ["retrieved", "alternatives"])
def test_graded_by_similarity_a_document_gains_by_its_best_under_other_ideals(ideal):
    """The same query: the document gains 2**0.8 - 1 once, at rank 1, and so it is best."""
    query = Query([Item({1: 0.5}), Item({1: 0.8}), Item({})], 1)
    gain = 2**0.8 - 1
    # With every alternative in the ideal, the missing item stands first; cut at one document.
    expected = 1.0 if ideal == "retrieved" else gain
    conventions = Conventions(graded_by="similarity", ideal=ideal)
    assert value("ndcg", query, conventions) == pytest.approx(expected, abs=1e-12)


def test_graded_by_similarity_every_document_gains_when_every_one_is_credited():
    """Similarities 0.3 (below the threshold) and 0.8, ideal = the same list sorted.

    That is krag's nDCG with ROUGE: unmatched documents gain by their likeness too.
    """
    query = Query([Item({1: 0.3, 2: 0.8})], 3)
    low, high, second = 2**0.3 - 1, 2**0.8 - 1, 1 / math.log2(3)
    expected = (low + high * second) / (high + low * second)
    conventions = Conventions(graded_by="similarity", credit="every", ideal="retrieved")
    assert value("ndcg", query, conventions) == pytest.approx(expected, abs=1e-12)


def test_ideal_of_the_retrieved_forgets_what_is_missing():
    """One of two items, at rank 2: 0.6309 / 1.6309 by the ground truth, 0.6309 / 1 otherwise."""
    query = Query([Item({2: 1.0}), Item({})], 3)
    second = 1 / math.log2(3)
    assert value("ndcg", query, Conventions()) == pytest.approx(second / (1 + second), abs=1e-12)
    retrieved = Conventions(ideal="retrieved")
    assert value("ndcg", query, retrieved) == pytest.approx(second, abs=1e-12)


def test_ideal_of_the_alternatives_wants_every_one_of_them():
    """One item of two alternatives, the first retrieved at rank 1, of two documents.

    The ground truth is one item, so 1. With both alternatives in the ideal: 1 / (1 + 1/log2(3)).
    """
    query = Query([Item({1: 1.0}, n_alternatives=2)], 2)
    assert value("ndcg", query, Conventions()) == 1.0
    expected = 1 / (1 + 1 / math.log2(3))
    alternatives = Conventions(ideal="alternatives")
    assert value("ndcg", query, alternatives) == pytest.approx(expected, abs=1e-12)


def test_ideal_of_the_alternatives_is_no_longer_than_what_came_back():
    """AutoRAG's ideal has min(alternatives, retrieved) entries: here one, so 1."""
    query = Query([Item({1: 1.0}, n_alternatives=3)], 1)
    assert value("ndcg", query, Conventions(ideal="alternatives")) == 1.0


def test_credit_every_counts_each_repeat():
    """One item retrieved three times: AP (1/1 + 2/2 + 3/3) / 1 = 3, nDCG 1 + 0.6309 + 0.5."""
    query = Query([Item({1: 1.0, 2: 1.0, 3: 1.0})], 3)
    every = Conventions(credit="every")
    assert value("average_precision", query, Conventions()) == 1.0
    assert value("average_precision", query, every) == 3.0
    assert value("ndcg", query, Conventions()) == 1.0
    assert value("ndcg", query, every) == pytest.approx(1 + 1 / math.log2(3) + 1 / 2, abs=1e-12)


def test_reciprocal_rank_per_item_is_a_mean_over_items():
    """Items first at ranks 2 and 4, a third missing: 1/2 by default, (1/2 + 1/4 + 0) / 3 here."""
    query = Query([Item({2: 1.0, 3: 1.0}), Item({4: 1.0}), Item({})], 4)
    assert value("reciprocal_rank", query, Conventions()) == 1 / 2
    per_item = Conventions(reciprocal_rank="per_item")
    assert value("reciprocal_rank", query, per_item) == pytest.approx(1 / 4, abs=1e-15)


def test_average_precision_per_item_looks_at_the_items_own_hits():
    """Item 1 at ranks 1 and 3, item 2 missing.

    By default (1/1) / 2 = 1/2; per item ((1/1 + 2/3) / 2 + 0) / 2 = 5/12.
    """
    query = Query([Item({1: 1.0, 3: 1.0}), Item({})], 4)
    assert value("average_precision", query, Conventions()) == 1 / 2
    per_item = Conventions(average_precision="per_item")
    assert value("average_precision", query, per_item) == pytest.approx(5 / 12, abs=1e-15)


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


def test_every_field_says_what_it_changes():
    """A field that is added has to be placed here."""
    assert list(CHANGES) == list(Conventions.allowed())


@pytest.mark.parametrize(
    ("field", "setting"),
    [(field, other) for field, all_ in Conventions.allowed().items() for other in all_[1:]],
)
def test_a_field_changes_what_it_should_and_nothing_else(field, setting):
    """On 100 queries with overlaps and grades, exactly the metrics listed differ somewhere."""
    relevance = relevance_of(many_queries(100))
    flipped = Conventions(**{field: setting})
    changed = {
        name
        for name, metric in METRICS.items()
        # These ask no convention.
        if not (metric.needs_words or metric.needs_judged or metric.needs_aspects)
        and not np.array_equal(
            metric.values(relevance, 4, Conventions()),
            metric.values(relevance, 4, flipped),
            equal_nan=True,
        )
    }
    assert changed == CHANGES[field]


@pytest.mark.parametrize("conventions", Conventions.presets().values(), ids=Conventions.presets())
def test_the_averages_follow_the_plain_definitions_under_each_preset(conventions):
    """One evaluation of 40 random queries, each preset, against loops."""
    queries = many_queries(40, seed=3, graded=False)
    queries = [query for query in queries if query.items]
    table, actual, predicted = {}, [], []
    for number, query in enumerate(queries):
        actual.append([])
        predicted.append([f"p{number}.{rank}" for rank in range(1, query.n_retrieved + 1)])
        for position, item in enumerate(query.items):
            actual[-1].append(f"a{number}.{position}")
            table |= {
                (f"a{number}.{position}", f"p{number}.{rank}"): similarity
                for rank, similarity in item.similarity.items()
            }
    # Here every item is one document.
    queries = [
        Query(
            [dataclasses.replace(item, n_alternatives=1) for item in query.items], query.n_retrieved
        )
        for query in queries
    ]
    evaluator = OfflineRetrievalEvaluator(
        actual, predicted, reference.TableMatcher(table), conventions=conventions
    )
    for k in (1, 3, None):
        expected = reference.averages(queries, k, conventions)
        assert evaluator.evaluate(k).averages() == pytest.approx(expected, abs=1e-12)


# --- spelling --------------------------------------------------------------------------------


def test_conventions_print_only_what_differs():
    """In the order of the fields, whatever order they were given in."""
    assert str(Conventions()) == "default"
    assert str(Conventions(credit="every", gain="linear")) == "gain=linear,credit=every"


def test_all_384_combinations_read_back_and_print_differently():
    """Printing loses nothing."""
    assert [Conventions.parse(str(conventions)) for conventions in EVERY] == EVERY
    assert len(set(map(str, EVERY))) == len(EVERY) == 384


def test_parsing_forgives_spaces_after_commas():
    """A signature copied into prose may have been re-wrapped."""
    wanted = Conventions(gain="linear", credit="every")
    assert Conventions.parse("gain=linear, credit=every") == wanted


@pytest.mark.parametrize(
    ("preset", "printed"),
    [
        ("default", "default"),
        ("trec", "precision_at=k,macro_f1=mean_of_f1,gain=linear"),
        ("krag", "ideal=retrieved"),
        (
            "autorag",
            "macro_f1=mean_of_f1,ideal=alternatives,credit=every,reciprocal_rank=per_item,"
            "average_precision=per_item",
        ),
    ],
)
def test_presets_are_what_the_documentation_says(preset, printed):
    """Each has its name, and prints the fields in which it differs."""
    conventions = Conventions.presets()[preset]
    assert str(conventions) == printed
    assert Conventions.parse(preset) == conventions


def test_preset_methods_return_the_presets():
    """``Conventions.trec()`` is the preset ``"trec"``, and so on."""
    presets = Conventions.presets()
    made = (Conventions(), Conventions.trec(), Conventions.krag(), Conventions.autorag())
    assert made == (presets["default"], presets["trec"], presets["krag"], presets["autorag"])


def test_conventions_are_frozen_and_hashable():
    """They stand in signatures and as keys, so they cannot change."""
    conventions = Conventions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        conventions.gain = "linear"
    assert len({Conventions(), Conventions(), Conventions.trec()}) == 2


@pytest.mark.parametrize("field", Conventions.allowed())
def test_an_unknown_value_is_refused_with_those_allowed(field):
    """The error names the field, what is allowed and what came."""
    with pytest.raises(InvalidInput) as info:
        Conventions(**{field: "nonsense"})
    assert info.value.argument == field
    named = (*Conventions.allowed()[field], "nonsense")
    assert all(repr(value) in info.value.problem for value in named)


def test_a_near_miss_gets_a_suggestion():
    """What was probably meant is said."""
    with pytest.raises(InvalidInput) as info:
        Conventions(gain="liner")
    assert "'linear'" in str(info.value.fix)


def test_a_value_of_another_type_is_refused():
    """None is not a convention."""
    with pytest.raises(InvalidType) as info:
        Conventions(credit=None)
    assert info.value.argument == "credit"


def test_parsing_something_without_an_equals_sign_is_refused():
    """The message says what was expected, and names the presets."""
    with pytest.raises(InvalidInput) as info:
        Conventions.parse("tre")
    assert info.value.argument == "conventions"
    named = ("'trec'", "'krag'", "'autorag'", "'tre'", "field=value")
    assert all(one in info.value.problem for one in named)
    assert "'trec'" in str(info.value.fix)


def test_parsing_an_empty_text_is_refused():
    """Nothing is not the default; the default is spelled out."""
    with pytest.raises(InvalidInput) as info:
        Conventions.parse("")
    assert info.value.argument == "conventions"


def test_parsing_an_unknown_field_is_refused():
    """The message lists the fields and suggests the nearest."""
    with pytest.raises(InvalidInput) as info:
        Conventions.parse("gian=linear")
    assert info.value.argument == "conventions"
    assert all(repr(field) in info.value.problem for field in Conventions.allowed())
    assert "'gain'" in str(info.value.fix)


def test_parsing_a_field_twice_is_refused():
    """Neither value is silently the last word."""
    with pytest.raises(
        ValueError, match="the field 'gain' is given twice in 'gain=linear,gain=exp"
    ):
        Conventions.parse("gain=linear,gain=exponential")


def test_parsing_an_unknown_value_is_refused():
    """As in the constructor."""
    with pytest.raises(InvalidInput) as info:
        Conventions.parse("gain=cubic")
    assert info.value.argument == "gain"


def test_parsing_something_that_is_no_text_is_refused():
    """The message shows what came."""
    with pytest.raises(InvalidType) as info:
        Conventions.parse(3)
    assert info.value.argument == "conventions"


# --- choices ---------------------------------------------------------------------------------


def chosen(**choice):
    """Return an evaluator made with a choice."""
    return OfflineRetrievalEvaluator([["a"]], [["a"]], **choice)


def test_a_choice_may_be_a_member_or_its_string():
    """Both give the member."""
    for member in AveragingMethod:
        assert chosen(averaging_method=member).averaging_method is member
        assert chosen(averaging_method=member.value).averaging_method is member


def test_an_unknown_choice_is_refused_with_those_allowed():
    """The error names the argument, what is allowed, what came and what was meant."""
    with pytest.raises(InvalidInput) as info:
        chosen(averaging_method="marco")
    assert info.value.argument == "averaging_method"
    assert all(repr(one.value) in info.value.problem for one in AveragingMethod)
    assert "'macro'" in str(info.value.fix)


@pytest.mark.parametrize("came", [AveragingMethod.MICRO, None, 1, True, ["all"]])
def test_another_choice_is_refused(came):
    """The error says what is allowed; an averaging method is no matching criterion."""
    with pytest.raises((InvalidInput, InvalidType)) as info:
        chosen(matching_criteria=came)
    assert info.value.argument == "matching_criteria"
    assert all(repr(one.value) in info.value.problem for one in MatchingCriteria)
