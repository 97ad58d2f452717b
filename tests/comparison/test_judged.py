"""Incomplete ground truth: what was looked at, what was not, and how far the numbers could move."""

import csv
import itertools
import math
import random

import numpy as np
import pytest
from results_made import evaluated, read_back

from krag_eval import (
    Conventions,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    compare,
    evaluate_file,
    load_dataset,
    read_judgements,
)
from krag_eval.core.scoring.metrics import DEFAULT_METRICS
from krag_eval.datasets import Dataset, read_trec
from krag_eval.errors import InvalidInput, InvalidType

# Judged are A, B, C (relevant), N and M; U and V are not.
ACTUAL, RUN, JUDGED = [["A", "B", "C"]], [list("AUNBVMC")], [list("ABCNM")]
few = pytest.mark.filterwarnings("ignore:.*(few|Fewer|same value|no more than|rests on|beyond)")


def evaluator(predicted=RUN, **options):
    """Return an evaluator of the run above."""
    options = {"matcher": "id", "judged": JUDGED, "conventions": Conventions.trec(), **options}
    return OfflineRetrievalEvaluator(ACTUAL, predicted, **options)


@pytest.mark.filterwarnings("ignore:.*no more than")
@pytest.mark.parametrize(
    ("unjudged", "metric", "value"),
    [
        ("wrong", "ndcg@5", (1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / 2)),  # .671386
        ("leave_out", "ndcg@5", (1 + 1 / math.log2(4) + 1 / math.log2(6)) / (1.5 + 1 / math.log2(3))),  # noqa: E501
        ("wrong", "precision@5", 2 / 5),
        ("leave_out", "precision@5", 3 / 5),
        ("wrong", "judged@5", 3 / 5),
        ("wrong", "precision_upper@5", 4 / 5),
        ("wrong", "average_precision@all", (1 + 2 / 4 + 3 / 7) / 3),  # .642857
        ("wrong", "infap@7", (1 + 2 / 4 + 3 / 7) / 3),
        ("wrong", "bpref@7", (1 + (1 - 1 / 2) + (1 - 2 / 2)) / 3),  # .5
        ("wrong", "rbp@all", 0.2 * (1 + 0.8**3 + 0.8**6)),  # .354829
        ("wrong", "rbp_residual@all", 0.2 * (0.8 + 0.8**4) + 0.8**7),  # .451635
    ],
)  # fmt: skip
def test_one_run_by_hand(unjudged, metric, value):
    """Every formula written out for the ranks of A U N B V M C."""
    name, _, k = metric.partition("@")
    k = None if k == "all" else int(k)
    result = evaluator(unjudged=unjudged).evaluate([k], metrics=[name])
    column = next(iter(result.keys))
    # infAP differs from average precision by trec_eval's epsilon of 1e-5.
    assert result.tables[k][column][0] == pytest.approx(value, abs=1e-5)


def test_bounds_stand_beside_precision_and_rbp():
    """The same numbers as always, and how high they could be."""
    metrics = ["precision", "rbp(p=0.5)", "recall"]
    bounded = evaluator(unjudged="bounds").evaluate(7, metrics=metrics)
    assert list(bounded.keys) == [
        "precision", "precision_upper", "rbp(p=0.5)", "rbp_residual(p=0.5)", "recall",
    ]  # fmt: skip
    plain = evaluator(judged=None).evaluate(7, metrics=metrics).to_dict()
    assert bounded.to_dict().items() >= plain.items()
    assert bounded.to_dict()["precision_upper@7"] == 5 / 7


@few
def test_without_judged_nothing_changes(tmp_path):
    """Neither a number nor a byte of the saved file."""
    plain = evaluator(judged=None).evaluate([1, 5, 7])
    known = evaluator().evaluate([1, 5, 7])
    assert known == plain
    plain.to_json(tmp_path / "plain.json")
    assert '"judged"' not in (tmp_path / "plain.json").read_text("utf-8")
    assert plain.rows.judged is None
    compare(plain, known, metric="ndcg@5", n_resamples=100)  # the same numbers can be compared


