"""Reading TREC's files: the order trec_eval gives, the topics it counts, and what is refused.

Expected orders and values are worked by hand from trec_eval's rules; where they are subtle,
pytrec_eval is asked as well.
"""

import gzip
import io
import json
from pathlib import Path

import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, strategies as st

from krag_eval import Conventions, KragEvalWarning
from krag_eval.datasets import Dataset, DatasetError, load_dataset, read_trec
from krag_eval.errors import Refusal

DATA = Path(__file__).parents[1] / "data"
QRELS = "1 0 a 1\n1 0 b 0\n2 0 c 1\n"
RUN = "1 Q0 a 1 0.5 x\n2 Q0 c 1 0.5 x\n"


def qrels(text: str) -> io.BytesIO:
    """Return judgements as an open file."""
    return io.BytesIO(text.encode())


run = qrels


def saved_as_ranx_does(path: Path, table: dict[str, dict[str, float]]) -> Path:
    """Write judgements or a run as ``Qrels.save`` and ``Run.save`` of ranx 0.3.21 do."""
    if path.suffix == ".json":
        path.write_text(json.dumps(table, indent=2))
        return path
    rows = [(topic, *pair) for topic, pairs in table.items() for pair in pairs.items()]
    frame = pd.DataFrame(rows, columns=["q_id", "doc_id", "score"])
    frame.to_parquet(path, index=False)
    return path


def ranked(text: str, **options: str) -> list[object]:
    """Return the documents of topic 1 in the order they are read."""
    return read_trec({"1": {"a": 1}}, run(text), **options).predicted[0]  # type: ignore[arg-type]


class TestOrder:
    """Score descending, then document descending; nothing else."""

    def test_by_score_whatever_the_rank_says(self) -> None:
        """The rank column is ignored, and so is the order of the lines."""
        text = "1 Q0 a 3 0.5 x\n1 Q0 b 2 1e1 x\n1 Q0 c 1 -2 x\n"
        assert ranked(text) == ["b", "a", "c"]

    def test_ties_by_document_descending(self) -> None:
        """Not by rank, not by line."""
        text = "1 Q0 b 1 7 x\n1 Q0 a 2 7.0 x\n1 Q0 c 3 7 x\n1 Q0 B 4 7 x\n1 Q0 a1 5 7 x\n"
        assert ranked(text) == ["c", "b", "a1", "a", "B"]

    def test_ties_beyond_ascii_are_ordered_by_their_bytes(self) -> None:
        """As C compares UTF-8: by code point, beyond the basic plane too."""
        documents = ["z", "é", "가", "\uffee", "😀"]
        text = "".join(f"1 Q0 {document} 1 7 x\n" for document in documents)
        assert ranked(text) == documents[::-1]
        assert documents == sorted(documents, key=str.encode)

    @pytest.mark.parametrize("score", ["inf", "-inf", "1e400", "+.5", "5.", "1E-400"])
    def test_whatever_c_reads_as_a_number(self, score: str) -> None:
        """Infinite scores have an order, too."""
        assert ranked(f"1 Q0 a 1 {score} x") == ["a"]

    def test_scores_equal_in_single_precision_are_tied_with_a_warning(self) -> None:
        """16777217 is not a single-precision number; trec_eval up to version 9 sees 16777216."""
        text = "1 Q0 a 1 16777217 x\n1 Q0 b 2 16777216 x\n"
        with pytest.warns(KragEvalWarning, match=r"in 1 of 1 topics \(the first is '1'\) scores d"):
            assert ranked(text) == ["b", "a"]
        found = pytrec_eval.RelevanceEvaluator({"1": {"a": 1}}, {"recip_rank"}).evaluate(
            pytrec_eval.parse_run(io.StringIO(text))
        )
        assert found["1"]["recip_rank"] == 0.5

    def test_double_precision_keeps_them_apart(self) -> None:
        """As trec_eval 10 does."""
        text = "1 Q0 a 1 16777217 x\n1 Q0 b 2 16777216 x\n"
        assert ranked(text, scores="double") == ["a", "b"]

    def test_no_warning_when_rounding_changes_no_order(self) -> None:
        """The documents would be in this order anyway."""
        assert ranked("1 Q0 b 1 16777217 x\n1 Q0 a 2 16777216 x\n") == ["b", "a"]


