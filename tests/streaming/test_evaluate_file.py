"""Files in chunks: the numbers of the whole file, rows as they come, bad input named."""

from __future__ import annotations

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
from stream_samples import queries, write_jsonl, write_parquet

from krag_eval import EvaluationResult, KragEvalWarning, compare, evaluate_file
from krag_eval._install import install_line
from krag_eval.datasets import DatasetError, load_dataset, read_jsonl
from krag_eval.errors import MissingPackage
from krag_eval.streaming import files as files_module
from krag_eval.streaming.files import RunState

OPTIONS = {"grade_key": "grade", "matching_criteria": "partial"}


def whole(lines, tmp_path, k=(1, 3, None), **options):
    """Return the result of the same queries, read and evaluated in one piece."""
    path = write_jsonl(tmp_path / "whole.jsonl", lines)
    return read_jsonl(path).evaluator(**OPTIONS, **options).evaluate(k)


# --- the same numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["rows.parquet", "rows.csv"])
@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_everything_is_as_of_the_whole_file(tmp_path, output, chunk_size):
    """Averages, signature, rows, misses, statuses, intervals, whatever the size of the chunks."""
    lines = queries(60)
    expected = whole(lines, tmp_path)
    path = write_jsonl(tmp_path / "queries.jsonl.gz", lines)
    os.mkdir(tmp_path / "out")
    result = evaluate_file(
        path, [1, 3, None], per_query=tmp_path / "out" / output, chunk_size=chunk_size, **OPTIONS
    )
    assert result.to_dict() == expected.to_dict()
    assert result.signature == expected.signature
    assert result.labels == expected.labels
    for k in expected.k:
        assert_frame_equal(result.per_query(k), expected.per_query(k))
    # What pairs tell is only known where they were kept.
    kept = expected.misses().drop(columns=["missed", "similarity", "rank"])
    assert_frame_equal(result.misses(), kept)
    pd.testing.assert_series_equal(result.statuses(3), expected.statuses(3))
    assert_frame_equal(
        result.confidence_intervals(n_resamples=200), expected.confidence_intervals(n_resamples=200)
    )
    assert os.listdir(tmp_path / "out") == [output]
    assert result == expected


def test_formulas_and_line_ends_in_questions_come_back_from_csv(tmp_path):
    """Spreadsheets see no formula; the result reads the questions as they were asked."""
    asked = ["=1+1", "'=1", "a;=b", "two\rlines", 'say "x", y', "-5", "When?"]
    lines = [{"question": one, "actual": ["a"], "predicted": ["a"]} for one in asked]
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    os.mkdir(tmp_path / "out")
    result = evaluate_file(path, 1, per_query=tmp_path / "out" / "rows.csv", chunk_size=2)
    assert result.labels == asked
    with open(tmp_path / "out" / "rows.csv", encoding="utf-8", newline="") as file:
        written = [row[0] for row in csv.reader(file)]
    assert written == ["query", "'=1+1", "''=1", "a;'=b", *asked[3:]]


@pytest.mark.filterwarnings("ignore:Nothing was retrieved")
def test_rows_written_before_texts_were_shielded_are_read_as_they_are(tmp_path):
    """Version 0.1.0 wrote no quotes around the first name."""
    path = write_jsonl(tmp_path / "q.jsonl", [{"question": "x", "actual": ["a"], "predicted": []}])
    os.mkdir(tmp_path / "out")
    rows = tmp_path / "out" / "rows.csv"
    result = evaluate_file(path, 1, per_query=rows)
    rows.write_text(rows.read_text().replace('"query"', "query").replace("\nx,", "\n'=x,"))
    assert result.labels == ["'=x"]