@pytest.mark.parametrize("judged_only", [False, True])
def test_random_runs_agree_with_trec_eval(judged_only):
    """Graded judgements, some of the pool left unjudged (-1), with and without -J."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = random.Random(7)
    documents = [f"d{i:02}" for i in range(30)]
    names = {"bpref": "bpref", "infAP": "infap", "map": "map", "P_5": "macro_precision"}
    names |= {"recip_rank": "mrr", "Rprec": "r_precision"}
    qrels, run = {}, {}
    for topic in map(str, range(60)):
        pool = rng.sample(documents, rng.randint(2, 20))
        qrels[topic] = {d: rng.choice([-1, 0, 0, 1, 2]) for d in pool} | {"d00": 1}
        listed = rng.sample(documents, rng.randint(1, 25))
        run[topic] = {d: float(100 - i) for i, d in enumerate(listed)}
    measures = {"bpref", "infAP", "map", "P", "recip_rank", "Rprec"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures, judged_docs_only_flag=judged_only)
    expected = theirs.evaluate(run)
    unjudged = "leave_out" if judged_only else "wrong"
    result = read_trec(qrels, run, judged=True).evaluator(unjudged=unjudged).evaluate(
        [5, None], metrics=names.values())  # fmt: skip
    columns = {key: column for column, key in result.keys.items()}
    for measure, key in names.items():
        values = result.tables[5 if measure == "P_5" else None][columns[key]]
        assert values == pytest.approx([expected[q][measure] for q in result.labels], abs=1e-12)


def test_a_repeated_document_stands_once_before_the_relevant_ones():
    """N three times is one document: bpref stays in [0, 1]."""
    result = evaluator([list("NNNMA")]).evaluate([5], metrics=["bpref"])
    assert result.to_dict()["bpref@5"] == 0  # min(2, 3) of min(2, 3) before the only one found


# --- which documents were looked at ----------------------------------------------------------


def numbers(actual, predicted, judged, **options):
    """Return whether each document of one query is judged."""
    made = OfflineRetrievalEvaluator([actual], [predicted], judged=judged, **options)
    return made.evaluate(len(predicted)).rows.judged.known[0]


def test_a_matcher_by_key_tells_documents_apart_by_its_key():
    """Folded text, and the values of metadata; a text may stand for such a key."""
    pages = [{"page_content": "", "metadata": {"source": s}} for s in ("a", "b", "c")]
    from krag_eval import ExactTextMatcher, MetadataMatcher

    folding = ExactTextMatcher(case_sensitive=False)
    assert numbers(["a"], ["A", "B", "C"], [["b"]], matcher=folding) == [True, True, False]
    by_source = MetadataMatcher("source")
    assert numbers(pages[:1], pages, [[pages[1]]], matcher=by_source) == [True, True, False]
    made = OfflineRetrievalEvaluator([pages[:1]], [pages], by_source, judged=[[]])
    key = made.evaluate(3).rows.judged.keys[0][2]
    assert numbers(pages[:1], pages, [[key]], matcher=by_source) == [True, False, True]


def test_other_matchers_know_documents_by_id_or_by_the_whole_text():
    """What covers the ground truth is relevant, and so judged, in any case."""
    found = [
        {"page_content": "the fee is five euros a day", "id": "1"},
        {"page_content": "we open at nine", "id": "2"},
        {"page_content": "closed on Mondays", "id": "3"},
        {"page_content": "closed on Mondays", "id": "4"},
    ]
    truth = ["the fee is five euros"]
    assert numbers(truth, found, [["2"]], matcher="coverage") == [True, True, False, False]
    closed = numbers(truth, found, [["closed on Mondays"]], matcher="coverage")
    assert closed == [True, False, True, True]


@pytest.mark.filterwarnings("ignore:.*matched nothing")
def test_an_item_of_grade_0_was_looked_at():
    """It is listed, and is no ground truth."""
    zero = {"page_content": "n", "metadata": {"grade": 0}}
    assert numbers(["a", zero], ["n", "u"], [[]], grade_key="grade") == [True, False]


@pytest.mark.filterwarnings("ignore:.*matched nothing")
def test_judged_by_label():
    """A query that is not named was not looked at."""
    made = evaluated([["a"]] * 2, [["n"]] * 2, k=1, queries=["q", "r"], judged={"r": ["n"]},
                     metrics=["judged"])  # fmt: skip
    assert made.tables[1]["judged"].tolist() == [0, 1]


# --- condensed lists -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("matcher", ["id", "coverage(min_run=1,union=yes)"])
def test_leaving_out_is_evaluating_the_shorter_lists(matcher):
    """Whatever the matcher; ranks move up, and nothing else changes."""
    rng, words = random.Random(3), ["k", "l", "m", "n", "o", "p", "q"]
    actual = [rng.sample(words, 2) for _ in range(30)]
    predicted = [rng.sample(words, rng.randint(0, 7)) for _ in range(30)]
    judged = [rng.sample(words, 3) for _ in range(30)]
    shorter = [
        [one for one in listed if one in truth + seen]
        for truth, listed, seen in zip(actual, predicted, judged, strict=True)
    ]
    names = ["hit_rate", "precision", "recall", "f1", "mrr", "map", "ndcg", "mean_rank", "rbp"]
    ks = [1, 2, 4, None] if matcher == "id" else [1, 2, None, "2w"]
    how = {"k": ks, "metrics": names}
    left_out = evaluated(actual, predicted, matcher, judged=judged, unjudged="leave_out", **how)
    expected = evaluated(actual, shorter, matcher, **how)
    assert left_out.to_dict() == pytest.approx(expected.to_dict(), nan_ok=True)
    if matcher != "id":
        again = left_out.metrics_at_thresholds("macro_recall@2", [left_out.threshold])
        assert again.iloc[0, 0] == left_out.to_dict()["macro_recall@2"]


# --- kept ------------------------------------------------------------------------------------


def test_saved_results_know_what_was_looked_at(tmp_path):
    """Flags, keys and what bpref needs; a damaged file is refused."""
    result = evaluator().evaluate([5, 7], metrics=["bpref", "judged"])
    read = read_back(result, tmp_path)
    assert read == result
    assert read.rows.judged.known == result.rows.judged.known == [[True, False] + [True] * 2 + [
        False, True, True]]  # fmt: skip
    assert read.rows.judged.keys == [list("AUNBVMC")]
    assert read.evidence.relevance.judged.n_others.tolist() == [2]


@few
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_streamed_rows_know_it_too(ending, tmp_path):
    """A list in the field "judged"; other values of that name stay tags."""
    path = tmp_path / "run.jsonl"
    row = '{"question": "%s", "actual": ["A"], "predicted": ["=U", "A"], "judged": %s}\n'
    path.write_text(row % ("q", "[]") + row % ("r", '["=U"]'), "utf-8")
    rows = tmp_path / f"rows.{ending}"
    streamed = evaluate_file(path, 2, per_query=rows, chunk_size=1, metrics=["judged", "bpref"])
    whole = load_dataset(path).evaluator().evaluate(2, metrics=["judged", "bpref"])
    assert streamed.to_dict() == whole.to_dict()
    assert streamed.rows.judged.known == [[False, True], [True, True]]
    assert [list(one) for one in streamed.rows.judged.keys] == whole.rows.judged.keys
    assert list(streamed.rows.judged.digests) == whole.rows.judged.digests
    assert streamed.tags == whole.tags == {}


def test_a_stream_says_from_its_first_query_on_what_was_looked_at(tmp_path):
    """Rows of one file have the same columns, so that a later query cannot begin to say it."""
    path = tmp_path / "run.jsonl"
    row = '{"actual": ["A"], "predicted": ["A"]%s}\n'
    path.write_text(row % "" + row % ', "judged": ["N"]', "utf-8")
    with pytest.raises(InvalidInput) as caught:
        evaluate_file(path, 1)
    assert caught.value.place.line == 2


# --- what could change a comparison ----------------------------------------------------------


def two(metric, actual=(("A", "B"), ("A",)), judged=(("N",), ())):
    """Compare two lists of two queries, some of their documents unjudged."""
    lists = {"old": [list("AUBN"), list("VAW")], "new": [list("UXAB"), list("VYA")]}
    how = {"judged": list(map(list, judged)), "metrics": [*DEFAULT_METRICS, "rbp"]}
    results = {
        name: evaluated(list(map(list, actual)), predicted, "id", (1, 3), **how)
        for name, predicted in lists.items()
    }
    return compare(results, metric=metric, n_resamples=100)


def test_an_explanation_says_that_numbers_leave_out_what_is_unjudged():
    """Its ranks are those of the whole list, where U and V still stand."""
    whole, condensed = (
        evaluator(unjudged=unjudged).evaluate(5).explain(0) for unjudged in ("wrong", "leave_out")
    )
    assert (whole.condensed, condensed.condensed) == (False, True)
    assert condensed.metrics["reciprocal_rank"] == 1
    assert [one.rank for one in condensed.documents] == [1, 2, 3, 4, 5, 6, 7]
    assert "leave out unjudged documents" in str(condensed)
    assert "leave out unjudged documents" not in str(whole)
    korean = evaluator(unjudged="leave_out").evaluate(5).explain(0, language="ko")
    assert "판정되지 않은" in str(korean)


@few
@pytest.mark.parametrize("metric", ["precision@3", "recall@3", "ndcg@3", "ndcg@1", "rbp@3"])
def test_the_interval_is_reached_and_never_left(metric):
    """All 2**4 ways to judge the unjudged documents of each query, evaluated anew."""
    found = two(metric).to_judge(metric=None)
    unjudged = [["U", "X"], ["V", "W", "Y"]]
    per_query = []
    for query, documents in enumerate(unjudged):
        differences = []
        for n in range(len(documents) + 1):
            for relevant in itertools.combinations(documents, n):
                truth = [["A", "B"], ["A"]]
                truth[query] = [*truth[query], *relevant]
                values = two(metric, actual=truth).per_query
                (values,) = values.values()
                differences.append(values["new"][query] - values["old"][query])
        per_query.append((min(differences), max(differences)))
    low, high = np.mean(per_query, axis=0)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.low <= found.difference <= found.high


@few
def test_the_most_decisive_documents_come_first():
    """P@3: X and Y are in new alone, W in old alone; U is in both and decides nothing."""
    found = two("precision@3").to_judge()
    assert {(one.query, one.key): (one.rank_a, one.rank_b, round(one.weight, 6))
            for one in found.documents} == {
        (0, "X"): (None, 2, 0.333333),
        (1, "W"): (3, None, -0.333333),
        (1, "Y"): (None, 2, 0.333333),
    }  # fmt: skip
    ranked = two("ndcg@3").to_judge()
    weights = [abs(one.weight) for one in ranked.documents]
    assert weights == sorted(weights, reverse=True)
    assert two("ndcg@3").to_judge(2).documents == ranked.documents[:2]
    assert two("ndcg@3").to_judge(2).n_decisive == ranked.n_decisive == len(ranked.documents)


@few
def test_a_document_that_both_have_at_one_rank_may_move_the_difference():
    """Of N U A and A U N, U adds to what there is to find, and divides nDCG's 1 - 1/2 by more."""
    a, b = (
        evaluated([["A"]], [run], "id", 3, judged=[["A", "N"]])
        for run in (["N", "U", "A"], ["A", "U", "N"])
    )
    found = compare(a, b, metric="ndcg@3", n_resamples=100).to_judge()
    assert (found.difference, found.high) == (0.5, 0.5)
    assert found.low == pytest.approx(0.5 / (1 + 1 / math.log2(3)))
    assert [(one.key, one.weight) for one in found.documents] == [("U", 0)]
    assert found.n_decisive == 1
    # Precision has no ideal, so that nothing moves it.
    assert compare(a, b, metric="precision@3", n_resamples=100).to_judge().n_decisive == 0


