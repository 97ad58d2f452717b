"""The same row means the same, whichever way it comes in.

Each row is read by ``read_jsonl`` and ``load_dataset`` from JSON lines, CSV and Parquet, by
``load_dataset`` from memory and a data frame, and by ``evaluate_file``. Expected values are what is
in the row.
"""

import json
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import parquet
from trials import trials

from krag_eval import AnyOf, KragEvalWarning, evaluate_file
from krag_eval.datasets import DatasetError, load_dataset, read_jsonl
from krag_eval.loading.loading import Fields
from krag_eval.streaming.queries import QueryFiles

FIRST = {"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]}


class Verdict(NamedTuple):
    """What became of a row: what was read, or what was refused."""

    label: Any = None
    actual: Any = None
    predicted: Any = None
    argument: str = ""
    within: str = ""
    problem: str = ""


def as_jsonl(row, folder):
    """Write two rows as JSON lines."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (FIRST, row)), "utf-8")
    return path


def as_csv(row, folder):
    """Write two rows as CSV, lists as JSON."""
    cells = [{name: one if isinstance(one, str | None) else json.dumps(one)
              for name, one in some.items()} for some in (FIRST, row)]  # fmt: skip
    pd.DataFrame(cells).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_parquet(row, folder):
    """Write two rows as Parquet: what is not of one kind as JSON."""
    path = folder / "rows.parquet"
    columns = {}
    for name in FIRST:
        values = [FIRST[name], row[name]]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, TypeError):
            columns[name] = pa.array([one if isinstance(one, str | None) else json.dumps(one)
                                      for one in values])  # fmt: skip
    parquet.write_table(pa.table(columns), path)
    return path


def of_dataset(dataset):
    """Return what a reader made of the second row."""
    label = dataset.queries[1] if dataset.queries[0] == "When?" else None
    return Verdict(label, dataset.actual[1], dataset.predicted[1])


def of_stream(path):
    """Return what ``evaluate_file`` evaluates."""
    files = QueryFiles.found(path)
    fields = Fields("question", "actual", "predicted")
    evaluate_file(path, k=1, no_ground_truth="zero")
    (chunk,) = replace(files, fields=fields).chunks(10)
    second = chunk.queries[1]
    return Verdict(second.label, second.actual, second.predicted)


def verdict(read, *, in_a_file=True):
    """Return what came out, errors as values."""
    try:
        return read()
    except DatasetError as error:
        refused = error
    assert str(refused).isprintable()
    assert refused.place is not None
    assert not in_a_file or refused.place.line or refused.place.row
    return Verdict(argument=refused.argument, within=refused.within, problem=refused.problem)


def ways(row, folder):
    """Read a row in every way there is."""
    lines, table, columns = as_jsonl(row, folder), as_csv(row, folder), as_parquet(row, folder)
    frame = pd.DataFrame([FIRST, row], dtype=object)
    arrays = [{name: np.array(one, object) if isinstance(one, list) else one
               for name, one in some.items()} for some in (FIRST, row)]  # fmt: skip
    yield "read_jsonl", verdict(lambda: of_dataset(read_jsonl(lines)))
    for source in (lines, table, columns):
        yield source.suffix, verdict(lambda source=source: of_dataset(load_dataset(source)))
        yield f"a stream of {source.suffix}", verdict(lambda source=source: of_stream(source))
    for name, source in {"rows": [FIRST, row], "arrays": arrays, "frame": frame}.items():
        read = partial(load_dataset, source)
        yield name, verdict(lambda read=read: of_dataset(read()), in_a_file=False)


def plain(item):
    """Return a document without the fields that are null, which Parquet adds."""
    if isinstance(item, AnyOf):
        return {"any_of": [plain(one) for one in item.alternatives]}
    if isinstance(item, dict):
        return {name: one for name, one in item.items() if one is not None}
    return item


def one_verdict(row, folder):
    """Return the verdict on a row, the same in every way."""
    found = {
        way: one._replace(
            actual=one.actual and [plain(item) for item in one.actual],
            predicted=one.predicted and [plain(item) for item in one.predicted],
        )
        for way, one in ways(row, folder)
    }
    first = found["read_jsonl"]
    assert found == dict.fromkeys(found, first)
    return first


READ = {
    "a list written as text": ({"actual": "['a']"}, {"actual": ["a"]}),
    "a list written as JSON": ({"predicted": '["a", {"page_content": "b"}]'},
                               {"predicted": ["a", {"page_content": "b"}]}),
    "a null any_of": ({"actual": [{"page_content": "a", "any_of": None}]},
                      {"actual": [{"page_content": "a"}]}),
    "alternatives with nulls": (
        {"actual": [{"any_of": ["a", "b"], "page_content": None, "metadata": None}]},
        {"actual": [{"any_of": ["a", "b"]}]},
    ),
    "an id": ({"predicted": [{"page_content": "a", "id": "7"}]},
              {"predicted": [{"page_content": "a", "id": "7"}]}),
    "nothing": ({"actual": [], "predicted": []}, {"actual": [], "predicted": []}),
    "an empty question": ({"question": ""}, {"label": None}),
    "no question": ({"question": None}, {"label": None}),
    "an empty text": ({"actual": [""]}, {"actual": [""]}),
    "a serialised document": (
        {"predicted": [{"lc": 1, "type": "constructor", "id": ["x", "Document"],
                        "kwargs": {"page_content": "a"}}]},
        {"predicted": [{"page_content": "a"}]},
    ),
}  # fmt: skip
REFUSED = {
    "a printed document": ({"actual": ["page_content='a' metadata={}"]}, "actual", "[0]"),
    "null": ({"predicted": None}, "predicted", ""),
    "no document": ({"predicted": ["a", None]}, "predicted", "[1]"),
    "no text and no id": ({"predicted": [{"page": "7"}]}, "predicted", "[0]"),
    "alternatives retrieved": ({"predicted": [{"any_of": ["a"]}]}, "predicted", "[0]"),
    "alternatives within": ({"actual": [{"any_of": [{"any_of": ["a"]}]}]}, "actual",
                            "[0].any_of[0]"),
    "metadata that is text": ({"actual": [{"page_content": "a", "metadata": "m"}]}, "actual",
                              "[0].metadata"),
    "an id that is a number with a point": ({"actual": [{"page_content": "a", "id": 1.5}]},
                                            "actual", "[0].id"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize(("change", "expected"), READ.values(), ids=list(READ))
def test_what_is_read(tmp_path, change, expected):
    """The same label and the same documents."""
    found = one_verdict(FIRST | change, tmp_path)
    assert not found.problem
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(("change", "argument", "within"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_refused(tmp_path, change, argument, within):
    """The same field, and the same place within it."""
    found = one_verdict(FIRST | change, tmp_path)
    assert found.problem
    assert (found.argument, found.within) == (argument, within)


texts = st.sampled_from(["a", "", "page_content='a' metadata={}", "['a']", "a, b"])
documents = (
    texts
    | st.none()
    | st.fixed_dictionaries({"page_content": texts | st.none()}, optional={"id": texts | st.none()})
    | st.fixed_dictionaries({"any_of": st.none() | st.lists(texts, max_size=2)},
                            optional={"page_content": texts | st.none()})
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@settings(max_examples=trials(60), suppress_health_check=[HealthCheck.function_scoped_fixture],
          deadline=None)  # fmt: skip
@given(actual=texts.filter(lambda text: text[:1] != "a") | st.lists(documents, max_size=2),
       predicted=st.lists(documents, max_size=2))  # fmt: skip
def test_any_row_has_one_verdict(tmp_path, actual, predicted):
    """Whatever it is."""
    one_verdict({"question": "Q", "actual": actual, "predicted": predicted}, tmp_path)


@pytest.mark.parametrize("text", ["a", "a, b", "[공지] 서울, 강남 [끝]", "(주)회사"])
def test_a_text_is_a_list_of_one_but_in_tables(tmp_path, text):
    """JSON and rows have lists, so a text is a document; a cell of a table may spell anything."""
    row = FIRST | {"question": "Q", "actual": text}
    for way, found in ways(row, tmp_path):
        if way in ("read_jsonl", ".jsonl", "a stream of .jsonl", "rows", "arrays"):
            assert found == Verdict("Q", [text], ["eight", "nine"]), way
        else:
            assert (found.argument, found.within, bool(found.problem)) == ("actual", "", True), way


def test_a_question_that_comes_again_with_a_text_is_refused(tmp_path):
    """Its rows are one query, which ``cells="text"`` makes of them; two would be other numbers."""
    rows = [{"question": "Q", "actual": "a", "predicted": one} for one in "ba"]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    for read in (read_jsonl, load_dataset, evaluate_file):
        with pytest.raises(DatasetError) as caught:
            read(path)  # type: ignore[operator]
        assert (caught.value.line, caught.value.fix.settings) == (2, (("cells", "text"),))
    assert load_dataset(path, cells="text").predicted == [["b", "a"]]
    rows[1]["question"] = "R"
    assert load_dataset(rows).predicted == [["b"], ["a"]]


def test_a_query_that_lacks_a_field_is_named(tmp_path):
    """As missing, in either way to read lines."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(FIRST) + '\n{"question": "Q", "actual": []}\n')
    for read in (read_jsonl, load_dataset, evaluate_file):
        with pytest.raises(DatasetError) as caught:
            read(path)  # type: ignore[operator]
        assert (caught.value.line, caught.value.problem) == (2, 'no field "predicted"')


def test_an_empty_question_is_counted_as_missing(tmp_path):
    """So all are labelled by position, with a warning."""
    path = as_jsonl(FIRST | {"question": ""}, tmp_path)
    with pytest.warns(KragEvalWarning, match="1 of 2 queries .* first is on line 2"):
        assert read_jsonl(path).queries == [0, 1]
