"""Measure how good retrieval is in a RAG system, and trust the answer.

Names load on first use, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from krag_eval._errors import KragEvalWarning
    from krag_eval.calibration import Agreement, Calibration, agreement, calibrate
    from krag_eval.conventions import AveragingMethod, Conventions, MatchingCriteria
    from krag_eval.datasets.audit import Audit, Finding, audit
    from krag_eval.datasets.loading import load_dataset
    from krag_eval.documents import AnyOf
    from krag_eval.evaluator import OfflineRetrievalEvaluator
    from krag_eval.matching.base import AndMatcher, KeyMatcher, Matcher, OrMatcher, TextMatcher
    from krag_eval.matching.coverage import CoverageMatcher, NumbersMatcher
    from krag_eval.matching.embedding import EmbeddingMatcher
    from krag_eval.matching.exact import (
        ContainsMatcher,
        ExactTextMatcher,
        IdMatcher,
        MetadataMatcher,
    )
    from krag_eval.matching.fuzzy import FuzzyMatcher
    from krag_eval.matching.judge import JudgeCost, JudgeMatcher
    from krag_eval.matching.rouge import RougeMatcher
    from krag_eval.matching.tokenizers import KiwiTokenizer
    from krag_eval.results.causes import Index
    from krag_eval.results.diagnosis import Diagnosis
    from krag_eval.results.explanation import Explanation
    from krag_eval.results.history import History, HistoryRun
    from krag_eval.results.result import EvaluationResult
    from krag_eval.results.support import evaluate_support
    from krag_eval.retrievers.agents import (
        aevaluate_agent,
        evaluate_agent,
        records_from_messages,
    )
    from krag_eval.retrievers.evaluating import (
        aevaluate_retriever,
        aevaluate_retrievers,
        evaluate_retriever,
        evaluate_retrievers,
    )
    from krag_eval.retrievers.recording import RetrievalRecorder
    from krag_eval.retrievers.sweep import Sweep, SweepCell, SweepChoice, sweep
    from krag_eval.scoring.metrics import METRICS, Metric
    from krag_eval.scoring.queries import JudgedQuery
    from krag_eval.statistics.comparison import Comparison, compare
    from krag_eval.statistics.few_labels import Debiased, DebiasedValue, Predictions, debias
    from krag_eval.statistics.gates import GateFailedError, GateReport
    from krag_eval.statistics.intervals import confidence_intervals
    from krag_eval.statistics.judged import Judgements, ToJudge, UnjudgedDocument, read_judgements
    from krag_eval.statistics.paired import Difference
    from krag_eval.statistics.planning import QuestionPlan, plan_questions
    from krag_eval.statistics.slices import Slice, SlicedComparison, SlicedDifference, Slices
    from krag_eval.streaming.files import evaluate_file

#: Public name -> the module it lives in.
_HOMES = {
    "Agreement": "calibration",
    "AndMatcher": "matching.base",
    "AnyOf": "documents",
    "Audit": "datasets.audit",
    "AveragingMethod": "conventions",
    "Calibration": "calibration",
    "Comparison": "statistics.comparison",
    "ContainsMatcher": "matching.exact",
    "Conventions": "conventions",
    "CoverageMatcher": "matching.coverage",
    "Debiased": "statistics.few_labels",
    "DebiasedValue": "statistics.few_labels",
    "Diagnosis": "results.diagnosis",
    "Difference": "statistics.paired",
    "EmbeddingMatcher": "matching.embedding",
    "EvaluationResult": "results.result",
    "ExactTextMatcher": "matching.exact",
    "Explanation": "results.explanation",
    "Finding": "datasets.audit",
    "FuzzyMatcher": "matching.fuzzy",
    "GateFailedError": "statistics.gates",
    "GateReport": "statistics.gates",
    "History": "results.history",
    "HistoryRun": "results.history",
    "IdMatcher": "matching.exact",
    "Index": "results.causes",
    "JudgeCost": "matching.judge",
    "JudgeMatcher": "matching.judge",
    "JudgedQuery": "scoring.queries",
    "Judgements": "statistics.judged",
    "KeyMatcher": "matching.base",
    "KiwiTokenizer": "matching.tokenizers",
    "KragEvalWarning": "_errors",
    "METRICS": "scoring.metrics",
    "Matcher": "matching.base",
    "MatchingCriteria": "conventions",
    "MetadataMatcher": "matching.exact",
    "Metric": "scoring.metrics",
    "NumbersMatcher": "matching.coverage",
    "OfflineRetrievalEvaluator": "evaluator",
    "OrMatcher": "matching.base",
    "Predictions": "statistics.few_labels",
    "QuestionPlan": "statistics.planning",
    "RetrievalRecorder": "retrievers.recording",
    "RougeMatcher": "matching.rouge",
    "Slice": "statistics.slices",
    "SlicedComparison": "statistics.slices",
    "SlicedDifference": "statistics.slices",
    "Slices": "statistics.slices",
    "Sweep": "retrievers.sweep",
    "SweepCell": "retrievers.sweep",
    "SweepChoice": "retrievers.sweep",
    "TextMatcher": "matching.base",
    "ToJudge": "statistics.judged",
    "UnjudgedDocument": "statistics.judged",
    "aevaluate_agent": "retrievers.agents",
    "aevaluate_retriever": "retrievers.evaluating",
    "aevaluate_retrievers": "retrievers.evaluating",
    "agreement": "calibration",
    "audit": "datasets.audit",
    "calibrate": "calibration",
    "compare": "statistics.comparison",
    "confidence_intervals": "statistics.intervals",
    "debias": "statistics.few_labels",
    "evaluate_agent": "retrievers.agents",
    "evaluate_file": "streaming.files",
    "evaluate_retriever": "retrievers.evaluating",
    "evaluate_retrievers": "retrievers.evaluating",
    "evaluate_support": "results.support",
    "load_dataset": "datasets.loading",
    "read_judgements": "statistics.judged",
    "plan_questions": "statistics.planning",
    "records_from_messages": "retrievers.agents",
    "sweep": "retrievers.sweep",
}

# Modules that users name.
_ROOMS = ("compat", "datasets", "plotting", "report")

__all__ = [
    "METRICS",
    "Agreement",
    "AndMatcher",
    "AnyOf",
    "Audit",
    "AveragingMethod",
    "Calibration",
    "Comparison",
    "ContainsMatcher",
    "Conventions",
    "CoverageMatcher",
    "Debiased",
    "DebiasedValue",
    "Diagnosis",
    "Difference",
    "EmbeddingMatcher",
    "EvaluationResult",
    "ExactTextMatcher",
    "Explanation",
    "Finding",
    "FuzzyMatcher",
    "GateFailedError",
    "GateReport",
    "History",
    "HistoryRun",
    "IdMatcher",
    "Index",
    "JudgeCost",
    "JudgeMatcher",
    "JudgedQuery",
    "Judgements",
    "KeyMatcher",
    "KiwiTokenizer",
    "KragEvalWarning",
    "Matcher",
    "MatchingCriteria",
    "MetadataMatcher",
    "Metric",
    "NumbersMatcher",
    "OfflineRetrievalEvaluator",
    "OrMatcher",
    "Predictions",
    "QuestionPlan",
    "RetrievalRecorder",
    "RougeMatcher",
    "Slice",
    "SlicedComparison",
    "SlicedDifference",
    "Slices",
    "Sweep",
    "SweepCell",
    "SweepChoice",
    "TextMatcher",
    "ToJudge",
    "UnjudgedDocument",
    "__version__",
    "aevaluate_agent",
    "aevaluate_retriever",
    "aevaluate_retrievers",
    "agreement",
    "audit",
    "calibrate",
    "compare",
    "confidence_intervals",
    "debias",
    "evaluate_agent",
    "evaluate_file",
    "evaluate_retriever",
    "evaluate_retrievers",
    "evaluate_support",
    "load_dataset",
    "plan_questions",
    "read_judgements",
    "records_from_messages",
    "sweep",
]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"krag_eval.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'krag_eval' has no attribute {name!r}")
    value = getattr(import_module(f"krag_eval.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
