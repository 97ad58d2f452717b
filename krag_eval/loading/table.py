"""One row, one query: what every record, table and partition goes through, whatever its format.

A row is a mapping; ``Roles`` say which of its fields hold what; :func:`query_in` makes a query of
it, and :func:`parts_of` the parts of a data set of all queries.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from krag_eval.core import (
    LISTS,
    N_,
    Advice,
    Conventions,
    DatasetError,
    DocumentLike,
    Fix,
    InvalidInput,
    InvalidType,
    Location,
    Place,
    Refusal,
    Tag,
    _,
    clipped,
    id_of,
    is_blank,
    must,
    ngettext,
    one_of,
    single,
    warn,
)
from krag_eval.core.documents import (
    DRAFT,
    ID_TAGS,
    LONGEST_TAG,
    STATUS,
    IdAlone,
    Item,
    is_tag,
    plain,
    span_without_text,
)
from krag_eval.core.errors import kind_of, names_of
from krag_eval.core.files import arrow_table, shielded, unshielded
from krag_eval.core.grading import Grading
from krag_eval.core.ranking import Ordering, Standing
from krag_eval.core.results.latency import Failure
from krag_eval.loading import formats
from krag_eval.loading.cells import (
    REJECTED,
    check_characters,
    check_text,
    documents_in,
    is_bare,
    is_list_written,
    is_missing,
    list_in,
    parted,
    ranked_in,
    status_of,
    with_field,
)
from krag_eval.loading.formats import Cells, File, Row, TagChoice, Unread, is_wanted, with_fields
from krag_eval.loading.reading import MAX_BYTES, located, parsed

_MOST_NAMES = 20
_LONGEST_NAME = 40


class Records(NamedTuple):
    """A table: its rows with their places, in which a field may be missing.

    Attributes:
        name: What to call it.
        rows: Place and fields of each row.
        names: All columns there are.
        in_memory: Whether its texts come from Python, where they may hold half of a character.
    """

    name: str
    rows: Sequence[Row]
    names: Sequence[str]
    in_memory: bool = False

    @classmethod
    def of(cls, rows: Iterable[Row], name: str, *, in_memory: bool = False) -> Records:
        """Collect rows.

        >>> Records.of([(Place("rows", row=0), {"a": 1}), (Place("rows", row=1), {"b": 3})],
        ...            "rows").names
        ['a', 'b']
        """
        held = [*rows]
        names = dict.fromkeys(chain.from_iterable(row for _, row in held))
        return cls(name, held, [*map(str, names)], in_memory)

    @classmethod
    def of_frame(
        cls, frame: Any, name: str, wanted: Collection[str], tags: TagChoice = False
    ) -> Records:
        """Take the columns of a data frame, of pandas or like it, as of a file.

        What only streams its rows, as relations of DuckDB and readers of Arrow do, is read once.

        >>> import pandas as pd
        >>> Records.of_frame(pd.DataFrame({"a": [1, 2]}), "frame", {"a"}).column("a")
        [1, 2]
        """
        check_collected(frame, name)
        frame = _with_columns(frame, name)
        known = _columns_of(frame)
        names = [*map(str, known)]
        formats.check_names(names, name)
        columns, unread = {}, {}
        for one, title in zip(known, names, strict=True):
            if one in wanted or is_wanted(title, tags):
                if one not in wanted and (why := _no_tag(frame, one)):
                    unread[title] = Unread(why)
                else:
                    columns[title] = _listed(frame[one])
        rows = zip(*columns.values(), strict=True)
        held = [(Place(name, row=at), Cells({**dict(zip(columns, row, strict=True)), **unread}))
                for at, row in enumerate(rows)]  # fmt: skip
        return cls(name, held, names, in_memory=True)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column, ``None`` where a row has none, arrays as lists."""
        return [plain(row.get(name)) for _, row in self.rows]

    def cells(self, column: str) -> Iterator[tuple[Place, Any]]:
        """Yield the place and the value of each row, arrays as lists."""
        for place, row in self.rows:
            yield place._replace(column=column), plain(row.get(column))

    def texts(self, column: str) -> list[str]:
        """Return a column that holds nothing but text."""
        values = []
        for place, value in self.cells(column):
            if not isinstance(value, str):
                raise place.error(f"must be text, got {kind_of(value)}")
            values.append(value)
        return values

    def ids(self, column: str) -> list[str]:
        """Return a column of ids, whole numbers as texts."""
        found = []
        for place, one in self.cells(column):
            if not _is_id(one):
                raise place.error(_no_id(one))
            found.append(str(one))
        return found

    def changed(
        self, names: Collection[str], change: Callable[[Any], Any]
    ) -> tuple[Records, dict[str, int]]:
        """Return the table with other cells in some columns, and how many of each are others."""
        counts, rows = dict.fromkeys(names, 0), []
        for place, row in self.rows:
            new = {name: change(row[name]) for name in names if name in row}
            for name, value in new.items():
                counts[name] += value != [] and value is not row[name]
            rows.append((place, with_fields(row, new)))
        return self._replace(rows=rows), counts

    def check_has(self, needed: Sequence[str]) -> None:
        """Refuse a table without rows, or without one of these columns."""
        if not self.rows:
            raise Place(self.name).error("holds no rows; expected at least one")
        missing = [name for name in needed if name not in self.names]
        if missing:
            raise Place(self.name).error(f"no column {missing[0]!r}; {self.described()}")

    def keys(self, column: str) -> list[str]:
        """Return a column of ids that are all different."""
        seen: dict[str, None] = {}
        for (place, _row), value in zip(self.rows, self.ids(column), strict=True):
            if value in seen:
                raise place._replace(column=column).error(f"{value!r} is given a second time")
            seen[value] = None
        return [*seen]

    def described(self) -> str:
        """Name the columns there are."""
        return f"the columns are {listed(self.names) or 'none'}"


def records_in(
    source: Any,
    role: str,
    max_bytes: int | None = MAX_BYTES,
    wanted: Collection[str] = formats.Everything(),
    **how: Any,
) -> Records:
    """Return the rows of a data frame, or of a file of any format; of JSON if nothing tells.

    Raises:
        DatasetError: If the file cannot be read.
        InvalidType: If it is neither.
    """
    if is_frame(source):
        return Records.of_frame(source, role, wanted)
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        raise must(role, "be the path of a file or a data frame", source, kind=InvalidType)
    file = File.of(source, max_bytes=max_bytes, wanted=wanted, **how)
    kind = formats.format_of(source)
    return Records.of(formats.rows_in(file, kind.name if kind else "json"), file.name)


