"""Shapes of records: whose names the fields are, and what each field holds.

Columns of lists stand here. A room adds what its function reads by hooks: records of another tool
(``krag_eval.shapes``), folders (``krag_eval.folders``) and judgements with a run
(``krag_eval.judgements``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from krag_eval.core.hooks import our_hooks
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.table import Given, Mapped, Records, Side

#: The columns of krag's test sets.
KRAG = ("context", "source", "doc_id")


class Shape(NamedTuple):
    """Records of one tool: the fields that tell them, and what each field holds.

    Attributes:
        name: Whose names they are; what to call such tables, where these have a reader.
        actual: The fields with what should be retrieved: its texts, ids, metadata.
        predicted: Those with what was, best first.
        questions: The field with the question, where no other tool calls it so.
        tells: Sets of fields, one of which must be there for these names to mean that; a name that
            ends in a dot stands for any that begins so.
        unless: Fields beside which they do not.
        weak: Whether they may as well be those of tags: looked at where no other name is known,
            and what was retrieved only beside such a ground truth.
        read: What reads them where cells mean something of their own.
        taken: The arguments of :func:`load_dataset` that it takes.
        is_named: Whether its fields say by themselves what a table is, though they are read by a
            function.
        columns: Further columns that are read where they are, or what tells of some.
        is_one_record: Whether a dict of them is a record, and not columns.
        row_of: What makes a record of an object of the tool; ``None`` of another one.
        join: What joins its records to questions, where they are no run of their own.
    """

    name: str
    actual: Side = Side()
    predicted: Side = Side()
    questions: tuple[str, ...] = ()
    tells: tuple[tuple[str, ...], ...] = ((),)
    unless: tuple[str, ...] = ()
    weak: bool = False
    read: Callable[[Records, Given], Dataset] | None = None
    taken: tuple[str, ...] = (*Mapped._fields, "retrieved", "cells", "drafts", "separator")
    is_named: bool = False
    columns: Collection[str] = ()
    is_one_record: bool = False
    row_of: Callable[[Any], Mapping[str, Any] | None] | None = None
    join: Callable[[Records, Dataset, Any], Dataset] | None = None

    def is_meant(self, names: Collection[str]) -> bool:
        """Tell whether fields of these names may be of this shape."""
        return not any(map(names.__contains__, self.unless)) and any(
            all(_is_there(one, names) for one in needed) for needed in self.tells
        )


def _is_there(field: str, names: Collection[str]) -> bool:
    if field.endswith("."):
        return any(str(name).startswith(field) for name in names)
    return field in names


#: Those whose cells are lists of documents or of ids.
COLUMNS_OF_LISTS = (
    Shape("krag_eval", Side("actual"), Side("predicted")),
    Shape("krag_eval", Side("정답"), Side("검색결과")),
    Shape("krag_eval", Side("정답 문서"), Side("검색 결과")),
    Shape("krag_eval", Side("정답문서"), Side("검색문서")),
    Shape("krag_eval", predicted=Side("검색 문서")),
    Shape("RAGAS", Side("reference_contexts", "reference_context_ids"),
          Side("retrieved_contexts", "retrieved_context_ids")),
    Shape("LlamaIndex", Side("expected_texts", "expected_ids"),
          Side("retrieved_texts", "retrieved_ids")),
    Shape("deepeval", Side("context"), Side("retrieval_context"), ("input",),
          tells=(("retrieval_context",), ("retrievalContext",))),
    # Goldens are sent with JavaScript's names.
    Shape("deepeval", predicted=Side("retrievalContext"), questions=("input",)),
    Shape("krag", Side("context", None, KRAG[1:]), tells=(KRAG,)),
    Shape("Haystack", Side("ground_truth_documents"), Side("retrieved_documents"), weak=True),
    Shape("eGovFrame", Side(None, "relevant_document_ids"), Side(None, "retrieved_document_ids")),
    Shape("krag_eval", Side(None, "relevant_chunk_ids"), Side(None, "retrieved_chunk_ids")),
    Shape("krag_eval", Side("expectedChunks"), Side("results"), tells=(("expectedChunks",),)),
    # Evaluations up to 0.1; in test sets, contexts are what should be retrieved.
    Shape("RAGAS", predicted=Side("contexts"),
          tells=(("ground_truths", "answer"), ("ground_truth", "answer"))),
    Shape("krag_eval", Side("expected"), Side("retrieved"), weak=True),
    Shape("krag_eval", Side("expected_contexts"), weak=True),
    Shape("krag_eval", Side("expected_documents"), weak=True),
)  # fmt: skip
#: What says that questions have ground truth, which runs and judgements lack.
GIVEN = tuple(name for one in COLUMNS_OF_LISTS for name in one.actual[:2] if name)
#: Those that mean nothing else, whatever stands beside them.
TRUTH = frozenset(name for one in COLUMNS_OF_LISTS if one.tells == ((),) and not one.weak
                   for name in one.actual[:2] if name)  # fmt: skip


class Folder(NamedTuple):
    """A layout of folders.

    Attributes:
        is_meant: Whether a folder is laid out so.
        read: What reads it, with a run of judgements if there is one.
    """

    is_meant: Callable[[str | os.PathLike[str]], bool]
    read: Callable[[str | os.PathLike[str], Any, int | None], Dataset]


class Judgements(NamedTuple):
    """A form of judgements, and of runs that are joined to them.

    Attributes:
        is_meant: Whether a source is of it, of so many bytes at most.
        read: What reads judgements and a run.
        read_run: What reads a run, or the part of a name of it.
    """

    is_meant: Callable[[Any, int | None], bool]
    read: Callable[[Any, Any, int | None], Dataset]
    read_run: Callable[[Any, str | None, int | None], Dataset]


@cache
def of_rooms(kind: str) -> tuple[Any, ...]:
    """Return what rooms add of a kind: ``"shapes"``, ``"folders"`` or ``"judgements"``."""
    return tuple(one for hook in our_hooks(f"krag_eval.{kind}").values() for one in hook.load())


def folder_of(source: Any) -> Folder | None:
    """Return the layout of a folder; ``None`` if it has none that is known, or is no folder."""
    if not (isinstance(source, str | os.PathLike) and os.path.isdir(source)):
        return None
    return next((one for one in of_rooms("folders") if one.is_meant(source)), None)


def judgements_of(source: Any, max_bytes: int | None) -> Judgements | None:
    """Return the form of judgements that a source has; ``None`` if it holds none."""
    return next((one for one in of_rooms("judgements") if one.is_meant(source, max_bytes)), None)
