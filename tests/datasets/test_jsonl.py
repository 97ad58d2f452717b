"""Reading JSON lines: what is accepted, and that errors name file, line and fix.

Expected values are the contents of the file that the test writes.
"""

import gzip
import io
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from krag_eval import AnyOf, KragEvalWarning
from krag_eval.datasets import Dataset, DatasetError, load_dataset, read_jsonl
from krag_eval.datasets.loading import read_chunks

LINE = '{"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]}'


def written(folder: Path, content: str | bytes, name: str = "run.jsonl") -> Path:
    """Write a file as it is, without translating line ends."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def line(**fields: object) -> str:
    """Return a valid line with some of its fields replaced."""
    return json.dumps({"question": "Q", "actual": ["a"], "predicted": ["a"]} | fields)


def refusal(folder: Path, content: str | bytes, **options: str) -> str:
    """Return the message with which a file is refused, without the folder's name."""
    path = written(folder, content)
    with pytest.raises(DatasetError) as caught:
        read_jsonl(path, **options)
    return str(caught.value).removeprefix(str(folder) + "/")


class TestWhatIsRead:
    """Files as people have them."""

    def test_a_line_becomes_a_query(self, tmp_path: Path) -> None:
        """Question, ground truth and retrieved documents come from their fields."""
        dataset = read_jsonl(written(tmp_path, LINE))
        assert dataset == Dataset(["When?"], [["nine"]], [["eight", "nine"]], questions=["When?"])

    @pytest.mark.parametrize("name", ["run.jsonl.gz", "run.jsonl"])
    def test_gzip_is_recognised_by_content(self, tmp_path: Path, name: str) -> None:
        """A compressed file is read, whatever its name."""
        path = written(tmp_path, gzip.compress(LINE.encode()), name)
        assert read_jsonl(path).queries == ["When?"]

    def test_a_plain_file_named_gz_is_read(self, tmp_path: Path) -> None:
        """Programs that decompress on download keep the name."""
        assert read_jsonl(written(tmp_path, LINE, "run.jsonl.gz")).queries == ["When?"]

    @pytest.mark.parametrize(
        "stream",
        [io.BytesIO(LINE.encode()), io.StringIO(LINE), io.BytesIO(gzip.compress(LINE.encode()))],
        ids=["binary", "text", "compressed"],
    )
    def test_an_open_file_is_read(self, stream: io.BytesIO | io.StringIO) -> None:
        """Binary and text streams work like paths."""
        assert read_jsonl(stream).queries == ["When?"]

    def test_standard_input_is_read_as_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An ASCII locale does not matter for standard input."""
        content = io.BytesIO('{"question": "언제?", "actual": ["a"], "predicted": []}'.encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content, encoding="ascii"))
        dataset = read_jsonl(sys.stdin)
        assert (dataset.queries, dataset.source) == (["언제?"], "<stdin>")

    @pytest.mark.parametrize(
        "content",
        [
            b"\xef\xbb\xbf" + LINE.encode(),
            f"{LINE}\r\n".encode(),
            f"\n{LINE}\n \t\n\n".encode(),
            f"  {LINE}  ".encode(),
        ],
        ids=["byte order mark", "CRLF", "blank lines", "spaces around"],
    )
    def test_harmless_variation_is_accepted(self, tmp_path: Path, content: bytes) -> None:
        """What editors and Windows add does not change what is read."""
        assert read_jsonl(written(tmp_path, content)).queries == ["When?"]

    def test_blank_lines_are_skipped_but_counted(self, tmp_path: Path) -> None:
        """A blank line in the middle is no query; line numbers stay those of the file."""
        dataset = read_jsonl(written(tmp_path, f"{LINE}\n\n{LINE}\n"))
        assert dataset.lines == [1, 3]

    def test_a_line_separator_inside_a_string_is_text(self, tmp_path: Path) -> None:
        """U+2028 and U+0085 are allowed in JSON strings and end no line."""
        content = '{"actual": ["one\u2028two\u0085three"], "predicted": []}'
        assert read_jsonl(written(tmp_path, content)).actual == [["one\u2028two\u0085three"]]

    def test_fields_of_other_names(self, tmp_path: Path) -> None:
        """Each field's name can be given."""
        path = written(tmp_path, '{"q": "Q", "gold": ["a"], "hits": ["b"], "scores": [1.5]}')
        dataset = read_jsonl(path, question_field="q", actual_field="gold", predicted_field="hits")
        assert dataset == Dataset(["Q"], [["a"]], [["b"]], questions=["Q"])

    def test_documents_keep_metadata_and_id(self, tmp_path: Path) -> None:
        """Objects are documents as they stand, a dump of a LangChain Document included."""
        document = {"page_content": "a", "metadata": {"page": 3}, "id": 7, "type": "Document"}
        dataset = read_jsonl(written(tmp_path, line(actual=[document], predicted=["b", document])))
        assert dataset.actual == [[document]]
        assert dataset.predicted == [["b", document]]

    def test_any_of_lists_alternatives(self, tmp_path: Path) -> None:
        """Interchangeable documents are one item."""
        dataset = read_jsonl(written(tmp_path, line(actual=[{"any_of": ["a", "b"]}, "c"])))
        assert dataset.actual == [[AnyOf(["a", "b"]), "c"]]

    def test_empty_lists_are_kept(self, tmp_path: Path) -> None:
        """Nothing expected and nothing retrieved are facts; the evaluator judges them."""
        dataset = read_jsonl(written(tmp_path, line(actual=[], predicted=[])))
        assert (dataset.actual, dataset.predicted) == ([[]], [[]])


