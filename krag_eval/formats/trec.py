"""TREC's files: judgements (qrels) and runs, as trec_eval reads them, and other forms of them.

Judgements are also read from BEIR's table of three columns, and both from mappings, JSON objects
and Parquet tables as ranx writes them.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeAlias

from krag_eval.core import (
    Advice,
    AnyOf,
    Conventions,
    DatasetError,
    DocumentLike,
    MissingQuestions,
    Place,
    _,
    boolean,
    one_of,
    warn,
    whole,
)
from krag_eval.core.errors import kind_of
from krag_eval.formats.ids import check_overlap
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.formats import format_of, json_in
from krag_eval.loading.reading import MAX_BYTES, Source, name_of, numbered_lines, parsed
from krag_eval.loading.table import Records, is_frame, listed, records_in

#: What happens to a topic of the judgements for which the run has nothing.
Missing: TypeAlias = Literal["zero", "skip"]
#: How exactly scores are compared.
ScorePrecision: TypeAlias = Literal["single", "double"]

_GRADE_KEY = "grade"
# The headers of tables: of BEIR's judgements, and of what ranx writes.
_BEIR, _RANX = ("query-id", "corpus-id", "score"), ("q_id", "doc_id", "score")
#: What harnesses call the documents of their judgements, the most exact first.
JUDGED_BY = ("chunk_id", "doc_id", "doc_uri")
#: The key beside the subsets in what MTEB saves of a run.
MTEB = "mteb_model_meta"
# As many digits as a float holds exactly, and a grade in a file may have.
_LARGEST_GRADE = 10**15 - 1
# What C calls white space, and nothing else: an id may hold an ideographic space.
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
# A decimal point is harmless where nothing but zeros follows.
_GRADE = re.compile(r"([+-]?[0-9]{1,15})(?:\.0*)?")


class Numbers(NamedTuple):
    """What a file of judgements, or a run, says.

    Attributes:
        name: What to call it.
        by_topic: Topic -> document -> grade or score, in the order of the file.
    """

    name: str
    by_topic: Mapping[str, Mapping[str, Any]]

    def as_run(self) -> Dataset:
        """Return the documents of each topic by score, without ground truth."""
        topics = [*self.by_topic]
        return Dataset([*topics], [[] for _topic in topics], ranked(self, topics), self.name,
                       defaults={"matcher": "id"})  # fmt: skip


def judged_dataset(
    qrels: Numbers,
    run: Numbers | None,
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

    >>> qrels = Numbers("qrels", {"1": {"a": 1, "b": 0}})
    >>> judged_dataset(qrels, Numbers("run", {"1": {"b": 0.5, "a": 0.5, "c": 2.0}})).predicted
    [['c', 'b', 'a']]
    """
    one_of("missing", missing, ("zero", "skip"))
    one_of("scores", scores, ("single", "double"))
    # A grade of 0 says that a document is not relevant.
    whole("relevance_level", relevance_level, 1)
    topics, pools = [*qrels.by_topic], qrels.by_topic
    lacking = [one for one in topics if run is not None and one not in run.by_topic]
    if run is not None:
        absent: Any = None if missing == "skip" else "zero, as trec_eval -c"
        check_overlap(topics, run.by_topic, expected_name=qrels.name, given_name=run.name,
                      absent=absent)  # fmt: skip
        topics = [one for one in topics if missing == "zero" or one in run.by_topic]
    relevant = [{document: grade for document, grade in pools[topic].items()
                 if grade >= relevance_level} for topic in topics]  # fmt: skip
    graded = any(grade != 1 for grades in relevant for grade in grades.values())
    # The options under which the evaluator says what trec_eval says.
    defaults: dict[str, Any] = {
        "matcher": "id",
        "conventions": Conventions.trec(),
        "matching_criteria": "partial",
        "no_ground_truth": "zero",
    }
    # In a pool, -1 says that nobody looked at a document.
    looked_at = [{document: grade >= 0 for document, grade in pools[topic].items()}
                 for topic in topics]  # fmt: skip
    return Dataset(
        queries=list(topics),
        actual=[_ground_truth(grades, graded) for grades in relevant],
        predicted=None if run is None else ranked(run, topics, scores),
        source=(run or qrels).name,
        defaults={**defaults, "grade_key": _GRADE_KEY} if graded else defaults,
        judged=looked_at if judged else None,
        missing=MissingQuestions.of(len(lacking), len(qrels.by_topic), missing),
    )


