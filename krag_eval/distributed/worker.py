"""What a worker does: it unpacks the plan once, and turns rows into per-query rows.

This room knows partitions, and pandas frames as every engine can hand them over. It must not know
any engine.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from krag_eval.distributed.cells import document_lists
from krag_eval.evaluator import Part, Partial, PartitionPlan

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARTIAL", "Fields", "Task"]

#: The column that carries what must be kept of a part, beside its rows.
PARTIAL = "krag_eval partial"


class Fields(NamedTuple):
    """The columns of a table that hold a query, its ground truth, and what was retrieved."""

    question: str | None
    actual: str
    predicted: str

    @classmethod
    def checked(
        cls,
        columns: Sequence[str] | None,
        *,
        question_field: str | None,
        actual_field: str,
        predicted_field: str,
    ) -> Fields:
        """Check the names against a table's columns (``None``: they are not known yet).

        Raises:
            ValueError: If there is no such column, naming those there are.
        """
        given = {
            "question_field": question_field,
            "actual_field": actual_field,
            "predicted_field": predicted_field,
        }
        for argument, name in given.items():
            if columns is None or name in columns or (argument == "question_field" and not name):
                continue
            hint = "; pass question_field=None if there is none" if "question" in argument else ""
            raise ValueError(
                f"{argument} must be a column of the table ({', '.join(map(str, columns))}), got "
                f"{name!r}{hint}."
            )
        return cls(question_field, actual_field, predicted_field)

    @property
    def names(self) -> list[str]:
        """The columns that are needed; no others are moved."""
        return list(dict.fromkeys(name for name in self if name is not None))


@dataclass(frozen=True)
class Task:
    """A plan on its way to workers: pickled, and unpickled once per process.

    So a model that travels with the plan is in the memory of each worker once, however many parts
    it is given.

    Attributes:
        payload: The pickled plan.
        fields: Where to find things in a row.
    """

    payload: bytes
    fields: Fields

    @classmethod
    def of(cls, plan: PartitionPlan, fields: Fields, dumps: Callable[[Any], bytes]) -> Task:
        """Pack a plan, by the engine's own pickle, which knows functions of notebooks.

        Raises:
            TypeError: If the matcher or a metric cannot be pickled.
        """
        try:
            return cls(dumps(plan), fields)
        except Exception as error:  # whatever a user's __reduce__ or __getstate__ raises
            raise TypeError(
                f"the matcher {plan.plan.matcher.signature} and the metrics are sent to other "
                f"processes, and could not be pickled ({type(error).__name__}: {error}); keep "
                "open files, locks and connections out of their attributes."
            ) from error

    @property
    def plan(self) -> PartitionPlan:
        """The plan; the same object each time within a process."""
        return _unpacked(self.payload)

    @property
    def types(self) -> dict[str, type]:
        """The columns of what comes back, and their types."""
        return {**self.plan.row_types, PARTIAL: object}

    def part(self, columns: Mapping[str, Iterable[Any]]) -> Part:
        """Evaluate some rows, given by column."""
        question, actual, predicted = self.fields
        for name in self.fields.names:
            if name not in columns:
                raise ValueError(f"no column {name!r}; the columns are {', '.join(columns)}.")
        labels = None if question is None else [_label(one) for one in columns[question]]
        return self.plan.evaluate(
            document_lists(columns[actual], actual),
            document_lists(columns[predicted], predicted),
            labels,
        )

    def rows(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Turn frames of one partition into per-query rows, and a last row with the partial."""
        whole = self.plan.nothing()
        for frame in frames:
            part = self.part(_columns(frame, self.fields.names))
            whole += part.partial
            yield self._frame(part.rows)
        yield self.last_row(whole)

    def partials(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Turn frames of one partition into one row with the partial, for want of the rows."""
        import pandas as pd

        whole = self.plan.nothing()
        for frame in frames:
            whole += self.part(_columns(frame, self.fields.names)).partial
        yield pd.DataFrame({PARTIAL: [packed(whole)]}, dtype=object)

    def frame(self, columns: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
        """Return the per-query rows of a partition, given by column, and the row of its partial."""
        import pandas as pd

        part = self.part(columns)
        return pd.concat([self._frame(part.rows), self.last_row(part.partial)], ignore_index=True)

    def last_row(self, partial: Partial) -> pd.DataFrame:
        """Return the row that is no query's: its numbers mean nothing."""
        empty = {
            name: np.full(1, None, object) if kind is object else np.zeros(1, kind)
            for name, kind in self.plan.row_types.items()
        }
        return self._frame(empty, packed(partial))

    def _frame(self, rows: Mapping[str, Any], partial: str | None = None) -> pd.DataFrame:
        import pandas as pd

        carried = np.full(len(rows["query"]), partial, object)
        # Texts as objects: their default type differs between versions of pandas.
        return pd.DataFrame(
            {
                name: pd.Series(values, dtype=values.dtype)
                for name, values in {**rows, PARTIAL: carried}.items()
            }
        )


def packed(partial: Partial) -> str:
    """Return a partial as text, which every engine can carry."""
    return json.dumps(partial.to_json(), separators=(",", ":"))


def unpacked(text: str) -> Partial:
    """Return a partial from its text."""
    return Partial.from_json(json.loads(text))


@lru_cache(maxsize=1)
def _unpacked(payload: bytes) -> PartitionPlan:
    # Made by this package on the driver, never read from a file.
    return cast("PartitionPlan", pickle.loads(payload))


def _columns(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: frame[name].tolist() for name in names if name in frame.columns}


def _label(value: Any) -> str | int | None:
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    return None if value is None or value != value else cast("str | int", value)