class TestLabels:
    """What a query is called."""

    def test_positions_when_there_are_no_questions(self, tmp_path: Path) -> None:
        """Without questions, and for null, queries are numbered from 0."""
        content = '{"actual": [], "predicted": []}\n' + line(question=None)
        assert read_jsonl(written(tmp_path, content)).queries == [0, 1]

    def test_positions_when_some_questions_are_missing(self, tmp_path: Path) -> None:
        """Labels are all of one kind, and the reader says why they are not the questions."""
        path = written(tmp_path, line() + '\n{"actual": [], "predicted": []}')
        with pytest.warns(KragEvalWarning, match=r"1 of 2 queries .* first is on line 2"):
            assert read_jsonl(path).queries == [0, 1]

    def test_a_question_may_be_a_number(self, tmp_path: Path) -> None:
        """Whole numbers are labels, too."""
        assert read_jsonl(written(tmp_path, line(question=17))).queries == [17]

    @pytest.mark.parametrize("other", [17, None])
    def test_what_to_ask_is_text_on_every_line(
        self, tmp_path: Path, other: int | None, recwarn: pytest.WarningsRecorder
    ) -> None:
        """A number or nothing can be no question, so there are none to ask; two may be the same."""
        twice = read_jsonl(written(tmp_path, f"{LINE}\n{LINE}"))
        assert twice.queries == twice.questions == ["When?", "When?"]
        content = f"{LINE}\n{line(question=other)}"
        assert read_jsonl(written(tmp_path, content)).questions is None

    def test_nothing_retrieved_yet(self, tmp_path: Path) -> None:
        """Said explicitly; a field of the usual name is ignored then."""
        content = '{"question": "Q", "actual": ["a"]}\n' + line(predicted="not looked at")
        dataset = read_jsonl(written(tmp_path, content), predicted_field=None)
        assert (dataset.actual, dataset.predicted) == ([["a"], ["a"]], None)

    def test_a_question_field_nobody_has_is_a_mistake(self, tmp_path: Path) -> None:
        """A name given explicitly must exist."""
        message = refusal(tmp_path, LINE, question_field="query")
        assert message.startswith('run.jsonl:1: no field "query" on any line')
        assert "question_field=…" in message


