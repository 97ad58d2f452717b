"""Which column means what: the records people have, recognised by the names of their fields.

These are the names that krag_eval (in English and Korean), RAGAS, LlamaIndex, deepeval, krag,
AutoRAG and LangSmith give to columns, whatever the format; and those of spans and of collections.
What could mean two things is refused, with the names to choose from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from krag_eval.core import Advice, DatasetError, Place, _
from krag_eval.loading.cells import is_list_written, is_missing
from krag_eval.loading.formats import Names
from krag_eval.loading.reading import FOR_TREC, is_of_trec
from krag_eval.loading.shapes import COLUMNS_OF_LISTS, KRAG, TRUTH, Shape, of_rooms
from krag_eval.loading.table import (
    LISTED,
    OWN,
    QUESTIONS,
    Mapped,
    Records,
    Roles,
    Side,
    asked_by,
    doubts,
    listed,
)

# Beside these, a table was saved by deepeval.
_GOLDENS = ("tools_called", "expected_tools")


#: All that is known by the names of fields; another tool is another entry.
SHAPES: tuple[Shape, ...] = (*COLUMNS_OF_LISTS, *of_rooms("shapes"))
#: Further columns that are read where they are.
COLUMNS = Names(chain.from_iterable(one.columns for one in SHAPES))
_WEAK_ACTUAL = {one.actual.texts for one in SHAPES if one.weak}


def _names_of(shapes: Iterable[Shape]) -> set[str]:
    sides = (side for one in shapes for side in (one.actual, one.predicted))
    return {name for side in sides for name in side[:2] if isinstance(name, str)}


_STRONG = [one for one in SHAPES if one.is_named or (one in COLUMNS_OF_LISTS and not one.weak)]
#: Columns that say by themselves what a table is; no tag can be written under such a name.
NAMED = frozenset({*QUESTIONS, OWN} | _names_of(_STRONG)).union(
    *(one.questions for one in SHAPES if one.is_named)
)
_OF_QUESTIONS = [one for one in SHAPES if _names_of([one])]
#: Every column that may be needed of questions; others can only be tags.
KNOWN = NAMED.union(
    ("tags",),
    LISTED,
    _names_of(SHAPES),
    *(names for one in _OF_QUESTIONS for names in (one.questions, *one.tells)),
)
_OWN_NAMES = {"question", "actual", "predicted", "context", OWN}
# Names that are not krag_eval's own, and that say what else a record without those holds.
_FOREIGN = (NAMED | {"retrieval_gt"} | _WEAK_ACTUAL) - _OWN_NAMES


def is_foreign(names: Collection[str], mapped: Mapped) -> bool:
    """Tell whether a record of those fields is in another vocabulary than our own.

    It is not where a field that the user named is missing, which its reader says best.

    >>> is_foreign(["user_input", "reference_contexts"], Mapped())
    True
    >>> is_foreign(["question", "actual", "hits", "source"], Mapped())
    False
    """
    if shape_of(names, mapped).read is not None:
        return True
    others = {*names} - {*mapped}
    are_known = not _FOREIGN.isdisjoint(others) or {*KRAG} <= others
    return are_known and {*filter(None, mapped)} <= {*names}


def roles_of(
    table: Records,
    mapped: Mapped = Mapped(),  # noqa: B008 - immutable
    named_by: Sequence[str] = Mapped._fields,
    *,
    is_run: bool = False,
) -> Roles:
    """Tell what the columns of a table mean.

    Args:
        table: The table.
        mapped: The columns that the user named.
        named_by: The arguments that name them, for advice.
        is_run: Whether it is what was retrieved, so that no ground truth is looked for.

    Raises:
        DatasetError: If a column that the user named is missing, if none holds the ground truth,
            or if several could be meant.

    >>> names = ["user_input", "reference_contexts", "reference"]
    >>> roles_of(Records("qa.csv", [], names)).actual.texts
    'reference_contexts'
    """
    options = Mapped(*named_by)
    for option, name in zip(options, mapped, strict=True):
        if name is not None and name not in table.names:
            raise Place(table.name).error(
                f"no column {name!r}, which is named as {option}; {table.described()}"
            )
    known = [one for one in COLUMNS_OF_LISTS if one.is_meant(table.names)]
    shape, actual = "named", Side() if is_run else _named(mapped.actual, "actual", table)
    if actual is None:
        found = _sides(table, "actual", mapped.predicted, known)
        actual = _only(found, table, "the ground truth", options.actual)
        if actual is None:
            raise Place(table.name).error(
                f"no column holds the documents that should be retrieved; {table.described()}",
                Advice(f"{_hint(table)}name it by {{}}", (str(options.actual), ...)),
            )
        shape = found[actual]
    predicted = _named(mapped.predicted, "predicted", table)
    if predicted is None:
        strong = [one for one in known if is_run or not one.weak or actual.texts in _WEAK_ACTUAL]
        found = _sides(table, "predicted", actual.texts, strong)
        predicted = _only(found, table, "what was retrieved", options.predicted)
        if is_run and predicted is None:
            raise nothing_retrieved(table, str(options.predicted))
        shape = found[predicted] if is_run and predicted is not None else shape
    theirs = [name for one in known if _present(one.predicted, table) for name in one.questions]
    asked = [name for name in dict.fromkeys([*QUESTIONS, *theirs])
             if name in table.names and name not in mapped]  # fmt: skip
    question = mapped.question or _only(asked, table, "the question", options.question)
    return Roles(shape, question, actual, predicted)


def as_row(one: Any) -> Mapping[str, Any] | None:
    """Return the record that an object of a tool is, such as an example of LangSmith's."""
    rows = (shape.row_of(one) for shape in SHAPES if shape.row_of)
    return next((row for row in rows if row is not None), None)


