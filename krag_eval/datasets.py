"""Files and documents: reading what should have been retrieved, and what was.

This room knows file formats; its errors name the file and the line. It must not know metrics. A
file is read whole or refused: there is no partial result.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from krag_eval.documents import AnyOf, DocumentLike
from krag_eval.messages import KragEvalWarning

if TYPE_CHECKING:
    from krag_eval.evaluator import OfflineRetrievalEvaluator

__all__ = ["Dataset", "DatasetError", "demo_dataset", "read_jsonl"]

Source: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"
Peekable: TypeAlias = io.BufferedReader | gzip.GzipFile

_GZIP = b"\x1f\x8b"
# What people pass by mistake, by its first bytes.
_FOREIGN = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    codecs.BOM_UTF16_LE: "UTF-16 text",
    codecs.BOM_UTF16_BE: "UTF-16 text",
}
_DOCUMENT_KEYS = frozenset({"page_content", "metadata", "id", "type"})
# Far beyond any real metadata, far below where Python's own recursion gives up.
_MAX_DEPTH = 100
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class DatasetError(ValueError):
    """A file cannot be used; the message is one line: file, line, what is wrong, what to do."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Questions with the documents that should come back and the ranked ones that did.

    Attributes:
        queries: One label per query: its question, or its position 0, 1, …
        actual: Per query, its ground truth: documents or ``AnyOf``.
        predicted: Per query, the retrieved documents, best first.
        source: Name of the file it was read from.
        lines: Per query, the line of that file.
    """

    queries: list[str | int]
    actual: list[list[DocumentLike | AnyOf]]
    predicted: list[list[DocumentLike]]
    source: str = field(default="", compare=False)
    lines: list[int] = field(default_factory=list, compare=False)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    def evaluator(self, **options: Any) -> OfflineRetrievalEvaluator:
        """Return an evaluator of this dataset, its queries labelled.

        Args:
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
                ``threshold``, …

        >>> demo_dataset().evaluator(matcher="contains").calculate_hit_rate(k=1)
        {'hit_rate': 0.0714...}
        """
        from krag_eval.evaluator import OfflineRetrievalEvaluator

        return OfflineRetrievalEvaluator(
            self.actual, self.predicted, queries=self.queries, **options
        )

    def __repr__(self) -> str:
        read_from = f" from {self.source}" if self.source else ""
        return f"Dataset of {self.n_queries} queries{read_from}"


def read_jsonl(
    source: Source,
    *,
    question_field: str = "question",
    actual_field: str = "actual",
    predicted_field: str = "predicted",
) -> Dataset:
    """Read one query per line, each a JSON object, from a plain or gzip-compressed file.

    A line looks like ``{"question": "…", "actual": [documents], "predicted": [documents]}``. A
    document is a string or ``{"page_content": "…", "metadata": {…}, "id": "…"}``; among the ground
    truth, ``{"any_of": [documents]}`` lists interchangeable ones. Other fields are ignored. The
    question is optional: unless every line has one, queries are labelled by position.

    The text is UTF-8, with or without a byte order mark; blank lines are skipped wherever they
    are. JSON is read strictly: ``NaN``, ``Infinity``, a key given twice in one object and half of
    a surrogate pair are refused, because tools disagree about what they mean.

    Args:
        source: A path, or an open file (binary is preferred); compression is recognised by
            content. ``sys.stdin`` is read as bytes, whatever the locale.
        question_field: Name of the field with the question, text or a whole number.
        actual_field: Name of the field with the ground truth.
        predicted_field: Name of the field with the retrieved documents, best first.

    Raises:
        DatasetError: If anything in the file cannot be used, or there is nothing in it; the
            message names file and line.
        TypeError: If ``source`` is neither a path nor an open file.

    >>> import io
    >>> read_jsonl(io.StringIO('{"question": "When?", "actual": ["9"], "predicted": ["8", "9"]}'))
    Dataset of 1 queries from <stream>
    """
    fields = _Fields(question_field, actual_field, predicted_field)
    name = _name_of(source)
    with closing(_lines(source, name)) as lines:
        records = [_record(text, fields, place) for place, text in lines]
    if not records:
        raise _Place(name).error(
            "holds no queries; expected one JSON object per line, such as "
            '{"question": "…", "actual": ["…"], "predicted": ["…"]}.'
        )
    return Dataset(
        queries=_labels(records, fields, name),
        actual=[record.actual for record in records],
        predicted=[record.predicted for record in records],
        source=name,
        lines=[record.place.line for record in records],
    )


def demo_dataset() -> Dataset:
    """Return the small English and Korean data set that ships with the package.

    >>> demo_dataset().queries[0]
    'What do a parent and a child each need to get a library card?'
    """
    with resources.files("krag_eval.data").joinpath("demo.jsonl").open("rb") as file:
        return replace(read_jsonl(file), source="krag_eval's demo data")


class _Place(NamedTuple):
    """A file, and a line of it (0 for the file as a whole), to blame."""

    name: str
    line: int = 0

    def error(self, problem: str) -> DatasetError:
        return DatasetError(_printable(f"{self}: {problem}"))

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


class _Fields(NamedTuple):
    question: str
    actual: str
    predicted: str


class _Record(NamedTuple):
    place: _Place
    question: str | int | None
    actual: list[Any]
    predicted: list[Any]


def _name_of(source: Source) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    if source is sys.stdin:
        return "<stdin>"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def _printable(text: str) -> str:
    """Keep a message on one line, whatever the name of a file or field."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


