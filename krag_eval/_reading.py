"""From a file to lines of text, and from text to values: bounded, and strict.

What a file does not show from outside is bounded before it is made: how much compressed data
expands to, how much a pipe or a stream holds, the length of a line, the number of values. JSON that
tools read differently is refused, and of Python's literals only data is read. An error names the
line.
"""

from __future__ import annotations

import ast
import codecs
import csv
import gzip
import io
import json
import math
import os
import re
import stat
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast

from krag_eval.errors import (
    Advice,
    DatasetError,
    Fix,
    InvalidInput,
    InvalidType,
    Place,
    clipped,
    whole,
)

Source: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"

Peekable: TypeAlias = io.BufferedReader | gzip.GzipFile
#: A number of values, one in proportion to the file, or none.
MaxObjects: TypeAlias = int | Literal["auto"] | None

#: How much text may come out of what does not show its size: a gibibyte. A single line may hold a
#: quarter of the limit, whatever it comes from.
MAX_BYTES = 2**30

# What any file may hold, and how many values each of its bytes may. Compressed, texts hold a tenth
# of a value a byte, lists of random ids half of one and of ten different ids three; a file made to
# fill the memory holds hundreds.
_FREE_OBJECTS = 1_000_000
_OBJECTS_PER_BYTE = 8
# What a reader makes of a line beside the values on it, and how far it reads ahead.
_PER_LINE = 8
_AHEAD = 2**18
_ROUGHLY = 64
_LONG_LINE = 2**24
# A string without an end extends to the end, so that every character is looked at one time.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)

# Python's limit on the size of a cell is one for the whole process; it is put back after reading.
_CELL_LIMIT = threading.RLock()

_GZIP = b"\x1f\x8b"
_CHUNK = 2**20
_MOST_BLANK = 1_000_000
# Every other syllable of a Korean text is one of these, or so; the last six are of column names.
_COMMON = frozenset(
    "이다는의가을를에고은한하도로지기사서나인자해리대일정어시아여스니요습있부수라보제원주전과들상그질문답검색결"
)
_OTHER_ENCODING = "save the file in that encoding (CP949 and CP1252 are the usual others)"
_NAME_IT = Advice(
    "name the encoding it was saved in, such as {} (Excel in Korean), or save it as UTF-8",
    encoding="cp949",
)
_MORE_BYTES = Advice(
    "if that is what it holds, {} allows more, and {} any amount",
    ("max_bytes", ...),
    ("max_bytes", None),
)
# What people pass by mistake, by its first bytes: see file(1)'s list of magic numbers.
_FOREIGN = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive, as Excel's and Word's files are",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\x89PNG\r\n\x1a\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF-": "a PDF document",
    b"SQLite format 3\0": "an SQLite database",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a file of Office before 2007, such as .xls or .doc",
    codecs.BOM_UTF16_LE: "UTF-16 text",
    codecs.BOM_UTF16_BE: "UTF-16 text",
}


class Limits(NamedTuple):
    """How much may come out of a file.

    Attributes:
        max_bytes: How much text a compressed file, a pipe or a stream may hold, and four times what
            any line may; in Parquet files, how much columns hold once they are decoded. ``None``
            for no limit.
        max_objects: How many values, that is texts, numbers, lists and objects, and a few for each
            line; ``"auto"`` for a million and eight for each byte of the file as it is stored,
            which no plain file holds; ``None`` for no limit.
    """

    max_bytes: int | None = MAX_BYTES
    max_objects: MaxObjects = "auto"

    def checked(self) -> Limits:
        """Return the limits, if they are some.

        Raises:
            InvalidInput: If one is out of range.
            InvalidType: If one is neither a whole number nor ``None`` or ``"auto"``.
        """
        if self.max_bytes is not None:
            whole("max_bytes", self.max_bytes, 1)
        if self.max_objects not in (None, "auto"):
            whole("max_objects", self.max_objects, 1)
        return self

    def objects(self, n_stored: int) -> int:
        """Return how many values may come out of so many bytes of a file."""
        if self.max_objects == "auto":
            return _FREE_OBJECTS + _OBJECTS_PER_BYTE * n_stored
        return sys.maxsize if self.max_objects is None else self.max_objects


