"""Which column means what: the tables people have, recognised by the names of their columns.

These are the names that krag_eval, RAGAS, krag, AutoRAG and LangSmith give to columns. What could
mean two things is refused, with the names to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from krag_eval._errors import Advice, DatasetError, Place
from krag_eval.datasets.table import OWN, Columns, Roles, Side

__all__ = [
    "KNOWN",
    "LANGSMITH",
    "NAMED",
    "N_SAID",
    "QUESTIONS",
    "Mapped",
    "is_autorag",
    "is_langsmith",
    "roles_of",
    "said",
]

#: Columns that hold the question, whatever else there is.
QUESTIONS = ("question", "user_input", "query")
_AUTORAG = ("qid", "query", "retrieval_gt")
#: What LangSmith calls the parts of an example, and of what a run made of it.
LANGSMITH = ("inputs", "outputs", "reference_outputs")
_KRAG = ("context", "source", "doc_id")
#: Names that look like documents, and what is known about them.
_DOUBTFUL = {
    "contexts": "may be what should be retrieved (RAGAS's test sets up to 0.1) or what was (its "
    "evaluations)",
    "context": "may be what should be retrieved or what was",
    "ground_truth": "is an answer in RAGAS, not documents",
    "ground_truths": "are answers in RAGAS, not documents",
    "reference": "is an answer in RAGAS, not documents",
    "answer": "is an answer, not documents",
    "documents": "may be what should be retrieved or what was",
    "retrieval_gt": "is AutoRAG's, which has the columns qid and query as well",
}


class Mapped(NamedTuple):
    """The columns a user named; ``None`` for those to be recognised."""

    question: str | None = None
    actual: str | None = None
    predicted: str | None = None


#: Whose names, what should be retrieved, what was.
_SHAPES: tuple[tuple[str, Side, Side], ...] = (
    ("krag_eval", Side("actual"), Side("predicted")),
    (
        "RAGAS",
        Side("reference_contexts", "reference_context_ids"),
        Side("retrieved_contexts", "retrieved_context_ids"),
    ),
    ("krag", Side("context", None, ("source", "doc_id")), Side()),
)
#: Columns that say by themselves what a table is; no tag can be written under such a name.
NAMED = frozenset(
    {*QUESTIONS, *LANGSMITH, OWN}
    | {name for _, *sides in _SHAPES for side in sides for name in side[:2] if name}
)
#: Every column that may be needed; others can only be tags.
KNOWN = NAMED | {*_AUTORAG, *_KRAG, "retrieved_ids", "retrieved_contents"}


def is_autorag(names: Sequence[str], mapped: Mapped) -> bool:
    """Tell whether a table is AutoRAG's questions, unless the user says what its columns mean."""
    return set(_AUTORAG) <= set(names) and "actual" not in names and not any(mapped)


def is_langsmith(names: Sequence[str]) -> bool:
    """Tell whether a table is one of LangSmith's examples."""
    return "inputs" in names and not {"outputs", "reference_outputs"}.isdisjoint(names)


def roles_of(table: Columns, mapped: Mapped = Mapped()) -> Roles:  # noqa: B008 - immutable
    """Tell what the columns of a table mean.

    Raises:
        DatasetError: If a column that the user named is missing, if none holds the ground truth,
            or if several could be meant.

    >>> names = ["user_input", "reference_contexts", "reference"]
    >>> roles_of(Columns("qa.csv", {}, names)).actual.texts
    'reference_contexts'
    """
    names = set(table.names)
    for option, name in zip(Mapped._fields, mapped, strict=True):
        if name is not None and name not in names:
            raise Place(table.name).error(
                f"no column {name!r}, which is named as {option}; {table.described()}"
            )
    shape, actual = _actual(table, mapped)
    predicted = _predicted(table, mapped, actual)
    return Roles(shape, _question(table, mapped), actual, predicted)


def _question(table: Columns, mapped: Mapped) -> str | None:
    if mapped.question is not None:
        return mapped.question
    taken = {mapped.actual, mapped.predicted}
    found = [name for name in QUESTIONS if name in table.names and name not in taken]
    if len(found) > 1:
        raise _several(table, "the question", found, "question")
    return found[0] if found else None


def _actual(table: Columns, mapped: Mapped) -> tuple[str, Side]:
    if mapped.actual is not None:
        return "named", _named_side(mapped.actual, 0, table)
    found = [
        (shape, side)
        for shape, wanted, _ in _SHAPES
        if (side := _present(wanted, table)) is not None and not _taken(side, mapped.predicted)
    ]
    if len(found) > 1:
        raise _several(table, "the ground truth", [str(side) for _, side in found], "actual")
    if not found:
        raise Place(table.name).error(
            f"no column holds the documents that should be retrieved; {table.described()}",
            Advice(f"{_hint(table)}name it by {{}}", actual=...),
        )
    return found[0]


def _predicted(table: Columns, mapped: Mapped, actual: Side) -> Side | None:
    if mapped.predicted is not None:
        return _named_side(mapped.predicted, 1, table)
    found = [
        side
        for _, _, wanted in _SHAPES
        if (side := _present(wanted, table)) is not None and not _taken(side, actual.texts)
    ]
    if len(found) > 1:
        raise _several(table, "what was retrieved", [str(side) for side in found], "predicted")
    return found[0] if found else None


def _taken(side: Side, name: str | None) -> bool:
    """Tell whether a column already means something else."""
    return name is not None and name in (side.texts, side.ids)


def _named_side(name: str, at: int, table: Columns) -> Side:
    """Return the side a user named; a column known to hold ids is read as such."""
    for _, *sides in _SHAPES:
        if sides[at].texts == name:
            return _present(sides[at], table) or Side(name)
        if sides[at].ids == name:
            return Side(None, name)
    return Side(name)


def _present(side: Side, table: Columns) -> Side | None:
    """Return what there is of a side; krag's columns are only known together."""
    if not set(side.metadata) <= set(table.names):
        return None
    texts = side.texts if side.texts in table.names else None
    ids = side.ids if side.ids in table.names else None
    return Side(texts, ids, side.metadata) if texts or ids else None


def _several(table: Columns, what: str, found: Sequence[str], option: str) -> DatasetError:
    return Place(table.name).error(
        f"several columns could hold {what}: {', '.join(map(repr, found))}",
        Advice("choose one by {}", (option, ...)),
    )


def _hint(table: Columns) -> str:
    if {"q_id", "doc_id", "score"} <= set(table.names):
        return "judgements and runs are for read_trec, or krag-eval trec; otherwise, "
    doubtful = [name for name in _DOUBTFUL if name in table.names]
    return "".join(f"{name!r} {_DOUBTFUL[name]}; " for name in doubtful)


#: How many sentences :func:`said` returns.
N_SAID = 3


def said(roles: Roles) -> list[str]:
    """Say what was recognised, one sentence each."""
    whose = "as named" if roles.shape == "named" else f"by {roles.shape}'s column names"
    sentences = [f"ground truth read from {roles.actual}, {whose}"]
    sentences.append(
        f"retrieved documents read from {roles.predicted}"
        if roles.predicted
        else "no column with retrieved documents"
    )
    sentences.append(
        f"questions read from {roles.question}" if roles.question else "no column with questions"
    )
    return sentences
