"""Rows: one value per query and metric, in memory, in a file, or not kept.

In a file the columns of several cutoffs are side by side, named as in ``ndcg@10``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._io import parquet_for, shielded, unshielded
from krag_eval.documents import Tag, is_tag
from krag_eval.errors import (
    Advice,
    DatasetError,
    Fix,
    InvalidInput,
    InvalidType,
    Place,
)
from krag_eval.scoring.cutoffs import MOST_IN_A_TEXT, Budget, Cutoff, fitting, spelled
from krag_eval.scoring.metrics import (
    LISTED,
    TOKEN_COUNTS,
    Metric,
    completed,
    metrics_of,
    token_columns,
)
from krag_eval.scoring.parts import Summary
from krag_eval.scoring.relevance import Relevance

if TYPE_CHECKING:
    import pandas as pd

#: The per-query table at one cutoff: column -> values, each of shape (queries,).
TableOf: TypeAlias = Mapping[str, NDArray[Any]]

#: What is counted per query; the first does not depend on the cutoff.
COUNT_COLUMNS = ("ground_truth", "retrieved", "relevant", "covered")

#: The column that tells a query's ground truth from any other.
DIGEST = "ground_truth_digest"
_DIGEST = re.compile("[0-9a-f]{16}(-[0-9a-f]{16})?")

#: Where there is a budget: what columns with the documents' lengths begin with, a unit behind it,
#: and the column with the first ranks of the covered items.
LENGTHS, FIRST_RANKS = "lengths@", "first_ranks"
_NUMBERS = re.compile("([0-9]{1,10}( [0-9]{1,10})*)?")

#: Where it is known what was looked at: the flags of each query's documents, what these are known
#: by, and what tells the documents that were looked at from others.
JUDGED, KEYS, JUDGED_DIGEST = "judged", "document_keys", "judged_digest"
#: The columns of flat rows that tell what was looked at.
JUDGED_COLUMNS = (JUDGED, KEYS, JUDGED_DIGEST)

#: What the columns with tags begin with; a tag may be named like a metric.
TAG = "tag:"
NO_TAGS: Mapping[str, Sequence[Tag]] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Which of each query's retrieved documents are judged, and what they are known by.

    Attributes:
        known: Per query, whether each document is judged, in order of ranks.
        keys: Per query, what each document is known by, the same in every run.
        digests: Per query, what tells the documents that were looked at from others.
    """

    known: Sequence[Sequence[bool]]
    keys: Sequence[Sequence[str]]
    digests: Sequence[str]

    @classmethod
    def of(cls, found: Relevance) -> JudgedRows:
        """Take the flags and keys of a relevance that knows what was looked at."""
        ends = np.cumsum(found.n_retrieved).tolist()
        bounds = [*zip([0, *ends], ends, strict=False)]
        known, keys = found.judged.known.tolist(), list(found.judged.keys)
        return cls(
            [known[start:end] for start, end in bounds],
            [keys[start:end] for start, end in bounds],
            list(found.judged.digests),
        )

    @classmethod
    def checked(cls, known: Sequence[Any], keys: Sequence[Any], digests: object) -> JudgedRows:
        """Check what was read from a file.

        Raises:
            InvalidInput: If it does not fit together.
        """
        if (
            not len(known) == len(keys) == len(checked_digests(digests, len(known)))
            or not all(len(one) == len(other) for one, other in zip(known, keys, strict=True))
            or not {bool} >= {type(flag) for one in known for flag in one}
            or not {str} >= {type(key) for one in keys for key in one}
        ):
            raise InvalidInput("", "what is known of its documents does not fit together")
        return cls(known, keys, checked_digests(digests, len(known)))

    def at(self, positions: Sequence[int]) -> JudgedRows:
        """Return those of some queries, in the order of their positions."""
        known = [self.known[i] for i in positions]
        keys = [self.keys[i] for i in positions]
        return JudgedRows(known, keys, [self.digests[i] for i in positions])

    def columns(self) -> dict[str, NDArray[np.object_]]:
        """Return the columns of a file, as texts."""
        flags = [" ".join("1" if one else "0" for one in flags) for flags in self.known]
        keys = [json.dumps(list(one), ensure_ascii=False) for one in self.keys]
        columns = {JUDGED: flags, KEYS: keys, JUDGED_DIGEST: list(self.digests)}
        made = {name: np.full(len(flags), None, object) for name in columns}
        for name, values in columns.items():
            made[name][:] = values
        return made

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> JudgedRows:
        """Read what :meth:`columns` made.

        Raises:
            ValueError: If it is something else.
        """
        known = [[{"1": True, "0": False}[one] for one in text.split()] for text in columns[JUDGED]]
        keys = [json.loads(text) for text in columns[KEYS]]
        return cls.checked(known, keys, list(columns[JUDGED_DIGEST]))


