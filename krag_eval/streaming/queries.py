"""The queries of files of any size, from one end to the other: of some, or of two that are joined.

Rows mean what they mean to :func:`~krag_eval.datasets.load_dataset`.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields as fields_of, replace
from itertools import chain, islice
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    LISTS,
    DocumentLike,
    InvalidInput,
    MissingQuestions,
    Place,
    Tag,
    naming,
    single,
    text_of,
)
from krag_eval.core.documents import STATUS
from krag_eval.core.grading import Grading
from krag_eval.core.ranking import Ordering
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.formats import FORMATS, File, Format, Row, TagChoice, format_of, is_wanted
from krag_eval.loading.joining import (
    Lacking,
    Side,
    joined,
    joined_defaults,
    joined_notes,
    missing_in,
    refuse_truth,
)
from krag_eval.loading.loading import FIELD_OPTIONS, Fields
from krag_eval.loading.reading import MAX_BYTES, cannot_read
from krag_eval.loading.table import (
    ERRORS,
    Drafts,
    Mapped,
    OfRun,
    Query,
    Records,
    Reviews,
    TagReader,
    asked_by,
    matcher_of,
    note_on_defaults,
    notes_on,
    own_grades,
    own_truth_note,
    query_in,
    tell_unnamed,
)
from krag_eval.loading.vocabularies import (
    KNOWN,
    as_saved,
    nothing_retrieved,
    own_truth,
    roles_of,
    said,
    shape_of,
)

# A chunk ends early when the texts of its queries are this long, so that long documents do not
# fill the memory; a document weighs something beside its text.
MOST_WEIGHT, _WEIGHT = 64 * 2**20, 64
# How much of a file's beginning and end goes into its fingerprint.
_LOOKED_AT = 2**16


def is_read_in_directories(name: str) -> bool:
    """Return whether a file of that name is one that directories of queries are made of.

    >>> is_read_in_directories("part-1.jsonl.gz"), is_read_in_directories("chart.png")
    (True, False)
    """
    return format_of(name, looked_into=False) is not None


class Cursor(NamedTuple):
    """A place to read on from: so many rows into a file, and so many queries in all, from 0.

    ``rejected`` counts the rows that are no queries, and ``reordered`` the queries whose documents
    were not in the order that ranks or scores tell.
    """

    file: int = 0
    records: int = 0
    queries: int = 0
    rejected: int = 0
    reordered: int = 0


class Chunk(NamedTuple):
    """Some queries, where the next ones begin, and how far the reading has come."""

    queries: list[Query]
    after: Cursor
    reached: int


BEGINNING = Cursor()
_USUAL = Fields(*Mapped._fields)


@dataclass(frozen=True)
class QueryFiles:
    """The files of a run, in the order they are read.

    Attributes:
        name: What was asked for, for messages.
        paths: The files.
        format: Their format.
        max_bytes: Four times what a line may hold; a file may be of any length.
        encoding: Of text.
        fields: What the fields of their rows are called, or mean.
        notes: What is said of the files beside their numbers.
        reviews: What happens to drafts; it knows how many rows were rejected once all are read.
        missing: Which questions the run lacks, of two files.
        orderings: What ranks and scores say of the order of all lists, once one is not in order.
        grades: Whether records of the ground truth may say grades.
        grade_notes: What is said of these.
    """

    name: str
    paths: tuple[Path, ...]
    format: Format
    max_bytes: int | None = MAX_BYTES
    encoding: str = "utf-8"
    fields: Fields = _USUAL
    notes: Sequence[str] = ()
    reviews: Reviews = field(default_factory=Reviews)
    missing: MissingQuestions | None = None
    orderings: list[Ordering] = field(default_factory=list)
    grades: str = "auto"
    grade_notes: list[str] = field(default_factory=list)

    @classmethod
    def found(
        cls,
        path: str | os.PathLike[str],
        max_bytes: int | None = MAX_BYTES,
        encoding: str = "utf-8",
        drafts: Drafts = "error",
        grades: str = "auto",
    ) -> QueryFiles:
        """Find the files to read: one, or those of a directory in the order of their names.

        Files of a directory whose names begin with a dot or an underscore are passed over, as the
        engines that write such directories mean it.

        Raises:
            DatasetError: If there is no such file, a directory holds anything but files of one
                kind, or it is not a regular file.
        """
        name = os.fsdecode(path)
        if "\0" in name:
            raise Place(name).error("the name of a file cannot contain a NUL character")
        try:
            mode = os.stat(name).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                problem = "is not a regular file, and can be read only once"
                raise Place(name).error(problem, "save it to a file first")
            kind = format_of(name) or FORMATS["jsonl"]
            paths: tuple[Path, ...] = (Path(name),)
            if stat.S_ISDIR(mode):
                held = sorted(one for one in os.listdir(name) if not one.startswith((".", "_")))
                paths = tuple(Path(name, one) for one in held)
                kind = _only_kind(name, paths)
        except OSError as error:
            raise cannot_read(error, Place(name)) from error
        if not kind.is_text and encoding != "utf-8":
            problem = f"is for files of text, got format {kind.name!r} ({name})"
            raise InvalidInput("encoding", problem, "leave it out")
        return cls(name, paths, kind, max_bytes, encoding, reviews=Reviews(drafts), grades=grades)

    @property
    def is_small(self) -> bool:
        """Whether it is one file, and no larger than the texts of a chunk."""
        (path, *_) = self.paths
        return path == Path(self.name) and path.stat().st_size < MOST_WEIGHT

    @property
    def size(self) -> int:
        """How much there is to read, in :attr:`unit`."""
        return sum(map(self._size, self.paths))

    def _size(self, path: Path) -> int:
        count = self.format.count
        return path.stat().st_size if count is None else count(path)

    @property
    def unit(self) -> str:
        """What :attr:`size` counts: rows where files say how many, or bytes."""
        return "B" if self.format.count is None else "query"

    def recognised(self, fields: Fields) -> QueryFiles:
        """Return files whose fields are as the first row names them, if not as in ``fields``.

        Raises:
            DatasetError: If its names could mean two things, or are those of what is read whole.
        """
        named = replace(self, fields=fields)
        table = named.begin()
        if not table.rows or not fields.are_foreign_to(table.rows[0][1]):
            return named
        found = named.meant(table, fields.mapped)
        if found.fields.roles.predicted is None:
            raise nothing_retrieved(table, FIELD_OPTIONS[-1])
        return found

    def begin(self) -> Records:
        """Return the first row."""
        return Records.of(islice(self._all_rows(), 1), self.name)

    def meant(self, table: Records, mapped: Mapped, *, is_run: bool = False) -> QueryFiles:
        """Return files whose fields mean what some of their rows say.

        Raises:
            DatasetError: As :meth:`recognised` does.
        """
        shape = shape_of(table.names, mapped)
        if shape.read is not None:
            raise Place(self.name).error(
                f"{shape.name} are read whole, not in chunks",
                "read it by load_dataset, and save that as JSON lines",
            )
        roles = roles_of(table, mapped, FIELD_OPTIONS, is_run=is_run)
        return replace(self, fields=self.fields._replace(recognised=roles))

    def shown(self) -> Records:
        """Return rows that show which fields there are, and whether they are ever filled.

        Raises:
            DatasetError: If there is no row.
        """
        showing: dict[tuple[str, bool, bool], Row] = {}
        for row in self._all_rows():
            for name, value in row[1].items():
                is_empty = hasattr(value, "__len__") and not len(value)
                showing.setdefault((name, value is None, is_empty), row)
        if not showing:
            raise Place(self.name).error("holds no queries; expected at least one")
        return Records.of(showing.values(), self.name)

    def _all_rows(self) -> Iterator[Row]:
        return chain.from_iterable(map(self._rows, self.paths))

    def _rows(
        self, path: Path, source: Any = None, skipped: int = 0, tags: bool = True
    ) -> Iterator[Row]:
        fields = self.fields
        named = filter(None, [*asked_by(fields.roles), *fields[:3]])
        wanted = {*KNOWN, *ERRORS, STATUS, *named}
        return self.format.rows(
            File(source or path, str(path), self.max_bytes, self.encoding,
                 self.format.delimiter or None, wanted, tags, skipped, held=False)
        )  # fmt: skip

    def chunks(
        self, chunk_size: int, start: Cursor = BEGINNING, tags: TagReader | None = None
    ) -> Iterator[Chunk]:
        """Yield the queries in chunks, from a place on; the last chunk may be smaller.

        A chunk is cut short where its texts pass 64 MiB, and continues over the end of a file.

        Raises:
            DatasetError: If anything in a file cannot be used; as far as it was asked for.
        """
        queries: list[Query] = []
        weight, after, reached = 0, start, 0
        for query, after, reached in self.queries(start, tags):
            queries.append(query)
            documents = chain(single(query.actual), query.predicted)
            texts = [one if type(one) is str else text_of(one) for one in documents]
            weight += sum(map(len, texts)) + _WEIGHT * len(texts)
            if len(queries) == chunk_size or weight > MOST_WEIGHT:
                yield Chunk(queries, after, reached)
                queries, weight = [], 0
        if queries:
            yield Chunk(queries, after, reached)

    def queries(
        self, start: Cursor = BEGINNING, tags: TagReader | None = None
    ) -> Iterator[tuple[Query, Cursor, int]]:
        """Yield each query, where the next begins, and how far that is.

        Raises:
            DatasetError: If it cannot be used.
        """
        before, n_queries, n_rejected = 0, start.queries, start.rejected
        n_reordered, ordering = start.reordered, Ordering()
        for number, path in enumerate(self.paths):
            if number >= start.file:
                skipped = start.records if number == start.file else 0
                with open(path, "rb") as file:
                    rows = self._rows(path, file, skipped, tags is not None)
                    for n_rows, (place, row) in enumerate(rows, skipped + 1):
                        query = self._query(row, place, tags)
                        if query is None:
                            n_rejected += 1
                            continue
                        n_queries += 1
                        ordering.add(len(query.predicted), query.standing, place.error)
                        n_reordered += self._is_reordered(query)
                        # What is in the buffer counts as read; a bar need not be that exact.
                        reached = file.raw.tell() if self.format.count is None else n_rows
                        after = Cursor(number, n_rows, n_queries, n_rejected, n_reordered)
                        yield self._in_order(query), after, before + reached
            before += self._size(path)
        if n_reordered:
            self.ordering()  # also where an interrupted run has met them
        self.reviews.n_rejected = n_rejected

    def _query(
        self, row: Mapping[str, Any], place: Place, tags: TagReader | None = None
    ) -> Query | None:
        """Return the query of a row; ``None`` if it is rejected ground truth."""
        roles = self.fields.roles
        if roles.actual.fields and not self.reviews.admits(row, place):
            return None
        return query_in(row, roles, place, tags)

    def _is_reordered(self, query: Query) -> bool:
        """Tell whether documents came in another order, or may have, or with distances."""
        standing = query.standing
        is_distance = standing is not None and standing.trend == "rising"
        return standing is not None and (standing.is_moved or is_distance or not standing.is_sorted)

    def _in_order(self, query: Query) -> Query:
        if not self._is_reordered(query):
            return query
        return query._replace(predicted=[*self.ordering().sorted(query.predicted, query.standing)])

    def ordering(self) -> Ordering:
        """Return what ranks and scores say of the order of all lists, which reads all of them once.

        Raises:
            DatasetError: If they say no order.
        """
        if not self.orderings:
            ordering = Ordering()
            for place, row in self._all_rows():
                if (query := self._query(row, place)) is not None:
                    ordering.add(len(query.predicted), query.standing, place.error)
            ordering.check(Place(self.name).error)
            self.orderings.append(ordering)
        return self.orderings[0]

    def notes_on_order(self) -> list[str]:
        """Say how documents were put in order, once the queries were read."""
        return [OfRun(note) for one in self.orderings for note in one.notes()]

    def defaults(self, first: Query) -> dict[str, Any]:
        """Return how the queries are evaluated if nobody says otherwise."""
        asking = next((one for one, *_ in self.queries() if one.actual), first)
        if not asking.predicted:  # where documents are ids alone, it takes one of them to tell
            full = (one for one, *_ in self.queries() if one.actual and one.predicted)
            asking = next(full, asking)
        matcher = matcher_of(self.fields.roles, self.name, [asking])
        return {**matcher, **self.graded(asking, first.mark.defaults), **first.mark.defaults}

    def graded(self, asking: Query, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return how grades are read, which reads all rows once if a query has some.

        Args:
            asking: A query with ground truth.
            defaults: How the file asks to be evaluated.
        """
        grading = Grading()
        grading.add(asking.actual)
        if not grading.counts or self.grades == "no":
            return {}
        grading = Grading()
        for place, row in self._all_rows():
            if (query := self._query(row, place)) is not None:
                grading.add(query.actual)
        return self._told_grades(grading, defaults)

    def _told_grades(self, grading: Grading, defaults: Mapping[str, Any]) -> dict[str, Any]:
        graded = own_grades(grading, self.grades, defaults)
        self.grade_notes[:] = grading.notes(graded.get("grade_key"))
        return graded

    def lists(self, first: Query) -> Sequence[str]:
        """Return the other lists that there are: those of the first query."""
        return [name for name in ("judged", *LISTS) if getattr(first, name) is not None]

    def reader(self, choice: TagChoice, names: Sequence[str] | None = None) -> TagReader:
        """Return a reader of tags; of these alone, if their names are known."""
        return TagReader(asked_by(self.fields.roles), choice, names)

    def positions(self, start: int, end: int) -> NDArray[np.int64]:
        """Return where some of the queries are among those of the input."""
        return np.arange(start, end, dtype=np.int64)


