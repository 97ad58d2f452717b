"""BEIR's collections: a corpus, queries, judgements, and a run.

They come as BEIR's own folder, as Hugging Face and MTEB lay them out (JSON lines or Parquet), and
in memory; LlamaIndex's ``EmbeddingQAFinetuneDataset`` is one with lists of ids for judgements.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from krag_eval.core import InvalidInput, Place, _
from krag_eval.core.documents import composed
from krag_eval.core.errors import kind_of, names_of
from krag_eval.formats.ids import ids_in, labels_of
from krag_eval.formats.trec import QRELS, RUN, Missing, ScorePrecision, is_parquet, judged_dataset
from krag_eval.loading.cells import is_missing
from krag_eval.loading.dataset import Dataset, with_texts
from krag_eval.loading.reading import MAX_BYTES, Source, name_of, numbered_lines, object_of
from krag_eval.loading.table import Given, Records, is_frame, records_in


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
) -> Dataset:
    """Read a data set in BEIR's format, and a run over it.

    A line of ``corpus.jsonl`` is ``{"_id": "d1", "title": "…", "text": "…"}``, a line of
    ``queries.jsonl`` ``{"_id": "q1", "text": "…"}``; ``qrels/test.tsv`` has the header ``query-id
    corpus-id score`` and columns separated by tabs. All may be compressed with gzip, then perhaps
    with ``.gz`` after their names. The folders of BEIR and MTEB on Hugging Face are read as well:
    ``corpus/``, ``queries/`` and ``qrels/`` or ``data/`` with Parquet files, the judgements
    perhaps as JSON lines.

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

    Raises:
        DatasetError: If a file cannot be used; the message names file and line.
        InvalidInput: If neither ``folder`` nor ``qrels`` is given, or documents are to be dropped
            from no run.

    >>> from krag_eval.datasets import read_beir
    >>> dataset = read_beir(qrels={"q1": {"d1": 1}}, run={"q1": {"d1": 0.9, "d2": 0.4}})
    >>> dataset.evaluator().calculate_ndcg(k=10)
    {'ndcg': 1.0}
    """
    if folder is not None:
        qrels = _judgements_in(folder, split) if qrels is None else qrels
        corpus = _file(folder, "corpus.jsonl") if corpus is None else corpus
        queries = _file(folder, "queries.jsonl") if queries is None else queries
    if qrels is None:
        raise InvalidInput("folder", "or qrels must say where the judgements are, got neither")
    retrieved = None if run is None else RUN.read(run, max_bytes)
    if ignore_identical_ids:
        if retrieved is None:
            raise InvalidInput(
                "ignore_identical_ids", "needs a run to drop documents from, got none"
            )
        kept = {query: {document: score for document, score in scores.items() if document != query}
                for query, scores in retrieved.by_topic.items()}  # fmt: skip
        retrieved = retrieved._replace(by_topic=kept)
    dataset = judged_dataset(
        QRELS.read(qrels, max_bytes),
        retrieved,
        missing=missing,
        relevance_level=relevance_level,
        scores=scores,
    )
    return with_parts(dataset, corpus, queries, max_bytes=max_bytes)


def with_parts(
    dataset: Dataset,
    corpus: Any,
    queries: Any,
    name: str = "",
    max_bytes: int | None = MAX_BYTES,
) -> Dataset:
    """Return a data set of ids with the texts of its documents and queries.

    Args:
        dataset: The data set.
        corpus: The documents, in a file, a table or a dict by id; ``None`` for none.
        queries: The queries, likewise.
        name: What to call them, where that is not what each is called.
        max_bytes: How much may come out of a file.

    >>> with_parts(Dataset(["q1"], [["d1"]]), {"d1": "At nine."}, {"q1": "When?"})
    Dataset of 1 queries, nothing retrieved yet
    """
    if corpus is not None:
        documents = _documents(corpus, ids_in(dataset), max_bytes)
        dataset = with_texts(dataset, documents, name or _called(corpus, "corpus"))
    if queries is None:
        return dataset
    return _labelled(dataset, queries, name or _called(queries, "queries"), max_bytes)


def _called(source: Any, role: str) -> str:
    in_memory = isinstance(source, Mapping) or is_frame(source)
    return role if in_memory else name_of(source)


def _file(folder: str | os.PathLike[str], name: str) -> Path:
    """Return a file's path: compressed, or in Parquet, if there is only that."""
    path = Path(folder) / name
    compressed = path.with_name(f"{path.name}.gz")
    if path.exists() or compressed.exists():
        return path if path.exists() else compressed
    plain = path.with_suffix("")
    return _only_one([plain.with_suffix(".parquet")], [*plain.glob("*.parquet")]) or path