class Rows(Protocol):
    """The per-query part of a result. Reading them may fail, if they are not in memory."""

    @property
    def cutoffs(self) -> tuple[Cutoff, ...]:
        """The cutoffs, in the order they were asked for."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""

    @property
    def labels(self) -> list[str | int]:
        """One label per query."""

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a query counts in the averages; shape (queries,)."""

    @property
    def digests(self) -> Sequence[str] | None:
        """One text per query that tells its ground truth from another one; ``None`` if not kept."""

    @property
    def tags(self) -> Mapping[str, Sequence[Tag]]:
        """Name -> one value per query, ``None`` where a query has none."""

    @property
    def judged(self) -> JudgedRows | None:
        """Which retrieved documents are judged; ``None`` if it is not known."""

    @property
    def tables(self) -> Mapping[Cutoff, TableOf]:
        """Cutoff -> per-query columns."""

    def named_from(self, folder: str) -> str | None:
        """Return what to call the file they are in from a folder; ``None`` if they are in none."""


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """Rows at hand.

    Attributes:
        labels: One label per query.
        tables: Cutoff -> per-query columns, each of shape (queries,).
        counted: Whether a query counts in the averages; shape (queries,).
        digests: One text per query that tells its ground truth from another one; ``None`` if not
            kept.
        tags: Name -> one value per query, ``None`` where a query has none.
        judged: Which retrieved documents are judged; ``None`` if it is not known.
    """

    labels: list[str | int]
    tables: Mapping[Cutoff, TableOf]
    counted: NDArray[np.bool_]
    digests: Sequence[str] | None = None
    tags: Mapping[str, Sequence[Tag]] = field(default_factory=dict)
    judged: JudgedRows | None = None

    @property
    def cutoffs(self) -> tuple[Cutoff, ...]:
        """The cutoffs, in the order they were asked for."""
        return tuple(self.tables)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.labels)

    def named_from(self, folder: str) -> str | None:
        """Return ``None``: they are in no file."""
        return None


