"""One record of each shape that krag_eval knows by its fields, as the tool writes it.

In each that has both sides, the ground truth (id ``n``) is retrieved at the second rank, behind
another document (id ``t``). Layouts are those of the tools' own code, named beside each.
"""

from typing import Any, NamedTuple

NINE, TEN = "It opens at nine.", "It opens at ten."


class Fixture(NamedTuple):
    """Rows of one shape.

    Attributes:
        tool: The tool, as the page *Files* or *Tables* names it.
        rows: Its rows, which ask one question.
        holds: ``"both"`` sides, a ``"run"`` or a ``"golden"`` set.
        id: What a run calls its query, where that is an id.
        formats: Those it comes in; what is nested is in no table of text.
    """

    tool: str
    rows: list[dict[str, Any]]
    holds: str = "both"
    id: str = "q1"
    formats: tuple[str, ...] = ("json", "csv", "parquet", "rows", "frame")

    @property
    def nested(self):
        """The same, which is not found in tables of text."""
        return self._replace(formats=("json", "parquet", "rows", "frame"))

    @property
    def logged(self):
        """The same, which holds an empty object, as no Parquet file can."""
        return self._replace(formats=("json", "rows", "frame"))

    @property
    def alone(self):
        """The same, which is only found in JSON files."""
        return self._replace(formats=("json", "rows"))


def _named(tool, question, actual, predicted, **others):
    """Return a record with texts on both sides, under the names of a tool."""
    return Fixture(tool, [{question: "When?", actual: [NINE], predicted: [TEN, NINE], **others}])


def _of_ids(tool, actual, predicted, **others):
    return Fixture(tool, [{"query": "When?", actual: ["n"], predicted: ["t", "n"], **others}])


def _ranked(rank, identity, text):
    doc = {"id": identity, "text": text, "title": "Hours"}
    return {"rank": rank, "score": 1 / rank, "doc": doc}


# Records in the place of documents: with texts, with ids alone.
_HITS = [{"chunk_id": "t", "chunk_text": TEN, "rank": 1, "score": 0.7},
         {"chunk_id": "n", "chunk_text": NINE, "rank": 2, "score": 0.5}]  # fmt: skip
_SCORED = [{"corpus_id": "t", "score": 0.7}, {"corpus_id": "n", "score": 0.4}]
_JUDGED = {"query_id": "q1", "query": "When?", "chunk_text": NINE, "relevance": 1}
_TALK = {"question": "When?", "answer": "nine", "evidence": ["n"], "category": 1}
_MEMORY = {
    "question_id": "q1", "question": "When?", "answer": "nine", "question_type": "single-session",
    "question_date": "2023/05/30", "haystack_dates": ["2023/05/01", "2023/05/02"],
    "haystack_session_ids": ["t", "n"], "answer_session_ids": ["n"],
    "haystack_sessions": [
        [{"role": "user", "content": TEN}],
        [{"role": "user", "content": "Hi"}, {"role": "user", "content": NINE, "has_answer": True}],
    ],
}  # fmt: skip


def _log(**metrics):
    """Return LongMemEval's log of a retrieval of sessions or of turns."""
    ids = ("t_1", "n_2") if metrics.get("turn") else ("t", "n")
    ranked = [{"corpus_id": one, "text": text, "timestamp": "2023/05/01"}
              for one, text in zip(ids, (TEN, NINE), strict=True)]  # fmt: skip
    log = {
        "query": "When?",
        "ranked_items": ranked,
        "metrics": {"session": {}, "turn": {}} | metrics,
    }
    return [{**_MEMORY, "retrieval_results": log}]