def test_parquet_is_read_as_json_lines_are(tmp_path):
    """Texts, records with fields that are null, alternatives; from one row group or several."""
    lines = queries(40)
    expected = whole(lines, tmp_path).to_dict()
    for number, size in enumerate((5, 1000)):
        path = write_parquet(tmp_path / f"{number}.parquet", lines, row_group_size=size)
        assert evaluate_file(path, [1, 3, None], chunk_size=7, **OPTIONS).to_dict() == expected


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path):
    """Chunks go on over the ends of files; hidden files are passed over."""
    lines = queries(30)
    folder = tmp_path / "in"
    folder.mkdir()
    write_jsonl(folder / "b.jsonl.gz", lines[11:12])
    write_jsonl(folder / "c.ndjson", lines[12:])
    write_jsonl(folder / "a.jsonl", lines[:11])
    (folder / "_SUCCESS").touch()
    (folder / ".c.crc").write_bytes(b"\0")
    result = evaluate_file(folder, 3, per_query=tmp_path / "rows.csv", chunk_size=5, **OPTIONS)
    assert_frame_equal(result.per_query(), whole(lines, tmp_path, 3).per_query())


def test_processes_change_no_digit(tmp_path):
    """n_jobs, for every chunk."""
    lines = queries(12)
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    options = {"matcher": "rouge1", "threshold": 1.0}
    result = evaluate_file(path, [1, 3, None], chunk_size=5, n_jobs=2, **OPTIONS, **options)
    assert result.to_dict() == whole(lines, tmp_path, **options).to_dict()


def test_long_texts_make_chunks_shorter(tmp_path, monkeypatch):
    """Memory is bounded by what texts weigh, too."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(10))
    monkeypatch.setattr(files_module, "_MOST_WEIGHT", 100)
    sizes = []
    evaluated = files_module._evaluated
    monkeypatch.setattr(
        files_module,
        "_evaluated",
        lambda plan, *rest: sizes.append(len(rest[0])) or evaluated(plan, *rest),
    )
    evaluate_file(path)
    assert sum(sizes) == 10
    assert max(sizes) < 3


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_a_saved_data_set_is_evaluated_as_it_says(tmp_path, ending):
    """Its labels and its defaults, which options go before."""
    dataset = read_jsonl(write_jsonl(tmp_path / "queries.jsonl", queries(9)))
    dataset = replace(
        dataset,
        queries=[f"id{number}" for number in range(9)],
        defaults={"matcher": "contains", "grade_key": "grade"},
    )
    path = tmp_path / f"saved.{ending}"
    dataset.save(path)
    result = evaluate_file(path, 3, chunk_size=4, per_query=tmp_path / "rows.csv")
    expected = load_dataset(path).evaluator().evaluate(3)
    assert result.signature == expected.signature
    assert_frame_equal(result.per_query(), expected.per_query())
    assert "matcher=text" in evaluate_file(path, matcher="text").signature


def test_queries_saved_to_be_evaluated_differently_are_refused(tmp_path):
    """Wherever the other kind begins."""
    lines = queries(5)
    for number, line in enumerate(lines):
        line["krag_eval"] = {"evaluator": {"matcher": "id" if number == 3 else "text"}}
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    refused(r"queries\.jsonl:4: .*differs from that of the first query", path, chunk_size=2)


def test_results_with_rows_in_files_can_be_compared(tmp_path):
    """Pair by pair, with the numbers of a comparison in memory."""
    lines = queries(40)
    paths = [write_jsonl(tmp_path / "a.jsonl", lines)]
    for line in lines[:20]:
        line["predicted"].reverse()
    paths.append(write_jsonl(tmp_path / "b.jsonl", lines))
    os.mkdir(tmp_path / "out")
    streamed = {
        path.stem: evaluate_file(path, 3, per_query=tmp_path / "out" / f"{path.stem}.csv")
        for path in paths
    }
    in_memory = {path.stem: read_jsonl(path).evaluator().evaluate(3) for path in paths}
    sampling = {"metric": ["ndcg@3", "mrr@3"], "n_resamples": 200}
    ours, theirs = (compare(results, **sampling) for results in (streamed, in_memory))
    assert_frame_equal(ours.table, theirs.table)


@pytest.mark.parametrize("output", ["rows.csv", "rows.parquet"])
def test_rows_in_files_know_what_the_ground_truth_was(tmp_path, output):
    """So that a run over other ground truth is refused, also when it was saved meanwhile."""
    lines = queries(8)
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    expected = read_jsonl(path).evaluator().evaluate(3)
    result = evaluate_file(path, 3, per_query=tmp_path / output, chunk_size=3)
    assert list(result.rows.digests) == list(expected.rows.digests)
    result.to_json(tmp_path / "result.json")
    saved = EvaluationResult.from_json(tmp_path / "result.json")
    lines[5]["actual"][0] = "something else"
    other = read_jsonl(write_jsonl(tmp_path / "other.jsonl", lines)).evaluator().evaluate(3)
    with pytest.raises(ValueError, match="ground truth: '5"):
        compare({"saved": saved, "other": other}, "ndcg@3")


@pytest.mark.parametrize("output", ["rows.csv", "rows.parquet"])
def test_rows_of_0_1_are_compared_with_a_warning(tmp_path, output):
    """They have no such column."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(40))
    rows = tmp_path / output
    result = evaluate_file(path, 3, per_query=rows)
    # As text: pandas before 3.1 rounds the numbers it reads.
    as_text = {"dtype": str, "keep_default_na": False}
    table = pd.read_csv(rows, **as_text) if rows.suffix == ".csv" else pd.read_parquet(rows)
    table = table.drop(columns="ground_truth_digest")
    table.to_csv(rows, index=False) if rows.suffix == ".csv" else table.to_parquet(rows)
    with pytest.warns(KragEvalWarning, match=r"could not be checked .*\('old'\)"):
        compare({"old": result, "new": read_jsonl(path).evaluator().evaluate(3)}, "ndcg@3")


