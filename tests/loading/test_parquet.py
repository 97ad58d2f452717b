"""Parquet files: what pyarrow reads, in bounded memory, and what is refused before decoding."""

import sys
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from processes import printed
from pyarrow import parquet
from trials import trials

from krag_eval import evaluate_file
from krag_eval.datasets import DatasetError, load_dataset
from krag_eval.loading.formats import File, rows_in

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


def stored_once(text, n_rows, path):
    """Write a file whose every list holds the same text, which is stored once."""
    places = pa.array([0] * n_rows, pa.int32())
    texts = pa.DictionaryArray.from_arrays(places, pa.array([text]))
    lists = pa.ListArray.from_arrays(pa.array(range(n_rows + 1), pa.int32()), texts)
    table = pa.table({"actual": lists, "predicted": lists})
    parquet.write_table(table, path, compression="zstd", dictionary_pagesize_limit=2**30)
    return path


def columns_of(path):
    """Read all columns of a Parquet file."""
    rows = [row for _, row in rows_in(File(path, "a"), "parquet")]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


class TestValues:
    """What is read is what pyarrow reads."""

    @pytest.mark.parametrize("row_group_size", [5, 2, 1])
    def test_every_kind(self, tmp_path, row_group_size):
        """As ``to_pylist`` returns them."""
        path = tmp_path / "kinds.parquet"
        parquet.write_table(KINDS, path, row_group_size=row_group_size)
        columns = columns_of(path)
        assert columns == {name: KINDS[name].to_pylist() for name in KINDS.column_names}

    @settings(max_examples=trials(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        lists=st.lists(st.none() | st.lists(st.none() | st.text(max_size=3), max_size=4)),
        size=st.integers(1, 5),
    )
    def test_any_lists(self, tmp_path, lists, size):
        """Whatever is missing, in one row group or several."""
        table = pa.table({"texts": pa.array(lists, pa.list_(pa.string()))})
        parquet.write_table(table, tmp_path / "any.parquet", row_group_size=size)
        assert columns_of(tmp_path / "any.parquet").get("texts", []) == lists

    @pytest.mark.parametrize("options", [
        {"dictionary_pagesize_limit": 100},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": {"texts.list.element": "DELTA_BYTE_ARRAY"}},
        {"compression": "zstd", "data_page_size": 100},
    ])  # fmt: skip
    def test_however_they_are_stored(self, tmp_path, options):
        """Also where a writer changes its mind in the middle."""
        lists = [[f"text {at}", f"text {at % 7}"] for at in range(500)]
        path = tmp_path / "stored.parquet"
        parquet.write_table(pa.table({"texts": lists}), path, row_group_size=300, **options)
        assert columns_of(path)["texts"] == lists


class TestLimits:
    """What a file holds is bounded before it is read."""

    def test_one_text_in_every_row(self, tmp_path):
        """2 kB that stand for 200 GB: one text in memory. The peak is that of a new process."""
        path = stored_once("x" * 5_000_000, 20_000, tmp_path / "bomb.parquet")
        assert path.stat().st_size < 3_000
        code = (
            "import resource, sys; from krag_eval.datasets import load_dataset\n"
            "import pyarrow.parquet, pyarrow.compute\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "print(load_dataset(sys.argv[1]).n_queries)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
        )
        n_queries, peak = printed(code, path).splitlines()
        assert n_queries == "20000"
        assert int(peak) * (1024 if sys.platform == "linux" else 1) < 300 * 2**20

    def test_in_chunks_a_text_stored_once_is_one_text(self, tmp_path):
        """So the same file is evaluated in the memory of a few copies."""
        path = stored_once("x" * 5_000_000, 600, tmp_path / "bomb.parquet")
        assert evaluate_file(path, 1).averages()["macro_recall"] == 1.0

    def test_what_the_file_says_it_holds_is_bounded(self, tmp_path):
        """One text of 300 MB in a few kilobytes; the file is refused before it is read."""
        path = tmp_path / "zeros.parquet"
        table = pa.table({"actual": [["0" * 300_000_000]], "predicted": [["a"]]})
        parquet.write_table(table, path, compression="zstd")
        assert path.stat().st_size < 100_000
        for read in (load_dataset, evaluate_file):
            with pytest.raises(DatasetError, match=r"row 0 .* more than 268,435,456 bytes"):
                read(path, max_bytes=2**28)
