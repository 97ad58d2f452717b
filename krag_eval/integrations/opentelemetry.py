"""OpenTelemetry: results as events ``gen_ai.evaluation.result``, for whatever takes its signals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from krag_eval.comparison.gates import GateReport
from krag_eval.core import InvalidType, MissingPackage, NoRows, install_line, must, spelled
from krag_eval.integrations.langsmith import found_and_missed
from krag_eval.result import EvaluationResult

try:
    from opentelemetry import trace
    from opentelemetry._logs import LogRecord, get_logger
except ImportError as error:
    raise MissingPackage("", "emit_events needs OpenTelemetry", install_line("otel")) from error

__all__ = ["emit_events"]

_EVENT = "gen_ai.evaluation.result"
_VALUE, _LABEL = "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"
_EXPLANATION = "gen_ai.evaluation.explanation"
# So that Phoenix and Langfuse show a span as what it is.
_EVALUATOR = {"openinference.span.kind": "EVALUATOR", "langfuse.observation.type": "evaluator"}


def emit_events(
    result: EvaluationResult,
    *,
    spans: Sequence[Any] = (),
    response_ids: Sequence[str | None] = (),
    gate: GateReport | None = None,
    as_spans: bool = False,
    provider: Any = None,
) -> None:
    """Emit each number of a result by OpenTelemetry's conventions for generative AI.

    An event ``gen_ai.evaluation.result`` tells one number: first each average of the run, within
    the span of the moment, then each metric of each query that counts, within the span that is
    evaluated. It has the attributes

    - ``gen_ai.evaluation.name``, as ``macro_recall@5`` of a run and ``recall@5`` of a query,
    - ``gen_ai.evaluation.score.value``; where it is undefined, ``gen_ai.evaluation.score.label``
      is ``"undefined"`` instead,
    - ``gen_ai.evaluation.explanation``: of a query which items were found and which were missed, by
      number, since no text is told; of a run how many queries it rests on, or what its gate said,
    - ``gen_ai.response.id`` and ``error.type`` (the exception of a retriever that failed), where
      they are known,
    - ``krag_eval.signature``, what the number depends on; of a run ``krag_eval.interval``, the ends
      of its 95 % interval, where rows were kept; of a query ``krag_eval.query.position``, from 0.

    Args:
        result: What to tell. All its metrics are told at all its cutoffs, so name those that you
            want when you evaluate: ``metrics=["recall@5", "ndcg@10"]``.
        spans: Per query, the span of OpenTelemetry that answered it, ended or not, or ``None``; the
            span of the moment if not given.
        response_ids: Per query, the id of the response that is evaluated, or ``None``.
        gate: What became of a gate: the label of an average that it checked is ``"passed"``,
            ``"inconclusive"`` or ``"failed"``.
        as_spans: Whether to emit, in place of each event, a short span with the same attributes:
            for tools that take traces alone, as LangSmith, Phoenix and Langfuse do.
        provider: A ``LoggerProvider``, or for spans a ``TracerProvider``; the global one if not
            given.

    Without a provider of the SDK, OpenTelemetry drops what it is given.

    Raises:
        TypeError: If one of ``spans`` is something else.
        ValueError: If ``spans`` or ``response_ids`` are not one per query.

    Warns:
        KragEvalWarning: If intervals rest on fewer than 30 queries, or queries failed.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> actual, predicted = [["a", "b"]] * 30, [["a", "x"]] * 15 + [["b", "a"]] * 15
    >>> result = OfflineRetrievalEvaluator(actual, predicted).evaluate(metrics="recall@2")
    >>> emit_events(result)  # micro_recall@2, macro_recall@2, and recall@2 of 30 queries
    """
    for argument, given in (("spans", spans), ("response_ids", response_ids)):
        if given and len(given) != result.n_queries:
            raise must(argument, f"be one per query, of {result.n_queries}", given)
    contexts = dict(enumerate(map(_context, spans)))
    ids = dict(enumerate(response_ids))
    logger = get_logger("krag_eval", logger_provider=None if as_spans else provider)
    tracer = trace.get_tracer("krag_eval", None, provider if as_spans else None)
    for position, about in _told(result, gate):
        context = contexts.get(position)
        if ids.get(position) is not None:
            about["gen_ai.response.id"] = ids[position]
        if as_spans:
            name = f"evaluate {about['gen_ai.evaluation.name']}"
            tracer.start_span(name, context, attributes=about | _EVALUATOR).end()
        else:
            logger.emit(LogRecord(context=context, event_name=_EVENT, attributes=about))


def _context(span: Any) -> Any:
    """Return the context within which a query was answered; ``None`` for that of the moment."""
    if not isinstance(span, trace.Span | None):
        raise must("spans", "be spans of OpenTelemetry, or None", span, kind=InvalidType)
    return None if span is None else trace.set_span_in_context(span)


def _told(result: EvaluationResult, gate: GateReport | None) -> Iterator[Any]:
    """Yield what is told of each number, behind the position of its query; -1 is the run."""
    signed = {"krag_eval.signature": result.signature}
    counted = [] if isinstance(result.rows, NoRows) else result.counted.nonzero()[0].tolist()
    bounds: Any = result.confidence_intervals().dropna().T if counted else {}
    worst_last = [] if gate is None else gate.by_outcome[::-1]
    gates = {one.metric: one for one in worst_last if one.slice is None}
    for name, value in result.to_dict().items():
        told: dict[str, Any] = {
            _EXPLANATION: f"{result.n_counted} queries",
            **signed,
            **_score(name, value),
        }
        if name in gates:
            told |= {_LABEL: gates[name].outcome, _EXPLANATION: gates[name].reason}
        if name in bounds:
            told["krag_eval.interval"] = bounds[name][["low", "high"]].tolist()
        yield -1, told
    failures = {one.position: one.type for one in getattr(result.retrieval, "failures", ())}
    for position in counted:
        told = {"krag_eval.query.position": position, **signed}
        told |= {"error.type": failures[position]} if position in failures else {}
        for k, rows in result.tables.items():
            if result.evidence is not None:
                told[_EXPLANATION] = found_and_missed(result, k, position, texts=False)
            for column in result.keys:
                score = _score(f"{column}@{spelled(k)}", float(rows[column][position]))
                yield position, told | score


def _score(name: str, value: float) -> dict[str, Any]:
    score = {_LABEL: "undefined"} if math.isnan(value) else {_VALUE: value}
    return {"gen_ai.evaluation.name": name, **score}