@few
def test_items_that_queue_behind_one_document_are_warned_of():
    """A document with two items holds places 1 and 2, and leaves the next one less than rank 2."""
    actual, both = [["alpha one", "beta two"]], "alpha one beta two"
    results = [
        evaluated(actual, [run], "contains", 2, judged=[[*actual[0], both]])
        for run in (["alpha one", "unseen"], [both, "unseen"])
    ]
    comparison = compare(*results, metric=["ndcg@2", "recall@2"], n_resamples=100)
    with pytest.warns(KragEvalWarning, match="several items: 1"):
        comparison.to_judge(metric="ndcg@2")
    comparison.to_judge(metric="recall@2")


@few
def test_judgements_are_filled_in_and_read_back(tmp_path):
    """The next evaluation has them as ground truth, and nothing decisive is left."""
    found = two("precision@3").to_judge()
    found.to_csv(tmp_path / "judge.csv")
    text = (tmp_path / "judge.csv").read_text("utf-8")
    header, *rows = text.splitlines()
    assert header == "query,key,text,rank_a,rank_b,weight,relevant"
    filled = [row + ("예" if ",X," in row else "0") for row in rows]
    (tmp_path / "judge.csv").write_text("\n".join([header, *filled]), "utf-8")
    read = read_judgements(tmp_path / "judge.csv")
    assert read.relevant == {"0": ["X"]}
    actual, judged = read.added_to([["A", "B"], ["A"]], [["N"], []])
    assert actual == [["A", "B", "X"], ["A"]]
    again = two("precision@3", actual=actual, judged=judged).to_judge()
    assert again.documents == ()
    assert again.low == again.difference == again.high
    with pytest.raises(InvalidInput):
        read.added_to([["A"]], [[]], ["another"])


