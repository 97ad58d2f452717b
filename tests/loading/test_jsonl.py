"""Reading JSON lines: what is accepted, and that errors name file, line and fix.

Expected values are the contents of the file that the test writes. What a line may not hold is in
``golden/refused/datasets.py``.
"""

import gzip
import io
import json
import sys
from functools import partial

import pytest
from hypothesis import given, strategies as st

from krag_eval import AnyOf, KragEvalWarning
from krag_eval.datasets import Dataset, DatasetError, load_dataset, read_jsonl
from krag_eval.loading.loading import read_chunks

LINE = '{"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]}'
ONE = Dataset(["When?"], [["nine"]], [["eight", "nine"]], questions=["When?"])


def line(**fields):
    """Return a valid line with some of its fields replaced."""
    return json.dumps({"question": "Q", "actual": ["a"], "predicted": ["a"]} | fields)


def refusal(path, **options):
    """Return the message with which a file is refused, without the folder's name."""
    with pytest.raises(DatasetError) as caught:
        read_jsonl(path, **options)
    assert str(caught.value).isprintable()
    return str(caught.value).removeprefix(f"{path.parent}/")


class TestWhatIsRead:
    @pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
    @pytest.mark.parametrize(
        "content",
        [
            LINE, gzip.compress(LINE.encode()), b"\xef\xbb\xbf" + LINE.encode(), f"{LINE}\r\n",
            f"\n{LINE}\n \t\n\n", f"  {LINE}  ",
        ],
        ids=["plain", "compressed", "byte order mark", "CRLF", "blank lines", "spaces around"],
    )  # fmt: skip
    def test_a_line_becomes_a_query(self, written, content, name):
        """What editors, Windows and downloads add changes nothing, nor does the file's name."""
        assert read_jsonl(written(content, name)) == ONE

    @pytest.mark.parametrize(
        "stream",
        [io.BytesIO(LINE.encode()), io.StringIO(LINE), io.BytesIO(gzip.compress(LINE.encode()))],
        ids=["binary", "text", "compressed"],
    )
    def test_an_open_file_is_read(self, stream):
        """Binary and text streams work like paths."""
        assert read_jsonl(stream) == ONE

    def test_standard_input_is_read_as_bytes(self, monkeypatch):
        """An ASCII locale does not matter for standard input."""
        content = io.BytesIO('{"question": "언제?", "actual": ["a"], "predicted": []}'.encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content, encoding="ascii"))
        dataset = read_jsonl(sys.stdin)
        assert (dataset.queries, dataset.source) == (["언제?"], "<stdin>")

    def test_blank_lines_are_skipped_but_counted(self, written):
        """A blank line in the middle is no query; line numbers stay those of the file."""
        assert read_jsonl(written(f"{LINE}\n\n{LINE}\n")).lines == [1, 3]

    def test_fields_of_other_names(self, written):
        """Each field's name can be given."""
        path = written('{"q": "Q", "gold": ["a"], "hits": ["b"], "scores": [1.5]}')
        dataset = read_jsonl(path, question_field="q", actual_field="gold", predicted_field="hits")
        assert dataset == Dataset(["Q"], [["a"]], [["b"]], questions=["Q"])

    DOCUMENT = {"page_content": "a", "metadata": {"page": 3}, "id": 7, "type": "Document"}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (["one\u2028two\u0085three"], None),
            (["😀"], None),
            ([], None),
            ([DOCUMENT], None),
            ([{"any_of": ["a", "b"]}, "c"], [AnyOf(["a", "b"]), "c"]),
        ],
    )
    def test_documents(self, written, value, expected):
        """Any characters, nothing at all, dumps of LangChain and interchangeable ones."""
        for write in (json.dumps, partial(json.dumps, ensure_ascii=False)):
            path = written(write({"actual": value, "predicted": ["b", self.DOCUMENT]}))
            assert read_jsonl(path).actual == [value if expected is None else expected]
            assert read_jsonl(path).predicted == [["b", self.DOCUMENT]]


class TestLabels:
    """What a query is called."""

    @pytest.mark.parametrize(
        ("lines", "queries", "questions"),
        [
            (['{"actual": [], "predicted": []}', line(question=None)], [0, 1], None),
            ([line(question=17)], [17], None),
            ([LINE, line(question=17)], ["When?", 17], None),
            ([LINE, LINE], ["When?", "When?"], ["When?", "When?"]),
        ],
    )
    def test_labels_and_what_to_ask(self, written, lines, queries, questions):
        """Numbers are labels and nothing to ask; without questions, queries are numbered."""
        dataset = read_jsonl(written("\n".join(lines)))
        assert (dataset.queries, dataset.questions) == (queries, questions)

    def test_positions_when_some_questions_are_missing(self, written):
        """Labels are all of one kind, and the reader says why they are not the questions."""
        path = written(line() + '\n{"actual": [], "predicted": []}')
        with pytest.warns(KragEvalWarning, match=r"1 of 2 queries .* first is on line 2"):
            dataset = read_jsonl(path)
        assert (dataset.queries, dataset.questions) == ([0, 1], None)

    def test_nothing_retrieved_yet(self, written):
        """Said explicitly; a field of the usual name is ignored then."""
        content = '{"question": "Q", "actual": ["a"]}\n' + line(predicted="not looked at")
        dataset = read_jsonl(written(content), predicted_field=None)
        assert (dataset.actual, dataset.predicted) == ([["a"], ["a"]], None)


