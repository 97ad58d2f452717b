"""AutoRAG's tables: questions with nested ground truth, a corpus, and what was retrieved.

How ground truth is nested is AutoRAG's own rule, and is settled here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from krag_eval.core import Advice, AnyOf, DocumentLike, Location, Place, _, warn
from krag_eval.core.documents import composed, plain
from krag_eval.core.errors import kind_of
from krag_eval.formats.ids import check_overlap, ids_in, labels_of
from krag_eval.loading.cells import list_in
from krag_eval.loading.dataset import Dataset, with_texts
from krag_eval.loading.reading import MAX_BYTES, located
from krag_eval.loading.table import Given, Records, Side, documents_of, records_in, tags_of

if TYPE_CHECKING:
    import os

    import pandas as pd

#: A file of any format, or a data frame.
Table: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
_COLUMNS = ("qid", "query", "retrieval_gt", "retrieved_ids", "retrieved_contents")


def read_autorag(
    qa: Table,
    corpus: Table | None = None,
    retrieved: Table | Mapping[str, Sequence[str]] | None = None,
    *,
    max_bytes: int | None = MAX_BYTES,
) -> Dataset:
    """Read a data set in AutoRAG's format, with what was retrieved.

    ``qa`` has the columns ``qid``, ``query`` and ``retrieval_gt``. Ground truth is a list of lists
    of document ids: all of the outer ones are needed, any one of an inner list will do, so ``[["a",
    "b"], ["c"]]`` becomes ``[AnyOf(["a", "b"]), "c"]``. As in AutoRAG, a flat list ``["a", "b"]``
    means ``[["a", "b"]]`` and a string ``"a"`` means ``[["a"]]``; ``[[]]`` is no ground truth. An
    empty string, as in ``[[""]]``, is none either: AutoRAG does not score such a question. A
    warning counts them.

    The evaluator of what is returned compares ids. Everything else is up to you: krag_eval's own
    conventions by default; AutoRAG's numbers with ``conventions=Conventions.autorag()`` and
    ``no_ground_truth="skip"``.

    Args:
        qa: The questions.
        corpus: Documents: ``doc_id``, ``contents`` and perhaps ``metadata``. With it, documents
            have texts, so that ``matcher="coverage"`` and the like work.
        retrieved: What was retrieved: ``{qid: ids}``, best first, or a table with the column
            ``retrieved_ids``, and perhaps ``retrieved_contents``. A table is joined by its column
            ``qid``; without one, its rows must be those of ``qa``, in order. If not given, ``qa``
            has these columns itself.
        max_bytes: How much the columns of a Parquet file may hold; 1 GiB unless given, ``None`` for
            no limit.

    Raises:
        DatasetError: If a table cannot be used; the message names the file and the row.
        MissingPackage: If a Parquet file is given and pyarrow is missing.

    >>> from krag_eval.datasets import read_autorag
    >>> import pandas as pd
    >>> truth = [["a", "b"], ["c"]]
    >>> qa = pd.DataFrame({"qid": ["q1"], "query": ["When?"], "retrieval_gt": [truth]})
    >>> dataset = read_autorag(qa, retrieved={"q1": ["a", "x", "b"]})
    >>> dataset.actual
    [[AnyOf(['a', 'b']), 'c']]
    >>> dataset.evaluator().calculate_recall(k=3)["macro_recall"]
    0.5
    """
    given = Given(corpus=corpus, retrieved=retrieved, max_bytes=max_bytes)
    return autorag_dataset(records_in(qa, "qa", max_bytes), given, must_be_retrieved=True)


def autorag_dataset(
    questions: Records, given: Given, *, must_be_retrieved: bool = False
) -> Dataset:
    """Return the data set of a table of questions, as :func:`read_autorag` does.

    Args:
        questions: The questions.
        given: The corpus, what was retrieved, and which other columns to keep as tags.
        must_be_retrieved: Whether to refuse questions for which nothing was retrieved yet.
    """
    questions.check_has(("qid", "query", "retrieval_gt"))
    ids = questions.keys("qid")
    predicted: list[list[DocumentLike]] | None = None
    has_texts = False
    if must_be_retrieved or given.retrieved is not None or "retrieved_ids" in questions.names:
        predicted, has_texts = _predicted(questions, ids, given)
    texts = questions.texts("query")
    found, notes = tags_of(questions, _COLUMNS, given.tags)
    dataset = Dataset(
        queries=labels_of(texts, ids, questions.name),
        actual=_ground_truth(questions),
        predicted=predicted,
        source=questions.name,
        defaults={"matcher": "id"},
        questions=texts,
        notes=[_("AutoRAG: ground truth read from retrieval_gt, questions from query"), *notes],
        tags=found,
    )
    if given.corpus is None:
        return dataset
    documents = records_in(given.corpus, "corpus", given.max_bytes)
    documents.check_has(("doc_id", "contents"))
    wanted = _documents(documents, ids_in(dataset))
    sides = ("actual",) if has_texts else ("actual", "predicted")
    return with_texts(dataset, wanted, documents.name, sides)


# Ground truth


def _ground_truth(questions: Records) -> list[list[DocumentLike | AnyOf]]:
    """Return each question's items; empty strings in the place of ids are warned about."""
    blank: list[Place] = []
    actual = []
    for place, value in questions.cells("retrieval_gt"):
        items = _items(value, place)
        if items is None:
            blank.append(place)
        actual.append(items or [])
    if blank:
        told = _(
            "{name}: retrieval_gt of {n} of {questions} questions is an empty string (the first is "
            "in row {row}), which is read as no ground truth, as AutoRAG does."
        )
        row = blank[0].row
        warn(told.format(name=questions.name, n=len(blank), questions=len(actual), row=row))
    return actual


