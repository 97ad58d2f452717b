"""evaluate_retrievers: one comparison, with each retriever's result inside."""

import asyncio
import pickle

import pytest
from retriever_samples import AsyncNumbered, Numbered, rows

from krag_eval import (
    KragEvalWarning,
    aevaluate_retrievers,
    compare,
    evaluate_retriever,
    evaluate_retrievers,
)

FIRST_TEN = frozenset(range(10))
FEW = {"n_resamples": 500}


def both():
    """Return one retriever that misses ten of forty questions, and one that misses none."""
    return {"partial": Numbered(finds_nothing_on=FIRST_TEN), "whole": Numbered()}


def compared(retrievers=None, dataset=None, k=(1, 5), **options):
    return evaluate_retrievers(retrievers or both(), dataset or rows(40), k, **FEW, **options)


def asynchronously(retrievers, dataset=None, k=1, **options):
    return asyncio.run(aevaluate_retrievers(retrievers, dataset or rows(40), k, **FEW, **options))


def test_the_comparison_is_that_of_the_single_results():
    """To the last digit; asynchronously too, through each one's own ainvoke."""
    comparison = compared(metric="mrr@5")
    singly = {name: evaluate_retriever(one, rows(40), [1, 5]) for name, one in both().items()}
    assert comparison.table.equals(compare(singly, "mrr@5", **FEW).table)
    assert list(comparison.results) == ["partial", "whole"]
    assert comparison.results == singly
    # By hand: 30 of 40, and 40 of 40.
    assert comparison.table.loc[0, ["value_a", "value_b"]].tolist() == [0.75, 1]
    soon = asynchronously({**both(), "whole": AsyncNumbered()})
    assert soon.table.equals(compared(k=1).table)


def test_the_default_metric_is_ndcg_at_the_deepest_cutoff():
    """Also where that is all documents."""
    assert compared().metrics == ["ndcg@5"]
    assert compared(k=[3, None]).metrics == ["ndcg@all"]


def test_a_baseline_is_what_the_others_are_held_against():
    """Two pairs of three retrievers, as ``compare`` has them; asynchronously too."""
    retrievers = {**both(), "most": Numbered(finds_nothing_on=frozenset({39}))}
    comparison = compared(retrievers, k=1, baseline="whole")
    assert comparison.pairs == [("whole", "partial"), ("whole", "most")]
    expected = compare(comparison.results, "ndcg@1", baseline="whole", **FEW)
    assert comparison.table.equals(expected.table)
    assert asynchronously(retrievers, baseline="whole").table.equals(expected.table)


def test_clusters_are_passed_on():
    """As ``compare`` has them, asynchronously too; a tag comes with the questions."""
    tagged = [{**row, "source": f"book {i // 2}"} for i, row in enumerate(rows(40))]
    comparison = compared(dataset=tagged, k=1, clusters="source")
    assert (comparison.clusters, comparison.grouping.n) == ("source", 20)
    expected = compare(comparison.results, "ndcg@1", clusters="source", **FEW)
    assert comparison.table.equals(expected.table)
    assert asynchronously(both(), tagged, clusters="source").table.equals(expected.table)


def test_latency_is_shown_beside_the_comparison():
    """One row and one line per retriever; results of other runs have none."""
    comparison = compared({"slow": Numbered(seconds=0.01), "fast": Numbered()}, k=1)
    latency = comparison.latency
    assert latency.columns.tolist() == ["mean", "p50", "p95", "failed"]
    assert latency.index.tolist() == ["slow", "fast"]
    assert latency.loc["slow", "p50"] >= 0.01
    assert latency["failed"].tolist() == [0, 0]
    slow = comparison.results["slow"].latency
    assert latency.loc["slow"].tolist() == [*slow, 0]
    assert f"slow: latency: {slow}" in repr(comparison)
    assert "fast: latency: mean" in comparison._repr_html_()
    assert pickle.loads(pickle.dumps(comparison)).latency.equals(latency)
    without = compare(comparison.results, "ndcg@1", **FEW)
    assert without.latency.empty
    assert "latency" not in repr(without)


def test_failures_are_recorded_for_each():
    """By hand: two of forty fail for one of them."""
    broken = Numbered(fails_on=frozenset({3, 4}))
    with pytest.warns(KragEvalWarning, match="2 of 40 queries failed"):
        comparison = compared({"sound": Numbered(), "broken": broken}, k=1, on_error="record")
    assert comparison.latency["failed"].tolist() == [0, 2]
    assert comparison.results["broken"]["hit_rate@1"] == 0.95


@pytest.mark.parametrize("ask", [compared, asynchronously])
def test_a_retriever_that_never_works_ends_the_comparison_and_keeps_the_others(ask):
    """By hand: the first answers everything, the second nothing."""
    with pytest.raises(ConnectionError) as caught:
        ask({"sound": Numbered(), "broken": Numbered(fails_on=frozenset(range(40)))})
    assert list(caught.value.results) == ["sound"]
    assert caught.value.results["sound"]["hit_rate@1"] == 1
    assert "'sound'" in caught.value.__notes__[-1]


def test_each_retriever_has_a_checkpoint_and_a_key_of_its_own(tmp_path):
    """Or none: the one without a key goes by its settings."""
    files = {"partial": tmp_path / "partial.jsonl", "whole": tmp_path / "whole.jsonl"}
    first = compared(checkpoint=files, checkpoint_key={"partial": "May"})
    headers = {name: path.read_text("utf-8").partition("\n")[0] for name, path in files.items()}
    assert '"checkpoint_key":"May"' in headers["partial"]
    assert "checkpoint_key" not in headers["whole"]
    again = compared(checkpoint=files, checkpoint_key={"partial": "May"})
    assert again.latency.equals(first.latency)
    with pytest.raises(ValueError, match="checkpoint_key='May', not 'June'"):
        compared(checkpoint=files, checkpoint_key={"partial": "June"})
    one = compared(checkpoint={"whole": files["whole"]})
    assert one.latency.loc["whole"].equals(first.latency.loc["whole"])