#: Questions, one in each row.
TABLE = Shape("tables of questions with such columns")


def shape_of(names: Collection[str], mapped: Mapped = Mapped()) -> Shape:  # noqa: B008
    """Return the shape of records that have a reader of their own, or that of any questions.

    Where the user names one of the columns as the ground truth, these are questions.

    >>> shape_of(["name", "context", "attributes"]).name
    'spans'
    >>> shape_of(["inputs", "context"]) is TABLE
    True
    """
    own = (one for one in SHAPES if one.read and one.is_meant(names))
    return TABLE if mapped.actual in names else next(own, TABLE)


_Found = TypeVar("_Found")


def _only(
    found: Collection[_Found], table: Records, what: str, option: str | None
) -> _Found | None:
    """Return what could be meant, if there is anything; refuse several columns."""
    if len(found) > 1:
        raise Place(table.name).error(
            f"several columns could hold {what}: {', '.join(repr(str(one)) for one in found)}",
            Advice("choose one by {}", (str(option), ...)),
        )
    return next(iter(found), None)


def _sides(table: Records, role: str, taken: str | None, known: Sequence[Shape]) -> dict[Side, str]:
    """Return what there is for one side, and whose; weak names only where there are no others."""
    sides = [(one, _present(getattr(one, role), table)) for one in known]
    free = [(one, side) for one, side in sides if side and (not taken or taken not in side[:2])]
    strong = {side: one.name for one, side in free if not one.weak}
    return strong or {side: one.name for one, side in free}


def _named(name: str | None, role: str, table: Records) -> Side | None:
    """Return the side a user named; a column known to hold ids is read as such."""
    if name is None:
        return None
    for one in COLUMNS_OF_LISTS:
        side: Side = getattr(one, role)
        if name == side.texts:
            return _present(side, table) or Side(name)
        if name == side.ids:
            return Side(None, name)
    return Side(name)


def _present(side: Side, table: Records) -> Side | None:
    """Return what there is of a side.

    Where there are ids, a column of texts may hold none, as LlamaIndex leaves it.
    """
    texts = side.texts if side.texts in table.names else None
    ids = side.ids if side.ids in table.names else None
    if texts and ids and table.rows and all(one is None for one in table.column(texts)):
        texts = None
    return Side(texts, ids, side.metadata) if texts or ids else None


