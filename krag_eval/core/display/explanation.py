"""How an explanation is shown: what became of each document and item, and where texts agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from krag_eval.core.display import Page, Table, numbers, presents
from krag_eval.core.display.contradictions import NO_TEXTS, otherwise_in_words
from krag_eval.core.errors import told_apart
from krag_eval.core.language import N_, _, ngettext, speaking
from krag_eval.core.results.evidence import (
    About,
    Contradicting,
    GroundTruthItem,
    NearMiss,
    PredictedDocument,
)
from krag_eval.core.results.explanation import Explanation
from krag_eval.core.scoring.cutoffs import Budget, amount_in_words, spelled
from krag_eval.core.text import (
    Excerpt,
    Marked,
    agreement,
    fitted,
    said_at,
    united,
    visible,
    whole_percent,
    width_of,
)

# What is shown of long lists: the first so many, and of the rest those that are spoken of.
_SHOWN = 20
_SHOWN_AT_MOST = 50
_ALTERNATIVES = 6
# Documents that are said to contradict an item.
_CONTRADICTING = 3
# Characters shown of what an exception said, and columns of a label.
_FAILURE, _LABEL = 300, 300
# Columns beside a text: a rank, a similarity, and what is between them.
_BESIDE = 22
# Columns that a line may have left for a text, and that are worth beginning one in.
_A_LINE, _LEAST = 60, 12


@presents
def explanation_page(explanation: Explanation) -> Page:
    """Show one query."""
    with speaking(explanation.language):
        return _page(explanation)


def _page(explanation: Explanation) -> Page:
    full = explanation.full
    documents, items = highlighted(explanation, full=full)
    brief = set() if full else untold_ranks(explanation)
    notes = []
    if hidden := len(explanation.documents) - len(documents):
        notes.append(_("… and {} more predicted documents, not shown").format(hidden))
    if any(one.cut or len(one.text) > _A_LINE for rank in brief for one in documents.get(rank, ())):
        notes.append(
            _(
                "Documents that no outcome rests on are cut to a line; full=True, in the shell "
                "--full, shows everything."
            )
        )
    if hidden := len(explanation.items) - len(items):
        notes.append(_("… and {} more items, not shown").format(hidden))
    if any(one.different for one in chain(*documents.values(), *items.values())):
        notes.append(
            _(
                "Underlined, in a terminal between two ≠: what a passage and a chunk that "
                "contradicts it say in the same place."
            )
        )
    columns = None if full else max(explanation.columns - _BESIDE, _LEAST)
    by_rank = [
        (one.rank, similarity(one.similarity, explanation.threshold),
         _told(credit(one), [one.about], documents[one.rank], columns, one.rank in brief))
        for one in explanation.documents
        if one.rank in documents
    ]  # fmt: skip
    by_number = [
        (one.number, f"{one.grade:g}",
         _told(outcome(one, explanation), one.about, items[one.number], columns))
        for one in explanation.items
        if one.number in items
    ]  # fmt: skip
    told = [
        (_("Predicted documents"), (_("rank"), _("similarity"), _("credit")), by_rank),
        (_("Ground truth"), (_("item"), _("grade"), _("outcome")), by_number),
    ]
    name = explanation.position if explanation.id is None else explanation.id
    title = _("Query {}").format(name)
    if explanation.query not in (explanation.position, name):
        title += f": {explanation.query}"
    title = fitted(title, explanation.columns if columns else _LABEL)
    return Page(
        "\n".join([title, *map(visible, _lines(explanation))]),
        [Table.of_cells(header, rows, names=3, title=name) for name, header, rows in told if rows],
        notes=notes,
        verdict=_outcome(explanation),
    )


def _told(
    said: str,
    about: Sequence[About],
    texts: Sequence[Excerpt],
    columns: int | None,
    is_brief: bool = False,
) -> tuple[str, ...]:
    """Return what is said, what stands beside it, and the texts below it, or beside it if brief."""
    known = aside(*about)
    said = visible(f"{said} [{known}]" if known else said)
    if not is_brief or columns is None:
        return (said, *(text.marked(columns) for text in texts))
    room = min(columns, _A_LINE + _BESIDE) - width_of(said) - 2
    return (Marked(f"{said}: {texts[0].marked(room)}") if room >= _LEAST and texts else said,)


def untold_ranks(explanation: Explanation) -> set[int]:
    """Return the ranks that no outcome rests on: their texts need no more than a line."""
    telling = {rank for item in explanation.items for rank in _partners(item)}
    telling |= {
        one.rank
        for one in explanation.documents
        if one.unwanted or one.credit in ("first", "repeat", "piece")
    }
    return {one.rank for one in explanation.documents} - telling


def _partners(item: GroundTruthItem) -> list[int]:
    """Return the ranks that an item is compared with.

    They are those of all its pieces, or the nearest one, and of documents that contradict it.
    """
    nearest = item.near.rank if item.rank is None and item.near else item.rank
    found = list(item.pieces) or ([] if nearest is None else [nearest])
    others = (one.rank for one in item.contradicted[:_CONTRADICTING])
    return [*found, *(rank for rank in others if rank not in found)]


def _lines(explanation: Explanation) -> list[str]:
    values = (
        f"{name}@{spelled(explanation.k)} {numbers.rounded(v)}"
        for name, v in explanation.metrics.items()
    )
    lines = [
        _outcome(explanation),
        " | ".join(values) or _("not counted in the averages"),
        _("matcher {}").format(explanation.matcher),
    ]
    if explanation.threshold is not None:
        threshold = _threshold(explanation, explanation.threshold)
        lines[-1] += _(", threshold {}").format(threshold)
    if explanation.failure is not None:
        said = " ".join(explanation.failure.split())
        short = said if len(said) <= _FAILURE else f"{said[:_FAILURE]}…"
        lines.insert(1, _("Asking the retriever failed: {}").format(short))
    if explanation.conventions.credit == "every":
        lines.append(_("By the convention credit=every, repeats are rewarded too."))
    if any(document.text is None for document in explanation.documents):
        lines.append(_(NO_TEXTS))
    if explanation.condensed:
        lines.append(
            _(
                "The numbers leave out unjudged documents, so that the others move up; ranks and "
                "outcomes below are those of the whole list."
            )
        )
    return lines


def _outcome(explanation: Explanation) -> str:
    """Say how many of the items were found, and how many documents were looked at."""
    k, found = explanation.k, [one.outcome.startswith("found") for one in explanation.items]
    if explanation.status == "no ground truth":
        summary = _("nothing should be retrieved")
    elif k is None or explanation.status == "nothing retrieved":
        summary = _("{n} of {items} items found")
    else:
        summary = _("{n} of {items} items found within {within}")
    within = _("the first {}").format(k)
    if isinstance(k, Budget):
        within = amount_in_words(k.amount, k.unit)
    summary = summary.format(n=sum(found), items=len(found), within=within)
    retrieved = _("documents retrieved: {}").format(len(explanation.documents))
    told = _("{}: {}; {}").format(_(explanation.status), summary, retrieved)
    if isinstance(k, Budget):
        told += _(", of which {} fit").format(explanation.n_seen)
    return told


def _threshold(explanation: Explanation, threshold: float) -> str:
    """Write the threshold with the digits that tell every similarity apart from it."""
    similarities = [one.similarity for one in explanation.documents]
    similarities += [one.similarity for one in explanation.items]
    bounds = (told_apart(similarity, threshold)[1] for similarity in similarities)
    return max(bounds, key=len, default=f"{threshold:g}")


def similarity(similarity: float, threshold: float | None) -> str:
    """Write a similarity with the digits that tell it apart from the threshold."""
    return f"{similarity:.4f}" if threshold is None else told_apart(similarity, threshold)[0]


def credit(document: PredictedDocument) -> str:
    """Say what a document was credited for."""
    return ", ".join(
        _(_CREDITS[key]).format(_numbered(numbers)) for key, numbers in _credits(document)
    )


_CREDITS = {
    "first": N_("first to cover {}"),
    "repeat": N_("repeat of {}"),
    "piece": N_("piece of {}"),
    "not relevant": N_("not relevant"),
    "beyond cutoff": N_("beyond the cutoff, matches {}"),
    "completes": N_("completes {}"),
    "beyond cutoff, completes": N_("beyond the cutoff, completes {}"),
    "matches": N_("matches {}"),
    "closest": N_("closest to {}"),
    "contradicts": N_("differs from {}"),
    "unwanted": N_("matches unwanted {}"),
}


def _credits(document: PredictedDocument) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield what to say of a document, and of which items."""
    matches, first, pieces = document.matches, document.first_for, document.piece_of
    kind = document.credit
    completes = [number for number in first if number in pieces]
    if completes and kind in ("first", "beyond cutoff"):
        yield ("completes" if kind == "first" else "beyond cutoff, completes"), completes
        alone = [one for one in (first if kind == "first" else matches) if one not in completes]
        if alone:
            yield ("first" if kind == "first" else "matches"), alone
    else:
        yield kind, {"first": first, "piece": pieces}.get(kind, matches)
    parts = [number for number in pieces if number not in first]
    if kind == "first" and parts:
        yield "piece", parts
    again = [number for number in matches if number not in first]
    if kind in ("first", "piece") and again:
        yield "repeat", again
    if not matches and kind != "piece" and document.closest is not None:
        yield "closest", [document.closest]
    if document.contradicts:
        yield "contradicts", document.contradicts
    if document.unwanted:
        yield "unwanted", document.unwanted


