"""Dask: frames and bags, whatever the partitioning."""

from __future__ import annotations

import dask
import dask.bag
import dask.dataframe as dd
import pandas as pd
import pytest
from cluster_samples import SEEN, check_budgets, check_seen, local, sample, with_seen, within

from krag_eval import CoverageMatcher, KragEvalWarning
from krag_eval.distributed import evaluate_dask
from krag_eval.errors import DatasetError, InvalidInput

ROWS = sample()


@pytest.fixture(autouse=True)
def _in_this_process():
    """Run tasks one by one, so that warnings and errors are seen; lists stay lists."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


@pytest.mark.parametrize("n_partitions", [1, 4, 17])
def test_a_frame_gives_the_digits_of_a_local_run(n_partitions):
    """All averages at all cutoffs, the signature, and every row."""
    frame = dd.from_pandas(pd.DataFrame(ROWS), npartitions=n_partitions)
    run = evaluate_dask(frame, k=[1, 3, 10], matcher="coverage")
    expected = local(ROWS, matcher="coverage")
    assert run.result.to_dict() == expected.to_dict()
    assert run.result.signature == expected.signature
    per_query = run.per_query.compute().set_index("query").loc[expected.labels]
    for k in (1, 3, 10):
        for name in ("recall", "ndcg", "average_precision"):
            assert per_query[f"{name}@{k}"].tolist() == expected.per_query(k)[name].tolist()
    assert per_query["covered@10"].tolist() == expected.per_query(10)["covered"].tolist()
    assert per_query["ground_truth_digest"].tolist() == list(expected.rows.digests)


def test_a_bag_gives_the_digits_of_a_local_run():
    """Dicts, with documents as dicts among them, and other scheduling."""
    rows = [{**row, "actual": [{"page_content": one} for one in row["actual"]]} for row in ROWS]
    bag = dask.bag.from_sequence(rows, npartitions=5)
    run = evaluate_dask(bag, k=[1, 3, 10], matcher=CoverageMatcher(0.9), no_ground_truth="zero")
    expected = local(ROWS, matcher=CoverageMatcher(0.9), no_ground_truth="zero")
    with dask.config.set(scheduler="processes"):
        assert run.result.to_dict() == expected.to_dict()


@pytest.mark.parametrize("n_partitions", [1, 4])
def test_budgets_are_those_of_a_local_run(n_partitions):
    """By words and by a function of one's own; lengths and ranks come back as text."""
    frame = dd.from_pandas(pd.DataFrame(ROWS), npartitions=n_partitions)
    run = evaluate_dask(frame, **within(), matcher="coverage(union=yes)")
    check_budgets(run.result, run.per_query.compute().to_dict("records"))


def test_skipped_queries_are_left_out_of_every_partition():
    """Also of one that holds nothing else; the rejection rate is that of the whole."""
    rows = [{**row, "actual": []} if number < 20 else row for number, row in enumerate(ROWS)]
    bag = dask.bag.from_sequence(rows, npartitions=6)
    run = evaluate_dask(bag, k=[1, 3, 10], no_ground_truth="skip", matcher="contains")
    expected = local(rows, no_ground_truth="skip", matcher="contains")
    assert run.result.to_dict() == expected.to_dict()
    assert run.result.settings["no_ground_truth"] == "skip(20)"
    assert run.per_query["ndcg@3"].isnull().sum().compute() == 20


class Asked(CoverageMatcher):
    """A matcher that counts the partitions it was asked about."""

    times = 0

    def block_scorer(self, texts):
        Asked.times += 1
        return super().block_scorer(texts)


def test_a_persisted_run_is_evaluated_once():
    """Result and rows come from what Dask keeps."""
    Asked.times = 0
    bag = dask.bag.from_sequence(ROWS, npartitions=3)
    run = evaluate_dask(bag, k=3, matcher=Asked()).persist()
    assert run.result.n_queries == len(run.per_query) == len(ROWS)
    assert Asked.times == 3
    assert run.persist().result.to_dict() == run.result.to_dict()


def test_text_where_lists_were_is_refused_with_the_remedy():
    """Dask's default turns lists into their printed form."""
    with dask.config.set({"dataframe.convert-string": True}):
        frame = dd.from_pandas(pd.DataFrame(ROWS), npartitions=2)
        with pytest.raises(TypeError, match=r"actual_field.*holds text.*convert-string.*False"):
            evaluate_dask(frame)
        assert evaluate_dask(
            dask.bag.from_sequence(ROWS), k=3, matcher="contains"
        ).result.n_queries == len(ROWS)


def test_the_whole_is_warned_of_once():
    """That nothing matched at all is no news of a partition."""
    rows = [{"question": str(n), "actual": [f"a{n}"], "predicted": ["b"]} for n in range(6)]
    run = evaluate_dask(dask.bag.from_sequence(rows, npartitions=6), k=1)
    with pytest.warns(KragEvalWarning, match="matched nothing at all in 6 queries") as warned:
        run.result  # noqa: B018 - computed when asked for
    assert len(warned) == 1


def test_rows_are_where_the_engine_has_them():
    """A result of sums says so, and how to get at them."""
    run = evaluate_dask(dask.bag.from_sequence(ROWS), k=3, matcher="contains")
    with pytest.raises(ValueError, match=r"no per-query rows.*they are in \.per_query of the run"):
        run.result.per_query()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([{"question": "?", "actual": ["a"]}], "must be a dict with question, actual, predicted"),
        (["a"], "row 0 of its part must be a dict"),
        ([{"question": "?", "actual": "a", "predicted": []}], "row 0 .*: actual is plain text"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(rows, problem):
    """When they are read, by their place in their part."""
    with pytest.raises((TypeError, DatasetError), match=problem):
        evaluate_dask(dask.bag.from_sequence(rows), k=1).result  # noqa: B018


def test_what_is_no_collection_is_refused():
    """A pandas frame needs no cluster."""
    with pytest.raises(TypeError, match="a Dask DataFrame or a Dask Bag of dicts, got a DataFrame"):
        evaluate_dask(pd.DataFrame(ROWS))


def test_rows_without_questions():
    """Have no labels, and the same averages."""
    rows = [{name: row[name] for name in ("actual", "predicted")} for row in ROWS]
    run = evaluate_dask(dask.bag.from_sequence(rows), k=3, matcher="contains", question_field=None)
    assert run.result.to_dict() == local(ROWS, 3, matcher="contains").to_dict()


@pytest.mark.parametrize("is_bag", [True, False])
def test_what_was_looked_at_is_a_column(is_bag):
    """An absent cell says that nothing was; rows tell what is known of each document."""
    bag = dask.bag.from_sequence(SEEN, npartitions=2)
    frame = dd.from_pandas(pd.DataFrame(SEEN), npartitions=2)
    run = evaluate_dask(bag if is_bag else frame, **with_seen())
    check_seen(run.result, run.per_query.compute().to_dict("records"))


@pytest.mark.parametrize("options", [{"metrics": ["bpref"]}, {"unjudged": "bounds"}])
def test_the_column_that_says_what_was_looked_at_is_named(options):
    """Before anything is computed; one that is not there is refused too."""
    frame = dd.from_pandas(pd.DataFrame(SEEN), npartitions=2)
    for more in ({}, {"judged_field": "nowhere"}):
        with pytest.raises(InvalidInput) as caught:
            evaluate_dask(frame, k=1, **options, **more)
        assert caught.value.argument == "judged_field"
