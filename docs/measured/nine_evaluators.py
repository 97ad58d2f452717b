"""What nine evaluators print for the same questions: docs/measured/nine_evaluators.json.

    pip install pytrec-eval-terrier ranx llama-index-core haystack-ai
    pip install trulens-feedback
    pip install mlflow
    pip install continuous-eval
    pip install ragas rapidfuzz "langchain-community<0.4"
    pip install numpy pandas; pip install --no-deps AutoRAG    # for the files of its metrics alone
    pip install krag==0.0.32    # it pins LangChain below 0.4
    python docs/measured/nine_evaluators.py --write

Each line stands for an environment of its own: the requirements do not all fit into one. Run the
script in each; it measures the evaluators that it finds there, and ``--write`` puts what they print
into the file, beside what is there already. RAGAS stands beside the nine with its metrics that ask
no model. deepeval has none: each of its metrics for retrieval asks a model.

The pages that show these numbers are docs/why-your-rag-metric-is-wrong.md and docs/conventions.md;
a test holds them to the file.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Case:
    """What each question wants and gets, best first; and the scores a store gave, if it did."""

    wanted: list[list[str]]
    found: list[list[str]]
    k: int | None = None
    scores: list[list[float]] | None = None

    def of(self, question: int) -> tuple[list[str], list[str]]:
        """Return what one question wants, and the first k that it gets."""
        return self.wanted[question], self.found[question][: self.k]


ABC = ["A", "B", "C"]
REFUND = "Refunds are paid within five working days."
DESK = (
    "Cancel free of charge until noon of the day before. Refunds are paid within five working "
    "days. Bring the receipt and the card you paid with."
)
PASSAGES = [
    "Membership is free for everyone who lives in the district.",
    "On Saturdays the building closes two hours earlier than during the week.",
    "A meeting room can be booked online at least one day ahead.",
    "Lost cards cost five euros to replace, payable in cash only.",
    "Newspapers older than three months are kept in the basement archive.",
]
CASES = {
    "one of three": Case([ABC], [["A"]]),
    "one of three, three times": Case([ABC], [["A", "A", "A"]]),
    "one, three times": Case([["A"]], [["A", "A", "A"]]),
    "three of three": Case([ABC], [ABC]),
    "four retrieved, @10": Case([["A", "B"]], [["A", "X", "B", "Y"]], k=10),
    "nothing wanted": Case([["A"], []], [["A"], ["X"]]),
    "nothing found": Case([["A"], ["B"]], [["A"], []]),
    "distances": Case([["A"]], [["A", "X"]], scores=[[0.2, 0.9]]),
    "a passage in a chunk": Case([[REFUND]], [[DESK]]),
    "five chunks": Case([PASSAGES], [PASSAGES]),
    "three chunks": Case([PASSAGES], [[*PASSAGES[:2], " ".join(PASSAGES[2:])]]),
}
Metrics = dict[str, Callable[[], float]]


def mean(case: Case, score: Callable[[list[str], list[str]], float]) -> float:
    """Return the mean over questions, for tools that leave it to the user."""
    return statistics.fmean(score(*case.of(question)) for question in range(len(case.wanted)))


def krag_eval(case: Case, **options: Any) -> Metrics:
    from krag_eval import OfflineRetrievalEvaluator

    def evaluator() -> Any:
        return OfflineRetrievalEvaluator(case.wanted, case.found, **options)

    return _ours(evaluator, case.k)


def krag_eval_as_krag(case: Case) -> Metrics:
    from krag_eval import Conventions

    return krag_eval(case, conventions=Conventions(credit="every"))


def krag_eval_skipping(case: Case) -> Metrics:
    return krag_eval(case, no_ground_truth="skip")


def krag_eval_by_coverage(case: Case) -> Metrics:
    return krag_eval(case, matcher="coverage")


def krag(case: Case, how: str = "text") -> Metrics:
    from krag.document import KragDocument
    from krag.evaluators import (
        OfflineRetrievalEvaluators,
        RougeOfflineRetrievalEvaluators,
        TokenizerType,
    )

    maker: Any = OfflineRetrievalEvaluators
    if how != "text":
        maker = partial(RougeOfflineRetrievalEvaluators, tokenizer=TokenizerType.WHITESPACE)

    def evaluator() -> Any:
        wanted, found = (
            [[KragDocument(page_content=text) for text in texts] for texts in lists]
            for lists in (case.wanted, case.found)
        )
        return maker(wanted, found, match_method=how)

    return _ours(evaluator, case.k)


def _ours(evaluator: Callable[[], Any], k: int | None) -> Metrics:
    return {
        "ap": lambda: evaluator().calculate_map(k)["map"],
        "hit rate": lambda: evaluator().calculate_hit_rate(k)["hit_rate"],
        "mrr": lambda: evaluator().calculate_mrr(k)["mrr"],
        "ndcg": lambda: evaluator().calculate_ndcg(k)["ndcg"],
        "precision": lambda: evaluator().calculate_precision(k)["macro_precision"],
        "recall": lambda: evaluator().calculate_recall(k)["macro_recall"],
    }


def pytrec_eval_terrier(case: Case) -> Metrics:
    import pytrec_eval

    at = f"_{case.k}" if case.k else ""
    names = {
        "ap": "map_cut" + at if at else "map",
        "hit rate": f"success_{case.k or 10}",
        "mrr": "recip_rank",
        "ndcg": "ndcg_cut" + at if at else "ndcg",
        "precision": "P" + at if at else "set_P",
        "recall": "recall" + at if at else "set_recall",
    }

    def score(name: str) -> float:
        of_questions = pytrec_eval.RelevanceEvaluator(_qrels(case), {name}).evaluate(_run(case))
        return statistics.fmean(scores[name] for scores in of_questions.values())

    return {ours: partial(score, theirs) for ours, theirs in names.items()}


def ranx(case: Case) -> Metrics:
    from ranx import Qrels, Run, evaluate

    at = f"@{case.k}" if case.k else ""
    names = {"ap": "map", "hit rate": "hit_rate"} | {
        name: name for name in ("mrr", "ndcg", "precision", "recall")
    }

    def score(name: str) -> float:
        return evaluate(Qrels(_qrels(case)), Run(_run(case)), name)

    return {ours: partial(score, theirs + at) for ours, theirs in names.items()}


def _qrels(case: Case) -> dict[str, dict[str, int]]:
    """Return what is wanted as a file of TREC says it: nothing wanted, no line."""
    return {f"q{i}": dict.fromkeys(wanted, 1) for i, wanted in enumerate(case.wanted) if wanted}


def _run(case: Case) -> dict[str, dict[str, float]]:
    """Return what came back as a file of TREC says it: nothing found, no line."""
    if any(len(set(found)) < len(found) for found in case.found):
        raise ValueError("a run maps ids to scores: a document cannot come back twice")
    by_rank = [[float(-rank) for rank, _ in enumerate(found)] for found in case.found]
    lists = zip(case.found, case.scores or by_rank, strict=True)
    return {
        f"q{i}": dict(zip(found, scores, strict=True))
        for i, (found, scores) in enumerate(lists)
        if found
    }


def llama_index_core(case: Case) -> Metrics:
    from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY

    def score(name: str, wanted: list[str], found: list[str]) -> float:
        return METRIC_REGISTRY[name]().compute(expected_ids=wanted, retrieved_ids=found).score

    names = {"hit rate": "hit_rate"} | {
        name: name for name in ("ap", "mrr", "ndcg", "precision", "recall")
    }
    return {ours: partial(mean, case, partial(score, theirs)) for ours, theirs in names.items()}


def haystack_ai(case: Case) -> Metrics:
    from haystack import Document
    from haystack.components import evaluators

    wanted, found = (
        [[Document(content=text) for text in texts[:k]] for texts in lists]
        for lists, k in ((case.wanted, None), (case.found, case.k))
    )

    def score(name: str, **options: Any) -> float:
        return getattr(evaluators, f"Document{name}Evaluator")(**options).run(wanted, found)[
            "score"
        ]

    return {
        "ap": partial(score, "MAP"),
        "mrr": partial(score, "MRR"),
        "ndcg": partial(score, "NDCG"),
        "recall": partial(score, "Recall"),
        "recall, multi_hit": partial(score, "Recall", mode="multi_hit"),
    }


def mlflow(case: Case) -> Metrics:
    import pandas as pd
    from mlflow.metrics import ndcg_at_k, precision_at_k, recall_at_k

    def score(make: Callable[[int], Any]) -> float:
        k = case.k or max(len(found) for found in case.found)
        value = make(k).eval_fn(pd.Series(case.found), pd.Series(case.wanted))
        return float(value.aggregate_results["mean"])

    makers = {"ndcg": ndcg_at_k, "precision": precision_at_k, "recall": recall_at_k}
    return {name: partial(score, make) for name, make in makers.items()}


def trulens_feedback(case: Case) -> Metrics:
    from trulens.feedback.groundtruth import GroundTruthAgreement
    from trulens.feedback.llm_provider import LLMProvider

    class NoModel(LLMProvider):  # it wants a model, though these ask none
        def _create_chat_completion(self, *args: object, **options: object) -> str:
            raise NotImplementedError

    names = {"hit rate": "ir_hit_rate", "mrr": "mrr", "ndcg": "ndcg_at_k"} | {
        name: f"{name}_at_k" for name in ("precision", "recall")
    }

    def score(name: str, wanted: list[str], found: list[str]) -> float:
        chunks = [{"text": text, "expect_score": 1} for text in wanted]
        golden = [{"query": "q", "expected_chunks": chunks}]
        aggregator = GroundTruthAgreement(golden, provider=NoModel(model_engine="none"))
        options = {"k": case.k} if case.k and name.endswith("_at_k") else {}
        return float(getattr(aggregator, name)("q", found, **options))

    return {ours: partial(mean, case, partial(score, theirs)) for ours, theirs in names.items()}


def continuous_eval(case: Case, match: str = "ExactChunkMatch") -> Metrics:
    from continuous_eval.metrics.retrieval import (
        PrecisionRecallF1,
        RankedRetrievalMetrics,
        matching_strategy,
    )

    def score(kind: Any, name: str, wanted: list[str], found: list[str]) -> float:
        return kind(getattr(matching_strategy, match)()).compute(found, wanted)[name]

    names = {
        "ap": (RankedRetrievalMetrics, "average_precision"),
        "mrr": (RankedRetrievalMetrics, "reciprocal_rank"),
        "ndcg": (RankedRetrievalMetrics, "ndcg"),
        "precision": (PrecisionRecallF1, "context_precision"),
        "recall": (PrecisionRecallF1, "context_recall"),
    }
    return {ours: partial(mean, case, partial(score, *theirs)) for ours, theirs in names.items()}


def autorag(case: Case) -> Metrics:
    import pandas as pd

    retrieval, schema = _files_of_autorag()

    def score(name: str) -> float:
        inputs = [
            schema.MetricInput(
                retrieval_gt=[[one] for one in case.wanted[i]], retrieved_ids=case.of(i)[1]
            )
            for i in range(len(case.wanted))
        ]
        scores = getattr(retrieval, f"retrieval_{name}")(metric_inputs=inputs)
        return float(pd.Series(scores, dtype=float).mean())  # as its nodes take the mean

    names = {"ap": "map"} | {name: name for name in ("mrr", "ndcg", "precision", "recall")}
    return {ours: partial(score, theirs) for ours, theirs in names.items()}


@cache
def _files_of_autorag() -> tuple[ModuleType, ModuleType]:
    """Return AutoRAG's metrics and their input, without what the package loads beside them."""
    folder = Path(str(distribution("AutoRAG").locate_file("autorag")))
    for name in ("", ".evaluation", ".evaluation.metric", ".schema", ".utils"):
        package = sys.modules[f"autorag{name}"] = ModuleType(f"autorag{name}")
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
    util = ModuleType("autorag.utils.util")  # it makes lists of arrays; these are lists
    util.convert_inputs_to_list = lambda function: function  # type: ignore[attr-defined]
    sys.modules["autorag.utils.util"] = util
    retrieval = importlib.import_module("autorag.evaluation.metric.retrieval")
    return retrieval, importlib.import_module("autorag.schema.metricinput")


