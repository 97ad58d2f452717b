"""Traces: what a retriever returned in production, read from the spans that others record.

Read are OpenInference's spans (Phoenix, Arize and whatever is instrumented with it), those of
OpenTelemetry's conventions for GenAI, and LangSmith's runs; as the SDK, a collector, Phoenix and
LangSmith write them. A span is made flat first, so that nested objects, dotted names and columns
of a data frame are all one form.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

from krag_eval._language import N_, _
from krag_eval._reading import MAX_BYTES, Source, located, parsed
from krag_eval.datasets.dataset import Dataset, check_overlap, labels_of
from krag_eval.datasets.langsmith import run_as_row
from krag_eval.datasets.table import Records, is_frame, listed, records_in
from krag_eval.datasets.trec import Missing
from krag_eval.datasets.vocabularies import QUESTIONS
from krag_eval.documents import (
    DocumentLike,
    Location,
    check_characters,
    check_text,
    documents_in,
    id_of,
    is_list_written,
    is_missing,
    list_in,
    plain,
    text_of,
)
from krag_eval.errors import (
    Advice,
    InvalidInput,
    InvalidType,
    Place,
    Refusal,
    clipped,
    one_of,
    warn,
)
from krag_eval.results.latency import Failure

#: Which documents of a trace: what was retrieved, or what a reranker got and returned.
Documents: TypeAlias = Literal["retrieved", "rerank_input", "rerank_output"]
#: Which calls count where several were made for a question.
Calls: TypeAlias = Literal["first", "last", "union"]

# Where the documents of a span are: by OpenInference's kind and name; by OpenTelemetry's name.
_OPENINFERENCE = {
    "retrieved": ("RETRIEVER", "retrieval.documents"),
    "rerank_input": ("RERANKER", "reranker.input_documents"),
    "rerank_output": ("RERANKER", "reranker.output_documents"),
}
_READ_FROM = {
    "retrieved": N_("traces: retrieved documents read from {n} of {spans} spans: {names}"),
    "rerank_input": N_("traces: rerank input documents read from {n} of {spans} spans: {names}"),
    "rerank_output": N_("traces: rerank output documents read from {n} of {spans} spans: {names}"),
}
_GENAI, _GENAI_QUERY = "gen_ai.retrieval.documents", "gen_ai.retrieval.query.text"
# The convention has called it both.
_TOP_K = ("gen_ai.retrieval.top_k", "gen_ai.request.top_k", "reranker.top_k")
_KIND = "openinference.span.kind"
# What the query is called where the input of a span is an object of all that was passed.
_QUERY_NAMES = frozenset({"query", "query_str", "question", "text"})
_WITHIN = "attributes."
_REDACTED = "__REDACTED__"
# How deep a text is looked for in what an outer span was given, and how deep objects are read.
_MOST_LEVELS = 32
_FIELDS = {
    "attributes", "context", "context.span_id", "context.trace_id", "name", "span_kind",
    "parent_id", "start_time", "status", "status_code", "status.status_code", "status_message",
    "status.description", "resourceSpans",
    "id", "run_type", "inputs", "outputs", "error", "parent_run_id", "trace_id", "span_id",
}  # fmt: skip


# With one of these, a table is one of questions, whatever else it has.
_OF_QUESTIONS = {*QUESTIONS, "actual", "retrieval_gt"}


class _Wanted(frozenset[str]):
    """The columns that spans have, whatever else they carry."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(_WITHIN)


#: The columns that may be needed of a table of spans.
SPANS: Collection[str] = _Wanted(_FIELDS)


def is_spans(names: Collection[str]) -> bool:
    """Tell whether a table holds spans, by its columns.

    >>> is_spans(["name", "context", "attributes"]), is_spans(["inputs", "outputs"])
    (True, False)
    """
    given = {*names}
    if not given.isdisjoint(_OF_QUESTIONS):
        return False
    kinds = ({"resourceSpans"}, {"attributes", "context"}, {"attributes", "span_id"},
             {"run_type", "inputs"})  # fmt: skip
    return any(kind <= given for kind in kinds) or (
        "context.span_id" in given and any(name.startswith(_WITHIN) for name in given)
    )


class _Span(NamedTuple):
    """One span, its attributes by their dotted names."""

    place: Place
    id: str
    parent: str
    name: str
    started: str
    failed: bool
    message: str
    attributes: Mapping[str, Any]


