"""From ids to texts: giving the documents of a data set what a corpus says about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from krag_eval._errors import warn
from krag_eval.datasets.base import Dataset
from krag_eval.documents import AnyOf, DocumentLike, id_of, metadata_of

__all__ = ["ids_in", "with_texts"]


def ids_in(dataset: Dataset) -> set[str]:
    """Return the ids of all documents, of the ground truth and retrieved.

    >>> sorted(ids_in(Dataset(["q"], [[AnyOf(["a", "b"])]], [["a", "c"]])))
    ['a', 'b', 'c']
    """
    lists = chain(map(_single, dataset.actual), dataset.predicted or ())
    return {identity for document in chain.from_iterable(lists) if (identity := id_of(document))}


def _single(items: list[DocumentLike | AnyOf]) -> Iterator[DocumentLike]:
    for item in items:
        yield from item.alternatives if isinstance(item, AnyOf) else (item,)


def with_texts(
    dataset: Dataset,
    corpus: Mapping[str, Mapping[str, Any]],
    name: str,
    *,
    predicted: bool = True,
) -> Dataset:
    """Return the data set with the corpus's texts and metadata in place of bare ids.

    A document that the corpus lacks has an empty text and keeps its id; a warning counts them.

    Args:
        dataset: A data set of ids.
        corpus: Id -> document, as a dict with ``"page_content"``, ``"id"`` and perhaps
            ``"metadata"``. A document of the data set keeps metadata of its own, such as its grade.
        name: What to call the corpus.
        predicted: Whether the retrieved documents get texts too.

    >>> corpus = {"a": {"page_content": "At nine.", "id": "a"}}
    >>> with_texts(Dataset(["q"], [["a"]], [[]]), corpus, "corpus").actual
    [[{'page_content': 'At nine.', 'id': 'a'}]]
    """
    absent: dict[str, None] = {}

    def full(document: DocumentLike) -> DocumentLike:
        identity = id_of(document) or ""
        known = corpus.get(identity)
        if known is None:
            absent[identity] = None
            known = {"page_content": "", "id": identity}
        own = metadata_of(document)
        return {**known, "metadata": {**metadata_of(known), **own}} if own else known

    def item(one: DocumentLike | AnyOf) -> DocumentLike | AnyOf:
        return AnyOf(map(full, one.alternatives)) if isinstance(one, AnyOf) else full(one)

    made = replace(dataset, actual=[[*map(item, items)] for items in dataset.actual])
    if predicted and dataset.predicted is not None:
        made = replace(made, predicted=[[*map(full, one)] for one in dataset.predicted])
    if absent:
        warn(
            f"{name}: {len(absent)} documents are not in it (the first is {next(iter(absent))!r}); "
            "they have an empty text, which no text matcher matches."
        )
    return made
