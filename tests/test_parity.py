"""Agreement with an independent tool: trec_eval, through pytrec_eval, on random runs.

Where conventions coincide the numbers are the same; where trec_eval has its own, it is the preset
``trec``. trec_eval ranks by score, so scores here fall strictly with the rank.
"""

from __future__ import annotations

import random

import pytest
import pytrec_eval
from reference import Item, Query, relevance_of

from krag_eval import Conventions, OfflineRetrievalEvaluator
from krag_eval.scoring.metrics import METRICS

CUTOFFS = (1, 2, 3, 5, 10, 20)
MEASURES = {
    f"{name}.{','.join(map(str, CUTOFFS))}"
    for name in ("P", "recall", "map_cut", "ndcg_cut", "success")
} | {"recip_rank", "map", "ndcg", "set_F", "set_P", "set_recall"}
SEEDS = pytest.mark.parametrize("seed", range(3))


def random_run(seed, n_queries=150, grades=(1,)):
    """Return qrels and ranked lists: of 1 to 12 relevant documents some come back, among others.

    Lists are of 1 to 15 documents, so many are shorter than a cutoff.
    """
    source = random.Random(seed)
    corpus = [f"d{number}" for number in range(40)]
    qrels, ranked = {}, {}
    for number in range(n_queries):
        relevant = source.sample(corpus, source.randint(1, 12))
        qrels[f"q{number}"] = {document: source.choice(grades) for document in relevant}
        ranked[f"q{number}"] = source.sample(corpus, source.randint(1, 15))
    return qrels, ranked


def by_trec_eval(qrels, ranked):
    """Return trec_eval's values, per query."""
    run = {
        query: {document: float(-rank) for rank, document in enumerate(documents)}
        for query, documents in ranked.items()
    }
    return pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run)


def assert_agree(ours, theirs, measure):
    """Check values per query against a measure of trec_eval's."""
    expected = {query: values[measure] for query, values in theirs.items()}
    assert ours == pytest.approx(expected, abs=1e-9), measure


def evaluated(qrels, ranked, **options):
    """Return the result over ids at all cutoffs."""
    evaluator = OfflineRetrievalEvaluator(
        [list(relevant) for relevant in qrels.values()],
        list(ranked.values()),
        matcher="id",
        queries=list(qrels),
        **options,
    )
    return evaluator.evaluate([*CUTOFFS, None])


@SEEDS
def test_metrics_without_a_dispute_agree_by_default(seed):
    """Recall, reciprocal rank, average precision, nDCG (binary) and success, per query."""
    qrels, ranked = random_run(seed)
    theirs = by_trec_eval(qrels, ranked)
    result = evaluated(qrels, ranked, matching_criteria="partial")
    table = result.per_query(None)
    assert_agree(table["reciprocal_rank"].to_dict(), theirs, "recip_rank")
    assert_agree(table["average_precision"].to_dict(), theirs, "map")
    assert_agree(table["ndcg"].to_dict(), theirs, "ndcg")
    assert_agree(table["recall"].to_dict(), theirs, "set_recall")
    for k in CUTOFFS:
        table = result.per_query(k)
        assert_agree(table["recall"].to_dict(), theirs, f"recall_{k}")
        assert_agree(table["average_precision"].to_dict(), theirs, f"map_cut_{k}")
        assert_agree(table["ndcg"].to_dict(), theirs, f"ndcg_cut_{k}")
        assert_agree(table["hit_rate"].to_dict(), theirs, f"success_{k}")


@SEEDS
def test_precision_without_a_cutoff_agrees_by_default(seed):
    """All that came back is what both divide by."""
    qrels, ranked = random_run(seed)
    table = evaluated(qrels, ranked).per_query(None)
    theirs = by_trec_eval(qrels, ranked)
    assert_agree(table["precision"].to_dict(), theirs, "set_P")
    assert_agree(table["f1"].to_dict(), theirs, "set_F")


@SEEDS
def test_precision_agrees_by_default_where_lists_are_long_enough(seed):
    """Dividing by k or by what came back is then the same."""
    qrels, ranked = random_run(seed)
    theirs = by_trec_eval(qrels, ranked)
    result = evaluated(qrels, ranked)
    for k in CUTOFFS:
        long = {query for query, documents in ranked.items() if len(documents) >= k}
        ours = {q: p for q, p in result.per_query(k)["precision"].items() if q in long}
        assert_agree(ours, {query: theirs[query] for query in long}, f"P_{k}")


