"""What other evaluators print for one query: the tables of docs/conventions.md.

    pip install pytrec-eval-terrier ranx llama-index-core haystack-ai mlflow
    pip install trulens-feedback continuous-eval AutoRAG
    pip install krag==0.0.32    # in an environment of its own: it pins LangChain below 0.4
    python docs/measured/nine_evaluators.py

Their requirements do not all fit into one environment; each that is not installed is left out,
and said to be. krag's figures are those of krag itself; ``Conventions(credit="every")`` gives the
same by krag_eval, which is shown on a row of its own. Three items are wanted, A, B and C. Once only
A came back; once A came back three times.

Of those that can see that a chunk *holds* a passage, the same is asked of five passages found as
five chunks, and as three of which the last holds three passages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

TRUTH = ["A", "B", "C"]
LISTS = {"A": ["A"], "A A A": ["A", "A", "A"]}
PASSAGES = [
    "Membership is free for everyone who lives in the district.",
    "On Saturdays the building closes two hours earlier than during the week.",
    "A meeting room can be booked online at least one day ahead.",
    "Lost cards cost five euros to replace, payable in cash only.",
    "Newspapers older than three months are kept in the basement archive.",
]
RICH_LISTS = {"A B C D E": PASSAGES, "A B CDE": [*PASSAGES[:2], " ".join(PASSAGES[2:])]}
Scores = dict[str, float]


def krag_eval(retrieved: list[str]) -> Scores:
    from krag_eval import OfflineRetrievalEvaluator

    return _scores(OfflineRetrievalEvaluator([TRUTH], [retrieved]))


def krag_eval_by_coverage(retrieved: list[str]) -> Scores:
    from krag_eval import OfflineRetrievalEvaluator

    return _scores(OfflineRetrievalEvaluator([PASSAGES], [retrieved], matcher="coverage"))


def krag_eval_as_krag(retrieved: list[str]) -> Scores:
    from krag_eval import Conventions, OfflineRetrievalEvaluator

    conventions = Conventions(credit="every")
    return _scores(OfflineRetrievalEvaluator([TRUTH], [retrieved], conventions=conventions))


def krag(retrieved: list[str], wanted: list[str] = TRUTH) -> Scores:
    from krag.document import KragDocument
    from krag.evaluators import OfflineRetrievalEvaluators

    truth, found = (
        [[KragDocument(page_content=n) for n in names]] for names in (wanted, retrieved)
    )
    return _scores(OfflineRetrievalEvaluators(truth, found, match_method="text"))


def _scores(evaluator: Any) -> Scores:
    return {
        "ap": evaluator.calculate_map()["map"],
        "ndcg": evaluator.calculate_ndcg()["ndcg"],
        "precision": evaluator.calculate_precision()["macro_precision"],
        "recall": evaluator.calculate_recall()["macro_recall"],
    }


def pytrec_eval_terrier(retrieved: list[str]) -> Scores:
    import pytrec_eval

    _refuse_repeats(retrieved)
    run = {"q": {name: float(-rank) for rank, name in enumerate(retrieved)}}
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": dict.fromkeys(TRUTH, 1)}, {"map", "ndcg", "set_P", "set_recall"}
    )
    scores = evaluator.evaluate(run)["q"]
    names = {"ap": "map", "ndcg": "ndcg", "precision": "set_P", "recall": "set_recall"}
    return {ours: scores[theirs] for ours, theirs in names.items()}


def ranx(retrieved: list[str]) -> Scores:
    from ranx import Qrels, Run, evaluate

    _refuse_repeats(retrieved)
    qrels = Qrels({"q": dict.fromkeys(TRUTH, 1)})
    run = Run({"q": {name: float(-rank) for rank, name in enumerate(retrieved)}})
    scores = evaluate(qrels, run, ["map", "ndcg", "precision", "recall"])
    return {"ap": scores.pop("map"), **scores}


def llama_index_core(retrieved: list[str]) -> Scores:
    from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY

    names = {"ap": "ap", "ndcg": "ndcg", "precision": "precision", "recall": "recall"}
    return {
        ours: METRIC_REGISTRY[theirs]().compute(expected_ids=TRUTH, retrieved_ids=retrieved).score
        for ours, theirs in names.items()
    }


def haystack_ai(retrieved: list[str]) -> Scores:
    from haystack import Document
    from haystack.components.evaluators import (
        DocumentMAPEvaluator,
        DocumentNDCGEvaluator,
        DocumentRecallEvaluator,
    )

    truth = [[Document(content=name) for name in TRUTH]]
    found = [[Document(content=name) for name in retrieved]]

    def score(evaluator: object) -> float:
        return evaluator.run(truth, found)["score"]  # type: ignore[attr-defined]

    return {
        "ap": score(DocumentMAPEvaluator()),
        "ndcg": score(DocumentNDCGEvaluator()),
        "recall": score(DocumentRecallEvaluator(mode="multi_hit")),
    }


def mlflow(retrieved: list[str]) -> Scores:
    import pandas as pd
    from mlflow.metrics import ndcg_at_k, precision_at_k, recall_at_k

    found, truth = pd.Series([retrieved]), pd.Series([TRUTH])
    makers = {"ndcg": ndcg_at_k, "precision": precision_at_k, "recall": recall_at_k}
    return {
        name: float(make(len(retrieved)).eval_fn(found, truth).scores[0])
        for name, make in makers.items()
    }


def trulens_feedback(retrieved: list[str]) -> Scores:
    from trulens.feedback.groundtruth import GroundTruthAgreement
    from trulens.feedback.llm_provider import LLMProvider

    class NoModel(LLMProvider):  # it wants a model, though these three ask none
        def _create_chat_completion(self, *args: object, **options: object) -> str:
            raise NotImplementedError

    chunks = [{"text": name, "expect_score": 1} for name in TRUTH]
    golden = [{"query": "q", "expected_chunks": chunks}]
    aggregator = GroundTruthAgreement(golden, provider=NoModel(model_engine="none"))
    return {
        "ndcg": aggregator.ndcg_at_k("q", retrieved),
        "precision": aggregator.precision_at_k("q", retrieved),
        "recall": aggregator.recall_at_k("q", retrieved),
    }


def continuous_eval(retrieved: list[str]) -> Scores:
    from continuous_eval.metrics.retrieval import PrecisionRecallF1, RankedRetrievalMetrics
    from continuous_eval.metrics.retrieval.matching_strategy import ExactChunkMatch

    ranked = RankedRetrievalMetrics(ExactChunkMatch()).compute(retrieved, TRUTH)
    counted = PrecisionRecallF1(ExactChunkMatch()).compute(retrieved, TRUTH)
    return {
        "ap": ranked["average_precision"],
        "ndcg": ranked["ndcg"],
        "precision": counted["context_precision"],
        "recall": counted["context_recall"],
    }


def autorag(retrieved: list[str]) -> Scores:
    from autorag.evaluation.metric import retrieval
    from autorag.schema.metricinput import MetricInput

    given = MetricInput(retrieval_gt=[[name] for name in TRUTH], retrieved_ids=retrieved)
    return {
        "ap": retrieval.retrieval_map.__wrapped__(given),
        "ndcg": retrieval.retrieval_ndcg.__wrapped__(given),
        "precision": retrieval.retrieval_precision.__wrapped__(given),
        "recall": retrieval.retrieval_recall.__wrapped__(given),
    }


def _refuse_repeats(retrieved: list[str]) -> None:
    if len(set(retrieved)) < len(retrieved):
        raise ValueError("its runs map ids to scores: a document cannot come back twice")


def continuous_eval_by_rouge(retrieved: list[str]) -> Scores:
    from continuous_eval.metrics.retrieval import RankedRetrievalMetrics
    from continuous_eval.metrics.retrieval.matching_strategy import RougeChunkMatch

    ranked = RankedRetrievalMetrics(RougeChunkMatch()).compute(retrieved, PASSAGES)
    return {"ap": ranked["average_precision"], "ndcg": ranked["ndcg"]}


EVALUATORS: dict[str, Callable[[list[str]], Scores]] = {
    "krag-eval": krag_eval,
    'krag-eval, credit="every"': krag_eval_as_krag,
    "krag": krag,
    "pytrec-eval-terrier": pytrec_eval_terrier,
    "ranx": ranx,
    "llama-index-core": llama_index_core,
    "haystack-ai": haystack_ai,
    "mlflow": mlflow,
    "trulens-feedback": trulens_feedback,
    "continuous-eval": continuous_eval,
    "AutoRAG": autorag,
}
RICH_EVALUATORS: dict[str, Callable[[list[str]], Scores]] = {
    "krag-eval, coverage": krag_eval_by_coverage,
    "krag, text": partial(krag, wanted=PASSAGES),
    "continuous-eval, RougeChunkMatch": continuous_eval_by_rouge,
}


def main() -> None:
    """Print a row for every evaluator and list."""
    print_rows(EVALUATORS, LISTS)
    print_rows(RICH_EVALUATORS, RICH_LISTS)


def print_rows(
    evaluators: dict[str, Callable[[list[str]], Scores]], lists: dict[str, list[str]]
) -> None:
    """Print a row for each of these evaluators and lists."""
    for name, evaluate in evaluators.items():
        for shown, retrieved in lists.items():
            try:
                scores = evaluate(retrieved)
                told = ", ".join(f"{metric} {value:.4f}" for metric, value in scores.items())
                print(f"{name} {version(name.partition(',')[0])} | {shown} | {told}")
            except ImportError as error:
                print(f"{name} | {shown} | not installed ({error})")
            except ValueError as error:
                print(f"{name} | {shown} | refused: {error}")


if __name__ == "__main__":
    main()