def ragas(case: Case, by: str = "IDBased") -> Metrics:
    from ragas import SingleTurnSample, metrics

    def score(name: str, wanted: list[str], found: list[str]) -> float:
        of = "context_ids" if by == "IDBased" else "contexts"
        sample = SingleTurnSample(**{f"reference_{of}": wanted, f"retrieved_{of}": found})
        return asyncio.run(getattr(metrics, name)().single_turn_ascore(sample))

    names = {
        "precision": f"{by}ContextPrecision" + ("WithReference" if by == "NonLLM" else ""),
        "recall": f"{by}ContextRecall",
    }
    return {ours: partial(mean, case, partial(score, theirs)) for ours, theirs in names.items()}


EVALUATORS: dict[str, Callable[[Case], Metrics]] = {
    "pytrec-eval-terrier": pytrec_eval_terrier,
    "ranx": ranx,
    "haystack-ai": haystack_ai,
    "llama-index-core": llama_index_core,
    "continuous-eval": continuous_eval,
    "continuous-eval, RougeChunkMatch": partial(continuous_eval, match="RougeChunkMatch"),
    "trulens-feedback": trulens_feedback,
    "AutoRAG": autorag,
    "mlflow": mlflow,
    "krag": krag,
    "krag, rougeL": partial(krag, how="rougeL"),
    "ragas": ragas,
    "ragas, NonLLM": partial(ragas, by="NonLLM"),
    "krag-eval": krag_eval,
    'krag-eval, credit="every"': krag_eval_as_krag,
    'krag-eval, no_ground_truth="skip"': krag_eval_skipping,
    "krag-eval, coverage": krag_eval_by_coverage,
}
#: What a way of comparing, or an option, is asked where it stands beside the tool's defaults.
ONLY = dict.fromkeys(
    (name for name in EVALUATORS if "," in name),
    ("a passage in a chunk", "five chunks", "three chunks"),
) | {
    'krag-eval, credit="every"': ("one of three, three times", "one, three times"),
    'krag-eval, no_ground_truth="skip"': ("nothing wanted", "nothing found"),
}


