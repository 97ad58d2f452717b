"""Files in chunks: the numbers of the whole file, rows as they come, bad input named."""

import csv
import gzip
import json
import os
import re
import sys
import warnings
from dataclasses import replace

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from results_made import read_back
from stream_samples import queries, write_jsonl, write_parquet

from krag_eval import EvaluationResult, JudgeMatcher, KragEvalWarning, compare, evaluate_file
from krag_eval.core import install_line
from krag_eval.datasets import DatasetError, load_dataset, read_jsonl
from krag_eval.errors import MissingPackage, Refusal
from krag_eval.streaming import files as files_module, queries as queries_module
from krag_eval.streaming.files import RunState

OPTIONS = {"grade_key": "grade", "matching_criteria": "partial"}
WRITERS = {"jsonl": write_jsonl, "parquet": write_parquet}
unretrieved = pytest.mark.filterwarnings("ignore:Nothing was retrieved")


@pytest.fixture
def files(tmp_path):
    """Return what writes queries to a file, and the name of an output in a folder of its own."""
    (tmp_path / "out").mkdir()

    def written(lines, kind="jsonl", name="queries"):
        lines = queries(lines) if isinstance(lines, int) else lines
        return WRITERS[kind](tmp_path / f"{name}.{kind}", lines)

    return written


@pytest.fixture
def rows(tmp_path, files):
    return tmp_path / "out" / "rows.csv"


def in_one_piece(path, k=(1, 3, None), metrics=None, **options):
    """Return the result of the same queries, read and evaluated in one piece."""
    return read_jsonl(path).evaluator(**OPTIONS, **options).evaluate(k, metrics=metrics)


def watched(monkeypatch, seen):
    """Let the queries of every chunk be seen before it is evaluated."""
    evaluated = files_module._evaluated

    def watching(plan, chunk, *rest):
        seen(chunk)
        return evaluated(plan, chunk, *rest)

    monkeypatch.setattr(files_module, "_evaluated", watching)


# --- the same numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["rows.parquet", "rows.csv"])
@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_everything_is_as_of_the_whole_file(tmp_path, files, output, chunk_size):
    """Averages, signature, rows, misses, statuses, intervals, whatever the size of the chunks."""
    path = write_jsonl(tmp_path / "queries.jsonl.gz", queries(60))
    expected, rows = in_one_piece(path), tmp_path / "out" / output
    result = evaluate_file(path, [1, 3, None], per_query=rows, chunk_size=chunk_size, **OPTIONS)
    assert result.to_dict() == expected.to_dict()
    assert result.signature == expected.signature
    assert result.labels == expected.labels
    for k in expected.k:
        assert_frame_equal(result.per_query(k), expected.per_query(k))
    # What pairs tell is only known where they were kept.
    kept = expected.misses().drop(columns=["missed", "similarity", "rank", "contradicted_by"])
    assert_frame_equal(result.misses(), kept)
    pd.testing.assert_series_equal(result.statuses(3), expected.statuses(3))
    intervals = [one.confidence_intervals(n_resamples=200) for one in (result, expected)]
    assert_frame_equal(*intervals)
    assert os.listdir(rows.parent) == [output]
    assert list(result.rows.digests) == list(expected.rows.digests)
    assert result == expected


def test_formulas_and_line_ends_in_questions_come_back_from_csv(files, rows):
    """Spreadsheets see no formula; the result reads the questions as they were asked."""
    asked = ["=1+1", "'=1", "a;=b", "two\rlines", 'say "x", y', "-5", "When?"]
    lines = [{"question": one, "actual": ["a"], "predicted": ["a"]} for one in asked]
    assert evaluate_file(files(lines), 1, per_query=rows, chunk_size=2).labels == asked
    with open(rows, encoding="utf-8", newline="") as file:
        written = [row[0] for row in csv.reader(file)]
    assert written == ["query", "'=1+1", "''=1", "a;'=b", *asked[3:]]


@unretrieved
def test_rows_written_before_texts_were_shielded_are_read_as_they_are(files, rows):
    """Version 0.1.0 wrote no quotes around the first name."""
    path = files([{"question": "x", "actual": ["a"], "predicted": []}])
    result = evaluate_file(path, 1, per_query=rows)
    rows.write_text(rows.read_text().replace('"query"', "query").replace("\nx,", "\n'=x,"))
    assert result.labels == ["'=x"]


