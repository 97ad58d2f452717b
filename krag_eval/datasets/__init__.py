"""Readers of files and tables: what should have been retrieved, and what was.

A file is read whole or refused, by an error that names the file and the line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from krag_eval.core import EVALUATOR_OPTIONS, DatasetError, _, check_options, warn
from krag_eval.formats import autorag, beir, traces, trec
from krag_eval.loading import dataset as core, loading
from krag_eval.loading.formats import File, Format

if TYPE_CHECKING:
    from krag_eval.evaluator import OfflineRetrievalEvaluator

__all__ = [
    "Dataset",
    "DatasetError",
    "File",
    "Format",
    "demo_dataset",
    "load_dataset",
    "read_autorag",
    "read_beir",
    "read_jsonl",
    "read_traces",
    "read_trec",
]

Arguments = ParamSpec("Arguments")


class Dataset(core.Dataset):
    """Questions with the documents that should come back and the ranked ones that did.

    Two data sets are equal if their queries, questions, documents and tags are, wherever they were
    read.

    Attributes:
        queries: One label per query: its question, its id, or its position 0, 1, …
        actual: Per query, its ground truth: documents or ``AnyOf``.
        predicted: Per query, the retrieved documents, best first; ``None`` if nothing has been
            retrieved yet, and :func:`~krag_eval.evaluate_retriever` is to do it.
        source: Name of the file it was read from.
        lines: Per query, the line of that file, where a query is a line.
        defaults: What :meth:`evaluator` passes on if it is given nothing else, by the format read.
        questions: Per query, the text to ask a retriever, also where queries are labelled
            otherwise; ``None`` unless it is known for all of them.
        notes: How the file was understood: which columns were read as what.
        vocabulary: Whose column names those of a table are, such as ``"RAGAS"``.
        tags: Name -> one value per query, such as ``{"corpus": ["wiki", "chat"]}``: the columns
            that have no other meaning; ``None`` where a query has none.
        judged: Per query, the documents that somebody looked at, as the evaluator takes them, or
            label -> those; kept as one list per query, or mapping from documents to whether they
            were looked at. ``None`` if that is not known.
        unwanted: Per query, the documents that must not come back, or label -> those; kept as one
            list per query, ``None`` for a query that has none.
        cited: Per query, the documents that the answer cited, likewise. As ``predicted`` they are
            of one run: a retriever that is asked anew is not held to them.
        failures: The queries whose retriever failed, as traces record it; results have them, too.
        missing: Which questions of the ground truth a run lacks, if the data set was joined of the
            two; results have it, too.
        run: Per query, where its retrieved documents stand, if they came from a file of their own;
            ``None`` for a query that this lacks.

    Raises:
        InvalidInput: If there is not one question, or one value of a tag, per query, or ``judged``
            or a failure is of other queries.

    >>> Dataset(queries=["q1"], actual=[["At nine."]], questions=["When does it open?"])
    Dataset of 1 queries, nothing retrieved yet
    """

    def evaluator(self, **options: Any) -> OfflineRetrievalEvaluator:
        """Return an evaluator of this data set, its queries labelled.

        Args:
            **options: Those of :class:`~krag_eval.OfflineRetrievalEvaluator`: ``matcher``,
                ``threshold``, …; they go before the data set's own ``defaults`` and ``tags``,
                and a matcher before the ``threshold`` of these as well.

        Raises:
            DatasetError: If nothing has been retrieved yet.

        >>> from krag_eval.datasets import demo_dataset
        >>> demo_dataset().evaluator(matcher="contains").calculate_hit_rate(k=1)
        {'hit_rate': 0.0714...}
        """
        from krag_eval.evaluator import OfflineRetrievalEvaluator

        check_options(Dataset.evaluator, options, EVALUATOR_OPTIONS)
        return self._evaluator_of(OfflineRetrievalEvaluator, options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data set to a file, from which :func:`load_dataset` makes an equal one.

        The ending of its name says what is written: ``.jsonl`` or ``.jsonl.gz``, ``.csv`` or
        ``.csv.gz``, ``.parquet``. Queries, labels, questions, documents with ids and metadata,
        interchangeable ones, ``tags`` and ``defaults`` are kept; LangChain documents come back as
        dicts, which mean the same everywhere. What was written is read again before it takes the
        place of a file of that name, so the file is there complete and equal, or as it was before.

        Raises:
            DatasetError: If something cannot be written without loss; the message names it.
            FileNotFoundError: If there is no such directory.
            MissingPackage: If pyarrow is missing, for Parquet.

        Warns:
            KragEvalWarning: If there are ``failures``, or questions are ``missing``, which no such
                file can tell.

        >>> import tempfile
        >>> from krag_eval import AnyOf, load_dataset
        >>> from krag_eval.datasets import Dataset
        >>> dataset = Dataset(["q1"], [[AnyOf(["nine", "9 am"])]], questions=["When?"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dataset.save(f"{folder}/qa.csv")
        ...     load_dataset(f"{folder}/qa.csv") == dataset
        True
        """
        from krag_eval.core import told_missing
        from krag_eval.core.results.latency import told_failed
        from krag_eval.loading.saving import Content, save_content

        name = self.source or "dataset"
        lacking = told_missing({name: self.missing})
        for told in (*told_failed({name: len(self.failures)}), *lacking):
            warn(told, _("this file will not tell; result.to_json keeps them"))
        save_content(
            Content(
                self.queries,
                self.actual,
                self.predicted,
                self.questions,
                self.defaults,
                self.tags,
                cast("list[Any] | None", self.judged),
                cast("list[Any] | None", self.unwanted),
                cast("list[Any] | None", self.cited),
            ),
            path,
        )


def with_evaluator(dataset: core.Dataset) -> Dataset:
    """Return a data set that the core read, with an evaluator."""
    if isinstance(dataset, Dataset):
        return dataset
    own = object.__new__(Dataset)
    vars(own).update(vars(dataset))  # checked when it was made
    return own


def reading(reader: Callable[Arguments, core.Dataset]) -> Callable[Arguments, Dataset]:
    """Return a reader whose data sets have an evaluator."""

    @wraps(reader)
    def read(*args: Arguments.args, **options: Arguments.kwargs) -> Dataset:
        return with_evaluator(reader(*args, **options))

    return read


demo_dataset = reading(loading.demo_dataset)
dataset_in = reading(loading.dataset_in)
load_dataset = reading(loading.load_dataset)
read_autorag = reading(autorag.read_autorag)
read_beir = reading(beir.read_beir)
read_jsonl = reading(loading.read_jsonl)
read_traces = reading(traces.read_traces)
read_trec = reading(trec.read_trec)
