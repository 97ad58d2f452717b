"""The order of retrieved documents by their own ranks and scores, and grades of 0.

Every value is worked out by hand: in ``SHUFFLED`` the one right document, ``a``, has rank 1 of 3
and stands last, so that its reciprocal rank is 1 by its rank and 1/3 by its place.
"""

from __future__ import annotations

import json
import random

import pandas as pd
import pytest
from click.testing import CliRunner

from krag_eval import evaluate_file, load_dataset
from krag_eval.cli import main
from krag_eval.datasets import DatasetError

SHUFFLED = [{"id": "b", "rank": 3}, {"id": "c", "rank": 2}, {"id": "a", "rank": 1}]
QUESTION = {"question": "When?", "actual": [{"id": "a"}]}


def scored(*scores, field="score"):
    """Return records ``a``, ``b``, … with these scores."""
    return [{"id": name, field: score} for name, score in zip("abcdef", scores, strict=False)]


@pytest.fixture
def read(tmp_path):
    """Return what is read of rows, as data sets and as averages, by every route there is."""

    def by_every_route(rows, metric="mrr@3"):
        file = tmp_path / "rows.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        golden, run = tmp_path / "golden.jsonl", tmp_path / "run.jsonl"
        for path, names in ((golden, ("question", "actual")), (run, ("question", "predicted"))):
            lines = [json.dumps({name: row[name] for name in names}) for row in rows]
            path.write_text("\n".join(lines), "utf-8")
        data = [
            load_dataset(file),
            load_dataset(rows),
            load_dataset(pd.DataFrame(rows)),
            load_dataset(golden, retrieved=run),
        ]
        results = [one.evaluator().evaluate(3) for one in data]
        results += [
            evaluate_file(file, 3),
            evaluate_file(file, 3, chunk_size=1),
            evaluate_file(golden, run, 3),
            evaluate_file(golden, run, 3, chunk_size=1),
        ]
        return data, results, {result[metric] for result in results}

    return by_every_route


def test_records_come_in_the_order_of_their_ranks(read):
    """In memory, in chunks, as one file or two; and it is said."""
    data, results, values = read([{**QUESTION, "predicted": SHUFFLED}])
    assert values == {1.0}
    for notes in (*(one.notes for one in data), *(one.notes for one in results[4:])):
        assert sum("order of their ranks" in note for note in notes) == 1


def test_ranks_in_order_change_and_say_nothing(read):
    """From 1, from 0, and as text, which tables hold."""
    for ranks in ((1, 2, 3), (0, 1, 2), ("1", "2", "3"), (1.0, 2.0, 3.0)):
        records = [{"id": name, "rank": rank} for name, rank in zip("bca", ranks, strict=True)]
        data, _, values = read([{**QUESTION, "predicted": records}])
        assert values == {1 / 3}
        assert not any("of their ranks" in note for one in data for note in one.notes)


@pytest.mark.parametrize(
    "ranks", [(1, 3), (1, 1), (2, 3), (0, 2), (1, None), (1, "x"), (1, 1.5), (-1, 0), (1, True)]
)
@pytest.mark.parametrize("chunk_size", [None, 1])
def test_ranks_that_say_no_order_are_refused_by_line(tmp_path, ranks, chunk_size):
    """Gaps, ties, repeats, and what is no rank."""
    records = [{"id": name, "rank": rank} for name, rank in zip("ab", ranks, strict=True)]
    file = tmp_path / "rows.jsonl"
    rows = [{**QUESTION, "predicted": SHUFFLED}, {**QUESTION, "predicted": records}]
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for ask in (lambda: load_dataset(file), lambda: evaluate_file(file, 3, chunk_size=chunk_size)):
        with pytest.raises(DatasetError) as info:
            ask()
        assert (info.value.place.line, info.value.argument) == (2, "predicted")


def test_scores_that_the_order_contradicts_put_it_right(read):
    """Of three lists one is in order; the two others are put into it: 1, and 1 for 1/2 and 1/3."""
    lists = scored(0.9, 0.5), scored(0.1, 0.7), scored(0.2, 0.1, 0.7)
    rows = [
        {"question": f"{right}?", "actual": [{"id": right}], "predicted": records}
        for right, records in zip("abc", lists, strict=True)
    ]
    data, _, values = read(rows)
    assert values == {1.0}
    assert all(any("2 queries were not in the order" in note for note in one.notes) for one in data)


def test_scores_that_rise_in_every_list_are_distances(read):
    """The order stays: a is first of two, then b second of three; (1 + 1/2) / 2."""
    rows = [
        {"question": "a?", "actual": [{"id": "a"}], "predicted": scored(0.1, 0.7)},
        {"question": "b?", "actual": [{"id": "b"}], "predicted": scored(0.2, 0.3, 0.3)},
    ]
    data, _, values = read(rows)
    assert values == {0.75}
    assert all(any("distances" in note for note in one.notes) for one in data)


def test_a_distance_is_the_better_the_smaller_it_is(read):
    """By its name: b, at 0.1, is first."""
    records = scored(0.7, 0.1, 0.3, field="distance")
    _, _, values = read([{"question": "b?", "actual": [{"id": "b"}], "predicted": records}])
    assert values == {1.0}