def listed(names: Sequence[str]) -> str:
    """Name columns, some of very many.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(name[:_LONGEST_NAME]) for name in names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return shown + (f" and {more} more" if more > 0 else "")


def is_frame(source: Any) -> bool:
    """Tell whether this is a data frame, or a table like one, by what it can do."""
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return hasattr(source, "__getitem__") or hasattr(source, "__arrow_c_stream__")
    # A single column streams as well.
    return hasattr(source, "__arrow_c_stream__") and not _is_column(source)


def _columns_of(frame: Any) -> list[Any]:
    return [*(frame.column_names if hasattr(frame, "column_names") else frame.columns)]


def _with_columns(frame: Any, name: str) -> Any:
    """Return a table whose columns can be listed one by one: itself, or what it streams."""
    if not hasattr(frame, "__arrow_c_stream__"):
        return frame
    # Without a shape, as in ibis, each column is a query of its own, whose rows may come in another
    # order; the columns of DuckDB are relations.
    if hasattr(frame, "shape"):
        columns = _columns_of(frame)
        formats.check_names([*map(str, columns)], name)
        if not columns or _is_column(frame[columns[0]]):
            return frame
    return arrow_table(frame, name)


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


_LISTING = ("to_pylist", "to_list", "tolist")


def _is_column(value: Any) -> bool:
    return any(hasattr(value, method) for method in _LISTING)


def _listed(column: Any) -> list[Any]:
    for method in _LISTING:
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def check_collected(frame: Any, name: str) -> None:
    """Refuse a table that is not here: of a cluster, not computed yet, or several in one.

    Raises:
        InvalidType: In these cases.
    """
    for way in ("toPandas", "compute", "collect"):
        if hasattr(frame, way):
            problem = f"is a {type(frame).__name__}, which has yet to be collected"
            raise InvalidType(name, problem, f"pass what its {way}() returns")
    if isinstance(getattr(frame, "column_names", None), Mapping):
        several = ", ".join(map(repr, frame.column_names))
        raise InvalidType(name, f"holds several tables, {several}", "pass one of them")


# How many values of a column say whether it is worth making.
_LOOKED_AT = 100


def _no_tag(frame: Any, name: Any) -> str:
    """Return why a column cannot be a tag, as far as that is seen without making all of it."""
    kind = type(getattr(frame, "features", {}).get(name)).__name__
    if kind not in ("NoneType", "Value", "ClassLabel"):
        return f"holds values of type {kind}"  # Hugging Face would make all of the pictures
    column = frame[name]
    begin = _listed(column[:_LOOKED_AT]) if hasattr(column, "__getitem__") else column
    return next((why for one in begin if (why := tag_in(one)[1])), "")


# Which field holds what

#: Columns that hold the question, whatever else there is.
QUESTIONS = ("question", "user_input", "query", "질문", "질의")


class Mapped(NamedTuple):
    """The columns a user named; ``None`` for those to be recognised."""

    question: str | None = None
    actual: str | None = None
    predicted: str | None = None


class Given(NamedTuple):
    """What a caller says beside the source; see :func:`load_dataset`."""

    mapped: Mapped = Mapped()
    corpus: Any = None
    retrieved: Any = None
    max_bytes: int | None = MAX_BYTES
    tags: TagChoice = False
    cells: str = "list"
    named_by: Sequence[str] = Mapped._fields
    missing: str | None = None
    is_run: bool = False
    drafts: Drafts = "error"
    grades: str = "auto"
    separator: str | None = None
    in_file: Mapping[str, Any] = MappingProxyType({})

    def check(self, taken: Collection[str], what: str) -> None:
        """Refuse what a source of some kind does not take."""
        cells = None if self.cells == "list" else self.cells
        drafts = None if self.drafts == "error" else self.drafts
        given = {**self.mapped._asdict(), "corpus": self.corpus, "retrieved": self.retrieved}
        for argument, value in {
            **given,
            "cells": cells,
            "drafts": drafts,
            "separator": self.separator,
        }.items():
            if value is not None and argument not in taken:
                raise InvalidInput(argument, f"is not for {what}", "leave it out")


class Side(NamedTuple):
    """Which fields hold the documents of one side.

    Attributes:
        texts: The field with the list of documents.
        ids: One with a list of ids; with ``texts``, one id for each of them.
        metadata: Fields with lists of values, one for each document.
    """

    texts: str | None = None
    ids: str | None = None
    metadata: tuple[str, ...] = ()

    @property
    def fields(self) -> list[str]:
        """The fields there must be."""
        return [one for one in self[:2] if one is not None] + [*self.metadata]

    def __str__(self) -> str:
        return " with ".join(self.fields)


class Roles(NamedTuple):
    """Which field means what, and whose names these are.

    Attributes:
        shape: Whose names.
        question: The field with the question, if there is one.
        actual: Where the ground truth is.
        predicted: Where the retrieved documents are; ``None`` if nothing has been retrieved yet.
        options: What the caller names the fields of the two sides by, where it names them.
    """

    shape: str
    question: str | None
    actual: Side
    predicted: Side | None
    options: tuple[str, str] | None = None


#: Names that look like documents, and what is known about them.
_DOUBTFUL = {
    "contexts": "may be what should be retrieved (RAGAS's test sets up to 0.1) or what was (its "
    "evaluations)",
    "context": "may be what should be retrieved or what was",
    "ground_truth": "is an answer in RAGAS, not documents",
    "ground_truths": "are answers in RAGAS, not documents",
    "reference": "is an answer in RAGAS, not documents",
    "answer": "is an answer, not documents",
    "documents": "may be what should be retrieved or what was",
    "retrieval_gt": "is AutoRAG's, which has the columns qid and query as well",
}


def doubts(names: Collection[str]) -> str:
    """Say of the names that look like those of documents what is known, each before a semicolon.

    >>> doubts(["question", "ground_truth"])
    "'ground_truth' is an answer in RAGAS, not documents; "
    """
    found = [name for name in _DOUBTFUL if name in names]
    return "".join(f"{name!r} {_DOUBTFUL[name]}; " for name in found)


# What krag_eval adds to a query

#: The field, or column, with what krag_eval adds.
OWN = "krag_eval"
#: What the field is called with the documents that somebody looked at.
JUDGED = ("judged", "판정문서", "판정 문서")
#: What the field is called with the documents that must not come back.
UNWANTED = ("unwanted", "원치않는문서", "원치 않는 문서", "제외문서", "제외 문서")
#: What the field is called with the documents that the answer cited.
CITED = ("cited", "인용문서", "인용 문서", "cited_document_ids")
_FIELDS = {"judged": JUDGED, "unwanted": UNWANTED, "cited": CITED}
#: What other fields with documents are called -> what they hold.
LISTED = {name: field for field, names in _FIELDS.items() for name in names}
#: What the field is called with what a retriever failed with.
ERRORS = ("error", "오류", "에러")
# How cells of a table say that there was none.
_NO_ERROR = ("none", "null", "nan", "false", "0", "no")
#: The options of an evaluator that a file can tell.
OPTIONS = ("matcher", "threshold", "conventions", "matching_criteria", "no_ground_truth",
           "grade_key", "grades", "averaging_method", "aspect_key")  # fmt: skip
_MARK = ("label", "shielded", "tags", "evaluator")


class Mark(NamedTuple):
    """What a saved query carries beside its documents."""

    label: str | int | None = None
    defaults: Mapping[str, Any] = {}
    shielded: bool = False
    tags: Mapping[str, Tag] = {}


_NO_MARK = Mark()


def _mark_in(value: Any) -> Mark:
    """Read a mark, which tables hold written as JSON."""
    if is_missing(value) or value == "":
        return _NO_MARK
    try:
        content = {**dict.fromkeys(_MARK), **(parsed(value) if isinstance(value, str) else value)}
        label, hidden, tags, defaults = content.values()  # others are too many
        tags, defaults = tags or {}, dict(defaults or {})
        if "conventions" in defaults:
            defaults["conventions"] = Conventions.parse(defaults["conventions"])
        kinds = (bool, list, dict, type(None))
        fits = (
            isinstance(label, str | int | None)
            and not isinstance(label, bool)
            and isinstance(hidden, bool | None)
            and all(map(is_tag, tags.values()))
            and defaults.keys() <= {*OPTIONS}
            and not any(isinstance(one, kinds) for one in defaults.values())
        )
    except (TypeError, ValueError, AttributeError):
        fits = False
    if not fits:
        be = (
            'be what Dataset.save wrote, an object with "label", "evaluator", "shielded" and "tags"'
        )
        raise must(OWN, be, value, "leave the field out")
    return Mark(label, defaults, bool(hidden), tags)


# What people decided about a row of ground truth

#: What happens to drafts: they are refused, or counted.
Drafts: TypeAlias = Literal["error", "count"]


def checked_drafts(drafts: str) -> Drafts:
    """Return what happens to drafts."""
    return one_of("drafts", drafts, ("error", "count"))  # type: ignore[return-value]


@dataclass
class Reviews:
    """Holds the rows of a ground truth to what people decided about them.

    Attributes:
        drafts: What happens to rows that nobody has accepted yet.
        n_rejected: How many rows were left out.
    """

    drafts: Drafts = "error"
    n_rejected: int = 0

    def admits(self, row: Mapping[str, Any], place: Place) -> bool:
        """Tell whether a row counts; a rejected one never does, and is counted as such.

        Raises:
            DatasetError: If it is a draft, and drafts are not to be counted.
        """
        status = status_of(row)
        if status == DRAFT and self.drafts == "error":
            problem = (
                'is a draft ("status": "draft"), which is no ground truth until it is accepted'
            )
            fix = "accept it, or reject it; {} counts drafts, and says how many there are"
            raise place.error(problem, Advice(fix, drafts="count"))
        self.n_rejected += status == REJECTED
        return status != REJECTED

    def accepted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows that count."""
        return ((place, row) for place, row in rows if self.admits(row, place))

    def check(self, name: str, n_accepted: int) -> None:
        """Warn of how many rows were left out, if there were any.

        Raises:
            DatasetError: If no other is there.
        """
        if self.n_rejected and not n_accepted:
            raise Place(name).error(f"holds nothing but rejected rows ({self.n_rejected})")
        if self.n_rejected:
            message = ngettext(
                "{name}: {n} rejected row is left out.",
                "{name}: {n} rejected rows are left out.",
                self.n_rejected,
            )
            warn(message.format(name=name, n=self.n_rejected))