class TestGroundTruth:
    """What the judgements make of a document."""

    def test_positive_grades_are_ground_truth(self) -> None:
        """0 is judged and not relevant, -1 was not judged; neither is ground truth."""
        judged = qrels("1 0 a 0\n1 0 b 2\n1 0 c -1\n1 0 d 1\n")
        [items] = read_trec(judged, run("1 Q0 a 1 0.5 x")).actual
        assert [(item["id"], item["metadata"]["grade"]) for item in items] == [("b", 2), ("d", 1)]

    def test_grades_reach_ndcg(self) -> None:
        """Linear gain: DCG = 1 + 3 / log2(3), ideal = 3 + 1 / log2(3)."""
        dataset = read_trec(qrels("1 0 a 1\n1 0 b 3\n"), run("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n"))
        assert dataset.evaluator().calculate_ndcg()["ndcg"] == pytest.approx(0.796708, abs=1e-6)

    def test_without_grades_items_are_plain_ids(self) -> None:
        """Nothing but 0 and 1: no grade to look up, no warning that there is none."""
        dataset = read_trec(qrels(QRELS), run(RUN))
        assert dataset == Dataset(["1", "2"], [["a"], ["c"]], [["a"], ["c"]])
        assert "grade_key" not in dataset.defaults

    def test_relevance_level(self) -> None:
        """As trec_eval -l2: one of two documents is relevant."""
        judged = "1 0 a 1\n1 0 b 2\n"
        dataset = read_trec(qrels(judged), run("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n"), relevance_level=2)
        assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}
        assert dataset.evaluator().calculate_recall()["macro_recall"] == 1.0

    def test_a_topic_without_relevant_documents_counts_as_0(self) -> None:
        """As in trec_eval, which divides by all topics that have judgements."""
        dataset = read_trec(qrels("1 0 a 1\n2 0 c 0\n"), run(RUN))
        assert dataset.actual == [["a"], []]
        assert dataset.evaluator().calculate_map() == {"map": 0.5}

    def test_a_grade_may_be_written_with_zeros_after_the_point(self) -> None:
        """Some tools write 1.0 for 1."""
        assert read_trec(qrels("1 0 a 1.0"), run("1 Q0 a 1 2 x")).actual == [["a"]]


class TestTopics:
    """Which topics count."""

    def test_queries_are_labelled_by_topic_in_the_order_of_the_judgements(self) -> None:
        """However the run orders them."""
        dataset = read_trec(
            qrels("9 0 a 1\n10 0 a 1\n9 0 b 1\n"), run("10 Q0 a 1 1 x\n9 Q0 a 1 1 x")
        )
        assert dataset.evaluator().queries == ["9", "10"]

    def test_a_topic_missing_from_the_run_counts_as_nothing_retrieved(self) -> None:
        """As with trec_eval -c, and it is said."""
        expected = (
            r"1 of the 2 queries of <stream> are missing \(the first is '2'\) and count as nothing "
            r"retrieved, as with trec_eval -c; missing=\"skip\" leaves them out"
        )
        with pytest.warns(KragEvalWarning, match=expected):
            dataset = read_trec(qrels(QRELS), run("1 Q0 a 1 1 x"))
        assert dataset.predicted == [["a"], []]
        assert dataset.evaluator().calculate_map() == {"map": 0.5}

    def test_it_can_be_left_out(self) -> None:
        """As trec_eval does without -c; asked for, so not worth a warning."""
        dataset = read_trec(qrels(QRELS), run("1 Q0 a 1 1 x"), missing="skip")
        assert dataset.queries == ["1"]
        assert dataset.evaluator().calculate_map() == {"map": 1.0}

    def test_a_topic_without_judgements_is_left_out_with_a_warning(self) -> None:
        """As trec_eval does, but not silently."""
        with pytest.warns(KragEvalWarning, match="1 of 3 queries are not in <stream> .* '3'"):
            dataset = read_trec(qrels(QRELS), run(f"{RUN}3 Q0 a 1 1 x\n"))
        assert dataset.queries == ["1", "2"]

    def test_no_topic_in_common_is_a_mistake(self) -> None:
        """Judgements of one collection, a run of another."""
        with pytest.raises(DatasetError, match=r"none of its 1 queries \(such as 'q1'\) is among"):
            read_trec(qrels(QRELS), run("q1 Q0 a 1 1 x"))


