"""Reports: a result, a comparison, a sweep or labels as one page to mail, archive and print.

The page is a single HTML file: no network, plots inside, and one small script to search, filter and
sort, without which the page is complete. Texts from documents are shown as text, whatever they
hold. The same result gives the same bytes. jinja2 is loaded when a report is written.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from krag_eval.core.errors import InvalidInput, InvalidType, clipped
from krag_eval.core.files import replacing
from krag_eval.core.language import N_, Language, _, language as chosen, speaking, spoken

if TYPE_CHECKING:
    from krag_eval.comparison.comparison import Comparison
    from krag_eval.core.results.facts import ResultFacts
    from krag_eval.labelling.labels import ToLabel
    from krag_eval.reanchoring.reanchor import Reanchored
    from krag_eval.sweeping.sweep import Sweep

__all__ = ["write_report"]


@spoken
def write_report(
    shown: ResultFacts | Comparison | Sweep | Reanchored | ToLabel,
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
    from krag_eval.comparison.comparison import Comparison
    from krag_eval.core.results.facts import ResultFacts
    from krag_eval.labelling.labelling_page import labelling_page
    from krag_eval.labelling.labels import ToLabel
    from krag_eval.reanchoring.reanchor import Reanchored
    from krag_eval.report.comparison_page import comparison_page
    from krag_eval.report.rendering import rendered
    from krag_eval.report.result_page import result_page
    from krag_eval.sweeping.sweep import Sweep

    if os.path.splitext(path)[1].lower() not in ("", ".html", ".htm"):
        problem = f"must end in .html or .htm, as a page is written, got {clipped(path)}"
        raise InvalidInput("path", problem, "a browser prints the page as a PDF")
    if isinstance(shown, Sweep) and shown.comparison is None:
        shown = shown.cells[0].result
    made: Any = {
        ResultFacts: (result_page, N_("Retrieval evaluation")),
        Comparison: (comparison_page, N_("Comparison of retrievers")),
        Sweep: (comparison_page, N_("Comparison of retrievers")),
        Reanchored: (_labels_page, N_("Labels after re-chunking")),
        ToLabel: (labelling_page, N_("Pairs to label")),
    }
    make, heading = next((one for kind, one in made.items() if isinstance(shown, kind)), (None, ""))
    if make is None:
        problem = f"must be a result, a comparison, a sweep or labels, got {type(shown).__name__}"
        raise InvalidType("shown", problem)
    if make in (_labels_page, labelling_page) and page:
        raise InvalidType("page", f"has no option for labels, got {', '.join(page)}")
    with speaking(chosen()):  # once, and not for each of its thousands of words
        known, heading = make(shown, **page), _(heading)
        source = rendered({**known, "title": heading if title is None else title, "date": date})
    with replacing(path) as temporary:
        temporary.write_text(source, encoding="utf-8", newline="\n")


def _labels_page(shown: Reanchored) -> dict[str, Any]:
    """Gather what the template of re-anchored labels reads."""
    from krag_eval.reanchoring.page import page_of_all
    from krag_eval.reanchoring.reanchor import MATCHER

    return {
        "template": "reanchored.html",
        "page": page_of_all(shown),
        "subtitle": shown.dataset.source,
        "settings": [(_("matcher"), MATCHER.name)],
        "signature": MATCHER.signature,
    }
