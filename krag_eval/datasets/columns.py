"""Tables by column: data frames and what is like them, rows as dicts, and the row to blame.

This room does without pandas itself. It must not know files, nor what a column means.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from krag_eval._errors import Blamed, DatasetError, Fix, Place
from krag_eval.datasets.strict_json import kind_of, names_of, parsed
from krag_eval.documents import AnyOf, DocumentLike

__all__ = [
    "Columns",
    "Row",
    "check_collected",
    "check_text",
    "document_in",
    "documents_in_cell",
    "is_frame",
    "item_in",
    "list_in",
    "literal_in",
    "named",
    "plain",
    "written_list",
]

_MOST_NAMES = 20
_LONGEST_NAME = 40


class Columns(NamedTuple):
    """A table: its columns as lists, and how its rows are counted.

    Attributes:
        name: What to call it.
        columns: The columns that were read.
        names: All columns there are, for messages.
        lines: Per row, its line in the file, where it has one.
        first: Number of the first row.
        counted: How rows are counted, for messages; empty where a line says it all.
    """

    name: str
    columns: Mapping[str, list[Any]]
    names: Sequence[str]
    lines: Sequence[int] = ()
    first: int = 0
    counted: str = "from 0"

    @classmethod
    def of_frame(cls, frame: Any, name: str, wanted: Collection[str] | None = None) -> Columns:
        """Take the columns of a data frame, of pandas or like it: any that are asked for.

        >>> import pandas as pd
        >>> Columns.of_frame(pd.DataFrame({"a": [1, 2]}), "frame").columns
        {'a': [1, 2]}
        """
        check_collected(frame, name)
        names = [*(frame.column_names if hasattr(frame, "column_names") else frame.columns)]
        table = cls(name, {}, [*map(str, names)])
        table.check_names()
        kept = [one for one in names if wanted is None or one in wanted]
        return table._replace(columns={str(one): _listed(frame[one]) for one in kept})

    @classmethod
    def of_rows(
        cls,
        rows: Sequence[Mapping[str, Any]],
        name: str,
        names: Sequence[str],
        wanted: Collection[str],
    ) -> Columns:
        """Turn rows into columns; what a row lacks is ``None``.

        >>> Columns.of_rows([{"a": 1, "b": 2}, {}], "rows", ["a", "b"], {"a"}).columns
        {'a': [1, None]}
        """
        kept = [one for one in names if one in wanted]
        return cls(name, {one: [row.get(one) for row in rows] for one in kept}, names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def row(self, number: int, column: str) -> Row:
        """Return the place of a cell."""
        line = self.lines[number] if self.lines else 0
        return Row(self.name, self.first + number, column, line, self.counted)

    def cells(self, column: str) -> Iterator[tuple[Row, Any]]:
        """Yield the place and the value of each row, arrays as lists."""
        for number, value in enumerate(self.columns[column]):
            yield self.row(number, column), plain(value)

    def texts(self, column: str) -> list[str]:
        """Return a column that holds nothing but text."""
        values = []
        for row, value in self.cells(column):
            if not isinstance(value, str):
                raise row.error(f"must be text, got {named(value)}.")
            values.append(value)
        return values

    def check_names(self) -> None:
        """Refuse two columns of one name."""
        seen: set[str] = set()
        for name in self.names:
            if name in seen and name:
                raise Place(self.name).error(
                    f"two columns have the name {name[:_LONGEST_NAME]!r}; rename one of them."
                )
            seen.add(name)

    def check_has(self, needed: Sequence[str]) -> None:
        """Refuse a table without rows, or without one of these columns."""
        missing = [name for name in needed if name not in self.columns]
        if missing:
            raise Place(self.name).error(f"no column {missing[0]!r}; {self.described()}.")
        if not self.columns[needed[0]]:
            raise Place(self.name).error("holds no rows; expected at least one.")

    def check_distinct(self, column: str, values: Sequence[str]) -> None:
        """Refuse a key that is given twice."""
        seen: set[str] = set()
        for number, value in enumerate(values):
            if value in seen:
                raise self.row(number, column).error(f"{value!r} is given a second time.")
            seen.add(value)

    def described(self) -> str:
        """Name the columns there are."""
        shown = ", ".join(repr(name[:_LONGEST_NAME]) for name in self.names[:_MOST_NAMES])
        more = len(self.names) - _MOST_NAMES
        return f"the columns are {shown or 'none'}" + (f" and {more} more" if more > 0 else "")


class Row(NamedTuple):
    """A cell of a table, to blame."""

    name: str
    number: int
    column: str
    line: int = 0
    counted: str = "from 0"

    def error(self, problem: str, fix: Fix = "") -> DatasetError:
        """Return the refusal, on one line."""
        row = self.number if self.counted else None
        return Place(self.name, self.line, row, self.counted, self.column).error(problem, fix)


def is_frame(source: Any) -> bool:
    """Tell whether this is a data frame, or a table like one, by what it can do."""
    return hasattr(source, "__getitem__") and (
        hasattr(source, "columns") or hasattr(source, "column_names")
    )


def plain(value: Any) -> Any:
    """Return an array, as pandas holds lists read from Parquet, as a list.

    >>> plain(["a"])
    ['a']
    """
    return value.tolist() if hasattr(value, "tolist") else value


def named(value: Any) -> str:
    """Name a value of a table, for a message.

    >>> named(None), named(3)
    ('nothing', "'3' (int)")
    """
    missing = value is None or (isinstance(value, float) and value != value)
    missing = missing or type(value).__name__ in ("NAType", "NaTType")
    return "nothing" if missing else f"{_shown(value)!r} ({type(value).__name__})"


def _shown(value: Any) -> str:
    try:
        return str(value)[:_LONGEST_NAME]
    except (ValueError, RecursionError):  # a huge number, a value nested without end
        return "…"


def _listed(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def check_collected(frame: Any, name: str) -> None:
    """Refuse what stands for a table that is not here: of a cluster, or not computed yet.

    Several tables in one are refused as well.

    Raises:
        TypeError: In these cases.
    """
    ways = {"toPandas": "toPandas()", "compute": "compute()", "collect": "collect()"}
    for way, call in ways.items():
        if hasattr(frame, way):
            raise TypeError(
                f"{name} is a {type(frame).__name__}, which has yet to be collected; pass what "
                f"its {call} returns."
            )
    if isinstance(getattr(frame, "column_names", None), Mapping):
        raise TypeError(
            f"{name} holds several tables, {', '.join(map(repr, frame.column_names))}; pass one of "
            "them."
        )


_DOCUMENT_KEYS = frozenset({"page_content", "metadata", "id", "type"})
# Far beyond any real metadata, far below where Python's own recursion gives up.
_MAX_DEPTH = 100


def item_in(value: Any, where: str, place: Blamed) -> DocumentLike | AnyOf:
    """Return a ground-truth item: a document, or interchangeable ones.

    Args:
        value: A value as JSON has them.
        where: Where it stands within what ``place`` names, for the message.
        place: Whom to blame.

    Raises:
        DatasetError: If the value is none.

    >>> from krag_eval.datasets.dataset import Place
    >>> item_in({"any_of": ["five euros", "5 €"]}, "actual[0]", Place("run.jsonl", 1))
    AnyOf(['five euros', '5 €'])
    """
    if isinstance(value, list):
        raise place.error(
            f"{where} must be a document, got a list; write "
            '{"any_of": […]} for interchangeable documents.'
        )
    if not isinstance(value, dict) or "any_of" not in value:
        return document_in(value, where, place)
    alternatives = value["any_of"]
    if len(value) > 1 or not isinstance(alternatives, list) or not alternatives:
        raise place.error(
            f'{where}: "any_of" must be the only key and hold a list of one or more documents, '
            f"got {kind_of(alternatives)} and the keys {names_of(value)}; write "
            '{"any_of": ["…", "…"]}.'
        )
    return AnyOf(
        [document_in(one, f"{where}.any_of[{i}]", place) for i, one in enumerate(alternatives)]
    )


def document_in(value: Any, where: str, place: Blamed) -> DocumentLike:
    """Return a document: a string, or an object as :func:`item_in` takes them.

    Raises:
        DatasetError: If the value is none.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise place.error(
            f'{where} must be a string or an object with "page_content", got {kind_of(value)}; '
            "leave out what is not a document."
        )
    if "any_of" in value:
        raise place.error(f'{where}: "any_of" belongs in the ground truth, one level deep.')
    if "page_content" not in value or not value.keys() <= _DOCUMENT_KEYS:
        raise place.error(
            f'{where} needs the key "page_content" and may have "metadata" and "id", got the keys '
            f'{names_of(value)}; put anything else into "metadata".'
        )
    _check_parts(value, where, place)
    return value