class _Asked(NamedTuple):
    """What a span was asked: the texts it was given, and what the span around it was asked.

    ``query`` is its own or, where none can be told, that of the nearest span around it. One may be
    around thousands, so it is held once.
    """

    query: str | None
    texts: Sequence[str]
    around: _Asked | None

    @classmethod
    def of(cls, given: Any, around: _Asked | None) -> _Asked:
        """Look into the input of a span."""
        query = _query_in(given) or (None if around is None else around.query)
        return cls(query, [*_texts(given)], around)


class _Call(NamedTuple):
    """What one retriever, or reranker, was asked and returned."""

    span: _Span
    asked: _Asked
    documents: list[DocumentLike]

    @property
    def question(self) -> str:
        """What it was asked, as far as can be told."""
        return self.asked.query or self.asked.texts[0]


def read_traces(
    source: Source | Iterable[Mapping[str, Any]],
    dataset: Dataset | None = None,
    *,
    documents: Documents = "retrieved",
    span: str | None = None,
    calls: Calls | None = None,
    missing: Missing = "skip",
    max_bytes: int | None = MAX_BYTES,
) -> Dataset:
    r"""Read what was retrieved from traces, and join it to questions with ground truth.

    Spans are OpenInference's (``openinference.span.kind`` is ``RETRIEVER`` or ``RERANKER``),
    those of OpenTelemetry's conventions for GenAI (``gen_ai.operation.name`` is ``retrieval``) or
    LangSmith's runs (``run_type`` is ``retriever``). Where one retriever runs inside another, the
    outer one counts. A span that failed retrieved nothing, and results count it among
    ``failures``, with no time known; one that recorded no documents is left out. A warning counts
    either.

    A span belongs to a question that it was asked word for word; otherwise to the question that
    the nearest span around it was given, so that rewritten queries join as well. What did not join
    is counted in warnings and listed in ``notes``.

    Args:
        source: A file of JSON lines, of one JSON object or array, or of Parquet; an open file of
            JSON; a data frame; dicts, such as those of ``json.loads(span.to_json())``.
        dataset: Questions with ground truth, from :func:`load_dataset`. Without it, every call is
            a query of its own, with an empty ground truth.
        documents: Which to take: what was ``"retrieved"``, or what a reranker got
            (``"rerank_input"``) and returned (``"rerank_output"``).
        span: Name of the spans to take, where there are those of several retrievers.
        calls: Which calls count where several were made for a question: the ``"first"``, the
            ``"last"`` or the ``"union"`` of all, each document once. If not given, calls that
            returned the same count as one, and others are refused.
        missing: For questions of ``dataset`` that no span was asked: ``"skip"`` leaves them out,
            ``"zero"`` counts them as nothing retrieved, both with a warning.
        max_bytes: As in :func:`read_jsonl`.

    Raises:
        DatasetError: If there are no such spans, one cannot be read, or none of them joins.
        InvalidInput: If an option is not among those allowed, or ``calls`` must say what counts.
        InvalidType: If ``dataset`` is none, or ``source`` nothing of the kind.

    >>> spans = [{"context": {"span_id": "1"}, "attributes": {
    ...     "openinference.span.kind": "RETRIEVER", "input.value": "When?",
    ...     "retrieval.documents.0.document.content": "At nine."}}]
    >>> read_traces(spans, Dataset(["When?"], [["At nine."]], questions=["When?"])).predicted
    [[{'page_content': 'At nine.'}]]
    """
    one_of("documents", documents, tuple(_OPENINFERENCE))
    one_of("missing", missing, ("zero", "skip"))
    if calls is not None:
        one_of("calls", calls, ("first", "last", "union"))
    if dataset is not None and not isinstance(dataset, Dataset):
        problem = f"must be what load_dataset returns, got a {type(dataset).__name__}"
        raise InvalidType("dataset", problem)
    table = _records(source, max_bytes)
    return traces_dataset(
        table, dataset, documents=documents, span=span, calls=calls, missing=missing
    )


