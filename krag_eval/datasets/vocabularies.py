"""Which column means what: the tables people have, recognised by the names of their columns.

These are the names that krag_eval (in English and Korean), RAGAS, LlamaIndex, deepeval, krag,
AutoRAG and LangSmith give to columns, whatever the format. What could mean two things is refused,
with the names to choose from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from krag_eval._language import _
from krag_eval.datasets.table import JUDGED, OWN, Columns, Roles, Side, doubts, listed
from krag_eval.documents import is_list_written, is_missing
from krag_eval.errors import Advice, DatasetError, Place

#: Columns that hold the question, whatever else there is.
QUESTIONS = ("question", "user_input", "query", "질문", "질의")
_AUTORAG = ("qid", "query", "retrieval_gt")
#: What LangSmith calls the parts of an example, and of what a run made of it.
LANGSMITH = ("inputs", "outputs", "reference_outputs")
_KRAG = ("context", "source", "doc_id")
# What deepeval's test cases have and nobody else's: next to it, "context" is the ground truth and
# "input" the question. Goldens are sent with the names of JavaScript.
_DEEPEVAL = ("retrieval_context", "retrievalContext")
# Beside these, a table was saved by deepeval.
_GOLDENS = ("tools_called", "expected_tools")


class Mapped(NamedTuple):
    """The columns a user named; ``None`` for those to be recognised."""

    question: str | None = None
    actual: str | None = None
    predicted: str | None = None


#: Whose names, what should be retrieved, what was.
_Shapes: TypeAlias = tuple[tuple[str, Side, Side], ...]
_SHAPES: _Shapes = (
    ("krag_eval", Side("actual"), Side("predicted")),
    ("krag_eval", Side("정답"), Side("검색결과")),
    ("krag_eval", Side("정답 문서"), Side("검색 결과")),
    ("krag_eval", Side("정답문서"), Side("검색문서")),
    ("krag_eval", Side(), Side("검색 문서")),
    (
        "RAGAS",
        Side("reference_contexts", "reference_context_ids"),
        Side("retrieved_contexts", "retrieved_context_ids"),
    ),
    (
        "LlamaIndex",
        Side("expected_texts", "expected_ids"),
        Side("retrieved_texts", "retrieved_ids"),
    ),
    ("deepeval", Side("context"), Side(_DEEPEVAL[0])),
    ("deepeval", Side(), Side(_DEEPEVAL[1])),
    ("krag", Side("context", None, ("source", "doc_id")), Side()),
)
# Names that may as well be those of tags: looked at where no other name is known, and what was
# retrieved only beside such a ground truth.
_PLAIN: _Shapes = (
    ("Haystack", Side("ground_truth_documents"), Side("retrieved_documents")),
    ("krag_eval", Side("expected"), Side("retrieved")),
    ("krag_eval", Side("expected_contexts"), Side()),
    ("krag_eval", Side("expected_documents"), Side()),
)
_PLAIN_ACTUAL = {side.texts for _, side, _ in _PLAIN}
_PLAIN_NAMES = {name for _, *sides in _PLAIN for name, *_ in sides if name}
#: Columns that say by themselves what a table is; no tag can be written under such a name.
NAMED = frozenset(
    {*QUESTIONS, *LANGSMITH, OWN}
    | {name for _, *sides in _SHAPES for side in sides for name in side[:2] if name}
)
#: Every column that may be needed; others can only be tags.
KNOWN = NAMED | {*_AUTORAG, *_KRAG, *JUDGED, "input", "retrieved_contents"} | _PLAIN_NAMES
_OWN_NAMES = {"question", "actual", "predicted", "context", OWN}
# Names that are not krag_eval's own, and that say what else a record without those holds.
_FOREIGN = (NAMED | {"retrieval_gt"} | _PLAIN_ACTUAL) - _OWN_NAMES


def is_autorag(names: Sequence[str], mapped: Mapped) -> bool:
    """Tell whether a table is AutoRAG's questions, unless the user says what its columns mean."""
    return set(_AUTORAG) <= set(names) and "actual" not in names and not any(mapped)


def is_langsmith(names: Sequence[str]) -> bool:
    """Tell whether a table is one of LangSmith's examples."""
    return "inputs" in names and not {"outputs", "reference_outputs"}.isdisjoint(names)


