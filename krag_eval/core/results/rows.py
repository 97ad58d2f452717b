"""Rows: one value per query and metric, in memory, in a file, or not kept.

In a file the columns of several cutoffs are side by side, named as in ``ndcg@10``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.documents import Tag, is_tag
from krag_eval.core.errors import Advice, DatasetError, Fix, InvalidInput, InvalidType, Place
from krag_eval.core.files import parquet_for, shielded, unshielded
from krag_eval.core.scoring import metrics as known
from krag_eval.core.scoring.cutoffs import MOST_IN_A_TEXT, Budget, Cutoff, fitting, spelled
from krag_eval.core.scoring.metrics import Metric
from krag_eval.core.scoring.parts import Summary, settled_in
from krag_eval.core.scoring.relevance import Relevance

#: The per-query table at one cutoff: column -> values, each of shape (queries,).
TableOf: TypeAlias = Mapping[str, NDArray[Any]]

#: What is counted per query; the first does not depend on the cutoff.
COUNT_COLUMNS = ("ground_truth", "retrieved", "relevant", "covered")
#: What a row is called: its question, and its place in the input, from 0; and whether it counts.
LABEL, POSITION, _COUNTED = "query", "position", "counted"
#: The column that tells a query's ground truth from any other.
DIGEST = "ground_truth_digest"
#: Where there is a budget: what columns with the documents' lengths begin with, a unit behind it,
#: and the column with the first ranks of the covered items.
LENGTHS, FIRST_RANKS = "lengths@", "first_ranks"
#: Where it is known what was looked at: the flags of each query's documents, what these are known
#: by, and what tells the documents that were looked at from others.
JUDGED_COLUMNS = ("judged", "document_keys", "judged_digest")
#: Where there are unwanted documents: what tells those of a query from any other.
UNWANTED_DIGEST = "unwanted_digest"
#: What the columns with tags begin with; a tag may be named like a metric.
TAG = "tag:"
NO_TAGS: Mapping[str, Sequence[Tag]] = MappingProxyType({})

_DIGEST = re.compile("[0-9a-f]{16}(-[0-9a-f]{16})?")
_NUMBERS = re.compile("([0-9]{1,10}( [0-9]{1,10})*)?")


class JudgedRows(NamedTuple):
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
        known, keys = found.judged.known.tolist(), found.judged.keys
        sizes = found.n_retrieved.tolist()
        return cls(_cut(known, sizes), _cut(keys, sizes), list(found.judged.digests))

    @classmethod
    def checked(cls, known: Sequence[Any], keys: Sequence[Any], digests: object) -> JudgedRows:
        """Check what was read from a file.

        Raises:
            InvalidInput: If it does not fit together.
        """
        made = cls(known, keys, checked_digests(digests, len(known)))
        texts = all(isinstance(key, str) for one in keys for key in one)
        if not texts or list(map(len, known)) != list(map(len, keys)):
            raise InvalidInput("", "what is known of its documents does not fit together")
        return made

    def at(self, positions: Sequence[int]) -> JudgedRows:
        """Return those of some queries, in the order of their positions."""
        columns: Any = ([column[i] for i in positions] for column in self)
        return JudgedRows(*columns)

    def columns(self) -> dict[str, NDArray[np.object_]]:
        """Return the columns of a file, as texts."""
        flags = [" ".join("1" if one else "0" for one in flags) for flags in self.known]
        keys = [json.dumps(list(one), ensure_ascii=False) for one in self.keys]
        columns = zip(JUDGED_COLUMNS, (flags, keys, list(self.digests)), strict=True)
        return {name: np.array(texts, object) for name, texts in columns}


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """The per-query part of a result, at hand.

    Attributes:
        labels: One label per query.
        tables: Cutoff -> per-query columns, each of shape (queries,).
        counted: Whether a query counts in the averages; shape (queries,).
        digests: One text per query that tells its ground truth from another one; ``None`` if not
            kept.
        tags: Name -> one value per query, ``None`` where a query has none.
        judged: Which retrieved documents are judged; ``None`` if it is not known.
        unwanted: One text per query that tells its unwanted documents from others; ``None`` if
            there are no such lists.
    """

    labels: list[str | int]
    tables: Mapping[Cutoff, TableOf]
    counted: NDArray[np.bool_]
    digests: Sequence[str] | None = None
    tags: Mapping[str, Sequence[Tag]] = field(default_factory=dict)
    judged: JudgedRows | None = None
    unwanted: Sequence[str] | None = None
    path: ClassVar[None] = None

    @property
    def cutoffs(self) -> tuple[Cutoff, ...]:
        """The cutoffs, in the order they were asked for."""
        return tuple(self.tables)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.labels)


@dataclass(frozen=True)
class NoRows:
    """Rows that are not at hand, as a run in parts kept sums alone: reading them is refused.

    Attributes:
        cutoffs: The cutoffs, in the order they were asked for.
        n_queries: Number of queries.
        where: Where the rows are, and how to get at them, for the refusal.
    """

    cutoffs: tuple[Cutoff, ...]
    n_queries: int
    where: Fix = Advice("evaluate with {} to write them to a file", per_query=...)  # noqa: RUF009
    path: ClassVar[None] = None

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what copy and pickle look for
            raise AttributeError(name)
        problem = "this result holds averages but no per-query rows, because it was evaluated in "
        raise InvalidInput("", f"{problem}parts", self.where)


def checked_digests(digests: object, n_queries: int) -> list[str]:
    """Return digests that were read from a file.

    Raises:
        InvalidInput: If they are not one digest per query.
    """
    given = digests if isinstance(digests, list) else []
    are_digests = (isinstance(one, str) and _DIGEST.fullmatch(one) for one in given)
    if len(given) != n_queries or not all(are_digests):
        raise InvalidInput("", "its digests of the ground truth are not one per query")
    return given


# The columns of a file


def counts_within(metrics: Mapping[str, Metric]) -> tuple[str, ...]:
    """Return the columns with what is counted within a cutoff."""
    return (*COUNT_COLUMNS[1:], *known.token_columns(metrics.values()))


def column_types(cutoffs: Sequence[Cutoff], metrics: Mapping[str, Metric]) -> dict[str, type]:
    """Return the columns of all cutoffs side by side, in order, and the type of each.

    >>> from krag_eval.core.scoring.metrics import METRICS
    >>> list(column_types([5], {"recall": METRICS["recall"]}))
    ['counted', 'ground_truth', 'ground_truth_digest', 'retrieved@5', 'relevant@5', 'covered@5',
     'recall@5']
    """
    lengths = [f"{LENGTHS}{k.unit}" for k in cutoffs if isinstance(k, Budget)]
    names = [_COUNTED, COUNT_COLUMNS[0], DIGEST, *lengths, *([FIRST_RANKS] if lengths else [])]
    for k in cutoffs:
        names += [f"{name}@{spelled(k)}" for name in (*counts_within(metrics), *metrics)]
    return {name: _type_of(name) for name in names}


def _type_of(name: str) -> type:
    """Return the type of a column by its name."""
    if name == _COUNTED:
        return np.bool_
    if name.partition("@")[0] in (*COUNT_COLUMNS, *known.TOKEN_COUNTS):
        return np.int64
    texts = (LABEL, DIGEST, FIRST_RANKS, *JUDGED_COLUMNS, UNWANTED_DIGEST)
    return object if name in texts or name.startswith((LENGTHS, TAG)) else np.float64


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
        tags: Name -> one value per query; in its column as JSON, whatever a part of a run holds.
        found: What was found; only needed where there is a budget.
    """
    flat: dict[str, Any] = {_COUNTED: counted, DIGEST: digests}
    if found is not None and found.lengths is not None:
        n_covered = np.bincount(found.covered_query, minlength=found.n_queries)
        flat[FIRST_RANKS] = _joined(found.first_rank, n_covered)
        for unit, lengths in found.lengths.items():
            flat[f"{LENGTHS}{unit}"] = _joined(lengths, found.n_retrieved)
    for k, table in tables.items():
        flat[COUNT_COLUMNS[0]] = table[COUNT_COLUMNS[0]]
        flat |= {f"{name}@{spelled(k)}": table[name] for name in counts_within(metrics)}
        flat |= {f"{name}@{spelled(k)}": np.where(counted, table[name], np.nan) for name in metrics}
    types = column_types(tuple(tables), metrics)
    columns: dict[str, NDArray[Any]]
    columns = {name: np.asarray(flat[name], kind) for name, kind in types.items()}
    for tag, values in tags.items():
        texts = [None if one is None else json.dumps(one, ensure_ascii=False) for one in values]
        columns[f"{TAG}{tag}"] = np.array(texts, object)
    return columns


