"""Reports: a result, a comparison, a sweep or labels as one page to mail, archive and print.

The page is a single HTML file: no network, plots inside, and one small script to search, filter and
sort, without which the page is complete. Texts from documents are shown as text, whatever they
hold. The same result gives the same bytes. jinja2 is loaded when a report is written.
"""

from __future__ import annotations

import os
from typing import Any

from krag_eval.core import (
    InvalidInput,
    InvalidType,
    Language,
    Report,
    _,
    clipped,
    replacing,
    speaking,
    spoken,
)
from krag_eval.core.hooks import our_hooks
from krag_eval.core.language import language as chosen

__all__ = ["write_report"]

#: What this room adds: what writes a report, and the report of a result and of a comparison.
HOOKS = {
    "krag_eval.writers": {"report": "krag_eval.report:write_report"},
    "krag_eval.reports": {
        "krag_eval.core.results.facts.ResultFacts": "krag_eval.report.result_page:REPORT",
        "krag_eval.comparison.comparison.Comparison": "krag_eval.report.comparison_page:REPORT",
    },
}


@spoken
def write_report(
    shown: object,
    path: str | os.PathLike[str],
    *,
    language: Language | None = None,
    title: str | None = None,
    date: str | None = None,
    **page: Any,
) -> None:
    """Write a result, a comparison or a sweep as a page.

    Of a result: metrics, plots, every query, and how to read it all. Of each query there are its
    outcome, main numbers and tags; opened, it shows what should come back and what did. The hardest
    come first. In a browser that runs scripts, the list can be searched, filtered and sorted;
    without, it is complete all the same.

    Of a comparison: what is shown, how surely, and the queries that changed most. Of a sweep, above
    that, every cell, what quality costs, and the choice; of one cell alone, the page of its result.
    Of re-anchored labels: how many still hold, and where each of the others stands. Of pairs to
    label: the page on which to label them.

    The file appears complete or not at all.

    Args:
        shown: What ``evaluate``, ``compare``, ``sweep``, ``reanchor`` or ``to_label`` returned.
        path: The file; one of that name is replaced.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        title: The heading, if another is wanted.
        date: Shown below it as given. Without, nothing in the page depends on when it is written.
        **page: Of any, ``by`` and ``n_queries``. ``by`` names tags to slice the queries by, each a
            section: columns kept as tags, ``"items"``, ``"question_length"``, ``"golden_length"``
            or ``"language"``; with ``diagnosis``, ``"diagnosis"``; see ``result.by``.
            ``n_queries`` is how many queries to show at most, 0 for none: of a result the hardest,
            if not given as many as make a page of about 6 MB, and the page says how many it left
            out; of a comparison those of each pair that changed most, if not given 10.

            Of a result, also ``k``, the cutoff that plots and queries are shown at (the deepest if
            not given); ``intervals``, whether to give confidence intervals, or those to give: what
            ``result.confidence_intervals(…)`` returned; ``diagnosis``, what ``result.diagnose(…)``
            returned: a section on where the misses were lost, and what to do about it; the queries
            can then be filtered by it; and ``metadata``, what to tell of the documents' metadata
            beside their ids, as in ``result.explain``.

    Raises:
        InvalidType: If ``shown`` is something else, or there is no such option.
        InvalidInput: If an argument is not possible; the message says what is. A diagnosis must be
            of this result's queries and ground truth.
        OSError: If the file cannot be written.
    """
    from krag_eval.report.rendering import rendered

    if os.path.splitext(path)[1].lower() not in ("", ".html", ".htm"):
        problem = f"must end in .html or .htm, as a page is written, got {clipped(path)}"
        raise InvalidInput("path", problem, "a browser prints the page as a PDF")
    report = _report_of(shown)
    if report is None:
        problem = f"must be a result, a comparison, a sweep or labels, got {type(shown).__name__}"
        raise InvalidType("shown", problem)
    if page and not report.has_options:
        raise InvalidType("page", f"has no option for labels, got {', '.join(page)}")
    with speaking(chosen()):  # once, and not for each of its thousands of words
        content, heading = report.make(shown, **page), _(report.heading)
        content["title"], content["date"] = content.get("title", heading), date
        source = rendered(content if title is None else {**content, "title": title})
    with replacing(path) as temporary:
        temporary.write_text(source, encoding="utf-8", newline="\n")


def _report_of(shown: object) -> Report | None:
    """Return how a result is reported; ``None`` if it has no report."""
    reports = our_hooks("krag_eval.reports")
    names = (f"{kind.__module__}.{kind.__name__}" for kind in type(shown).__mro__)
    found: Report | None = next((reports[name].load() for name in names if name in reports), None)
    return found
