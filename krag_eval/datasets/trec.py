"""TREC's files: judgements (qrels) and runs, as trec_eval reads them, and what stands in for them.

Judgements are also read from BEIR's table of three columns, and both from mappings, JSON objects
and Parquet tables as ranx writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import chain, islice
from typing import Any, TypeAlias

from krag_eval.datasets.base import Blamed, Dataset, DatasetError, Place, Source, name_of
from krag_eval.datasets.judged import Missing, Qrels, Run, ScorePrecision, judged_dataset
from krag_eval.datasets.lines import MAX_BYTES, numbered_lines
from krag_eval.datasets.mappings import (
    Lines,
    Number,
    Table,
    grade_in,
    grades_of,
    object_in,
    score_in,
    scores_of,
)
from krag_eval.datasets.parquet import is_parquet, parquet_columns

__all__ = ["read_qrels", "read_run", "read_trec"]

#: Line, topic, document and number of each row.
Rows: TypeAlias = Iterator[tuple[int, str, str, Number]]

_BEIR_HEADER = ["query-id", "corpus-id", "score"]
# The columns of a Parquet file, as ranx names them.
_TOPIC, _DOCUMENT, _NUMBER = _RANX = ("q_id", "doc_id", "score")
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
            below it are no ground truth at all, so nDCG, for which trec_eval disregards ``-l``,
            is trec_eval's at level 1 only.
        scores: ``"single"`` compares scores in single precision, as trec_eval up to version 9
            does, with a warning where that changes the order; ``"double"`` as they are, as
            trec_eval 10 does.
        max_bytes: As in :func:`read_jsonl`, for each of the files.

    Raises:
        DatasetError: If a file cannot be used; the message names file and line.
        ValueError: If an option is not among those allowed.

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
    )


def read_qrels(
    source: Source | Mapping[str, Mapping[str, int]], max_bytes: int | None = MAX_BYTES
) -> Qrels:
    """Read judgements: TREC's four columns, BEIR's three, or ``{topic: {document: grade}}``.

    >>> import io
    >>> read_qrels(io.StringIO("301 0 d1 2")).grades
    {'301': {'d1': 2}}
    """
    if isinstance(source, Mapping):
        return Qrels("qrels", grades_of(source, Place("qrels")))
    name = name_of(source)
    if is_parquet(source):
        return Qrels(name, _parquet_table(source, name, max_bytes, grade_in, "judgements"))
    with closing(numbered_lines(source, name, max_bytes)) as lines:
        first, every = _looked_into(lines)
        if first.lstrip().startswith("{"):
            return Qrels(name, grades_of(object_in(every, name, "grade"), Place(name)))
        is_beir = first.split() == _BEIR_HEADER
        rows = _beir_judgements(every, name) if is_beir else _judgements(every, name)
        return Qrels(name, _table(rows, name, "judgements"))


def read_run(
    source: Source | Mapping[str, Mapping[str, float]], max_bytes: int | None = MAX_BYTES
) -> Run:
    """Read a run: six columns, or ``{topic: {document: score}}``, in a JSON file or as it is.

    >>> import io
    >>> read_run(io.StringIO("301 Q0 d1 1 0.5 bm25")).scores
    {'301': {'d1': 0.5}}
    """
    if isinstance(source, Mapping):
        return Run("run", scores_of(source, Place("run")))
    name = name_of(source)
    if is_parquet(source):
        return Run(name, _parquet_table(source, name, max_bytes, score_in, "retrieved documents"))
    with closing(numbered_lines(source, name, max_bytes)) as lines:
        first, every = _looked_into(lines)
        if first.lstrip().startswith("{"):
            return Run(name, scores_of(object_in(every, name, "score"), Place(name)))
        return Run(name, _table(_retrieved(every, name), name, "retrieved documents"))


def _looked_into(lines: Lines) -> tuple[str, Lines]:
    """Return the first line's text, and all lines with it."""
    first = list(islice(lines, 1))
    return first[0][1] if first else "", chain(first, lines)