# From a source to lines of text


def _lines(source: Source, name: str) -> Generator[tuple[_Place, str], None, None]:
    """Yield the lines that are not blank, decompressed and decoded."""
    number = 0
    with ExitStack() as stack:
        try:
            stream = _decompressed(_opened(source, name, stack), name, stack)
            for number, line in enumerate(stream, 1):
                text = _decoded(line, _Place(name, number))
                if text and not text.isspace():
                    yield _Place(name, number), text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            how = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise _Place(name, number + 1).error(
                f"the compressed data {how} here; expected a complete gzip file; copy it again."
            ) from error
        except OSError as error:
            raise _Place(name, number).error(_cannot_read(error)) from error


def _opened(source: Source, name: str, stack: ExitStack) -> Peekable:
    if isinstance(source, str | os.PathLike):
        if "\0" in name:
            raise _Place(name).error("the name of a file cannot contain a NUL character.")
        return stack.enter_context(open(source, "rb"))
    if not hasattr(source, "read"):
        raise TypeError(f"source must be a path or an open file, got {source!r}.")
    if source is sys.stdin:
        # The locale may say ASCII; JSON is UTF-8.
        source = getattr(sys.stdin, "buffer", source)
    if hasattr(source, "peek"):
        return cast(Peekable, source)
    return io.BufferedReader(io.BytesIO(_whole(source, name)))


def _whole(stream: IO[bytes] | IO[str], name: str) -> bytes:
    try:
        content = stream.read()
        return content if isinstance(content, bytes) else content.encode("utf-8")
    except UnicodeError as error:
        raise _Place(name).error(
            f"not {error.encoding if isinstance(error, UnicodeDecodeError) else 'valid'} text "
            f"({error}); open the file in binary mode, or with its own encoding."
        ) from error


def _decompressed(stream: Peekable, name: str, stack: ExitStack) -> Peekable:
    head = stream.peek(8)[:8]
    if head.startswith(_GZIP):
        return stack.enter_context(gzip.GzipFile(fileobj=stream, mode="rb"))
    for first_bytes, what in _FOREIGN.items():
        if head.startswith(first_bytes):
            raise _Place(name).error(
                f"is {what}; expected UTF-8 text, plain or compressed with gzip; convert it first."
            )
    return stream


def _decoded(line: bytes, place: _Place) -> str:
    if place.line == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise place.error(
            f"byte 0x{line[error.start]:02x} at position {error.start} is not UTF-8 text; expected "
            "UTF-8; save the file in that encoding (CP949 and CP1252 are the usual others)."
        ) from error


