"""Agreement with an independent tool: trec_eval, through pytrec_eval, on random runs.

Where conventions coincide the numbers are the same; where trec_eval has its own, it is the preset
``trec``. trec_eval ranks by score, so scores here fall strictly with the rank.
"""

import random

import pytest
import pytrec_eval
from reference import Item, Query, relevance_of

from krag_eval import METRICS, Conventions, OfflineRetrievalEvaluator

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
    actual = [
        [{"page_content": "", "id": d, "metadata": {"rel": g}} for d, g in grades.items()]
        for grades in qrels.values()
    ]
    options = {"matcher": "id", "queries": list(qrels), **options}
    return OfflineRetrievalEvaluator(actual, list(ranked.values()), **options).evaluate(
        [*CUTOFFS, None]
    )


AT_K = {
    "recall": "recall", "average_precision": "map_cut", "ndcg": "ndcg_cut", "hit_rate": "success",
}  # fmt: skip
OF_ALL = {
    "reciprocal_rank": "recip_rank", "average_precision": "map", "ndcg": "ndcg",
    "recall": "set_recall", "precision": "set_P", "f1": "set_F",
}  # fmt: skip


@SEEDS
@pytest.mark.parametrize("conventions", ["default", "trec"])
def test_metrics_per_query_agree(seed, conventions):
    """By default all but precision at k, where a list of three documents is divided by 10 at 10.

    Without a cutoff, all that came back is what both divide by.
    """
    qrels, ranked = random_run(seed)
    assert min(map(len, ranked.values())) < 3
    theirs = by_trec_eval(qrels, ranked)
    result = evaluated(qrels, ranked, matching_criteria="partial", conventions=conventions)
    for column, measure in OF_ALL.items():
        assert_agree(result.per_query(None)[column].to_dict(), theirs, measure)
    at_k = AT_K if conventions == "default" else {**AT_K, "precision": "P"}
    for k in CUTOFFS:
        for column, measure in at_k.items():
            assert_agree(result.per_query(k)[column].to_dict(), theirs, f"{measure}_{k}")


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
    items = {
        query: [
            Item({ranked[query].index(d) + 1: 1.0} if d in ranked[query] else {}, float(grade))
            for d, grade in grades.items()
        ]
        for query, grades in qrels.items()
    }
    relevance = relevance_of([Query(one, len(ranked[query])) for query, one in items.items()])
    measures = {
        (column, None): OF_ALL[column]
        for column in ("ndcg", "average_precision", "reciprocal_rank")
    }
    for column, measure in (("ndcg", "ndcg_cut"), ("precision", "P"), ("recall", "recall")):
        measures |= {(column, k): f"{measure}_{k}" for k in CUTOFFS}
    for (column, k), measure in measures.items():
        values = METRICS[column].compute(relevance, k, Conventions.trec()).tolist()
        assert_agree(dict(zip(qrels, values, strict=True)), theirs, measure)


def test_graded_ndcg_agrees_from_metadata():
    """The same grades, read by ``grade_key`` from documents; by default, gain is another."""
    qrels, ranked = random_run(7, grades=(1, 2, 3))
    theirs = by_trec_eval(qrels, ranked)
    result = evaluated(qrels, ranked, conventions="trec", grade_key="rel")
    assert_agree(result.per_query(5)["ndcg"].to_dict(), theirs, "ndcg_cut_5")
    assert_agree(result.per_query(None)["ndcg"].to_dict(), theirs, "ndcg")
    ours = evaluated(qrels, ranked, grade_key="rel").per_query(None)["ndcg"]
    assert max(abs(ours[query] - values["ndcg"]) for query, values in theirs.items()) > 0.01