class TestRefused:
    """One bad line refuses the file, by file, line and remedy."""

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("{", "put each object on one line"),
            (f"[{LINE}]", "got a list; write one object per line"),
            ('{"actual": []}', 'no field "predicted"; the fields are "actual"; .*predicted_field='),
            ("{}", "the fields are none"),
            (json.dumps({f"f{at}": at for at in range(12)}), '"f9" and 2 more'),
            (line(score=float("nan")), "NaN is not a JSON value; write null"),
            ('{"actual": ["a" "b"]}', r"\(column 17\)"),
            ('{"actual": ["a], "b": 2}', r"\(column 19\)"),
            ('{"actual": [}', r"\(column 13\)"),
        ],
    )
    def test_a_remedy_is_named(self, written, content, expected):
        """A line that is closed was not cut off, and its mistake has a column."""
        with pytest.raises(DatasetError, match=f":3: .*{expected}"):
            read_jsonl(written(f"{LINE}\n\n{content}\n{LINE}\n"))

    def test_a_name_is_printed_on_one_line(self, written):
        """Neither a file's nor a field's name can break the message or control the terminal."""
        assert refusal(written('{"a\\u001b[31m\\nb": 1}', "odd\nname.jsonl"))

    def test_a_name_that_no_file_can_have(self, tmp_path):
        assert "nul" in refusal(tmp_path / "nul\0l")

    def test_damaged_gzip(self, written):
        """A changed byte is noticed by the checksum, or before it."""
        compressed = bytearray(gzip.compress(LINE.encode()))
        compressed[-6] ^= 0xFF
        assert "the compressed data is damaged" in refusal(written(bytes(compressed)))

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"PAR1rest", "a Parquet file"),
            (b"PK\x03\x04rest", "a zip archive, as Excel's and Word's files are"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest",
             "a file of Office before 2007, such as .xls or .doc"),
            (LINE.encode("utf-16"), "UTF-16 text"),
        ],
    )  # fmt: skip
    def test_another_format_is_recognised(self, written, content, what):
        """The usual confusions are called by their name."""
        assert refusal(written(content)).startswith(f"run.jsonl: is {what}; expected UTF-8 text")

    @pytest.mark.parametrize(
        "whole", [LINE, '{"question": "\\uc5b8", "n": [true, null, -1.5, "\\""]}']
    )
    def test_a_line_that_was_cut_off_is_said_to_end(self, written, whole):
        """Wherever it was cut: from the decoder's column one would look where nothing is wrong."""
        for end in range(2, len(whole)):
            message = refusal(written(whole[:end] + "\n"))
            assert message.startswith("run.jsonl:1: not valid JSON: it ends in the middle"), end

    def test_a_text_file_in_another_encoding(self, written):
        """A text stream that cannot decode its own file is refused, with the remedy."""
        path = written('{"actual": ["언제"]}')
        with path.open(encoding="ascii") as file, pytest.raises(DatasetError, match="binary mode"):
            read_jsonl(file)

    @given(st.binary(max_size=60))
    def test_any_bytes_are_read_or_refused(self, content):
        """Nothing but a dataset or our own error comes out, whatever goes in."""
        for stream in (io.BytesIO(content), io.BytesIO(b"\x1f\x8b\x08\0" + content)):
            with pytest.raises(DatasetError):
                read_jsonl(stream)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["any_of", "page_content", "metadata", "id", "x"]), inner
                )
            ),
            max_leaves=8,
        )
    )
    def test_what_is_read_can_be_evaluated(self, documents):
        """Every dataset that is read is one the evaluator takes."""
        content = json.dumps({"actual": documents, "predicted": []}).encode()
        try:
            dataset = read_jsonl(io.BytesIO(content))
        except DatasetError:
            return
        dataset.evaluator(no_ground_truth="zero")

    def test_an_answer_is_not_offered_as_ground_truth(self):
        """RAGAS's evaluations hold an answer, and contexts that were retrieved; as in a table."""
        content = '{"question": "When?", "contexts": ["nine"], "ground_truth": "At nine"}'
        for reader in (read_jsonl, partial(load_dataset, format="jsonl")):
            with pytest.raises(DatasetError) as info:
                reader(io.StringIO(content))
            assert "'ground_truth' is an answer in RAGAS" in str(info.value.fix)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"At nine."', "At nine."),
        ('{"page_content": "a"}', {"page_content": "a"}),
        ('{"id": "1", "page_content": "a"}', {"page_content": "a", "id": "1"}),
        ('{"id": 1, "text": "a"}', {"page_content": "a", "id": 1}),
        ('{"_id": "1", "text": "a", "title": ""}',
         {"page_content": "a", "id": "1", "metadata": {"title": ""}}),
        ('{"_id": "1", "text": "a", "title": "T"}',
         {"page_content": "T a", "id": "1", "metadata": {"title": "T"}}),
        ('{"doc_id": "1", "contents": "a"}', {"page_content": "a", "id": "1"}),
        ('{"text": "a", "source": "x.pdf", "metadata": {"page": 3}, "id": null}',
         {"page_content": "a", "metadata": {"source": "x.pdf", "page": 3}}),
    ],
)  # fmt: skip
def test_a_chunk_is_a_text_or_an_object(line, expected):
    """Under the names that stores and other tools give to text and id."""
    assert read_chunks(io.StringIO(f"\n{line}\n")) == [expected]
