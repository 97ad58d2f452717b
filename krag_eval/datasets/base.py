"""What every reader returns, and how every reader refuses: the data set, and the place to blame."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from krag_eval._errors import EVALUATOR_OPTIONS, Blamed, DatasetError, Place, check_options, warn
from krag_eval.documents import AnyOf, DocumentLike

if TYPE_CHECKING:
    from krag_eval.evaluator import OfflineRetrievalEvaluator

__all__ = ["Blamed", "Dataset", "DatasetError", "Place", "Source", "labels_of", "name_of"]

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