REFUSED_LINES = {
    "not JSON": ("{'actual': []}", "not valid JSON: .*column 2.*one complete object per line"),
    "cut short": (LINE[:-5], "not valid JSON"),
    "two objects": (LINE + LINE, "not valid JSON: Extra data"),
    "pretty-printed": ("{", "put each object on one line"),
    "a list": ("[" + LINE + "]", "expected a JSON object .* got a list; write one object per line"),
    "a string": ('"text"', "expected a JSON object .* got a string"),
    "null": ("null", "expected a JSON object .* got null"),
    "no actual": (
        '{"question": "Q", "gold": [], "predicted": []}',
        'no field "actual"; the fields are "question", "gold", "predicted"; .*actual_field=…',
    ),
    "no predicted": (
        '{"actual": []}',
        'no field "predicted"; the fields are "actual"; .*predicted_field=…',
    ),
    "no fields": ("{}", "the fields are none"),
    "many fields": (json.dumps({f"f{i}": i for i in range(12)}), '"f9" and 2 more'),
    "a bare string": (line(actual="a"), "actual is plain text .*expected a list"),
    "null for none": (
        line(predicted=None),
        r"predicted must be a list of documents, got nothing; write \[\]",
    ),
    "a number": (line(predicted=["a", 7]), r"predicted\[1\] must be a document .* the number 7"),
    "a null document": (line(actual=[None]), r"actual\[0\] must be a document .* got null"),
    "a boolean": (line(actual=[True]), r"actual\[0\] must be .* got a boolean"),
    "a nested list": (line(actual=[["a", "b"]]), r'actual\[0\] .* got a list; .*{"any_of"'),
    "no text": (
        line(actual=[{"id": "1"}]),
        r'actual\[0\]: .* needs the key "page_content".*keys "id"',
    ),
    "other keys": (
        line(actual=[{"page_content": "a", "score": 1}]),
        r'actual\[0\]: .* got the keys "page_content", "score"; .*anything else into "metadata"',
    ),
    "text that is none": (
        line(predicted=[{"page_content": 5}]),
        r"predicted\[0\]\.page_content must be text, got the number 5",
    ),
    "odd metadata": (
        line(predicted=[{"page_content": "a", "metadata": "m"}]),
        r"predicted\[0\]\.metadata must be a dict, got a string",
    ),
    "odd id": (
        line(predicted=[{"page_content": "a", "id": 1.5}]),
        r"predicted\[0\]\.id must be text or a whole number, got the number 1.5",
    ),
    "a boolean id": (line(actual=[{"page_content": "a", "id": True}]), "id must be text"),
    "any_of empty": (line(actual=[{"any_of": []}]), r'actual\[0\]: "any_of" must be the only key'),
    "any_of text": (line(actual=[{"any_of": "a"}]), r'"any_of" must .* hold a list'),
    "any_of and more": (line(actual=[{"any_of": ["a"], "id": 1}]), r'keys "any_of", "id"'),
    "any_of of null": (line(actual=[{"any_of": ["a", None]}]), r"actual\[0\]\.any_of\[1\] must be"),
    "any_of in any_of": (line(actual=[{"any_of": [{"any_of": ["a"]}]}]), "one level deep"),
    "any_of predicted": (line(predicted=[{"any_of": ["a"]}]), "belongs in the ground truth"),
    "odd question": (line(question=["Q"]), "question must be text .* got a list"),
    "a boolean question": (line(question=True), "question must be .* got a boolean"),
    "NaN": (line(score=float("nan")), "NaN is not a JSON value; write null"),
    "infinity": (line(score=float("-inf")), "-Infinity is not a JSON value"),
    "a key twice": ('{"actual": [], "actual": ["a"]}', "the key 'actual' is given twice"),
    "half an emoji": (line(actual=["\ud83d"]), "half of a surrogate pair .*emoji"),
    "half an emoji elsewhere": (line(extra={"\udc00": 1}), "half of a surrogate pair"),
    "a huge number": ('{"score": ' + "9" * 5000 + "}", "not usable JSON: .*digits"),
    "very deep": ("[" * 200_000, "nested too deeply"),
    "a control character": ('{"actual": ["a\tb"]}', "Invalid control character"),
}