def traces_dataset(
    table: Records,
    dataset: Dataset | None = None,
    *,
    documents: Documents = "retrieved",
    span: str | None = None,
    calls: Calls | None = None,
    missing: Missing = "skip",
) -> Dataset:
    """Return the data set of a table of spans; the other arguments are those of `read_traces`.

    Args:
        table: The spans.
        dataset: As in :func:`read_traces`.
        documents: As in :func:`read_traces`.
        span: As in :func:`read_traces`.
        calls: As in :func:`read_traces`.
        missing: As in :func:`read_traces`.
    """
    written = [*_spans(table)]
    spans = [*_once(written)]
    found, notes = _calls(spans, documents, span, table.name)
    if len(spans) < len(written):
        notes.append(
            f"{len(written) - len(spans)} spans were written a second time, and count once"
        )
    if dataset is None:
        return _alone(found, calls, table.name, notes)
    return _joined(found, dataset, calls, missing, table.name, notes)


# From a source to flat spans


def _records(source: Any, max_bytes: int | None) -> Records:
    if isinstance(source, str | os.PathLike) or hasattr(source, "read") or is_frame(source):
        return records_in(source, "frame", max_bytes, SPANS)
    given = source if isinstance(source, Iterable) and not isinstance(source, Mapping) else ()
    rows = [run_as_row(one) or one for one in given]
    strange = next((one for one in rows if not isinstance(one, Mapping)), None)
    if not rows or strange is not None:
        came = source if strange is None else strange
        problem = f"must be a file, a data frame or a list of spans as dicts, got {clipped(came)}"
        raise InvalidType("source", problem)
    places = (Place("spans", row=number) for number in range(len(rows)))
    return Records.of(zip(places, rows, strict=True), "spans")


def _spans(table: Records) -> Iterator[_Span]:
    """Yield the spans of a table in its order."""
    for place, row in table.rows:
        with _read_at(place):
            if row.get("resourceSpans") is not None:
                several = [_span(one, place) for one in _of_collector(row["resourceSpans"], place)]
            else:
                several = [(_run if "run_type" in row else _span)(row, place)]
        yield from several


@contextmanager
def _read_at(place: Place) -> Iterator[None]:
    """Let what cannot be read name its place, numbers that Python does not read among it."""
    try:
        with located(place):
            yield
    except Refusal:
        raise
    except ValueError as error:
        most = f"{sys.get_int_max_str_digits():,}"
        problem = f"a span holds a number of more than {most} digits"
        raise place.error(problem, "correct it, or leave the span out") from error


def _once(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Leave out a span that is there a second time, as where two exports overlap."""
    known: set[tuple[str, ...]] = set()
    for one in spans:
        with _read_at(one.place):
            written = repr(sorted(one.attributes.items())).encode("utf-8", "surrogatepass")
        same = (one.id, one.parent, one.name, one.started, hashlib.sha256(written).hexdigest())
        if not one.id or same not in known:
            known.add(same)
            yield one


def _span(row: Mapping[str, Any], place: Place) -> _Span:
    flat = dict(_flat(row, place))
    attributes = {
        name.removeprefix(_WITHIN): one for name, one in flat.items() if name.startswith(_WITHIN)
    }
    attributes.setdefault(_KIND, flat.get("span_kind"))
    status = str(flat.get("status.status_code", flat.get("status_code", "")))
    return _Span(
        place,
        _id(flat.get("context.span_id", flat.get("span_id"))),
        _id(flat.get("parent_id")),
        str(flat.get("name", "")),
        str(flat.get("start_time", "")),
        status.rpartition(".")[2] == "ERROR",
        str(flat.get("status.description", flat.get("status_message")) or ""),
        attributes,
    )


def _id(value: Any) -> str:
    return "" if value is None else str(value).removeprefix("0x")


def _flat(
    value: Any, place: Place | None = None, name: str = "", level: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield what is in an object by dotted names; an empty list as itself.

    What is nested too deeply is an error at a place, and left out where there is none.
    """
    if level > _MOST_LEVELS:
        if place is not None:
            raise place.error("a span is nested too deeply")
        return
    value = plain(value)
    if isinstance(value, str) and name.endswith("documents"):
        value = _unwritten(value)
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple) and value:
        items = enumerate(value)
    else:
        if value is not None and (isinstance(value, list | tuple) or not is_missing(value)):
            yield name, value
        return
    for key, one in items:
        yield from _flat(one, place, f"{name}.{key}" if name else str(key), level + 1)