def _only_kind(folder: str, paths: Sequence[Path]) -> Format:
    """Return the format of the files of a directory, which must be of one."""
    kinds = {path.name: None if path.is_dir() else format_of(path, looked_into=False)
             for path in paths}  # fmt: skip
    strange = [name for name, kind in kinds.items() if kind is None]
    if strange:
        problem = f"holds {strange[0]}; expected files named *.jsonl, *.jsonl.gz or *.parquet alone"
        raise Place(folder).error(problem, "move others away")
    if not paths:
        raise Place(folder).error("holds nothing to read; expected files such as *.jsonl")
    (first, kind), *others = kinds.items()
    for other, its in others:
        if its != kind:
            problem = f"holds files of two kinds ({first} and {other})"
            raise Place(folder).error(problem, "put each kind into a directory of its own")
    assert kind is not None
    return kind


def fingerprint(path: Path) -> list[Any]:
    """Return what changes when a file does: name, size, time, and its beginning and end.

    Raises:
        DatasetError: If it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            seen = os.fstat(file.fileno())
            digest = hashlib.sha256(file.read(_LOOKED_AT))
            file.seek(max(0, seen.st_size - _LOOKED_AT))
            digest.update(file.read(_LOOKED_AT))
    except OSError as error:
        raise cannot_read(error, Place(str(path))) from error
    return [path.name, seen.st_size, seen.st_mtime_ns, digest.hexdigest()]


# Two files


class Kept:
    """What a run retrieved, in a file, by the positions of the queries.

    Args:
        file: A temporary file, which whoever opened it closes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._begins = file, array("q")

    def add(self, query: Query) -> None:
        """Keep what was retrieved for one more query."""
        self._begins.append(self._file.tell())
        found = (query.predicted, query.cited, dict(query.tags), tuple(query.place), query.error)
        pickle.dump(found, self._file, pickle.HIGHEST_PROTOCOL)

    def __getitem__(self, at: int) -> tuple[Any, ...]:
        self._file.seek(self._begins[at])
        found: tuple[Any, ...] = pickle.load(self._file)
        return found