#: What it is -> the fixture.
FIXTURES = {
    "krag_eval": _named("krag_eval", "question", "actual", "predicted"),
    "Korean": _named("krag_eval", "질문", "정답", "검색결과"),
    "Korean, spaced": _named("krag_eval", "질의", "정답 문서", "검색 결과"),
    "Korean, in one word": _named("krag_eval", "질의", "정답문서", "검색문서"),
    "Korean, mixed": _named("krag_eval", "질문", "정답문서", "검색 문서"),
    "plain words": _named("plain words", "question", "expected", "retrieved"),
    "plain words, mixed": _named("plain words", "query", "expected_contexts", "retrieved"),
    "plain words, documents": _named("plain words", "query", "expected_documents", "retrieved"),
    # haystack.components.evaluators.DocumentRecallEvaluator.run
    "Haystack": _named("Haystack", "question", "ground_truth_documents", "retrieved_documents"),
    # docs.ragas.io, SingleTurnSample
    "RAGAS": _named("RAGAS", "user_input", "reference_contexts", "retrieved_contexts",
                    response="At nine.", reference="It opens at nine o'clock."),
    "RAGAS, ids": Fixture("RAGAS", [{"user_input": "When?", "retrieved_context_ids": ["t", "n"],
                                     "reference_context_ids": ["n"]}]),
    # RAGAS's evaluations up to 0.1, whose columns hold no documents that should be retrieved.
    "RAGAS up to 0.1": Fixture("RAGAS up to 0.1", [
        {"question": "When?", "contexts": [{"text": TEN, "id": "t"}, {"text": NINE, "id": "n"}],
         "ground_truths": ["nine"], "answer": "nine"}], "run", ""),
    # llama_index.core.evaluation.RetrievalEvalResult.model_dump()
    "LlamaIndex": _named("LlamaIndex", "query", "expected_texts", "retrieved_texts",
                         expected_ids=["n"], retrieved_ids=["t", "n"], mode="text"),
    "LlamaIndex, ids": _of_ids("LlamaIndex", "expected_ids", "retrieved_ids", expected_texts=None,
                               retrieved_texts=[TEN, NINE]),
    # deepeval.test_case.LLMTestCase, and what is sent to its platform
    "deepeval": _named("deepeval", "input", "context", "retrieval_context",
                       actual_output="At nine.", expected_output="It opens at nine."),
    "deepeval, sent": _named("deepeval", "input", "context", "retrievalContext"),
    # krag.document.KragDocument
    "krag": Fixture("krag", [{"question": "When?", "context": [NINE], "source": ["a.pdf"],
                              "doc_id": ["n"]}], "golden"),
    "eGovFrame": _of_ids("eGovFrame", "relevant_document_ids", "retrieved_document_ids",
                         cited_document_ids=["n"], tags=["hours", "faq"]),
    "ids of chunks": _of_ids("ids of chunks", "relevant_chunk_ids", "retrieved_chunk_ids"),
    "ids of chunks, retrieved": _of_ids("ids of chunks", "relevant_chunk_ids", "retrieved_ids"),
    "records": Fixture("JavaScript", [{"query": "When?", "results": _HITS,
                                       "expectedChunks": [{"_id": "n", "text": NINE}]}]),
    "records of ids": Fixture("plain words", [{"query": "When?", "expected": ["n"],
                                               "retrieved": [{"docid": "t"}, {"docid": "n"}]}]),
    "ids and records": Fixture("ids of chunks", [{"query": "When?", "relevant_chunk_ids": ["n"],
                                                  "predicted": _HITS}]),
    # trec-auto-judge: rows of a retrieval run
    "TREC AutoJudge": Fixture("TREC AutoJudge", [
        {"query_id": "q1", "ranked_docs": [_ranked(2, "n", NINE), _ranked(1, "t", TEN)]}], "run"),
    # rank_llm.data.DataWriter; pyserini's server writes plain texts
    "rank_llm": Fixture("rank_llm", [{
        "query": {"qid": 7, "text": "When?"},
        "candidates": [{"docid": "t", "score": 0.7, "doc": {"_id": "t", "contents": TEN}},
                       {"docid": "n", "score": 0.4, "doc": {"contents": NINE}}]}],
        "run", "7").nested,
    "pyserini": Fixture("pyserini", [{
        "query": {"qid": "q1", "text": "When?"},
        "candidates": [{"docid": "t", "score": 0.7, "doc": TEN},
                       {"docid": "n", "score": 0.4, "doc": NINE}]}], "run").nested,
    # InformationRetrievalEvaluator(write_predictions=True)
    "sentence-transformers": Fixture("sentence-transformers", [
        {"query_id": "q1", "query": "When?", "results": _SCORED}], "run"),
    # aton-of-data/retrieval-eval: hits.jsonl, judgments.jsonl, and what it makes of qrels
    "retrieval-eval": Fixture("retrieval-eval", [{"query_id": "q1", "ranking": ["t", "n"]}], "run"),
    "judgements": Fixture("retrieval-eval", [
        {**_JUDGED, "chunk_id": "n"},
        {**_JUDGED, "chunk_id": "t", "relevance": 0, "chunk_text": TEN}], "golden"),
    "judgements of documents": Fixture("retrieval-eval", [
        {"query_id": "q1", "doc_uri": "n", "relevance": 1}], "golden"),
    "judgements of doc_id": Fixture("retrieval-eval", [
        {"query_id": "q1", "doc_id": "n", "relevance": 1}], "golden"),
    # mteb.abstasks.abstask.AbsTask._save_task_predictions
    "MTEB": Fixture("MTEB", [{"mteb_model_meta": {"model_name": "m", "revision": "r"},
                              "default": {"test": {"q1": {"n": 0.4, "t": 0.7}}}}], "run").alone,
    # snap-research/locomo: data/locomo10.json, and its questions as rows
    "LoCoMo": Fixture("LoCoMo", [{"sample_id": "c1", "conversation": {"speaker_a": "A"},
                                  "qa": [{**_TALK, "evidence": ["D1:3"]}]}], "golden").nested,
    "LoCoMo, rows": Fixture("LoCoMo", [{**_TALK, "evidence": ["D1:3"],
                                        "predicted": ["D9:9", "D1:3"]}]),
    # xiaowu0162/LongMemEval: longmemeval_s.json, and what run_retrieval.py logs
    "LongMemEval": Fixture("LongMemEval", [_MEMORY], "golden"),
    "LongMemEval, log": Fixture("LongMemEval", _log(session={"recall_any@1": 0.0})).logged,
    "LongMemEval, log of turns": Fixture("LongMemEval", _log(turn={"recall_any@1": 0.0})).logged,
    # BEIR's collections in one object; LlamaIndex's EmbeddingQAFinetuneDataset
    "collections": Fixture("LlamaIndex", [{
        "corpus": {"n": NINE, "t": TEN}, "queries": {"q1": "When?"},
        "relevant_docs": {"q1": ["n"]}}], "golden").alone,
    "collections of BEIR": Fixture("BEIR", [{
        "corpus": {"n": {"title": "", "text": NINE}}, "queries": {"q1": "When?"},
        "qrels": {"q1": {"n": 1}}}], "golden").alone,
    "AutoRAG": Fixture("AutoRAG", [{"qid": "q1", "query": "When?", "retrieval_gt": [["n"]],
                                    "retrieved_ids": ["t", "n"]}]),
    "LangSmith": Fixture("LangSmith", [{
        "inputs": {"question": "When?"}, "outputs": {"documents": [TEN, NINE]},
        "reference_outputs": {"documents": [NINE]}}]).nested,
    # OpenInference's SDK, one span
    "spans": Fixture("OpenInference", [{
        "context": {"span_id": "s1"}, "attributes": {
            "openinference.span.kind": "RETRIEVER", "input.value": "When?",
            "retrieval.documents.0.document.content": TEN,
            "retrieval.documents.0.document.id": "t",
            "retrieval.documents.1.document.content": NINE,
            "retrieval.documents.1.document.id": "n"}}], "run", "").nested,
    "LangSmith's runs": Fixture("LangSmith", [{
        "id": "s1", "run_type": "retriever", "inputs": {"query": "When?"},
        "outputs": {"documents": [{"page_content": TEN, "id": "t"},
                                  {"page_content": NINE, "id": "n"}]}}], "run", "").nested,
}  # fmt: skip