def as_saved(table: Records, roles: Roles) -> tuple[Records, Roles, list[str]]:
    """Undo what tools do when they save: columns for what is not there yet, joined texts.

    A column of retrieved documents that is empty in every row means that nothing was retrieved
    yet. deepeval joins the texts of a cell by ``|`` in JSON lines and CSV; a golden of its own
    without a context has an empty ground truth.
    """
    is_run = not roles.actual.fields
    if roles.predicted is not None and not is_run and not _is_filled(roles.predicted, table):
        roles = roles if roles.shape in ("krag_eval", "named") else roles._replace(predicted=None)
    if roles.shape != "deepeval" or not {*_GOLDENS} <= {*table.names}:
        return table, roles, []
    table, _counts = table.changed(
        roles.actual.fields, lambda one: [] if one in (None, "") else one
    )
    fields = [*roles.actual.fields, *(roles.predicted.fields if roles.predicted else ())]
    table, counts = table.changed(fields, _split)
    told = _("{n} cells of {name} split at |, as deepeval joins texts")
    return table, roles, [told.format(n=n, name=name) for name, n in counts.items() if n]


def _is_filled(side: Side, table: Records) -> bool:
    """Tell whether a side holds anything in any row; without rows, nobody knows."""
    cells = [one for name in side.fields for one in table.column(name)]
    return not cells or any(
        len(one) > 0 or not isinstance(one, str) if hasattr(one, "__len__") else not is_missing(one)
        for one in cells
    )


def _split(cell: Any) -> Any:
    return cell.split("|") if isinstance(cell, str) and cell and not is_list_written(cell) else cell


def nothing_retrieved(table: Records, option: str) -> DatasetError:
    """Return the refusal of what should hold retrieved documents and does not."""
    if not table.rows:
        return Place(table.name).error("holds no rows; expected one for each query")
    return Place(table.name).error(
        f"no field holds retrieved documents; {table.described()}",
        Advice("name the one that does by {}", (option, ...)),
    )


def _hint(table: Records) -> str:
    one = table.rows[0][1].values() if len(table.rows) == 1 else [None]
    nested = all(isinstance(value, Mapping) for value in one)
    judged = ({"q_id", "doc_id", "score"}, {"query-id", "corpus-id", "score"})
    is_trec = is_of_trec(" ".join(table.names))  # a table without a header
    if nested or is_trec or any(names <= {*table.names} for names in judged):
        return f"{FOR_TREC}; otherwise, "
    if {"format_version", "signature"} <= {*table.names}:
        return "it is a saved result, for compare, gate, explain and report; otherwise, "
    return doubts(table.names) + _nearest({*table.names})


def _nearest(names: set[str]) -> str:
    """Say whose columns share most names with these, before a semicolon; nothing if none do.

    >>> _nearest({"user_input", "retrieved_contexts", "truth"})
    "'retrieved_contexts': known from RAGAS, beside 'reference_context_ids', ...; "
    """
    known = [(one.name, {*_names_of([one]), *one.questions, *chain.from_iterable(one.tells)})
             for one in _OF_QUESTIONS]  # fmt: skip
    names = {*names}.difference(QUESTIONS)
    whose, fields = max(known, key=lambda one: len(one[1] & names))
    shared, others = sorted(fields & names), sorted(fields.difference(names, QUESTIONS))
    beside = f", beside {listed(others)}" if others else ""
    return f"{listed(shared)}: known from {whose}{beside}; " if shared else ""


def own_truth(table: Records, roles: Roles) -> list[str]:
    """Return the columns of a run that hold ground truth, which nobody reads there.

    >>> run = Records.of([(Place("run"), {"actual": ["nine"], "predicted": ["ten"]})], "run")
    >>> own_truth(run, Roles("krag_eval", None, Side(), Side("predicted")))
    ['actual']
    """
    others = [name for name in table.names if name in TRUTH and name not in asked_by(roles)]
    return (
        []
        if roles.actual.fields
        else [
            name
            for name in others
            if not all(is_missing(one) or one in ("", "[]", []) for one in table.column(name))
        ]
    )


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
    truth = _("ground truth read from {}, {}").format(actual, by_name.format(roles.shape))
    return [
        truth if roles.actual.fields else "",
        retrieved.format(predicted)
        if predicted
        else _("no column with retrieved documents") + left,
        asked.format(roles.question) if roles.question else _("no column with questions"),
    ]