def test_digests_that_are_none_are_refused(tmp_path):
    """A file that was changed decides nothing."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(5))
    rows = tmp_path / "rows.csv"
    result = evaluate_file(path, 3, per_query=rows)
    table = pd.read_csv(rows, dtype=str, keep_default_na=False)
    table.assign(ground_truth_digest="x").to_csv(rows, index=False)
    with pytest.raises(ValueError, match="digests of the ground truth are not one per query"):
        _ = result.rows.digests


# --- labels ----------------------------------------------------------------------------------


def test_one_query_without_a_question_labels_all_by_position(tmp_path):
    """With the words of the reader; the file keeps both."""
    lines = queries(9, unnamed=7)
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    for output in ("rows.csv", "rows.parquet"):
        with pytest.warns(
            KragEvalWarning,
            match=r"1 of 9 queries in .*queries\.jsonl have no question \(the first is "
            r".*queries\.jsonl:8\), so all are labelled by position",
        ):
            result = evaluate_file(path, 1, per_query=tmp_path / output, chunk_size=4, **OPTIONS)
        assert result.labels == list(range(9))
    rows = pd.read_parquet(tmp_path / "rows.parquet")
    assert rows["position"].tolist() == list(range(9))
    assert rows["query"].isna().tolist() == [number == 7 for number in range(9)]


def test_questions_nobody_has_are_positions_without_a_word(tmp_path):
    """Unless they were asked for under a name of their own."""
    lines = [{name: one[name] for name in ("actual", "predicted")} for one in queries(3)]
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    assert evaluate_file(path, per_query=tmp_path / "rows.csv", **OPTIONS).labels == [0, 1, 2]
    with pytest.raises(DatasetError, match=r'queries\.jsonl:1: no field "q" here'):
        evaluate_file(path, question_field="q")


def test_other_names_of_fields(tmp_path):
    """As in read_jsonl."""
    line = {"q": "when?", "truth": ["a"], "found": ["x", "a"]}
    for path in (
        write_jsonl(tmp_path / "queries.jsonl", [line]),
        write_parquet(tmp_path / "queries.parquet", [line | {"actual": []}]),
    ):
        result = evaluate_file(
            path,
            2,
            metrics=["mrr"],
            question_field="q",
            actual_field="truth",
            predicted_field="found",
        )
        assert result.to_dict() == {"mrr@2": 0.5}


# --- what the result knows -------------------------------------------------------------------


def test_without_rows_the_result_knows_averages_and_says_how_to_have_more(tmp_path):
    """No file is written that nobody asked for."""
    lines = queries(5)
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    result = evaluate_file(path, [1, 3, None], **OPTIONS)
    assert result.metrics.equals(whole(lines, tmp_path).metrics)
    with pytest.raises(ValueError, match="per_query="):
        result.per_query(1)
    assert sorted(os.listdir(tmp_path)) == ["queries.jsonl", "whole.jsonl"]


def test_a_saved_result_finds_its_rows_beside_it(tmp_path):
    """Moved together, they stay together; elsewhere, the message says where they were."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(5))
    (tmp_path / "a").mkdir()
    result = evaluate_file(path, per_query=tmp_path / "a" / "rows.csv", **OPTIONS)
    result.to_json(tmp_path / "a" / "result.json")
    (tmp_path / "a").rename(tmp_path / "b")
    read = EvaluationResult.from_json(tmp_path / "b" / "result.json")
    assert read.per_query(3)["recall"].notna().all()
    read.to_json(tmp_path / "result.json")
    apart = EvaluationResult.from_json(tmp_path / "result.json")
    assert apart.to_dict() == result.to_dict()
    with pytest.raises(ValueError, match=r"were written to .*b/rows\.csv; put that file beside"):
        apart.misses()