@SEEDS
def test_precision_agrees_under_trec_conventions_for_shorter_lists_too(seed):
    """A list of three documents is divided by 10 at 10."""
    qrels, ranked = random_run(seed)
    assert min(map(len, ranked.values())) < 3
    theirs = by_trec_eval(qrels, ranked)
    result = evaluated(qrels, ranked, conventions=Conventions.trec())
    for k in CUTOFFS:
        assert_agree(result.per_query(k)["precision"].to_dict(), theirs, f"P_{k}")


@SEEDS
def test_means_agree_under_trec_conventions(seed):
    """Over queries as well, F1 included."""
    qrels, ranked = random_run(seed)
    theirs = by_trec_eval(qrels, ranked)
    result = evaluated(qrels, ranked, conventions=Conventions.trec())
    for key, measure in [
        ("macro_precision@5", "P_5"),
        ("macro_recall@10", "recall_10"),
        ("map@all", "map"),
        ("mrr@all", "recip_rank"),
        ("ndcg@10", "ndcg_cut_10"),
        ("macro_f1@all", "set_F"),
    ]:
        mean = sum(values[measure] for values in theirs.values()) / len(theirs)
        assert result.to_dict()[key] == pytest.approx(mean, abs=1e-9), key


@SEEDS
def test_graded_ndcg_agrees_with_linear_gain(seed):
    """Grades 0 to 4; a judged document of grade 0 is not relevant."""
    qrels, ranked = random_run(seed, grades=(0, 1, 2, 3, 4))
    qrels = {query: grades for query, grades in qrels.items() if any(grades.values())}
    ranked = {query: ranked[query] for query in qrels}
    theirs = by_trec_eval(qrels, ranked)
    relevance = relevance_of(
        [
            Query(
                [
                    Item(
                        {ranked[query].index(d) + 1: 1.0} if d in ranked[query] else {},
                        float(grade),
                    )
                    for d, grade in grades.items()
                ],
                len(ranked[query]),
            )
            for query, grades in qrels.items()
        ]
    )

    def ours(name, k):
        values = METRICS[name].compute(relevance, k, Conventions.trec()).tolist()
        return dict(zip(qrels, values, strict=True))

    assert_agree(ours("ndcg", None), theirs, "ndcg")
    assert_agree(ours("average_precision", None), theirs, "map")
    assert_agree(ours("reciprocal_rank", None), theirs, "recip_rank")
    for k in CUTOFFS:
        assert_agree(ours("ndcg", k), theirs, f"ndcg_cut_{k}")
        assert_agree(ours("precision", k), theirs, f"P_{k}")
        assert_agree(ours("recall", k), theirs, f"recall_{k}")


def test_graded_ndcg_agrees_from_metadata():
    """The same grades, read by ``grade_key`` from documents."""
    qrels, ranked = random_run(7, grades=(1, 2, 3))
    theirs = by_trec_eval(qrels, ranked)
    result = OfflineRetrievalEvaluator(
        [
            [{"page_content": "", "id": d, "metadata": {"rel": g}} for d, g in grades.items()]
            for grades in qrels.values()
        ],
        list(ranked.values()),
        matcher="id",
        queries=list(qrels),
        conventions="trec",
        grade_key="rel",
    ).evaluate([5, None])
    assert_agree(result.per_query(5)["ndcg"].to_dict(), theirs, "ndcg_cut_5")
    assert_agree(result.per_query(None)["ndcg"].to_dict(), theirs, "ndcg")


def test_exponential_gain_is_not_trec_eval_s():
    """So agreement above is not by accident: the default differs on graded lists."""
    qrels, ranked = random_run(0, grades=(1, 2, 3))
    theirs = by_trec_eval(qrels, ranked)
    result = OfflineRetrievalEvaluator(
        [
            [{"page_content": "", "id": d, "metadata": {"rel": g}} for d, g in grades.items()]
            for grades in qrels.values()
        ],
        list(ranked.values()),
        matcher="id",
        queries=list(qrels),
        grade_key="rel",
    ).evaluate(None)
    ours = result.per_query()["ndcg"]
    assert max(abs(ours[query] - values["ndcg"]) for query, values in theirs.items()) > 0.01
