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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from krag_eval.core import (
    N_,
    Advice,
    DocumentLike,
    InvalidInput,
    InvalidType,
    Location,
    MissingQuestions,
    Place,
    Refusal,
    Tag,
    _,
    clipped,
    id_of,
    one_of,
    text_of,
    warn,
)
from krag_eval.core.documents import plain
from krag_eval.core.results.latency import Failure
from krag_eval.formats.ids import check_overlap, labels_of
from krag_eval.formats.langsmith import run_as_row
from krag_eval.formats.trec import Missing
from krag_eval.loading.cells import (
    check_characters,
    check_text,
    documents_in,
    is_list_written,
    is_missing,
    list_in,
)
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.formats import Names
from krag_eval.loading.reading import MAX_BYTES, Source, located, parsed
from krag_eval.loading.table import Given, Records, is_frame, listed, records_in

if TYPE_CHECKING:
    from krag_eval.loading import loading

#: Which documents of a trace: what was retrieved, or what a reranker got and returned.
Documents: TypeAlias = Literal["retrieved", "rerank_input", "rerank_output"]
#: Which calls count where several were made for a question.
Calls: TypeAlias = Literal["first", "last", "union"]


class _Convention(NamedTuple):
    """How a convention marks the spans that hold documents.

    Attributes:
        attribute: What tells which spans they are.
        kind: What it says of them.
        documents: Where their documents are, one after the other.
    """

    attribute: str
    kind: str
    documents: str


_KIND = "openinference.span.kind"
# What each choice of documents reads: OpenInference's spans, then OpenTelemetry's. LangSmith's runs
# are made spans of the former.
_CONVENTIONS = {
    "retrieved": (
        _Convention(_KIND, "RETRIEVER", "retrieval.documents"),
        _Convention("gen_ai.operation.name", "retrieval", "gen_ai.retrieval.documents"),
    ),
    "rerank_input": (_Convention(_KIND, "RERANKER", "reranker.input_documents"),),
    "rerank_output": (_Convention(_KIND, "RERANKER", "reranker.output_documents"),),
}
# Where the question of a span is, and how many documents it asked for, whatever the convention.
_GENAI_QUERY = "gen_ai.retrieval.query.text"
_QUERIES = (_GENAI_QUERY, "reranker.query", "input.value")
_TOP_K = ("gen_ai.retrieval.top_k", "gen_ai.request.top_k", "reranker.top_k")
# What is read of a span beside its attributes: the names that exporters have for it.
_NAMES = {
    "id": ("context.span_id", "span_id"),
    "parent": ("parent_id",),
    "name": ("name",),
    "started": ("start_time",),
    "status": ("status.status_code", "status_code"),
    "message": ("status.description", "status_message"),
    "kind": ("span_kind",),
}
_COLLECTOR = "resourceSpans"
_RUNS = {"id", "run_type", "inputs", "outputs", "error", "parent_run_id"}
_READ_FROM = {
    "retrieved": N_("traces: retrieved documents read from {n} of {spans} spans: {names}"),
    "rerank_input": N_("traces: rerank input documents read from {n} of {spans} spans: {names}"),
    "rerank_output": N_("traces: rerank output documents read from {n} of {spans} spans: {names}"),
}
# What the query is called where the input of a span is an object of all that was passed.
_QUERY_NAMES = frozenset({"query", "query_str", "question", "text"})
_WITHIN = "attributes."
_REDACTED = "__REDACTED__"
# How deep a text is looked for in what an outer span was given, and how deep objects are read.
_MOST_LEVELS = 32


#: The columns that may be needed of a table of spans.
SPANS = Names(
    {"attributes", _WITHIN, "context", "context.trace_id", "trace_id", "status", _COLLECTOR}.union(
        _RUNS, *_NAMES.values()
    )
)