def measure(name: str) -> dict[str, dict[str, float | str]]:
    """Return the metrics of every case: a number, or why there is none."""
    measured: dict[str, dict[str, float | str]] = {}
    for title in ONLY.get(name, CASES):
        metrics = EVALUATORS[name](CASES[title])
        measured[title] = {metric: printed(score) for metric, score in metrics.items()}
    return measured


def printed(score: Callable[[], float]) -> float | str:
    """Return a number to six digits, or how it was refused."""
    try:
        with redirect_stdout(sys.stderr):
            value = float(score())
    except Exception as error:  # whatever a tool raises is what it says
        return f"refused: {type(error).__name__}"
    return round(value, 6) if value == value else "NaN"


def main(arguments: Sequence[str]) -> None:
    """Print a row for every evaluator and case; keep them with ``--write``."""
    for name in EVALUATORS:
        package = name.partition(",")[0]
        try:
            found, scores = version(package), measure(name)
        except (ImportError, PackageNotFoundError) as error:
            print(f"{name} | not installed here ({error})")
            continue
        for case, values in scores.items():
            told = ", ".join(f"{metric} {value}" for metric, value in values.items())
            print(f"{name} {found} | {case} | {told}", flush=True)
        if "--write" in arguments:
            write(name, found, scores)


def write(name: str, found: str, scores: dict[str, dict[str, float | str]]) -> None:
    """Put what one evaluator prints, and its version, into the file."""
    kept = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    measured = kept.get("measured", {}) | {name: scores}
    versions = kept.get("versions", {}) | {name.partition(",")[0]: found}
    versions.pop("krag-eval", None)  # a test measures it anew
    ordered = {name: measured[name] for name in EVALUATORS if name in measured}
    content = {"versions": dict(sorted(versions.items())), "measured": ordered}
    FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


