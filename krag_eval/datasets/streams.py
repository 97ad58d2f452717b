"""Files of any size, query by query: JSON lines and Parquet, one file or a directory of them.

Rows mean what they mean to :func:`~krag_eval.datasets.read_jsonl`. Reading can begin at a place
within the files, which are known by their fingerprints.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from krag_eval._reading import (
    LIMITS,
    Limits,
    numbered_lines,
    object_of,
    values_in_cells,
    within_memory,
)
from krag_eval.datasets.jsonl import FIELD_OPTIONS, ONE_QUERY, Fields, record_in
from krag_eval.datasets.table import (
    JUDGED,
    Columns,
    Query,
    TagReader,
    asked_by,
    located,
    no_field,
    query_in,
)
from krag_eval.datasets.tabular import columns_of_tags, opened_parquet, parquet_rows
from krag_eval.datasets.vocabularies import (
    is_autorag,
    is_foreign,
    is_langsmith,
    nothing_retrieved,
    roles_of,
)
from krag_eval.documents import Tag
from krag_eval.errors import Place

_PARQUET = b"PAR1"
# Ending -> what is read as a table, by load_dataset.
_ONLY_WHOLE = {".csv": "a CSV file", ".tsv": "a TSV file"}
_JSONL_ENDINGS = (".jsonl", ".ndjson", ".json")
# A chunk ends early when its queries weigh this much in memory, so that long documents, or many,
# fill none either; a value weighs something beside its text.
_MOST_WEIGHT = 64 * 2**20
_VALUE_WEIGHT = 64
# How much of a file's beginning and end goes into its fingerprint.
_LOOKED_AT = 2**16


def only_whole(path: str | os.PathLike[str]) -> str | None:
    """Return what a file is, if its kind is read whole and not in chunks; ``None`` for others.

    CSV and TSV are known by their names, and a JSON array by its name and first character.
    """
    name = os.fsdecode(path).lower()
    plain = name.removesuffix(".gz")
    for ending, kind in _ONLY_WHOLE.items():
        if plain.endswith(ending):
            return kind
    if not plain.endswith(".json") or not os.path.isfile(path):
        return None
    try:
        with gzip.open(path) if plain != name else open(path, "rb") as file:
            array = file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    except (OSError, EOFError, ValueError):
        return None  # the reader says what is wrong
    return "a JSON array" if array else None


def is_read_in_directories(name: str) -> bool:
    """Return whether a file of that name is one that directories of queries are made of.

    >>> is_read_in_directories("part-1.jsonl.gz"), is_read_in_directories("chart.png")
    (True, False)
    """
    plain = name.lower().removesuffix(".gz")
    return plain.endswith((*_JSONL_ENDINGS, ".parquet"))


class Cursor(NamedTuple):
    """A place to read on from: so many records into a file, both counted from 0."""

    file: int = 0
    records: int = 0


class Chunk(NamedTuple):
    """Some queries, and where the next ones begin."""

    records: list[Query]
    after: Cursor
    #: How far the reading has come, in the unit of :attr:`QueryFiles.size`.
    reached: int
    #: Name -> one value per query, once it is settled which there are.
    tags: Mapping[str, list[Tag]] = {}
    #: Per query, the documents that somebody looked at, where the files say which.
    judged: list[list[Any] | dict[str, bool] | None] | None = None


@dataclass(frozen=True)
class QueryFiles:
    """The files of a run, in the order they are read.

    Attributes:
        name: What was asked for, for messages.
        paths: The files.
        parquet: Whether they are Parquet files; if not, JSON lines, plain or compressed.
        limits: How much may come out of a line or a row at a time; a file may be of any length.
        encoding: Of JSON lines.
    """

    name: str
    paths: tuple[Path, ...]
    parquet: bool
    limits: Limits = LIMITS
    encoding: str = "utf-8"

    @classmethod
    def found(
        cls, path: str | os.PathLike[str], limits: Limits = LIMITS, encoding: str = "utf-8"
    ) -> QueryFiles:
        """Find the files to read: one, or those of a directory in the order of their names.

        Files of a directory whose names begin with a dot or an underscore are passed over, as the
        engines that write such directories mean it.

        Raises:
            DatasetError: If there is no such file, its kind is read whole, a directory holds
                nothing to read, a directory within it or files of several kinds, or it is
                not a regular file.
        """
        name = os.fsdecode(path)
        if "\0" in name:
            raise Place(name).error("the name of a file cannot contain a NUL character")
        try:
            mode = os.stat(name).st_mode
            if stat.S_ISDIR(mode):
                return cls._of_directory(name, limits, encoding)
            if not stat.S_ISREG(mode):
                raise Place(name).error(
                    "is not a regular file, and can be read only once; expected a file or a "
                    "directory of files",
                    "save it to a file first",
                )
            with open(name, "rb") as file:
                parquet = file.read(4) == _PARQUET
            _check_kind(name, parquet=parquet)
            return cls(name, (Path(name),), parquet, limits, encoding)
        except FileNotFoundError as error:
            raise Place(name).error("no such file or directory", "check the path") from error
        except OSError as error:
            raise Place(name).error(f"cannot be read: {error.strerror or error}") from error

    @classmethod
    def _of_directory(cls, name: str, limits: Limits, encoding: str) -> QueryFiles:
        names = sorted(one for one in os.listdir(name) if not one.startswith((".", "_")))
        kinds = {one: _kind_of(name, one) for one in names}
        if not kinds:
            raise Place(name).error(
                "holds nothing to read; expected files named *.jsonl, *.jsonl.gz or *.parquet"
            )
        first, *others = names
        for other in others:
            if kinds[other] != kinds[first]:
                raise Place(name).error(
                    f"holds files of two kinds ({first} and {other})",
                    "put each kind into a directory of its own",
                )
        paths = tuple(Path(name, one) for one in names)
        return cls(name, paths, kinds[first], limits, encoding)

    @property
    def size(self) -> int:
        """How much there is to read: rows of Parquet files, bytes of others."""
        if self.parquet:
            return sum(opened_parquet(path, str(path)).metadata.num_rows for path in self.paths)
        return sum(path.stat().st_size for path in self.paths)

    @property
    def unit(self) -> str:
        """What :attr:`size` counts."""
        return "query" if self.parquet else "B"

    def fingerprint(self) -> list[list[Any]]:
        """Return what changes when a file does: name, size, time, and its beginning and end."""
        return [_fingerprint(path) for path in self.paths]

    def recognised(self, fields: Fields) -> Fields:
        """Return the fields as the first record names them, where that is not as in ``fields``.

        Raises:
            DatasetError: If its names could mean two things, or are those of what is read whole.
        """
        record = self._first_record()
        if record.keys() >= {*filter(None, fields[:3])} or not is_foreign(record, fields.mapped):
            return fields
        names = [*record]
        if is_autorag(names, fields.mapped) or is_langsmith(names):
            raise Place(self.name).error(
                "AutoRAG's and LangSmith's tables are read whole, not in chunks",
                "read it by load_dataset, and save that as JSON lines",
            )
        table = Columns(self.name, {name: [value] for name, value in record.items()}, names)
        roles = roles_of(table, fields.mapped, FIELD_OPTIONS)
        if roles.predicted is None:
            raise nothing_retrieved(table, FIELD_OPTIONS[-1])
        return fields._replace(recognised=roles)

    def _first_record(self) -> Mapping[str, Any]:
        """Return the first record as it stands; that of a Parquet file, by its columns."""
        for name in map(str, self.paths):
            if self.parquet:
                return dict.fromkeys(opened_parquet(name, name).file.schema_arrow.names, "")
            read = numbered_lines(name, name, self.limits, whole=False, encoding=self.encoding)
            with closing(read) as lines:
                for number, text in lines:
                    return object_of(text, Place(name, number), ONE_QUERY)
        return {}

    def first(self, fields: Fields) -> Query | None:
        """Return the first query; ``None`` if there is none.

        Raises:
            DatasetError: If it cannot be used.
        """
        return next((record for record, *_ in self._records(fields, Cursor())), None)

    def chunks(
        self, fields: Fields, chunk_size: int, start: Cursor, tags: TagReader | None = None
    ) -> Iterator[Chunk]:
        """Yield the queries in chunks, from a place on; the last chunk may be smaller.

        A chunk is cut short where its queries pass 64 MiB, and continues over the end of a file.

        Raises:
            DatasetError: If anything in a file cannot be used; as far as it was asked for.
        """
        records: list[Query] = []
        n_bytes, after, reached = 0, start, 0
        for record, size, after, reached in self._records(fields, start, tags):
            records.append(record)
            n_bytes += size
            if len(records) == chunk_size or n_bytes > _MOST_WEIGHT:
                yield Chunk(records, after, reached)
                records, n_bytes = [], 0
        if records:
            yield Chunk(records, after, reached)

    def _records(
        self, fields: Fields, start: Cursor, tags: TagReader | None = None
    ) -> Iterator[tuple[Query, int, Cursor, int]]:
        """Yield each query, how large it is, where the next begins and how far that is."""
        read = _parquet_records if self.parquet else partial(_jsonl_records, encoding=self.encoding)
        before = 0
        for number, path in enumerate(self.paths):
            whole = (
                opened_parquet(path, str(path)).metadata.num_rows if self.parquet else _size(path)
            )
            if number >= start.file:
                skipped = start.records if number == start.file else 0
                found = enumerate(read(path, fields, skipped, self.limits, tags), skipped + 1)
                for n_records, (record, size, reached) in found:
                    yield record, size, Cursor(number, n_records), before + reached
            before += whole


def _check_kind(name: str, *, parquet: bool) -> None:
    """Refuse what cannot be read in chunks."""
    kind = None if parquet else only_whole(name)
    if kind is not None:
        raise Place(name).error(
            f"{kind} is read whole, not in chunks", "make JSON lines or Parquet of it first"
        )


def _kind_of(folder: str, name: str) -> bool:
    """Return whether a file of a directory is Parquet, by its name."""
    if os.path.isdir(os.path.join(folder, name)):
        raise Place(folder).error(
            f"holds a directory ({name}); expected files alone", "name one directory of files"
        )
    plain = name.removesuffix(".gz")
    if not plain.endswith(_JSONL_ENDINGS) and not name.endswith(".parquet"):
        raise Place(folder).error(
            f"holds {name}; expected files named *.jsonl, *.jsonl.gz or *.parquet alone",
            "move others away",
        )
    return name.endswith(".parquet")


def _size(path: Path) -> int:
    return path.stat().st_size


def _fingerprint(path: Path) -> list[Any]:
    with open(path, "rb") as file:
        seen = os.fstat(file.fileno())
        digest = hashlib.sha256(file.read(_LOOKED_AT))
        file.seek(max(0, seen.st_size - _LOOKED_AT))
        digest.update(file.read(_LOOKED_AT))
    return [path.name, seen.st_size, seen.st_mtime_ns, digest.hexdigest()]


def _jsonl_records(
    path: Path,
    fields: Fields,
    skipped: int,
    limits: Limits,
    tags: TagReader | None,
    encoding: str,
) -> Iterator[tuple[Query, int, int]]:
    """Yield the queries of a file of JSON lines, from one on; those before it are not parsed."""
    name = str(path)
    with (
        within_memory(name),
        open(path, "rb") as file,
        closing(numbered_lines(file, name, limits, whole=False, encoding=encoding)) as lines,
    ):
        for number, text in islice(lines, skipped, None):
            record = record_in(text, fields, Place(name, number), tags)
            weight = len(text) + _VALUE_WEIGHT * values_in_cells(text)
            # What is in the buffer counts as read; a bar need not be that exact.
            yield record, weight, file.raw.tell()


def _parquet_records(
    path: Path, fields: Fields, skipped: int, limits: Limits, tags: TagReader | None
) -> Iterator[tuple[Query, int, int]]:
    """Yield the queries of a Parquet file, from one on; whole row groups before it are not read."""
    name = str(path)
    file = opened_parquet(path, name)
    columns = _checked_columns(file.file.schema_arrow.names, fields, name)
    if tags is not None:
        known = file.file.schema_arrow.names
        others = [one for one in known if tags.may_be(one) and known.count(one) == 1]
        found, left_out = columns_of_tags(file, name, columns, others, limits)
        columns += found
        tags.left_out |= {one: why for one, why in left_out.items() if one not in tags.left_out}
    columns += [one for one in file.file.schema_arrow.names if one in JUDGED and one not in columns]
    rows = parquet_rows(file, name, columns, limits, skipped)
    for number, (content, weight) in enumerate(rows, skipped):
        yield query_in(content, fields.roles, Place(name, row=number), tags), weight, number + 1


def _checked_columns(known: Sequence[str], fields: Fields, name: str) -> list[str]:
    roles = fields.roles
    for side in filter(None, (roles.actual, roles.predicted)):
        for column in side.fields:
            if column not in known:
                is_actual = side is roles.actual
                with located(Place(name)):
                    raise no_field(known, column, roles.options, ground_truth=is_actual)
    return [one for one in known if one in asked_by(roles)]