# Columns of a value that stands beside what is told.
_ASIDE = 60


def aside(*alternatives: About) -> str:
    """Write what is told of a document or of interchangeable ones; of many, of the first.

    >>> aside((("id", "7"), ("source", "a.pdf")), ()), aside(())
    ('id 7, source a.pdf | –', '')
    """
    told = [
        ", ".join(f"{fitted(name, _ASIDE)} {fitted(value, _ASIDE)}" for name, value in about) or "–"
        for about in alternatives[:_ALTERNATIVES]
    ]
    return " | ".join(told) if any(alternatives) else ""


def _numbered(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + ("…" if len(numbers) > 8 else "")
    return ngettext("item {}", "items {}", len(numbers)).format(shown)


# What became of an item, and whether it was missed in pieces.
_OUTCOMES = {
    ("found", False): N_("found at rank {rank}"),
    ("found in pieces", False): N_("found in pieces: {pieces}"),
    ("beyond cutoff", False): N_("missed; found at rank {rank}, beyond the cutoff"),
    ("beyond cutoff", True): N_("missed; {pieces}, rank {rank} beyond the cutoff"),
    ("missed", False): N_(
        "missed by {shortfall}; nearest: rank {nearest}, similarity {similarity}"
    ),
    ("missed", True): N_("missed by {shortfall}: {pieces}"),
    ("nothing in common", False): N_("missed; {why}"),
}


def outcome(item: GroundTruthItem, explanation: Explanation) -> str:
    """Say what became of an item."""
    contradicted = _contradicted(item.contradicted)
    in_pieces = bool(item.pieces) and item.outcome in ("beyond cutoff", "missed")
    outcome = _(_OUTCOMES[item.outcome, in_pieces]).format(
        rank=item.first_rank,
        nearest=item.nearest_rank,
        shortfall=_short_by(item.shortfall),
        similarity=similarity(item.similarity, explanation.threshold),
        pieces=_together(item),
        why=contradicted or _nothing_in_common(item, by_runs=explanation.by_runs),
    )
    if item.place != item.first_rank and item.place is not None:
        outcome += _(", counted at place {}").format(item.place)
    if item.n_alternatives > 1:
        outcome += _(" (any of {})").format(item.n_alternatives)
    if contradicted and item.outcome != "nothing in common":
        outcome += _("; ") + contradicted
    return outcome


def _contradicted(by: Sequence[Contradicting]) -> str:
    """Say which documents contradict an item, and how."""
    told = []
    for one in by[:_CONTRADICTING]:
        share = whole_percent(one.share)
        line = _("contradicted by rank {rank}, which holds {share} % of it")
        if one.said and one.said.kind == "text":
            line = _("nearly held by rank {rank}, which has {share} % of it")
        line = line.format(rank=one.rank, share=share)
        said = f": {fitted(otherwise_in_words(one.said), _LABEL)}" if one.said else ""
        told.append(line + said)
    if more := len(by) - len(told):
        told.append(_("and {} more").format(more))
    return _("; ").join(told)


def _nothing_in_common(item: GroundTruthItem, *, by_runs: bool) -> str:
    if item.near is not None:
        return near_in_words(item.near)
    if by_runs:
        return _("no predicted document shares a long enough run of words")
    return _("nothing in common with any predicted document")


# What is in a run, and one of it.
_UNITS = {
    N_("words"): N_("word"),
    N_("characters"): N_("character"),
    N_("tokens"): N_("token"),
}
# What no document does.
_NOTHING_NEAR = {
    "one": N_("no {one} in common with any predicted document"),
    "run": N_("no {run} {unit} in a row in common with any predicted document"),
    "numbers": N_(
        "no predicted document has {run} {unit} in a row in common with it and all its numbers"
    ),
    "no words": N_("it has no words"),
    "text": N_("no predicted document has the same text"),
    "contains": N_("no predicted document has it in its text"),
    "id": N_("no predicted document has the same id"),
    "metadata": N_("no predicted document has the same metadata"),
    "nothing retrieved": N_("nothing was retrieved"),
}


def near_in_words(near: NearMiss) -> str:
    """Say what an item has in common with what came back.

    >>> near_in_words(NearMiss("run", 5, tokens=14, shared=6, rank=3))
    'no five words in a row in common with any predicted document; 6 of its 14 different words occur
    in rank 3'
    """
    numerals = dict(enumerate(_("no one two three four five six seven eight nine").split()))
    unit, one = _(near.unit), _(_UNITS[near.unit])
    nothing = _NOTHING_NEAR[near.kind if (near.kind, near.run) != ("run", 1) else "one"]
    told = [_(nothing).format(one=one, run=numerals.get(near.run, near.run), unit=unit)]
    if near.shared:
        told += [
            ngettext(
                "{shared} of its {tokens} different {unit} occurs in rank {rank}",
                "{shared} of its {tokens} different {unit} occur in rank {rank}",
                near.shared,
            ).format(shared=near.shared, tokens=near.tokens, unit=unit, rank=near.rank)
        ]
    elif near.shared == 0:
        told += [_("none of its {unit} occurs in any of them").format(unit=unit)]
    if near.but_for:
        but_for = numbers.listed(_(_DIFFERENCES[one]) for one in near.but_for)
        told += [_("rank {rank} has it but for {}").format(but_for, rank=near.rank)]
    if near.but_for and near.matchers:
        told += [_("the matcher {} would count it").format(_(" or ").join(near.matchers))]
    return _("; ").join(told)


# What alone two texts may differ in.
_DIFFERENCES = {
    "Unicode form": N_("Unicode form"),
    "case": N_("case"),
    "punctuation": N_("punctuation"),
    "white space": N_("white space"),
}


def _together(item: GroundTruthItem) -> str:
    """Say which ranks hold how much together; rounded down, so that a miss never looks like 100 %.

    >>> item = GroundTruthItem(1, 1.0, "found in pieces", 4, 4, None, 0.92, 0.0, 1, None, (1, 3, 4))
    >>> _together(item)
    'ranks 1, 3 and 4 together hold 92 %'
    """
    if not item.pieces:
        return ""
    *others, last = map(str, item.pieces)
    share = whole_percent(item.similarity)
    together = _("ranks {others} and {last} together hold {share} %")
    return together.format(others=", ".join(others), last=last, share=share)


def _short_by(shortfall: float) -> str:
    """Round, but not to nothing: a near miss is a miss.

    >>> _short_by(0.19), _short_by(0.00001)
    ('0.1900', '1e-05')
    """
    return f"{shortfall:.4f}" if shortfall >= 0.00005 else f"{shortfall:.0e}"


def highlighted(
    explanation: Explanation, *, full: bool = False
) -> tuple[dict[int, tuple[Excerpt, ...]], dict[int, tuple[Excerpt, ...]]]:
    """Return the excerpts to show, per rank and per item, highlighted where partners agree.

    A document is compared with the item it is most similar to and those that it contradicts, an
    item with the document that covers it first or comes nearest and those that contradict it.
    """
    documents = {d.rank: d for d in explanation.documents}
    items = {i.number: i for i in explanation.items}
    if full:
        ranks, numbers = list(documents), list(items)
    else:
        unwanted = [d.rank for d in explanation.documents if d.unwanted]
        partners = [r for i in explanation.items for r in _partners(i)]
        ranks = _to_show(documents, [*partners, *unwanted])
        spoken_of = [n for d in explanation.documents for n in (d.closest, *d.contradicts)]
        numbers = _to_show(items, spoken_of)
    # A partner need not be shown itself.
    all_ranks = {*ranks, *(rank for number in numbers for rank in _partners(items[number]))}
    held = {
        one.rank: {one.closest, *one.piece_of, *one.contradicts} - {None}
        for one in map(documents.__getitem__, ranks)
    }
    marked = partial(_marked, by_letters=explanation.by_letters)
    said = [(n, by.rank, by.said) for n, i in items.items() for by in i.contradicted if by.said]
    all_numbers = {*numbers, *(number for rank in ranks for number in held[rank])}
    by_rank = {r: _excerpts((d.text,), full) for r, d in documents.items() if r in all_ranks}
    by_number = {n: _excerpts(i.alternatives, full) for n, i in items.items() if n in all_numbers}
    return (
        {r: marked(by_rank[r], [by_number.get(n or 0, ()) for n in held[r]],
                   {one.document for _n, rank, one in said if rank == r}) for r in ranks},
        {n: marked(by_number[n], [by_rank.get(rank, ()) for rank in _partners(items[n])],
                   {one.passage for number, _r, one in said if number == n}) for n in numbers},
    )  # fmt: skip


def _to_show(numbered: Iterable[int], spoken_of: Iterable[int | None]) -> list[int]:
    """Return the first ones, and of the others those that something shown speaks of."""
    everything = sorted(numbered)
    wanted = {number for number in spoken_of if number is not None} - set(everything[:_SHOWN])
    return everything[:_SHOWN] + sorted(wanted)[: _SHOWN_AT_MOST - _SHOWN]


def _excerpts(texts: Iterable[str | None] | None, full: bool = False) -> tuple[Excerpt, ...]:
    known = [text for text in texts or () if text is not None]
    chosen = known if full else known[:_ALTERNATIVES]
    shown = [Excerpt.of(t, whole=full) if t.strip() else Excerpt(_("(blank)")) for t in chosen]
    if len(known) > len(chosen):
        more = _("(… and {} more alternatives)").format(len(known) - len(chosen))
        shown.append(Excerpt(more))
    return tuple(shown)


def _marked(
    excerpts: Sequence[Excerpt],
    partners: Sequence[Sequence[Excerpt]],
    otherwise: Iterable[str],
    *,
    by_letters: bool,
) -> tuple[Excerpt, ...]:
    """Highlight where each excerpt agrees with each partner, in whichever of its texts most.

    And what it says otherwise than a partner, where that is found in it.
    """

    def spans(text: str) -> Iterator[tuple[int, int]]:
        for several in partners:
            found = (agreement(text, one.text, by_letters=by_letters) for one in several)
            yield from max(found, key=lambda some: sum(b - a for a, b in some), default=())

    def marked(one: Excerpt) -> Excerpt:
        found = () if one.text == _("(blank)") else united(spans(one.text))
        places = (said_at(one.text, said, found, by_letters=by_letters) for said in otherwise)
        return replace(one, spans=found, different=united(chain.from_iterable(places)))

    return tuple(map(marked, excerpts))
