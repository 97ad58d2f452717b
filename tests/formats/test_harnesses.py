"""What other harnesses write, file by file: read by load_dataset and by the shell, or refused."""

import csv
import io
import json

import pandas as pd
import pytest
from click.testing import CliRunner

from krag_eval import load_dataset
from krag_eval.cli import main
from krag_eval.core import id_of
from krag_eval.datasets import read_jsonl, read_trec
from krag_eval.errors import DatasetError, InvalidInput

NINE, TEN = "It opens at nine.", "It opens at ten."


def lines(*rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def hit(rank, identity, text):
    """Return a document as TREC AutoJudge writes it."""
    return {
        "rank": rank,
        "score": 1 / rank,
        "doc": {"id": identity, "text": text, "title": "Hours"},
    }


JUDGED = {"query_id": "q1", "query": "When?", "chunk_text": NINE}
PREDICTIONS = {"mteb_model_meta": {"model_name": "m", "revision": "r"},
               "default": {"test": {"q1": {"n": 0.4, "t": 0.7}}}}  # fmt: skip
MEMORY = {"question_id": "m1", "question": "When?", "answer": "nine", "question_type": "single",
          "haystack_session_ids": ["s1", "s2"], "answer_session_ids": ["s2"],
          "haystack_sessions": [[{"content": NINE, "has_answer": True}]]}  # fmt: skip
TALK = {"question": "When?", "answer": "nine", "evidence": ["D1:3; D2:1"], "category": 1}
#: File -> its content; labels, ids of the ground truth, ids retrieved, and the matcher.
FILES = {
    # github.com/trec-auto-judge: rows of a retrieval run.
    "autojudge.jsonl": (
        lines({"query_id": "q1", "ranked_docs": [hit(2, "n", NINE), hit(1, "t", TEN)]}),
        ["q1"], [[]], [["t", "n"]], None,
    ),
    # rank_llm.data.DataWriter, and pyserini's server with plain texts.
    "rank_llm.jsonl": (
        lines({"query": {"qid": 7, "text": "When?"},
               "candidates": [{"docid": "t", "score": 0.7, "doc": {"_id": "t", "contents": TEN}},
                              {"docid": "n", "score": 0.4, "doc": NINE}]}),
        ["When?"], [[]], [["t", "n"]], None,
    ),
    # sentence_transformers' InformationRetrievalEvaluator(write_predictions=True).
    "Information-Retrieval_evaluation_predictions.jsonl": (
        lines({"query_id": "q1", "query": "When?",
               "results": [{"corpus_id": "t", "score": 0.7}, {"corpus_id": "n", "score": 0.4}]}),
        ["When?"], [[]], [["t", "n"]], "id",
    ),
    "ranking.jsonl": (
        lines({"query_id": 1, "ranking": ["t", "n"]}), ["1"], [[]], [["t", "n"]], "id",
    ),
    "judgments.jsonl": (
        lines({**JUDGED, "chunk_id": "n", "relevance": 2},
              {**JUDGED, "chunk_id": "t", "relevance": 0, "chunk_text": TEN}),
        ["When?"], [["n"]], None, "id",
    ),
    "judgments.csv": (
        "query_id,doc_id,relevance\nq1,n,1\nq1,t,0\n", ["q1"], [["n"]], None, "id",
    ),
    # mteb's AbsTask._save_task_predictions.
    "Library_predictions.json": (json.dumps(PREDICTIONS), ["q1"], [[]], [["t", "n"]], "id"),
    "locomo.jsonl": (lines(TALK), ["When?"], [["D1:3", "D2:1"]], None, "id"),
    "locomo10.json": (
        json.dumps([{"sample_id": "c1", "conversation": {}, "qa": [TALK]}]),
        ["When?"], [["D1:3", "D2:1"]], None, "id",
    ),
    "longmemeval.json": (
        json.dumps([MEMORY, {**MEMORY, "question": "Who?", "question_id": "m2_abs"}]),
        ["When?", "Who?"], [["s2"], []], None, "id",
    ),
    "locomo_run.jsonl": (
        lines({**TALK, "predicted": ["D9:9", "D1:3"]}),
        ["When?"], [["D1:3", "D2:1"]], [["D9:9", "D1:3"]], "id",
    ),
}  # fmt: skip


def ids(lists):
    return lists and [[*map(id_of, each)] for each in lists]


@pytest.mark.parametrize("name", FILES)
def test_it_is_read_as_it_is_written(written, name):
    """Labels, ground truth and ranking are those of the file; ids alone are compared by id."""
    content, queries, actual, predicted, matcher = FILES[name]
    dataset = load_dataset(written(content, name))
    assert (dataset.queries, ids(dataset.actual), ids(dataset.predicted)) == (
        queries, actual, predicted,
    )  # fmt: skip
    assert dataset.defaults.get("matcher") == matcher
    if name.endswith(".jsonl") and predicted:
        assert read_jsonl(written(content, name)) == dataset


@pytest.mark.parametrize("name", FILES)
def test_the_shell_reads_it(written, name):
    """With both sides it is evaluated; a run or ground truth alone is refused in our own words."""
    content, _queries, actual, predicted, _matcher = FILES[name]
    done = CliRunner().invoke(main, ["evaluate", str(written(content, name))])
    assert done.exit_code == (0 if predicted and all(actual) else 2), done.output
    assert isinstance(done.exception, SystemExit | None)


def test_texts_titles_and_scores_are_kept(written):
    """The ranks decide the order; what is not text or id is metadata."""
    first = load_dataset(written(FILES["autojudge.jsonl"][0])).predicted[0][0]
    metadata = {"title": "Hours", "rank": 1, "score": 1.0}
    assert first == {"page_content": TEN, "id": "t", "metadata": metadata}


def test_a_run_keeps_the_ids_of_its_queries(written):
    """Labelled by their questions, queries have their ids as a tag."""
    assert load_dataset(written(FILES["rank_llm.jsonl"][0])).tags["query_id"] == ["7"]


def test_judgements_and_predictions_are_read_as_trec_reads_others(written):
    """The ground truth is at rank 2: the MRR is 1/2."""
    qrels = written(FILES["judgments.jsonl"][0], "judgments.jsonl")
    run = written(json.dumps(PREDICTIONS), "predictions.json")
    assert read_trec(qrels, run).evaluator().calculate_mrr()["mrr"] == 0.5


RUNS = [name for name, (_, _, actual, *_rest) in FILES.items() if actual == [[]]]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_joins_its_ground_truth_by_id(written, name):
    """The one relevant document is at rank 2 of each: the MRR is 1/2."""
    run = written(FILES[name][0], name)
    identity = {"rank_llm.jsonl": "7", "ranking.jsonl": "1"}.get(name, "q1")
    golden = written(f"query_id,chunk_id,relevance\n{identity},n,1\n", "golden.csv")
    dataset = load_dataset(golden, retrieved=run)
    assert dataset.evaluator().calculate_mrr()["mrr"] == 0.5
    asked = [{"id": identity, "question": "When?", "relevant_chunk_ids": ["n"]}]
    assert load_dataset(asked, retrieved=run).evaluator().calculate_mrr()["mrr"] == 0.5


SESSIONS = {"haystack_session_ids": ["s1", "s2"], "haystack_sessions": [
    [{"role": "user", "content": TEN}],
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": NINE, "has_answer": True}],
]}  # fmt: skip


def log_of(granularity, *ids):
    """Return what LongMemEval's run_retrieval.py writes of a question."""
    metrics = {"session": {"recall_any@1": 0.0}, "turn": {}} | {granularity: {"recall_any@1": 0.0}}
    items = [{"corpus_id": one, "text": one, "timestamp": "2023/05/30"} for one in ids]
    log = {"query": "When?", "ranked_items": items, "metrics": metrics}
    return {**MEMORY, **SESSIONS, "retrieval_results": log}


def test_turns_of_longmemeval_are_the_ground_truth_where_their_mark_is_named(written):
    """The second turn of the session s2 is s2_2; in the shell as in Python."""
    path = written(json.dumps([{**MEMORY, **SESSIONS}]), "longmemeval_s.json")
    assert load_dataset(path, actual="has_answer").actual == [["s2_2"]]
    abstains = {**MEMORY, **SESSIONS, "question_id": "m1_abs"}
    assert load_dataset([abstains], actual="has_answer").actual == [[]]
    run = written(lines({"id": "m1", "retrieved_ids": ["s1_1", "s2_2"]}), "run.jsonl")
    line = ["evaluate", str(path), str(run), "--actual-field", "has_answer", "-k", "2"]
    done = CliRunner().invoke(main, line)
    assert "mrr" in done.output, done.output
    dataset = load_dataset(path, actual="has_answer", retrieved=run)
    assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}