def test_parquet_is_read_as_json_lines_are(tmp_path, files):
    """Texts, records with fields that are null, alternatives; from one row group or several."""
    expected = in_one_piece(files(40)).to_dict()
    for number, size in enumerate((5, 1000)):
        path = write_parquet(tmp_path / f"{number}.parquet", queries(40), row_group_size=size)
        assert evaluate_file(path, [1, 3, None], chunk_size=7, **OPTIONS).to_dict() == expected


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path, files, rows):
    """Chunks go on over the ends of files; hidden files are passed over."""
    lines, folder = queries(30), tmp_path / "in"
    folder.mkdir()
    write_jsonl(folder / "b.jsonl.gz", lines[11:12])
    write_jsonl(folder / "c.ndjson", lines[12:])
    write_jsonl(folder / "a.jsonl", lines[:11])
    (folder / "_SUCCESS").touch()
    (folder / ".c.crc").write_bytes(b"\0")
    result = evaluate_file(folder, 3, per_query=rows, chunk_size=5, **OPTIONS)
    assert_frame_equal(result.per_query(), in_one_piece(files(lines), 3).per_query())


def test_processes_change_no_digit(files):
    """n_jobs, for every chunk."""
    path, options = files(12), {"matcher": "rouge1", "threshold": 1.0}
    result = evaluate_file(path, [1, 3, None], chunk_size=5, n_jobs=2, **OPTIONS, **options)
    assert result.to_dict() == in_one_piece(path, **options).to_dict()


def test_long_texts_make_chunks_shorter(files, monkeypatch):
    """Memory is bounded by what texts weigh, too."""
    monkeypatch.setattr(queries_module, "MOST_WEIGHT", 100)
    sizes = []
    watched(monkeypatch, lambda chunk: sizes.append(len(chunk)))
    assert evaluate_file(files(10)).evidence is None
    assert sum(sizes) == 10
    assert max(sizes) < 3


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_a_saved_data_set_is_evaluated_as_it_says(tmp_path, files, rows, ending):
    """Its labels and its defaults, which options go before."""
    dataset = replace(
        read_jsonl(files(9)),
        queries=[f"id{number}" for number in range(9)],
        defaults={"matcher": "contains", "grade_key": "grade"},
    )
    path = tmp_path / f"saved.{ending}"
    dataset.save(path)
    result = evaluate_file(path, 3, chunk_size=4, per_query=rows)
    expected = load_dataset(path).evaluator().evaluate(3)
    assert result.signature == expected.signature
    assert_frame_equal(result.per_query(), expected.per_query())
    assert "matcher=text" in evaluate_file(path, matcher="text").signature


def test_results_with_rows_in_files_are_compared_as_those_in_memory(tmp_path, files):
    """With the numbers of a comparison in memory, to the last digit."""
    lines = queries(40)
    turned = [{**one, "predicted": one["predicted"][::-1]} for one in lines[:20]] + lines[20:]
    paths = {"a": files(lines), "b": files(turned, name="turned")}
    streamed = {
        name: evaluate_file(path, 3, per_query=tmp_path / "out" / f"{name}.csv", **OPTIONS)
        for name, path in paths.items()
    }
    whole = {name: in_one_piece(path, 3) for name, path in paths.items()}
    compared = [compare(one, ["ndcg@3", "mrr@3"], n_resamples=100) for one in (streamed, whole)]
    assert_frame_equal(*(one.table for one in compared))


