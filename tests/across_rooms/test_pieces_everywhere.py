"""Pieces, words and budgets: the same digits wherever a run is evaluated, and all of it is kept."""

import json
import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from reference_pieces import random_case
from results_made import MISSING, changed, read_back

from krag_eval import (
    METRICS,
    AnyOf,
    Conventions,
    CoverageMatcher,
    EvaluationResult,
    OfflineRetrievalEvaluator,
    RetrievalRecorder,
    compare,
    evaluate_retriever,
)
from krag_eval.core.scoring.cutoffs import unspelled
from krag_eval.distributed.worker import PARTIAL, Fields, Task, unpacked
from krag_eval.errors import InvalidInput
from krag_eval.integrations.langsmith import retrieval_evaluators
from krag_eval.partitions import PartitionPlan
from krag_eval.streaming import evaluate_file
from krag_eval.streaming.files import RunState

pytestmark = [
    pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning"),
    pytest.mark.filterwarnings("ignore:.*empty or blank text:UserWarning"),
]


def letters(text):
    """Measure a text as a function of one's own."""
    return sum(map(str.isalpha, text))


METRIC_NAMES = [
    *(
        name
        for name, one in METRICS.items()
        if not (one.needs_judged or one.needs_aspects or one.needs_list)
    ),
    "rbp(p=0.5)",
]
ASKED = {"k": [1, 3, None, "9w"], "budget": [4, 25], "length": letters, "metrics": METRIC_NAMES}
OPTIONS = {
    "matcher": CoverageMatcher(0.6, 2, "whitespace", union=True),
    "no_ground_truth": "skip",
    "grade_key": "grade",
}


def lines():
    """Return queries with alternatives, grades, repeats, short and blank texts, empty lists."""

    def document(text, grade):
        return {"page_content": " ".join(text), "metadata": {"grade": grade}}

    queries = [query for seed in range(12) for query in random_case(seed).queries]
    return [
        {
            "question": f"Q{number}",
            "actual": [
                {"any_of": [document(text, grade) for text in item]}
                for item, grade in zip(query.items, query.grades, strict=True)
            ],
            "predicted": [" ".join(document) for document in query.documents],
        }
        for number, query in enumerate(queries)
    ]


LINES = lines()
QUESTIONS = [line["question"] for line in LINES]
ACTUAL = [[AnyOf(item["any_of"]) for item in line["actual"]] for line in LINES]
PREDICTED = [line["predicted"] for line in LINES]
ANSWERS = dict(zip(QUESTIONS, PREDICTED, strict=True))


def evaluator(**options):
    """Return the evaluator of all queries in memory."""
    options = {"queries": QUESTIONS, **OPTIONS, **options}
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, **options)


@pytest.fixture(scope="module")
def expected():
    """Return the result in memory, in one process."""
    return evaluator().evaluate(**ASKED)


def test_the_sample_has_all_there_is_to_it(expected):
    """What the definition makes of such queries is compared in test_pieces.py."""
    assert [] in PREDICTED
    assert [] in ACTUAL
    outcomes = {
        item.outcome
        for label in expected.labels
        for k in (3, None)
        for item in expected.explain(label, k=k).items
    }
    assert outcomes >= {"found", "found in pieces", "missed", "beyond cutoff"}
    assert (expected.tables[None]["redundancy"] > 0).any()
    assert expected.evidence.relevance.n_repeats > 0


# --- ways to evaluate ------------------------------------------------------------------------


def from_a_file(folder, kind="jsonl", rows="csv"):
    """Evaluate three queries after the other, and read their rows back."""
    path, rows = folder / f"queries.{kind}", folder / f"rows.{rows}"
    if kind == "parquet":
        pd.DataFrame(LINES).to_parquet(path)
    elif not path.exists():  # a run that is resumed has the same file
        path.write_text("\n".join(map(json.dumps, LINES)), "utf-8")
    return evaluate_file(path, per_query=rows, **ASKED, **OPTIONS, chunk_size=3, progress=False)


def resumed(folder):
    """Stop when some chunks are kept, and go on."""
    add = RunState.add

    def stopping(self, rows, progress):
        if progress.n_parts > 4:
            raise KeyboardInterrupt
        add(self, rows, progress)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunState, "add", stopping)
        with pytest.raises(KeyboardInterrupt):
            from_a_file(folder)
    return from_a_file(folder)


