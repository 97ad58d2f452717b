"""Documents that must not come back: what counts as one, and where the two metrics go."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from reference import no_advice
from results_made import changed, evaluated, read_back, write_lines
from trials import trials

from krag_eval import (
    AnyOf,
    Conventions,
    CoverageMatcher,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    compare,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.cli import main
from krag_eval.core import Budget
from krag_eval.datasets import Dataset
from krag_eval.errors import InvalidInput, InvalidType

ACTUAL, PREDICTED = [["a"], ["b"], ["c"]], [["a", "x", "y"], ["x", "b"], ["z", "c"]]
UNWANTED = [["x", "y"], [], None]
BOTH = ["unwanted", "clean"]


def values(unwanted, k, actual=ACTUAL, predicted=PREDICTED, **options):
    """Return both metrics of each query."""
    result = evaluated(actual, predicted, k=k, metrics=BOTH, unwanted=unwanted, **options)
    return [result.tables[k][name].tolist() for name in BOTH]


def same(first, second):
    """Compare lists in which NaN may stand."""
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("k", "options", "shares", "clean"),
    [
        (1, {}, [0, 0, np.nan], [1, 1, np.nan]),
        (2, {}, [1 / 2, 0, np.nan], [0, 1, np.nan]),
        (3, {}, [2 / 3, 0, np.nan], [0, 1, np.nan]),
        # Beyond what was retrieved: precision's denominator, under either convention.
        (4, {}, [2 / 3, 0, np.nan], [0, 1, np.nan]),
        (4, {"conventions": Conventions.trec()}, [2 / 4, 0, np.nan], [0, 1, np.nan]),
        (None, {}, [2 / 3, 0, np.nan], [0, 1, np.nan]),
    ],
)
def test_three_queries_by_hand(k, options, shares, clean):
    """Two unwanted documents at 2 and 3; an empty list, which is clean; and no list."""
    same(values(UNWANTED, k, **options), [shares, clean])


def test_queries_without_a_list_are_left_out_of_the_averages():
    """1/2 and 0 over two of three queries; without any list there are no such metrics."""
    averages = evaluated(ACTUAL, PREDICTED, k=2, unwanted=UNWANTED).averages()
    assert [averages[name] for name in BOTH] == [1 / 4, 1 / 2]
    assert not {*BOTH} & evaluated(ACTUAL, PREDICTED, k=2).averages().keys()
    undefined = evaluated(ACTUAL, PREDICTED, k=2, unwanted=[None] * 3).averages()
    assert np.isnan([undefined[name] for name in BOTH]).all()


def test_a_document_that_matches_both_counts_in_both():
    """The one document is relevant and unwanted."""
    result = evaluated([["a"]], [["a"]], k=1, unwanted=[["a"]])
    wanted = {"macro_precision": 1, "macro_recall": 1, "unwanted": 1, "clean": 0}
    assert result.averages().items() >= wanted.items()


def test_any_alternative_and_any_label_will_do():
    """As of ground truth; a mapping names queries by their labels."""
    same(values([[AnyOf(["q", "x"])], None, None], 2)[0], [1 / 2, np.nan, np.nan])
    labelled = {"queries": ["When?", "Where?", "Who?"]}
    same(values({"Where?": ["x"]}, 1, **labelled)[0], [np.nan, 1, np.nan])


def test_nothing_retrieved_is_clean():
    """The share of nothing is 0, as everywhere."""
    assert values([["x"]], 5, [["a"]], [[]]) == [[0.0], [1.0]]


@pytest.mark.parametrize(("how", "counted"), [("skip", 1), ("zero", 1 / 2)])
def test_queries_without_ground_truth_may_have_unwanted_documents(how, counted):
    """They count where such queries do: two lists, one of which is not clean."""
    result = evaluated([["a"], []], [["a"], ["x"]], k=1, no_ground_truth=how,
                       unwanted=[["x"], ["x"]])  # fmt: skip
    assert result.averages()["clean"] == counted


OLD = "in 2023 the fee for a lost card was five euros"


def test_the_matcher_and_its_guard_decide():
    """Coverage takes the chunk of another year for neither; its threshold can be moved later."""
    new = OLD.replace("2023", "2024")
    found = [f"{OLD} and ten for two", f"{new} and ten for two"]
    lists = {"actual": [[new]], "predicted": [found], "matcher": "coverage"}
    assert values([[OLD]], 1, **lists) == [[1.0], [0.0]]
    result = evaluated([[new]], [found[1:]], "coverage", 1, unwanted=[[OLD]])
    assert result.averages()["clean"] == 1
    partly = evaluated([["a"]], [["one two three four five six"]],
                       CoverageMatcher(0.9, 2), 1, unwanted=[["four five six seven"]])  # fmt: skip
    table = partly.metrics_at_thresholds("clean@1", [0.5, 0.9])
    assert table["clean@1"].tolist() == [0.0, 1.0]


def test_pieces_of_an_unwanted_document_count_where_documents_count_together():
    """Neither chunk holds enough alone; the second completes it, at its rank."""
    words = "one two three four five six seven eight nine ten"
    chunks = [words[:24], words[19:]]
    union = {"matcher": CoverageMatcher(0.9, 2, union=True)}
    for k, share in ((1, 0), (2, 1)):
        assert values([[words]], k, [["a"]], [chunks], **union)[0] == [share]
    result = evaluated([["a"]], [chunks], k=2, unwanted=[[words]], **union)
    assert [one.unwanted for one in result.explain(0).documents] == [(1,), (1,)]


documents = st.lists(st.sampled_from("abcdef"), max_size=6)


@settings(max_examples=trials(80))
@given(
    lists=st.lists(
        st.tuples(st.just(["a", "b"]), documents, st.none() | documents), min_size=1, max_size=4
    ),
    k=st.sampled_from([1, 2, 4, None]),
)
def test_random_lists_agree_with_the_plain_definition(lists, k):
    """By sets; and the other metrics do not know of it, in a prefix or within a budget."""
    actual, predicted, unwanted = (list(one) for one in zip(*lists, strict=True))
    seen = [one[:k] for one in predicted]
    shares = [
        np.nan if bad is None else sum(one in bad for one in some) / max(len(some), 1)
        for some, bad in zip(seen, unwanted, strict=True)
    ]
    same(values(unwanted, k, actual, predicted)[0], shares)
    clean = [share if np.isnan(share) else float(share == 0) for share in shares]
    same(values(unwanted, k, actual, predicted)[1], clean)
    same(values(unwanted, None, actual, seen), [shares, clean])
    everything = evaluated(actual, predicted, k=k, unwanted=unwanted)
    plain = evaluated(actual, predicted, k=k)
    assert (
        everything.averages().items()
        >= {name: value for name, value in plain.averages().items() if not np.isnan(value)}.items()
    )
    if k is not None and all(predicted):
        budget = Budget(k, "w")  # every document is a word
        with no_advice():
            evaluator = OfflineRetrievalEvaluator(actual, predicted, unwanted=unwanted)
            within = evaluator.evaluate(budget=k, metrics=BOTH).tables[budget]
        same([within[name] for name in BOTH], [shares, clean])


def test_leaving_out_what_is_unjudged_keeps_what_is_unwanted():
    """Somebody listed it, so that it was looked at: a x of a u x."""
    listed = {"judged": [["a"]], "unjudged": "leave_out"}
    assert values([["x"]], None, [["a"]], [["a", "u", "x"]], **listed)[0] == [1 / 2]


# --- refused and told ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unwanted", "kind", "query"),
    [
        ([["x"]], InvalidInput, None),
        ({"nobody": ["x"]}, InvalidInput, None),
        ("x", InvalidType, None),
        ([["x"], 7, None], InvalidType, 1),
        ([["x"], [7], None], InvalidType, 1),
    ],
)
def test_what_is_no_list_per_query_is_refused(unwanted, kind, query):
    """With the argument, and the query where there is one."""
    with pytest.raises(kind) as caught:
        OfflineRetrievalEvaluator(ACTUAL, PREDICTED, unwanted=unwanted)
    assert (caught.value.argument, caught.value.query) == ("unwanted", query)


def test_an_unwanted_document_without_an_id_is_refused_as_one():
    """Where the matcher compares ids; the error does not speak of ground truth."""
    evaluator = OfflineRetrievalEvaluator(
        [["a"]], [["a"]], "id", unwanted=[[{"page_content": "x"}]]
    )
    with pytest.raises(InvalidInput) as caught:
        evaluator.evaluate(1)
    assert caught.value.argument.startswith("unwanted")


def test_metrics_without_lists_are_refused():
    """Named, they have nothing to count."""
    with pytest.raises(InvalidInput) as caught:
        evaluated(ACTUAL, PREDICTED, metrics=["clean"])
    assert caught.value.argument == "metrics"


def test_blank_documents_are_told_once():
    """The predicted ones by the ground truth's match, the unwanted ones by their own."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a", ""]], unwanted=[[" "]])
    with pytest.warns(KragEvalWarning) as told:
        evaluator.evaluate(2)
    assert [str(one.message).partition(" have")[0] for one in told] == [
        "0 ground-truth and 1 predicted documents", "1 documents of unwanted",
    ]  # fmt: skip


