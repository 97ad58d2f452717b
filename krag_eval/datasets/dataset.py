"""What every reader returns, and how every reader refuses: the data set, and the place to blame."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from krag_eval._errors import (
    EVALUATOR_OPTIONS,
    Blamed,
    DatasetError,
    Place,
    check_options,
    clipped,
    warn,
)
from krag_eval._io import unshielded
from krag_eval.conventions import Conventions
from krag_eval.datasets.strict_json import kind_of, names_of
from krag_eval.documents import AnyOf, DocumentLike

if TYPE_CHECKING:
    from krag_eval.evaluator import OfflineRetrievalEvaluator

__all__ = [
    "OWN",
    "Blamed",
    "Dataset",
    "DatasetError",
    "Mark",
    "Place",
    "Source",
    "labels_and_questions",
    "labels_of",
    "mark_in",
    "mark_to_write",
    "name_of",
    "same_defaults",
]

Source: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"


@dataclass(frozen=True, repr=False)
class Dataset:
    """Questions with the documents that should come back and the ranked ones that did.

    Two data sets are equal if their queries, questions and documents are, wherever they were read.

    Attributes:
        queries: One label per query: its question, its id, or its position 0, 1, …
        actual: Per query, its ground truth: documents or ``AnyOf``.
        predicted: Per query, the retrieved documents, best first; ``None`` if nothing has been
            retrieved yet, and :func:`~krag_eval.evaluate_retriever` is to do it.
        source: Name of the file it was read from.
        lines: Per query, the line of that file, where a query is a line.
        defaults: What :meth:`evaluator` passes on unless told otherwise, by the format read.
        questions: Per query, the text to ask a retriever, also where queries are labelled
            otherwise; ``None`` unless it is known for all of them.
        notes: How the file was understood: which columns were read as what.
        vocabulary: Whose column names those of a table are, such as ``"RAGAS"``.

    Raises:
        ValueError: If there is not one question per query.

    >>> Dataset(queries=["q1"], actual=[["At nine."]], questions=["When does it open?"])
    Dataset of 1 queries, nothing retrieved yet
    """

    queries: list[str | int]
    actual: list[list[DocumentLike | AnyOf]]
    predicted: list[list[DocumentLike]] | None = None
    source: str = field(default="", compare=False)
    lines: list[int] = field(default_factory=list, compare=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)
    questions: list[str] | None = None
    notes: list[str] = field(default_factory=list, compare=False)
    vocabulary: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.questions is not None and len(self.questions) != len(self.queries):
            raise ValueError(
                f"questions must have one text per query, got {len(self.questions)} for "
                f"{len(self.queries)} queries; leave them out if some are unknown."
            )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    def evaluator(self, **options: Any) -> OfflineRetrievalEvaluator:
        """Return an evaluator of this data set, its queries labelled.

        Args:
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
                ``threshold``, …; they go before the data set's own ``defaults``.

        Raises:
            DatasetError: If nothing has been retrieved yet.

        >>> from krag_eval.datasets import demo_dataset
        >>> demo_dataset().evaluator(matcher="contains").calculate_hit_rate(k=1)
        {'hit_rate': 0.0714...}
        """
        from krag_eval.evaluator import OfflineRetrievalEvaluator

        check_options(Dataset.evaluator, options, EVALUATOR_OPTIONS)
        if self.predicted is None:
            raise Place(self.source or "dataset").error(
                "holds no retrieved documents; evaluate_retriever(retriever, dataset) asks a "
                "retriever for them."
            )
        return OfflineRetrievalEvaluator(
            self.actual, self.predicted, **{"queries": self.queries, **self.defaults, **options}
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data set to a file, from which :func:`load_dataset` makes an equal one.

        The ending of its name says what is written: ``.jsonl`` or ``.jsonl.gz``, ``.csv`` or
        ``.csv.gz``, ``.parquet``. Queries, labels, questions, documents with ids and metadata,
        interchangeable ones and ``defaults`` are kept; LangChain documents come back as dicts,
        which mean the same everywhere. What was written is read again before it takes the place
        of a file of that name, so the file is there complete and equal, or as it was before.

        Raises:
            DatasetError: If something cannot be written without loss; the message names it.
            FileNotFoundError: If there is no such directory.
            ImportError: If pyarrow is missing, for Parquet.

        >>> import tempfile
        >>> from krag_eval import AnyOf, load_dataset
        >>> dataset = Dataset(["q1"], [[AnyOf(["nine", "9 am"])]], questions=["When?"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dataset.save(f"{folder}/qa.csv")
        ...     load_dataset(f"{folder}/qa.csv") == dataset
        True
        """
        from krag_eval.datasets.saving import save_dataset

        save_dataset(self, path)

    def __repr__(self) -> str:
        read_from = f" from {self.source}" if self.source else ""
        bare = ", nothing retrieved yet" if self.predicted is None else ""
        return f"Dataset of {self.n_queries} queries{read_from}{bare}"


def name_of(source: Source) -> str:
    """Return what to call a source in messages.

    >>> name_of("runs/bm25.trec.gz")
    'runs/bm25.trec.gz'
    """
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    if source is sys.stdin:
        return "<stdin>"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def labels_of(questions: Sequence[str], ids: Sequence[str], name: str) -> list[str | int]:
    """Label queries by their questions; by their ids, with a warning, if two ask the same.

    >>> labels_of(["When?", "Where?"], ["q1", "q2"], "queries.jsonl")
    ['When?', 'Where?']
    """
    if len(set(questions)) == len(questions):
        return list(questions)
    warn(
        f"{name}: {len(questions)} queries have {len(set(questions))} different texts, so all are "
        "labelled by their ids."
    )
    return list(ids)


