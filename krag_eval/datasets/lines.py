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
import stat
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from typing import IO, TypeAlias, cast

from krag_eval._errors import DatasetError, Place
from krag_eval.datasets.dataset import Source

__all__ = [
    "MAX_BYTES",
    "check_limit",
    "every_line",
    "numbered_lines",
]

Peekable: TypeAlias = io.BufferedReader | gzip.GzipFile

#: How much text may come out of what does not show its size: a gibibyte. A single line may hold a
#: quarter of the limit, whatever it comes from.
MAX_BYTES = 2**30

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


def check_limit(max_bytes: object) -> None:
    """Refuse a limit that is none.

    Raises:
        ValueError: If it is neither a whole number of at least 1 nor ``None``.
    """
    whole = isinstance(max_bytes, int) and not isinstance(max_bytes, bool)
    if max_bytes is not None and (not whole or max_bytes < 1):  # type: ignore[operator]
        raise ValueError(
            "max_bytes must be a whole number of bytes, at least 1, or None for no limit, got "
            f"{max_bytes!r}."
        )


def numbered_lines(
    source: Source, name: str, max_bytes: int | None = MAX_BYTES, *, whole: bool = True
) -> Generator[tuple[int, str], None, None]:
    """Yield the number and the text of each line that is not blank, line end included.

    The text is UTF-8, with or without a byte order mark, plain or compressed with gzip, which is
    recognised by content.

    Args:
        source: A path or an open file.
        name: What to call it.
        max_bytes: How much text a compressed file, a pipe or a stream may hold, and four times
            what any line may; ``None`` for no limit. Plain files may be as long as they are.
        whole: Whether all of it will be held in memory; if not, it may be of any length, and only
            its lines are bounded.

    Raises:
        DatasetError: If the file cannot be read, as far as the lines were asked for.
        TypeError: If ``source`` is neither a path nor an open file.
    """
    blank = 0
    with closing(every_line(source, name, max_bytes, whole=whole)) as lines:
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
    max_bytes: int | None = MAX_BYTES,
    encoding: str | None = None,
    *,
    whole: bool = True,
) -> Generator[tuple[int, str], None, None]:
    """Yield the number and the text of each line, blank ones too; see :func:`numbered_lines`.

    Args:
        source: A path or an open file.
        name: What to call it.
        max_bytes: As in :func:`numbered_lines`.
        encoding: Of the text, where the format lets its user choose: one in which a line end is
            the byte it is in ASCII. UTF-8 if not given.
        whole: As in :func:`numbered_lines`.
    """
    check_limit(max_bytes)
    number = 0
    with ExitStack() as stack:
        try:
            opened = _opened(source, name, max_bytes, stack)
            stream = _decompressed(opened, name, stack)
            unseen = whole and (stream is not opened or not _shows_its_size(opened))
            codec = encoding or "utf-8"
            for number, line in enumerate(_bounded(stream, name, max_bytes, unseen=unseen), 1):
                read = line if number > 1 else _without_mark(line, name, encoding)
                try:
                    text = read.decode(codec)
                except UnicodeDecodeError as error:
                    raise _not_text(read, error, Place(name, number), encoding) from error
                yield number, text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            how = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise Place(name, number + 1).error(
                f"the compressed data {how} here; expected a complete gzip file; copy it again."
            ) from error
        except OSError as error:
            raise Place(name, number).error(_cannot_read(error)) from error


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
        return stack.enter_context(gzip.GzipFile(fileobj=stream, mode="rb"))
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