def _ground_truth(grades: Mapping[str, int], graded: bool) -> list[DocumentLike | AnyOf]:
    if not graded:
        return list(grades)
    return [
        {"page_content": document, "id": document, "metadata": {_GRADE_KEY: grade}}
        for document, grade in grades.items()
    ]


# In which order documents were retrieved


def ranked(
    run: Numbers, topics: Sequence[str], precision: ScorePrecision = "single"
) -> list[list[DocumentLike]]:
    """Order documents by score, then by id, both descending: trec_eval's rule.

    trec_eval kept scores in single precision up to version 9, as do the published numbers, and
    has kept them in double precision since.
    """
    lists: list[list[DocumentLike]] = []
    reordered = []
    for topic in topics:
        exact = run.by_topic.get(topic, {})
        scores = exact
        if precision == "single":
            scores = dict(zip(exact, array("f", exact.values()), strict=True))
        order = _ordered(scores)
        lists.append([*order])
        new_ties = len(set(scores.values())) < len(set(exact.values()))
        if new_ties and order != _ordered(exact):
            reordered.append(topic)
    if reordered:
        told = _(
            "{name}: in {n} of {all} topics (the first is {first!r}) scores differ only beyond "
            "single precision, where trec_eval up to version 9 sees ties and orders by document "
            'id; scores="double" compares them as they are written, as trec_eval 10 does.'
        )
        warn(told.format(name=run.name, n=len(reordered), all=len(topics), first=reordered[0]))
    return lists