NAMES = {
    "pytrec-eval-terrier": "trec_eval",
    "haystack-ai": "Haystack",
    "llama-index-core": "LlamaIndex",
    "continuous-eval, RougeChunkMatch": "continuous-eval (`RougeChunkMatch`)",
    "trulens-feedback": "TruLens",
    "mlflow": "MLflow",
    "ragas": "RAGAS",
    "ragas, NonLLM": "RAGAS (edit distance)",
    "krag, rougeL": "krag (ROUGE-L)",
    "krag-eval": "*krag_eval*",
    "krag-eval, coverage": "*krag_eval* (`coverage`)",
    'krag-eval, no_ground_truth="skip"': '*krag_eval* (`no_ground_truth="skip"`)',
}
HEADS = {"ap": "AP", "hit rate": "hit rate", "mrr": "MRR", "ndcg": "nDCG"}
KOREAN = {"printed by": "도구", "none": "없음", "refused": "거부", "hit rate": "적중률"} | {
    "precision": "정밀도",
    "recall": "재현율",
    "nothing wanted": "정답이 없음",
    "nothing found": "검색 결과가 없음",
}
#: By trap: its columns, as pairs of case and metric, and who stands there beside the defaults.
TRAPS: dict[str, tuple[tuple[tuple[str, str], ...], tuple[str, ...]]] = {
    "copies": ((("one, three times", "ap"), ("one, three times", "ndcg")), ()),
    "missing": ((("one of three", "ndcg"), ("one of three", "ap")), ()),
    "any": ((("one of three", "hit rate"), ("one of three", "recall")), ()),
    "ten of four": ((("four retrieved, @10", "precision"),), ()),
    "empty": (
        (("nothing wanted", "recall"), ("nothing found", "recall")),
        ('krag-eval, no_ground_truth="skip"',),
    ),
    "distances": ((("distances", "ndcg"),), ()),
    "passage": (
        (("a passage in a chunk", "recall"),),
        (
            "continuous-eval, RougeChunkMatch",
            "krag, rougeL",
            "ragas, NonLLM",
            "krag-eval, coverage",
        ),
    ),
    "several": (
        (("three chunks", "recall"), ("three chunks", "ndcg")),
        ("continuous-eval, RougeChunkMatch", "krag-eval, coverage"),
    ),
}


