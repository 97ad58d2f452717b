"""Tags of queries: what can be one, and that they stay with the result wherever it goes."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator
from krag_eval.core.results.rows import RowsInFile
from krag_eval.errors import DatasetError, Place
from krag_eval.partitions import PartitionPlan
from krag_eval.streaming.row_files import join_rows, write_rows

ACTUAL, PREDICTED = [["a"], ["b"], ["c"]], [["a"], ["x"], ["y", "c"]]
TAGS: dict[str, list[Any]] = {
    "corpus": ["위키", None, "=1+1"],
    "pages": [3, -1, None],
    "hard": [True, False, None],
    "recall@5": [0.5, 1e-9, 2.0],
}


def tagged() -> OfflineRetrievalEvaluator:
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, tags=TAGS)


def test_tags_stay_with_the_result_and_change_no_number() -> None:
    """Also of evaluators that share its matches."""
    bare = OfflineRetrievalEvaluator(ACTUAL, PREDICTED).evaluate(5)
    result = tagged().evaluate(5)
    assert result.tags == TAGS
    assert result == bare
    assert result.signature == bare.signature
    assert bare.tags == {}


def test_tags_are_saved_and_read_back(tmp_path: Path) -> None:
    """With their types; a result without tags is saved as it was before there were any."""
    tagged().evaluate(5).to_json(tmp_path / "tagged.json")
    assert EvaluationResult.from_json(tmp_path / "tagged.json").tags == TAGS
    OfflineRetrievalEvaluator(ACTUAL, PREDICTED).evaluate(5).to_json(tmp_path / "bare.json")
    assert '"tags"' not in (tmp_path / "bare.json").read_text("utf-8")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tags_are_columns_of_the_rows_of_a_run_in_parts(tmp_path: Path, ending: str) -> None:
    """In a file of each format, from parts whose tags are of different types."""
    plan = PartitionPlan.of(5)
    parts = []
    for number, here in enumerate((slice(0, 1), slice(1, 3))):
        tags = {name: values[here] for name, values in TAGS.items()}
        part = plan.evaluate(ACTUAL[here], PREDICTED[here], None, tags)
        path = tmp_path / f"{number}{ending}"
        write_rows(path, part.rows)
        parts.append((path, part.partial))
    join_rows([path for path, _ in parts], tmp_path / f"rows{ending}")
    totals = plan.result([partial for _, partial in parts]).summary
    assert RowsInFile(tmp_path / f"rows{ending}", totals).tags == TAGS


@pytest.mark.parametrize("cell", ["wiki", "[1]", "NaN", "[" * 10**5])
def test_rows_with_changed_tags_are_refused_by_name(tmp_path: Path, cell: str) -> None:
    """As any other cell that holds what no run writes."""
    plan, path = PartitionPlan.of(5), tmp_path / "rows.csv"
    part = plan.evaluate(ACTUAL, PREDICTED, None, {"corpus": ["wiki"] * len(ACTUAL)})
    write_rows(path, part.rows)
    rows = pd.read_csv(path)
    rows.assign(**{"tag:corpus": cell}).to_csv(path, index=False)
    with pytest.raises(DatasetError) as refused:
        _ = RowsInFile(path, plan.result([part.partial]).summary).tags
    assert refused.value.place == Place(str(path))


def test_nothing_is_no_tag() -> None:
    """NaN, as tables have it, is nothing too."""
    tags = {"corpus": ["wiki", float("nan"), None]}
    evaluator = OfflineRetrievalEvaluator(ACTUAL, PREDICTED, tags=tags)
    assert evaluator.evaluate(5).tags == {"corpus": ["wiki", None, None]}