def is_foreign(names: Collection[str], mapped: Mapped) -> bool:
    """Tell whether a record of those fields is in another vocabulary than our own.

    It is not where a field that the user named is missing, which its reader says best.

    >>> is_foreign(["user_input", "reference_contexts"], Mapped())
    True
    >>> is_foreign(["question", "actual", "hits", "source"], Mapped())
    False
    """
    if not {*filter(None, mapped)} <= {*names}:
        return False
    others = {*names} - {*mapped}
    return not _FOREIGN.isdisjoint(others) or {*_KRAG} <= others


def roles_of(
    table: Columns,
    mapped: Mapped = Mapped(),  # noqa: B008 - immutable
    named_by: Sequence[str] = Mapped._fields,
) -> Roles:
    """Tell what the columns of a table mean.

    Args:
        table: The table.
        mapped: The columns that the user named.
        named_by: The arguments that name them, for advice.

    Raises:
        DatasetError: If a column that the user named is missing, if none holds the ground truth,
            or if several could be meant.

    >>> names = ["user_input", "reference_contexts", "reference"]
    >>> roles_of(Columns("qa.csv", {}, names)).actual.texts
    'reference_contexts'
    """
    names = set(table.names)
    options = Mapped(*named_by)
    for option, name in zip(options, mapped, strict=True):
        if name is not None and name not in names:
            raise Place(table.name).error(
                f"no column {name!r}, which is named as {option}; {table.described()}"
            )
    shape, actual = _actual(table, mapped, options)
    predicted = _predicted(table, mapped, actual, options)
    return Roles(shape, _question(table, mapped, options), actual, predicted)


def _question(table: Columns, mapped: Mapped, options: Mapped) -> str | None:
    if mapped.question is not None:
        return mapped.question
    taken = {mapped.actual, mapped.predicted}
    usual = (*QUESTIONS, "input") if _is_deepeval(table.names) else QUESTIONS
    found = [name for name in usual if name in table.names and name not in taken]
    if len(found) > 1:
        raise _several(table, "the question", found, options.question)
    return found[0] if found else None


def _actual(table: Columns, mapped: Mapped, options: Mapped) -> tuple[str, Side]:
    if mapped.actual is not None:
        return "named", _named_side(mapped.actual, 0, table)
    found = _found(table, 0, mapped.predicted, (_SHAPES, _PLAIN))
    if len(found) > 1:
        raise _several(table, "the ground truth", [str(side) for _, side in found], options.actual)
    if not found:
        raise Place(table.name).error(
            f"no column holds the documents that should be retrieved; {table.described()}",
            Advice(f"{_hint(table)}name it by {{}}", (str(options.actual), ...)),
        )
    return found[0]


def _predicted(table: Columns, mapped: Mapped, actual: Side, options: Mapped) -> Side | None:
    if mapped.predicted is not None:
        return _named_side(mapped.predicted, 1, table)
    tiers = (_SHAPES, _PLAIN) if actual.texts in _PLAIN_ACTUAL else (_SHAPES,)
    found = [side for _, side in _found(table, 1, actual.texts, tiers)]
    if len(found) > 1:
        several = [str(side) for side in found]
        raise _several(table, "what was retrieved", several, options.predicted)
    return found[0] if found else None


def _found(
    table: Columns, at: int, taken: str | None, tiers: Sequence[_Shapes]
) -> list[tuple[str, Side]]:
    """Return whose names there are for one side, of the first tier that has any."""
    for shapes in tiers:
        found = [
            (shape, side)
            for shape, *wanted in shapes
            if (side := _present(wanted[at], table)) is not None and not _taken(side, taken)
        ]
        if found:
            return found
    return []


def _taken(side: Side, name: str | None) -> bool:
    """Tell whether a column already means something else."""
    return name is not None and name in (side.texts, side.ids)


def _named_side(name: str, at: int, table: Columns) -> Side:
    """Return the side a user named; a column known to hold ids is read as such."""
    for _shape, *sides in _SHAPES:
        if sides[at].texts == name:
            return _present(sides[at], table) or Side(name)
        if sides[at].ids == name:
            return Side(None, name)
    return Side(name)


