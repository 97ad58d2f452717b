"""TREC's files: judgements (qrels) and runs, as trec_eval reads them, and other forms of them.

Judgements are also read from BEIR's table of three columns, and both from mappings, JSON objects
and Parquet tables as ranx writes them.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from krag_eval._language import _
from krag_eval._reading import (
    MAX_BYTES,
    Source,
    kind_of,
    located,
    name_of,
    not_json,
    numbered_lines,
    parsed,
)
from krag_eval.conventions import Conventions
from krag_eval.datasets.dataset import Dataset, check_overlap
from krag_eval.datasets.formats import format_of
from krag_eval.datasets.table import Records, is_frame, records_in
from krag_eval.documents import AnyOf, DocumentLike
from krag_eval.errors import DatasetError, InvalidInput, Place, boolean, one_of, warn, whole

Number = TypeVar("Number", int, float)
#: ``{topic: {document: number}}``
Table: TypeAlias = dict[str, dict[str, Number]]

# As many digits as a float holds exactly, and a grade in a file may have.
_LARGEST_GRADE = 10**15 - 1


def grade_in(value: Any, document: str) -> int:
    """Return the grade of a document; an ``InvalidInput`` says what else it is."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    whole = number and (isinstance(value, Integral) or float(value).is_integer())
    if not whole or abs(value) > _LARGEST_GRADE:
        raise InvalidInput(
            "", f"the grade of {document!r} must be a whole number, got {str(value)[:40]!r}"
        )
    return int(value)


