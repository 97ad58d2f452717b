"""Parquet files: what pyarrow reads, in bounded memory, and what is refused before decoding."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import parquet

import krag_eval
from krag_eval import evaluate_file
from krag_eval._reading import Limits
from krag_eval.datasets import DatasetError, load_dataset
from krag_eval.datasets.tabular import parquet_columns

# Before version 26 pyarrow cannot read back a missing list of fixed length.
NO_PAIR = None if int(pa.__version__.partition(".")[0]) >= 26 else [None, None]

#: Every kind that a column may have, with missing values and empty lists.
KINDS = pa.table(
    {
        "text": pa.array(["a", None, "b", "a", ""]),
        "large text": pa.array(["a", None, "b", "a", ""], pa.large_string()),
        "bytes": pa.array([b"a", None, b"b", b"", b"c"]),
        "bytes of one length": pa.array([b"ab", None, b"cd", b"ab", b"ab"], pa.binary(2)),
        "texts": pa.array([["a"], None, [], ["b", None], ["a", "a"]]),
        "large texts": pa.array(
            [["a"], None, [], ["b", None], ["a", "a"]], pa.large_list(pa.large_string())
        ),
        "pairs": pa.array([["a", "b"], NO_PAIR, ["c", "d"], ["b", None], ["a", "a"]],
                          pa.list_(pa.string(), 2)),
        "nested": pa.array([[["a"], []], None, [None], [], [["b", None]]]),
        "record": pa.array(
            [{"x": "a", "y": [1]}, None, {"x": None, "y": None}, {"x": "b", "y": []},
             {"x": "c", "y": [None, 2]}]
        ),
        "records": pa.array(
            [[{"x": "a", "m": {"k": "v"}}], None, [], [None, {"x": "b", "m": None}],
             [{"x": "a", "m": {"k": None}}]]
        ),
        "map": pa.array(
            [[("k", "v")], None, [], [("a", None), ("b", "c")], [("k", "v")]],
            pa.map_(pa.string(), pa.string()),
        ),
        "whole": pa.array([1, None, 3, 4, 5]),
        "number": [1.5, None, float("inf"), 0.0, 2.0],
        "truth": [True, None, False, True, True],
        "time": pa.array([datetime(2020, 1, 1)] * 5),
        "decimal": pa.array([Decimal("1.5")] * 5),
        "category": pa.array(["x", "y", None, "x", "x"]).dictionary_encode(),
        "nothing": pa.nulls(5),
    }
)  # fmt: skip


def stored_once(text: str, n_rows: int, path: Path, **more: Any) -> Path:
    """Write a file whose every list holds the same text, which is stored once."""
    places = pa.array([0] * n_rows, pa.int32())
    texts = pa.DictionaryArray.from_arrays(places, pa.array([text]))
    lists = pa.ListArray.from_arrays(pa.array(range(n_rows + 1), pa.int32()), texts)
    columns = {"actual": lists, "predicted": lists, **more}
    parquet.write_table(
        pa.table(columns), path, compression="zstd", dictionary_pagesize_limit=2**30
    )
    return path


class TestValues:
    """What is read is what pyarrow reads."""

    @pytest.mark.parametrize("row_group_size", [5, 2, 1])
    def test_every_kind(self, tmp_path: Path, row_group_size: int) -> None:
        """As ``to_pylist`` returns them."""
        path = tmp_path / "kinds.parquet"
        parquet.write_table(KINDS, path, row_group_size=row_group_size)
        columns = parquet_columns(path, "kinds").columns
        assert columns == {name: KINDS[name].to_pylist() for name in KINDS.column_names}

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        lists=st.lists(st.none() | st.lists(st.none() | st.text(max_size=3), max_size=4)),
        size=st.integers(1, 5),
    )
    def test_any_lists(self, tmp_path: Path, lists: list[Any], size: int) -> None:
        """Whatever is missing, in one row group or several."""
        table = pa.table({"texts": pa.array(lists, pa.list_(pa.string()))})
        parquet.write_table(table, tmp_path / "any.parquet", row_group_size=size)
        assert parquet_columns(tmp_path / "any.parquet", "any").columns["texts"] == lists

    @pytest.mark.parametrize("options", [
        {"dictionary_pagesize_limit": 100},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": {"texts.list.element": "DELTA_BYTE_ARRAY"}},
        {"compression": "zstd", "data_page_size": 100},
    ])  # fmt: skip
    def test_however_they_are_stored(self, tmp_path: Path, options: dict[str, Any]) -> None:
        """Also where a writer changes its mind in the middle."""
        lists = [[f"text {at}", f"text {at % 7}"] for at in range(500)]
        path = tmp_path / "stored.parquet"
        parquet.write_table(pa.table({"texts": lists}), path, row_group_size=300, **options)
        assert parquet_columns(path, "stored").columns["texts"] == lists


class TestLimits:
    """What a small file stands for is counted, not made."""

    @pytest.mark.parametrize("n_rows", [600, 20_000])
    def test_one_text_in_every_row(self, tmp_path: Path, n_rows: int) -> None:
        """3 kB that stand for 6 GB, and 2 kB for 200: refused in little memory, by row and limit.

        Each row holds 10 MB, so that a gibibyte is passed in row 107, the 108th. The peak is that
        of a process of its own.
        """
        path = stored_once("x" * 5_000_000, n_rows, tmp_path / "bomb.parquet")
        assert path.stat().st_size < 3_000
        code = (
            "import resource, sys; from krag_eval.datasets import DatasetError, load_dataset\n"
            "import pyarrow.parquet, pyarrow.compute\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "try: load_dataset(sys.argv[1])\n"
            "except DatasetError as error: print(error)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True,
            env={"PYTHONPATH": str(Path(krag_eval.__file__).parents[1])},
        )  # fmt: skip
        message, peak = done.stdout.splitlines()
        assert message.startswith(f"{path}: row 107 (from 0): ")
        assert "1,073,741,824 bytes" in message
        assert int(peak) * (1024 if sys.platform == "linux" else 1) < 300 * 2**20

    def test_in_chunks_a_text_stored_once_is_one_text(self, tmp_path: Path) -> None:
        """So the same file is evaluated in the memory of a few copies."""
        path = stored_once("x" * 5_000_000, 600, tmp_path / "bomb.parquet")
        assert evaluate_file(path, 1).averages()["macro_recall"] == 1.0

    def test_a_row_may_hold_a_quarter(self, tmp_path: Path) -> None:
        """Of a file in chunks, which may be of any length; row 3 holds 2 kB."""
        lists = [["x"]] * 3 + [["x" * 1000]] + [["x"]] * 3
        path = tmp_path / "rows.parquet"
        parquet.write_table(pa.table({"actual": lists, "predicted": lists}), path)
        assert evaluate_file(path, 1, max_bytes=8000).n_queries == 7
        with pytest.raises(DatasetError, match=rf"^{path}: row 3 .* more than 7,999 bytes"):
            evaluate_file(path, 1, max_bytes=7999)

    def test_bytes_are_those_of_the_texts(self, tmp_path: Path) -> None:
        """Row 4 brings them to 10 * 5 = 50, however they are stored."""
        path = stored_once("x" * 5, 10, tmp_path / "a.parquet")
        limits = [Limits(max_bytes=50), Limits(max_bytes=49)]
        assert len(parquet_columns(path, "a", limits[0], {"actual"}).columns["actual"]) == 10
        with pytest.raises(DatasetError, match=r"a: row 9 .* more than 49 bytes"):
            parquet_columns(path, "a", limits[1], {"actual"})

    def test_values_are_counted(self, tmp_path: Path) -> None:
        """Ten rows of a list and a text; the row group alone says that there are too many."""
        path = stored_once("x", 10, tmp_path / "a.parquet")
        assert len(parquet_columns(path, "a", Limits(None, 20), {"actual"}).columns["actual"]) == 10
        with pytest.raises(DatasetError, match=r"a: row 9 .* more than 19 values"):
            parquet_columns(path, "a", Limits(None, 19), {"actual"})
        with pytest.raises(DatasetError, match=r"a: row 0 .* more than 9 values"):
            parquet_columns(path, "a", Limits(None, 9), {"actual"})

    @pytest.mark.parametrize("read", [load_dataset, evaluate_file])
    def test_empty_values_without_end(self, tmp_path: Path, read: Any) -> None:
        """Twenty million in one row, in a few kilobytes: the file says so before it is read."""
        lists = pa.ListArray.from_arrays(
            pa.array([0, 20_000_000], pa.int32()),
            pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), 20_000_000), [""]),
        )
        path = tmp_path / "empty.parquet"
        parquet.write_table(pa.table({"actual": lists, "predicted": lists}), path)
        assert path.stat().st_size < 10_000
        with pytest.raises(DatasetError, match=r"row 0 .* more than 1,0\d\d,\d\d\d values"):
            read(path)

    def test_a_page_of_zeros(self, tmp_path: Path) -> None:
        """One text of 300 MB in a few kilobytes is more than a line may have."""
        path = tmp_path / "zeros.parquet"
        table = pa.table({"actual": [["0" * 300_000_000]], "predicted": [["a"]]})
        parquet.write_table(table, path, compression="zstd")
        assert path.stat().st_size < 100_000
        for read in (load_dataset, evaluate_file):
            with pytest.raises(DatasetError, match=r"row 0 .* bytes"):
                read(path)

    def test_memory_that_runs_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Arrow's own kind of error as well."""
        path = stored_once("x", 10, tmp_path / "a.parquet")

        def full(*_: object) -> None:
            raise pa.lib.ArrowMemoryError("malloc of size 64 failed")

        monkeypatch.setattr("krag_eval.datasets.tabular._values", full)
        for read in (load_dataset, evaluate_file):
            with pytest.raises(DatasetError, match=r"a\.parquet: what it holds does not fit"):
                read(path)