def _cut(values: Iterable[Any], sizes: Iterable[int]) -> list[list[Any]]:
    """Return the values of each query, which has as many of them as its size."""
    rest = iter(values)
    return [list(islice(rest, size)) for size in sizes]


def _joined(values: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[str]:
    return [" ".join(part) for part in _cut(map(str, values.tolist()), sizes.tolist())]


def _parted(
    texts: Sequence[object], least: int, most: int = MOST_IN_A_TEXT
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read what :func:`_joined` made: the numbers, and how many each query has."""
    if not all(isinstance(text, str) and _NUMBERS.fullmatch(text) for text in texts):
        raise InvalidInput("", "lengths and ranks must be whole numbers with spaces between them")
    parts = [str(text).split() for text in texts]
    numbers = np.array([int(one) for part in parts for one in part], np.int64)
    if len(numbers) and not least <= numbers.min() <= numbers.max() <= most:
        raise InvalidInput("", "a length or a rank is out of bounds")
    return numbers, np.array(list(map(len, parts)), np.int64)


# Reading a file

_ROWS_AT_ONCE = 50_000
# A row that was written has dozens of bytes; a file made to fill the memory has none to speak of.
_FREE_ROWS, _ROWS_PER_BYTE = 1_000_000, 8
# What a CSV file begins with whose texts are shielded: a spreadsheet sees no difference.
_SHIELDED = f'"{LABEL}",'.encode()
_QUOTED = re.compile(r'[,"\r\n;\t]')


@dataclass(frozen=True, eq=False)
class RowsInFile:
    """Rows in a file, with what :class:`RowsInMemory` has: read when asked for, and checked.

    Attributes:
        path: The file.
        totals: The summary its rows must add up to.
        FORMATS: Endings of the files that rows can be written to.
        POSITION: The column with the position of each query.
    """

    FORMATS: ClassVar = (".parquet", ".csv")
    POSITION: ClassVar = POSITION

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
        labels: list[str | int] = self._read(LABEL)[LABEL].tolist()
        # Of the questions of two files, some may have been left out.
        return [*map(int, self._read(POSITION)[POSITION])] if None in labels else labels

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a query counts in the averages; shape (queries,)."""
        return np.asarray(self._read(_COUNTED)[_COUNTED], np.bool_)

    @cached_property
    def digests(self) -> list[str] | None:
        """What tells the queries' ground truths from others; ``None`` in a file of 0.1.0."""
        return self._digests(DIGEST)

    @cached_property
    def unwanted(self) -> list[str] | None:
        """What tells the queries' unwanted documents from others; ``None`` without such lists."""
        return self._digests(UNWANTED_DIGEST)

    def _digests(self, name: str) -> list[str] | None:
        with _readable(self.path):
            found = self._those(name.__eq__).get(name)
            return None if found is None else checked_digests(found.tolist(), self.n_queries)

    @cached_property
    def tags(self) -> Mapping[str, Sequence[Tag]]:
        """Name -> one value per query, ``None`` where a query has none."""
        with _readable(self.path):
            return {
                name.removeprefix(TAG): [_tag_of(one) for one in column]
                for name, column in self._those(lambda name: name.startswith(TAG)).items()
            }

    @cached_property
    def judged(self) -> JudgedRows | None:
        """Which retrieved documents are judged; ``None`` if it is not known."""
        with _readable(self.path):
            found = self._those(JUDGED_COLUMNS.__contains__)
            if not found:
                return None
            flags, keys, digests = (found[name].tolist() for name in JUDGED_COLUMNS)
            known, sizes = _parted(flags, 0, 1)
            judged = _cut((known == 1).tolist(), sizes.tolist())
            return JudgedRows.checked(judged, list(map(json.loads, keys)), digests)

    @cached_property
    def tables(self) -> Mapping[Cutoff, TableOf]:
        """Cutoff -> per-query columns, read when that cutoff is asked for."""
        return _Tables(self)

    def table(self, k: Cutoff) -> TableOf:
        """Read the columns of one cutoff, and check that they add up to the averages.

        Raises:
            DatasetError: If the file is not there, damaged, or of another run.
        """
        totals = self.totals
        metrics = known.metrics_of(totals.keys, totals.declared)
        names = {name: f"{name}@{spelled(k)}" for name in (*counts_within(metrics), *metrics)}
        names[COUNT_COLUMNS[0]] = COUNT_COLUMNS[0]
        columns = self._read(*names.values())
        table = {name: columns[column] for name, column in names.items()}
        table["precision_base"] = table["retrieved"]
        if isinstance(k, Budget):
            lengths, table[known.LISTED] = self.lengths(k.unit)
            if (fitting(k, lengths, table[known.LISTED]) != table["retrieved"]).any():
                raise _unreadable(self.path, f"its lengths do not fit retrieved@{k}")
        elif totals.conventions.precision_at == "k" and k is not None:
            table["precision_base"] = np.full(self.n_queries, k)
        known.completed(table, metrics)
        ours = Summary.of({k: table}, self.counted, **settled_in(totals))
        if ours.sums[k] != totals.sums[k]:
            problem = "the rows do not add up to the averages of this result, so they are of "
            problem += "another run or were changed"
            raise Place(str(self.path)).error(problem, "evaluate again")
        return table

    def lengths(self, unit: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the length of every retrieved document, and how many each query has.

        Raises:
            InvalidInput: If there was no budget in that unit.
            DatasetError: If the file is not there, or damaged.
        """
        if not any(isinstance(k, Budget) and k.unit == unit for k in self.cutoffs):
            problem = ": the rows of this result hold the lengths that its budgets needed, and none"
            fix = Advice("evaluate with {}", budget=...)
            raise InvalidInput("length", f"{problem} of its budgets was of that unit", fix)
        return self._numbers(f"{LENGTHS}{unit}", 0)

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
        ranks, n_covered = self._numbers(FIRST_RANKS, 1)
        query = np.repeat(np.arange(self.n_queries), n_covered)
        n_items = next(iter(self.tables.values()))[COUNT_COLUMNS[0]]
        if (ranks > retrieved[query]).any() or (n_covered > n_items).any():
            raise _unreadable(self.path, "its ranks do not fit its lists")
        return lengths, retrieved, query, ranks

    def _numbers(self, name: str, least: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        with _readable(self.path):
            return _parted(self._read(name)[name].tolist(), least)

    def _read(self, *names: str) -> TableOf:
        columns = self._those(names.__contains__)
        for name in names:
            if name not in columns:
                raise _unreadable(self.path, f"no column {name!r}")
        return columns

    def _those(self, chosen: Callable[[str], bool]) -> TableOf:
        """Read the columns whose names are chosen, those that there are.

        Raises:
            MissingPackage: If the file is Parquet and pyarrow is missing.
            DatasetError: If it cannot be read, or has another number of rows.
        """
        read = _parquet if self.path.suffix == ".parquet" else _csv
        with _readable(self.path):
            if self.path.exists() and not self.path.is_file():
                raise ValueError("it is no regular file")  # a pipe would wait for somebody to write
            # Whether a query counts is in every file, and says how many rows there are.
            columns = read(self.path, lambda name: name == _COUNTED or chosen(name))
            n_rows = len(columns[_COUNTED])
            if n_rows != self.n_queries:
                problem = f"holds {n_rows} rows, and this result is of {self.n_queries} queries"
                fix = "it is of another run or was changed"
                raise Place(str(self.path)).error(problem, fix)
        return {name: column for name, column in columns.items() if chosen(name)}


#: The per-query part of a result. Reading them may fail, if they are not in memory.
Rows: TypeAlias = RowsInMemory | RowsInFile | NoRows


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
    if name == Path(name).name and Path(name).suffix in RowsInFile.FORMATS:
        return RowsInFile(folder / name, totals)
    where = f"they were written to {name}; put that file beside the saved result and save it again"
    return NoRows(totals.k, totals.n_queries, where)


def _unreadable(path: Path, error: object) -> DatasetError:
    problem = " ".join(str(error).split())[:200].removesuffix(".")
    return Place(str(path)).error(f"the per-query rows cannot be read ({problem})")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Refuse a file of rows for whatever is found wrong while it is read."""
    try:
        yield
    except DatasetError:
        raise
    except FileNotFoundError as error:
        problem = "the file with the per-query rows of this result is not there"
        raise Place(str(path)).error(problem, "put it back, or evaluate again") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise _unreadable(path, error) from error


def _tag_of(cell: object) -> Tag:
    """Return a tag from its JSON; an empty cell is no tag."""
    value: Tag = json.loads(cell) if isinstance(cell, str) and cell else None
    if not is_tag(value):
        raise InvalidInput("", "a tag must be a short text, a number or a boolean")
    return value


def _parquet(path: Path, chosen: Callable[[str], bool]) -> TableOf:
    parquet = parquet_for(f"reading {path}")
    # A text that is stored once becomes one text again, however many rows have it.
    content = parquet.ParquetFile(path, read_dictionary=[LABEL])
    stored, n_rows = os.path.getsize(path), content.metadata.num_rows
    if n_rows > _FREE_ROWS + _ROWS_PER_BYTE * stored:
        raise InvalidInput("", f"{n_rows} rows in {stored} bytes are out of proportion")
    names = list(filter(chosen, content.schema_arrow.names))
    table = content.read(columns=names)
    return {
        name: _stored_once(table[name]) if name == LABEL else table[name].to_numpy()
        for name in names
    }


def _stored_once(column: Any) -> NDArray[np.object_]:
    """Return the texts of an Arrow column, each distinct one held once; ``None`` for none."""
    found = column.dictionary_encode().combine_chunks()
    texts = np.array([*found.dictionary.to_pylist(), None], object)
    at: NDArray[np.int64] = found.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return texts[at]


def _csv(path: Path, chosen: Callable[[str], bool]) -> TableOf:
    import pandas as pd

    with open(path, "rb") as file:
        as_written = unshielded if file.read(len(_SHIELDED)) == _SHIELDED else str
    # As texts, some rows at a time: not every version of pandas reads back the digits it wrote.
    chunks = pd.read_csv(
        path,
        usecols=chosen,
        dtype=object,
        keep_default_na=False,
        encoding="utf-8",
        chunksize=_ROWS_AT_ONCE,
    )
    parts = [
        {
            name: _from_texts(name, chunk[name].tolist(), as_written)
            for name in map(str, chunk.columns)
        }
        for chunk in chunks
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _from_texts(name: str, texts: list[str], as_written: Callable[[str], str]) -> NDArray[Any]:
    """Read a column of a CSV file: an empty cell is nothing, or no numbers."""
    kind = _type_of(name)
    if kind is np.bool_:
        return np.array([text == "True" for text in texts], np.bool_)
    if kind is object and (name == LABEL or name.startswith(TAG)):
        return np.array([as_written(text) or None for text in texts], object)
    if kind is np.float64:
        return np.array([float(text or "nan") for text in texts], np.float64)
    return np.array(texts if kind is object else list(map(int, texts)), kind)


# Writing a file


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
    cells = [map(_cell, column.tolist()) for column in columns.values()]
    yield from (",".join(row) + "\n" for row in zip(*cells, strict=True))


def _cell(value: Any) -> str:
    if isinstance(value, tuple):  # a list as JSON writes it, in which no text can part a cell
        fields = value._asdict() if hasattr(value, "_asdict") else value
        value = json.dumps(fields, ensure_ascii=False).replace(";", r"\u003b")
    if isinstance(value, str):
        return _quoted(shielded(value))
    return "" if value is None or value != value else str(value)


def _quoted(text: str) -> str:
    """Return a text in quotes if a spreadsheet could part it in two."""
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text