def too_many_objects(most: int, place: Place) -> DatasetError:
    """Return the refusal of a file that holds more values than it may."""
    return place.error(
        f"more than {most:,} values (texts, numbers, lists, objects) come out of it up to here; "
        "expected fewer of a file of its size",
        Advice(
            "if that is what it holds, {} allows more, and {} any number; plain text needs neither",
            ("max_objects", ...),
            ("max_objects", None),
        ),
    )


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Turn what does not fit into memory while a file is read into the refusal of that file."""
    try:
        yield
    except MemoryError as error:
        raise Place(name).error(
            "what it holds does not fit into memory",
            Advice(
                "evaluate_file(path) reads JSON lines and Parquet files in chunks, and {} and {} "
                "refuse such files sooner",
                max_bytes=...,
                max_objects=...,
            ),
        ) from error


def values_in_json(text: str) -> int:
    """Return how many values a line of JSON holds at most; what is in strings is left out.

    >>> values_in_json('{"actual": ["a, b", 1]}')
    5
    """
    n_values = _marks_in(text)
    # Among long texts the difference is small, and a line of many megabytes is counted roughly.
    if n_values * _ROUGHLY > len(text) and len(text) < _LONG_LINE:
        n_values = _marks_in(_JSON_STRING.sub("", text))
    return n_values + 1


def values_in_cells(text: str) -> int:
    """Return how many values a line of a table may hold, lists in its cells included."""
    return _marks_in(text) + 1


def _marks_in(text: str) -> int:
    return sum(map(text.count, ",:[{("))


#: The limits of every reader that is given no others.
LIMITS = Limits()


def numbered_lines(
    source: Source,
    name: str,
    limits: Limits = LIMITS,
    *,
    whole: bool = True,
    encoding: str | None = None,
) -> Generator[tuple[int, str], None, None]:
    """Yield the number and the text of each line that is not blank, line end included.

    The text is UTF-8, with or without a byte order mark, plain or compressed with gzip, which is
    recognised by content.

    Args:
        source: A path or an open file.
        name: What to call it.
        limits: How much may come out of it. Plain files may be as long as they are.
        whole: Whether all of it will be held in memory; if not, it may be of any length, and only
            its lines are bounded.
        encoding: As in :func:`every_line`.

    Raises:
        DatasetError: If the file cannot be read, as far as the lines were asked for.
        InvalidType: If ``source`` is neither a path nor an open file.
    """
    blank = 0
    with closing(every_line(source, name, limits, encoding, whole=whole)) as lines:
        for number, text in lines:
            if text and not text.isspace():
                blank = 0
                yield number, text
                continue
            blank += 1
            if blank > _MOST_BLANK:
                raise Place(name, number).error(
                    f"more than {_MOST_BLANK:,} blank lines in a row; expected text"
                )


def every_line(
    source: Source,
    name: str,
    limits: Limits = LIMITS,
    encoding: str | None = None,
    *,
    whole: bool = True,
    values_in: Callable[[str], int] = values_in_json,
) -> Generator[tuple[int, str], None, None]:
    """Yield the number and the text of each line, blank ones too; see :func:`numbered_lines`.

    Args:
        source: A path or an open file.
        name: What to call it.
        limits: As in :func:`numbered_lines`.
        encoding: Of the text, where the format lets its user choose: one in which a line end is
            the byte it is in ASCII. UTF-8 if not given.
        whole: As in :func:`numbered_lines`.
        values_in: How many values a line holds.
    """
    max_bytes = limits.checked().max_bytes
    number = 0
    with ExitStack() as stack:
        try:
            opened = _opened(source, name, max_bytes, stack)
            stream = _decompressed(opened, name, stack)
            unseen = whole and (stream is not opened or not _shows_its_size(opened))
            codec = encoding or "utf-8"
            # A plain file never holds as many values as it may by itself.
            packed = isinstance(stream, gzip.GzipFile)
            bounded = packed if limits.max_objects == "auto" else limits.max_objects is not None
            counter = _Counter(limits, stream, whole=whole) if bounded else None
            for number, line in enumerate(_bounded(stream, name, max_bytes, unseen=unseen), 1):
                marked = number == 1 and line.startswith(codecs.BOM_UTF8)
                read = _without_mark(line, name, encoding) if marked else line
                try:
                    text = read.decode(codec)
                except UnicodeDecodeError as error:
                    raise _not_text(read, error, Place(name, number), encoding) from error
                if counter is not None:
                    counter.add(values_in(text) + _PER_LINE, Place(name, number))
                yield number, text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            how = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise Place(name, number + 1).error(
                f"the compressed data {how} here; expected a complete gzip file", "copy it again"
            ) from error
        except OSError as error:
            raise Place(name, number).error(*_cannot_read(error)) from error


class _Counter:
    """Counts the values that come out of a file, against how much of it was read."""

    def __init__(self, limits: Limits, stream: Peekable, *, whole: bool) -> None:
        self._limits, self._whole = limits, whole
        self._stored = _stored(stream)
        self._values = self._begin = 0

    def add(self, n_values: int, place: Place) -> None:
        """Add the values of a line; refuse it if there are too many, before they are made."""
        stored = self._stored()
        if self._whole:
            self._values += n_values
            most = self._limits.objects(stored)
        else:
            # Of a file that is let go line by line, each must be in proportion by itself.
            self._values = n_values
            most = self._limits.objects(stored - self._begin + _AHEAD)
            self._begin = stored
        if self._values > most:
            raise too_many_objects(most, place)


@contextmanager
def cells_of_any_size() -> Iterator[None]:
    """Let a cell be as long as a line may be; Python has one limit for all readers."""
    with _CELL_LIMIT:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _stored(stream: Peekable) -> Callable[[], int]:
    """Return how to ask how many bytes of the file itself were read."""
    if not isinstance(stream, gzip.GzipFile):
        return lambda: 0  # the limit is a number then
    counted = cast(Any, stream).fileobj
    if isinstance(counted, _Counted):
        return lambda: counted.n_bytes

    def position() -> int:  # opened by gzip.open elsewhere
        with suppress(AttributeError, OSError, ValueError):
            return int(counted.tell())
        return 0

    return position


class _Counted:
    """A compressed file that knows how much was read of it."""

    def __init__(self, file: Peekable) -> None:
        self._file = file
        self.n_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Read some bytes."""
        content = self._file.read(size)
        self.n_bytes += len(content)
        return content