def _present(side: Side, table: Columns) -> Side | None:
    """Return what there is of a side; krag's and deepeval's columns are only known together.

    Where there are ids, a column of texts may hold none, as LlamaIndex leaves it.
    """
    if not set(side.metadata) <= set(table.names):
        return None
    if side == Side("context") and not _is_deepeval(table.names):
        return None
    texts = side.texts if side.texts in table.names else None
    ids = side.ids if side.ids in table.names else None
    if texts and ids and all(one is None for one in table.columns.get(texts, [0])):
        texts = None
    return Side(texts, ids, side.metadata) if texts or ids else None


def _is_deepeval(names: Collection[str]) -> bool:
    return not {*_DEEPEVAL}.isdisjoint(names)


def as_saved(table: Columns, roles: Roles) -> tuple[Columns, Roles, list[str]]:
    """Undo what tools do when they save: columns for what is not there yet, joined texts.

    A column of retrieved documents that is empty in every row means that nothing was retrieved
    yet. deepeval joins the texts of a cell by ``|`` in JSON lines and CSV; a golden of its own
    without a context has an empty ground truth.
    """
    if roles.predicted is not None and not _is_filled(roles.predicted, table):
        roles = roles if roles.shape in ("krag_eval", "named") else roles._replace(predicted=None)
    if roles.shape != "deepeval" or not {*_GOLDENS} <= {*table.names}:
        return table, roles, []
    columns, notes = dict(table.columns), []
    for name in roles.actual.fields:
        columns[name] = [[] if one in (None, "") else one for one in columns[name]]
    for name in [*roles.actual.fields, *(roles.predicted.fields if roles.predicted else ())]:
        split = [*map(_split, columns[name])]
        n_split = sum(new is not old for new, old in zip(split, columns[name], strict=True))
        columns[name] = split
        if n_split:
            told = _("{n} cells of {name} split at |, as deepeval joins texts")
            notes.append(told.format(n=n_split, name=name))
    return table._replace(columns=columns), roles, notes


def _is_filled(side: Side, table: Columns) -> bool:
    """Tell whether a side holds anything in any row."""
    cells = (one for name in side.fields for one in table.columns.get(name, [0]))
    return any(len(one) > 0 or not isinstance(one, str) if hasattr(one, "__len__")
               else not is_missing(one) for one in cells)  # fmt: skip


def _split(cell: Any) -> Any:
    return cell.split("|") if isinstance(cell, str) and cell and not is_list_written(cell) else cell


def _several(table: Columns, what: str, found: Sequence[str], option: str | None) -> DatasetError:
    return Place(table.name).error(
        f"several columns could hold {what}: {', '.join(map(repr, found))}",
        Advice("choose one by {}", (str(option), ...)),
    )


def nothing_retrieved(table: Columns, option: str) -> DatasetError:
    """Return the refusal of what should hold retrieved documents and does not."""
    return Place(table.name).error(
        f"no field holds retrieved documents; {table.described()}",
        Advice("name the one that does by {}", (option, ...)),
    )


def _hint(table: Columns) -> str:
    if {"q_id", "doc_id", "score"} <= set(table.names):
        return "judgements and runs are for read_trec, or krag-eval trec; otherwise, "
    return doubts(table.names)


#: How many sentences :func:`said` returns.
N_SAID = 3


def said(roles: Roles, others: Sequence[str] = ()) -> list[str]:
    """Say what was recognised, one sentence each.

    Args:
        roles: What the columns mean.
        others: The columns that mean nothing, of which one may hold what was retrieved.
    """
    left = _(" (left over: {})").format(listed(others)) if others else ""
    by_name = _("as named") if roles.shape == "named" else _("by {}'s column names")
    actual, predicted = (
        _(" with ").join(side.fields) if side else "" for side in (roles.actual, roles.predicted)
    )
    retrieved, asked = _("retrieved documents read from {}"), _("questions read from {}")
    return [
        _("ground truth read from {}, {}").format(actual, by_name.format(roles.shape)),
        retrieved.format(predicted)
        if predicted
        else _("no column with retrieved documents") + left,
        asked.format(roles.question) if roles.question else _("no column with questions"),
    ]