def _check_parts(document: Mapping[str, Any], where: str, place: Blamed) -> None:
    text, metadata, identity = map(document.get, ("page_content", "metadata", "id"))
    if not isinstance(text, str):
        raise place.error(f"{where}.page_content must be a string, got {kind_of(text)}.")
    if not isinstance(metadata, dict | None):
        raise place.error(f"{where}.metadata must be an object, got {kind_of(metadata)}.")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise place.error(
            f"{where}.id must be a string or a whole number, got {kind_of(identity)}."
        )
    if metadata and _deeper_than(_MAX_DEPTH, metadata):
        raise place.error(f"{where}.metadata is nested too deeply; flatten it.")


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


_DEEPEST_LITERAL = 100
_LONGEST_NUMBER = 400
_NAMES = {"True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b",
            "f": "\f", "v": "\v"}  # fmt: skip
_SPACE = re.compile(r"\s*+")
# Possessive, so that a string without an end is given up at once.
_STRING = {
    "'": re.compile(r"'([^'\\\n]*+(?:\\.[^'\\\n]*+)*+)'", re.DOTALL),
    '"': re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"', re.DOTALL),
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+")
_NAME = re.compile(r"[^\W\d]\w*+")
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def literal_in(text: str, place: Blamed) -> Any:
    r"""Return the value that a text spells in Python.

    Args:
        text: The text, such as ``"['a', 'b']"``.
        place: Where it stands.

    Raises:
        DatasetError: If it spells anything but data, or is nested more than 100 deep; the message
            says at which character, and knows what numpy, pandas and LangChain print.

    >>> from krag_eval.datasets.dataset import Place
    >>> literal_in("['a', {'page_content': 'It\\'s b', 'id': 7}]", Place("qa.csv", 2))
    ['a', {'page_content': "It's b", 'id': 7}]
    """
    return _Reader(text, place).only_value()


class _Reader:
    """One text, and how far it has been read."""

    def __init__(self, text: str, place: Blamed) -> None:
        self.text, self.place, self.at = text, place, 0

    def only_value(self) -> Any:
        value = self.value(0)
        if self.next():
            raise self.error("there is more after its end")
        return value

    def next(self) -> str:
        """Skip white space, and return the character after it."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def error(self, problem: str, remedy: str = "") -> DatasetError:
        advice = remedy or 'write a list of strings, as Python or JSON does: ["…", "…"]'
        return self.place.error(
            f"cannot be read as a list: {problem} at character {self.at + 1}; {advice}."
        )

    def value(self, depth: int) -> Any:
        first = self.next()
        if first in ("'", '"'):
            return self.string(first)
        if first and first in "[({":
            if depth == _DEEPEST_LITERAL:
                raise self.error(f"it is nested more than {_DEEPEST_LITERAL} deep", "flatten it")
            return self.pairs(depth) if first == "{" else self.values(first, depth)
        number = _NUMBER.match(self.text, self.at)
        return self.number(number) if number else self.named(first)

    def string(self, quote: str) -> str:
        found = _STRING[quote].match(self.text, self.at)
        if found is None:
            raise self.error("a string has no end")
        body = found[1]
        if "\\" in body:
            body = _ESCAPE.sub(self.unescaped, body)
        self.at = found.end()
        if self.next() in ("'", '"'):
            raise self.error(
                "two strings stand side by side without a comma, as numpy prints arrays",
                "save lists, with column.map(list), or the table as JSON lines or Parquet",
            )
        return body

    def unescaped(self, found: re.Match[str]) -> str:
        digits = found[1] or found[2] or found[3]
        if digits is None:
            if found[4] not in _ESCAPES:
                raise self.error(f"a string here holds the unknown escape {found[0]!r}")
            return _ESCAPES[found[4]]
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.error(f"a string here holds {found[0]}, which is not a character")
        return chr(code)

    def number(self, found: re.Match[str]) -> int | float:
        text = found[0]
        if len(text) > _LONGEST_NUMBER:
            raise self.error("a number is too long")
        digits = text.lstrip("+-")
        whole = digits.isdecimal()
        number = int(text) if whole else float(text)
        if whole and number and digits[0] == "0":
            raise self.error(
                f"the number {text[:40]} begins with 0", "write ids as strings, in quotes"
            )
        if not whole and math.isinf(number):
            raise self.error(f"{text} is too large for a number")
        self.at = found.end()
        return number

    def named(self, first: str) -> Any:
        found = _NAME.match(self.text, self.at)
        name = found[0] if found else ""
        if name in _NAMES:
            self.at += len(name)
            return _NAMES[name]
        if name == "Document":
            raise self.error(
                "a LangChain Document was printed into it",
                "save each document's page_content, or its model_dump() as JSON",
            )
        if name in ("array", "dtype"):
            raise self.error(
                "a numpy array was printed into it",
                "save lists, with column.map(list), or the table as JSON lines or Parquet",
            )
        if self.text.startswith("...", self.at):
            raise self.error(
                "it was cut short when it was printed", "save the values themselves, as JSON lines"
            )
        what = f"the name {name[:40]!r} is no value" if name else f"{first!r} is not expected"
        raise self.error(what if first else "it ends too early")

    def values(self, opening: str, depth: int) -> Any:
        self.at += 1
        found: list[Any] = []
        ended_by_comma = True
        while self.next() != _CLOSING[opening]:
            found.append(self.value(depth + 1))
            ended_by_comma = self.separated(_CLOSING[opening])
        self.at += 1
        # Parentheses around one value, without a comma, make no tuple in Python.
        is_tuple = ended_by_comma or len(found) != 1
        return found if opening == "[" or is_tuple else found[0]

    def pairs(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while (first := self.next()) != "}":
            if first not in ("'", '"'):
                raise self.error("a key of a dict must be a string")
            key = self.string(first)
            if self.next() != ":":
                raise self.error("a dict needs ':' after each key")
            if key in found:
                raise self.error(f"the key {key[:40]!r} is given twice in one dict")
            self.at += 1
            found[key] = self.value(depth + 1)
            self.separated("}")
        self.at += 1
        return found

    def separated(self, closing: str) -> bool:
        """Step over a comma, if there is one; whether there was."""
        following = self.next()
        if following == ",":
            self.at += 1
            return True
        if following != closing:
            raise self.error(
                f"',' or {closing!r} is expected, got {following!r}"
                if following
                else "it ends too early"
            )
        return False


# LangChain's own rendering of a Document, which hides where its text ends.
_PRINTED = re.compile(
    r"\s*(?:Document\(.*page_content=['\"].*\)|page_content=['\"].*['\"] metadata=\{.*\})\s*",
    re.DOTALL,
)

_DOCUMENT_FIELDS = ("page_content", "metadata", "id", "type")


def documents_in_cell(value: Any, row: Row, *, ground_truth: bool) -> list[Any]:
    """Return the documents in a cell: items of the ground truth, or what was retrieved.

    Raises:
        DatasetError: If it holds no list of documents; the message names row and column.

    >>> documents_in_cell("['a', 'b']", Row("qa.csv", 2, "actual"), ground_truth=True)
    ['a', 'b']
    """
    place = row._replace(column="")
    return [
        _document(plain(one), f"{row.column}[{position}]", place, ground_truth)
        for position, one in enumerate(list_in(value, row))
    ]


def list_in(value: Any, row: Row) -> list[Any]:
    """Return the list in a cell, whatever it is a list of."""
    value = plain(value)
    if isinstance(value, str):
        return written_list(value, row)
    if isinstance(value, list | tuple):
        return list(value)
    if named(value) == "nothing":
        raise row.error("is empty; expected a list of documents; write [] where there are none.")
    raise row.error(
        f"must be a list of documents, even for one document, got {named(value)}; write […]."
    )


def written_list(text: str, row: Row) -> list[Any]:
    """Return the list that a text spells, in JSON or in Python."""
    text = text.strip()
    if not text:
        raise row.error("is empty; expected a list of documents; write [] where there are none.")
    if _PRINTED.fullmatch(text):
        raise row.error(_printed())
    if text[0] not in "[(":
        raise row.error(
            f'is plain text ({text[:40]!r}); expected a list, written as ["…", "…"]; if each row '
            "has one document, make a list of each first: "
            f"frame[{row.column!r}] = frame[{row.column!r}].map(lambda text: [text])."
        )
    try:
        value = parsed(text, row)
    except json.JSONDecodeError:
        value = literal_in(text, row)
    if not isinstance(value, list):  # pragma: no cover - what starts with a bracket is a list
        raise row.error("must be a list of documents.")
    return value


def _document(value: Any, where: str, place: Row, ground_truth: bool) -> DocumentLike | AnyOf:
    if isinstance(value, str):
        check_text(value, where, place)
        return value
    if isinstance(value, AnyOf) and ground_truth:
        return value
    if hasattr(value, "page_content") and hasattr(value, "metadata"):
        check_text(value.page_content, where, place)
        return value  # type: ignore[no-any-return]
    if isinstance(value, Mapping):
        return _mapping(value, where, place, ground_truth)
    if isinstance(value, int) and not isinstance(value, bool):
        raise place.error(
            f"{where} must be a document, got the number {str(value)[:40]}; ids are text here, as "
            f'in ["7"].'
        )
    raise place.error(
        f'{where} must be a string or an object with "page_content", got {named(value)}; leave out '
        "what is not a document."
    )


def _mapping(
    value: Mapping[str, Any], where: str, place: Row, ground_truth: bool
) -> DocumentLike | AnyOf:
    content = dict(value)
    if content.get("any_of") is not None or content.get("page_content") is not None:
        # In a table of structs every document has every field; those of the other kind are empty.
        other = _DOCUMENT_FIELDS if content.get("any_of") is not None else ("any_of",)
        content = {key: one for key, one in content.items() if one is not None or key not in other}
    alternatives = plain(content.get("any_of"))
    if ground_truth and set(content) == {"any_of"} and isinstance(alternatives, list | tuple):
        if not alternatives:
            raise place.error(f'{where}: "any_of" needs at least one document.')
        return AnyOf(
            _alternative(plain(one), f"{where}.any_of[{position}]", place)
            for position, one in enumerate(alternatives)
        )
    read = item_in if ground_truth else document_in
    found = read(content, where, place)
    check_text(content["page_content"], where, place)
    return found


def _alternative(value: Any, where: str, place: Row) -> DocumentLike:
    found = _document(value, where, place, False)
    assert not isinstance(found, AnyOf)  # refused above, where it is no ground truth
    return found


def check_text(text: Any, where: str, place: Blamed) -> None:
    """Refuse what is no text, half of a character, or a document as LangChain prints it.

    Raises:
        DatasetError: In these cases.
    """
    if not isinstance(text, str):
        raise place.error(f"{where} must be text, got {named(text)}.")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise place.error(
                f"{where} holds half of a surrogate pair ({text[error.start]!r}), which is not a "
                "character; an emoji was probably cut in two."
            ) from error
    if text.startswith(("page_content=", "Document(")) and _PRINTED.fullmatch(text):
        raise place.error(f"{where} {_printed()}")


def _printed() -> str:
    return (
        "is a LangChain Document as it prints itself, from which its text cannot be told for "
        "certain; save its page_content, or its model_dump() as JSON."
    )