def _bounded(
    stream: Peekable, name: str, max_bytes: int | None, *, unseen: bool
) -> Iterator[bytes]:
    """Yield lines; a line without end and a file far larger than it looked are refused.

    What came before damaged data is yielded before the error, so that lines are counted right.
    """
    longest = sys.maxsize if max_bytes is None else max(max_bytes // 4, 1)
    most = max_bytes if unseen and max_bytes is not None else sys.maxsize
    read = getattr(stream, "read1", stream.read)
    total = number = length = 0
    parts: list[bytes] = []
    while chunk := read(_CHUNK):
        total += len(chunk)
        if total > most:
            raise _too_much(most, Place(name, number + 1))
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            number += 1
            length += len(piece) + 1
            if length > longest:
                raise _too_long(longest, Place(name, number))
            yield b"".join([*parts, piece, b"\n"]) if parts else piece + b"\n"
            parts, length = [], 0
        if rest:
            parts.append(rest)
            length += len(rest)
        if length > longest:
            raise _too_long(longest, Place(name, number + 1))
    if parts:
        yield b"".join(parts)


def _too_long(longest: int, place: Place) -> DatasetError:
    return place.error(
        f"the line is longer than {longest:,} bytes; expected one query or document per line",
        Advice("{} allows more (a line may hold a quarter of it)", max_bytes=...),
    )


def _too_much(max_bytes: int, place: Place) -> DatasetError:
    return place.error(
        f"more than {max_bytes:,} bytes have come out of it up to here; expected less from "
        "compressed data or a stream",
        _MORE_BYTES,
    )


def _shows_its_size(stream: Peekable) -> bool:
    """Tell whether this is a plain file, or already in memory."""
    raw = stream.raw if isinstance(stream, io.BufferedReader) else None
    if isinstance(raw, io.FileIO):
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    return isinstance(raw, io.BytesIO)


def _opened(source: Source, name: str, max_bytes: int | None, stack: ExitStack) -> Peekable:
    if isinstance(source, str | os.PathLike):
        if "\0" in name:
            raise Place(name).error("the name of a file cannot contain a NUL character")
        file = stack.enter_context(open(source, "rb"))  # noqa: SIM115 - the stack closes it
        mode = os.fstat(file.fileno()).st_mode
        # What has no end is refused, such as /dev/zero; a terminal is a person typing.
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not file.isatty()):
            raise Place(name).error("is a device; expected a file, a pipe or standard input")
        return file
    if not hasattr(source, "read"):
        raise InvalidType("source", f"must be a path or an open file, got {clipped(source)}")
    if source is sys.stdin:
        # The locale may say ASCII; the formats read here are UTF-8.
        source = getattr(sys.stdin, "buffer", source)
    if hasattr(source, "peek"):
        return cast(Peekable, source)
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(_whole(source, name, max_bytes))))


