"""Ray on this machine, with real workers."""

import logging

import pyarrow as pa
import pytest
import ray
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

from krag_eval import CoverageMatcher
from krag_eval.distributed import evaluate_ray

ROWS = sample()
# Ray reads its own deprecated settings, and says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _ray():
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.mark.parametrize(("blocks", "batch_size"), [(1, 4096), (5, 7), (20, 1)])
def test_ray_gives_the_digits_of_a_local_run(blocks, batch_size):
    """Whatever the blocks and batches; every row too."""
    dataset = ray.data.from_items(ROWS, override_num_blocks=blocks)
    run = evaluate_ray(dataset, k=[1, 3, 10], matcher="coverage", batch_size=batch_size)
    check_run(run.result, run.per_query.take_all())


def test_budgets_are_those_of_a_local_run():
    """By words and by a function of one's own; lengths and ranks come back as text."""
    dataset = ray.data.from_items(ROWS, override_num_blocks=4)
    run = evaluate_ray(dataset, **within(), matcher="coverage(union=yes)")
    check_budgets(run.result, run.per_query.take_all())


def test_what_was_looked_at_is_a_column():
    """Null says that nothing was."""
    schema = pa.schema([("question", pa.string()), *((name, pa.list_(pa.string()))
                        for name in ("actual", "predicted", "seen", "bad", "used"))])  # fmt: skip
    dataset = ray.data.from_arrow(pa.Table.from_pylist(SEEN, schema=schema))
    run = evaluate_ray(dataset, **with_seen(), batch_size=2)
    check_seen(run.result, run.per_query.take_all())


def test_structs_are_documents():
    """In Arrow, where every struct has every field."""
    rows = [{**row, "actual": [{"page_content": one, "id": None, "metadata": {"page": 1}}
                               for one in row["actual"]]} for row in ROWS]  # fmt: skip
    run = evaluate_ray(ray.data.from_arrow(pa.Table.from_pylist(rows)), k=3, matcher="contains")
    assert run.result.to_dict() == local(ROWS, 3, matcher="contains").to_dict()


def test_a_persisted_run_keeps_its_rows_and_undefined_values():
    """NaN stays NaN, and is no null."""
    rows = [{**row, "actual": []} if number < 20 else row for number, row in enumerate(ROWS)]
    schema = pa.schema([("question", pa.string()), ("actual", pa.list_(pa.string())),
                        ("predicted", pa.list_(pa.string()))])  # fmt: skip
    dataset = ray.data.from_arrow(pa.Table.from_pylist(rows, schema=schema))
    run = evaluate_ray(dataset, k=3, matcher="contains", no_ground_truth="skip").persist()
    expected = local(rows, 3, matcher="contains", no_ground_truth="skip")
    assert run.result.to_dict() == expected.to_dict()
    values = [row["ndcg@3"] for row in run.per_query.take_all()]
    assert sum(value != value for value in values) == 20


def test_a_matcher_of_a_notebook_travels():
    """Classes that no worker can import are sent by value."""

    class Shouting(CoverageMatcher):
        name = "shouting"

    run = evaluate_ray(ray.data.from_items(ROWS), k=3, matcher=Shouting())
    assert run.result.to_dict() == local(ROWS, 3, matcher="coverage").to_dict()


def test_arguments_are_checked_on_the_driver():
    """Columns, where they are known; the kind of table; the batch size."""
    with pytest.raises(ValueError, match="actual_field must be a column of the table"):
        evaluate_ray(ray.data.from_arrow(pa.Table.from_pylist(ROWS)), actual_field="truth")
    with pytest.raises(TypeError, match="dataset must be a Ray Dataset, got a list"):
        evaluate_ray(ROWS)
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1, got 0"):
        evaluate_ray(ray.data.from_items(ROWS), batch_size=0)