@pytest.mark.parametrize("scores", [(0.9, 0.9, 0.1), (0.5, 0.5, 0.5), (0.9, None, 0.95)])
def test_scores_in_order_equal_or_lacking_change_nothing(read, scores):
    """A stays first."""
    data, _, values = read([{**QUESTION, "predicted": scored(*scores)}])
    assert values == {1.0}
    assert not any("of their scores" in note for one in data for note in one.notes)


def long_table(column, value):
    """Return a shuffled table of one row a document: 40 questions, ten documents, one right each.

    The right document of question i is its document i % 10, at the rank i % 10 + 1.
    """
    rows = [
        {"question": f"q{i}", "actual": f"d{i}-{i % 10}", "predicted": f"d{i}-{place}",
         column: value(place)}
        for i in range(40) for place in range(10)
    ]  # fmt: skip
    random.Random(0).shuffle(rows)
    return rows


@pytest.mark.parametrize(
    ("column", "value"),
    [("rank", lambda place: place + 1), ("score", lambda place: 1 / (1 + place)),
     ("distance", lambda place: 0.1 * place)],
)  # fmt: skip
def test_a_shuffled_long_table_is_put_into_order(tmp_path, column, value):
    """Mean of 1/1 … 1/10, four times over."""
    file = tmp_path / "long.csv"
    pd.DataFrame(long_table(column, value)).to_csv(file, index=False)
    dataset = load_dataset(file, cells="text")
    expected = sum(1 / rank for rank in range(1, 11)) / 10
    assert dataset.evaluator().calculate_mrr(10)["mrr"] == pytest.approx(expected, abs=1e-15)
    assert any("order" in note for note in dataset.notes)


def test_a_long_table_whose_ranks_repeat_is_refused(tmp_path):
    """Two documents at rank 1."""
    rows = [{"question": "q", "actual": "a", "predicted": one, "rank": 1} for one in "ab"]
    with pytest.raises(DatasetError) as info:
        load_dataset(rows, cells="text")
    assert info.value.place.column == "rank"


def test_a_document_beside_each_of_several_ground_truths_has_one_rank():
    """A table of pairs: two ground truths, two documents, four rows; b is second by its rank."""
    rows = [
        {"question": "q", "actual": truth, "predicted": document, "rank": rank}
        for truth in ("b", "x") for document, rank in (("b", 2), ("a", 1))
    ]  # fmt: skip
    with pytest.raises(DatasetError):  # as before: how often was it retrieved?
        load_dataset(rows, cells="text")


# Grades


JUDGED = [{"doc_id": "a", "relevance": 2}, {"doc_id": "b", "relevance": 0}]


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")  # nothing matches
@pytest.mark.parametrize("field", ["relevance", "grade", "label", "score"])
@pytest.mark.parametrize("zero", [0, 0.0, -1])
def test_what_was_judged_0_is_no_ground_truth(read, field, zero):
    """Of a and b, found is b alone, which is none: recall 0 of 1; with a, 1 of 1."""
    truth = [{"doc_id": "a", field: 2}, {"doc_id": "b", field: zero}]
    for predicted, recall in ((["b"], 0.0), (["a"], 1.0)):
        rows = [{"question": "When?", "actual": truth, "predicted": predicted}]
        data, _, values = read(rows, "recall@3")
        assert values == {recall}
        assert all(
            any(field in note and "as its grade" in note for note in one.notes) for one in data
        )


def test_grades_without_a_zero_stay_what_they_were(read):
    """They are read where the user names them; so is a text, and a field of what was retrieved."""
    for truth in ([{"id": "a", "relevance": 2}], [{"id": "a", "label": "0"}]):
        predicted = [{"id": "a", "relevance": 0, "label": 0}]
        data, results, _ = read([{"question": "?", "actual": truth, "predicted": predicted}])
        assert [one.settings["grades"] for one in results] == ["-"] * 8
        assert not any("as its grade" in note for one in data for note in one.notes)


def test_every_record_is_ground_truth_if_the_user_says_so(tmp_path):
    """In Python and in the shell: of a and b, a is found, 1 of 2."""
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"question": "?", "actual": JUDGED, "predicted": ["a"]}), "utf-8")
    dataset = load_dataset(file)
    for grade_key in ("no", None):
        assert dataset.evaluator(grade_key=grade_key).evaluate(3)["recall@3"] == 0.5
    shell = ["evaluate", str(file), "-k", "3", "--metric", "recall@3", "--grade-key", "no"]
    for more in ((), ("--chunk-size", "1")):
        assert "0.5000" in CliRunner().invoke(main, [*shell, *more]).output
    assert "1.0000" in CliRunner().invoke(main, shell[:-2]).output


def test_alternatives_are_looked_into(read):
    """An any_of whose documents were judged 0 is no item: of the two, one is left, and found."""
    alike = {"any_of": [{"id": "b", "relevance": 0}, {"id": "c", "relevance": 0}]}
    truth = [{"id": "a", "relevance": 1}, alike]
    _, _, values = read([{"question": "?", "actual": truth, "predicted": ["a"]}], "recall@3")
    assert values == {1.0}