class TestEvaluator:
    """What is ready to use."""

    def test_defaults_are_those_of_trec_eval(self) -> None:
        """Ids, trec_eval's conventions, success for hits, topics without relevance as 0."""
        evaluator = read_trec(DATA / "graded.qrels", DATA / "tied.run", missing="skip").evaluator()
        assert evaluator.matcher.name == "id"
        assert evaluator.conventions == Conventions.trec()
        assert evaluator.evaluate(k=1).settings["grades"] == "grade"
        assert evaluator.calculate_hit_rate(k=2) == {"hit_rate": 0.75}

    def test_all_of_them_can_be_changed(self) -> None:
        """With one relevant of one retrieved document, precision@5 is 1 in krag_eval's own way."""
        dataset = read_trec(qrels("1 0 a 1"), run("1 Q0 a 1 1 x"))
        own = dataset.evaluator(conventions=Conventions(), matching_criteria="all", queries=["Q"])
        assert own.calculate_precision(k=5)["macro_precision"] == 1.0
        assert dataset.evaluator().calculate_precision(k=5)["macro_precision"] == 0.2
        assert own.queries == ["Q"]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"missing": "none"}, "missing must be one of 'zero', 'skip', got 'none'"),
            ({"scores": "half"}, "scores must be one of 'single', 'double', got 'half'"),
            ({"relevance_level": 0}, "relevance_level must be a whole number of at least 1"),
            ({"relevance_level": True}, "relevance_level must be .* got True"),
            ({"relevance_level": 1.5}, "relevance_level must be .* got 1.5"),
        ],
    )
    def test_options_are_checked(self, options: dict[str, object], expected: str) -> None:
        """Each refusal says what is allowed and what came."""
        with pytest.raises(Refusal, match=expected):
            read_trec(qrels(QRELS), run(RUN), **options)  # type: ignore[arg-type]


