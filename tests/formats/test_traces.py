"""Traces of other tools: which spans count, what they hold, and how they join questions.

Expected values are what the spans written here say; the files under tests/data/peers were written
by the peers' own instrumentation (versions in the README there), about three texts of ours. What
can be no span is in ``golden/refused/datasets.py``.
"""

import datetime
import io
import json
import random
import sys
import uuid
import warnings
from contextlib import suppress

import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from langsmith.schemas import Run
from places import DATA
from refusals import blamed

from krag_eval import EvaluationResult, KragEvalWarning
from krag_eval.cli import main
from krag_eval.datasets import Dataset, DatasetError, load_dataset, read_beir, read_traces
from krag_eval.errors import Advice, Place

PEERS = DATA / "peers"
TEXTS = ["The library opens at nine on weekdays.", "Books may be kept for four weeks.",
         "A lost card is replaced for five euros."]  # fmt: skip
OPENS, KEPT = "When does the library open?", "For how many weeks may books be kept?"
QUESTIONS = Dataset([OPENS, KEPT], [[TEXTS[0]], [TEXTS[1]]], questions=[OPENS, KEPT])
ONLY = Dataset([OPENS], [[TEXTS[0]]], questions=[OPENS])
DOCUMENT = {"page_content": TEXTS[0], "metadata": {"page": 1}, "type": "Document"}


def span(query=None, texts=None, kind="RETRIEVER", name="search", number="1", parent=None,
         started="2026-01-01T00:00:00Z", failed="", **more):  # fmt: skip
    """Return a span of OpenInference's as the SDK writes it."""
    attributes = {"openinference.span.kind": kind, "input.value": query, **more}
    for at, text in enumerate(texts or ()):
        attributes[f"retrieval.documents.{at}.document.content"] = text
    if texts == []:
        attributes["retrieval.documents"] = []
    status = {"status_code": "ERROR", "description": failed} if failed else {"status_code": "OK"}
    return {"name": name, "context": {"span_id": f"0x{number}"}, "parent_id": parent,
            "start_time": started, "status": status, "attributes": attributes}  # fmt: skip


def in_form(one, form):
    """Return a span of the SDK's as others write it."""
    status, attributes = one["status"], one["attributes"]
    if form == "flat":
        rest = {name: value for name, value in one.items() if name != "status"}
        return {**rest, "status_code": status["status_code"],
                "status_message": status.get("description")}  # fmt: skip
    if form == "collector":
        pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        pairs.append({"key": "tags", "value": {"arrayValue": {"values": [{"intValue": "1"}]}}})
        pairs.append({"key": "map", "value": {"kvlistValue": {"values": []}}})
        code = {"OK": 1, "ERROR": 2}[status["status_code"]]
        inner = {"name": one["name"], "spanId": one["context"]["span_id"], "attributes": pairs,
                 "startTimeUnixNano": "17",
                 "status": {"code": code, "message": status.get("description", "")}}  # fmt: skip
        return {"resourceSpans": [{"scopeSpans": [{"spans": [inner]}]}]}
    if form == "langsmith":
        texts = [value for key, value in attributes.items() if key.endswith("content")]
        returned = {"documents": [{"page_content": text} for text in texts]} if texts else None
        return {"run_type": "retriever", "id": one["context"]["span_id"], "name": one["name"],
                "inputs": {"query": attributes["input.value"]}, "outputs": returned,
                "error": status.get("description")}  # fmt: skip
    return one


def retrieved(dataset):
    """Return the texts, or ids, that were retrieved."""
    return [[one if isinstance(one, str) else one["page_content"] for one in documents]
            for documents in dataset.predicted or ()]  # fmt: skip


