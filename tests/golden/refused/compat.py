"""krag's names called wrongly."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from krag_eval.compat.embeddings import load_embeddings
from krag_eval.compat.evaluators import (
    EmbeddingRougeOfflineRetrievalEvaluators,
    OfflineRetrievalEvaluators,
    RougeOfflineRetrievalEvaluators,
)
from krag_eval.compat.utils import (
    context_to_document,
    evaluate_retrieval_at_K,
    visualize_retrieval_at_K,
)

_LISTS = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]], [["doc1"], ["doc6", "doc4"]]
_text = partial(OfflineRetrievalEvaluators, *_LISTS)
_rouge = partial(RougeOfflineRetrievalEvaluators, *_LISTS, tokenizer="whitespace")
_embedding = partial(EmbeddingRougeOfflineRetrievalEvaluators, *_LISTS, tokenizer="whitespace")
_ROW = {"question": "q", "context": "['a']", "source": "['s']", "doc_id": "['1']"}
_METRICS = ("hit_rate", "mrr", "recall", "precision", "f1_score", "map", "ndcg")


def _documents(**cells: Any) -> Any:
    return context_to_document(pd.DataFrame([{**_ROW, **cells}]), 0)


def _measured(**options: Any) -> Any:
    """Measure a retriever that cannot be asked."""
    given = {"df_qa_test": pd.DataFrame([_ROW]), "k": 2, "retrievers": {"r": None}}
    return evaluate_retrieval_at_K(**{**given, **options})


def _assigned() -> None:
    _text().averaging_method = "mean"


CALLS: dict[str, Callable[[], Any]] = {
    "no queries": lambda: OfflineRetrievalEvaluators([], []),
    "lengths differ": lambda: OfflineRetrievalEvaluators(_LISTS[0], [["a"]]),
    "lists of texts": lambda: OfflineRetrievalEvaluators(["doc1"], ["doc1"]),
    # In krag these are another way of saying BOTH, or PARTIAL.
    "an unknown average": lambda: _text(averaging_method="mirco"),
    "no average": lambda: _text(averaging_method=None),
    "an average assigned": _assigned,
    "an unknown criterion": lambda: _text(matching_criteria="any"),
    # In krag it splits at white space.
    "an unknown tokenizer": lambda: RougeOfflineRetrievalEvaluators(*_LISTS, tokenizer="mecab"),
    # In krag these compare by substring and do not say so.
    "text by ROUGE": lambda: _text(match_method="rouge1"),
    **{f"ROUGE by {method}": lambda method=method: _rouge(match_method=method)
       for method in ("rouge3", "rougeLsum", "rougel")},
    "embeddings by text": lambda: _embedding(match_method="text"),
    # In krag 0 gives precision 0.6667 (of the whole list) and 0 elsewhere, -1 recall 0.6.
    **{f"{name} at {k}": lambda name=name, k=k: getattr(_text(), f"calculate_{name}")(k)
       for name in _METRICS for k in (0, -1, 2.0, True)},
    # In krag a threshold of 80 finds nothing, silently.
    **{f"{name} of {threshold!r}": lambda make=make, name=name, threshold=threshold: make(
           **{name: threshold})
       for make, name in ((_rouge, "threshold"), (_embedding, "rouge_threshold"),
                          (_embedding, "similarity_threshold"))
       for threshold in (80, -0.1, "0.5", True)},
    "unknown embeddings": lambda: load_embeddings("cohere"),
    "a configuration of finished embeddings": lambda: load_embeddings(object(), {"model": "a"}),
    "what cannot embed": lambda: _embedding(embedding_type=object()),
    # In krag the text 'a' is taken for a list of its letters, and "['a' 'b']" for one of 'ab'.
    **{f"a context of {cell!r:.20}": lambda cell=cell: _documents(context=cell)
       for cell in ("'a'", "a b c", "", "{'a': 1}", 7, None, float("nan"), "[" * 999, "['a' 'b']")},
    "contexts without sources": lambda: _documents(context="['a', 'b', 'c']"),
    "a frame without columns": lambda: context_to_document(pd.DataFrame({"context": ["['a']"]}), 0),
    **{f"measured with {name} {value!r}": lambda name=name, value=value: _measured(**{name: value})
       for name, value in (("rouge_method", "rouge3"), ("k", 0), ("k", None), ("retrievers", {}),
                           ("averaging_method", "mean"), ("matching_criteria", "any"))},
    "measured at a threshold of 50": lambda: _measured(threshold=50, rouge_method="rouge1"),
    "measured without contexts": lambda: _measured(df_qa_test=pd.DataFrame({"question": ["q"]})),
    "measured without rows": lambda: _measured(df_qa_test=pd.DataFrame([_ROW]).iloc[:0]),
    "measured with weights for two": lambda: _measured(
        ensemble=True, ensemble_weights=[0.5, 0.5], retrievers={"r": object()}),
    "drawn at another k": lambda: visualize_retrieval_at_K(pd.DataFrame({"mrr@1": [0.1]}), 5),
}  # fmt: skip
