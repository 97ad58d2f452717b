"""What other harnesses write: runs without ground truth, judgements, memories of conversations.

Which fields tell them is in :mod:`krag_eval.loading.vocabularies`; here is what their cells mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from krag_eval.core import InvalidInput, InvalidType, Location, Place, _, clipped, id_of, one_of
from krag_eval.core.documents import is_tag
from krag_eval.core.errors import kind_of
from krag_eval.formats.beir import with_parts
from krag_eval.formats.ids import labels_of
from krag_eval.formats.trec import JUDGED_BY, MTEB, QRELS, RUN, judged_dataset
from krag_eval.loading.cells import list_in
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.formats import with_fields
from krag_eval.loading.reading import located
from krag_eval.loading.table import Given, Records, Roles, Side, content_of

#: Where the documents of a run are -> whose run it is.
RUNS = {
    "ranked_docs": "TREC AutoJudge",
    "candidates": "rank_llm",
    "results": "sentence-transformers",
    "ranking": "retrieval-eval",
}


def _changed(
    table: Records, change: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]]
) -> Records:
    """Return the rows that a tool's rows become: other fields for each, once or several times."""
    rows = []
    for place, row in table.rows:
        with located(place):
            rows += [(place, with_fields(row, fields)) for fields in change(row)]
    return Records.of(rows, table.name, in_memory=table.in_memory)


