"""Results as events of OpenTelemetry, taken by the exporters of its own SDK.

Expected numbers are worked out by hand: of three queries the first finds one of two items, at rank
2, the second none of one, and the retriever fails at the third, which counts as nothing found.
"""

import numpy as np
import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from krag_eval import (
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    evaluate_file,
    evaluate_retriever,
)
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.integrations.opentelemetry import emit_events

QUESTIONS = {"first": ["a", "b"], "second": ["c"], "third": ["d"]}
pytestmark = pytest.mark.filterwarnings("ignore:The (intervals rest|retriever failed):UserWarning")


def retrieve(question):
    if question == "third":
        raise TimeoutError("too slow")
    return ["x", "a"]


@pytest.fixture(scope="module")
def result():
    """Evaluated by asking a retriever, one of whose answers fails."""
    rows = [{"question": question, "actual": actual} for question, actual in QUESTIONS.items()]
    how = {"metrics": ["recall", "rank"], "on_error": "record", "progress": False}
    with pytest.warns(KragEvalWarning, match="fail"):
        return evaluate_retriever(retrieve, rows, k=2, **how)


@pytest.fixture
def logs():
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    return exporter, provider


@pytest.fixture
def traces():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider


def emitted(logs, result, **how):
    exporter, provider = logs
    emit_events(result, provider=provider, **how)
    return [one.log_record for one in exporter.get_finished_logs()]


def of(records, name):
    """Return the attributes of the events of one name."""
    told = [dict(one.attributes) for one in records]
    return [one for one in told if one["gen_ai.evaluation.name"] == name]


def test_an_event_tells_each_number(logs, result):
    """Averages of the run first, then each metric of each query, by the names of the convention."""
    records = emitted(logs, result)
    assert {one.event_name for one in records} == {"gen_ai.evaluation.result"}
    names = [one.attributes["gen_ai.evaluation.name"] for one in records]
    assert names[:4] == ["micro_recall@2", "macro_recall@2", "mean_rank@2", "found_rate@2"]
    assert sorted(names[4:]) == ["rank@2"] * 3 + ["recall@2"] * 3
    (micro,) = of(records, "micro_recall@2")
    assert micro["gen_ai.evaluation.score.value"] == 0.25
    recalls = [one["gen_ai.evaluation.score.value"] for one in of(records, "recall@2")]
    assert recalls == [0.5, 0.0, 0.0]
    assert [one["krag_eval.query.position"] for one in of(records, "recall@2")] == [0, 1, 2]


def test_every_event_carries_the_signature(logs, result):
    """So that no two numbers are compared that mean different things."""
    records = emitted(logs, result)
    assert {one.attributes["krag_eval.signature"] for one in records} == {result.signature}


def test_an_average_carries_its_interval(logs, result):
    """The one that the result itself has."""
    (macro,) = of(emitted(logs, result), "macro_recall@2")
    expected = result.confidence_intervals().loc["macro_recall@2", ["low", "high"]]
    assert list(macro["krag_eval.interval"]) == expected.tolist()
    assert "krag_eval.query.position" not in macro


def test_what_is_undefined_has_a_label_and_no_value(logs, result):
    """The rank where nothing was found is no number."""
    first, second, _ = of(emitted(logs, result), "rank@2")
    assert first["gen_ai.evaluation.score.value"] == 2.0
    assert "gen_ai.evaluation.score.value" not in second
    assert second["gen_ai.evaluation.score.label"] == "undefined"


def test_the_error_of_a_retriever_is_told(logs, result):
    """As the type of the exception, beside the 0 that the query counts as."""
    records = of(emitted(logs, result), "recall@2")
    assert [one.get("error.type") for one in records] == [None, None, "TimeoutError"]


def test_no_text_is_told(logs):
    """What was missed is named by its number: telemetry is read by others than the data."""
    found = OfflineRetrievalEvaluator([["secret", "x"]], [["x"]], queries=["a private one"])
    records = emitted(logs, found.evaluate(2, metrics=["recall"]))
    (one,) = of(records, "recall@2")
    assert one["gen_ai.evaluation.explanation"] == "found 1 of 2 within 1 (rank 1); missed item 1"
    told = repr([dict(one.attributes) for one in records])
    assert "secret" not in told
    assert "private" not in told


