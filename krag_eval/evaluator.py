"""Evaluators as users have them: of a run in memory, and of a run in parts.

How they work is in :mod:`krag_eval.core.evaluator`; here they lead to results that draw, compare
and diagnose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from krag_eval.core import Cutoff, Partial as Partial, Rows, evaluator
from krag_eval.core.evaluator import Evaluator, Part as Part, Plan as Plan
from krag_eval.result import EvaluationResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class OfflineRetrievalEvaluator(Evaluator[EvaluationResult]):
    """Measures retrieval from the documents that should come back and the ranked ones that did.

    Documents are LangChain ``Document`` objects, plain strings, or dicts with ``"page_content"``
    and optionally ``"metadata"`` and ``"id"``, mixed freely. Matching happens once, at the first
    question asked; every metric, cutoff and average is then read from the same record.

    Args:
        actual_docs: Per query, its ground truth: a list of documents or ``AnyOf``.
        predicted_docs: Per query, the retrieved documents, best first, perhaps as pairs of document
            and score. In both lists, a text where a list is due is a list of one.
        matcher: What makes a predicted document a match: a name (``"text"``: equal text) or a
            :class:`~krag_eval.Matcher` instance.
        threshold: Similarity from which a pair is a match, in [0, 1]; the matcher's own if not
            given. Not for matchers that decide by equality.
        averaging_method: ``"micro"``, ``"macro"`` or ``"both"``.
        matching_criteria: A query is a hit when ``"all"`` of its ground truth is found, or when
            any is (``"partial"``).
        conventions: How the disputed points are settled; see :class:`~krag_eval.Conventions`.
        no_ground_truth: For queries without ground truth: ``"error"``, ``"skip"`` (left out of
            every average) or ``"zero"`` (counted as 0).
        queries: One label per query, such as the question; 0, 1, … if not given.
        grade_key: Key in the metadata of ground-truth documents that holds their grade; a document
            without it has grade 1, grade 0 says that it is not ground truth. All grades are 1 if
            not given, unless records say them (``grades``).
        grades: ``"auto"``: where records of the ground truth carry ``relevance``, ``grade``,
            ``label`` or ``score`` that is 0 somewhere, it is their grade, with a warning;
            ``"no"`` counts all of the ground truth alike.
        n_jobs: Processes that prepare and score texts in parallel, -1 for one per core; in this one
            alone if not given. More than there are cores are cut to that number, with a warning.
            The results are the same. It pays from some seconds of matching on, and does nothing for
            matchers by key or embedding.
        tags: Name -> one value per query, such as ``{"corpus": ["wiki", "chat"]}``: texts of at
            most 200 characters, numbers, booleans, or ``None``. They are kept with the result.
        judged: Per query, the documents that somebody looked at, or label -> those: ids, texts or
            documents. Those that are in the ground truth are relevant, the others are not, and
            what is not listed is unjudged. A matcher by key (``"text"``, ``"id"``, metadata) tells
            documents apart by its key, for which a text may stand; for others a document is looked
            at if its id, or else its whole text, is listed. A mapping from documents to whether
            they were looked at names those as well that were in the pool and left, for ``infap``.
        unjudged: What to make of unjudged documents that match nothing: ``"wrong"``, as everywhere;
            ``"bounds"``, the same with an upper bound behind precision and RBP; ``"leave_out"``,
            as if they had not been retrieved (condensed lists). The last two need ``judged``.
        unwanted: Per query, the documents that must not come back (superseded, another tenant's,
            forbidden), or label -> those: documents or ``AnyOf``, matched as ground truth is.
            ``unwanted`` and ``clean`` are then computed as well. Queries without a list (``None``)
            are left out of their averages; of an empty list, nothing can come back.
        cited: Per query, the documents that the answer cited, or label -> those; they need not be
            among the retrieved ones. ``citation_precision`` and ``citation_recall`` are then
            computed as well, the same at every cutoff. Queries without a list (``None``) are left
            out of their averages; an empty list cites nothing, which is 0.
        aspect_key: Key in the metadata of ground-truth documents that holds the aspects of the
            question they speak to, such as ``"sub_question"``: a text, a whole number, or a list of
            those. Aspect recall and α-nDCG are then computed as well. A document without it is an
            aspect of its own, with a warning; one listed once for each of its aspects has them all.
        score_cutoff: The worst score that a retrieved document may have; those with a worse one are
            dropped before anything is matched. Lower is worse, unless scores rise with the rank, as
            distances do. Scores come as pairs (document, score), or in the metadata as ``"score"``
            or ``"relevance_score"``; every document needs one.

    Raises:
        TypeError: If the lists are not lists of lists of documents.
        ValueError: If there are no queries, lengths differ, a query has no ground truth, or an
            option is not among those allowed.

    >>> evaluator = OfflineRetrievalEvaluator(
    ...     actual_docs=[["doc1", "doc2", "doc5"], ["doc3", "doc4"]],
    ...     predicted_docs=[["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]],
    ... )
    >>> evaluator.calculate_recall(k=5)
    {'micro_recall': 0.8, 'macro_recall': 0.75}
    """

    _kind = EvaluationResult

    def visualize_results(self, k: Cutoff | str = None, ax: Axes | None = None) -> Axes:
        """Draw every metric at ``k`` as a labelled bar, micro and macro side by side.

        Args:
            k: The cutoff; ``None`` for all retrieved documents.
            ax: Where to draw; a new figure if not given.

        Returns:
            The matplotlib Axes; nothing is shown or saved.
        """
        return self.evaluate(k=k).plot(ax=ax)


@dataclass(frozen=True)
class PartitionPlan(evaluator.PartitionPlan):
    """How every part of a run is evaluated; build it with :meth:`of`.

    A plan holds settings only, so it can be pickled and sent to the processes that evaluate parts,
    as far as the matcher and metrics of your own can be; a model is loaded by the process that
    needs it, once.

    Attributes:
        plan: The settings of an evaluator.
        cutoffs: The cutoffs.
        metrics: The metrics, by column.
        length: The user's function that budgets are counted by; ``None`` if there is none.

    >>> plan = PartitionPlan.of(k=2)
    >>> first = plan.evaluate([["a", "b"]], [["a", "x"]], ["When?"])
    >>> second = plan.evaluate([["c"], ["d"]], [["c"], ["y", "d"]], ["Who?", "Why?"])
    >>> first.rows["query"].tolist(), first.rows["recall@2"].tolist()
    (['When?'], [0.5])
    >>> result = plan.result([first.partial, second.partial])
    >>> result.n_queries, result.to_dict()["micro_recall@2"]
    (3, 0.75)
    """

    def result(self, partials: Iterable[Partial], rows: Rows | None = None) -> EvaluationResult:
        """Put parts together; what must be said about the whole is said here, once.

        Args:
            partials: Those of the parts, in any order.
            rows: Where the per-query rows are; without them, the result knows averages only.

        Raises:
            ValueError: If there is no query, or none counts in the averages; if a part belongs to
                another run.
        """
        return self.whole(EvaluationResult, partials, rows)