def run_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of a run: one query per row, without ground truth.

    Plain texts are ids.

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

    def fields(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        asked: Any = row.get("query")
        if not isinstance(asked, Mapping):
            asked = {"qid": row.get("query_id"), "text": asked}
        text = {} if asked.get("text") is None else {"query": asked["text"]}
        documents = list_in(row.get(field), Location(field))
        yield {"query_id": asked.get("qid"), **text, field: documents}

    flat = _changed(table, fields)
    ids = flat.keys("query_id")
    asked = "query" if all(flat.column("query")) else None
    flat = flat.changed(["query_id"], str)[0]
    content = content_of(flat, Roles(RUNS[field], asked, Side(), Side(field)), given.tags)
    for (place, _row), documents in zip(flat.rows, content["predicted"], strict=True):
        for one, n in Counter(map(id_of, documents)).items():
            if one and n > 1:
                problem = f"holds the document {clipped(one)} a second time"
                raise place._replace(column=field).error(problem, "list each document once")
    if any(isinstance(one, str) for documents in content["predicted"] for one in documents):
        content["defaults"] = {"matcher": "id"}
    content["notes"] = [_told(RUNS[field], field), *content["notes"]]
    labels = labels_of(content["questions"], ids, table.name) if content["questions"] else ids
    return Dataset(**{**content, "queries": labels})


def _told(tool: str, name: str) -> str:
    told = _("a run of {tool}: retrieved documents read from {name}; it holds no ground truth")
    return told.format(tool=tool, name=name)


def predictions_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of what MTEB saves of a run: ids by score, without ground truth.

    Of several subsets and splits, ``given`` names one.

    >>> row = {"mteb_model_meta": {}, "default": {"test": {"q1": {"a": 0.5, "b": 0.7}}}}
    >>> table = Records.of([(Place("P_predictions.json"), row)], "P_predictions.json")
    >>> predictions_dataset(table, Given()).predicted
    [['b', 'a']]
    """
    if len(table.rows) != 1:
        raise Place(table.name).error("must hold one object, as MTEB saves its predictions")
    place, row = table.rows[0]
    made = replace(RUN, part=given.mapped.predicted).of_object(row, place).as_run()
    name = given.mapped.predicted or next(one for one in row if one != MTEB)
    return replace(made, notes=[_told("MTEB", name)])


def judgements_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of judgements, one document of a query in each row; nothing retrieved.

    >>> row = {"query_id": "q1", "chunk_id": "c1", "relevance": 1, "chunk_text": "At nine."}
    >>> table = Records.of([(Place("judgments.jsonl", 1), row)], "judgments.jsonl")
    >>> judgements_dataset(table, Given()).actual
    [[{'page_content': 'At nine.', 'id': 'c1'}]]
    """
    dataset = judged_dataset(QRELS.of_table(table), None)
    told = _("judgements, one in each row: ground truth read from {}").format("relevance")
    ids = [*map(str, dataset.queries)]
    dataset = replace(
        dataset, notes=[told], tags={"query_id": [*ids]} if all(map(is_tag, ids)) else {}
    )
    document = next(one for one in JUDGED_BY if one in table.names)
    asked = _once_each(table, "query_id", "query")
    corpus = _once_each(table, document, "chunk_text") or None
    return with_parts(dataset, corpus, asked if asked.keys() >= {*ids} else None, table.name)


def _once_each(table: Records, key: str, field: str) -> dict[str, str]:
    """Return the text that rows give for each id; empty where there is no such column."""
    found: dict[str, str] = {}
    for one, (place, text) in zip(table.ids(key), table.cells(field), strict=True):
        if text is not None and not isinstance(text, str):
            raise place.error(f"must be text, got {kind_of(text)}")
        if text is not None and found.setdefault(one, text) != text:
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

    def fields(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        asked: Any = row.get("qa", [row])
        if not isinstance(asked, list) or not all(isinstance(one, Mapping) for one in asked):
            raise InvalidType("qa", "must be a list of questions, each an object")
        for one in asked:
            yield {**one, "evidence": _dialogues(one.get("evidence"))}

    return _of_ids(_changed(table, fields), given, "LoCoMo", "evidence")


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


# Where LongMemEval says which sessions and which turns are evidence, and what it retrieved.
_SESSIONS, _EVIDENCE, _LOG = "answer_session_ids", "has_answer", "retrieval_results"


def longmemeval_dataset(table: Records, given: Given) -> Dataset:
    """Return the data set of LongMemEval's questions, whose ground truth is ids of sessions.

    Where ``has_answer`` is named as the ground truth, or a log is of turns, it is the turns marked
    so, by the ids that the log gives them: ``session_3`` for the third of a session. Questions to
    abstain from, whose id ends in ``_abs``, have none, as in its own evaluation.

    >>> row = {"question_id": "m1", "question": "When?", "answer_session_ids": ["s2"],
    ...        "haystack_session_ids": ["s2"], "haystack_sessions": [[{"has_answer": True}]]}
    >>> table = Records.of([(Place("longmemeval.json", row=0), row)], "longmemeval.json")
    >>> longmemeval_dataset(table, Given()).actual
    [['s2']]
    """
    if given.mapped.actual is not None:
        one_of("actual", given.mapped.actual, (_EVIDENCE,))

    def fields(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        made: dict[str, Any] = {}
        try:
            log = row.get(_LOG)
            if log is not None:
                made[_LOG] = log["ranked_items"]
            if given.mapped.actual or (log and log["metrics"]["turn"]):
                sessions = zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True)
                made[_EVIDENCE] = [f"{session}_{number}" for session, turns in sessions
                                   for number, turn in enumerate(turns, 1)
                                   if turn.get(_EVIDENCE)]  # fmt: skip
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            problem = "must hold sessions, or a log of a retrieval, as LongMemEval writes them"
            raise InvalidInput(_LOG if _LOG in row else "haystack_sessions", problem) from error
        if str(row.get("question_id")).endswith("_abs"):
            made[_EVIDENCE if _EVIDENCE in made else _SESSIONS] = []
        yield made

    flat = _changed(table, fields)
    evidence = _EVIDENCE if _EVIDENCE in flat.names else _SESSIONS
    return _of_ids(flat, given, "LongMemEval", evidence)


def _of_ids(table: Records, given: Given, tool: str, field: str) -> Dataset:
    """Return the data set of questions with ids for ground truth, and perhaps for predicted."""
    table.check_has([field])
    sides = {"predicted": Side(None, "predicted"), _LOG: Side(_LOG)}
    retrieved = next((side for name, side in sides.items() if name in table.names), None)
    if given.mapped.predicted is not None:
        retrieved = Side(None, given.mapped.predicted)
    content = content_of(table, Roles(tool, "question", Side(None, field), retrieved), given.tags)
    told = _("ground truth read from {}, {}").format(field, _("by {}'s column names").format(tool))
    return Dataset(**{**content, "notes": [told, *content["notes"]]})