@pytest.mark.parametrize("output", ["rows.csv", "rows.parquet"])
def test_rows_in_files_know_what_the_ground_truth_was(tmp_path, files, output):
    """So that a run over other ground truth is refused, also when it was saved meanwhile.

    Rows of 0.1.0 have no such column, and are compared with a warning.
    """
    lines, rows = queries(8), tmp_path / "out" / output
    path = files(lines)
    result = evaluate_file(path, 3, per_query=rows, chunk_size=3, **OPTIONS)
    saved = read_back(result, tmp_path / "out")
    lines[5]["actual"][0] = "something else"
    other = in_one_piece(files(lines, name="other"), 3)
    with pytest.raises(ValueError, match="ground truth: '5"):
        compare({"saved": saved, "other": other}, "ndcg@3", n_resamples=100)
    # As text: pandas before 3.1 rounds the numbers it reads.
    as_text = {"dtype": str, "keep_default_na": False}
    table = pd.read_csv(rows, **as_text) if rows.suffix == ".csv" else pd.read_parquet(rows)
    table = table.drop(columns="ground_truth_digest")
    table.to_csv(rows, index=False) if rows.suffix == ".csv" else table.to_parquet(rows)
    old = EvaluationResult.from_json(tmp_path / "out" / "result.json")
    with pytest.warns(KragEvalWarning) as caught:
        compare({"old": old, "new": in_one_piece(path, 3)}, "ndcg@3", n_resamples=100)
    assert any(re.search(r"could not be checked .*\('old'\)", str(one.message)) for one in caught)


# --- a small file, at once -------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_a_small_file_keeps_its_evidence(tmp_path, ending):
    """Everything is as of the data set in memory, and the averages as in chunks."""
    lines = [one | {"topic": "ab"[number % 2]} for number, one in enumerate(queries(9))]
    path = WRITERS[ending.partition(".")[0]](tmp_path / f"queries.{ending}", lines)
    result = evaluate_file(path, [1, 3, None], **OPTIONS)
    expected = load_dataset(path).evaluator(**OPTIONS).evaluate([1, 3, None])
    assert result == expected
    assert (result.labels, result.tags) == (expected.labels, expected.tags)
    assert str(result.explain(result.labels[0], 3)) == str(expected.explain(result.labels[0], 3))
    in_chunks = evaluate_file(path, [1, 3, None], chunk_size=4, **OPTIONS)
    assert (in_chunks.to_dict(), in_chunks.signature) == (result.to_dict(), result.signature)


def test_what_is_not_small_is_read_in_chunks(tmp_path, files, monkeypatch):
    """Directories, long files, files whose texts turn out long, and what is asked to resume."""
    path, folder = files(9), tmp_path / "in"
    folder.mkdir()
    write_jsonl(folder / "queries.jsonl", queries(9))
    packed = write_jsonl(tmp_path / "queries.jsonl.gz", [
        {"question": "q?", "actual": ["a" * 9_000], "predicted": ["b"]}] * 3)  # fmt: skip
    with warnings.catch_warnings(action="ignore"):
        assert evaluate_file(packed).evidence is not None
        assert evaluate_file(folder).evidence is None
        assert evaluate_file(path, resume=False).evidence is None
        monkeypatch.setattr(queries_module, "MOST_WEIGHT", packed.stat().st_size + 1)
        assert evaluate_file(packed).evidence is None
        monkeypatch.setattr(queries_module, "MOST_WEIGHT", path.stat().st_size)
        assert evaluate_file(path).evidence is None


def test_labels_of_a_small_file_are_those_of_its_rows(files, rows):
    """Numbers are text, and positions label all where one query has no question."""
    for lines in (queries(4, unnamed=2), [one | {"question": 7} for one in queries(2)]):
        path = files(lines)
        with warnings.catch_warnings(record=True, action="always") as caught:
            at_once = evaluate_file(path, **OPTIONS)
        with warnings.catch_warnings(record=True, action="always") as in_chunks:
            streamed = evaluate_file(path, per_query=rows, **OPTIONS)
        assert at_once.labels == streamed.labels
        assert [str(one.message) for one in caught] == [str(one.message) for one in in_chunks]


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ([{"actual": ["a"], "predicted": ["a"]}, {"actual": 7, "predicted": ["b"]}], {}),
        ([{"actual": ["a"], "predicted": ["a"]}, {"actual": [], "predicted": ["b"]}], {}),
        ([{"actual": ["a"], "predicted": ["a"]}], {"question_field": "q"}),
        ([{"actual": ["a"], "predicted": ["a"]}], {"metrics": ["bpref"]}),
        ([{"actual": ["a"], "predicted": [{"page_content": "a"}]}], {"matcher": "id"}),
        ([{"question": "When?", "actual": ["a"], "predicted": ["a"]},
          {"actual": ["a"], "predicted": ["a"]}],
         {"matcher": JudgeMatcher(lambda question, actual, predicted: True, version="1")}),
    ],
    ids=["no list", "no ground truth", "no field", "nobody judged", "no id", "no question"],
)  # fmt: skip
def test_a_small_file_is_refused_as_in_chunks(files, lines, options):
    """With the same error, of the same place."""
    path, told = files(lines), []
    for size in (None, 100):
        with pytest.raises(Refusal) as caught:
            evaluate_file(path, chunk_size=size, **options)
        told.append((caught.type, caught.value.argument, caught.value.place))
    assert told[0] == told[1]