def score_in(value: Any, document: str) -> float:
    """Return the score of a document; an ``InvalidInput`` says what else it is."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise InvalidInput("", f"the score of {document!r} must be a number, got {str(value)[:40]}")
    try:
        return float(value)
    except OverflowError as error:
        problem = f"the score of {document!r} is too large for a float"
        raise InvalidInput("", problem) from error


#: What happens to a topic of the judgements for which the run has nothing.
Missing: TypeAlias = Literal["zero", "skip"]
#: How exactly scores are compared.
ScorePrecision: TypeAlias = Literal["single", "double"]

_GRADE_KEY = "grade"


@dataclass(frozen=True)
class Qrels:
    """Judgements: topic -> document -> grade, in the order of the file."""

    name: str
    grades: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Run:
    """What was retrieved: topic -> document -> score, in the order of the file."""

    name: str
    scores: Mapping[str, Mapping[str, float]]


def judged_dataset(
    qrels: Qrels,
    run: Run | None,
    *,
    missing: Missing = "zero",
    relevance_level: int = 1,
    scores: ScorePrecision = "single",
    judged: bool = False,
) -> Dataset:
    """Return a data set of the judged topics, its documents in the order of their scores.

    Ground truth is what has a grade of at least ``relevance_level``; documents are ids. Without a
    run nothing has been retrieved yet. The options are those of
    :func:`~krag_eval.datasets.read_trec`.

    >>> qrels = Qrels("qrels", {"1": {"a": 1, "b": 0}})
    >>> judged_dataset(qrels, Run("run", {"1": {"b": 0.5, "a": 0.5, "c": 2.0}})).predicted
    [['c', 'b', 'a']]
    """
    _check_options(missing, relevance_level, scores)
    topics = [*qrels.grades] if run is None else _topics(qrels, run, missing)
    relevant = [_relevant(qrels.grades[topic], relevance_level) for topic in topics]
    graded = any(grade != 1 for grades in relevant for grade in grades.values())
    return Dataset(
        queries=list(topics),
        actual=[_ground_truth(grades, graded) for grades in relevant],
        predicted=None if run is None else _ranked(run, topics, scores),
        source=qrels.name if run is None else run.name,
        defaults=_defaults(graded),
        judged=[_judged(qrels.grades[topic]) for topic in topics] if judged else None,
    )


def _judged(grades: Mapping[str, int]) -> dict[str, bool]:
    """Return the documents of the pool, and whether each was looked at: -1 says that it was not."""
    return {document: grade >= 0 for document, grade in grades.items()}


def _check_options(missing: object, relevance_level: object, scores: object) -> None:
    one_of("missing", missing, ("zero", "skip"))
    one_of("scores", scores, ("single", "double"))
    # A grade of 0 says that a document is not relevant.
    whole("relevance_level", relevance_level, 1)


def _defaults(graded: bool) -> dict[str, Any]:
    """Return the options under which the evaluator says what trec_eval says."""
    options = {
        "matcher": "id",
        "conventions": Conventions.trec(),
        "matching_criteria": "partial",
        "no_ground_truth": "zero",
    }
    return {**options, "grade_key": _GRADE_KEY} if graded else options


def _relevant(grades: Mapping[str, int], level: int) -> dict[str, int]:
    return {document: grade for document, grade in grades.items() if grade >= level}


def _ground_truth(grades: Mapping[str, int], graded: bool) -> list[DocumentLike | AnyOf]:
    if not graded:
        return list(grades)
    return [
        {"page_content": document, "id": document, "metadata": {_GRADE_KEY: grade}}
        for document, grade in grades.items()
    ]


def _topics(qrels: Qrels, run: Run, missing: Missing) -> list[str]:
    """Return the topics to evaluate, and warn of those only one side knows."""
    check_overlap(
        qrels.grades,
        run.scores,
        expected_name=qrels.name,
        given_name=run.name,
        absent=None if missing == "skip" else "zero, as trec_eval -c",
    )
    return [topic for topic in qrels.grades if missing == "zero" or topic in run.scores]


# In which order documents were retrieved


def _ranked(run: Run, topics: list[str], precision: ScorePrecision) -> list[list[DocumentLike]]:
    """Order documents by score, then by id, both descending: trec_eval's rule.

    trec_eval kept scores in single precision up to version 9, as do the published numbers, and
    has kept them in double precision since.
    """
    ranked: list[list[DocumentLike]] = []
    reordered = []
    for topic in topics:
        exact = run.scores.get(topic, {})
        if precision == "double":
            ranked.append([*_ordered(exact)])
            continue
        rounded = dict(zip(exact, array("f", exact.values()), strict=True))
        order = _ordered(rounded)
        new_ties = len(set(rounded.values())) < len(set(exact.values()))
        if new_ties and order != _ordered(exact):
            reordered.append(topic)
        ranked.append([*order])
    if reordered:
        told = _(
            "{name}: in {n} of {all} topics (the first is {first!r}) scores differ only beyond "
            "single precision, where trec_eval up to version 9 sees ties and orders by document "
            'id; scores="double" compares them as they are written, as trec_eval 10 does.'
        )
        warn(told.format(name=run.name, n=len(reordered), all=len(topics), first=reordered[0]))
    return ranked


def _ordered(scores: Mapping[str, float]) -> list[str]:
    # Sorting is stable in reverse too, so ids stay in descending order among equal scores. Python
    # compares code points, which is the order of UTF-8 bytes that trec_eval compares.
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


# The headers of tables: of BEIR's judgements, and of what ranx writes.
_BEIR, _RANX = ("query-id", "corpus-id", "score"), ("q_id", "doc_id", "score")
# What C calls white space, and nothing else: an id may hold an ideographic space.
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
# A decimal point is harmless where nothing but zeros follows.
_GRADE = re.compile(r"([+-]?[0-9]{1,15})(?:\.0*)?")


def read_trec(
    qrels: Source | Mapping[str, Mapping[str, int]],
    run: Source | Mapping[str, Mapping[str, float]],
    *,
    missing: Missing = "zero",
    relevance_level: int = 1,
    scores: ScorePrecision = "single",
    judged: bool = False,
    max_bytes: int | None = MAX_BYTES,
) -> Dataset:
    """Read judgements and a run in TREC's formats, plain or gzip-compressed.

    A line of the judgements is ``topic 0 document grade``, a line of the run ``topic Q0 document
    rank score tag``, in columns separated by white space; lines that begin with ``#`` are
    comments. As in trec_eval, documents are ordered by score, descending, then by id, descending;
    the ranks in the file are ignored, and so is what follows the tag; a grade below 1 is not
    relevant. Judgements may also be BEIR's table with the header ``query-id corpus-id score``.
    Both may be JSON, ``{topic: {document: number}}``, or Parquet with the columns ``q_id``,
    ``doc_id`` and ``score``, as ranx writes them.

    The evaluator of what is returned compares ids and has one query per topic, labelled by it. Its
    defaults reproduce trec_eval: ``Conventions.trec()``, grades from the judgements,
    ``matching_criteria="partial"`` (so that the hit rate is ``success``) and
    ``no_ground_truth="zero"`` (a topic without a relevant document counts as 0).

    Args:
        qrels: The judgements: a path, an open file, or ``{topic: {document: grade}}``.
        run: The run: a path, an open file, or ``{topic: {document: score}}``.
        missing: For topics of the judgements that are not in the run: ``"zero"`` counts them as
            nothing retrieved, with a warning (``trec_eval -c``); ``"skip"`` leaves them out
            (trec_eval without it).
        relevance_level: Grade from which a document is relevant (``trec_eval -l``). The documents
            below it are not ground truth at all, so nDCG, for which trec_eval disregards ``-l``,
            is trec_eval's at level 1 only.
        scores: ``"single"`` compares scores in single precision, as trec_eval up to version 9
            does, with a warning where that changes the order; ``"double"`` as they are, as
            trec_eval 10 does.
        judged: Whether to keep which documents were judged, for ``bpref``, ``infap`` and
            ``unjudged="leave_out"`` (``trec_eval -J``). A grade below 0 says that a document is in
            the pool, and nobody looked at it.
        max_bytes: As in :func:`read_jsonl`, for each of the files.

    Raises:
        DatasetError: If a file cannot be used; the message names file and line.
        InvalidInput: If an option is not among those allowed.

    >>> qrels = {"301": {"d1": 1, "d2": 0, "d3": 2}}
    >>> evaluator = read_trec(qrels, {"301": {"d2": 9.5, "d1": 8.0, "d3": 7.5}}).evaluator()
    >>> evaluator.calculate_mrr()
    {'mrr': 0.5}
    """
    return judged_dataset(
        read_qrels(qrels, max_bytes),
        read_run(run, max_bytes),
        missing=missing,
        relevance_level=relevance_level,
        scores=scores,
        judged=boolean("judged", judged),
    )


def read_qrels(
    source: Source | Mapping[str, Mapping[str, int]], max_bytes: int | None = MAX_BYTES
) -> Qrels:
    """Read judgements: TREC's four columns, BEIR's three, or ``{topic: {document: grade}}``.

    >>> import io
    >>> read_qrels(io.StringIO("301 0 d1 2")).grades
    {'301': {'d1': 2}}
    """
    return Qrels(*_read(source, _JUDGEMENTS, max_bytes))


def read_run(
    source: Source | Mapping[str, Mapping[str, float]], max_bytes: int | None = MAX_BYTES
) -> Run:
    """Read a run: six columns, or ``{topic: {document: score}}``, in a JSON file or as it is.

    >>> import io
    >>> read_run(io.StringIO("301 Q0 d1 1 0.5 bm25")).scores
    {'301': {'d1': 0.5}}
    """
    return Run(*_read(source, _RUN, max_bytes))


def is_judgements(source: Any, max_bytes: int | None = MAX_BYTES) -> bool:
    """Tell whether this is judgements: a dict, a JSON file or Parquet as ranx writes them.

    >>> is_judgements({"q1": {"d1": 1}}), is_judgements({"q1": ["d1"]})
    (True, False)
    """
    if isinstance(source, Mapping):
        return bool(source) and all(
            isinstance(documents, Mapping) and all(isinstance(one, Real) for one in
                                                   documents.values())
            for documents in source.values()
        )  # fmt: skip
    if not isinstance(source, str | os.PathLike):
        return False
    if is_parquet(source):
        return {*_RANX} <= {*records_in(source, "qrels", max_bytes, _RANX).names}
    name = name_of(source)
    if not name.lower().removesuffix(".gz").endswith(".json"):
        return False
    lines = [*numbered_lines(source, name, max_bytes)]
    if not lines or not lines[0][1].lstrip().startswith("{"):
        return False
    try:
        content = parsed("".join(text for _, text in lines))
    except ValueError:
        return False
    return isinstance(content, dict) and is_judgements(content)


def is_parquet(source: Any) -> bool:
    """Tell whether a file is Parquet, by its first bytes."""
    kind = format_of(source)
    return kind is not None and kind.name == "parquet"


# From lines to rows, and from rows to a table


def _grade(text: str, name: str, line: int) -> int:
    grade = _GRADE.fullmatch(text)
    if grade is None:
        raise Place(name, line).error(
            f"the grade must be a whole number, got {text[:40]!r}",
            "0 or less says that the document is not relevant",
        )
    return int(grade[1])


def _score(text: str, name: str, line: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    # Python also reads 1_000 and digits of other scripts, which other tools do not.
    if score != score or "_" in text or not text.isascii():
        raise Place(name, line).error(f"the score must be a number, got {text[:40]!r}")
    return score


class _Kind(NamedTuple):
    """Judgements, or a run: what documents are given, and how that is read."""

    what: str
    name: str
    columns: str
    at: int
    read: Callable[[str, str, int], Any]
    check: Callable[[Any, str], Any]
    more: bool = False


_JUDGEMENTS = _Kind("judgements", "qrels", "topic 0 document grade", 3, _grade, grade_in)
# As in trec_eval, more may follow the tag.
_RUN = _Kind("retrieved documents", "run", "topic Q0 document rank score tag", 4, _score, score_in,
             more=True)  # fmt: skip


def _read(source: Any, kind: _Kind, max_bytes: int | None) -> tuple[str, Table[Any]]:
    """Return what to call a source, and its numbers by topic and document, each once."""
    table: Table[Any] = {}
    name = kind.name if isinstance(source, Mapping) or is_frame(source) else name_of(source)
    for place, topic, document, number in _rows(source, name, kind, max_bytes):
        documents = table.setdefault(topic, {})
        if document in documents:
            where = Place(name, place) if isinstance(place, int) else place
            raise where.error(
                f"the document {document!r} is listed a second time for the topic {topic!r}",
                "list each document once",
            )
        if document is not None:
            documents[document] = number
    if not table:
        raise Place(name).error(f"holds no {kind.what}; expected one per line")
    return name, table


def _rows(
    source: Any, name: str, kind: _Kind, max_bytes: int | None
) -> Iterator[tuple[Any, str, str | None, Any]]:
    """Yield line or place, topic, document and number; of a topic without documents, ``None``."""
    if isinstance(source, Mapping):
        yield from _of_mapping(source, Place(name), kind)
        return
    is_path = isinstance(source, str | os.PathLike)
    if (
        is_frame(source)
        or is_parquet(source)
        or (is_path and name.removesuffix(".gz").endswith(".jsonl"))
    ):
        yield from _of_records(records_in(source, name, max_bytes, {*_BEIR, *_RANX}), kind)
        return
    with closing(numbered_lines(source, name, max_bytes)) as lines:
        first = [*islice(lines, 1)]
        start = first[0][1] if first else ""
        if start.lstrip().startswith("{"):
            yield from _of_mapping(_object([*first, *lines], name, kind), Place(name), kind)
        elif kind is _JUDGEMENTS and start.split() == [*_BEIR]:
            yield from _of_beir(lines, name)
        else:
            yield from _of_lines(chain(first, lines), name, kind)


def _of_mapping(
    content: Mapping[Any, Any], place: Place, kind: _Kind
) -> Iterator[tuple[Place, str, str | None, Any]]:
    for topic, documents in content.items():
        if not isinstance(topic, str) or not isinstance(documents, Mapping):
            raise place.error(
                "expected an object of the form {topic: {document: number}} with text as topics, "
                f"got {kind_of(documents)} for the topic {topic!r}"
            )
        yield place, topic, None, None
        for document, value in documents.items():
            if not isinstance(document, str) or not document:
                raise place.error(f"topic {topic!r}: a document id must be text, got {document!r}")
            try:
                yield place, topic, document, kind.check(value, document)
            except InvalidInput as error:
                raise place.error(f"topic {topic!r}: {error.problem}") from error


def _object(lines: Sequence[tuple[int, str]], name: str, kind: _Kind) -> dict[str, Any]:
    """Read one object from lines, the first of which begins with ``{``."""
    try:
        with located(Place(name)):
            content: dict[str, Any] = parsed("".join(text for _, text in lines))
    except json.JSONDecodeError as error:
        place = Place(name, lines[min(error.lineno, len(lines)) - 1][0])
        number = kind.columns.split()[kind.at]
        raise not_json(error, place, f"one object {{topic: {{document: {number}}}}}") from error
    return content


def _of_records(table: Records, kind: _Kind) -> Iterator[tuple[Place, str, str, Any]]:
    """Yield the rows of a table as BEIR or ranx writes it."""
    topic, document, number = _BEIR if {*_BEIR} <= {*table.names} else _RANX
    table.check_has((topic, document, number))
    ids = zip(table.ids(topic), table.ids(document), strict=True)
    for (one, other), (place, value) in zip(ids, table.cells(number), strict=True):
        with located(place):
            yield place, one, other, kind.check(value, other)


def _of_lines(
    lines: Iterable[tuple[int, str]], name: str, kind: _Kind
) -> Iterator[tuple[int, str, str, Any]]:
    n_columns = len(kind.columns.split())
    for line, text in lines:
        if text.startswith("#"):
            continue
        columns = text.split() if text.isascii() else _SPACES.split(text.strip(" \t\n\r\f\v"))
        if len(columns) < n_columns or (len(columns) > n_columns and not kind.more):
            raise _wrong_columns(columns, kind.columns, Place(name, line))
        yield line, columns[0], columns[2], kind.read(columns[kind.at], name, line)


def _of_beir(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, str, str, int]]:
    """Yield what follows BEIR's header; ids may hold spaces, so only tabs part columns."""
    for line, text in lines:
        columns = text.rstrip("\r\n").split("\t")
        if len(columns) != 3 or not all(columns):
            raise _wrong_columns(columns, " ".join(_BEIR), Place(name, line), "a tab")
        yield line, columns[0], columns[1], _grade(columns[2], name, line)


def _wrong_columns(
    columns: list[str], expected: str, place: Place, parted_by: str = "white space"
) -> DatasetError:
    shown = " ".join(columns)
    return place.error(
        f"expected the {len(expected.split())} columns {expected!r}, separated by {parted_by}, got "
        f"{len(columns)}: {shown[:60]!r}{'…' if len(shown) > 60 else ''}"
    )
