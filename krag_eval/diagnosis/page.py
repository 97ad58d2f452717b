"""How a diagnosis is shown: recall with one cause after the other removed, and what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from krag_eval.core import N_, Column, Page, SaidOtherwise, Table, _, ngettext, presents, spelled
from krag_eval.core.display.contradictions import otherwise_in_words
from krag_eval.diagnosis.diagnosis import Diagnosis, LookedUp, within

# What each step of the waterfall adds.
_LABELS = {
    "found": N_("recall now"),
    "found_in_pieces": N_("with pieces"),
    "ranked_too_low": N_("with k = {}"),
    "not_retrieved": N_("with perfect ranking"),
    "not_in_top_k": N_("with perfect ranking"),
    "cut_apart": N_("with other chunks"),
    "contradicted": N_("with the right version in the index"),
    "not_in_index": N_("with everything in the index"),
    "not_seen": N_("with everything that is missed"),
}
_WITH_UNION = {
    "found": N_("whole, in one document"),
    "found_in_pieces": N_("recall now, pieces together"),
}


@presents
def _page(diagnosis: Diagnosis) -> Page:
    n, chunks = len(diagnosis.items), diagnosis.n_chunks
    title = _("Diagnosis of {n} items at {within}").format(n=n, within=within(diagnosis.k))
    if chunks is not None:
        title += ngettext(", {n} chunk", ", {n} chunks", chunks).format(n=chunks)
    names = _LABELS | (_WITH_UNION if diagnosis.union else {})
    rows: list[dict[str, Any]] = [
        {"class": one.cause, "label": _(names[one.cause]).format(diagnosis.depth),
         "items": one.items, "share": one.share, "cumulative": one.cumulative}
        for one in diagnosis.steps
    ]  # fmt: skip
    if wordless := diagnosis.counts.get("no_words"):
        rows.append({"class": "no_words", "label": _("(not counted)"), "items": wordless,
                     "share": math.nan, "cumulative": math.nan})  # fmt: skip
    columns = [
        Column(_("class"), "class"),
        Column(_("micro recall@{}").format(spelled(diagnosis.k)), "label"),
        Column(_("items"), "items"),
        Column(_("share"), "share"),
        Column(_("cumulative"), "cumulative"),
    ]
    notes = _looked_up(diagnosis.looked_up).notes if diagnosis.looked_up else ()
    table, said, advice = Table(rows, columns, names=2), sentence(diagnosis), sentences(diagnosis)
    return Page(title, [table], [said], notes, verdict=said, advice=advice)


@presents
def _looked_up(found: LookedUp) -> Page:
    """Say how many documents are in the index, and what else is known; nothing if all are."""
    if found.there == found.n and not (found.unknown and not found.n):
        return Page()
    told = [_("In the index: {there} of the {n} different documents that were retrieved.")]
    if found.alike:
        told += [_("{alike} more with a whole chunk in them, or most of their words in chunks.")]
    if found.skipped:
        told += [_("{skipped} more were not looked for: enough of the others are there.")]
    if found.unknown:
        told += [_("{unknown} more with neither an id nor a text to look up.")]
    return Page(notes=[" ".join(told).format(**found._asdict())])


# What is said of what is lost by a cause.
_LOST = {
    "found_in_pieces": N_(
        "{share} % of passages come back in pieces, no document holds them whole: count pieces "
        "with coverage(union=yes), or try larger chunks or more overlap"
    ),
    "ranked_too_low": N_(
        "{share} % of passages are ranked too low, half of them at rank {rank} or better: rerank "
        "the first {depth}, or pass on more documents"
    ),
    "not_retrieved": N_(
        "{share} % of passages are in the index and not among the first {depth} documents: try "
        "hybrid search, another embedding model or rewritten questions"
    ),
    "not_in_top_k": N_(
        "{share} % of passages are in the index and not within {within}: retrieve longer lists to "
        "see whether ranking or search loses them"
    ),
    "cut_apart": N_(
        "{share} % of passages are cut apart by the splitter: chunks of {words} words; try a "
        "larger size or overlap"
    ),
    "contradicted": N_(
        "{share} % of passages are in the index in another version only: index the version "
        "that is wanted, or correct the ground truth"
    ),
    "not_in_index": N_("{share} % of passages are not in the index: check what was ingested"),
    "not_seen": N_(
        "{share} % of passages are missed: diagnose with the chunks of the store to see whether "
        "they can be found at all"
    ),
}


def sentence(diagnosis: Diagnosis) -> str:
    """Say what most is lost by, and what to do about it."""
    if math.isnan(next(iter(diagnosis.shares.values()))):
        return _("Nothing to diagnose: no query has ground truth with words.")
    if told := sentences(diagnosis):
        return told[0]
    told_all = _("Nothing is lost: every passage is found within {within}.")
    return told_all.format(within=within(diagnosis.k))


def sentences(diagnosis: Diagnosis) -> list[str]:
    """Say what is lost by each cause and what to do about it, the largest loss first."""
    counted = {"found", *(("found_in_pieces",) if diagnosis.union else ())}
    shares = diagnosis.shares
    lost = {cause: share for cause, share in shares.items() if cause not in counted and share > 0}
    told = []
    for cause in sorted(lost, key=lambda one: lost[one], reverse=True):
        facts = _facts(diagnosis, cause, lost[cause])
        said = _told_of(cause, facts, knows_words=diagnosis.knows_words)
        told.append(said.format(**facts) + ".")
    return told


def _facts(diagnosis: Diagnosis, cause: str, share: float) -> dict[str, Any]:
    """Return the numbers in what is said of a cause."""
    items = [item for item in diagnosis.items if item.cause == cause]
    ranks = [item.rank for item in items if item.rank is not None]
    said = [(one.differs_in, one.passage_says or "", one.chunk_says or "") for one in items]
    told = [otherwise_in_words(SaidOtherwise(kind, *sides)) for kind, *sides in said if kind]
    return {
        "share": _percent(share),
        "within": within(diagnosis.k),
        "n": len(items),
        "depth": diagnosis.depth,
        "words": diagnosis.chunk_words,
        "rank": int(np.median(ranks)) if ranks else None,
        "repeats": sum(bool(item.repeats_above) for item in items),
        "gaps": sum(item.query_overlap == 0 for item in items),
        "parsed": sum((item.letters or 0.0) >= diagnosis.threshold for item in items),
        "said": told[0] if told else "",
    }


def _told_of(cause: str, facts: Mapping[str, Any], *, knows_words: bool) -> str:
    """Return what to say of a cause."""
    if cause == "cut_apart" and not facts["words"]:
        return _(
            "{share} % of passages are cut apart by the splitter: try larger chunks or more overlap"
        )
    if cause == "not_in_index" and facts["parsed"] * 2 > facts["n"]:
        if knows_words:
            return _(
                "{share} % of passages are not in the index as they are written, though the "
                "letters of {parsed} of {n} are: look at parsing, spaces and hyphens"
            )
        return _(
            "{share} % of passages match no chunk of the index, though the letters of {parsed} of "
            "{n} are in it: where chunks are cut elsewhere, only the matcher coverage can tell why"
        )
    told = _(_LOST[cause])
    if cause == "ranked_too_low" and facts["n"] == 1:
        told = _("{share} % of passages are ranked too low, a single one, at rank {rank}: rerank "
                 "the first {depth}, or pass on more documents")  # fmt: skip
    if cause == "ranked_too_low" and facts["repeats"]:
        told += ngettext(
            "; {repeats} of them stands below near-repeats, drop those first",
            "; {repeats} of them stand below near-repeats, drop those first",
            facts["repeats"],
        )
    if cause == "not_retrieved" and facts["gaps"]:
        told += _("; {gaps} of {n} share no word with their question")
    if cause == "contradicted" and facts["said"]:
        told += _("; in one case, {said}")
    if cause == "not_in_index" and facts["parsed"]:
        told += _(" (the letters of {parsed} are: look at parsing)")
    return told


def _percent(share: float) -> str:
    """Round to whole percents, but a part is neither nothing nor all, nor made larger to show.

    >>> _percent(0.125), _percent(0.999), _percent(0.005), _percent(0.0013)
    ('13', '99', '0.5', '0.1')
    """
    if 0 < share <= 0.005:
        return f"{100 * share:.1g}"
    return "100" if share == 1.0 else f"{min(int(100 * share + 0.5), 99)}"