class TestPeers:
    """Files that the peers' own code wrote."""

    @pytest.mark.parametrize("read", [load_dataset, read_traces])
    def test_llama_index(self, read):
        """The inner span of each retriever, and what is no retriever, are left out."""
        dataset = read(PEERS / "openinference_llama_index.jsonl")
        assert dataset.questions == [OPENS, KEPT]
        scores = [{"n0": 2.0, "n1": 0.0}, {"n1": 5.0, "n2": 1.0}]
        assert dataset.predicted == [
            [{"page_content": TEXTS[int(one[1])], "id": one,
              "metadata": {"page": int(one[1]), "score": score}} for one, score in found.items()]
            for found in scores
        ]  # fmt: skip
        assert dataset.actual == [[], []]
        assert any("'R._retrieve'" in note for note in dataset.notes)

    def test_langchain(self):
        """Ids stand only in the span's output; the chain around rewrote the first question."""
        path = PEERS / "openinference_langchain.jsonl"
        dataset = load_dataset(path)
        assert dataset.questions == [OPENS.lower(), KEPT, "Find nothing"]
        first = {"page_content": TEXTS[0], "id": "d0", "metadata": {"page": 0}}
        assert (dataset.predicted[0][0], dataset.predicted[2]) == (first, [])
        rows = [{"question": one, "actual": [text]}
                for one, text in zip((OPENS, KEPT), TEXTS, strict=False)]  # fmt: skip
        with pytest.warns(KragEvalWarning, match="1 of 3"):
            joined = load_dataset(rows, retrieved=path)
        assert joined.queries == [OPENS, KEPT]
        assert joined.evaluator().calculate_mrr() == {"mrr": 1.0}
        assert any("'Find nothing'" in note for note in joined.notes)

    def test_the_questions_may_be_what_they_are_loaded_from(self, written):
        """Rows, or a file."""
        rows = [{"question": one, "actual": ["x"]} for one in (OPENS, KEPT)]
        path = PEERS / "openinference_llama_index.jsonl"
        expected = read_traces(path, load_dataset(rows)).predicted
        lines = "".join(json.dumps(one) + "\n" for one in rows)
        for questions in (rows, written(lines, "questions.jsonl")):
            joined = read_traces(path, questions)
            assert (joined.actual, joined.predicted) == ([["x"], ["x"]], expected)

    def test_haystack(self):
        """Its input is an object; an embedding retriever is given no text, the pipeline is."""
        path = PEERS / "openinference_haystack.jsonl"
        assert load_dataset(path).questions == [OPENS, KEPT]
        dataset = load_dataset(QUESTIONS, retrieved=path)
        orders = [(0, 2, 1), (1, 2, 0)]
        assert retrieved(dataset) == [[TEXTS[at] for at in order] for order in orders]
        output = read_traces(path, QUESTIONS, documents="rerank_output")
        assert retrieved(output) == [[TEXTS[1], TEXTS[2]], [TEXTS[0], TEXTS[2]]]

    def test_dspy(self):
        """Its input is an object; the program around wrote the first question otherwise."""
        path = PEERS / "openinference_dspy.jsonl"
        assert load_dataset(path).questions == [OPENS, KEPT, OPENS.lower()]
        dataset = load_dataset(QUESTIONS, retrieved=path)
        assert retrieved(dataset) == [TEXTS[:2], TEXTS[1:]]
        assert any(note.startswith("1 calls joined by") for note in dataset.notes)


class Pipe(io.BytesIO):
    """A stream that cannot go back."""

    def seekable(self):
        return False