@pytest.mark.skipif(os.name == "nt", reason="Windows needs a right to make links")
def test_a_link_leads_to_the_rows_beside_the_result(tmp_path):
    """As writing through it puts them there."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(5))
    result = evaluate_file(path, per_query=tmp_path / "rows.csv", **OPTIONS)
    result.to_json(tmp_path / "result.json")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link.json").symlink_to("../result.json")
    read = EvaluationResult.from_json(tmp_path / "sub" / "link.json")
    assert read.per_query(3)["recall"].notna().all()


def test_rows_that_are_not_those_of_the_result_are_refused(tmp_path):
    """Gone, of another length, changed, or no such file at all."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(5))

    def made(name="rows.csv"):
        return evaluate_file(path, 3, per_query=tmp_path / name, **OPTIONS)

    rows = tmp_path / "rows.csv"
    result = made()
    rows.write_text(rows.read_text("utf-8").replace(",1.0", ",0.5"), "utf-8")
    with pytest.raises(ValueError, match="do not add up to the averages"):
        result.per_query()
    result = made()
    rows.write_text("\n".join(rows.read_text("utf-8").split("\n")[:-2]) + "\n", "utf-8")
    with pytest.raises(ValueError, match="holds 4 rows, and this result is of 5 queries"):
        result.per_query()
    result = made()
    rows.write_text("a,b\n1,2\n", "utf-8")
    with pytest.raises(ValueError, match="cannot be read"):
        result.per_query()
    rows.unlink()
    with pytest.raises(ValueError, match="is not there; put it back, or evaluate again"):
        result.per_query()
    result = made("rows.parquet")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="cannot be read"):
        result.per_query()


@pytest.mark.filterwarnings("ignore:Nothing was retrieved")
def test_a_file_of_rows_cannot_fill_the_memory(tmp_path):
    """A saved result and its rows may come from anybody: a text stored once is one text."""
    lines = [{"question": str(number), "actual": ["a"], "predicted": []} for number in range(600)]
    path = write_jsonl(tmp_path / "q.jsonl", lines)
    rows = tmp_path / "out" / "rows.parquet"
    os.mkdir(rows.parent)
    result = evaluate_file(path, 1, per_query=rows)
    frame = pd.read_parquet(rows)
    frame["query"] = pd.Categorical(["x" * 5_000_000] * 600)
    frame.to_parquet(rows, compression="zstd")
    assert rows.stat().st_size < 50_000
    assert len({id(label) for label in result.labels}) == 1


@pytest.mark.filterwarnings("ignore:Nothing was retrieved")
def test_rows_out_of_proportion_to_their_file_are_refused(tmp_path):
    """Three million rows that are all alike take some hundred bytes."""
    path = write_jsonl(tmp_path / "q.jsonl", [{"question": "x", "actual": ["a"], "predicted": []}])
    rows = tmp_path / "out" / "rows.parquet"
    os.mkdir(rows.parent)
    result = evaluate_file(path, 1, per_query=rows)
    pd.DataFrame({"query": pd.Categorical.from_codes([0] * 3_000_000, ["x"])}).to_parquet(rows)
    with pytest.raises(ValueError, match=r"rows\.parquet: .*out of proportion"):
        _ = result.labels