def test_a_gate_labels_the_averages_that_it_checked(logs, result):
    """The worst outcome where several conditions are about one."""
    floors = {"macro_recall@2": 0.1, "micro_recall@2": 0.9}
    gate = result.check(floors, allow_failures=1)
    records = emitted(logs, result, gate=gate)
    label = "gen_ai.evaluation.score.label"
    (macro,), (micro,) = of(records, "macro_recall@2"), of(records, "micro_recall@2")
    assert (macro[label], micro[label]) == ("passed", "failed")
    assert micro["gen_ai.evaluation.explanation"] == gate.failures[0]
    assert label not in of(records, "found_rate@2")[0]


@pytest.mark.parametrize("as_spans", [False, True])
def test_a_query_is_told_within_the_span_that_answered_it(logs, traces, result, as_spans):
    """The run within the span of the moment, and so is a query without one."""
    exporter, provider = traces
    tracer = provider.get_tracer("app")
    answered = tracer.start_span("answer")
    answered.end()
    exporter.clear()
    with tracer.start_as_current_span("evaluation") as moment:
        emit_events(result, spans=[answered, None, None], as_spans=as_spans,
                    provider=provider if as_spans else logs[1])  # fmt: skip
        if as_spans:
            spans = exporter.get_finished_spans()
            told = [(one.attributes, one.parent.span_id) for one in spans]
        else:
            records = [one.log_record for one in logs[0].get_finished_logs()]
            told = [(one.attributes, one.span_id) for one in records]
    position = "krag_eval.query.position"
    parents = {about.get(position): parent for about, parent in told}
    of_moment = moment.get_span_context().span_id
    assert parents == {
        None: of_moment, 0: answered.get_span_context().span_id, 1: of_moment, 2: of_moment,
    }  # fmt: skip


def test_spans_have_what_the_events_have(logs, traces, result):
    """And what tells Phoenix and Langfuse that they are evaluations."""
    exporter, provider = traces
    emit_events(result, as_spans=True, provider=provider)
    spans = exporter.get_finished_spans()
    kinds = {"openinference.span.kind": "EVALUATOR", "langfuse.observation.type": "evaluator"}
    events = [dict(one.attributes) for one in emitted(logs, result)]
    assert [dict(one.attributes) for one in spans] == [one | kinds for one in events]
    assert spans[0].name == "evaluate micro_recall@2"


def test_a_response_is_named_by_its_id(logs, result):
    """Where there is one; the run has none."""
    records = emitted(logs, result, response_ids=["r-1", None, "r-3"])
    ids = [one.get("gen_ai.response.id") for one in of(records, "recall@2")]
    assert ids == ["r-1", None, "r-3"]
    assert "gen_ai.response.id" not in of(records, "micro_recall@2")[0]


def test_queries_that_do_not_count_are_not_told(logs):
    """No ground truth, no score."""
    found = OfflineRetrievalEvaluator([["a"], []], [["a"], ["b"]], no_ground_truth="skip")
    records = emitted(logs, found.evaluate(1, metrics=["recall"]))
    assert [one["krag_eval.query.position"] for one in of(records, "recall@1")] == [0]


def test_a_run_without_rows_tells_its_averages(logs, tmp_path):
    """Without intervals, which need the values of every query."""
    path = tmp_path / "run.jsonl"
    path.write_text('{"actual": ["a"], "predicted": ["a"]}\n' * 3, "utf-8")
    found = evaluate_file(path, 1, metrics=["recall"], chunk_size=2)
    records = emitted(logs, found)
    assert [one.attributes["gen_ai.evaluation.score.value"] for one in records] == [1.0, 1.0]
    assert not any("krag_eval.interval" in one.attributes for one in records)


@pytest.mark.parametrize("argument", ["spans", "response_ids"])
def test_as_many_as_queries(result, argument):
    """Fewer would be told of the wrong ones."""
    with pytest.raises(InvalidInput) as caught:
        emit_events(result, **{argument: [None]})
    assert caught.value.argument == argument


def test_a_span_is_one_of_opentelemetry(result):
    """The id of one would leave the events without a trace."""
    with pytest.raises(InvalidType) as caught:
        emit_events(result, spans=["00f067aa0ba902b7", None, None])
    assert caught.value.argument == "spans"


def test_values_are_floats(logs, result):
    """As a protocol of numbers without numpy takes them."""
    values = [one.attributes.get("gen_ai.evaluation.score.value") for one in emitted(logs, result)]
    assert not any(isinstance(one, np.generic) for one in values)
    assert trace.get_current_span() is trace.INVALID_SPAN