def with_drafts(
    queries: Sequence[Query], tags: dict[str, list[Tag]]
) -> tuple[dict[str, list[Tag]], list[str]]:
    """Return tags that tell which queries are drafts, whatever tags were asked for, and a note."""
    n = sum(query.is_draft for query in queries)
    if not n:
        return tags, []
    others = tags.get(STATUS, [None] * len(queries))
    status: list[Tag] = [
        DRAFT if query.is_draft else other for query, other in zip(queries, others, strict=True)
    ]
    note = _("{n} of {queries} unreviewed").format(n=n, queries=len(queries))
    return {**tags, STATUS: status}, [note]


# Tags: the fields that no role names

# Rows may have fields of ever other names; each tag holds one value per query.
MOST_TAGS = 100
#: How many names are remembered of fields beyond those, however long a file.
MOST_LEFT_OUT = 1_000
# Why a column cannot be a tag; MOST_TAGS is spelled out for the catalogs.
_TOO_MANY = N_("there are 100 others")
_NOT_IN_FIRST = N_("is not in the first chunk")
_LINE_END = N_("has a line end in its name")
_DIFFERS = N_("differs between rows of one question")
_HALF = N_("holds half of a character")
_DISGUISED = N_("would be read under its own name, but for invisible characters in it")
N_("holds a list")
N_("holds an object")
_NO_TAGS: Mapping[str, Tag] = {}


def checked_choice(tags: object) -> TagChoice:
    """Return which columns to keep as tags.

    Raises:
        InvalidType: If it is neither a boolean nor a list of names.
    """
    if isinstance(tags, bool):
        return tags
    if isinstance(tags, list | tuple) and all(isinstance(one, str) for one in tags):
        return tuple(dict.fromkeys(tags))
    raise must("tags", "be True, False or a list of names of columns", tags, kind=InvalidType)


def tag_in(value: Any) -> tuple[Tag, str]:
    """Return a value as a tag, and why it cannot be one; an empty text is nothing.

    >>> tag_in("wiki"), tag_in(""), tag_in([0.5])
    (('wiki', ''), (None, ''), (None, 'holds a list'))
    """
    if isinstance(value, str):
        if len(value) > LONGEST_TAG:
            return None, formats.TOO_LONG
        if not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value):
            return None, _HALF
        return value or None, ""
    if isinstance(value, Unread):
        return None, value.why
    value = plain(value)
    if is_missing(value):
        return None, ""
    return (value, "") if is_tag(value) else (None, f"holds {kind_of(value)}")


def tag_cell(tag: Tag) -> str:
    """Return what a table shows of a tag where a column holds texts alone."""
    if tag is None:
        return ""
    return tag if isinstance(tag, str) else json.dumps(tag)[:LONGEST_TAG]


def _as_marked(cell: Tag, tag: Tag) -> bool:
    """Tell whether a cell still shows the tag that it was written for."""
    text = tag_cell(tag)
    return (cell or "") in (text, shielded(text)[:LONGEST_TAG])


def is_disguised(name: str) -> bool:
    r"""Tell whether a name is one that means something, with invisible characters around it.

    >>> is_disguised("\ufeffquestion"), is_disguised("question"), is_disguised("\ufefftopic")
    (True, False, False)
    """
    plain_name = "".join(one for one in name if one not in _INVISIBLE).strip()
    return plain_name != name and plain_name in _MEANT


# A byte order mark within quotes, and what copies of web pages and of documents bring along.
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\u00ad"
_MEANT = frozenset({*QUESTIONS, *ID_TAGS, *LISTED, OWN, STATUS})


def disguised_among(names: Iterable[str]) -> dict[str, str]:
    """Return why such names are no tags, by name."""
    return dict.fromkeys(filter(is_disguised, names), _DISGUISED)