def _whole(stream: IO[bytes] | IO[str], name: str, max_bytes: int | None) -> bytes:
    content = bytearray()
    try:
        while chunk := stream.read(_CHUNK):
            content += chunk if isinstance(chunk, bytes) else chunk.encode("utf-8")
            if max_bytes is not None and len(content) > max_bytes:
                raise _too_much(max_bytes, Place(name))
    except UnicodeError as error:
        raise Place(name).error(
            f"not {error.encoding if isinstance(error, UnicodeDecodeError) else 'valid'} text "
            f"({error})",
            "open the file in binary mode, or with its own encoding",
        ) from error
    return bytes(content)


def _decompressed(stream: Peekable, name: str, stack: ExitStack) -> Peekable:
    head = stream.peek(16)[:16]
    if head.startswith(_GZIP):
        return stack.enter_context(gzip.GzipFile(fileobj=cast(Any, _Counted(stream)), mode="rb"))
    for first_bytes, what in _FOREIGN.items():
        if head.startswith(first_bytes):
            raise Place(name).error(
                f"is {what}; expected UTF-8 text, plain or compressed with gzip",
                "save what it holds as text, or name another file",
            )
    return stream


def _without_mark(line: bytes, name: str, encoding: str | None) -> bytes:
    """Return a line without the mark before it that says UTF-8."""
    if encoding is not None and codecs.lookup(encoding).name != "utf-8":
        raise Place(name, 1).error(
            f"begins with a mark that says UTF-8, and the encoding named is {encoding!r}",
            "leave that out",
        )
    return line.removeprefix(codecs.BOM_UTF8)


def _not_text(
    line: bytes, error: UnicodeDecodeError, place: Place, encoding: str | None
) -> DatasetError:
    fix: Fix = _OTHER_ENCODING if encoding is None else _NAME_IT
    if encoding is not None and codecs.lookup(encoding).name == "cp949":
        fix = "it was saved in another one: name that, or save it as UTF-8"
    elif _is_korean(line):
        fix = "it is Korean text in CP949 (EUC-KR): save the file as UTF-8"
        if encoding is not None:
            fix = Advice("it is Korean text in CP949 (EUC-KR): pass {}", encoding="cp949")
    return place.error(
        f"byte 0x{line[error.start]:02x} at position {error.start} is not "
        f"{(encoding or 'utf-8').upper()} text" + ("; expected UTF-8" if encoding is None else ""),
        fix,
    )


def _is_korean(line: bytes) -> bool:
    """Tell whether a line is Korean in CP949: all Hangul, and of the syllables that are common.

    The bytes of Chinese and Japanese make rare syllables and Hanja, those of European languages
    nothing at all. Of fewer than four letters nobody can tell.

    >>> [_is_korean(one) for one in ("언제 여나요?".encode("cp949"), "几点开门？".encode("gbk"))]
    [True, False]
    """
    try:
        letters = [one for one in line.decode("cp949") if one > "\x7f" and one.isalpha()]
    except UnicodeDecodeError:
        return False
    n_common = sum(one in _COMMON for one in letters)
    korean = all("가" <= one <= "힣" for one in letters)
    return korean and len(letters) > 3 and n_common > 0.3 * len(letters)


