"""What other harnesses write: runs without ground truth, judgements, memories of conversations.

Which fields tell them is in :mod:`krag_eval.datasets.vocabularies`; here is what their cells mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from krag_eval._language import _
from krag_eval._reading import kind_of, located
from krag_eval.datasets.dataset import Dataset, labels_of, with_texts
from krag_eval.datasets.formats import Row
from krag_eval.datasets.table import Given, Records, Roles, Side, content_of
from krag_eval.datasets.trec import MTEB, QRELS, RUN, judged_dataset, ranked
from krag_eval.documents import Location, id_of, list_in
from krag_eval.errors import InvalidInput, InvalidType, Place, clipped

#: Where the documents of a run are -> whose run it is.
RUNS = {
    "ranked_docs": "TREC AutoJudge",
    "candidates": "rank_llm",
    "results": "sentence-transformers",
    "ranking": "retrieval-eval",
}


def run_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of a run: one query per row, without ground truth.

    Documents that all have a ``rank`` are put into that order; plain texts are ids.

    Raises:
        DatasetError: If a query comes twice, has a document twice, or ranks that say no order.

    >>> row = {"query_id": "q1", "ranked_docs": [{"rank": 2, "doc": {"id": "b"}},
    ...                                          {"rank": 1, "doc": {"id": "a"}}]}
    >>> run = Records.of([(Place("run.jsonl", 1), row)], "run.jsonl")
    >>> [one["id"] for one in run_dataset(run, Given()).predicted[0]]
    ['a', 'b']
    """
    field, *others = [one for one in RUNS if one in table.names]
    if others:
        problem = f"both {field!r} and {others[0]!r} may hold what was retrieved"
        raise Place(table.name).error(problem, "leave one of them out")
    flat = Records.of(((place, _flat(row, field, place)) for place, row in table.rows), table.name)
    flat.ids("query_id")  # each is one, before they become texts
    flat = flat._replace(in_memory=table.in_memory).changed(["query_id"], str)[0]
    ids, is_asked = flat.keys("query_id"), all(flat.column("query"))
    roles = Roles(RUNS[field], "query" if is_asked else None, Side("actual"), Side(field))
    content = content_of(flat, roles, given.tags)
    for (place, _row), documents in zip(flat.rows, content["predicted"], strict=True):
        _check_once(documents, place._replace(column=field))
    if any(isinstance(one, str) for documents in content["predicted"] for one in documents):
        content["defaults"] = {"matcher": "id"}
    told = _("a run of {tool}: retrieved documents read from {name}; it holds no ground truth")
    content["notes"] = [told.format(tool=RUNS[field], name=field), *content["notes"]]
    labels = labels_of(content["questions"], ids, table.name) if content["questions"] else ids
    return Dataset(**{**content, "queries": labels})


def _flat(row: Mapping[str, Any], field: str, place: Place) -> dict[str, Any]:
    """Return a row with its query as two fields, without ground truth, its documents in order."""
    query = row.get("query")
    asked = {"query_id": row.get("query_id")}
    if isinstance(query, Mapping):
        asked = {"query_id": query.get("qid"), "query": query.get("text")}
    with located(place):
        documents = _by_rank(list_in(row.get(field), Location(field)), Location(field))
    return {**row, **asked, "actual": [], field: documents}


def _by_rank(documents: Sequence[Any], at: Location) -> list[Any]:
    """Put documents into the order of their ranks, where they have some."""
    ranks: list[Any] = [one.get("rank") if isinstance(one, Mapping) else None for one in documents]
    if all(one is None for one in ranks):
        return [*documents]
    seen: set[int] = set()
    for position, one in enumerate(ranks):
        if not isinstance(one, int) or isinstance(one, bool):
            problem = f"must be a whole number, as of the others, got {kind_of(one)}"
            raise at.inside(f"[{position}].rank").type_error(problem)
        if one in seen:
            raise at.inside(f"[{position}]").error(f": the rank {one} is given a second time")
        seen.add(one)
    return [documents[at] for at in sorted(range(len(ranks)), key=ranks.__getitem__)]


def _check_once(documents: Sequence[Any], place: Place) -> None:
    seen: set[str] = set()
    for one in filter(None, map(id_of, documents)):
        if one in seen:
            problem = f"holds the document {clipped(one)} a second time"
            raise place.error(problem, "list each document once")
        seen.add(one)


def predictions_dataset(table: Records, _given: Given) -> Dataset:
    """Return the data set of what MTEB saves of a run: ids by score, without ground truth.

    >>> row = {"mteb_model_meta": {}, "default": {"test": {"q1": {"a": 0.5, "b": 0.7}}}}
    >>> table = Records.of([(Place("P_predictions.json"), row)], "P_predictions.json")
    >>> predictions_dataset(table, Given()).predicted
    [['b', 'a']]
    """
    if len(table.rows) != 1:
        raise Place(table.name).error("must hold one object, as MTEB saves its predictions")
    place, row = table.rows[0]
    run = RUN.of_object(row, place)
    topics = [*run.by_topic]
    told = _("a run of {tool}: retrieved documents read from {name}; it holds no ground truth")
    subset = next(name for name in row if name != MTEB)
    return Dataset(
        queries=list(topics),
        actual=[[] for _topic in topics],
        predicted=ranked(run, topics),
        source=table.name,
        defaults={"matcher": "id"},
        notes=[told.format(tool="MTEB", name=subset)],
    )