# --- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["rows.csv", "rows.parquet"])
def test_one_query_without_a_question_labels_all_by_position(tmp_path, files, output):
    """With the words of the reader; the file keeps both."""
    path, rows = files(queries(9, unnamed=7)), tmp_path / "out" / output
    with pytest.warns(
        KragEvalWarning,
        match=r"1 of 9 queries in .*queries\.jsonl have no question \(the first is "
        r".*queries\.jsonl:8\), so all are labelled by position",
    ):
        result = evaluate_file(path, 1, per_query=rows, chunk_size=4, **OPTIONS)
    assert result.labels == list(range(9))
    table = pd.read_parquet(rows) if rows.suffix == ".parquet" else pd.read_csv(rows)
    assert table["position"].tolist() == list(range(9))
    assert table["query"].isna().tolist() == [number == 7 for number in range(9)]


def test_questions_nobody_has_are_positions_without_a_word(files, rows):
    """Unless they were asked for under a name of their own."""
    path = files([{name: one[name] for name in ("actual", "predicted")} for one in queries(3)])
    assert evaluate_file(path, per_query=rows, **OPTIONS).labels == [0, 1, 2]
    with pytest.raises(DatasetError, match=r'queries\.jsonl:1: no field "q" here'):
        evaluate_file(path, question_field="q")


@pytest.mark.parametrize("kind", WRITERS)
def test_other_names_of_fields(files, kind):
    """As in read_jsonl."""
    line = {"q": "when?", "truth": ["a"], "found": ["x", "a"]}
    path = files([line | ({"actual": []} if kind == "parquet" else {})], kind)
    named = {"question_field": "q", "actual_field": "truth", "predicted_field": "found"}
    for size in (None, 1):
        options = {"chunk_size": size, "tags": False, **named}
        assert evaluate_file(path, 2, metrics=["mrr"], **options).to_dict() == {"mrr@2": 0.5}


# --- what the result knows -------------------------------------------------------------------


def test_without_rows_the_result_knows_averages_and_says_how_to_have_more(tmp_path, files):
    """No file is written that nobody asked for."""
    path = files(5)
    result = evaluate_file(path, [1, 3, None], chunk_size=2, **OPTIONS)
    assert result.metrics.equals(in_one_piece(path).metrics)
    with pytest.raises(ValueError, match="per_query="):
        result.per_query(1)
    assert sorted(os.listdir(tmp_path)) == ["out", "queries.jsonl"]


def test_a_saved_result_finds_its_rows_beside_it(tmp_path, files, rows):
    """Moved together, they stay together; elsewhere, the message says where they were."""
    result = evaluate_file(files(5), per_query=rows, **OPTIONS)
    result.to_json(tmp_path / "out" / "result.json")
    (tmp_path / "out").rename(tmp_path / "b")
    read = EvaluationResult.from_json(tmp_path / "b" / "result.json")
    assert read.per_query(3)["recall"].notna().all()
    apart = read_back(read, tmp_path)
    assert apart.to_dict() == result.to_dict()
    with pytest.raises(ValueError, match=r"were written to .*b/rows\.csv; put that file beside"):
        apart.misses()
    if os.name != "nt":  # where it takes a right to make links
        (tmp_path / "link.json").symlink_to("b/result.json")
        linked = EvaluationResult.from_json(tmp_path / "link.json")
        assert linked.per_query(3)["recall"].notna().all()


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda text: text.replace(",1.0", ",0.5"), "do not add up to the averages"),
        (lambda text: "\n".join(text.split("\n")[:-2]) + "\n",
         "holds 4 rows, and this result is of 5 queries"),
        (lambda text: "a,b\n1,2\n", "cannot be read"),
        (None, "is not there; put it back, or evaluate again"),
        ("PAR1", "cannot be read"),
    ],
    ids=["changed", "shorter", "another table", "gone", "another format"],
)  # fmt: skip
def test_rows_that_are_not_those_of_the_result_are_refused(files, rows, spoil, match):
    """Gone, of another length, changed, or no such file at all."""
    rows = rows.with_suffix(".parquet") if spoil == "PAR1" else rows
    result = evaluate_file(files(5), 3, per_query=rows, **OPTIONS)
    if spoil is None:
        rows.unlink()
    else:
        text = spoil if isinstance(spoil, str) else spoil(rows.read_text("utf-8"))
        rows.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=match):
        result.per_query()