class TestWhatIsRead:
    """Files as people have them, and what stands in for them."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace(" ", "\t").encode(),
            lambda text: text.replace(" ", "   ").replace("\n", "  \n").encode(),
            lambda text: text.replace("\n", "\r\n").encode(),
            lambda text: b"\xef\xbb\xbf" + text.encode(),
            lambda text: text.rstrip().encode(),
            lambda text: f"\n{text}\n \n".encode(),
            lambda text: f"# a comment\n{text}# another\n".encode(),
            lambda text: gzip.compress(text.encode()),
        ],
        ids=["tabs", "spaces", "CRLF", "BOM", "no last line end", "blank lines", "comments", "gz"],
    )
    def test_harmless_variation_is_accepted(self, tmp_path: Path, change: object) -> None:
        """Of both files; what is read is the same."""
        (tmp_path / "qrels").write_bytes(change(QRELS))  # type: ignore[operator]
        (tmp_path / "run").write_bytes(change(RUN))  # type: ignore[operator]
        dataset = read_trec(tmp_path / "qrels", tmp_path / "run")
        assert dataset == Dataset(["1", "2"], [["a"], ["c"]], [["a"], ["c"]])
        assert dataset.source == str(tmp_path / "run")

    def test_only_what_c_calls_white_space_parts_columns(self) -> None:
        """An ideographic space belongs to the id."""
        dataset = read_trec(qrels("1 0 가\u3000나 1"), run("1 Q0 가\u3000나 1 2 x"))
        assert dataset.predicted == [["가\u3000나"]]

    def test_mappings_stand_in_for_files(self) -> None:
        """As pytrec_eval and BEIR have them."""
        judged = {"1": {"a": 2, "b": 0}, "2": {"c": 1.0}}
        retrieved = {"1": {"a": 1, "b": 2.5}, "2": {}}
        dataset = read_trec(judged, retrieved)  # type: ignore[arg-type]
        assert dataset.predicted == [["b", "a"], []]
        assert dataset.source == "run"

    def test_a_run_may_be_a_json_object(self, tmp_path: Path) -> None:
        """BEIR's results, saved, on one line or on many."""
        (tmp_path / "run.json").write_text('\n{"1": {"a": 0.5,\n"b": 2}}')
        assert read_trec({"1": {"a": 1}}, tmp_path / "run.json").predicted == [["b", "a"]]

    def test_what_follows_the_tag_of_a_run_is_ignored(self) -> None:
        """Trec_eval's parse_results_line skips it, as in its own test/results.trunc.

        Its parse_qrels_line refuses more than four columns (see the refusals below).
        """
        text = "1\tQ0\ta\t99\t  0.5\tSTANDARD more junk at\n1 Q0 b 1 2 STANDARD end of lines.\n"
        assert ranked(text) == ["b", "a"]

    @pytest.mark.parametrize("ending", ["json", "parquet"])
    def test_files_of_ranx(self, tmp_path: Path, ending: str) -> None:
        """Judgements and a run as ranx saves them, which sorts them its own way."""
        judged = {"q1": {"d2": 2, "d1": 1}, "q2": {"d3": 0}}
        retrieved = {"q1": {"d1": 0.5, "d9": 0.25}, "q2": {"d3": 1.5}}
        dataset = read_trec(
            saved_as_ranx_does(tmp_path / f"qrels.{ending}", judged),  # type: ignore[arg-type]
            saved_as_ranx_does(tmp_path / f"run.{ending}", retrieved),
        )
        assert dataset == read_trec(judged, retrieved)
        assert dataset.predicted == [["d1", "d9"], ["d3"]]

    def test_an_open_parquet_file(self, tmp_path: Path) -> None:
        """Recognised by content, like every other kind."""
        path = saved_as_ranx_does(tmp_path / "run.parquet", {"1": {"a": 0.5}})
        with open(path, "rb") as file:
            assert read_trec({"1": {"a": 1}}, file).predicted == [["a"]]

    @pytest.mark.parametrize(
        ("columns", "expected"),
        [
            ({"q_id": ["1"], "doc_id": ["a"]}, "no column 'score'"),
            ({"q_id": ["1", "1"], "doc_id": ["a", "a"], "score": [1, 1]}, "row 1 .*second time"),
            ({"q_id": ["1"], "doc_id": ["a"], "score": [None]}, "row 0 .*score of 'a' must be"),
            ({"q_id": [1.5], "doc_id": ["a"], "score": [1]}, "row 0 .*q_id must be an id"),
        ],
    )
    def test_a_parquet_file_is_checked(
        self, tmp_path: Path, columns: dict[str, list[object]], expected: str
    ) -> None:
        """By row, from 0."""
        path = tmp_path / "run.parquet"
        pd.DataFrame(columns).to_parquet(path)
        with pytest.raises(DatasetError, match=f"^{path}: {expected}"):
            read_trec({"1": {"a": 1}}, path)

    @pytest.mark.parametrize("ending", ["json", "parquet"])
    def test_load_dataset_says_who_reads_them(self, tmp_path: Path, ending: str) -> None:
        """Judgements alone are no questions."""
        path = saved_as_ranx_does(tmp_path / f"qrels.{ending}", {"q1": {"d1": 1, "d2": 2}})
        with pytest.raises(DatasetError, match=r"read_trec, or krag-eval trec"):
            load_dataset(path)

    def test_judgements_may_be_beirs(self) -> None:
        """Recognised by their header; ids may hold spaces there."""
        judged = qrels("query-id\tcorpus-id\tscore\r\n1\ta b\t1\r\n1\tc\t0\r\n")
        assert read_trec(judged, {"1": {"a b": 1.0}}).actual == [["a b"]]