@pytest.mark.parametrize(
    ("granularity", "found", "expected"),
    [("session", ("s1", "s2"), "s2"), ("turn", ("s1_1", "s2_2"), "s2_2")],
)
def test_a_log_of_longmemeval_says_what_it_ranked(written, granularity, found, expected):
    """Sessions or turns; the one with the answer is at rank 2."""
    path = written(lines(log_of(granularity, *found)), "s_retrievallog_turn_flat-bm25")
    dataset = read_jsonl(path)
    assert (dataset.actual, ids(dataset.predicted)) == ([[expected]], [[*found]])
    assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}


@pytest.mark.parametrize("name", ["has_answers", "answer_session_id"])
def test_another_mark_is_refused(name):
    with pytest.raises(InvalidInput) as info:
        load_dataset([{**MEMORY, **SESSIONS}], actual=name)
    assert info.value.argument == "actual"


SUBSETS = {**PREDICTIONS, "ko": {"test": {"q1": {"n": 0.9, "t": 0.7}}, "dev": {"q9": {"a": 1.0}}}}


def test_a_subset_of_mteb_is_named(written):
    """One alone needs no name; of several, the error says which there are."""
    path = written(json.dumps(SUBSETS), "Library_predictions.json")
    golden = [{"id": "q1", "question": "When?", "relevant_chunk_ids": ["n"]}]
    for name, found in {"ko.test": ["n", "t"], "default.test": ["t", "n"]}.items():
        assert load_dataset(path, predicted=name).predicted == [found]
        assert load_dataset(golden, retrieved=path, predicted=name).predicted == [found]
    for name in (None, "ko.train"):
        with pytest.raises(DatasetError) as info:
            load_dataset(path, predicted=name)
        assert info.value.fix.settings == (("predicted", "default.test"),)
        assert "ko.dev" in info.value.problem