class TagReader:
    """Reads the tags of rows that come one by one.

    Attributes:
        names: The tags that were met, in order.
        left_out: Why other fields are not among them, by name.
    """

    def __init__(
        self, asked: Iterable[str | None], choice: TagChoice, names: Sequence[str] | None = None
    ) -> None:
        self.names: dict[str, None] = dict.fromkeys(names or ())
        self.left_out: dict[str, str] = {}
        self._asked = frozenset(asked)
        self._choice = choice
        self._settled = names is not None
        self._unwanted: dict[str, None] = {}

    def settle(self) -> None:
        """Add no names from here on, and keep those there are."""
        self._settled = True

    def read(self, row: Mapping[str, Any], mark: Mark) -> Mapping[str, Tag]:
        """Return the tags of a row; where it has none, there is none."""
        found: dict[str, Tag] = {}
        asked = self._asked
        if not LISTED.keys().isdisjoint(row):
            empty = (name for name in LISTED.keys() & row if tag_in(row[name]) == (None, ""))
            asked = asked.union(_listed_in(row), empty)
        for name, value in _with_named_tags(row).items():
            if name not in asked and (name in self.names or self._is_new(name)):
                tag, problem = tag_in(value)
                if problem:
                    self.leave_out(name, problem)
                elif tag is not None:
                    found[name] = tag
        for name, tag in mark.tags.items():
            is_shown = name in row and name not in asked
            as_marked = not is_shown or _as_marked(found.get(name), tag)
            if as_marked and (name in self.names or self._is_new(name)):
                found[name] = tag
        return found or _NO_TAGS

    def _is_new(self, name: str) -> bool:
        """Add a name, unless it is not wanted or there are enough."""
        if name in self.left_out:
            return False
        if is_disguised(name):
            self.left_out.setdefault(name, _DISGUISED)
            return False
        if not is_wanted(name, self._choice):
            if len(self._unwanted) < MOST_TAGS:
                self._unwanted[name] = None
            return False
        problem = _TOO_MANY if len(self.names) == MOST_TAGS else ""
        if self._settled:
            problem = _NOT_IN_FIRST
        elif len(name.splitlines()) > 1:
            problem = _LINE_END
        if problem:
            if len(self.left_out) < MOST_LEFT_OUT:
                self.left_out[name] = problem
            return False
        self.names[name] = None
        return True

    def check(self, table: str, fields: Iterable[str | None] = ()) -> None:
        """Refuse a name that was chosen and is not among the tags.

        Args:
            table: What to call the table.
            fields: The names there are beside those that were met.

        Raises:
            DatasetError: If there is one.
        """
        for name in () if isinstance(self._choice, bool) else self._choice:
            if name in self.left_out or name in self._asked:
                why = self.left_out.get(name, "is read as something else")
                problem = f"column {name!r} cannot be a tag: it {why}"
                raise Place(table).error(problem, Advice("leave it out of {}", tags=...))
            if name not in self.names:
                known = [*filter(None, fields), *self.names, *self.left_out, *self._unwanted]
                problem = f"no column {name!r}, which is named in tags; the columns are "
                raise Place(table).error(problem + listed([*dict.fromkeys(known)]))

    def leave_out(self, name: str, problem: str) -> None:
        """Let a column be no tag, and keep why."""
        self.left_out.setdefault(name, problem)
        if not self._settled:
            del self.names[name]

    def columns(self, found: Sequence[Mapping[str, Tag]]) -> dict[str, list[Tag]]:
        """Return the tags of rows as columns."""
        return {name: [one.get(name) for one in found] for name in self.names}