def test_digests_that_are_none_are_refused(files, rows):
    """A file that was changed decides nothing."""
    result = evaluate_file(files(5), 3, per_query=rows, **OPTIONS)
    table = pd.read_csv(rows, dtype=str, keep_default_na=False)
    table.assign(ground_truth_digest="x").to_csv(rows, index=False)
    with pytest.raises(ValueError, match="digests of the ground truth are not one per query"):
        _ = result.rows.digests


@unretrieved
def test_a_file_of_rows_cannot_fill_the_memory(files, rows):
    """A saved result and its rows may come from anybody: a text stored once is one text."""
    rows = rows.with_suffix(".parquet")
    path = files([{"question": str(n), "actual": ["a"], "predicted": []} for n in range(600)])
    result = evaluate_file(path, 1, per_query=rows)
    frame = pd.read_parquet(rows)
    frame["query"] = pd.Categorical(["x" * 500_000] * 600)
    frame.to_parquet(rows, compression="zstd")
    assert rows.stat().st_size < 50_000
    assert len({id(label) for label in result.labels}) == 1


@unretrieved
def test_rows_out_of_proportion_to_their_file_are_refused(files, rows):
    """Three million rows that are all alike take some hundred bytes."""
    rows = rows.with_suffix(".parquet")
    path = files([{"question": "x", "actual": ["a"], "predicted": []}])
    result = evaluate_file(path, 1, per_query=rows)
    pd.DataFrame({"query": pd.Categorical.from_codes([0] * 3_000_000, ["x"])}).to_parquet(rows)
    with pytest.raises(ValueError, match=r"rows\.parquet: .*out of proportion"):
        _ = result.labels


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")  # few queries
@pytest.mark.parametrize("conventions", [None, "trec"])
def test_f1_alone_can_be_read_back(files, rows, conventions):
    """What its mean is made of follows from the counts in the file."""
    path, options = files(9), {"conventions": conventions, "metrics": ["f1"]}
    result = evaluate_file(path, 3, per_query=rows, **OPTIONS, **options)
    expected = in_one_piece(path, 3, **options)
    assert_frame_equal(result.per_query(), expected.per_query())
    assert_frame_equal(*(one.confidence_intervals(n_resamples=100) for one in (result, expected)))


# --- what is said once -----------------------------------------------------------------------


def test_a_chunk_in_which_nothing_matches_is_no_news(files):
    """Nor is one without a query that counts; the whole decides."""
    lines = [{"actual": ["a"], "predicted": ["x"]}, {"actual": [], "predicted": []},
             {"actual": ["b"], "predicted": ["b"]}]  # fmt: skip
    options = {"chunk_size": 1, "no_ground_truth": "skip"}
    result = evaluate_file(files(lines), 1, metrics=["recall"], **options)
    assert (result["macro_recall@1"], result["rejection_rate@1"]) == (0.5, 1)
    with pytest.warns(KragEvalWarning, match="matched nothing at all in 2 queries"):
        evaluate_file(files(lines[:2]), 1, **options)