def in_parts(folder):
    """Evaluate queries one by one, the last first, and some together."""
    plan = PartitionPlan.of(**ASKED, **OPTIONS)
    cuts = [slice(at, at + 1) for at in range(len(LINES) - 1, 8, -1)]
    parts = [plan.evaluate(ACTUAL[at], PREDICTED[at]) for at in (*cuts, slice(3, 9), slice(3))]
    return plan.result(pickle.loads(pickle.dumps(part.partial)) for part in parts)


def by_a_worker(folder):
    """Evaluate frames as the engines do, whatever the engine."""
    plan = PartitionPlan.of(**ASKED, **OPTIONS)
    task = Task.of(plan, Fields("question", "actual", "predicted"), pickle.dumps)
    table = pd.DataFrame(LINES)
    frames = pd.concat(task.rows([table[20:], table[7:20], table[:7]]), ignore_index=True)
    return plan.result(map(unpacked, frames[PARTIAL].dropna()))


def by_asking(folder):
    """Ask a retriever."""
    pairs = zip(QUESTIONS, ACTUAL, strict=True)
    dataset = [{"question": question, "actual": actual} for question, actual in pairs]
    return evaluate_retriever(ANSWERS.__getitem__, dataset, **ASKED, **OPTIONS, progress=False)


def by_recording(folder):
    """Record what a retriever is asked."""
    recorder = RetrievalRecorder()
    retriever = recorder.wrap(ANSWERS.__getitem__)
    for question in QUESTIONS:
        retriever.invoke(question)
    return recorder.evaluate(dict(zip(QUESTIONS, ACTUAL, strict=True)), **ASKED, **OPTIONS)


def saved(folder, *, texts=True):
    """Save the result and read it back."""
    return read_back(evaluator().evaluate(**ASKED), folder, texts=texts)


WAYS = {
    "processes": lambda _: evaluator(n_jobs=2).evaluate(**ASKED),
    "jsonl": from_a_file,
    "jsonl, parquet rows": partial(from_a_file, rows="parquet"),
    "parquet": partial(from_a_file, kind="parquet"),
    "resumed": resumed,
    "parts": in_parts,
    "worker": by_a_worker,
    "retriever": by_asking,
    "recorder": by_recording,
    "saved": saved,
    "saved without texts": partial(saved, texts=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_gives_the_same_digits(way, expected, tmp_path):
    """All averages and the signature; every value of every query where rows are kept."""
    result = WAYS[way](tmp_path)
    assert result.to_dict() == pytest.approx(expected.to_dict(), rel=0, abs=0, nan_ok=True)
    assert result.signature == expected.signature
    if way in ("parts", "worker"):
        return
    for k in expected.k:
        pd.testing.assert_frame_equal(result.per_query(k), expected.per_query(k), check_exact=True)
        told = expected.misses(k)
        if result.evidence is None:
            told = told.drop(columns=["missed", "similarity", "rank", "contradicted_by"])
        elif result.evidence.texts is None:
            told = told.assign(missed=None)
        pd.testing.assert_frame_equal(result.misses(k), told, check_exact=True)
    if result.evidence is not None:
        assert result.first_ranks().equals(expected.first_ranks())
    assert result.budget_to_recall(0.4) == expected.budget_to_recall(0.4)


@pytest.mark.parametrize("texts", [True, False], ids=["texts", "no texts"])
def test_a_saved_result_explains_pieces(texts, expected, tmp_path):
    """Which documents hold an item together, and what other thresholds would make of it."""
    result = saved(tmp_path, texts=texts)

    def told(of, label, k):
        """Return what is known without texts."""
        found = of.explain(label, k=k)
        items = [
            replace(one, alternatives=None, about=(), near=None, contradicted=[
                (other.rank, other.share, other.alternative) for other in one.contradicted
            ])
            for one in found.items
        ]  # fmt: skip
        return items, [replace(one, text=None) for one in found.documents]

    for label in expected.labels:
        for k in expected.k:
            assert told(result, label, k) == told(expected, label, k)
            if texts:
                pages = [one.explain(label, k=k).to_html() for one in (result, expected)]
                assert pages[0] == pages[1]
    names = ["macro_recall@3", "ndcg@9w", "token_iou@3", "redundancy@all", "macro_precision@25t"]
    thresholds = [0.0, 0.3, 0.6, 0.9, 1.0]
    ours, theirs = (one.metrics_at_thresholds(names, thresholds) for one in (result, expected))
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9, 1.0])
def test_another_threshold_is_an_evaluation_at_it(threshold, expected):
    """From what a result keeps, and from the matches of an evaluator."""
    again = evaluator(threshold=threshold).evaluate(**ASKED)
    assert evaluator().with_threshold(threshold).evaluate(**ASKED) == again
    averages = {name: value for name, value in again.to_dict().items() if "rejection" not in name}
    (row,) = expected.metrics_at_thresholds(list(averages), [threshold]).to_dict("records")
    assert row == pytest.approx(averages, rel=0, nan_ok=True)


