"""What all engines share: a task that workers do on their rows, and the run put together again."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from krag_eval.core import LISTS, Cut, Location, NoRows, Partial, declared, must
from krag_eval.core.documents import plain
from krag_eval.core.results.rows import JUDGED_COLUMNS, UNWANTED_DIGEST

# From their public address, which has to be loaded for them to be sent by name.
from krag_eval.errors import Advice, InvalidInput, InvalidType, Place, Refusal
from krag_eval.evaluator import Part, PartitionPlan
from krag_eval.loading.cells import documents_in, is_missing, list_in, ranked_in
from krag_eval.result import EvaluationResult

if TYPE_CHECKING:
    import pandas as pd

#: The column that carries what must be kept of a part, beside its rows.
PARTIAL = "krag_eval partial"


class Fields(NamedTuple):
    """The columns of a table that hold a query, its ground truth, and what was retrieved.

    And what somebody looked at, what must not come back, and what was cited, where there are such
    columns.
    """

    question: str | None
    actual: str
    predicted: str
    judged: str | None = None
    unwanted: str | None = None
    cited: str | None = None

    @classmethod
    def checked(
        cls,
        columns: Sequence[str] | None,
        question_field: str | None,
        actual_field: str,
        predicted_field: str,
        *others: str | None,
    ) -> Fields:
        """Check the names against a table's columns (``None``: they are not known yet).

        Raises:
            InvalidInput: If there is no such column, naming those there are.
        """
        fields = cls(question_field, actual_field, predicted_field, *others)
        for role, name in fields._asdict().items():
            optional = role not in ("actual", "predicted") and not name
            if columns is None or name in columns or optional:
                continue
            fix = Advice("pass {} if there is none", question_field=None)
            be = f"be a column of the table ({', '.join(map(str, columns))})"
            raise must(f"{role}_field", be, name, fix if role == "question" else "")
        return fields

    @property
    def of_documents(self) -> dict[str, str]:
        """The columns that hold lists of documents, by the argument that names each."""
        named = zip(self._fields[1:], self[1:], strict=True)
        return {f"{name}_field": column for name, column in named if column is not None}

    @property
    def lists(self) -> list[str]:
        """The other lists that an evaluator gets."""
        return [name for name in LISTS if getattr(self, name)]

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
    def asked(
        cls, how: Mapping[str, Any], columns: Sequence[str] | None, dumps: Callable[[Any], bytes]
    ) -> tuple[Task, PartitionPlan]:
        """Settle what an engine's function was called with.

        Args:
            how: Its arguments, by name.
            columns: Those of the table; ``None`` if they are not known yet.
            dumps: The engine's own pickle.

        Raises:
            InvalidInput, InvalidType: If a column, an option or the matcher cannot be used.
        """
        fields = Fields.checked(columns, *(how[f"{role}_field"] for role in Fields._fields))
        cut = {name: how[name] for name in declared(Cut)}
        plan = PartitionPlan.of(**cut, lists=fields.lists, **how["options"])
        return cls.of(plan, fields, dumps), plan

    @classmethod
    def of(cls, plan: PartitionPlan, fields: Fields, dumps: Callable[[Any], bytes]) -> Task:
        """Pack a plan, by the engine's own pickle, which knows functions of notebooks.

        Raises:
            InvalidType: If the matcher or a metric cannot be pickled.
            InvalidInput: If the plan asks what was looked at, and no column says so.
        """
        asks = [one.name for one in plan.metrics.values() if one.needs_judged]
        if fields.judged is None and (asks or plan.plan.unjudged != "wrong"):
            what = asks[0] if asks else f"unjudged={plan.plan.unjudged!r}"
            problem = f"must name the column with the documents that were looked at, for {what}"
            raise InvalidInput("judged_field", problem)
        for one in plan.metrics.values():
            if one.needs_list not in ("", *fields.lists):
                problem = f"must name the column with these documents, for {one.name}"
                raise InvalidInput(f"{one.needs_list}_field", problem)
        try:
            return cls(dumps(plan), fields)
        except Exception as error:  # whatever a user's __reduce__ or __getstate__ raises
            problem = f": the matcher {plan.plan.matcher.signature} and the metrics are sent to "
            problem += f"other processes, and could not be pickled ({error!r:.300})"
            fix = "keep open files, locks and connections out of their attributes"
            raise InvalidType("matcher", problem, fix) from error

    @property
    def plan(self) -> PartitionPlan:
        """The plan; the same object each time within a process."""
        return _unpacked(self.payload)

    @property
    def types(self) -> dict[str, type]:
        """The columns of what comes back, and their types."""
        judged = {} if self.fields.judged is None else dict.fromkeys(JUDGED_COLUMNS, object)
        unwanted = {} if self.fields.unwanted is None else {UNWANTED_DIGEST: object}
        return {**self.plan.row_types, **judged, **unwanted, PARTIAL: object}

    def part(self, columns: Mapping[str, Iterable[Any]]) -> Part:
        """Evaluate some rows, given by column."""
        question, actual, predicted, *_others = self.fields
        for name in self.fields.names:
            if name not in columns:
                problem = f"no column {name!r}; the columns are {', '.join(columns)}"
                raise InvalidInput("", problem)
        roles = (*(["judged"] if self.fields.judged else []), *self.fields.lists)
        lists: dict[str, Any] = {role: self._lists(columns, role) for role in roles}
        labels = question and [None if is_missing(one) else plain(one) for one in columns[question]]
        truth = document_lists(columns[actual], actual, ground_truth=True)
        found = document_lists(columns[predicted], predicted, ground_truth=False, ranked=True)
        return self.plan.evaluate(truth, found, labels, **lists)

    def _lists(self, columns: Mapping[str, Iterable[Any]], role: str) -> list[Any]:
        """Return one list of documents per row, ``None`` where there is none."""
        name = getattr(self.fields, role)
        cells = [None if is_missing(plain(cell)) else cell for cell in columns[name]]
        lists = (() if one is None else one for one in cells)
        found = document_lists(lists, name, ground_truth=role == "unwanted")
        return [None if cell is None else one for cell, one in zip(cells, found, strict=True)]

    def rows(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Turn frames into per-query rows, and for each a last row with the partial."""
        names = self.fields.names
        for frame in frames:
            yield self.frame({name: frame[name].tolist() for name in names if name in frame})

    def frame(self, columns: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
        """Return the per-query rows of a partition, given by column, and the row of its partial.

        That is no query, so its numbers mean nothing.
        """
        import pandas as pd

        part = self.part(columns)
        partial = json.dumps(part.partial.to_json(), separators=(",", ":"))
        # What was looked at has no column where there is no query.
        absent = np.full(len(part.rows["query"]), None, object)
        series = {}
        for name, kind in self.types.items():
            nothing = partial if name == PARTIAL else None if kind is object else 0
            values = [part.rows.get(name, absent), np.full(1, nothing, kind)]
            # Texts as objects: their default type differs between versions of pandas.
            series[name] = pd.Series(np.concatenate(values), dtype=kind)
        return pd.DataFrame(series)


def unpacked(text: str) -> Partial:
    """Return a partial from its text, which every engine can carry."""
    return Partial.from_json(json.loads(text))


@lru_cache(maxsize=1)
def _unpacked(payload: bytes) -> PartitionPlan:
    # Made by this package on the driver, never read from a file.
    return cast("PartitionPlan", pickle.loads(payload))


def document_lists(
    cells: Iterable[Any], name: str, *, ground_truth: bool = True, ranked: bool = False
) -> list[list[Any]]:
    """Return one list of documents per row.

    Args:
        cells: The cells of a column: lists, arrays, or lists written as text.
        name: The column, for messages.
        ground_truth: Whether it is the ground truth, where documents may be interchangeable.
        ranked: Whether ranks and scores beside documents matter. Such documents come back as they
            are, after a check, for the evaluator to put in order.

    Raises:
        DatasetError: If a cell is not a list of documents; rows are counted from 0 within the part.

    >>> document_lists([["a", {"page_content": "b"}], []], "actual", ground_truth=True)
    [['a', {'page_content': 'b'}], []]
    """
    lists, at = [], Location(name)
    for row, cell in enumerate(cells):
        try:
            if ranked:
                documents, standing = ranked_in(cell, at)
            else:
                documents, standing = documents_in(cell, at, ground_truth=ground_truth), None
            lists.append(documents if standing is None else list_in(cell, at))
        except Refusal as error:
            raise error.at(Place("part of the table", row=row)) from error
    return lists


Table = TypeVar("Table")

_WHERE = "they are in .per_query of the run, a table of the engine's that you can query and write"


class DistributedRun(Generic[Table]):
    """An evaluation on a cluster; nothing is computed before it is asked for.

    Made by ``evaluate_spark``, ``evaluate_ray`` and ``evaluate_dask``; not meant to be built by
    hand.

    Attributes:
        per_query: The engine's own lazy table, one row per query: ``query``, ``counted``,
            ``ground_truth``, and for every cutoff ``retrieved@k``, ``relevant@k``, ``covered@k``
            and the metrics, such as ``ndcg@10``; where there is a budget, also the documents'
            lengths and the items' first ranks, as text. Rows may come in any order.
    """

    def __init__(
        self,
        per_query: Table,
        plan: PartitionPlan,
        partials: Callable[[], Iterable[str]],
        persisted: Callable[[], DistributedRun[Table]],
    ) -> None:
        self.per_query = per_query
        self._plan = plan
        self._partials = partials
        self._persisted = persisted

    @cached_property
    def result(self) -> EvaluationResult:
        """The result: averages, equal to those of a local run to the last digit.

        It is computed when first asked for and kept. Of each partition only sums are collected.
        Per-query tables, intervals and explanations need rows; see ``per_query``.

        Raises:
            InvalidInput: If there is no query, or none counts in the averages.
        """
        result = self._plan.result(map(unpacked, self._partials()))
        rows = NoRows(self._plan.cutoffs, result.n_queries, _WHERE)
        return replace(result, rows=rows)

    def persist(self) -> DistributedRun[Table]:
        """Return a run whose per-query rows the engine keeps once they are computed.

        Without it, :attr:`result` and every use of ``per_query`` evaluate anew. Ray computes
        now, the others when first asked.
        """
        return self._persisted()

    def __repr__(self) -> str:
        computed = "computed" if "result" in vars(self) else "not computed yet"
        return f"{type(self).__name__}(result {computed}, per_query={type(self.per_query)!r})"


def run_on(
    rows: Table,
    plan: PartitionPlan,
    per_query: Callable[[Table], Table],
    partials: Callable[[Table], Iterable[str]],
    persist: Callable[[Table], Table],
) -> DistributedRun[Table]:
    """Return a run on the rows of a task, by what the engine does with them.

    Args:
        rows: What :meth:`Task.frame` makes of all partitions.
        plan: The plan.
        per_query: Leaves out the rows that carry partials.
        partials: Collects those, as texts.
        persist: Keeps rows once they are computed.
    """
    return DistributedRun(
        per_query(rows),
        plan,
        lambda: partials(rows),
        lambda: run_on(persist(rows), plan, per_query, partials, persist),
    )
