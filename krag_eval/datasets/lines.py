"""From a file to lines of text: opening, decompressing, decoding.

A file is read whole or refused; whatever goes wrong on the way names the line it stopped at. What
a file does not show from outside is bounded: how much compressed data expands to, how much a pipe
or a stream holds, and the length of one line. This room must not know what a line means.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import IO, Any, Literal, NamedTuple, TypeAlias, cast

from krag_eval._errors import DatasetError, Place
from krag_eval.datasets.dataset import Source

__all__ = [
    "LIMITS",
    "MAX_BYTES",
    "Limits",
    "MaxObjects",
    "every_line",
    "numbered_lines",
    "too_many_objects",
    "values_in_cells",
    "values_in_json",
    "within_memory",
]

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
# A string without an end goes on to the end, so that every character is looked at once.
_JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)

_GZIP = b"\x1f\x8b"
_CHUNK = 2**20
_MOST_BLANK = 1_000_000
_OTHER_ENCODING = (
    "expected UTF-8; save the file in that encoding (CP949 and CP1252 are the usual others)."
)
_NOT_THAT = (
    'name the encoding it was saved in, such as encoding="cp949" (Excel in Korean), or save it as '
    "UTF-8."
)
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
            ValueError: If one is neither a whole number of at least 1 nor ``None`` or ``"auto"``.
        """
        if self.max_bytes is not None and not _is_count(self.max_bytes):
            raise ValueError(
                "max_bytes must be a whole number of bytes, at least 1, or None for no limit, got "
                f"{self.max_bytes!r}."
            )
        if self.max_objects not in (None, "auto") and not _is_count(self.max_objects):
            raise ValueError(
                "max_objects must be a whole number of values, at least 1, 'auto' for as many as "
                f"the size of the file justifies, or None for no limit, got {self.max_objects!r}."
            )
        return self

    def objects(self, n_stored: int) -> int:
        """Return how many values may come out of so many bytes of a file."""
        if self.max_objects == "auto":
            return _FREE_OBJECTS + _OBJECTS_PER_BYTE * n_stored
        return sys.maxsize if self.max_objects is None else self.max_objects


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def too_many_objects(most: int) -> str:
    """Return the words with which a file is refused that holds more values than it may."""
    return (
        f"more than {most:,} values (texts, numbers, lists, objects) come out of it up to here; "
        "expected fewer of a file of its size; if that is what it holds, max_objects=… allows "
        "more, and max_objects=None any number; plain text needs neither."
    )


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Turn what does not fit into memory while a file is read into the refusal of that file."""
    try:
        yield
    except MemoryError as error:
        raise Place(name).error(
            "what it holds does not fit into memory; evaluate_file(path) reads JSON lines and "
            "Parquet files in chunks, and max_bytes=… and max_objects=… refuse such files sooner."
        ) from error


def values_in_json(text: str) -> int:
    """Return how many values a line of JSON holds at most; what stands in strings is left out.

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
    source: Source, name: str, limits: Limits = LIMITS, *, whole: bool = True
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

    Raises:
        DatasetError: If the file cannot be read, as far as the lines were asked for.
        TypeError: If ``source`` is neither a path nor an open file.
    """
    blank = 0
    with closing(every_line(source, name, limits, whole=whole)) as lines:
        for number, text in lines:
            if text and not text.isspace():
                blank = 0
                yield number, text
                continue
            blank += 1
            if blank > _MOST_BLANK:
                raise Place(name, number).error(
                    f"more than {_MOST_BLANK:,} blank lines in a row; expected text."
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
            counter = _Counter(limits, stream, whole=whole) if _counts(limits, stream) else None
            for number, line in enumerate(_bounded(stream, name, max_bytes, unseen=unseen), 1):
                read = line if number > 1 else _without_mark(line, name, encoding)
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
                f"the compressed data {how} here; expected a complete gzip file; copy it again."
            ) from error
        except OSError as error:
            raise Place(name, number).error(_cannot_read(error)) from error


def _counts(limits: Limits, stream: Peekable) -> bool:
    """Tell whether values must be counted: a plain file never holds as many as it may by itself."""
    asked = limits.max_objects not in (None, "auto")
    return asked or (limits.max_objects is not None and isinstance(stream, gzip.GzipFile))


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
            raise place.error(too_many_objects(most))


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
            raise Place(name, number + 1).error(_too_much(most))
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            number += 1
            length += len(piece) + 1
            if length > longest:
                raise Place(name, number).error(_too_long(longest))
            yield b"".join([*parts, piece, b"\n"]) if parts else piece + b"\n"
            parts, length = [], 0
        if rest:
            parts.append(rest)
            length += len(rest)
        if length > longest:
            raise Place(name, number + 1).error(_too_long(longest))
    if parts:
        yield b"".join(parts)


def _too_long(longest: int) -> str:
    return (
        f"the line is longer than {longest:,} bytes; expected one query or document per line; "
        "max_bytes=… allows more (a line may hold a quarter of it)."
    )


def _too_much(max_bytes: int) -> str:
    return (
        f"more than {max_bytes:,} bytes have come out of it up to here; expected less from "
        "compressed data or a stream; if that is what it holds, max_bytes=… allows more, and "
        "max_bytes=None any amount."
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
            raise Place(name).error("the name of a file cannot contain a NUL character.")
        return stack.enter_context(_plain(source, name))
    if not hasattr(source, "read"):
        raise TypeError(f"source must be a path or an open file, got {source!r}.")
    if source is sys.stdin:
        # The locale may say ASCII; the formats read here are UTF-8.
        source = getattr(sys.stdin, "buffer", source)
    if hasattr(source, "peek"):
        return cast(Peekable, source)
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(_whole(source, name, max_bytes))))


def _plain(path: str | os.PathLike[str], name: str) -> io.BufferedReader:
    """Open a file, and refuse what has no end, such as /dev/zero; a terminal is somebody typing."""
    file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not file.isatty()):
        file.close()
        raise Place(name).error("is a device; expected a file, a pipe or standard input.")
    return file


def _whole(stream: IO[bytes] | IO[str], name: str, max_bytes: int | None) -> bytes:
    content = bytearray()
    try:
        while chunk := stream.read(_CHUNK):
            content += chunk if isinstance(chunk, bytes) else chunk.encode("utf-8")
            if max_bytes is not None and len(content) > max_bytes:
                raise Place(name).error(_too_much(max_bytes))
    except UnicodeError as error:
        raise Place(name).error(
            f"not {error.encoding if isinstance(error, UnicodeDecodeError) else 'valid'} text "
            f"({error}); open the file in binary mode, or with its own encoding."
        ) from error
    return bytes(content)


def _decompressed(stream: Peekable, name: str, stack: ExitStack) -> Peekable:
    head = stream.peek(8)[:8]
    if head.startswith(_GZIP):
        return stack.enter_context(gzip.GzipFile(fileobj=cast(Any, _Counted(stream)), mode="rb"))
    for first_bytes, what in _FOREIGN.items():
        if head.startswith(first_bytes):
            raise Place(name).error(
                f"is {what}; expected UTF-8 text, plain or compressed with gzip; convert it first."
            )
    return stream


def _without_mark(line: bytes, name: str, encoding: str | None) -> bytes:
    """Return a file's first line without the mark that says UTF-8."""
    if not line.startswith(codecs.BOM_UTF8):
        return line
    if encoding is not None and codecs.lookup(encoding).name != "utf-8":
        raise Place(name, 1).error(
            f"begins with a mark that says UTF-8, got encoding={encoding!r}; leave that out."
        )
    return line.removeprefix(codecs.BOM_UTF8)


def _not_text(
    line: bytes, error: UnicodeDecodeError, place: Place, encoding: str | None
) -> DatasetError:
    remedy = _OTHER_ENCODING if encoding is None else _NOT_THAT
    return place.error(
        f"byte 0x{line[error.start]:02x} at position {error.start} is not "
        f"{(encoding or 'utf-8').upper()} text; {remedy}"
    )


def _cannot_read(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file; check the path."
    if isinstance(error, IsADirectoryError):
        return "is a directory; expected a file; name one file in it."
    return f"cannot be read: {error.strerror or error}."