def _cannot_read(error: OSError) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        return "no such file", "check the path"
    if isinstance(error, IsADirectoryError):
        return "is a directory; expected a file", "name one file in it"
    return f"cannot be read: {error.strerror or error}", ""


def name_of(source: Source) -> str:
    """Return what to call a source in messages.

    >>> name_of("runs/bm25.trec.gz")
    'runs/bm25.trec.gz'
    """
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    if source is sys.stdin:
        return "<stdin>"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


# Values

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_NAME = 40
_MOST_NAMES = 10


def object_of(text: str, place: Place, expected: str) -> dict[str, Any]:
    """Return the JSON object on one line.

    Args:
        text: The line.
        place: Where it is.
        expected: The object in words, for the message, such as ``'an object with "_id"'``.

    Raises:
        DatasetError: If the line is anything else.

    >>> object_of('{"_id": "d1"}', Place("corpus.jsonl", 1), "an object")
    {'_id': 'd1'}
    """
    try:
        content = parsed(text)
    except InvalidInput as error:
        raise error.at(place) from error.__cause__
    except json.JSONDecodeError as error:
        fix = _SPREAD if text.strip() in ("{", "[") else "correct the line"
        raise not_json(error, place, "one complete object per line", fix) from error
    if not isinstance(content, dict):
        raise place.error(
            f"expected {expected}, got {kind_of(content)}",
            "write one object per line, without a list around them",
        )
    return content


_SPREAD = (
    "put each object on one line (jq -c does); judgements and runs, {topic: {document: number}}, "
    "are for read_trec, or krag-eval trec"
)


# What stands where JSON was cut off: the beginning of a name, or nothing; and within a string.
_CUT = re.compile(r"(?:|-|\.|t|tr|tru|f|fa|fal|fals|n|nu|nul)\s*\Z")
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\s*\Z")


