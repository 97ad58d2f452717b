"""Results: the per-query table at every cutoff, its averages, and how to read and keep them.

This room knows tables, signatures and its own file format. It must not know documents, matchers
or drawing; pandas is loaded only when a table is asked for.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.averages import average
from krag_eval.conventions import AveragingMethod, Conventions
from krag_eval.cutoffs import check_cutoff, spelled, unspelled
from krag_eval.files import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EvaluationResult"]

Table: TypeAlias = dict[str, NDArray[Any]]

_FORMAT = "krag_eval.result"
_FORMAT_VERSION = 1
_COUNT_COLUMNS = ("ground_truth", "retrieved", "relevant", "covered")
# Needed for averages, but the per-query table shows them in another form.
_HIDDEN_COLUMNS = ("precision_base", "rank")


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """All metrics at all cutoffs asked for, per query and averaged.

    Made by ``OfflineRetrievalEvaluator.evaluate``; not meant to be built by hand.

    Attributes:
        settings: What the numbers depend on, in a fixed order: matcher, threshold, k, criteria,
            averaging, conventions, treatment of queries without ground truth, number of queries,
            version.
        labels: One label per query.
        tables: Cutoff -> per-query columns, each of shape (queries,).
        keys: Metric column -> name of its mean.
        counted: Whether a query counts in the averages; shape (queries,).
        averaging_method: Which of the micro and macro keys are shown.
        conventions: The conventions the metrics were computed under.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> result = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x", "b"]]).evaluate(k=[1, 3])
    >>> result.to_dict()["macro_recall@1"]
    0.5
    """

    settings: Mapping[str, str]
    labels: list[str | int]
    tables: Mapping[int | None, Table]
    keys: Mapping[str, str]
    counted: NDArray[np.bool_]
    averaging_method: AveragingMethod
    conventions: Conventions

    @property
    def k(self) -> tuple[int | None, ...]:
        """The cutoffs, in the order they were asked for; ``None`` is all retrieved documents."""
        return tuple(self.tables)

    @property
    def n_queries(self) -> int:
        """Number of queries, counted in the averages or not."""
        return len(self.labels)

    @property
    def signature(self) -> str:
        """One line that pins down what the numbers depend on."""
        return " | ".join(f"{name}={value}" for name, value in self.settings.items())

    @cached_property
    def _averages(self) -> dict[int | None, dict[str, float]]:
        return {k: self._averages_of(table) for k, table in self.tables.items()}

    def _averages_of(self, table: Table) -> dict[str, float]:
        counted = {name: column[self.counted] for name, column in table.items()}
        averages: dict[str, float] = {}
        for name, key in self.keys.items():
            averages |= average(
                name,
                counted,
                key=key,
                averaging_method=self.averaging_method,
                conventions=self.conventions,
            )
        return averages

    @property
    def metrics(self) -> pd.DataFrame:
        """The averages: one row per cutoff (``"all"`` for no cutoff), one column per key."""
        import pandas as pd

        index = pd.Index(["all" if k is None else k for k in self.k], name="k")
        return pd.DataFrame(list(self._averages.values()), index=index)

    def per_query(self, k: int | None = None) -> pd.DataFrame:
        """Return one row per query, indexed by the queries' labels, at one of the cutoffs.

        Columns: ``ground_truth`` (items), ``retrieved``, ``relevant`` and ``covered`` (counts
        within the cutoff), then the metrics. Queries left out of the averages hold NaN.

        Args:
            k: One of the cutoffs that were evaluated; may be left out if there is only one.

        Raises:
            ValueError: If that cutoff was not evaluated.
        """
        import pandas as pd

        table = self.tables[self.evaluated_cutoff(k)]
        shown = {name: table[name] for name in _COUNT_COLUMNS}
        for name, column in table.items():
            if name not in shown and name not in _HIDDEN_COLUMNS:
                shown[name] = np.where(self.counted, column, np.nan)
        return pd.DataFrame(shown, index=pd.Index(self.labels, name="query"))

    def evaluated_cutoff(self, k: int | None = None) -> int | None:
        """Return ``k`` if it was evaluated, or the only cutoff if ``k`` is left out.

        Raises:
            ValueError: If that cutoff was not evaluated, listing those that were.
        """
        k = check_cutoff(k)
        if k in self.tables:
            return k
        if k is None and len(self.tables) == 1:
            return self.k[0]
        evaluated = ", ".join(map(spelled, self.k))
        raise ValueError(
            f"k must be one of the evaluated cutoffs ({evaluated}), got {spelled(k)}; "
            "name it in evaluate(k=[…])."
        )

    def averages(self, k: int | None = None) -> dict[str, float]:
        """Return the averages at one of the cutoffs, such as ``{"hit_rate": 0.5, …}``."""
        return dict(self._averages[self.evaluated_cutoff(k)])

    def to_dict(self) -> dict[str, float]:
        """Return every average under its one spelling: ``{"macro_recall@5": …, "mrr@all": …}``."""
        return {
            f"{key}@{spelled(k)}": value
            for k, averages in self._averages.items()
            for key, value in averages.items()
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Save the result, per-query table included; :meth:`from_json` reads it back.

        The file appears complete or not at all. Undefined values are ``null``.
        """
        content = {
            "format": _FORMAT,
            "format_version": _FORMAT_VERSION,
            "signature": self.signature,
            "settings": dict(self.settings),
            "averaging_method": self.averaging_method.value,
            "conventions": str(self.conventions),
            "metrics": _without_nan(self.to_dict()),
            "keys": dict(self.keys),
            "queries": self.labels,
            "counted": self.counted.tolist(),
            "per_query": {
                spelled(k): {
                    name: [None if value != value else value for value in column.tolist()]
                    for name, column in table.items()
                }
                for k, table in self.tables.items()
            },
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> EvaluationResult:
        """Read a result that :meth:`to_json` saved.

        Raises:
            ValueError: If the file is not such a result, of a later format, or damaged.
        """
        try:
            content = json.loads(Path(path).read_text("utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{path}: not a saved krag_eval result: {error}.") from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"{path}: not a saved krag_eval result (no 'format': '{_FORMAT}').")
        if content.get("format_version") != _FORMAT_VERSION:
            raise ValueError(
                f"{path}: saved in format {content.get('format_version')!r}, and this version of "
                f"krag_eval reads format {_FORMAT_VERSION}; a newer version may read it."
            )
        try:
            result = cls._from_content(content)
            intact = _without_nan(result.to_dict()) == content["metrics"]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: the saved result is damaged ({error}).") from error
        if not intact:
            raise ValueError(
                f"{path}: the saved result is damaged: its averages do not follow from its "
                "per-query values."
            )
        return result

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> EvaluationResult:
        labels, counted = content["queries"], np.array(content["counted"], np.bool_)
        tables = {
            unspelled(k): {name: _column(values) for name, values in table.items()}
            for k, table in content["per_query"].items()
        }
        columns = [counted, *(column for table in tables.values() for column in table.values())]
        if any(column.shape != (len(labels),) for column in columns):
            raise ValueError("columns of different lengths")
        return cls(
            settings=content["settings"],
            labels=labels,
            tables=tables,
            keys=content["keys"],
            counted=counted,
            averaging_method=AveragingMethod(content["averaging_method"]),
            conventions=Conventions.parse(content["conventions"]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EvaluationResult):
            return NotImplemented
        return (
            dict(self.settings) == dict(other.settings)
            and self.labels == other.labels
            and self.k == other.k
            and all(
                self.tables[k].keys() == other.tables[k].keys()
                and all(
                    np.array_equal(column, other.tables[k][name], equal_nan=True)
                    for name, column in table.items()
                )
                for k, table in self.tables.items()
            )
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        table = self.metrics.T.to_string(float_format=lambda value: f"{value:.4f}")
        return f"EvaluationResult of {self.n_queries} queries\n{table}\n{self.signature}"

    def _repr_html_(self) -> str:
        table = self.metrics.T.to_html(float_format=lambda value: f"{value:.4f}")
        return f"{table}<p><small>{html.escape(self.signature)}</small></p>"


def _column(values: list[Any]) -> NDArray[Any]:
    if not all(value is None or isinstance(value, (int, float)) for value in values):
        raise TypeError("a column holds something that is not a number")
    if all(type(value) is int for value in values):
        return np.array(values, np.int64)
    return np.array([math.nan if value is None else value for value in values], np.float64)


def _without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
