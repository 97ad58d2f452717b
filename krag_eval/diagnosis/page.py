"""How a diagnosis is shown: recall with one cause after the other removed, and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from krag_eval.core import N_, Column, Page, SaidOtherwise, Table, _, ngettext, presents, spelled
from krag_eval.core.display.contradictions import otherwise_in_words
from krag_eval.diagnosis.diagnosis import Diagnosis, LookedUp, within

# Passages that are not in the index and told of.
_SHOWN = 3
_NUMBER = re.compile(r"\d+")
# What numbers a line: 1. or (a), 가), ②.
_MARK = re.compile(r"\(?(?:\d{1,2}|[a-z]|[가나다라마바사아자차카타파하])[.)]|[①-⑳]|[•·-]")

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
    looked_up = _looked_up(diagnosis.looked_up).notes if diagnosis.looked_up else ()
    notes = [*looked_up, *_missing(diagnosis)]
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
        "{share} % of passages are cut apart by the splitter: chunks have {characters} characters "
        "({words} words) and overlap by {overlap}; try a larger chunk_size or chunk_overlap"
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
    said = [SaidOtherwise(one.differs_in, one.passage_says or "", one.chunk_says or "")
            for one in items if one.differs_in]  # fmt: skip
    written = [one for one in said if _is_format(one)]
    told = [otherwise_in_words(one) for one in written or said]
    return {
        "share": _percent(share),
        "within": within(diagnosis.k),
        "n": len(items),
        "depth": diagnosis.depth,
        "words": diagnosis.chunk_words,
        "characters": diagnosis.chunk_characters,
        "overlap": diagnosis.chunk_overlap,
        "rank": int(np.median(ranks)) if ranks else None,
        "repeats": sum(bool(item.repeats_above) for item in items),
        "gaps": sum(item.query_overlap == 0 for item in items),
        "stems": sum(item.same_words == 0 and bool(item.query_overlap) for item in items),
        "parsed": sum((item.letters or 0.0) >= diagnosis.threshold for item in items),
        "said": told[0] if told else "",
        "formats": len(written),
        "reworded": sum(one.kind == "text" for one in said),
    }


def _told_of(cause: str, facts: Mapping[str, Any], *, knows_words: bool) -> str:
    """Return what to say of a cause."""
    if cause == "not_in_index":
        return _told_of_missing(facts, knows_words=knows_words)
    if cause == "contradicted":
        return _told_of_versions(facts)
    if cause == "not_retrieved":
        return _told_of_gaps(facts)
    if cause == "cut_apart" and facts["characters"] is None:
        return _(
            "{share} % of passages are cut apart by the splitter: try larger chunks or more overlap"
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
    return told


def _told_of_missing(facts: Mapping[str, Any], *, knows_words: bool) -> str:
    """Return what to say of passages that are not in the index."""
    if facts["parsed"] * 2 <= facts["n"]:
        letters = _(" (the letters of {parsed} are: look at parsing)") if facts["parsed"] else ""
        return _(_LOST["not_in_index"]) + letters
    if knows_words:
        return _(
            "{share} % of passages are not in the index as they are written, though the "
            "letters of {parsed} of {n} are: look at parsing, spaces and hyphens"
        )
    return _(
        "{share} % of passages match no chunk of the index, though the letters of {parsed} of "
        "{n} are in it: where chunks are cut elsewhere, only the matcher coverage can tell why"
    )


def _told_of_versions(facts: Mapping[str, Any]) -> str:
    """Return what to say of passages in whose place chunks have something else."""
    told = _(_LOST["contradicted"])
    if facts["formats"]:
        told = _(
            "{share} % of passages are not in the index as they are written; {formats} of {n} may "
            "differ in format alone, as a date, a time or a number of a list: compare both before "
            "anything is indexed or corrected"
        )
    elif facts["reworded"] == facts["n"]:
        told = _(
            "{share} % of passages are in the index with other words in their place: correct the "
            "ground truth, or index the passage; if the ground truth is rewritten, evaluate with "
            "coverage(guard=numbers) or a judge"
        )
    return told + (_("; in one case, {said}") if facts["said"] else "")


def _told_of_gaps(facts: Mapping[str, Any]) -> str:
    """Return what to say of passages that no search brought."""
    told = _(_LOST["not_retrieved"])
    if facts["gaps"]:
        told += _("; {gaps} of {n} share no word with their question")
    if facts["stems"]:
        told += _(
            "; {stems} of {n} share stems of words with their question and no word as it is "
            "written: in Korean, index morphemes (Kiwi) for keyword search"
        )
    return told


def _is_format(said: SaidOtherwise) -> bool:
    """Return whether two texts may say the same in two formats: a date, a time, a list's number.

    >>> _is_format(SaidOtherwise("number", "05/03/24", "2024-03-05"))
    True
    >>> _is_format(SaidOtherwise("number", "21", "28"))
    False
    """
    sides = [_NUMBER.findall(one) for one in said[1:]]
    values = [sorted(int(one) % 2000 if len(one) == 4 else int(one) for one in side)
              for side in sides]  # fmt: skip
    is_mark = any(_MARK.fullmatch(one.strip()) for one in said[1:] if one.strip())
    return is_mark or (len(values[0]) > 1 and values[0] == values[1])


def _missing(diagnosis: Diagnosis) -> list[str]:
    """Say what was looked for and is not in the index, and what comes nearest to it."""
    items = [item for item in diagnosis.items if item.looked_for]
    lines = list[str]()
    for item in items[:_SHOWN]:
        place = _("query {}, item {}").format(item.position, item.item)
        told = _("Not in the index: {place}, “{looked_for}”; nearest is chunk {chunk}, “{nearest}”")
        if item.nearest_chunk is None:
            told = _("Not in the index: {place}, “{looked_for}”; no chunk has any of its words")
        lines.append(told.format(place=place, looked_for=item.looked_for,
                                 chunk=item.nearest_chunk, nearest=item.nearest_text))  # fmt: skip
    more = [_("and {} more").format(len(items) - _SHOWN)] if len(items) > _SHOWN else []
    return lines + more


def _percent(share: float) -> str:
    """Round to whole percents, but a part is neither nothing nor all, nor made larger to show.

    >>> _percent(0.125), _percent(0.999), _percent(0.005), _percent(0.0013)
    ('13', '99', '0.5', '0.1')
    """
    if 0 < share <= 0.005:
        return f"{100 * share:.1g}"
    return "100" if share == 1.0 else f"{min(int(100 * share + 0.5), 99)}"