class _Looked(Side):
    """One of two files, looked through from one end to the other.

    Args:
        files: The file.
        mapped: What the user calls its fields.
        is_run: Whether it has what was retrieved.

    Attributes:
        tags: The reader of its tags.
        lists: The places of the queries that have judged documents, and the like.
    """

    def __init__(self, files: QueryFiles, mapped: Mapped, *, is_run: bool) -> None:
        super().__init__(files.name, {})
        self._table, self._is_run = files.shown(), is_run
        if is_run:  # which may have no questions, where ids join
            there = {mapped.question} & {*self._table.names}
            mapped = Mapped(question=next(iter(there), None), predicted=mapped.predicted)
        self.files = files.meant(self._table, mapped, is_run=is_run)
        self.tags = self.reader()
        self.lists: dict[str, array[int]] = {}
        self.settings: Mapping[str, Any] = {}

    def reader(self, names: Sequence[str] | None = None) -> TagReader:
        """Return a reader of all tags: ids join, whether they are to be tags or not."""
        return TagReader(asked_by(self.files.fields.roles), True, names)

    def query(self, at: int) -> Query:
        return next(islice(self.files.queries(tags=self.reader()), at, None))[0]

    def documents(self) -> Iterable[DocumentLike]:
        return chain.from_iterable(self._documents(query) for query, *_ in self.files.queries())

    def _documents(self, query: Query) -> Iterable[DocumentLike]:
        return query.predicted if self._is_run else single(query.actual)

    def queries(self) -> Iterator[Query]:
        """Yield all queries, and note what joins them and how they are evaluated."""
        roles, name, matcher = self.files.fields.roles, self.name, None
        grading = Grading()
        n_unnamed, where, texts = 0, "", array("q")
        for query, *_ in self.files.queries(tags=self.tags):
            if query.is_text:
                texts.append(self.n_queries)
            for one in (one for one in _LISTS if getattr(query, one) is not None):
                self.lists.setdefault(one, array("q")).append(self.n_queries)
            if query.label is None:
                n_unnamed, where = n_unnamed + 1, where or str(query.place)
            if matcher != {} and any(True for _one in self._documents(query)):
                its = matcher_of(roles, name, [query])
                matcher = its if matcher in (None, its) else {}
            self.defaults = self.defaults or query.mark.defaults
            grading.add(query.actual)
            self.add(query)
            yield query
        self.check_once(texts)
        matcher = matcher_of(roles, name, []) if matcher is None else matcher
        graded = self.files._told_grades(grading, self.defaults)
        self.settings = self.defaults
        self.defaults = {**matcher, **graded, **self.defaults}
        tell_unnamed(n_unnamed, self.n_queries, name, roles.question, where)

    def described(self) -> Dataset:
        """Return the data set that it is, without its queries."""
        roles = as_saved(self._table, self.files.fields.roles)[1]
        others = [one for one in self._table.names if one not in asked_by(roles)]
        notes = said(roles, others) + self.files.notes_on_order()
        notes += [] if self._is_run else self.files.grade_notes
        notes += notes_on(self.tags.left_out)
        notes += note_on_defaults(self.settings) if self._is_run else []
        if truth := own_truth(self._table, roles):
            notes[0] = own_truth_note(self.name, truth)
        tags: dict[str, list[Tag]] = {name: [] for name in self.tags.names}
        predicted: list[Any] | None = None if roles.predicted is None else []
        return Dataset([], [], predicted, self.name, notes=notes, vocabulary=roles.shape, tags=tags)