@pytest.mark.parametrize(
    ("content", "argument", "line"),
    [
        (b"query,key,relevant\nq,a,1\nq,b,maybe\n", "relevant", 3),
        (b"query,key,relevant\nq,a,1\nq,b,2\n", "relevant", 3),
        (b"query,key,relevant\nq,a,1\nq,a,0\n", "", 3),  # two answers
        ("query,key,relevant\nq,a,예\n".encode("cp949"), "", 2),
        ("query,key,relevant\nq,a,1\n".encode("utf-16"), "", None),
        (b"query;key;relevant\nq;a;1\n", "", 1),
        (b"", "", None),
    ],
)
def test_another_answer_or_file_is_refused_with_its_place(content, argument, line, tmp_path):
    """Also one that a spreadsheet saved in another encoding, or with other separators."""
    path = tmp_path / "judge.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        read_judgements(path)
    error = caught.value
    assert (error.argument, error.file, error.line) == (argument, str(path), line)


def test_a_table_of_excel_in_korean_is_read(tmp_path):
    """Its encoding and what separates its cells can be named."""
    path = tmp_path / "judge.csv"
    path.write_bytes("query;key;relevant\n질문;문서;예\n".encode("cp949"))
    found = read_judgements(path, encoding="cp949", delimiter=";")
    assert found.relevant == {"질문": ["문서"]}