def _items(value: Any, place: Place) -> list[DocumentLike | AnyOf] | None:
    """Return AutoRAG's nested ground truth as items; ``None`` for an empty string."""
    if isinstance(value, str):
        if not value.strip():
            return None
        # A table saved as CSV holds the nested list as text.
        if not value.lstrip().startswith("["):
            return [value]
        with located(place):
            value = list_in(value, Location(place.column))
    if not isinstance(value, list | tuple):
        raise place.error(f"must be a list of lists of document ids, got {kind_of(value)}")
    groups = [plain(group) for group in value]
    if groups and all(isinstance(group, str) for group in groups):
        groups = [groups]
    if not any(groups):
        return []
    if all(_is_blank(group) for group in groups):
        return None
    return [_item(group, place) for group in groups]


def _is_blank(group: Any) -> bool:
    """Tell whether a list of ids holds nothing but empty strings, and at least one."""
    ids = plain(group)
    return (
        isinstance(ids, list | tuple)
        and len(ids) > 0
        and all(isinstance(one, str) and not one.strip() for one in ids)
    )


def _item(group: Any, place: Place) -> DocumentLike | AnyOf:
    ids = [plain(one) for one in group] if isinstance(group, list | tuple) else None
    if not ids or not all(isinstance(one, str) and one for one in ids):
        raise place.error(
            f"must be a list of lists of document ids, got {str(group)[:60]!r} as one of them",
            "write [[…], […]], and [[]] for no ground truth",
        )
    return ids[0] if len(ids) == 1 else AnyOf(ids)


# What was retrieved


def _predicted(
    questions: Records, ids: Sequence[str], given: Given
) -> tuple[list[list[DocumentLike]], bool]:
    """Return what was retrieved for each question, and whether it came with texts."""
    table = questions
    if isinstance(given.retrieved, Mapping):
        rows = ((Place(f"retrieved[{key!r}]"), {"qid": key, "retrieved_ids": value})
                for key, value in given.retrieved.items())  # fmt: skip
        table = Records.of(rows, "retrieved")
    elif given.retrieved is not None:
        table = records_in(given.retrieved, "retrieved", given.max_bytes)
        table.check_has(("retrieved_ids",))
    elif "retrieved_ids" not in questions.names:
        raise Place(questions.name).error(
            "no column 'retrieved_ids'",
            Advice(
                "pass what was retrieved as {}, or load it by load_dataset to ask a retriever",
                retrieved=...,
            ),
        )
    has_texts = "retrieved_contents" in table.names
    side = Side("retrieved_contents" if has_texts else None, "retrieved_ids")
    in_order = []
    for place, row in table.rows:
        with located(place):
            in_order.append(documents_of(row, side, None, ground_truth=False)[0])
    if isinstance(given.retrieved, Mapping) or "qid" in table.names:
        lists = dict(zip(table.keys("qid"), in_order, strict=True))
        check_overlap(ids, lists, expected_name=questions.name, given_name=table.name)
        return [lists.get(one, []) for one in ids], has_texts
    if len(in_order) != len(ids):
        raise Place(table.name).error(
            f"holds {len(in_order)} rows and no column 'qid', and {questions.name} "
            f"{len(ids)}; rows without 'qid' must be those of {questions.name}, in order"
        )
    return in_order, has_texts


def _documents(table: Records, wanted: set[str]) -> dict[str, dict[str, Any]]:
    documents: dict[str, dict[str, Any]] = {}
    columns = table.keys("doc_id"), table.texts("contents"), table.cells("metadata")
    for identity, text, (place, metadata) in zip(*columns, strict=True):
        if composed(identity) in wanted:
            documents[identity] = {"page_content": text, "id": identity}
            if metadata is not None:
                if not isinstance(metadata, Mapping):
                    raise place.error(f"must be an object, got {kind_of(metadata)}")
                documents[identity]["metadata"] = dict(metadata)
    return documents