def not_json(
    error: json.JSONDecodeError, place: Place, expected: str, fix: str = "correct the line"
) -> DatasetError:
    """Return the refusal of a text that is not JSON; of one that was cut off, that it ends there.

    Args:
        error: What the decoder says.
        place: Where the text is.
        expected: What should be there.
        fix: What to do where it is not cut off.

    >>> for text in ('{"a": "b', '{"a": ["b"]', '{"a": b}', '{"a": "b}'):
    ...     try:
    ...         parsed(text)
    ...     except json.JSONDecodeError as error:
    ...         print(not_json(error, Place("qa.jsonl", 2), "an object").problem)
    not valid JSON: it ends in the middle; expected an object
    not valid JSON: it ends in the middle; expected an object
    not valid JSON: Expecting value (column 7); expected an object
    not valid JSON: Unterminated string starting at (column 7); expected an object
    """
    problem = f"{error.msg} (column {error.colno})"
    if _is_cut_off(error):
        problem = "it ends in the middle"
        fix = "it was cut off when it was written or copied: write it whole"
    return place.error(f"not valid JSON: {problem}; expected {expected}", fix)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Tell whether a text stops before JSON would; a string without an end may lack a quote."""
    text = error.doc.rstrip()
    if error.msg.startswith("Unterminated string"):
        return not text.endswith("}")
    if _CUT_ESCAPE.search(text):
        return True
    return text not in "{[" and _CUT.match(text, error.pos) is not None


def parsed(text: str) -> Any:
    """Return the value of a JSON text, read strictly.

    ``NaN``, ``Infinity``, numbers too large for a float, a key given twice in one object, half of a
    surrogate pair and nesting without end are refused.

    Raises:
        json.JSONDecodeError: If the text is not JSON; who knows the layout says where.
        InvalidInput: If it is, but does not mean one thing.
    """
    try:
        content = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except (json.JSONDecodeError, InvalidInput):
        raise
    except RecursionError as error:
        raise InvalidInput(
            "", "nested too deeply; expected lists of documents", "flatten it"
        ) from (error)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "",
            f"a string holds half of a surrogate pair ({error.object[error.start]!r}), which is "
            "not a character; expected whole characters",
            "an emoji was probably cut in two",
        ) from error
    except ValueError as error:
        problem = f"not usable JSON: a number has more than {sys.get_int_max_str_digits():,} digits"
        raise InvalidInput("", problem, "write it as a text if it is an id") from error
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        problem = f"not usable JSON: the key {twice[:_LONGEST_NAME]!r} is given twice in one object"
        raise InvalidInput("", problem, "keep one of them")
    return content


def _refuse_constant(constant: str) -> Any:
    raise InvalidInput("", f"not usable JSON: {constant} is not a JSON value", "write null instead")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        problem = f"not usable JSON: {text[:_LONGEST_NAME]} is too large for a number"
        raise InvalidInput("", problem, "write null instead")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_constant=_refuse_constant, parse_float=_finite
)


def kind_of(value: Any) -> str:
    """Name a value by its kind, in JSON's words, for a message.

    >>> kind_of(None), kind_of(["a"]), kind_of(7), kind_of(float("nan"))
    ('null', 'a list', 'the number 7', 'null')
    """
    if _is_missing(value):
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        with suppress(ValueError):  # more digits than Python writes
            return f"the number {str(value)[:_LONGEST_NAME]}"
        return "a number"
    kinds: dict[type, str] = {str: "a string", list: "a list", tuple: "a list", dict: "an object"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def _is_missing(value: Any) -> bool:
    """Tell whether a cell holds nothing, in any of the ways tables say so."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def names_of(content: Iterable[Any]) -> str:
    """List the keys of an object, for a message.

    >>> names_of({"id": 1, "text": "a"})
    '"id", "text"'
    """
    names = [f'"{str(name)[:_LONGEST_NAME]}"' for name in content]
    more = len(names) - _MOST_NAMES
    return (", ".join(names[:_MOST_NAMES]) or "none") + (f" and {more} more" if more > 0 else "")


# What Python writes: data, and nothing that runs

_DEEPEST = 100
_LONGEST_NUMBER = 400
_ESCAPE = r"\\(?:[ntr\\'\"abfv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
# Possessive, so that a string without an end is given up after one pass.
_TOKEN = re.compile(
    rf"(?P<space>\s++)|(?P<string>'(?:[^'\\\r\n]++|{_ESCAPE})*+'|\"(?:[^\"\\\r\n]++|{_ESCAPE})*+\")"
    r"|(?P<number>[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?!\w))"
    r"|(?P<name>[^\W\d]\w*+)|(?P<mark>[\[\](){},:])|(?P<other>.)",
    re.DOTALL,
)
_AS_ARRAY = "save lists, or the table as JSON lines or Parquet"
_PRINTED = {
    "Document": (
        "a LangChain Document was printed into it",
        "save each document's page_content, or its model_dump() as JSON",
    ),
    "array": ("a numpy array was printed into it", _AS_ARRAY),
    "dtype": ("a numpy array was printed into it", _AS_ARRAY),
}


def literal_in(text: str) -> Any:
    r"""Return the value that a text spells in Python.

    Args:
        text: The text, such as ``"['a', 'b']"``.

    Raises:
        InvalidInput: If it spells anything but data, or is nested more than 100 deep; the problem
            names the character, and what numpy, pandas and LangChain print is recognised.

    >>> literal_in("['a', {'page_content': 'It\\'s b', 'id': 7}]")
    ['a', {'page_content': "It's b", 'id': 7}]
    """
    text = text.strip()
    _check_tokens(text)
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        if "unicode error" in error.msg:
            raise _unreadable("a string here holds what is not a character", 0) from error
        before = text.splitlines(keepends=True)[: (error.lineno or 1) - 1]
        at = sum(map(len, before)) + (error.offset or 1) - 1
        raise _unreadable(error.msg, at) from error
    except ValueError as error:  # a NUL character
        raise _unreadable(str(error), 0) from error
    return _value_of(tree.body, text)