class Choice(NamedTuple):
    """What to take of spans; see :func:`read_traces` for each."""

    documents: Documents = "retrieved"
    span: str | None = None
    calls: Calls | None = None
    missing: Missing = "skip"


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
    dataset: loading.Source | None = None,
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
        dataset: Questions with ground truth: a :class:`Dataset`, or what :func:`load_dataset` makes
            one of, such as a path. Without it, every call is a query of its own, with an empty
            ground truth.
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
    one_of("documents", documents, tuple(_CONVENTIONS))
    one_of("missing", missing, ("zero", "skip"))
    if calls is not None:
        one_of("calls", calls, ("first", "last", "union"))
    from krag_eval.loading.loading import dataset_in

    asked = None if dataset is None else dataset_in(dataset)
    table = _records(source, max_bytes)
    return traces_dataset(table, None, asked, Choice(documents, span, calls, missing))


def traces_dataset(
    table: Records,
    _given: Given | None = None,
    dataset: Dataset | None = None,
    choice: Choice = Choice(),  # noqa: B008 - immutable
) -> Dataset:
    """Return the data set of a table of spans, joined to the questions of ``dataset``."""
    written = [*_spans(table)]
    spans = [*_once(written)]
    found, notes = _calls(spans, choice, table.name)
    if len(spans) < len(written):
        n_again = len(written) - len(spans)
        notes.append(f"{n_again} spans were written a second time, and count once")
    if dataset is None:
        return _alone(found, choice.calls, table.name, notes)
    return _joined(found, dataset, choice, table.name, notes)


# From a source to flat spans


def _records(source: Any, max_bytes: int | None) -> Records:
    if isinstance(source, str | os.PathLike) or hasattr(source, "read") or is_frame(source):
        return records_in(source, "frame", max_bytes, SPANS)
    given = source if isinstance(source, Iterable) and not isinstance(source, Mapping) else ()
    rows = [run_as_row(one) or one for one in given]
    strange = [one for one in rows if not isinstance(one, Mapping)]
    if strange or not rows:
        came = clipped(strange[0] if strange else source)
        problem = f"must be a file, a data frame or a list of spans as dicts, got {came}"
        raise InvalidType("source", problem)
    return Records.of(((Place("spans", row=at), one) for at, one in enumerate(rows)), "spans")


def _spans(table: Records) -> Iterator[_Span]:
    """Yield the spans of a table in its order."""
    for place, row in table.rows:
        with _read_at(place):
            if row.get(_COLLECTOR) is not None:
                several = [_span(one, place) for one in _of_collector(row[_COLLECTOR], place)]
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
        problem = f"a span holds a number of more than {sys.get_int_max_str_digits():,} digits"
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
    """Return a span as the SDK, Phoenix or a data frame has it: nested, or by dotted names."""
    flat = dict(_flat(row, place))
    found = {field: next((flat[name] for name in names if name in flat), "")
             for field, names in _NAMES.items()}  # fmt: skip
    attributes = {name.removeprefix(_WITHIN): one for name, one in flat.items()
                  if name.startswith(_WITHIN)}  # fmt: skip
    attributes.setdefault(_KIND, found["kind"] or None)
    failed = str(found["status"]).rpartition(".")[2] == "ERROR"
    return _Span(place, _id(found["id"]), _id(found["parent"]), str(found["name"]),
                 str(found["started"]), failed, str(found["message"]), attributes)  # fmt: skip


def _id(value: Any) -> str:
    return str(value or "").removeprefix("0x")


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
        if isinstance(value, list | tuple) or not is_missing(value):
            yield name, value
        return
    for key, one in items:
        yield from _flat(one, place, f"{name}.{key}" if name else str(key), level + 1)


def _unwritten(text: Any) -> Any:
    """Return what a text spells: a list or an object, as JSON or as Python; else what came."""
    if not isinstance(text, str):
        return text
    stripped = text.strip()
    try:
        if is_list_written(stripped):
            return list_in(stripped, Location("documents"))
        return parsed(stripped) if stripped[:1] in ("{", "[") else text
    except (ValueError, InvalidType):
        return text


