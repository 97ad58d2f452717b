"""The records, folders and files of other tools that a function of this room reads."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from krag_eval.formats.autorag import autorag_dataset
from krag_eval.formats.beir import PARTS, collection_dataset, has_corpus, read_beir
from krag_eval.formats.harnesses import (
    RUNS,
    judgements_dataset,
    locomo_dataset,
    longmemeval_dataset,
    predictions_dataset,
    run_dataset,
)
from krag_eval.formats.langsmith import example_as_row, langsmith_dataset
from krag_eval.formats.traces import SPANS, Choice, traces_dataset
from krag_eval.formats.trec import JUDGED_BY, MTEB, RUN, is_judgements, read_trec
from krag_eval.loading.dataset import Dataset
from krag_eval.loading.shapes import GIVEN, Folder, Judgements, Shape
from krag_eval.loading.table import QUESTIONS, Mapped, Records, Side


def _joined_spans(table: Records, dataset: Dataset, missing: Any) -> Dataset:
    return traces_dataset(table, dataset=dataset, choice=Choice(missing=missing))


def _read_folder(folder: str | os.PathLike[str], run: Any, max_bytes: int | None) -> Dataset:
    return read_beir(folder, run=run, max_bytes=max_bytes)


def _read_judgements(judgements: Any, run: Any, max_bytes: int | None) -> Dataset:
    return read_trec(judgements, run, max_bytes=max_bytes)


def _read_run(source: Any, part: str | None, max_bytes: int | None) -> Dataset:
    return replace(RUN, part=part).read(source, max_bytes).as_run()


#: Records that a function of this room reads.
SHAPES = (
    Shape("spans", read=traces_dataset, taken=(), columns=SPANS, join=_joined_spans,
          unless=(*QUESTIONS, "actual", "retrieval_gt"),
          tells=(("resourceSpans",), ("attributes", "context"), ("attributes", "span_id"),
                 ("context.span_id", "attributes."), ("run_type", "inputs"))),
    Shape("collections", read=collection_dataset, taken=("retrieved",), columns=PARTS,
          is_one_record=True,
          tells=(PARTS[:3], (*PARTS[:2], PARTS[3]))),
    Shape("AutoRAG's tables", Side(None, "retrieval_gt"),
          Side("retrieved_contents", "retrieved_ids"), tells=(("qid", "query", "retrieval_gt"),),
          unless=("actual",), read=autorag_dataset, taken=("corpus", "retrieved")),
    Shape("LangSmith's tables", Side("reference_outputs"), Side("outputs"), ("inputs",),
          tells=(("inputs", "outputs"), ("inputs", "reference_outputs")), read=langsmith_dataset,
          taken=(*Mapped._fields, "retrieved"), is_named=True, row_of=example_as_row),
    *(Shape(f"{tool}'s runs", predicted=Side(field), read=run_dataset, taken=(), unless=GIVEN,
            tells=(("query", field),) if tool == "rank_llm" else (("query_id", field),))
      for field, tool in RUNS.items()),
    Shape("MTEB's predictions", tells=((MTEB,),), read=predictions_dataset, taken=("predicted",)),
    Shape("judgements", Side("chunk_text"), read=judgements_dataset, taken=("retrieved",),
          tells=tuple(("query_id", one, "relevance") for one in JUDGED_BY),
          unless=GIVEN),
    Shape("LoCoMo's questions", Side(None, "evidence"), read=locomo_dataset,
          tells=(("question", "evidence", "category"), ("conversation", "qa")),
          taken=("predicted", "retrieved")),
    Shape("LongMemEval's questions", Side("haystack_sessions", "answer_session_ids"),
          Side("retrieval_results", "haystack_session_ids"), read=longmemeval_dataset,
          taken=("actual", "predicted", "retrieved"),
          tells=(("question_id", "answer_session_ids"),)),
)  # fmt: skip
FOLDERS = (Folder(has_corpus, _read_folder),)
JUDGEMENTS = (Judgements(is_judgements, _read_judgements, _read_run),)