# --- kept ------------------------------------------------------------------------------------


def test_a_saved_result_moves_its_threshold_and_names_what_came_back(tmp_path):
    """As before it was saved; without lists nothing is written."""
    lists = [["a"]] * 3, [["one two three", "a"]] * 3
    result = evaluated(*lists, "rouge1", 2, unwanted=[["one two four"], None, []])
    read = read_back(result, tmp_path)
    assert read == result
    assert read.rows.unwanted == result.rows.unwanted
    table = read.metrics_at_thresholds("unwanted@2", [0.5, 0.9])["unwanted@2"]
    assert table.tolist() == [1 / 4, 0.0]
    changed(tmp_path / "result.json", "evidence", "beside", "unwanted", "retrieved", [2, 2, 3])
    with pytest.raises(InvalidInput):
        type(result).from_json(tmp_path / "result.json")
    low = evaluated([["a"]], [["x", "a"]], unwanted=[["q", "x"]])
    assert low.explain(0).predicted["unwanted"].tolist() == [(2,), ()]
    assert read_back(low, tmp_path).explain(0).documents == tuple(
        one.__class__(**{**vars(one), "text": None}) for one in low.explain(0).documents
    )
    evaluated([["a"]], [["x", "a"]]).to_json(tmp_path / "plain.json")
    assert "unwanted" not in (tmp_path / "plain.json").read_text("utf-8")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    "unwanted", [[["x", "y"], None, []], [None, [AnyOf(["x", "y"])], [{"page_content": "x"}]]]
)
def test_a_data_set_keeps_its_lists(tmp_path, ending, unwanted):
    """Those that are missing too, and beside a tag of the same name."""
    made = Dataset(list("pqr"), ACTUAL, PREDICTED, questions=list("pqr"), unwanted=unwanted,
                   tags={"unwanted": [True, None, None]})  # fmt: skip
    made.save(tmp_path / f"run.{ending}")
    read = load_dataset(tmp_path / f"run.{ending}")
    assert read == made
    assert read.evaluator().evaluate(2)["clean@2"] == made.evaluator().evaluate(2)["clean@2"]


