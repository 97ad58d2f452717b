"""The public names, once: what type checkers see, and what loads on first use."""

from . import (
    compat as compat,
    datasets as datasets,
    errors as errors,
    plotting as plotting,
    report as report,
)
from .calibration import (
    Calibration as Calibration,
    agreement as agreement,
    calibrate as calibrate,
)
from .conventions import (
    AveragingMethod as AveragingMethod,
    Conventions as Conventions,
    MatchingCriteria as MatchingCriteria,
)
from .datasets.audit import (
    Audit as Audit,
    audit as audit,
)
from .datasets.labels import (
    Labels as Labels,
    read_judgements as read_judgements,
    read_labels as read_labels,
    to_label as to_label,
)
from .datasets.loading import load_dataset as load_dataset
from .datasets.reanchor import (
    Reanchored as Reanchored,
    reanchor as reanchor,
)
from .documents import AnyOf as AnyOf
from .errors import KragEvalWarning as KragEvalWarning
from .evaluator import OfflineRetrievalEvaluator as OfflineRetrievalEvaluator
from .matching.base import (
    AndMatcher as AndMatcher,
    KeyMatcher as KeyMatcher,
    Matcher as Matcher,
    OrMatcher as OrMatcher,
    TextMatcher as TextMatcher,
)
from .matching.coverage import (
    CoverageMatcher as CoverageMatcher,
    NumbersMatcher as NumbersMatcher,
)
from .matching.embedding import EmbeddingMatcher as EmbeddingMatcher
from .matching.exact import (
    ContainsMatcher as ContainsMatcher,
    ExactTextMatcher as ExactTextMatcher,
    IdMatcher as IdMatcher,
    MetadataMatcher as MetadataMatcher,
)
from .matching.fuzzy import FuzzyMatcher as FuzzyMatcher
from .matching.judge import JudgeMatcher as JudgeMatcher
from .matching.rouge import RougeMatcher as RougeMatcher
from .matching.spans import SpanMatcher as SpanMatcher
from .matching.tokenizers import KiwiTokenizer as KiwiTokenizer
from .results.causes import Index as Index
from .results.diagnosis import Diagnosis as Diagnosis
from .results.explanation import Explanation as Explanation
from .results.history import History as History
from .results.result import EvaluationResult as EvaluationResult
from .results.support import evaluate_support as evaluate_support
from .retrievers.agents import (
    aevaluate_agent as aevaluate_agent,
    evaluate_agent as evaluate_agent,
    records_from_messages as records_from_messages,
)
from .retrievers.evaluating import (
    aevaluate_retriever as aevaluate_retriever,
    aevaluate_retrievers as aevaluate_retrievers,
    evaluate_retriever as evaluate_retriever,
    evaluate_retrievers as evaluate_retrievers,
)
from .retrievers.recording import RetrievalRecorder as RetrievalRecorder
from .retrievers.sweep import sweep as sweep
from .scoring.metrics import (
    METRICS as METRICS,
    Metric as Metric,
)
from .scoring.queries import JudgedQuery as JudgedQuery
from .statistics.comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .statistics.few_labels import debias as debias
from .statistics.gates import (
    GateFailedError as GateFailedError,
    GateReport as GateReport,
)
from .statistics.intervals import confidence_intervals as confidence_intervals
from .statistics.paired import Difference as Difference
from .statistics.planning import plan_questions as plan_questions
from .statistics.slices import (
    SlicedComparison as SlicedComparison,
    Slices as Slices,
)
from .streaming.files import evaluate_file as evaluate_file

__version__: str
