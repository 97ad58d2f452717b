"""From a file to lines of text: opening, decompressing, decoding.

A file is read whole or refused; whatever goes wrong on the way names the line it stopped at. This
room must not know what a line means.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Generator
from contextlib import ExitStack
from typing import IO, TypeAlias, cast

from krag_eval.datasets.base import Place, Source

__all__ = ["numbered_lines"]

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


def numbered_lines(source: Source, name: str) -> Generator[tuple[int, str], None, None]:
    """Yield the number and the text of each line that is not blank, line end included.

    The text is UTF-8, with or without a byte order mark, plain or compressed with gzip, which is
    recognised by content.

    Raises:
        DatasetError: If the file cannot be read, as far as the lines were asked for.
        TypeError: If ``source`` is neither a path nor an open file.
    """
    number = 0
    with ExitStack() as stack:
        try:
            stream = _decompressed(_opened(source, name, stack), name, stack)
            for number, line in enumerate(stream, 1):
                text = _decoded(line, name, number)
                if text and not text.isspace():
                    yield number, text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            how = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise Place(name, number + 1).error(
                f"the compressed data {how} here; expected a complete gzip file; copy it again."
            ) from error
        except OSError as error:
            raise Place(name, number).error(_cannot_read(error)) from error


def _opened(source: Source, name: str, stack: ExitStack) -> Peekable:
    if isinstance(source, str | os.PathLike):
        if "\0" in name:
            raise Place(name).error("the name of a file cannot contain a NUL character.")
        return stack.enter_context(open(source, "rb"))
    if not hasattr(source, "read"):
        raise TypeError(f"source must be a path or an open file, got {source!r}.")
    if source is sys.stdin:
        # The locale may say ASCII; the formats read here are UTF-8.
        source = getattr(sys.stdin, "buffer", source)
    if hasattr(source, "peek"):
        return cast(Peekable, source)
    return io.BufferedReader(io.BytesIO(_whole(source, name)))


def _whole(stream: IO[bytes] | IO[str], name: str) -> bytes:
    try:
        content = stream.read()
        return content if isinstance(content, bytes) else content.encode("utf-8")
    except UnicodeError as error:
        raise Place(name).error(
            f"not {error.encoding if isinstance(error, UnicodeDecodeError) else 'valid'} text "
            f"({error}); open the file in binary mode, or with its own encoding."
        ) from error


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


def _decoded(line: bytes, name: str, number: int) -> str:
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Place(name, number).error(
            f"byte 0x{line[error.start]:02x} at position {error.start} is not UTF-8 text; expected "
            "UTF-8; save the file in that encoding (CP949 and CP1252 are the usual others)."
        ) from error


def _cannot_read(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file; check the path."
    if isinstance(error, IsADirectoryError):
        return "is a directory; expected a file; name one file in it."
    return f"cannot be read: {error.strerror or error}."
