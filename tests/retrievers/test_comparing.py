"""evaluate_retrievers: one comparison, with each retriever's result inside."""

from __future__ import annotations

import asyncio
import pickle

import pytest
from retriever_samples import AsyncNumbered, Numbered, passage, rows

from krag_eval import (
    Comparison,
    KragEvalWarning,
    aevaluate_retrievers,
    compare,
    evaluate_retriever,
    evaluate_retrievers,
)

FIRST_TEN = frozenset(range(10))


def compared(**options):
    """Compare one that misses ten of forty questions with one that misses none."""
    retrievers = {"partial": Numbered(finds_nothing_on=FIRST_TEN), "whole": Numbered()}
    return evaluate_retrievers(retrievers, rows(40), **{"k": [1, 5], **options})


def test_the_comparison_is_that_of_the_single_results():
    """To the last digit."""
    comparison = compared(metric="mrr@5")
    singly = {
        "partial": evaluate_retriever(Numbered(finds_nothing_on=FIRST_TEN), rows(40), [1, 5]),
        "whole": evaluate_retriever(Numbered(), rows(40), [1, 5]),
    }
    assert comparison.table.equals(compare(singly, "mrr@5").table)
    assert isinstance(comparison, Comparison)
    assert list(comparison.results) == ["partial", "whole"]
    assert comparison.results == singly
    # By hand: 30 of 40, and 40 of 40.
    assert comparison.table.loc[0, ["value_a", "value_b"]].tolist() == [0.75, 1]


def test_the_default_metric_is_ndcg_at_the_deepest_cutoff():
    """Also where that is all documents."""
    assert compared().metrics == ["ndcg@5"]
    assert compared(k=[3, None]).metrics == ["ndcg@all"]


def test_a_baseline_is_what_the_others_are_held_against():
    """Two pairs of three retrievers, as ``compare`` has them; asynchronously too."""
    retrievers = {
        "partial": Numbered(finds_nothing_on=FIRST_TEN),
        "whole": Numbered(),
        "most": Numbered(finds_nothing_on=frozenset({39})),
    }
    comparison = evaluate_retrievers(retrievers, rows(40), 1, baseline="whole")
    assert comparison.pairs == [("whole", "partial"), ("whole", "most")]
    expected = compare(comparison.results, "ndcg@1", baseline="whole")
    assert comparison.table.equals(expected.table)
    soon = aevaluate_retrievers(retrievers, rows(40), 1, baseline="whole")
    assert asyncio.run(soon).table.equals(expected.table)


def test_clusters_are_passed_on():
    """As ``compare`` has them, asynchronously too; a tag comes with the questions."""
    retrievers = {"partial": Numbered(finds_nothing_on=FIRST_TEN), "whole": Numbered()}
    tagged = [{**row, "source": f"book {i // 2}"} for i, row in enumerate(rows(40))]
    comparison = evaluate_retrievers(retrievers, tagged, 1, clusters="source")
    assert (comparison.clusters, comparison.grouping.n) == ("source", 20)
    expected = compare(comparison.results, "ndcg@1", clusters="source")
    assert comparison.table.equals(expected.table)
    soon = aevaluate_retrievers(retrievers, tagged, 1, clusters="source")
    assert asyncio.run(soon).table.equals(expected.table)


def test_latency_is_shown_beside_the_comparison():
    """One row and one line per retriever."""
    comparison = evaluate_retrievers(
        {"slow": Numbered(seconds=0.02), "fast": Numbered()}, rows(40), 1
    )
    latency = comparison.latency
    assert latency.columns.tolist() == ["mean", "p50", "p95", "failed"]
    assert latency.index.tolist() == ["slow", "fast"]
    assert latency.loc["slow", "p50"] >= 0.02
    assert latency["failed"].tolist() == [0, 0]
    slow = comparison.results["slow"].latency
    assert latency.loc["slow"].tolist() == [*slow, 0]
    assert f"slow: latency: {slow}" in repr(comparison)
    assert "fast: latency: mean" in comparison._repr_html_()
    assert pickle.loads(pickle.dumps(comparison)).latency.equals(latency)


def test_a_comparison_of_other_results_has_no_latency():
    """Its table is empty, and nothing is said."""
    results = compared().results
    comparison = compare(results, "ndcg@5")
    assert comparison.latency.empty
    assert "latency" not in repr(comparison)


def test_failures_are_recorded_for_each():
    """By hand: two of forty fail for one of them."""
    retrievers = {"sound": Numbered(), "broken": Numbered(fails_on=frozenset({3, 4}))}
    with pytest.warns(KragEvalWarning, match="2 of 40 queries failed"):
        comparison = evaluate_retrievers(retrievers, rows(40), 1, on_error="record")
    assert comparison.latency["failed"].tolist() == [0, 2]
    assert comparison.results["broken"].to_dict()["hit_rate@1"] == 0.95