_LISTS = ("judged", *LISTS)


@dataclass(frozen=True, kw_only=True)
class JoinedFiles(QueryFiles):
    """Questions with what a run retrieved for them, whatever the order of either.

    What :class:`QueryFiles` has is that of the ground truth.

    Attributes:
        sides: The ground truth and the run.
        kept: What the run retrieved.
        in_run: For each query of the ground truth its place in the run, -1 if it has none.
        places: The positions of the queries of the ground truth that are not left out.
    """

    sides: tuple[_Looked, _Looked]
    kept: Kept
    in_run: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(
        cls, golden: QueryFiles, run: QueryFiles, fields: Fields, kept: Kept, missing: Lacking
    ) -> JoinedFiles:
        """Join two files, looking through each twice.

        Raises:
            DatasetError: If anything in either cannot be used, or they do not join.
            OSError: If the folder for temporary files is full.
        """
        mapped = fields.mapped
        ours = _Looked(
            replace(golden, fields=fields), mapped._replace(predicted=None), is_run=False
        )
        for _query in ours.queries():
            pass
        theirs = _Looked(replace(run, fields=fields), mapped, is_run=True)
        with naming(gettempdir()):
            for query in theirs.queries():
                kept.add(query)
            first = {name: theirs.query(at[0]).place for name, at in theirs.lists.items()}
            refuse_truth(first, golden.name)
            told, found = joined(
                ours, theirs, missing, lambda *at: kept[at[0]][0] == kept[at[1]][0]
            )
        for one in (ours, theirs):
            one.keys.clear()  # they are large
        own = {one.name: getattr(ours.files, one.name) for one in fields_of(QueryFiles)}
        own |= {"orderings": [], "grade_notes": []}
        own["notes"] = joined_notes(
            ours.described(), theirs.described(), told, cites="cited" in ours.lists
        )
        own["missing"] = missing_in(found, missing)
        places = np.flatnonzero(found >= (0 if missing == "skip" else -1))
        return cls(**own, sides=(ours, theirs), kept=kept, in_run=found, places=places)

    def queries(
        self, start: Cursor = BEGINNING, tags: TagReader | None = None
    ) -> Iterator[tuple[Query, Cursor, int]]:
        """Yield each query with what was retrieved for it; see :meth:`QueryFiles.queries`."""
        golden, run = (one.tags.names for one in self.sides)
        own = None if tags is None else self.sides[0].reader([*golden])
        skips = len(self.places) < len(self.in_run)
        for query, after, reached in super().queries(start, own):
            at = int(self.in_run[after.queries - 1])
            if at >= 0:
                predicted, cited, of_run, place, error = self.kept[at]
                theirs = {name: of_run[name] for name in of_run.keys() & run if name not in golden}
                query = query._replace(predicted=predicted, cited=cited, run=Place(*place),
                                       tags={**query.tags, **theirs}, error=error)  # fmt: skip
            else:
                query = query._replace(predicted=[], cited=None, error="")
            if at >= 0 or not skips:
                yield query, after, reached

    def _is_reordered(self, query: Query) -> bool:
        """Tell that the ground truth's own retrieved documents do not matter."""
        return False

    def defaults(self, first: Query) -> dict[str, Any]:
        """Return how the queries are evaluated if nobody says otherwise."""
        return {**joined_defaults(*self.sides)}

    def lists(self, first: Query) -> Sequence[str]:
        """Return the other lists that any query has: what was cited is the run's."""
        golden, run = (one.lists.items() for one in self.sides)
        ours = [name for name, at in golden if name != "cited" and np.isin(at, self.places).any()]
        return ours + [name for name, at in run if np.isin(at, self.in_run).any()]

    def reader(self, choice: TagChoice, names: Sequence[str] | None = None) -> TagReader:
        """Return a reader of tags; of these alone, or of those that either file has."""
        known = {**self.sides[0].tags.names, **self.sides[1].tags.names}
        return super().reader(choice, names or [one for one in known if is_wanted(one, choice)])

    def positions(self, start: int, end: int) -> NDArray[np.int64]:
        """Return where some of the queries are among those of the ground truth."""
        return self.places[start:end]