class TestRefusedLines:
    """One bad line refuses the file, by file, line and remedy."""

    @pytest.mark.parametrize(
        ("content", "expected"), REFUSED_LINES.values(), ids=list(REFUSED_LINES)
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, content: str, expected: str) -> None:
        """The message names file and line and fits on one line."""
        path = written(tmp_path, f"{LINE}\n\n{content}\n{LINE}\n")
        with pytest.raises(DatasetError, match=f"^{path}:3: .*{expected}") as caught:
            read_jsonl(path)
        assert "\n" not in str(caught.value)

    def test_a_later_line_is_found(self, tmp_path: Path) -> None:
        """The very last line is checked like the first; nothing partial is returned."""
        assert refusal(tmp_path, f"{LINE}\n" * 99 + "oops").startswith("run.jsonl:100: ")

    def test_text_that_is_not_utf8(self, tmp_path: Path) -> None:
        """Korean text saved by an older Windows program is recognised as not UTF-8."""
        content = LINE.encode() + b"\n" + '{"actual": ["언제"]}'.encode("cp949")
        message = refusal(tmp_path, content)
        assert message.startswith("run.jsonl:2: byte 0xbe at position 13 is not UTF-8")

    def test_whole_emoji_are_characters(self, tmp_path: Path) -> None:
        """Both halves of a surrogate pair, as JSON writers escape them, are one character."""
        path = written(tmp_path, '{"actual": ["\\ud83d\\ude00"], "predicted": []}')
        assert read_jsonl(path).actual == [["😀"]]

    def test_a_name_is_printed_on_one_line(self, tmp_path: Path) -> None:
        """Neither a file's nor a field's name can break the message or control the terminal."""
        path = written(tmp_path, '{"a\\u001b[31m\\nb": 1}', "odd\nname.jsonl")
        with pytest.raises(DatasetError) as caught:
            read_jsonl(path)
        assert str(caught.value).isprintable()


class TestRefusedFiles:
    """Files that are not what was expected, as a whole."""

    @pytest.mark.parametrize("content", ["", "\n \n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
    def test_nothing_in_it(self, tmp_path: Path, content: str | bytes) -> None:
        """An empty file is not an evaluation of nothing."""
        assert refusal(tmp_path, content).startswith("run.jsonl: holds no queries; expected one")

    def test_no_such_file(self, tmp_path: Path) -> None:
        """A missing file is named."""
        with pytest.raises(DatasetError, match=r"none\.jsonl: no such file"):
            read_jsonl(tmp_path / "none.jsonl")

    def test_a_directory(self, tmp_path: Path) -> None:
        """A directory is not a file."""
        with pytest.raises(DatasetError, match="is a directory; expected a file"):
            read_jsonl(tmp_path)

    @pytest.mark.parametrize("name", ["x" * 5000, "nul\0l", "file.jsonl/below"])
    def test_impossible_names(self, tmp_path: Path, name: str) -> None:
        """A name no file can have is refused like any other."""
        written(tmp_path, LINE, "file.jsonl")
        with pytest.raises(DatasetError):
            read_jsonl(f"{tmp_path}/{name}")

    @pytest.mark.parametrize("length", [1, 5, 12, 40])
    def test_truncated_gzip(self, tmp_path: Path, length: int) -> None:
        """Half a download gives no half result."""
        message = refusal(tmp_path, gzip.compress(LINE.encode() * 9, mtime=0)[:length])
        if length > 1:
            assert "the compressed data ends too early" in message

    def test_truncated_gzip_names_how_far_it_got(self, tmp_path: Path) -> None:
        """The line is where reading stopped."""
        whole = b"\n".join([LINE.encode()] * 1000)
        compressed = gzip.compress(whole)[:-8]
        assert refusal(tmp_path, compressed).startswith("run.jsonl:1000: the compressed data ends")

    def test_damaged_gzip(self, tmp_path: Path) -> None:
        """A changed byte is noticed by the checksum, or before it."""
        compressed = bytearray(gzip.compress(LINE.encode()))
        compressed[-6] ^= 0xFF
        assert "the compressed data is damaged" in refusal(tmp_path, bytes(compressed))

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"PAR1rest", "a Parquet file"),
            (b"PK\x03\x04rest", "a zip archive, as Excel's and Word's files are"),
            (
                b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest",
                "a file of Office before 2007, such as .xls or .doc",
            ),
            (LINE.encode("utf-16"), "UTF-16 text"),
        ],
    )
    def test_another_format_is_recognised(self, tmp_path: Path, content: bytes, what: str) -> None:
        """The usual confusions are called by their name."""
        assert refusal(tmp_path, content).startswith(f"run.jsonl: is {what}; expected UTF-8 text")

    @pytest.mark.parametrize(
        "whole", [LINE, '{"question": "\\uc5b8", "n": [true, null, -1.5, "\\""]}']
    )
    def test_a_line_that_was_cut_off_is_said_to_end(self, tmp_path: Path, whole: str) -> None:
        """Wherever it was cut: from the decoder's column one would look where nothing is wrong."""
        for end in range(2, len(whole)):
            message = refusal(tmp_path, whole[:end].encode() + b"\n")
            assert message.startswith("run.jsonl:1: not valid JSON: it ends in the middle"), end

    @pytest.mark.parametrize(
        ("line", "column"),
        [('{"actual": ["a" "b"]}', 17), ('{"actual": ["a], "b": 2}', 19), ('{"actual": [}', 13)],
    )
    def test_a_mistake_within_a_line_has_a_column(
        self, tmp_path: Path, line: str, column: int
    ) -> None:
        """A line that is closed was not cut off, though a quote may be missing."""
        assert f"(column {column})" in refusal(tmp_path, line.encode())

    def test_not_a_source(self) -> None:
        """Something that is neither path nor file is a mistake in the program."""
        with pytest.raises(TypeError, match="source must be a path or an open file, got 3"):
            read_jsonl(3)  # type: ignore[arg-type]

    def test_a_text_file_in_another_encoding(self, tmp_path: Path) -> None:
        """A text stream that cannot decode its own file is refused, with the remedy."""
        path = written(tmp_path, '{"actual": ["언제"]}')
        with path.open(encoding="ascii") as file, pytest.raises(DatasetError, match="binary mode"):
            read_jsonl(file)

    @given(st.binary(max_size=60))
    def test_any_bytes_are_read_or_refused(self, content: bytes) -> None:
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
    def test_what_is_read_can_be_evaluated(self, documents: object) -> None:
        """Every dataset that is read is one the evaluator takes."""
        content = json.dumps({"actual": documents, "predicted": []}).encode()
        try:
            dataset = read_jsonl(io.BytesIO(content))
        except DatasetError:
            return
        dataset.evaluator(no_ground_truth="zero")


