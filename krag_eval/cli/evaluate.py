"""``krag-eval evaluate``: a file with one query per line."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from krag_eval.cli.options import check_early, evaluation_options, field_options, output_options
from krag_eval.cli.outputs import Outputs
from krag_eval.cli.printing import print_result
from krag_eval.cli.shell import is_refusal, warnings_as
from krag_eval.cutoffs import unspelled

if TYPE_CHECKING:
    from krag_eval.datasets import Dataset
    from krag_eval.results import EvaluationResult

__all__ = ["evaluate"]

_POSITION = re.compile(r"^(actual|predicted)_docs(?:\[(\d+)\])?")


@click.command(short_help="Evaluate the retrieved documents in a file.")
@click.argument("file")
@evaluation_options
@field_options
@output_options
def evaluate(
    file: str,
    json_path: str | None,
    csv_path: str | None,
    plot_path: str | None,
    question_field: str,
    actual_field: str,
    predicted_field: str,
    **options: Any,
) -> None:
    """Evaluate the retrieved documents in FILE ('-' reads standard input).

    FILE is JSONL, plain or .gz: one JSON object per line, with "question" (optional), "actual"
    (list of what should be retrieved) and "predicted" (list of what was, best first).
    """
    from krag_eval.datasets import read_jsonl

    outputs = Outputs.checked(json_path, csv_path, plot_path, sources=[file])
    check_early(options)
    with warnings_as("warning"):
        dataset = read_jsonl(
            sys.stdin if file == "-" else file,
            question_field=question_field,
            actual_field=actual_field,
            predicted_field=predicted_field,
        )
        result = _evaluated(dataset, **options)
    print_result(result, dataset.source)
    outputs.write(result)


def _evaluated(dataset: Dataset, *, cutoffs: Sequence[str], **options: Any) -> EvaluationResult:
    """Evaluate a dataset; an error that names a query names its line in the file."""
    try:
        return dataset.evaluator(**options).evaluate(k=[unspelled(one) for one in cutoffs])
    except ValueError as error:
        position = _POSITION.match(str(error))
        if position is None or not is_refusal(error):
            raise
        from krag_eval.datasets import DatasetError

        side, query = position.groups()
        line = f":{dataset.lines[int(query)]}: {side}" if query else f": {side}"
        raise DatasetError(dataset.source + line + str(error)[position.end() :]) from error