# From lines to rows, and from rows to a table


def _table(
    rows: Rows[Number],
    name: str,
    what: str,
    place_of: Callable[[int], Blamed] | None = None,
) -> Table[Number]:
    """Collect rows by topic; a document stands there once."""
    table: Table[Number] = {}
    for at, topic, document, number in rows:
        documents = table.setdefault(topic, {})
        if document in documents:
            place = Place(name, at) if place_of is None else place_of(at)
            raise place.error(
                f"the document {document!r} is listed a second time for the topic {topic!r}; "
                "list each document once."
            )
        documents[document] = number
    if not table:
        raise Place(name).error(f"holds no {what}; expected one per line.")
    return table


def _parquet_table(
    source: Any,
    name: str,
    max_bytes: int | None,
    number_in: Callable[[Any, str], Number],
    what: str,
) -> Table[Number]:
    """Read a table with one row for each topic and document, as ranx writes it."""
    table = parquet_columns(source, name, max_bytes, _RANX)
    table.check_has(_RANX)

    def rows() -> Rows[Number]:
        texts = zip(table.texts(_TOPIC), table.texts(_DOCUMENT), strict=True)
        for at, (topic, document) in enumerate(texts):
            try:
                yield at, topic, document, number_in(table.columns[_NUMBER][at], document)
            except ValueError as error:
                raise table.row(at, "").error(str(error)) from error

    return _table(rows(), name, what, lambda at: table.row(at, ""))


def _judgements(lines: Lines, name: str) -> Rows[int]:
    for line, text in lines:
        if text.startswith("#"):
            continue
        columns = _columns(text)
        if len(columns) != 4:
            raise _wrong_columns(columns, "topic 0 document grade", Place(name, line))
        topic, _, document, grade = columns
        yield line, topic, document, _grade(grade, name, line)


def _beir_judgements(lines: Lines, name: str) -> Rows[int]:
    """Read what follows the header; ids may hold spaces, so only tabs part columns."""
    for line, text in islice(lines, 1, None):
        columns = text.rstrip("\r\n").split("\t")
        if len(columns) != 3 or not all(columns):
            raise _wrong_columns(columns, " ".join(_BEIR_HEADER), Place(name, line), "a tab")
        query, document, grade = columns
        yield line, query, document, _grade(grade, name, line)


def _retrieved(lines: Lines, name: str) -> Rows[float]:
    for line, text in lines:
        if text.startswith("#"):
            continue
        columns = _columns(text)
        if len(columns) < 6:
            raise _wrong_columns(columns, "topic Q0 document rank score tag", Place(name, line))
        topic, _, document, _, score = columns[:5]  # as in trec_eval, more may follow the tag
        yield line, topic, document, _score(score, name, line)


def _columns(text: str) -> list[str]:
    return text.split() if text.isascii() else _SPACES.split(text.strip(" \t\n\r\f\v"))


def _wrong_columns(
    columns: list[str], expected: str, place: Place, parted_by: str = "white space"
) -> DatasetError:
    shown = " ".join(columns)
    return place.error(
        f"expected the {len(expected.split())} columns {expected!r}, separated by {parted_by}, got "
        f"{len(columns)}: {shown[:60]!r}{'…' if len(shown) > 60 else ''}."
    )


def _grade(text: str, name: str, line: int) -> int:
    grade = _GRADE.fullmatch(text)
    if grade is None:
        raise Place(name, line).error(
            f"the grade must be a whole number, got {text[:40]!r}; 0 or less says that the "
            "document is not relevant."
        )
    return int(grade[1])


def _score(text: str, name: str, line: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    # Python also reads 1_000 and digits of other scripts, which other tools do not.
    if score != score or "_" in text or not text.isascii():
        raise Place(name, line).error(f"the score must be a number, got {text[:40]!r}.")
    return score