def _of_collector(groups: Any, place: Place) -> Iterator[dict[str, Any]]:
    """Yield the spans of OTLP's JSON, in the form that the SDK writes."""
    try:
        for one in (one for group in groups for scope in group["scopeSpans"]
                    for one in scope["spans"]):  # fmt: skip
            status = one.get("status") if isinstance(one.get("status"), Mapping) else {}
            yield {
                "name": one.get("name", ""),
                "span_id": one["spanId"],
                "parent_id": one.get("parentSpanId"),
                "start_time": one.get("startTimeUnixNano", ""),
                "status_code": "ERROR" if status.get("code") in (2, "STATUS_CODE_ERROR") else "OK",
                "status_message": status.get("message"),
                "attributes": _any_value({"kvlistValue": {"values": one.get("attributes") or ()}}),
            }
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        problem = "resourceSpans are not what OTLP writes as JSON"
        raise place.error(problem, "expected resourceSpans[].scopeSpans[].spans[]") from error


def _any_value(value: Mapping[str, Any]) -> Any:
    """Return a value of OTLP, which says in its key what it is."""
    if "arrayValue" in value:
        return [_any_value(one) for one in value["arrayValue"].get("values", ())]
    if "kvlistValue" in value:
        return {one["key"]: _any_value(one["value"])
                for one in value["kvlistValue"].get("values", ())}  # fmt: skip
    return next(iter(value.values()), None)


def _run(row: Mapping[str, Any], place: Place) -> _Span:
    """Return a run of LangSmith's as a span; a table holds what went in and out as JSON."""
    given, returned = (
        one if isinstance(one := _unwritten(row.get(name)), Mapping) else None
        for name in ("inputs", "outputs")
    )
    kind = str(row["run_type"]).upper()
    attributes: dict[str, Any] = {_KIND: kind, "input.value": given}
    if row["run_type"] == "retriever":
        attributes["input.value"] = given.get("query", given) if given is not None else None
        # LangChain's retrievers return them so, functions under traceable as their output.
        lists = (plain((returned or {}).get(name)) for name in ("documents", "output"))
        documents = next((one for one in lists if isinstance(one, list)), None)
        attributes |= {} if documents is None else {"documents": documents}
    error = "" if is_missing(row.get("error")) else str(row["error"])
    return _Span(place, _id(row.get("id")), _id(row.get("parent_run_id")), str(row.get("name", "")),
                 str(row.get("start_time", "")), error != "", error, attributes)  # fmt: skip


# From spans to calls


def _calls(spans: Sequence[_Span], choice: Choice, table: str) -> tuple[list[_Call], list[str]]:
    """Return the calls that count, in the order they were made, and what there is to say of it."""
    of_kind = [at for at, one in enumerate(spans) if _is_of(one, choice.documents)]
    kept = [at for at in of_kind if choice.span in (None, spans[at].name)]
    if not kept:
        raise _no_spans(spans, of_kind, choice, table)
    by_id = {one.id: at for at, one in enumerate(spans) if one.id}
    # The span around each; one that names itself has none.
    around = {at: by_id[one.parent] for at, one in enumerate(spans)
              if one.parent in by_id and one.parent != one.id}  # fmt: skip
    answered = {at: _documents(spans[at], choice.documents) for at in kept}
    outer = _outermost(spans, around, answered)
    asked: dict[int | None, _Asked] = {}
    for at in _outer_first((around[at] for at in outer if at in around), spans, around):
        given = spans[at].attributes.get("input.value")
        asked[at] = _Asked.of(given, asked.get(around.get(at)))
    calls = [_Call(spans[at], _asked(spans[at], asked.get(around.get(at))), found) for at in outer
             if (found := answered[at]) is not None]  # fmt: skip
    silent = [spans[at].name for at in outer if answered[at] is None]
    _warn_of([one.span.name for one in calls if one.span.failed], silent, len(outer), table)
    if not calls:
        problem = f"none of its {len(outer)} spans recorded what was returned"
        raise Place(table).error(problem, "let the instrumentation record contents, or ids")
    names = _names(one.span for one in calls)
    notes = [_(_READ_FROM[choice.documents]).format(n=len(calls), spans=len(spans), names=names)]
    inner = [spans[at] for at in kept if at not in {*outer}]
    if inner:
        told = _("{n} spans inside of these are left out: {names}")
        notes.append(told.format(n=len(inner), names=_names(inner)))
    return sorted(calls, key=_when), notes