def test_f1_alone_can_be_read_back(tmp_path):
    """What its mean is made of follows from the counts in the file."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    for conventions in (None, "trec"):
        options = {"conventions": conventions, **OPTIONS}
        result = evaluate_file(path, 3, metrics=["f1"], per_query=tmp_path / "rows.csv", **options)
        expected = read_jsonl(path).evaluator(**options).evaluate(3, metrics=["f1"])
        assert_frame_equal(result.per_query(), expected.per_query())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KragEvalWarning)  # few queries
            assert_frame_equal(
                result.confidence_intervals(n_resamples=100),
                expected.confidence_intervals(n_resamples=100),
            )


# --- what is said once -----------------------------------------------------------------------


def test_a_chunk_in_which_nothing_matches_is_no_news(tmp_path):
    """Nor is one without a query that counts; the whole decides."""
    lines = [
        {"actual": ["a"], "predicted": ["x"]},
        {"actual": [], "predicted": []},
        {"actual": ["b"], "predicted": ["b"]},
    ]
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    result = evaluate_file(path, 1, chunk_size=1, metrics=["recall"], no_ground_truth="skip")
    assert result.to_dict()["macro_recall@1"] == 0.5
    assert result.to_dict()["rejection_rate@1"] == 1.0
    write_jsonl(path, lines[:2])
    with pytest.warns(KragEvalWarning, match="matched nothing at all in 2 queries"):
        evaluate_file(path, 1, chunk_size=1, no_ground_truth="skip")


def test_what_is_counted_is_counted_through_all_chunks(tmp_path):
    """Blank documents and repeats."""
    lines = [{"actual": ["a", "a"], "predicted": ["a", " "]}] * 3
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate_file(path, 1, chunk_size=1)
    assert [str(one.message)[:50] for one in caught] == [
        "0 ground-truth and 3 predicted documents have empt",
        "3 ground-truth documents repeat another document o",
    ]


# --- what is refused -------------------------------------------------------------------------


def refused(match, path, error=DatasetError, **options):
    """Check that the file is refused with that message."""
    with pytest.raises(error, match=match):
        evaluate_file(path, **options)


def test_what_is_wrong_is_named_by_line_or_row(tmp_path):
    """By the readers' own rules, in any chunk."""
    lines = queries(9)
    lines[6]["actual"] = "one"
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    refused(r"queries\.jsonl:7: actual is plain text", path, chunk_size=2)
    good = queries(9)
    good[6]["actual"] = []
    path = write_jsonl(tmp_path / "queries.jsonl", good)
    refused(r"no ground truth for 1 of 3 queries of this part \('6는\?'\)", path, chunk_size=3)
    bad_grade = queries(3)
    bad_grade[1]["actual"] = [{"page_content": "a", "metadata": {"grade": -1}}]
    path = write_jsonl(tmp_path / "queries.jsonl", bad_grade)
    refused(r"queries\.jsonl:2: actual\[0\]: a grade must be", path, grade_key="grade")


