"""Reports: a result or a comparison as one page that can be mailed, archived and printed.

The page is a single HTML file: no network, plots inside, and one small script to search, filter and
sort, without which the page is complete. Texts from documents are shown as text, whatever they
hold. The same result gives the same bytes. jinja2 is loaded when a report is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from krag_eval._io import replacing
from krag_eval._language import Language, _, spoken
from krag_eval.errors import InvalidInput, clipped

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.results.diagnosis import Diagnosis
    from krag_eval.results.result import EvaluationResult
    from krag_eval.retrievers.sweep import Sweep
    from krag_eval.scoring.cutoffs import Cutoff
    from krag_eval.statistics.comparison import Comparison

__all__ = ["write_comparison_report", "write_report", "write_sweep_report"]


@spoken
def write_report(
    result: EvaluationResult,
    path: str | os.PathLike[str],
    *,
    k: Cutoff | str = None,
    language: Language | None = None,
    intervals: bool | pd.DataFrame = True,
    n_queries: int | None = None,
    by: str | Iterable[str] = (),
    diagnosis: Diagnosis | None = None,
    metadata: str | Iterable[str] | None = None,
    title: str | None = None,
    date: str | None = None,
) -> None:
    """Write a result as a page: metrics, plots, every query, and how to read it all.

    Of each query there are its outcome, main numbers and tags; opened, it shows what should come
    back and what did. The hardest come first. In a browser that runs scripts, the list can be
    searched, filtered and sorted; without, it is complete all the same.

    The file appears complete or not at all.

    Args:
        result: What ``OfflineRetrievalEvaluator.evaluate`` returned.
        path: The file; one of that name is replaced.
        k: The cutoff that plots and queries are shown at; the deepest if not given.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        intervals: Whether to give confidence intervals, or those to give: what
            ``result.confidence_intervals(…)`` returned.
        n_queries: How many queries to show at most, the hardest; 0 for none. If not given, as many
            as make a page of about 6 MB; the page says how many it left out.
        by: Tags to slice the queries by, each a section: columns kept as tags, ``"items"``,
            ``"question_length"``, ``"golden_length"`` or ``"language"``; with ``diagnosis``,
            ``"diagnosis"``; see ``result.by``.
        diagnosis: What ``result.diagnose(…)`` returned: a section on where the misses were lost,
            and what to do about it; the queries can then be filtered by it.
        metadata: What to tell of the documents' metadata beside their ids, as in
            ``result.explain``.
        title: The heading, if another is wanted.
        date: Shown below it as given. Without, nothing in the page depends on when it is written.

    Raises:
        InvalidInput: If an argument is not possible; the message says what is. A diagnosis must be
            of this result's queries and ground truth.
        OSError: If the file cannot be written.
    """
    from krag_eval.report.rendering import rendered
    from krag_eval.report.result_page import result_page

    page = result_page(result, k, intervals, n_queries, by, diagnosis, metadata)
    heading = _("Retrieval evaluation") if title is None else title
    _write(path, rendered("result.html", page, heading, date))


@spoken
def write_comparison_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    language: Language | None = None,
    n_queries: int = 10,
    by: str | Iterable[str] = (),
    title: str | None = None,
    date: str | None = None,
) -> None:
    """Write a comparison as a page: what is shown, how surely, and the queries that changed most.

    The file appears complete or not at all.

    Args:
        comparison: What ``compare`` returned.
        path: The file; one of that name is replaced.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        n_queries: How many of the queries that changed most to show per pair, each with both
            lists side by side; 0 for none.
        by: Tags to slice the comparison by, such as ``("corpus",)``; see ``comparison.by``.
        title: The heading, if another is wanted.
        date: Shown below it as given. Without, nothing in the page depends on when it is written.

    Raises:
        InvalidType: If ``comparison`` is something else, or ``by`` names no tags.
        InvalidInput: If an argument is not possible; the message says what is.
        OSError: If the file cannot be written.
    """
    from krag_eval.report.comparison_page import comparison_page
    from krag_eval.report.rendering import rendered

    page = comparison_page(comparison, n_queries, by)
    heading = _("Comparison of retrievers") if title is None else title
    _write(path, rendered("comparison.html", page, heading, date))


@spoken
def write_sweep_report(
    sweep: Sweep,
    path: str | os.PathLike[str],
    *,
    language: Language | None = None,
    n_queries: int = 10,
    by: str | Iterable[str] = (),
    title: str | None = None,
    date: str | None = None,
) -> None:
    """Write a sweep as a page: every cell, what quality costs, the choice, and the comparison.

    The file appears complete or not at all.

    Args:
        sweep: What ``sweep`` returned.
        path: The file; one of that name is replaced.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        n_queries: How many of the queries that changed most to show per pair; 0 for none.
        by: Tags to slice the comparison by; see :func:`write_comparison_report`.
        title: The heading, if another is wanted.
        date: Shown below it as given. Without, nothing in the page depends on when it is written.

    Raises:
        InvalidType: If ``sweep`` is something else, or ``by`` names no tags.
        InvalidInput: If no two cells differ, or an argument is not possible.
        OSError: If the file cannot be written.
    """
    from krag_eval.report.comparison_page import sweep_page
    from krag_eval.report.rendering import rendered

    page = sweep_page(sweep, n_queries, by)
    heading = _("Comparison of retrievers") if title is None else title
    _write(path, rendered("comparison.html", page, heading, date))


def _write(path: str | os.PathLike[str], page: str) -> None:
    if os.path.splitext(path)[1].lower() not in ("", ".html", ".htm"):
        problem = f"must end in .html or .htm, as a page is written, got {clipped(path)}"
        raise InvalidInput("path", problem, "a browser prints the page as a PDF")
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