def markdown(trap: str, language: str = "en") -> str:
    """Return who prints what, those who print the same in one row, krag_eval last."""
    columns, beside = TRAPS[trap]
    measured = json.loads(FILE.read_text("utf-8"))["measured"]
    told: dict[tuple[str, ...], list[str]] = {}
    for name, cases in measured.items():
        if "," not in name or name in beside:
            cells = tuple(shown(cases.get(case, {}).get(metric)) for case, metric in columns)
            told.setdefault(cells, []).append(NAMES.get(name, name))
    words = KOREAN if language == "ko" else {}
    cases = {case for case, _ in columns}
    heads = [
        words.get(case, case) if len(cases) > 1 else words.get(metric, HEADS.get(metric, metric))
        for case, metric in columns
    ]
    rows = [[words.get(cell, cell) for cell in cells] + [", ".join(told[cells])] for cells in told]
    nothing = words.get("none", "none")
    rows = sorted(
        (row for row in rows if set(row[:-1]) != {nothing}),
        key=lambda row: "krag_eval" in row[-1],
    )
    table = [[*heads, words.get("printed by", "printed by")], ["---"] * (len(columns) + 1), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in table)


def versions() -> str:
    """Return which versions were measured, as the pages say it."""
    found = json.loads(FILE.read_text("utf-8"))["versions"]
    return ", ".join(f"{name} {number}" for name, number in found.items())


def shown(value: float | str | None) -> str:
    """Return a score as the tables show it."""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0") if value % 1 else f"{value:.1f}"
    return "none" if value is None else value.partition(":")[0]


if __name__ == "__main__":
    main(sys.argv[1:])