@pytest.mark.parametrize("name", ["unwanted", "원치않는문서", "제외문서"])
def test_columns_of_several_names_are_read_and_joined_by_question(name):
    """Text is one document, in a table's cell a tag; the lists of a question's rows are one."""
    row = {"question": "p", "actual": ["a"], "predicted": ["a"]}
    rows = [{**row, name: ["x"]}, {**row, name: ["x", "y"]}]
    assert load_dataset(rows[:1]).unwanted == [["x"]]
    as_text = [{**one, "actual": "a", "predicted": "a"} for one in rows]
    assert load_dataset(as_text, cells="text").unwanted == [["x", "y"]]
    assert load_dataset([{**row, name: "x"}]).unwanted == [["x"]]
    cells = {"question": ["p"], "actual": ["['a']"], "predicted": ["['a']"], name: ["by me"]}
    tagged = load_dataset(pd.DataFrame(cells))
    assert (tagged.unwanted, tagged.tags) == (None, {name: ["by me"]})


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_stream_gives_the_same(tmp_path, ending):
    """In any chunks; its first query says that there are such lists."""
    rows = [
        {"question": str(i), "actual": a, "predicted": p, "unwanted": u}
        for i, (a, p, u) in enumerate(zip(ACTUAL, PREDICTED, UNWANTED, strict=True))
    ]
    path = write_lines(tmp_path / "run.jsonl", rows)
    whole = load_dataset(path).evaluator().evaluate(2)
    streamed = evaluate_file(path, 2, chunk_size=1, per_query=tmp_path / f"rows.{ending}")
    assert streamed.to_dict() == whole.to_dict()
    assert streamed.rows.unwanted == whole.rows.unwanted
    same(streamed.tables[2]["clean"], [0.0, 1.0, np.nan])
    assert streamed.tags == whole.tags == {}
    later = write_lines(tmp_path / "later.jsonl", rows[::-1])
    with pytest.raises(InvalidInput) as caught:
        evaluate_file(later, 2)
    assert caught.value.place.line == 2