def _check_tokens(text: str) -> None:
    """Refuse what is not written in data, before Python's parser sees it."""
    depth, before, last = 0, "", "["
    for found in _TOKEN.finditer(text):
        kind, token, at = str(found.lastgroup), found[0], found.start()
        if kind == "space":
            continue
        if last != "[" and depth == 0:
            raise _unreadable("there is more after its end", at)
        if kind == "string" and before == "string":
            problem = "two strings are side by side without a comma, as numpy prints arrays"
            raise _unreadable(problem, at, _AS_ARRAY)
        if kind == "number":
            _check_number(token, at)
        elif kind in ("name", "other") and token not in ("True", "False", "None"):
            raise _unexpected(text, token, at)
        depth += (token in "[({") - (token in "])}") if kind == "mark" else 0
        if depth > _DEEPEST:
            raise _unreadable(f"it is nested more than {_DEEPEST} deep", at, "flatten it")
        before, last = kind, token if depth else "]"
    if depth > 0 or last == "[":
        raise _unreadable("it ends too early", len(text))


def _check_number(token: str, at: int) -> None:
    digits = token.lstrip("+-")
    if len(digits) > _LONGEST_NUMBER:
        raise _unreadable("a number is too long", at)
    if len(digits) > 1 and digits[0] == "0" and digits.isdecimal():
        fix = "write ids as strings, in quotes"
        raise _unreadable(f"the number {token[:_LONGEST_NAME]} begins with 0", at, fix)
    if math.isinf(float(digits)):
        raise _unreadable(f"{token} is too large for a number", at)


def _unexpected(text: str, token: str, at: int) -> InvalidInput:
    if token in _PRINTED:
        problem, fix = _PRINTED[token]
        return _unreadable(problem, at, fix)
    if text.startswith("...", at):
        fix = "save the values themselves, as JSON lines"
        return _unreadable("it was cut short when it was printed", at, fix)
    if token in "'\"":
        ended = re.compile(rf"{token}(?:[^{token}\\\n]|\\.)*+{token}", re.DOTALL).match(text, at)
        return _unreadable(f"a string {'holds an unknown escape' if ended else 'has no end'}", at)
    if token.isidentifier():
        return _unreadable(f"the name {token[:_LONGEST_NAME]!r} is not a value", at)
    return _unreadable(f"{token!r} is not expected", at)


def _value_of(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.List | ast.Tuple):
        return [_value_of(one, text) for one in node.elts]
    if isinstance(node, ast.Dict):
        return _dict_of(node, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        number: Any = node.operand.value
        return -number if isinstance(node.op, ast.USub) else +number
    if not isinstance(node, ast.Constant):
        problem = (
            "a dict needs ':' after each key"
            if isinstance(node, ast.Set)
            else ("',' is expected between values")
        )
        raise _unreadable(problem, _position(node, text))
    if isinstance(node.value, str) and not node.value.isascii():
        try:
            node.value.encode("utf-8")
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])[1:-1]
            problem = f"a string here holds {half}, which is not a character"
            raise _unreadable(problem, _position(node, text)) from error
    return node.value


def _dict_of(node: ast.Dict, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        name = None if key is None else _value_of(key, text)
        if not isinstance(name, str):
            raise _unreadable("a key of a dict must be a string", _position(key or value, text))
        if name in found:
            problem = f"the key {name[:_LONGEST_NAME]!r} is given twice in one dict"
            raise _unreadable(problem, _position(key or value, text))
        found[name] = _value_of(value, text)
    return found


def _position(node: ast.expr, text: str) -> int:
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: node.lineno - 1])
    return before + len(lines[node.lineno - 1].encode()[: node.col_offset].decode())


def _unreadable(problem: str, at: int, fix: Fix = "") -> InvalidInput:
    return InvalidInput(
        "",
        f"cannot be read as a list: {problem} at character {at + 1}",
        fix or 'write a list of strings, as Python or JSON does: ["…", "…"]',
    )