def test_a_long_document_is_read_back(tmp_path):
    """Python's csv module takes cells of 131,072 characters by itself, and a key may be a text."""
    before = csv.field_size_limit()
    path, long = tmp_path / "judge.csv", "word " * 40_000
    path.write_text(f'query,key,relevant\nq,"{long}",1\n', "utf-8")
    assert read_judgements(path).relevant == {"q": [long]}
    assert csv.field_size_limit() == before


@few
def test_it_works_on_saved_results(tmp_path):
    """Which hold flags and keys; texts where they were kept."""
    comparison = two("ndcg@3")
    saved = {name: read_back(one, tmp_path) for name, one in comparison.given.items()}
    again = compare(saved, metric="ndcg@3", n_resamples=100).to_judge()
    found = comparison.to_judge()
    assert (again.low, again.high, again.documents) == (found.low, found.high, found.documents)


# --- saved with a data set ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    "judged",
    [
        {"q0": ["A", "N"], "q1": ["B"]},
        {"q1": ["B", "N"]},
        [("A", "N"), None],
        [{"A": True, "N": False}, ["B"]],
        [{"A": True, "N": False}, {"B": True}],
    ],
)
def test_a_data_set_keeps_what_was_looked_at(tmp_path, ending, judged):
    """Given by label or per query, as lists or pools, and beside a tag of the same name."""
    made = Dataset(["q0", "q1"], [["A"], ["B"]], [["N", "A"], ["U", "B"]], questions=["q0", "q1"],
                   judged=judged, tags={"judged": [True, None]})  # fmt: skip
    made.save(tmp_path / f"run.{ending}")
    read = load_dataset(tmp_path / f"run.{ending}")
    assert read == made
    metrics = ["judged", "bpref", "infap"]
    expected = OfflineRetrievalEvaluator(
        made.actual, made.predicted, queries=made.queries, judged=judged
    )
    averages = expected.evaluate(2, metrics=metrics).to_dict()
    assert read.evaluator().evaluate(2, metrics=metrics).to_dict() == averages
    if ending != "csv":  # which is read whole
        streamed = evaluate_file(tmp_path / f"run.{ending}", k=2, metrics=metrics)
        assert streamed.to_dict() == averages


@pytest.mark.parametrize("field", ['{"A": "yes"}', "{A: 1}"])
def test_a_pool_says_true_or_false(tmp_path, field):
    """Another object is refused, with its place."""
    path = tmp_path / "run.csv"
    field = field.replace('"', '""')
    path.write_text(f'question,actual,predicted,judged\nq,"[""A""]","[""A""]","{field}"\n', "utf-8")
    with pytest.raises((InvalidInput, InvalidType), match=r"run\.csv"):
        load_dataset(path)


def test_a_question_without_documents_has_nothing_to_judge_there() -> None:
    """One system retrieved nothing for the second question: precision 0 there, and no weights."""
    actual, judged = [["A"], ["B"]], [["A"], ["B"]]
    one, other = (evaluated(actual, [["A"], rest], "id", 1, judged=judged) for rest in ([], ["U"]))
    with pytest.warns(KragEvalWarning, match="2 queries"):
        found = compare({"one": one, "other": other}, metric="precision@1").to_judge()
    # U alone is unjudged; if it is relevant, other's mean precision is 1 where one's is 1/2.
    assert [document.key for document in found.documents] == ["U"]
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.5)
