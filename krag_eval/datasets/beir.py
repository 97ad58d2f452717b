"""BEIR's folders: a corpus and queries in JSON lines, judgements in a table, and a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from krag_eval._errors import InvalidInput, Place
from krag_eval._reading import (
    MAX_BYTES,
    Limits,
    MaxObjects,
    Source,
    kind_of,
    name_of,
    names_of,
    numbered_lines,
    object_of,
    within_memory,
)
from krag_eval.datasets.dataset import Dataset, ids_in, labels_of, with_texts
from krag_eval.datasets.trec import (
    Missing,
    Run,
    ScorePrecision,
    judged_dataset,
    read_qrels,
    read_run,
)

__all__ = ["read_beir"]


def read_beir(
    folder: str | os.PathLike[str] | None = None,
    *,
    run: Source | Mapping[str, Mapping[str, float]] | None,
    split: str = "test",
    qrels: Source | Mapping[str, Mapping[str, int]] | None = None,
    corpus: Source | None = None,
    queries: Source | None = None,
    missing: Missing = "zero",
    relevance_level: int = 1,
    scores: ScorePrecision = "single",
    ignore_identical_ids: bool = False,
    max_bytes: int | None = MAX_BYTES,
    max_objects: MaxObjects = "auto",
) -> Dataset:
    """Read a data set in BEIR's format, and a run over it.

    A line of ``corpus.jsonl`` is ``{"_id": "d1", "title": "…", "text": "…"}``, a line of
    ``queries.jsonl`` ``{"_id": "q1", "text": "…"}``; ``qrels/test.tsv`` has the header ``query-id
    corpus-id score`` and columns separated by tabs. All may be compressed with gzip, then perhaps
    with ``.gz`` after their names.

    The evaluator of what is returned compares ids, with the defaults of :func:`read_trec`, on
    which BEIR's own numbers are built. With a corpus, documents have texts as well, title and text
    joined by a space as in BEIR, so that ``matcher="coverage"`` and the like work; only texts of
    documents that are judged or retrieved are kept. With queries, they are labelled by their
    texts, otherwise by their ids.

    Args:
        folder: Where ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/`` are, all of them; not
            needed if ``qrels`` is given.
        run: What was retrieved: BEIR's results ``{query: {document: score}}``, as they are or in a
            JSON file, or a run in TREC's format; ``None`` if nothing has been yet, and a retriever
            is to be asked.
        split: Which of ``qrels/train.tsv``, ``dev.tsv``, ``test.tsv`` to read.
        qrels: Judgements from elsewhere, as in :func:`read_trec`.
        corpus: The corpus from elsewhere.
        queries: The queries from elsewhere.
        missing: As in :func:`read_trec`; BEIR leaves out what is missing.
        relevance_level: As in :func:`read_trec`.
        scores: As in :func:`read_trec`.
        ignore_identical_ids: Drop retrieved documents whose id is the query's own, as BEIR does
            (for ArguAna and Quora, where queries come from the corpus).
        max_bytes: As in :func:`read_jsonl`, for each of the files.
        max_objects: As in :func:`read_jsonl`, for each of the files.

    Raises:
        DatasetError: If a file cannot be used; the message names file and line.
        InvalidInput: If neither ``folder`` nor ``qrels`` is given, or documents are to be dropped
            from no run.

    >>> dataset = read_beir(qrels={"q1": {"d1": 1}}, run={"q1": {"d1": 0.9, "d2": 0.4}})
    >>> dataset.evaluator().calculate_ndcg(k=10)
    {'ndcg': 1.0}
    """
    if folder is not None:
        qrels = _file(folder, f"qrels/{split}.tsv") if qrels is None else qrels
        corpus = _file(folder, "corpus.jsonl") if corpus is None else corpus
        queries = _file(folder, "queries.jsonl") if queries is None else queries
    if qrels is None:
        raise InvalidInput("folder", "or qrels must say where the judgements are, got neither")
    limits = Limits(max_bytes, max_objects).checked()
    retrieved = None if run is None else read_run(run, limits)
    if ignore_identical_ids:
        if retrieved is None:
            raise InvalidInput(
                "ignore_identical_ids", "needs a run to drop documents from, got none"
            )
        retrieved = _without_identical(retrieved)
    dataset = judged_dataset(
        read_qrels(qrels, limits),
        retrieved,
        missing=missing,
        relevance_level=relevance_level,
        scores=scores,
    )
    if corpus is not None:
        with within_memory(name_of(corpus)):
            documents = _documents(corpus, ids_in(dataset), limits)
        dataset = with_texts(dataset, documents, name_of(corpus))
    if queries is None:
        return dataset
    with within_memory(name_of(queries)):
        return _labelled(dataset, queries, limits)


def _file(folder: str | os.PathLike[str], name: str) -> Path:
    """Return a file's path, compressed if there is only that."""
    path = Path(folder) / name
    compressed = path.with_name(f"{path.name}.gz")
    return compressed if compressed.exists() and not path.exists() else path


def _without_identical(run: Run) -> Run:
    kept = {
        query: {document: score for document, score in scores.items() if document != query}
        for query, scores in run.scores.items()
    }
    return Run(run.name, kept)


def _documents(source: Source, wanted: set[str], limits: Limits) -> dict[str, dict[str, Any]]:
    return {
        identity: {"page_content": _full_text(content, place), "id": identity}
        for identity, content, place in _entries(source, wanted.__contains__, limits)
    }


def _full_text(content: Mapping[str, Any], place: Place) -> str:
    """Return title and text as BEIR's retrievers see them."""
    parts = [_text(content, "title", place) if content.get("title") else ""]
    parts.append(_text(content, "text", place))
    return " ".join(parts).strip()


def _labelled(dataset: Dataset, source: Source, limits: Limits) -> Dataset:
    name, ids = name_of(source), [str(query) for query in dataset.queries]
    texts = {
        identity: _text(content, "text", place)
        for identity, content, place in _entries(source, set(ids).__contains__, limits)
    }
    unknown = next((identity for identity in ids if identity not in texts), None)
    if unknown is not None:
        raise Place(name).error(
            f"the judged query {unknown!r} is not in it",
            "add it, or leave out queries to label by id",
        )
    questions = [texts[identity] for identity in ids]
    return replace(dataset, queries=labels_of(questions, ids, name), questions=questions)


def _entries(
    source: Source, is_wanted: Callable[[str], bool], limits: Limits
) -> Iterator[tuple[str, dict[str, Any], Place]]:
    """Yield id and content of the entries wanted; every line is checked."""
    name = name_of(source)
    seen: set[str] = set()
    with closing(numbered_lines(source, name, limits)) as lines:
        for number, text in lines:
            place = Place(name, number)
            content = object_of(text, place, 'a JSON object with "_id" and "text"')
            identity = _text(content, "_id", place)
            if not identity:
                raise place.error('"_id" must not be empty')
            if not is_wanted(identity):
                continue
            if identity in seen:
                raise place.error(f"the id {identity!r} is given a second time", "give it once")
            seen.add(identity)
            yield identity, content, place


def _text(content: Mapping[str, Any], key: str, place: Place) -> str:
    value = content.get(key)
    if isinstance(value, str):
        return value
    if key not in content:
        raise place.error(f'no field "{key}"; the fields are {names_of(content)}')
    raise place.error(f'"{key}" must be a string, got {kind_of(value)}')