@dataclass(frozen=True)
class NoRows:
    """Rows that are not at hand: a run in parts kept sums alone.

    Attributes:
        cutoffs: The cutoffs, in the order they were asked for.
        n_queries: Number of queries.
        where: Where the rows are, and how to get at them, for the refusal.
    """

    cutoffs: tuple[Cutoff, ...]
    n_queries: int
    where: Fix = Advice("evaluate with {} to write them to a file", per_query=...)  # noqa: RUF009

    @property
    def labels(self) -> list[str | int]:
        """Refuse: there are none."""
        self._refuse()

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Refuse: there are none."""
        self._refuse()

    @property
    def digests(self) -> Sequence[str] | None:
        """Refuse: there are none."""
        self._refuse()

    @property
    def tags(self) -> Mapping[str, Sequence[Tag]]:
        """Refuse: there are none."""
        self._refuse()

    @property
    def judged(self) -> JudgedRows | None:
        """Refuse: there are none."""
        self._refuse()

    @property
    def tables(self) -> Mapping[Cutoff, TableOf]:
        """Refuse: there are none."""
        self._refuse()

    def named_from(self, folder: str) -> str | None:
        """Return ``None``: they are in no file."""
        return None

    def _refuse(self) -> NoReturn:
        raise InvalidInput(
            "",
            "this result holds averages but no per-query rows, because it was evaluated in parts",
            self.where,
        )


def rows_at(
    rows: Rows, positions: Sequence[int] | NDArray[np.int64], cutoffs: Sequence[Cutoff]
) -> RowsInMemory:
    """Return some of the rows, in the order of their positions, at some of the cutoffs."""
    at = np.asarray(positions, np.int64)
    labels, digests = rows.labels, rows.digests
    return RowsInMemory(
        labels=[labels[i] for i in at.tolist()],
        tables={
            k: {name: np.asarray(column)[at] for name, column in rows.tables[k].items()}
            for k in cutoffs
        },
        counted=rows.counted[at],
        digests=None if digests is None else [digests[i] for i in at.tolist()],
        tags={name: [values[i] for i in at.tolist()] for name, values in rows.tags.items()},
        judged=None if rows.judged is None else rows.judged.at(at.tolist()),
    )


def checked_digests(digests: object, n_queries: int) -> list[str]:
    """Return digests that were read from a file.

    Raises:
        InvalidInput: If they are not one digest per query.
    """
    given = digests if isinstance(digests, list) else []
    if len(given) != n_queries or not all(
        isinstance(one, str) and _DIGEST.fullmatch(one) for one in given
    ):
        raise InvalidInput("", "its digests of the ground truth are not one per query")
    return given


def tag_column(values: Sequence[Tag]) -> NDArray[np.object_]:
    """Return a column of tags as JSON, of one type whatever a part of a run holds."""
    column = np.full(len(values), None, object)
    column[:] = [
        None if value is None else json.dumps(value, ensure_ascii=False) for value in values
    ]
    return column


def _tags_from(column: Sequence[object]) -> list[Tag]:
    """Read what :func:`tag_column` made; an empty cell is no tag."""
    values = [json.loads(one) if isinstance(one, str) and one else None for one in column]
    if not all(map(is_tag, values)):
        raise InvalidInput("", "a tag must be a short text, a number or a boolean")
    return values


def counts_within(metrics: Mapping[str, Metric]) -> tuple[str, ...]:
    """Return the columns with what is counted within a cutoff."""
    return (*COUNT_COLUMNS[1:], *token_columns(metrics.values()))


def column_types(cutoffs: Sequence[Cutoff], metrics: Mapping[str, Metric]) -> dict[str, type]:
    """Return the columns of all cutoffs side by side, in order, and the type of each.

    >>> from krag_eval.scoring.metrics import METRICS
    >>> list(column_types([5], {"recall": METRICS["recall"]}))
    ['counted', 'ground_truth', 'ground_truth_digest', 'retrieved@5', 'relevant@5', 'covered@5',
     'recall@5']
    """
    types: dict[str, type] = {"counted": np.bool_, COUNT_COLUMNS[0]: np.int64, DIGEST: object}
    lengths = [f"{LENGTHS}{k.unit}" for k in cutoffs if isinstance(k, Budget)]
    types |= dict.fromkeys([*lengths, FIRST_RANKS] if lengths else [], object)
    for k in cutoffs:
        types |= {f"{name}@{spelled(k)}": np.int64 for name in counts_within(metrics)}
        types |= {f"{name}@{spelled(k)}": np.float64 for name in metrics}
    return types


def flat_columns(
    tables: Mapping[Cutoff, TableOf],
    counted: NDArray[np.bool_],
    metrics: Mapping[str, Metric],
    digests: Sequence[str],
    tags: Mapping[str, Sequence[Tag]] = NO_TAGS,
    found: Relevance | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the columns of all cutoffs side by side; metrics are NaN where a query is left out.

    Args:
        tables: Cutoff -> per-query columns.
        counted: Whether a query counts in the averages; shape (queries,).
        metrics: The metrics, by column.
        digests: One text per query that tells its ground truth from another one.
        tags: Name -> one value per query.
        found: What was found; only needed where there is a budget.
    """
    flat: dict[str, Any] = {"counted": counted, DIGEST: digests}
    if found is not None and found.lengths is not None:
        flat |= _as_texts(found)
    for k, table in tables.items():
        flat[COUNT_COLUMNS[0]] = table[COUNT_COLUMNS[0]]
        flat |= {f"{name}@{spelled(k)}": table[name] for name in counts_within(metrics)}
        flat |= {f"{name}@{spelled(k)}": np.where(counted, table[name], np.nan) for name in metrics}
    types = column_types(tuple(tables), metrics)
    columns: dict[str, NDArray[Any]] = {
        name: np.asarray(flat[name], kind) for name, kind in types.items()
    }
    return columns | {f"{TAG}{name}": tag_column(values) for name, values in tags.items()}


