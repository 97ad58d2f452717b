"""Documents that an answer cited: how many are ground truth, and how much of that they are."""

import numpy as np
import pytest
from click.testing import CliRunner
from results_made import evaluated, read_back, write_lines

from krag_eval import (
    AnyOf,
    CoverageMatcher,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.cli import main
from krag_eval.core import Budget
from krag_eval.datasets import Dataset
from krag_eval.errors import InvalidInput, InvalidType

ACTUAL, PREDICTED = [["a", "b"], ["c"], ["d"]], [["a", "x"], ["y"], ["d"]]
# b was never retrieved; the second answer cites nothing; of the third nothing is known.
CITED = [["b", "x", "q"], [], None]
BOTH = ["citation_precision", "citation_recall"]


def values(cited, actual=ACTUAL, predicted=PREDICTED, k=1, **options):
    """Return both metrics of each query."""
    result = evaluated(actual, predicted, k=k, metrics=BOTH, cited=cited, **options)
    return [result.tables[k][name].tolist() for name in BOTH]


def same(first, second):
    """Compare lists in which NaN may stand."""
    np.testing.assert_array_equal(first, second)


def test_three_queries_by_hand():
    """One of three citations is one of two items, retrieved or not; an empty list is 0."""
    same(values(CITED), [[1 / 3, 0, np.nan], [1 / 2, 0, np.nan]])
    averages = evaluated(ACTUAL, PREDICTED, cited=CITED).averages(1)
    assert [averages[name] for name in BOTH] == [1 / 6, 1 / 4]
    assert not {*BOTH} & evaluated(ACTUAL, PREDICTED).averages(1).keys()


@pytest.mark.parametrize("k", [1, 2, 9, None])
def test_they_are_the_same_at_every_cutoff(k):
    """At a budget, too."""
    expected = [[1 / 3, 0, np.nan], [1 / 2, 0, np.nan]]
    same(values(CITED, k=k), expected)
    evaluator = OfflineRetrievalEvaluator(ACTUAL, PREDICTED, cited=CITED)
    within = evaluator.evaluate(budget=1, metrics=BOTH).tables[Budget(1, "w")]
    same([within[name] for name in BOTH], expected)


@pytest.mark.filterwarnings("ignore:.*repeat another")
def test_items_are_those_of_recall():
    """Alternatives are one item, so are repeats, and grade 0 is none."""
    none = {"page_content": "n", "metadata": {"grade": 0}}
    actual = [[AnyOf(["a", "b"]), "c", "c", none]]
    cited = [["a", "b", "n", "n"]]
    assert values(cited, actual, [["c"]], grade_key="grade") == [[2 / 4], [1 / 2]]


@pytest.mark.parametrize(("how", "averages"), [("skip", [1, 1]), ("zero", [1 / 2, 1 / 2])])
def test_queries_without_ground_truth(how, averages):
    """Left out of the averages, or 0, whatever was cited for them."""
    result = evaluated([["a"], []], [["a"], []], k=1, metrics=BOTH, cited=[["a"], ["x"]],
                       no_ground_truth=how)  # fmt: skip
    assert list(result.averages().values()) == averages


def test_the_matcher_decides_and_its_threshold_can_be_moved(tmp_path):
    """A citation that holds 4 of 5 words; in a result that was read again as well."""
    result = evaluated([["one two three four five"]], [["x"]], CoverageMatcher(0.9, 2), 1,
                       cited=[["one two three four", "y"]])  # fmt: skip
    read = read_back(result, tmp_path)
    assert read == result
    for one in (result, read):
        table = one.metrics_at_thresholds(["citation_precision@1", "citation_recall@1"], [0.8, 0.9])
        assert table.to_numpy().tolist() == [[1 / 2, 1.0], [0.0, 0.0]]


def test_pieces_of_a_passage_are_cited_together():
    """Neither citation holds enough alone."""
    words = "one two three four five six seven eight nine ten"
    cited = [[words[:24], words[19:], "q"]]
    union = CoverageMatcher(0.9, 2, union=True)
    assert values(cited, [[words]], [["x"]], matcher=union) == [[2 / 3], [1.0]]


@pytest.mark.parametrize(
    ("cited", "kind", "query"),
    [
        ([["a"]], InvalidInput, None),
        ({"nobody": ["a"]}, InvalidInput, None),
        ([["a"], 7, None], InvalidType, 1),
        ([["a"], [AnyOf(["a", "b"])], None], InvalidType, 1),
    ],
)
def test_what_is_no_list_per_query_is_refused(cited, kind, query):
    """Interchangeable documents as well: an answer cites one or the other."""
    with pytest.raises(kind) as caught:
        OfflineRetrievalEvaluator(ACTUAL, PREDICTED, cited=cited)
    assert (caught.value.argument, caught.value.query) == ("cited", query)


def test_what_the_matcher_says_is_about_the_citations():
    """A document without an id, and a blank one."""
    with pytest.raises(InvalidInput) as caught:
        values([[{"page_content": "x"}]], [["a"]], [["a"]], matcher="id")
    assert caught.value.argument.startswith("cited")
    with pytest.warns(KragEvalWarning, match="1 documents of cited") as told:
        OfflineRetrievalEvaluator([["a"]], [["a"]], cited=[[""]]).evaluate(1)
    assert len(told) == 1


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_data_set_keeps_its_citations(tmp_path, ending):
    """And evaluates them; a retriever that is asked anew is not held to them."""
    made = Dataset(list("pqr"), ACTUAL, PREDICTED, questions=list("pqr"), cited=CITED)
    made.save(tmp_path / f"run.{ending}")
    read = load_dataset(tmp_path / f"run.{ending}")
    assert read == made
    assert read.evaluator().evaluate(1)["citation_recall@1"] == 1 / 4
    result = evaluate_retriever(lambda question: ["a"], read, k=1)
    assert not {*BOTH} & result.averages().keys()


@pytest.mark.parametrize("name", ["cited", "인용문서"])
def test_the_shell_holds_them_to_a_floor(tmp_path, name):
    """From a column of either name."""
    rows = [{"question": "q", "actual": ["a"], "predicted": ["a"], name: ["a", "x"]}]
    path = str(write_lines(tmp_path / "run.jsonl", rows))
    for floor, code in (("citation_precision@1=0.5", 0), ("citation_precision@1=0.6", 1)):
        done = CliRunner().invoke(main, ["evaluate", path, "-k", "1", "--fail-under", floor])
        assert done.exit_code == code, done.output