def _unwritten(text: str) -> Any:
    """Return what a text spells: a list or an object, as JSON or as Python; else the text."""
    stripped = text.strip()
    try:
        if is_list_written(stripped):
            return list_in(stripped, Location("documents"))
        if stripped[:1] in ("{", "["):
            return parsed(stripped)
    except (ValueError, InvalidInput, InvalidType):
        pass
    return text


def _of_collector(groups: Any, place: Place) -> Iterator[dict[str, Any]]:
    """Yield the spans of OTLP's JSON, in the form that the SDK writes."""
    try:
        for group in groups:
            for scope in group["scopeSpans"]:
                for one in scope["spans"]:
                    yield {
                        "name": one.get("name", ""),
                        "span_id": one["spanId"],
                        "parent_id": one.get("parentSpanId"),
                        "start_time": one.get("startTimeUnixNano", ""),
                        "status_code": "ERROR" if _is_error(one.get("status")) else "OK",
                        "status_message": _message(one.get("status")),
                        "attributes": _attributes(one.get("attributes") or ()),
                    }
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        problem = "resourceSpans are not what OTLP writes as JSON"
        raise place.error(problem, "expected resourceSpans[].scopeSpans[].spans[]") from error


def _is_error(status: Any) -> bool:
    return isinstance(status, Mapping) and status.get("code") in (2, "STATUS_CODE_ERROR")


def _message(status: Any) -> Any:
    return status.get("message") if isinstance(status, Mapping) else None


