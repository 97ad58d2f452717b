"""Questions: what is to be asked, and what should come back, from the shapes people have.

This room knows data sets, data frames and rows. It must not know retrievers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from krag_eval._errors import clipped, warn
from krag_eval.datasets.base import Dataset

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

__all__ = ["Questions", "Rows"]

Rows: TypeAlias = "Dataset | pd.DataFrame | Sequence[Mapping[str, Any]]"

_SHAPES = (
    'a list of rows {"question": …, "actual": [documents]}, a DataFrame with these columns, or '
    "what load_dataset returns"
)
_LOAD = "load_dataset(…) knows the column names of other tools, and takes yours"


@dataclass(frozen=True)
class Questions:
    """The questions of a data set and their ground truth.

    Attributes:
        texts: What to ask, per query; the same text may occur twice.
        labels: One label per query: its text, or its id or position where texts repeat.
        actual: Per query, its ground truth.
        defaults: Options for the evaluator that come with the data set.
    """

    texts: list[str]
    labels: list[str | int]
    actual: list[Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Rows) -> Questions:
        """Read the questions and their ground truth from a data set, a data frame or rows.

        Raises:
            TypeError: If it is none of these, or a question is no text.
            ValueError: If there are no questions, or a row or the data set lacks them.

        >>> Questions.of([{"question": "When?", "actual": ["At nine."]}]).labels
        ['When?']
        """
        if isinstance(dataset, Dataset):
            return _of_dataset(dataset)
        if _is_frame(dataset):
            return _of_frame(dataset)
        if isinstance(dataset, Sequence) and not isinstance(dataset, str | bytes):
            return _of_rows(dataset)
        raise TypeError(f"dataset must be {_SHAPES}, got {_kind(dataset)}{_remedy(dataset)}.")

    def __len__(self) -> int:
        return len(self.texts)


def _of_dataset(dataset: Dataset) -> Questions:
    if dataset.questions is None:
        raise ValueError(
            f"dataset: {dataset!r} does not hold the text of every question, so there is nothing "
            "to ask a retriever; read it with its questions (read_trec(…, queries=…), "
            'question_field="…"), or pass rows {"question": …, "actual": [documents]}.'
        )
    return Questions(
        list(dataset.questions), list(dataset.queries), list(dataset.actual), dataset.defaults
    )


def _of_frame(frame: pd.DataFrame) -> Questions:
    absent = [name for name in ("question", "actual") if name not in frame.columns]
    if absent:
        raise ValueError(
            f"dataset: the data frame has no column {absent[0]!r}, only "
            f"{', '.join(map(repr, frame.columns))}; {_LOAD}."
        )
    names = [name for name in ("question", "actual", "id") if name in frame.columns]
    return _of_rows(frame[names].to_dict("records"))


def _of_rows(rows: Sequence[Any]) -> Questions:
    if not len(rows):
        raise ValueError("dataset is empty; an evaluation needs at least one question.")
    for position, row in enumerate(rows):
        _check_row(row, position)
    texts = [row["question"] for row in rows]
    return Questions(texts, _labels(texts, rows), [row["actual"] for row in rows])


def _check_row(row: object, position: int) -> None:
    if not isinstance(row, Mapping):
        raise TypeError(
            f'dataset[{position}] must be a row {{"question": …, "actual": [documents]}}, got '
            f"{_kind(row)}."
        )
    absent = [name for name in ("question", "actual") if name not in row]
    if absent:
        raise ValueError(
            f"dataset[{position}] has no {absent[0]!r}, only {', '.join(map(repr, row))}; a row "
            f'is {{"question": …, "actual": [documents]}}; {_LOAD}.'
        )
    if not isinstance(row["question"], str):
        raise TypeError(
            f"dataset[{position}]['question'] must be a str, got {clipped(row['question'])}."
        )
    _check_actual(row["actual"], position)


def _check_actual(actual: object, position: int) -> None:
    if isinstance(actual, list | tuple) or (isinstance(actual, np.ndarray) and actual.ndim):
        return
    hint = ""
    if isinstance(actual, str) and actual.lstrip().startswith("["):
        hint = "; cells that spell lists are read by load_dataset(…)"
    raise TypeError(
        f"dataset[{position}]['actual'] must be a list of documents, even for one document, got "
        f"{_kind(actual)}{hint}."
    )


def _labels(texts: list[str], rows: Sequence[Mapping[str, Any]]) -> list[str | int]:
    """Label by question; where questions repeat, by id, or by position where there is no id."""
    different = len(set(texts))
    if different == len(texts):
        return list(texts)
    ids = [row.get("id") for row in rows]
    known = all(isinstance(one, str | int) and not isinstance(one, bool) for one in ids)
    labels = ids if known and len(set(ids)) == len(ids) else list(range(len(texts)))
    warn(
        f"dataset: {len(texts)} queries have {different} different questions, so all are labelled "
        f"by their {'ids' if labels is ids else 'positions'}."
    )
    return labels  # type: ignore[return-value]  # checked above


def _is_frame(value: object) -> TypeIs[pd.DataFrame]:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _remedy(value: object) -> str:
    if isinstance(value, str):
        return "; pass load_dataset(…) of a file"
    if isinstance(value, Mapping):
        return "; put each question into a row of its own"
    return ""