def test_a_retriever_that_never_works_ends_the_comparison_and_keeps_the_others():
    """By hand: the first answers everything, the second nothing."""
    retrievers = {"sound": Numbered(), "broken": Numbered(fails_on=frozenset(range(40)))}
    with pytest.raises(ConnectionError) as caught:
        evaluate_retrievers(retrievers, rows(40), 1)
    assert caught.value.results["sound"].to_dict()["hit_rate@1"] == 1
    assert list(caught.value.results) == ["sound"]
    assert "'sound'" in caught.value.__notes__[-1]
    with pytest.raises(ConnectionError) as caught:
        asyncio.run(aevaluate_retrievers(retrievers, rows(40), 1))
    assert list(caught.value.results) == ["sound"]


def test_asynchronously_it_is_the_same():
    """Through each one's own ainvoke."""
    retrievers = {"partial": Numbered(finds_nothing_on=FIRST_TEN), "whole": AsyncNumbered()}
    comparison = asyncio.run(aevaluate_retrievers(retrievers, rows(40), 1))
    assert comparison.table.equals(compared(k=1).table)


def test_each_retriever_has_a_checkpoint_of_its_own(tmp_path):
    """Or none."""
    files = {"partial": tmp_path / "partial.jsonl"}
    first = compared(checkpoint=files)
    assert files["partial"].exists()
    second = compared(checkpoint=files)
    assert second.table.equals(first.table)
    assert second.latency.loc["partial"].equals(first.latency.loc["partial"])


def test_each_checkpoint_has_a_key_of_its_own(tmp_path):
    """Or none: the one without goes by its settings."""
    files = {"partial": tmp_path / "partial.jsonl", "whole": tmp_path / "whole.jsonl"}
    first = compared(checkpoint=files, checkpoint_key={"partial": "May"})
    headers = {name: path.read_text("utf-8").partition("\n")[0] for name, path in files.items()}
    assert '"checkpoint_key":"May"' in headers["partial"]
    assert "checkpoint_key" not in headers["whole"]
    again = compared(checkpoint=files, checkpoint_key={"partial": "May"})
    assert again.latency.equals(first.latency)
    with pytest.raises(ValueError, match="checkpoint_key='May', not 'June'"):
        compared(checkpoint=files, checkpoint_key={"partial": "June"})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": "ndcg@7"}, ValueError, "7"),
        ({"metric": "recall@5", "metrics": ["ndcg"]}, ValueError, "recall"),
        ({"metrics": ["recall"]}, ValueError, "ndcg"),
        ({"level": 2}, ValueError, "level"),
        ({"baseline": "c"}, ValueError, "baseline"),
        ({"baseline": 1}, TypeError, "baseline"),
        ({"clusters": "source"}, ValueError, "clusters"),
        ({"clusters": "source", "tags": {"source": ["a"] * 3}}, ValueError, "clusters"),
        ({"clusters": 1}, TypeError, "clusters"),
        ({"n_resamples": 0}, ValueError, "n_resamples"),
        ({"matcher": "rougel"}, ValueError, "did you mean 'rougeL'"),
        ({"on_error": "skip"}, ValueError, "on_error must be one of"),
        ({"checkpoint": "run.jsonl"}, TypeError, "checkpoint must map names"),
        ({"checkpoint": {"c": "x"}}, ValueError, "checkpoint must be one of 'a', 'b', got 'c'"),
        ({"checkpoint": {"a": "x", "b": "./x"}}, ValueError, "a file of its own"),
        ({"checkpoint_key": "May"}, TypeError, "checkpoint_key must map names"),
        ({"checkpoint_key": {"c": "May"}}, ValueError, "checkpoint_key must be one of 'a', 'b'"),
        ({"checkpoint_key": {"a": "May"}}, ValueError, "checkpoint_key names .* there is none"),
        ({"checkpoint": {"a": "x"}, "checkpoint_key": {"a": 1}}, TypeError, "checkpoint_key must"),
        ({"retrievers": [Numbered()]}, TypeError, "retrievers must map names to retrievers"),
        ({"retrievers": {"a": Numbered()}}, ValueError, "at least two to compare, got 1"),
        ({"retrievers": {1: Numbered(), "b": Numbered()}}, TypeError, "texts as names, got 1"),
        ({"retrievers": {"a": Numbered(), "b": None}}, TypeError, "retriever must be .*, got None"),
    ],
)
def test_everything_is_checked_before_anything_is_asked(options, error, message):
    """Not after the first retriever has answered for an hour."""
    asked = []

    def noted(question):
        asked.append(question)
        return [passage(0)]

    given = {"retrievers": {"a": noted, "b": noted}, "dataset": rows(3), "k": 5, **options}
    with pytest.raises(error, match=message):
        evaluate_retrievers(**given)
    assert asked == []