class TestForms:
    """The same span, in every form that it is written."""

    SPAN = span(OPENS, TEXTS[:2])

    def test_nested(self):
        """As Phoenix keeps attributes: objects and lists; metadata may be an object."""
        document = {"document": {"content": TEXTS[0], "id": 7, "metadata": {"page": 1}}}
        nested = {
            "name": "search", "span_kind": "RETRIEVER", "parent_id": None, "status_code": "OK",
            "context": {"span_id": "1", "trace_id": "2"},
            "attributes": {"input": {"value": OPENS}, "retrieval": {"documents": [document]}},
        }  # fmt: skip
        expected = [[{"page_content": TEXTS[0], "id": "7", "metadata": {"page": 1}}]]
        assert load_dataset([nested]).predicted == expected
        dotted = {f"document.{name}": one for name, one in document["document"].items()}
        nested["attributes"] = {"input.value": OPENS, "retrieval.documents": [dotted]}
        assert load_dataset([nested]).predicted == expected

    def test_a_data_frame(self, tmp_path):
        """As Phoenix returns spans, in memory and in Parquet; other spans have empty cells."""
        dotted = [{"document.content": text} for text in TEXTS[:2]]
        frame = pd.DataFrame({
            "name": ["search", "llm"], "span_kind": ["RETRIEVER", "LLM"],
            "parent_id": [None, "1"], "context.span_id": ["1", "2"],
            "start_time": pd.to_datetime(["2026-01-01", "2026-01-02"]),
            "attributes.input.value": [OPENS, "x"],
            "attributes.retrieval.documents": [dotted, None],
        })  # fmt: skip
        frame.to_parquet(tmp_path / "spans.parquet")
        for source in (frame, tmp_path / "spans.parquet"):
            assert retrieved(load_dataset(source)) == [TEXTS[:2]]
            assert retrieved(read_traces(source)) == [TEXTS[:2]]

    @pytest.mark.parametrize("indent", [None, 2])
    def test_a_collector(self, written, indent):
        """OTLP's JSON, on one line as a collector writes it, or spread over many."""
        path = written(json.dumps(in_form(self.SPAN, "collector"), indent=indent), "spans.json")
        assert retrieved(load_dataset(path)) == [TEXTS[:2]]

    def test_an_open_file(self):
        """A stream is read once, and so is a generator of spans."""
        content = json.dumps(self.SPAN)
        for stream in (io.StringIO(content), Pipe(content.encode())):
            assert retrieved(load_dataset(stream, format="jsonl")) == [TEXTS[:2]]
        for stream in (io.BytesIO(content.encode()), Pipe(content.encode())):
            assert retrieved(read_traces(stream)) == [TEXTS[:2]]
        assert retrieved(load_dataset(iter([self.SPAN]))) == [TEXTS[:2]]

    @pytest.mark.parametrize("top_k", ["gen_ai.retrieval.top_k", "gen_ai.request.top_k"])
    @pytest.mark.parametrize("write", [json.dumps, list])
    def test_opentelemetrys_own_conventions(self, top_k, write):
        """Documents may be ids alone, as JSON or structured; then ids are compared."""
        documents = [{"id": "doc_1", "score": 0.95}, {"id": "doc_2", "score": 0.87}]
        one = {"name": "retrieval kb", "context": {"span_id": "1"}, "attributes": {
            "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": OPENS,
            top_k: 5, "gen_ai.retrieval.documents": write(documents)}}  # fmt: skip
        dataset = load_dataset([one])
        assert dataset.predicted == [["doc_1", "doc_2"]]
        assert dataset.tags == {"top_k": [5]}
        truth = Dataset([OPENS], [["doc_2"]], questions=[OPENS])
        assert read_traces([one], truth).evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_top_k_in_a_column_with_gaps(self):
        """5.0 beside nothing is 5."""
        spans = [span(OPENS, TEXTS, **{"gen_ai.request.top_k": 5}), span(KEPT, TEXTS, number="2")]
        rows = [{"name": "search", "context.span_id": one["context"]["span_id"],
                 **{f"attributes.{name}": value for name, value in one["attributes"].items()}}
                for one in spans]  # fmt: skip
        assert load_dataset(pd.DataFrame(rows)).tags == {"top_k": [5, None]}

    @pytest.mark.parametrize("write", [json.dumps, dict])
    def test_langsmith_runs(self, write):
        """As the client returns them and, with JSON in cells, as they are exported in bulk."""
        runs = [
            {"id": "1", "name": "rag", "run_type": "chain", "start_time": "1", "error": None,
             "inputs": write({"question": OPENS}), "outputs": write({"output": "At nine."})},
            {"id": "2", "parent_run_id": "1", "name": "search", "run_type": "retriever",
             "inputs": write({"query": "opening hours"}), "start_time": "2", "error": None,
             "outputs": write({"documents": [DOCUMENT]})},
        ]  # fmt: skip
        assert load_dataset(runs).questions == ["opening hours"]
        joined = read_traces(runs, ONLY)
        assert joined.queries == [OPENS]
        assert retrieved(joined) == [TEXTS[:1]]

    def test_langsmith_runs_as_objects(self):
        """As ``client.list_runs`` returns them: what they returned is no ground truth."""
        now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        run = Run(id=uuid.uuid4(), trace_id=uuid.uuid4(), name="search", run_type="retriever",
                  start_time=now, inputs={"query": OPENS},
                  outputs={"documents": [DOCUMENT]})  # fmt: skip
        for dataset in (load_dataset([run]), load_dataset(ONLY, retrieved=[run]),
                        read_traces([run])):  # fmt: skip
            assert retrieved(dataset) == [TEXTS[:1]]
        assert load_dataset([run]).actual == [[]]

    def test_langsmith_runs_of_a_function(self):
        """``traceable`` names inputs after arguments, and calls what is returned output.

        As in LangSmith's documentation, "Log retriever traces".
        """
        run = {"id": "1", "name": "search", "run_type": "retriever", "start_time": "1"}
        for name in ("query", "question", "q"):
            given = {"inputs": {name: OPENS}, "outputs": {"output": [DOCUMENT]}}
            dataset = load_dataset([{**run, **given}])
            assert (dataset.questions, retrieved(dataset)) == ([OPENS], [TEXTS[:1]])
        plain = load_dataset([{**run, "inputs": {"query": OPENS}, "outputs": {"output": TEXTS}}])
        assert (retrieved(plain), plain.defaults) == ([TEXTS], {})  # texts, and no ids

    def test_what_an_input_holds(self):
        """A query is found in it by its name; what is nested too deeply holds none."""
        deep = OPENS
        for _ in range(40):
            deep = [deep]
        given = json.dumps({"filters": {"language": "en"}, "query": OPENS})
        for one in (given, f"  {given} "):
            assert load_dataset([span(one, TEXTS)]).questions == [OPENS]
        outer = span(json.dumps({"state": deep, "question": KEPT}), kind="CHAIN", number="1")
        inner = span("weeks", TEXTS, number="2", parent="0x1")
        only = Dataset([KEPT], [[TEXTS[1]]], questions=[KEPT])
        assert retrieved(load_dataset(only, retrieved=[outer, inner])) == [TEXTS]

    def test_before_and_after_a_reranker(self):
        """The two lists of one span, of the same questions."""
        before = {f"reranker.input_documents.{at}.document.content": text
                  for at, text in enumerate(TEXTS)}  # fmt: skip
        after = {"reranker.output_documents.0.document.content": TEXTS[2]}
        one = span(None, kind="RERANKER", **{"reranker.query": OPENS}, **before, **after)
        assert retrieved(read_traces([one], documents="rerank_input")) == [TEXTS]
        assert retrieved(read_traces([one], documents="rerank_output")) == [[TEXTS[2]]]
        with pytest.raises(DatasetError, match="RETRIEVER"):
            read_traces([one])

    def test_eleven_documents_are_ordered_by_number(self):
        """2 goes before 10, wherever they stand."""
        texts = [f"text {at}" for at in range(12)]
        one = span(OPENS, texts)
        shuffled = [*one["attributes"].items()]
        random.Random(7).shuffle(shuffled)
        one["attributes"] = dict(shuffled)
        assert retrieved(read_traces([one])) == [texts]


