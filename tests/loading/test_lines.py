"""Hostile files: for any content, memory stays bounded and the error is a DatasetError.

Sizes are given by what the test writes. Limits are set low, so that nothing large is needed.
"""

import gzip
import io
import json
import os
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from reference import no_advice

from krag_eval.datasets import DatasetError, read_beir, read_jsonl, read_trec
from krag_eval.loading.reading import MAX_BYTES, numbered_lines

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

    def __init__(self, piece):
        self.piece = piece
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        buffer[:] = (self.piece * (size // len(self.piece) + 1))[:size]
        self.taken += size
        return size


def bomb(path: Path, piece, times: int) -> Path:
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
    def test_a_small_file_cannot_fill_the_memory(self, tmp_path, read, piece):
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

    def test_the_limit_is_on_what_comes_out(self, tmp_path):
        """As many bytes as the limit are read, one more is not, also of what gzip.open returns."""
        path = bomb(tmp_path / "run.jsonl.gz", LINE, 10)
        assert read_jsonl(path, max_bytes=10 * len(LINE)).n_queries == 10
        with pytest.raises(DatasetError, match=r":10: .* longer than 379 bytes"):
            read_jsonl(path, max_bytes=10 * len(LINE) - 1)
        assert read_jsonl(path, max_bytes=None).n_queries == 10
        with gzip.open(path) as file, pytest.raises(DatasetError, match="longer than 160 bytes"):
            read_jsonl(file, max_bytes=160)

    def test_a_plain_file_may_be_as_long_as_it_is(self, written):
        """Its size is there for all to see; only its lines are bounded."""
        path = written(LINE * 10)
        assert read_jsonl(path, max_bytes=4 * len(LINE)).n_queries == 10
        with pytest.raises(DatasetError, match=r":1: the line is longer than 37 bytes"):
            read_jsonl(path, max_bytes=4 * len(LINE) - 1)

    def test_the_default_is_a_gibibyte(self):
        """As documented."""
        assert MAX_BYTES == 1024**3


class TestWithoutEnd:
    """Streams and devices that go on for ever."""

    @every_reader
    @pytest.mark.parametrize("piece", [b"\n", LINE, b"\0", b"\x1f\x8b"])
    def test_an_endless_stream_is_let_go(self, read, piece):
        """Refused after the limit, or at the first line that is wrong; not much more is taken."""
        raw = Endless(piece)
        with pytest.raises(DatasetError):
            read(io.BufferedReader(raw), max_bytes=2**20)
        assert raw.taken <= 2**21

    def test_an_endless_text_stream_is_let_go(self):
        """One that can only be read whole."""
        stream = io.TextIOWrapper(io.BufferedReader(Endless(b"\n")))
        with pytest.raises(DatasetError, match="longer than 4,096 bytes"):
            read_jsonl(stream, max_bytes=4096)

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
    @every_reader
    def test_a_device_is_no_file(self, read, device):
        """Some have no end, and are bounded as any stream."""
        with pytest.raises(DatasetError, match=rf"^{device}"):
            read(device, max_bytes=2**20)

    def test_a_pipe_is_read(self, tmp_path):
        """As a shell makes them for <(command)."""
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(LINE,))
        writer.start()
        assert read_jsonl(path).n_queries == 1
        writer.join()

    @every_reader
    def test_a_directory_is_no_file(self, tmp_path, read):
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
    def test_our_own_error_comes_out(self, written, read, content):
        """It names the file."""
        path = written(content, "file")
        with pytest.raises(DatasetError, match=rf"^{path}") as caught:
            read(path)
        assert str(caught.value).isprintable()

    def test_a_line_of_ten_megabytes_is_read(self, written):
        """Long is not hostile."""
        text = "x" * 10_000_000
        path = written(json.dumps({"actual": [text], "predicted": []}))
        assert read_jsonl(path).actual == [[text]]

    @every_reader
    @given(content=st.binary(max_size=200))
    def test_any_bytes_are_read_or_refused(self, read, content):
        """Compressed, plain, and pretending to be compressed."""
        for one in (content, gzip.compress(content), b"\x1f\x8b\x08\0" + content):
            with suppress(DatasetError), no_advice():
                read(io.BytesIO(one))


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        # Korean Windows writes CP949.
        ("언제?\n\n어디?".encode("cp949"), {"encoding": "cp949", "blank": True},
         [(1, "언제?\n"), (2, "\n"), (3, "어디?")]),
        # Excel's mark of UTF-8 counts more than a name.
        *(("\ufeff언제?".encode(), {"encoding": one}, [(1, "언제?")])
          for one in ("UTF8", "cp949", None)),
        # Blank lines are left out where lines are records, and counted.
        (b"\na\n \nb", {}, [(2, "a\n"), (4, "b")]),
    ],
)  # fmt: skip
def test_lines_are_decoded_one_by_one(content, options, expected):
    assert [*numbered_lines(io.BytesIO(content), "a", **options)] == expected


def test_text_that_is_not_in_the_encoding_is_refused():
    """The byte is shown."""
    lines = numbered_lines(io.BytesIO(b"a\n\xff\xff"), "a.csv", encoding="cp949")
    with pytest.raises(DatasetError, match=r"^a\.csv:2: byte 0xff at position 0 is not CP949"):
        list(lines)