def _names(spans: Iterable[_Span]) -> str:
    return listed([*dict.fromkeys(one.name for one in spans)])


def _when(call: _Call) -> tuple[int, str]:
    """Order by time: nanoseconds by their number, dates by their text."""
    started = call.span.started
    with _read_at(call.span.place):
        return (int(started), "") if started.isdecimal() else (0, started)


def _is_of(span: _Span, documents: Documents) -> bool:
    known = _CONVENTIONS[documents]
    return any(span.attributes.get(one.attribute) == one.kind for one in known)


def _no_spans(
    spans: Sequence[_Span], of_kind: Sequence[int], choice: Choice, table: str
) -> Exception:
    kind = _CONVENTIONS[choice.documents][0].kind
    if of_kind:
        names = _names(spans[at] for at in of_kind)
        problem = f"must name spans of kind {kind}, which are {names}, got {clipped(choice.span)}"
        return InvalidInput("span", problem)
    kinds = listed([*dict.fromkeys(str(one.attributes.get(_KIND)) for one in spans)])
    others = " or OpenTelemetry's retrieval" if choice.documents == "retrieved" else ""
    return Place(table).error(
        f"none of its {len(spans)} spans is of kind {kind}{others}; the kinds are {kinds}"
    )


def _outermost(
    spans: Sequence[_Span], around: Mapping[int, int], answered: Mapping[int, Any]
) -> list[int]:
    """Leave out spans around or inside of one that says more.

    Of those inside each other, the outermost that recorded documents counts.
    """
    order = _outer_first(answered, spans, around)
    speaks = {at for at, documents in answered.items() if documents is not None}
    around_speaks = {*speaks}
    for at in reversed(order):
        if at in around_speaks and at in around:
            around_speaks.add(around[at])

    def inside_of(some: Container[int]) -> set[int]:
        found: set[int] = set()
        for at in order:
            if at in around and (around[at] in some or around[at] in found):
                found.add(at)
        return found

    dropped = inside_of(speaks) | (inside_of(answered) | around_speaks) - speaks
    return [at for at in answered if at not in dropped]


def _outer_first(
    chosen: Iterable[int], spans: Sequence[_Span], around: Mapping[int, int]
) -> list[int]:
    """Return spans and all those around them, each once, after the one around it.

    Raises:
        DatasetError: If one is inside of itself.
    """
    order: dict[int, None] = {}
    for at in chosen:
        path: dict[int, None] = {}
        inner: int | None = at
        while inner is not None and inner not in order:
            if inner in path:
                one, circle = spans[inner], [*path][[*path].index(inner) :]
                raise one.place.error(
                    f"the span {one.name!r} is inside of itself: its parents go in a circle "
                    f"({_names(map(spans.__getitem__, circle))})",
                    "correct parent_id, or leave these spans out",
                )
            path[inner] = None
            inner = around.get(inner)
        order |= dict.fromkeys(reversed(path))
    return [*order]


def _warn_of(failed: Sequence[str], silent: Sequence[str], n_spans: int, table: str) -> None:
    if failed:
        told = _(
            "{table}: {n} of {spans} spans failed (the first is called {first!r}) and count as "
            "nothing retrieved."
        )
        warn(told.format(table=table, n=len(failed), spans=n_spans, first=failed[0]))
    if silent:
        told = _(
            "{table}: {n} of {spans} spans recorded no documents (the first is called {first!r}) "
            "and are left out."
        )
        problem = told.format(table=table, n=len(silent), spans=n_spans, first=silent[0])
        warn(problem, _("let the instrumentation record contents, or ids"))


def _asked(span: _Span, around: _Asked | None) -> _Asked:
    """Return what a span was asked, and what those around it were."""
    given = (span.attributes.get(name) for name in _QUERIES)
    own = next((one for one in given if isinstance(one, str | Mapping)), "")
    if not any(one.strip() for one in _texts(own)):
        raise span.place.error(
            f"the span {span.name!r} has no query in input.value, reranker.query, {_GENAI_QUERY} "
            "or inputs['query']"
        )
    return _Asked.of(own, around)