def _cannot_read(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file; check the path."
    if isinstance(error, IsADirectoryError):
        return "is a directory; expected a file; name one file in it."
    return f"cannot be read: {error.strerror or error}."


# From a line of text to a record


def _record(text: str, fields: _Fields, place: _Place) -> _Record:
    content = _object(text, place)
    question = content.get(fields.question)
    if isinstance(question, bool) or not isinstance(question, str | int | None):
        raise place.error(
            f"{fields.question} must be a string or a whole number, got {_kind(question)}; put "
            "anything else into a field of another name."
        )
    actual = _documents(content, "actual_field", fields.actual, place)
    predicted = _documents(content, "predicted_field", fields.predicted, place)
    return _Record(place, question, actual, predicted)


def _object(text: str, place: _Place) -> dict[str, Any]:
    try:
        content = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise place.error(_not_json(text, error)) from error
    except RecursionError as error:
        raise place.error("nested too deeply; expected lists of documents; flatten it.") from error
    except UnicodeEncodeError as error:
        raise place.error(
            f"a string holds half of a surrogate pair ({error.object[error.start]!r}), which is "
            "not a character; expected whole characters; an emoji was probably cut in two."
        ) from error
    except ValueError as error:  # from the hooks below, or a number too long for Python
        raise place.error(f"not usable JSON: {error}.") from error
    if not isinstance(content, dict):
        raise place.error(
            f'expected a JSON object with "actual" and "predicted", got {_kind(content)}; write '
            "one object per line, without a list around them."
        )
    return content


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    spread = text.strip() in ("{", "[")
    remedy = "put each object on one line (jq -c does)" if spread else "correct the line"
    return (
        f"not valid JSON: {error.msg} (column {error.colno}); expected one complete object per "
        f"line; {remedy}."
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice[:40]!r} is given twice in one object; keep one of them")
    return content


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value; write null instead")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)


def _documents(content: Mapping[str, Any], option: str, name: str, place: _Place) -> list[Any]:
    if name not in content:
        raise place.error(_missing(content, option, name))
    documents = content[name]
    if not isinstance(documents, list):
        raise place.error(
            f"{name} must be a list of documents, got {_kind(documents)}; write a list even for "
            "one document, and [] for none."
        )
    if set(map(type, documents)) <= {str}:
        return documents
    read = _item if option == "actual_field" else _document
    return [read(one, f"{name}[{i}]", place) for i, one in enumerate(documents)]


def _missing(content: Mapping[str, Any], option: str, name: str) -> str:
    shown = ", ".join(f'"{present[:40]}"' for present in list(content)[:10]) or "none"
    more = f" and {len(content) - 10} more" if len(content) > 10 else ""
    role = "ground truth" if option == "actual_field" else "retrieved documents"
    return (
        f'no field "{name}"; the fields are {shown}{more}; name the one with the {role} by '
        f'{option}="…".'
    )


def _item(value: Any, where: str, place: _Place) -> DocumentLike | AnyOf:
    """Read a ground-truth item: a document, or interchangeable ones."""
    if isinstance(value, list):
        raise place.error(
            f"{where} must be a document, got a list; write "
            '{"any_of": […]} for interchangeable documents.'
        )
    if not isinstance(value, dict) or "any_of" not in value:
        return _document(value, where, place)
    alternatives = value["any_of"]
    if len(value) > 1 or not isinstance(alternatives, list) or not alternatives:
        raise place.error(
            f'{where}: "any_of" must be the only key and hold a list of one or more documents, got '
            f'{_kind(alternatives)} and the keys {_shown(value)}; write {{"any_of": ["…", "…"]}}.'
        )
    return AnyOf(
        [_document(one, f"{where}.any_of[{i}]", place) for i, one in enumerate(alternatives)]
    )


def _document(value: Any, where: str, place: _Place) -> DocumentLike:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise place.error(
            f'{where} must be a string or an object with "page_content", got {_kind(value)}; '
            "leave out what is not a document."
        )
    if "any_of" in value:
        raise place.error(f'{where}: "any_of" belongs in the ground truth, one level deep.')
    if "page_content" not in value or not value.keys() <= _DOCUMENT_KEYS:
        raise place.error(
            f'{where} needs the key "page_content" and may have "metadata" and "id", got the keys '
            f'{_shown(value)}; put anything else into "metadata".'
        )
    _check_parts(value, where, place)
    return value


def _check_parts(document: Mapping[str, Any], where: str, place: _Place) -> None:
    text, metadata, identity = map(document.get, ("page_content", "metadata", "id"))
    if not isinstance(text, str):
        raise place.error(f"{where}.page_content must be a string, got {_kind(text)}.")
    if not isinstance(metadata, dict | None):
        raise place.error(f"{where}.metadata must be an object, got {_kind(metadata)}.")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise place.error(f"{where}.id must be a string or a whole number, got {_kind(identity)}.")
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


def _shown(value: Mapping[str, Any]) -> str:
    return ", ".join(f'"{key[:40]}"' for key in list(value)[:10]) or "none"


def _kind(value: Any) -> str:
    """Name a JSON value by its kind, in JSON's words."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def _labels(records: Sequence[_Record], fields: _Fields, name: str) -> list[str | int]:
    labels = [record.question for record in records if record.question is not None]
    if len(labels) == len(records):
        return labels
    without = next(record.place for record in records if record.question is None)
    if not labels and fields.question != "question":
        raise without.error(
            f'no field "{fields.question}" on any line; name the one with the question by '
            'question_field="…", or leave that out.'
        )
    if labels:
        warnings.warn(
            f"{len(records) - len(labels)} of {len(records)} queries in {name} have no "
            f"{fields.question} (the first is on line {without.line}), so all are labelled by "
            "position.",
            KragEvalWarning,
            stacklevel=3,
        )
    return list(range(len(records)))
