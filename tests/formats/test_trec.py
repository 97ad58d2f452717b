"""Reading TREC's files: the order trec_eval gives, the topics it counts, and what is refused.

Expected orders and values are worked by hand from trec_eval's rules; where they are subtle,
pytrec_eval is asked as well. What no line may hold is in ``golden/refused/datasets.py``.
"""

import gzip
import io

import pytest
import pytrec_eval
from hypothesis import given, strategies as st
from places import DATA

from krag_eval import Conventions, KragEvalWarning
from krag_eval.datasets import Dataset, DatasetError, read_trec

QRELS = "1 0 a 1\n1 0 b 0\n2 0 c 1\n"
RUN = "1 Q0 a 1 0.5 x\n2 Q0 c 1 0.5 x\n"


def qrels(text):
    """Return judgements as an open file."""
    return io.BytesIO(text.encode())


run = qrels


def ranked(text, **options):
    """Return the documents of topic 1 in the order they are read."""
    return read_trec({"1": {"a": 1}}, run(text), **options).predicted[0]


class TestOrder:
    """Score descending, then document descending; nothing else."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("1 Q0 a 3 0.5 x\n1 Q0 b 2 1e1 x\n1 Q0 c 1 -2 x\n", "b a c"),
            (
                "1 Q0 b 1 7 x\n1 Q0 a 2 7.0 x\n1 Q0 c 3 7 x\n1 Q0 B 4 7 x\n1 Q0 a1 5 7 x",
                "c b a1 a B",
            ),
            ("".join(f"1 Q0 {one} 1 7 x\n" for one in "zé가\uffee😀"), "😀 \uffee 가 é z"),
            # trec_eval's parse_results_line skips what follows the tag, as in test/results.trunc.
            ("1\tQ0\ta\t99\t  0.5\tSTANDARD more\n1 Q0 b 1 2 STANDARD end of lines.\n", "b a"),
            # Only what C calls white space parts columns.
            ("1 Q0 가\u3000나 1 2 x", "가\u3000나"),
            ("1 Q0 b 1 16777217 x\n1 Q0 a 2 16777216 x\n", "b a"),
            *(
                (f"1 Q0 a 1 {one} x", "a")
                for one in ("inf", "-inf", "1e400", "+.5", "5.", "1E-400")
            ),
        ],
    )
    def test_by_score_then_by_the_bytes_of_the_id(self, text, expected):
        """Neither ranks nor lines count; whatever C reads is a number, and orders ids as UTF-8."""
        assert ranked(text) == expected.split(" ")

    def test_scores_equal_in_single_precision_are_tied_with_a_warning(self):
        """16777217 is not a single-precision number; trec_eval up to version 9 sees 16777216."""
        text = "1 Q0 a 1 16777217 x\n1 Q0 b 2 16777216 x\n"
        with pytest.warns(KragEvalWarning, match=r"in 1 of 1 topics \(the first is '1'\) scores d"):
            assert ranked(text) == ["b", "a"]
        found = pytrec_eval.RelevanceEvaluator({"1": {"a": 1}}, {"recip_rank"}).evaluate(
            pytrec_eval.parse_run(io.StringIO(text))
        )
        assert found["1"]["recip_rank"] == 0.5

    def test_double_precision_keeps_them_apart(self):
        """As trec_eval 10 does."""
        text = "1 Q0 a 1 16777217 x\n1 Q0 b 2 16777216 x\n"
        assert ranked(text, scores="double") == ["a", "b"]


class TestGroundTruth:
    """What the judgements make of a document."""

    @pytest.mark.parametrize(
        ("judged", "level", "expected"),
        [
            ("1 0 a 0\n1 0 b 2\n1 0 c -1\n1 0 d 1\n", 1, [("b", 2), ("d", 1)]),
            ("1 0 a 1\n1 0 b 2\n", 2, [("b", 2)]),
        ],
    )
    def test_grades_from_a_level_on_are_ground_truth(self, judged, level, expected):
        """0 is judged and not relevant, -1 was not judged; ``trec_eval -l2`` asks for a 2."""
        [items] = read_trec(qrels(judged), run("1 Q0 a 1 0.5 x"), relevance_level=level).actual
        assert [(item["id"], item["metadata"]["grade"]) for item in items] == expected

    def test_grades_reach_ndcg(self):
        """Linear gain: DCG = 1 + 3 / log2(3), ideal = 3 + 1 / log2(3)."""
        dataset = read_trec(qrels("1 0 a 1\n1 0 b 3\n"), run("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n"))
        assert dataset.evaluator().calculate_ndcg()["ndcg"] == pytest.approx(0.796708, abs=1e-6)

    def test_without_grades_items_are_plain_ids(self):
        """Nothing but 0 and 1: no grade to look up, no warning that there is none."""
        dataset = read_trec(qrels(QRELS), run(RUN))
        assert dataset == Dataset(["1", "2"], [["a"], ["c"]], [["a"], ["c"]])
        assert "grade_key" not in dataset.defaults

    def test_a_topic_without_relevant_documents_counts_as_0(self):
        """As in trec_eval, which divides by all topics that have judgements."""
        dataset = read_trec(qrels("1 0 a 1\n2 0 c 0\n"), run(RUN))
        assert dataset.actual == [["a"], []]
        assert dataset.evaluator().calculate_map() == {"map": 0.5}

    def test_a_grade_may_be_written_with_zeros_after_the_point(self):
        """Some tools write 1.0 for 1."""
        assert read_trec(qrels("1 0 a 1.0"), run("1 Q0 a 1 2 x")).actual == [["a"]]


class TestTopics:
    """Which topics count."""

    def test_queries_are_labelled_by_topic_in_the_order_of_the_judgements(self):
        """However the run orders them."""
        dataset = read_trec(
            qrels("9 0 a 1\n10 0 a 1\n9 0 b 1\n"), run("10 Q0 a 1 1 x\n9 Q0 a 1 1 x")
        )
        assert dataset.evaluator().queries == ["9", "10"]

    def test_a_topic_missing_from_the_run_counts_as_nothing_retrieved(self):
        """As with trec_eval -c, and it is said."""
        with pytest.warns(KragEvalWarning, match=r"1 of the 2 queries .*missing=\"skip\" leaves"):
            dataset = read_trec(qrels(QRELS), run("1 Q0 a 1 1 x"))
        assert dataset.predicted == [["a"], []]
        assert dataset.evaluator().calculate_map() == {"map": 0.5}

    def test_it_can_be_left_out(self):
        """As trec_eval does without -c; asked for, so not worth a warning."""
        dataset = read_trec(qrels(QRELS), run("1 Q0 a 1 1 x"), missing="skip")
        assert dataset.queries == ["1"]
        assert dataset.evaluator().calculate_map() == {"map": 1.0}

    def test_a_topic_without_judgements_is_left_out_with_a_warning(self):
        """As trec_eval does, but not silently."""
        with pytest.warns(KragEvalWarning, match="1 of 3 queries are not in <stream> .* '3'"):
            dataset = read_trec(qrels(QRELS), run(f"{RUN}3 Q0 a 1 1 x\n"))
        assert dataset.queries == ["1", "2"]


class TestEvaluator:
    """What is ready to use."""

    def test_defaults_are_those_of_trec_eval(self):
        """Ids, trec_eval's conventions, success for hits, topics without relevance as 0."""
        evaluator = read_trec(DATA / "graded.qrels", DATA / "tied.run", missing="skip").evaluator()
        assert evaluator.matcher.name == "id"
        assert evaluator.conventions == Conventions.trec()
        assert evaluator.evaluate(k=1).settings["grades"] == "grade"
        assert evaluator.calculate_hit_rate(k=2) == {"hit_rate": 0.75}


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
    def test_harmless_variation_is_accepted(self, tmp_path, change):
        """Of both files; what is read is the same."""
        (tmp_path / "qrels").write_bytes(change(QRELS))
        (tmp_path / "run").write_bytes(change(RUN))
        dataset = read_trec(tmp_path / "qrels", tmp_path / "run")
        assert dataset == Dataset(["1", "2"], [["a"], ["c"]], [["a"], ["c"]])
        assert dataset.source == str(tmp_path / "run")

    def test_mappings_stand_in_for_files(self):
        """As pytrec_eval and BEIR have them."""
        judged = {"1": {"a": 2, "b": 0}, "2": {"c": 1.0}}
        retrieved = {"1": {"a": 1, "b": 2.5}, "2": {}}
        dataset = read_trec(judged, retrieved)
        assert dataset.predicted == [["b", "a"], []]
        assert dataset.source == "run"

    def test_a_run_may_be_a_json_object(self, tmp_path):
        """BEIR's results, saved, on one line or on many."""
        (tmp_path / "run.json").write_text('\n{"1": {"a": 0.5,\n"b": 2}}')
        assert read_trec({"1": {"a": 1}}, tmp_path / "run.json").predicted == [["b", "a"]]

    def test_an_open_parquet_file(self):
        """Recognised by content, like every other kind."""
        with (DATA / "peers" / "ranx_run.parquet").open("rb") as file:
            assert read_trec({"q1": {"d1": 1}, "q2": {}}, file).predicted[0] == ["d1", "d9"]

    def test_judgements_may_be_beirs(self):
        """Recognised by their header; ids may hold spaces there."""
        judged = qrels("query-id\tcorpus-id\tscore\r\n1\ta b\t1\r\n1\tc\t0\r\n")
        assert read_trec(judged, {"1": {"a b": 1.0}}).actual == [["a b"]]

    @given(st.binary(max_size=40))
    def test_any_bytes_are_read_or_refused(self, content):
        """Nothing but our own error comes out, whatever goes in."""
        with pytest.raises(DatasetError):
            read_trec(io.BytesIO(content), run(RUN))
        with pytest.raises(DatasetError):
            read_trec(qrels(QRELS), io.BytesIO(content))

    def test_a_long_line_is_cut_in_the_message(self):
        with pytest.raises(DatasetError, match=r"topic 0 document grade'.* got 1000: .{55,70}…"):
            read_trec(qrels("a " * 1000), run(RUN))
        with pytest.raises(DatasetError, match=r"must be a whole number, got '9{40}'"):
            read_trec(qrels("1 0 a " + "9" * 5000), run(RUN))