def test_what_is_counted_is_counted_through_all_chunks(files):
    """Blank documents and repeats."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        path = files([{"actual": ["a", "a"], "predicted": ["a", " "]}] * 3)
        evaluate_file(path, 1, chunk_size=1)
    assert [str(one.message)[:50] for one in caught] == [
        "0 ground-truth and 3 predicted documents have empt",
        "3 ground-truth documents repeat another document o",
    ]


# --- what is refused -------------------------------------------------------------------------


def refused(match, path, error=DatasetError, **options):
    """Check that the file is refused with that message."""
    with pytest.raises(error, match=match) as caught:
        evaluate_file(path, **options)
    return caught.value


def changed(number, **fields):
    """Return nine queries, one of them with other fields."""
    lines = queries(9)
    lines[number] |= fields
    return lines


@pytest.mark.parametrize(
    ("lines", "options", "match"),
    [
        (changed(6, actual=1), {"chunk_size": 2}, r"queries\.jsonl:7: actual must be a list"),
        (changed(6, actual=[]), {"chunk_size": 3},
         r"no ground truth for 1 of 3 queries of this part \('6는\?'\)"),
        (changed(1, actual=[{"page_content": "a", "metadata": {"grade": "high"}}]),
         {"grade_key": "grade"}, r"queries\.jsonl:2: actual\[0\]: a grade must be"),
        (changed(3, krag_eval={"evaluator": {"matcher": "id"}}), {"chunk_size": 2},
         r"queries\.jsonl:4: .*differs from that of the first query"),
        ([{"actual": ["a"], "predicted": ["a"]}, {"actual": ["a"], "predicted": [], "judged": []}],
         {}, r'queries\.jsonl:2: has a field "judged", and the first query has none'),
    ],
    ids=["no list", "no ground truth", "grade", "another evaluator", "judged later"],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_line(files, lines, options, match):
    """By the readers' own rules, in any chunk."""
    refused(match, files(lines), **options)


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"actual": [["a"]], "found": [["a"]]},
         'no field "predicted"; the fields are "actual", "found"'),
        ({"actual": [["a"], None], "predicted": [["a"], ["b"]]},
         r"a\.parquet: row 1 \(from 0\): actual must be a list of documents, got nothing"),
        (None, "cannot be read as Parquet"),
    ],
)  # fmt: skip
def test_a_parquet_file_without_a_column_or_with_another_kind_in_it(tmp_path, columns, match):
    """The columns there are, or the row."""
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and no more")
    if columns is not None:
        pd.DataFrame(columns).to_parquet(path)
    refused(match, path)


def test_directories_of_other_things_are_refused(tmp_path):
    """Of nothing, of two kinds, of directories, of files that hold no queries."""
    folder = tmp_path / "in"
    folder.mkdir()
    refused("holds nothing to read", folder)
    write_jsonl(folder / "a.jsonl", queries(1))
    (folder / "b").mkdir()
    refused(r"holds b", folder)
    (folder / "b").rmdir()
    (folder / "notes.txt").touch()
    refused(r"holds notes\.txt; expected files named", folder)
    (folder / "notes.txt").unlink()
    write_parquet(folder / "b.parquet", queries(1))
    refused(r"two kinds \(a\.jsonl and b\.parquet\)", folder)