REFUSED_JUDGEMENTS = {
    "too few columns": (
        "1 0 a",
        "expected the 4 columns 'topic 0 document grade'.* got 3: '1 0 a'",
    ),
    "too many columns": ("1 0 a 1 x", "got 5: '1 0 a 1 x'"),
    "a run": ("1 Q0 a 1 0.5 x", "got 6"),
    "a long line": ("a " * 1000, "got 1000: .{55,70}…"),
    "a grade in words": ("1 0 a high", "the grade must be a whole number, got 'high'"),
    "half a grade": ("1 0 a 0.5", "the grade must be a whole number, got '0.5'"),
    "not a number": ("1 0 a nan", "whole number, got 'nan'"),
    "an exponent": ("1 0 a 1e1", "whole number, got '1e1'"),
    "digits of another script": ("1 0 a ２", "whole number, got '２'"),
    "a grade without end": ("1 0 a " + "9" * 5000, "whole number, got '9{40}'"),
    "a pair twice": ("1 0 z 1", "the document 'z' is listed a second time for the topic '1'"),
    "a pair twice, graded alike": ("1 0 z 0", "listed a second time"),
    "control characters": ("1\x00 0 a", r"got 3: '1\\x00 0 a'"),
}
REFUSED_RUNS = {
    "too few columns": (
        "1 Q0 a 1 0.5",
        "expected the 6 columns 'topic Q0 document rank score tag'",
    ),
    "judgements": ("1 0 a 1", "got 4"),
    "a long line": (f"1 Q0 a 1 {'9' * 5000}x x", "the score must be a number, got '9{40}'"),
    "a score in words": ("1 Q0 a 1 high x", "the score must be a number, got 'high'"),
    "NaN": ("1 Q0 a 1 NaN x", "the score must be a number, got 'NaN'"),
    "an underscore": ("1 Q0 a 1 1_0 x", "number, got '1_0'"),
    "digits of another script": ("1 Q0 a 1 １ x", "number, got '１'"),
    "a decimal comma": ("1 Q0 a 1 0,5 x", "number, got '0,5'"),
    "a document twice": (
        "1 Q0 z 2 0.1 x",
        "the document 'z' is listed a second time for the topic",
    ),
}


class TestRefusedLines:
    """One bad line refuses the file, by file and line; there is no partial result."""

    @pytest.mark.parametrize(
        ("content", "expected"), REFUSED_JUDGEMENTS.values(), ids=list(REFUSED_JUDGEMENTS)
    )
    def test_judgements(self, tmp_path: Path, content: str, expected: str) -> None:
        """Line 3 is wrong; the message fits on one line."""
        path = tmp_path / "qrels"
        path.write_text(f"1 0 z 1\n\n{content}\n2 0 a 1\n", "utf-8")
        with pytest.raises(DatasetError, match=f"^{path}:3: .*{expected}") as caught:
            read_trec(path, run(RUN))
        assert str(caught.value).isprintable()

    @pytest.mark.parametrize(("content", "expected"), REFUSED_RUNS.values(), ids=list(REFUSED_RUNS))
    def test_runs(self, tmp_path: Path, content: str, expected: str) -> None:
        """Line 3 is wrong; the message fits on one line."""
        path = tmp_path / "run"
        path.write_text(f"1 Q0 z 1 0.5 x\n# comment\n{content}\n2 Q0 a 1 1 x\n", "utf-8")
        with pytest.raises(DatasetError, match=f"^{path}:3: .*{expected}") as caught:
            read_trec(qrels(QRELS), path)
        assert str(caught.value).isprintable()

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("1 a 1", "expected the 3 columns 'query-id corpus-id score', separated by a tab"),
            ("1\ta\t1\t1", "got 4"),
            ("1\t\t1", "got 3"),
            ("1\ta\tyes", "the grade must be a whole number, got 'yes'"),
            ("1\tz\t1", "the document 'z' is listed a second time"),
        ],
    )
    def test_judgements_of_beir(self, tmp_path: Path, content: str, expected: str) -> None:
        """Line 3 is wrong."""
        path = tmp_path / "test.tsv"
        path.write_text(f"query-id\tcorpus-id\tscore\n1\tz\t1\n{content}\n")
        with pytest.raises(DatasetError, match=f"^{path}:3: .*{expected}"):
            read_trec(path, run(RUN))

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ('{"1": {"a": 0.5}', "run.json:1: not valid JSON"),
            ('{\n"1": {"a": }}', "run.json:2: not valid JSON: Expecting value .column 12"),
            ('{"1": {"a": NaN}}', "NaN is not a JSON value"),
            ('{"1": {"a": 1, "a": 2}}', "the key 'a' is given twice in one object"),
            ('{"1": {"a": 1}, "1": {}}', "the key '1' is given twice in one object"),
            ('{"1": ["a"]}', "expected an object of the form .* got a list for the topic '1'"),
            ('{"1": {"a": "0.5"}}', "topic '1': the score of 'a' must be a number, got a string"),
            ('{"1": {"a": true}}', "the score of 'a' must be a number, got a boolean"),
            ('{"1": {"a": null}}', "the score of 'a' must be a number, got null"),
            (
                '{"1": {"a": 1' + "0" * 400 + "}}",
                "the score of 'a' must be a number, got the number 10{39}",
            ),
            ("{}", "holds no retrieved documents"),
        ],
    )
    def test_runs_in_json(self, tmp_path: Path, content: str, expected: str) -> None:
        """The topic is named where a line says nothing."""
        path = tmp_path / "run.json"
        path.write_text(content)
        with pytest.raises(DatasetError, match=expected) as caught:
            read_trec(qrels(QRELS), path)
        assert str(caught.value).startswith(str(path))

    @pytest.mark.parametrize(
        ("judged", "expected"),
        [
            ({}, "qrels: holds no judgements"),
            ({1: {"a": 1}}, "with text as topics"),
            ({"1": {2: 1}}, "topic '1': a document id must be text, got 2"),
            ({"1": {"": 1}}, "topic '1': a document id must be text, got ''"),
            (
                {"1": {"a": 0.5}},
                "topic '1': .* must be a whole number, got the number 0.5",
            ),
            ({"1": {"a": "2"}}, "must be a whole number, got a string"),
            ({"1": {"a": True}}, "must be a whole number, got a boolean"),
            ({"1": {"a": float("nan")}}, "must be a whole number, got null"),
            ({"1": {"a": 10**400}}, "must be a whole number, got the number 10{39}"),
        ],
    )
    def test_mappings(self, judged: object, expected: str) -> None:
        """What is no line of a file is named by topic and document."""
        with pytest.raises(DatasetError, match=expected):
            read_trec(judged, run(RUN))  # type: ignore[arg-type]