def _ordered(scores: Mapping[str, float]) -> list[str]:
    # Sorting is stable in reverse too, so ids stay in descending order among equal scores. Python
    # compares code points, which is the order of UTF-8 bytes that trec_eval compares.
    return sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)


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

    >>> from krag_eval.datasets import read_trec
    >>> qrels = {"301": {"d1": 1, "d2": 0, "d3": 2}}
    >>> evaluator = read_trec(qrels, {"301": {"d2": 9.5, "d1": 8.0, "d3": 7.5}}).evaluator()
    >>> evaluator.calculate_mrr()
    {'mrr': 0.5}
    """
    return judged_dataset(
        QRELS.read(qrels, max_bytes),
        RUN.read(run, max_bytes),
        missing=missing,
        relevance_level=relevance_level,
        scores=scores,
        judged=boolean("judged", judged),
    )


def is_judgements(source: Any, max_bytes: int | None = MAX_BYTES) -> bool:
    """Tell whether this is judgements: a dict, a JSON file or Parquet as ranx writes them.

    >>> is_judgements({"q1": {"d1": 1}}), is_judgements({"q1": ["d1"]})
    (True, False)
    """
    if isinstance(source, Mapping):
        if MTEB in source:
            return True
        pools = [*source.values()]
        numbers = (isinstance(one, Mapping) and all(isinstance(number, Real) for number in
                                                    one.values()) for one in pools)  # fmt: skip
        return bool(pools) and all(numbers)
    if not isinstance(source, str | os.PathLike):
        return False
    if is_parquet(source):
        return {*_RANX} <= {*records_in(source, "qrels", max_bytes, _RANX).names}
    name = name_of(source)
    if not name.lower().removesuffix(".gz").endswith(".json"):
        return False
    lines = [text for _, text in numbered_lines(source, name, max_bytes)]
    try:
        # Anything else than one object need not be parsed.
        content = parsed("".join(lines)) if lines and lines[0].lstrip().startswith("{") else None
    except ValueError:
        return False
    return isinstance(content, dict) and is_judgements(content)


def is_parquet(source: Any) -> bool:
    """Tell whether a file is Parquet, by its first bytes."""
    kind = format_of(source)
    return kind is not None and kind.name == "parquet"


# From lines to rows, and from rows to numbers

# A line, topic, document and number; of a topic without documents, the last two are ``None``.
_Row: TypeAlias = "tuple[Place | int, str, str | None, Any]"


@dataclass(frozen=True)
class Kind:
    """Judgements, or a run: what it holds, and how that is read.

    Attributes:
        what: What it holds.
        name: What to call it where it is no file.
        columns: Its columns in TREC's format.
        at: Which of them holds the number.
        number: What the number is.
        of_text: A function that returns a number as it is written; ``None`` for no such number.
        of_value: The same of a number in JSON and tables.
        part: Which subset and split of MTEB's predictions to read, such as ``"ko.test"``.
    """

    what: str
    name: str
    columns: tuple[str, ...]
    at: int
    number: str
    of_text: Callable[[str], Any]
    of_value: Callable[[Any], Any]
    part: str | None = None

    def read(self, source: Any, max_bytes: int | None = MAX_BYTES) -> Numbers:
        """Read a file in any of its forms, or ``{topic: {document: number}}``.

        >>> import io
        >>> QRELS.read(io.StringIO("301 0 d1 2")).by_topic
        {'301': {'d1': 2}}
        """
        name = self.name if isinstance(source, Mapping) or is_frame(source) else name_of(source)
        return self._collected(self._rows(source, name, max_bytes), name)

    def of_table(self, table: Records) -> Numbers:
        """Take what the rows of a table say.

        >>> rows = [(Place("a.jsonl", 1), {"query_id": 7, "chunk_id": "c1", "relevance": 2})]
        >>> QRELS.of_table(Records.of(rows, "a.jsonl")).by_topic
        {'7': {'c1': 2}}
        """
        return self._collected(self._of_table(table), table.name)

    def of_object(self, content: Mapping[Any, Any], place: Place) -> Numbers:
        """Take what an object of the form ``{topic: {document: number}}`` says."""
        return self._collected(self._of_mapping(content, place), place.name)

    def _collected(self, rows: Iterable[_Row], name: str) -> Numbers:
        table: dict[str, dict[str, Any]] = {}
        for place, topic, document, number in rows:
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
            raise Place(name).error(f"holds no {self.what}; expected one per line")
        return Numbers(name, table)

    def _rows(self, source: Any, name: str, max_bytes: int | None) -> Iterator[_Row]:
        if isinstance(source, Mapping):
            yield from self._of_mapping(source, Place(name))
            return
        is_path = isinstance(source, str | os.PathLike)
        is_lines = is_path and name.removesuffix(".gz").endswith(".jsonl")
        if is_frame(source) or is_parquet(source) or is_lines:
            wanted = {name for columns in self.tables for name in columns}
            yield from self._of_table(records_in(source, name, max_bytes, wanted))
            return
        with closing(numbered_lines(source, name, max_bytes)) as lines:
            first = [*islice(lines, 1)]
            start = first[0][1] if first else ""
            if start.lstrip().startswith("{"):
                expected = f"one object {{topic: {{document: {self.number}}}}}"
                content = json_in([*first, *lines], name, expected)
                yield from self._of_mapping(content, Place(name))
            elif self is QRELS and start.split() == [*_BEIR]:
                yield from self._of_beir(lines, name)
            else:
                yield from self._of_lines(chain(first, lines), name)

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The columns of tables: BEIR's, ranx's, and those of harnesses, chunks first."""
        number = "relevance" if self.number == "grade" else self.number
        return (_BEIR, _RANX, *(("query_id", one, number) for one in JUDGED_BY))

    def _of_table(self, table: Records) -> Iterator[_Row]:
        known = (one for one in self.tables if {*one} <= {*table.names})
        topic, document, number = columns = next(known, _RANX)
        table.check_has(columns)
        ids = zip(table.ids(topic), table.ids(document), strict=True)
        for (one, other), (place, value) in zip(ids, table.cells(number), strict=True):
            # A table of text holds numbers as texts.
            read = self.of_text(value) if isinstance(value, str) else value
            yield place, one, other, self._checked(read, other, place)

    def _of_mapping(self, content: Mapping[Any, Any], place: Place) -> Iterator[_Row]:
        content = self._of_mteb(content, place) if MTEB in content else content
        for topic, documents in content.items():
            if not isinstance(topic, str) or not isinstance(documents, Mapping):
                raise place.error(
                    "expected an object of the form {topic: {document: number}} with text as "
                    f"topics, got {kind_of(documents)} for the topic {topic!r}"
                )
            yield place, topic, None, None
            for document, value in documents.items():
                if not isinstance(document, str) or not document:
                    problem = f"topic {topic!r}: a document id must be text, got {document!r}"
                    raise place.error(problem)
                yield place, topic, document, self._checked(value, document, place, topic)

    def _of_mteb(self, content: Mapping[Any, Any], place: Place) -> Mapping[Any, Any]:
        """Return the run that is meant of those that MTEB saved: ``{subset: {split: run}}``."""
        runs = {f"{subset}.{split}": run for subset, splits in content.items()
                if subset != MTEB and isinstance(splits, Mapping)
                for split, run in splits.items()}  # fmt: skip
        part = next(iter(runs)) if self.part is None and len(runs) == 1 else self.part
        if not isinstance(run := runs.get(str(part)), Mapping):
            problem = f"holds MTEB's predictions of {listed([*runs])}, and one must be named"
            fix = "choose one by {}, or pass its object alone"
            raise place.error(problem, Advice(fix, predicted=next(iter(runs), ...)))
        return run

    def _checked(self, value: Any, document: str, place: Place, topic: str = "") -> Any:
        """Return the number of a document as JSON and tables hold it."""
        number = self.of_value(value)
        if number is None:
            of_topic = f"topic {topic!r}: " if topic else ""
            problem = f"{of_topic}the {self.number} of {document!r} must be a "
            raise place._replace(column="").error(
                f"{problem}{_NUMBERS[self.number]}, got {kind_of(value)}"
            )
        return number

    def _of_lines(self, lines: Iterable[tuple[int, str]], name: str) -> Iterator[_Row]:
        for line, text in lines:
            if text.startswith("#"):
                continue
            columns = text.split() if text.isascii() else _SPACES.split(text.strip(" \t\n\r\f\v"))
            # As in trec_eval, more may follow the tag of a run.
            more = len(columns) - len(self.columns)
            if more < 0 or (more and self is QRELS):
                raise _wrong_columns(columns, self.columns, Place(name, line))
            yield line, columns[0], columns[2], self._written(columns[self.at], name, line)

    def _of_beir(self, lines: Iterable[tuple[int, str]], name: str) -> Iterator[_Row]:
        """Yield what follows BEIR's header; ids may hold spaces, so only tabs part columns."""
        for line, text in lines:
            columns = text.rstrip("\r\n").split("\t")
            if len(columns) != 3 or not all(columns):
                raise _wrong_columns(columns, _BEIR, Place(name, line), "a tab")
            yield line, *columns[:2], self._written(columns[2], name, line)

    def _written(self, text: str, name: str, line: int) -> Any:
        if (number := self.of_text(text)) is None:
            problem = f"the {self.number} must be a {_NUMBERS[self.number]}, got {text[:40]!r}"
            raise Place(name, line).error(problem)
        return number