#: The field, or column, with what krag_eval adds.
OWN = "krag_eval"
_KEYS = {"label", "evaluator", "shielded"}
_OPTIONS = ("matcher", "threshold", "conventions", "matching_criteria", "no_ground_truth",
            "grade_key", "averaging_method")  # fmt: skip


class Mark(NamedTuple):
    """What a saved query carries beside its documents."""

    label: str | int | None = None
    defaults: Mapping[str, Any] = {}
    shielded: bool = False

    def question(self, written: Any) -> Any:
        """Return the question, from what stands in its field."""
        return unshielded(written) if self.shielded and isinstance(written, str) else written


def mark_in(value: Any, place: Blamed) -> Mark:
    """Read a mark.

    Raises:
        DatasetError: If it is none.
    """
    if value is None:
        return Mark()
    if not isinstance(value, Mapping) or not value.keys() <= _KEYS:
        got = names_of(value) if isinstance(value, Mapping) else kind_of(value)
        raise place.error(
            '"krag_eval" must be what Dataset.save wrote, an object with "label", "evaluator" and '
            f'"shielded", got {got}; leave the field out.'
        )
    label = value.get("label")
    if isinstance(label, bool) or not isinstance(label, str | int | None):
        raise place.error(f'"krag_eval": the label must be text or a number, got {kind_of(label)}.')
    is_shielded = value.get("shielded", False)
    if not isinstance(is_shielded, bool):
        raise place.error(f'"krag_eval": shielded must be true, got {kind_of(is_shielded)}.')
    return Mark(label, _defaults(value.get("evaluator") or {}, place), is_shielded)


def _defaults(value: Any, place: Blamed) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value.keys() <= set(_OPTIONS):
        raise place.error(
            '"krag_eval": the evaluator must be an object with some of '
            f"{', '.join(_OPTIONS)}; leave the field out."
        )
    defaults = dict(value)
    for name, option in defaults.items():
        if isinstance(option, bool) or not isinstance(option, str | int | float):
            raise place.error(f'"krag_eval": {name} must be text or a number.')
    if "conventions" in defaults:
        try:
            defaults["conventions"] = Conventions.parse(defaults["conventions"])
        except (TypeError, ValueError) as error:
            raise place.error(f'"krag_eval": {error}') from error
    return defaults


def mark_to_write(label: str | int | None, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to write of a label and of defaults; ``None`` if there is nothing to say.

    Raises:
        ValueError: If a default cannot be written as text or a number.
    """
    mark: dict[str, Any] = {} if label is None else {"label": label}
    written = {name: _written(name, option) for name, option in defaults.items()}
    if written:
        mark["evaluator"] = written
    return mark or None


def _written(name: str, option: Any) -> Any:
    if isinstance(option, Conventions):
        return (
            ",".join(f"{field}={value}" for field, value in option.changed().items()) or "default"
        )
    plain = isinstance(option, str | int | float) and not isinstance(option, bool)
    if name in _OPTIONS and plain:
        return str(option) if isinstance(option, str) else option
    raise ValueError(
        f"the data set's default {name}={clipped(option)} cannot be written to a file; leave it "
        "out (dataclasses.replace(dataset, defaults={})), and pass it to evaluator(…) after "
        "loading."
    )


def same_defaults(marks: Sequence[Mark], place_of: Any) -> Mapping[str, Any]:
    """Return the defaults of a data set; all its queries carry the same.

    Raises:
        DatasetError: If two do not, or no evaluator takes them.
    """
    for number, mark in enumerate(marks):
        if mark.defaults != marks[0].defaults:
            raise place_of(number).error(
                '"krag_eval": the evaluator differs from that of the first query; evaluate data '
                "sets of different kinds one by one."
            )
    defaults = marks[0].defaults if marks else {}
    if defaults:
        _check_usable(defaults, place_of(0))
    return defaults


def _check_usable(defaults: Mapping[str, Any], place: Blamed) -> None:
    """Refuse what no evaluator takes, in the file rather than when it is evaluated."""
    from krag_eval.evaluator import OfflineRetrievalEvaluator

    # Some grade is there, so that its name is not warned about.
    metadata = {str(defaults.get("grade_key")): 1}
    actual = [[{"page_content": "a", "id": "a", "metadata": metadata}]]
    try:
        OfflineRetrievalEvaluator(actual, [["a"]], **defaults)
    except (TypeError, ValueError) as error:
        raise place.error(f'"krag_eval": the evaluator cannot be used: {error}') from error


def labels_and_questions(
    asked: Sequence[str | int | None], marks: Sequence[Mark], name: str, field: str, place_of: Any
) -> tuple[list[str | int], list[str] | None]:
    """Return the labels of queries, and what to ask a retriever.

    A label is what a mark says, or the question; unless there is one for every query, all are
    labelled by position, with a warning if there are some.
    """
    found = [one if mark.label is None else mark.label
             for one, mark in zip(asked, marks, strict=True)]  # fmt: skip
    labels = [label for label in found if label is not None]
    texts = [one for one in asked if isinstance(one, str)]
    questions = texts if len(texts) == len(asked) else None
    if len(labels) == len(found):
        return labels, questions
    if labels:
        without = next(number for number, label in enumerate(found) if label is None)
        warn(
            f"{len(found) - len(labels)} of {len(found)} queries in {name} have no {field} (the "
            f"first is {place_of(without)}), so all are labelled by position."
        )
    return list(range(len(found))), questions