class TestRefusedFiles:
    """Files that are not what was expected, as a whole."""

    @pytest.mark.parametrize(
        "content", [b"", b"\n \n", b"# only a comment\n", gzip.compress(b"", mtime=0)]
    )
    def test_nothing_in_it(self, tmp_path: Path, content: bytes) -> None:
        """An empty run is no run that retrieved nothing, and so for judgements."""
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(DatasetError, match="file: holds no retrieved documents"):
            read_trec(qrels(QRELS), path)
        with pytest.raises(DatasetError, match="file: holds no judgements"):
            read_trec(path, run(RUN))

    def test_judgements_with_a_header_only(self) -> None:
        """BEIR's table without rows."""
        with pytest.raises(DatasetError, match="holds no judgements"):
            read_trec(qrels("query-id\tcorpus-id\tscore\n"), run(RUN))

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (gzip.compress(b"\n" * 9000, mtime=0)[:-9], "the compressed data ends too early"),
            (b"PK\x03\x04rest", "file: is a zip archive"),
            (RUN.encode("utf-16"), "file: is UTF-16 text"),
        ],
        ids=["half a download", "an archive", "UTF-16"],
    )
    def test_junk(self, tmp_path: Path, content: bytes, expected: str) -> None:
        """Named for what it is where that can be told."""
        path = tmp_path / "file"
        path.write_bytes(content)
        for read in (lambda: read_trec(path, run(RUN)), lambda: read_trec(qrels(QRELS), path)):
            with pytest.raises(DatasetError, match=expected):
                read()

    def test_half_a_download_is_no_half_result(self) -> None:
        """Whole lines before the end do not make it a run; the line it broke at is named."""
        whole = "\n".join(f"1 Q0 d{number} 1 1 x" for number in range(999))
        cut = gzip.compress(whole.encode())[:-8]
        with pytest.raises(DatasetError, match="<stream>:999: the compressed data ends too early"):
            read_trec(qrels(QRELS), io.BytesIO(cut))

    def test_no_such_file(self, tmp_path: Path) -> None:
        """A missing file is named."""
        with pytest.raises(DatasetError, match="none: no such file"):
            read_trec(qrels(QRELS), tmp_path / "none")

    @given(st.binary(max_size=40))
    def test_any_bytes_are_read_or_refused(self, content: bytes) -> None:
        """Nothing but our own error comes out, whatever goes in."""
        with pytest.raises(DatasetError):
            read_trec(io.BytesIO(content), run(RUN))
        with pytest.raises(DatasetError):
            read_trec(qrels(QRELS), io.BytesIO(content))