def _as_texts(found: Relevance) -> dict[str, NDArray[np.object_]]:
    """Return the lengths of each query's documents, and its first ranks, as texts."""
    n_covered = np.bincount(found.covered_query, minlength=found.n_queries)
    columns = {
        f"{LENGTHS}{unit}": _joined(lengths, found.n_retrieved)
        for unit, lengths in (found.lengths or {}).items()
    }
    return {**columns, FIRST_RANKS: _joined(found.first_rank, n_covered)}


def _joined(values: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.object_]:
    texts = list(map(str, values.tolist()))
    ends = np.cumsum(sizes)
    joined = np.empty(len(sizes), object)
    bounds = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    joined[:] = [" ".join(texts[start:end]) for start, end in bounds]
    return joined


def _parted(
    texts: Sequence[object], least: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read what :func:`_joined` made: the numbers, and how many each query has."""
    if not all(isinstance(text, str) and _NUMBERS.fullmatch(text) for text in texts):
        raise InvalidInput("", "lengths and ranks must be whole numbers with spaces between them")
    parts = [str(text).split() for text in texts]
    numbers = np.array([int(one) for part in parts for one in part], np.int64)
    if len(numbers) and not least <= numbers.min() <= numbers.max() <= most:
        raise InvalidInput("", "a length or a rank is out of bounds")
    return numbers, np.array(list(map(len, parts)), np.int64)


#: Endings of the files that rows can be written to.
ROW_FORMATS = (".parquet", ".csv")
#: What a row is called: its question, and its place in the input, from 0.
LABEL, POSITION = "query", "position"
_ROWS_AT_ONCE = 50_000
# A row that was written has dozens of bytes; a file made to fill the memory has none to speak of.
_FREE_ROWS, _ROWS_PER_BYTE = 1_000_000, 8
# What a CSV file begins with whose texts are shielded: a spreadsheet sees no difference.
_SHIELDED = f'"{LABEL}",'.encode()
_QUOTED = re.compile(r'[,"\r\n;\t]')


@dataclass(frozen=True, eq=False)
class RowsInFile:
    """Rows in a file, read one cutoff at a time when asked for, and checked.

    Attributes:
        path: The file.
        totals: The summary its rows must add up to.
    """

    path: Path
    totals: Summary

    @property
    def cutoffs(self) -> tuple[Cutoff, ...]:
        """The cutoffs, in the order they were asked for."""
        return self.totals.k

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.totals.n_queries

    @cached_property
    def labels(self) -> list[str | int]:
        """The questions; positions, unless every query has one."""
        frame = read_columns(self.path, [LABEL], self.n_queries)
        questions = frame[LABEL]
        return list(range(len(frame))) if questions.isna().any() else questions.tolist()

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a query counts in the averages; shape (queries,)."""
        frame = read_columns(self.path, ["counted"], self.n_queries)
        return np.asarray(frame["counted"], np.bool_)

    @cached_property
    def digests(self) -> list[str] | None:
        """What tells the queries' ground truths from others; ``None`` in a file of 0.1.0."""
        _ = self.counted  # refuses a file that is none
        if DIGEST not in _column_names(self.path):
            return None
        frame = read_columns(self.path, [DIGEST], self.n_queries)
        try:
            return checked_digests(frame[DIGEST].tolist(), self.n_queries)
        except InvalidInput as error:
            raise _unreadable(self.path, error) from error

    @cached_property
    def tags(self) -> Mapping[str, Sequence[Tag]]:
        """Name -> one value per query, ``None`` where a query has none."""
        _ = self.counted  # refuses a file that is none
        columns = [name for name in _column_names(self.path) if name.startswith(TAG)]
        if not columns:
            return NO_TAGS
        frame = read_columns(self.path, columns, self.n_queries)
        try:
            return {name.removeprefix(TAG): _tags_from(frame[name].tolist()) for name in columns}
        except (ValueError, RecursionError) as error:
            raise _unreadable(self.path, error) from error

    @cached_property
    def judged(self) -> JudgedRows | None:
        """Which retrieved documents are judged; ``None`` if it is not known."""
        _ = self.counted  # refuses a file that is none
        if JUDGED not in _column_names(self.path):
            return None
        frame = read_columns(self.path, [JUDGED, KEYS, JUDGED_DIGEST], self.n_queries)
        try:
            return JudgedRows.of_columns({str(name): frame[name].tolist() for name in frame})
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise _unreadable(self.path, error) from error

    @cached_property
    def tables(self) -> Mapping[Cutoff, TableOf]:
        """Cutoff -> per-query columns, read when that cutoff is asked for."""
        return _Tables(self)

    def named_from(self, folder: str) -> str:
        """Return what to call the file from a folder: its name, if it is in there."""
        return self.path.name if str(self.path.parent) == folder else str(self.path)

    def table(self, k: Cutoff) -> TableOf:
        """Read the columns of one cutoff, and check that they add up to the averages.

        Raises:
            DatasetError: If the file is not there, damaged, or of another run.
        """
        metrics = metrics_of(self.totals.keys, self.totals.declared)
        names = {name: f"{name}@{spelled(k)}" for name in (*counts_within(metrics), *metrics)}
        names[COUNT_COLUMNS[0]] = COUNT_COLUMNS[0]
        frame = read_columns(self.path, list(names.values()), self.n_queries)
        table = {name: frame[column].to_numpy() for name, column in names.items()}
        table["precision_base"] = table["retrieved"]
        if isinstance(k, Budget):
            lengths, table[LISTED] = self.lengths(k.unit)
            if (fitting(k, lengths, table[LISTED]) != table["retrieved"]).any():
                problem = ValueError(f"its lengths do not fit retrieved@{k}")
                raise _unreadable(self.path, problem)
        elif self.totals.conventions.precision_at == "k" and k is not None:
            table["precision_base"] = np.full(self.n_queries, k)
        completed(table, metrics)
        self._check(k, table)
        return table

    def lengths(self, unit: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the length of every retrieved document, and how many each query has.

        Raises:
            InvalidInput: If there was no budget in that unit.
            DatasetError: If the file is not there, or damaged.
        """
        budgets = [k for k in self.cutoffs if isinstance(k, Budget) and k.unit == unit]
        if not budgets:
            raise InvalidInput(
                "length",
                ": the rows of this result hold the lengths that its budgets needed, and none of "
                "its budgets was of that unit",
                Advice("evaluate with {}", budget=...),
            )
        return self._numbers(f"{LENGTHS}{unit}", 0, MOST_IN_A_TEXT)

    def found(
        self, unit: str
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return every document's length, the documents per query, and the covered items.

        Of these, the query and the first rank.

        Raises:
            InvalidInput: If there was no budget in that unit.
            DatasetError: If the file is not there, or damaged.
        """
        lengths, retrieved = self.lengths(unit)
        ranks, n_covered = self._numbers(FIRST_RANKS, 1, MOST_IN_A_TEXT)
        query = np.repeat(np.arange(self.n_queries), n_covered)
        n_items = next(iter(self.tables.values()))[COUNT_COLUMNS[0]]
        if (ranks > retrieved[query]).any() or (n_covered > n_items).any():
            raise _unreadable(self.path, ValueError("its ranks do not fit its lists"))
        return lengths, retrieved, query, ranks

    def _numbers(
        self, column: str, least: int, most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        frame = read_columns(self.path, [column], self.n_queries)
        try:
            return _parted(frame[column].tolist(), least, most)
        except InvalidInput as error:
            raise _unreadable(self.path, error) from error

    def _check(self, k: Cutoff, table: TableOf) -> None:
        ours = Summary.of(
            {k: table},
            self.counted,
            keys=self.totals.keys,
            averaging_method=self.totals.averaging_method,
            conventions=self.totals.conventions,
            declared=self.totals.declared,
        )
        if ours.sums[k] != self.totals.sums[k]:
            raise Place(str(self.path)).error(
                "the rows do not add up to the averages of this result, so they are of another "
                "run or were changed",
                "evaluate again",
            )


class _Tables(Mapping[Cutoff, TableOf]):
    """Tables by cutoff, each read once, when asked for."""

    def __init__(self, rows: RowsInFile) -> None:
        self._rows = rows
        self._read: dict[Cutoff, TableOf] = {}

    def __getitem__(self, k: Cutoff) -> TableOf:
        if k not in self._rows.cutoffs:
            raise KeyError(k)
        if k not in self._read:
            self._read[k] = self._rows.table(k)
        return self._read[k]

    def __iter__(self) -> Iterator[Cutoff]:
        return iter(self._rows.cutoffs)

    def __len__(self) -> int:
        return len(self._rows.cutoffs)


def rows_named(name: object, folder: Path, totals: Summary) -> Rows:
    """Return the rows of a saved result: in the file of that name beside it, or nowhere.

    A saved result never makes another file be opened than one beside it.
    """
    if name is None:
        return NoRows(totals.k, totals.n_queries)
    if not isinstance(name, str):
        raise InvalidType("", "the name of the file with its rows is not text")
    if name == Path(name).name and Path(name).suffix in ROW_FORMATS:
        return RowsInFile(folder / name, totals)
    where = f"they were written to {name}; put that file beside the saved result and save it again"
    return NoRows(totals.k, totals.n_queries, where)


def read_columns(path: Path, columns: Sequence[str], n_rows: int) -> pd.DataFrame:
    """Read some columns of a file of rows.

    Raises:
        MissingPackage: If the file is Parquet and pyarrow is missing.
        DatasetError: If it cannot be read, lacks a column or has another number of rows.
    """
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is no regular file")  # a pipe would wait for somebody to write
        frame = _parquet(path, columns) if path.suffix == ".parquet" else _csv(path, columns)
    except FileNotFoundError as error:
        raise Place(str(path)).error(
            "the file with the per-query rows of this result is not there",
            "put it back, or evaluate again",
        ) from error
    except (OSError, ValueError, MemoryError) as error:
        raise _unreadable(path, error) from error
    if len(frame) != n_rows:
        raise Place(str(path)).error(
            f"holds {len(frame)} rows, and this result is of {n_rows} queries",
            "it is of another run or was changed",
        )
    return frame


def _unreadable(path: Path, error: Exception) -> DatasetError:
    problem = " ".join(str(error).split())[:200].removesuffix(".")
    return Place(str(path)).error(f"the per-query rows cannot be read ({problem})")


def _column_names(path: Path) -> list[str]:
    """Return the columns of a file of rows that can be read."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        names: list[str] = parquet.read_schema(path).names
        return names
    import pandas as pd

    return pd.read_csv(path, nrows=0, encoding="utf-8").columns.tolist()


def _parquet(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    parquet = parquet_for(f"reading {path}")
    # A text that is stored once becomes one text again, however many rows have it.
    content = parquet.ParquetFile(path, read_dictionary=[LABEL])
    stored, n_rows = os.path.getsize(path), content.metadata.num_rows
    if n_rows > _FREE_ROWS + _ROWS_PER_BYTE * stored:
        raise InvalidInput("", f"{n_rows} rows in {stored} bytes are out of proportion")
    frame: pd.DataFrame = content.read(columns=list(columns)).to_pandas()
    if LABEL in frame.columns and hasattr(frame[LABEL], "cat"):
        frame[LABEL] = _stored_once(frame[LABEL])
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InvalidInput("", f"no column {missing[0]!r}")
    return frame


def _stored_once(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Return texts as objects, ``None`` where there is none; pandas would copy them as texts."""
    import pandas as pd

    values = np.array([*texts.cat.categories, None], object)
    # -1, the last, where there is none
    return pd.Series(values[texts.cat.codes.to_numpy()], texts.index, dtype=object)


def _csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    with open(path, "rb") as file:
        as_written = unshielded if file.read(len(_SHIELDED)) == _SHIELDED else str
    # As texts, some rows at a time: not every version of pandas reads back the digits it wrote.
    chunks = pd.read_csv(
        path,
        usecols=list(columns),
        dtype=object,
        keep_default_na=False,
        encoding="utf-8",
        chunksize=_ROWS_AT_ONCE,
    )
    parts = [
        {name: _from_texts(name, chunk[name].tolist(), as_written) for name in columns}
        for chunk in chunks
    ]
    return pd.DataFrame(
        {name: np.concatenate([part[name] for part in parts]) for name in columns} if parts else {}
    )


def _from_texts(name: str, texts: list[str], as_written: Callable[[str], str]) -> NDArray[Any]:
    """Read a column of a CSV file: an empty cell is nothing."""
    if name == LABEL or name.startswith(TAG):
        return np.array([as_written(text) or None for text in texts], object)
    if name.startswith(LENGTHS) or name in (FIRST_RANKS, JUDGED, KEYS):
        return np.array(texts, object)
    if name in (DIGEST, JUDGED_DIGEST):
        return np.array([text or None for text in texts], object)
    if name == "counted":
        return np.array([text == "True" for text in texts], np.bool_)
    if name.partition("@")[0] in (*COUNT_COLUMNS, *TOKEN_COUNTS):
        return np.array(list(map(int, texts)), np.int64)
    return np.array([float(text or "nan") for text in texts], np.float64)


def checked_row_file(path: str | os.PathLike[str], argument: str = "per_query") -> Path:
    """Return where rows will be written; through a link, the file it points to.

    Raises:
        MissingPackage: If it is to be a Parquet file and pyarrow is missing.
        InvalidInput: If the ending is not one of :data:`ROW_FORMATS`, it is a directory or its
            directory is not there.
    """
    target = Path(os.path.realpath(path))
    if target.suffix not in ROW_FORMATS:
        raise InvalidInput(
            argument,
            f"must be the name of a file that ends in one of {', '.join(ROW_FORMATS)}, "
            f"got {os.fsdecode(path)!r}",
        )
    if target.exists() and not target.is_file():
        raise InvalidInput(argument, f": {path} is not a regular file", "name another")
    if not target.parent.is_dir():
        raise InvalidInput(argument, f": there is no directory {target.parent}", "create it first")
    if target.suffix == ".parquet":
        parquet_for(": writing Parquet files", argument)
    return target


def write_rows(path: Path, rows: Mapping[str, NDArray[Any]]) -> None:
    """Write rows to a new file; the ending of its name says in which format."""
    if path.suffix == ".parquet":
        _write_parquet(path, rows)
        return
    write_csv(path, rows, shielding_shown=True)


def write_csv(path: Path, columns: Mapping[str, Any], *, shielding_shown: bool = False) -> None:
    """Write columns to a new CSV file, as :func:`csv_lines` has them."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(columns, shielding_shown=shielding_shown))


def csv_lines(columns: Mapping[str, Any], *, shielding_shown: bool = False) -> Iterator[str]:
    """Yield the lines of a CSV file, in which no text can be taken for a formula.

    Numbers have the shortest digits that read back to the same number; what is undefined is an
    empty cell.

    Args:
        columns: Arrays of one length, by name.
        shielding_shown: Whether to put the first column's name in quotes, which tells
            :class:`RowsInFile` that texts are to be read by ``unshielded``.
    """
    first, *others = columns
    yield ",".join([f'"{first}"' if shielding_shown else first, *map(_quoted, others)]) + "\n"
    cells = [_cells(column.tolist()) for column in columns.values()]
    yield from (",".join(row) + "\n" for row in zip(*cells, strict=True))


def _cells(values: list[Any]) -> list[str]:
    """Return a column's cells; a text is quoted if a spreadsheet could part it in two."""
    return [
        _text_cell(value)
        if isinstance(value, str)
        else ("" if value is None or value != value else str(value))
        for value in values
    ]


def _text_cell(text: str) -> str:
    return _quoted(shielded(text))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def join_rows(parts: Sequence[Path], path: Path) -> None:
    """Write the rows of several files, in their order, into one of the same format."""
    if path.suffix == ".parquet":
        _join_parquet(parts, path)
        return
    with open(path, "wb") as joined:
        for number, part in enumerate(parts):
            with open(part, "rb") as file:
                if number:
                    file.readline()  # the names of the columns stand above the first part
                shutil.copyfileobj(file, joined, 2**20)


def _write_parquet(path: Path, rows: Mapping[str, NDArray[Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {np.dtype(object): pa.string(), np.dtype(np.bool_): pa.bool_()}
    kinds |= {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}
    arrays = [pa.array(column, kinds[column.dtype]) for column in rows.values()]
    parquet.write_table(pa.Table.from_arrays(arrays, names=list(rows)), path)


def _join_parquet(parts: Sequence[Path], path: Path) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(path, parquet.read_schema(parts[0])) as writer:
        for part in parts:
            # Not read_table, which would take "run=1" in the path for one more column.
            writer.write_table(parquet.ParquetFile(part).read())