def test_files_that_cannot_be_streamed_are_refused(tmp_path):
    """A pipe, and a name that is none."""
    refused("NUL", str(tmp_path / "a\0b"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused("is not a regular file, and can be read only once", tmp_path / "pipe")


def test_a_line_without_end_is_refused_in_a_compressed_file_of_any_length(tmp_path):
    """What is bounded is a line, as memory is; not the file."""
    path = tmp_path / "queries.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"actual": ["a"], "predicted": ["a"]}\n' * 1000))
    assert evaluate_file(path, 1, max_bytes=4_000).n_queries == 1000
    path.write_bytes(gzip.compress(b" " * 10_000_000))
    refused(r"queries\.jsonl\.gz:1: the line is longer than 1,000 bytes", path, max_bytes=4_000)


def test_an_output_among_the_input_is_refused(tmp_path):
    """It would be read the next time."""
    path = write_parquet(tmp_path / "a.parquet", queries(1))
    refused("among the files", tmp_path, ValueError, per_query=tmp_path / "rows.parquet")
    refused("among the files", path, ValueError, per_query=path)


def test_a_missing_pyarrow_is_named_with_the_remedy(tmp_path, files, monkeypatch):
    """Before anything is evaluated; one that does not fit is not called missing.

    As version 26 says it beside numpy 1; installing it again would change nothing.
    """
    path, options = files(2), {"per_query": tmp_path / "r.parquet", **OPTIONS}
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(re.escape(install_line("parquet")), path, ImportError, **options)
    (tmp_path / "pyarrow.py").write_text("raise ImportError('pyarrow requires NumPy 2.0')", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyarrow")
    error = refused(r"pyarrow requires NumPy 2\.0", path, MissingPackage, **options)
    assert install_line("parquet") not in str(error)


# --- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_a_bar_goes_to_the_end(files, capsys, kind):
    """In bytes or in queries; by default none where nobody looks."""
    path = files(20, kind)
    evaluate_file(path, chunk_size=5, **OPTIONS)
    assert capsys.readouterr().err == ""
    evaluate_file(path, chunk_size=5, progress=True, **OPTIONS)
    assert capsys.readouterr().err.rpartition("\r")[2].startswith("evaluating: 100%")


# --- going on --------------------------------------------------------------------------------


class Killed(BaseException):
    """What a kill looks like to the code that is killed."""


def killed(*_):
    raise Killed


def interrupted(path, output, after, monkeypatch, **options):
    """Begin a run and stop it when so many chunks are kept."""
    add = RunState.add

    def stopping(self, rows, progress):
        (killed if progress.n_parts > after else add)(self, rows, progress)

    options = {"per_query": output, "chunk_size": 2, **OPTIONS, **options}
    with monkeypatch.context() as patched:
        patched.setattr(RunState, "add", stopping)
        with pytest.raises(Killed):
            evaluate_file(path, **options)


@pytest.mark.parametrize("output", ["rows.parquet", "rows.csv"])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_run_goes_on_where_it_was(tmp_path, files, monkeypatch, output, kind):
    """Nothing is evaluated twice, even with chunks of another size; the state goes in the end."""
    lines, rows = queries(20, unnamed=3), tmp_path / "out" / output
    path = files(lines, kind)
    interrupted(path, rows, 3, monkeypatch, chunk_size=4)
    assert not rows.exists()
    seen = []
    watched(monkeypatch, seen.extend)
    with pytest.warns(KragEvalWarning, match="1 of 20 queries"):
        result = evaluate_file(path, per_query=rows, chunk_size=3, **OPTIONS)
    assert [record.question for record in seen] == [line["question"] for line in lines[12:]]
    with pytest.warns(KragEvalWarning, match="1 of 20 queries"):
        expected = in_one_piece(files(lines), (1, 3, 5, 10))
    for k in expected.k:
        assert_frame_equal(result.per_query(k), expected.per_query(k))
    assert list(result.rows.digests) == list(expected.rows.digests)
    assert os.listdir(rows.parent) == [output]


@pytest.mark.parametrize("moment", ["finish", "_delete"])
def test_a_run_killed_around_its_output_has_nothing_left_to_evaluate(
    files, rows, monkeypatch, moment
):
    """Before it appeared, or after it did and before the state was deleted."""
    path = files(9)
    with monkeypatch.context() as patched:
        patched.setattr(RunState, moment, killed)
        with pytest.raises(Killed):
            evaluate_file(path, per_query=rows, chunk_size=2, **OPTIONS)
    assert rows.exists() == (moment == "_delete")
    monkeypatch.setattr(files_module, "_evaluated", killed)
    assert len(evaluate_file(path, per_query=rows, **OPTIONS).per_query(1)) == 9


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({**OPTIONS, "k": 2}, "made for something else: settings.k="),
        ({}, "settings.criteria='partial', not 'all'"),
        ({**OPTIONS, "question_field": "q"}, "fields="),
        ({**OPTIONS, "metrics": ["recall"]}, "metrics.ndcg="),
        ({**OPTIONS, "tags": False}, "tags="),
        (OPTIONS, "other files, or changed since; .*resume=False"),
    ],
)
def test_a_run_over_other_files_or_with_other_settings_is_not_gone_on_with(
    files, rows, monkeypatch, options, match
):
    """The message names what differs, and what to do; resume=False starts anew."""
    path = files(9)
    interrupted(path, rows, 1, monkeypatch)
    if options is OPTIONS:
        files(10)
    refused(match, path, ValueError, per_query=rows, **options)
    if options is OPTIONS:
        assert evaluate_file(path, resume=False, per_query=rows, **options).n_queries == 10


def test_the_progress_is_in_the_format_of_version_0_1(files, rows, monkeypatch):
    """So that a run begun there is resumed here; what is damaged, or of another, is refused."""
    path, state = files(9), rows.with_name("rows.csv.partial")
    interrupted(path, rows, 2, monkeypatch)
    kept = (state / "progress.json").read_text()
    content = json.loads(kept)
    assert (content["format"], content["format_version"]) == ("krag_eval.progress", 1)
    assert list(content) == ["format", "format_version", "run", "progress"]
    assert list(content["run"]) == ["files", "fields", "settings", "metrics"]
    for text, match in (
        (kept[:50], "damaged"),
        *(
            (json.dumps({**content, "progress": {**content["progress"], **change}}), "damaged")
            for change in ({"cursor": 3}, {"cursor": ["x", 0]}, {"n_parts": "x"}, {"n_unnamed": []})
        ),
        (json.dumps({**content, "format_version": 2}), "in version 2 of"),
    ):
        (state / "progress.json").write_text(text)
        refused(match, path, ValueError, per_query=rows, **OPTIONS)
    (state / "progress.json").write_text(kept)
    (state / "part-000001.csv").unlink()
    missing = r"part-000001\.csv is missing; pass resume=False"
    refused(missing, path, ValueError, per_query=rows, **OPTIONS)
    assert evaluate_file(path, per_query=rows, resume=False, **OPTIONS).n_queries == 9


def test_what_is_kept_is_said_and_nothing_is_left_of_nothing(files, rows):
    """A bad line in the first chunk leaves no state; in a later one, a note says where it is."""
    path, options = files(changed(7, actual=1)), {"per_query": rows, **OPTIONS}
    refused(r"queries\.jsonl:8", path, **options)
    assert os.listdir(rows.parent) == []
    error = refused(r"queries\.jsonl:8", path, chunk_size=3, **options)
    kept = rows.with_name("rows.csv.partial")
    assert error.__notes__ == [f"What is done is kept in {kept}; the same call resumes there."]


def test_equals_signs_in_a_path_are_no_columns(tmp_path, files):
    """As engines name the directories of their partitions."""
    (tmp_path / "run=1").mkdir()
    rows = tmp_path / "run=1" / "rows.parquet"
    result = evaluate_file(files(9), 3, per_query=rows, chunk_size=4, **OPTIONS)
    assert "run" not in pd.read_parquet(str(rows), partitioning=None)
    assert len(result.per_query()) == 9


@pytest.mark.parametrize("resume", [True, False])
def test_a_directory_of_that_name_that_is_not_ours_is_left_alone(files, rows, resume):
    """Nothing in it is touched."""
    mine = rows.with_name("rows.csv.partial")
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    refused("holds something else", files(2), ValueError, per_query=rows, resume=resume)
    assert os.listdir(mine) == ["thesis.txt"]


def test_two_runs_cannot_write_to_one_output(files, rows):
    """The second is refused, and the first goes on."""
    with RunState(rows, {}, resume=True):
        refused("is in use by another run", files(2), OSError, per_query=rows, **OPTIONS)


def test_a_file_that_changes_while_it_is_read_is_refused(files, monkeypatch):
    """Its beginning may be of one version and its end of another."""
    path = files(9)

    def meanwhile(_chunk):
        with open(path, "a") as file:
            file.write("\n")

    watched(monkeypatch, meanwhile)
    refused("changed while it was read", path, chunk_size=2, **OPTIONS)


# --- other formats ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run.csv.gz", "run.tsv", "run.json"])
def test_any_format_is_read_in_chunks(tmp_path, rows, name):
    """CSV, TSV and JSON arrays too, with the same values."""
    frame = pd.DataFrame([{"question": f"Q{n}", "actual": "['a']", "predicted": f"['{p}', 'a']"}
                          for n, p in enumerate("abc")])  # fmt: skip
    if name == "run.json":
        frame.to_json(tmp_path / name, orient="records")
    else:
        frame.to_csv(tmp_path / name, index=False, sep="\t" if name == "run.tsv" else ",")
    result = evaluate_file(tmp_path / name, 1, per_query=rows, chunk_size=2)
    assert result.per_query(1)["recall"].tolist() == [1, 0, 0]


def test_json_lines_may_be_named_json(tmp_path):
    """The first character tells them from an array."""
    path = write_jsonl(tmp_path / "queries.json", queries(4))
    assert evaluate_file(path, **OPTIONS).n_queries == 4