def test_a_parquet_file_without_a_column_or_with_another_kind_in_it(tmp_path):
    """The columns there are, or the row."""
    pd.DataFrame({"actual": [["a"]], "found": [["a"]]}).to_parquet(tmp_path / "a.parquet")
    refused(r'no field "predicted"; the fields are "actual", "found"', tmp_path / "a.parquet")
    pd.DataFrame({"actual": [["a"], None], "predicted": [["a"], ["b"]]}).to_parquet(
        tmp_path / "b.parquet"
    )
    refused(
        r"b\.parquet: row 1 \(from 0\): actual must be a list of documents, got nothing",
        tmp_path / "b.parquet",
    )
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    refused("cannot be read as Parquet", tmp_path / "c.parquet")


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
    """None there, nothing in it, a pipe, a name that is none."""
    refused("no such file", tmp_path / "none.jsonl")
    refused("holds no queries", write_jsonl(tmp_path / "empty.jsonl", []))
    refused("NUL", str(tmp_path / "a\0b"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused("is not a regular file, and can be read only once", tmp_path / "pipe")


def test_a_line_without_end_is_refused_in_a_compressed_file_of_any_length(tmp_path):
    """What is bounded is a line, as memory is; not the file."""
    lines = gzip.compress(b'{"actual": ["a"], "predicted": ["a"]}\n' * 1000)
    path = tmp_path / "queries.jsonl.gz"
    path.write_bytes(lines)
    assert evaluate_file(path, 1, max_bytes=4_000).n_queries == 1000
    path.write_bytes(gzip.compress(b" " * 10_000_000))
    refused(r"queries\.jsonl\.gz:1: the line is longer than 1,000 bytes", path, max_bytes=4_000)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        (
            {"per_query": "rows.txt"},
            ValueError,
            r"ends in one of \.parquet, \.csv, got 'rows\.txt'",
        ),
        ({"per_query": "no/rows.csv"}, ValueError, "there is no directory"),
        ({"per_query": "."}, ValueError, "per_query must be the name"),
        ({"chunk_size": 0}, ValueError, "chunk_size must be a whole number of at least 1, got 0"),
        ({"chunk_size": True}, TypeError, "chunk_size must be a whole number"),
        ({"progress": "yes"}, TypeError, "progress must be True, False, or None"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"matcher": "rouge"}, ValueError, "matcher must be one of"),
        ({"k": 0}, ValueError, "k must be a whole number"),
        ({"queries": []}, TypeError, "queries"),
    ],
)
def test_options_are_checked_first(tmp_path, monkeypatch, options, error, match):
    """The message names the option."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "queries.jsonl", queries(1))
    refused(match, "queries.jsonl", error, **options)


def test_an_output_among_the_input_is_refused(tmp_path):
    """It would be read the next time."""
    write_parquet(tmp_path / "a.parquet", queries(1))
    refused("among the files", tmp_path, ValueError, per_query=tmp_path / "rows.parquet")
    path = tmp_path / "a.parquet"
    refused("among the files", path, ValueError, per_query=path)


def test_a_missing_pyarrow_is_named_with_the_remedy(tmp_path, monkeypatch):
    """Before anything is evaluated; CSV needs none."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(2))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(re.escape(install_line("parquet")), path, ImportError, per_query=tmp_path / "r.parquet")


def test_a_pyarrow_that_does_not_fit_is_not_called_missing(tmp_path, monkeypatch):
    """As version 26 says it beside numpy 1; installing it again would change nothing."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(2))
    (tmp_path / "pyarrow.py").write_text("raise ImportError('pyarrow requires NumPy 2.0')", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    with pytest.raises(MissingPackage, match=r"pyarrow requires NumPy 2\.0") as caught:
        evaluate_file(path, 1, per_query=tmp_path / "rows.parquet", **OPTIONS)
    assert install_line("parquet") not in str(caught.value)


# --- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_bar_goes_to_the_end(tmp_path, capsys, kind):
    """In bytes or in queries; by default none where nobody looks."""
    lines = queries(20)
    path = tmp_path / f"queries.{kind}"
    (write_jsonl if kind == "jsonl" else write_parquet)(path, lines)
    evaluate_file(path, chunk_size=5, **OPTIONS)
    assert capsys.readouterr().err == ""
    evaluate_file(path, chunk_size=5, progress=True, **OPTIONS)
    last = capsys.readouterr().err.rpartition("\r")[2]
    assert last.startswith("evaluating: 100%")


# --- going on --------------------------------------------------------------------------------


class Killed(BaseException):
    """What a kill looks like to the code that is killed."""


def interrupted(path, output, after, monkeypatch, **options):
    """Begin a run and stop it when so many chunks are kept."""
    add = RunState.add

    def stopping(self, rows, progress):
        if progress.n_parts > after:
            raise Killed
        add(self, rows, progress)

    with monkeypatch.context() as patched:
        patched.setattr(RunState, "add", stopping)
        with pytest.raises(Killed):
            evaluate_file(path, per_query=output, **OPTIONS, **options)


@pytest.mark.parametrize("output", ["rows.parquet", "rows.csv"])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, output, kind):
    """Nothing is evaluated twice, even with chunks of another size; the state goes in the end."""
    lines = queries(20, unnamed=3)
    path = tmp_path / f"queries.{kind}"
    (write_jsonl if kind == "jsonl" else write_parquet)(path, lines)
    rows = tmp_path / output
    interrupted(path, rows, 3, monkeypatch, chunk_size=4)
    assert not rows.exists()
    seen = []
    evaluated = files_module._evaluated
    monkeypatch.setattr(
        files_module,
        "_evaluated",
        lambda plan, *rest: seen.extend(rest[0]) or evaluated(plan, *rest),
    )
    with pytest.warns(KragEvalWarning, match="1 of 20 queries"):
        result = evaluate_file(path, per_query=rows, chunk_size=3, **OPTIONS)
    assert [record.question for record in seen] == [line["question"] for line in lines[12:]]
    with pytest.warns(KragEvalWarning, match="1 of 20 queries"):
        expected = whole(lines, tmp_path, (1, 3, 5, 10))
    for k in expected.k:
        assert_frame_equal(result.per_query(k), expected.per_query(k))
    assert list(result.rows.digests) == list(expected.rows.digests)
    assert not (tmp_path / f"{output}.partial").exists()


def test_a_run_killed_before_its_output_appeared_has_nothing_left_to_evaluate(
    tmp_path, monkeypatch
):
    """Or after it appeared, before the state was deleted."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    rows = tmp_path / "rows.csv"

    def killed(*_):
        raise Killed

    for moment in ("finish", "_delete"):
        with monkeypatch.context() as patched:
            patched.setattr(RunState, moment, killed)
            with pytest.raises(Killed):
                evaluate_file(path, per_query=rows, chunk_size=2, **OPTIONS)
        assert rows.exists() == (moment == "_delete")
        with monkeypatch.context() as patched:
            patched.setattr(files_module, "_evaluated", killed)
            result = evaluate_file(path, per_query=rows, **OPTIONS)
        assert len(result.per_query(1)) == 9
        rows.unlink()