def test_retrievers_are_held_to_the_lists_of_a_data_set():
    """Of a Dataset and of rows."""
    rows = [{"question": q, "actual": [q], "unwanted": ["x"]} for q in "ab"]
    for dataset in (rows, load_dataset(rows)):
        result = evaluate_retriever(lambda question: [question, "x"], dataset, k=2)
        assert result["unwanted@2"] == 1 / 2


# --- what rests on it ------------------------------------------------------------------------


def test_results_of_other_lists_are_not_compared():
    """With other documents, but for results that have no such lists."""
    many = [["a"]] * 40, [["a", "x"]] * 40
    ours = evaluated(*many, k=2, unwanted=[["x"]] * 40)
    with pytest.raises(InvalidInput):
        compare(ours, evaluated(*many, k=2, unwanted=[["y"]] * 40), metric="clean@2")
    with pytest.raises(InvalidInput):
        compare(ours, evaluated(*many, k=2, unwanted=[["x"]] * 39 + [None]), metric="clean@2")
    with no_advice():
        assert compare(ours, evaluated(*many, k=2), metric="recall@2", n_resamples=100)


def test_gates_and_slices_know_it(tmp_path):
    """In the shell: a floor, a gate against a baseline, slices, and an explanation."""
    row = {"actual": ["a"], "predicted": ["a", "x"], "unwanted": ["x"]}
    rows = [{**row, "question": str(i), "corpus": "ab"[i % 2]} for i in range(20)]
    clean = [{**one, "predicted": ["a", "y"]} for one in rows]
    new, old = (
        str(write_lines(tmp_path / name, some))
        for name, some in (("new.jsonl", rows), ("old.jsonl", clean))
    )

    def typed(*arguments):
        return CliRunner().invoke(main, arguments)

    floor = typed("evaluate", new, "-k", "2", "--fail-under", "clean@2=1",
                  "--json", str(tmp_path / "new.json"))  # fmt: skip
    assert floor.exit_code == 1
    assert {*BOTH} <= json.loads((tmp_path / "new.json").read_text("utf-8"))["keys"].keys()
    typed("evaluate", old, "-k", "2", "--json", str(tmp_path / "old.json"))
    gate = typed("gate", str(tmp_path / "new.json"), "--baseline", str(tmp_path / "old.json"),
                 "--metric", "clean@2")  # fmt: skip
    assert gate.exit_code == 1, gate.output
    assert "matches unwanted item 1" in typed("explain", new, "-k", "2", "--query", "3").output
    result = load_dataset(new).evaluator().evaluate(2)
    assert [one.value for one in result.by("corpus", metrics="unwanted").rows] == [1 / 2, 1 / 2]
    page = tmp_path / "page.html"
    result.report(page, intervals=False)
    assert "matches unwanted item 1" in page.read_text("utf-8")