def judgements_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of judgements, one document of a query in each row; nothing retrieved.

    >>> row = {"query_id": "q1", "chunk_id": "c1", "relevance": 1, "chunk_text": "At nine."}
    >>> table = Records.of([(Place("judgments.jsonl", 1), row)], "judgments.jsonl")
    >>> judgements_dataset(table, Given()).actual
    [[{'page_content': 'At nine.', 'id': 'c1'}]]
    """
    dataset = judged_dataset(QRELS.of_table(table), None)
    told = _("judgements, one in each row: ground truth read from {}").format("relevance")
    ids = [str(one) for one in dataset.queries]
    dataset = replace(dataset, notes=[told], tags={"query_id": [*ids]})
    document = "chunk_id" if "chunk_id" in table.names else "doc_id"
    texts = _once_each(table, document, "chunk_text")
    if texts:
        corpus = {one: {"page_content": text, "id": one} for one, text in texts.items()}
        dataset = with_texts(dataset, corpus, table.name)
    asked = _once_each(table, "query_id", "query")
    if asked.keys() >= {*ids}:
        questions = [asked[one] for one in ids]
        labels = labels_of(questions, ids, table.name)
        dataset = replace(dataset, queries=labels, questions=questions)
    return dataset


def _once_each(table: Records, key: str, field: str) -> dict[str, str]:
    """Return the text that rows give for each id; empty where there is no such column."""
    found: dict[str, str] = {}
    if field not in table.names:
        return found
    for one, (place, text) in zip(table.ids(key), table.cells(field), strict=True):
        if text is None:
            continue
        if not isinstance(text, str):
            raise place.error(f"must be text, got {kind_of(text)}")
        if found.setdefault(one, text) != text:
            raise place.error(f"differs from what another row says of {clipped(one)}")
    return found


# Memories of conversations

_DIALOGUE = re.compile(r"D[0-9:]*")


def locomo_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of LoCoMo's questions, whose evidence is ids of turns such as ``D1:3``.

    They stand in rows, or within the ``qa`` of each conversation. One text may hold several ids.

    >>> row = {"question": "When?", "answer": "9", "evidence": ["D1:3; D2:1"], "category": 2}
    >>> locomo_dataset(Records.of([(Place("locomo.json", row=0), row)], "locomo.json"),
    ...                Given()).actual
    [['D1:3', 'D2:1']]
    """
    rows = [one for place, row in table.rows for one in _questions_of(place, row)]
    flat = Records.of(rows, table.name, in_memory=table.in_memory)
    if "evidence" not in flat.names:
        raise Place(table.name).error(f"no field 'evidence'; {flat.described()}")
    return _of_ids(flat, given, "LoCoMo", "evidence")


def _questions_of(place: Place, row: Mapping[str, Any]) -> Iterator[Row]:
    several: Any = [row]
    if "qa" in row:
        several = row["qa"]
        if not isinstance(several, list) or not all(isinstance(one, Mapping) for one in several):
            raise place.error("qa must be a list of questions, each an object")
    for one in several:
        known = {"sample_id": row["sample_id"]} if "sample_id" in row else {}
        with located(place):
            yield place, {**known, **one, "evidence": _dialogues(one.get("evidence"))}


def _dialogues(value: Any) -> list[str]:
    """Return ids of turns, as LoCoMo writes them: several may be in one text."""
    found: list[str] = []
    for position, one in enumerate(list_in(value, Location("evidence"))):
        parts = re.split(r"[;,\s]+", one.strip()) if isinstance(one, str) else [""]
        if not all(_DIALOGUE.fullmatch(part) for part in parts):
            problem = f"must be ids of turns, such as D1:3, got {clipped(one)}"
            raise InvalidInput("evidence", problem, within=f"[{position}]")
        found += parts
    return found


def longmemeval_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of LongMemEval's questions, whose ground truth is ids of sessions.

    Questions to abstain from, whose id ends in ``_abs``, have none, as in its own evaluation.
    """
    rows = []
    for place, row in table.rows:
        identity = row.get("question_id")
        if not isinstance(identity, str) or not identity:
            with located(place):
                raise InvalidType("question_id", f"must be text, got {kind_of(identity)}")
        rows.append(
            (place, {**row, "answer_session_ids": []} if identity.endswith("_abs") else row)
        )
    flat = Records.of(rows, table.name, in_memory=table.in_memory)
    return _of_ids(flat, given, "LongMemEval", "answer_session_ids")


def _of_ids(table: Records, given: Given, tool: str, field: str) -> Dataset:
    """Return the data set of questions with ids for ground truth, and perhaps for predicted."""
    name = given.mapped.predicted or ("predicted" if "predicted" in table.names else None)
    retrieved = None if name is None else Side(None, name)
    content = content_of(table, Roles(tool, "question", Side(None, field), retrieved), given.tags)
    told = _("ground truth read from {}, {}").format(field, _("by {}'s column names").format(tool))
    return Dataset(**{**content, "notes": [told, *content["notes"]]})