def test_langsmith_scores_and_averages_them(expected):
    """Each example by itself, as all of them together."""
    per_query, summary = retrieval_evaluators(**ASKED, **OPTIONS)
    outputs = [{"documents": documents} for documents in PREDICTED]
    references = [{"documents": line["actual"]} for line in LINES]
    for place, (output, reference) in enumerate(zip(outputs, references, strict=True)):
        if len(set(map(str.strip, output["documents"]))) == 1:
            continue  # no example of blank texts alone says how much of them fits
        for score in per_query(inputs={}, outputs=output, reference_outputs=reference):
            name, _, k = score["key"].rpartition("@")
            wanted = float(expected.tables[unspelled(k)][name][place])
            defined = expected.counted[place] and not math.isnan(wanted)
            assert score["score"] == (wanted if defined else None), score["key"]
    averages = summary([{}] * len(LINES), outputs, references)
    assert {one["key"]: one["score"] for one in averages} == {
        key: None if math.isnan(value) else value for key, value in expected.to_dict().items()
    }


# --- what is said of it ----------------------------------------------------------------------


def test_every_relevant_document_is_credited(expected):
    """As many documents earn something as precision counts, and as many items are found."""
    for place, label in enumerate(expected.labels):
        for k in expected.k:
            told, table = expected.explain(label, k=k), expected.tables[k]
            credits = [one.credit for one in told.documents]
            credited = [one for one in credits if one not in ("not relevant", "beyond cutoff")]
            assert len(credited) == table["relevant"][place], (label, k)
            found = [one for one in told.items if one.outcome in ("found", "found in pieces")]
            assert len(found) == table["covered"][place], (label, k)


def test_what_comes_before_a_document_that_is_enough_alone_is_a_piece():
    """Of ten words abc are there, then all ten: rank 2 completes, and both are relevant."""
    result = OfflineRetrievalEvaluator(
        [["a b c d e f g h i j"]],
        [["a b c x", "a b c d e f g h i j"]],
        matcher=CoverageMatcher(min_run=2, union=True),
    ).evaluate(2)
    assert result.averages()["macro_precision"] == 1.0
    explanation = result.explain(0)
    assert [(one.credit, one.piece_of) for one in explanation.documents] == [
        ("piece", (1,)),
        ("first", ()),
    ]
    (item,) = explanation.items
    assert (item.outcome, item.first_rank, item.pieces) == ("found", 2, ())


def test_langsmith_says_which_pieces_hold_an_item():
    """Five of six words; of another six three, two at rank 1 and one more at rank 3."""
    (score,) = retrieval_evaluators(
        3, CoverageMatcher(0.8, 1, union=True), metrics=["recall"]
    ).per_query(
        inputs={},
        outputs={"documents": ["a b c m n", "d e", "o"]},
        reference_outputs={"documents": ["a b c d e f", "m n o p q r"]},
    )
    assert score["score"] == 0.5
    assert "(ranks 1+2)" in score["comment"]
    assert "(ranks 1+3 together, 0.50 of 0.8)" in score["comment"]


# --- conventions and averages ----------------------------------------------------------------

SINGLE = [
    Conventions(**{name: one}) for name, all_ in Conventions.allowed().items() for one in all_
]
ALL_CONVENTIONS = list(dict.fromkeys([*Conventions.presets().values(), *SINGLE]))


