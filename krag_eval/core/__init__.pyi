"""What rooms and installed packages may use of the core; nothing else of it is promised."""

# Documents, in every form in which they come.
# The points on which tools disagree.
from .conventions import AveragingMethod as AveragingMethod, Conventions as Conventions

# Tables and pages.
from .display import (
    Column as Column,
    Page as Page,
    Table as Table,
    page_of as page_of,
    presents as presents,
)
from .display.numbers import percent as percent, rounded as rounded, short as short, span as span
from .documents import (
    AnyOf as AnyOf,
    DocumentLike as DocumentLike,
    Location as Location,
    QuerySet as QuerySet,
    Tag as Tag,
    id_of as id_of,
    is_blank as is_blank,
    metadata_of as metadata_of,
    read_text as read_text,
    single as single,
    text_of as text_of,
)

# Errors as values, and the checks of arguments.
from .errors import (
    Advice as Advice,
    DatasetError as DatasetError,
    Fix as Fix,
    InvalidInput as InvalidInput,
    InvalidType as InvalidType,
    KragEvalWarning as KragEvalWarning,
    MissingPackage as MissingPackage,
    Place as Place,
    Refusal as Refusal,
    boolean as boolean,
    called as called,
    clipped as clipped,
    must as must,
    muted as muted,
    number as number,
    one_of as one_of,
    warn as warn,
    whole as whole,
)

# Files and progress.
from .files import (
    bar_of as bar_of,
    check_apart as check_apart,
    check_progress as check_progress,
    naming as naming,
    replacing as replacing,
)

# Files as rows, and bounded reading.
# What to install.
from .install import install_line as install_line

# The language that people read.
from .language import (
    LANGUAGES as LANGUAGES,
    N_ as N_,
    Language as Language,
    _ as _,
    ngettext as ngettext,
    pgettext as pgettext,
    speaking as speaking,
    spoken as spoken,
)

# Matching.
from .matching.base import (
    Matcher as Matcher,
    TextMatcher as TextMatcher,
    labels_for as labels_for,
)
from .matching.contradiction import SaidOtherwise as SaidOtherwise
from .matching.coverage import CoverageMatcher as CoverageMatcher
from .matching.exact import ExactTextMatcher as ExactTextMatcher
from .matching.joins import FloatArray as FloatArray, IntArray as IntArray, Units as Units
from .matching.names import resolve_matcher as resolve_matcher
from .matching.numbering import TokenNumbers as TokenNumbers
from .matching.tokenizers import Tokenizer as Tokenizer, letter_tokens as letter_tokens

# Options of an evaluation, each declared once.
from .options import (
    EVALUATOR_OPTIONS as EVALUATOR_OPTIONS,
    LISTS as LISTS,
    PLAN_OPTIONS as PLAN_OPTIONS,
    Cut as Cut,
    check_options as check_options,
    declared as declared,
    option as option,
)

# What came out.
from .results.facts import ResultFacts as ResultFacts
from .results.reviews import (
    unreviewed_of as unreviewed_of,
    unreviewed_sentences as unreviewed_sentences,
)
from .results.rows import NoRows as NoRows, Rows as Rows, RowsInMemory as RowsInMemory
from .scoring.averages import DEFINED as DEFINED, Average as Average

# Cutoffs, metrics, averages.
from .scoring.cutoffs import (
    DEFAULT_CUTOFFS as DEFAULT_CUTOFFS,
    Budget as Budget,
    Cutoff as Cutoff,
    Cutoffs as Cutoffs,
    Length as Length,
    deepest as deepest,
    parse_metric as parse_metric,
    spelled as spelled,
)
from .scoring.metrics import (
    METRICS as METRICS,
    REJECTION_RATE as REJECTION_RATE,
    Metric as Metric,
    averages_of as averages_of,
    resolved_average as resolved_average,
)
from .scoring.missing import MissingQuestions as MissingQuestions, told_missing as told_missing
from .scoring.parts import Partial as Partial

# What leads from a result to its page.
from .shown import Drawn as Drawn, Report as Report, Shown as Shown

# Words on a screen.
from .text import fitted as fitted, visible as visible, width_of as width_of

HOOKS: dict[str, dict[str, str]]
