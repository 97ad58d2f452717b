"""Dask: frames and bags, whatever the partitioning."""

import dask
import dask.bag
import dask.dataframe as dd
import pandas as pd
import pytest
from cluster_samples import (
    SEEN,
    check_budgets,
    check_run,
    check_seen,
    local,
    sample,
    with_seen,
    within,
)

from krag_eval import CoverageMatcher, KragEvalWarning
from krag_eval.distributed import evaluate_dask
from krag_eval.errors import DatasetError, InvalidInput

ROWS = sample()


@pytest.fixture(autouse=True)
def _in_this_process():
    """Run tasks one by one, so that warnings and errors are seen; lists stay lists."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def frame_of(rows=ROWS, n=2):
    return dd.from_pandas(pd.DataFrame(rows), npartitions=n)


def bag_of(rows=ROWS, n=2):
    return dask.bag.from_sequence(rows, npartitions=n)


def records(run):
    return run.per_query.compute().to_dict("records")


@pytest.mark.parametrize("n", [1, 4, 17])
def test_a_frame_gives_the_digits_of_a_local_run(n):
    """All averages at all cutoffs, the signature, and every row."""
    run = evaluate_dask(frame_of(n=n), k=[1, 3, 10], matcher="coverage")
    check_run(run.result, records(run))


def test_a_bag_gives_the_digits_of_a_local_run():
    """Dicts, with documents as dicts among them, and other scheduling."""
    rows = [{**row, "actual": [{"page_content": one} for one in row["actual"]]} for row in ROWS]
    options = {"matcher": CoverageMatcher(0.9), "no_ground_truth": "zero"}
    run = evaluate_dask(bag_of(rows, 5), k=[1, 3, 10], **options)
    with dask.config.set(scheduler="processes"):
        assert run.result.to_dict() == local(ROWS, **options).to_dict()


@pytest.mark.parametrize("n", [1, 4])
def test_budgets_are_those_of_a_local_run(n):
    """By words and by a function of one's own; lengths and ranks come back as text."""
    run = evaluate_dask(frame_of(n=n), **within(), matcher="coverage(union=yes)")
    check_budgets(run.result, records(run))


def test_skipped_queries_are_left_out_of_every_partition():
    """Also of one that holds nothing else; the rejection rate is that of the whole."""
    rows = [{**row, "actual": []} if number < 20 else row for number, row in enumerate(ROWS)]
    options = {"no_ground_truth": "skip", "matcher": "contains"}
    run = evaluate_dask(bag_of(rows, 6), k=[1, 3, 10], **options)
    assert run.result.to_dict() == local(rows, **options).to_dict()
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
    run = evaluate_dask(bag_of(n=3), k=3, matcher=Asked()).persist()
    assert run.result.n_queries == len(run.per_query) == len(ROWS)
    assert Asked.times == 3
    assert run.persist().result.to_dict() == run.result.to_dict()


def test_the_whole_is_warned_of_once():
    """That nothing matched at all is no news of a partition."""
    rows = [{"question": str(n), "actual": [f"a{n}"], "predicted": ["b"]} for n in range(6)]
    run = evaluate_dask(bag_of(rows, 6), k=1)
    with pytest.warns(KragEvalWarning, match="matched nothing at all in 6 queries") as warned:
        run.result  # noqa: B018 - computed when asked for
    assert len(warned) == 1


def test_rows_are_where_the_engine_has_them():
    """A result of sums says so, and how to get at them."""
    run = evaluate_dask(bag_of(), k=3, matcher="contains")
    with pytest.raises(ValueError, match=r"no per-query rows.*they are in \.per_query of the run"):
        run.result.per_query()


def test_rows_without_questions():
    """Have no labels, and the same averages."""
    rows = [{name: row[name] for name in ("actual", "predicted")} for row in ROWS]
    run = evaluate_dask(bag_of(rows), k=3, matcher="contains", question_field=None)
    assert run.result.to_dict() == local(ROWS, 3, matcher="contains").to_dict()


@pytest.mark.parametrize("of", [bag_of, frame_of])
def test_what_was_looked_at_is_a_column(of):
    """An absent cell says that nothing was; rows tell what is known of each document."""
    run = evaluate_dask(of(SEEN), **with_seen())
    check_seen(run.result, records(run))


def test_a_bag_needs_no_setting():
    """Lists of its dicts stay lists, also where Dask makes texts of those of a frame."""
    with dask.config.set({"dataframe.convert-string": True}):
        assert evaluate_dask(bag_of(), k=3, matcher="contains").result.n_queries == len(ROWS)


# What is refused


def texts():
    """Return a frame whose lists Dask has turned into their printed form, as by default."""
    with dask.config.set({"dataframe.convert-string": True}):
        return frame_of()


@pytest.mark.parametrize(
    ("collection", "options", "error", "argument"),
    [
        (lambda: pd.DataFrame(ROWS), {}, TypeError, "collection"),
        (texts, {}, TypeError, "actual_field"),
        (lambda: bag_of([{"question": "?", "actual": ["a"]}]), {}, TypeError, "collection"),
        (lambda: bag_of(["a"]), {}, TypeError, "collection"),
        (lambda: bag_of([{"question": "?", "actual": "a", "predicted": []}]), {}, DatasetError,
         "actual"),
        (frame_of, {"actual_field": "truth"}, InvalidInput, "actual_field"),
        (lambda: frame_of(SEEN), {"metrics": ["bpref"]}, InvalidInput, "judged_field"),
        (lambda: frame_of(SEEN), {"unjudged": "bounds"}, InvalidInput, "judged_field"),
        (lambda: frame_of(SEEN), {"metrics": ["clean"]}, InvalidInput, "unwanted_field"),
        (lambda: frame_of(SEEN), {"metrics": ["citation_recall"]}, InvalidInput, "cited_field"),
        (lambda: frame_of(SEEN), {"judged_field": "nowhere"}, InvalidInput, "judged_field"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(collection, options, error, argument):
    """Columns before anything is computed; rows when they are read, by their place."""
    with pytest.raises(error) as caught:
        evaluate_dask(collection(), k=1, **options).result  # noqa: B018
    assert caught.value.argument == argument
    if argument == "actual":
        assert caught.value.place.row == 0