def _attributes(pairs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {one["key"]: _any_value(one["value"]) for one in pairs}


def _any_value(value: Mapping[str, Any]) -> Any:
    """Return a value of OTLP, which says in its key what it is."""
    if "arrayValue" in value:
        return [_any_value(one) for one in value["arrayValue"].get("values", ())]
    if "kvlistValue" in value:
        return _attributes(value["kvlistValue"].get("values", ()))
    return next(iter(value.values()), None)


def _run(row: Mapping[str, Any], place: Place) -> _Span:
    """Return a run of LangSmith's as a span; a table holds what went in and out as JSON."""
    given, returned = (_object(row.get(name)) for name in ("inputs", "outputs"))
    kind = "RETRIEVER" if row["run_type"] == "retriever" else str(row["run_type"]).upper()
    attributes: dict[str, Any] = {_KIND: kind, "input.value": given}
    if kind == "RETRIEVER":
        attributes["input.value"] = given.get("query", given) if given is not None else None
        # LangChain's retrievers return them so, functions under traceable as their output.
        listed_in = (plain((returned or {}).get(name)) for name in ("documents", "output"))
        documents = next((one for one in listed_in if isinstance(one, list)), None)
        attributes |= {} if documents is None else {"documents": documents}
    error = row.get("error")
    return _Span(place, _id(row.get("id")), _id(row.get("parent_run_id")), str(row.get("name", "")),
                 str(row.get("start_time", "")), failed := not (is_missing(error) or error == ""),
                 str(error) if failed else "", attributes)  # fmt: skip


def _object(value: Any) -> Any:
    value = _unwritten(value) if isinstance(value, str) else value
    return value if isinstance(value, Mapping) else None


# From spans to calls


def _calls(
    spans: Sequence[_Span], documents: Documents, name: str | None, table: str
) -> tuple[list[_Call], list[str]]:
    """Return the calls that count, in the order they were made, and what there is to say of it."""
    kept = [one for one in spans if _is_of(one, documents)]
    if name is not None:
        kept = [one for one in kept if one.name == name]
    if not kept:
        raise _no_spans(spans, documents, name, table)
    by_id = {one.id: one for one in spans if one.id}
    answered = {id(one): _documents(one, documents) for one in kept}
    outer = _outermost(kept, by_id, answered)
    silent = [one for one in outer if answered[id(one)] is None]
    asked: dict[int, _Asked] = {}
    for one in _outer_first(filter(None, (_parent(one, by_id) for one in outer)), by_id):
        around = asked.get(id(_parent(one, by_id)))
        asked[id(one)] = _Asked.of(one.attributes.get("input.value"), around)
    calls = [_call(one, asked.get(id(_parent(one, by_id))), found) for one in outer
             if (found := answered[id(one)]) is not None]  # fmt: skip
    _warn_of(outer, silent, table)
    if not calls:
        problem = f"none of its {len(outer)} spans recorded what was returned"
        raise Place(table).error(problem, "let the instrumentation record contents, or ids")
    names = listed([*dict.fromkeys(one.span.name for one in calls)])
    notes = [_(_READ_FROM[documents]).format(n=len(calls), spans=len(spans), names=names)]
    if len(outer) < len(kept):
        counted = {id(one) for one in outer}
        inner = [one.name for one in kept if id(one) not in counted]
        told = _("{n} spans inside of these are left out: {names}")
        notes.append(told.format(n=len(inner), names=listed([*dict.fromkeys(inner)])))
    return sorted(calls, key=_when), notes


def _when(call: _Call) -> tuple[int, str]:
    """Order by time: nanoseconds by their number, dates by their text."""
    started = call.span.started
    with _read_at(call.span.place):
        return (int(started), "") if started.isdecimal() else (0, started)


def _is_of(span: _Span, documents: Documents) -> bool:
    if documents == "retrieved" and span.attributes.get("gen_ai.operation.name") == "retrieval":
        return True
    return span.attributes.get(_KIND) == _OPENINFERENCE[documents][0]


def _no_spans(
    spans: Sequence[_Span], documents: Documents, name: str | None, table: str
) -> Exception:
    kind = _OPENINFERENCE[documents][0]
    if name is not None:
        names = [*dict.fromkeys(one.name for one in spans if _is_of(one, documents))]
        problem = f"must name spans of kind {kind}, which are {listed(names)}, got {clipped(name)}"
        return InvalidInput("span", problem) if names else _no_spans(spans, documents, None, table)
    kinds = [*dict.fromkeys(str(one.attributes.get(_KIND)) for one in spans)]
    others = " or OpenTelemetry's retrieval" if documents == "retrieved" else ""
    problem = f"none of its {len(spans)} spans is of kind {kind}{others}; the kinds are "
    return Place(table).error(problem + listed(kinds))


def _outermost(
    kept: Sequence[_Span], by_id: Mapping[str, _Span], answered: Mapping[int, Any]
) -> list[_Span]:
    """Leave out spans around or inside of one that says more.

    Of those inside each other, the outermost that recorded documents counts.
    """
    known = {id(one) for one in kept}
    speaks = {one for one in known if answered[one] is not None}
    order = [(id(one), id(_parent(one, by_id))) for one in _outer_first(kept, by_id)]
    inside: set[int] = set()  # of one that is kept
    inside_speaks: set[int] = set()
    for one, up in order:
        if up in known or up in inside:
            inside.add(one)
        if up in speaks or up in inside_speaks:
            inside_speaks.add(one)
    around_speaks: set[int] = set()
    for one, up in reversed(order):
        if one in speaks or one in around_speaks:
            around_speaks.add(up)
    dropped = inside_speaks | (inside | around_speaks) - speaks
    return [one for one in kept if id(one) not in dropped]


def _parent(span: _Span, by_id: Mapping[str, _Span]) -> _Span | None:
    """Return the span around one; one that names itself has none."""
    return None if span.parent == span.id else by_id.get(span.parent)


def _outer_first(spans: Iterable[_Span], by_id: Mapping[str, _Span]) -> list[_Span]:
    """Return spans and all those around them, each once, after the one around it.

    Raises:
        DatasetError: If one is inside of itself.
    """
    order: list[_Span] = []
    seen: set[int] = set()
    for span in spans:
        path: dict[int, _Span] = {}
        one: _Span | None = span
        while one is not None and id(one) not in seen:
            if id(one) in path:
                circle = [inner.name for inner in path.values()][[*path].index(id(one)) :]
                problem = f"the span {one.name!r} is inside of itself: its parents go in a circle"
                problem += f" ({listed([*dict.fromkeys(circle)])})"
                raise one.place.error(problem, "correct parent_id, or leave these spans out")
            path[id(one)] = one
            one = _parent(one, by_id)
        seen.update(path)
        order += reversed(path.values())
    return order


def _warn_of(spans: Sequence[_Span], silent: Sequence[_Span], table: str) -> None:
    said = {id(one) for one in silent}
    failed = [one for one in spans if one.failed and id(one) not in said]
    known = {"table": table, "spans": len(spans)}
    if failed:
        told = _(
            "{table}: {n} of {spans} spans failed (the first is called {first!r}) and count as "
            "nothing retrieved."
        )
        warn(told.format(n=len(failed), first=failed[0].name, **known))
    if silent:
        told = _(
            "{table}: {n} of {spans} spans recorded no documents (the first is called {first!r}) "
            "and are left out."
        )
        problem = told.format(n=len(silent), first=silent[0].name, **known)
        warn(problem, _("let the instrumentation record contents, or ids"))


def _call(span: _Span, around: _Asked | None, documents: list[DocumentLike]) -> _Call:
    """Return what a span was asked, what those around it were asked, and what it returned."""
    found = span.attributes
    own = next((found[name] for name in (_GENAI_QUERY, "reranker.query", "input.value")
                if isinstance(found.get(name), str | Mapping)), None)  # fmt: skip
    if own is None or not any(one.strip() for one in _texts(own)):
        raise span.place.error(
            f"the span {span.name!r} has no query in input.value, reranker.query, {_GENAI_QUERY} "
            "or inputs['query']"
        )
    return _Call(span, _Asked.of(own, around), documents)


def _query_in(given: Any) -> str | None:
    """Return a query; DSPy and Haystack write it into an object of all that was passed."""
    content = _unwritten(given) if isinstance(given, str) else given
    if isinstance(content, str):
        return content if content.strip() else None
    named = (one for name, one in _flat(content) if name.rpartition(".")[2] in _QUERY_NAMES)
    return next((one for one in named if isinstance(one, str) and one.strip()), None)


def _texts(given: Any) -> Iterator[str]:
    """Yield a text, and the texts in the object that it spells."""
    if isinstance(given, str):
        yield given
        given = _unwritten(given)
    if not isinstance(given, str):
        for _, one in _flat(given):
            if isinstance(one, str):
                yield one


# The documents of a span


def _documents(span: _Span, documents: Documents) -> list[DocumentLike] | None:
    """Return the documents of a span, best first; ``None`` if they were not recorded."""
    with _read_at(span.place):
        if "documents" in span.attributes:
            found = documents_in(span.attributes["documents"], Location("outputs"),
                                 ground_truth=False)  # fmt: skip
            return _checked([{"page_content": one} if isinstance(one, str) else one
                             for one in found])  # fmt: skip
        numbered = _numbered(span.attributes, _OPENINFERENCE[documents][1])
        if documents == "retrieved" and not numbered:
            numbered = _numbered(span.attributes, _GENAI)
        if numbered:
            ids = _ids_in(span.attributes.get("output.value"), numbered)
            return _checked([_document(one, span, number, ids) for number, one in numbered.items()])
    return [] if span.failed or _says_nothing(span, documents) else None


def _checked(documents: list[Any]) -> list[DocumentLike]:
    check_characters(documents, Location("documents"))
    return documents


def _numbered(attributes: Mapping[str, Any], name: str) -> dict[int, dict[str, Any]]:
    """Return the fields of each document under a name, in the order of their numbers."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}."):
            number, _, field = key[len(name) + 1 :].partition(".")
            if number.isdecimal():
                found.setdefault(int(number), {})[field.removeprefix("document.")] = value
    return dict(sorted(found.items()))


def _document(
    fields: Mapping[str, Any], span: _Span, number: int, ids: Mapping[int, Any]
) -> DocumentLike:
    text, name = fields.get("content", fields.get("text")), fields.get("id", ids.get(number))
    if text == _REDACTED:
        text = None
    if text is None and name is None:
        problem = f"the document {number} of the span {span.name!r} has neither a text nor an id"
        raise span.place.error(problem, "let the instrumentation record contents, or ids")
    if text is None:
        return str(name)
    check_text(str(text), Location("documents"))
    made: dict[str, Any] = {"page_content": str(text)}
    if name is not None:
        made["id"] = str(name)
    metadata = _metadata(fields)
    return {**made, "metadata": metadata} if metadata else made


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata, which spans hold as JSON, with the score."""
    written = _unwritten(str(fields.get("metadata", "")))
    inner = {name.removeprefix("metadata."): one for name, one in fields.items()
             if name.startswith("metadata.")}  # fmt: skip
    metadata = dict(written) if isinstance(written, Mapping) else inner
    if "score" in fields:
        metadata.setdefault("score", fields["score"])
    return metadata


def _ids_in(output: Any, numbered: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
    """Return ids that only the output of a span holds, as LangChain's instrumentation has it."""
    content = _unwritten(output) if isinstance(output, str) else None
    listed_there = content.get("documents") if isinstance(content, Mapping) else None
    if not isinstance(listed_there, list) or len(listed_there) != len(numbered):
        return {}
    found = {}
    for (number, fields), one in zip(numbered.items(), listed_there, strict=True):
        if not isinstance(one, Mapping) or one.get("page_content") != fields.get("content"):
            return {}
        if one.get("id") is not None:
            found[number] = one["id"]
    return found


def _says_nothing(span: _Span, documents: Documents) -> bool:
    """Tell whether a span recorded that it returned nothing."""
    names = (_OPENINFERENCE[documents][1], _GENAI)
    output = span.attributes.get("output.value")
    content = _unwritten(output) if isinstance(output, str) else None
    return any(span.attributes.get(one) in ([], ()) for one in names) or content in (
        [], {"documents": []}
    )  # fmt: skip


# From calls to a data set


def _alone(found: Sequence[_Call], calls: Calls | None, name: str, notes: list[str]) -> Dataset:
    """Return a query for each call, or for each question where ``calls`` says what counts."""
    groups: dict[Any, list[_Call]] = {}
    for number, one in enumerate(found):
        groups.setdefault(number if calls is None else one.question, []).append(one)
    kept = [*groups.values()]
    questions = [one[0].question for one in kept]
    ids = [one[0].span.id or str(number) for number, one in enumerate(kept)]
    predicted = [_chosen(one, calls) for one in kept]
    told = _("spans hold no ground truth: load the questions and pass the spans as retrieved")
    return Dataset(
        queries=labels_of(questions, ids, name),
        actual=[[] for _ in kept],
        predicted=predicted,
        source=name,
        defaults=_defaults(predicted),
        questions=questions,
        notes=[*notes, told],
        tags=_top_k([one[-1] for one in kept]),
        failures=_failures(enumerate(kept), calls),
    )


def _joined(
    found: Sequence[_Call],
    dataset: Dataset,
    calls: Calls | None,
    missing: Missing,
    name: str,
    notes: list[str],
) -> Dataset:
    """Return the data set with what was retrieved for each of its questions."""
    known = _questions(dataset)
    groups: dict[str, list[_Call]] = {}
    strange: list[str] = []
    rewritten, decided = 0, dict[int, str | None]()
    for one in found:
        question = _question_of(one.asked, known, decided)
        if question is None:
            strange.append(one.question)
        else:
            rewritten += question != one.question.strip()
            groups.setdefault(question, []).append(one)
    given = [*groups, *dict.fromkeys(strange)]
    check_overlap(known, given, expected_name=dataset.source or "dataset", given_name=name,
                  absent="skip" if missing == "skip" else "zero")  # fmt: skip
    lacking = [one for one in known if one not in groups]
    joined = _("{n} of {calls} calls joined {asked} of {questions} questions").format(
        n=len(found) - len(strange), calls=len(found), asked=len(groups), questions=len(known)
    )
    told = [*notes, joined]
    if strange:
        other = _("{n} calls with other questions: {names}")
        told.append(other.format(n=len(strange), names=listed(strange)))
    if lacking:
        never = _("{n} questions never asked: {names}")
        told.append(never.format(n=len(lacking), names=listed(lacking)))
    if rewritten:
        told.append(_("{} calls joined by what a span around them was given").format(rewritten))
    if dataset.predicted is not None:
        told.append(_("these replace the retrieved documents that the questions had"))
    made = dataset if missing == "zero" else _only(dataset, [known[one] for one in groups])
    answers = {known[one]: group for one, group in groups.items()}
    kept = sorted(answers) if missing == "skip" else range(dataset.n_queries)
    predicted = [_chosen(answers[at], calls) if at in answers else [] for at in kept]
    defaults = {**made.defaults, **_defaults(predicted)}
    groups_at = ((place, answers[at]) for place, at in enumerate(kept) if at in answers)
    return replace(made, predicted=predicted, defaults=defaults, notes=[*made.notes, *told],
                   failures=_failures(groups_at, calls))  # fmt: skip


def _questions(dataset: Dataset) -> dict[str, int]:
    """Return the place of each question.

    Raises:
        InvalidInput: If they are not known, or two are the same.
    """
    asked = dataset.queries if dataset.questions is None else dataset.questions
    known: dict[str, int] = {}
    for number, one in enumerate(asked):
        if not isinstance(one, str):
            raise InvalidInput("dataset", "must have the text of each question, by which spans "
                               f"are joined; query {number} has none")  # fmt: skip
        if one.strip() in known:
            problem = f"asks {clipped(one)} twice, and a span cannot tell the two apart"
            raise InvalidInput("dataset", problem, "keep one of them")
        known[one.strip()] = number
    return known


def _question_of(
    asked: _Asked | None, known: Mapping[str, int], decided: dict[int, str | None]
) -> str | None:
    """Return the question that a call belongs to: its own, or that of the nearest span around.

    ``decided`` keeps what is found out on the way.
    """
    question, passed = None, []
    while asked is not None:
        if id(asked) in decided:
            question = decided[id(asked)]
            break
        passed.append(id(asked))
        if found := {one.strip() for one in asked.texts} & known.keys():
            question = next(iter(found)) if len(found) == 1 else None
            break
        asked = asked.around
    decided.update(dict.fromkeys(passed, question))
    return question


def _only(dataset: Dataset, positions: Collection[int]) -> Dataset:
    """Return the data set of some of the queries, in their order."""
    kept = sorted(positions)
    if len(kept) == dataset.n_queries:
        return dataset

    def some(values: Any) -> Any:
        return [values[at] for at in kept] if values else values

    return replace(
        dataset,
        queries=some(dataset.queries),
        actual=some(dataset.actual),
        predicted=None,
        questions=some(dataset.questions),
        lines=some(dataset.lines),
        tags={name: some(values) for name, values in dataset.tags.items()},
        judged=some(dataset.judged),
    )


def _chosen(group: Sequence[_Call], calls: Calls | None) -> list[DocumentLike]:
    """Return the documents of the calls of one question.

    Raises:
        InvalidInput: If they differ, and nothing says which of them count.
    """
    if calls == "union":
        found: dict[str, DocumentLike] = {}
        for one in (document for call in group for document in call.documents):
            found.setdefault(_key(one), one)
        return [*found.values()]
    keys = [[*map(_key, call.documents)] for call in group]
    if calls is None and any(one != keys[0] for one in keys):
        raise _undecided(group)
    return group[0 if calls == "first" else -1].documents


def _failures(groups: Iterable[tuple[int, Sequence[_Call]]], calls: Calls | None) -> list[Failure]:
    """Return the queries of which all calls that count failed, and brought nothing."""
    found = []
    for place, group in groups:
        counted = {"first": group[:1], "last": group[-1:]}.get(str(calls), group)
        if all(one.span.failed and not one.documents for one in counted):
            found.append(Failure(place, "ERROR", counted[-1].span.message, 0.0))
    return found


def _undecided(group: Sequence[_Call]) -> InvalidInput:
    names = [*dict.fromkeys(call.span.name for call in group)]
    asked = f"{clipped(group[0].question)} was asked {len(group)} times, with different documents"
    last = Advice('read the spans by read_traces with {}, or "first" or "union"', calls="last")
    if len(names) == 1:
        return InvalidInput("calls", f"must say what counts: {asked}", last)
    one = Advice("choose one by read_traces with {}", span=names[0])
    return InvalidInput("calls", f"must say what counts: {asked}, of {listed(names)}", one)


def _key(document: DocumentLike) -> str:
    """Return what tells documents apart: the id, or the text where there is none."""
    return id_of(document) or text_of(document)


def _defaults(predicted: Iterable[Sequence[DocumentLike]]) -> dict[str, Any]:
    """Compare by id where documents were recorded by their ids alone."""
    documents = [one for each in predicted for one in each]
    return {"matcher": "id"} if any(isinstance(one, str) for one in documents) else {}


def _top_k(calls: Sequence[_Call]) -> dict[str, list[Any]]:
    """Return how many documents were asked for, where a span says so."""
    numbers = [_whole(one.span) for one in calls]
    return {"top_k": numbers} if any(one is not None for one in numbers) else {}


def _whole(span: _Span) -> int | None:
    found = next((span.attributes[name] for name in _TOP_K if name in span.attributes), None)
    with _read_at(span.place):
        text = str(found).removesuffix(".0")  # a column with gaps holds 5 as 5.0
        return int(text) if text.isdecimal() else None