def collection_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of a corpus, queries and judgements in one object; nothing retrieved.

    Args:
        table: A row with ``"corpus"``, ``"queries"``, and ``"relevant_docs"`` or ``"qrels"``: each
            a dict by id, or a table as in BEIR; judgements may be lists of ids, as in LlamaIndex.
        given: How much may come out of it.

    Raises:
        DatasetError: If a part is missing, or is not what it should be.

    >>> row = {"corpus": {"d1": "At nine."}, "queries": {"q1": "When?"},
    ...        "relevant_docs": {"q1": ["d1"]}}
    >>> collection_dataset(Records.of([(Place("qa.json"), row)], "qa.json"), Given()).actual
    [[{'page_content': 'At nine.', 'id': 'd1'}]]
    """
    table.check_has(PARTS[:2])
    content, name, max_bytes = table.rows[0][1], table.name, given.max_bytes
    judgements = next(one for one in PARTS[2:] if one in content)
    for part in ("corpus", "queries", judgements):
        # A path is none: a file must not make another one be opened.
        if not isinstance(content[part], Mapping) and not is_frame(content[part]):
            problem = f"{part} must be an object by id, got {kind_of(content[part])}"
            raise Place(name).error(problem)
    judged, is_lists = content[judgements], False
    if isinstance(judged, Mapping):
        is_lists = any(isinstance(one, list | tuple) for one in judged.values())
        if is_lists:
            judged = {query: _listed_ids(one, query, name) for query, one in judged.items()}
    dataset = judged_dataset(QRELS.read(judged, max_bytes)._replace(name=name), None)
    made = with_parts(dataset, content["corpus"], content["queries"], max_bytes=max_bytes)
    told = _(
        "BEIR's collection: ground truth read from {}, texts from corpus, questions from queries"
    )
    if is_lists:
        told = _(
            "LlamaIndex's EmbeddingQAFinetuneDataset: ground truth read from {}, texts from "
            "corpus, questions from queries"
        )
    notes = [told.format(judgements)]
    lacking = len(content["queries"]) - made.n_queries
    if lacking > 0:
        told = _("{n} of {queries} queries have no judgement, and are left out")
        notes.append(told.format(n=lacking, queries=len(content["queries"])))
    defaults = {"matcher": "id"} if is_lists else made.defaults
    return replace(
        made, notes=notes, defaults=defaults, vocabulary="LlamaIndex" if is_lists else ""
    )


#: What a collection in one object is made of; its judgements are under one of the last two.
PARTS = ("corpus", "queries", "relevant_docs", "qrels")


def has_corpus(folder: str | os.PathLike[str]) -> bool:
    """Tell whether a folder holds a corpus, as a file or as a folder of Parquet."""
    return any(one.name.partition(".")[0] == "corpus" for one in Path(folder).iterdir())


def _listed_ids(ids: Any, query: str, name: str) -> dict[str, int]:
    if not isinstance(ids, list | tuple) or not all(isinstance(one, str) for one in ids):
        raise Place(name).error(f"the relevant documents of {query!r} must be a list of ids, got "
                                f"{kind_of(ids)}")  # fmt: skip
    return dict.fromkeys(ids, 1)


def _judgements_in(folder: str | os.PathLike[str], split: str) -> Path:
    """Return where the judgements of a split are; BEIR's own place if nowhere."""
    usual = _file(folder, f"qrels/{split}.tsv")
    rooms = [Path(folder) / name for name in ("qrels", "data", "default", "")]
    others = [room / f"{split}.{kind}" for room in rooms for kind in ("jsonl", "parquet", "tsv")]
    shards = [one for room in rooms for one in room.glob(f"{split}-*.parquet")]
    return usual if usual.exists() else _only_one(others, shards) or usual