class TestWhichCount:
    """Spans inside of others, several calls, failures and silence."""

    def test_the_outermost_that_recorded_documents(self):
        """An ensemble's parts run inside of it; one that recorded nothing does not count."""
        spans = [span(OPENS, number="1", name="wrapper"),
                 span(OPENS, TEXTS[:2], number="2", parent="0x1", name="ensemble"),
                 span(OPENS, TEXTS[:1], number="3", parent="0x2", name="part")]  # fmt: skip
        assert retrieved(read_traces(spans)) == [TEXTS[:2]]
        assert retrieved(read_traces(spans, span="part")) == [TEXTS[:1]]

    def test_spans_inside_each_other_as_the_rule_says(self):
        """Worked out here pair by pair, on forests drawn at random."""
        drawn = random.Random(23)
        for _ in range(200):
            n = drawn.randrange(2, 12)
            parents = [drawn.choice([None, *range(at)]) for at in range(n)]
            kinds = [drawn.choice(["RETRIEVER", "RETRIEVER", "CHAIN"]) for _ in range(n)]
            told = [drawn.random() < 0.5 for _ in range(n)]
            kept = [at for at in range(n) if kinds[at] == "RETRIEVER"]
            speaks = {at for at in kept if told[at]}
            if not speaks:
                continue

            def around(at, parents=parents):
                up = parents[at]
                return set() if up is None else {up} | around(up)

            expected = {at for at in speaks if not speaks & around(at)}
            spans = [
                span(f"q{at}", TEXTS[:1] if told[at] else None, kinds[at], f"n{at}", str(at),
                     None if parents[at] is None else f"0x{parents[at]}")
                for at in drawn.sample(range(n), n)
            ]  # fmt: skip
            with warnings.catch_warnings(record=True, action="always") as caught:
                dataset = read_traces(spans)
            assert sorted(dataset.questions) == sorted(f"q{at}" for at in expected)
            below = {up for at in speaks for up in around(at)}
            silent = {at for at in kept if at not in speaks | below and not around(at) & {*kept}}
            assert len(caught) == bool(silent)

    @pytest.mark.parametrize("kind", ["RETRIEVER", "CHAIN"])
    def test_what_nested_spans_cost(self, kind):
        """Twice the depth takes twice the calls of functions, not four times."""

        def calls(n):
            spans = []
            for at in range(n):
                up = f"0x{at - 1}" if at else None
                spans.append(span("outer", TEXTS[:1], kind, number=str(at), parent=up))
                spans.append(span(f"it {at}", TEXTS, number=f"r{at}", parent=f"0x{at}"))
            counted = []
            asked = Dataset(["outer"], [[TEXTS[0]]], questions=["outer"])
            sys.setprofile(lambda *event: counted.append(1))
            try:
                read_traces(spans, asked, calls="first")
            finally:
                sys.setprofile(None)
            return len(counted)

        assert calls(200) < 2.3 * calls(100)

    def test_spans_inside_of_themselves(self):
        """Are refused where the first one is, by their names."""
        spans = [span(OPENS, TEXTS, number="1"),
                 span(OPENS, TEXTS, number="2", parent="0x3", name="a"),
                 span(OPENS, number="3", parent="0x4", name="b", kind="CHAIN"),
                 span(OPENS, number="4", parent="0x3", name="c", kind="CHAIN")]  # fmt: skip
        with pytest.raises(DatasetError) as caught:
            read_traces(spans)
        assert caught.value.place == Place("spans", row=2)
        assert "('b', 'c')" in caught.value.problem
        # One that names itself has none around it.
        assert retrieved(read_traces([span(OPENS, TEXTS, number="1", parent="0x1")])) == [TEXTS]

    @pytest.mark.parametrize(
        "changes",
        [
            {"start_time": "9" * 5000}, {"start_time": 10**5000}, {"name": 10**5000},
            {"context": {"span_id": 10**5000}},
            {"attributes": {"gen_ai.retrieval.top_k": "9" * 5000}},
            {"attributes": {f"retrieval.documents.{'9' * 5000}.document.content": "x"}},
            {"attributes": {"retrieval.documents.0.document.id": 10**5000}},
        ],
    )  # fmt: skip
    def test_numbers_that_python_does_not_read(self, changes):
        """Are refused where they are."""
        one = span(OPENS, TEXTS)
        one |= {**changes, "attributes": one["attributes"] | changes.get("attributes", {})}
        with pytest.raises(DatasetError, match="digits") as caught:
            read_traces([one])
        assert caught.value.place == Place("spans", row=0)

    def test_several_calls_for_a_question(self):
        """In the order of time, not of the file; what differs must be chosen."""
        spans = [span(OPENS, TEXTS[1:], number="2", started="2026-01-02T00:00:00Z"),
                 span(OPENS, TEXTS[:2], number="1"),
                 span(KEPT, TEXTS[1:2], number="3"),
                 span(KEPT, TEXTS[1:2], number="4")]  # fmt: skip
        for calls, texts in {"first": TEXTS[:2], "last": TEXTS[1:], "union": TEXTS}.items():
            for dataset in (read_traces(spans, QUESTIONS, calls=calls),
                            read_traces(spans, calls=calls)):  # fmt: skip
                assert retrieved(dataset) == [texts, TEXTS[1:2]]
        with blamed("calls"):
            read_traces(spans, QUESTIONS)

    def test_several_retrievers_for_a_question(self):
        """Are told apart by their names, as the refusal says."""
        spans = [span(OPENS, TEXTS[:1], name="wide"), span(OPENS, TEXTS, name="deep", number="2")]
        with blamed("calls") as caught:
            read_traces(spans, ONLY)
        assert isinstance(caught.value.fix, Advice)
        assert caught.value.fix.settings == (("span", "wide"),)
        assert retrieved(read_traces(spans, ONLY, span="wide")) == [TEXTS[:1]]

    def test_a_span_that_was_written_twice(self):
        """Counts once, as where two exports overlap; another call of the same question does not.

        Queries that ask the same are labelled by their spans.
        """
        spans = [span(OPENS, TEXTS), span(OPENS, TEXTS), span(OPENS, TEXTS, number="2")]
        with pytest.warns(KragEvalWarning):
            dataset = load_dataset(spans)
        assert dataset.queries == ["1", "2"]
        assert any(note.startswith("1 spans were written a second time") for note in dataset.notes)

    def test_nanoseconds_are_ordered_as_numbers(self):
        """9 is before 10."""
        spans = [span(OPENS, TEXTS[:1], number="1", started="10"),
                 span(OPENS, TEXTS[1:2], number="2", started="9")]  # fmt: skip
        assert retrieved(read_traces(spans, calls="last")) == [TEXTS[:1]]

    @pytest.mark.parametrize("form", ["sdk", "flat", "collector", "langsmith"])
    def test_results_know_what_failed(self, tmp_path, form):
        """A failure retrieved nothing, and gates refuse it, in the file and in the shell."""
        spans = [
            in_form(one, form)
            for one in (span(OPENS, failed="down"), span(KEPT, TEXTS[:1], number="2"))
        ]
        questions = Dataset(["b", "a"], [TEXTS[:1], TEXTS[:1]], questions=[KEPT, OPENS])
        with pytest.warns(KragEvalWarning, match="1 of 2 spans failed"):
            # A failure is of its question, though spans come in another order.
            dataset = load_dataset(questions, retrieved=spans)
        assert retrieved(dataset) == [TEXTS[:1], []]
        result = dataset.evaluator(matcher="coverage").with_threshold(0.5).evaluate(1)
        assert [(one.position, one.message) for one in dataset.failures] == [(1, "down")]
        assert result.n_failed == result.summary.n_failed == 1
        assert list(result.failures.index) == ["a"]
        assert "failed" in repr(result)
        assert "latency" not in repr(result)  # none was measured
        result.to_json(tmp_path / "r.json")
        again = EvaluationResult.from_json(tmp_path / "r.json")
        assert again.n_failed == 1
        with blamed("allow_failures"):
            again.check({"macro_recall@1": 0.1})
        assert again.check({"macro_recall@1": 0.1}, allow_failures=1).passed
        command = ["gate", str(tmp_path / "r.json"), "--fail-under", "macro_recall@1=0.1"]
        assert CliRunner().invoke(main, command).exit_code == 2
        assert CliRunner().invoke(main, [*command, "--allow-failures", "1"]).exit_code == 0

    @pytest.mark.parametrize(("calls", "n_failed"), [("first", 1), ("last", 0), ("union", 0)])
    def test_of_several_calls_those_count_that_are_chosen(self, calls, n_failed):
        spans = [span(OPENS, number="1", started="1", failed="x"),
                 span(OPENS, TEXTS[:1], number="2", started="2")]  # fmt: skip
        with pytest.warns(KragEvalWarning):
            assert len(read_traces(spans, calls=calls).failures) == n_failed

    def test_a_file_that_cannot_tell_of_failures_says_so(self, tmp_path):
        with pytest.warns(KragEvalWarning):
            dataset = read_traces([span(OPENS, failed="x")])
        with pytest.warns(KragEvalWarning, match="failed"):
            dataset.save(tmp_path / "qa.jsonl")

    def test_what_was_not_recorded_is_left_out(self):
        """It is not nothing; an empty list is."""
        spans = [span(OPENS), span(KEPT, [], number="2")]
        with pytest.warns(KragEvalWarning, match="1 of 2 spans recorded no documents"):
            dataset = read_traces(spans)
        assert (dataset.questions, dataset.predicted) == ([KEPT], [[]])
        with pytest.warns(KragEvalWarning), pytest.raises(DatasetError):
            read_traces([span(OPENS)])

    def test_redacted_texts(self):
        """An id is left of them."""
        one = span(OPENS, ["__REDACTED__"], **{"retrieval.documents.0.document.id": "a"})
        assert read_traces([one]).predicted == [["a"]]


