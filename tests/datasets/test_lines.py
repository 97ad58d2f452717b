"""Hostile files: for any content, memory stays bounded and the error is a DatasetError.

Sizes are given by what the test writes. Limits are set low, so that nothing large is needed.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from krag_eval import KragEvalWarning
from krag_eval._reading import MAX_BYTES, numbered_lines
from krag_eval.datasets import DatasetError, load_dataset, read_beir, read_jsonl, read_trec
from krag_eval.errors import Refusal

LINE = b'{"actual": ["a"], "predicted": ["a"]}\n'
QRELS = {"1": {"d": 1}}
RUN = {"1": {"d": 1.0}}

#: Every reader of text, as a function of one hostile file.
READERS: dict[str, Callable[..., Any]] = {
    "jsonl": read_jsonl,
    "qrels": lambda source, **options: read_trec(source, RUN, **options),
    "run": lambda source, **options: read_trec(QRELS, source, **options),
    "corpus": lambda source, **options: read_beir(qrels=QRELS, run=RUN, corpus=source, **options),
    "queries": lambda source, **options: read_beir(qrels=QRELS, run=RUN, queries=source, **options),
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=list(READERS))


class Endless(io.RawIOBase):
    """A stream that never ends, and counts what was taken from it."""

    def __init__(self, piece: bytes) -> None:
        self.piece = piece
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        buffer[:] = (self.piece * (size // len(self.piece) + 1))[:size]
        self.taken += size
        return size


def bomb(path: Path, piece: bytes, times: int) -> Path:
    """Write a gzip file that is far larger inside than outside."""
    with gzip.open(path, "wb") as file:
        for _ in range(times):
            file.write(piece)
    return path


class TestBombs:
    """Compressed files that are far larger inside."""

    @every_reader
    @pytest.mark.parametrize(
        "piece", [b" " * 65535 + b"\n", b"\0" * 65536], ids=["blank", "a line"]
    )
    def test_a_small_file_cannot_fill_the_memory(
        self, tmp_path: Path, read: Callable[..., Any], piece: bytes
    ) -> None:
        """64 MiB inside, limit 4 MiB: refused, having held not even a quarter of it."""
        path = bomb(tmp_path / "bomb.gz", piece, 1024)
        assert path.stat().st_size < 2**18
        tracemalloc.start()
        try:
            with pytest.raises(DatasetError, match=r"bomb\.gz:\d+: .*max_bytes=… allows more"):
                read(path, max_bytes=2**22)
            assert tracemalloc.get_traced_memory()[1] < 2**24
        finally:
            tracemalloc.stop()

    def test_the_limit_is_on_what_comes_out(self, tmp_path: Path) -> None:
        """As many bytes as the limit are read, one more is not."""
        path = bomb(tmp_path / "run.jsonl.gz", LINE, 10)
        assert read_jsonl(path, max_bytes=10 * len(LINE)).n_queries == 10
        with pytest.raises(DatasetError, match=r":10: .* longer than 379 bytes"):
            read_jsonl(path, max_bytes=10 * len(LINE) - 1)
        assert read_jsonl(path, max_bytes=None).n_queries == 10

    def test_an_open_compressed_file_is_no_way_around_it(self, tmp_path: Path) -> None:
        """What gzip.open returns is on a plain file, and still expands."""
        path = bomb(tmp_path / "run.jsonl.gz", LINE, 10)
        with gzip.open(path) as file, pytest.raises(DatasetError, match="longer than 160 bytes"):
            read_jsonl(file, max_bytes=160)

    def test_a_bomb_within_a_bomb_is_no_text(self, tmp_path: Path) -> None:
        """One level of compression is undone, not more."""
        path = tmp_path / "twice.gz"
        path.write_bytes(gzip.compress(gzip.compress(LINE)))
        with pytest.raises(DatasetError, match=r"twice\.gz:1: byte 0x"):
            read_jsonl(path)

    def test_a_plain_file_may_be_as_long_as_it_is(self, tmp_path: Path) -> None:
        """Its size is there for all to see; only its lines are bounded."""
        path = tmp_path / "run.jsonl"
        path.write_bytes(LINE * 10)
        assert read_jsonl(path, max_bytes=4 * len(LINE)).n_queries == 10
        with pytest.raises(DatasetError, match=r":1: the line is longer than 37 bytes"):
            read_jsonl(path, max_bytes=4 * len(LINE) - 1)

    @pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1 GB"])
    def test_a_limit_is_a_number_of_bytes(self, limit: Any) -> None:
        """Or None."""
        with pytest.raises(Refusal, match=r"^max_bytes must be a whole number .* got"):
            read_jsonl(io.BytesIO(LINE), max_bytes=limit)

    def test_a_limit_of_values_is_no_option(self) -> None:
        """It was one; nothing is accepted in silence."""
        with pytest.raises(TypeError, match="unexpected keyword argument 'max_objects'"):
            load_dataset(io.BytesIO(LINE), max_objects=1)  # type: ignore[call-arg]

    def test_the_default_is_a_gibibyte(self) -> None:
        """As documented."""
        assert MAX_BYTES == 1024**3


class TestWithoutEnd:
    """Streams and devices that go on for ever."""

    @every_reader
    @pytest.mark.parametrize("piece", [b"\n", LINE, b"\0", b"\x1f\x8b"])
    def test_an_endless_stream_is_let_go(self, read: Callable[..., Any], piece: bytes) -> None:
        """Refused after the limit, or at the first line that is wrong; not much more is taken."""
        raw = Endless(piece)
        with pytest.raises(DatasetError):
            read(io.BufferedReader(raw), max_bytes=2**20)
        assert raw.taken <= 2**21

    def test_an_endless_text_stream_is_let_go(self) -> None:
        """One that can only be read whole."""
        stream = io.TextIOWrapper(io.BufferedReader(Endless(b"\n")))
        with pytest.raises(DatasetError, match="longer than 4,096 bytes"):
            read_jsonl(stream, max_bytes=4096)

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
    @every_reader
    def test_a_device_is_no_file(self, read: Callable[..., Any], device: str) -> None:
        """Some have no end, and are bounded as any stream."""
        with pytest.raises(DatasetError, match=rf"^{device}"):
            read(device, max_bytes=2**20)

    def test_a_pipe_is_read(self, tmp_path: Path) -> None:
        """As a shell makes them for <(command)."""
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(LINE,))
        writer.start()
        assert read_jsonl(path).n_queries == 1
        writer.join()

    @every_reader
    def test_a_directory_is_no_file(self, tmp_path: Path, read: Callable[..., Any]) -> None:
        """It is called by its name."""
        with pytest.raises(DatasetError, match="is a directory; expected a file"):
            read(tmp_path)


DEEP = b"[" * 100_000
HOSTILE = {
    "very deep": DEEP,
    "deep and closed": DEEP + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "NUL bytes": b"\0" * 100,
    "half an emoji": rb'{"_id": "\ud83d", "text": "a", "actual": ["\ud83d"], "predicted": []}',
    "raw surrogates": b"\xed\xa0\xbd",
    "NaN": b'{"_id": "a", "text": "a", "actual": [], "predicted": [], "score": NaN}',
    "infinity": b'{"_id": "a", "text": "a", "actual": [], "predicted": [], "score": 1e999}',
    "a huge number": b'{"_id": "a", "text": "a", "actual": [], "score": ' + b"9" * 10_000 + b"}",
    "a damaged block": gzip.compress(LINE)[:10] + b"\xff" * 20,
    "a wrong checksum": gzip.compress(LINE)[:-8] + b"\0" * 8,
    "cut short": gzip.compress(os.urandom(1000))[:200],
    "rubbish after": gzip.compress(LINE) + b"rubbish",
    "a header alone": b"\x1f\x8b\x08\x08name without end",
}


class TestHostileContent:
    """What stands in a file can do no more than be refused."""

    @every_reader
    @pytest.mark.parametrize("content", HOSTILE.values(), ids=list(HOSTILE))
    def test_our_own_error_comes_out(
        self, tmp_path: Path, read: Callable[..., Any], content: bytes
    ) -> None:
        """It names the file."""
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=rf"^{path}") as caught:
            read(path)
        assert str(caught.value).isprintable()

    def test_a_line_of_ten_megabytes_is_read(self, tmp_path: Path) -> None:
        """Long is not hostile."""
        text = "x" * 10_000_000
        path = tmp_path / "long.jsonl"
        path.write_text(json.dumps({"actual": [text], "predicted": []}))
        assert read_jsonl(path).actual == [[text]]

    @every_reader
    @given(content=st.binary(max_size=200))
    def test_any_bytes_are_read_or_refused(self, read: Callable[..., Any], content: bytes) -> None:
        """Compressed, plain, and pretending to be compressed."""
        for one in (content, gzip.compress(content), b"\x1f\x8b\x08\0" + content):
            with suppress(DatasetError), warnings.catch_warnings():
                warnings.simplefilter("ignore", KragEvalWarning)
                read(io.BytesIO(one))


class TestEncodings:
    """Text in another encoding than UTF-8, where a format allows it."""

    def test_another_encoding_is_decoded_line_by_line(self) -> None:
        """Korean Windows writes CP949."""
        lines = numbered_lines(
            io.BytesIO("언제?\n\n어디?".encode("cp949")), "a.csv", encoding="cp949", blank=True
        )
        assert list(lines) == [(1, "언제?\n"), (2, "\n"), (3, "어디?")]

    def test_text_that_is_not_in_it_is_refused(self) -> None:
        """The byte is shown."""
        lines = numbered_lines(io.BytesIO(b"a\n\xff\xff"), "a.csv", encoding="cp949")
        with pytest.raises(DatasetError, match=r"^a\.csv:2: byte 0xff at position 0 is not CP949"):
            list(lines)

    def test_a_mark_of_utf8_counts_more_than_a_name(self) -> None:
        """Excel writes it when asked for UTF-8."""
        content = "\ufeff언제?".encode()
        for encoding in ("UTF8", "cp949", None):
            lines = numbered_lines(io.BytesIO(content), "a", encoding=encoding)
            assert list(lines) == [(1, "언제?")]

    def test_blank_lines_are_left_out_where_lines_are_records(self) -> None:
        """And counted."""
        assert list(numbered_lines(io.BytesIO(b"\na\n \nb"), "a")) == [(2, "a\n"), (4, "b")]