class TestChunks:
    """The chunks of an index."""

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
    def test_a_line_is_a_text_or_an_object(self, line: str, expected: object) -> None:
        """Under the names that stores and other tools give to text and id."""
        assert read_chunks(io.StringIO(f"\n{line}\n")) == [expected]

    @pytest.mark.parametrize(
        "line",
        [
            '{"id": "1"}',
            '{"text": "a", "page_content": "b"}',
            '{"text": "a", "id": "1", "_id": "2"}',
            '{"text": 3}',
            '{"text": "a", "id": [1]}',
            '{"text": "a", "metadata": 3}',
            '{"text": "a", "metadata": 3, "page": 1}',
            '"a", "b"',
            '"a',
            '["a"]',
            "3",
            '"\\ud800"',
        ],
    )
    def test_anything_else_is_refused(self, line: str) -> None:
        """Naming the line."""
        with pytest.raises(DatasetError) as caught:
            read_chunks(io.StringIO(f'"good"\n{line}\n'))
        assert caught.value.line == 2

    def test_an_empty_file_is_refused(self) -> None:
        """An index of nothing is a mistake."""
        with pytest.raises(DatasetError):
            read_chunks(io.StringIO("\n"))


def test_an_answer_is_not_offered_as_ground_truth():
    """RAGAS's evaluations hold an answer, and contexts that were retrieved; as in a table."""
    line = '{"question": "When?", "contexts": ["nine"], "ground_truth": "At nine"}'
    for reader in (read_jsonl, partial(load_dataset, format="jsonl")):
        with pytest.raises(DatasetError) as info:
            reader(io.StringIO(line))
        assert "'ground_truth' is an answer in RAGAS" in str(info.value.fix)