class TestJoining:
    """Spans and the questions with ground truth."""

    SPANS = (span(KEPT, TEXTS[1:2]), span("Who?", TEXTS[:1], number="2"))

    def test_what_does_not_join_is_counted_and_listed(self):
        """On both sides, with one warning each; with all that belongs to the queries that stay."""
        asked = Dataset([1, 2], [[TEXTS[0]], [TEXTS[1]]], questions=[OPENS, KEPT],
                        tags={"topic": ["hours", "loans"]}, lines=[1, 2])  # fmt: skip
        with pytest.warns(KragEvalWarning) as caught:
            dataset = read_traces(self.SPANS, asked)
        assert len(caught) == 2
        assert (dataset.queries, dataset.lines) == ([2], [2])
        assert (dataset.tags, dataset.actual) == ({"topic": ["loans"]}, [[TEXTS[1]]])
        assert "1 of 2 calls joined 1 of 2 questions" in dataset.notes
        assert "1 calls with other questions: 'Who?'" in dataset.notes
        assert f"1 questions never asked: {OPENS!r}" in dataset.notes
        with pytest.warns(KragEvalWarning):
            whole = read_traces(self.SPANS, asked, missing="zero")
        assert (whole.queries, retrieved(whole)) == ([1, 2], [[], TEXTS[1:2]])

    def test_two_questions_around_a_call_join_none(self):
        """A conversation holds both; the span says neither."""
        outer = span(json.dumps({"messages": [OPENS, KEPT]}), kind="CHAIN", number="1")
        inner = span("it", TEXTS[:1], number="2", parent="0x1")
        with pytest.raises(DatasetError, match="none of its 1 queries"):
            read_traces([outer, inner], QUESTIONS)

    def test_a_data_set_that_is_loaded_already(self):
        """Is joined all the same; also to spans of a generator."""
        spans = [span(OPENS, TEXTS[:1]), span(KEPT, TEXTS[:2], number="2")]
        for source in (spans, iter(spans), pd.DataFrame(spans)):
            dataset = load_dataset(QUESTIONS, retrieved=source)
            assert retrieved(dataset) == [TEXTS[:1], TEXTS[:2]]
            assert dataset.actual == QUESTIONS.actual

    def test_questions_that_came_with_retrieved_documents(self):
        """Say that the spans replace them."""
        rows = [{"question": OPENS, "actual": [TEXTS[0]], "predicted": ["x"]}]
        dataset = load_dataset(rows, retrieved=[span(OPENS, TEXTS[:1])])
        assert retrieved(dataset) == [TEXTS[:1]]
        assert any("replace" in note for note in dataset.notes)

    def test_a_collection(self, tmp_path, written):
        """A corpus, queries and judgements in one object, in a file of it, or in a folder."""
        parts = {"corpus": {"d1": TEXTS[0]}, "queries": {"q1": OPENS},
                 "relevant_docs": {"q1": ["d1"]}}  # fmt: skip
        (tmp_path / "beir" / "qrels").mkdir(parents=True)
        for name, part in {"corpus": ("d1", TEXTS[0]), "queries": ("q1", OPENS)}.items():
            written(json.dumps(dict(zip(("_id", "text"), part, strict=True))), f"beir/{name}.jsonl")
        written("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "beir/qrels/test.tsv")
        ids = {f"retrieval.documents.{at}.document.id": f"d{2 - at}" for at in range(2)}
        for source in (parts, written(json.dumps(parts), "qa.json"), tmp_path / "beir"):
            dataset = load_dataset(source, retrieved=[span(OPENS, **ids)])
            assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}

    def test_a_folder_and_a_run(self):
        """Are judgements and a run, as in ``read_beir``."""
        folder = PEERS.parent / "beir"
        dataset = load_dataset(folder, retrieved=folder / "results.json")
        assert dataset.predicted == read_beir(folder, run=folder / "results.json").predicted

    def test_a_table_of_questions_with_such_columns(self):
        """Is one of questions."""
        rows = [{"question": OPENS, "actual": ["x"], "context": "c", "attributes": "a"}]
        assert load_dataset(rows).actual == [["x"]]


@given(st.recursive(st.none() | st.text() | st.integers() | st.floats(allow_nan=False),
                    lambda inner: st.lists(inner) | st.dictionaries(
                        st.sampled_from(["input.value", "retrieval.documents", "0", "document",
                                         "content", "id", "openinference.span.kind"])
                        | st.text(max_size=3), inner)))  # fmt: skip
def test_whatever_spans_hold(value):
    """Becomes a data set, or is refused as what it is."""
    spans = [
        {"context": value, "attributes": value},
        span(OPENS, TEXTS[:1], **{"output.value": value}),
        span(OPENS, TEXTS[:1], **{"retrieval.documents.0.document.metadata": value}),
    ]
    for one in spans:
        with suppress(DatasetError):
            read_traces([one])
