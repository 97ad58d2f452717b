"""Text in other encodings than UTF-8: read where it is named, and told where it is not."""

import json

import pytest

from krag_eval import evaluate_file, load_dataset
from krag_eval.datasets import read_jsonl
from krag_eval.errors import Advice, DatasetError, InvalidInput
from krag_eval.loading.loading import read_chunks

RECORD = {"question": "언제 여나요?", "actual": ["아홉 시"], "predicted": ["열 시", "아홉 시"]}


def saved(folder, encoding, kind="jsonl", record=RECORD):
    """Write the record as Windows' programs do that know of no other encoding."""
    text = json.dumps(record, ensure_ascii=False)
    if kind == "json":
        text = f"[{text}]"
    if kind == "csv":
        cells = ['"' + str(one).replace('"', '""') + '"' for one in record.values()]
        text = f"{','.join(record)}\r\n{','.join(cells)}\r\n"
    path = folder / f"run.{kind}"
    path.write_bytes(text.encode(encoding))
    return path


def in_chunks(path, encoding="utf-8"):
    return evaluate_file(path, 2, encoding=encoding)


@pytest.mark.parametrize("encoding", ["cp949", "euc-kr", "utf-8"])
@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_a_named_encoding_is_read(tmp_path, kind, encoding):
    """The same texts come out, whatever they were written in; the MRR is 1/2."""
    dataset = load_dataset(saved(tmp_path, encoding, kind), encoding=encoding)
    assert (dataset.queries, dataset.actual) == (["언제 여나요?"], [["아홉 시"]])


@pytest.mark.parametrize("encoding", ["cp949", "euc-kr"])
def test_json_lines_by_their_other_readers(tmp_path, encoding):
    """``read_jsonl`` and ``evaluate_file``, one line at a time."""
    path = saved(tmp_path, encoding)
    assert read_jsonl(path, encoding=encoding).predicted == [["열 시", "아홉 시"]]
    result = evaluate_file(path, 2, encoding=encoding, per_query=tmp_path / "rows.csv")
    assert result.per_query(2).index.tolist() == ["언제 여나요?"]
    assert result.averages()["mrr"] == 0.5


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_korean_in_cp949_is_recognised(tmp_path, kind):
    """The refusal says so, and how to name it; it is not read by a guess."""
    readers = [load_dataset]
    if kind == "jsonl":
        readers += [read_jsonl, in_chunks]
    for read in readers:
        with pytest.raises(DatasetError) as info:
            read(saved(tmp_path, "cp949", kind))
        assert isinstance(info.value.fix, Advice)
        assert info.value.fix.settings == (("encoding", "cp949"),)
        assert "is Korean" in info.value.fix.text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("几点开门？图书馆星期一休息。", "gbk"),
        ("几点开门？", "gbk"),
        ("図書館は何時に開きますか。", "shift_jis"),
        ("図書館は何時に開きますか。", "euc_jp"),
        ("Où est le café, naïve âme ?", "cp1252"),
        ("Когда откроется библиотека?", "cp1251"),
    ],
)
def test_other_languages_are_not_taken_for_korean(tmp_path, text, encoding):
    """What cannot be told apart is not claimed; the encoding is asked for."""
    record = {"question": text, "actual": [], "predicted": []}
    path = saved(tmp_path, encoding, record=record)
    with pytest.raises(DatasetError) as info:
        read_jsonl(path)
    assert isinstance(info.value.fix, Advice)
    assert "is Korean" not in info.value.fix.text


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_utf_16_is_told_by_its_mark(tmp_path, kind):
    """Excel's "Unicode text", whose line ends are not those of ASCII, cannot be named."""
    with pytest.raises(DatasetError, match="is UTF-16 text"):
        load_dataset(saved(tmp_path, "utf-16", kind))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("utf-16", "jsonl"), ("unicode_escape", "jsonl"), ("raw_unicode_escape", "jsonl"),
     ("utf-7", "jsonl"), ("no", "jsonl"), ("cp949", "parquet")],
)  # fmt: skip
def test_what_is_no_encoding_of_the_file_is_refused(tmp_path, name, kind):
    """Ways to escape make half of a character of ASCII, or another one; Parquet's is UTF-8."""
    path = tmp_path / f"run.{kind}"
    load_dataset([RECORD]).save(path)
    for read in (load_dataset, in_chunks, *([read_jsonl] if kind == "jsonl" else [])):
        with pytest.raises(InvalidInput) as info:
            read(path, encoding=name)
        assert info.value.argument == "encoding"


def test_a_format_of_utf_8_alone_asks_to_save_it_as_such(tmp_path):
    """Chunks have no other encoding to name."""
    path = tmp_path / "chunks.jsonl"
    path.write_bytes('"아홉 시에 엽니다."'.encode("cp949"))
    with pytest.raises(DatasetError) as info:
        read_chunks(path)
    assert isinstance(info.value.fix, str)
    assert "CP949" in info.value.fix


def test_cp949_is_not_advised_to_whom_asked_for_it(tmp_path):
    """Neither by that name nor by another spelling of it."""
    path = tmp_path / "run.csv"
    path.write_bytes(b"question,actual,predicted\n\xec\xff\xff,[],[]\n")
    for encoding in ("cp949", "CP949", "uhc", "ms949"):
        with pytest.raises(DatasetError) as info:
            load_dataset(path, encoding=encoding)
        assert isinstance(info.value.fix, str)
    with pytest.raises(DatasetError) as info:
        load_dataset(path, encoding="euc-kr")
    assert isinstance(info.value.fix, Advice)  # which holds less than CP949
