"""The public names, once: what type checkers see, and what loads on first use."""

from . import (
    compat as compat,
    datasets as datasets,
    errors as errors,
    plotting as plotting,
    report as report,
)
from .asking.agents import (
    aevaluate_agent as aevaluate_agent,
    evaluate_agent as evaluate_agent,
    records_from_messages as records_from_messages,
)
from .asking.evaluating import (
    aevaluate_retriever as aevaluate_retriever,
    aevaluate_retrievers as aevaluate_retrievers,
    evaluate_retriever as evaluate_retriever,
    evaluate_retrievers as evaluate_retrievers,
)
from .asking.recording import RetrievalRecorder as RetrievalRecorder
from .auditing.audit import Audit as Audit, audit as audit
from .comparison.comparison import Comparison as Comparison, compare as compare
from .comparison.gates import GateFailedError as GateFailedError, GateReport as GateReport
from .comparison.paired import Difference as Difference
from .comparison.planning import plan_questions as plan_questions
from .comparison.slices import SlicedComparison as SlicedComparison, Slices as Slices
from .core.conventions import (
    AveragingMethod as AveragingMethod,
    Conventions as Conventions,
    MatchingCriteria as MatchingCriteria,
)
from .core.documents import AnyOf as AnyOf
from .core.errors import KragEvalWarning as KragEvalWarning
from .core.matching.base import (
    AndMatcher as AndMatcher,
    KeyMatcher as KeyMatcher,
    Matcher as Matcher,
    OrMatcher as OrMatcher,
    TextMatcher as TextMatcher,
)
from .core.matching.coverage import (
    CoverageMatcher as CoverageMatcher,
    NumbersMatcher as NumbersMatcher,
)
from .core.matching.exact import (
    ContainsMatcher as ContainsMatcher,
    ExactTextMatcher as ExactTextMatcher,
    IdMatcher as IdMatcher,
    MetadataMatcher as MetadataMatcher,
)
from .core.matching.spans import SpanMatcher as SpanMatcher
from .core.matching.tokenizers import KiwiTokenizer as KiwiTokenizer
from .core.results.explanation import Explanation as Explanation
from .core.scoring.metrics import METRICS as METRICS, Metric as Metric
from .core.scoring.queries import JudgedQuery as JudgedQuery
from .datasets import load_dataset as load_dataset
from .diagnosis.causes import Index as Index
from .diagnosis.diagnosis import Diagnosis as Diagnosis
from .evaluator import OfflineRetrievalEvaluator as OfflineRetrievalEvaluator
from .history.history import History as History
from .intervals.intervals import confidence_intervals as confidence_intervals
from .lab.calibration import (
    Calibration as Calibration,
    agreement as agreement,
    calibrate as calibrate,
)
from .lab.few_labels import debias as debias
from .lab.support import evaluate_support as evaluate_support
from .labelling.labels import (
    Labels as Labels,
    read_judgements as read_judgements,
    read_labels as read_labels,
    to_label as to_label,
)
from .matchers.embedding import EmbeddingMatcher as EmbeddingMatcher
from .matchers.fuzzy import FuzzyMatcher as FuzzyMatcher
from .matchers.judge import JudgeMatcher as JudgeMatcher
from .matchers.rouge import RougeMatcher as RougeMatcher
from .reanchoring.reanchor import Reanchored as Reanchored, reanchor as reanchor
from .result import EvaluationResult as EvaluationResult
from .streaming.files import evaluate_file as evaluate_file
from .sweeping.sweep import sweep as sweep

__version__: str