def _with_named_tags(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with what its field ``tags`` holds, a list of names or an object, as fields.

    >>> _with_named_tags({"question": "When?", "tags": ["hours", "faq"]})
    {'question': 'When?', 'tags.hours': True, 'tags.faq': True}
    """
    if "tags" not in row:
        return row
    tags = plain(row["tags"])
    if isinstance(tags, list) and all(isinstance(one, str) for one in tags):
        tags = dict.fromkeys(tags, True)
    if not isinstance(tags, Mapping):
        return row
    others = {name: one for name, one in row.items() if name != "tags"}
    return {**others, **{f"tags.{name}": one for name, one in tags.items()}}


def asked_by(roles: Roles) -> set[str | None]:
    """Return the fields that mean something else than tags."""
    return {OWN, roles.question, *roles.actual.fields, *(roles.predicted or Side()).fields}


def tags_of(
    table: Records, asked: Iterable[str | None], choice: TagChoice
) -> tuple[dict[str, list[Tag]], list[str]]:
    """Return the tags of a table, and a note on the columns that cannot be any.

    Raises:
        DatasetError: If a column that was chosen is not there, or cannot be a tag.
    """
    reader = TagReader(asked, choice)
    found = [reader.read(row, _NO_MARK) for _, row in table.rows]
    reader.check(table.name, table.names)
    return reader.columns(found), notes_on(reader.left_out)


def notes_on(left_out: Mapping[str, str]) -> list[str]:
    """Say which columns are left out, and why, in one sentence, if there are any."""
    if not left_out:
        return []
    shown = [f"{name[:_LONGEST_NAME]} ({_(why)})" for name, why in left_out.items()]
    more = len(shown) - _MOST_NAMES
    text = ", ".join(shown[:_MOST_NAMES]) + (_(" and {} more").format(more) if more > 0 else "")
    told = ngettext(
        "{n} column cannot be a tag of the queries: {names}",
        "{n} columns cannot be tags of the queries: {names}",
        len(shown),
    )
    return [told.format(n=len(shown), names=text)]


# From a row to a query


class Query(NamedTuple):
    """One query, checked, and its place in a file.

    ``predicted`` is empty where nothing has been retrieved yet; ``is_text`` says that it was a
    text, and no list; ``is_draft`` that nobody has accepted its ground truth; ``run`` is its place,
    if that is in a file of its own; ``error`` is what the retriever failed with, where nothing was
    retrieved. ``standing`` is what stands beside the retrieved documents, and ``beside`` the rank
    and the score that the row has, as rows of one document do; ``row_grades`` is what the row has
    under the names of grades, where nothing was retrieved.
    """

    place: Place
    question: str | int | None
    actual: list[Any]
    predicted: list[Any]
    mark: Mark = _NO_MARK
    tags: Mapping[str, Tag] = _NO_TAGS
    judged: list[Any] | dict[str, bool] | None = None
    unwanted: list[Any] | None = None
    cited: list[Any] | None = None
    is_text: bool = False
    is_draft: bool = False
    run: Place | None = None
    error: str = ""
    standing: Standing | None = None
    beside: tuple[Any, Any] = (None, None)
    row_grades: Mapping[str, Any] = _NO_TAGS

    @property
    def label(self) -> str | int | None:
        """What the query is called: what its mark says, or its question."""
        return self.question if self.mark.label is None else self.mark.label


def query_in(
    row: Mapping[str, Any], roles: Roles, place: Place, tags: TagReader | None = None
) -> Query:
    """Make a query of a row, with its tags if there is a reader of them.

    Raises:
        DatasetError: If a field cannot be used; it names the place and the field.

    >>> roles = Roles("krag_eval", "question", Side("actual"), Side("predicted"))
    >>> row = {"question": "", "actual": "['a']", "predicted": [{"page_content": "a", "id": None}]}
    >>> query = query_in(row, roles, Place("run.csv", 2))
    >>> query.question, query.actual
    (None, ['a'])
    """
    try:
        mark = _mark_in(row[OWN]) if OWN in row else _NO_MARK
        question = None
        if roles.question is not None:
            question = _question_in(row.get(roles.question), roles.question)
            if mark.shielded and isinstance(question, str):
                question = unshielded(question)
        actual, _none = documents_of(row, roles.actual, roles.options, ground_truth=True)
        lists = lists_in(row)
        predicted: list[Any] = []
        failure = ""
        if (side := roles.predicted) is not None:
            failure = error_in(row, asked_by(roles))
            row = _with_empty_lists(row, side.fields) if failure else row
            predicted, standing = documents_of(row, side, roles.options, ground_truth=False)
            lists |= {"standing": standing, "beside": _beside(row)}
            field = row[str(side.texts or side.ids)]
            lists["is_text"] = _one_as_list(field, row) is not field
        else:
            lists["row_grades"] = {name: row[name] for name in Grading.NAMES if name in row}
    except Refusal as error:
        raise error.at(place) from error
    found = _NO_TAGS if tags is None else tags.read(row, mark)
    lists["is_draft"] = bool(roles.actual.fields) and status_of(row) == DRAFT
    lists["error"] = "" if predicted else failure
    return Query(place, question, actual, predicted, mark, found, **lists)


def error_in(row: Mapping[str, Any], asked: Collection[str | None] = ()) -> str:
    """Return what a row says that its retriever failed with, as a text; ``""`` if nothing.

    Args:
        row: The row.
        asked: The fields that mean something else.

    >>> [error_in({"error": one}) for one in ("timeout", {"code": 504}, True, "", False)]
    ['timeout', '{"code": 504}', 'true', '', '']
    """
    for name in ERRORS:
        value = plain(row.get(name))
        if name in asked or is_missing(value) or not value:
            continue
        if not isinstance(value, str):
            return json.dumps(value, ensure_ascii=False, default=str)
        if not is_blank(value) and value.strip().casefold() not in _NO_ERROR:
            return value
    return ""


def _with_empty_lists(row: Mapping[str, Any], fields: Sequence[str]) -> Mapping[str, Any]:
    """Return a row with empty lists of documents, if it has nothing at all in their fields.

    Who writes what went wrong may write nothing else.
    """
    values = [plain(row.get(name)) for name in fields]
    if not all(is_missing(value) or value == "" for value in values):
        return row
    return with_fields(row, {name: [] for name in fields})


def lists_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the documents of a row that are neither ground truth nor retrieved, by what they are.

    A text is one document, but in the cell of a table, where it is a tag.

    >>> lists_in({"question": "When?", "unwanted": ["At eight."], "cited": "At nine."})
    {'unwanted': ['At eight.'], 'cited': ['At nine.']}
    """
    found: dict[str, Any] = {}
    for name in _listed_in(row):
        value, at = row[name], Location(name)
        if not (isinstance(value, str) and value.startswith("{")):
            value = _one_as_list(value, row)
        if LISTED[name] == "judged":
            found["judged"] = _looked_at(value, at)
        else:
            is_unwanted = LISTED[name] == "unwanted"
            of_ids = name.endswith("_ids")
            given = (
                _ids(value, name) if of_ids else documents_in(value, at, ground_truth=is_unwanted)
            )
            found.setdefault(LISTED[name], []).extend(given)
    return found


def _listed_in(row: Mapping[str, Any]) -> list[str]:
    """Return which of those fields hold documents, or an object of what was judged."""
    if LISTED.keys().isdisjoint(row):
        return []
    is_table = isinstance(row, Cells)
    return [name for name in LISTED if name in row and _is_listed(row[name], in_cell=is_table)]


def _is_listed(value: Any, *, in_cell: bool) -> bool:
    if isinstance(value, str):
        return value[:1] + value[-1:] in ("[]", "{}") if in_cell else not is_blank(value)
    return isinstance(plain(value), list | tuple | Mapping)


def _looked_at(value: Any, at: Location) -> list[Any] | dict[str, bool]:
    """Return the documents that were looked at or, of a pool, which of them were."""
    content = plain(value)
    if isinstance(content, str) and content.startswith("{"):
        try:
            content = parsed(content)
        except ValueError as error:
            raise at.error(f": must be a list, or an object in JSON ({error})") from error
    if not isinstance(content, Mapping):
        return documents_in(value, at, ground_truth=False)
    if not all(isinstance(one, bool) for one in content.values()):
        raise at.type_error(": must map ids or texts to whether they were looked at, true or false")
    return dict(content)


def _question_in(value: Any, name: str) -> str | int | None:
    """Return a question; ``None`` where there is none."""
    if isinstance(value, str):
        return value or None
    value = plain(value)
    if is_missing(value):
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        fix = ""
        if isinstance(value, Mapping):
            fix = "a file that pandas writes by column must be written by row, with orient=records"
        elif isinstance(value, list | tuple):
            fix = "keep the question alone; conversations of several turns cannot be read"
        problem = f"must be text or a whole number, got {kind_of(value)}"
        raise InvalidType(name, problem, fix)
    return value


def documents_of(
    row: Mapping[str, Any], side: Side, options: tuple[str, str] | None, *, ground_truth: bool
) -> tuple[list[Any], Standing | None]:
    """Return the documents of one side, and what stands beside those that were retrieved.

    Of a run, which has no ground truth, there are none of that.
    """
    if side.texts is not None and side.texts in row and not side.ids and not side.metadata:
        found, at = _one_as_list(row[side.texts], row), Location(side.texts)
        if not ground_truth:
            return ranked_in(found, at)
        return documents_in(found, at, ground_truth=True), None
    lists = {name: _one_as_list(row[name], row) for name in side.fields if name in row}
    if missing := [name for name in side.fields if name not in lists]:
        raise _no_field(row, missing[0], options, ground_truth=ground_truth)
    if side.texts is None:
        return ([] if side.ids is None else _ids(lists[side.ids], side.ids)), None
    found = documents_in(lists[side.texts], Location(side.texts), ground_truth=ground_truth)
    # Texts with ids, as LlamaIndex writes them, or with metadata, as krag does.
    beside = {name: _ids(lists[name], name) if name == side.ids else
              list_in(lists[name], Location(name)) for name in side.fields[1:]}  # fmt: skip
    for name, values in beside.items():
        if len(values) != len(found):
            problem = "must have one value for each of the"
            raise InvalidInput(name, f"{problem} {len(found)} documents, got {len(values)}")
        if not all(isinstance(text, str) for text in found):
            problem = "belongs to documents that are plain texts; these are not"
            raise InvalidInput(name, problem)
    made: list[dict[str, Any]] = [{"page_content": text} for text in found]
    for name, values in beside.items():
        for document, value in zip(made, values, strict=True):
            place = document if name == side.ids else document.setdefault("metadata", {})
            place["id" if name == side.ids else name] = value
    return made, None


# The columns of tables that hold one document in a row with its rank, its score or its distance.
_RANKS, _ROW_SCORES, _DISTANCES = ("rank", "순위"), ("score", "점수"), ("distance", "거리")
#: Columns that are read, whether they are to be tags or not.
BESIDE = (*_RANKS, *_ROW_SCORES, *_DISTANCES, *Grading.NAMES)


def _beside(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the rank and the score in a row, which the cells of a table may write as text."""
    score, distance = _number_in(row, _ROW_SCORES), _number_in(row, _DISTANCES)
    if score is None and distance is not None:
        score = -distance
    return _number_in(row, _RANKS), score


def _number_in(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    value = plain(next((row[name] for name in names if name in row), None))
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return value if isinstance(value, Real) and value == value else None


def _one_as_list(value: Any, row: Mapping[str, Any]) -> Any:
    """Return a plain text as a list of it; the cells of a table, and what spells a list, stay."""
    if not isinstance(value, str) or isinstance(row, Cells) or is_blank(value):
        return value
    return value if _CUT_OFF.match(value) else _cell_as_list(value)


# How a list begins that somebody wrote into a text, even if it never ends.
_CUT_OFF = re.compile(r"""\s*[\[(]\s*['"\[{]""")


def _no_field(
    fields: Collection[str], name: str, options: tuple[str, str] | None, *, ground_truth: bool
) -> InvalidInput:
    """Return the refusal of a query without one of its fields."""
    advice: Fix = "write [] where there are none"
    if options is not None:
        there = f"the fields are {names_of(fields)}; {doubts(fields) if ground_truth else ''}"
        told = f"{there.replace('{', '{{').replace('}', '}}')}name the one that does by {{}}"
        advice = Advice(told, (options[not ground_truth], ...))
    return InvalidInput("", f'no field "{name}"', advice)


def _no_id(one: Any) -> str:
    came = "an empty text" if one == "" else kind_of(one)
    return f"must be an id (text or a whole number), got {came}"


def _ids(value: Any, name: str) -> list[str]:
    ids = list_in(value, Location(name))
    for position, one in enumerate(ids):
        if not _is_id(one):
            raise InvalidType(name, _no_id(one), within=f"[{position}]")
    return [str(one) for one in ids]


def queries_of(
    table: Records,
    roles: Roles,
    tags: TagReader | None = None,
    drafts: Drafts = "error",
) -> list[Query]:
    """Make a query of each row of a table that is not rejected; a run has no such rows.

    Raises:
        DatasetError: If there is none, or one cannot be used.
    """
    if not table.rows:
        raise Place(table.name).error("holds no rows; expected at least one")
    reviews, rows = Reviews(drafts), iter(table.rows)
    rows = reviews.accepted(rows) if roles.actual.fields else rows
    queries = [query_in(row, roles, place, tags) for place, row in rows]
    reviews.check(table.name, len(queries))
    for one in queries if table.in_memory else ():
        with located(one.place):
            if isinstance(one.question, str):
                check_text(one.question, Location(str(roles.question)))
            check_characters(one.actual, Location(str(roles.actual)))
            check_characters(one.predicted, Location(str(roles.predicted)))
    return queries


# Cells that hold one document each, and rows that hold one of a query's each


def cells_as_lists(
    table: Records, roles: Roles, separator: str | None = None
) -> tuple[Records, list[str]]:
    """Make a list of each plain text in the columns of documents, and say how many there were.

    A blank cell is an empty list; what spells a list stays, to be read as one.

    Args:
        table: The table.
        roles: What its columns mean.
        separator: What parts the documents of a cell; ``None`` if each cell holds one. It parts
            cells of judged, unwanted and cited documents as well.

    >>> roles = Roles("krag_eval", None, Side("actual"), None)
    >>> rows = [(Place("qa.csv"), {"actual": cell}) for cell in ("a", "['b']", "")]
    >>> table, notes = cells_as_lists(Records.of(rows, "qa.csv"), roles)
    >>> table.column("actual"), notes
    ([['a'], "['b']", []], ['plain text in actual read as one document per cell (1 of 3 cells)'])
    """
    fields = [*roles.actual.fields, *(roles.predicted or Side()).fields]
    fields += [] if separator is None else [name for name in LISTED if name in table.names]
    table, counts = table.changed(fields, partial(_cell_as_list, separator=separator))
    message = _("plain text in {name} read as one document per cell ({n} of {cells} cells)")
    if separator is not None:
        message = _("plain text in {name} parted at {separator!r} ({n} of {cells} cells)")
    return table, [
        message.format(name=name, n=n, cells=len(table.rows), separator=separator)
        for name, n in counts.items()
        if n
    ]


def _cell_as_list(value: Any, separator: str | None = None) -> Any:
    if isinstance(value, str):
        if not value.strip():
            return []
        if is_list_written(value):
            return value
        parts = [value] if separator is None else map(str.strip, value.split(separator))
        return [part for part in parts if part]
    if hasattr(value, "__len__"):
        return value
    return [] if is_missing(value) else value


class OfRun(str):
    """A note on what was retrieved, which stays where a run is joined to its ground truth."""

    __slots__ = ()


def check_ids_alone(
    lists: Iterable[tuple[Sequence[Any], Sequence[Any], Place]], separator: str | None = None
) -> None:
    """Refuse an id that is none of the other side's, and holds several of them.

    Args:
        lists: Per query, its ground truth, what was retrieved, and the place of both.
        separator: What parted the cells, if anything did; then nothing is refused.

    Raises:
        DatasetError: If there is one, by its place.
    """
    for actual, predicted, place in lists if separator is None else ():
        sides = ([*single(actual)], predicted)
        ids = [{id_of(document) for document in side} for side in sides]
        for own, others in ((0, 1), (1, 0)):
            for text in filter(None, map(id_of, filter(is_bare, sides[own]))):
                sign, parts = parted(text)
                if parts and text not in ids[others] and not ids[others].isdisjoint(parts):
                    problem = f"{clipped(text)} holds several ids, some of them of the other side"
                    fix = "write a list of them; {} parts the cells of a table so"
                    raise place.error(problem, Advice(fix, separator=sign))


class NoteOnSettings(str):
    """A note on how a file asks to be evaluated, which is not a run's to say."""

    __slots__ = ()


def in_order(queries: Sequence[Query], name: str) -> tuple[list[Query], list[str]]:
    """Return queries whose documents are in the order of what stands beside them, and notes.

    Raises:
        DatasetError: If ranks of several queries begin differently, or scores say no order.
    """
    lists = [(query.predicted, query.standing) for query in queries]
    places = [query.place for query in queries]
    ordered, notes = Ordering.applied(lists, Place(name).error, lambda at: places[at].error)
    made = zip(queries, ordered, strict=True)
    return [query._replace(predicted=[*some]) for query, some in made], [*map(OfRun, notes)]


def joined(
    queries: Sequence[Query], tags: Mapping[str, list[Tag]]
) -> tuple[list[Query], dict[str, list[Tag]], dict[str, str]]:
    """Put the rows of a question together: its documents in their order, ground truth once.

    Args:
        queries: A query for each row; those without a label stay as they are.
        tags: One value per row, by name.

    Returns:
        A query for each question, its tags, and why others are left out, by name.

    Raises:
        DatasetError: If retrieved documents come again beside other ground truth, so that it
            cannot be told which of them were retrieved how often.

    >>> rows = [Query(Place("qa.csv", line), "When?", ["nine"], [text])
    ...         for line, text in ((2, "ten"), (3, "nine"))]
    >>> [query.predicted for query in joined(rows, {})[0]]
    [['ten', 'nine']]
    """
    groups: dict[Any, list[int]] = {}
    for number, one in enumerate(queries):
        groups.setdefault((number,) if one.label is None else one.label, []).append(number)
    kept, left_out = {}, {}
    for name, values in tags.items():
        found = [{values[row] for row in rows} - {None} for rows in groups.values()]
        if max(map(len, found), default=0) > 1:
            left_out[name] = _DIFFERS
        else:
            kept[name] = [next(iter(one), None) for one in found]
    queries = _with_row_grades(queries, [*groups.values()])
    by_row = len(groups) < len(queries) and all(len(one.predicted) <= 1 for one in queries)
    made = [_one_query([queries[row] for row in rows], by_row=by_row) for rows in groups.values()]
    return made, kept, left_out


def _with_row_grades(queries: Sequence[Query], groups: Sequence[Sequence[int]]) -> list[Query]:
    """Return rows of one ground-truth document each with the grade that stands beside it.

    That is the surest field that differs between the rows of some question; one that is the same
    in all of them says something of the question.
    """
    rows = [[queries[at].row_grades for at in of_question] for of_question in groups]
    name = next((name for name in Grading.NAMES if any(
        len({str(row.get(name)) for row in some}) > 1 for some in rows)), None)  # fmt: skip
    if name is None or any(len(query.actual) > 1 for query in queries):
        return [*queries]
    return [query._replace(actual=[with_field(item, name, query.row_grades.get(name))
                                   for item in query.actual])
            for query in queries]  # fmt: skip


def _one_query(rows: Sequence[Query], *, by_row: bool) -> Query:
    """Make one query of the rows of a question.

    Args:
        rows: Its rows.
        by_row: Whether each row of the table holds one document, of which it may say the rank.
    """
    first = rows[0]
    if len(rows) == 1:
        return first._replace(standing=_ranked_rows(rows)[0]) if by_row else first
    actual = {repr(item): item for row in rows for item in row.actual}
    predicted, standing = [document for row in rows for document in row.predicted], None
    is_one_truth = all(row.actual == first.actual for row in rows)
    if not is_one_truth and all(row.predicted == first.predicted for row in rows):
        predicted, standing = first.predicted, first.standing
    elif not is_one_truth and len(set(map(repr, predicted))) < len(predicted):
        raise first.place.error(
            f"the rows of the question {clipped(first.label)} hold retrieved documents more "
            "than once, beside other ground truth; expected each document in one row",
            "write one row per question, with lists in its cells",
        )
    elif by_row:
        standing, order = _ranked_rows(rows)
        predicted = [predicted[at] for at in order]
    lists: dict[str, Any] = {}
    for name in LISTS:
        given = [some for row in rows if (some := getattr(row, name)) is not None]
        once = {repr(item): item for some in given for item in some}
        lists[name] = [*once.values()] if given else None
    lists["is_draft"] = any(row.is_draft for row in rows)
    lists["error"] = "" if predicted else next((row.error for row in rows if row.error), "")
    lists |= {"standing": standing, "actual": [*actual.values()]}
    return first._replace(predicted=predicted, **lists)


def _ranked_rows(rows: Sequence[Query]) -> tuple[Standing | None, list[int]]:
    """Return what the rows of a question say beside their documents, and the order of these."""
    with located(rows[0].place):
        places = [row.beside for row in rows if row.predicted]
        return Standing.of(places, Location("rank").error)


def note_on_defaults(defaults: Mapping[str, Any]) -> list[str]:
    """Say how rows ask to be evaluated, in one sentence, if they do."""
    if not defaults:
        return []
    message = _("evaluated with {settings}, as the file asks; options that are given win")
    settings = ", ".join(f"{name}={defaults[name]}" for name in defaults)
    return [NoteOnSettings(message.format(settings=settings))]


def own_truth_note(run: str, names: Sequence[str]) -> str:
    """Say that the ground truth of a run is not used."""
    message = _("the ground truth that {run} has of its own, in {names}, is not used")
    return message.format(run=run, names=listed(names))


# From all queries to the parts of a data set


def parts_of(
    queries: Sequence[Query],
    name: str,
    roles: Roles,
    grades: str | None = "auto",
    separator: str | None = None,
) -> dict[str, Any]:
    """Return what a data set of these queries is made of, by the names of its fields.

    Args:
        queries: The queries.
        name: What to call their source.
        roles: What its columns mean.
        grades: As :class:`~krag_eval.OfflineRetrievalEvaluator` takes it; ``None`` if records are
            not to be looked at.
        separator: What parted the cells, if anything did.

    Raises:
        DatasetError: If the two sides, or two queries, cannot be evaluated together.
    """
    check_once(queries)
    queries, notes = in_order(queries, name)
    check_ids_alone(((one.actual, one.predicted, one.place) for one in queries), separator)
    file_defaults, grading = _defaults_of(queries), Grading()
    for query in queries if grades is not None else ():
        grading.add(query.actual)
    graded = own_grades(grading, grades or "no", file_defaults)
    notes += grading.notes(graded.get("grade_key"))
    questions = [one.question for one in queries]
    lists = {field: [getattr(one, field) for one in queries] for field in _FIELDS}
    return {
        "queries": _labels(queries, name, roles.question or "question"),
        "actual": [one.actual for one in queries],
        "predicted": None if roles.predicted is None else [one.predicted for one in queries],
        "source": name,
        "lines": [one.place.line for one in queries if one.place.line],
        "defaults": {**matcher_of(roles, name, queries), **graded, **file_defaults},
        "failures": failures_of(queries),
        "questions": questions if all(isinstance(one, str) for one in questions) else None,
        "notes": notes,
        **{field: some for field, some in lists.items() if some != [None] * len(queries)},
    }


def failures_of(queries: Iterable[Query]) -> list[Failure]:
    """Return the queries whose retriever failed, as their rows say."""
    return [
        Failure(position, "error", one.error, 0.0)
        for position, one in enumerate(queries)
        if one.error
    ]


def told_errors(n: int, n_queries: int) -> list[str]:
    """Say how many rows say that they failed, in a note; nothing where none does.

    >>> told_errors(1, 3)
    ['1 of 3 rows with an error and nothing retrieved read as queries that failed']
    """
    message = ngettext(
        "{n} of {rows} rows with an error and nothing retrieved read as queries that failed",
        "{n} of {rows} rows with an error and nothing retrieved read as queries that failed",
        n_queries,
    )
    return [message.format(n=n, rows=n_queries)] if n else []


def check_once(queries: Iterable[Query]) -> None:
    """Refuse a question that comes again with one retrieved text in each row, as in long tables."""
    seen: set[Any] = set()
    for one in queries:
        if one.is_text and one.label is not None and one.label in seen:
            raise asked_again(one)
        seen.add(one.label)


def asked_again(query: Query) -> DatasetError:
    """Return the refusal of a query with one retrieved text whose question came before."""
    problem = f"asks {clipped(query.label)} again, with one retrieved document in each row"
    fix = Advice("{} makes the rows of a question one query", cells="text")
    return query.place.error(problem, fix)


def _labels(queries: Sequence[Query], name: str, field: str) -> list[str | int]:
    """Return the labels of queries: positions, with a warning if some have none."""
    labels = [label for one in queries if (label := one.label) is not None]
    if len(labels) == len(queries):
        return labels
    place = next(one.place for one in queries if one.label is None)
    where = (_("on line {}") if place.line else _("row {}")).format(place.line or place.row)
    tell_unnamed(len(queries) - len(labels), len(queries), name, field, where)
    return list(range(len(queries)))


def tell_unnamed(n: int, n_queries: int, name: str, field: str | None, where: str) -> None:
    """Warn of so many queries without a question, if they are some of them."""
    if 0 < n < n_queries:
        told = _(
            "{n} of {queries} queries in {name} have no {field} (the first is {where}), so all "
            "are labelled by position."
        )
        field = field or "question"
        warn(told.format(n=n, queries=n_queries, name=name, field=field, where=where))


def content_of(
    table: Records,
    roles: Roles,
    choice: TagChoice,
    *,
    one_per_row: bool = True,
    drafts: Drafts = "error",
    grades: str | None = "auto",
    separator: str | None = None,
) -> dict[str, Any]:
    """Return what a data set of a table is made of, with its tags and notes.

    Args:
        table: The table.
        roles: What its columns mean.
        choice: Which others to keep as tags.
        one_per_row: Whether each row is a query; if not, the rows of a question are one.
        drafts: What happens to rows that nobody has accepted yet.
        grades: As in :func:`parts_of`.
        separator: What parted the cells, if anything did.

    Raises:
        DatasetError: If a row cannot be used, or a column that was chosen is no tag.
    """
    reader, notes = TagReader(asked_by(roles), choice), []
    queries = queries_of(table, roles, reader, drafts)
    n_rows = len(queries)
    tags = reader.columns([one.tags for one in queries])
    if not one_per_row:
        queries, tags, differing = joined(queries, tags)
        for name, why in differing.items():
            reader.leave_out(name, why)
        if len(queries) < n_rows:
            has_ranks = any(one.standing and one.standing.first_rank is not None for one in queries)
            told = _(
                "{rows} rows put together by question into {queries} queries, documents in the "
                "order of the rows"
            )
            if has_ranks:
                told = _(
                    "{rows} rows put together by question into {queries} queries, documents in the "
                    "order of their ranks"
                )
            notes.append(told.format(rows=n_rows, queries=len(queries)))
    reader.check(table.name, table.names)
    tags, unreviewed = with_drafts(queries, tags)
    used = BESIDE if any(one.standing for one in queries) else ()
    left_out = {name: why for name, why in reader.left_out.items()
                if name not in used or why != _DIFFERS}  # fmt: skip
    parts = parts_of(queries, table.name, roles, grades, separator)
    notes += parts["notes"] + notes_on(left_out) + note_on_defaults(queries[0].mark.defaults)
    notes += unreviewed + told_errors(len(parts["failures"]), len(queries))
    return {**parts, "tags": tags, "notes": notes}


def matcher_of(roles: Roles, name: str, queries: Iterable[Query]) -> dict[str, Any]:
    """Compare by id, or by spans, where no text is found; refuse sides with nothing in common."""
    queries = [*queries]
    found_in = {
        roles.actual: chain.from_iterable(single(one.actual) for one in queries),
        roles.predicted or Side(): chain.from_iterable(one.predicted for one in queries),
    }
    sides = [(side, [*found]) for side, found in found_in.items() if side.fields]
    if all(side.texts for side, _ in sides):
        items = [item for one in queries for item in one.actual]
        if items and all(map(_is_span, items)):
            return {"matcher": "spans"}
        alone = [all(isinstance(one, IdAlone) for one in found) for _, found in sides if found]
        return {"matcher": "id"} if any(alone) else {}
    if not all(side.ids or (found and all(map(_has_id, found))) for side, found in sides):
        raise Place(name).error(
            f"{roles.actual} and {roles.predicted} cannot be compared: one has texts and the other "
            "ids",
            Advice("name columns of one kind by {} and {}", actual=..., predicted=...),
        )
    return {"matcher": "id"}


def _has_id(document: DocumentLike) -> bool:
    """Tell whether a document has an id beside its text; a plain string may be either."""
    return not isinstance(document, str) and id_of(document) is not None


def _is_span(item: Item) -> bool:
    """Tell whether a document, or any of several, is a span of a source without its text."""
    return any(map(span_without_text, single([item])))


def _defaults_of(queries: Sequence[Query]) -> Mapping[str, Any]:
    """Return the defaults that all queries carry, checked."""
    first = queries[0]
    for one in queries:
        if one.mark.defaults != first.mark.defaults:
            raise one.place._replace(column=OWN).error(
                ": the evaluator differs from that of the first query",
                "evaluate data sets of different kinds one by one",
            )
    if first.mark.defaults:
        from krag_eval.core.evaluator import Plan

        try:
            Plan.checked(**first.mark.defaults)
        except (TypeError, ValueError) as error:
            problem = f": the evaluator cannot be used: {error}"
            raise first.place._replace(column=OWN).error(problem) from error
    return first.mark.defaults


def own_grades(grading: Grading, grades: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return how an evaluator is to read grades, by what the records and the caller say.

    Args:
        grading: What the records hold.
        grades: ``"auto"``, or ``"no"`` where every document is to count alike.
        defaults: How the file asks to be evaluated, which wins.
    """
    key = grading.key
    if key is None or "grade_key" in defaults or "grades" in defaults:
        return {}
    return {"grades": "no"} if grades == "no" else {"grade_key": key}