def test_a_run_over_other_files_or_with_other_settings_is_not_gone_on_with(tmp_path, monkeypatch):
    """The message names what differs, and what to do; resume=False starts anew."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    rows = tmp_path / "rows.csv"
    interrupted(path, rows, 1, monkeypatch, chunk_size=2)
    again = {"per_query": rows, "chunk_size": 2}
    refused("made for something else: settings.k=", path, ValueError, **again, **OPTIONS, k=2)
    refused("settings.criteria='partial', not 'all'", path, ValueError, **again)
    refused("fields=", path, ValueError, **again, **OPTIONS, question_field="q")
    refused("metrics.ndcg=", path, ValueError, **again, **OPTIONS, metrics=["recall"])
    write_jsonl(path, queries(10))
    refused("other files, or changed since; .*resume=False", path, ValueError, **again, **OPTIONS)
    assert evaluate_file(path, resume=False, **again, **OPTIONS).n_queries == 10


def test_the_progress_is_in_the_format_of_version_0_1(tmp_path, monkeypatch):
    """So that a run begun there is resumed here."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    interrupted(path, tmp_path / "rows.csv", 2, monkeypatch, chunk_size=2)
    content = json.loads((tmp_path / "rows.csv.partial" / "progress.json").read_text())
    assert (content["format"], content["format_version"]) == ("krag_eval.progress", 1)
    assert list(content) == ["format", "format_version", "run", "progress"]
    assert list(content["run"]) == ["files", "fields", "settings", "metrics"]


def test_a_damaged_progress_is_refused(tmp_path, monkeypatch):
    """Cut, of another version, or with rows missing."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    rows, state = tmp_path / "rows.csv", tmp_path / "rows.csv.partial"
    interrupted(path, rows, 2, monkeypatch, chunk_size=2)
    kept = (state / "progress.json").read_text()
    content = json.loads(kept)
    content["format_version"] = 2
    for text, match in ((kept[:50], "damaged"), (json.dumps(content), "in version 2 of")):
        (state / "progress.json").write_text(text)
        refused(match, path, ValueError, per_query=rows, **OPTIONS)
    (state / "progress.json").write_text(kept)
    (state / "part-000001.csv").unlink()
    refused(r"part-000001\.csv is missing; pass resume=False", path, ValueError,
            per_query=rows, **OPTIONS)  # fmt: skip
    assert evaluate_file(path, per_query=rows, resume=False, **OPTIONS).n_queries == 9


def test_what_is_kept_is_said_and_nothing_is_left_of_nothing(tmp_path):
    """A bad line in the first chunk leaves no state; in a later one, a note says where it is."""
    lines = queries(9)
    lines[7]["actual"] = "one"
    path = write_jsonl(tmp_path / "queries.jsonl", lines)
    options = {"per_query": tmp_path / "rows.csv", **OPTIONS}
    refused(r"queries\.jsonl:8", path, **options)
    assert os.listdir(tmp_path) == ["queries.jsonl"]
    with pytest.raises(DatasetError, match=r"queries\.jsonl:8") as info:
        evaluate_file(path, chunk_size=3, **options)
    assert info.value.__notes__ == [
        f"What is done is kept in {tmp_path / 'rows.csv.partial'}; the same call resumes there."
    ]


def test_equals_signs_in_a_path_are_no_columns(tmp_path):
    """As engines name the directories of their partitions."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    (tmp_path / "run=1").mkdir()
    rows = tmp_path / "run=1" / "rows.parquet"
    result = evaluate_file(path, 3, per_query=rows, chunk_size=4, **OPTIONS)
    assert "run" not in pd.read_parquet(str(rows), partitioning=None)
    assert len(result.per_query()) == 9