def _query_in(given: Any) -> str | None:
    """Return a query; DSPy and Haystack write it into an object of all that was passed."""
    content = _unwritten(given)
    if isinstance(content, str):
        return content if content.strip() else None
    named = (one for name, one in _flat(content) if name.rpartition(".")[2] in _QUERY_NAMES)
    return next((one for one in named if isinstance(one, str) and one.strip()), None)


def _texts(given: Any) -> Iterator[str]:
    """Yield a text, and the texts in the object that it spells."""
    if isinstance(given, str):
        yield given
    content = _unwritten(given)
    if not isinstance(content, str):
        yield from (one for _, one in _flat(content) if isinstance(one, str))


# The documents of a span


def _documents(span: _Span, documents: Documents) -> list[DocumentLike] | None:
    """Return the documents of a span, best first; ``None`` if they were not recorded."""
    found, output = span.attributes, _unwritten(span.attributes.get("output.value"))
    places = [one.documents for one in _CONVENTIONS[documents]]
    with _read_at(span.place):
        made = None
        if "documents" in found:
            listed_there = documents_in(found["documents"], Location("outputs"), ground_truth=False)
            made = [{"page_content": one} if isinstance(one, str) else one for one in listed_there]
        elif numbered := next(filter(None, (_numbered(found, one) for one in places)), None):
            ids = _ids_in(output, numbered)
            made = [_document(one, span, number, ids) for number, one in numbered.items()]
        if made is not None:
            check_characters(made, Location("documents"))
            return made
    nothing = any(found.get(one) in ([], ()) for one in places) or output in ([], {"documents": []})
    return [] if span.failed or nothing else None


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
    if text is None or text == _REDACTED:
        if name is None:
            problem = (
                f"the document {number} of the span {span.name!r} has neither a text nor an id"
            )
            raise span.place.error(problem, "let the instrumentation record contents, or ids")
        return str(name)
    check_text(str(text), Location("documents"))
    # Spans hold metadata as JSON, and the score beside it.
    written = _unwritten(str(fields.get("metadata", "")))
    inner = {name.removeprefix("metadata."): one for name, one in fields.items()
             if name.startswith("metadata.")}  # fmt: skip
    metadata = dict(written) if isinstance(written, Mapping) else inner
    if "score" in fields:
        metadata.setdefault("score", fields["score"])
    return {
        "page_content": str(text),
        **({} if name is None else {"id": str(name)}),
        **({"metadata": metadata} if metadata else {}),
    }