def test_tags_in_a_list_or_an_object_are_tags():
    """Each of a list is true where it stands; what an object holds keeps its value."""
    rows = [
        {"query": "When?", "relevant_document_ids": ["n"], "tags": ["hours", "faq"]},
        {"query": "Who?", "relevant_document_ids": ["n"], "tags": {"language": "ko"}},
    ]
    assert load_dataset(rows).tags == {
        "tags.hours": [True, None],
        "tags.faq": [True, None],
        "tags.language": [None, "ko"],
    }
    assert load_dataset(rows, tags=["tags.faq"]).tags == {"tags.faq": [True, None]}
    assert load_dataset(rows, tags=False).tags == {}
    frame = pd.DataFrame(rows[:1])
    assert load_dataset(frame).tags == {"tags.hours": [True], "tags.faq": [True]}


def run_of(*documents, **fields):
    return {"query_id": "q1", "ranked_docs": [*documents], **fields}


def mteb(**subsets):
    return {"mteb_model_meta": {}, **subsets}


@pytest.mark.parametrize(
    "rows",
    [
        [run_of(hit(1, "a", NINE), hit(1, "b", TEN))],
        [run_of(hit(1, "a", NINE), {"id": "b"})],
        [run_of({"rank": "first", "id": "a"})],
        [run_of({"rank": True, "id": "a"})],
        [run_of(hit(1, "a", NINE), hit(2, "a", TEN))],
        [run_of({"id": "a", "score": float("nan")})],
        [run_of({"score": 1})],
        [run_of({"doc": {}})],
        [run_of(None)],
        [run_of(), run_of()],
        [run_of(query_id=None)],
        [run_of(query_id=True)],
        [run_of(query_id="")],
        [run_of(ranked_docs="a")],
        [run_of(ranked_docs=None)],
        [run_of(ranked_docs={"a": 1})],
        [run_of(results=[])],
        [run_of(query=7.5)],
        [{"query": {"text": "?"}, "candidates": []}],
        [{"query": {"qid": "q1", "text": ["?"]}, "candidates": []}],
        [{"query": "?", "candidates": []}],
        [mteb()],
        [mteb(default={})],
        [mteb(default=[])],
        [mteb(default={"test": {}})],
        [mteb(default={"test": []})],
        [mteb(default={"test": {"q1": ["a"]}})],
        [mteb(default={"test": {"q1": {"a": "1"}}})],
        [mteb(default={"test": {"q1": {"a": float("nan")}}})],
        [mteb(default={"test": {"q1": {"a": 1}}, "dev": {"q1": {"a": 1}}})],
        [mteb(en={"test": {"q1": {"a": 1}}}, ko={"test": {"q1": {"a": 1}}})],
        [mteb(default={"test": {"q1": {"a": 1}}})] * 2,
        [{**JUDGED, "chunk_id": "n", "relevance": 1}] * 2,
        [{**JUDGED, "chunk_id": "n", "relevance": 0.5}],
        [{**JUDGED, "chunk_id": "n", "relevance": None}],
        [{**JUDGED, "chunk_id": None, "relevance": 1}],
        [{**JUDGED, "chunk_id": "n", "relevance": 1, "chunk_text": 7}],
        [{**JUDGED, "chunk_id": "n", "relevance": 1},
         {**JUDGED, "chunk_id": "m", "relevance": 1, "query": "Who?"}],
        [{**JUDGED, "chunk_id": "n", "relevance": 1},
         {**JUDGED, "query_id": "q2", "chunk_id": "n", "relevance": 1, "chunk_text": TEN}],
        [{**TALK, "evidence": "D1:3"}],
        [{**TALK, "evidence": ["At nine."]}],
        [{**TALK, "evidence": [3]}],
        [{**TALK, "evidence": None}],
        [{"conversation": {}, "qa": {}}],
        [{"conversation": {}, "qa": ["?"]}],
        [{"conversation": {}, "qa": []}],
        [{"conversation": {}, "qa": [{"question": "?"}]}],
        [{**MEMORY, "answer_session_ids": 2}],
        [{**MEMORY, "answer_session_ids": [None]}],
        [{**MEMORY, "question": ["?"]}],
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused_by_file(written, rows):
    """Wrong types, missing or repeated keys, two meanings: our error, with its place."""
    path = written(lines(*rows), "run.jsonl")
    with pytest.raises(DatasetError) as info:
        load_dataset(path)
    assert info.value.file == str(path)
    with pytest.raises(DatasetError):
        load_dataset(rows)


def test_a_text_of_a_csv_is_no_judgement(written):
    """Numbers of a table of text are read as TREC's are, and nothing else is."""
    table = io.StringIO()
    csv.writer(table).writerows([["query_id", "doc_id", "relevance"], ["q1", "n", "high"]])
    with pytest.raises(DatasetError) as info:
        load_dataset(written(table.getvalue(), "judgments.csv"))
    assert info.value.place.line == 2


@pytest.mark.parametrize(
    ("names", "whose"),
    [
        (["user_input", "retrieved_contexts"], "RAGAS"),
        (["query_id", "relevance"], "judgements"),
        (["question", "answer_session_ids"], "LongMemEval"),
    ],
)
def test_the_nearest_known_columns_are_named(names, whose):
    """What is not known is compared with what is, and said how to name."""
    with pytest.raises(DatasetError) as info:
        load_dataset([{name: ["a"] for name in names}])
    assert whose in str(info.value.fix)
    assert info.value.fix.settings == (("actual", ...),)