_NUMBERS = {"grade": "whole number", "score": "number"}


def _grade_of_text(text: str) -> int | None:
    found = _GRADE.fullmatch(text)
    return None if found is None else int(found[1])


def _score_of_text(text: str) -> float | None:
    # Python also reads 1_000 and digits of other scripts, which other tools do not.
    if "_" in text or not text.isascii():
        return None
    try:
        return _score_of_value(float(text))
    except ValueError:
        return None


def _score_of_value(value: Any) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool) or value != value:
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _grade_of_value(value: Any) -> int | None:
    number = _score_of_value(value)
    whole = number is not None and number.is_integer() and abs(number) <= _LARGEST_GRADE
    return int(value) if whole else None


QRELS = Kind("judgements", "qrels", ("topic", "0", "document", "grade"), 3, "grade",
             _grade_of_text, _grade_of_value)  # fmt: skip
RUN = Kind("retrieved documents", "run", ("topic", "Q0", "document", "rank", "score", "tag"), 4,
           "score", _score_of_text, _score_of_value)  # fmt: skip


def _wrong_columns(
    columns: list[str], expected: Sequence[str], place: Place, parted_by: str = "white space"
) -> DatasetError:
    shown = " ".join(columns)
    return place.error(
        f"expected the {len(expected)} columns {' '.join(expected)!r}, separated by {parted_by}, "
        f"got {len(columns)}: {shown[:60]!r}{'…' if len(shown) > 60 else ''}"
    )