def _ids_in(output: Any, numbered: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
    """Return ids that only the output of a span holds, as LangChain's instrumentation has it."""
    documents = output.get("documents") if isinstance(output, Mapping) else None
    if not isinstance(documents, list) or len(documents) != len(numbered):
        return {}
    same = all(isinstance(one, Mapping) and one.get("page_content") == fields.get("content")
               for fields, one in zip(numbered.values(), documents, strict=True))  # fmt: skip
    pairs = zip(numbered, documents, strict=True) if same else ()
    return {number: one["id"] for number, one in pairs if one.get("id") is not None}


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
    top_k: list[Tag] = [_top_k(one[-1].span) for one in kept]
    told = _("spans hold no ground truth: load the questions and pass the spans as retrieved")
    return Dataset(
        queries=labels_of(questions, ids, name),
        actual=[[] for _ in kept],
        predicted=predicted,
        source=name,
        defaults=_defaults(predicted),
        questions=questions,
        notes=[*notes, told],
        tags={"top_k": top_k} if any(one is not None for one in top_k) else {},
        failures=_failures(enumerate(kept), calls),
    )


def _joined(
    found: Sequence[_Call], dataset: Dataset, choice: Choice, name: str, notes: list[str]
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
    check_overlap(known, [*groups, *dict.fromkeys(strange)], given_name=name,
                  expected_name=dataset.source or "dataset", absent=choice.missing)  # fmt: skip
    joined = _("{n} of {calls} calls joined {asked} of {questions} questions").format(
        n=len(found) - len(strange), calls=len(found), asked=len(groups), questions=len(known)
    )
    told = [*notes, joined]
    if strange:
        other = _("{n} calls with other questions: {names}")
        told.append(other.format(n=len(strange), names=listed(strange)))
    if lacking := [one for one in known if one not in groups]:
        never = _("{n} questions never asked: {names}")
        told.append(never.format(n=len(lacking), names=listed(lacking)))
    if rewritten:
        told.append(_("{} calls joined by what a span around them was given").format(rewritten))
    if dataset.predicted is not None:
        told.append(_("these replace the retrieved documents that the questions had"))
    answers = {known[one]: group for one, group in groups.items()}
    kept = sorted(answers) if choice.missing == "skip" else [*range(dataset.n_queries)]
    predicted = [_chosen(answers[at], choice.calls) if at in answers else [] for at in kept]
    groups_at = ((place, answers[at]) for place, at in enumerate(kept) if at in answers)
    defaults = {**dataset.defaults, **_defaults(predicted)}
    return replace(
        dataset.chosen(kept),
        predicted=predicted,
        defaults=defaults,
        notes=[*dataset.notes, *told],
        failures=_failures(groups_at, choice.calls),
        missing=MissingQuestions.of(len(lacking), len(known), choice.missing),
    )


def _questions(dataset: Dataset) -> dict[str, int]:
    """Return the place of each question.

    Raises:
        InvalidInput: If they are not known, or two are the same.
    """
    known: dict[str, int] = {}
    for number, one in enumerate(dataset.questions or dataset.queries):
        if not isinstance(one, str):
            problem = "must have the text of each question, by which spans are joined; query "
            raise InvalidInput("dataset", f"{problem}{number} has none")
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


def _counted(group: Sequence[_Call], calls: Calls | None) -> Sequence[_Call]:
    """Return the calls of one question that count."""
    return {"first": group[:1], "last": group[-1:]}.get(str(calls), group)


def _chosen(group: Sequence[_Call], calls: Calls | None) -> list[DocumentLike]:
    """Return the documents of the calls of one question.

    Raises:
        InvalidInput: If they differ, and nothing says which of them count.
    """
    counted = _counted(group, calls)
    # Documents are told apart by their ids, or by their texts where there is none.
    keys = [[id_of(one) or text_of(one) for one in call.documents] for call in counted]
    if calls == "union":
        found: dict[str, DocumentLike] = {}
        for key, one in zip(chain(*keys), chain(*(call.documents for call in group)), strict=True):
            found.setdefault(key, one)
        return [*found.values()]
    if any(one != keys[0] for one in keys):
        names = [*dict.fromkeys(call.span.name for call in group)]
        problem = f"must say what counts: {clipped(group[0].question)} was asked {len(group)} times"
        fix = Advice('read the spans by read_traces with {}, or "first" or "union"', calls="last")
        if len(names) > 1:
            fix = Advice("choose one by read_traces with {}", span=names[0])
        raise InvalidInput("calls", f"{problem}, with different documents, of {listed(names)}", fix)
    return counted[-1].documents


def _failures(groups: Iterable[tuple[int, Sequence[_Call]]], calls: Calls | None) -> list[Failure]:
    """Return the queries of which all calls that count failed, and brought nothing."""
    counted = [(place, _counted(group, calls)) for place, group in groups]
    return [
        Failure(place, "ERROR", group[-1].span.message, 0.0)
        for place, group in counted
        if all(one.span.failed and not one.documents for one in group)
    ]


def _defaults(predicted: Iterable[Sequence[DocumentLike]]) -> dict[str, Any]:
    """Compare by id where documents were recorded by their ids alone."""
    by_id = any(isinstance(one, str) for each in predicted for one in each)
    return {"matcher": "id"} if by_id else {}


def _top_k(span: _Span) -> int | None:
    """Return how many documents were asked for, where a span says so."""
    found = next((span.attributes[name] for name in _TOP_K if name in span.attributes), None)
    with _read_at(span.place):
        text = str(found).removesuffix(".0")  # a column with gaps holds 5 as 5.0
        return int(text) if text.isdecimal() else None