@pytest.mark.parametrize("conventions", ALL_CONVENTIONS, ids=str)
def test_conventions_keep_their_bounds_and_cutoffs(conventions):
    """Shares stay within 1 where credit is given once; a metric at k sees the first k alone."""
    result = evaluator().with_conventions(conventions).evaluate(**ASKED)
    assert result == evaluator(conventions=conventions).evaluate(**ASKED)
    chunk = CoverageMatcher(0.6, 2, "whitespace")
    one_chunk = evaluator(matcher=chunk, conventions=conventions).evaluate(**ASKED)
    for k in result.k:
        table = result.tables[k]
        for name in result.keys:
            values = table[name][~np.isnan(table[name])]
            top = 1 if conventions.credit == "once" and name != "rank" else np.inf
            assert ((values >= 0) & (values <= top)).all(), (name, k)
        assert (table["covered"] >= one_chunk.tables[k]["covered"]).all(), k
    options = {**OPTIONS, "conventions": conventions}
    for k in (1, 3):
        cut = OfflineRetrievalEvaluator(ACTUAL, [one[:k] for one in PREDICTED], **options)
        seen = cut.evaluate(k, metrics=METRIC_NAMES).tables[k]
        for name in result.keys:
            assert np.array_equal(result.tables[k][name], seen[name], equal_nan=True)


def held(*lists):
    """Return a result of queries whose ground truth is a-f."""
    return OfflineRetrievalEvaluator(
        [["a b c d e f"]] * len(lists), list(lists), matcher=CoverageMatcher(min_run=2)
    ).evaluate(2)


def test_intervals_and_comparisons_of_words():
    """Sums over sums, and means over the queries where there is a value.

    Of the first query half of the words come back, of the second all, twice; of the third none.
    Words wanted 18, held 3 + 6 + 0; read 4 + 12 + 2, useful 3 + 6 + 0; redundant 0 and 1/2.
    """
    lists = ["a b c x"], ["a b c d e f", "a b c d e f"], ["y z"]
    result = held(*lists)
    table = result.confidence_intervals(n_resamples=500)
    words = {
        "micro_token_recall@2": 9 / 18,
        "micro_token_precision@2": 9 / 18,
        "macro_token_precision@2": (3 / 4 + 6 / 12 + 0) / 3,
        "redundancy@2": (0 + 1 / 2) / 2,
    }
    assert table["value"][list(words)].to_dict() == pytest.approx(words)
    # Of any queries drawn, the sums are between the least and the greatest share.
    assert table.loc["micro_token_recall@2", ["low", "high"]].tolist() == [0.0, 1.0]
    assert table.loc["redundancy@2", ["low", "high"]].tolist() == [0.0, 0.5]
    # Without its repeat the second query reads 6 words: 9 of 12, and nothing is redundant.
    other = held(lists[0], ["a b c d e f"], lists[2])
    comparison = compare({"a": result, "b": other}, ["micro_token_precision@2", "redundancy@2"])
    differences = comparison.table["difference"].tolist()
    assert differences == pytest.approx([9 / 12 - 9 / 18, 0 - 1 / 4])


def test_a_gate_on_what_is_undefined_fails():
    """Nothing came back of the ground truth, so that nothing can be redundant: no success."""
    result = held(["y z"], [])
    assert math.isnan(result.averages()["redundancy"])
    assert not result.check({"redundancy@2": 1.0}).passed
    assert held(["a b c"]).check({"redundancy@2": 0.0}).passed


def test_a_file_that_does_not_say_which_words_bring_something_new(expected, tmp_path):
    """It shows what it showed; for what would need these words it is refused, and not guessed."""
    saved(tmp_path)
    edges = ("edges", "edge_rank", "edge_at", "edge_start", "edge_stop")
    for name in ("brought", "brought_rank", "brought_start", "brought_stop", *edges):
        changed(tmp_path / "result.json", "evidence", "pieces", name, MISSING)
    result = EvaluationResult.from_json(tmp_path / "result.json")
    assert result.to_dict() == pytest.approx(expected.to_dict(), rel=0, abs=0, nan_ok=True)
    with pytest.raises(InvalidInput) as caught:
        result.metrics_at_thresholds(["macro_token_precision@3"], [0.5])
    assert (caught.value.argument, bool(caught.value.fix)) == ("result", True)
