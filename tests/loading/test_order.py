"""Ranks and scores beside documents say their order, by every way in which documents come."""

import json
import random
import warnings

import pandas as pd
import pytest

from krag_eval import (
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.core import id_of
from krag_eval.datasets import read_jsonl
from krag_eval.distributed.worker import document_lists
from krag_eval.errors import DatasetError, InvalidInput
from krag_eval.partitions import PartitionPlan

# The ground truth is "a" for each of four queries. By rank and by score it comes first, in the
# order of the lists third, first, second and third: MRR (1/3 + 1 + 1/2 + 1/3) / 4 = 13/24 as
# listed, and 1 in order.
ORDERS = ["cba", "abc", "bac", "bca"]
RANKS = {"a": 1, "b": 2, "c": 3}
SCORES = {"a": 0.9, "b": 0.5, "c": 0.1}


def records(order, **beside):
    """Return the documents of a list, with what stands beside each."""
    return [{"id": one, **{name: of[one] for name, of in beside.items()}} for one in order]


def rows(**beside):
    """Return a row for each query."""
    return [{"id": f"q{n}", "question": f"{n}?", "actual": ["a"],
             "predicted": records(order, **beside)} for n, order in enumerate(ORDERS)]  # fmt: skip


def saved(path, lines):
    """Write rows as the name of the file says."""
    if path.suffix == ".parquet":
        pd.DataFrame(lines).to_parquet(path)
    elif path.suffix == ".csv":
        cells = [{name: json.dumps(one) if isinstance(one, list) else one
                  for name, one in row.items()} for row in lines]  # fmt: skip
        pd.DataFrame(cells).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
    return path


def _loaded(suffix):
    def evaluated(folder, lines):
        dataset = load_dataset(saved(folder / f"rows{suffix}", lines))
        return dataset.evaluator().evaluate(), dataset.notes

    return evaluated


def _of_rows(folder, lines):
    dataset = load_dataset(lines)
    return dataset.evaluator().evaluate(), dataset.notes


def _lines(folder, lines):
    dataset = read_jsonl(saved(folder / "rows.jsonl", lines))
    return dataset.evaluator().evaluate(), dataset.notes


def _file(suffix, **how):
    def evaluated(folder, lines):
        result = evaluate_file(saved(folder / f"rows{suffix}", lines), None, **how)
        return result, result.notes

    return evaluated


def _halves(folder, lines):
    golden = [{name: row[name] for name in ("id", "question", "actual")} for row in lines]
    run = [{name: row[name] for name in ("id", "predicted")} for row in reversed(lines)]
    return saved(folder / "golden.jsonl", golden), saved(folder / "run.jsonl", run)


def _two_files(folder, lines):
    golden, run = _halves(folder, lines)
    dataset = load_dataset(golden, retrieved=run)
    return dataset.evaluator().evaluate(), dataset.notes


def _two_streams(**how):
    def evaluated(folder, lines):
        result = evaluate_file(*_halves(folder, lines), None, **how)
        return result, result.notes

    return evaluated


def _lists(folder, lines):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        predicted = [row["predicted"] for row in lines]
        evaluator = OfflineRetrievalEvaluator([["a"]] * len(lines), predicted, "id")
        return evaluator.evaluate(), [str(one.message) for one in said]


DOORS = {
    "JSON lines": _loaded(".jsonl"),
    "CSV": _loaded(".csv"),
    "Parquet": _loaded(".parquet"),
    "rows": _of_rows,
    "read_jsonl": _lines,
    "a stream, small": _file(".jsonl"),
    "a stream": _file(".jsonl", chunk_size=1),
    "a stream of Parquet": _file(".parquet", chunk_size=2),
    "two files": _two_files,
    "two streams": _two_streams(),
    "two streams in chunks": _two_streams(chunk_size=1),
    "lists": _lists,
}


@pytest.fixture(params=DOORS)
def evaluated(request, tmp_path):
    """Return a function from rows to what they come to, and what is said, by each door."""
    return lambda lines: DOORS[request.param](tmp_path, lines)


@pytest.mark.parametrize(
    ("beside", "word", "n"),
    [
        ({"rank": RANKS}, "ranks", 3),
        ({"rank": {"a": 0, "b": 1, "c": 2}}, "ranks", 3),
        ({"score": SCORES}, "scores", 3),
        ({"relevance_score": SCORES}, "scores", 3),
        ({"rank": {"a": "1", "b": "2", "c": "3"}}, "ranks", 3),
        ({"distance": {"a": 0.1, "b": 0.5, "c": 0.9}}, "scores", 3),
        ({"rank": RANKS, "score": {"a": 5, "b": 9, "c": 7}}, "ranks", 3),
    ],
    ids=[
        "ranks",
        "from 0",
        "scores",
        "of a reranker",
        "ranks as text",
        "distances",
        "ranks before scores",
    ],
)
def test_documents_are_put_in_order(evaluated, beside, word, n):
    """What comes first by rank or score is first, and a sentence counts the lists."""
    result, notes = evaluated(rows(**beside))
    assert result.averages()["mrr"] == 1
    (note,) = [one for one in notes if "put into the order" in one]
    assert f"{n} of 4" in note
    assert word in note


@pytest.mark.parametrize(
    "beside",
    [
        {},
        {"page": RANKS},
        {"score": SCORES, "relevance_score": SCORES},
        {"score": {**SCORES, "c": None}},
    ],
    ids=["nothing", "another field", "two scores", "one score missing"],
)
def test_what_says_no_order_changes_none(evaluated, beside):
    """By hand: 13/24, and no sentence."""
    result, notes = evaluated(rows(**beside))
    assert result.averages()["mrr"] == pytest.approx(13 / 24)
    assert not [one for one in notes if "put into" in one]


def test_metadata_describe_a_document_and_rank_nothing(evaluated):
    """Earlier stages of a pipeline leave their ranks and scores there."""
    lines = [
        {**row, "predicted": [{"page_content": one["id"], "id": one["id"], "metadata": one}
                              for one in row["predicted"]]}
        for row in rows(rank=RANKS, score=SCORES)
    ]  # fmt: skip
    result, notes = evaluated(lines)
    assert result.averages()["mrr"] == pytest.approx(13 / 24)
    assert not [one for one in notes if "put into" in one]


def test_scores_that_rise_are_distances(evaluated):
    """In every list they rise or, in one, go both ways: the least is the best, and it is said."""
    lines = rows(score={"a": 0.1, "b": 0.5, "c": 0.9})
    for row, order in zip(lines, ["abc", "abc", "bac", "abc"], strict=True):
        row["predicted"] = records(order, score={"a": 0.1, "b": 0.5, "c": 0.9})
    result, notes = evaluated(lines)
    assert result.averages()["mrr"] == 1
    assert [one for one in notes if "distances" in one]
    assert [one for one in notes if "1 of 4" in one and "scores" in one]


def test_scores_that_rise_where_others_fall_are_put_in_order(evaluated):
    """Half of the lists are the wrong way round."""
    lines = rows()
    for row, order in zip(lines, ["abc", "cba", "abc", "cba"], strict=True):
        row["predicted"] = records(order, score=SCORES)
    result, notes = evaluated(lines)
    assert result.averages()["mrr"] == 1
    assert [one for one in notes if "2 of 4" in one]


@pytest.mark.parametrize(
    "ranks",
    [
        {"a": 1, "b": 3, "c": 4},
        {"a": 2, "b": 3, "c": 4},
        {"a": 1, "b": 2, "c": 2},
        {"a": 1, "b": 1, "c": 1},
        {"a": 1, "b": 2, "c": None},
        {"a": 1, "b": 2, "c": 2.5},
        {"a": -1, "b": 0, "c": 1},
        {"a": 1, "b": 2, "c": 2**60},
    ],
    ids=["gap", "from 2", "tie", "all alike", "one missing", "fraction", "negative", "huge"],
)
def test_ranks_that_say_no_order_are_refused(evaluated, ranks):
    """Where they are first met; in a file by its line or row."""
    lines = rows(rank=RANKS)
    lines[2]["predicted"] = records("bac", rank=ranks)
    with pytest.raises(InvalidInput) as caught:
        evaluated(lines)
    place = caught.value.place
    if place is None:
        assert caught.value.query == 2
    elif place.name.endswith("run.jsonl"):
        assert place.line == 2  # whose lines are the other way round
    else:
        assert place.line in (3, 4) or place.row == 2


def test_ranks_that_begin_differently_are_refused(evaluated):
    """Where ranks begin at 0, a list from 1 on lacks its first document."""
    lines = rows(rank={"a": 0, "b": 1, "c": 2})
    lines[3]["predicted"] = records("bca", rank=RANKS)
    with pytest.raises(InvalidInput):
        evaluated(lines)


def test_scores_of_which_most_rise_and_some_fall_are_refused(evaluated):
    """Nobody knows which of them are wrong."""
    lines = rows() * 2
    for n, row in enumerate(lines):
        row = lines[n] = {**row, "id": f"q{n}", "question": f"{n}?"}
        row["predicted"] = records("abc" if n == 7 else "cba", score=SCORES)
    with pytest.raises(InvalidInput):
        evaluated(lines)


@pytest.mark.parametrize(
    "beside",
    [
        ("rank", RANKS),
        ("순위", RANKS),
        ("score", SCORES),
        ("점수", SCORES),
        ("distance", {"a": 0.1, "b": 0.5, "c": 0.9}),
        ("거리", {"a": "0.1", "b": "0.5", "c": "0.9"}),
    ],
)
@pytest.mark.parametrize("door", ["rows", "frame", ".csv", ".parquet"])
@pytest.mark.parametrize("tags", [True, False])
def test_long_tables_are_put_in_order(tmp_path, beside, door, tags):
    """One row for each document, shuffled as a data base returns it."""
    name, of = beside
    table = [{"question": f"{n}?", "actual": "a", "predicted": one, name: of[one]}
             for n in range(20) for one in "abc"]  # fmt: skip
    random.Random(7).shuffle(table)
    source = {"rows": table, "frame": pd.DataFrame(table)}.get(door)
    source = saved(tmp_path / f"table{door}", table) if source is None else source
    dataset = load_dataset(source, cells="text", tags=tags)
    assert dataset.predicted == [["a", "b", "c"]] * 20
    assert [one for one in dataset.notes if "put into the order" in one]
    assert not [one for one in dataset.notes if "cannot be" in one]
    assert dataset.tags == {}


@pytest.mark.parametrize("ranks", [["2", "3"], ["1", "1"], ["1", ""], ["1", "1.5"]])
def test_ranks_of_a_long_table_that_say_no_order_are_refused(tmp_path, ranks):
    """By the line where its question begins."""
    lines = ["question,actual,predicted,rank", "1?,a,a,1", f"2?,a,a,{ranks[0]}",
             f"2?,a,b,{ranks[1]}"]  # fmt: skip
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(DatasetError) as caught:
        load_dataset(path, cells="text")
    assert caught.value.place is not None
    assert (caught.value.argument, caught.value.place.line) == ("rank", 3)


def test_a_question_of_one_row_is_held_to_its_rank(tmp_path):
    """In a table of one document per row, where what was ranked first is missing."""
    ranked = [("1?", "a", 1), ("1?", "b", 2), ("2?", "a", 2)]
    table = [{"question": question, "actual": "a", "predicted": one, "rank": rank}
             for question, one, rank in ranked]  # fmt: skip
    with pytest.raises(DatasetError) as caught:
        load_dataset(table, cells="text")
    assert caught.value.place is not None
    assert caught.value.place.row == 2


def test_a_rank_of_the_question_stays_a_tag():
    """Where each row is a query, or its value is no number, it says nothing of documents."""
    table = [{"question": f"{n}?", "actual": "a", "predicted": "a", "rank": n} for n in (4, 2)]
    assert load_dataset(table, cells="text").tags == {"rank": [4, 2]}
    table = [{"question": "?", "actual": "a", "predicted": one, "rank": "hard"} for one in "ba"]
    dataset = load_dataset(table, cells="text")
    assert (dataset.predicted, dataset.tags) == ([["b", "a"]], {"rank": ["hard"]})


def test_pairs_with_scores_are_put_in_order():
    """As a vector store returns them, and a data base gives them back in any order."""
    with pytest.warns(KragEvalWarning, match="1 of 1"):
        evaluator = OfflineRetrievalEvaluator([["a"]], [[("b", 0.5), ("c", 0.1), ("a", 0.9)]])
    assert evaluator.calculate_mrr() == {"mrr": 1.0}


def test_what_a_retriever_returns_first_is_first():
    """Scores do not order what was asked for just now; a rank that is returned does."""
    asked = [{"question": "When?", "actual": ["a"]}]
    pairs = [("b", 0.1), ("a", 0.9), ("c", 0.5)]
    with pytest.warns(KragEvalWarning, match="the order of the lists stands"):
        result = evaluate_retriever(lambda question: pairs, asked)
    assert result.averages(5)["mrr"] == 0.5
    result = evaluate_retriever(lambda question: records("cba", rank=RANKS), asked, matcher="id")
    assert result.averages(5)["mrr"] == 1


def test_parts_on_a_cluster_are_ordered_by_rank_alone():
    """Nobody there knows the scores of all lists; that some go both ways is said at the end."""
    cells = [json.dumps(records(order, rank=RANKS)) for order in ORDERS]
    lists = document_lists(cells, "predicted", ground_truth=False, ranked=True)
    plan = PartitionPlan.of(3, matcher="id")
    part = plan.evaluate([["a"]] * 4, lists)
    assert plan.result([part.partial]).averages(3)["mrr"] == 1
    scored = plan.evaluate([["a"]] * 4, [records(order, score=SCORES) for order in ORDERS])
    with pytest.warns(KragEvalWarning, match="In 2 lists"):
        result = plan.result([scored.partial])
    assert result.averages(3)["mrr"] == pytest.approx(13 / 24)


def test_a_killed_stream_says_what_it_put_in_order(tmp_path):
    """Also where the lists in question were read before it was killed."""
    path, output = saved(tmp_path / "rows.jsonl", rows(score=SCORES)), tmp_path / "out.csv"
    expected = evaluate_file(path, 3, chunk_size=1)
    from krag_eval.streaming import files

    add, n_parts = files.RunState.add, iter(range(10))

    def killed(state, *arguments):
        if next(n_parts) == 3:
            raise KeyboardInterrupt
        add(state, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.RunState, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            evaluate_file(path, 3, chunk_size=1, per_query=output)
    result = evaluate_file(path, 3, chunk_size=1, per_query=output)
    assert result.notes == expected.notes
    assert result.averages(3) == expected.averages(3)


def test_a_data_set_in_order_is_saved_in_order(tmp_path):
    """And nothing more is said of it."""
    dataset = load_dataset(rows(rank=RANKS, score=SCORES))
    dataset.save(tmp_path / "saved.jsonl")
    again = load_dataset(tmp_path / "saved.jsonl")
    assert again == dataset
    assert [[id_of(one) for one in some] for some in again.predicted or ()] == [["a", "b", "c"]] * 4
    assert not [one for one in again.notes if "put into" in one]