def test_a_directory_of_that_name_that_is_not_ours_is_left_alone(tmp_path):
    """Nothing in it is touched."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(2))
    mine = tmp_path / "rows.csv.partial"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    for resume in (True, False):
        refused("holds something else", path, ValueError,
                per_query=tmp_path / "rows.csv", resume=resume)  # fmt: skip
    assert os.listdir(mine) == ["thesis.txt"]


def test_two_runs_cannot_write_to_one_output(tmp_path):
    """The second is refused, and the first goes on."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(2))
    rows = tmp_path / "rows.csv"
    with RunState(rows, {}, resume=True):
        refused("is in use by another run", path, OSError, per_query=rows, **OPTIONS)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """Its beginning may be of one version and its end of another."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(9))
    evaluated = files_module._evaluated

    def meanwhile(*args):
        with open(path, "a") as file:
            file.write("\n")
        return evaluated(*args)

    monkeypatch.setattr(files_module, "_evaluated", meanwhile)
    refused("changed while it was read", path, chunk_size=2, **OPTIONS)


def test_any_format_is_read_in_chunks(tmp_path):
    """CSV, TSV and JSON arrays too, with the same values."""
    frame = pd.DataFrame([{"question": f"Q{n}", "actual": "['a']", "predicted": f"['{p}', 'a']"}
                          for n, p in enumerate("abc")])  # fmt: skip
    frame.to_csv(tmp_path / "run.csv.gz", index=False)
    frame.to_csv(tmp_path / "run.tsv", index=False, sep="\t")
    frame.to_json(tmp_path / "run.json", orient="records")
    for name in ("run.csv.gz", "run.tsv", "run.json"):
        result = evaluate_file(tmp_path / name, 1, per_query=tmp_path / "rows.csv", chunk_size=2)
        assert result.per_query(1)["recall"].tolist() == [1, 0, 0]


def test_a_table_made_json_lines_goes_through_in_chunks(tmp_path):
    """As the refusal advises; its numbers are those of the table."""
    lines = [{"question": f"Q{i}", "actual": ["a", "b"], "predicted": ["a", "x"]} for i in range(3)]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(lines), "utf-8")
    dataset = load_dataset(path)
    dataset.save(tmp_path / "run.jsonl")
    found = evaluate_file(tmp_path / "run.jsonl", k=2, chunk_size=2)
    assert found.to_dict() == dataset.evaluator().evaluate(2).to_dict()


def test_json_lines_may_be_named_json(tmp_path):
    """The first character tells them from an array."""
    path = write_jsonl(tmp_path / "queries.json", queries(4))
    assert evaluate_file(path, **OPTIONS).n_queries == 4


@pytest.mark.parametrize("output", [None, "rows.csv"])
def test_an_explanation_is_refused_with_what_it_needs(tmp_path, output):
    """Rows in a file would not help, so they are not what is asked for."""
    path = write_jsonl(tmp_path / "queries.jsonl", queries(4))
    rows = None if output is None else tmp_path / output
    result = evaluate_file(path, per_query=rows, **OPTIONS)
    with pytest.raises(ValueError, match=r"holds no evidence .* with OfflineRetrievalEvaluator"):
        result.explain(0)