def _only_one(usual: Sequence[Path], shards: Sequence[Path]) -> Path | None:
    """Return the first of the usual files that is there, or the only shard.

    Raises:
        DatasetError: If there are several shards.
    """
    found = [one for one in usual if one.exists()]
    if not found and len(shards) > 1:
        problem = f"the table is in {len(shards)} Parquet files, and one is expected"
        fix = "load them with Hugging Face's datasets, and pass the tables to load_dataset"
        raise Place(str(shards[0].parent)).error(problem, fix)
    return next(iter([*found, *shards]), None)


def _documents(source: Any, wanted: set[str], max_bytes: int | None) -> dict[str, dict[str, Any]]:
    return {
        identity: {"page_content": _full_text(content, place), "id": identity}
        for identity, content, place in _entries(source, wanted, max_bytes)
    }


def _full_text(content: Mapping[str, Any], place: Place) -> str:
    """Return title and text as BEIR's retrievers see them."""
    parts = [_text(content, "title", place) if content.get("title") else ""]
    parts.append(_text(content, "text", place))
    return " ".join(parts).strip()


def _labelled(dataset: Dataset, source: Any, name: str, max_bytes: int | None) -> Dataset:
    ids = [composed(str(query)) for query in dataset.queries]
    texts = {
        identity: _text(content, "text", place)
        for identity, content, place in _entries(source, set(ids), max_bytes)
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
    source: Any, wanted: set[str], max_bytes: int | None
) -> Iterator[tuple[str, dict[str, Any], Place]]:
    """Yield id and content of the entries wanted; every one is checked."""
    seen: set[str] = set()
    for content, place in _contents(source, max_bytes):
        identity = composed(_text(content, "_id", place))
        if not identity:
            raise place.error('"_id" must not be empty')
        if identity not in wanted:
            continue
        if identity in seen:
            raise place.error(f"the id {identity!r} is given a second time", "give it once")
        seen.add(identity)
        yield identity, content, place


_ENTRY = ("_id", "id", "title", "text")


def _contents(source: Any, max_bytes: int | None) -> Iterator[tuple[dict[str, Any], Place]]:
    """Yield each entry of a corpus, or each query: from lines, a table, or a dict by id."""
    if isinstance(source, Mapping):
        for identity, one in source.items():
            fields = dict(one) if isinstance(one, Mapping) else {"text": one}
            yield {**fields, "_id": str(identity)}, Place("corpus or queries")
    elif is_frame(source) or is_parquet(source):
        table = records_in(source, "corpus or queries", max_bytes, _ENTRY)
        name = "_id" if "_id" in table.names else "id"
        table.check_has((name, "text"))
        for identity, (place, row) in zip(table.ids(name), table.rows, strict=True):
            filled = {field: one for field, one in row.items() if not is_missing(one)}
            yield {**filled, "_id": identity}, place
    else:
        name = name_of(source)
        with closing(numbered_lines(source, name, max_bytes)) as lines:
            for number, text in lines:
                place = Place(name, number)
                yield object_of(text, place, 'a JSON object with "_id" and "text"'), place


def _text(content: Mapping[str, Any], key: str, place: Place) -> str:
    value = content.get(key)
    if isinstance(value, str):
        return value
    if key not in content:
        raise place.error(f'no field "{key}"; the fields are {names_of(content)}')
    raise place.error(f'"{key}" must be a string, got {kind_of(value)}')
